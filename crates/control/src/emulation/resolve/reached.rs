//! Where the frames of clients go.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use wirestorm_model::address_range::AddressRange;
use wirestorm_plan::emulation::{Devices, Vlans};
use wirestorm_stack::endpoint::{LinkHeader, ServerLink};
use wirestorm_wire::packet::MacAddress;

use crate::responder::{Moves, Station};

/// The clients of a template, and where their frames go.
pub(in crate::emulation) struct Reached {
    pub(in crate::emulation) addresses: AddressRange,
    pub(in crate::emulation) destination: MacAddress,
    /// The number of the next hop that this is; [`LinkHeader::FIXED`]: none that may move.
    pub(in crate::emulation) next_hop: u16,
    /// Those of some clients, of which all Ethernet addresses are known.
    pub(in crate::emulation) devices: Vec<(Devices, u16)>,
    /// Servers that frames go elsewhere to, by their addresses in order.
    pub(in crate::emulation) servers: Vec<ServerLink>,
}

/// The next hops of a port.
#[derive(Default)]
pub(in crate::emulation) struct ReachedBy {
    /// Each one's number, by VLAN tags and address, and who asks for it.
    pub(in crate::emulation) next_hops: BTreeMap<(Vec<u8>, IpAddr), (u16, IpAddr)>,
    /// Neighbours that have moved.
    pub(in crate::emulation) moves: Arc<Moves>,
}

impl ReachedBy {
    /// The number of a next hop, which may be known already; where there are too many, none that moves.
    pub(in crate::emulation) fn number(
        &mut self,
        vlan: Option<Vlans>,
        next_hop: IpAddr,
        source: IpAddr,
    ) -> u16 {
        let tags = vlan.map_or_else(Vec::new, |vlan| vlan.tags());
        let next = u16::try_from(self.next_hops.len() + 1).unwrap_or(LinkHeader::FIXED);
        self.next_hops.entry((tags, next_hop)).or_insert((next, source)).0
    }

    /// Watches those of a station's VLANs, where another one does not do so already.
    pub(in crate::emulation) fn watch(&self, station: &mut Station) {
        station.tell(&self.moves);
        for ((tags, next_hop), (_, source)) in &self.next_hops {
            if let Some(place) = station.place_behind(tags) {
                station.watch(place, *source, *next_hop);
            }
        }
    }
}
