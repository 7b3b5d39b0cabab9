//! Captures that the kernel sends by itself, compared with those that the process sends.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use wirestorm_base::departure::DeparturePolicy;
use wirestorm_base::pace::Pace;
use wirestorm_base::port::{Receive, Received, Resident, Transmit};
use wirestorm_base::rate::{Decimal, Layer, Rate};
use wirestorm_base::resident::{CaptureOptions, ResidentOptions};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::replay::{
    Chunk, Feed, FeedItem, Indexer, IndexerOptions, KeptChunks, Outputs, RenderOptions, Renderer,
    ReplayCounters, SideSource, Unique, UniqueFields, Worker, WorkerOptions, WorkerState,
};
use wirestorm_io::af_xdp::{AfXdp, AfXdpOptions, AfXdpReceive, Direction};
use wirestorm_io::clock;
use wirestorm_io::namespace::InterfaceName;
use wirestorm_io::xdp::XdpTransmit;
use wirestorm_sim::memory::{WireOptions, wire};
use wirestorm_testkit::net::Lab;
use wirestorm_testkit::require::require_root;
use wirestorm_wire::capture::{LinkType, PcapngWriter};

use crate::resident::{FRAME_LENGTH_MAX, open_sender};

/// A packet: its content, and the time since the one before in ns.
#[derive(Clone, Debug)]
struct Packet {
    bytes: Vec<u8>,
    gap: u64,
    is_raw: bool,
}

/// Returns a UDP or TCP packet over IPv4 or IPv6, with random addresses, ports and checksum.
fn ip_packet() -> impl Strategy<Value = Packet> {
    let fields = (any::<[u8; 40]>(), any::<[u8; 20]>(), any::<bool>(), any::<bool>());
    (fields, 0..1_400_usize, any::<bool>(), any::<bool>(), 0..200_000_u64).prop_map(
        |((addresses, transport, is_ipv6, is_tcp), payload, is_raw, no_checksum, gap)| {
            let protocol = if is_tcp { 6 } else { 17 };
            let mut transport = transport[..if is_tcp { 20 } else { 8 }].to_vec();
            if is_tcp {
                transport[12] = 0x50;
            } else {
                let length = 8 + payload as u16;
                transport[4..6].copy_from_slice(&length.to_be_bytes());
                if no_checksum {
                    transport[6..8].fill(0);
                }
            }
            transport.resize(transport.len() + payload, 0x77);
            let mut packet = match is_ipv6 {
                true => vec![0x60, 0, 0, 0, 0, 0, protocol, 64],
                false => vec![0x45, 0, 0, 0, 0, 1, 0, 0, 64, protocol, 0, 0],
            };
            packet.extend(&addresses[..if is_ipv6 { 32 } else { 8 }]);
            let length = match is_ipv6 {
                true => transport.len() as u16,
                false => (packet.len() + transport.len()) as u16,
            };
            let at = if is_ipv6 { 4 } else { 2 };
            packet[at..at + 2].copy_from_slice(&length.to_be_bytes());
            packet.extend(transport);
            if !is_raw {
                let ethertype = if is_ipv6 { [0x86, 0xdd] } else { [8, 0] };
                let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
                frame.extend(ethertype);
                frame.extend(packet);
                packet = frame;
            }
            Packet { bytes: packet, gap, is_raw }
        },
    )
}

/// Returns a frame of another protocol; some are too short to be sent.
fn other_packet() -> impl Strategy<Value = Packet> {
    (4..FRAME_LENGTH_MAX, any::<u8>(), 0..200_000_u64).prop_map(|(length, filler, gap)| {
        let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5];
        bytes.resize(length, filler);
        Packet { bytes, gap, is_raw: false }
    })
}

fn pace() -> impl Strategy<Value = Pace> {
    let rate = |units: u64| Rate::parse_per_second(&units.to_string(), 1).unwrap();
    let one = Decimal { digits: 1, denominator: 1 };
    prop_oneof![
        Just(Pace::TopSpeed),
        Just(Pace::Capture { multiplier: one, gap_max: Duration::MAX }),
        (20_000..300_000_u64).prop_map(move |it| Pace::Packets { rate: rate(it), group: 1 }),
        (100_000_000..1_000_000_000_u64)
            .prop_map(move |it| Pace::Bits { rate: rate(it), layer: Layer::Wire }),
    ]
}

fn index(packets: &[Packet], workers: u16) -> Arc<[Arc<Chunk>]> {
    let writer = PcapngWriter::new();
    let mut head = Vec::new();
    writer.push_section(&mut head);
    for link_type in [LinkType::EN10MB, LinkType::RAW] {
        writer.push_interface(&mut head, link_type, 0, "").unwrap();
    }
    let mut indexer = Indexer::new(IndexerOptions {
        workers,
        flows: true,
        flow_expiry: None,
        flows_max: 1_000,
        sides: SideSource::One,
        needs_offsets: true,
        only: None,
        except: Vec::new(),
    });
    indexer.start_pass();
    indexer.start_file(0);
    let mut time = Instant::from_nanos(1_000_000_000);
    let mut index = |packets: &[Packet]| {
        let mut chunk = Chunk { bytes: std::mem::take(&mut head), ..Chunk::default() };
        for Packet { bytes, gap, is_raw } in packets {
            time = time.saturating_add(Duration::from_nanos(*gap));
            let length = bytes.len() as u32;
            let file = &mut chunk.bytes;
            writer.push_record(file, u32::from(*is_raw), time, length, bytes).unwrap();
        }
        let filled = chunk.bytes.len();
        indexer.index(&mut chunk, filled, false).unwrap();
        Arc::new(chunk)
    };
    packets.chunks(7).map(&mut index).collect()
}

struct Kept {
    chunks: Arc<[Arc<Chunk>]>,
    cursor: usize,
    passes: u64,
}

impl Feed for Kept {
    fn next(&mut self) -> FeedItem {
        if self.passes == 0 {
            return FeedItem::End;
        }
        if let Some(chunk) = self.chunks.get(self.cursor) {
            self.cursor += 1;
            return FeedItem::Chunk(Arc::clone(chunk));
        }
        self.cursor = 0;
        self.passes -= 1;
        FeedItem::PassEnd
    }

    fn kept(&mut self) -> Option<KeptChunks> {
        Some(KeptChunks { chunks: Arc::clone(&self.chunks), passes: self.passes })
    }
}

/// What to send.
#[derive(Clone, Debug)]
struct Case {
    packets: Vec<Packet>,
    pace: Pace,
    unique: Option<Unique>,
    passes: u64,
    packets_max: u64,
    workers: u16,
    pass_delay: Duration,
}

fn case() -> impl Strategy<Value = Case> {
    let packet = prop_oneof![4 => ip_packet(), 1 => other_packet()];
    let what = prop_oneof![Just(UniqueFields::Addresses), Just(UniqueFields::AddressesAndPorts)];
    let unique = (what, prop_oneof![Just(1_000), 1_001..3_000_u64])
        .prop_map(|(what, passes_milli)| Unique { what, passes_milli });
    let packets_max = prop_oneof![3 => Just(u64::MAX), 1 => 1..200_u64];
    (
        prop::collection::vec(packet, 1..40),
        pace(),
        prop::option::of(unique),
        1..6_u64,
        packets_max,
        1..3_u16,
        0..300_000_u64,
    )
        .prop_map(|(packets, pace, unique, passes, packets_max, workers, pass_delay)| Case {
            packets,
            pass_delay: match pace {
                Pace::TopSpeed => Duration::ZERO,
                _ => Duration::from_nanos(pass_delay),
            },
            pace,
            unique,
            passes,
            packets_max,
            workers,
        })
}

impl Case {
    fn worker(&self, start: Instant, virtual_time: bool) -> Worker<Kept> {
        let chunks = index(&self.packets, self.workers);
        let feed = Kept { chunks, cursor: 0, passes: self.passes };
        let options = WorkerOptions {
            index: 0,
            pace: self.pace,
            policy: DeparturePolicy::default(),
            packets_max: self.packets_max,
            duration_max: Duration::MAX,
            pass_delay: self.pass_delay,
            virtual_time,
            horizon: Duration::from_millis(1),
        };
        let renderer = Renderer::new(RenderOptions {
            link_addresses: [[0x0a; 12], [0x0b; 12]],
            unique: self.unique,
            ..RenderOptions::default()
        });
        Worker::new(feed, options, renderer, start)
    }

    /// Returns what the process sends to memory.
    fn by_process(&self) -> (Vec<Vec<u8>>, ReplayCounters) {
        let options = WireOptions { frames: 64, frame_length_max: FRAME_LENGTH_MAX };
        let (mut transmit, mut receive) = wire(options);
        let mut worker = self.worker(Instant::ZERO, true);
        let (mut batch, mut sent) = (Vec::new(), Vec::new());
        loop {
            let outputs = Outputs::one(&mut transmit);
            let state = worker.breathe(Instant::ZERO, outputs).unwrap().state;
            receive.receive(usize::MAX, &mut batch).unwrap();
            for frame in batch.drain(..) {
                sent.push(receive.frame(&frame).to_vec());
                receive.release(frame);
            }
            if state == WorkerState::Done {
                return (sent, worker.counters());
            }
        }
    }
}

/// The in-kernel sender on one end of a link, and a receiver on the other. GRO would change the order.
struct Path {
    lab: Lab,
    receive: AfXdpReceive,
}

impl Path {
    fn new() -> Self {
        let lab = Lab::new().unwrap();
        let to: InterfaceName = lab.b.port().parse().unwrap();
        let port = AfXdp::open(&AfXdpOptions::new(to, Direction::Receive)).unwrap();
        let receive = port.receive.into_iter().next().unwrap();
        Self { lab, receive }
    }

    fn transmit(&self, case: &Case) -> XdpTransmit {
        let is_timed = case.pace != Pace::TopSpeed;
        let capture = Some(CaptureOptions { frames: case.packets.len() });
        open_sender(&self.lab, ResidentOptions { capture, is_timed, ..Default::default() })
    }

    fn collect(&mut self, received: &mut Vec<Vec<u8>>) {
        let mut batch: Vec<Received> = Vec::new();
        self.receive.receive(usize::MAX, &mut batch).unwrap();
        for frame in batch {
            received.push(self.receive.frame(&frame).to_vec());
            self.receive.release(frame);
        }
    }

    /// Lets the kernel send a case. Calls `interrupt` after each breath.
    fn by_kernel(
        &mut self,
        case: &Case,
        mut interrupt: impl FnMut(&mut Worker<Kept>, &mut XdpTransmit),
    ) -> (Vec<Vec<u8>>, ReplayCounters, u64) {
        let mut port = self.transmit(case);
        let start = clock::now().saturating_add(Duration::from_millis(2));
        let mut worker = case.worker(start, false);
        let mut received = Vec::new();
        let end = std::time::Instant::now() + std::time::Duration::from_secs(5);
        loop {
            let outputs = Outputs::one(&mut port);
            let state = worker.breathe(clock::now(), outputs).unwrap().state;
            self.collect(&mut received);
            if state == WorkerState::Done {
                break;
            }
            interrupt(&mut worker, &mut port);
            assert!(std::time::Instant::now() < end, "{state:?} after 5 s");
        }
        worker.recall(&mut port);
        let counters = worker.counters();
        while port.in_flight() > 0 || (received.len() as u64) < counters.packets {
            port.flush().unwrap();
            AfXdpReceive::wait(&mut [&mut self.receive], Duration::from_millis(1));
            self.collect(&mut received);
            assert!(
                std::time::Instant::now() < end,
                "{} frames of {counters:?}, {:?}",
                received.len(),
                port.transmitted()
            );
        }
        let (by_port, _) = worker.made_by_port();
        (received, counters, by_port)
    }
}

/// Returns the counts of sent frames.
fn sent_part(counters: &ReplayCounters) -> [u64; 6] {
    [
        counters.packets,
        counters.bytes,
        counters.flow_packets,
        counters.non_flow_packets,
        counters.invalid_packets,
        counters.flows,
    ]
}

#[test]
fn kernel_sends_the_capture_that_the_process_sends() {
    if !require_root() {
        return;
    }
    let path = RefCell::new(Path::new());
    let (of_kernel, of_all) = (Cell::new(0), Cell::new(0));
    let config =
        Config { cases: 100, max_shrink_iters: 40, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&case(), |case| {
        let (sent, expected) = case.by_process();
        let (received, counters, by_kernel) = path.borrow_mut().by_kernel(&case, |_, _| {});
        of_all.set(of_all.get() + counters.packets);
        of_kernel.set(of_kernel.get() + by_kernel);
        prop_assert_eq!(received.len(), sent.len());
        for (number, (received, sent)) in received.iter().zip(&sent).enumerate() {
            prop_assert_eq!(received, sent, "frame {}", number);
        }
        if case.packets_max == u64::MAX {
            prop_assert_eq!(counters, expected);
        } else {
            // Whether what follows the last frame still counts is open.
            prop_assert_eq!(sent_part(&counters), sent_part(&expected));
        }
        Ok(())
    });
    outcome.unwrap();
    let (by_kernel, all) = (of_kernel.get(), of_all.get());
    assert!(by_kernel > all / 2, "the kernel sends {by_kernel} of {all} frames");
}

#[test]
fn pauses_take_a_capture_back_and_no_frame_is_lost_or_sent_twice() {
    if !require_root() {
        return;
    }
    let numbered = |number: u8| Packet {
        bytes: [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5][..], &[number; 46]].concat(),
        gap: 10_000,
        is_raw: false,
    };
    let case = Case {
        packets: (0..100).map(numbered).collect(),
        pace: Pace::Packets { rate: Rate::parse_per_second("100000", 1).unwrap(), group: 1 },
        unique: None,
        passes: 300,
        packets_max: u64::MAX,
        workers: 1,
        pass_delay: Duration::ZERO,
    };
    let mut pauses = 0;
    let (received, counters, by_kernel) = Path::new().by_kernel(&case, |worker, port| {
        if pauses == 4 || worker.counters().packets < 1_500 * (pauses + 1) {
            return;
        }
        assert!(Resident::sending(port) > 0, "the kernel sends before pause {pauses}");
        worker.recall(port);
        let sent = worker.counters().packets;
        std::thread::sleep(std::time::Duration::from_millis(5));
        port.flush().unwrap();
        assert_eq!(worker.counters().packets, sent, "nothing leaves in the pause");
        worker.postpone(Duration::from_millis(5));
        pauses += 1;
    });
    assert_eq!(pauses, 4);
    assert_eq!((counters.packets, by_kernel, counters.passes), (30_000, 30_000, 300));
    for (number, frame) in received.iter().enumerate() {
        assert_eq!(frame[20], (number % 100) as u8, "frame {number}");
    }
}
