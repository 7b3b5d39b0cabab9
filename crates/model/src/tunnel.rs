//! Client tunnels. Plans and the encapsulation in the engine share these types.

use core::net::IpAddr;
use core::num::NonZeroU16;

/// GTP-U tunnels of clients with consecutive addresses, one tunnel per client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientTunnels {
    /// First client address.
    pub first: IpAddr,
    /// Last client address, of the same family and not before the first.
    pub last: IpAddr,
    /// Tunnel endpoint identifier of the first client.
    pub teid: u32,
    /// Increment of the identifier from client to client, modulo 2^32.
    pub teid_step: u32,
    /// Tunnel endpoint on the client side.
    pub from: IpAddr,
    /// Remote tunnel endpoint, of the same family as `from`.
    pub to: IpAddr,
    /// Outer UDP source port; `None`: the source port of the inner packet.
    pub source_port: Option<NonZeroU16>,
}

impl ClientTunnels {
    /// Returns the identifier of the last client without wrapping. It is invalid above 2^32 - 1.
    pub fn teid_last(&self) -> u128 {
        let more = match (self.first, self.last) {
            (IpAddr::V4(first), IpAddr::V4(last)) => {
                u128::from(last.to_bits().saturating_sub(first.to_bits()))
            }
            (IpAddr::V6(first), IpAddr::V6(last)) => last.to_bits().saturating_sub(first.to_bits()),
            _ => 0,
        };
        more.saturating_mul(self.teid_step.into()).saturating_add(self.teid.into())
    }
}
