//! Which frames of a stream a worker sends.

/// Which frames of a stream a worker sends: those whose number, divided by `workers`, leaves
/// `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// This worker, from 0.
    pub index: u64,
    /// All workers that share the stream; at least 1.
    pub workers: u64,
}

impl Share {
    /// The only worker.
    pub const ALL: Self = Self { index: 0, workers: 1 };
}
