//! Where servers wait.

use alloc::vec::Vec;

use wirestorm_model::address_range::AddressRange;

/// What a server waits for. Of several at one port a flow is for the one with the fewest
/// addresses; among those, of which its bytes are there, for the one that looks at the most bits of
/// them; then for the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listen {
    /// The port.
    pub port: u16,
    /// At which addresses; `None`: at all.
    pub addresses: Option<AddressRange>,
    /// What is to be in the first data of a flow; empty: whatever is. Over UDP that is the first
    /// datagram, over TCP as many bytes as the longest takes that may be it: until then the connection is one of no
    /// template, whose TCP is that of the first one it may be for. Where the peer closes before,
    /// bytes that are missing are others.
    pub first_bytes: Vec<MatchByte>,
}

impl Listen {
    /// All flows to a port.
    pub fn at(port: u16) -> Self {
        Self { port, ..Self::default() }
    }
}

/// A byte that is to be in the first data of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchByte {
    /// Its place, from 0.
    pub offset: u16,
    /// Which of its bits count.
    pub mask: u8,
    /// What these are.
    pub value: u8,
}
