//! Patterns, sizes, rates and durations.

use wirestorm_base::rate::{Decimal, Layer, Rate};
use wirestorm_base::time::Duration;
use wirestorm_model::stream::{Mode, Speed};
use wirestorm_otg::lower::{CaptureFormat, LatencyMode};
use wirestorm_otg::{Resolve, lower};
use wirestorm_plan::traffic::RequestedRate;

use crate::support::{
    bytes, errors, fixture, frames, frames_of, lowered, number, packet_frames, with_flow,
};

#[test]
fn a_flow_of_snappi_has_its_values_in_lockstep() {
    let lowered = lowered(&fixture("patterns"));
    let sent = frames(&lowered.plan.flows[0].stream, 30);
    for (index, frame) in sent.iter().enumerate() {
        assert_eq!(frame.len(), 124);
        assert_eq!(frame[..6], [2, 0, 0, 0, 1, 1 + (index % 2) as u8], "{index}");
        assert_eq!(frame[26..30], [10, 0, (index % 3) as u8, 1], "{index}");
        assert_eq!(frame[30..34], [10, 1, 0, 9 - 2 * (index % 4) as u8], "{index}");
        let source = number(&frame[34..36]);
        assert!((1024..=2047).contains(&source), "{source}");
        assert_eq!(frame[34..36], sent[index % 10][34..36], "random values repeat after 10");
        assert_eq!(number(&frame[36..38]), [53, 5353, 80][index % 3], "{index}");
    }
}

#[test]
fn the_ip_length_follows_the_size_of_each_frame() {
    let lowered = lowered(&fixture("patterns"));
    let sent = frames(&lowered.plan.flows[1].stream, 200);
    let mut lengths = std::collections::BTreeSet::new();
    for frame in &sent {
        // Ethernet, a VLAN tag and the IPv6 header.
        assert_eq!(number(&frame[22..24]) as usize, frame.len() - 58);
        // The smallest of the mix holds headers and signature: 58 + 20 + 18.
        lengths.insert(frame.len());
    }
    assert_eq!(lengths.into_iter().collect::<Vec<_>>(), [96, 566, 1514]);
    let text = lowered.warnings[0].to_string();
    assert_eq!(
        text,
        "flows[1].size: frames of 64 bytes are too short for their headers and signature; they \
         have 100 bytes"
    );
}

#[test]
fn rates_and_durations_are_those_of_the_flow() {
    let plan = lowered(&fixture("patterns")).plan;
    let million = Rate::new(1_000_000, Duration::from_secs(1)).unwrap();
    assert_eq!(plan.flows[0].rate, RequestedRate::Speed(Speed::Frames(million)));
    assert_eq!(plan.flows[0].stream.transmission.mode, Mode::Burst { frames: 100 });
    let percentage = Decimal { digits: 125, denominator: 10 };
    assert_eq!(plan.flows[1].rate, RequestedRate::Percentage(percentage));
    let mode = plan.flows[1].stream.transmission.mode;
    assert_eq!(mode, Mode::Bursts { frames: 10, count: 3, gap: Duration::from_micros(50) });
    assert_eq!(plan.ports[0].speed, Some(Rate::TEN_GIGA));
    let streams = plan.streams(0, None, wirestorm_plan::Multiplier::ONE).unwrap();
    let eighth = Rate::new(1_250_000_000, Duration::from_secs(1)).unwrap();
    assert_eq!(streams[1].1.transmission.speed, Speed::Bits(eighth, Layer::Wire));
}

#[test]
fn settings_beside_the_plan_are_kept() {
    let lowered = lowered(&fixture("patterns"));
    assert_eq!(lowered.flows[0].name, "udp");
    assert!(lowered.flows[0].metrics.enabled);
    assert_eq!(lowered.flows[1].streams[0].planned, 1);
    let capture = &lowered.captures[0];
    assert_eq!((&capture.ports[..], capture.format), (&[1][..], CaptureFormat::Pcap));
    assert!(capture.overwrite && capture.filters.is_empty());
    assert_eq!(lowered.ports[0].location.as_deref(), Some("veth1"));
}

#[test]
fn counters_wrap_by_their_count_and_at_the_width_of_the_field() {
    let packet = r#"[{"ethernet": {}}, {"vlan": {"id": {"increment": {"start": 4094, "step": 1,
        "count": 5}}, "priority": {"decrement": {"start": 1, "step": 3, "count": 3}}}}]"#;
    let tags: Vec<(u128, u128)> = packet_frames(packet, 6)
        .iter()
        .map(|frame| number(&frame[14..16]))
        .map(|tag| (tag & 0xfff, tag >> 13))
        .collect();
    assert_eq!(tags, [(4094, 1), (4095, 6), (0, 3), (1, 1), (2, 6), (4094, 3)]);
}

#[test]
fn sizes_count_the_fcs() {
    let lengths = |size: &str, count| -> Vec<usize> {
        let config = with_flow(r#"[{"ethernet": {}}]"#, &format!(r#", "size": {size}"#));
        frames_of(&config, count).iter().map(|frame| frame.len() + 4).collect()
    };
    assert_eq!(lengths(r#"{"fixed": 100}"#, 1), [100]);
    assert_eq!(lengths("{}", 1), [64]);
    let increment = r#"{"increment": {"start": 64, "end": 100, "step": 20}}"#;
    assert_eq!(lengths(increment, 4), [64, 84, 64, 84]);
    let random = lengths(r#"{"random": {"min": 70, "max": 75}}"#, 100);
    assert!(random.iter().all(|length| (70..=75).contains(length)));
    let custom = r#"{"weight_pairs": {"custom": [{"size": 80, "weight": 0.5}, {"size": 90,
        "weight": 0}, {"size": 95, "weight": 1.5}]}}"#;
    let custom = lengths(custom, 400);
    let share = custom.iter().filter(|length| **length == 80).count();
    assert!((60..140).contains(&share), "{share} of 400 frames, expected a quarter");
    assert!(!custom.contains(&90));
}

#[test]
fn rates_in_bits_include_preamble_and_gap() {
    for (rate, bits) in [
        (r#"{"bps": "672"}"#, 672),
        (r#"{"kbps": 5}"#, 5_000),
        (r#"{"mbps": 7}"#, 7_000_000),
        (r#"{"gbps": 3}"#, 3_000_000_000),
    ] {
        let config = with_flow("[]", &format!(r#", "rate": {rate}"#));
        let bits = Rate::new(bits, Duration::from_secs(1)).unwrap();
        let expected = RequestedRate::Speed(Speed::Bits(bits, Layer::Wire));
        assert_eq!(lowered(&config).plan.flows[0].rate, expected, "{rate}");
    }
    let config = with_flow("[]", "");
    let thousand = Rate::new(1_000, Duration::from_secs(1)).unwrap();
    let expected = RequestedRate::Speed(Speed::Frames(thousand));
    assert_eq!(lowered(&config).plan.flows[0].rate, expected);
}

#[test]
fn durations_have_delays_and_gaps() {
    let flow = |duration: &str| {
        let config = with_flow("[]", &format!(r#", "duration": {duration}"#));
        let mut resolve = Resolve::default();
        resolve.set_speed("p1", Rate::new(8, Duration::from_nanos(1)).unwrap());
        let lowered = lower(&config, &resolve).unwrap();
        (lowered.plan.flows[0].clone(), lowered.warnings.len())
    };
    let (seconds, warnings) =
        flow(r#"{"fixed_seconds": {"seconds": 0.5, "delay": {"microseconds": 3}, "gap": 50}}"#);
    assert_eq!(seconds.duration, Some(Duration::from_millis(500)));
    assert_eq!(seconds.stream.transmission.start_delay, Duration::from_micros(3));
    assert_eq!(warnings, 1);
    let (bytes, _) = flow(r#"{"continuous": {"delay": {"bytes": 64}}}"#);
    assert_eq!(bytes.stream.transmission.start_delay, Duration::from_nanos(64));
    let (endless, _) = flow(r#"{"burst": {"packets": 4, "inter_burst_gap": {"bytes": 1000}}}"#);
    let gap = Duration::from_nanos(1000);
    let mode = Mode::Bursts { frames: 4, count: u64::MAX, gap };
    assert_eq!(endless.stream.transmission.mode, mode);
    let (without_gap, _) = flow(r#"{"burst": {"packets": 4, "bursts": 3}}"#);
    assert_eq!(without_gap.stream.transmission.mode, Mode::Burst { frames: 12 });
    let config = with_flow("[]", r#", "duration": {"continuous": {"delay": {"bytes": 64}}}"#);
    assert_eq!(
        errors(&config),
        ["flows[0].duration.continuous.delay: a time in bytes needs the port's speed: set \
          layer1.speed"]
    );
}

#[test]
fn payloads_fill_the_frame_behind_the_headers() {
    let payload = |payload: &str| {
        let more = format!(r#", "size": {{"fixed": 24}}, "payload": {payload}"#);
        frames_of(&with_flow(r#"[{"ethernet": {}}]"#, &more), 1)[0][14..].to_vec()
    };
    assert_eq!(payload(r#"{"fixed": {"pattern": "a1b2c3"}}"#), bytes("a1b2c3a1b2c3"));
    assert_eq!(payload(r#"{"choice": "increment_byte"}"#), bytes("000102030405"));
    assert_eq!(payload(r#"{"choice": "decrement_byte"}"#), bytes("fffefdfcfbfa"));
    assert_eq!(payload(r#"{"choice": "increment_word"}"#), bytes("000000010002"));
    assert_eq!(payload(r#"{"choice": "decrement_word"}"#), bytes("fffffffefffd"));
}

#[test]
fn metric_tags_have_offsets_in_the_frame() {
    let packet = r#"[{"ethernet": {}}, {"vlan": {"id": {"value": 5, "metric_tags":
        [{"name": "vlan"}]}}}, {"ipv4": {"src": {"metric_tags": [{"name": "net", "offset": 8,
        "length": 16}]}, "priority": {"dscp": {"phb": {"value": 46, "metric_tags":
        [{"name": "dscp"}]}}}}}]"#;
    let more = r#", "egress_packet": [{"ethernet": {}}, {"ipv4": {"time_to_live": {"metric_tags":
        [{"name": "ttl"}]}}}], "metrics": {"enable": true, "loss": true, "latency":
        {"enable": true, "mode": "cut_through"}, "rx_tx_ratio": {"choice": "rx_count"}}"#;
    let lowered = lowered(&with_flow(packet, more));
    let flow = &lowered.flows[0];
    let tags: Vec<_> =
        flow.tags.iter().map(|it| (it.name.as_str(), it.bit_offset, it.bit_length)).collect();
    let ip = 8 * 18;
    assert_eq!(tags, [("vlan", 116, 12), ("net", ip + 96 + 8, 16), ("dscp", ip + 8, 6)]);
    assert_eq!((flow.egress_tags[0].bit_offset, flow.egress_tags[0].bit_length), (112 + 64, 8));
    assert_eq!(flow.metrics.latency, Some(LatencyMode::CutThrough));
    assert!(flow.metrics.loss && !flow.metrics.timestamps);
}

#[test]
fn frames_that_receivers_do_not_count_are_a_warning() {
    let warnings = |packet: &str| {
        let config = with_flow(packet, r#", "metrics": {"enable": true}"#);
        lowered(&config).warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        warnings(r#"[{"ethernet": {}}, {"arp": {}}]"#),
        ["flows[0].metrics: receivers leave ARP to the kernel: no frame is counted as received"]
    );
    assert_eq!(warnings(r#"[{"ethernet": {}}, {"ipv4": {}}, {"icmp": {}}]"#), [""; 0]);
}

#[test]
fn invalid_values_have_their_path() {
    for (packet, expected) in [
        (
            r#"[{"ipv4": {"src": {"value": "10.0.0.300"}}}]"#,
            "flows[0].packet[0].ipv4.src.value: found \"10.0.0.300\", expected an IPv4 address",
        ),
        (
            r#"[{"ethernet": {}}, {"vlan": {"id": {"values": [1, 4096]}}}]"#,
            "flows[0].packet[1].vlan.id.values[1]: found 4096, expected a whole number from 0 to \
             4095",
        ),
        (
            r#"[{"udp": {"dst_port": {"increment": {"count": 0}}}}]"#,
            "flows[0].packet[0].udp.dst_port.increment.count: found 0, expected at least 1",
        ),
        (
            r#"[{"tcp": {"src_port": {"random": {"min": 5, "max": 4}}}}]"#,
            "flows[0].packet[0].tcp.src_port.random.max: found less than min",
        ),
        (
            r#"[{"ipv4": {"src": {"auto": {"choice": "dhcp"}}}}]"#,
            "flows[0].packet[0].ipv4.src.auto: not supported",
        ),
        (
            r#"[{"ethernet": {}}, {"udp": {}}]"#,
            "flows[0].packet[1].udp.checksum: covers the addresses of an IP header, but none \
             precedes it; give it a value",
        ),
        (
            r#"[{"custom": {"bytes": "xy"}}]"#,
            "flows[0].packet[0].custom.bytes: found \"xy\", expected hexadecimal digits",
        ),
    ] {
        let found = errors(&with_flow(packet, ""));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0], expected);
    }
}

#[test]
fn names_must_exist_and_be_unique() {
    let config = with_flow("[]", r#", "rate": {"pps": 0}"#);
    assert_eq!(
        errors(&config),
        ["flows[0].rate.pps: found 0, expected more than 0 and at most 10^18 per second"]
    );
    let mut config = with_flow("[]", "");
    config.flows.push(config.flows[0].clone());
    config.ports[1].name = Some("p1".into());
    let found = errors(&config);
    assert_eq!(
        found,
        [
            "ports[1].name: found \"p1\" a second time",
            "flows[0].tx_rx.port.rx_names[0]: found \"p2\", which is no port or LAG of this \
             configuration",
            "flows[1].name: found \"f\" a second time",
            "flows[1].tx_rx.port.rx_names[0]: found \"p2\", which is no port or LAG of this \
             configuration",
        ]
    );
}

#[test]
fn frames_in_tunnels_have_room_for_their_fcs() {
    let packet = r#"[{"ethernet": {}}, {"ipv6": {}}, {"udp": {}}, {"vxlan": {}}, {"ethernet": {}},
        {"ipv4": {"src": {"increment": {"start": "10.0.0.1", "count": 3}}}}, {"tcp": {}}]"#;
    let more = r#", "size": {"fixed": 256}, "metrics": {"enable": true}"#;
    for frame in frames_of(&with_flow(packet, more), 5) {
        assert_eq!(frame.len(), 252);
        assert_eq!(number(&frame[18..20]), 252 - 54, "IPv6 payload length");
        assert_eq!(number(&frame[86..88]), 252 - 84 - 4, "total length of the inner IPv4 header");
        assert_eq!(frame[248..], [0; 4], "FCS of the inner frame");
        assert_eq!(frame[230..232], [0x57, 0x53], "the signature ends before the FCS");
        let pseudo_header = [&frame[96..104], &[0, 6, 0, 144][..]].concat();
        assert_eq!(internet_sum(&[&pseudo_header, &frame[104..248]]), 0, "inner checksum");
        let pseudo_header = [&frame[22..54], &[0, 198, 0, 17][..]].concat();
        assert_eq!(internet_sum(&[&pseudo_header, &frame[54..252]]), 0, "outer checksum");
    }
}

/// Returns the sum of 16-bit words modulo 0xffff: 0 with a correct checksum (RFC 1071).
fn internet_sum(parts: &[&[u8]]) -> u64 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let word = |word: &[u8]| u64::from(word[0]) << 8 | u64::from(*word.get(1).unwrap_or(&0));
    words.map(word).sum::<u64>() % 0xffff
}
