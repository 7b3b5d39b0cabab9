//! Next hops of clients without a device: their servers, or routers.

use std::net::IpAddr;

use wirestorm_model::address_range::AddressRange;
use wirestorm_stack::endpoint::{LinkHeader, ServerLink};
use wirestorm_stack::{Host, Route};
use wirestorm_wire::packet::MacAddress;

use super::destinations::NextHopTable;
use crate::responder::{HostError, PacketSocketHost, UnansweredRequest};

/// Maximum number of resolved servers of one template, without the default destination.
const SERVERS_MAX: usize = 1_024;

/// Destinations of the frames of one template.
pub(in crate::emulation) struct Destinations {
    /// Default destination Ethernet address.
    pub(in crate::emulation) destination: MacAddress,
    /// Number of the default next hop.
    pub(in crate::emulation) next_hop: u16,
    /// Servers with a different destination, sorted by address.
    pub(in crate::emulation) servers: Vec<ServerLink>,
    /// Note for the result.
    pub(in crate::emulation) note: Option<String>,
}

impl Destinations {
    /// Sends all frames to the next hop of `target`.
    pub(in crate::emulation) fn through_one(
        station: &mut PacketSocketHost,
        target: IpAddr,
        by: &mut NextHopTable,
        goes_on: &mut impl FnMut(&UnansweredRequest<'_>) -> bool,
    ) -> Result<Self, HostError> {
        let destination = station.resolve_while(target, goes_on)?.1;
        let route = station.host().route(target);
        // The route exists, because `resolve_while` used it.
        let number = |route: Route| by.number(None, route.next_hop, route.source);
        let next_hop = route.map_or(LinkHeader::FIXED, number);
        Ok(Self { destination, next_hop, servers: Vec::new(), note: None })
    }

    /// Sends the frames for each server to its next hop: its gateway, or the server itself if it is
    /// on the link. Resolves at most [`SERVERS_MAX`] servers besides the default one.
    pub(in crate::emulation) fn per_server(
        station: &mut PacketSocketHost,
        servers: AddressRange,
        by: &mut NextHopTable,
        goes_on: &mut impl FnMut(&UnansweredRequest<'_>) -> bool,
    ) -> Result<Self, HostError> {
        let usual = default_server(station.host(), servers);
        let mut destinations = Self::through_one(station, usual, by, goes_on)?;
        let (others, are_more) = others(station.host(), servers, usual);
        for (server, route) in others {
            let destination = station.resolve_while(server, &mut *goes_on)?.1;
            let next_hop = by.number(None, route.next_hop, route.source);
            destinations.servers.push(ServerLink { server, destination, next_hop });
        }
        destinations.note = are_more.then(|| {
            format!(
                "{SERVERS_MAX} servers in the port's network were resolved, which is the limit; \
                 frames to the other servers went to the next hop of {usual}"
            )
        });
        Ok(destinations)
    }
}

/// Returns the server whose next hop is the default. This is the first or last server if it is
/// behind a router, because further servers are then behind the same router. Otherwise it is the
/// first server.
fn default_server(host: &Host, servers: AddressRange) -> IpAddr {
    let ends = [servers.first, servers.at(servers.count.saturating_sub(1).into())];
    let is_behind = |it: &IpAddr| host.route(*it).is_some_and(|route| route.next_hop != *it);
    ends.into_iter().find(is_behind).unwrap_or(servers.first)
}

/// Returns the servers whose next hop differs from the default, sorted by address. Returns at most
/// [`SERVERS_MAX`] of them, and whether there are more.
fn others(host: &Host, servers: AddressRange, usual: IpAddr) -> (Vec<(IpAddr, Route)>, bool) {
    let by = host.route(usual).map(|route| route.next_hop);
    // No host answers for a broadcast address.
    let is_broadcast = |it| host.addresses.iter().any(|own| own.is_broadcast(it));
    let others = (0..servers.count).filter_map(|place| {
        let server = Some(servers.at(place.into())).filter(|it| !is_broadcast(*it))?;
        let route = host.route(server).filter(|route| Some(route.next_hop) != by)?;
        Some((server, route))
    });
    let mut found: Vec<_> = others.take(SERVERS_MAX + 1).collect();
    let has_more = found.len() > SERVERS_MAX;
    found.truncate(SERVERS_MAX);
    (found, has_more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirestorm_wire::prefix::Prefix;

    fn host() -> Host {
        let own = Prefix { address: "10.0.0.1".parse().unwrap(), length: 24 };
        let gateways = vec!["10.0.0.254".parse().unwrap()];
        Host { addresses: vec![own], gateways, ..Host::default() }
    }

    fn found(first: &str, count: u32) -> (String, Vec<String>, bool) {
        let servers = AddressRange { first: first.parse().unwrap(), count };
        let usual = default_server(&host(), servers);
        let (others, are_more) = others(&host(), servers, usual);
        (usual.to_string(), others.iter().map(|it| it.0.to_string()).collect(), are_more)
    }

    #[test]
    fn on_link_servers_have_their_own_next_hop_and_others_share_the_router() {
        let [two, three] = ["10.0.0.2", "10.0.0.3"].map(String::from);
        assert_eq!(found("10.0.0.2", 2), (two.clone(), vec![three], false));
        assert_eq!(found("192.0.2.0", 1 << 16), ("192.0.2.0".into(), vec![], false));
        // 10.0.0.253 is on the link, 10.0.0.254 is the router, the others are behind it.
        let last = vec!["10.0.0.253".into()];
        assert_eq!(found("10.0.0.253", 100), ("10.0.1.96".into(), last, false));
        let own = Prefix { address: "10.0.0.1".parse().unwrap(), length: 16 };
        let host = Host { addresses: vec![own], ..Host::default() };
        let many = AddressRange { first: "10.0.1.0".parse().unwrap(), count: 1_026 };
        let (others, are_more) = others(&host, many, many.first);
        assert_eq!((others.len(), are_more), (1_024, true));
    }
}
