//! Frame counts.

/// Number of frames and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of frames.
    pub frames: u64,
    /// Their bytes on the wire, without FCS.
    pub bytes: u64,
}

impl Tally {
    pub(super) fn note(&mut self, bytes: usize) {
        self.frames += 1;
        self.bytes += bytes as u64;
    }

    /// Adds another count.
    pub fn merge(&mut self, other: Self) {
        self.frames += other.frames;
        self.bytes += other.bytes;
    }
}
