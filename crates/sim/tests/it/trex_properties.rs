//! Documents of TRex streams with arbitrary numbers are either rejected or sent.

use std::num::NonZeroU64;

use proptest::prelude::*;
use serde_json::{Value, json};
use wirestorm_base::time::Duration;
use wirestorm_plan::Multiplier;
use wirestorm_plan::trex::{LowerOptions, Marking, lower};
use wirestorm_sim::streams::{SimulationOptions, simulate};

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![6 => 0..100_u64, 2 => 0..70_000_u64, 1 => any::<u64>(), 1 => Just(u64::MAX)]
}

fn offset() -> impl Strategy<Value = u16> {
    prop_oneof![40 => 0..50_u16, 1 => any::<u16>()]
}

/// Sorts three numbers, each cut to `size` bytes.
fn bounds(numbers: [u64; 3], size: u8) -> [u64; 3] {
    let mut bounds = numbers.map(|number| within(number, size));
    bounds.sort_unstable();
    bounds
}

fn within(number: u64, size: u8) -> u64 {
    number & (u64::MAX >> (64 - 8 * size))
}

/// Generates a variable without a name, and whether it advances the next variable.
fn variable() -> impl Strategy<Value = (Value, bool)> {
    let size = || prop_oneof![4 => Just(2_u8), 1 => Just(1_u8), 1 => Just(4_u8), 1 => Just(8_u8)];
    let op = prop_oneof![4 => Just("inc"), 2 => Just("dec"), 1 => Just("random")];
    let step = prop_oneof![4 => 1..10_u64, 1 => 1..u64::MAX];
    let list = prop::option::weighted(0.2, prop::collection::vec(number(), 1..6));
    let bounded = (size(), op, any::<[u64; 3]>(), step, list, any::<bool>(), any::<bool>());
    let bounded = bounded.prop_map(|(size, op, numbers, step, list, is_split, moves_next)| {
        let [min, init, max] = bounds(numbers, size);
        let step = list.as_ref().map_or(step, |list| (step - 1) % list.len() as u64 + 1);
        let list: Option<Vec<u64>> =
            list.map(|list| list.iter().map(|value| within(*value, size)).collect());
        let variable = json!({
            "type": "flow_var", "size": size, "op": op, "step": step, "init_value": init,
            "min_value": min, "max_value": max, "value_list": list,
            "split_to_cores": is_split,
        });
        (variable, moves_next && op != "random")
    });
    let arbitrary = (size(), any::<[u64; 3]>(), number(), any::<bool>(), any::<bool>()).prop_map(
        |(size, numbers, limit, is_split, moves_next)| {
            let [min, seed, max] = bounds(numbers, size);
            let variable = json!({
                "type": "flow_var_rand_limit", "size": size, "limit": limit, "seed": seed,
                "min_value": min, "max_value": max, "split_to_cores": is_split,
            });
            (variable, moves_next)
        },
    );
    prop_oneof![3 => bounded, 1 => arbitrary]
}

/// Generates an instruction that uses a variable; the caller adds the name.
fn step() -> impl Strategy<Value = Value> {
    let write = (offset(), any::<i32>(), any::<bool>()).prop_map(|(offset, add, is_big_endian)| {
        json!({
            "type": "write_flow_var", "pkt_offset": offset, "add_value": add,
            "is_big_endian": is_big_endian,
        })
    });
    let size = prop_oneof![5 => Just(1), 5 => Just(2), 5 => Just(4), 1 => Just(3)];
    let shift = prop_oneof![9 => -40..40_i32, 1 => any::<i32>()];
    let masked = (offset(), size, any::<u32>(), shift, any::<i32>()).prop_map(
        |(offset, size, mask, shift, add)| {
            json!({
                "type": "write_mask_flow_var", "pkt_offset": offset, "pkt_cast_size": size,
                "mask": mask, "shift": shift, "add_value": add, "is_big_endian": add % 2 == 0,
            })
        },
    );
    prop_oneof![5 => write, 5 => masked, 1 => Just(json!({ "type": "trim_pkt_size" }))]
}

fn checksum() -> impl Strategy<Value = Value> {
    let (network, length) = (
        prop_oneof![5 => Just(14_u16), 1 => offset()],
        prop_oneof![5 => Just(20_u16), 5 => Just(40_u16), 1 => offset()],
    );
    let protocol = prop_oneof![Just(11), Just(13), Just(17), 10..20_u16];
    (network, length, protocol, 0..3).prop_map(|(l2, l3, l4, kind)| match kind {
        0 => json!({ "type": "fix_checksum_ipv4", "pkt_offset": l2 }),
        1 => json!({ "type": "fix_checksum_icmpv6", "l2_len": l2, "l3_len": l3 }),
        _ => json!({ "type": "fix_checksum_hw", "l2_len": l2, "l3_len": l3, "l4_type": l4 }),
    })
}

fn tuple() -> impl Strategy<Value = Value> {
    (any::<[u32; 2]>(), any::<[u16; 2]>(), 0..50_u32, 0..2_u16).prop_map(
        |(mut ips, mut ports, limit, flags)| {
            ips.sort_unstable();
            ports.sort_unstable();
            json!({
                "type": "tuple_flow_var", "name": "t", "ip_min": ips[0], "ip_max": ips[1],
                "port_min": ports[0], "port_max": ports[1], "limit_flows": limit, "flags": flags,
            })
        },
    )
}

fn instructions() -> impl Strategy<Value = Vec<Value>> {
    let steps = prop::collection::vec((step(), any::<prop::sample::Index>()), 0..4);
    let sums = prop::option::weighted(0.3, checksum());
    let variables = prop::collection::vec(variable(), 0..4);
    (variables, steps, tuple(), sums).prop_map(|(variables, steps, tuple, sum)| {
        let count = variables.len();
        let mut names = vec!["t.ip".to_owned(), "t.port".to_owned()];
        let mut list = vec![tuple];
        for (index, (mut variable, moves_next)) in variables.into_iter().enumerate() {
            names.push(format!("v{index}"));
            variable["name"] = json!(format!("v{index}"));
            if moves_next && index + 1 < count {
                variable["next_var"] = json!(format!("v{}", index + 1));
            }
            list.push(variable);
        }
        for (mut step, name) in steps {
            step["name"] = json!(name.get(&names));
            list.push(step);
        }
        list.extend(sum);
        list
    })
}

fn mode() -> impl Strategy<Value = Value> {
    let unit = prop_oneof![Just("pps"), Just("bps_L1"), Just("bps_L2"), Just("percentage")];
    let value = prop_oneof![
        19 => 0.5..100.0,
        19 => 0.5..1e9,
        1 => any::<f64>().prop_map(f64::abs).prop_filter("JSON", |value| value.is_finite()),
    ];
    (unit, value, 0..4, 1..5_u32, 1..3_u32, 0.0..1e4).prop_map(
        |(unit, value, kind, frames, count, gap)| {
            let rate = json!({ "type": unit, "value": value });
            match kind {
                0 => json!({ "type": "continuous", "rate": rate }),
                1 => json!({
                    "type": "multi_burst", "rate": rate, "pkts_per_burst": frames,
                    "count": count, "ibg": gap,
                }),
                _ => json!({ "type": "single_burst", "rate": rate, "total_pkts": frames }),
            }
        },
    )
}

/// IPv4, IPv6, and zeros, which no flow statistics rule accepts.
fn packet() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        3 => Just("AAAAAQAAAAAAAgAACABFAAAoAAEAAEARAAAQAAABMAAAAQQBAAwAFAAA"),
        3 => Just("AAAAAQAAAAAAAgAAht1gAAAAABQROwAAAAAAAAAAAAAAAAAAAAEAAAAAAAAAAAAAAAAAAAAC"),
        1 => Just("AAAAAAAAAAAAAAAAAAAAAAAA"),
    ]
}

fn document() -> impl Strategy<Value = Value> {
    let program = (instructions(), prop_oneof![3 => Just(0_u32), 1 => 0..40_u32]);
    let stats = prop_oneof![4 => Just(None), 1 => Just(Some("stats")), 1 => Just(Some("latency"))];
    let chain = (prop::option::of(1..4_i64), 0..4_u32);
    let stream = (mode(), program, packet(), 0..16_u32, chain, stats).prop_map(
        |(mode, (instructions, cache), packet, flags, (next, action_count), rule)| {
            // A continuous stream never ends, so it cannot have a next stream.
            let next = next.filter(|_| mode["type"] != "continuous").unwrap_or(-1);
            json!({
                "flags": flags, "action_count": action_count, "enabled": true,
                "isg": 3.5, "mode": mode,
                "packet": { "binary": packet, "meta": "" },
                "vm": { "instructions": instructions, "cache": cache },
                "next_stream_id": next,
                "flow_stats": {
                    "enabled": rule.is_some(), "rule_type": rule.unwrap_or("stats"),
                    "stream_id": 1,
                },
            })
        },
    );
    prop::collection::vec(stream, 1..4).prop_map(|mut streams| {
        let count = streams.len() as i64;
        for (index, stream) in streams.iter_mut().enumerate() {
            // The streams form one chain: none starts while it runs.
            stream["self_start"] = json!(index == 0);
            let next = &mut stream["next_stream_id"];
            *next = json!(next.as_i64().map(|next| next.min(count)));
        }
        Value::from(streams)
    })
}

fn multiplier() -> impl Strategy<Value = Multiplier> {
    let text = prop_oneof![Just("1"), Just("0.3"), Just("20%"), Just("10kpps"), Just("1mbpsl1")];
    text.prop_map(|text| Multiplier::parse(text).expect("a multiplier"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn documents_are_rejected_or_sent(
        document in document(), cores in 1..4_u64, multiplier in multiplier(), mark in any::<bool>(),
    ) {
        let workers = NonZeroU64::new(cores).expect("at least one");
        let marking = if mark { Marking::Trex } else { Marking::Signature };
        let simulator = LowerOptions::simulator();
        let options = LowerOptions { cores: workers, multiplier, marking, ..simulator };
        if let Ok(streams) = lower(&document.to_string(), &options) {
            let options =
                SimulationOptions { frames_max: 60, workers, duration_max: Duration::MAX };
            let simulation = simulate(&streams, &options).expect("a wire in memory");
            prop_assert!(simulation.frames.len() <= 60);
            for frame in &simulation.frames {
                prop_assert!(frame.bytes.len() >= 60);
            }
        }
    }
}
