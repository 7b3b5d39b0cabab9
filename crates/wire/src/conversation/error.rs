//! Why frames are no conversation.

/// What is wrong with one flow of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConversationError {
    /// Bytes of a stream are in no packet.
    #[error(
        "packet {packet} goes on at byte {found} of what {from} says, and the capture has its \
         first {has} bytes: what is between them is missing"
    )]
    Hole {
        /// The first packet behind the hole.
        packet: u64,
        /// Who says it.
        from: &'static str,
        /// Where that packet's bytes begin, from 0.
        found: u64,
        /// How many there are without a gap.
        has: u64,
    },
    /// Bytes were acknowledged that are in no packet.
    #[error(
        "packet {packet} acknowledges {found} bytes of what {from} says, and the capture has {has}"
    )]
    Unseen {
        /// The packet with the acknowledgement.
        packet: u64,
        /// Who says it.
        from: &'static str,
        /// How many are acknowledged.
        found: u64,
        /// How many there are.
        has: u64,
    },
    /// A packet was not captured as a whole.
    #[error("packet {packet} was captured with {found} of its {expected} bytes: capture all")]
    Cut {
        /// Which.
        packet: u64,
        /// Bytes that are there of the IP packet.
        found: usize,
        /// Bytes that it had.
        expected: usize,
    },
    /// Not all parts of an IP packet are there.
    #[error(
        "packet {packet} is a fragment, and the others of the same IP packet are not all in the \
         capture, or contradict it: capture where packets are whole"
    )]
    Fragment {
        /// The part of it that came first.
        packet: u64,
    },
    /// A transport header that is too short, or contradicts itself.
    #[error("packet {packet} has a bad header: {reason}")]
    BadHeader {
        /// Which.
        packet: u64,
        /// What is wrong with it.
        reason: crate::packet::PacketError,
    },
}

/// There is more in a capture than may be kept of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BoundError {
    /// Too many flows.
    #[error(
        "packet {packet} is of a new flow, and there are {most} already, the most that is kept"
    )]
    Flows {
        /// The packet of the first flow beyond.
        packet: u64,
        /// The bound.
        most: usize,
    },
    /// Too many bytes.
    #[error("packet {packet} has data beyond the {most} bytes that are kept of a capture")]
    Bytes {
        /// The packet with the first byte beyond.
        packet: u64,
        /// The bound.
        most: usize,
    },
    /// Too many segments that wait for what comes before them.
    #[error(
        "packet {packet}: {most} segments of its flow wait for one before them, the most that may"
    )]
    Segments {
        /// The packet with the first segment beyond.
        packet: u64,
        /// The bound.
        most: usize,
    },
}
