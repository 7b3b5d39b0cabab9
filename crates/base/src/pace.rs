//! How fast a capture or a stream is to be sent.

use crate::rate::{Decimal, Layer, Rate};
use crate::time::Duration;

/// How due times follow from records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// No due times: as fast as the port takes them.
    TopSpeed,
    /// As in the capture, `multiplier` times as fast, no gap longer than `gap_max`.
    Capture {
        /// Speed-up as a decimal fraction greater than zero; 1 is the capture's own pace.
        multiplier: Decimal,
        /// A longer gap is cut to this, after the multiplier.
        gap_max: Duration,
    },
    /// `group` records at once, so many records a second on average.
    Packets {
        /// Records a second.
        rate: Rate,
        /// Records that are due at the same time; 1 or more.
        group: u32,
    },
    /// So many bits a second, counted as `layer` says.
    Bits {
        /// Bits a second.
        rate: Rate,
        /// Which bytes of a frame count.
        layer: Layer,
    },
}
