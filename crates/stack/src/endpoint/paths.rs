//! Path MTU of each peer.

use alloc::collections::BTreeMap;
use core::net::IpAddr;

use wirestorm_wire::flow::FlowKey;

use crate::icmp_error::segment_size;
use crate::tcp::connection::Connection;
use wirestorm_model::tcp::Settings;

/// Maximum number of remembered peers. Connections to others discover the path MTU again.
const PATHS_MAX: usize = 4_096;

/// Path MTU by peer, from ICMP packet too big. Entries do not expire: RFC 1191 section 6.3 retries
/// longer packets after ten minutes, when a test is over.
#[derive(Clone, Debug, Default)]
pub(super) struct PathMtus(BTreeMap<IpAddr, u16>);

impl PathMtus {
    /// Returns the path MTU to a peer in bytes with the IP header; `None` if unknown.
    #[inline]
    pub(super) fn mtu(&self, peer: IpAddr) -> Option<u16> {
        if self.0.is_empty() { None } else { self.0.get(&peer).copied() }
    }

    /// Limits the segments of a new connection to the known path MTU.
    #[inline]
    pub(super) fn limit(&self, key: &FlowKey, connection: &mut Connection, settings: &Settings) {
        if let Some(mtu) = self.mtu(key.source()) {
            connection.limit_segment_size(segment_size(key, mtu), settings);
        }
    }

    pub(super) fn note(&mut self, peer: IpAddr, mtu: u16) {
        if self.0.len() < PATHS_MAX || self.0.contains_key(&peer) {
            self.0.entry(peer).and_modify(|known| *known = mtu.min(*known)).or_insert(mtu);
        }
    }
}
