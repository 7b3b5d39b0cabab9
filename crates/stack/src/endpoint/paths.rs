//! How long packets may be on the way to whom.

use alloc::collections::BTreeMap;
use core::net::IpAddr;

use wirestorm_wire::flow::FlowKey;

use crate::icmp_error::segment_size;
use crate::tcp::connection::Connection;
use wirestorm_model::tcp::Settings;

/// The most peers of which it is remembered: connections to others find it out again.
const PATHS_MAX: usize = 4_096;

/// The longest packets that routers said to let through, by peer. Nothing is forgotten: RFC 1191
/// section 6.3 would try longer ones after ten minutes, in which a test is over.
#[derive(Clone, Debug, Default)]
pub(super) struct Paths(BTreeMap<IpAddr, u16>);

impl Paths {
    /// The longest packet for a peer, in bytes with its IP header; `None` where none was too long.
    #[inline]
    pub(super) fn mtu(&self, peer: IpAddr) -> Option<u16> {
        if self.0.is_empty() { None } else { self.0.get(&peer).copied() }
    }

    /// Makes the segments of a new connection as short as its path has been found to be.
    #[inline]
    pub(super) fn limit(&self, key: &FlowKey, connection: &mut Connection, settings: &Settings) {
        if let Some(mtu) = self.mtu(key.source()) {
            connection.limit_segments(segment_size(key, mtu), settings);
        }
    }

    pub(super) fn note(&mut self, peer: IpAddr, mtu: u16) {
        if self.0.len() < PATHS_MAX || self.0.contains_key(&peer) {
            self.0.entry(peer).and_modify(|known| *known = mtu.min(*known)).or_insert(mtu);
        }
    }
}
