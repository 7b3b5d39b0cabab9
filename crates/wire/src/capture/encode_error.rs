//! Why a record cannot be written.

use super::RECORD_LENGTH_MAX;

/// Why a record cannot be written to a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// pcap counts seconds in 32 bits.
    #[error(
        "{seconds} s since the epoch; pcap can tell at most {} s, write pcapng instead",
        u32::MAX
    )]
    TimestampTooLate {
        /// Seconds since the Unix epoch.
        seconds: u64,
    },
    /// More bytes than any reader takes.
    #[error("a record of {length} bytes; expected at most {RECORD_LENGTH_MAX}")]
    RecordTooLong {
        /// Bytes to be written.
        length: usize,
    },
    /// A packet cannot have been shorter on the wire than in the capture.
    #[error("{captured} bytes of a packet of {original}; expected at most as many")]
    CapturedExceedsOriginal {
        /// Bytes to be written.
        captured: usize,
        /// Bytes it had on the wire.
        original: u32,
    },
    /// A pcapng option counts its bytes in 16 bits.
    #[error("an interface name of {length} bytes; expected at most {}", u16::MAX)]
    NameTooLong {
        /// Bytes of the name.
        length: usize,
    },
}
