//! Properties of two connections over any network: each byte arrives once and in order, no window
//! is overrun, and both connections end.

use std::fmt::Write;

use proptest::prelude::*;
use wirestorm_model::tcp::Algorithm;
use wirestorm_model::tcp::{EcnMode, Settings};
use wirestorm_stack::tcp::counters::TcpCounters;

use crate::support::{Network, Peer, World};

/// Ten minutes in microseconds.
const LIMIT: u64 = 600_000_000;
/// Six hours, for hundreds of the smallest segments over the worst networks.
const LONG_LIMIT: u64 = 36 * LIMIT;

fn settings() -> impl Strategy<Value = Settings> {
    (
        prop_oneof![20 => Just(1460), 20 => Just(536), 20 => 64_u16..2_000, 1 => 10_u16..64],
        1_u8..20,
        prop_oneof![Just(32_u32 << 10), 4_000..2_000_000_u32],
        any::<[bool; 5]>(),
        prop_oneof![Just(0_u16), Just(40), 1_u16..500],
        prop_oneof![Just(Algorithm::NewReno), Just(Algorithm::Cubic), Just(Algorithm::Bbr)],
    )
        .prop_map(|(mss, window, buffer, is_on, delay, congestion)| {
            let [scaling, timestamps, sack, rack, no_delay] = is_on;
            Settings {
                maximum_segment_size: mss,
                initial_window: window,
                receive_buffer: buffer,
                window_scaling: scaling,
                timestamps,
                sack,
                rack,
                no_delay,
                delayed_ack_ms: delay,
                congestion,
                retries: 30,
                syn_retries: 30,
                ..Settings::default()
            }
        })
}

/// Adds rarely used settings.
fn unusual() -> impl Strategy<Value = Settings> {
    let shift = prop_oneof![Just(None), (0_u8..15).prop_map(Some)];
    let send_buffer = prop_oneof![Just(u32::MAX), 1_000..100_000_u32];
    let after = prop_oneof![Just(0), 1_u32..20_000];
    let pieces = prop_oneof![Just(256), 0_u16..8];
    let ecn = prop_oneof![Just(EcnMode::Never), Just(EcnMode::Accept), Just(EcnMode::Offer)];
    ((settings(), ecn), shift, send_buffer, after, pieces, 1_u8..11).prop_map(
        |(
            (settings, ecn),
            window_shift,
            send_buffer,
            ack_after_bytes,
            reassembly_max,
            threshold,
        )| {
            Settings {
                ecn,
                window_shift,
                send_buffer,
                ack_after_bytes,
                reassembly_max,
                dupack_threshold: threshold,
                ..settings
            }
        },
    )
}

fn network() -> impl Strategy<Value = Network> {
    let delays = (0_u64..50_000, prop_oneof![Just(0), 0_u64..20_000]);
    let up_to = |most: u32| prop_oneof![Just(0), 0..most];
    let faults = (up_to(150), up_to(100), up_to(50), up_to(300));
    let queue = prop_oneof![3 => Just((0, 0)), 1 => (100_000_u64..20_000_000, 1_usize..100)];
    (delays, faults, queue).prop_map(
        |((delay, jitter), (lost, doubled, damaged, marked), (rate, queue))| Network {
            delay,
            jitter,
            lost,
            doubled,
            damaged,
            marked,
            rate,
            queue,
        },
    )
}

/// Number of bytes that a side sends; usually few, so that many cases fit the time.
fn bytes(most: u32) -> impl Strategy<Value = u32> {
    prop_oneof![9 => 0..20_000_u32, 1 => 0..most]
}

/// At least 2,500 cases; `PROPTEST_CASES` can ask for more.
fn many() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: usual.cases.max(2_500), ..usual }
}

proptest! {
    #![proptest_config(many())]

    #[test]
    fn every_byte_arrives_once_and_in_order(
        settings in [unusual(), unusual()],
        sends in (bytes(200_000), bytes(100_000)),
        initial in [any::<u32>(), any::<u32>()],
        network in network(),
        seed in any::<u64>(),
    ) {
        let [client, server] = settings;
        let peers = [
            Peer::new(client, sends.0, initial[0]),
            Peer::new(server, sends.1, initial[1]),
        ];
        let mut world = World::new(peers, network, seed);
        world.run(LONG_LIMIT);
        world.assert_done();
    }
}

#[test]
fn damaged_segments_are_retransmitted() {
    let network = Network { damaged: 30, ..Network::PERFECT };
    let peers = [
        Peer::new(Settings::default(), 300_000, 1),
        Peer::new(Settings::default(), 300_000, u32::MAX - 10),
    ];
    let mut world = World::new(peers, network, 1);
    world.run(LIMIT);
    world.assert_done();
    assert!(world.damaged >= 5, "{} of {}", world.damaged, world.segments);
    let again: u64 = world.peers.iter().map(|it| it.counters.sndrexmitpack).sum();
    assert!(again > 0);
}

#[test]
fn ecn_marks_slow_a_flow_down_without_retransmissions() {
    let network = Network { marked: 10, ..Network::PERFECT };
    let goodputs = [EcnMode::Offer, EcnMode::Never].map(|ecn| {
        let settings = Settings { ecn, receive_buffer: 4_000_000, ..Settings::default() };
        let peers = [Peer::new(settings, 1_000_000, 1), Peer::new(settings, 0, 9)];
        let mut world = World::new(peers, network, 1);
        let begin = world.now;
        world.run_until(LIMIT, |world| world.peers[1].received == 1_000_000);
        let [sender, receiver] = [0, 1].map(|place| &world.peers[place].counters);
        let is_used = ecn == EcnMode::Offer;
        assert_eq!(sender.ecn_shs, u64::from(is_used));
        assert_eq!((sender.ecn_rcwnd > 2, receiver.ecn_ce > 2), (is_used, is_used), "{ecn:?}");
        // The receiver echoes each mark until CWR arrives, and the sender reduces its window once.
        assert!(sender.ecn_rcwnd <= receiver.ecn_ce, "{sender:?}");
        assert_eq!(sender.sndrexmitpack, 0);
        1e6 / (world.now - begin) as f64
    });
    assert!(goodputs[0] < 0.7 * goodputs[1], "{goodputs:?}");
}

#[test]
fn perfect_network_needs_no_retransmission() {
    let peers = [
        Peer::new(Settings::default(), 1_000_000, 1),
        Peer::new(Settings::default(), 500_000, u32::MAX - 10),
    ];
    let mut world = World::new(peers, Network::PERFECT, 1);
    world.run(LIMIT);
    world.assert_done();
    for peer in &world.peers {
        let again = peer.counters.sndrexmitpack + peer.counters.rexmttimeo;
        assert_eq!((again, peer.counters.rcvduppack, peer.counters.rcvoopack), (0, 0, 0));
    }
}

#[test]
fn one_lost_segment_is_repaired_without_a_timeout() {
    for (sack, rack) in [(true, true), (true, false), (false, false)] {
        let settings = Settings { sack, rack, ..Settings::default() };
        let peers = [Peer::new(settings, 200_000, 7), Peer::new(settings, 0, 9)];
        let mut world = World::new(peers, Network::PERFECT, 1);
        world.loses = Box::new(|place, number, _| place == 0 && number == 20);
        world.run(LIMIT);
        world.assert_done();
        let counters = &world.peers[0].counters;
        assert_eq!(
            (counters.rexmttimeo, counters.sndrexmitpack),
            (0, 1),
            "SACK: {sack}, RACK: {rack}"
        );
        assert_eq!(counters.recovery_episode, 1);
    }
}

/// Sum of the first peer's counters over networks with 30 seeds.
fn counted(rack: bool, network: Network) -> TcpCounters {
    let mut sum = TcpCounters::default();
    for seed in 1..=30 {
        let settings = Settings { rack, retries: 30, ..Settings::default() };
        let peers = [Peer::new(settings, 200_000, 7), Peer::new(settings, 1_000, 9)];
        let mut world = World::new(peers, network, seed);
        world.run(LIMIT);
        world.assert_done();
        sum.merge(&world.peers[0].counters);
    }
    sum
}

#[test]
fn rack_retransmits_less_on_reordering() {
    let network = Network { delay: 20_000, jitter: 5_000, ..Network::PERFECT };
    let [timed, counted] = [true, false].map(|rack| counted(rack, network).sndrexmitpack);
    assert!(2 * timed < counted, "{timed} by time, {counted} by RFC 6675");
}

#[test]
fn rack_needs_fewer_timeouts() {
    let network = Network { delay: 20_000, lost: 50, ..Network::PERFECT };
    let [timed, counted] = [true, false].map(|rack| counted(rack, network).rexmttimeo);
    assert!(2 * timed < counted, "{timed} by time, {counted} by RFC 6675");
}

/// Average goodput in Mbit/s of one flow of 3 MB, over several seeds.
fn goodput(congestion: Algorithm, network: Network, batches: [bool; 2]) -> f64 {
    goodput_of(4, congestion, network, batches)
}

fn goodput_of(seeds: u64, congestion: Algorithm, network: Network, batches: [bool; 2]) -> f64 {
    const BYTES: u32 = 3_000_000;
    let (mut bits, mut micros) = (0.0, 0.0);
    for seed in 1..=seeds {
        let settings = Settings { congestion, receive_buffer: 4_000_000, ..Settings::default() };
        let peers = [Peer::new(settings, BYTES, 7), Peer::new(settings, 0, 9)];
        let mut world = World::new(peers, network, seed);
        world.batches = batches;
        let begin = world.now;
        world.run_until(LIMIT, |world| world.peers[1].received == BYTES);
        assert_eq!(world.peers[1].received, BYTES);
        bits += f64::from(BYTES) * 8.0;
        micros += (world.now - begin) as f64;
    }
    bits / micros
}

/// A round trip of 10 ms with 1 % loss in each direction.
const LOSSY: Network = Network { delay: 5_000, lost: 10, ..Network::PERFECT };

#[test]
fn goodput_with_loss_does_not_depend_on_batching() {
    // M. Mathis and others, "The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm"
    // (1997): MSS / RTT * sqrt(3/2) / sqrt(p), without the cost of recoveries.
    let expected = 1_448.0 * 8.0 / 10_000.0 * (1.5_f64 / 0.01).sqrt();
    for congestion in [Algorithm::NewReno, Algorithm::Cubic] {
        for batches in [[false; 2], [true, false], [true; 2]] {
            let share = goodput(congestion, LOSSY, batches) / expected;
            assert!((0.85..1.5).contains(&share), "{congestion:?} {batches:?}: {share}");
        }
    }
}

#[test]
fn window_reduction_by_reordering_is_undone() {
    let network = Network { jitter: 5_000, lost: 0, rate: 12_500_000, queue: 160, ..LOSSY };
    // Without the undo, they reach 22 and 20 Mbit/s.
    for congestion in [Algorithm::NewReno, Algorithm::Cubic] {
        let goodput = goodput_of(20, congestion, network, [true; 2]);
        assert!(goodput > 27.0, "{congestion:?}: {goodput}");
    }
}

/// Goodput of one flow over 20 Mbit/s with a long queue in Mbit/s, and the average queueing delay
/// of its segments in ms.
fn over_a_long_queue(congestion: Algorithm, bytes: u32) -> (f64, f64) {
    let network = Network { rate: 2_500_000, queue: 500, lost: 0, ..LOSSY };
    let settings = Settings { congestion, receive_buffer: 4_000_000, ..Settings::default() };
    let peers = [Peer::new(settings, bytes, 7), Peer::new(settings, 0, 9)];
    let mut world = World::new(peers, network, 1);
    let begin = world.now;
    world.run_until(LIMIT, |world| world.peers[1].received == bytes);
    let (waited, segments) = world.waited[0];
    let goodput = f64::from(bytes) * 8.0 / (world.now - begin) as f64;
    (goodput, waited as f64 / segments as f64 / 1_000.0)
}

#[test]
fn bbr_fills_the_path_but_not_its_queue() {
    // Long enough to probe the round trip twice.
    let (goodput, waits) = over_a_long_queue(Algorithm::Bbr, 60_000_000);
    // 1,448 of 1,534 bytes of each segment on this path, less 2 % for the probes.
    assert!((18.2..18.9).contains(&goodput), "{goodput} Mb/s");
    assert!(waits < 10.0, "{waits} ms");
    let (_, waits) = over_a_long_queue(Algorithm::Cubic, 50_000_000);
    assert!(waits > 50.0, "{waits} ms");
}

#[test]
fn goodput_by_loss_and_buffer_matches_the_snapshot() {
    const QUEUES: [usize; 3] = [10, 40, 160];
    let mut table = String::from(
        "Mb/s of one flow of 3 MB over 100 Mb/s with a round trip of 10 ms\n\n\
         congestion   lost      a queue of so many segments\n",
    );
    let columns = QUEUES.map(|queue| format!("{queue:>8}")).concat();
    writeln!(table, "control     of 1000{columns}").expect("memory");
    for congestion in [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Bbr] {
        for lost in [0, 1, 5, 10, 20, 50] {
            let figures = QUEUES.map(|queue| {
                let network = Network { delay: 5_000, lost, rate: 12_500_000, queue, ..LOSSY };
                format!("{:>8.1}", goodput(congestion, network, [true; 2]))
            });
            let name = format!("{congestion:?}");
            writeln!(table, "{name:<12}{lost:>7}{}", figures.concat()).expect("memory");
        }
    }
    let known = include_str!("goodput.txt");
    assert!(
        table == known,
        "tests/goodput.txt is another; where that is meant, it is to be\n{table}"
    );
}
