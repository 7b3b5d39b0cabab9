//! Timestamps in the pktgen header.

use wirestorm_base::port::{FrameId, Transmit};
use wirestorm_base::time::Instant;
use wirestorm_base::wrapper;
use wirestorm_io::clock::RealtimeOffset;
use wirestorm_plan::pktgen::TimestampPosition;
use wirestorm_wire::checksum::Change;

/// A port that writes the departure time into each frame: the due time, or the start of the current
/// iteration if the frame is overdue.
pub(super) struct Stamping<'a, P> {
    pub(super) port: &'a mut P,
    /// Position of the timestamp; `None` for frames without one.
    pub(super) stamps: Option<TimestampPosition>,
    pub(super) now: Instant,
    pub(super) realtime: RealtimeOffset,
}

impl<P: Transmit> wrapper::TransmitWrapper for Stamping<'_, P> {
    type Port = P;

    #[inline]
    fn inner(&self) -> &P {
        &*self.port
    }

    #[inline]
    fn inner_mut(&mut self) -> &mut P {
        &mut *self.port
    }

    #[inline]
    fn send(&mut self, frame: FrameId, length: usize, departure: Instant) {
        if let Some(stamps) = self.stamps {
            // Overdue frames leave now.
            let leaves = self.realtime.to_realtime_nanos(departure.max(self.now));
            stamp(self.port.frame_mut(&frame), stamps, leaves);
        }
        self.port.send(frame, length, departure);
    }
}

/// Writes the time as seconds and microseconds into a field of zeros, and updates the checksum.
#[inline]
fn stamp(frame: &mut [u8], stamps: TimestampPosition, realtime_nanos: u64) {
    // 32 bits each, as in the kernel. The seconds overflow in 2106.
    let seconds = (realtime_nanos / 1_000_000_000) as u32;
    let microseconds = (realtime_nanos % 1_000_000_000 / 1_000) as u32;
    let TimestampPosition { offset, checksum } = stamps;
    frame[offset..offset + 4].copy_from_slice(&seconds.to_be_bytes());
    frame[offset + 4..offset + 8].copy_from_slice(&microseconds.to_be_bytes());
    if let Some(at) = checksum {
        let before = u16::from_be_bytes([frame[at], frame[at + 1]]);
        let change = Change::NONE.word32(0, seconds).word32(0, microseconds);
        frame[at..at + 2].copy_from_slice(&change.apply_udp(before).to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirestorm_wire::checksum;

    #[test]
    fn timestamped_frame_keeps_a_valid_checksum() {
        // A checksum over the whole frame at an even offset, as in UDP.
        for first in [0_u8, 1, 0x7f, 0xff] {
            let mut frame = [first, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            let sum = !checksum::sum(&frame);
            frame[4..6].copy_from_slice(&sum.to_be_bytes());
            let stamps = TimestampPosition { offset: 6, checksum: Some(4) };
            stamp(&mut frame, stamps, 1_700_000_000_123_456_789);
            assert_eq!(frame[6..10], 1_700_000_000_u32.to_be_bytes());
            assert_eq!(frame[10..14], 123_456_u32.to_be_bytes());
            assert_eq!(checksum::sum(&frame), u16::MAX);
        }
    }
}
