//! Frames of devices, computed from their streams by definition.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

use wirestorm_model::stream::{ByteOrder, Checksum, PseudoHeader, Step, Stream, Write};
use wirestorm_plan::pktgen::{LowerError, LoweredDevice, TimestampPosition};
use wirestorm_wire::checksum::{self, combine, sum};

use super::{device, lowered};

/// Returns frame `number` of a stream, by the documented meaning of each step.
pub(crate) fn frame(stream: &Stream, number: u64) -> Vec<u8> {
    let variables = &stream.program.variables;
    let value = |index: usize| variables[index].value(number, variables);
    let mut frame = stream.template.clone();
    for step in &stream.program.steps {
        match step {
            Step::Write(Write { variable, offset, width, add, shift, mask, order }) => {
                assert_eq!(*order, ByteOrder::Network);
                let field = &mut frame[*offset..offset + width];
                let old = field.iter().fold(0, |old: u128, byte| old << 8 | u128::from(*byte));
                let sum = value(*variable).wrapping_add(*add);
                let moved = if *shift < 0 { sum >> -shift } else { sum << shift };
                let new = old & !mask | moved & mask;
                field.copy_from_slice(&new.to_be_bytes()[16 - width..]);
            }
            Step::Length { variable } => {
                let length = value(*variable) as usize;
                assert!((14..=frame.len()).contains(&length), "{length}");
                frame.truncate(length);
            }
            Step::WriteLength { offset, less } => {
                let length = (frame.len() - less) as u16;
                frame[*offset..offset + 2].copy_from_slice(&length.to_be_bytes());
            }
            Step::Checksum(Checksum::Internet {
                offset,
                start,
                end,
                pseudo_header,
                never_zero,
            }) => {
                let end = end.unwrap_or(frame.len());
                frame[*offset..offset + 2].fill(0);
                let pseudo = |addresses: &[u8], protocol: u8| {
                    combine(sum(addresses), combine(protocol.into(), (end - start) as u16))
                };
                let pseudo = match *pseudo_header {
                    PseudoHeader::None => 0,
                    PseudoHeader::Ipv4 { header, protocol } => {
                        pseudo(&frame[header + 12..header + 20], protocol)
                    }
                    PseudoHeader::Ipv6 { header, protocol } => {
                        pseudo(&frame[header + 8..header + 40], protocol)
                    }
                };
                let sum = match !combine(sum(&frame[*start..end]), pseudo) {
                    0 if *never_zero => 0xffff,
                    sum => sum,
                };
                frame[*offset..offset + 2].copy_from_slice(&sum.to_be_bytes());
            }
            other => panic!("{other:?}"),
        }
    }
    frame
}

/// Returns the first frames of a device.
fn frames(device: &LoweredDevice, count: u64) -> Vec<Vec<u8>> {
    let [stream] = &device.streams[..] else { panic!("{device:?}") };
    (0..count).map(|number| frame(stream, number)).collect()
}

fn number(frame: &[u8], offset: usize, width: usize) -> u64 {
    frame[offset..offset + width].iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// Returns a field of the first frames of the device with these commands.
fn field(commands: &[&str], offset: usize, width: usize, count: u64) -> Vec<u64> {
    let frames = frames(&lowered(commands), count);
    frames.iter().map(|frame| number(frame, offset, width)).collect()
}

/// Offsets in IPv4 frames without tags.
const SOURCE: usize = 14 + 12;
const DESTINATION: usize = 14 + 16;
const SOURCE_PORT: usize = 14 + 20;
const DESTINATION_PORT: usize = 14 + 22;
const SEQUENCE: usize = 14 + 28 + 4;

fn noted(device: &LoweredDevice, what: &str) -> bool {
    device.notes.iter().any(|note| note.contains(what))
}

#[test]
fn ipv4_packets_match_the_kernel() {
    let device = lowered(&["pkt_size 60", "dst 198.51.100.1", "dst_mac 02:00:00:00:00:0b"]);
    let mut expected = vec![
        0x02, 0, 0, 0, 0, 0x0b, 0x02, 0, 0, 0, 0, 0x0a, 0x08, 0x00, // Ethernet
        0x45, 0, 0, 46, 0, 0, 0, 0, 32, 17, 0, 0, 192, 0, 2, 10, 198, 51, 100, 1, // IPv4
        0, 9, 0, 9, 0, 26, 0, 0, // UDP
        0xbe, 0x9b, 0xe9, 0x55, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, // pktgen
        0, 0,
    ];
    let sum = checksum::checksum(&expected[14..34]);
    expected[24..26].copy_from_slice(&sum.to_be_bytes());
    let [stream] = &device.streams[..] else { panic!("{device:?}") };
    assert_eq!(frame(stream, 0), expected);
    assert_eq!(stream.template, expected, "the template is the first frame");
    assert_eq!(stream.name, "eth0");
    assert_eq!((device.name.as_str(), device.interface.as_str(), device.cpu), ("eth0", "eth0", 0));
    assert_eq!(device.stamps, Some(TimestampPosition { offset: 50, checksum: None }));
    assert!(device.notes.is_empty(), "{:?}", device.notes);

    // Only identification and sequence number advance.
    let mut later = frame(stream, 0x1_0002);
    assert_eq!((number(&later, 18, 2), number(&later, SEQUENCE, 4)), (2, 0x1_0003));
    assert_eq!(sum_of(&later[14..34]), 0xffff);
    for range in [18..20, 24..26, SEQUENCE..SEQUENCE + 4] {
        later[range.clone()].copy_from_slice(&expected[range]);
    }
    assert_eq!(later, expected);
}

fn sum_of(bytes: &[u8]) -> u16 {
    sum(bytes)
}

#[test]
fn ipv6_packets_match_the_kernel() {
    let commands = ["pkt_size 80", "dst6 2001:db8::1", "src6 2001:db8::2", "traffic_class b8"];
    let device =
        lowered(&[&commands[..], &["flag NO_TIMESTAMP", "dst_mac 02:00:00:00:00:0b"]].concat());
    let frame = &frames(&device, 1)[0];
    assert_eq!(frame.len(), 80);
    assert_eq!(number(frame, 12, 2), 0x86dd);
    assert_eq!(number(frame, 14, 8), 0x6b80_0000_001a_1120);
    assert_eq!(&frame[22..38], &"2001:db8::2".parse::<Ipv6Addr>().expect("an address").octets());
    assert_eq!(&frame[38..54], &"2001:db8::1".parse::<Ipv6Addr>().expect("an address").octets());
    assert_eq!(number(frame, 54, 8), 0x0009_0009_001a_0000);
    assert_eq!(number(frame, 62, 8), 0xbe9b_e955_0000_0001);
    assert_eq!(device.stamps, None);
    assert!(noted(&device, "receivers drop"), "{:?}", device.notes);
    let lowered_destination = lowered(&["dst6 2001:db8::1"]);
    assert_eq!(
        frames(&lowered_destination, 1)[0][22..38],
        [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10]
    );
}

#[test]
fn udpcsum_computes_udp_checksums() {
    let commands = ["min_pkt_size 61", "max_pkt_size 90", "flag UDPCSUM", "flag TXSIZE_RND"];
    let ranges = ["udp_src_min 1", "udp_src_max 9000", "dst_min 10.0.0.1", "dst_max 10.9.0.1"];
    let device = lowered(&[commands, ranges].concat());
    assert_eq!(device.stamps, Some(TimestampPosition { offset: 50, checksum: Some(40) }));
    for frame in frames(&device, 50) {
        let udp = (frame.len() - 34) as u16;
        assert_eq!(number(&frame, 38, 2), u64::from(udp));
        assert_eq!(number(&frame, 16, 2), u64::from(udp) + 20);
        let pseudo = combine(sum(&frame[26..34]), 17 + udp);
        assert_eq!(combine(sum(&frame[34..]), pseudo), 0xffff);
        assert_eq!(sum(&frame[14..34]), 0xffff);
    }
    let device = lowered(&["pkt_size 81", "dst6 2001:db8::1", "flag UDPCSUM"]);
    for frame in frames(&device, 3) {
        let pseudo = combine(sum(&frame[22..54]), 17 + 27);
        assert_eq!(combine(sum(&frame[54..]), pseudo), 0xffff);
    }
    assert!(!noted(&device, "receivers drop"), "{:?}", device.notes);
}

#[test]
fn a_zero_udp_checksum_is_all_ones() {
    let device = lowered(&["pkt_size 60", "flag UDPCSUM"]);
    let sums: BTreeSet<u64> =
        frames(&device, 0x1_0000).iter().map(|frame| number(frame, 40, 2)).collect();
    assert!(!sums.contains(&0), "zero means that there is none (RFC 768)");
    assert!(sums.contains(&0xffff));
}

#[test]
fn sequential_ranges_start_with_their_second_value() {
    let addresses = |name: &str| [format!("{name}_min 10.0.0.254"), format!("{name}_max 10.0.1.0")];
    for (name, offset) in [("src", SOURCE), ("dst", DESTINATION)] {
        let [min, max] = addresses(name);
        let values = field(&[&min, &max], offset, 4, 4);
        assert_eq!(values, [0x0a00_00ff, 0x0a00_0100, 0x0a00_00fe, 0x0a00_00ff], "inclusive");
    }
    for (name, offset) in [("udp_src", SOURCE_PORT), ("udp_dst", DESTINATION_PORT)] {
        let commands = [format!("{name}_min 100"), format!("{name}_max 103")];
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        assert_eq!(field(&commands, offset, 2, 5), [101, 102, 100, 101, 102], "exclusive");
        let note = format!("{name}_max 103: is exclusive, as in the kernel: ports are 100");
        assert!(noted(&lowered(&commands), &note));
    }
    assert_eq!(field(&["udp_dst_max 10"], DESTINATION_PORT, 2, 3), [9, 9, 9]);
    assert_eq!(field(&["udp_dst_max 8"], DESTINATION_PORT, 2, 3), [9, 9, 9]);
    assert_eq!(
        field(&["dst_min 10.0.0.9", "dst_max 10.0.0.1"], DESTINATION, 4, 2),
        [0x0a00_0009; 2]
    );
    assert_eq!(field(&["src_min 10.0.0.9"], SOURCE, 4, 2), [0x0a00_0009; 2]);
    assert_eq!(field(&["src_max 10.0.0.9"], SOURCE, 4, 2), [0xc000_020a; 2]);
}

/// Returns the values that a field has in 4,000 frames.
fn random_values(commands: &[&str], offset: usize, width: usize) -> BTreeSet<u64> {
    field(commands, offset, width, 4000).into_iter().collect()
}

#[test]
fn random_values_stay_below_their_maximum() {
    let set = |range: std::ops::Range<u64>| range.collect::<BTreeSet<u64>>();
    let addresses = ["src_min 10.0.0.10", "src_max 10.0.0.20", "flag IPSRC_RND"];
    assert_eq!(random_values(&addresses, SOURCE, 4), set(0x0a00_000a..0x0a00_0014));
    let addresses = ["dst_min 10.0.0.10", "dst_max 10.0.0.20", "flag IPDST_RND"];
    assert_eq!(random_values(&addresses, DESTINATION, 4), set(0x0a00_000a..0x0a00_0014));
    assert!(noted(&lowered(&addresses), "dst_max: random addresses stay below it"));
    let ports = ["udp_src_min 10", "udp_src_max 20", "flag UDPSRC_RND"];
    assert_eq!(random_values(&ports, SOURCE_PORT, 2), set(10..20));
    let ports = ["udp_dst_min 10", "udp_dst_max 20", "flag UDPDST_RND"];
    assert_eq!(random_values(&ports, DESTINATION_PORT, 2), set(10..20));
    let sizes = ["min_pkt_size 64", "max_pkt_size 70", "flag TXSIZE_RND"];
    assert_eq!(random_values(&sizes, 16, 2), set(50..56), "lengths of IPv4");
    assert_eq!(
        random_values(&["vlan_id 1", "flag VID_RND"], 14, 2).len(),
        distinct_values_expected(4096, 4000)
    );
    let one = ["dst_min 10.0.0.10", "dst_max 10.0.0.11", "flag IPDST_RND"];
    assert_eq!(random_values(&one, DESTINATION, 4), set(0x0a00_000a..0x0a00_000b));
}

/// Returns the number of distinct values among `draws` draws from `of` values. The seed determines
/// it; it is close to the expected `of * (1 - e^(-draws / of))`.
fn distinct_values_expected(of: usize, draws: usize) -> usize {
    let values = random_values(&["vlan_id 1", "flag VID_RND"], 14, 2);
    let expected = of as f64 * (1.0 - (-(draws as f64) / of as f64).exp());
    assert!((values.len() as f64 - expected).abs() < 100.0, "{} of {expected}", values.len());
    assert!(values.iter().all(|id| *id < of as u64));
    values.len()
}

#[test]
fn random_destinations_exclude_addresses_of_no_host() {
    let all = ["dst_min 0.0.0.0", "dst_max 255.255.255.255", "flag IPDST_RND", "count 0"];
    let addresses = random_values(&all, DESTINATION, 4);
    assert!(addresses.len() > 3990);
    let excluded = |address: &u64| matches!(address >> 24, 0 | 127 | 224..=239);
    assert!(!addresses.iter().any(excluded));
    assert!(addresses.iter().any(|address| address >> 24 > 239));
    assert!(addresses.iter().any(|address| address >> 24 < 127));
    assert!(noted(&lowered(&all), "destinations repeat after"));
    let around_multicast = ["dst_min 223.255.255.254", "dst_max 239.255.255.255", "flag IPDST_RND"];
    assert_eq!(
        random_values(&around_multicast, DESTINATION, 4),
        BTreeSet::from([0xdfff_fffe, 0xdfff_ffff])
    );
    let none = ["dst_min 224.0.0.1", "dst_max 224.0.0.9", "flag IPDST_RND"];
    let error = device(&none).lower().expect_err("no destination");
    assert_eq!(error, LowerError::NoDestination { device: "eth0".to_owned() });
    assert!(error.to_string().starts_with("eth0: flag IPDST_RND: dst_min to dst_max contains"));
}

#[test]
fn sizes_are_sequential_random_or_weighted() {
    let lengths = |commands: &[&str], count| -> Vec<usize> {
        frames(&lowered(commands), count).iter().map(Vec::len).collect()
    };
    assert_eq!(lengths(&["min_pkt_size 64", "max_pkt_size 66"], 4), [65, 66, 64, 65]);
    assert_eq!(lengths(&["min_pkt_size 64"], 2), [64, 64]);
    assert_eq!(lengths(&["max_pkt_size 64"], 2), [59, 60], "from the least to the greatest");
    assert_eq!(lengths(&[], 1), [58]);
    assert_eq!(lengths(&["pkt_size 42"], 1), [58], "no frame is without its headers");
    assert!(noted(&lowered(&["pkt_size 42"]), "size 42: frames have at least 58 bytes"));
    assert_eq!(lengths(&["min_pkt_size 56", "max_pkt_size 60"], 4), [58, 59, 60, 58]);
    assert_eq!(lengths(&["min_pkt_size 42", "max_pkt_size 50"], 2), [58, 58]);
    assert_eq!(lengths(&["dst6 2001:db8::1", "vlan_id 3"], 1), [82]);

    let commands = ["imix_weights 64,7 576,4 1518,1"];
    let device = lowered(&commands);
    let mut counts = BTreeMap::new();
    for length in lengths(&commands, 12_000) {
        *counts.entry(length).or_insert(0_u64) += 1;
    }
    let expected = [(64, 7000), (576, 4000), (1518, 1000)];
    for ((size, expected), counted) in expected.into_iter().zip(device.imix_counts(12_000)) {
        assert_eq!(counts[&size], counted);
        assert!(counted.abs_diff(expected) < 200, "{size}: {counted}");
    }
    assert_eq!(counts.len(), 3);
    let rare = lowered(&["imix_weights 64,4294967296 128,4294967296 256,1"]);
    assert!(rare.imix_counts(1000)[..2].iter().all(|count| *count > 400));
    let range = ["imix_weights 64,7", "min_pkt_size 70", "max_pkt_size 71"];
    assert_eq!(lengths(&range, 2), [71, 70]);
    assert!(noted(&lowered(&range), "imix_weights: ignored"));
}

#[test]
fn frames_beyond_the_ip_length_field_are_errors() {
    let limit = 14 + 65_535;
    lowered(&[&format!("pkt_size {limit}")]);
    for commands in [format!("pkt_size {}", limit + 1), "imix_weights 9999999999,1".to_owned()] {
        let error = device(&[&commands]).lower().expect_err("too long");
        assert!(matches!(error, LowerError::TooLong { limit: 65_549, .. }), "{error}");
    }
}

#[test]
fn mac_counts_change_the_last_five_bytes() {
    let mac = |commands: &[&str], offset, count| field(commands, offset, 6, count);
    let commands = ["dst_mac 02:00:00:00:00:fe", "dst_mac_count 3"];
    let base = 0x0200_0000_00fe;
    assert_eq!(mac(&commands, 0, 4), [base, base + 1, base + 2, base]);
    let carried = ["dst_mac 02:ff:ff:ff:ff:ff", "dst_mac_count 2"];
    assert_eq!(mac(&carried, 0, 2), [0x02ff_ffff_ffff, 0x0200_0000_0000]);
    let commands = ["src_mac 02:00:00:00:01:00", "src_mac_count 3"];
    assert_eq!(mac(&commands, 6, 3), [0x0200_0000_0100, 0x0200_0000_0101, 0x0200_0000_0102]);
    assert_eq!(mac(&["src_mac_count 2"], 6, 2), [0x0200_0000_000a, 0x0200_0000_000b]);
    assert!(noted(&lowered(&["src_mac_count 2"]), "src_mac_count: counts from the interface's"));
    assert_eq!(mac(&["dst_mac 02:00:00:00:00:01", "dst_mac_count 1"], 0, 2), [0x0200_0000_0001; 2]);
    for (flag, count, offset, base) in [
        ("flag MACSRC_RND", "src_mac_count 4", 6, 0x0200_0000_000a_u64),
        ("flag MACDST_RND", "dst_mac_count 4", 0, 0),
    ] {
        let values = random_values(&[flag, count], offset, 6);
        assert_eq!(values, (base..base + 4).collect());
    }
}

#[test]
fn tags_and_labels_have_the_offsets_of_the_kernel() {
    let frame = |commands: &[&str]| frames(&lowered(commands), 1).remove(0);
    let one = frame(&["pkt_size 64", "vlan_id 7", "vlan_p 5", "vlan_cfi 1"]);
    assert_eq!(one.len(), 64);
    assert_eq!(number(&one, 12, 8), 0x8100_b007_0800_4500);
    assert_eq!(number(&one, 20, 2), 46);
    let two = ["vlan_id 7", "vlan_p 1", "svlan_id 8", "svlan_p 2", "svlan_cfi 1"];
    let tagged = frame(&two);
    assert_eq!(tagged.len(), 66);
    assert_eq!(number(&tagged, 12, 6), 0x8100_5008_8100);
    assert_eq!(number(&tagged, 18, 4), 0x2007_0800);
    assert!(noted(&lowered(&two), "ethertype 0x8100"));
    let tagged = frame(&["vlan_id 7", "dst6 2001:db8::1"]);
    assert_eq!(number(&tagged, 12, 8), 0x8100_0007_86dd_6000);
    let labels = frame(&["mpls 0001003f,00020040"]);
    assert_eq!(number(&labels, 12, 2), 0x8847);
    assert_eq!(number(&labels, 14, 8), 0x0001_003f_0002_0140, "the last one ends the stack");
    assert_eq!(number(&labels, 22, 2), 0x4500);
    let values = random_values(&["vlan_id 7", "vlan_p 5", "svlan_id 8", "flag SVID_RND"], 14, 8);
    assert!(values.len() > 2000, "outer tags are drawn");
    assert!(values.iter().all(|bytes| bytes & 0xf000_ffff_ffff_ffff == 0x8100_a007_0800));
}

#[test]
fn random_labels_keep_traffic_class_and_time_to_live() {
    let commands = ["mpls 00010e3f,00021740"];
    let device = lowered(&commands);
    assert!(noted(&device, "flag MPLS_RND"), "{:?}", device.notes);
    let frames = frames(&device, 1000);
    let labels: BTreeSet<u64> = frames.iter().map(|frame| number(frame, 18, 4) >> 12).collect();
    assert!(labels.len() > 990);
    for frame in &frames {
        assert_eq!(number(frame, 14, 4), 0x0001_0e3f, "without the bit: as written");
        assert_eq!(number(frame, 18, 4) & 0xfff, 0x740);
    }
    let off = lowered(&[commands[0], "flag !MPLS_RND"]);
    assert_eq!(number(&self::frames(&off, 2)[1], 18, 4), 0x0002_1740);
}

#[test]
fn bits_between_ipv6_destinations_are_random() {
    let last = |commands: &[&str]| random_values(commands, 14 + 38, 2);
    let commands = ["dst6_min 2001:db8::10", "dst6_max 2001:db8::1f"];
    assert_eq!(last(&commands), (0x10..0x20).collect());
    let odd = ["dst6_min 2001:db8::9", "dst6_max 2001:db8::c"];
    assert_eq!(last(&odd), BTreeSet::from([0x8, 0xc]), "no range");
    assert!(noted(&lowered(&odd), "dst6_min, dst6_max: no range"));
    let frame = &frames(&lowered(&commands), 1)[0];
    assert_eq!(frame[38..53], [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let alone = ["dst6_min 2001:db8::9"];
    assert_eq!(last(&alone), BTreeSet::from([9]));
    assert!(noted(&lowered(&alone), "dst6_max: not set, so all frames go to dst6_min"));
}

#[test]
fn clones_and_bursts_repeat_each_packet() {
    let commands = ["pkt_size 60", "dst_min 10.0.0.0", "dst_max 10.0.0.9"];
    let sent = |more: &[&str]| -> Vec<(u64, u64, u64)> {
        let frames = frames(&lowered(&[&commands[..], more].concat()), 7);
        let fields = |frame: &Vec<u8>| {
            (number(frame, 18, 2), number(frame, SEQUENCE, 4), number(frame, DESTINATION, 4) & 0xff)
        };
        frames.iter().map(fields).collect()
    };
    let once = (0..7).map(|n| (n, n + 1, n + 1)).collect::<Vec<_>>();
    for more in [&[][..], &["clone_skb 0"], &["clone_skb 1"], &["burst 1"]] {
        assert_eq!(sent(more), once);
    }
    let thrice: Vec<_> = (0..7).map(|n| n / 3).map(|n| (n, 3 * n + 1, n + 1)).collect();
    assert_eq!(sent(&["clone_skb 3"]), thrice);
    assert_eq!(sent(&["burst 3"]), thrice);
    let both: Vec<_> = (0..7).map(|n| n / 6).map(|n| (n, 6 * n + 1, n + 1)).collect();
    assert_eq!(sent(&["clone_skb 3", "burst 2"]), both);
    let device = lowered(&["clone_skb 3"]);
    assert!(noted(&device, "each packet is sent 3 times with the same sequence number"));
    assert!(noted(&device, "each time with its own time stamp"));
    let stream = &device.streams[0];
    let wrapped = frame(stream, u64::from(u32::MAX) + 1);
    assert_eq!(number(&wrapped, SEQUENCE, 4), 0, "32 bits that wrap: 2^32 / 3 is not whole");
}

#[test]
fn sequential_flows_keep_their_destination() {
    let range = ["dst_min 10.0.0.0", "dst_max 10.0.0.9", "flag FLOW_SEQ"];
    let low = |more: &[&str], count| -> Vec<u64> {
        let values = field(&[&range[..], more].concat(), DESTINATION, 4, count);
        values.iter().map(|address| address & 0xff).collect()
    };
    assert_eq!(low(&["flows 2", "flowlen 3"], 8), [1, 1, 1, 2, 2, 2, 3, 3]);
    assert_eq!(low(&["flows 2"], 3), [1, 2, 3]);
    assert_eq!(low(&["flowlen 3"], 3), [1, 2, 3], "no flows");
    assert_eq!(low(&["flows 2", "flowlen 2", "clone_skb 2"], 9), [1, 1, 1, 1, 2, 2, 2, 2, 3]);
    let random = ["flag IPDST_RND", "flows 2", "flowlen 50"];
    let addresses = low(&random, 200);
    assert!(addresses.chunks(50).all(|flow| flow.iter().all(|address| *address == flow[0])));
    assert!(addresses.iter().collect::<BTreeSet<_>>().len() > 1);
    let sources = ["src_min 10.0.1.0", "src_max 10.0.1.9", "flows 2", "flowlen 3"];
    let device = lowered(&[&range[..], &sources].concat());
    assert!(noted(&device, "flows: keep only their destination address"), "{:?}", device.notes);
    assert!(noted(&device, "the number of flows has no effect"));
}

#[test]
fn random_flows_keep_their_destination_until_replaced() {
    let commands = ["dst_min 10.0.0.0", "dst_max 10.0.255.255", "flows 5", "flowlen 3"];
    let addresses = field(&[&commands[..], &["count 1000"]].concat(), DESTINATION, 4, 1000);
    let mut frames_of = BTreeMap::new();
    for (at, address) in addresses.iter().enumerate() {
        frames_of.entry(address).or_insert_with(Vec::new).push(at);
    }
    let ended = frames_of.values().filter(|frames| frames.len() == 4).count();
    assert!(frames_of.values().all(|frames| frames.len() <= 4), "flowlen and one more");
    assert!(frames_of.len() - ended <= 5, "all but those at the end are whole");
    // At most five flows are active at any time, each from its first to its last frame.
    for at in 0..1000 {
        let alive =
            frames_of.values().filter(|frames| frames[0] <= at && at <= frames[frames.len() - 1]);
        assert!(alive.count() <= 5);
    }
    let begun: Vec<u64> = frames_of.keys().map(|address| **address & 0xffff).collect();
    assert_eq!(begun, (1..=begun.len() as u64).collect::<Vec<_>>(), "one after another");
    let endless = lowered(&[&commands[..], &["count 0"]].concat());
    assert!(noted(&endless, "destinations repeat after 131072 packets"));
}

#[test]
fn scripts_are_reproducible_and_devices_independent() {
    let commands = ["udp_src_min 1", "udp_src_max 60000", "flag UDPSRC_RND"];
    assert_eq!(field(&commands, SOURCE_PORT, 2, 100), field(&commands, SOURCE_PORT, 2, 100));
    let mut pktgen = device(&commands);
    pktgen.write("kpktgend_1", "add_device eth1").expect("a device");
    for command in commands {
        pktgen.write("eth1", command).expect("a setting");
    }
    let devices = pktgen.lower().expect("devices");
    let ports = |device: &LoweredDevice| -> Vec<u64> {
        frames(device, 100).iter().map(|frame| number(frame, SOURCE_PORT, 2)).collect()
    };
    assert_ne!(ports(&devices[0]), ports(&devices[1]));
}
