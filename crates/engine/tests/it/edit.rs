//! Effect of each edit on hand-made frames.

use std::collections::BTreeSet;
use std::net::IpAddr;

use wirestorm_engine::edit::{
    EditOptions, EditResult, Editor, FrameFacts, Fuzz, MacSeed, MacSubstitution, PortReplacement,
    Prefix, PrefixReplacement, TimeToLiveEdit, TruncatedFrameAction, VlanChange, VlanEdit, VlanTag,
};
use wirestorm_wire::packet::{MacAddress, ethertype};

use crate::common::build::{
    CLIENT, CLIENT6, MACS, SERVER, SERVER6, echo, frame, ipv4, ipv6, kind, received, tag, tcp, udp,
    with_checksum,
};
use crate::common::{edited, facts};

const NETWORK: usize = 14;
const TRANSPORT: usize = 34;
const TRANSPORT6: usize = 54;

/// Returns a TCP frame over IPv4 or IPv6.
fn tcp_frame(is_ipv6: bool) -> Vec<u8> {
    let segment = tcp(0x18, b"hello, world", is_ipv6);
    let packet = if is_ipv6 { ipv6(6, &[], &segment) } else { ipv4(6, &[], 0, &segment) };
    frame(&[], kind(is_ipv6), &packet)
}

fn udp_frame(payload: &[u8]) -> Vec<u8> {
    frame(&[], ethertype::IPV4, &ipv4(17, &[], 0, &udp(payload, false)))
}

/// Edits a frame as a packet of the primary side.
fn after(options: EditOptions, frame: &[u8]) -> Vec<u8> {
    edited(&Editor::new(&options), frame, frame.len(), facts(frame)).expect("a frame")
}

/// Edits a frame as a packet of the secondary side.
fn after_secondary(options: EditOptions, frame: &[u8]) -> Vec<u8> {
    let facts = FrameFacts { secondary: true, ..facts(frame) };
    edited(&Editor::new(&options), frame, frame.len(), facts).expect("a frame")
}

fn with_bytes(frame: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[at..at + bytes.len()].copy_from_slice(bytes);
    frame
}

/// Asserts that only the bytes at `changed` differ.
#[track_caller]
fn assert_changed(before: &[u8], made: &[u8], changed: &[usize]) {
    assert_eq!(before.len(), made.len());
    let differing: Vec<usize> = (0..made.len()).filter(|at| before[*at] != made[*at]).collect();
    assert!(differing.iter().all(|at| changed.contains(at)), "{differing:?}, not {changed:?}");
}

#[track_caller]
fn assert_right(frame: &[u8], network: usize) {
    let (header, transport) = received(frame, network);
    assert_ne!(header, Some(false), "the header's checksum");
    assert_eq!(transport, Some(true), "the transport's checksum");
}

fn half(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

fn prefix(text: &str, length: u8) -> Prefix {
    Prefix { address: text.parse::<IpAddr>().expect("an address"), length }
}

fn mapping(from: (&str, u8), to: (&str, u8)) -> Vec<PrefixReplacement> {
    vec![PrefixReplacement { from: prefix(from.0, from.1), to: prefix(to.0, to.1) }]
}

fn mac(last: u8) -> MacAddress {
    MacAddress([2, 0xee, 0, 0, 0, last])
}

#[test]
fn default_options_change_nothing() {
    let editor = Editor::new(&EditOptions::default());
    assert!(editor.is_identity());
    let before = tcp_frame(false);
    assert_eq!(edited(&editor, &before, before.len(), facts(&before)), Some(before));
    assert!(!Editor::new(&EditOptions { remove_fcs: true, ..Default::default() }).is_identity());
}

#[test]
fn ethernet_addresses_follow_the_side() {
    let options = EditOptions {
        destination_mac: Some([mac(1), mac(2)]),
        source_mac: Some([mac(3), mac(4)]),
        ..EditOptions::default()
    };
    let before = tcp_frame(false);
    let made = after(options.clone(), &before);
    assert_eq!((&made[..6], &made[6..12]), (&mac(1).0[..], &mac(3).0[..]));
    let made = after_secondary(options, &before);
    assert_eq!((&made[..6], &made[6..12]), (&mac(2).0[..], &mac(4).0[..]));
    assert_eq!(made[12..], before[12..]);
}

#[test]
fn multicast_macs_stay_on_request_and_ip_groups_always() {
    let options = |keep_group_macs| EditOptions {
        destination_mac: Some([mac(1); 2]),
        keep_group_macs,
        ..EditOptions::default()
    };
    let cases: [(&[u8; 6], bool, bool); 4] = [
        (&[0xff; 6], true, false),
        (&[1, 0x80, 0xc2, 0, 0, 0], true, false),
        (&[1, 0, 0x5e, 0, 0, 1], false, false),
        (&[0x33, 0x33, 0, 0, 0, 1], false, false),
    ];
    for (group, becomes_host, becomes_host_if_kept) in cases {
        let before = with_bytes(&tcp_frame(false), 0, group);
        let made = after(options(false), &before);
        assert_eq!(made[..6] == mac(1).0, becomes_host, "{group:02x?}");
        let made = after(options(true), &before);
        assert_eq!(made[..6] == mac(1).0, becomes_host_if_kept, "{group:02x?}, kept");
    }
}

#[test]
fn mac_seed_maps_hosts_consistently_and_keeps_groups_and_prefixes() {
    let options = |keep_bytes| EditOptions {
        mac_seed: Some(MacSeed { seed: 42, keep_bytes }),
        ..EditOptions::default()
    };
    let there = tcp_frame(false);
    let back = with_bytes(&with_bytes(&there, 0, &MACS[6..]), 6, &MACS[..6]);
    let (made_there, made_back) = (after(options(0), &there), after(options(0), &back));
    assert_eq!(made_there[..6], made_back[6..12]);
    assert_eq!(made_there[6..12], made_back[..6]);
    assert_ne!(made_there[..6], there[..6]);
    assert_eq!(made_there[0] & 1, 0, "a host stays a host");
    let made = after(options(3), &there);
    assert_eq!(made[..3], there[..3]);
    assert_ne!(made[3..6], there[3..6]);
    let group = with_bytes(&there, 0, &[0xff; 6]);
    assert_eq!(after(options(0), &group)[..6], [0xff; 6]);
}

#[test]
fn mac_substitution_applies_inside_mpls() {
    let inner = tcp_frame(false);
    // Two labels and a control word.
    let before =
        frame(&[], 0x8847, &[&[0, 1, 0x20, 255, 0, 1, 1, 255, 0, 0, 0, 0][..], &inner].concat());
    let old = MacAddress([2, 0, 0, 0, 0, 1]);
    let substituted_macs = vec![
        MacSubstitution { from: old, to: mac(9) },
        // A substitution does not apply to its own result.
        MacSubstitution { from: mac(9), to: mac(8) },
    ];
    let made = after(EditOptions { substituted_macs, ..EditOptions::default() }, &before);
    assert_eq!((&made[6..12], &made[32..38]), (&mac(9).0[..], &mac(9).0[..]));
    assert_changed(&before, &made, &[7, 11, 33, 37]);
}

#[test]
fn tags_are_pushed_and_later_edits_still_apply() {
    let tag_pushed = VlanTag {
        ethertype: ethertype::SERVICE_VLAN,
        identifier: 0x0abc,
        priority: 5,
        drop_eligible: true,
    };
    let options = EditOptions {
        vlan: Some(VlanEdit::Add(tag_pushed)),
        type_of_service: Some(0x50),
        tcp_sequence_seed: Some(1),
        ..EditOptions::default()
    };
    assert_eq!(Editor::new(&options).frame_length_max_growth(), 4);
    let before = frame(&tag(0x8100, 7), ethertype::IPV4, &ipv4(6, &[], 0, &tcp(0x10, b"", false)));
    let made = after(options, &before);
    assert_eq!(made[12..22], [0x88, 0xa8, 0xba, 0xbc, 0x81, 0, 0, 7, 8, 0]);
    assert_eq!(made[NETWORK + 8 + 1], 0x50);
    assert_right(&made, NETWORK + 8);
    assert_eq!(made.len(), before.len() + 4);
}

#[test]
fn tag_is_not_pushed_into_a_full_buffer() {
    let tag_pushed =
        VlanTag { ethertype: 0x8100, identifier: 1, priority: 0, drop_eligible: false };
    let vlan = Some(VlanEdit::Add(tag_pushed));
    let editor = Editor::new(&EditOptions { vlan, ..EditOptions::default() });
    let before = tcp_frame(false);
    let mut buffer = before.clone();
    let edited = editor.apply(&mut buffer, before.len(), before.len(), facts(&before));
    assert_eq!((edited, &buffer), (EditResult::Length(before.len()), &before));
}

#[test]
fn outer_or_all_tags_are_removed() {
    let packet = ipv4(6, &[], 0, &tcp(0x10, b"data", false));
    let tags = [tag(0x88a8, 5), tag(0x8100, 6)].concat();
    let before = frame(&tags, ethertype::IPV4, &packet);
    let options = |vlan| EditOptions {
        vlan: Some(vlan),
        time_to_live: Some(TimeToLiveEdit::Set(64)),
        ..EditOptions::default()
    };
    let made = after(options(VlanEdit::DeleteOuter), &before);
    assert_eq!(made, frame(&tag(0x8100, 6), ethertype::IPV4, &packet));
    let made = after(options(VlanEdit::DeleteAll), &before);
    assert_eq!(made, frame(&[], ethertype::IPV4, &packet));
    assert_eq!(after(options(VlanEdit::DeleteOuter), &made), made, "no tag");
}

#[test]
fn tags_are_changed_in_place_field_by_field() {
    let tags = [tag(0x88a8, 0xf123), tag(0x8100, 0x0456)].concat();
    let before = frame(&tags, ethertype::IPV4, &ipv4(6, &[], 0, &tcp(0x10, b"", false)));
    let set = |vlan| after(EditOptions { vlan: Some(vlan), ..EditOptions::default() }, &before);
    let identifier = VlanChange { identifier: Some(42), ..VlanChange::default() };
    assert_eq!(set(VlanEdit::SetOuter(identifier)), with_bytes(&before, 14, &[0xf0, 42]));
    assert_eq!(set(VlanEdit::SetInner(identifier)), with_bytes(&before, 18, &[0x00, 42]));
    let rest = VlanChange {
        ethertype: Some(0x8100),
        priority: Some(1),
        drop_eligible: Some(false),
        identifier: None,
    };
    let expected = with_bytes(&before, 12, &[0x81, 0x00, 0x21, 0x23]);
    assert_eq!(set(VlanEdit::SetOuter(rest)), expected);
}

#[test]
fn time_to_live_stays_within_its_bounds() {
    for (edit, expected) in [
        (TimeToLiveEdit::Set(0), 0),
        (TimeToLiveEdit::Add(10), 74),
        (TimeToLiveEdit::Add(200), 255),
        (TimeToLiveEdit::Subtract(10), 54),
        (TimeToLiveEdit::Subtract(64), 1),
    ] {
        let options = EditOptions { time_to_live: Some(edit), ..EditOptions::default() };
        let before = tcp_frame(false);
        let made = after(options.clone(), &before);
        assert_eq!(made[NETWORK + 8], expected, "{edit:?}");
        assert_changed(&before, &made, &[22, 24, 25]);
        assert_right(&made, NETWORK);
        let before = tcp_frame(true);
        assert_eq!(after(options, &before), with_bytes(&before, NETWORK + 7, &[expected]));
    }
}

#[test]
fn ip_versions_have_separate_class_and_label_edits() {
    let options = EditOptions {
        type_of_service: Some(0xb8),
        traffic_class: Some(0x2e),
        flow_label: Some(0xabcde),
        ..EditOptions::default()
    };
    let before = tcp_frame(false);
    let made = after(options.clone(), &before);
    assert_eq!(made[NETWORK + 1], 0xb8);
    assert_changed(&before, &made, &[15, 24, 25]);
    assert_right(&made, NETWORK);
    let before = tcp_frame(true);
    let expected = with_bytes(&before, NETWORK, &[0x62, 0xea, 0xbc, 0xde]);
    assert_eq!(after(options, &before), expected);
}

#[test]
fn both_ports_are_mapped_by_the_first_match() {
    let port_map = vec![
        PortReplacement { first: 80, last: 80, to: 8080 },
        PortReplacement { first: 1, last: 1000, to: 49_148 },
        PortReplacement { first: 0xc001, last: 0xffff, to: 5 },
    ];
    let options = EditOptions { port_map, ..EditOptions::default() };
    for is_ipv6 in [false, true] {
        let at = if is_ipv6 { TRANSPORT6 } else { TRANSPORT };
        let made = after(options.clone(), &tcp_frame(is_ipv6));
        assert_eq!((half(&made, at), half(&made, at + 2)), (5, 8080));
        assert_right(&made, NETWORK);
    }
    let made = after(options, &udp_frame(b"query"));
    assert_eq!((half(&made, TRANSPORT), half(&made, TRANSPORT + 2)), (5, 49_148));
    assert_right(&made, NETWORK);
}

#[test]
fn packets_without_tcp_or_udp_ports_stay_unchanged() {
    let port_map = vec![PortReplacement { first: 0, last: 65_535, to: 1 }];
    let options = EditOptions { port_map, tcp_sequence_seed: Some(3), ..EditOptions::default() };
    let segment = tcp(0x10, b"0123456789abcdef", false);
    for packet in [
        ipv4(1, &[], 0, &echo(b"ping", false)),
        // The checksum of SCTP is a CRC.
        ipv4(132, &[], 0, &segment),
        // Later TCP fragment.
        ipv4(6, &[], 2, &segment),
    ] {
        let before = frame(&[], ethertype::IPV4, &packet);
        assert_eq!(after(options.clone(), &before), before);
    }
    // Later IPv6 fragment.
    let before = frame(&[], ethertype::IPV6, &ipv6(44, &[6, 0, 0, 8, 0, 0, 0, 1], &segment));
    assert_eq!(after(options, &before), before);
}

#[test]
fn udp_without_checksum_stays_without() {
    let port_map = vec![PortReplacement { first: 53, last: 53, to: 5353 }];
    let options = EditOptions { port_map, address_seed: Some(5), ..EditOptions::default() };
    let before = with_bytes(&udp_frame(b"query"), TRANSPORT + 6, &[0, 0]);
    let made = after(options.clone(), &before);
    assert_eq!(half(&made, TRANSPORT + 6), 0);
    assert_eq!(received(&made, NETWORK).0, Some(true));
    let fixed = after(EditOptions { fix_checksums: true, ..options }, &before);
    assert_eq!(fixed, made);
}

#[test]
fn sequence_numbers_move_and_acknowledgements_with_ack() {
    let options = EditOptions { tcp_sequence_seed: Some(42), ..EditOptions::default() };
    let numbers = |flags| {
        let packet = ipv4(6, &[], 0, &tcp(flags, b"", false));
        let made = after(options.clone(), &frame(&[], ethertype::IPV4, &packet));
        assert_right(&made, NETWORK);
        let number =
            |at: usize| u32::from_be_bytes(made[TRANSPORT + at..][..4].try_into().unwrap());
        (number(4), number(8))
    };
    // Numbers of the frame, and the offset that the seed implies.
    let (sequence, acknowledgement, offset) = (0xffff_fff0_u32, 9, 0x7eef_51b5);
    assert_eq!(numbers(0x02), (sequence.wrapping_add(offset), acknowledgement));
    assert_eq!(numbers(0x12), (sequence.wrapping_add(offset), acknowledgement + offset));
}

#[test]
fn prefix_mapping_keeps_host_bits() {
    let source = mapping(("10.0.0.0", 8), ("172.16.0.0", 12));
    let destination = mapping(("192.0.2.0", 24), ("198.51.100.0", 24));
    let options = EditOptions {
        source_addresses: [source, vec![]],
        destination_addresses: [destination, vec![]],
        ..EditOptions::default()
    };
    let before = tcp_frame(false);
    let made = after(options.clone(), &before);
    assert_eq!(made[26..34], [172, 16, 0, 1, 198, 51, 100, 7]);
    assert_right(&made, NETWORK);
    assert_eq!(after_secondary(options, &before), before);
}

#[test]
fn first_matching_prefix_of_the_same_version_applies() {
    let mut source = mapping(("::", 0), ("2001:db8::", 128));
    source.extend(mapping(("10.0.0.0", 24), ("10.9.9.9", 32)));
    source.extend(mapping(("10.0.0.0", 8), ("11.0.0.0", 8)));
    source.extend(mapping(("10.0.0.0", 8), ("2001:db8::", 32)));
    let source_addresses = [source.clone(), source];
    let options = EditOptions { source_addresses, ..EditOptions::default() };
    let made = after(options.clone(), &tcp_frame(false));
    assert_eq!((&made[26..30], &made[30..34]), (&[10, 9, 9, 9][..], &SERVER[..]));
    let made = after(options, &tcp_frame(true));
    assert_eq!(made[22..38], [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(made[38..54], SERVER6);
    assert_right(&made, NETWORK);
}

#[test]
fn prefix_mapping_applies_to_arp() {
    let mut packet = vec![0, 1, 8, 0, 6, 4, 0, 1];
    packet.extend([&MACS[6..], &CLIENT, &[0; 6], &SERVER].concat());
    let before = frame(&[], ethertype::ARP, &packet);
    let options = EditOptions {
        source_addresses: [mapping(("10.0.0.0", 8), ("11.0.0.0", 8)), vec![]],
        destination_addresses: [mapping(("192.0.2.0", 24), ("198.51.100.0", 24)), vec![]],
        ..EditOptions::default()
    };
    let expected = with_bytes(&with_bytes(&before, 28, &[11, 0, 0, 1]), 38, &[198, 51, 100, 7]);
    assert_eq!(after(options, &before), expected);
    let seed = EditOptions { address_seed: Some(55), ..EditOptions::default() };
    let (arp, ip) = (after(seed.clone(), &before), after(seed, &tcp_frame(false)));
    assert_eq!((&arp[28..32], &arp[38..42]), (&ip[26..30], &ip[30..34]));
    // A truncated ARP request stays unchanged.
    let cut = &before[..40];
    let seed = EditOptions { address_seed: Some(55), ..EditOptions::default() };
    assert_eq!(after(seed, cut), cut);
}

#[test]
fn address_seed_keeps_conversations_and_unicast() {
    let options = EditOptions { address_seed: Some(1234), ..EditOptions::default() };
    for is_ipv6 in [false, true] {
        let there = tcp_frame(is_ipv6);
        let (at, size) = if is_ipv6 { (22, 16) } else { (26, 4) };
        let mut back = there.clone();
        back[at..at + size].copy_from_slice(&there[at + size..at + 2 * size]);
        back[at + size..at + 2 * size].copy_from_slice(&there[at..at + size]);
        let (made_there, made_back) =
            (after(options.clone(), &there), after(options.clone(), &back));
        assert_eq!(made_there[at..at + size], made_back[at + size..at + 2 * size]);
        assert_ne!(made_there[at..at + size], there[at..at + size]);
        assert_right(&made_there, NETWORK);
    }
    for first in 0..=255 {
        let before = with_bytes(&tcp_frame(false), 26, &[first]);
        let made = after(options.clone(), &before);
        assert_eq!(first >= 224, made[26] >= 224, "{first} became {}", made[26]);
    }
}

#[test]
fn ip_groups_stay_on_request_or_update_their_mac() {
    let group = with_bytes(
        &with_bytes(&tcp_frame(false), 30, &[239, 129, 2, 3]),
        0,
        &[1, 0, 0x5e, 1, 2, 3],
    );
    let group = after(EditOptions { fix_checksums: true, ..EditOptions::default() }, &group);
    let all_to = mapping(("0.0.0.0", 0), ("239.200.8.9", 32));
    let options = |keep_group_addresses| EditOptions {
        destination_addresses: [all_to.clone(), all_to.clone()],
        keep_group_addresses,
        ..EditOptions::default()
    };
    assert_eq!(after(options(true), &group), group);
    let made = after(options(false), &group);
    assert_eq!((&made[..6], &made[30..34]), (&[1, 0, 0x5e, 72, 8, 9][..], &[239, 200, 8, 9][..]));
    assert_right(&made, NETWORK);
    let host = tcp_frame(false);
    assert_eq!(after(options(false), &host)[..6], host[..6], "a host's frame stays a host's");
}

#[test]
fn checksum_of_a_routed_packet_covers_its_final_destination() {
    // Type 0 with one segment left: the routing header holds the final destination.
    let mut routing = vec![6, 2, 0, 1, 0, 0, 0, 0];
    routing.extend(SERVER6);
    let mut packet = ipv6(43, &routing, &tcp(0x10, b"routed", true));
    packet[24..40].copy_from_slice(&CLIENT6);
    let before = frame(&[], ethertype::IPV6, &packet);
    let all_to = mapping(("::", 0), ("fd00::99", 128));
    let options = EditOptions {
        destination_addresses: [all_to.clone(), all_to.clone()],
        ..EditOptions::default()
    };
    let made = after(options.clone(), &before);
    assert_eq!(made[54..], before[54..], "the checksum stays");
    let options = EditOptions { source_addresses: [all_to.clone(), all_to], ..options };
    assert_ne!(after(options, &before)[54..], before[54..]);
}

#[test]
fn edited_fragments_reassemble_with_a_correct_checksum() {
    let segment = udp(&[7; 40], false);
    let (first, last) = segment.split_at(24);
    let options = EditOptions {
        address_seed: Some(9),
        port_map: vec![PortReplacement { first: 53, last: 53, to: 54 }],
        ..EditOptions::default()
    };
    let made = |fragment, part| {
        let before = frame(&[], ethertype::IPV4, &ipv4(17, &[], fragment, part));
        let made = after(options.clone(), &before);
        assert_eq!(received(&made, NETWORK).0, Some(true));
        made
    };
    let (first, last) = (made(0x2000, first), made(3, last));
    let mut complete = [&first[..], &last[TRANSPORT..]].concat();
    complete[16..18].copy_from_slice(&((20 + segment.len()) as u16).to_be_bytes());
    complete[20..22].fill(0);
    assert_eq!(received(&complete, NETWORK).1, Some(true));
    assert_eq!(half(&complete, TRANSPORT + 2), 54);
}

#[test]
fn truncated_frames_are_padded_shortened_or_deleted() {
    let complete = udp_frame(&[0; 100]);
    let cut = &complete[..80];
    let made = |short| {
        let options = EditOptions { truncated_frames: Some(short), ..EditOptions::default() };
        edited(&Editor::new(&options), cut, complete.len(), facts(cut))
    };
    assert_eq!(made(TruncatedFrameAction::Pad).as_ref(), Some(&complete), "what was cut was zero");
    assert_eq!(made(TruncatedFrameAction::Delete), None);
    let truncated = made(TruncatedFrameAction::Truncate).expect("a frame");
    assert_eq!(truncated.len(), 80);
    assert_eq!((half(&truncated, 16), half(&truncated, TRANSPORT + 4)), (66, 46));
    assert_right(&truncated, NETWORK);
    for short in
        [TruncatedFrameAction::Pad, TruncatedFrameAction::Truncate, TruncatedFrameAction::Delete]
    {
        let options = EditOptions { truncated_frames: Some(short), ..EditOptions::default() };
        assert_eq!(after(options, &complete), complete, "{short:?}");
    }
}

#[test]
fn only_captured_fcs_bytes_are_removed() {
    let with_fcs = [&tcp_frame(false)[..], &[1, 2, 3, 4]].concat();
    let editor = Editor::new(&EditOptions { remove_fcs: true, ..EditOptions::default() });
    for captured in [with_fcs.len(), with_fcs.len() - 1, with_fcs.len() - 4, 40] {
        let before = &with_fcs[..captured];
        let made = edited(&editor, before, with_fcs.len(), facts(before)).expect("a frame");
        assert_eq!(made, with_fcs[..captured.min(with_fcs.len() - 4)]);
    }
    // The FCS of an invalid frame is removed too.
    assert_eq!(edited(&editor, &[9; 10], 10, FrameFacts::default()), Some(vec![9; 6]));
}

#[test]
fn packets_are_cut_to_the_mtu_plus_header_and_one_tag() {
    let options = EditOptions { mtu_truncate: Some(61), ..EditOptions::default() };
    for (number, segment) in [
        (6, tcp(0x18, &[0x5a; 100], false)),
        (17, udp(&[0x5a; 100], false)),
        (1, echo(&[0x5a; 99], false)),
    ] {
        let before = frame(&tag(0x8100, 3), ethertype::IPV4, &ipv4(number, &[], 0, &segment));
        let made = after(options.clone(), &before);
        assert_eq!((made.len(), half(&made, 20)), (18 + 61, 61));
        assert_right(&made, NETWORK + 4);
    }
    let before = frame(&[], ethertype::IPV6, &ipv6(17, &[], &udp(&[0x5a; 100], true)));
    let made = after(options.clone(), &before);
    assert_eq!((made.len(), half(&made, 18)), (14 + 61, 21));
    assert_right(&made, NETWORK);
    let datagram = ipv4(17, &[], 0, &udp(&[0x5a; 100], false));
    let before = frame(&[tag(0x88a8, 2), tag(0x8100, 3)].concat(), ethertype::IPV4, &datagram);
    let made = after(options.clone(), &before);
    assert_eq!((made.len(), half(&made, 24)), (18 + 61, 57));
    assert_right(&made, NETWORK + 8);
    // Frames without an IP packet are cut too.
    for kind in [0x0800, 0x88b5] {
        let before = frame(&[], kind, &[0x5a; 100]);
        assert_eq!(after(options.clone(), &before), before[..75]);
    }
    // If the packet fits, at most its padding is removed.
    let small = ipv4(6, &[], 0, &tcp(0x10, b"", false));
    let mut padded = frame(&[], ethertype::IPV4, &small);
    padded.resize(90, 0);
    let made = after(options, &padded);
    assert_eq!(made, padded[..75]);
}

#[test]
fn packet_with_length_zero_is_cut_and_gets_its_length() {
    let mut before = frame(&[], ethertype::IPV4, &ipv4(6, &[], 0, &tcp(0x18, &[1; 3000], false)));
    before[16..18].fill(0);
    let options = EditOptions { mtu_truncate: Some(1500), ..EditOptions::default() };
    let made = after(options, &before);
    assert_eq!((made.len(), half(&made, 16)), (1514, 1500));
    assert_right(&made, NETWORK);
}

#[test]
fn header_length_is_set_to_the_frame_without_padding() {
    let options = EditOptions { fix_header_length: true, ..EditOptions::default() };
    // 60 bytes including 6 bytes of padding.
    let packet = ipv4(6, &[], 0, &tcp(0x10, b"", false));
    let mut padded = frame(&[], ethertype::IPV4, &packet);
    padded.resize(60, 0);
    assert_eq!(after(options.clone(), &padded), padded);
    let mut tagged = frame(&tag(0x8100, 1), ethertype::IPV4, &packet);
    tagged.resize(64, 0);
    assert_eq!(after(options.clone(), &tagged), tagged);
    // Too long for padding.
    let mut longer = tcp_frame(false);
    longer.resize(100, 9);
    let made = after(options.clone(), &longer);
    assert_eq!(half(&made, 16), 86);
    assert_right(&made, NETWORK);
    // Shorter than the header states.
    for is_ipv6 in [false, true] {
        let shorter = &tcp_frame(is_ipv6)[..if is_ipv6 { 80 } else { 60 }];
        let made = after(options.clone(), shorter);
        let expected = if is_ipv6 { 26 } else { 46 };
        assert_eq!(half(&made, if is_ipv6 { 18 } else { 16 }), expected);
        assert_right(&made, NETWORK);
    }
}

#[test]
fn fix_checksums_corrects_complete_packets() {
    let options = EditOptions { fix_checksums: true, ..EditOptions::default() };
    for is_ipv6 in [false, true] {
        let before = tcp_frame(is_ipv6);
        let at = if is_ipv6 { TRANSPORT6 } else { TRANSPORT } + 16;
        let mut wrong = with_bytes(&before, at, &[0xde, 0xad]);
        if !is_ipv6 {
            wrong[24] ^= 0xff;
        }
        assert_eq!(after(options.clone(), &wrong), before);
    }
}

#[test]
fn fuzzing_depends_only_on_seed_and_packet_number() {
    let editor = |seed| {
        let fuzz = Some(Fuzz { seed, factor: 2 });
        Editor::new(&EditOptions { fuzz, ..EditOptions::default() })
    };
    let before = frame(&[], ethertype::IPV4, &ipv4(6, &[], 0, &tcp(0x18, &[0x77; 80], false)));
    let made = |editor: &Editor, number| {
        let facts = FrameFacts { number, ..facts(&before) };
        edited(editor, &before, before.len(), facts)
    };
    let (one, other) = (editor(1), editor(2));
    let forwards: Vec<_> = (1..=1000).map(|number| made(&one, number)).collect();
    let mut backwards: Vec<_> = (1..=1000).rev().map(|number| made(&one, number)).collect();
    backwards.reverse();
    assert_eq!(forwards, backwards);
    assert_ne!(forwards, (1..=1000).map(|number| made(&other, number)).collect::<Vec<_>>());

    let damaged: Vec<_> = forwards.iter().filter(|made| made.as_ref() != Some(&before)).collect();
    assert!((400..=600).contains(&damaged.len()), "{} damaged", damaged.len());
    let lost = damaged.iter().filter(|made| made.is_none()).count();
    let cut =
        damaged.iter().filter(|made| made.as_ref().is_some_and(|made| made.len() < before.len()));
    assert!((20..=80).contains(&lost) && (20..=80).contains(&cut.count()));
    let overwritten: BTreeSet<_> = damaged
        .iter()
        .filter_map(|made| made.as_ref())
        .filter(|made| made.len() == before.len())
        .collect();
    for made in &overwritten {
        assert_right(made, NETWORK);
        assert_eq!(made[..50], before[..50], "headers stay");
        let changed = (54..made.len()).filter(|at| made[*at] != before[*at]).count();
        assert!((1..=16).contains(&changed));
    }
    for end in [54, middle(&before), before.len() - 16] {
        for byte in [0, 0xff] {
            let expected = overwritten.iter().any(|made| made[end..end + 16] == [byte; 16]);
            assert!(expected, "{byte:#x} at {end}");
        }
    }
}

/// Returns the start of 16 bytes in the middle of the payload.
fn middle(frame: &[u8]) -> usize {
    54 + (frame.len() - 54 - 16) / 2
}

#[test]
fn invalid_frames_pass_unchanged() {
    let options = EditOptions {
        destination_mac: Some([mac(1); 2]),
        vlan: Some(VlanEdit::DeleteAll),
        address_seed: Some(1),
        mtu_truncate: Some(10),
        fix_header_length: true,
        fix_checksums: true,
        ..EditOptions::default()
    };
    let spanning_tree = frame(&[], 38, &[&[0x42, 0x42, 3][..], &[0; 35]].concat());
    let tag_cut = [&MACS[..], &[0x81, 0, 0]].concat();
    for before in [&spanning_tree[..], &tag_cut, &MACS, &[], &[1; 13]] {
        assert_eq!(after(options.clone(), before), before);
    }
}

#[test]
fn link_edits_apply_to_other_protocols() {
    let before = frame(&tag(0x8100, 3), 0x88cc, &[2, 7, 4, 1]);
    let options = EditOptions {
        destination_mac: Some([mac(1); 2]),
        vlan: Some(VlanEdit::DeleteOuter),
        address_seed: Some(1),
        ..EditOptions::default()
    };
    let made = after(options, &before);
    assert_eq!(made, [&mac(1).0[..], &MACS[6..], &[0x88, 0xcc, 2, 7, 4, 1]].concat());
}

#[test]
fn packets_behind_mpls_labels_are_edited() {
    let packet = ipv4(6, &[], 0, &tcp(0x18, b"labelled", false));
    let before = frame(&[], 0x8847, &[&[0, 1, 1, 255][..], &packet].concat());
    let options = EditOptions {
        address_seed: Some(8),
        time_to_live: Some(TimeToLiveEdit::Set(1)),
        port_map: vec![PortReplacement { first: 80, last: 80, to: 81 }],
        ..EditOptions::default()
    };
    let made = after(options, &before);
    assert_eq!((made[26], half(&made, 40)), (1, 81));
    assert_right(&made, 18);
    assert_eq!(made[..18], before[..18]);
}

#[test]
fn address_edits_update_checksums_of_dccp_and_udp_lite() {
    // DCCP (RFC 4340 section 5.1), and UDP-Lite (RFC 3828) with full coverage.
    for (number, field) in [(33, 6), (136, 6)] {
        let mut packet = vec![0xc0, 1, 0, 80, 0, 0, 0, 0, 1, 2, 3, 4];
        if number == 33 {
            packet[4] = 3;
        }
        // The pseudo header is that of TCP with another protocol number.
        let packet = with_checksum(packet, field, number, false);
        let before = frame(&[], ethertype::IPV4, &ipv4(number, &[], 0, &packet));
        let made = after(EditOptions { address_seed: Some(3), ..EditOptions::default() }, &before);
        let mut again = made[TRANSPORT..].to_vec();
        again[field..field + 2].fill(0);
        let pseudo = wirestorm_wire::checksum::pseudo_header_ipv4(
            made[26..30].try_into().unwrap(),
            made[30..34].try_into().unwrap(),
            number,
            again.len() as u16,
        );
        let sum = wirestorm_wire::checksum::combine(pseudo, wirestorm_wire::checksum::sum(&again));
        assert_eq!(half(&made, TRANSPORT + field), !sum);
    }
}
