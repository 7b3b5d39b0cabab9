//! Counts of frames.

/// Frames that are counted, and no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of datagrams.
    pub frames: u64,
    /// Their bytes, as long as they were on the wire, without FCS.
    pub bytes: u64,
}

impl Tally {
    pub(super) fn note(&mut self, bytes: usize) {
        self.frames += 1;
        self.bytes += bytes as u64;
    }

    /// Adds others.
    pub fn merge(&mut self, other: Self) {
        self.frames += other.frames;
        self.bytes += other.bytes;
    }
}
