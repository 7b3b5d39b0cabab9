//! A host on an Ethernet: its addresses, and what it says to what it hears.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};

use wirestorm_wire::packet::{MacAddress, ethernet, ethertype, protocol};
use wirestorm_wire::packet::{ipv4, ipv6};
use wirestorm_wire::prefix::Prefix;

use crate::echo;
use crate::heard::Heard;
use crate::neighbour::{self, ALL_NODES};
use wirestorm_model::address_range::AddressRange;

/// A host with one interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Its Ethernet address.
    pub mac: MacAddress,
    /// Its addresses, each with the length of its network's prefix.
    pub addresses: Vec<Prefix>,
    /// Those of others that it answers for as well.
    pub guests: Vec<Guests>,
    /// Routers for all that is in none of these networks; at most one of each family is used.
    pub gateways: Vec<IpAddr>,
    /// The VLAN tags of its frames as they stand behind the Ethernet addresses, four bytes each: it
    /// hears frames with these tags alone, whatever their priority, and answers with them. None: it
    /// hears frames without tags.
    pub tags: Vec<u8>,
}

/// Addresses that a host answers for beside its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guests {
    /// Among which they are.
    pub range: AddressRange,
    /// Only every Nth of these, from the first one on; at least 1.
    pub every: u32,
}

impl Guests {
    /// How many of them are announced, at most: whoever wants to know asks.
    const ANNOUNCED_MAX: usize = 256;

    fn announced(&self) -> impl Iterator<Item = IpAddr> {
        self.all().take(Self::ANNOUNCED_MAX)
    }

    fn all(&self) -> impl Iterator<Item = IpAddr> {
        let every = self.every.max(1);
        let count = self.range.count.div_ceil(every);
        (0..count).map(move |number| self.range.at(u64::from(number) * u64::from(every)))
    }

    fn have(&self, address: IpAddr) -> bool {
        let place = self.range.place_of(address);
        place.is_some_and(|place| place.is_multiple_of(self.every.max(1).into()))
    }
}

/// Groups that switches are told of, at most: as many as a bridge of Linux remembers.
const GROUPS_MAX: usize = 4_096;

/// An address of the scope of a link.
const LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0);

/// Where tags of VLANs stand: behind both Ethernet addresses.
const TAG_OFFSET: usize = 12;

/// Where a neighbour is, as it says itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// Its address.
    pub address: IpAddr,
    /// Its Ethernet address.
    pub mac: MacAddress,
    /// Whether that holds against another one that is known.
    pub overrides: bool,
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
    /// Whether an address is one of its own, or one that it answers for.
    pub fn owns(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|own| own.address == address)
            || self.guests.iter().any(|guests| guests.have(address))
    }

    /// The address in which it answers what was sent to an address: that one if it is its own, or
    /// of what was sent to all nodes one of the asker's scope, if there is one.
    pub(crate) fn answers_as(&self, destination: Ipv6Addr, asker: Ipv6Addr) -> Option<Ipv6Addr> {
        if destination != ALL_NODES {
            return self.owns(destination.into()).then_some(destination);
        }
        self.ipv6_in_scope_of(asker)
    }

    /// How a destination is reached: by itself in a network of the host's own, else by a router.
    /// `None` where there is none.
    pub fn route(&self, destination: IpAddr) -> Option<Route> {
        let is_alike = |gateway: &&IpAddr| gateway.is_ipv4() == destination.is_ipv4();
        self.route_by(destination, destination)
            .or_else(|| self.route_by(*self.gateways.iter().find(is_alike)?, destination))
    }

    /// How a destination is reached by a neighbour, which may be itself.
    ///
    /// RFC 4861 section 5.1: "The link-local prefix is considered to be on the prefix list", so a
    /// router may be known by its link-local address, as hosts know theirs. What goes beyond it comes
    /// from an address of its destination's scope.
    fn route_by(&self, neighbour: IpAddr, destination: IpAddr) -> Option<Route> {
        let source = match (neighbour, destination) {
            (IpAddr::V6(neighbour), IpAddr::V6(destination))
                if neighbour.is_unicast_link_local() =>
            {
                self.ipv6_in_scope_of(destination)?.into()
            }
            _ => self.addresses.iter().find(|own| own.contains(neighbour))?.address,
        };
        Some(Route { source, next_hop: neighbour })
    }

    /// An own address that is link-local as another one is, or else any, if there is one.
    fn ipv6_in_scope_of(&self, other: Ipv6Addr) -> Option<Ipv6Addr> {
        let own = || {
            self.addresses.iter().filter_map(|own| match own.address {
                IpAddr::V6(address) => Some(address),
                IpAddr::V4(_) => None,
            })
        };
        let is_alike =
            |own: &Ipv6Addr| own.is_unicast_link_local() == other.is_unicast_link_local();
        own().find(is_alike).or_else(|| own().next())
    }

    /// The frame that asks for the Ethernet address of a neighbour (RFC 826, RFC 4861).
    /// `None` where source and target are of different families.
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

    /// Frames that tell all neighbours where its addresses are: gratuitous ARP (RFC 5227
    /// section 3) and unsolicited neighbour advertisements (RFC 4861 section 7.2.6).
    pub fn announcements(&self) -> Vec<Vec<u8>> {
        let announcement = |own: IpAddr| match own {
            IpAddr::V4(address) => Some(neighbour::arp_request(self.mac, address, address)),
            IpAddr::V6(address) => neighbour::unsolicited_advertisement(self.mac, address),
        };
        let own = self.addresses.iter().map(|own| own.address);
        let all = own.chain(self.guests.iter().flat_map(Guests::announced));
        all.filter_map(announcement).map(|frame| self.tagged(frame)).collect()
    }

    /// Frames that tell switches in which groups it is asked for (MLDv2, RFC 3810): those of the first
    /// 4,096 of its addresses of IPv6. RFC 4861 section 7.2.1: "the
    /// node MUST join the all-nodes multicast address on that interface, as well as the solicited-node
    /// multicast address corresponding to each of the IP addresses assigned to the interface."
    pub fn listener_reports(&self) -> Vec<Vec<u8>> {
        let own = self.addresses.iter().map(|own| own.address);
        let guests = self.guests.iter().filter(|it| it.range.first.is_ipv6());
        let groups = own.chain(guests.flat_map(Guests::all)).filter_map(|address| match address {
            IpAddr::V6(address) => Some(neighbour::solicited_node(address)),
            IpAddr::V4(_) => None,
        });
        let mut groups: Vec<_> = groups.take(GROUPS_MAX).collect();
        groups.sort_unstable();
        groups.dedup();
        let link_local = self.ipv6_in_scope_of(LINK_LOCAL).filter(Ipv6Addr::is_unicast_link_local);
        let reports = neighbour::listener_reports(self.mac, link_local, &groups);
        reports.into_iter().map(|frame| self.tagged(frame)).collect()
    }

    /// What a frame without FCS is to the host. Frames to other hosts are nothing.
    pub fn hear(&self, frame: &[u8]) -> Heard {
        let Some(frame) = self.untagged(frame) else { return Heard::Nothing };
        match self.try_hear(&frame) {
            Some(Heard::Question(answer)) => Heard::Question(self.tagged(answer)),
            Some(heard) => heard,
            None => Heard::Nothing,
        }
    }

    /// Where a frame says that a neighbour is, whether it asks or answers, asked or not.
    pub fn told_by(&self, frame: &[u8]) -> Option<Told> {
        let frame = self.untagged(frame)?;
        let outer = ethernet::Frame::new(&*frame).ok()?;
        let destination = outer.destination();
        if destination != self.mac && !destination.is_multicast() {
            return None;
        }
        let told = match outer.ethertype() {
            ethertype::ARP => neighbour::told_by_arp(outer.payload()),
            ethertype::IPV6 => {
                let packet = ipv6::Packet::new(outer.payload()).ok()?;
                neighbour::told_by_icmpv6(outer.source(), &packet)
            }
            _ => None,
        };
        told.filter(|told| !self.owns(told.address) && !told.mac.is_multicast())
    }

    fn tagged(&self, mut frame: Vec<u8>) -> Vec<u8> {
        frame.splice(TAG_OFFSET..TAG_OFFSET, self.tags.iter().copied());
        frame
    }

    /// A frame without the host's tags; `None` where it has others.
    fn untagged<'a>(&self, frame: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        if self.tags.is_empty() {
            return Some(Cow::Borrowed(frame));
        }
        let (addresses, rest) = frame.split_at_checked(TAG_OFFSET)?;
        let (tags, rest) = rest.split_at_checked(self.tags.len())?;
        let is_own = without_priority(tags).eq(without_priority(&self.tags));
        is_own.then(|| [addresses, rest].concat().into())
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

/// Tags without priority and drop eligibility, which stand before the VLAN (IEEE 802.1Q section 9.6).
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
    fn behind_tags_frames_with_these_are_answered_with_the_same() {
        const TAGS: [u8; 8] = [0x88, 0xa8, 0, 5, 0x81, 0, 0, 7];
        let asker = Host { mac: MacAddress([2, 0, 0, 0, 0, 2]), ..host() };
        let range = AddressRange { first: ip("10.0.0.10"), count: 4 };
        let guests = vec![Guests { range, every: 2 }];
        let tagged = Host { tags: TAGS.to_vec(), guests, ..host() };
        let asks = |target: &str| asker.solicitation(ip("10.0.0.2"), ip(target)).unwrap();
        let with = |tags: &[u8], frame: &[u8]| [&frame[..12], tags, &frame[12..]].concat();
        let question = asks("10.0.0.1");
        let Heard::Question(expected) = host().hear(&question) else { panic!("no answer") };
        // Priority and drop eligibility are not the VLAN.
        let prior = [0x88, 0xa8, 0xf0, 5, 0x81, 0, 0x20, 7];
        for tags in [TAGS, prior] {
            let answer = Heard::Question(with(&TAGS, &expected));
            assert_eq!(tagged.hear(&with(&tags, &question)), answer);
            assert_eq!(host().hear(&with(&tags, &question)), Heard::Nothing);
        }
        for others in [&TAGS[..4], &TAGS[4..], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 8], &[]] {
            assert_eq!(tagged.hear(&with(others, &question)), Heard::Nothing, "{others:?}");
        }
        for (guest, is_answered) in [(10, true), (11, false), (12, true), (13, false), (14, false)]
        {
            let heard = tagged.hear(&with(&TAGS, &asks(&alloc::format!("10.0.0.{guest}"))));
            assert_eq!(matches!(heard, Heard::Question(_)), is_answered, "{guest}");
        }
        let guests = ["10.0.0.10", "10.0.0.12"].map(|it| Prefix { address: ip(it), length: 32 });
        let announced = Host { addresses: [host().addresses, guests.into()].concat(), ..host() };
        let announced = announced.announcements();
        let announced: Vec<_> = announced.iter().map(|frame| with(&TAGS, frame)).collect();
        assert_eq!(tagged.announcements(), announced);
        for length in 0..30 {
            assert_eq!(tagged.hear(&with(&TAGS, &question)[..length]), Heard::Nothing);
        }
    }

    #[test]
    fn groups_are_reported_once_behind_tags_and_not_without_end() {
        let with = |addresses: &[&str], guests: u32| {
            let prefix = |it: &&str| Prefix { address: ip(it), length: 64 };
            let range = AddressRange { first: ip("2001:db8:1::"), count: guests };
            let others = AddressRange { first: ip("10.0.0.1"), count: u32::MAX };
            let guests = [range, others].map(|range| Guests { range, every: 1 });
            let host = Host { addresses: addresses.iter().map(prefix).collect(), ..host() };
            let host = Host { guests: guests.into(), tags: vec![0x81, 0, 0, 7], ..host };
            let reports = host.listener_reports();
            assert!(reports.iter().all(|frame| frame[12..18] == [0x81, 0, 0, 7, 0x86, 0xdd]));
            // Behind tags, the headers, and eight bytes of ICMPv6.
            reports.iter().map(|frame| (frame.len() - 18 - 40 - 8 - 8) / 20).sum::<usize>()
        };
        assert_eq!(with(&["10.0.0.1"], 0), 0);
        // Those of one host's own in two networks are the same.
        assert_eq!(with(&["2001:db8::1", "2001:db8:5::1", "fe80::2"], 0), 2);
        assert_eq!(with(&["2001:db8::ffff"], 100), 101);
        assert_eq!(with(&["2001:db8::1"], u32::MAX), 4_095);
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
    fn a_router_may_be_known_by_its_link_local_address() {
        let mut host = host();
        host.gateways.push(ip("fe80::1"));
        let route = |host: &Host| host.route(ip("2001:db8:1::9"));
        let expected = |source| Some(Route { source: ip(source), next_hop: ip("fe80::1") });
        assert_eq!(route(&host), expected("2001:db8::1"));
        let neighbour = Route { source: ip("2001:db8::1"), next_hop: ip("2001:db8::9") };
        assert_eq!(host.route(ip("2001:db8::9")), Some(neighbour));
        // What goes beyond the router comes from an address that is known there, if there is one.
        host.addresses.insert(0, Prefix { address: ip("fe80::5"), length: 64 });
        assert_eq!(route(&host), expected("2001:db8::1"));
        host.addresses.truncate(2);
        assert_eq!(route(&host), expected("fe80::5"));
        host.addresses.remove(0);
        assert_eq!(route(&host), None, "no address of IPv6");
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
