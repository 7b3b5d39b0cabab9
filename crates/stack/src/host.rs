//! A host on an Ethernet: its addresses, and what it says to what it hears.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};

use wirestorm_wire::packet::{MacAddress, ethernet, ethertype, protocol};
use wirestorm_wire::packet::{ipv4, ipv6};
use wirestorm_wire::prefix::Prefix;

use crate::echo;
use crate::heard::Heard;
use crate::neighbour::{self, ALL_NODES};

/// A host with one interface, without VLAN tags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Its Ethernet address.
    pub mac: MacAddress,
    /// Its addresses, each with the length of its network's prefix.
    pub addresses: Vec<Prefix>,
    /// Routers for all that is in none of these networks; at most one of each family is used.
    pub gateways: Vec<IpAddr>,
}

/// How something is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The host's address in the network of the next hop.
    pub source: IpAddr,
    /// Whose Ethernet address frames need.
    pub next_hop: IpAddr,
}

impl Host {
    /// Whether an address is one of its own.
    pub fn owns(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|own| own.address == address)
    }

    /// The address in which it answers what was sent to an address: that one if it is its own, or
    /// of what was sent to all nodes one of the asker's scope, if there is one.
    pub(crate) fn answers_as(&self, destination: Ipv6Addr, asker: Ipv6Addr) -> Option<Ipv6Addr> {
        if destination != ALL_NODES {
            return self.owns(destination.into()).then_some(destination);
        }
        let own = || {
            self.addresses.iter().filter_map(|own| match own.address {
                IpAddr::V6(address) => Some(address),
                IpAddr::V4(_) => None,
            })
        };
        let is_link_local = |address: Ipv6Addr| address.segments()[0] & 0xffc0 == 0xfe80;
        let is_alike = |own: &Ipv6Addr| is_link_local(*own) == is_link_local(asker);
        own().find(is_alike).or_else(|| own().next())
    }

    /// How a destination is reached: by itself in a network of the host's own, else by a router.
    /// `None` where there is none.
    pub fn route(&self, destination: IpAddr) -> Option<Route> {
        let within = |target: IpAddr| {
            let own = self.addresses.iter().find(|own| own.contains(target))?;
            Some(Route { source: own.address, next_hop: target })
        };
        let is_alike = |gateway: &&IpAddr| gateway.is_ipv4() == destination.is_ipv4();
        within(destination).or_else(|| within(*self.gateways.iter().find(is_alike)?))
    }

    /// The frame that asks for the Ethernet address of a neighbour (RFC 826, RFC 4861).
    /// `None` where source and target are of different families.
    pub fn solicitation(&self, source: IpAddr, target: IpAddr) -> Option<Vec<u8>> {
        match (source, target) {
            (IpAddr::V4(source), IpAddr::V4(target)) => {
                Some(neighbour::arp_request(self.mac, source, target))
            }
            (IpAddr::V6(source), IpAddr::V6(target)) => {
                neighbour::solicitation(self.mac, source, target)
            }
            _ => None,
        }
    }

    /// Frames that tell all neighbours where its addresses are: gratuitous ARP (RFC 5227
    /// section 3) and unsolicited neighbour advertisements (RFC 4861 section 7.2.6).
    pub fn announcements(&self) -> Vec<Vec<u8>> {
        let announcement = |own: &Prefix| match own.address {
            IpAddr::V4(address) => Some(neighbour::arp_request(self.mac, address, address)),
            IpAddr::V6(address) => neighbour::unsolicited_advertisement(self.mac, address),
        };
        self.addresses.iter().filter_map(announcement).collect()
    }

    /// What a frame without FCS is to the host. Frames to other hosts are nothing.
    pub fn hear(&self, frame: &[u8]) -> Heard {
        self.try_hear(frame).unwrap_or(Heard::Nothing)
    }

    fn try_hear(&self, frame: &[u8]) -> Option<Heard> {
        let outer = ethernet::Frame::new(frame).ok()?;
        let destination = outer.destination();
        if destination != self.mac && !destination.is_multicast() {
            return None;
        }
        let owns = |address| self.owns(address);
        match outer.ethertype() {
            ethertype::ARP => neighbour::hear_arp(self.mac, owns, outer.payload()),
            ethertype::IPV4 => {
                let packet = ipv4::Packet::new(outer.payload()).ok()?;
                let is_mine = self.owns(packet.destination().into());
                let is_echo = is_mine && packet.is_whole() && packet.protocol() == protocol::ICMP;
                if is_echo { echo::hear_ipv4(self.mac, frame) } else { None }
            }
            ethertype::IPV6 => {
                let packet = ipv6::Packet::new(outer.payload()).ok()?;
                if packet.next_header() != protocol::ICMPV6 {
                    return None;
                }
                let discovery = neighbour::hear_icmpv6(self.mac, owns, outer.source(), &packet);
                discovery.or_else(|| {
                    let own = self.answers_as(packet.destination(), packet.source())?;
                    echo::hear_ipv6(self.mac, own, frame)
                })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn host() -> Host {
        Host {
            mac: MacAddress([2, 0, 0, 0, 0, 1]),
            addresses: vec![
                Prefix { address: ip("10.0.0.1"), length: 24 },
                Prefix { address: ip("2001:db8::1"), length: 64 },
            ],
            gateways: vec![ip("10.0.0.254")],
        }
    }

    #[test]
    fn neighbours_are_reached_directly_and_others_by_the_router() {
        let host = host();
        let route = |destination, next_hop, source| {
            let expected = Some(Route { source: ip(source), next_hop: ip(next_hop) });
            assert_eq!(host.route(ip(destination)), expected, "{destination}");
        };
        route("10.0.0.7", "10.0.0.7", "10.0.0.1");
        route("192.0.2.1", "10.0.0.254", "10.0.0.1");
        route("2001:db8::9", "2001:db8::9", "2001:db8::1");
        assert_eq!(host.route(ip("2001:db8:1::9")), None, "no router for IPv6");
    }

    #[test]
    fn no_bytes_confuse_it() {
        let host = host();
        let mut frame = host.solicitation(ip("2001:db8::1"), ip("2001:db8::1")).unwrap();
        frame.extend(host.solicitation(ip("10.0.0.1"), ip("10.0.0.1")).unwrap());
        for length in 0..frame.len() {
            let _ = host.hear(&frame[..length]);
            for bit in 0..8 {
                frame[length] ^= 1 << bit;
                let _ = host.hear(&frame);
                frame[length] ^= 1 << bit;
            }
        }
    }
}
