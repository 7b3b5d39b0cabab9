//! A host on an Ethernet network: its addresses, its routes and its answers to requests.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};

use wirestorm_wire::packet::{MacAddress, ethernet, ethertype, protocol};
use wirestorm_wire::packet::{ipv4, ipv6};
use wirestorm_wire::prefix::Prefix;

use crate::echo;
use crate::host_event::HostEvent;
use crate::neighbour::{self, ALL_NODES, NeighbourAddress};
use wirestorm_model::address_range::AddressRange;

/// A host with one interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Ethernet address of the host.
    pub mac: MacAddress,
    /// IP addresses of the host, each with the prefix length of its network.
    pub addresses: Vec<Prefix>,
    /// Further addresses for which the host answers.
    pub proxied: Vec<ProxiedAddresses>,
    /// Routers for destinations outside these networks; the host uses the first one of each family.
    pub gateways: Vec<IpAddr>,
    /// VLAN tags of the host's frames as on the wire, four bytes each. The host accepts only frames
    /// with these tags, of any priority, and sends its frames with them. Empty: only untagged
    /// frames.
    pub tags: Vec<u8>,
}

/// Addresses for which a host answers besides its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxiedAddresses {
    /// Range of the addresses.
    pub range: AddressRange,
    /// Takes every Nth address of the range, starting with the first; at least 1.
    pub stride: u32,
}

impl ProxiedAddresses {
    /// Maximum number of announced addresses; neighbours resolve the others.
    const ANNOUNCED_MAX: usize = 256;

    fn announced(&self) -> impl Iterator<Item = IpAddr> {
        self.all().take(Self::ANNOUNCED_MAX)
    }

    fn all(&self) -> impl Iterator<Item = IpAddr> {
        let every = self.stride.max(1);
        let count = self.range.count.div_ceil(every);
        (0..count).map(move |number| self.range.at(u64::from(number) * u64::from(every)))
    }

    fn have(&self, address: IpAddr) -> bool {
        let place = self.range.offset_of(address);
        place.is_some_and(|place| place.is_multiple_of(self.stride.max(1)))
    }
}

/// Maximum number of reported groups, which is the default limit of a Linux bridge.
const GROUPS_MAX: usize = 4_096;

/// An address of link-local scope.
const LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0);

/// Offset of VLAN tags in a frame, after both Ethernet addresses.
const TAG_OFFSET: usize = 12;

/// Route to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Address of the host in the network of the next hop.
    pub source: IpAddr,
    /// Neighbour whose Ethernet address the frames need.
    pub next_hop: IpAddr,
}

impl Host {
    /// Whether an address is one of the host's own or one for which it answers.
    pub fn owns(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|prefix| prefix.address == address)
            || self.proxied.iter().any(|guests| guests.have(address))
    }

    /// Returns the source address of the answer to a packet. It is the destination if the host owns
    /// it. For the all-nodes address it is an address of the sender's scope, if there is one.
    pub(crate) fn reply_source(&self, destination: Ipv6Addr, asker: Ipv6Addr) -> Option<Ipv6Addr> {
        if destination != ALL_NODES {
            return self.owns(destination.into()).then_some(destination);
        }
        self.ipv6_in_scope_of(asker)
    }

    /// Finds the route to a destination: direct if it is in one of the host's networks, else over a
    /// router. Returns `None` without a route.
    pub fn route(&self, destination: IpAddr) -> Option<Route> {
        let is_alike = |gateway: &&IpAddr| gateway.is_ipv4() == destination.is_ipv4();
        self.route_by(destination, destination)
            .or_else(|| self.route_by(*self.gateways.iter().find(is_alike)?, destination))
    }

    /// Finds the route to a destination over a neighbour, which may be the destination itself.
    ///
    /// RFC 4861 section 5.1: "The link-local prefix is considered to be on the prefix list", so the
    /// host may know a router by its link-local address. The source address has the scope of the
    /// destination.
    fn route_by(&self, neighbour: IpAddr, destination: IpAddr) -> Option<Route> {
        let source = match (neighbour, destination) {
            (IpAddr::V6(neighbour), IpAddr::V6(destination))
                if neighbour.is_unicast_link_local() =>
            {
                self.ipv6_in_scope_of(destination)?.into()
            }
            _ => self.addresses.iter().find(|prefix| prefix.contains(neighbour))?.address,
        };
        Some(Route { source, next_hop: neighbour })
    }

    /// Returns an own IPv6 address of the same scope (link-local or not) as `other`, or else any
    /// IPv6 address.
    fn ipv6_in_scope_of(&self, other: Ipv6Addr) -> Option<Ipv6Addr> {
        let local_addresses = || {
            self.addresses.iter().filter_map(|prefix| match prefix.address {
                IpAddr::V6(address) => Some(address),
                IpAddr::V4(_) => None,
            })
        };
        let is_alike =
            |address: &Ipv6Addr| address.is_unicast_link_local() == other.is_unicast_link_local();
        local_addresses().find(is_alike).or_else(|| local_addresses().next())
    }

    /// Returns the frame that requests the Ethernet address of a neighbour (RFC 826, RFC 4861).
    /// Returns `None` if source and target are of different families.
    pub fn solicitation(&self, source: IpAddr, target: IpAddr) -> Option<Vec<u8>> {
        let question = match (source, target) {
            (IpAddr::V4(source), IpAddr::V4(target)) => {
                Some(neighbour::arp_request(self.mac, source, target))
            }
            (IpAddr::V6(source), IpAddr::V6(target)) => {
                neighbour::solicitation(self.mac, source, target)
            }
            _ => None,
        };
        question.map(|frame| self.tagged(frame))
    }

    /// Returns frames that announce the host's addresses to all neighbours. These are gratuitous
    /// ARP (RFC 5227 section 3) and unsolicited neighbour advertisements (RFC 4861 section 7.2.6).
    pub fn announcements(&self) -> Vec<Vec<u8>> {
        let announcement = |address: IpAddr| match address {
            IpAddr::V4(address) => Some(neighbour::arp_request(self.mac, address, address)),
            IpAddr::V6(address) => neighbour::unsolicited_advertisement(self.mac, address),
        };
        let local_addresses = self.addresses.iter().map(|prefix| prefix.address);
        let all = local_addresses.chain(self.proxied.iter().flat_map(ProxiedAddresses::announced));
        all.filter_map(announcement).map(|frame| self.tagged(frame)).collect()
    }

    /// Returns MLDv2 reports (RFC 3810) that join the solicited-node groups of the host's IPv6
    /// addresses, the first 4,096 at most.
    ///
    /// RFC 4861 section 7.2.1: "the node MUST join the all-nodes multicast address on that
    /// interface, as well as the solicited-node multicast address corresponding to each of the IP
    /// addresses assigned to the interface."
    pub fn listener_reports(&self) -> Vec<Vec<u8>> {
        let local_addresses = self.addresses.iter().map(|prefix| prefix.address);
        let guests = self.proxied.iter().filter(|it| it.range.first.is_ipv6());
        let groups =
            local_addresses.chain(guests.flat_map(ProxiedAddresses::all)).filter_map(|address| {
                match address {
                    IpAddr::V6(address) => Some(neighbour::solicited_node(address)),
                    IpAddr::V4(_) => None,
                }
            });
        let mut groups: Vec<_> = groups.take(GROUPS_MAX).collect();
        groups.sort_unstable();
        groups.dedup();
        let link_local = self.ipv6_in_scope_of(LINK_LOCAL).filter(Ipv6Addr::is_unicast_link_local);
        let reports = neighbour::listener_reports(self.mac, link_local, &groups);
        reports.into_iter().map(|frame| self.tagged(frame)).collect()
    }

    /// Handles a received frame without FCS. Frames for other hosts give [`HostEvent::Ignored`].
    pub fn handle_frame(&self, frame: &[u8]) -> HostEvent {
        let Some(frame) = self.untagged(frame) else { return HostEvent::Ignored };
        match self.try_handle_frame(&frame) {
            Some(HostEvent::Reply(answer)) => HostEvent::Reply(self.tagged(answer)),
            Some(event) => event,
            None => HostEvent::Ignored,
        }
    }

    /// Returns the sender's addresses from an ARP or neighbour discovery message, whether a
    /// request, a reply or an announcement.
    pub fn neighbour_of(&self, frame: &[u8]) -> Option<NeighbourAddress> {
        let frame = self.untagged(frame)?;
        let outer = ethernet::Frame::new(&*frame).ok()?;
        let destination = outer.destination();
        if destination != self.mac && !destination.is_multicast() {
            return None;
        }
        let neighbour = match outer.ethertype() {
            ethertype::ARP => neighbour::neighbour_of_arp(outer.payload()),
            ethertype::IPV6 => {
                let packet = ipv6::Packet::new(outer.payload()).ok()?;
                neighbour::neighbour_of_discovery(outer.source(), &packet)
            }
            _ => None,
        };
        neighbour.filter(|neighbour| !self.owns(neighbour.address) && !neighbour.mac.is_multicast())
    }

    fn tagged(&self, mut frame: Vec<u8>) -> Vec<u8> {
        frame.splice(TAG_OFFSET..TAG_OFFSET, self.tags.iter().copied());
        frame
    }

    /// Strips the host's tags from a frame; `None` if the frame has other tags.
    fn untagged<'a>(&self, frame: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        if self.tags.is_empty() {
            return Some(Cow::Borrowed(frame));
        }
        let (addresses, rest) = frame.split_at_checked(TAG_OFFSET)?;
        let (tags, rest) = rest.split_at_checked(self.tags.len())?;
        let is_own = without_priority(tags).eq(without_priority(&self.tags));
        is_own.then(|| [addresses, rest].concat().into())
    }

    fn try_handle_frame(&self, frame: &[u8]) -> Option<HostEvent> {
        let outer = ethernet::Frame::new(frame).ok()?;
        let destination = outer.destination();
        if destination != self.mac && !destination.is_multicast() {
            return None;
        }
        let owns = |address| self.owns(address);
        match outer.ethertype() {
            ethertype::ARP => neighbour::handle_arp(self.mac, owns, outer.payload()),
            ethertype::IPV4 => {
                let packet = ipv4::Packet::new(outer.payload()).ok()?;
                let is_mine = self.owns(packet.destination().into());
                let is_echo = is_mine && packet.is_whole() && packet.protocol() == protocol::ICMP;
                if is_echo { echo::handle_ipv4(self.mac, frame) } else { None }
            }
            ethertype::IPV6 => {
                let packet = ipv6::Packet::new(outer.payload()).ok()?;
                if packet.next_header() != protocol::ICMPV6 {
                    return None;
                }
                let discovery =
                    neighbour::handle_neighbour_discovery(self.mac, owns, outer.source(), &packet);
                discovery.or_else(|| {
                    let source = self.reply_source(packet.destination(), packet.source())?;
                    echo::handle_ipv6(self.mac, source, frame)
                })
            }
            _ => None,
        }
    }
}

/// Returns VLAN tags without priority and drop eligibility, the bits before the VLAN identifier
/// (IEEE 802.1Q section 9.6).
pub(crate) fn without_priority(tags: &[u8]) -> impl Iterator<Item = [u8; 4]> {
    const IDENTIFIER: u8 = 0x0f;
    let tags = tags.as_chunks::<4>().0.iter();
    tags.map(|[kind_high, kind_low, high, low]| [*kind_high, *kind_low, high & IDENTIFIER, *low])
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
            ..Host::default()
        }
    }

    #[test]
    fn host_with_tags_answers_only_frames_with_the_same_tags() {
        const TAGS: [u8; 8] = [0x88, 0xa8, 0, 5, 0x81, 0, 0, 7];
        let asker = Host { mac: MacAddress([2, 0, 0, 0, 0, 2]), ..host() };
        let range = AddressRange { first: ip("10.0.0.10"), count: 4 };
        let guests = vec![ProxiedAddresses { range, stride: 2 }];
        let tagged = Host { tags: TAGS.to_vec(), proxied: guests, ..host() };
        let asks = |target: &str| asker.solicitation(ip("10.0.0.2"), ip(target)).unwrap();
        let with = |tags: &[u8], frame: &[u8]| [&frame[..12], tags, &frame[12..]].concat();
        let question = asks("10.0.0.1");
        let HostEvent::Reply(expected) = host().handle_frame(&question) else {
            panic!("no answer")
        };
        // Priority and drop eligibility do not select the VLAN.
        let prior = [0x88, 0xa8, 0xf0, 5, 0x81, 0, 0x20, 7];
        for tags in [TAGS, prior] {
            let answer = HostEvent::Reply(with(&TAGS, &expected));
            assert_eq!(tagged.handle_frame(&with(&tags, &question)), answer);
            assert_eq!(host().handle_frame(&with(&tags, &question)), HostEvent::Ignored);
        }
        for others in [&TAGS[..4], &TAGS[4..], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 8], &[]] {
            assert_eq!(
                tagged.handle_frame(&with(others, &question)),
                HostEvent::Ignored,
                "{others:?}"
            );
        }
        for (guest, is_answered) in [(10, true), (11, false), (12, true), (13, false), (14, false)]
        {
            let event = tagged.handle_frame(&with(&TAGS, &asks(&alloc::format!("10.0.0.{guest}"))));
            assert_eq!(matches!(event, HostEvent::Reply(_)), is_answered, "{guest}");
        }
        let guests = ["10.0.0.10", "10.0.0.12"].map(|it| Prefix { address: ip(it), length: 32 });
        let announced = Host { addresses: [host().addresses, guests.into()].concat(), ..host() };
        let announced = announced.announcements();
        let announced: Vec<_> = announced.iter().map(|frame| with(&TAGS, frame)).collect();
        assert_eq!(tagged.announcements(), announced);
        for length in 0..30 {
            assert_eq!(tagged.handle_frame(&with(&TAGS, &question)[..length]), HostEvent::Ignored);
        }
    }

    #[test]
    fn listener_reports_are_tagged_unique_and_bounded() {
        let with = |addresses: &[&str], guests: u32| {
            let prefix = |it: &&str| Prefix { address: ip(it), length: 64 };
            let range = AddressRange { first: ip("2001:db8:1::"), count: guests };
            let others = AddressRange { first: ip("10.0.0.1"), count: u32::MAX };
            let guests = [range, others].map(|range| ProxiedAddresses { range, stride: 1 });
            let host = Host { addresses: addresses.iter().map(prefix).collect(), ..host() };
            let host = Host { proxied: guests.into(), tags: vec![0x81, 0, 0, 7], ..host };
            let reports = host.listener_reports();
            assert!(reports.iter().all(|frame| frame[12..18] == [0x81, 0, 0, 7, 0x86, 0xdd]));
            // Subtracts the tagged Ethernet header, the IPv6 header, the hop-by-hop header and the
            // eight bytes of ICMPv6.
            reports.iter().map(|frame| (frame.len() - 18 - 40 - 8 - 8) / 20).sum::<usize>()
        };
        assert_eq!(with(&["10.0.0.1"], 0), 0);
        // Two addresses with the same last 24 bits share a group.
        assert_eq!(with(&["2001:db8::1", "2001:db8:5::1", "fe80::2"], 0), 2);
        assert_eq!(with(&["2001:db8::ffff"], 100), 101);
        assert_eq!(with(&["2001:db8::1"], u32::MAX), 4_095);
    }

    #[test]
    fn route_is_direct_in_a_local_network_and_else_over_the_router() {
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
    fn router_may_have_a_link_local_address() {
        let mut host = host();
        host.gateways.push(ip("fe80::1"));
        let route = |host: &Host| host.route(ip("2001:db8:1::9"));
        let expected = |source| Some(Route { source: ip(source), next_hop: ip("fe80::1") });
        assert_eq!(route(&host), expected("2001:db8::1"));
        let neighbour = Route { source: ip("2001:db8::1"), next_hop: ip("2001:db8::9") };
        assert_eq!(host.route(ip("2001:db8::9")), Some(neighbour));
        // The source of packets beyond the router is a global address, if there is one.
        host.addresses.insert(0, Prefix { address: ip("fe80::5"), length: 64 });
        assert_eq!(route(&host), expected("2001:db8::1"));
        host.addresses.truncate(2);
        assert_eq!(route(&host), expected("fe80::5"));
        host.addresses.remove(0);
        assert_eq!(route(&host), None, "no address of IPv6");
    }

    #[test]
    fn random_bytes_cause_no_panic() {
        let host = host();
        let mut frame = host.solicitation(ip("2001:db8::1"), ip("2001:db8::1")).unwrap();
        frame.extend(host.solicitation(ip("10.0.0.1"), ip("10.0.0.1")).unwrap());
        for length in 0..frame.len() {
            let _ = host.handle_frame(&frame[..length]);
            for bit in 0..8 {
                frame[length] ^= 1 << bit;
                let _ = host.handle_frame(&frame);
                frame[length] ^= 1 << bit;
            }
        }
    }
}
