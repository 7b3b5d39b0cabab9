//! Rules that assign packets to the client or the server side. Plans and the engine share these
//! types.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use wirestorm_wire::packet::MacAddress;
use wirestorm_wire::prefix::Prefix;

/// How to assign packets to a side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidesOptions {
    /// Rule that assigns a packet to the primary side.
    pub rule: SideRule,
    /// Whether to assign the rule's packets to the secondary side instead.
    pub reverse: bool,
    /// Whether packets without IP, or truncated before the ports, belong to the primary side.
    /// [`SideRule::SourceMac`] assigns a side to these packets too.
    pub non_ip_is_primary: bool,
    /// Largest number of conversations to remember.
    pub conversations_max: usize,
}

/// Rule that assigns a packet to the primary side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SideRule {
    /// The sender is the client of its conversation. TCP's SYN, DNS and ICMP echo identify the
    /// client. Otherwise it is the end without a port below 1024 if the other end has one, else the
    /// first sender.
    Auto,
    /// The sender sent the first packet of its conversation.
    First,
    /// The TCP or UDP destination port is in one of these ranges.
    Port(Vec<RangeInclusive<u16>>),
    /// The source IP address has one of these prefixes.
    SourceAddress(Vec<Prefix>),
    /// The source Ethernet address is one of these.
    SourceMac(Vec<MacAddress>),
}
