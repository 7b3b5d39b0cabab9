//! Reasons why a datagram is malformed.

/// Why a collector stopped decoding a datagram. Records before the fault are delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Malformed {
    /// The datagram ends within the message header.
    #[error("the datagram ends within the message header")]
    TruncatedHeader,
    /// The version is not that of NetFlow v5, NetFlow v9, IPFIX or sFlow v5.
    #[error("unknown version, expected NetFlow 5 or 9, IPFIX (10) or sFlow 5")]
    UnknownVersion,
    /// The length of an IPFIX message is less than its header or more than the datagram.
    #[error("the message length is less than the header or more than the datagram")]
    MessageLength,
    /// The count of a NetFlow v5 header does not fit the datagram, or is not 1 to 30.
    #[error("the record count of NetFlow v5 does not fit the datagram")]
    RecordCount,
    /// The length of a set is less than its header or more than the message.
    #[error("the set length is less than the set header or more than the message")]
    SetLength,
    /// A template record ends beyond its set.
    #[error("a template ends beyond its set")]
    TruncatedTemplate,
    /// The identifier of a template is less than 256.
    #[error("a template identifier is less than 256")]
    TemplateId,
    /// A template has more fields than the collector's limit.
    #[error("a template has more fields than the limit")]
    TemplateFields,
    /// Records of a template would be empty, or longer than a message.
    #[error("records of a template would be empty or longer than a message")]
    RecordLength,
    /// The number of scope fields is zero or more than the number of fields.
    #[error("an options template has no scope, or more scope fields than fields")]
    Scope,
    /// A field of variable length ends beyond its set.
    #[error("a field of variable length ends beyond its set")]
    TruncatedField,
    /// A sample or its content ends beyond the datagram.
    #[error("a sample ends beyond the datagram")]
    TruncatedSample,
    /// The agent address of sFlow is neither IPv4 nor IPv6.
    #[error("the agent address of sFlow is neither IPv4 nor IPv6")]
    AgentAddress,
}

impl Malformed {
    /// All reasons, in the order of their counters.
    pub const ALL: [Self; 13] = [
        Self::TruncatedHeader,
        Self::UnknownVersion,
        Self::MessageLength,
        Self::RecordCount,
        Self::SetLength,
        Self::TruncatedTemplate,
        Self::TemplateId,
        Self::TemplateFields,
        Self::RecordLength,
        Self::Scope,
        Self::TruncatedField,
        Self::TruncatedSample,
        Self::AgentAddress,
    ];
}
