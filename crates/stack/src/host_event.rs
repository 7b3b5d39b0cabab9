//! Result of a host's inspection of a received frame.

use alloc::vec::Vec;
use core::net::IpAddr;

use wirestorm_wire::packet::MacAddress;

/// What a received frame means to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// The frame needs no action from the host.
    Ignored,
    /// A request; the value is the frame that answers it.
    Reply(Vec<u8>),
    /// The Ethernet address of a neighbour, from an ARP or neighbour discovery message.
    Neighbour {
        /// IP address of the neighbour.
        address: IpAddr,
        /// Ethernet address of the neighbour.
        mac: MacAddress,
    },
    /// A reply to an echo request.
    EchoReply(EchoReply),
}

/// Reply to an echo request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EchoReply {
    /// IP address of the replying host.
    pub source: IpAddr,
    /// Identifier, as in the request.
    pub identifier: u16,
    /// Sequence number, as in the request.
    pub sequence: u16,
    /// Time to live or hop limit of the received packet.
    pub hop_limit: u8,
    /// Data that the reply carries.
    pub payload: Vec<u8>,
}
