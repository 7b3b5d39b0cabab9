//! The words for tunnels of clients, shared by plans and by what puts frames into them.

use core::net::IpAddr;
use core::num::NonZeroU16;

/// Tunnels of GTP-U of clients with consecutive addresses, one for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientTunnels {
    /// The first client.
    pub first: IpAddr,
    /// The last one, of the same family and not before the first.
    pub last: IpAddr,
    /// The tunnel endpoint identifier of the first client's.
    pub teid: u32,
    /// By how much that of each next client is greater, modulo 2^32.
    pub teid_step: u32,
    /// The tunnel's end at the clients.
    pub from: IpAddr,
    /// The other end, of the same family.
    pub to: IpAddr,
    /// The port of UDP that packets come from; `None`: the one that the packet within comes from.
    pub source_port: Option<NonZeroU16>,
}

impl ClientTunnels {
    /// The identifier of the last client, which is none where it is more than 2^32 - 1.
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
