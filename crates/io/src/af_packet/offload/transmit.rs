//! The sending half.

use std::collections::VecDeque;

use wirestorm_base::port::{
    Capabilities, FrameId, PortError, Segmentation, StampPoint, Transmit, TransmitCounters,
};
use wirestorm_base::time::Instant;

use super::messages::{MESSAGES_MAX, Messages, Told};
use super::{LONG_FRAME_MAX, VIRTIO_HEADER_BYTES, VirtioHeader, virtio_header};
use crate::af_packet::refusals::Refusals;
use crate::af_packet::{
    ADDRESS_BYTES, AfPacketError, AfPacketOptions, address, enlarge_send_buffer,
};
use crate::namespace::InterfaceName;
use crate::system::socket::Socket;

/// Sends on a packet socket, long frames too, which the interface cuts.
///
/// Frames leave with the flush, in order, or before it where many bytes wait. A frame counts as sent when the kernel has taken it, a
/// long one as one.
pub struct OffloadTransmit {
    interface: InterfaceName,
    socket: Socket,
    buffers: Box<[u8]>,
    free: Vec<u32>,
    queue: VecDeque<Queued>,
    /// Bytes in it.
    queued: usize,
    messages: Messages,
    refusals: Refusals,
    capabilities: Capabilities,
    counters: TransmitCounters,
}

/// A frame that is to leave; its header is in its buffer.
struct Queued {
    frame: FrameId,
    length: usize,
}

/// So many bytes do not wait for the flush: the kernel copies them while they are in this CPU's cache,
/// and the buffers they leave are written again while those are.
const QUEUED_MAX: usize = 128 << 10;

/// Where frames begin in their buffers, for the virtio header before them.
const HEADROOM: usize = 16;
const BUFFER_BYTES: usize = (HEADROOM + LONG_FRAME_MAX).next_multiple_of(64);

impl OffloadTransmit {
    /// Opens a socket for sending. It hears nothing.
    ///
    /// # Errors
    /// Where there is no such interface, it is down or not Ethernet, or the process lacks
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
            messages: Messages::new(Told::Nothing),
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
            // What the system objects to it says again, to the flush.
            let _ = self.flush();
        }
    }

    /// The oldest frames have left, or never will.
    fn let_go(&mut self, count: usize) -> usize {
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
                    self.counters.sent_bytes += self.let_go(sent) as u64;
                }
                Err(reason) => match reason.raw_os_error() {
                    Some(libc::ENOBUFS) => {
                        self.counters.retried_no_buffers += 1;
                        return self.refusals.note(&self.interface, &self.socket);
                    }
                    Some(libc::EAGAIN) => {
                        self.counters.retried_again += 1;
                        return self.refusals.note(&self.interface, &self.socket);
                    }
                    Some(libc::EINTR) => return Ok(()),
                    // This frame alone: the interface cannot cut it, or has become smaller.
                    Some(libc::EMSGSIZE | libc::EINVAL) => {
                        self.counters.failed += 1;
                        self.let_go(1);
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
        self.let_go(self.queue.len());
    }
}
