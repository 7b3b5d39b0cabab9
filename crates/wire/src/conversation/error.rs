//! Errors of the conversation import.

/// Error of one flow of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConversationError {
    /// Bytes of a stream are missing.
    #[error(
        "packet {packet} starts at byte {found} of {from}'s data, but the capture has only its \
         first {captured} bytes: the bytes between are missing"
    )]
    MissingData {
        /// First packet behind the gap.
        packet: u64,
        /// Sender of the stream: `the client` or `the server`.
        from: &'static str,
        /// Offset of that packet's bytes in the stream, from 0.
        found: u64,
        /// Bytes of the stream without a gap.
        captured: u64,
    },
    /// Acknowledged bytes are in no packet.
    #[error(
        "packet {packet} acknowledges {found} bytes of {from}'s data, but the capture has {has}"
    )]
    UncapturedData {
        /// Packet with the acknowledgement.
        packet: u64,
        /// Sender of the stream: `the client` or `the server`.
        from: &'static str,
        /// Acknowledged bytes.
        found: u64,
        /// Bytes in the capture.
        has: u64,
    },
    /// A packet was truncated by the snap length.
    #[error("packet {packet} was captured with {found} of its {expected} bytes: capture all")]
    Truncated {
        /// Packet number.
        packet: u64,
        /// Captured bytes of the IP packet.
        found: usize,
        /// Length of the IP packet.
        expected: usize,
    },
    /// Fragments of an IP packet are missing.
    #[error(
        "packet {packet} is a fragment of an IP packet whose other fragments are missing or \
         contradict it: capture where packets are not fragmented"
    )]
    Fragment {
        /// First fragment to arrive.
        packet: u64,
    },
    /// A transport header is too short or contradicts itself.
    #[error("packet {packet} has a bad header: {reason}")]
    BadHeader {
        /// Packet number.
        packet: u64,
        /// Problem of the header.
        reason: crate::packet::PacketError,
    },
}

/// A capture exceeds a limit of the importer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// Too many flows.
    #[error("packet {packet} starts a new flow beyond the limit of {limit} flows")]
    Flows {
        /// First packet of the first flow beyond the limit.
        packet: u64,
        /// Limit.
        limit: usize,
    },
    /// Too many bytes.
    #[error("packet {packet} exceeds the limit of {most} bytes of data")]
    Bytes {
        /// Packet with the first byte beyond the limit.
        packet: u64,
        /// Limit.
        most: usize,
    },
    /// Too many out-of-order segments.
    #[error("packet {packet}: more than {most} segments of its flow wait for an earlier one")]
    Segments {
        /// Packet with the first segment beyond the limit.
        packet: u64,
        /// Limit.
        most: usize,
    },
}
