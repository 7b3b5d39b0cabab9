//! Destinations of the clients' frames.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use wirestorm_model::address_range::AddressRange;
use wirestorm_plan::emulation::{Devices, Vlans};
use wirestorm_stack::endpoint::{LinkHeader, ServerLink};
use wirestorm_wire::packet::MacAddress;

use crate::responder::{NeighbourChanges, PacketSocketHost};

/// Clients of a template, and destinations of their frames.
pub(in crate::emulation) struct ClientDestinations {
    pub(in crate::emulation) addresses: AddressRange,
    pub(in crate::emulation) destination: MacAddress,
    /// Number of the next hop at `destination`; [`LinkHeader::FIXED`] if its address is fixed.
    pub(in crate::emulation) next_hop: u16,
    /// Resolved devices of the clients, each with the number of its next hop.
    pub(in crate::emulation) devices: Vec<(Devices, u16)>,
    /// Servers with a different destination, sorted by address.
    pub(in crate::emulation) servers: Vec<ServerLink>,
}

/// Next hops of a port.
#[derive(Default)]
pub(in crate::emulation) struct NextHopTable {
    /// Number of each next hop and source address of its requests, by VLAN tags and address.
    pub(in crate::emulation) next_hops: BTreeMap<(Vec<u8>, IpAddr), (u16, IpAddr)>,
    /// Changes of neighbours' Ethernet addresses.
    pub(in crate::emulation) moves: Arc<NeighbourChanges>,
}

impl NextHopTable {
    /// Returns the number of a next hop, and assigns one if it is new. Returns
    /// [`LinkHeader::FIXED`] if there are more next hops than numbers.
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

    /// Makes an ARP responder probe the next hops in its VLANs, and report changes to `moves`.
    pub(in crate::emulation) fn watch(&self, host: &mut PacketSocketHost) {
        host.report_changes_to(&self.moves);
        for ((tags, next_hop), (_, source)) in &self.next_hops {
            if let Some(place) = host.place_behind(tags) {
                host.watch(place, *source, *next_hop);
            }
        }
    }
}
