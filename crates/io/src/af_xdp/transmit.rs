//! The transmitting half of an AF_XDP port.

use std::sync::Arc;

use wirestorm_base::port::{
    Capabilities, FrameId, PortError, StampPoint, Transmit, TransmitCounters,
};
use wirestorm_base::time::Instant;

use super::frame_memory::Chunks;
use super::ring::{Consumer, Producer, WithdrawCursor};
use super::socket::{TransmitHalf, XdpSocket};
use crate::link::Link;

/// Frames of one burst: in copy mode without the larger budget, one call sends 32 frames.
const BURST: usize = 32;
/// Highest number of calls of one flush: enough for all frames of the largest port at 32 a call.
const CALLS_MAX: u32 = 1024;
/// Number of consecutive flushes without progress after which the port checks the interface.
const STALLS_PER_CHECK: u32 = 4096;
/// A descriptor that the kernel skips: longer than a chunk, outside the UMEM, with unknown options.
const INVALID_DESCRIPTOR: libc::xdp_desc =
    libc::xdp_desc { addr: u64::MAX, len: u32::MAX, options: u32::MAX };

/// Transmits through one transmit queue.
///
/// A flush sends the queued frames in order. A frame counts as sent when it returns through the
/// completion ring: the device, or in copy mode the driver, has released it. A frame that the
/// driver dropped at once counts as failed, and so does a frame that [`Capabilities::accepts`]
/// rejects.
pub struct AfXdpTransmit {
    socket: Arc<XdpSocket>,
    chunks: Chunks,
    transmit: Producer<libc::xdp_desc>,
    completion: Consumer<u64>,
    free: Vec<u32>,
    /// For each chunk, the length of its frame and whether the driver dropped it.
    frames: Box<[InFlight]>,
    in_flight: usize,
    stalls: u32,
    /// Whether the ring contains withdrawn entries that the kernel has not skipped yet.
    has_withdrawn: bool,
    capabilities: Capabilities,
    counters: TransmitCounters,
}

/// State of the frame in a chunk.
#[derive(Clone, Copy, Debug, Default)]
struct InFlight {
    length: u32,
    is_dropped: bool,
}

impl AfXdpTransmit {
    pub(super) fn new(socket: Arc<XdpSocket>, half: TransmitHalf, link: &Link) -> Self {
        let TransmitHalf { chunks, transmit, completion, frame_length_max } = half;
        let count = chunks.count();
        Self {
            socket,
            transmit,
            completion,
            free: (0..count).rev().collect(),
            frames: vec![InFlight::default(); count as usize].into_boxed_slice(),
            in_flight: 0,
            stalls: 0,
            has_withdrawn: false,
            capabilities: link.socket_capabilities(
                frame_length_max,
                count as usize,
                BURST,
                StampPoint::Xdp,
            ),
            counters: TransmitCounters::default(),
            chunks,
        }
    }

    /// Collects completed frames; returns their number.
    fn collect(&mut self) -> usize {
        let mut count = 0;
        while let Some(address) = self.completion.pop() {
            // `send` pushed every address, and the kernel returns only those.
            let Some((index, _)) = self.chunks.locate(address) else { continue };
            let frame = std::mem::take(&mut self.frames[index as usize]);
            // Skip a frame that `abort` withdrew while the interface was down: it is not in flight.
            if frame.length == 0 {
                continue;
            }
            if frame.is_dropped {
                self.counters.failed += 1;
            } else {
                self.counters.sent += 1;
                self.counters.sent_bytes += u64::from(frame.length);
            }
            self.free.push(index);
            count += 1;
        }
        self.completion.release();
        self.in_flight -= count;
        count
    }

    /// Makes the kernel send. In copy mode the call does all the work.
    fn wake(&mut self) -> Result<(), PortError> {
        let mut waiting = self.transmit.waiting();
        for _ in 0..CALLS_MAX {
            if waiting == 0 && (!self.socket.zero_copy || self.in_flight == 0) {
                return Ok(());
            }
            let outcome = self.socket.wake_transmission();
            let before = waiting;
            waiting = self.transmit.waiting();
            let moved = waiting < before;
            let Err(reason) = outcome else {
                // In zero-copy mode the device continues by itself. In copy mode the call sent its
                // budget.
                if self.socket.zero_copy || !moved {
                    return Ok(());
                }
                continue;
            };
            match reason.raw_os_error() {
                // The driver dropped the frame that the kernel consumed last.
                Some(libc::EBUSY) if moved && !self.socket.zero_copy => self.mark_dropped(),
                // One call does not send all waiting frames.
                Some(libc::EAGAIN) if moved => {}
                Some(libc::EAGAIN | libc::EBUSY | libc::EINTR) => {
                    self.counters.retried_again += 1;
                    return Ok(());
                }
                Some(libc::ENOBUFS) => {
                    self.counters.retried_no_buffers += 1;
                    return Ok(());
                }
                _ => return Err(self.socket.interface.port_error("sending", &reason)),
            }
        }
        Ok(())
    }

    /// Frees the chunk of a frame that the kernel has not read, and counts it as unsent.
    fn withdraw(&mut self, descriptor: libc::xdp_desc) {
        // `locate` fails for an entry that was withdrawn before.
        let Some((index, _)) = self.chunks.locate(descriptor.addr) else { return };
        self.frames[index as usize] = InFlight::default();
        self.free.push(index);
        self.counters.unsent += 1;
        self.in_flight -= 1;
    }

    /// Whether the ring has room for another frame besides the taken ones. Needed only while
    /// withdrawn entries occupy the ring.
    #[cold]
    fn has_room(&mut self) -> bool {
        let taken = self.frames.len() - self.free.len() - self.in_flight;
        self.transmit.free_entries() as usize > taken
    }

    fn mark_dropped(&mut self) {
        let last = self.transmit.last_consumed();
        if let Some((index, _)) = last.and_then(|descriptor| self.chunks.locate(descriptor.addr)) {
            self.frames[index as usize].is_dropped = true;
        }
    }
}

impl Transmit for AfXdpTransmit {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn take(&mut self) -> Option<FrameId> {
        if self.has_withdrawn && !self.has_room() {
            return None;
        }
        self.free.pop().map(FrameId::from_index)
    }

    fn frame_mut(&mut self, frame: &FrameId) -> &mut [u8] {
        self.chunks.bytes_mut(frame.index(), 0, self.capabilities.frame_length_max)
    }

    fn send(&mut self, frame: FrameId, length: usize, _departure: Instant) {
        self.capabilities.assert_length(length);
        let index = frame.index();
        if !self.capabilities.accepts(self.chunks.bytes(index, 0, length)) {
            self.counters.failed += 1;
            self.free.push(index);
            return;
        }
        let length = length as u32;
        self.frames[index as usize] = InFlight { length, is_dropped: false };
        let addr = self.chunks.address(index);
        self.transmit.push(libc::xdp_desc { addr, len: length, options: 0 });
        self.in_flight += 1;
    }

    fn release(&mut self, frame: FrameId) {
        self.free.push(frame.index());
    }

    fn flush(&mut self) -> Result<(), PortError> {
        if self.in_flight == 0 && !self.has_withdrawn {
            return Ok(());
        }
        self.transmit.publish();
        let must_wake = self.transmit.needs_wakeup() || self.socket.must_always_wake();
        let mut outcome = if must_wake { self.wake() } else { Ok(()) };
        self.has_withdrawn = self.has_withdrawn && self.transmit.waiting() > 0;
        if self.collect() > 0 {
            self.stalls = 0;
            return outcome;
        }
        self.stalls += 1;
        if self.stalls >= STALLS_PER_CHECK {
            self.stalls = 0;
            outcome = outcome.and(self.socket.check_interface());
        }
        outcome
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn transmitted(&self) -> TransmitCounters {
        self.counters
    }

    fn abort(&mut self) {
        // In copy mode the kernel reads the ring only during calls of this process, so unread
        // entries can be withdrawn. In zero-copy mode the device reads at any time: only
        // unpublished entries are withdrawn, and the rest leaves within microseconds.
        while let Some(descriptor) = self.transmit.pop_unpublished() {
            self.withdraw(descriptor);
        }
        if !self.socket.zero_copy {
            let mut cursor = WithdrawCursor::default();
            while let Some(descriptor) = self.transmit.withdraw(&mut cursor, INVALID_DESCRIPTOR) {
                self.withdraw(descriptor);
                self.has_withdrawn = true;
            }
        }
        self.collect();
    }
}
