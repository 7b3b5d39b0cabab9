//! Counters of the reader thread.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use wirestorm_wire::capture::CaptureError;

use super::input::Input;

/// Counters of the reader.
#[derive(Debug, Default)]
pub struct ReaderCounters {
    /// Bytes read, after decompression, over all passes.
    pub bytes: AtomicU64,
    /// Records indexed, over all passes.
    pub records: AtomicU64,
    /// Packets without a known flow because the flow table was full.
    pub flows_overflowed: AtomicU64,
    /// Packets whose side was guessed because the conversation table was full.
    pub sides_overflowed: AtomicU64,
    /// Files truncated within a record or a block. Earlier records are replayed.
    pub truncated_files: Mutex<Vec<TruncatedFile>>,
}

/// A file truncated within a record or a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TruncatedFile {
    /// File.
    pub input: String,
    /// Position and missing part.
    pub reason: CaptureError,
}

impl TruncatedFile {
    /// Returns whether a packet is missing.
    pub fn loses_packet(&self) -> bool {
        matches!(self.reason, CaptureError::TruncatedRecord { .. })
    }
}

impl ReaderCounters {
    /// Records a truncated file, once for all passes. Returns whether `error` reports a truncation.
    pub(super) fn record_truncation(&self, input: &Input, error: &CaptureError) -> bool {
        use CaptureError::{TruncatedBlock, TruncatedRecord};
        if !matches!(error, TruncatedRecord { .. } | TruncatedBlock { .. }) {
            return false;
        }
        let cut = TruncatedFile { input: input.to_string(), reason: *error };
        let mut known = self.truncated_files.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.contains(&cut) {
            known.push(cut);
        }
        true
    }
}
