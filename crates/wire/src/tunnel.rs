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
