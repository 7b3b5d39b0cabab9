//! Time of a connection, in the units of its timers.

use wirestorm_base::time::Instant;

/// Current time in the units of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Microseconds of a monotonic clock.
    pub micros: u64,
    /// The same time in milliseconds, modulo 2^32, for timers and timestamps.
    pub millis: u32,
}

impl Now {
    /// Converts a time in microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self { micros, millis: (micros / 1_000) as u32 }
    }

    /// Returns the time `micros` microseconds after `since`, in ms: rounded up, and the current
    /// time if it has passed.
    pub(crate) const fn millis_after(self, since: u64, micros: u32) -> u32 {
        let end = since + micros as u64;
        if end <= self.micros { self.millis } else { end.div_ceil(1_000) as u32 }
    }

    /// Returns the same time as an [`Instant`].
    pub(crate) const fn instant(self) -> Instant {
        Instant::from_nanos(self.micros * 1_000)
    }
}
