//! One side of a test: clients that connect, servers that answer, or both, on one port.
//!
//! ```text
//! frames -> dissect -> flow table -> Connection::arrive -> program -> Connection::depart -> frames
//!            time ->   timer wheel -> Connection::expire ----^
//!            load ->   new flow -----------------------------^
//! ```

mod burst;
mod clients;
mod flow;
mod links;
mod load;
mod times;
mod train;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use hashbrown::HashTable;
use wirestorm_base::port::{FrameId, PortError, Receive, Received, Transmit};
use wirestorm_base::time::Instant;
use wirestorm_base::wheel::Wheel;
use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::packet::tcp::{self, Flags};
use wirestorm_wire::packet::{ethernet, ipv4, ipv6, protocol};

use self::burst::{BURST_MAX, fill_up, room, send_burst};
pub use self::clients::{AddressRange, Tuples};
use self::flow::Flow;
use self::links::Links;
use self::load::Arrivals;
pub use self::load::Load;
pub use self::times::Times;
use self::train::Train;
use crate::frame::{Headers, Other, Packet, dissect, write_segment};
pub use crate::frame::{IpSettings, LinkHeader};
use crate::heard::Heard;
use crate::host::Host;
use crate::program::{Buffers, Outside, Program, Progress, Run, Statistics};
use crate::random::Random;
use crate::tcp::arrival::Arrival;
use crate::tcp::connection::{Connection, End, Now};
use crate::tcp::counters::TcpCounters;
use crate::tcp::ranges::SequenceRange;
use crate::tcp::segment::{Options, Outgoing, SACK_BLOCKS_MAX, Segment};
use crate::tcp::sequence::SequenceNumber;
use crate::tcp::settings::Settings;

/// What connections of one kind do.
#[derive(Clone, Debug)]
pub struct Template {
    /// What they say.
    pub program: Program,
    /// How their TCP behaves.
    pub tcp: Settings,
    /// What their IP headers say.
    pub ip: IpSettings,
    /// Who they are.
    pub role: Role,
}

/// Whether connections of a template are made or waited for.
#[derive(Clone, Debug)]
pub enum Role {
    /// They are made, between these.
    Client {
        /// Between whom.
        tuples: Tuples,
        /// What is below IP.
        link: LinkHeader,
        /// When they are made.
        load: Load,
        /// How many in all; `None`: without end.
        limit: Option<u64>,
    },
    /// They are waited for at a port.
    Server {
        /// The port.
        port: u16,
    },
}

/// How an endpoint is made.
#[derive(Clone, Debug)]
pub struct EndpointOptions {
    /// What it does.
    pub templates: Vec<Template>,
    /// What its programs send.
    pub buffers: Buffers,
    /// The longest frame without a tag that its port takes, in bytes without FCS: segments are no
    /// longer than fits it.
    pub frame_length_max: usize,
    /// The most connections at once.
    pub flows_max: usize,
    /// Who it is to its neighbours: for these addresses it answers ARP, neighbour discovery and
    /// pings. Without addresses it answers nobody.
    pub host: Host,
    /// Where initial sequence numbers and delays come from.
    pub seed: u64,
    /// Whether checksums of what arrives are looked at; not needed where the port does.
    pub verifies_checksums: bool,
}

/// What an endpoint counts beside TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounters {
    /// Connections now.
    pub active: u64,
    /// The most at once.
    pub active_max: u64,
    /// Connections that could not be made or taken because [`EndpointOptions::flows_max`] were.
    pub overflow: u64,
    /// Connections that could not be made because their tuple was in use.
    pub tuple_in_use: u64,
    /// Segments of no connection.
    pub no_flow: u64,
    /// SYNs to ports that nobody waits at.
    pub no_template: u64,
    /// Segments that did not fit a frame of the port, and were not sent.
    pub too_long: u64,
    /// Packets in parts.
    pub fragments: u64,
    /// Packets that were damaged or cut short.
    pub damaged: u64,
    /// Packets of other protocols.
    pub other_protocol: u64,
    /// Connections that ended because both sides closed them.
    pub closed: u64,
    /// Connections that ended otherwise.
    pub failed: u64,
}

/// One side of a test.
#[derive(Debug)]
pub struct Endpoint {
    templates: Vec<Template>,
    /// How TCP behaves in each, over IPv4 and over IPv6, whose longer header leaves less room.
    tcp_settings: Vec<[Settings; 2]>,
    /// How far each one's load is, and how many connections it has made.
    arrivals: Vec<Arrivals>,
    made: Vec<u64>,
    buffers: Buffers,
    flows: Vec<Option<Flow>>,
    free: Vec<u32>,
    flows_max: usize,
    table: HashTable<u32>,
    /// The flow that was heard of last.
    last: u32,
    wheel: Wheel,
    links: Links,
    random: Random,
    secret: u64,
    tcp: TcpCounters,
    counters: FlowCounters,
    statistics: Statistics,
    times: Times,
    /// Flows that something has happened to, or that wait for a free frame.
    pending: VecDeque<u32>,
    /// Free frames, within a breath.
    spare: Vec<FrameId>,
    batch: Vec<Received>,
    /// Segments that arrived and of which their connection has not heard yet, within a breath.
    train: Option<Train>,
    due: Vec<u32>,
    verifies_checksums: bool,
    host: Host,
}

/// Frames taken from a port at a time.
const BATCH: usize = 64;

impl Endpoint {
    /// An endpoint whose load begins at a time.
    pub fn new(options: EndpointOptions, now: Instant) -> Self {
        let mut random = Random::new(options.seed);
        let arrivals = |template: &Template| {
            let (load, limit) = match template.role {
                Role::Client { load, limit, .. } => (load, limit),
                Role::Server { .. } => (Load::OnDemand, None),
            };
            Arrivals::new(load, limit, now, Random::new(random.next()))
        };
        Self {
            arrivals: options.templates.iter().map(arrivals).collect(),
            made: options.templates.iter().map(|_| 0).collect(),
            tcp_settings: fitting(&options.templates, options.frame_length_max),
            templates: options.templates,
            buffers: options.buffers,
            flows: Vec::new(),
            free: Vec::new(),
            flows_max: options.flows_max,
            table: HashTable::new(),
            last: 0,
            wheel: Wheel::new(now.as_nanos() / 1_000_000),
            links: Links::default(),
            secret: random.next(),
            random,
            tcp: TcpCounters::default(),
            counters: FlowCounters::default(),
            statistics: Statistics::default(),
            times: Times::new(),
            pending: VecDeque::new(),
            spare: Vec::new(),
            batch: Vec::with_capacity(BATCH),
            train: None,
            due: Vec::new(),
            verifies_checksums: options.verifies_checksums,
            host: options.host,
        }
    }

    /// What TCP counted.
    pub const fn tcp(&self) -> &TcpCounters {
        &self.tcp
    }

    /// What was counted of flows.
    pub const fn counters(&self) -> &FlowCounters {
        &self.counters
    }

    /// How long its connections took.
    pub const fn times(&self) -> &Times {
        &self.times
    }

    /// What its programs counted.
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Takes what has arrived, does what is due, and sends what is to be sent. Returns how many
    /// frames arrived.
    ///
    /// # Errors
    /// Where a port does not work any more.
    pub fn breathe(
        &mut self,
        now: Instant,
        transmit: &mut impl Transmit,
        receive: &mut impl Receive,
    ) -> Result<usize, PortError> {
        let time = Now::from_micros(now.as_nanos() / 1_000);
        let mut batch = core::mem::take(&mut self.batch);
        let outcome = receive.receive(BATCH, &mut batch);
        for received in batch.drain(..) {
            let frame = receive.frame(&received);
            let verifies = self.verifies_checksums;
            if !self.train.as_mut().is_some_and(|train| train.takes(frame, verifies)) {
                self.hear_train(time);
                self.hear(frame, time, transmit);
            }
            receive.release(received);
        }
        self.hear_train(time);
        self.batch = batch;
        let mut due = core::mem::take(&mut self.due);
        self.wheel.expire(now.as_nanos() / 1_000_000, &mut due);
        for place in due.drain(..) {
            self.call(place, time);
        }
        self.due = due;
        // Each flow once for all that has arrived: so one acknowledgement answers a batch of
        // segments, as with the receive offloads of network interfaces.
        for _ in 0..self.pending.len() {
            // Where no frame is free, none of them can do anything.
            fill_up(&mut self.spare, 1, transmit);
            if self.spare.is_empty() {
                break;
            }
            let Some(place) = self.pending.pop_front() else { break };
            if let Some(flow) = self.flows[place as usize].as_mut() {
                flow.is_pending = false;
                self.serve(place, time, transmit);
            }
        }
        for template in 0..self.arrivals.len() {
            while self.arrivals[template].take(now) {
                if !self.connect(template, now, transmit) {
                    break;
                }
            }
        }
        for frame in self.spare.drain(..) {
            transmit.release(frame);
        }
        transmit.flush()?;
        outcome
    }

    /// Whether no more connections are to be made, but by [`Self::connect`], and there are none.
    pub fn is_done(&self) -> bool {
        self.table.is_empty() && self.arrivals.iter().all(Arrivals::is_done)
    }

    /// When it has something to do though nothing arrives; `None`: never. It may be early.
    pub fn next(&self) -> Option<Instant> {
        const TICK_NANOS: u64 = 1_000_000;
        if !self.pending.is_empty() {
            // They wait for a free frame.
            return Some(Instant::ZERO);
        }
        let timer = self.wheel.next_tick();
        let timer = timer.map(|tick| Instant::from_nanos(tick.saturating_mul(TICK_NANOS)));
        self.arrivals.iter().filter_map(Arrivals::next).chain(timer).min()
    }

    /// Makes no more connections but those that [`Self::connect`] asks for; those that are there
    /// go on.
    pub fn stop(&mut self) {
        self.arrivals.iter_mut().for_each(Arrivals::stop);
    }

    /// Makes a connection of a template, at a time. Returns whether that was possible.
    pub fn connect(&mut self, template: usize, now: Instant, transmit: &mut impl Transmit) -> bool {
        let time = Now::from_micros(now.as_nanos() / 1_000);
        let Some(Template { role: Role::Client { tuples, link, .. }, .. }) =
            self.templates.get(template)
        else {
            return false;
        };
        if self.table.len() >= self.flows_max {
            self.counters.overflow += 1;
            return false;
        }
        let number = self.made[template];
        self.made[template] += 1;
        let key = tuples.answers_to(number);
        let link = *link;
        if self.find(&key).is_some() {
            self.counters.tuple_in_use += 1;
            return false;
        }
        let initial = self.initial(&key, time);
        let tcp = settings(&self.tcp_settings, template as u16, &key);
        let connection = Connection::connect(tcp, initial, time, &mut self.tcp);
        let Some(link) = self.links.place(link) else { return false };
        let place = self.insert(key, connection, template as u16, link, time);
        self.serve(place, time, transmit);
        true
    }

    /// The first number of a connection (RFC 6528 section 3, RFC 9293 section 3.4.1): it grows with
    /// time, so that those who remember an earlier connection of the same tuple can tell, from
    /// where nobody knows.
    fn initial(&self, key: &FlowKey, now: Now) -> SequenceNumber {
        const TICK_MICROS: u64 = 4;
        SequenceNumber(
            (key.hash64(self.secret) as u32).wrapping_add((now.micros / TICK_MICROS) as u32),
        )
    }

    #[inline]
    fn find(&mut self, key: &FlowKey) -> Option<u32> {
        // Segments of one connection often arrive one behind the other.
        if self
            .flows
            .get(self.last as usize)
            .is_some_and(|it| it.as_ref().is_some_and(|flow| flow.key == *key))
        {
            return Some(self.last);
        }
        let found = self.look_up(key);
        self.last = found.unwrap_or(self.last);
        found
    }

    fn look_up(&self, key: &FlowKey) -> Option<u32> {
        let is_it = |place: &u32| self.key(*place) == Some(key);
        self.table.find(key.hash64(0), is_it).copied()
    }

    fn key(&self, place: u32) -> Option<&FlowKey> {
        self.flows[place as usize].as_ref().map(|flow| &flow.key)
    }

    fn insert(
        &mut self,
        key: FlowKey,
        connection: Connection,
        template: u16,
        link: u16,
        now: Now,
    ) -> u32 {
        let run = Run::new(self.buffers.nothing());
        let flow = Flow {
            key,
            connection,
            run,
            called_at: 0,
            is_called: false,
            began_at: now.micros as u32,
            is_answered: false,
            template,
            link,
            is_pending: false,
        };
        let place = match self.free.pop() {
            Some(place) => {
                self.flows[place as usize] = Some(flow);
                place
            }
            None => {
                self.flows.push(Some(flow));
                self.flows.len() as u32 - 1
            }
        };
        let flows = &self.flows;
        let hash = |place: &u32| flows[*place as usize].as_ref().map_or(0, |it| it.key.hash64(0));
        self.table.insert_unique(key.hash64(0), place, hash);
        self.arrivals[usize::from(template)].active += 1;
        self.counters.active += 1;
        self.counters.active_max = self.counters.active_max.max(self.counters.active);
        place
    }

    fn remove(&mut self, place: u32, now: Now) {
        let Some(flow) = self.flows[place as usize].take() else { return };
        if let Ok(entry) = self.table.find_entry(flow.key.hash64(0), |it| *it == place) {
            entry.remove();
        }
        self.times.whole.record(flow.age(now));
        if flow.is_called {
            self.wheel.cancel(place);
        }
        self.free.push(place);
        self.arrivals[usize::from(flow.template)].active -= 1;
        self.counters.active -= 1;
        match flow.connection.end() {
            Some(End::Closed) => self.counters.closed += 1,
            _ => self.counters.failed += 1,
        }
    }

    #[inline]
    fn hear(&mut self, frame: &[u8], now: Now, transmit: &mut impl Transmit) {
        let packet = match dissect(frame, self.verifies_checksums) {
            Ok(packet) => packet,
            Err(Other::Fragment) => return self.counters.fragments += 1,
            Err(Other::Damaged) => return self.counters.damaged += 1,
            Err(Other::Protocol) => return self.hear_neighbour(frame, transmit),
        };
        if packet.key.protocol() != protocol::TCP {
            self.counters.other_protocol += 1;
            return;
        }
        let Ok((segment, _)) = Segment::parse(packet.transport, packet.met_congestion) else {
            self.counters.damaged += 1;
            return;
        };
        let Some(place) = self.find(&packet.key) else {
            return self.hear_of_new(&packet, &segment, now, transmit);
        };
        let Some(flow) = self.flows[place as usize].as_mut() else { return };
        if flow.connection.gives_way_to(&segment) {
            flow.connection.give_way(&mut self.tcp);
            self.remove(place, now);
            return self.hear_of_new(&packet, &segment, now, transmit);
        }
        if flow.connection.is_established()
            && let Some(train) = Train::begin(frame, place, &packet, &segment)
        {
            self.train = Some(train);
            return;
        }
        if self.arrive(place, &segment, now).reset.is_some() {
            self.refuse(&packet, &segment, transmit);
        }
    }

    /// Segments that have come in a row reach their connection.
    #[inline]
    fn hear_train(&mut self, now: Now) {
        if let Some(train) = self.train.take() {
            self.arrive(train.place, &train.segment, now);
        }
    }

    /// A segment reaches its connection.
    #[inline]
    fn arrive(&mut self, place: u32, segment: &Segment<'_>, now: Now) -> Arrival {
        let Some(flow) = self.flows[place as usize].as_mut() else { return Arrival::default() };
        let settings = settings(&self.tcp_settings, flow.template, &flow.key);
        let arrival = flow.connection.arrive(segment, settings, now, &mut self.tcp);
        if arrival.is_established {
            self.times.connect.record(flow.age(now));
        }
        if arrival.data > 0 {
            flow.run.note_received(arrival.data);
            if !flow.is_answered {
                flow.is_answered = true;
                self.times.first_byte.record(flow.age(now));
            }
        }
        if !flow.is_pending {
            flow.is_pending = true;
            self.pending.push_back(place);
        }
        arrival
    }

    /// Anything but TCP and UDP.
    #[cold]
    fn hear_neighbour(&mut self, frame: &[u8], transmit: &mut impl Transmit) {
        let Heard::Question(answer) = self.host.hear(frame) else {
            self.counters.other_protocol += 1;
            return;
        };
        let Some(frame) = self.spare.pop().or_else(|| transmit.take()) else { return };
        match room(transmit, &frame).get_mut(..answer.len()) {
            Some(bytes) => {
                bytes.copy_from_slice(&answer);
                transmit.send(frame, answer.len(), Instant::ZERO);
            }
            None => transmit.release(frame),
        }
    }

    /// A segment that belongs to no connection.
    #[cold]
    fn hear_of_new(
        &mut self,
        packet: &Packet<'_>,
        segment: &Segment<'_>,
        now: Now,
        transmit: &mut impl Transmit,
    ) {
        let asks = segment.flags.contains(Flags::SYN)
            && !segment.flags.contains(Flags::ACK)
            && !segment.flags.contains(Flags::RST);
        if !asks {
            self.counters.no_flow += 1;
            return self.refuse(packet, segment, transmit);
        }
        let port = packet.key.destination_port();
        let waits = |it: &Template| matches!(it.role, Role::Server { port: at } if at == port);
        let Some(template) = self.templates.iter().position(waits) else {
            self.counters.no_template += 1;
            return self.refuse(packet, segment, transmit);
        };
        if self.table.len() >= self.flows_max {
            self.counters.overflow += 1;
            return;
        }
        let Some(link) = LinkHeader::answering(packet.link).and_then(|it| self.links.place(it))
        else {
            return;
        };
        let initial = self.initial(&packet.key, now);
        let settings = settings(&self.tcp_settings, template as u16, &packet.key);
        let connection = Connection::accept(settings, segment, initial, now, &mut self.tcp);
        let place = self.insert(packet.key, connection, template as u16, link, now);
        self.serve(place, now, transmit);
    }

    /// Answers a segment that belongs to no connection with a reset (RFC 9293 section 3.10.7.1).
    #[cold]
    fn refuse(&mut self, packet: &Packet<'_>, segment: &Segment<'_>, transmit: &mut impl Transmit) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let Some(link) = LinkHeader::answering(packet.link) else { return };
        let Some(frame) = self.spare.pop().or_else(|| transmit.take()) else { return };
        let acknowledges = segment.flags.contains(Flags::ACK);
        let outgoing = Outgoing {
            sequence: if acknowledges { segment.acknowledgement } else { SequenceNumber(0) },
            acknowledgement: if acknowledges { SequenceNumber(0) } else { segment.end() },
            flags: if acknowledges { Flags::RST } else { Flags::RST | Flags::ACK },
            window: 0,
            options: Options::default(),
            sack_blocks: 0,
            length: 0,
            more: 0,
            last_flags: Flags(0),
            is_ecn_capable: false,
        };
        self.tcp.rst_sent += 1;
        self.tcp.sndctrl += 1;
        self.tcp.sndtotal += 1;
        let bytes = room(transmit, &frame);
        let ip = IpSettings::default();
        let headers = Headers { link: &link, key: &packet.key, ip: &ip };
        match write_segment(bytes, &headers, &outgoing, &[], |_| 0) {
            Some(length) => transmit.send(frame, length, Instant::ZERO),
            None => transmit.release(frame),
        }
    }

    /// The wheel has called a flow.
    fn call(&mut self, place: u32, now: Now) {
        let Some(flow) = self.flows[place as usize].as_mut() else { return };
        flow.is_called = false;
        let settings = settings(&self.tcp_settings, flow.template, &flow.key);
        flow.connection.expire(settings, now, &mut self.tcp);
        if !flow.is_pending {
            flow.is_pending = true;
            self.pending.push_back(place);
        }
    }

    /// Lets a flow go on with its program and send what it has.
    #[inline]
    fn serve(&mut self, place: u32, now: Now, transmit: &mut impl Transmit) {
        let Some(flow) = self.flows[place as usize].as_mut() else { return };
        let template = &self.templates[usize::from(flow.template)];
        let settings = settings(&self.tcp_settings, flow.template, &flow.key);
        let mut progress;
        loop {
            let mut outside = Outside {
                buffers: &self.buffers,
                random: &mut self.random,
                statistics: &mut self.statistics,
                counters: &mut self.tcp,
                now,
            };
            progress = flow.run.advance(&template.program, &mut flow.connection, &mut outside);
            let all_left = loop {
                fill_up(&mut self.spare, flow.connection.burst_max().min(BURST_MAX), transmit);
                let frames = self.spare.len() as u32;
                if frames == 0 {
                    break false;
                }
                let connection = &mut flow.connection;
                let Some(outgoing) = connection.depart_burst(frames, settings, now, &mut self.tcp)
                else {
                    break true;
                };
                let mut sack = [SequenceRange::default(); SACK_BLOCKS_MAX];
                if outgoing.sack_blocks > 0 {
                    connection.sack_blocks(&mut sack);
                }
                let (run, buffers) = (&flow.run, &self.buffers);
                let link = self.links.get(flow.link);
                let headers = Headers { link, key: &flow.key, ip: &template.ip };
                let fill = |from, data: &mut [u8]| run.copy(from, data, buffers);
                self.counters.too_long +=
                    send_burst(&headers, &outgoing, &sack, &mut self.spare, transmit, fill);
            };
            if !all_left && !flow.is_pending {
                flow.is_pending = true;
                self.pending.push_back(place);
            }
            // A program that waits only until all has left goes on at once.
            if !all_left || !flow.run.waited_for_departure(&flow.connection) {
                break;
            }
        }
        if flow.connection.is_over() {
            return self.remove(place, now);
        }
        let mut at = flow.connection.deadline(settings, now);
        if let Progress::WaitsUntil(until) = progress {
            let is_sooner = |at: u32| until.wrapping_sub(at).cast_signed() < 0;
            at = Some(at.filter(|at| !is_sooner(*at)).unwrap_or(until));
        }
        // A call that comes too early costs less than to move it with every segment.
        if let Some(at) = at
            && (!flow.is_called || at.wrapping_sub(flow.called_at).cast_signed() < 0)
        {
            flow.called_at = at;
            flow.is_called = true;
            let ticks = at.wrapping_sub(now.millis).cast_signed().max(0) as u64;
            self.wheel.set(place, now.micros / 1_000 + ticks);
        }
    }
}

/// How TCP behaves in a flow.
fn settings<'a>(all: &'a [[Settings; 2]], template: u16, key: &FlowKey) -> &'a Settings {
    &all[usize::from(template)][usize::from(key.version() == 6)]
}

/// The settings of templates, with segments that fit a frame over either version of IP.
fn fitting(templates: &[Template], frame_length_max: usize) -> Vec<[Settings; 2]> {
    let fit = |template: &Template, ip: usize| {
        let room =
            frame_length_max.saturating_sub(ethernet::HEADER_LENGTH + ip + tcp::HEADER_LENGTH_MIN);
        let room = u16::try_from(room).unwrap_or(u16::MAX);
        let maximum_segment_size = template.tcp.maximum_segment_size.min(room);
        Settings { maximum_segment_size, ..template.tcp }
    };
    // RFC 9293 section 3.7.1: 1280 bytes, which every path over IPv6 carries, less the headers.
    let default_segment_size = 1_220;
    let over_ipv6 = |it| Settings { default_segment_size, ..fit(it, ipv6::HEADER_LENGTH) };
    let both = |it| [fit(it, ipv4::HEADER_LENGTH_MIN), over_ipv6(it)];
    templates.iter().map(both).collect()
}
