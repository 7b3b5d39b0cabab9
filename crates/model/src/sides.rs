//! How the client's side is told from the server's: the words that plans and the engine share.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use wirestorm_wire::packet::MacAddress;
use wirestorm_wire::prefix::Prefix;

/// How sides are decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidesOptions {
    /// What makes a packet one of the primary side.
    pub rule: SideRule,
    /// The rule's packets are of the secondary side instead.
    pub reverse: bool,
    /// What is not IP, or cut before its ports, is of the primary side rather than of the
    /// secondary. [`SideRule::SourceMac`] knows a side for these packets too.
    pub non_ip_is_primary: bool,
    /// Conversations that are remembered at most.
    pub conversations_max: usize,
}

/// What makes a packet one of the primary side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SideRule {
    /// Its sender is the client of its conversation: as TCP's SYN, DNS or ICMP's echo say; else
    /// the end without a port below 1024, if the other has one; else the one that sent first.
    Auto,
    /// Its sender sent the first packet of its conversation.
    First,
    /// Its destination port, of TCP or UDP, is that of a service.
    Port(Vec<RangeInclusive<u16>>),
    /// Its source address has one of these prefixes.
    SourceAddress(Vec<Prefix>),
    /// Its source Ethernet address is one of these.
    SourceMac(Vec<MacAddress>),
}
