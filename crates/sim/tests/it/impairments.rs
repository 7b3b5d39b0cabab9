//! Measured flows of a plan over a channel that loses, duplicates, displaces and damages frames.
//! One or more workers send them. The reports must match what the channel did, in all combinations.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use proptest::prelude::*;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::measure::{
    MeasureOptions, MeasuredStream, PayloadCheck, Receiver, Signature, StreamSummary, find,
};
use wirestorm_engine::stream::Share;
use wirestorm_model::stream::draw;
use wirestorm_plan::Multiplier;
use wirestorm_plan::traffic::TrafficPlan;
use wirestorm_sim::streams::{SimulationOptions, simulate};

/// Flows with one length, with random lengths, with a checksum over their end, and one unmeasured
/// flow.
const PLAN: &str = "
ports: [{name: a, speed: 10G}]
flows:
  - {name: even, tx: a, packet: [{ethernet: }, {ipv4: {src: {increment: {count: 50}}}}, {udp: },
     {payload: {increment_byte: 9}}], size: 100, rate: 40kpps, metrics: {}}
  - {name: mixed, tx: a, packet: [{ethernet: }, {vlan: {id: {random: {}}}}, {ipv6: }, {udp: }],
     size: {random: {min: 128, max: 1000}}, rate: 30kpps, inter_departure: poisson, metrics: {}}
  - {name: chunks, tx: a, packet: [{ethernet: }, {ipv4: }, {sctp: }, {sctp_data: },
     {payload: {text: user data}}], size: 120, rate: 20kpps, metrics: {}}
  - {name: other, tx: a, packet: [{ethernet: }, {ipv4: }, {udp: }], rate: 10kpps}
";

/// Number of frames to send.
const FRAMES: u64 = 1_000;
/// Maximum displacement of a frame, in frames.
const DISTANCE_MAX: u64 = 40;

/// Impairments of a channel, each with its probability in percent.
#[derive(Clone, Copy, Debug)]
struct Channel {
    lost: u64,
    repeated: u64,
    displaced: u64,
    damaged: u64,
    seed: u64,
}

/// Counts of one flow.
#[derive(Debug, Default, PartialEq)]
struct Truth {
    sent: u64,
    received: u64,
    lost: u64,
    duplicated: u64,
    reordered: u64,
    corrupt: u64,
}

/// Frame that arrives.
struct Arrival {
    /// Stream and sequence number; `None` for a flow that is not measured.
    identity: Option<(u32, u64)>,
    bytes: Vec<u8>,
    is_damaged: bool,
}

impl Channel {
    /// Draws whether an impairment happens to a frame.
    fn happens(&self, what: u64, chance: u64, frame: u64) -> bool {
        draw(self.seed ^ what << 56, frame) % 100 < chance
    }

    fn distance(&self, what: u64, frame: u64) -> u64 {
        1 + draw(!self.seed ^ what << 56, frame) % DISTANCE_MAX
    }

    /// Passes frames through the channel.
    fn carry(&self, frames: impl Iterator<Item = Vec<u8>>) -> Vec<Arrival> {
        let mut arrivals = Vec::new();
        for (number, mut bytes) in (0..).zip(frames) {
            let identity = find(&bytes).map(|it| (it.signature.stream, it.signature.sequence));
            let is_damaged = self.happens(4, self.damaged, number);
            if is_damaged {
                // The last byte of the payload.
                let place = bytes.len() - Signature::LENGTH - 1;
                bytes[place] ^= 0x10;
            }
            let mut places = Vec::new();
            if !self.happens(1, self.lost, number) {
                let is_displaced = self.happens(3, self.displaced, number);
                places.push(number + if is_displaced { self.distance(3, number) } else { 0 });
                if self.happens(2, self.repeated, number) {
                    places.push(number + self.distance(2, number));
                }
            }
            for place in places {
                arrivals.push((place, Arrival { identity, bytes: bytes.clone(), is_damaged }));
            }
        }
        arrivals.sort_by_key(|(place, _)| *place);
        arrivals.into_iter().map(|(_, arrival)| arrival).collect()
    }
}

/// Computes the true counts of a flow by a scan of all arrivals.
fn truth(streams: &[u32], sent: u64, compares: bool, arrivals: &[Arrival]) -> Truth {
    let mut truth = Truth { sent, ..Truth::default() };
    let mut seen: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for arrival in arrivals {
        let Some((stream, number)) = arrival.identity else { continue };
        if !streams.contains(&stream) {
            continue;
        }
        truth.corrupt += u64::from(compares && arrival.is_damaged);
        let before = seen.entry(stream).or_default();
        if before.contains(&number) {
            truth.duplicated += 1;
            continue;
        }
        truth.reordered += u64::from(before.iter().any(|other| *other > number));
        before.push(number);
        truth.received += 1;
    }
    truth.lost = sent - truth.received;
    truth
}

/// Sends the plan through a channel; returns the true and the reported counts of each flow.
fn run(channel: Channel, workers: u64) -> Vec<(Truth, Truth)> {
    let plan = TrafficPlan::parse(PLAN).expect("a plan");
    let streams = plan.streams(0, None, Multiplier::ONE).expect("streams");
    let (flows, streams): (Vec<_>, Vec<_>) = streams.into_iter().unzip();
    let options = SimulationOptions {
        frames_max: FRAMES,
        workers: NonZeroU64::new(workers).expect("at least one"),
        duration_max: Duration::MAX,
    };
    let simulation = simulate(&streams, &options).expect("a wire in memory");
    let times: Vec<Instant> = simulation.frames.iter().map(|frame| frame.departure).collect();
    let arrivals = channel.carry(simulation.frames.into_iter().map(|frame| frame.bytes));

    let ids = |position: usize| -> Vec<u32> {
        (0..workers).map(|index| Share { index, workers }.number(0, position as u32)).collect()
    };
    let measured: Vec<usize> =
        (0..streams.len()).filter(|&position| streams[position].is_measured).collect();
    let mut expected = Vec::new();
    for &position in &measured {
        let payload = plan.flows[flows[position]].payload;
        let payload = payload.and_then(|start| PayloadCheck::of_stream(&streams[position], start));
        let stream = |id| MeasuredStream { id, payload: payload.clone(), segments: None };
        expected.extend(ids(position).into_iter().map(stream));
    }
    let mut receiver = Receiver::new(expected, &MeasureOptions::default());
    let mut unknown = 0;
    for (number, arrival) in arrivals.iter().enumerate() {
        unknown += u64::from(arrival.identity.is_none());
        // Later than any departure, whatever the displacement.
        let at = times[times.len() - 1].saturating_add(Duration::from_micros(number as u64));
        receiver.note(&arrival.bytes, arrival.bytes.len(), at);
    }
    assert_eq!((receiver.unknown().frames, receiver.foreign().frames), (unknown, 0));
    let records = receiver.records().chunks(workers as usize);
    let both = measured.iter().zip(records).map(|(&position, records)| {
        let summary = StreamSummary::new(records);
        let counters = summary.sequence.expect("one receiver saw all");
        assert_eq!(counters.too_late, 0);
        let sent = simulation.counters[position].frames;
        let reported = Truth {
            sent,
            received: counters.received,
            lost: counters.lost(sent),
            duplicated: counters.duplicated,
            reordered: counters.reordered,
            corrupt: summary.tallies.corrupt,
        };
        let compares = plan.flows[flows[position]].payload.is_some();
        (truth(&ids(position), sent, compares, &arrivals), reported)
    });
    both.collect()
}

/// Creates a channel with the impairments whose bits are set in `combination`.
fn channel(combination: u64, chances: [u64; 4], seed: u64) -> Channel {
    let [lost, repeated, displaced, damaged] =
        [0, 1, 2, 3].map(|what| if combination >> what & 1 == 1 { chances[what] } else { 0 });
    Channel { lost, repeated, displaced, damaged, seed }
}

#[test]
fn reports_match_each_combination_of_impairments() {
    for combination in 0..16 {
        let flows = run(channel(combination, [10; 4], 7), 1);
        assert_eq!(flows.len(), 3);
        for (flow, (truth, reported)) in flows.iter().enumerate() {
            assert_eq!(truth, reported, "{combination:#06b}, flow {flow}");
            let found = [truth.lost, truth.duplicated, truth.reordered, truth.corrupt];
            for (what, count) in found.into_iter().enumerate() {
                // Payloads are not compared in flows with random lengths.
                let can_be = combination >> what & 1 == 1 && (what < 3 || flow != 1);
                assert_eq!(count > 0, can_be, "{combination:#06b}, flow {flow}: {truth:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 100,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn reports_match_any_channel(
        combination in 0..16_u64,
        chances in [1..60_u64, 1..60_u64, 1..60_u64, 1..60_u64],
        seed in any::<u64>(),
        workers in 1..=3_u64,
    ) {
        for (truth, reported) in run(channel(combination, chances, seed), workers) {
            prop_assert_eq!(truth, reported);
        }
    }
}
