//! Two connections and a network that loses, delays, reorders, duplicates and damages segments,
//! seeded and in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use wirestorm_model::tcp::Settings;
use wirestorm_stack::tcp::connection::{Connection, EndReason, State};
use wirestorm_stack::tcp::counters::TcpCounters;
use wirestorm_stack::tcp::now::Now;
use wirestorm_stack::tcp::ranges::SequenceRange;
use wirestorm_stack::tcp::segment::{Ecn, Options, Outgoing, SACK_BLOCKS_MAX, Segment};
use wirestorm_stack::tcp::sequence::SequenceNumber;
use wirestorm_wire::checksum;
use wirestorm_wire::packet::tcp::{self, Flags};

/// Properties of the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Network {
    /// One-way delay in microseconds.
    pub(crate) delay: u64,
    /// Maximum random extra delay in microseconds, which reorders segments.
    pub(crate) jitter: u64,
    /// Average number of segments lost per 1,000.
    pub(crate) lost: u32,
    /// Average number of segments duplicated per 1,000.
    pub(crate) doubled: u32,
    /// Average number of segments per 1,000 with some flipped bits.
    pub(crate) damaged: u32,
    /// Average number of ECN-capable segments per 1,000 that get CE (RFC 3168).
    pub(crate) marked: u32,
    /// Rate in bytes per second, with a queue of `queue` segments; 0: no limit.
    pub(crate) rate: u64,
    pub(crate) queue: usize,
}

impl Network {
    pub(crate) const PERFECT: Self = Self {
        delay: 1_000,
        jitter: 0,
        lost: 0,
        doubled: 0,
        damaged: 0,
        marked: 0,
        rate: 0,
        queue: 0,
    };
}

/// One end of the connection.
pub(crate) struct Peer {
    pub(crate) settings: Settings,
    pub(crate) connection: Option<Connection>,
    pub(crate) counters: TcpCounters,
    /// Bytes that the program sends in total, and bytes that it has queued so far.
    pub(crate) sends: u32,
    queued: u32,
    /// Bytes received in order.
    pub(crate) received: u32,
    pub(crate) is_peer_done: bool,
    /// Received bytes of the other end, by offset; the expected value is the offset modulo 251.
    arrived: Vec<Option<u8>>,
    initial: SequenceNumber,
    peer_initial: Option<SequenceNumber>,
    /// End of the largest window that this end offered.
    offered: Option<SequenceNumber>,
    /// Number of segments beyond the largest window that the peer offered.
    pub(crate) overruns: u32,
}

impl Peer {
    pub(crate) fn new(settings: Settings, sends: u32, initial: u32) -> Self {
        Self {
            settings,
            connection: None,
            counters: TcpCounters::default(),
            sends,
            queued: 0,
            received: 0,
            is_peer_done: false,
            arrived: Vec::new(),
            initial: SequenceNumber(initial),
            peer_initial: None,
            offered: None,
            overruns: 0,
        }
    }

    /// Runs the program: queues all its bytes in pieces of 64 KiB, then closes.
    fn run(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        if !connection.is_established() {
            return;
        }
        while self.queued < self.sends && connection.unsent() < 64 << 10 {
            let piece = (self.sends - self.queued).min(64 << 10);
            connection.queue(piece, &mut self.counters);
            self.queued += piece;
        }
        if self.queued == self.sends {
            connection.close();
        }
    }

    pub(crate) fn end(&self) -> Option<EndReason> {
        self.connection.as_ref().and_then(Connection::end)
    }
}

/// Content of the byte at an offset.
fn content(offset: u32) -> u8 {
    (offset % 251) as u8
}

/// RST that answers a segment of a closed connection.
fn refusal(segment: &Segment<'_>) -> Outgoing {
    Outgoing {
        sequence: segment.acknowledgement,
        acknowledgement: SequenceNumber(0),
        flags: Flags::RST,
        window: 0,
        options: Options::default(),
        sack_blocks: 0,
        length: 0,
        more: 0,
        tail: 0,
        last_flags: Flags(0),
        is_ecn_capable: false,
    }
}

/// Arrival time, number of the transmission, receiver, traffic class and bytes of a segment.
type OnTheWire = (u64, u64, usize, u8, Vec<u8>);

/// Decides whether a segment is lost, from its sender, its number and its content.
type Loses = dyn Fn(usize, u64, &Segment<'_>) -> bool;

pub(crate) struct World {
    pub(crate) peers: [Peer; 2],
    pub(crate) network: Network,
    pub(crate) now: u64,
    random: u64,
    wire: BinaryHeap<Reverse<OnTheWire>>,
    order: u64,
    /// Time when each direction is idle again.
    free: [u64; 2],
    /// Total queueing delay of each direction in microseconds, and the number of segments.
    pub(crate) waited: [(u64, u64); 2],
    pub(crate) trace: Vec<String>,
    pub(crate) segments: u64,
    /// Number of segments that arrived damaged.
    pub(crate) damaged: u64,
    /// Selects segments to lose, counted from 0 per direction, besides random losses.
    pub(crate) loses: Box<Loses>,
    count: [u64; 2],
    /// Whether an end processes all segments that arrive together before it sends.
    pub(crate) batches: [bool; 2],
}

impl World {
    pub(crate) fn new(peers: [Peer; 2], network: Network, seed: u64) -> Self {
        let mut world = Self {
            peers,
            network,
            now: 1_000_000,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            wire: BinaryHeap::new(),
            order: 0,
            free: [0; 2],
            waited: [(0, 0); 2],
            trace: Vec::new(),
            segments: 0,
            damaged: 0,
            loses: Box::new(|_, _, _| false),
            count: [0; 2],
            batches: [false; 2],
        };
        let now = world.time();
        let client = &mut world.peers[0];
        let connection =
            Connection::connect(&client.settings, client.initial, now, &mut client.counters);
        client.connection = Some(connection);
        world
    }

    fn time(&self) -> Now {
        Now::from_micros(self.now)
    }

    fn draw(&mut self, end: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % end.max(1)
    }

    /// Runs both ends until nothing happens any more, but at most for `limit` microseconds.
    pub(crate) fn run(&mut self, limit: u64) {
        self.run_until(limit, |_| false);
    }

    /// Like [`Self::run`], but also ends when `is_over` returns true.
    pub(crate) fn run_until(&mut self, limit: u64, is_over: impl Fn(&Self) -> bool) {
        let end = self.now + limit;
        self.serve(0);
        self.serve(1);
        while self.now < end && !is_over(self) {
            let deadlines = self.peers.iter().filter_map(|peer| {
                let at = peer.connection.as_ref()?.deadline(&peer.settings, self.time())?;
                let millis = self.time().millis;
                let ahead = at.wrapping_sub(millis).cast_signed().max(0) as u64;
                Some((self.now / 1_000 + ahead) * 1_000)
            });
            let arrival = self.wire.peek().map(|Reverse((at, ..))| *at);
            let Some(next) = deadlines.chain(arrival).min() else { break };
            self.now = self.now.max(next);
            if let Some(Reverse((at, ..))) = self.wire.peek()
                && *at <= self.now
                && let Some(Reverse((_, _, to, traffic_class, bytes))) = self.wire.pop()
            {
                self.arrive(to, &bytes, Ecn::of(traffic_class));
                let is_next = |next: &Reverse<OnTheWire>| next.0.0 <= self.now && next.0.2 == to;
                let connection = self.peers[to].connection.as_ref();
                let is_due = connection.is_some_and(Connection::is_answer_due);
                if is_due || !self.batches[to] || !self.wire.peek().is_some_and(is_next) {
                    self.serve(to);
                }
                continue;
            }
            let now = self.time();
            for place in 0..2 {
                let peer = &mut self.peers[place];
                if let Some(connection) = &mut peer.connection {
                    connection.handle_timeout(&peer.settings, now, &mut peer.counters);
                }
                self.serve(place);
            }
        }
    }

    fn serve(&mut self, place: usize) {
        let now = self.time();
        loop {
            let peer = &mut self.peers[place];
            peer.run();
            let Some(connection) = &mut peer.connection else { return };
            let outgoing = connection.poll_transmit(&peer.settings, now, &mut peer.counters);
            let Some(outgoing) = outgoing else { return };
            self.send(place, &outgoing);
        }
    }

    fn send(&mut self, place: usize, outgoing: &Outgoing) {
        self.segments += 1;
        let header = outgoing.header_length();
        let mut bytes = vec![0; header + outgoing.length as usize];
        let mut sack = [SequenceRange::default(); SACK_BLOCKS_MAX];
        if let Some(connection) = &self.peers[place].connection {
            connection.sack_blocks(&mut sack);
        }
        outgoing.write_header(1, 2, &sack, &[], &mut bytes);
        let from = outgoing.sequence.0.wrapping_sub(self.peers[place].initial.0).wrapping_sub(1);
        for (byte, offset) in bytes[header..].iter_mut().zip(from..) {
            *byte = content(offset);
        }
        let sum = checksum::sum(&bytes);
        bytes[tcp::field::CHECKSUM].copy_from_slice(&(!sum).to_be_bytes());
        let (segment, _) = Segment::parse(&bytes, Ecn::NOT_ECT).expect("it was written here");
        // The other end's offer applies to new data only.
        let other = &self.peers[1 - place];
        let edge = other.offered;
        let is_over =
            edge.is_some_and(|edge| outgoing.length > 1 && segment.end().distance_from(edge) > 0);
        self.peers[place].overruns += u32::from(is_over);
        self.note_offer(place, &segment);
        let number = self.count[place];
        self.count[place] += 1;
        let is_lost = self.draw(1_000) < u64::from(self.network.lost)
            || (self.loses)(place, number, &segment);
        self.trace.push(format!(
            "{:>9} {} {} seq {} len {} ack {} win {}{}",
            self.now,
            ["->", "<-"][place],
            segment.flags,
            from.wrapping_add(1),
            segment.length,
            segment.acknowledgement.0.wrapping_sub(self.peers[1 - place].initial.0),
            segment.window,
            if is_lost { " LOST" } else { "" },
        ));
        if is_lost {
            return;
        }
        let copies = 1 + u64::from(self.draw(1_000) < u64::from(self.network.doubled));
        for _ in 0..copies {
            let mut leaves = self.now;
            let micros = (bytes.len() as u64 + 34) * 1_000_000;
            if let Some(took) = micros.checked_div(self.network.rate) {
                let waits = self.free[place].saturating_sub(self.now);
                if waits > took * self.network.queue as u64 {
                    return;
                }
                self.free[place] = self.now + waits + took;
                self.waited[place].0 += waits;
                self.waited[place].1 += 1;
                leaves = self.free[place];
            }
            let jitter = self.draw(self.network.jitter + 1);
            let at = leaves + self.network.delay + jitter;
            self.order += 1;
            let mut bytes = bytes.clone();
            self.damage(&mut bytes);
            let traffic_class = self.mark(outgoing.is_ecn_capable);
            self.wire.push(Reverse((at, self.order, 1 - place, traffic_class, bytes)));
        }
    }

    /// Returns the traffic class of a packet on arrival.
    fn mark(&mut self, is_ecn_capable: bool) -> u8 {
        const CAPABLE: u8 = 0b10;
        const MET_CONGESTION: u8 = 0b11;
        if !is_ecn_capable {
            return 0;
        }
        let is_marked =
            self.network.marked > 0 && self.draw(1_000) < u64::from(self.network.marked);
        if is_marked { MET_CONGESTION } else { CAPABLE }
    }

    /// Flips some bits at random, few and close enough for the checksum to detect it.
    fn damage(&mut self, bytes: &mut [u8]) {
        // Draw nothing without damage, so that old seeds give the same runs.
        if self.network.damaged == 0 || self.draw(1_000) >= u64::from(self.network.damaged) {
            return;
        }
        let place = self.draw(bytes.len() as u64) as usize;
        bytes[place] ^= 1 + self.draw(255) as u8;
    }

    fn note_offer(&mut self, place: usize, segment: &Segment<'_>) {
        if !segment.flags.contains(Flags::ACK) {
            return;
        }
        let scale = match segment.flags.contains(Flags::SYN) {
            true => 0,
            false => self.peers[place].settings.window_scale(),
        };
        let scaled = self.peers.iter().all(|peer| peer.settings.window_scaling);
        let window = u32::from(segment.window) << if scaled { scale } else { 0 };
        let edge = segment.acknowledgement + window;
        let offered = &mut self.peers[place].offered;
        if offered.is_none_or(|offered| offered.is_before(edge)) {
            *offered = Some(edge);
        }
    }

    fn arrive(&mut self, place: usize, bytes: &[u8], ecn: Ecn) {
        let now = self.time();
        let parsed = Segment::parse(bytes, ecn);
        if checksum::sum(bytes) != 0xffff {
            self.damaged += 1;
            return;
        }
        let (segment, data) = parsed.expect("it was written here");
        let peer = &mut self.peers[place];
        if peer.connection.is_none() {
            if segment.flags.contains(Flags::ACK) || !segment.flags.contains(Flags::SYN) {
                return;
            }
            peer.connection = Some(Connection::accept(
                &peer.settings,
                &segment,
                peer.initial,
                now,
                &mut peer.counters,
            ));
            peer.peer_initial = Some(segment.sequence);
            return;
        }
        if segment.flags.contains(Flags::SYN) {
            peer.peer_initial.get_or_insert(segment.sequence);
        }
        if let Some(initial) = peer.peer_initial {
            let from = segment.sequence.0.wrapping_sub(initial.0).wrapping_sub(1) as usize;
            for (offset, byte) in (from..).zip(&bytes[data..]) {
                if offset < 1 << 26 {
                    if peer.arrived.len() <= offset {
                        peer.arrived.resize(offset + 1, None);
                    }
                    peer.arrived[offset] = Some(*byte);
                }
            }
        }
        let Some(connection) = &mut peer.connection else { return };
        if connection.is_over() && !segment.flags.contains(Flags::RST) {
            // RFC 9293 section 3.10.7.1.
            return self.send(place, &refusal(&segment));
        }
        let arrival = connection.handle_segment(&segment, &peer.settings, now, &mut peer.counters);
        // Each byte that is reported must have arrived, with its own content.
        for offset in peer.received..peer.received + arrival.data {
            assert_eq!(peer.arrived.get(offset as usize), Some(&Some(content(offset))));
        }
        peer.received += arrival.data;
        peer.is_peer_done |= arrival.is_end;
    }

    /// Asserts that both ends received all data once and in order, and closed.
    #[track_caller]
    pub(crate) fn assert_done(&self) {
        for place in 0..2 {
            let (peer, other) = (&self.peers[place], &self.peers[1 - place]);
            let tail = || {
                let from = self.trace.len().saturating_sub(60);
                self.trace[from..].join("\n")
            };
            assert_eq!(peer.received, other.sends, "what {place} received\n{}", tail());
            assert!(peer.is_peer_done, "{place} did not receive the end\n{}", tail());
            assert_eq!(peer.end(), Some(EndReason::Closed), "the end of {place}\n{}", tail());
            assert_eq!(peer.overruns, 0, "windows overrun by {place}\n{}", tail());
            assert_eq!(peer.connection.as_ref().map(Connection::state), Some(State::Closed));
        }
    }
}
