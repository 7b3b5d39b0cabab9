//! Arbitrary bytes as a capture, indexed in pieces and replayed to wires in memory. There must be
//! no panic, and every indexed record is sent or counted.

use std::collections::VecDeque;
use std::sync::Arc;

use wirestorm_base::departure::DeparturePolicy;
use wirestorm_base::pace::Pace;
use wirestorm_base::port::{Receive, Transmit};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::edit::EditOptions;
use wirestorm_engine::replay::{
    Chunk, Feed, FeedItem, Indexer, IndexerOptions, Outputs, RenderOptions, Renderer, SideSource,
    Unique, UniqueFields, Worker, WorkerOptions, WorkerState,
};
use wirestorm_sim::memory::{WireOptions, wire};

const PASSES: usize = 2;

/// Feeds all chunks once for each pass.
struct Chunks {
    chunks: Vec<Arc<Chunk>>,
    left: VecDeque<Option<Arc<Chunk>>>,
}

impl Chunks {
    fn new(chunks: Vec<Arc<Chunk>>) -> Self {
        let mut left = VecDeque::new();
        for pass in 0..PASSES {
            if pass > 0 {
                left.push_back(None);
            }
            left.extend(chunks.iter().cloned().map(Some));
        }
        Self { chunks, left }
    }

    fn records(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.records.len() as u64).sum()
    }
}

impl Feed for Chunks {
    fn next(&mut self) -> FeedItem {
        match self.left.pop_front() {
            Some(Some(chunk)) => FeedItem::Chunk(chunk),
            Some(None) => FeedItem::PassEnd,
            None => FeedItem::End,
        }
    }
}

/// Checks one input.
///
/// The first bytes select the replay options; the rest is the capture.
pub fn run(input: &[u8]) {
    let [choice, piece, file @ ..] = input else { return };
    let chunks = index(file, usize::from(*piece).max(1) * 16, choice & 1 != 0);
    let feed = Chunks::new(chunks);
    let records = feed.records() * PASSES as u64;

    let (mut port, mut arrivals) = wire(WireOptions { frames: 64, frame_length_max: 1_518 });
    let unique = (choice & 2 != 0).then_some(Unique {
        what: if choice & 4 != 0 {
            UniqueFields::AddressesAndPorts
        } else {
            UniqueFields::Addresses
        },
        passes_milli: 1_000,
    });
    let edits = EditOptions {
        fix_checksums: choice & 8 != 0,
        address_seed: (choice & 16 != 0).then_some(7),
        mtu_truncate: (choice & 32 != 0).then_some(200),
        ..EditOptions::default()
    };
    let renderer = Renderer::new(RenderOptions {
        edits,
        link_addresses: [[2; 12]; 2],
        unique,
        original_length: choice & 64 != 0,
    });
    let options = WorkerOptions {
        index: 0,
        pace: Pace::TopSpeed,
        policy: DeparturePolicy::default(),
        packets_max: u64::MAX,
        duration_max: Duration::MAX,
        pass_delay: Duration::ZERO,
        virtual_time: false,
        horizon: Duration::from_millis(1),
    };
    let mut worker = Worker::new(feed, options, renderer, Instant::ZERO);
    let mut batch = Vec::new();
    let mut now = Instant::ZERO;
    let mut breaths = 0_u64;
    loop {
        let iteration = worker.breathe(now, Outputs::one(&mut port)).expect("memory does not fail");
        arrivals.receive(64, &mut batch).expect("memory does not fail");
        batch.drain(..).for_each(|frame| arrivals.release(frame));
        if iteration.state == WorkerState::Done {
            break;
        }
        now += Duration::from_micros(1);
        breaths += 1;
        assert!(breaths < 1_000 + 4 * records, "no end of {records} records");
    }
    let counters = worker.counters();
    let sent = port.transmitted();
    assert_eq!(sent.sent + sent.failed + port.in_flight() as u64, counters.packets);
    let refused = counters.too_long + counters.too_short + counters.unconvertible;
    let accounted = counters.packets + refused + counters.unsent + counters.filtered;
    assert_eq!(accounted, records, "{counters:?}");
}

/// Indexes a file in pieces up to its end or an error.
fn index(file: &[u8], piece: usize, sides: bool) -> Vec<Arc<Chunk>> {
    let mut indexer = Indexer::new(IndexerOptions {
        workers: 1,
        flows: true,
        flow_expiry: sides.then_some(Duration::from_millis(10)),
        flows_max: 64,
        sides: if sides { SideSource::Interface } else { SideSource::One },
        needs_offsets: true,
        only: None,
        except: Vec::new(),
    });
    indexer.start_pass();
    indexer.start_file(0);
    let mut chunks = Vec::new();
    let (mut start, mut length) = (0, piece);
    loop {
        let end = start + length.min(file.len() - start);
        let mut chunk = Chunk { bytes: file[start..end].to_vec(), ..Chunk::default() };
        let filled = chunk.bytes.len();
        let outcome = indexer.index(&mut chunk, filled, end == file.len());
        for record in &chunk.records {
            // Each record lies within its chunk.
            assert_eq!(chunk.data(record).len(), record.captured_length as usize);
        }
        chunks.push(Arc::new(chunk));
        match outcome {
            Ok(indexed) if !indexed.ended => {
                assert!(indexed.at_least > filled - indexed.consumed && end < file.len());
                start += indexed.consumed;
                length = indexed.at_least.max(piece);
            }
            _ => return chunks,
        }
    }
}
