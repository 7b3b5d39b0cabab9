//! Numbers that differ from flow to flow.

/// A number that differs from flow to flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// All flows of a template share this counter, modulo 2^64.
    Counter {
        /// First value.
        start: u64,
        /// Increment, at least 1.
        step: u64,
        /// Largest value; the counter restarts at `start` after it.
        max: u64,
    },
    /// Uniformly random, for each flow.
    Random {
        /// Minimum.
        min: u64,
        /// Maximum.
        max: u64,
    },
}
