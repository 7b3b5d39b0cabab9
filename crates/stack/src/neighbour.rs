//! Neighbour resolution: ARP (RFC 826, RFC 5227) and IPv6 neighbour discovery (RFC 4861).

use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wirestorm_model::assemble::{Header, Payload, assemble, length_min};
use wirestorm_wire::checksum;
use wirestorm_wire::layout::ethernet::ETHERNET;
use wirestorm_wire::layout::icmpv6::{NEIGHBOR_ADVERTISEMENT, NEIGHBOR_SOLICITATION};
use wirestorm_wire::layout::ipv6::IPV6;
use wirestorm_wire::packet::{
    MacAddress, arp, ethernet, ethertype, icmpv6, ipv6, network_header, protocol,
};

use crate::echo::is_icmpv6_checksum_valid;
use crate::host_event::HostEvent;

/// Address of a neighbour, from one of its own messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighbourAddress {
    /// IP address of the neighbour.
    pub address: IpAddr,
    /// Ethernet address of the neighbour.
    pub mac: MacAddress,
    /// Whether this replaces another known Ethernet address.
    pub overrides: bool,
}

/// All-nodes multicast address of a link (RFC 4291 section 2.7.1).
pub(crate) const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// Hop limit of neighbour discovery messages. It proves that no router forwarded the message (RFC
/// 4861 section 7.1).
const HOP_LIMIT: u8 = 255;

/// Length of the shortest Ethernet frame without FCS.
const FRAME_LENGTH_MIN: usize = 60;

/// Returns an ARP request for `target`; if `source` equals `target`, it is an announcement.
pub(crate) fn arp_request(mac: MacAddress, source: Ipv4Addr, target: Ipv4Addr) -> Vec<u8> {
    arp_frame(MacAddress::BROADCAST, arp::REQUEST, (mac, source), (MacAddress::default(), target))
}

fn arp_frame(
    destination: MacAddress,
    operation: u16,
    sender: (MacAddress, Ipv4Addr),
    target: (MacAddress, Ipv4Addr),
) -> Vec<u8> {
    let mut frame = vec![0; FRAME_LENGTH_MIN];
    let (header, packet) = frame.split_at_mut(ethernet::HEADER_LENGTH);
    if let Ok(mut outer) = ethernet::Frame::new(header) {
        outer.set_destination(destination);
        outer.set_source(sender.0);
        outer.set_ethertype(ethertype::ARP);
    }
    // `arp::Packet::new` checks the lengths of hardware (6) and protocol (4) addresses.
    packet[4..6].copy_from_slice(&[6, 4]);
    if let Ok(mut packet) = arp::Packet::new(packet) {
        packet.set_hardware(1);
        packet.set_protocol(ethertype::IPV4);
        packet.set_operation(operation);
        packet.set_sender_hardware(sender.0);
        packet.set_sender_address(sender.1);
        packet.set_target_hardware(target.0);
        packet.set_target_address(target.1);
    }
    frame
}

pub(crate) fn handle_arp(
    mac: MacAddress,
    owns: impl Fn(IpAddr) -> bool,
    packet: &[u8],
) -> Option<HostEvent> {
    let packet = arp::Packet::new(packet).ok()?;
    let sender = packet.sender_address();
    if packet.operation() == arp::REQUEST && owns(packet.target_address().into()) {
        let asker = (packet.sender_hardware(), sender);
        let sender_ends = (mac, packet.target_address());
        return Some(HostEvent::Reply(arp_frame(asker.0, arp::REPLY, sender_ends, asker)));
    }
    // Announcements and replies carry the sender's address; a probe has no address yet.
    let is_known = !sender.is_unspecified() && !owns(sender.into());
    is_known.then(|| HostEvent::Neighbour { address: sender.into(), mac: packet.sender_hardware() })
}

/// Returns a neighbour solicitation to the target's solicited-node address (RFC 4291 section
/// 2.7.1).
pub(crate) fn solicitation(mac: MacAddress, source: Ipv6Addr, target: Ipv6Addr) -> Option<Vec<u8>> {
    let group = solicited_node(target);
    let message = Header::new(&NEIGHBOR_SOLICITATION).with("target_address", target.to_bits());
    let message = with_address(message, "source_link_layer_address", mac)?;
    discovery(mac, (multicast(group), group), source, message)
}

/// Returns the solicited-node multicast address of an address (RFC 4291 section 2.7.1).
pub(crate) fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(a), u16::from_be_bytes([b, c]))
}

/// Returns MLDv2 reports that join groups (RFC 3810 section 5.2), for switches that snoop on them.
///
/// RFC 3810 section 5.2.13: a report has "a valid IPv6 link-local source address, or the
/// unspecified address", which "is allowed to support the use of IP multicast in the Neighbor
/// Discovery Protocol".
pub(crate) fn listener_reports(
    mac: MacAddress,
    link_local: Option<Ipv6Addr>,
    groups: &[Ipv6Addr],
) -> Vec<Vec<u8>> {
    /// Number of group records that fit into 1,280 bytes, the minimum MTU of IPv6.
    const RECORDS_MAX: usize = 61;
    /// Hop-by-hop options header: next header ICMPv6, router alert (RFC 2711) with the value for
    /// MLD, and two bytes of padding.
    const ROUTER_ALERT: [u8; 8] = [protocol::ICMPV6, 0, 5, 2, 0, 0, 1, 0];
    /// CHANGE_TO_EXCLUDE_MODE without sources (RFC 3810 section 5.2.12): accept all sources.
    const LISTENS: [u8; 4] = [4, 0, 0, 0];
    const REPORT: u8 = 143;
    const ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x16);
    let source = link_local.unwrap_or(Ipv6Addr::UNSPECIFIED).octets();
    let report = |groups: &[Ipv6Addr]| {
        let mut message = vec![REPORT, 0, 0, 0, 0, 0, 0, groups.len() as u8];
        groups.iter().for_each(|it| message.extend([&LISTENS[..], &it.octets()].concat()));
        let length = message.len() as u32;
        let pseudo =
            checksum::pseudo_header_ipv6(source, ROUTERS.octets(), protocol::ICMPV6, length);
        let sum = !checksum::combine(pseudo, checksum::sum(&message));
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        let length = ((ROUTER_ALERT.len() + message.len()) as u16).to_be_bytes();
        let ethernet = [&multicast(ROUTERS).0[..], &mac.0, &ethertype::IPV6.to_be_bytes()].concat();
        let [high, low] = length;
        let ip = [0x60, 0, 0, 0, high, low, protocol::HOP_BY_HOP, 1];
        [&ethernet, &ip[..], &source, &ROUTERS.octets(), &ROUTER_ALERT, &message].concat()
    };
    groups.chunks(RECORDS_MAX).map(report).collect()
}

pub(crate) fn unsolicited_advertisement(mac: MacAddress, address: Ipv6Addr) -> Option<Vec<u8>> {
    advertisement(mac, (multicast(ALL_NODES), ALL_NODES), address, false)
}

fn advertisement(
    mac: MacAddress,
    to: (MacAddress, Ipv6Addr),
    address: Ipv6Addr,
    is_solicited: bool,
) -> Option<Vec<u8>> {
    let message = Header::new(&NEIGHBOR_ADVERTISEMENT)
        .with("solicited", u128::from(is_solicited))
        .with("override", 1)
        .with("target_address", address.to_bits());
    let message = with_address(message, "target_link_layer_address", mac)?;
    discovery(mac, to, address, message)
}

fn with_address(message: Header, option: &str, mac: MacAddress) -> Option<Header> {
    let option = message.layout.item(option)?;
    Some(message.item(Header::new(option).with("address", number(mac))))
}

fn discovery(
    mac: MacAddress,
    to: (MacAddress, Ipv6Addr),
    source: Ipv6Addr,
    message: Header,
) -> Option<Vec<u8>> {
    let headers = [
        Header::new(&ETHERNET).with("dst", number(to.0)).with("src", number(mac)),
        Header::new(&IPV6)
            .with("src", source.to_bits())
            .with("dst", to.1.to_bits())
            .with("hop_limit", u128::from(HOP_LIMIT)),
        message,
    ];
    let length = length_min(&headers, &Payload::Zeros).ok()?;
    assemble(&headers, &Payload::Zeros, length).ok().map(|assembled| assembled.frame)
}

/// Maps an IPv6 multicast address to its Ethernet group address (RFC 2464 section 7).
fn multicast(group: Ipv6Addr) -> MacAddress {
    let [.., a, b, c, d] = group.octets();
    MacAddress([0x33, 0x33, a, b, c, d])
}

fn number(mac: MacAddress) -> u128 {
    mac.0.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

pub(crate) fn handle_neighbour_discovery(
    mac: MacAddress,
    owns: impl Fn(IpAddr) -> bool,
    from: MacAddress,
    packet: &ipv6::Packet<&[u8]>,
) -> Option<HostEvent> {
    let (message, options) = message_and_options(packet)?;
    let target = message.target();
    match message.kind() {
        icmpv6::NEIGHBOR_SOLICITATION if owns(target.into()) => {
            let source = packet.source();
            // The sender runs duplicate address detection (RFC 4862 section 5.4): answer to all
            // nodes.
            let answer = if source.is_unspecified() {
                unsolicited_advertisement(mac, target)
            } else {
                advertisement(mac, (from, source), target, true)
            };
            answer.map(HostEvent::Reply)
        }
        icmpv6::NEIGHBOR_ADVERTISEMENT if !owns(target.into()) => {
            // Type 2 is the target's address, in one unit of eight bytes.
            let mac = match options {
                [2, 1, a, b, c, d, e, f, ..] => MacAddress([*a, *b, *c, *d, *e, *f]),
                _ => from,
            };
            Some(HostEvent::Neighbour { address: IpAddr::V6(target), mac })
        }
        _ => None,
    }
}

/// Returns the sender's addresses from an ARP packet, whether a request or a reply.
///
/// RFC 826: "If the pair <protocol type, sender protocol address> is already in my translation
/// table, update the sender hardware address field of the entry with the new information in the
/// packet". The RFC does this before it checks the opcode.
pub(crate) fn neighbour_of_arp(packet: &[u8]) -> Option<NeighbourAddress> {
    let packet = arp::Packet::new(packet).ok()?;
    let (address, mac) = (packet.sender_address(), packet.sender_hardware());
    // A probe has no address yet (RFC 5227 section 2.1.1).
    (!address.is_unspecified()).then_some(NeighbourAddress {
        address: address.into(),
        mac,
        overrides: true,
    })
}

/// Returns the addresses that a neighbour discovery message from the Ethernet address `from`
/// announces.
pub(crate) fn neighbour_of_discovery(
    from: MacAddress,
    packet: &ipv6::Packet<&[u8]>,
) -> Option<NeighbourAddress> {
    /// Override flag of an advertisement (RFC 4861 section 4.4).
    const OVERRIDE: u8 = 0x20;
    let (message, options) = message_and_options(packet)?;
    match (message.kind(), options) {
        // Type 1 is the sender's address, in one unit of eight bytes.
        (icmpv6::NEIGHBOR_SOLICITATION, [1, 1, a, b, c, d, e, f, ..])
            if !packet.source().is_unspecified() =>
        {
            let mac = MacAddress([*a, *b, *c, *d, *e, *f]);
            Some(NeighbourAddress { address: packet.source().into(), mac, overrides: true })
        }
        (icmpv6::NEIGHBOR_ADVERTISEMENT, options) => {
            // Type 2 is the target's address.
            let mac = match options {
                [2, 1, a, b, c, d, e, f, ..] => MacAddress([*a, *b, *c, *d, *e, *f]),
                _ => from,
            };
            // RFC 4861 section 7.2.5: "If the Override flag is clear and the supplied link-layer
            // address differs from that in the cache", the entry is not updated.
            let overrides = packet.payload().get(4).is_some_and(|flags| flags & OVERRIDE != 0);
            Some(NeighbourAddress { address: message.target().into(), mac, overrides })
        }
        _ => None,
    }
}

/// Returns a valid solicitation or advertisement and the options after its target address.
///
/// RFC 4861 section 7.1.1, and likewise 7.1.2: "The IP Hop Limit field has a value of 255, i.e.,
/// the packet could not possibly have been forwarded by a router", "ICMP Checksum is valid", "ICMP
/// Code is 0", "ICMP length (derived from the IP length) is 24 or more octets".
fn message_and_options<'a>(
    packet: &'a ipv6::Packet<&[u8]>,
) -> Option<(icmpv6::Packet<&'a [u8]>, &'a [u8])> {
    let payload = packet.payload();
    let message = icmpv6::Packet::new(payload).ok()?;
    let options = payload
        .get(icmpv6::HEADER_LENGTH + 16..)
        .filter(|options| are_options_complete(options))?;
    let is_valid =
        packet.hop_limit() == HOP_LIMIT && message.code() == 0 && is_icmpv6_checksum_valid(packet);
    is_valid.then_some((message, options))
}

/// Whether all options are complete.
///
/// RFC 4861 section 7.1.1, and likewise 7.1.2: "All included options have a length that is greater
/// than zero." Lengths are in units of 8 bytes.
fn are_options_complete(mut options: &[u8]) -> bool {
    while let [_, length, ..] = options {
        let behind = options.get(usize::from(*length) * 8..).filter(|_| *length > 0);
        let Some(behind) = behind else { return false };
        options = behind;
    }
    options.is_empty()
}

/// Whether a frame is ARP or neighbour discovery, for any destination.
pub(crate) fn is_discovery(frame: &[u8]) -> bool {
    let Some((start, kind)) = network_header(frame) else { return false };
    let network = frame.get(start..).unwrap_or_default();
    match kind {
        ethertype::ARP => true,
        ethertype::IPV6 => ipv6::Packet::new(network).is_ok_and(|packet| {
            packet.next_header() == protocol::ICMPV6
                && packet.payload().first().is_some_and(|kind| {
                    (icmpv6::ROUTER_SOLICITATION..=icmpv6::NEIGHBOR_ADVERTISEMENT).contains(kind)
                })
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use wirestorm_wire::prefix::Prefix;

    fn host(last: u8) -> Host {
        let prefix = |text: &str, length| Prefix { address: text.parse().unwrap(), length };
        let addresses = match last {
            1 => vec![prefix("10.0.0.1", 24), prefix("2001:db8::1", 64)],
            _ => vec![prefix("10.0.0.2", 24), prefix("2001:db8::2", 64)],
        };
        Host { mac: MacAddress([2, 0, 0, 0, 0, last]), addresses, ..Host::default() }
    }

    /// Recomputes the checksum of an ICMPv6 message behind Ethernet and IPv6 headers.
    fn fix_checksum(frame: &mut [u8]) {
        const SUM: core::ops::Range<usize> = 14 + 40 + 2..14 + 40 + 4;
        frame[SUM].fill(0);
        let packet = ipv6::Packet::new(&frame[14..]).unwrap();
        let length = packet.payload().len() as u32;
        let addresses = packet.pseudo_header_sum(protocol::ICMPV6, length);
        let sum = !checksum::combine(checksum::sum(packet.payload()), addresses);
        frame[SUM].copy_from_slice(&sum.to_be_bytes());
    }

    #[test]
    fn damaged_messages_are_ignored() {
        let (a, b) = (host(1), host(2));
        let (source, target) = (a.addresses[1].address, b.addresses[1].address);
        let question = a.solicitation(source, target).unwrap();
        let HostEvent::Reply(answer) = b.handle_frame(&question) else { panic!("no answer") };
        // Each byte after the hop limit: both addresses and the message.
        for place in 14 + 8..question.len() {
            let mut damaged = question.clone();
            damaged[place] ^= 0x40;
            assert_eq!(b.handle_frame(&damaged), HostEvent::Ignored, "{place}");
            assert_eq!(b.neighbour_of(&damaged), None, "{place}");
        }
        for place in 14 + 8..answer.len() {
            let mut damaged = answer.clone();
            damaged[place] ^= 0x40;
            assert_eq!(a.handle_frame(&damaged), HostEvent::Ignored, "{place}");
            assert_eq!(a.neighbour_of(&damaged), None, "{place}");
        }
    }

    #[test]
    fn two_hosts_find_each_other() {
        let (a, b) = (host(1), host(2));
        for place in 0..2 {
            let (source, target) = (a.addresses[place].address, b.addresses[place].address);
            let question = a.solicitation(source, target).unwrap();
            let HostEvent::Reply(answer) = b.handle_frame(&question) else { panic!("no answer") };
            assert_eq!(
                a.handle_frame(&answer),
                HostEvent::Neighbour { address: target, mac: b.mac }
            );
            // A third host must not answer the request.
            assert!(!matches!(host(1).handle_frame(&question), HostEvent::Reply(_)));
        }
    }

    #[test]
    fn announcements_update_all_neighbours() {
        let (a, b) = (host(1), host(2));
        for (prefix, announcement) in a.addresses.iter().zip(a.announcements()) {
            let expected = HostEvent::Neighbour { address: prefix.address, mac: a.mac };
            assert_eq!(b.handle_frame(&announcement), expected);
        }
    }

    #[test]
    fn requests_and_replies_give_the_address_of_their_sender() {
        let (a, b) = (host(1), host(2));
        for place in 0..2 {
            let (source, other) = (a.addresses[place].address, b.addresses[place].address);
            let question = a.solicitation(source, other).unwrap();
            let HostEvent::Reply(answer) = b.handle_frame(&question) else { panic!("no answer") };
            let neighbour = |address, mac| Some(NeighbourAddress { address, mac, overrides: true });
            assert_eq!(b.neighbour_of(&question), neighbour(source, a.mac));
            assert_eq!(a.neighbour_of(&answer), neighbour(other, b.mac));
            assert_eq!(b.neighbour_of(&a.announcements()[place]), neighbour(source, a.mac));
            assert_eq!(a.neighbour_of(&question), None, "of itself");
            for length in 0..answer.len() {
                let _ = a.neighbour_of(&answer[..length]);
                let _ = b.neighbour_of(&question[..length.min(question.len())]);
            }
        }
        // An advertisement without the override flag, whose byte follows Ethernet, IPv6 and 4
        // bytes.
        let mut timid = a.announcements().remove(1);
        timid[14 + 40 + 4] &= !0x20;
        assert_eq!(b.neighbour_of(&timid), None, "its checksum no longer matches");
        fix_checksum(&mut timid);
        assert_eq!(b.neighbour_of(&timid).map(|neighbour| neighbour.overrides), Some(false));
    }

    #[test]
    fn messages_with_another_hop_limit_are_ignored() {
        let (a, b) = (host(1), host(2));
        let (source, target) = (a.addresses[1].address, b.addresses[1].address);
        let mut question = a.solicitation(source, target).unwrap();
        question[21] = 254;
        assert_eq!(b.handle_frame(&question), HostEvent::Ignored);
    }

    #[test]
    fn solicitation_with_a_bad_option_length_is_not_answered() {
        let (a, b) = (host(1), host(2));
        let (source, target) = (a.addresses[1].address, b.addresses[1].address);
        let question = a.solicitation(source, target).unwrap();
        // Offset of the option's length: Ethernet, IPv6, the message of 24 bytes, and the option's
        // type. Its value is 1.
        const LENGTH: usize = 14 + 40 + 24 + 1;
        assert_eq!(question[LENGTH], 1);
        for length in [0, 2, 255] {
            let mut question = question.clone();
            question[LENGTH] = length;
            fix_checksum(&mut question);
            assert_eq!(b.handle_frame(&question), HostEvent::Ignored, "{length}");
        }
        assert!(matches!(b.handle_frame(&question), HostEvent::Reply(_)));
    }

    #[test]
    fn duplicate_address_detection_is_answered() {
        let b = host(2);
        let IpAddr::V6(target) = b.addresses[1].address else { panic!("IPv6") };
        let probe = solicitation(host(1).mac, Ipv6Addr::UNSPECIFIED, target).unwrap();
        let HostEvent::Reply(answer) = b.handle_frame(&probe) else { panic!("no answer") };
        assert_eq!(answer[..6], [0x33, 0x33, 0, 0, 0, 1]);
    }

    #[test]
    fn listener_reports_carry_many_groups_each() {
        let address = |last: u32| Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(last));
        let groups: Vec<_> = (1..=100).map(|last| solicited_node(address(last))).collect();
        let mac = MacAddress([2, 0, 0, 0, 0, 9]);
        let link_local = "fe80::9".parse().unwrap();
        for (source, expected) in [(None, Ipv6Addr::UNSPECIFIED), (Some(link_local), link_local)] {
            let frames = listener_reports(mac, source, &groups);
            let mut joined = Vec::new();
            for frame in &frames {
                let outer = ethernet::Frame::new(&frame[..]).unwrap();
                assert_eq!(outer.destination(), MacAddress([0x33, 0x33, 0, 0, 0, 0x16]));
                assert_eq!((outer.source(), outer.ethertype()), (mac, ethertype::IPV6));
                let packet = ipv6::Packet::new(outer.payload()).unwrap();
                assert!(packet.is_whole() && outer.payload().len() <= 1_280);
                assert_eq!((packet.source(), packet.hop_limit()), (expected, 1));
                assert_eq!(packet.destination(), "ff02::16".parse::<Ipv6Addr>().unwrap());
                let extensions = packet.extensions().unwrap();
                assert_eq!((extensions.protocol, extensions.end), (protocol::ICMPV6, 48));
                let message = packet.transport(&extensions);
                let sum = packet.pseudo_header_sum(protocol::ICMPV6, message.len() as u32);
                assert_eq!(checksum::combine(sum, checksum::sum(message)), 0xffff);
                let (head, records) = message.split_at(8);
                assert_eq!((head[0], usize::from(head[7])), (143, records.len() / 20));
                for record in records.chunks(20) {
                    assert_eq!(record[..4], [4, 0, 0, 0]);
                    joined.push(Ipv6Addr::from(<[u8; 16]>::try_from(&record[4..]).unwrap()));
                }
            }
            assert_eq!((frames.len(), joined), (2, groups.clone()));
        }
    }
}
