//! Share of a stream's frames that a worker sends.

/// Share of a stream's frames that a worker sends: frames with number modulo `workers` equal to
/// `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Index of this worker, from 0.
    pub index: u64,
    /// Number of workers that share the stream, at least 1.
    pub workers: u64,
}

impl Share {
    /// Share of a single worker.
    pub const ALL: Self = Self { index: 0, workers: 1 };

    /// Returns the number of a stream in this worker's signatures, if the port's streams are
    /// numbered from `first` on.
    ///
    /// Each worker signs its frames of a shared stream as a separate stream with its own sequence,
    /// because the order of frames of different workers is undefined.
    pub const fn number(self, first: u32, stream: u32) -> u32 {
        first + stream * self.workers as u32 + self.index as u32
    }
}
