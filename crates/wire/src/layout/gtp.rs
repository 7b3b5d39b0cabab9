//! GTP-U, 3GPP TS 29.281 section 5.1.

use super::field::{bytes, uint};
use super::{Layout, Number, Padding, Role, Space};

const FLAGS: &[&str] = &["e_flag", "s_flag", "pn_flag"];

/// GTP-U header. Its sequence number, N-PDU number and next extension header type are all present
/// if one of them is given or one flag is set.
pub static GTPV1: Layout = Layout::new(
    "gtpv1",
    "GTP-U, 3GPP TS 29.281 section 5.1",
    &[
        uint("version", 0, 3).default(1),
        uint("protocol_type", 3, 1).default(1),
        uint("reserved", 4, 1),
        uint("e_flag", 5, 1).role(Role::Flag(&["next_extension_header_type", "extension_headers"])),
        uint("s_flag", 6, 1).role(Role::Flag(&["sequence_number"])),
        uint("pn_flag", 7, 1).role(Role::Flag(&["n_pdu_number"])),
        // 255: G-PDU, a user packet.
        uint("message_type", 8, 8).default(255),
        uint("message_length", 16, 16).role(Role::LengthToEnd { from: 8 }),
        uint("teid", 32, 32),
        uint("sequence_number", 64, 16).if_flag_set(FLAGS),
        uint("n_pdu_number", 80, 8).if_flag_set(FLAGS),
        uint("next_extension_header_type", 88, 8).if_flag_set(FLAGS),
    ],
)
.items("extension_headers", &[&EXTENSION])
.numbers(&[Number::new(Space::UdpPort, 2152)]);

/// GTP-U extension header, 3GPP TS 29.281 section 5.2.1. The last byte of `contents` is the type of
/// the next extension header.
static EXTENSION: Layout = Layout::new(
    "extension_header",
    "Extension header, 3GPP TS 29.281 section 5.2.1",
    &[
        uint("extension_length", 0, 8).role(Role::HeaderLength { unit: 4, subtract: 0 }),
        bytes("contents", 8),
    ],
)
.align(4, Padding::Zeros);
