//! Traffic plans, and the errors of invalid ones.

use wirestorm_base::rate::{Layer, Rate};
use wirestorm_base::time::Duration;
use wirestorm_model::stream::{GapDistribution, Mode, Speed, Step};
use wirestorm_plan::Multiplier;
use wirestorm_plan::traffic::TrafficPlan;
use wirestorm_wire::checksum;

const PORTS: &str = "ports:\n  - {name: a, location: eth1, speed: 10G}\n  - {name: b}\n";

fn plan(flows: &str) -> Result<TrafficPlan, String> {
    TrafficPlan::parse(&format!("{PORTS}flows:\n{flows}")).map_err(|errors| errors.to_string())
}

fn error(flows: &str) -> String {
    plan(flows).expect_err("an error")
}

/// Returns the stream of the first flow.
fn stream(flow: &str) -> wirestorm_model::stream::Stream {
    let plan = plan(flow).unwrap_or_else(|errors| panic!("{errors}"));
    plan.streams(0, None, Multiplier::ONE).expect("streams").remove(0).1
}

const UDP: &str = "packet: [{ethernet: {dst: 02:00:00:00:00:02}}, {ipv4: {src: 10.0.0.1, dst: 10.0.0.2}}, {udp: {dst_port: 53}}]";

#[test]
fn fills_lengths_types_and_checksums_of_a_packet() {
    let stream = stream(&format!("  - {{name: f, tx: a, rx: b, {UDP}, size: 64}}"));
    let frame = &stream.template;
    assert_eq!(frame.len(), 60);
    assert_eq!(frame[12..14], [8, 0], "EtherType of IPv4");
    assert_eq!(frame[16..18], [0, 46], "total length");
    assert_eq!(frame[23], 17, "protocol of UDP");
    assert_eq!(checksum::sum(&frame[14..34]), 0xffff, "header checksum");
    assert_eq!(frame[38..40], [0, 26], "UDP length");
    assert!(stream.program.steps.is_empty() && !stream.is_measured);
    assert_eq!(
        stream.transmission.speed,
        Speed::Frames(Rate::parse_per_second("1000", 1).unwrap())
    );
}

#[test]
fn varying_fields_update_checksums() {
    let flow = "  - name: f
    tx: a
    packet:
      - ethernet:
      - ipv4: {src: {increment: {start: 10.0.0.1, count: 250}}, dst: 192.0.2.1}
      - udp: {src_port: {values: [1024, 1025], after: ipv4.src}}
    size: 128";
    let stream = stream(flow);
    assert_eq!(stream.program.variables.len(), 2);
    let sums = stream.program.steps.iter().filter(|step| matches!(step, Step::Checksum(_)));
    assert_eq!(sums.count(), 2, "of IPv4 and of UDP");
    let port = |number| stream.program.variables[1].value(number, &stream.program.variables);
    assert_eq!([port(0), port(249), port(250), port(500)], [1024, 1024, 1025, 1024]);
}

#[test]
fn varying_sizes_update_length_fields() {
    let stream = stream(&format!("  - {{name: f, tx: a, {UDP}, size: imix}}"));
    assert_eq!(stream.template.len(), 1514);
    assert!(matches!(stream.program.steps[0], Step::Length { variable: 0 }));
    let lengths = stream.program.steps.iter().filter(|it| matches!(it, Step::WriteLength { .. }));
    assert_eq!(lengths.count(), 2, "of IPv4 and of UDP");
}

#[test]
fn size_can_be_the_length_of_the_ip_packet() {
    let stream = stream(&format!("  - {{name: f, tx: a, {UDP}, size: {{ip: 64}}}}"));
    assert_eq!(stream.template.len(), 78);
}

#[test]
fn measured_frames_reserve_zeros_for_the_signature() {
    let packet =
        "packet: [{ethernet: {}}, {ipv4: {src: 10.0.0.1}}, {udp: {}}, {payload: {fixed: aa}}]";
    let stream = stream(&format!("  - {{name: f, tx: a, {packet}, size: 128, metrics: {{}}}}"));
    let frame = &stream.template;
    assert!(stream.is_measured && frame.len() == 124);
    assert_eq!(frame[105], 0xaa);
    assert_eq!(frame[106..], [0; 18]);
    // The checksum covers zeros there. A signature is neutral to it, so the checksum stays correct.
    let pseudo = checksum::pseudo_header_ipv4([10, 0, 0, 1], [0; 4], 17, 90);
    assert_eq!(checksum::combine(checksum::sum(&frame[34..]), pseudo), 0xffff);
}

#[test]
fn packets_can_be_deliberately_invalid() {
    let packet = "packet: [{ethernet: {}}, {ipv4: {total_length: 7, header_checksum: bad}}]";
    let stream = stream(&format!("  - {{name: f, tx: a, {packet}}}"));
    assert_eq!(stream.template[16..18], [0, 7]);
    assert_ne!(checksum::sum(&stream.template[14..34]), 0xffff);
}

#[test]
fn parses_modes_rates_and_next_flows() {
    let flows = format!(
        "  - {{name: one, tx: a, {UDP}, rate: 50%, duration: {{fixed_packets: 10}}, next: {{flow: two, times: 3}}}}
  - {{name: two, tx: a, {UDP}, rate: 1G-l2, start: triggered, start_delay: 5ms,
     duration: {{burst: {{packets: 4, bursts: 2, inter_burst_gap: 1us}}}}, inter_departure: poisson}}"
    );
    let plan = plan(&flows).unwrap();
    let streams = plan.streams(0, None, Multiplier::ONE).unwrap();
    let [(_, one), (_, two)] = streams.as_slice() else { panic!("two streams") };
    assert_eq!(one.transmission.mode, Mode::Burst { frames: 10 });
    assert_eq!((one.transmission.next, one.transmission.starts_max), (Some(1), 3));
    let half = Rate::parse_per_second("5G", 1).unwrap();
    assert_eq!(one.transmission.speed, Speed::Bits(half, Layer::Wire));
    let gap = Duration::from_micros(1);
    assert_eq!(two.transmission.mode, Mode::Bursts { frames: 4, count: 2, gap });
    assert_eq!(two.transmission.start_delay, Duration::from_millis(5));
    assert!(matches!(two.transmission.departures, GapDistribution::Poisson { .. }));
    assert!(!two.transmission.self_start);
}

#[test]
fn a_time_limits_a_flow_at_any_rate() {
    let lasts = Duration::from_secs(2);
    for rate in ["1500pps", "100%", "max", "1500pps, inter_departure: poisson", "1G-l1, size: imix"]
    {
        let plan = plan(&format!("  - {{name: f, tx: a, {UDP}, rate: {rate}, duration: 2s}}"));
        let streams = plan.unwrap().streams(0, None, Multiplier::ONE).unwrap();
        assert_eq!(streams[0].1.transmission.mode, Mode::Time { duration: lasts }, "{rate}");
    }
}

#[test]
fn percentages_need_the_port_speed() {
    let text = format!("ports: [{{name: a}}]\nflows:\n  - {{name: f, tx: a, {UDP}, rate: 10%}}");
    let plan = TrafficPlan::parse(&text).unwrap();
    let error = plan.streams(0, None, Multiplier::ONE).unwrap_err().to_string();
    assert!(error.starts_with("flows[0].rate: a percentage needs the port's speed"), "{error}");
    let speed = Rate::parse_per_second("1G", 1).ok();
    assert!(plan.streams(0, speed, Multiplier::ONE).is_ok());
}

#[test]
fn reports_all_errors_at_once_with_their_paths() {
    let flows = format!(
        "  - {{name: f, tx: nowhere, {UDP}}}
  - {{name: g, tx: a, {UDP}, rate: fast}}
  - {{name: h, tx: a, packet: [{{ipv4: {{srcc: 1.2.3.4}}}}]}}"
    );
    let errors = error(&flows);
    let lines: Vec<_> = errors.lines().collect();
    assert_eq!(lines[0], "flows[0].tx: found \"nowhere\", expected the name of a port: a, b");
    assert!(lines[1].starts_with("flows[1].rate: found \"fast\", expected a rate"), "{errors}");
    let unknown = "flows[2].packet[0].ipv4.srcc: found an unknown field, expected src?";
    assert!(lines[2].starts_with(unknown), "{errors}");

    let wrong = format!(
        "  - {{name: f, tx: c, rx: d, {UDP}, size: 7, rate: fast, duration: {{fixed_packets: 1}}}}
  - {{name: g, tx: a, {UDP}, duration: {{fixed_packets: 1}}, next: f}}"
    );
    let errors = error(&wrong);
    let paths: Vec<_> = errors.lines().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(paths, ["flows[0].tx", "flows[0].rx", "flows[0].size", "flows[0].rate"]);

    let wrong = "  - {name: f, tx: a, colour: red, rate: fast, duration: 0s, inter_departure: never,
     start_delay: long, start: soon, next: {flow: g, times: 0},
     packet: [{ethernet: {dst: 1, src: 2}}, {ipv5: }, {ipv4: {ttl: 999, sorce: 1.2.3.4, dst: {increment: {cnt: 2}}}},
              {tcp: {options: [{mss: {value: 70000}}, {nap: }]}}, {custom: {bytes: 0g}}, {payload: {text: 1}}]}";
    let errors = error(wrong);
    let paths: Vec<_> = errors.lines().filter_map(|line| line.split(": ").next()).collect();
    let packet = [
        "[0].ethernet.dst",
        "[0].ethernet.src",
        "[1].ipv5",
        "[2].ipv4.sorce",
        "[2].ipv4.ttl",
        "[2].ipv4.dst.increment.cnt",
        "[3].tcp.options[0].mss.value",
        "[3].tcp.options[1].nap",
        "[4].custom.bytes",
        "[5].payload.text",
    ];
    let mut expected = vec!["flows[0].colour".to_owned()];
    expected.extend(packet.map(|path| format!("flows[0].packet{path}")));
    let others = ["rate", "duration", "inter_departure", "start_delay", "start", "next.times"];
    expected.extend(others.map(|field| format!("flows[0].{field}")));
    assert_eq!(paths, expected, "{errors}");
}

#[test]
fn flows_can_refer_to_a_faulty_port() {
    let text = format!("ports: [{{name: a, speed: fast}}]\nflows: [{{name: f, tx: a, {UDP}}}]");
    let errors = TrafficPlan::parse(&text).unwrap_err().to_string();
    assert_eq!(errors, "ports[0].speed: found \"fast\", expected bits a second, such as 10G");
}

#[test]
fn every_error_has_its_path() {
    let cases = [
        ("{name: f, tx: a}", "flows[0].packet: found nothing, expected a list of headers"),
        ("{tx: a, packet: [{ethernet: }]}", "flows[0].name: found nothing, expected a name"),
        ("{name: f, tx: a, packet: []}", "flows[0].packet: found a list of 0, expected at least"),
        (
            "{name: f, tx: a, packet: [{ipv5: }]}",
            "flows[0].packet[0].ipv5: found an unknown field, expected ipv",
        ),
        (
            "{name: f, tx: a, packet: [{payload: zeros}, {ipv4: }]}",
            "flows[0].packet[0].payload: found a payload in the middle",
        ),
        (
            "{name: f, tx: a, packet: [{ethernet: }, {ipv4: {src: 1.2.3}}]}",
            "flows[0].packet[1].ipv4.src: found \"1.2.3\", expected an IPv4 address",
        ),
        (
            "{name: f, tx: a, packet: [{ethernet: }, {ipv4: {time_to_live: 256}}]}",
            "flows[0].packet[1].ipv4.time_to_live: found 256, expected a whole number from 0 to 255",
        ),
        (
            "{name: f, tx: a, packet: [{ethernet: }, {udp: {dst_port: {random: {min: 9, max: 1}}}}]}",
            "flows[0].packet[1].udp.dst_port.random.max: found 1, expected at least min",
        ),
        (
            "{name: f, tx: a, packet: [{ethernet: }, {ipv4: }, {udp: {dst_port: {values: [1], after: ipv4.src}}}]}",
            "flows[0].packet[2].udp.dst_port.after: found \"ipv4.src\", expected a field that varies",
        ),
        (
            "{name: f, tx: a, packet: [{ethernet: }, {udp: {dst_port: {values: [1], shift: 16}}}]}",
            "flows[0].packet[1].udp.dst_port.shift: found 16, expected bits to the left, from -15 to 15",
        ),
        (
            "{name: f, tx: a, packet: [{ethernet: }, {udp: {dst_port: {value: 1, mask: 15}}}]}",
            "flows[0].packet[1].udp.dst_port: found fields (mask, ...), expected one of values",
        ),
        (
            "{name: f, tx: a, packet: [{ethernet: }, {udp: {dst_port: {random: {count: 2}, restart_after: 3}}}]}",
            "flows[0].packet[1].udp.dst_port.random.count: count and restart_after are the same",
        ),
        (
            "{name: f, tx: a, packet: [{ethernet: }], size: 10}",
            "flows[0].size: found 10, expected a whole number from 18",
        ),
        (
            "{name: f, tx: a, packet: [{ethernet: }, {ipv6: }, {tcp: }], size: 64}",
            "flows[0].packet: headers and payload need a frame of 78 bytes with FCS, and the size is 64",
        ),
        (
            "{name: f, tx: a, packet: [{ethernet: }, {ipv4: }, {udp: }], size: 60, metrics: {}}",
            "flows[0].packet: headers, payload and signature need a frame of 64 bytes",
        ),
        (
            "{name: f, tx: a, packet: [{ethernet: }], duration: 5}",
            "flows[0].duration: found 5, expected continuous, a time",
        ),
        (
            "{name: f, tx: a, packet: [{ethernet: }], next: f}",
            "flows[0].next: found a flow that has no end",
        ),
        (
            "{name: f, tx: a, packet: [{ethernet: }], duration: {fixed_packets: 1}, next: g}",
            "flows[0].next: found \"g\", expected the name of a flow",
        ),
        (
            "{name: f, tx: a, packet: [{ethernet: }], inter_departure: bursty}",
            "flows[0].inter_departure: found \"bursty\", expected constant, poisson",
        ),
        (
            "{name: f, tx: a, packet: [{ethernet: }], start: later}",
            "flows[0].start: found \"later\", expected immediate",
        ),
        (
            "{name: f, tx: a, packet: [{ethernet: }], metrics: {enable: maybe}}",
            "flows[0].metrics.enable: found \"maybe\", expected true or false",
        ),
        (
            "{name: f, tx: a, packet: [{ethernet: }], colour: red}",
            "flows[0].colour: found an unknown field, expected one of name, tx",
        ),
    ];
    for (flow, expected) in cases {
        let errors = error(&format!("  - {flow}"));
        assert!(errors.starts_with(expected), "{flow}\n  {errors}\n  {expected}");
    }
    let twice = format!("  - {{name: f, tx: a, {UDP}}}\n  - {{name: f, tx: a, {UDP}}}");
    assert_eq!(error(&twice), "flows[1]: found a second flow \"f\", expected a unique name");
    let none = TrafficPlan::parse("{}").unwrap_err().to_string();
    let both = "ports: found nothing, expected a list of ports\n\
                flows: found nothing, expected a list of flows";
    assert_eq!(none, both);
}

/// Returns the values of the stream's varying fields in frame `number`, in plan order.
fn values(stream: &wirestorm_model::stream::Stream, number: u64) -> Vec<u128> {
    let variables = &stream.program.variables;
    variables.iter().map(|variable| variable.value(number, variables)).collect()
}

#[test]
fn random_fields_are_independent() {
    let flow = "  - name: f
    tx: a
    packet: [{ethernet: }, {ipv4: }, {udp: {src_port: {random: {}}, dst_port: {random: {}}}}]
    size: {random: {min: 64, max: 1518}}";
    let stream = stream(flow);
    // With the same seed, both fields would be below their middle in the same frames.
    let low = |number: u64, field: usize, middle: u128| values(&stream, number)[field] < middle;
    for (first, second) in [((0, 32_768), (1, 32_768)), ((0, 32_768), (2, 787))] {
        let alike =
            (0..1_000).filter(|&n| low(n, first.0, first.1) == low(n, second.0, second.1)).count();
        assert!((400..600).contains(&alike), "{first:?} {second:?}: {alike} of 1000");
    }
    let seeds = |departures: &str| {
        let flow = |name: &str| {
            format!("  - {{name: {name}, tx: a, {UDP}, inter_departure: {departures}}}\n")
        };
        let plan = plan(&(flow("f") + &flow("g"))).expect("a plan");
        plan.flows.iter().map(|it| it.stream.transmission.departures).collect::<Vec<_>>()
    };
    let [first, second] = seeds("poisson")[..] else { panic!("two flows") };
    assert_ne!(first, second, "two flows with equal gaps would leave together");
    let same = GapDistribution::Poisson { seed: 7 };
    assert_eq!(seeds("{poisson: {seed: 7}}"), [same, same]);
}

#[test]
fn mask_and_shift_vary_some_bits_of_a_field() {
    let frames = |field: &str| {
        let flow =
            format!("  - {{name: f, tx: a, packet: [{{ethernet: }}, {{ipv4: {{src: {field}}}}}]}}");
        let stream = stream(&flow);
        (0..4)
            .map(|number| {
                let mut frame = stream.template.clone();
                for step in &stream.program.steps {
                    if let Step::Write(write) = step {
                        write.apply(values(&stream, number)[write.variable], &mut frame);
                    }
                }
                if number == 0 {
                    assert_eq!(frame[26..30], stream.template[26..30], "the template is frame 0");
                }
                std::net::Ipv4Addr::from(<[u8; 4]>::try_from(&frame[26..30]).unwrap()).to_string()
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(
        frames(
            "{value: 10.0.3.1, increment: {start: 0.0.0.254, count: 4}, shift: 16, mask: 0.255.0.0}"
        ),
        ["10.254.3.1", "10.255.3.1", "10.0.3.1", "10.1.3.1"]
    );
    assert_eq!(
        frames("{value: 10.0.3.255, values: [0.0.8.0, 0.0.7.255], shift: -8, mask: 0.0.0.15}"),
        ["10.0.3.248", "10.0.3.247", "10.0.3.248", "10.0.3.247"]
    );
}

#[test]
fn restart_after_limits_the_number_of_flows() {
    let flow = "  - name: f
    tx: a
    packet:
      - ethernet:
      - ipv4: {src: {increment: {start: 16.0.0.1, count: 3}, restart_after: 7}}
      - udp: {src_port: {increment: {start: 1025, count: 100}, after: ipv4.src}}";
    let stream = stream(flow);
    let pairs: Vec<_> = (0..9).map(|number| values(&stream, number)).collect();
    let of = |host: u128, port| vec![0x1000_0000 + host, port];
    assert_eq!(pairs[..4], [of(1, 1025), of(2, 1025), of(3, 1025), of(1, 1026)]);
    assert_eq!(pairs[6..], [of(1, 1027), of(1, 1025), of(2, 1025)], "the eighth is the first");
}

#[test]
fn custom_bytes_can_vary_by_offset() {
    let packet = |custom: &str| {
        format!(
            "  - {{name: f, tx: a, packet: [{{ethernet: }}, {{ipv4: }}, {{udp: }}, {{custom: {custom}}}]}}"
        )
    };
    let stream = stream(&packet(
        "{bytes: '0102030405060708', 'bytes[2..4]': {increment: {start: 0xfffe, count: 3}}, 'bytes[7..8]': 0xaa}",
    ));
    assert_eq!(stream.template[42..50], [1, 2, 0xff, 0xfe, 5, 6, 7, 0xaa]);
    assert_eq!(values(&stream, 1), [0xffff]);
    let Step::Write(write) = &stream.program.steps[0] else { panic!("{:?}", stream.program) };
    assert_eq!(write.target(), 44..46);
    let sums = stream.program.steps.iter().filter(|step| matches!(step, Step::Checksum(_)));
    assert_eq!(sums.count(), 1, "of UDP, which covers it");
    let wrong = error(&packet("{bytes: '0102', 'bytes[1..3]': 7}"));
    let expected =
        "flows[0].packet[3].custom.bytes[1..3]: found bytes[1..3], expected bytes[FIRST..END]";
    assert!(wrong.starts_with(expected), "{wrong}");
}
