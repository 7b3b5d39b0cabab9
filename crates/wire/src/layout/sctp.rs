//! SCTP, RFC 9260 section 3.

use super::field::{bytes, uint};
use super::{ChecksumCoverage, Layout, Number, Padding, Role, Space};
use crate::packet::protocol;

/// SCTP common header, RFC 9260 section 3.1, with the chunks that carry no user data.
pub static SCTP: Layout = Layout::new(
    "sctp",
    "SCTP, RFC 9260 section 3.1",
    &[
        uint("src_port", 0, 16),
        uint("dst_port", 16, 16),
        uint("verification_tag", 32, 32),
        uint("checksum", 64, 32).role(Role::Checksum(ChecksumCoverage::Crc32c)),
    ],
)
.items("chunks", &[&CHUNK])
.numbers(&[Number::new(Space::IpProtocol, protocol::SCTP as u16)]);

/// SCTP DATA chunk, RFC 9260 section 3.3.1; the data follows.
pub static DATA: Layout = Layout::new(
    "sctp_data",
    "SCTP user data, RFC 9260 section 3.3.1",
    &[
        uint("type", 0, 8),
        uint("reserved", 8, 4),
        uint("immediate", 12, 1),
        uint("unordered", 13, 1),
        uint("beginning", 14, 1).default(1),
        uint("ending", 15, 1).default(1),
        uint("length", 16, 16).role(Role::LengthToEnd { from: 0 }),
        uint("transmission_sequence_number", 32, 32),
        uint("stream_identifier", 64, 16),
        uint("stream_sequence_number", 80, 16),
        uint("payload_protocol", 96, 32),
    ],
);

static CHUNK: Layout = Layout::new(
    "chunk",
    "Any chunk, RFC 9260 section 3.2",
    &[
        uint("type", 0, 8),
        uint("flags", 8, 8),
        uint("length", 16, 16).role(Role::HeaderLength { unit: 1, subtract: 0 }),
        bytes("value", 32),
    ],
)
.align(4, Padding::UncountedZeros);
