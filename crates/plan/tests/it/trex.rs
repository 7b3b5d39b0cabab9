//! TRex's stateless streams: lowering and errors.

use std::num::NonZeroU64;

use serde_json::{Value, json};
use wirestorm_base::rate::Rate;
use wirestorm_base::time::Duration;
use wirestorm_model::stream::{ByteOrder, Mode, Speed, Step, Stream, Values};
use wirestorm_plan::Multiplier;
use wirestorm_plan::trex::{LowerOptions, Marking, load, lower};
use wirestorm_wire::checksum::checksum;

use crate::trex_documents::{base64, document, flow_var, stream, udp, with};

fn lowered_with(options: &LowerOptions, streams: &[Value]) -> Vec<Stream> {
    lower(&document(streams), options).expect("streams that mean something")
}

fn lowered(streams: &[Value]) -> Vec<Stream> {
    lowered_with(&LowerOptions::simulator(), streams)
}

fn instructions(list: &[Value]) -> Value {
    with(stream(), "vm", json!({ "instructions": list }))
}

/// Returns the first values of the `index`-th variable of a stream with these instructions.
fn values(list: &[Value], index: usize, count: u64) -> Vec<u128> {
    values_of(&lowered(&[instructions(list)])[0], index, count)
}

fn values_of(stream: &Stream, index: usize, count: u64) -> Vec<u128> {
    let variables = &stream.program.variables;
    (0..count).map(|number| variables[index].value(number, variables)).collect()
}

#[track_caller]
fn assert_error(streams: &[Value], expected: &str) {
    let error = lower(&document(streams), &LowerOptions::simulator()).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}\nlacks {expected}");
}

fn frames_per_second(stream: &Stream) -> f64 {
    let Speed::Frames(rate) = stream.transmission.speed else { panic!("{stream:?}") };
    rate.per_second()
}

#[test]
fn unknown_fields_are_errors_with_their_path() {
    let error = lower("[1", &LowerOptions::simulator()).unwrap_err().to_string();
    assert!(error.starts_with("not JSON: "), "{error}");
    let error = lower("{}", &LowerOptions::simulator()).unwrap_err().to_string();
    assert_eq!(error, "document: found an object, expected a list of streams");
    assert_error(&[stream(), with(stream(), "colour", json!(1))], "[1]: unknown field `colour`");
    assert_error(
        &[json!({ "id": 1, "stream": with(stream(), "colour", json!(1)) })],
        "[0].stream: unknown field `colour`",
    );
    let rate = json!({ "type": "pps", "value": 1, "per": 2 });
    assert_error(
        &[with(stream(), "mode", json!({ "type": "continuous", "rate": rate }))],
        "[0].mode.rate: unknown field `per`",
    );
    assert_error(
        &[with(stream(), "mode", json!({ "type": "endless", "rate": {} }))],
        "[0].mode: unknown variant `endless`",
    );
    let mut more = flow_var("a", 1, "inc", 0, 9, 1);
    more["colour"] = json!(1);
    assert_error(
        &[instructions(&[flow_var("b", 1, "inc", 0, 9, 1), more])],
        "[0].vm.instructions[1]: unknown field `colour`",
    );
    let packet = json!({ "binary": "AAA", "meta": "" });
    assert_error(&[with(stream(), "packet", packet)], "[0].packet.binary: ");
    assert_error(&[with(stream(), "flags", json!(16))], "[0].flags: found 16, expected 0 to 15");
}

#[test]
fn short_frames_are_padded_with_zeros_to_60_bytes() {
    let packet: Vec<u8> = (0..52).collect();
    let streams =
        lowered(&[with(stream(), "packet", json!({ "binary": base64(&packet), "meta": "" }))]);
    assert_eq!(streams[0].template[12..52], packet[12..]);
    assert_eq!(streams[0].template[52..], [0; 8]);
}

#[test]
fn flags_select_addresses_of_the_port_or_the_packet() {
    let (ports, packets) = (([0x10; 6], [0x18; 6]), ([0, 0, 0, 1, 0, 0], [0, 0, 0, 2, 0, 0]));
    let cases = [
        (0b000, ports.0, ports.1),
        (0b001, ports.0, packets.1),
        (0b010, packets.0, ports.1),
        (0b011, packets.0, packets.1),
        (0b100, ports.0, ports.1),
        (0b101, ports.0, packets.1),
    ];
    for (flags, destination, source) in cases {
        let streams = lowered(&[with(stream(), "flags", json!(flags))]);
        assert_eq!(streams[0].template[..6], destination, "{flags:#b}");
        assert_eq!(streams[0].template[6..12], source, "{flags:#b}");
    }
}

#[test]
fn ranges_extend_to_a_multiple_of_the_step() {
    let inc = [flow_var("a", 1, "inc", 0, 255, 100)];
    assert_eq!(values(&inc, 0, 5), [0, 100, 200, 0, 100]);
    let dec = [flow_var("a", 2, "dec", 2, 10, 4)];
    assert_error(
        &[instructions(&dec)],
        "[0].vm.instructions[0].min_value: found 2, expected at least 3",
    );
    let dec = [flow_var("a", 2, "dec", 5, 10, 4)];
    assert_eq!(values(&dec, 0, 4), [10, 6, 10, 6]);
    let mut begun = flow_var("a", 4, "inc", 0, 9, 5);
    begun["init_value"] = json!(8);
    assert_eq!(values(&[begun], 0, 4), [8, 3, 8, 3]);
    let one = [flow_var("a", 4, "inc", 7, 9, 50)];
    assert_eq!(values(&one, 0, 3), [7, 7, 7]);
}

#[test]
fn variables_can_use_all_64_bits() {
    let all = [flow_var("a", 8, "inc", 0, u64::MAX, 1)];
    assert_eq!(values(&all, 0, 3), [0, 1, 2]);
    let random_values = values(&[flow_var("a", 8, "random", 0, u64::MAX, 1)], 0, 200);
    assert!(random_values.iter().any(|value| *value > u128::from(u64::MAX) / 2));
    assert!(random_values.iter().all(|value| *value <= u128::from(u64::MAX)));
}

#[test]
fn random_values_cover_the_range_and_differ_between_variables_and_streams() {
    let two = instructions(&[
        flow_var("a", 2, "random", 100, 65_535, 1),
        flow_var("b", 2, "random", 100, 65_535, 1),
    ]);
    let seeded = with(two.clone(), "random_seed", json!(5));
    let streams = lowered(&[two.clone(), two, seeded.clone(), seeded]);
    let random_values: Vec<_> = [(0, 0), (0, 1), (1, 0), (2, 0)]
        .map(|(stream, variable)| values_of(&streams[stream], variable, 2_000))
        .into();
    for (index, values) in random_values.iter().enumerate() {
        assert!(values.iter().all(|value| (100..=65_535).contains(value)));
        assert!(values.iter().filter(|value| **value >= 32_768).count() > 800);
        assert!(random_values[index + 1..].iter().all(|other| other != values), "{index}");
    }
    assert_eq!(values_of(&streams[2], 1, 50), values_of(&streams[3], 1, 50), "the same seed");
}

#[test]
fn lists_advance_by_their_step() {
    let list = |op: &str, step: u64| {
        let mut list = flow_var("a", 2, op, 0, 0, step);
        list["value_list"] = json!([10, 20, 30, 40, 50]);
        list
    };
    assert_eq!(values(&[list("inc", 1)], 0, 6), [10, 20, 30, 40, 50, 10]);
    assert_eq!(values(&[list("inc", 2)], 0, 6), [10, 30, 50, 20, 40, 10]);
    assert_eq!(values(&[list("dec", 1)], 0, 6), [50, 40, 30, 20, 10, 50]);
    assert_eq!(values(&[list("dec", 5)], 0, 3), [50, 50, 50]);
    let random_values = values(&[list("random", 1)], 0, 200);
    assert!([10, 20, 30, 40, 50].iter().all(|value| random_values.contains(value)));
    assert_error(
        &[instructions(&[list("inc", 6)])],
        "[0].vm.instructions[0].value_list: found 5 values, step 6",
    );
    let mut long = list("inc", 1);
    long["value_list"] = json!([1, 70_000]);
    assert_error(&[instructions(&[long])], "value_list[1]: found 70000, expected 65535 at most");
}

#[test]
fn next_variables_advance_when_the_previous_wraps() {
    let mut first = flow_var("a", 1, "inc", 0, 1, 1);
    first["next_var"] = json!("b");
    let random = json!({
        "type": "flow_var_rand_limit", "name": "b", "size": 1, "limit": 3, "seed": 9,
        "min_value": 0, "max_value": 255, "split_to_cores": false, "next_var": "c",
    });
    let last = flow_var("c", 1, "inc", 5, 9, 1);
    let streams = lowered(&[instructions(&[last, first, random])]);
    assert_eq!(values_of(&streams[0], 1, 6), [0, 1, 0, 1, 0, 1]);
    let b = values_of(&streams[0], 2, 12);
    assert_eq!(b[..6], [b[0], b[0], b[2], b[2], b[4], b[4]]);
    assert_eq!(b[..6], b[6..], "three draws, then again");
    assert!(b[0] != b[2] || b[2] != b[4]);
    assert_eq!(values_of(&streams[0], 0, 13), [5, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 7]);
}

#[test]
fn cyclic_or_shared_next_variables_are_errors() {
    let next = |name: &str, next: &str| {
        let mut variable = flow_var(name, 1, "inc", 0, 1, 1);
        variable["next_var"] = json!(next);
        variable
    };
    assert_error(&[instructions(&[next("a", "b"), next("b", "a")])], "found a cycle");
    assert_error(
        &[instructions(&[next("a", "c"), next("b", "c"), flow_var("c", 1, "inc", 0, 1, 1)])],
        "[0].vm.instructions[1].next_var: found \"c\", expected a variable that follows no other",
    );
    assert_error(&[instructions(&[next("a", "d")])], "there is no variable named \"d\"");
    let mut random = next("a", "b");
    random["op"] = json!("random");
    assert_error(&[instructions(&[random, flow_var("b", 1, "inc", 0, 1, 1)])], "has no order");
}

#[test]
fn tuples_cycle_through_addresses_per_port_and_restart() {
    let tuple = |limit: u32, flags: u16| {
        json!({
            "type": "tuple_flow_var", "name": "t", "ip_min": 1, "ip_max": 2,
            "port_min": 65_534, "port_max": 65_535, "limit_flows": limit, "flags": flags,
        })
    };
    assert_eq!(values(&[tuple(0, 0)], 0, 5), [1, 2, 1, 2, 1]);
    assert_eq!(values(&[tuple(0, 0)], 1, 5), [65_534, 65_534, 65_535, 65_535, 65_534]);
    assert_eq!(values(&[tuple(3, 0)], 0, 5), [1, 2, 1, 1, 2]);
    assert_eq!(values(&[tuple(3, 0)], 1, 5), [65_534, 65_534, 65_535, 65_534, 65_534]);
    assert_eq!(values(&[tuple(3, 1)], 1, 6), [65_534, 65_534, 65_535, 65_535, 1_025, 1_025]);
}

#[test]
fn a_cached_stream_repeats_its_first_frames() {
    let cached = json!({
        "cache": 7,
        "instructions": [
            flow_var("a", 4, "inc", 0, 99, 1),
            flow_var("b", 4, "random", 0, u64::from(u32::MAX), 1),
            json!({
                "type": "flow_var_rand_limit", "name": "c", "size": 4, "limit": 3, "seed": 9,
                "min_value": 0, "max_value": 100_000, "split_to_cores": true, "next_var": null,
            }),
        ],
    });
    let streams = lowered(&[with(stream(), "vm", cached)]);
    assert_eq!(values_of(&streams[0], 0, 9), [0, 1, 2, 3, 4, 5, 6, 0, 1]);
    for index in [1, 2] {
        let values = values_of(&streams[0], index, 14);
        assert_eq!(values[..7], values[7..]);
    }
    let c = values_of(&streams[0], 2, 9);
    assert_eq!((c[0], c[3], c[6], c[7]), (c[0], c[0], c[0], c[0]));
    assert_ne!(c[0], c[8]);
    let vm = json!({ "cache": 10_001, "instructions": [flow_var("a", 1, "inc", 0, 1, 1)] });
    assert_error(&[with(stream(), "vm", vm)], "[0].vm.cache: found 10001, expected 10000 at most");
}

#[test]
fn unsplit_variables_are_equal_on_every_core() {
    let mut unsplit = flow_var("a", 1, "inc", 0, 2, 1);
    unsplit["split_to_cores"] = json!(false);
    let document = instructions(&[unsplit, flow_var("b", 1, "inc", 0, 9, 1)]);
    let cores = NonZeroU64::new(2).expect("not zero");
    let options = LowerOptions { cores, ..LowerOptions::simulator() };
    let streams = lowered_with(&options, &[document]);
    assert_eq!(values_of(&streams[0], 0, 7), [0, 0, 1, 1, 2, 2, 0]);
    assert_eq!(values_of(&streams[0], 1, 4), [0, 1, 2, 3]);
}

#[test]
fn writes_have_the_width_of_the_variable_or_the_mask() {
    let streams = lowered(&[instructions(&[
        flow_var("a", 2, "inc", 0, 9, 1),
        json!({
            "type": "write_flow_var", "name": "a", "pkt_offset": 16, "add_value": -14,
            "is_big_endian": false,
        }),
        json!({
            "type": "write_mask_flow_var", "name": "a", "pkt_offset": 14, "pkt_cast_size": 4,
            "mask": 0xf000, "shift": 12, "add_value": 0, "is_big_endian": true,
        }),
    ])]);
    let [Step::Write(plain), Step::Write(masked)] = &streams[0].program.steps[..] else {
        panic!("{:?}", streams[0].program.steps)
    };
    assert_eq!((plain.offset, plain.width, plain.add as u16), (16, 2, 0_u16.wrapping_sub(14)));
    assert_eq!((plain.order, plain.mask as u16), (ByteOrder::Little, u16::MAX));
    assert_eq!((masked.offset, masked.width, masked.mask), (14, 4, 0xf000));
    assert_eq!((masked.shift, masked.order), (12, ByteOrder::Network));
    let beyond = json!({
        "type": "write_flow_var", "name": "a", "pkt_offset": 59, "add_value": 0,
        "is_big_endian": true,
    });
    assert_error(
        &[instructions(&[flow_var("a", 2, "inc", 0, 9, 1), beyond])],
        "[0].vm.instructions[1]: found bytes 59 to 61, expected bytes of a frame of 60",
    );
}

#[test]
fn lengths_are_limited_and_rates_use_their_mean() {
    let trimmed = |variable: Value| {
        let trim = json!({ "type": "trim_pkt_size", "name": "l" });
        let packet = json!({ "binary": base64(&udp(200)), "meta": "" });
        let rate = json!({ "type": "bps_L2", "value": 1_000_000 });
        let stream = with(instructions(&[variable, trim]), "packet", packet);
        with(stream, "mode", json!({ "type": "continuous", "rate": rate }))
    };
    let streams = lowered(&[trimmed(flow_var("l", 2, "inc", 10, 9_000, 1))]);
    let Values::Counter { start, min, max, .. } = streams[0].program.variables[0].values else {
        panic!("{:?}", streams[0].program.variables)
    };
    assert_eq!((start, min, max), (60, 60, 200));
    // Mean length 130 bytes, and 4 bytes of FCS.
    assert!((frames_per_second(&streams[0]) - 1e6 / (134.0 * 8.0)).abs() < 1e-6);
    // The limited range is not a multiple of the step, but all values occur.
    let streams = lowered(&[trimmed(flow_var("l", 2, "dec", 10, 199, 100))]);
    assert_eq!(values_of(&streams[0], 0, 4), [199, 99, 139, 179]);
    assert_error(&[trimmed(flow_var("l", 4, "inc", 60, 90, 1))], "expected a variable of 2 bytes");
}

#[test]
fn rates_are_exact_in_every_unit() {
    let at = |unit: &str, value: Value| {
        let rate = json!({ "type": unit, "value": value });
        let streams =
            lowered(&[with(stream(), "mode", json!({ "type": "continuous", "rate": rate }))]);
        let Speed::Frames(rate) = streams[0].transmission.speed else { panic!("{streams:?}") };
        rate
    };
    let per_second = |text: &str| Rate::parse_per_second(text, 1).expect("a rate");
    assert_eq!(at("pps", json!(0.25)), per_second("0.25"));
    assert_eq!(at("bps_L2", json!(512_000)), per_second("1000"));
    assert_eq!(at("bps_L1", json!(6.72e5)), per_second("1000"));
    // 10 Gbit/s, 84 bytes per frame on the wire.
    assert_eq!(at("percentage", json!(50)), per_second("5G").scaled(1, 672).expect("a rate"));
    // Too many digits for an exact fraction: the result has floating-point precision.
    let odd = at("bps_L1", json!(123_456.789_012_345)).per_second();
    assert!((odd * 672.0 - 123_456.789_012_345).abs() < 1e-6, "{odd}");
    for value in [0.0, -1.0] {
        let rate = json!({ "type": "pps", "value": value });
        let mode = json!({ "type": "continuous", "rate": rate });
        assert_error(&[with(stream(), "mode", mode)], "[0].mode.rate.value: found");
    }
}

#[test]
fn parses_multipliers_of_trex() {
    for text in ["", "x", "-1", "1k", "%", "10 pps", "1kpp", "0", "3%%", "1mbpsl2", "1k%"] {
        assert_eq!(Multiplier::parse(text), None, "{text}");
    }
    assert_eq!(Multiplier::parse("1"), Some(Multiplier::ONE));
    assert_eq!(Multiplier::parse("23%"), Some(Multiplier::Percent(23.0)));
    assert_eq!(Multiplier::parse("1.5kpps"), Some(Multiplier::Frames(1_500.0)));
}

#[test]
fn multipliers_set_the_total_without_changing_latency_streams() {
    let at = |pps: u32| {
        let rate = json!({ "type": "pps", "value": pps });
        with(stream(), "mode", json!({ "type": "continuous", "rate": rate }))
    };
    let latency = with(
        at(100),
        "flow_stats",
        json!({ "enabled": true, "stream_id": 1, "rule_type": "latency" }),
    );
    let document = [at(100), at(300), latency];
    let rates = |multiplier: &str| {
        let multiplier = Multiplier::parse(multiplier).expect("a multiplier");
        let options = LowerOptions { multiplier, ..LowerOptions::simulator() };
        let streams = lowered_with(&options, &document);
        streams.iter().map(|stream| frames_per_second(stream).round()).collect::<Vec<_>>()
    };
    assert_eq!(rates("2.5"), [250.0, 750.0, 100.0]);
    assert_eq!(rates("1.3kpps"), [300.0, 900.0, 100.0]);
    assert_eq!(rates("512kbps"), [225.0, 675.0, 100.0]);
    assert_eq!(rates("134.4kbpsl1"), [25.0, 75.0, 100.0]);
    assert_eq!(rates("1%"), [37_177.0, 111_532.0, 100.0]);
    let multiplier = Multiplier::Frames(100.0);
    let options = LowerOptions { multiplier, ..LowerOptions::simulator() };
    let error =
        lower(&crate::trex_documents::document(&document), &options).unwrap_err().to_string();
    assert!(error.contains("asks for 100 frames a second"), "{error}");
}

#[test]
fn multipliers_count_a_chain_by_its_maximum_rate() {
    let burst = |name: &str, next: Option<&str>| {
        let rate = json!({ "type": "pps", "value": 1_000 });
        let mode = json!({ "type": "single_burst", "total_pkts": 1_000, "rate": rate });
        let one = with(with(stream(), "mode", mode), "name", json!(name));
        let one = with(one, "isg", json!(10.0));
        match next {
            Some(next) => with(one, "next", json!(next)),
            None => with(one, "self_start", json!(false)),
        }
    };
    let options =
        LowerOptions { multiplier: Multiplier::Frames(5_000.0), ..LowerOptions::simulator() };
    let streams = lowered_with(&options, &[burst("a", Some("b")), burst("b", None)]);
    assert_eq!(frames_per_second(&streams[0]), 5_000.0);
    assert_eq!(streams[1].transmission.start_delay, Duration::from_micros(10));
}

/// Returns a chain link: a burst of two frames 1 ms apart.
fn link(name: &str, next: Option<&str>, self_start: bool, action_count: u32) -> Value {
    let rate = json!({ "type": "pps", "value": 1_000 });
    let mode = json!({ "type": "single_burst", "total_pkts": 2, "rate": rate });
    let mut link = with(with(stream(), "mode", mode), "name", json!(name));
    link["action_count"] = json!(action_count);
    link["self_start"] = json!(self_start);
    link["next"] = json!(next);
    link
}

/// Returns the same link as one that only takes time.
fn dummy(name: &str, next: Option<&str>, self_start: bool) -> Value {
    with(link(name, next, self_start, 0), "flags", json!(8))
}

#[test]
fn action_count_limits_the_rounds_of_a_chain() {
    let streams = lowered(&[
        link("a", Some("b"), true, 0),
        link("b", Some("a"), false, 3),
        link("c", Some("c"), false, 1),
    ]);
    assert_eq!(streams[0].transmission.starts_max, 3, "by itself, and twice behind b");
    assert_eq!((streams[0].transmission.next, streams[1].transmission.next), (Some(1), Some(0)));
    assert_eq!(streams[1].transmission.starts_max, 0);
    assert_eq!(streams[2].transmission.next, None);
    assert_error(
        &[link("a", Some("c"), true, 2), link("b", Some("c"), true, 0), link("c", None, false, 0)],
        "[0].action_count: stream \"c\" is also started by \"b\"",
    );
}

#[test]
fn dummy_streams_delay_the_next_stream() {
    let streams = lowered(&[
        link("a", Some("gap"), true, 0),
        with(dummy("gap", Some("b"), false), "isg", json!(500.0)),
        with(link("b", Some("a"), false, 0), "isg", json!(7.0)),
    ]);
    assert_eq!(streams.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!((streams[0].transmission.next, streams[1].transmission.next), (Some(1), Some(0)));
    assert_eq!(streams[1].transmission.start_delay, Duration::from_micros(1_507));
    // At the start of a chain it delays the next stream.
    let streams = lowered(&[dummy("gap", Some("b"), true), link("b", None, false, 0)]);
    assert!(streams[0].transmission.self_start);
    assert_eq!(streams[0].transmission.start_delay, Duration::from_millis(1));
    // At the end of a chain it has no effect.
    let streams = lowered(&[link("a", Some("gap"), true, 0), dummy("gap", None, false)]);
    assert_eq!((streams.len(), streams[0].transmission.next), (1, None));
    assert_error(
        &[dummy("gap", Some("b"), true), link("b", None, true, 0)],
        "[0]: it delays a stream that also starts by itself",
    );
}

#[test]
fn next_refers_to_a_name_or_a_number() {
    let wrapped = |id: u32, next: i64| {
        let burst = json!({
            "type": "multi_burst", "pkts_per_burst": 4, "count": 3, "ibg": 2.5,
            "rate": { "type": "pps", "value": 1 },
        });
        let one = with(with(stream(), "mode", burst), "next_stream_id", json!(next));
        json!({ "id": id, "stream": one })
    };
    let streams = lowered(&[wrapped(7, 9), wrapped(9, -1)]);
    assert_eq!((streams[0].name.as_str(), streams[0].transmission.next), ("7", Some(1)));
    let gap = Duration::from_nanos(2_500);
    assert_eq!(streams[0].transmission.mode, Mode::Bursts { frames: 4, count: 3, gap });
    assert_error(
        &[wrapped(7, 8)],
        "[0].stream.next_stream_id: there is no enabled stream named \"8\"",
    );
    assert_error(&[wrapped(7, -1), wrapped(7, -1)], "[1].stream.id: another stream is named \"7\"");
    assert_error(
        &[link("a", Some("b"), true, 0), with(link("b", None, false, 0), "enabled", json!(false))],
        "[0].next: there is no enabled stream named \"b\"",
    );
    assert_error(&[with(stream(), "next", json!("1"))], "none after a continuous stream");
}

#[test]
fn flow_statistics_measure_or_mark_streams() {
    let counted = |rule: &str, group: u32| {
        let flow_stats = json!({ "enabled": true, "stream_id": group, "rule_type": rule });
        with(stream(), "flow_stats", flow_stats)
    };
    let document = [
        stream(),
        counted("stats", 5),
        counted("latency", 6),
        counted("stats", 8),
        counted("stats", 5),
    ];
    let signed = LowerOptions { marking: Marking::Signature, ..LowerOptions::simulator() };
    let streams = lowered_with(&signed, &document);
    let measured: Vec<_> = streams.iter().map(|stream| stream.is_measured).collect();
    assert_eq!(measured, [false, true, true, true, true]);
    assert!(streams.iter().all(|stream| stream.template == streams[0].template));

    let streams = lowered(&document);
    assert!(streams.iter().all(|stream| !stream.is_measured));
    let ip = |stream: &Stream| {
        assert_eq!(checksum(&stream.template[14..34]), 0, "the header's checksum is kept right");
        let id = u16::from_be_bytes([stream.template[18], stream.template[19]]);
        (stream.template[15], id)
    };
    let marks: Vec<_> = streams.iter().map(ip).collect();
    assert_eq!(marks, [(0, 1), (1, 0xfc00), (1, 0xffff), (1, 0xfc01), (1, 0xfc00)]);
    let mut header = vec![0xab, 1, 0, 0, 0x78, 0x56, 0x34, 0x12];
    header.extend([0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa, 0x99, 0x88]);
    assert_eq!(streams[2].template[44..], header);
    assert!(lowered_with(&signed, &[counted("tpg", 1)])[0].is_measured);
}

#[test]
fn short_frames_with_statistics_have_a_mark() {
    let signed = LowerOptions { marking: Marking::Signature, ..LowerOptions::simulator() };
    let rule = |rule: &str| json!({ "enabled": true, "stream_id": 7, "rule_type": rule });
    let of = |packet: &[u8], kind: &str, list: &[Value]| {
        let binary = json!({ "binary": base64(packet), "meta": "" });
        let stream = with(with(stream(), "packet", binary), "flow_stats", rule(kind));
        lower(&document(&[with(stream, "vm", json!({ "instructions": list }))]), &signed)
    };
    let mut tcp = udp(60);
    (tcp[23], tcp[46]) = (6, 5 << 4);
    tcp[24..26].fill(0);
    let sum = checksum(&tcp[14..34]);
    tcp[24..26].copy_from_slice(&sum.to_be_bytes());
    let marked = &of(&tcp, "stats", &[]).unwrap()[0];
    assert!(marked.is_marked && !marked.is_measured);
    assert_eq!(wirestorm_wire::mark::read(&marked.template), Some(0));
    assert_eq!(checksum(&marked.template[14..34]), 0, "the header's checksum is kept right");
    assert_eq!(marked.template[34..], tcp[34..]);
    let measured = &of(&[&tcp[..], &[0; 12]].concat(), "stats", &[]).unwrap()[0];
    assert!(measured.is_measured && !measured.is_marked, "72 bytes have room");
    for kind in ["latency", "tpg"] {
        let error = of(&tcp, kind, &[]).unwrap_err().to_string();
        assert!(error.contains("found 60 bytes, expected at least 72"), "{error}");
    }

    let write = |offset: u16| {
        let write = json!({
            "type": "write_flow_var", "name": "v", "pkt_offset": offset, "add_value": 0,
            "is_big_endian": true,
        });
        of(&tcp, "stats", &[flow_var("v", 2, "inc", 0, 9, 1), write])
    };
    assert!(write(16).is_ok() && write(26).is_ok() && write(36).is_ok());
    for offset in [14, 18, 19] {
        let error = write(offset).unwrap_err().to_string();
        assert!(error.contains("counted by their IPv4 identification"), "{offset}: {error}");
    }
}

#[test]
fn statistics_of_kernel_frames_are_errors() {
    let signed = LowerOptions { marking: Marking::Signature, ..LowerOptions::simulator() };
    let mut arp = udp(60);
    arp[12..14].copy_from_slice(&[8, 6]);
    let mut fragment = udp(60);
    (fragment[23], fragment[20]) = (1, 0x20);
    for (packet, expected) in [(&arp, "statistics of ARP"), (&fragment, "fragments of ICMP")] {
        let binary = json!({ "binary": base64(packet), "meta": "" });
        let plain = with(stream(), "packet", binary);
        assert!(lower(&document(std::slice::from_ref(&plain)), &signed).is_ok());
        let rule = json!({ "enabled": true, "stream_id": 7, "rule_type": "stats" });
        let counted = document(&[with(plain, "flow_stats", rule)]);
        let error = lower(&counted, &signed).unwrap_err().to_string();
        assert!(error.starts_with("[0].flow_stats") && error.contains(expected), "{error}");
    }
}

#[test]
fn tagged_packet_groups_have_a_header_at_the_end() {
    let group = json!({ "enabled": true, "stream_id": 300, "rule_type": "tpg" });
    let one = with(stream(), "flow_stats", group);
    let streams = lowered(&[stream(), one.clone()]);
    let mut expected = streams[0].template.clone();
    let header = [0xc1, 0x5c, 0x0b, 0xe5, 44, 1, 0, 0, 0xef, 0xbe, 0xad, 0xde, 0, 0, 0, 0];
    expected[44..].copy_from_slice(&header);
    assert_eq!(streams[1].template, expected, "nothing else is marked");
    let vm = json!({ "instructions": [
        { "type": "flow_var", "name": "l", "size": 2, "op": "inc", "init_value": 60,
          "min_value": 60, "max_value": 80, "step": 1 },
        { "type": "trim_pkt_size", "name": "l" },
    ] });
    assert_error(&[with(one, "vm", vm)], "[0].flow_stats: TRex's header is at the end");
}

#[test]
fn uncounted_frames_avoid_reserved_identifications() {
    let mut packet = udp(60);
    packet[18..20].copy_from_slice(&[0xfc, 0x05]);
    let document = [with(stream(), "packet", json!({ "binary": base64(&packet), "meta": "" }))];
    assert_eq!(lowered(&document)[0].template[18..20], [0xec, 0x05]);
    let signed = LowerOptions { marking: Marking::Signature, ..LowerOptions::simulator() };
    assert_eq!(lowered_with(&signed, &document)[0].template[18..20], [0xfc, 0x05]);
}

#[test]
fn ipv6_marks_use_flow_label_and_traffic_class_after_vlan_tags() {
    let mut packet = vec![0; 12];
    packet.extend([0x81, 0, 0, 5, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 59, 64]);
    packet.resize(80, 0);
    let flow_stats = json!({ "enabled": true, "stream_id": 5, "rule_type": "stats" });
    let marked = with(stream(), "flow_stats", flow_stats.clone());
    let marked = with(marked, "packet", json!({ "binary": base64(&packet), "meta": "" }));
    assert_eq!(lowered(&[marked])[0].template[18..22], [0x60, 0x10, 0xfc, 0x00]);
    let other = with(stream(), "flow_stats", flow_stats);
    let other = with(other, "packet", json!({ "binary": base64(&[0; 60]), "meta": "" }));
    assert_error(&[other], "[0].flow_stats: found another packet, expected IPv4 or IPv6");
}

#[test]
fn measured_streams_reserve_the_signature_and_keep_checksums_valid() {
    use wirestorm_wire::capture::LinkType;
    use wirestorm_wire::checksum::{ChecksumOutcome, repair};
    use wirestorm_wire::dissect::dissect;

    let signed = LowerOptions { marking: Marking::Signature, ..LowerOptions::simulator() };
    let measured = |packet: &[u8]| {
        let flow_stats = json!({ "enabled": true, "stream_id": 5, "rule_type": "stats" });
        let document = with(stream(), "flow_stats", flow_stats);
        with(document, "packet", json!({ "binary": base64(packet), "meta": "" }))
    };
    let transport = |frame: &[u8]| {
        let mut copy = frame.to_vec();
        repair(&mut copy, &dissect(LinkType::EN10MB, frame)).transport
    };
    let mut packet = udp(100);
    packet[42..].fill(b'x');
    // A UDP checksum over IPv4 is optional; this packet has one.
    packet[40] = 1;
    let repaired = repair(&mut packet.clone(), &dissect(LinkType::EN10MB, &packet));
    assert_eq!(repaired.transport, ChecksumOutcome::Repaired);
    let wrong = packet.clone();
    let dissection = dissect(LinkType::EN10MB, &packet);
    repair(&mut packet, &dissection);

    let template = &lowered_with(&signed, &[measured(&packet)])[0].template;
    assert_eq!((&template[82..], &template[42..82]), (&[0; 18][..], &packet[42..82]));
    assert_eq!(transport(template), ChecksumOutcome::Correct);
    let template = &lowered_with(&signed, &[measured(&wrong)])[0].template;
    assert_eq!(template[40..42], wrong[40..42], "what is wrong on purpose stays so");
}

#[test]
fn load_is_the_total_of_the_streams() {
    let rate = |unit: &str, value: f64| {
        let rate = json!({ "type": unit, "value": value });
        with(stream(), "mode", json!({ "type": "continuous", "rate": rate }))
    };
    let document = json!([rate("pps", 1000.0), rate("bps_L1", 672_000.0)]).to_string();
    let twice =
        LowerOptions { multiplier: Multiplier::parse("2").unwrap(), ..LowerOptions::simulator() };
    let found = load(&document, &twice).unwrap();
    assert_eq!((found.frames, found.bits_l2, found.bits_l1), (4e3, 4e3 * 512.0, 4e3 * 672.0));
}
