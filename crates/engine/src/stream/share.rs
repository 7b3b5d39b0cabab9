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

    /// The number of a stream in this worker's signatures, where those of all streams of a port
    /// are numbered from `first` on.
    ///
    /// Workers that share a stream sign their frames as streams of their own, each with a
    /// sequence of its own: nothing orders the frames of one worker among those of another.
    pub const fn number(self, first: u32, stream: u32) -> u32 {
        first + stream * self.workers as u32 + self.index as u32
    }
}
