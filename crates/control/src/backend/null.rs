//! Null backend: discards frames in real time, to measure the cost of building them.

use wirestorm_base::port::{
    Capabilities, FrameId, PortError, StampPoint, Transmit, TransmitCounters,
};
use wirestorm_base::time::Instant;

use super::Descriptor;
use crate::inventory::Grade;

/// The null backend. The interface determines the maximum frame length.
pub(super) static NULL: Descriptor = Descriptor {
    name: "null",
    summary: "discard frames in real time, to measure the cost of building them",
    is_shared: true,
    finding: |_, _| (Grade::Good, "discards frames and sends none"),
    open: |_, link, _| {
        Ok(NullTransmit::new(link.frame_length_max(), link.untagged_length_max()).into())
    },
    ..Descriptor::TRANSMIT_ONLY
};

/// Number of frame buffers of a port, as in packet sockets.
const FRAMES: usize = 256;

/// A port that discards frames.
pub(crate) struct NullTransmit {
    capabilities: Capabilities,
    /// All frame buffers, concatenated.
    memory: Box<[u8]>,
    free: Vec<u32>,
    /// Frames that the next flush discards.
    queued: Vec<u32>,
    queued_bytes: u64,
    counters: TransmitCounters,
}

impl NullTransmit {
    fn new(frame_length_max: usize, untagged_length_max: usize) -> Self {
        Self {
            capabilities: Capabilities {
                frame_length_max,
                untagged_length_max,
                frames: FRAMES,
                burst: 64,
                holds_departure: false,
                departure_stamp: StampPoint::Process,
                arrival_stamp: StampPoint::Process,
            },
            memory: vec![0; FRAMES * frame_length_max].into_boxed_slice(),
            free: (0..FRAMES as u32).rev().collect(),
            queued: Vec::with_capacity(FRAMES),
            queued_bytes: 0,
            counters: TransmitCounters::default(),
        }
    }
}

impl Transmit for NullTransmit {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    #[inline]
    fn take(&mut self) -> Option<FrameId> {
        self.free.pop().map(FrameId::from_index)
    }

    #[inline]
    fn frame_mut(&mut self, frame: &FrameId) -> &mut [u8] {
        let length = self.capabilities.frame_length_max;
        &mut self.memory[frame.index() as usize * length..][..length]
    }

    #[inline]
    fn send(&mut self, frame: FrameId, length: usize, _departure: Instant) {
        self.capabilities.assert_length(length);
        self.queued.push(frame.index());
        self.queued_bytes += length as u64;
    }

    #[inline]
    fn release(&mut self, frame: FrameId) {
        self.free.push(frame.index());
    }

    fn flush(&mut self) -> Result<(), PortError> {
        self.counters.sent += self.queued.len() as u64;
        self.counters.sent_bytes += std::mem::take(&mut self.queued_bytes);
        self.free.append(&mut self.queued);
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.queued.len()
    }

    fn transmitted(&self) -> TransmitCounters {
        self.counters
    }

    fn abort(&mut self) {
        self.counters.unsent += self.queued.len() as u64;
        self.queued_bytes = 0;
        self.free.append(&mut self.queued);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discarded_frames_are_counted_and_buffers_are_reused() {
        let mut port = NullTransmit::new(1_514, 1_514);
        for round in 1..=3 {
            let frames: Vec<_> = std::iter::from_fn(|| port.take()).collect();
            assert_eq!(frames.len(), FRAMES);
            for frame in frames {
                port.frame_mut(&frame)[..60].fill(1);
                port.send(frame, 60, Instant::ZERO);
            }
            assert_eq!(port.in_flight(), FRAMES);
            port.flush().unwrap();
            let sent = round * FRAMES as u64;
            let counters = port.transmitted();
            assert_eq!((counters.sent, counters.sent_bytes), (sent, sent * 60));
        }
        let frame = port.take().unwrap();
        port.send(frame, 60, Instant::ZERO);
        port.abort();
        assert_eq!((port.in_flight(), port.transmitted().unsent), (0, 1));
    }
}
