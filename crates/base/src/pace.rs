//! Send rate of a capture or a stream.

use crate::rate::{Decimal, Layer, Rate};
use crate::time::Duration;

/// How to compute due times from records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// No due times: as fast as the port accepts frames.
    TopSpeed,
    /// The timestamps of the capture, `multiplier` times as fast, with gaps limited to `gap_max`.
    Capture {
        /// Speed-up as a decimal fraction greater than zero; 1 is the speed of the capture.
        multiplier: Decimal,
        /// Longest gap, applied after the multiplier.
        gap_max: Duration,
    },
    /// A packet rate. `group` records are due at the same time.
    Packets {
        /// Records a second.
        rate: Rate,
        /// Records that are due at the same time; 1 or more.
        group: u32,
    },
    /// A bit rate.
    Bits {
        /// Bits a second.
        rate: Rate,
        /// Bytes of a frame that count.
        layer: Layer,
    },
}
