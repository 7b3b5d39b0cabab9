//! The transmitting half of an offload port.

use std::collections::VecDeque;

use wirestorm_base::port::{
    Capabilities, FrameId, PortError, Segmentation, StampPoint, Transmit, TransmitCounters,
};
use wirestorm_base::time::Instant;

use super::messages::{ControlMessages, MESSAGES_MAX, Messages};
use super::{LONG_FRAME_MAX, VIRTIO_HEADER_BYTES, VirtioHeader, virtio_header};
use crate::af_packet::send_refusals::Refusals;
use crate::af_packet::{
    ADDRESS_BYTES, AfPacketError, AfPacketOptions, address, enlarge_send_buffer,
};
use crate::namespace::InterfaceName;
use crate::system::socket::Socket;

/// Transmits through a packet socket, with TCP segmentation offload for long frames.
///
/// A flush sends the queued frames in order; `send` also flushes once 128 KiB are queued. A frame
/// counts as sent once the kernel has accepted it; a long frame counts as one.
pub struct OffloadTransmit {
    interface: InterfaceName,
    socket: Socket,
    buffers: Box<[u8]>,
    free: Vec<u32>,
    queue: VecDeque<Queued>,
    /// Bytes in the queue.
    queued: usize,
    messages: Messages,
    refusals: Refusals,
    capabilities: Capabilities,
    counters: TransmitCounters,
}

/// A queued frame; its virtio header precedes it in the buffer.
struct Queued {
    frame: FrameId,
    length: usize,
}

/// Number of queued bytes that triggers a flush. The kernel then copies the frames while they are
/// in this CPU's cache, and the port rewrites their buffers while those are cached too.
const QUEUED_MAX: usize = 128 << 10;

/// Offset of frames in their buffers, which leaves room for the virtio header.
const HEADROOM: usize = 16;
const BUFFER_BYTES: usize = (HEADROOM + LONG_FRAME_MAX).next_multiple_of(64);

impl OffloadTransmit {
    /// Opens a transmit-only socket, which receives no frames.
    ///
    /// # Errors
    /// Fails if the interface does not exist, is down or is not Ethernet, or if the process lacks
    /// `CAP_NET_RAW`.
    pub fn open(options: &AfPacketOptions) -> Result<Self, AfPacketError> {
        let (socket, link) = options.socket()?;
        if options.queueing_bypass {
            socket
                .set_option(libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1_i32)
                .map_err(options.system("setting PACKET_QDISC_BYPASS"))?;
        }
        socket
            .set_option(libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1_i32)
            .map_err(options.system("setting PACKET_VNET_HDR"))?;
        let frames = options.frames;
        enlarge_send_buffer(&socket, frames * LONG_FRAME_MAX);
        socket
            .bind(&address(link.index, 0), ADDRESS_BYTES)
            .map_err(options.system("binding a packet socket"))?;
        let capabilities = link.socket_capabilities(
            link.frame_length_max(),
            frames,
            MESSAGES_MAX,
            StampPoint::Process,
        );
        Ok(Self {
            interface: options.interface.clone(),
            socket,
            buffers: vec![0; BUFFER_BYTES * frames].into_boxed_slice(),
            free: (0..frames as u32).rev().collect(),
            queue: VecDeque::with_capacity(frames),
            queued: 0,
            messages: Messages::new(ControlMessages::Nothing),
            refusals: Refusals::default(),
            capabilities,
            counters: TransmitCounters::default(),
        })
    }

    fn push(&mut self, frame: FrameId, length: usize, header: VirtioHeader) {
        let start = frame.index() as usize * BUFFER_BYTES + HEADROOM - VIRTIO_HEADER_BYTES;
        self.buffers[start..start + VIRTIO_HEADER_BYTES].copy_from_slice(&header);
        self.queue.push_back(Queued { frame, length });
        self.queued += length;
        if self.queued >= QUEUED_MAX {
            // A persistent error comes up again in the caller's next flush.
            let _ = self.flush();
        }
    }

    /// Removes the oldest `count` frames from the queue, sent or failed; returns their bytes.
    fn dequeue(&mut self, count: usize) -> usize {
        let mut bytes = 0;
        for queued in self.queue.drain(..count) {
            bytes += queued.length;
            self.free.push(queued.frame.index());
        }
        self.queued -= bytes;
        bytes
    }
}

impl Transmit for OffloadTransmit {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn segmented_length_max(&self) -> Option<usize> {
        Some(LONG_FRAME_MAX)
    }

    fn take(&mut self) -> Option<FrameId> {
        self.free.pop().map(FrameId::from_index)
    }

    fn frame_mut(&mut self, frame: &FrameId) -> &mut [u8] {
        let start = frame.index() as usize * BUFFER_BYTES;
        &mut self.buffers[start + HEADROOM..start + BUFFER_BYTES]
    }

    fn send(&mut self, frame: FrameId, length: usize, _departure: Instant) {
        self.capabilities.assert_length(length);
        let start = frame.index() as usize * BUFFER_BYTES + HEADROOM;
        if self.capabilities.accepts(&self.buffers[start..start + length]) {
            self.push(frame, length, VirtioHeader::default());
        } else {
            self.counters.failed += 1;
            self.free.push(frame.index());
        }
    }

    fn send_segments(
        &mut self,
        frame: FrameId,
        length: usize,
        segments: &Segmentation,
        _departure: Instant,
    ) {
        assert!(length <= LONG_FRAME_MAX, "a frame of {length} bytes, of at most {LONG_FRAME_MAX}");
        self.push(frame, length, virtio_header(segments));
    }

    fn release(&mut self, frame: FrameId) {
        self.free.push(frame.index());
    }

    fn flush(&mut self) -> Result<(), PortError> {
        while !self.queue.is_empty() {
            let buffers = &self.buffers;
            let frames = self.queue.iter().map(|queued| {
                let start = queued.frame.index() as usize * BUFFER_BYTES + HEADROOM;
                &buffers[start - VIRTIO_HEADER_BYTES..start + queued.length]
            });
            match self.messages.send(&self.socket, frames) {
                Ok(sent) => {
                    self.refusals = Refusals::default();
                    self.counters.sent += sent as u64;
                    self.counters.sent_bytes += self.dequeue(sent) as u64;
                }
                Err(reason) => match reason.raw_os_error() {
                    Some(libc::ENOBUFS) => {
                        self.counters.retried_no_buffers += 1;
                        return self.refusals.count(&self.interface, &self.socket);
                    }
                    Some(libc::EAGAIN) => {
                        self.counters.retried_again += 1;
                        return self.refusals.count(&self.interface, &self.socket);
                    }
                    Some(libc::EINTR) => return Ok(()),
                    // Only this frame fails: the interface cannot segment it, or its MTU has
                    // shrunk.
                    Some(libc::EMSGSIZE | libc::EINVAL) => {
                        self.counters.failed += 1;
                        self.dequeue(1);
                    }
                    _ => return Err(self.interface.port_error("sending", &reason)),
                },
            }
        }
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.queue.len()
    }

    fn transmitted(&self) -> TransmitCounters {
        self.counters
    }

    fn abort(&mut self) {
        self.counters.unsent += self.queue.len() as u64;
        self.dequeue(self.queue.len());
    }
}
