//! PPP over Ethernet, RFC 2516 section 4, and PPP, RFC 1661 section 2.

use super::field::{bytes, uint};
use super::{Field, Layout, Number, Role, Space};
use crate::packet::ethertype;

/// PPPoE session header, RFC 2516 section 4; PPP follows.
pub static PPPOE: Layout = Layout::new(
    "pppoe",
    "PPPoE session, RFC 2516 section 4",
    &[VERSION, TYPE, uint("code", 8, 8), uint("session_id", 16, 16), LENGTH],
)
.numbers(&[Number::new(Space::EtherType, ethertype::PPPOE_SESSION)]);

/// PPPoE discovery packet, RFC 2516 section 5: PADI by default.
pub static PPPOE_DISCOVERY: Layout = Layout::new(
    "pppoe_discovery",
    "PPPoE discovery, RFC 2516 section 5",
    &[VERSION, TYPE, uint("code", 8, 8).default(9), uint("session_id", 16, 16), LENGTH],
)
.items("tags", &[&TAG])
.numbers(&[Number::new(Space::EtherType, ethertype::PPPOE_DISCOVERY)]);

/// PPP protocol field, RFC 1661 section 2. Address and control (RFC 1662 section 3.1) precede it if
/// one of them is given.
pub static PPP: Layout = Layout::new(
    "ppp",
    "PPP, RFC 1661 section 2",
    &[
        uint("address", 0, 8).default(0xff).if_set(FRAMED),
        uint("control", 8, 8).default(3).if_set(FRAMED),
        uint("protocol_type", 16, 16).default(0x21).role(Role::NextProtocol(Space::PppProtocol)),
    ],
)
.numbers(&[
    // RFC 2637 section 4.1: PPP in enhanced GRE (PPTP).
    Number::new(Space::EtherType, 0x880b),
]);

/// PPPoE tag, RFC 2516 appendix A.
static TAG: Layout = Layout::new(
    "tag",
    "PPPoE tag, RFC 2516 appendix A",
    &[
        // Service-Name.
        uint("type", 0, 16).default(0x0101),
        uint("length", 16, 16).role(Role::HeaderLength { unit: 1, subtract: 4 }),
        bytes("value", 32),
    ],
);

const FRAMED: &[&str] = &["address", "control"];
const VERSION: Field = uint("version", 0, 4).default(1);
const TYPE: Field = uint("type", 4, 4).default(1);
const LENGTH: Field = uint("length", 32, 16).role(Role::LengthToEnd { from: 6 });
