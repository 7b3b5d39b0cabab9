//! Worker between a capture in memory and wires in memory, in virtual time.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use wirestorm_base::departure::{CatchUp, DeparturePolicy, DepartureRecord};
use wirestorm_base::pace::Pace;
use wirestorm_base::port::{
    Capabilities, FrameId, PortError, Receive, StoredBytes, Transmit, TransmitCounters,
};
use wirestorm_base::rate::{Decimal, Rate};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::edit::EditOptions;
use wirestorm_engine::measure::frame_hash;
use wirestorm_engine::replay::{
    Chunk, Feed, FeedItem, Indexer, IndexerOptions, Outputs, RenderOptions, Renderer,
    ReplayCounters, SideSource, Unique, UniqueFields, Worker, WorkerOptions, WorkerState,
};
use wirestorm_sim::memory::{MemoryReceive, MemoryTransmit, WireOptions, wire};
use wirestorm_wire::capture::{LinkType, PcapngWriter, RECORD_LENGTH_MAX};

const START: Instant = Instant::from_nanos(1_000_000_007);
const HORIZON: Duration = Duration::from_millis(1);
const CAPTURE_PACE: Pace =
    Pace::Capture { multiplier: Decimal { digits: 1, denominator: 1 }, gap_max: Duration::MAX };

/// Interfaces of the test captures: two Ethernet, one raw IP without a link layer.
const ETHERNET: u32 = 0;
const SECOND: u32 = 1;
const RAW: u32 = 2;

/// Packet of a capture.
#[derive(Clone, Debug)]
struct Packet {
    interface: u32,
    time: u64,
    bytes: Vec<u8>,
    original_length: u32,
}

fn packet(interface: u32, time: u64, bytes: Vec<u8>) -> Packet {
    let original_length = bytes.len() as u32;
    Packet { interface, time, bytes, original_length }
}

/// Returns frame `number` of a flow: UDP over IPv4 with `length` bytes.
fn udp(flow: u8, number: u16, length: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00, 0x45, 0];
    frame.extend((length as u16 - 14).to_be_bytes());
    frame.extend(number.to_be_bytes());
    frame.extend([0, 0, 64, 17, 0, 0, 10, 0, 1, flow, 10, 0, 2, 1, 0x10, flow, 0, 53]);
    frame.extend((length as u16 - 34).to_be_bytes());
    frame.extend([0, 0]);
    frame.resize(length, number as u8);
    frame
}

/// Returns the number of a frame of [`udp`].
fn number(frame: &[u8]) -> u16 {
    u16::from_be_bytes([frame[18], frame[19]])
}

/// Returns a frame that is not IP.
fn other(length: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5];
    frame.resize(length, 7);
    frame
}

/// Returns numbered 60-byte packets of one flow at these times.
fn at(times: impl IntoIterator<Item = u64>) -> Vec<Packet> {
    times.into_iter().zip(0..).map(|(time, n)| packet(ETHERNET, time, udp(1, n, 60))).collect()
}

fn indexing() -> IndexerOptions {
    IndexerOptions {
        workers: 1,
        flows: true,
        flow_expiry: None,
        flows_max: 1_000,
        sides: SideSource::One,
        needs_offsets: true,
        only: None,
        except: Vec::new(),
    }
}

/// Indexes a capture in chunks of `chunk_packets` packets.
fn index(packets: &[Packet], chunk_packets: usize, options: IndexerOptions) -> Vec<Chunk> {
    let writer = PcapngWriter::new();
    let mut head = Vec::new();
    writer.push_section(&mut head);
    for link_type in [LinkType::EN10MB, LinkType::EN10MB, LinkType::RAW] {
        writer.push_interface(&mut head, link_type, 0, "").unwrap();
    }
    let mut indexer = Indexer::new(options);
    indexer.start_pass();
    indexer.start_file(0);
    let mut chunks = Vec::new();
    for packets in packets.chunks(chunk_packets) {
        let mut chunk = Chunk { bytes: std::mem::take(&mut head), ..Chunk::default() };
        for Packet { interface, time, bytes, original_length } in packets {
            let time = Instant::from_nanos(*time);
            let file = &mut chunk.bytes;
            writer.push_record(file, *interface, time, *original_length, bytes).unwrap();
        }
        let filled = chunk.bytes.len();
        assert_eq!(indexer.index(&mut chunk, filled, false).unwrap().consumed, filled);
        assert_eq!(chunk.records.len(), packets.len());
        chunks.push(chunk);
    }
    chunks
}

/// Indexes a capture for one worker and one side.
fn chunks(packets: &[Packet]) -> Vec<Chunk> {
    index(packets, 7, indexing())
}

/// Numbers chunks, so that ports may store them.
fn numbered(mut chunks: Vec<Chunk>) -> Vec<Chunk> {
    for (chunk, number) in chunks.iter_mut().zip(0..) {
        chunk.kept = Some(number);
    }
    chunks
}

/// Feed that repeats the chunks in every pass.
struct Passes {
    chunks: Vec<Arc<Chunk>>,
    cursor: usize,
    passes_left: u64,
}

impl Feed for Passes {
    fn next(&mut self) -> FeedItem {
        if self.passes_left == 0 {
            return FeedItem::End;
        }
        if let Some(chunk) = self.chunks.get(self.cursor) {
            self.cursor += 1;
            return FeedItem::Chunk(Arc::clone(chunk));
        }
        self.cursor = 0;
        self.passes_left -= 1;
        FeedItem::PassEnd
    }
}

/// Sending end of a wire that counts stored and copied frames. Optionally it does not hold
/// departures, so that the worker must wait.
struct Port {
    end: MemoryTransmit,
    capabilities: Capabilities,
    copied: u64,
    stored: u64,
    stores: u64,
}

impl Port {
    fn departure(&self, departure: Instant) -> Instant {
        if self.capabilities.holds_departure { departure } else { Instant::ZERO }
    }
}

impl Transmit for Port {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn take(&mut self) -> Option<FrameId> {
        self.end.take()
    }

    fn frame_mut(&mut self, frame: &FrameId) -> &mut [u8] {
        self.end.frame_mut(frame)
    }

    fn send(&mut self, frame: FrameId, length: usize, departure: Instant) {
        self.copied += 1;
        self.end.send(frame, length, self.departure(departure));
    }

    fn store(&mut self, bytes: &[u8]) -> Option<StoredBytes> {
        self.stores += 1;
        self.end.store(bytes)
    }

    fn send_stored(
        &mut self,
        frame: FrameId,
        stored: StoredBytes,
        range: Range<usize>,
        departure: Instant,
    ) {
        self.stored += 1;
        self.end.send_stored(frame, stored, range, self.departure(departure));
    }

    fn release(&mut self, frame: FrameId) {
        self.end.release(frame);
    }

    fn flush(&mut self) -> Result<(), PortError> {
        self.end.flush()
    }

    fn in_flight(&self) -> usize {
        self.end.in_flight()
    }

    fn transmitted(&self) -> TransmitCounters {
        self.end.transmitted()
    }

    fn abort(&mut self) {
        self.end.abort();
    }
}

/// Worker, its wires and the passage of time.
struct Setup {
    options: WorkerOptions,
    render: RenderOptions,
    wire: WireOptions,
    ports: usize,
    holds_departure: bool,
    passes: u64,
    /// Start and length of a stall in which the worker does not run.
    stall: Option<(Instant, Duration)>,
}

impl Setup {
    fn new(pace: Pace) -> Self {
        Self {
            options: WorkerOptions {
                index: 0,
                pace,
                policy: DeparturePolicy::default(),
                packets_max: u64::MAX,
                duration_max: Duration::MAX,
                pass_delay: Duration::ZERO,
                virtual_time: false,
                horizon: HORIZON,
            },
            render: RenderOptions {
                link_addresses: [[0x0a; 12], [0x0b; 12]],
                ..Default::default()
            },
            wire: WireOptions { frames: 64, frame_length_max: 1_514 },
            ports: 1,
            holds_departure: true,
            passes: 1,
            stall: None,
        }
    }

    /// Runs the worker until it is done; calls `see` with every frame that arrives.
    fn run(self, chunks: Vec<Chunk>, mut see: impl FnMut(&Arrival<'_>)) -> Outcome {
        let (mut ports, mut ends): (Vec<Port>, Vec<MemoryReceive>) =
            (0..self.ports).map(|_| self.port()).unzip();
        let chunks = chunks.into_iter().map(Arc::new).collect();
        let feed = Passes { chunks, cursor: 0, passes_left: self.passes };
        let hashes = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&hashes);
        let mut worker = Worker::new(feed, self.options, Renderer::new(self.render), START)
            .with_sent_log(Box::new(move |hashes| log.lock().unwrap().extend_from_slice(hashes)));
        let (mut now, mut stall) = (START, self.stall);
        let (mut waits, mut blocked, mut idle_iterations) = (0, 0, 0);
        let mut batch = Vec::new();
        loop {
            let iteration = worker.breathe(now, Outputs::of(&mut ports).unwrap()).unwrap();
            for (side, end) in ends.iter_mut().enumerate() {
                end.receive(usize::MAX, &mut batch).unwrap();
                for received in batch.drain(..) {
                    let arrival = received.arrival;
                    see(&Arrival { side, passed: now, arrival, frame: end.frame(&received) });
                    end.release(received);
                }
            }
            idle_iterations = if iteration.frames == 0 { idle_iterations + 1 } else { 0 };
            assert!(idle_iterations < 1_000, "{:?} and no end", iteration.state);
            match iteration.state {
                WorkerState::Active => {}
                WorkerState::Blocked => blocked += 1,
                WorkerState::Waiting(until) => {
                    assert!(until > now, "a wait is for the future");
                    waits += 1;
                    now = until;
                }
                WorkerState::Done => break,
                state => panic!("{state:?}"),
            }
            if let Some((_, span)) = stall.take_if(|(from, _)| now >= *from) {
                now += span;
            }
        }
        for port in &mut ports {
            let taken: Vec<_> = std::iter::from_fn(|| port.take()).collect();
            assert_eq!(taken.len(), self.wire.frames, "buffers at the end");
        }
        let hashes = std::mem::take(&mut *hashes.lock().unwrap());
        let (counters, departures) = (worker.counters(), worker.departures().clone());
        let sent: u64 = ports.iter().map(|port| port.transmitted().sent).sum();
        assert_eq!(sent, counters.packets, "given to ports and sent");
        Outcome { counters, departures, ports, hashes, waits, blocked }
    }

    /// Runs the worker; also returns the frames of each side with their arrival times.
    fn replay(self, chunks: Vec<Chunk>) -> (Outcome, [Vec<Timed>; 2]) {
        let holds_departure = self.holds_departure;
        let mut frames = [Vec::new(), Vec::new()];
        let outcome = self.run(chunks, |it| {
            let time = if holds_departure { it.arrival } else { it.passed };
            frames[it.side].push((time.as_nanos(), it.frame.to_vec()));
        });
        (outcome, frames)
    }

    fn port(&self) -> (Port, MemoryReceive) {
        let (end, other_end) = wire(self.wire);
        let holds_departure = self.holds_departure;
        let capabilities = Capabilities { holds_departure, ..*end.capabilities() };
        (Port { end, capabilities, copied: 0, stored: 0, stores: 0 }, other_end)
    }
}

/// Frame at the other end of a wire.
struct Arrival<'a> {
    side: usize,
    /// Time at which the worker passed it to the port.
    passed: Instant,
    arrival: Instant,
    frame: &'a [u8],
}

/// Frame with its arrival time in ns.
type Timed = (u64, Vec<u8>);

struct Outcome {
    counters: ReplayCounters,
    departures: DepartureRecord,
    ports: Vec<Port>,
    /// Hashes in the worker's sent log.
    hashes: Vec<u64>,
    /// Number of waits for a due time, and for a buffer.
    waits: u64,
    blocked: u64,
}

/// Returns the arrival times since the start.
fn offsets(frames: &[Timed]) -> Vec<u64> {
    frames.iter().map(|(time, _)| time - START.as_nanos()).collect()
}

fn numbers(frames: &[Timed]) -> Vec<u16> {
    frames.iter().map(|(_, frame)| number(frame)).collect()
}

fn pps(text: &str) -> Pace {
    Pace::Packets { rate: Rate::parse_per_second(text, 1).unwrap(), group: 1 }
}

// Timing.

#[test]
fn capture_timing_starts_at_zero_and_keeps_gaps() {
    let times = [5_000_000_000, 5_000_001_500, 5_000_001_500, 5_004_000_001];
    let (outcome, [frames, _]) = Setup::new(CAPTURE_PACE).replay(chunks(&at(times)));
    assert_eq!(offsets(&frames), [0, 1_500, 1_500, 4_000_001]);
    assert_eq!(numbers(&frames), [0, 1, 2, 3]);
    assert_eq!(outcome.waits, 1, "for the last frame beyond the horizon");
}

#[test]
fn ports_that_hold_departures_receive_frames_one_horizon_ahead() {
    let setup = Setup::new(CAPTURE_PACE);
    let packets = at((0..100).map(|n| n * 150_000));
    let mut latest = Instant::ZERO;
    setup.run(chunks(&packets), |it| {
        assert!(it.arrival <= it.passed + HORIZON, "too early");
        latest = latest.max(it.passed);
    });
    let last_due = START + Duration::from_nanos(99 * 150_000);
    assert_eq!(latest + HORIZON, last_due, "no later than needed");
}

#[test]
fn packet_rate_is_exact_over_a_million_frames() {
    const FRAMES: u64 = 1_000_000;
    // A gap of 333 1/3 ns.
    let mut setup = Setup::new(pps("3M"));
    setup.passes = FRAMES / 1_000;
    let chunks = index(&at([0; 1_000]), 300, indexing());
    let mut count = 0;
    let outcome = setup.run(chunks, |it| {
        let due = START + Duration::from_nanos(count * 1_000 / 3);
        assert_eq!(it.arrival, due, "frame {count}");
        assert_eq!(u64::from(number(it.frame)), count % 1_000);
        count += 1;
    });
    assert_eq!((count, outcome.counters.packets), (FRAMES, FRAMES));
    assert_eq!(outcome.counters.passes, FRAMES / 1_000);
}

#[test]
fn virtual_time_never_waits_and_starts_at_the_first_timestamp() {
    let times = [5_000_000_000, 5_000_000_007, 9_000_000_000];
    for (pace, expected) in [
        (CAPTURE_PACE, times),
        (Pace::TopSpeed, times),
        (pps("10"), [5_000_000_000, 5_100_000_000, 5_200_000_000]),
    ] {
        let mut setup = Setup::new(pace);
        setup.options.virtual_time = true;
        let (outcome, [frames, _]) = setup.replay(chunks(&at(times)));
        let arrivals: Vec<_> = frames.iter().map(|(time, _)| *time).collect();
        assert_eq!(arrivals, expected, "{pace:?}");
        assert_eq!(outcome.waits, 0);
    }
}

#[test]
fn ports_without_departure_support_receive_frames_when_due() {
    let mut setup = Setup::new(CAPTURE_PACE);
    setup.holds_departure = false;
    let (outcome, [frames, _]) = setup.replay(chunks(&at([70, 80, 80, 95])));
    assert_eq!(offsets(&frames), [0, 10, 10, 25]);
    assert_eq!(outcome.departures.frames, 4);
    assert_eq!(outcome.departures.lateness_max, Duration::ZERO);
}

#[test]
fn strict_policy_skips_and_counts_late_frames() {
    const GAP: u64 = 10_000;
    let mut setup = Setup::new(CAPTURE_PACE);
    setup.holds_departure = false;
    setup.options.policy =
        DeparturePolicy { catch_up: CatchUp::Strict, backlog: Duration::from_millis(1) };
    setup.stall = Some((START + Duration::from_millis(2), Duration::from_millis(3)));
    let packets = at((0..1_000).map(|n| n * GAP));
    let (outcome, [frames, _]) = setup.replay(chunks(&packets));
    // At 5 ms, frames due from 2 ms on and before 4 ms are too late.
    let expected: Vec<u16> = (0..200).chain(400..1_000).collect();
    assert_eq!(numbers(&frames), expected);
    assert_eq!((outcome.counters.packets, outcome.counters.unsent), (800, 200));
    assert_eq!(outcome.departures.unsent, 200);
    let times = offsets(&frames);
    let gap_min = times.windows(2).map(|pair| pair[1] - pair[0]).min();
    assert_eq!(gap_min, Some(GAP - GAP / 10), "never closer than the gap less its tolerance");
}

// Limits and passes.

#[test]
fn packet_limit_is_exact() {
    let mut setup = Setup::new(Pace::TopSpeed);
    (setup.passes, setup.options.packets_max) = (10, 8);
    let (outcome, [frames, _]) = setup.replay(chunks(&at([0, 1, 2])));
    assert_eq!(numbers(&frames), [0, 1, 2, 0, 1, 2, 0, 1]);
    assert_eq!((outcome.counters.packets, outcome.counters.passes), (8, 2));
    assert_eq!((outcome.counters.bytes, outcome.counters.flow_packets), (480, 8));
}

#[test]
fn no_frame_is_sent_after_the_duration() {
    let mut setup = Setup::new(CAPTURE_PACE);
    setup.options.duration_max = Duration::from_nanos(20_000);
    let (_, [frames, _]) = setup.replay(chunks(&at([0, 10_000, 19_999, 20_000, 30_000])));
    assert_eq!(offsets(&frames), [0, 10_000, 19_999]);
}

#[test]
fn top_speed_waits_for_the_pass_delay() {
    let mut setup = Setup::new(Pace::TopSpeed);
    setup.passes = 10;
    setup.options.pass_delay = Duration::from_millis(1);
    setup.options.duration_max = Duration::from_millis(5);
    let mut due_times = Vec::new();
    let outcome = setup.run(chunks(&at([0, 9])), |it| due_times.push(it.passed));
    let pass = |n: u64| [START + Duration::from_millis(n); 2];
    assert_eq!(due_times, [0, 1, 2, 3, 4].map(pass).concat());
    assert_eq!(outcome.counters.passes, 5);
}

#[test]
fn passes_are_separated_by_the_pass_delay() {
    let mut setup = Setup::new(CAPTURE_PACE);
    setup.passes = 3;
    setup.options.pass_delay = Duration::from_nanos(500);
    let (outcome, [frames, _]) = setup.replay(chunks(&at([1_000, 1_200])));
    assert_eq!(offsets(&frames), [0, 200, 700, 900, 1_400, 1_600]);
    assert_eq!(outcome.counters.passes, 3);
    assert_eq!(outcome.counters.flows, 1, "the same flow in each pass");
}

#[test]
fn blocked_port_loses_no_frames() {
    let mut setup = Setup::new(Pace::TopSpeed);
    setup.wire.frames = 4;
    setup.passes = 3;
    let (outcome, [frames, _]) = setup.replay(chunks(&at([0; 50])));
    let expected: Vec<u16> = (0..3).flat_map(|_| 0..50).collect();
    assert_eq!(numbers(&frames), expected);
    assert_eq!(outcome.blocked, 37, "150 frames in fours");
}

// Selection of records and outputs.

#[test]
fn workers_share_records_by_flow_on_one_schedule() {
    let packets: Vec<_> = (0..200)
        .map(|n| packet(ETHERNET, u64::from(n) * 1_000, udp((n % 20) as u8, n, 60)))
        .collect();
    for (pace, packets_max) in [(CAPTURE_PACE, 200), (pps("7M"), 200), (CAPTURE_PACE, 50)] {
        let replay = |workers, worker| {
            let mut setup = Setup::new(pace);
            setup.options.index = worker;
            setup.options.packets_max = packets_max;
            let (outcome, [frames, _]) =
                setup.replay(index(&packets, 30, IndexerOptions { workers, ..indexing() }));
            (outcome.counters, frames)
        };
        let (counters, alone) = replay(1, 0);
        assert_eq!((counters.packets, counters.flows), (packets_max, 20));
        let (mut sum, mut together) = replay(3, 0);
        for worker in 1..3 {
            let (counters, frames) = replay(3, worker);
            assert!(!frames.is_empty(), "20 flows and nothing for worker {worker}");
            let of_flow = |it: &Timed| it.1[29];
            let is_new = |it| together.iter().all(|other| of_flow(other) != of_flow(it));
            assert!(frames.iter().all(is_new), "a flow on two workers");
            together.extend(frames);
            sum.merge(&counters);
        }
        together.sort();
        assert_eq!(together, alone, "{pace:?}");
        assert_eq!(sum, counters);
    }
}

#[test]
fn secondary_side_uses_the_second_port() {
    let packets = [
        packet(ETHERNET, 0, udp(1, 0, 60)),
        packet(SECOND, 10, udp(2, 1, 70)),
        packet(RAW, 20, udp(3, 2, 80)[14..].to_vec()),
        packet(ETHERNET, 30, udp(4, 3, 90)),
    ];
    let options = IndexerOptions { sides: SideSource::Interface, ..indexing() };
    let mut setup = Setup::new(CAPTURE_PACE);
    setup.ports = 2;
    let (outcome, [first, second]) = setup.replay(index(&packets, 10, options));
    assert_eq!((offsets(&first), numbers(&first)), (vec![0, 30], vec![0, 3]));
    assert_eq!((offsets(&second), numbers(&second)), (vec![10, 20], vec![1, 2]));
    assert_eq!(second[1].1[..14], [&[0x0b; 12][..], &[0x08, 0x00]].concat(), "that side's header");
    let sent_bytes = |port: &Port| port.transmitted().sent_bytes;
    assert_eq!(outcome.ports.iter().map(sent_bytes).collect::<Vec<_>>(), [150, 150]);
}

#[test]
fn both_sides_share_a_single_port() {
    let packets: Vec<_> =
        (0..6).map(|n| packet(u32::from(n % 2), u64::from(n), udp(n as u8, n, 60))).collect();
    for pace in [Pace::TopSpeed, CAPTURE_PACE] {
        let mut setup = Setup::new(pace);
        setup.passes = 2;
        let options = IndexerOptions { sides: SideSource::Interface, ..indexing() };
        let (outcome, [frames, _]) = setup.replay(numbered(index(&packets, 4, options)));
        assert_eq!(numbers(&frames), [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5], "{pace:?}");
        assert_eq!(outcome.counters.packets, 12);
    }
}

#[test]
fn worker_accepts_one_or_two_outputs() {
    for (count, is_taken) in [(0, false), (1, true), (2, true), (3, false)] {
        let mut ports: Vec<()> = vec![(); count];
        assert_eq!(Outputs::of(&mut ports).is_some(), is_taken, "{count}");
    }
}

#[test]
fn unsent_records_are_counted_by_reason() {
    let packets = [
        packet(ETHERNET, 0, udp(1, 0, 60)),
        packet(ETHERNET, 1, udp(1, 1, 60)),
        // Neither IPv4 nor IPv6.
        packet(RAW, 2, vec![0; 40]),
        packet(ETHERNET, 3, other(60)),
        packet(ETHERNET, 4, udp(1, 4, 60)),
    ];
    let options = IndexerOptions { except: vec![2..=2], ..indexing() };
    let mut setup = Setup::new(CAPTURE_PACE);
    setup.passes = 2;
    let (outcome, [frames, _]) = setup.replay(index(&packets, 2, options));
    let expected = ReplayCounters {
        packets: 6,
        bytes: 360,
        flow_packets: 4,
        non_flow_packets: 2,
        flows: 1,
        unconvertible: 2,
        filtered: 2,
        passes: 2,
        ..ReplayCounters::default()
    };
    assert_eq!(outcome.counters, expected);
    // A pass starts at the due time of the previous pass's last record.
    assert_eq!(offsets(&frames), [0, 3, 4, 4, 7, 8]);
}

#[test]
fn frames_of_invalid_length_are_skipped_and_counted() {
    let lengths = [60, 100, 101, 1_000, 80];
    let mut packets: Vec<_> =
        lengths.iter().map(|&length| packet(ETHERNET, 0, udp(1, length as u16, length))).collect();
    packets.push(packet(ETHERNET, 0, vec![2; 13]));
    for chunks in [chunks(&packets), numbered(chunks(&packets))] {
        let mut setup = Setup::new(Pace::TopSpeed);
        setup.wire.frame_length_max = 100;
        setup.passes = 100;
        let (outcome, [frames, _]) = setup.replay(chunks);
        assert_eq!(numbers(&frames), [60, 100, 80].repeat(100));
        let counters = outcome.counters;
        assert_eq!((counters.packets, counters.bytes), (300, 24_000));
        assert_eq!(
            (counters.too_long, counters.too_long_max, counters.too_short),
            (200, 1_000, 100)
        );
    }
}

#[test]
fn frames_cut_to_the_port_limit_are_sent() {
    let packets: Vec<_> = [60, 101, 1_000].map(|n| packet(ETHERNET, 0, udp(1, n, n.into()))).into();
    let mut setup = Setup::new(Pace::TopSpeed);
    setup.wire.frame_length_max = 100;
    setup.render.edits.mtu_truncate = Some(86);
    let (outcome, [frames, _]) = setup.replay(chunks(&packets));
    let lengths: Vec<_> = frames.iter().map(|(_, frame)| frame.len()).collect();
    assert_eq!((lengths, numbers(&frames)), (vec![60, 100, 100], vec![60, 101, 1_000]));
    assert_eq!((outcome.counters.too_long, outcome.counters.truncated), (0, 2));
}

#[test]
fn record_with_an_excessive_length_is_skipped_without_allocation() {
    // Frames are padded to their length on the wire and then cut, so the longer length needs room.
    let claims = [RECORD_LENGTH_MAX, RECORD_LENGTH_MAX + 1, u32::MAX, 61];
    let packets = claims
        .map(|original_length| Packet { original_length, ..packet(ETHERNET, 0, udp(1, 0, 60)) });
    let mut setup = Setup::new(Pace::TopSpeed);
    setup.render.original_length = true;
    setup.render.edits.mtu_truncate = Some(60);
    let (outcome, [frames, _]) = setup.replay(chunks(&packets));
    let lengths: Vec<_> = frames.iter().map(|(_, frame)| frame.len()).collect();
    assert_eq!(lengths, [74, 61]);
    assert_eq!((outcome.counters.too_long, outcome.counters.too_long_max), (2, u32::MAX.into()));
}

// Storage in the port.

/// Returns packets of all kinds that matter for storage: flows, other frames, a truncated record,
/// and records to convert to Ethernet.
fn mixed() -> Vec<Packet> {
    (0..30_u16)
        .map(|n| {
            let time = u64::from(n) * 100;
            let frame = udp(n as u8 % 5, n, 60 + usize::from(n));
            match n % 6 {
                1 => packet(ETHERNET, time, other(64)),
                3 => packet(RAW, time, frame[14..].to_vec()),
                4 => Packet { original_length: 200, ..packet(ETHERNET, time, frame) },
                _ => packet(ETHERNET, time, frame),
            }
        })
        .collect()
}

/// Replays the mixed capture in three passes, without and with storage, as modified by `change`.
/// Compares both and returns the outcome and the frames of the latter.
fn replay_stored(change: impl Fn(&mut Setup)) -> (Outcome, Vec<Timed>) {
    let setup = || {
        let mut setup = Setup::new(CAPTURE_PACE);
        setup.passes = 3;
        change(&mut setup);
        setup
    };
    let (plain, [expected, _]) = setup().replay(chunks(&mixed()));
    let (outcome, [frames, _]) = setup().replay(numbered(chunks(&mixed())));
    assert_eq!((plain.ports[0].copied, plain.ports[0].stored), (90, 0));
    assert_eq!(frames, expected, "with and without storage");
    assert_eq!(outcome.counters, plain.counters);
    let hashes: Vec<_> = frames.iter().map(|(_, frame)| frame_hash(frame)).collect();
    assert_eq!(outcome.hashes, hashes, "logged and sent");
    (outcome, frames)
}

#[test]
fn kept_chunks_are_sent_from_storage_unless_converted() {
    let (outcome, _) = replay_stored(|_| {});
    let port = &outcome.ports[0];
    // Five of 30 records have another link layer.
    assert_eq!((port.stored, port.copied), (3 * 25, 3 * 5));
    assert_eq!(port.stores, 5, "each chunk once");
}

#[test]
fn padded_records_are_not_sent_from_storage() {
    let (outcome, frames) = replay_stored(|setup| setup.render.original_length = true);
    assert_eq!(frames[4].1.len(), 200);
    let port = &outcome.ports[0];
    assert_eq!((port.stored, port.copied), (3 * 20, 3 * 10));
}

#[test]
fn frames_with_changed_addresses_are_not_sent_from_storage() {
    let what = UniqueFields::Addresses;
    let (outcome, frames) = replay_stored(|setup| {
        setup.render.unique = Some(Unique { what, passes_milli: 1_000 });
    });
    let source = |n: usize| frames[n].1[26..30].to_vec();
    assert_eq!([source(0), source(30), source(60)].map(|address| address[3]), [0, 255, 254]);
    let port = &outcome.ports[0];
    // The first pass is sent as captured, and five non-IP frames always are.
    assert_eq!((port.stored, port.copied), (25 + 2 * 5, 90 - 35));
}

#[test]
fn edited_frames_are_not_stored() {
    let (outcome, _) = replay_stored(|setup| {
        setup.render.edits = EditOptions { mtu_truncate: Some(50), ..EditOptions::default() };
    });
    let port = &outcome.ports[0];
    assert_eq!((port.stores, port.stored, port.copied), (0, 0, 90));
}
