//! Streams in virtual time, from TRex JSON to frames.

use std::num::NonZeroU64;

use serde_json::{Value, json};
use wirestorm_base::time::Duration;
use wirestorm_model::stream::Stream;
use wirestorm_plan::trex::{LowerOptions, lower};
use wirestorm_sim::streams::{Simulation, SimulationOptions, simulate};
use wirestorm_wire::capture::Records;
use wirestorm_wire::checksum::{checksum, sum};

/// Returns a TRex stream of 100 bytes with these headers, zero padded. The base64 text has
/// Ethernet, IPv4 with a total length of 40 and no checksum, and UDP from port 1025 to 12 with a
/// length of 20.
fn stream(mode: Value, instructions: Value) -> Value {
    let headers = "AAAAAQAAAAAAAgAACABFAAAoAAEAAEARAAAQAAABMAAAAQQBAAwAFAAA";
    let rest = "AAAA".repeat(19) + "AA==";
    json!({
        "flags": 3, "action_count": 0, "enabled": true, "self_start": true, "isg": 0.0,
        "mode": mode, "packet": { "binary": headers.to_owned() + &rest, "meta": "" },
        "vm": { "instructions": instructions }, "flow_stats": { "enabled": false },
    })
}

fn continuous(pps: f64) -> Value {
    json!({ "type": "continuous", "rate": { "type": "pps", "value": pps } })
}

fn burst(pps: f64, frames: u32) -> Value {
    json!({ "type": "single_burst", "total_pkts": frames, "rate": { "type": "pps", "value": pps } })
}

fn counter(name: &str, size: u8, min: u64, max: u64) -> Value {
    json!({
        "type": "flow_var", "name": name, "size": size, "op": "inc", "step": 1,
        "init_value": min, "min_value": min, "max_value": max, "next_var": null,
    })
}

fn write(name: &str, offset: u16, add: i32) -> Value {
    json!({
        "type": "write_flow_var", "name": name, "pkt_offset": offset, "add_value": add,
        "is_big_endian": true,
    })
}

fn streams(list: Vec<Value>) -> Vec<Stream> {
    lower(&Value::from(list).to_string(), &LowerOptions::simulator())
        .expect("streams that mean something")
}

fn run(streams: &[Stream], frames_max: u64, workers: u64) -> Simulation {
    let workers = NonZeroU64::new(workers).expect("at least one");
    let options = SimulationOptions { frames_max, workers, duration_max: Duration::MAX };
    simulate(streams, &options).expect("a wire in memory")
}

/// Returns the departure of each frame in microseconds, and its byte at offset `at`.
fn seen(simulation: &Simulation, at: usize) -> Vec<(u64, u8)> {
    let frames = simulation.frames.iter();
    frames.map(|frame| (frame.departure.as_nanos() / 1_000, frame.bytes[at])).collect()
}

#[test]
fn workers_together_send_what_one_sends_alone() {
    let changing = json!([counter("a", 1, 0, 255), write("a", 50, 0)]);
    let both = streams(vec![
        stream(continuous(1_000.0), changing.clone()),
        stream(burst(300.0, 2), changing),
    ]);
    let alone = run(&both, 302, 1);
    assert_eq!(alone.frames.len(), 302);
    assert_eq!(alone.counters[1].frames, 2);
    for workers in [2, 3] {
        let mut together = run(&both, 302, workers);
        assert_eq!(together.frames.len(), 302, "{workers}");
        assert!(together.frames.is_sorted_by_key(|frame| frame.departure));
        let mut alone = alone.frames.clone();
        // The last frames depend on how workers share the limit.
        alone.truncate(290);
        together.frames.retain(|frame| frame.departure <= alone[289].departure);
        for frames in [&mut alone, &mut together.frames] {
            frames.sort_by(|a, b| (a.departure, &a.bytes).cmp(&(b.departure, &b.bytes)));
        }
        assert_eq!(together.frames, alone, "{workers}");
    }
}

#[test]
fn every_worker_sends_a_frame_and_the_first_sends_the_remainder() {
    let one = streams(vec![stream(continuous(10.0), json!([]))]);
    assert_eq!(run(&one, 11, 4).frames.len(), 11);
    assert_eq!(run(&one, 1, 4).frames.len(), 5);
}

#[test]
fn no_frame_is_sent_after_the_duration() {
    let one = streams(vec![stream(continuous(10.0), json!([]))]);
    let options = SimulationOptions {
        frames_max: 1_000,
        workers: NonZeroU64::MIN,
        duration_max: Duration::from_millis(300),
    };
    let simulation = simulate(&one, &options).expect("a wire in memory");
    assert_eq!(seen(&simulation, 0), [(0, 0), (100_000, 0), (200_000, 0)]);
}

#[test]
fn loops_repeat_their_delays_and_end_after_the_action_count() {
    let link = |name: &str, next: &str, value: u64, self_start: bool| {
        let instructions = json!([counter("a", 1, value, value), write("a", 50, 0)]);
        let mut link = stream(burst(1_000.0, 2), instructions);
        link["name"] = json!(name);
        link["next"] = json!(next);
        link["self_start"] = json!(self_start);
        link
    };
    let first = link("a", "pause", 1, true);
    let mut pause = link("pause", "b", 0, false);
    pause["flags"] = json!(8);
    pause["isg"] = json!(100.0);
    let mut last = link("b", "a", 2, false);
    last["action_count"] = json!(2);
    let simulation = run(&streams(vec![first, pause, last]), 100, 1);
    // Two frames 1 ms apart, a pause of 1.1 ms, two frames; then the same again.
    let round = [(0, 1), (1_000, 1), (2_100, 2), (3_100, 2)];
    let again = round.map(|(time, value)| (3_100 + time, value));
    assert_eq!(seen(&simulation, 50), [round, again].concat());
}

#[test]
fn bursts_are_separated_by_their_gap() {
    let mode = json!({
        "type": "multi_burst", "pkts_per_burst": 2, "count": 2, "ibg": 50.0,
        "rate": { "type": "pps", "value": 1_000 },
    });
    let simulation = run(&streams(vec![stream(mode, json!([]))]), 100, 1);
    let times: Vec<_> = seen(&simulation, 0).iter().map(|(time, _)| *time).collect();
    assert_eq!(times, [0, 1_000, 1_050, 2_050]);
}

#[test]
fn lengths_and_checksums_match_each_frame() {
    let simulation = run(
        &streams(vec![stream(
            continuous(1.0),
            json!([
                counter("l", 2, 64, 100),
                { "type": "trim_pkt_size", "name": "l" },
                write("l", 16, -14),
                write("l", 38, -34),
                write("l", 50, 0),
                { "type": "fix_checksum_hw", "l2_len": 14, "l3_len": 20, "l4_type": 11 },
            ]),
        )]),
        40,
        1,
    );
    let lengths: Vec<_> = simulation.frames.iter().map(|frame| frame.bytes.len()).collect();
    assert_eq!(lengths[..3], [64, 65, 66]);
    assert_eq!(lengths[36..], [100, 64, 65, 66]);
    for frame in &simulation.frames {
        let bytes = &frame.bytes;
        assert_eq!(usize::from(bytes[17]), bytes.len() - 14);
        assert_eq!(checksum(&bytes[14..34]), 0, "IPv4");
        assert!(is_udp_right(bytes, bytes.len()), "{} bytes", bytes.len());
    }
}

#[test]
fn checksums_do_not_cover_padding() {
    let instructions = json!([
        counter("a", 2, 1, 500),
        write("a", 34, 0),
        // Padding behind the packet, whose total length is 40.
        write("a", 60, 0),
        { "type": "fix_checksum_hw", "l2_len": 14, "l3_len": 20, "l4_type": 11 },
    ]);
    let simulation = run(&streams(vec![stream(continuous(1.0), instructions)]), 500, 1);
    for frame in &simulation.frames {
        assert_eq!(frame.bytes[34..36], frame.bytes[60..62]);
        assert!(is_udp_right(&frame.bytes, 54));
        assert_eq!(checksum(&frame.bytes[14..34]), 0);
    }
}

/// Returns whether the UDP checksum over the pseudo header and bytes 34 to `end` is correct.
fn is_udp_right(frame: &[u8], end: usize) -> bool {
    let mut covered = frame[26..34].to_vec();
    covered.extend([0, 17]);
    covered.extend(((end - 34) as u16).to_be_bytes());
    covered.extend(&frame[34..end]);
    sum(&covered) == 0xffff && frame[40..42] != [0, 0]
}

#[test]
fn pcap_holds_frames_and_timestamps() {
    let one =
        streams(vec![stream(continuous(3.0), json!([counter("a", 1, 0, 9), write("a", 50, 0)]))]);
    let simulation = run(&one, 20, 1);
    let file = simulation.pcap().expect("times before 2106");
    let read: Vec<_> = Records::new(&file)
        .map(|record| {
            let (header, bytes) = record.expect("a whole capture");
            (header.timestamp, bytes.to_vec())
        })
        .collect();
    let frames = simulation.frames.iter();
    let sent: Vec<_> = frames.map(|frame| (frame.departure, frame.bytes.clone())).collect();
    assert_eq!(read, sent);
    assert_eq!(sent[3].0.as_nanos(), 1_000_000_000);
    assert_eq!(sent[13].1[50], 3);
}
