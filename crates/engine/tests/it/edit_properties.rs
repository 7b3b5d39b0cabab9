//! Properties of all edits on arbitrary frames.

use proptest::prelude::*;
use wirestorm_engine::edit::{
    EditOptions, EditResult, Editor, FrameFacts, Fuzz, MacSeed, MacSubstitution, PortReplacement,
    Prefix, PrefixReplacement, TimeToLiveEdit, TruncatedFrameAction, VlanChange, VlanEdit, VlanTag,
};
use wirestorm_wire::capture::LinkType;
use wirestorm_wire::packet::MacAddress;

use crate::common::build::{echo, frame, ipv4, ipv6, kind, received, tag, tcp, udp};
use crate::common::{captures, edited, facts, packets};

/// Generates a frame with a complete IP packet and correct checksums.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let tags =
        prop::collection::vec((prop::sample::select(vec![0x8100, 0x88a8]), any::<u16>()), 0..3);
    let payload = prop::collection::vec(any::<u8>(), 0..120);
    (tags, any::<[bool; 3]>(), 0..3_u8, payload, 0..8_usize).prop_map(
        |(tags, [is_ipv6, has_options, is_mpls], protocol, payload, padding)| {
            let (number, transport) = match protocol {
                0 => (6, tcp(0x18, &payload, is_ipv6)),
                1 => (17, udp(&payload, is_ipv6)),
                _ => (if is_ipv6 { 58 } else { 1 }, echo(&payload, is_ipv6)),
            };
            let mut packet = match (is_ipv6, has_options) {
                (false, false) => ipv4(number, &[], 0, &transport),
                // Router alert option (RFC 2113) and its IPv6 equivalent (RFC 2711).
                (false, true) => ipv4(number, &[0x94, 4, 0, 0], 0, &transport),
                (true, false) => ipv6(number, &[], &transport),
                (true, true) => ipv6(0, &[number, 0, 5, 2, 0, 0, 1, 0], &transport),
            };
            packet.resize(packet.len() + padding, 0);
            let tags: Vec<u8> =
                tags.into_iter().flat_map(|(kind, control)| tag(kind, control)).collect();
            if is_mpls {
                frame(&tags, 0x8847, &[&[0, 0x01, 0x01, 0xff][..], &packet].concat())
            } else {
                frame(&tags, kind(is_ipv6), &packet)
            }
        },
    )
}

fn any_mac() -> impl Strategy<Value = MacAddress> {
    any::<[u8; 6]>().prop_map(MacAddress)
}

fn any_prefix() -> impl Strategy<Value = PrefixReplacement> {
    let four = (any::<[u8; 4]>(), 0..40_u8)
        .prop_map(|(address, length)| Prefix { address: address.into(), length });
    let six = (any::<[u8; 16]>(), 0..140_u8)
        .prop_map(|(address, length)| Prefix { address: address.into(), length });
    prop_oneof![
        (0..9_u8, four).prop_map(|(length, to)| PrefixReplacement {
            from: Prefix { length, ..Prefix::ALL_IPV4 },
            to
        }),
        (0..3_u8, six).prop_map(|(length, to)| PrefixReplacement {
            from: Prefix { length, ..Prefix::ALL_IPV6 },
            to
        }),
    ]
}

fn any_vlan() -> impl Strategy<Value = VlanEdit> {
    let change = (any::<Option<u16>>(), any::<Option<u8>>(), any::<Option<bool>>()).prop_map(
        |(identifier, priority, drop_eligible)| VlanChange {
            ethertype: Some(0x9100),
            identifier,
            priority,
            drop_eligible,
        },
    );
    prop_oneof![
        (any::<u16>(), any::<u8>()).prop_map(|(identifier, priority)| VlanEdit::Add(VlanTag {
            ethertype: 0x8100,
            identifier,
            priority,
            drop_eligible: false
        })),
        Just(VlanEdit::DeleteOuter),
        Just(VlanEdit::DeleteAll),
        change.clone().prop_map(VlanEdit::SetOuter),
        change.prop_map(VlanEdit::SetInner),
    ]
}

fn any_lists() -> impl Strategy<Value = [Vec<PrefixReplacement>; 2]> {
    let list = || prop::collection::vec(any_prefix(), 0..3);
    (list(), list()).prop_map(|(primary, secondary)| [primary, secondary])
}

/// Generates edits other than fuzzing and `fix_checksums`.
fn any_edits() -> impl Strategy<Value = EditOptions> {
    let link = (
        prop::option::of([any_mac(), any_mac()]),
        prop::collection::vec((any_mac(), any_mac()), 0..2),
        any::<Option<(u32, u8)>>(),
        prop::option::of(any_vlan()),
    );
    let network = (
        any::<Option<u8>>(),
        any::<Option<u32>>(),
        prop::option::of(prop_oneof![
            any::<u8>().prop_map(TimeToLiveEdit::Set),
            any::<u8>().prop_map(TimeToLiveEdit::Add),
            any::<u8>().prop_map(TimeToLiveEdit::Subtract),
        ]),
        prop::option::of(1..200_u32),
    );
    let transport = (
        prop::collection::vec((0..100_u16, any::<u16>(), any::<u16>()), 0..3),
        any::<Option<u32>>(),
    );
    let addresses = (any_lists(), any_lists(), any::<Option<u32>>(), any::<bool>());
    (link, network, transport, addresses).prop_map(
        |(
            (macs, substituted, mac_seed, vlan),
            (class, flow_label, time_to_live, mtu_truncate),
            (ports, tcp_sequence_seed),
            (source_addresses, destination_addresses, address_seed, keep),
        )| EditOptions {
            destination_mac: macs,
            source_mac: macs,
            substituted_macs: substituted
                .into_iter()
                .map(|(from, to)| MacSubstitution { from, to })
                .collect(),
            mac_seed: mac_seed.map(|(seed, keep_bytes)| MacSeed { seed, keep_bytes }),
            keep_group_macs: keep,
            vlan,
            type_of_service: class,
            traffic_class: class,
            flow_label,
            time_to_live,
            port_map: ports
                .into_iter()
                .map(|(first, last, to)| PortReplacement { first, last, to })
                .collect(),
            tcp_sequence_seed,
            mtu_truncate,
            source_addresses,
            destination_addresses,
            address_seed,
            keep_group_addresses: keep,
            ..EditOptions::default()
        },
    )
}

/// Generates all kinds of edits.
fn all_edits() -> impl Strategy<Value = EditOptions> {
    let short = prop::sample::select(vec![
        None,
        Some(TruncatedFrameAction::Pad),
        Some(TruncatedFrameAction::Truncate),
        Some(TruncatedFrameAction::Delete),
    ]);
    (any_edits(), any::<[bool; 3]>(), short, any::<Option<(u32, u32)>>()).prop_map(
        |(edits, [fcs, header_length, checksums], captured_short, fuzz)| EditOptions {
            remove_fcs: fcs,
            fix_header_length: header_length,
            fix_checksums: checksums,
            truncated_frames: captured_short,
            fuzz: fuzz.map(|(seed, factor)| Fuzz { seed, factor: factor % 4 }),
            ..edits
        },
    )
}

/// Returns the offset of the IP packet after the edits: only VLAN edits move it.
fn network_after(frame: &[u8], before: FrameFacts, made: &[u8], vlan: Option<VlanEdit>) -> usize {
    let tags = |frame: &[u8]| {
        let is_tag =
            |at: usize| matches!(frame.get(at..at + 2), Some([0x81, 0] | [0x88, 0xa8] | [0x91, 0]));
        (12..).step_by(4).take_while(|at| is_tag(*at)).count()
    };
    let had = tags(frame);
    let has = match vlan {
        Some(VlanEdit::Add(_)) => had + 1,
        Some(VlanEdit::DeleteOuter) => had.saturating_sub(1),
        Some(VlanEdit::DeleteAll) => 0,
        _ => had,
    };
    assert_eq!(tags(made), has);
    usize::from(before.network_offset) + has * 4 - had * 4
}

/// Returns the offset of the transport checksum.
fn checksum_at(facts: FrameFacts) -> usize {
    let field = match facts.protocol {
        6 => 16,
        17 => 6,
        _ => 2,
    };
    usize::from(facts.transport_offset) + field
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn correct_checksums_stay_correct(
        frame in any_frame(), edits in any_edits(), secondary: bool, fuzz: Option<u32>,
    ) {
        let facts = FrameFacts { secondary, ..facts(&frame) };
        prop_assume!(facts.is_ip);
        let before = received(&frame, facts.network_offset.into());
        prop_assert_eq!(before, ((!facts.is_ipv6).then_some(true), Some(true)));
        let fuzz = fuzz.map(|seed| Fuzz { seed, factor: 1 });
        let edits = EditOptions { fuzz, ..edits };
        let made = edited(&Editor::new(&edits), &frame, frame.len(), facts);
        prop_assume!(made.is_some());
        let made = made.unwrap_or_default();
        let network = network_after(&frame, facts, &made, edits.vlan);
        let (header, transport) = received(&made, network);
        prop_assert!(header != Some(false), "header");
        prop_assert!(transport != Some(false), "transport");
        if edits.fuzz.is_none() && edits.mtu_truncate.is_none() {
            prop_assert_eq!((header, transport), before);
        }
    }

    #[test]
    fn wrong_checksums_stay_wrong_unless_fixed(
        frame in any_frame(), edits in any_edits(), flaw in 1..0xffff_u16,
    ) {
        let facts = facts(&frame);
        prop_assume!(facts.is_ip);
        let mut frame = frame;
        let at = checksum_at(facts);
        let right = u16::from_be_bytes([frame[at], frame[at + 1]]);
        let wrong = right ^ flaw;
        prop_assume!(wrong != 0);
        frame[at..at + 2].copy_from_slice(&wrong.to_be_bytes());
        prop_assume!(received(&frame, facts.network_offset.into()).1 == Some(false));
        let made = edited(&Editor::new(&edits), &frame, frame.len(), facts).expect("a frame");
        let network = network_after(&frame, facts, &made, edits.vlan);
        prop_assert_ne!(received(&made, network).1, Some(true));
        let fixing = EditOptions { fix_checksums: true, ..edits };
        let made = edited(&Editor::new(&fixing), &frame, frame.len(), facts).expect("a frame");
        prop_assert_ne!(received(&made, network).1, Some(false));
    }

    #[test]
    fn truncated_packets_are_completed_with_correct_checksums(
        frame in any_frame(), edits in any_edits(), lost in 1..60_usize, pad: bool,
    ) {
        let cut_length = frame.len().saturating_sub(lost);
        let cut = &frame[..cut_length];
        let facts = facts(cut);
        prop_assume!(facts.is_ip);
        // A lost header cannot be restored.
        let header_length = if facts.protocol == 6 { 20 } else { 8 };
        prop_assume!(cut_length >= usize::from(facts.transport_offset) + header_length);
        let short = if pad { TruncatedFrameAction::Pad } else { TruncatedFrameAction::Truncate };
        let edits = EditOptions { truncated_frames: Some(short), ..edits };
        let made = edited(&Editor::new(&edits), cut, frame.len(), facts).expect("a frame");
        let network = network_after(cut, facts, &made, edits.vlan);
        let (header, transport) = received(&made, network);
        prop_assert!(header != Some(false) && transport != Some(false));
        if pad && edits.mtu_truncate.is_none() {
            let growth = network as isize - isize::from(facts.network_offset as i16);
            prop_assert_eq!(made.len() as isize, frame.len() as isize + growth);
        }
    }

    #[test]
    fn editor_never_panics_or_exceeds_the_buffer(
        start in any_frame(),
        rest in prop::collection::vec(any::<u8>(), 0..80),
        keep in 0..200_usize,
        edits in all_edits(),
        lengths: (u16, u16),
        offsets: (u16, u16),
        flags: (bool, bool, bool),
        protocol: u8,
        room in 0..8_usize,
    ) {
        let mut buffer = start[..keep.min(start.len())].to_vec();
        buffer.extend(rest);
        let (is_ip, is_ipv6, invents) = flags;
        let facts = if invents {
            FrameFacts {
                network_offset: offsets.0 % 300,
                transport_offset: offsets.1 % 300,
                protocol,
                is_ip,
                is_ipv6,
                secondary: is_ipv6,
                number: offsets.0.into(),
            }
        } else {
            facts(&buffer)
        };
        let length = buffer.len().saturating_sub(usize::from(lengths.0 % 3));
        buffer.resize(buffer.len() + room, 0);
        let size = buffer.len();
        let original_length = length + usize::from(lengths.1 % 300);
        match Editor::new(&edits).apply(&mut buffer, length, original_length, facts) {
            EditResult::Length(length) => prop_assert!(length <= size),
            EditResult::Drop => {}
        }
    }

    #[test]
    fn frames_cut_at_any_byte_are_edited(frame in any_frame(), edits in all_edits()) {
        let editor = Editor::new(&edits);
        let whole_facts = facts(&frame);
        for length in 0..=frame.len() {
            let cut = &frame[..length];
            for facts in [facts(cut), whole_facts] {
                if let Some(made) = edited(&editor, cut, frame.len(), facts) {
                    prop_assert!(made.len() <= frame.len() + editor.frame_length_max_growth());
                }
            }
        }
    }
}

#[test]
fn captured_frames_keep_correct_checksums() {
    let Some(captures) = captures() else { return };
    let editor = Editor::new(&EditOptions {
        vlan: Some(VlanEdit::DeleteAll),
        address_seed: Some(7),
        tcp_sequence_seed: Some(7),
        time_to_live: Some(TimeToLiveEdit::Set(9)),
        type_of_service: Some(4),
        port_map: vec![PortReplacement { first: 0, last: 1023, to: 7 }],
        mtu_truncate: Some(200),
        ..EditOptions::default()
    });
    let mut compared = 0;
    for path in captures {
        for packet in packets(&path).into_iter().filter(|packet| packet.link == LinkType::EN10MB) {
            let facts = facts(&packet.data);
            if !facts.is_ip || packet.data.len() < packet.original_length {
                continue;
            }
            let before = received(&packet.data, facts.network_offset.into());
            let made = edited(&editor, &packet.data, packet.original_length, facts);
            let made = made.expect("a frame");
            let tags = (12..)
                .step_by(4)
                .take_while(|at| packet.data.get(*at..*at + 2) == Some(&[0x81, 0]))
                .count();
            let (header, transport) = received(&made, usize::from(facts.network_offset) - tags * 4);
            let name = path.display();
            assert_eq!(header, before.0, "{name}");
            if before.1 == Some(true) {
                assert_ne!(transport, Some(false), "{name}: {:02x?}", packet.data);
                compared += 1;
            }
        }
    }
    println!("{compared} packets");
    assert!(compared > 1000);
}
