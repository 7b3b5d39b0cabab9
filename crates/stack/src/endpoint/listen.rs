//! Listeners: what selects the server of a flow.

use alloc::vec::Vec;

use wirestorm_model::address_range::AddressRange;

/// Addresses, port and first bytes of a server. Of several matching servers, a flow goes to the one
/// with the fewest addresses. Then the most bits in the first bytes decide, then the order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listen {
    /// Port.
    pub port: u16,
    /// Addresses; `None`: all.
    pub addresses: Option<AddressRange>,
    /// Required bytes of the first data of a flow; empty: any data. Over UDP, the first data is the
    /// first datagram.
    ///
    /// A TCP connection has no template until enough bytes have arrived. Until then it has the TCP
    /// settings of the first candidate. If the peer closes before, missing bytes do not match.
    pub first_bytes: Vec<MatchByte>,
}

impl Listen {
    /// Creates a listener for all flows to a port.
    pub fn at(port: u16) -> Self {
        Self { port, ..Self::default() }
    }
}

/// Required byte of the first data of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchByte {
    /// Offset, from 0.
    pub offset: u16,
    /// Mask of the bits to compare.
    pub mask: u8,
    /// Expected value of these bits.
    pub value: u8,
}
