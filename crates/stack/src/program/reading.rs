//! Data that a step took, and the progress of taking it.

use alloc::vec::Vec;

/// What was taken.
#[derive(Clone, Debug, Default)]
pub(super) struct Taken {
    /// First bytes, at most [`Self::KEPT_MAX`].
    pub(super) bytes: Vec<u8>,
    /// Length in bytes, with those that are not kept.
    pub(super) length: u64,
}

impl Taken {
    /// Maximum number of bytes kept for checks.
    pub(super) const KEPT_MAX: usize = 64 << 10;

    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        let room = Self::KEPT_MAX.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Progress of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// More data is needed.
    Unfinished,
    /// The data is complete.
    Done,
    /// The data does not follow the rule.
    Wrong,
}
