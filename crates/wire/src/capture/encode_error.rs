//! Errors of the capture writers.

use super::RECORD_LENGTH_MAX;

/// Error if a record cannot be written to a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// pcap counts seconds in 32 bits.
    #[error(
        "{seconds} s since the epoch; pcap has room for at most {} s, write pcapng instead",
        u32::MAX
    )]
    TimestampTooLate {
        /// Seconds since the Unix epoch.
        seconds: u64,
    },
    /// The record has more bytes than readers accept.
    #[error("a record of {length} bytes; expected at most {RECORD_LENGTH_MAX}")]
    RecordTooLong {
        /// Bytes of the record.
        length: usize,
    },
    /// The captured length exceeds the original length.
    #[error("{captured} captured bytes of a packet of {original}; expected at most {original}")]
    CapturedExceedsOriginal {
        /// Captured bytes.
        captured: usize,
        /// Bytes on the wire.
        original: u32,
    },
    /// A pcapng option counts its bytes in 16 bits.
    #[error("an interface name of {length} bytes; expected at most {}", u16::MAX)]
    NameTooLong {
        /// Bytes of the name.
        length: usize,
    },
}
