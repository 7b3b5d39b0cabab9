//! What a frame was to a host.

use alloc::vec::Vec;
use core::net::IpAddr;

use wirestorm_wire::packet::MacAddress;

/// What a frame was to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Nothing that concerns it.
    Nothing,
    /// A question, and the frame that answers it.
    Question(Vec<u8>),
    /// Where a neighbour is.
    Neighbour {
        /// Its address.
        address: IpAddr,
        /// Its Ethernet address.
        mac: MacAddress,
    },
    /// The answer to an echo request.
    Echo(EchoReply),
}

/// An answer to an echo request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EchoReply {
    /// Who answered.
    pub source: IpAddr,
    /// As in the request.
    pub identifier: u16,
    /// As in the request.
    pub sequence: u16,
    /// Time to live or hop limit with which it arrived.
    pub hop_limit: u8,
    /// What was sent back.
    pub payload: Vec<u8>,
}
