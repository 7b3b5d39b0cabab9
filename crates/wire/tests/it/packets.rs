//! Packets of every kind, complete, truncated and damaged: dissection, repair and printing.

use proptest::prelude::*;
use wirestorm_base::time::Instant;
use wirestorm_wire::capture::LinkType;
use wirestorm_wire::capture::link::ethernet_conversion;
use wirestorm_wire::checksum::{ChecksumOutcome, Repair, UnchangedReason, repair};
use wirestorm_wire::dissect::{Class, Dissection, dissect};
use wirestorm_wire::packet::{
    arp, ethernet, icmpv4, icmpv6, ipv4, ipv6, llc, mpls, protocol, sctp, tcp, udp, vlan,
};
use wirestorm_wire::print::{HexDump, Summary};

/// Computes a checksum word by word (RFC 1071 section 4.1), independent of the crate's code.
fn checksum(parts: &[&[u8]]) -> u16 {
    let data = parts.concat();
    let mut total = 0_u64;
    for word in data.chunks(2) {
        total += u64::from(word[0]) << 8 | u64::from(word.get(1).copied().unwrap_or_default());
    }
    while total >> 16 != 0 {
        total = (total & 0xffff) + (total >> 16);
    }
    !(total as u16)
}

/// A valid frame with its expected properties.
#[derive(Clone, Debug)]
struct Built {
    frame: Vec<u8>,
    network_offset: usize,
    transport_offset: usize,
    protocol: u8,
    vlan: u16,
    /// Shortest length that contains the whole flow key.
    key_end: usize,
}

#[derive(Clone, Debug)]
enum Encapsulation {
    Vlan(u16, u16),
    Mpls(u8),
    EthernetOverMpls(bool),
    PointToPoint,
}

/// Puts `encapsulations`, outermost first, around `packet` of type `ethertype`.
fn encapsulate(encapsulations: &[Encapsulation], ethertype: u16, packet: &[u8]) -> Vec<u8> {
    const ADDRESSES: [u8; 12] = [0x52, 1, 2, 3, 4, 5, 0x52, 0xf0, 0xf1, 0xf2, 0xf3, 0xf4];
    let (mut kind, mut frame) = (ethertype, packet.to_vec());
    for encapsulation in encapsulations.iter().rev() {
        let behind = kind.to_be_bytes();
        let (outer, header) = match encapsulation {
            Encapsulation::Vlan(outer, control) => {
                (*outer, [control.to_be_bytes(), behind].concat())
            }
            // Only the innermost label is the bottom of the stack.
            Encapsulation::Mpls(labels) => {
                let mut stack = [0, 1, 0, 64].repeat(usize::from(*labels));
                stack.extend([0, 2, 1, 64]);
                (0x8847, stack)
            }
            Encapsulation::EthernetOverMpls(control_word) => {
                let word: &[u8] = if *control_word { &[0, 0, 0x12, 0x34] } else { &[] };
                (0x8847, [&[0, 2, 1, 64], word, &ADDRESSES, &behind].concat())
            }
            Encapsulation::PointToPoint => {
                let ppp = if kind == 0x0800 { 0x21 } else { 0x57 };
                let length = (frame.len() as u16 + 2).to_be_bytes();
                (0x8864, [&[0x11, 0, 0, 7], &length[..], &[0, ppp]].concat())
            }
        };
        frame = [header, frame].concat();
        kind = outer;
    }
    [&ADDRESSES[..], &kind.to_be_bytes(), &frame].concat()
}

/// Returns a transport header of `protocol` with `payload` and no checksum, the length that a flow
/// key needs, and the offset of the checksum.
fn transport(protocol: u8, payload: &[u8]) -> (Vec<u8>, usize, Option<usize>) {
    let length = (payload.len() as u16 + 8).to_be_bytes();
    match protocol {
        protocol::TCP => {
            let header = [
                0x9c, 0x40, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8, 0x60, 0x18, 1, 0, 0, 0, 0, 0, 1, 1, 1, 0,
            ];
            ([&header, payload].concat(), 4, Some(16))
        }
        protocol::UDP => {
            let header = [0x9c, 0x40, 0, 53, length[0], length[1], 0, 0];
            ([&header, payload].concat(), 4, Some(6))
        }
        protocol::ICMP => ([&[8, 0, 0, 0, 0, 7, 0, 1], payload].concat(), 2, Some(2)),
        protocol::ICMPV6 => ([&[128, 0, 0, 0, 0, 7, 0, 1], payload].concat(), 2, Some(2)),
        protocol::SCTP => ([&[7; 12], payload].concat(), 4, None),
        _ => (payload.to_vec(), 0, None),
    }
}

/// RFC 768: "If the computed checksum is zero, it is transmitted as all ones".
fn for_protocol(protocol: u8, computed: u16) -> [u8; 2] {
    if protocol == protocol::UDP && computed == 0 { [0xff; 2] } else { computed.to_be_bytes() }
}

fn build_ipv4(
    encapsulations: &[Encapsulation],
    options: usize,
    protocol: u8,
    payload: &[u8],
) -> Built {
    let (mut segment, key_length, field) = transport(protocol, payload);
    let header_length = 20 + options * 4;
    let total = (header_length + segment.len()) as u16;
    let mut header = vec![0x45 + options as u8, 0, 0, 0, 0, 1, 0x40, 0, 64, protocol, 0, 0];
    header.extend([10, 1, 2, 3, 192, 168, 255, 254]);
    header[2..4].copy_from_slice(&total.to_be_bytes());
    header.resize(header_length, 1);
    let sum = checksum(&[&header]);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    if let Some(at) = field {
        let length = (segment.len() as u16).to_be_bytes();
        let pseudo = [&header[12..20], &[0, protocol], &length].concat();
        let pseudo = if protocol == protocol::ICMP { vec![] } else { pseudo };
        let computed = checksum(&[&pseudo, &segment]);
        segment[at..at + 2].copy_from_slice(&for_protocol(protocol, computed));
    }
    let packet = [header, segment].concat();
    let frame = encapsulate(encapsulations, 0x0800, &packet);
    let network_offset = frame.len() - packet.len();
    let transport_offset = network_offset + header_length;
    let key_end = transport_offset + key_length;
    let vlan = outermost_vlan(encapsulations);
    Built { frame, network_offset, transport_offset, protocol, vlan, key_end }
}

fn build_ipv6(
    encapsulations: &[Encapsulation],
    extensions: &[u8],
    protocol: u8,
    payload: &[u8],
) -> Built {
    let (mut segment, key_length, field) = transport(protocol, payload);
    let mut chain = Vec::new();
    for (index, kind) in extensions.iter().enumerate() {
        let next = extensions.get(index + 1).copied().unwrap_or(protocol);
        match *kind {
            // An atomic fragment is a whole packet.
            protocol::FRAGMENT => chain.extend([next, 0, 0, 0, 0, 0, 0, 9]),
            protocol::AUTHENTICATION => {
                chain.extend([next, 4]);
                chain.extend([0xaa; 22]);
            }
            protocol::ROUTING => chain.extend([next, 0, 3, 0, 0, 0, 0, 0]),
            _ => chain.extend([next, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        }
    }
    let mut header = vec![0x60, 0, 0, 0, 0, 0, extensions.first().copied().unwrap_or(protocol), 64];
    header.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    header.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 2]);
    header[4..6].copy_from_slice(&((chain.len() + segment.len()) as u16).to_be_bytes());
    if let Some(at) = field {
        let length = (segment.len() as u32).to_be_bytes();
        let pseudo = [&header[8..40], &length, &[0, 0, 0, protocol]].concat();
        let computed = checksum(&[&pseudo, &segment]);
        segment[at..at + 2].copy_from_slice(&for_protocol(protocol, computed));
    }
    let transport_length = segment.len();
    let packet = [header, chain, segment].concat();
    let frame = encapsulate(encapsulations, 0x86dd, &packet);
    let network_offset = frame.len() - packet.len();
    let transport_offset = frame.len() - transport_length;
    let key_end = transport_offset + key_length;
    let vlan = outermost_vlan(encapsulations);
    Built { frame, network_offset, transport_offset, protocol, vlan, key_end }
}

fn outermost_vlan(encapsulations: &[Encapsulation]) -> u16 {
    let vlans = encapsulations.iter().filter_map(|encapsulation| match encapsulation {
        Encapsulation::Vlan(_, control) => Some(control & 0x0fff).filter(|vlan| *vlan != 0),
        _ => None,
    });
    vlans.take(1).sum()
}

fn any_encapsulations() -> impl Strategy<Value = Vec<Encapsulation>> {
    let tag = (prop::sample::select(&[0x8100_u16, 0x88a8, 0x9100]), any::<u16>())
        .prop_map(|(kind, control)| Encapsulation::Vlan(kind, control));
    let tags = prop::collection::vec(tag, 0..4);
    let rest = prop::option::of(prop_oneof![
        (0..4_u8).prop_map(Encapsulation::Mpls),
        any::<bool>().prop_map(Encapsulation::EthernetOverMpls),
        Just(Encapsulation::PointToPoint),
    ]);
    (tags, rest).prop_map(|(mut tags, rest)| {
        tags.extend(rest);
        tags
    })
}

fn any_packet() -> impl Strategy<Value = Built> {
    let payload = || prop::collection::vec(any::<u8>(), 0..60);
    let four = (
        any_encapsulations(),
        0..11_usize,
        prop::sample::select(&[protocol::TCP, protocol::UDP, protocol::ICMP, protocol::SCTP, 47]),
        payload(),
    )
        .prop_map(|(around, options, protocol, payload)| {
            build_ipv4(&around, options, protocol, &payload)
        });
    let extension = prop::sample::select(&[
        protocol::HOP_BY_HOP,
        protocol::ROUTING,
        protocol::FRAGMENT,
        protocol::AUTHENTICATION,
        protocol::DESTINATION_OPTIONS,
        protocol::HOST_IDENTITY,
    ]);
    let six = (
        any_encapsulations(),
        prop::collection::vec(extension, 0..5),
        prop::sample::select(&[protocol::TCP, protocol::UDP, protocol::ICMPV6, protocol::SCTP, 47]),
        payload(),
    )
        .prop_map(|(around, extensions, protocol, payload)| {
            build_ipv6(&around, &extensions, protocol, &payload)
        });
    prop_oneof![four, six]
}

fn ethernet(frame: &[u8]) -> Dissection {
    dissect(LinkType::EN10MB, frame)
}

fn show(link_type: LinkType, data: &[u8]) -> String {
    let original_length = data.len() as u32 + 1;
    Summary { timestamp: Instant::MAX, link_type, data, original_length }.to_string()
}

fn any_link() -> impl Strategy<Value = LinkType> {
    prop::sample::select(&[
        LinkType::EN10MB,
        LinkType::RAW,
        LinkType::NULL,
        LinkType::LOOP,
        LinkType::LINUX_SLL,
        LinkType::LINUX_SLL2,
        LinkType::PPP,
        LinkType::PPP_PPPD,
        LinkType::PPP_ETHER,
        LinkType::C_HDLC,
        LinkType::MPLS,
        LinkType::JUNIPER_ETHER,
        LinkType::IEEE802_11,
        LinkType::USER3,
    ])
}

/// Constructs every view of `data`, and calls its getters and setters.
macro_rules! exercise {
    ($data:expr; $($view:path { $($read:ident)* ; $($write:ident($($value:expr)?))* })*) => {$(
        if let Ok(mut view) = <$view>::new($data.to_vec()) {
            $(let _ = view.$read();)*
            $(view.$write($($value)?);)*
            $(let _ = view.$read();)*
            assert_eq!(view.into_inner().len(), $data.len());
        }
    )*};
}

proptest! {
    #[test]
    fn a_packet_is_found_in_any_encapsulation(built in any_packet()) {
        let found = ethernet(&built.frame);
        let key = found.flow().copied();
        let key = key.ok_or_else(|| TestCaseError::fail(format!("{found:?}")))?;
        prop_assert_eq!(usize::from(found.network_offset), built.network_offset);
        prop_assert_eq!(usize::from(found.transport_offset), built.transport_offset);
        prop_assert_eq!((found.protocol, key.protocol()), (built.protocol, built.protocol));
        prop_assert_eq!(key.vlan(), built.vlan);
    }

    #[test]
    fn a_truncated_packet_has_the_same_flow_or_none(built in any_packet()) {
        let full_class = ethernet(&built.frame).class;
        for length in 0..=built.frame.len() {
            let found = ethernet(&built.frame[..length]);
            prop_assert!(usize::from(found.network_offset) <= length);
            prop_assert!(usize::from(found.transport_offset) <= length);
            if length >= built.key_end {
                prop_assert_eq!(found.class, full_class, "{} bytes", length);
            } else {
                prop_assert_ne!(found.class, full_class, "{} bytes", length);
            }
            show(LinkType::EN10MB, &built.frame[..length]);
            repair(&mut built.frame[..length].to_vec(), &found);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(link in any_link(), data in prop::collection::vec(any::<u8>(), 0..300)) {
        let found = dissect(link, &data);
        prop_assert!(usize::from(found.network_offset) <= data.len());
        prop_assert!(usize::from(found.transport_offset) <= data.len());
        if let Ok(conversion) = ethernet_conversion(link, &data) {
            prop_assert!(conversion.strip <= data.len());
        }
        show(link, &data);
        HexDump(&data).to_string();
        let mut repaired = data.clone();
        repair(&mut repaired, &found);
        prop_assert_eq!(repaired.len(), data.len());
    }

    #[test]
    fn a_damaged_packet_never_panics(
        built in any_packet(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut frame = built.frame;
        for (place, byte) in changes {
            *place.get_mut(&mut frame) = byte;
        }
        let found = ethernet(&frame);
        show(LinkType::EN10MB, &frame);
        repair(&mut frame, &found);
    }

    #[test]
    fn a_view_of_arbitrary_bytes_never_panics(data in prop::collection::vec(any::<u8>(), 0..80)) {
        exercise! { data;
            ethernet::Frame<Vec<u8>> { destination source ethertype payload; set_ethertype(1) }
            vlan::Tag<Vec<u8>> { identifier priority drop_eligible ethertype payload;
                set_identifier(0xffff) set_priority(0xff) set_drop_eligible(true) }
            mpls::Entry<Vec<u8>> { label traffic_class is_bottom time_to_live payload;
                set_label(u32::MAX) set_bottom(true) }
            arp::Packet<Vec<u8>> { operation sender_hardware target_address; set_operation(2) }
            ipv4::Packet<Vec<u8>> { header_length is_whole is_fragment options payload
                computed_checksum; fill_checksum() set_total_length(0) }
            ipv6::Packet<Vec<u8>> { is_whole extensions payload traffic_class flow_label;
                set_flow_label(u32::MAX) set_traffic_class(1) set_payload_length(0) }
            tcp::Packet<Vec<u8>> { header_length flags options payload;
                set_flags(tcp::Flags::SYN | tcp::Flags::ACK) }
            udp::Packet<Vec<u8>> { length payload; set_length(3) }
            sctp::Packet<Vec<u8>> { verification_tag payload; set_checksum(0) }
            icmpv4::Packet<Vec<u8>> { kind code rest payload; set_sequence(1) }
            icmpv6::Packet<Vec<u8>> { kind code target payload; set_identifier(1) }
            llc::Header<Vec<u8>> { destination source control ethertype; set_control(3) }
        }
    }

    #[test]
    fn wrong_checksums_are_corrected_and_nothing_else_changes(
        built in any_packet(), wrong: [u8; 4], padding in 0..20_usize,
    ) {
        let mut frame = built.frame.clone();
        frame.resize(frame.len() + padding, 0xee);
        let good = frame.clone();
        let found = ethernet(&frame);
        let is_ipv4 = found.ethertype == 0x0800;
        let field = match built.protocol {
            protocol::TCP => Some(16),
            protocol::UDP => Some(6),
            protocol::ICMP | protocol::ICMPV6 => Some(2),
            _ => None,
        };
        let expected = |changed| if changed { ChecksumOutcome::Repaired } else { ChecksumOutcome::Correct };
        let mut network = ChecksumOutcome::Absent;
        if is_ipv4 {
            let at = built.network_offset + 10;
            frame[at..at + 2].copy_from_slice(&wrong[..2]);
            network = expected(frame[at..at + 2] != good[at..at + 2]);
        }
        let mut transport =
            if built.protocol == protocol::SCTP { ChecksumOutcome::Unchanged(UnchangedReason::UnsupportedProtocol) } else { ChecksumOutcome::Absent };
        // Zero in UDP would mean no checksum.
        if let Some(field) = field.filter(|_| wrong[2..] != [0, 0]) {
            let at = built.transport_offset + field;
            frame[at..at + 2].copy_from_slice(&wrong[2..]);
            transport = expected(frame[at..at + 2] != good[at..at + 2]);
        } else if field.is_some() {
            transport = ChecksumOutcome::Correct;
        }
        prop_assert_eq!(repair(&mut frame, &found), Repair { network, transport });
        prop_assert_eq!(frame, good);
    }
}

#[test]
fn a_udp_datagram_without_a_checksum_is_unchanged_only_over_ipv4() {
    let mut four = build_ipv4(&[], 0, protocol::UDP, b"data");
    let at = four.transport_offset + 6;
    four.frame[at..at + 2].fill(0);
    let found = ethernet(&four.frame);
    assert_eq!(repair(&mut four.frame, &found).transport, ChecksumOutcome::Absent);
    assert_eq!(four.frame[at..at + 2], [0, 0]);

    let good = build_ipv6(&[], &[], protocol::UDP, b"data");
    let mut six = good.clone();
    let at = six.transport_offset + 6;
    six.frame[at..at + 2].fill(0);
    let found = ethernet(&six.frame);
    assert_eq!(repair(&mut six.frame, &found).transport, ChecksumOutcome::Repaired);
    assert_eq!(six.frame, good.frame);
}

#[test]
fn a_udp_checksum_of_zero_is_sent_as_all_ones() {
    // The last word makes the sum all ones.
    let built = build_ipv4(&[], 0, protocol::UDP, &[0, 0]);
    let at = built.transport_offset + 6;
    let rest = [built.frame[at], built.frame[at + 1]];
    let mut built = build_ipv4(&[], 0, protocol::UDP, &rest);
    assert_eq!(built.frame[at..at + 2], [0xff, 0xff]);
    built.frame[at] = 1;
    let found = ethernet(&built.frame);
    assert_eq!(repair(&mut built.frame, &found).transport, ChecksumOutcome::Repaired);
    assert_eq!(built.frame[at..at + 2], [0xff, 0xff]);
}

#[test]
fn a_udp_checksum_uses_the_udp_length_if_the_ip_packet_is_longer() {
    // As in Wireshark and Linux, the pseudo-header and the sum use the UDP length.
    let good = build_ipv4(&[], 0, protocol::UDP, b"data");
    let mut longer = good.clone();
    longer.frame.extend([0xff; 6]);
    let total = (longer.frame.len() - 14) as u16;
    longer.frame[16..18].copy_from_slice(&total.to_be_bytes());
    let at = longer.transport_offset + 6;
    longer.frame[at] ^= 0x40;
    let found = ethernet(&longer.frame);
    assert_eq!(repair(&mut longer.frame, &found).transport, ChecksumOutcome::Repaired);
    assert_eq!(longer.frame[at..at + 2], good.frame[at..at + 2]);
    for length in [7_u16, 19] {
        longer.frame[at - 2..at].copy_from_slice(&length.to_be_bytes());
        let left = ChecksumOutcome::Unchanged(UnchangedReason::Incomplete);
        assert_eq!(repair(&mut longer.frame, &found).transport, left);
    }
}

#[test]
fn incomplete_packets_keep_their_transport_checksum() {
    let left = |frame: &[u8], reason| {
        let mut repaired = frame.to_vec();
        let found = ethernet(frame);
        assert_eq!(repair(&mut repaired, &found).transport, ChecksumOutcome::Unchanged(reason));
        assert_eq!(repaired[34..], frame[34..]);
    };
    let built = build_ipv4(&[], 0, protocol::TCP, b"payload");
    left(&built.frame[..built.frame.len() - 1], UnchangedReason::Incomplete);
    for fragment in [[0x20, 0], [0, 1]] {
        let mut frame = built.frame.clone();
        frame[20..22].copy_from_slice(&fragment);
        left(&frame, UnchangedReason::Fragment);
    }
    let routed = build_ipv6(&[], &[protocol::ROUTING], protocol::TCP, b"payload");
    let mut frame = routed.frame.clone();
    frame[14 + 40 + 3] = 1;
    left(&frame, UnchangedReason::Routed);
    let mut fragment = build_ipv6(&[], &[protocol::FRAGMENT], protocol::UDP, b"payload").frame;
    fragment[14 + 40 + 3] = 1;
    left(&fragment, UnchangedReason::Fragment);
    let lite = build_ipv4(&[], 0, protocol::UDP_LITE, &[0; 8]);
    left(&lite.frame, UnchangedReason::UnsupportedProtocol);
}

#[test]
fn the_header_checksum_of_a_truncated_packet_is_corrected() {
    let mut built = build_ipv4(&[], 2, protocol::TCP, &[0; 99]);
    let good = built.frame.clone();
    built.frame.truncate(14 + 28);
    built.frame[24] ^= 0xff;
    let found = ethernet(&built.frame);
    assert_eq!(found.class, Class::Invalid);
    let expected = Repair {
        network: ChecksumOutcome::Repaired,
        transport: ChecksumOutcome::Unchanged(UnchangedReason::Incomplete),
    };
    assert_eq!(repair(&mut built.frame, &found), expected);
    assert_eq!(built.frame, good[..14 + 28]);
}

#[test]
fn views_read_and_write_all_fields() {
    let mut built = build_ipv4(&[Encapsulation::Vlan(0x8100, 0xb007)], 0, protocol::TCP, b"hello");
    let mut frame = ethernet::Frame::new(&mut built.frame).unwrap();
    frame.set_source("02:00:00:00:00:09".parse().unwrap());
    assert_eq!(frame.destination().to_string(), "52:01:02:03:04:05");
    assert_eq!(built.frame[6..12], [2, 0, 0, 0, 0, 9]);

    let mut tag = vlan::Tag::new(&mut built.frame[14..]).unwrap();
    assert_eq!((tag.identifier(), tag.priority(), tag.drop_eligible()), (7, 5, true));
    tag.set_identifier(0xf123);
    tag.set_priority(2);
    tag.set_drop_eligible(false);
    assert_eq!((tag.control(), tag.ethertype()), (0x4123, 0x0800));

    let mut packet = ipv4::Packet::new(&mut built.frame[18..]).unwrap();
    assert!(packet.dont_fragment() && !packet.is_fragment() && packet.is_whole());
    assert_eq!((packet.total_length(), packet.time_to_live()), (49, 64));
    assert_eq!(packet.checksum(), packet.computed_checksum());
    packet.set_time_to_live(3);
    packet.set_source([127, 0, 0, 1].into());
    packet.fill_checksum();
    assert_eq!(checksum(&[&built.frame[18..38]]), 0);

    let mut segment = tcp::Packet::new(&mut built.frame[38..]).unwrap();
    assert_eq!((segment.source_port(), segment.destination_port()), (40_000, 80));
    assert_eq!((segment.sequence(), segment.acknowledgement()), (0x0102_0304, 0x0506_0708));
    assert_eq!((segment.header_length(), segment.options()), (24, &[1, 1, 1, 0][..]));
    assert_eq!((segment.flags().to_string(), segment.payload()), ("P.".into(), &b"hello"[..]));
    segment.set_flags(tcp::Flags::SYN | tcp::Flags::ECE);
    assert_eq!(built.frame[38 + 13], 0x42);

    let mut six = build_ipv6(&[], &[], protocol::UDP, b"hi").frame;
    let mut packet = ipv6::Packet::new(&mut six[14..]).unwrap();
    packet.set_traffic_class(0xab);
    packet.set_flow_label(0xfff1_2345);
    packet.set_hop_limit(9);
    assert_eq!(six[14..22], [0x6a, 0xb1, 0x23, 0x45, 0, 10, 17, 9]);

    let mut label = mpls::Entry::new([0; 4]).unwrap();
    label.set_label(0xabcde);
    label.set_bottom(true);
    label.set_time_to_live(7);
    assert_eq!(label.into_inner(), [0xab, 0xcd, 0xe1, 7]);
}

#[test]
fn errors_of_views_have_the_found_and_expected_values() {
    let error = udp::Packet::new(&[0; 7][..]).unwrap_err();
    assert_eq!(error.to_string(), "UDP: 7 bytes, expected at least 8");
    let error = ipv4::Packet::new(&[0x65; 40][..]).unwrap_err();
    assert_eq!(error.to_string(), "IPv4: version 6, expected 4");
    let error = tcp::Packet::new(&[0x40; 20][..]).unwrap_err();
    assert_eq!(error.to_string(), "TCP: a header length of 16 bytes, expected at least 20");
    let error = arp::Packet::new(&[1; 28][..]).unwrap_err();
    assert_eq!(error.to_string(), "ARP: addresses of 1 and 1 bytes, expected 6 and 4");
}
