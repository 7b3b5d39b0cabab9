//! Fragmentation and reassembly of packets.

use proptest::prelude::*;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_wire::fragment::{
    DropReason, DroppedPacket, Fragments, Reassembler, ReassemblyLimits, Taken,
};
use wirestorm_wire::packet::{ipv4, ipv6, protocol};

const NOW: Instant = Instant::ZERO;

/// Returns a UDP packet with `length` bytes behind the IP header; each depends on its offset.
fn packet(version: u8, length: usize) -> Vec<u8> {
    let data = (0..length).map(|place| (place * 7 + place / 256) as u8);
    if version == 4 {
        let mut bytes = vec![0; ipv4::HEADER_LENGTH_MIN];
        bytes[0] = 0x45;
        let mut view = ipv4::Packet::new(&mut bytes[..]).unwrap();
        view.set_total_length((20 + length) as u16);
        view.set_time_to_live(64);
        view.set_protocol(protocol::UDP);
        view.set_source([10, 0, 0, 1].into());
        view.set_destination([10, 0, 0, 2].into());
        view.fill_checksum();
        bytes.extend(data);
        return bytes;
    }
    let mut bytes = vec![0; ipv6::HEADER_LENGTH];
    bytes[0] = 0x60;
    let mut view = ipv6::Packet::new(&mut bytes[..]).unwrap();
    view.set_payload_length(length as u16);
    view.set_next_header(protocol::UDP);
    view.set_hop_limit(64);
    view.set_source([0xfd; 16].into());
    view.set_destination([0xfe; 16].into());
    bytes.extend(data);
    bytes
}

fn cut(packet: &[u8], mtu: usize, identification: u32) -> Vec<Vec<u8>> {
    let mut fragments = Fragments::of(packet, mtu, identification).unwrap();
    let mut room = vec![0xaa; mtu];
    let next = || fragments.write_next(&mut room).map(|length| room[..length].to_vec());
    std::iter::from_fn(next).collect()
}

/// Returns the reassembled packet for fragments with this identification.
fn expected(packet: &[u8], identification: u32) -> Vec<u8> {
    let mut packet = packet.to_vec();
    if packet[0] >> 4 == 4 {
        let mut view = ipv4::Packet::new(&mut packet[..]).unwrap();
        view.set_identification(identification as u16);
        view.set_fragment(0);
        view.fill_checksum();
    }
    packet
}

fn take(reassembler: &mut Reassembler, fragment: &[u8]) -> Taken {
    reassembler.take(fragment, 0, NOW, |it| panic!("given up: {it:?}"))
}

/// Takes a fragment that completes no packet, and returns the packets that are dropped.
fn loses(reassembler: &mut Reassembler, fragment: &[u8], now: Instant) -> Vec<DroppedPacket> {
    let mut lost = Vec::new();
    let taken = reassembler.take(fragment, 9, now, |it| lost.push(it));
    assert_eq!(taken, Taken::Incomplete);
    lost
}

proptest! {
    #[test]
    fn fragments_are_reassembled_in_any_order(
        is_ipv4: bool,
        length in 1_usize..20_000,
        mtu in 68_usize..3_000,
        identification: u32,
        order in proptest::collection::vec(any::<proptest::sample::Index>(), 1..400),
    ) {
        let packet = packet(if is_ipv4 { 4 } else { 6 }, length);
        let fragments = cut(&packet, mtu, identification);
        prop_assert!(fragments.iter().all(|it| it.len() <= mtu));
        let step = Fragments::step(is_ipv4, mtu).unwrap();
        prop_assert_eq!(fragments.len(), length.div_ceil(step));
        // A single fragment would be a whole packet.
        prop_assume!(fragments.len() > 1);
        let mut reassembler = Reassembler::default();
        let mut arrived = vec![false; fragments.len()];
        // Deliver some fragments, with repetitions, then the missing ones from the last to the
        // first.
        let random_order = order.iter().map(|it| it.index(fragments.len()));
        for place in random_order.chain((0..fragments.len()).rev()) {
            let is_last = !arrived[place] && arrived.iter().filter(|it| !**it).count() == 1;
            arrived[place] = true;
            let taken = take(&mut reassembler, &fragments[place]);
            if is_last {
                prop_assert_eq!(taken, Taken::Complete(expected(&packet, identification)));
                prop_assert!(reassembler.is_empty() && reassembler.bytes() == 0);
                break;
            }
            prop_assert_eq!(taken, Taken::Incomplete);
        }
    }

    #[test]
    fn packets_between_the_same_hosts_are_reassembled_separately(
        is_ipv4: bool,
        lengths in proptest::collection::vec(200_usize..2_000, 2..8),
    ) {
        let packets: Vec<_> =
            lengths.iter().map(|it| packet(if is_ipv4 { 4 } else { 6 }, *it)).collect();
        let mut pieces: Vec<_> = packets
            .iter()
            .zip(0..)
            .map(|(packet, identification)| cut(packet, 100, identification))
            .collect();
        let mut reassembler = Reassembler::default();
        let mut reassembled = Vec::new();
        while pieces.iter().any(|it| !it.is_empty()) {
            for (place, pieces) in pieces.iter_mut().enumerate().filter(|(_, it)| !it.is_empty()) {
                if let Taken::Complete(packet) = take(&mut reassembler, &pieces.remove(0)) {
                    reassembled.push((place, packet));
                }
            }
        }
        reassembled.sort();
        let expected = packets.iter().zip(0..).map(|(packet, it)| (it, expected(packet, it as u32)));
        prop_assert_eq!(reassembled, expected.collect::<Vec<_>>());
    }

    #[test]
    fn arbitrary_fragments_never_panic(
        fragments in proptest::collection::vec(
            (proptest::collection::vec(any::<u8>(), 0..120), 0_u8..4, any::<u16>()),
            0..200,
        ),
    ) {
        let bounds = ReassemblyLimits { packets: 4, bytes: 200_000, ..ReassemblyLimits::default() };
        let mut reassembler = Reassembler::new(bounds);
        for (bytes, kind, place) in fragments {
            // Most are fragments of a few packets, at any offset.
            let fragment = match kind {
                0 => bytes,
                1 => {
                    let mut fragment = packet(6, bytes.len() + 8);
                    fragment[6] = protocol::FRAGMENT;
                    fragment[40..48].fill(0);
                    fragment[42..44].copy_from_slice(&place.to_be_bytes());
                    fragment[48..].copy_from_slice(&bytes);
                    fragment
                }
                _ => {
                    let mut fragment = packet(4, bytes.len());
                    fragment[6..8].copy_from_slice(&place.to_be_bytes());
                    fragment[20..].copy_from_slice(&bytes);
                    fragment
                }
            };
            if let Taken::Complete(packet) = reassembler.take(&fragment, 0, NOW, |_| {}) {
                prop_assert!(packet.len() <= 65_575);
            }
            prop_assert!(reassembler.bytes() <= bounds.bytes);
        }
    }
}

/// Returns three fragments of a packet with 200 bytes behind the header: 80, 80 and the rest.
fn three(version: u8) -> [Vec<u8>; 3] {
    let mtu = if version == 4 { 20 + 80 } else { 40 + 8 + 80 };
    cut(&packet(version, 200), mtu, 5).try_into().unwrap()
}

#[test]
fn contradictory_fragments_drop_the_packet_and_its_later_fragments() {
    for version in [4, 6] {
        let [first, second, last] = three(version);
        let mut other = second.clone();
        *other.last_mut().unwrap() ^= 1;
        let mut reassembler = Reassembler::default();
        assert_eq!(take(&mut reassembler, &first), Taken::Incomplete);
        assert_eq!(take(&mut reassembler, &second), Taken::Incomplete);
        let lost = loses(&mut reassembler, &other, NOW);
        assert_eq!((lost.len(), lost[0].cause), (1, DropReason::Overlap));
        // RFC 5722 section 4: "including those not yet received".
        for fragment in [&last, &first, &second, &last] {
            assert_eq!(take(&mut reassembler, fragment), Taken::Incomplete);
        }
        assert_eq!(reassembler.bytes(), 0);
        // After the timeout, another packet may use the identification.
        let later = NOW + Duration::from_secs(60);
        assert_eq!(loses(&mut reassembler, &first, later), []);
        assert_eq!(reassembler.take(&second, 0, later, |_| panic!()), Taken::Incomplete);
        assert!(matches!(reassembler.take(&last, 0, later, |_| panic!()), Taken::Complete(_)));
    }
}

#[test]
fn an_overlap_with_equal_bytes_drops_the_packet() {
    let packet = packet(4, 200);
    // Bytes 0 to 80, and 40 to 80 and beyond.
    let first = cut(&packet, 100, 5).remove(0);
    let mut shifted = cut(&packet, 60, 5).remove(1);
    shifted.extend_from_slice(&packet[20 + 80..20 + 120]);
    shifted[3] += 40;
    let mut reassembler = Reassembler::default();
    take(&mut reassembler, &first);
    assert_eq!(loses(&mut reassembler, &shifted, NOW)[0].cause, DropReason::Overlap);
}

#[test]
fn fragments_must_agree_on_the_end_of_the_packet() {
    for version in [4, 6] {
        let [first, second, last] = three(version);
        let shorter = cut(&packet(version, 180), first.len(), 5).remove(2);
        let longer = cut(&packet(version, 300), first.len(), 5).remove(2);
        for (before, wrong) in [(&last, &shorter), (&last, &longer), (&longer, &shorter)] {
            let mut reassembler = Reassembler::default();
            take(&mut reassembler, before);
            let lost = loses(&mut reassembler, wrong, NOW);
            assert_eq!(lost.iter().map(|it| it.cause).collect::<Vec<_>>(), [DropReason::Overlap]);
        }
        let mut reassembler = Reassembler::default();
        assert_eq!(take(&mut reassembler, &last), Taken::Incomplete);
        assert_eq!(take(&mut reassembler, &second), Taken::Incomplete);
        assert!(matches!(take(&mut reassembler, &first), Taken::Complete(_)));
    }
}

#[test]
fn an_incomplete_packet_is_dropped_after_a_minute() {
    let [first, second, last] = three(4);
    let mut reassembler = Reassembler::default();
    assert_eq!(loses(&mut reassembler, &first, NOW), []);
    let just_before = NOW + Duration::from_nanos(59_999_999_999);
    assert_eq!(loses(&mut reassembler, &second, just_before), []);
    let mut lost = Vec::new();
    reassembler.expire(NOW + Duration::from_secs(60), |it| lost.push(it));
    // The data up to the first hole.
    let mut beginning = packet(4, 160);
    beginning = expected(&beginning, 5);
    let [lost] = lost.try_into().unwrap();
    assert_eq!(
        (lost.cause, lost.tag, &lost.contiguous),
        (DropReason::Timeout, 9, &Some(beginning))
    );
    assert!(reassembler.is_empty());
    assert_eq!(take(&mut reassembler, &last), Taken::Incomplete);
    reassembler.finish(|it| assert_eq!((it.tag, it.contiguous), (0, None)));
}

#[test]
fn the_oldest_packet_is_dropped_above_the_limits() {
    let piece = |identification| cut(&packet(4, 4_000), 2_020, identification).remove(0);
    let by_number = ReassemblyLimits { packets: 3, ..ReassemblyLimits::default() };
    let by_bytes = ReassemblyLimits { bytes: 3 * 2_100, ..ReassemblyLimits::default() };
    for bounds in [by_number, by_bytes] {
        let mut reassembler = Reassembler::new(bounds);
        for (identification, tag) in [(0, 10), (1, 11), (2, 12)] {
            reassembler.take(&piece(identification), tag, NOW, |_| panic!("there is room"));
        }
        let lost = loses(&mut reassembler, &piece(3), NOW);
        let lost: Vec<_> = lost.iter().map(|it| (it.cause, it.tag)).collect();
        assert_eq!(lost, [(DropReason::Limit, 10)], "{bounds:?}");
        // The other packets are still there.
        let rest = cut(&packet(4, 4_000), 2_020, 1).remove(1);
        assert!(matches!(take(&mut reassembler, &rest), Taken::Complete(_)));
    }
}

#[test]
fn one_fragment_with_congestion_experienced_marks_the_packet() {
    for version in [4, 6] {
        for marked in 0..3 {
            let mut reassembler = Reassembler::default();
            let mut reassembled = Vec::new();
            for (place, mut fragment) in three(version).into_iter().enumerate() {
                match version {
                    4 => fragment[1] |= if place == marked { 3 } else { 2 },
                    _ => fragment[1] |= if place == marked { 0x30 } else { 0x20 },
                }
                if let Taken::Complete(packet) = take(&mut reassembler, &fragment) {
                    reassembled = packet;
                }
            }
            let class = match version {
                4 => ipv4::Packet::new(&reassembled[..]).unwrap().type_of_service(),
                _ => ipv6::Packet::new(&reassembled[..]).unwrap().traffic_class(),
            };
            assert_eq!(class, 3, "fragment {marked} of IPv{version}");
        }
    }
}

#[test]
fn headers_before_the_fragment_header_are_kept() {
    let packet = packet(6, 200);
    let mut reassembler = Reassembler::default();
    let mut reassembled = None;
    for fragment in cut(&packet, 128, 7) {
        // Hop-by-hop options with only padding.
        let mut longer = fragment[..40].to_vec();
        longer.extend([protocol::FRAGMENT, 0, 1, 4, 0, 0, 0, 0]);
        longer.extend(&fragment[40..]);
        longer[6] = protocol::HOP_BY_HOP;
        longer[5] += 8;
        if let Taken::Complete(packet) = take(&mut reassembler, &longer) {
            reassembled = Some(packet);
        }
    }
    let mut expected = packet[..40].to_vec();
    expected.extend([protocol::UDP, 0, 1, 4, 0, 0, 0, 0]);
    expected.extend(&packet[40..]);
    expected[6] = protocol::HOP_BY_HOP;
    expected[5] += 8;
    assert_eq!(reassembled, Some(expected));
}

#[test]
fn impossible_fragments_are_damaged() {
    let mut reassembler = Reassembler::default();
    let [first, _, last] = three(4);
    // Truncated, not a fragment, and beyond the longest packet.
    assert_eq!(take(&mut reassembler, &first[..99]), Taken::Invalid);
    assert_eq!(take(&mut reassembler, &packet(4, 100)), Taken::Invalid);
    let mut beyond = last.clone();
    beyond[6..8].copy_from_slice(&0x1fff_u16.to_be_bytes());
    assert_eq!(take(&mut reassembler, &beyond), Taken::Invalid);
    // More fragments follow, but the length is no multiple of 8.
    let mut odd = first.clone();
    odd[3] -= 1;
    assert_eq!(take(&mut reassembler, &odd), Taken::Invalid);
    // An atomic fragment is a whole packet (RFC 6946).
    let mut atomic = three(6)[0].clone();
    atomic[43] &= !1;
    assert_eq!(take(&mut reassembler, &atomic), Taken::Invalid);
    assert!(reassembler.is_empty());
}

#[test]
fn packets_that_cannot_be_fragmented_are_rejected() {
    assert!(Fragments::of(&packet(4, 100), 27, 0).is_none());
    assert!(Fragments::of(&packet(4, 100), 28, 0).is_some());
    assert!(Fragments::of(&packet(6, 100), 55, 0).is_none());
    assert!(Fragments::of(&packet(6, 100)[..139], 100, 0).is_none());
    let mut with_options = packet(4, 100);
    with_options[0] = 0x46;
    assert!(Fragments::of(&with_options, 100, 0).is_none());
    let mut with_extension = packet(6, 100);
    with_extension[6] = protocol::HOP_BY_HOP;
    assert!(Fragments::of(&with_extension, 100, 0).is_none());
}

#[test]
fn a_dropped_packet_becomes_one_first_fragment() {
    for version in [4, 6] {
        let [first, second, last] = three(version);
        for (arrived, expected) in [
            (vec![&first], Some(&first)),
            (vec![&last, &first], Some(&first)),
            (vec![&second, &last], None),
        ] {
            let mut reassembler = Reassembler::default();
            for fragment in arrived {
                take(&mut reassembler, fragment);
            }
            let mut expired = Vec::new();
            let due = reassembler.next().unwrap();
            assert_eq!(due, NOW + Duration::from_secs(60));
            reassembler.expire(due, |it| expired.push(it.first_fragment()));
            assert_eq!(expired, [expected.cloned()], "version {version}");
            assert_eq!(reassembler.next(), None);
        }
    }
    // Behind an options header, which names the fragment header.
    let [first, ..] = three(6);
    let options = [protocol::FRAGMENT, 0, 1, 4, 0, 0, 0, 0];
    let mut first = [&first[..40], &options, &first[40..]].concat();
    (first[5], first[6]) = (first[5] + 8, protocol::HOP_BY_HOP);
    let mut reassembler = Reassembler::default();
    take(&mut reassembler, &first);
    reassembler.finish(|it| assert_eq!(it.first_fragment().as_ref(), Some(&first)));
}
