//! The transmitting half of a packet socket port.

use std::io;

use wirestorm_base::port::{
    Capabilities, FrameId, PortError, StampPoint, Transmit, TransmitCounters,
};
use wirestorm_base::time::Instant;

use super::send_refusals::Refusals;
use super::transmit_ring::{Outcome, TransmitRing};
use super::{ADDRESS_BYTES, AfPacketError, AfPacketOptions, address, enlarge_send_buffer};
use crate::namespace::InterfaceName;
use crate::system::socket::Socket;

/// Frames of one burst: above 16 the number does not matter; 64 stay within the L1 cache.
const BURST: usize = 64;
/// Memory that the kernel charges for a socket buffer besides the frame, in bytes.
const SOCKET_BUFFER_OVERHEAD: usize = 1024;

/// Transmits through a packet socket.
///
/// A flush sends the queued frames in order. A frame counts as sent once the driver has released
/// it. A frame that [`Capabilities::accepts`] rejects counts as failed, since the kernel would
/// refuse it.
///
/// With the queueing bypass, the CPU that runs the flush determines the transmit queue.
pub struct AfPacketTransmit {
    interface: InterfaceName,
    socket: Socket,
    ring: TransmitRing,
    /// Frame buffers. The port reuses the last released buffer first, since it is still in the
    /// cache.
    buffers: Box<[u8]>,
    buffer_bytes: usize,
    free: Vec<u32>,
    /// Withdrawn frames that still occupy the ring.
    withdrawn: usize,
    refusals: Refusals,
    capabilities: Capabilities,
    counters: TransmitCounters,
}

impl AfPacketTransmit {
    /// Opens a transmit-only socket, which receives no frames.
    ///
    /// # Errors
    /// Fails if the interface does not exist, is down or is not Ethernet. Also fails if the process
    /// lacks `CAP_NET_RAW`, or if `options.frames` is out of range.
    pub fn open(options: &AfPacketOptions) -> Result<Self, AfPacketError> {
        if !(64..=65_536).contains(&options.frames) {
            let (option, found, expected) = ("frames", options.frames, "64 to 65,536");
            return Err(AfPacketError::Option { option, found, expected });
        }
        let frames = options.frames;
        let (socket, link) = options.socket()?;
        let frame_length_max = link.frame_length_max();
        if options.queueing_bypass {
            socket
                .set_option(libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1_i32)
                .map_err(options.system("setting PACKET_QDISC_BYPASS"))?;
        }
        enlarge_send_buffer(&socket, frames * (frame_length_max + SOCKET_BUFFER_OVERHEAD));
        let ring = TransmitRing::open(&socket, frames, frame_length_max)
            .map_err(options.system("setting up a transmit ring"))?;
        socket
            .bind(&address(link.index, 0), ADDRESS_BYTES)
            .map_err(options.system("binding a packet socket"))?;
        let buffer_bytes = frame_length_max.next_multiple_of(64);
        Ok(Self {
            interface: options.interface.clone(),
            socket,
            ring,
            buffers: vec![0; buffer_bytes * frames].into_boxed_slice(),
            buffer_bytes,
            free: (0..frames as u32).rev().collect(),
            withdrawn: 0,
            refusals: Refusals::default(),
            capabilities: link.socket_capabilities(
                frame_length_max,
                frames,
                BURST,
                StampPoint::Kernel,
            ),
            counters: TransmitCounters::default(),
        })
    }

    fn buffer(&mut self, index: u32) -> &mut [u8] {
        let start = index as usize * self.buffer_bytes;
        &mut self.buffers[start..start + self.buffer_bytes]
    }

    /// Removes the frames from the ring that the kernel has finished.
    fn collect(&mut self) {
        while let Some(outcome) = self.ring.collect() {
            match outcome {
                Outcome::Sent(length) => {
                    self.counters.sent += 1;
                    self.counters.sent_bytes += length as u64;
                }
                Outcome::Withdrawn => self.withdrawn -= 1,
            }
        }
    }
}

impl Transmit for AfPacketTransmit {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn take(&mut self) -> Option<FrameId> {
        // Every taken frame may be sent, so it needs a slot in the ring.
        let taken = self.capabilities.frames - self.free.len();
        if taken + self.ring.occupied() >= self.capabilities.frames {
            return None;
        }
        self.free.pop().map(FrameId::from_index)
    }

    fn frame_mut(&mut self, frame: &FrameId) -> &mut [u8] {
        self.buffer(frame.index())
    }

    fn send(&mut self, frame: FrameId, length: usize, _departure: Instant) {
        self.capabilities.assert_length(length);
        let start = frame.index() as usize * self.buffer_bytes;
        let bytes = &self.buffers[start..start + length];
        if self.capabilities.accepts(bytes) {
            self.ring.push(bytes);
        } else {
            self.counters.failed += 1;
        }
        self.free.push(frame.index());
    }

    fn release(&mut self, frame: FrameId) {
        self.free.push(frame.index());
    }

    fn flush(&mut self) -> Result<(), PortError> {
        let mut outcome = Ok(());
        if self.ring.has_requests() {
            match self.socket.send(&[], libc::MSG_DONTWAIT) {
                Ok(_) => self.refusals = Refusals::default(),
                Err(reason) => match reason.raw_os_error() {
                    Some(libc::ENOBUFS) => {
                        self.counters.retried_no_buffers += 1;
                        outcome = self.refusals.count(&self.interface, &self.socket);
                    }
                    Some(libc::EAGAIN) => {
                        self.counters.retried_again += 1;
                        outcome = self.refusals.count(&self.interface, &self.socket);
                    }
                    Some(libc::EINTR) => {}
                    _ => outcome = Err(self.interface.port_error("sending", &reason)),
                },
            }
        }
        let before = self.ring.occupied();
        self.collect();
        if self.ring.occupied() < before {
            self.refusals = Refusals::default();
        }
        outcome
    }

    fn in_flight(&self) -> usize {
        self.ring.occupied() - self.withdrawn
    }

    fn transmitted(&self) -> TransmitCounters {
        self.counters
    }

    fn abort(&mut self) {
        let withdrawn = self.ring.withdraw();
        self.withdrawn += withdrawn;
        self.counters.unsent += withdrawn as u64;
        // The kernel skips withdrawn frames. If the interface is down or gone, it does not read the
        // ring and the slots stay occupied; the counters are right in both cases.
        let _: io::Result<usize> = self.socket.send(&[], libc::MSG_DONTWAIT);
        self.collect();
    }
}
