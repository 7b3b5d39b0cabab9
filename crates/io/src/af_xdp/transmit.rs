//! The sending half.

use std::sync::Arc;

use wirestorm_base::port::{
    Capabilities, FrameId, PortError, StampPoint, Transmit, TransmitCounters,
};
use wirestorm_base::time::Instant;

use super::frame_memory::Chunks;
use super::ring::{Consumer, Producer, VoidCursor};
use super::socket::{TransmitHalf, XdpSocket};
use crate::link::Link;

/// Frames worth queueing before a flush: a copying socket without the larger budget sends 32
/// a call.
const BURST: usize = 32;
/// Calls that one flush makes at most: enough for all frames of the largest port at 32 a call.
const CALLS_MAX: u32 = 1024;
/// After so many flushes in a row that moved nothing, the interface is looked at.
const STALLS_PER_LOOK: u32 = 4096;
/// What the kernel passes over: longer than a chunk, outside of the memory, with unknown options.
const VOID: libc::xdp_desc = libc::xdp_desc { addr: u64::MAX, len: u32::MAX, options: u32::MAX };

/// Sends through one transmit queue.
///
/// Frames leave with the flush, in order. A frame counts as sent when it came back through the
/// completion ring: the device, or on a copying socket the driver, has let go of it. One that the
/// driver dropped at once counts as failed, and so does one that [`Capabilities::accepts`] says
/// no to.
pub struct AfXdpTransmit {
    socket: Arc<XdpSocket>,
    chunks: Chunks,
    transmit: Producer<libc::xdp_desc>,
    completion: Consumer<u64>,
    free: Vec<u32>,
    /// For each chunk: the length of the frame in it, and whether the driver dropped it.
    frames: Box<[InFlight]>,
    in_flight: usize,
    stalls: u32,
    /// Whether entries of the ring were taken back that the kernel has not passed over yet.
    has_voids: bool,
    capabilities: Capabilities,
    counters: TransmitCounters,
}

/// What is known of the frame in a chunk.
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
            has_voids: false,
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

    /// Takes back what the kernel is done with; returns how many frames that were.
    fn collect(&mut self) -> usize {
        let mut count = 0;
        while let Some(address) = self.completion.pop() {
            // Every address was put in by `send`; the kernel makes up none.
            let Some((index, _)) = self.chunks.locate(address) else { continue };
            let frame = std::mem::take(&mut self.frames[index as usize]);
            // One that was taken back meanwhile, with its interface down, is not in flight.
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

    /// Lets the kernel send. A copying socket does all work inside the call.
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
                // The device goes on by itself; a copying socket has sent its budget.
                if self.socket.zero_copy || !moved {
                    return Ok(());
                }
                continue;
            };
            match reason.raw_os_error() {
                // The driver dropped the frame that was taken last.
                Some(libc::EBUSY) if moved && !self.socket.zero_copy => self.note_drop(),
                // More frames are waiting than one call sends.
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

    /// A frame that the kernel has not read is free again.
    fn take_back(&mut self, descriptor: libc::xdp_desc) {
        // What was taken back before is in no chunk.
        let Some((index, _)) = self.chunks.locate(descriptor.addr) else { return };
        self.frames[index as usize] = InFlight::default();
        self.free.push(index);
        self.counters.unsent += 1;
        self.in_flight -= 1;
    }

    /// Whether there is room for another frame beside those that are taken, while entries that were
    /// taken back are in the ring.
    #[cold]
    fn has_room(&mut self) -> bool {
        let taken = self.frames.len() - self.free.len() - self.in_flight;
        self.transmit.room() as usize > taken
    }

    fn note_drop(&mut self) {
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
        if self.has_voids && !self.has_room() {
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
        if self.in_flight == 0 && !self.has_voids {
            return Ok(());
        }
        self.transmit.publish();
        let must_wake = self.transmit.needs_wakeup() || self.socket.must_always_wake();
        let mut outcome = if must_wake { self.wake() } else { Ok(()) };
        self.has_voids = self.has_voids && self.transmit.waiting() > 0;
        if self.collect() > 0 {
            self.stalls = 0;
            return outcome;
        }
        self.stalls += 1;
        if self.stalls >= STALLS_PER_LOOK {
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
        // The kernel reads the ring of a copying socket in calls of this process only, so what
        // it has not read can be taken back. A device reads whenever it likes: there, only what
        // it was not told of is taken back, and the rest leaves within microseconds.
        while let Some(descriptor) = self.transmit.unwrite() {
            self.take_back(descriptor);
        }
        if !self.socket.zero_copy {
            let mut cursor = VoidCursor::default();
            while let Some(descriptor) = self.transmit.void(&mut cursor, VOID) {
                self.take_back(descriptor);
                self.has_voids = true;
            }
        }
        self.collect();
    }
}
