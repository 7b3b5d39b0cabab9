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
        host: &mut PacketSocketHost,
        target: IpAddr,
        by: &mut NextHopTable,
        goes_on: &mut impl FnMut(&UnansweredRequest<'_>) -> bool,
    ) -> Result<Self, HostError> {
        let destination = host.resolve_while(target, goes_on)?.1;
        let route = host.host().route(target);
        // The route exists, because `resolve_while` used it.
        let number = |route: Route| by.number(None, route.next_hop, route.source);
        let next_hop = route.map_or(LinkHeader::FIXED, number);
        Ok(Self { destination, next_hop, servers: Vec::new(), note: None })
    }

    /// Sends the frames for each server to its next hop: its gateway, or the server itself if it is
    /// on the link. Resolves at most [`SERVERS_MAX`] servers besides the default one.
    pub(in crate::emulation) fn per_server(
        host: &mut PacketSocketHost,
        servers: AddressRange,
        by: &mut NextHopTable,
        goes_on: &mut impl FnMut(&UnansweredRequest<'_>) -> bool,
    ) -> Result<Self, HostError> {
        let default = default_server(host.host(), servers);
        let mut destinations = Self::through_one(host, default, by, goes_on)?;
        let (others, are_more) = others(host.host(), servers, default);
        for (server, route) in others {
            let destination = host.resolve_while(server, &mut *goes_on)?.1;
            let next_hop = by.number(None, route.next_hop, route.source);
            destinations.servers.push(ServerLink { server, destination, next_hop });
        }
        destinations.note = are_more.then(|| {
            format!(
                "{SERVERS_MAX} servers in the port's network were resolved, which is the limit; \
                 frames to the other servers went to the next hop of {default}"
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
fn others(host: &Host, servers: AddressRange, default: IpAddr) -> (Vec<(IpAddr, Route)>, bool) {
    let by = host.route(default).map(|route| route.next_hop);
    // No host answers for a broadcast address.
    let is_broadcast = |it| host.addresses.iter().any(|prefix| prefix.is_broadcast(it));
    let others = (0..servers.count).filter_map(|place| {
        let server = Some(servers.at(place.into())).filter(|it| !is_broadcast(*it))?;
        let route = host.route(server).filter(|route| Some(route.next_hop) != by)?;
        Some((server, route))
    });
    let mut others: Vec<_> = others.take(SERVERS_MAX + 1).collect();
    let has_more = others.len() > SERVERS_MAX;
    others.truncate(SERVERS_MAX);
    (others, has_more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirestorm_wire::prefix::Prefix;

    fn host() -> Host {
        let prefix = Prefix { address: "10.0.0.1".parse().unwrap(), length: 24 };
        let gateways = vec!["10.0.0.254".parse().unwrap()];
        Host { addresses: vec![prefix], gateways, ..Host::default() }
    }

    fn destinations(first: &str, count: u32) -> (String, Vec<String>, bool) {
        let servers = AddressRange { first: first.parse().unwrap(), count };
        let default = default_server(&host(), servers);
        let (others, are_more) = others(&host(), servers, default);
        (default.to_string(), others.iter().map(|it| it.0.to_string()).collect(), are_more)
    }

    #[test]
    fn on_link_servers_have_their_own_next_hop_and_others_share_the_router() {
        let [two, three] = ["10.0.0.2", "10.0.0.3"].map(String::from);
        assert_eq!(destinations("10.0.0.2", 2), (two.clone(), vec![three], false));
        assert_eq!(destinations("192.0.2.0", 1 << 16), ("192.0.2.0".into(), vec![], false));
        // 10.0.0.253 is on the link, 10.0.0.254 is the router, the others are behind it.
        let last = vec!["10.0.0.253".into()];
        assert_eq!(destinations("10.0.0.253", 100), ("10.0.1.96".into(), last, false));
        let prefix = Prefix { address: "10.0.0.1".parse().unwrap(), length: 16 };
        let host = Host { addresses: vec![prefix], ..Host::default() };
        let many = AddressRange { first: "10.0.1.0".parse().unwrap(), count: 1_026 };
        let (others, are_more) = others(&host, many, many.first);
        assert_eq!((others.len(), are_more), (1_024, true));
    }
}
