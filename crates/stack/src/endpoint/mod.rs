//! One side of a test: clients that connect, servers that answer, or both, on one port.
//!
//! ```text
//! frames -> dissect -> flow table -> Connection::arrive -> program -> Connection::depart -> frames
//!            time ->   timer wheel -> Connection::expire ----^
//!            load ->   new flow -----------------------------^
//! ```

mod back_off;
mod burst;
mod clients;
mod counters;
mod datagrams;
mod details;
mod ending;
mod executions;
mod fast_open;
mod first_data;
mod flow;
mod followed;
mod fragments;
mod hear;
mod index;
mod links;
mod listen;
mod load;
mod paths;
mod pauses;
mod schedule;
mod serve;
mod stamp;
mod starts;
mod stations;
mod switched;
mod table;
mod template;
mod throughput;
mod times;
mod train;
mod unreachable;
mod users;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::num::NonZero;

use wirestorm_base::port::{FrameId, PortError, Receive, Received, Transmit};
use wirestorm_base::rate::RateError;
use wirestorm_base::time::Instant;

use self::burst::fill_up;
pub use self::clients::{AddressRange, Order, Pairing, Tuples};
pub use self::counters::{FlowCounters, StrayCounters, Tally, UdpCounters};
use self::datagrams::DatagramFlow;
pub use self::details::{FlowDetails, Remaining};
pub use self::ending::ResetCursor;
use self::executions::Executions;
use self::fast_open::FastOpen;
use self::first_data::FirstData;
use self::flow::Flow;
use self::followed::Followed;
pub use self::followed::{FollowOptions, FollowedFlow};
use self::fragments::Pieces;
use self::links::Links;
pub use self::links::{ClientLinks, Devices, ServerLink};
use self::listen::Servers;
pub use self::listen::{Listen, MatchByte};
use self::load::Due;
pub use self::load::Load;
use self::paths::Paths;
use self::pauses::Pauses;
use self::starts::Starts;
use self::stations::Stations;
pub use self::switched::AddressSet;
use self::table::Flows;
use self::template::TemplateState;
pub use self::template::{Role, Template, Transport};
pub use self::throughput::ThroughputOutcome;
pub use self::times::{StampedTimes, Times};
use self::train::Train;
use self::unreachable::Allowance;
pub use self::users::Think;
use crate::content::SessionCounters;
pub use crate::frame::LinkHeader;
use crate::frame::{dissect, has_damaged_header};
use crate::host::Host;
pub use crate::ip_settings::{FlowLabel, Identification, IpSettings};
use crate::program::{Buffers, Statistics};
use crate::random::Random;
use crate::tcp::connection::Now;
use crate::tcp::counters::TcpCounters;

/// How an endpoint is made.
#[derive(Clone, Debug)]
pub struct EndpointOptions {
    /// What it does.
    pub templates: Vec<Template>,
    /// Groups of templates, by their places, for programs that ask for a flow of one.
    pub groups: Vec<Vec<usize>>,
    /// What its programs send.
    pub buffers: Buffers,
    /// The longest frame without a tag that its port takes, in bytes without FCS: segments are no
    /// longer than fits it.
    pub frame_length_max: usize,
    /// The most flows at once.
    pub flows_max: usize,
    /// Who it is to its neighbours: for these addresses it answers ARP, neighbour discovery and
    /// pings. Without addresses it answers nobody.
    pub host: Host,
    /// What it does not answer of what belongs to nobody here.
    pub blackhole: Blackhole,
    /// Where initial sequence numbers and delays come from.
    pub seed: u64,
    /// Whether checksums of what arrives are looked at; not needed where the port does.
    pub verifies_checksums: bool,
}

/// What an endpoint does not answer, as BSD's systems can be told (`blackhole(4)`): what it then
/// looks like is a host that is not there, or a firewall in front of it.
///
/// RFC 9293 section 3.10.7.1 wants an answer: "An incoming segment not containing a RST causes a
/// RST to be sent in response."
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Blackhole {
    /// All is answered: segments of no connection with RST, datagrams of no flow by ICMP.
    #[default]
    Nothing,
    /// SYNs to where nobody listens are not, other segments and datagrams are.
    Syn,
    /// Nothing is.
    All,
}

/// One side of a test.
#[derive(Debug)]
pub struct Endpoint {
    templates: Vec<TemplateState>,
    buffers: Buffers,
    /// How many of the templates are the options' own; behind them are those of connections that
    /// no template is known of yet.
    templates_known: usize,
    servers: Servers,
    /// Of connections of which no template is known, by place, what has come of their first data.
    first_data: BTreeMap<u32, FirstData>,
    groups: Vec<Vec<usize>>,
    executions: Executions,
    /// For templates whose programs listen: those of connections that came and are held.
    holders: BTreeMap<u16, u16>,
    starts: Starts,
    /// The template that flows are made of first, in the next breath.
    first: usize,
    /// Of the last breath.
    now: Instant,
    flows: Flows<Flow>,
    datagrams: Flows<DatagramFlow>,
    flows_max: usize,
    active_max: u64,
    frame_length_max: usize,
    links: Links,
    paths: Paths,
    fast_open: FastOpen,
    pieces: Pieces,
    allowance: Allowance,
    random: Random,
    secret: u64,
    strays: StrayCounters,
    /// What was sent in answer to segments of no connection.
    refusals: TcpCounters,
    /// Free frames, within a breath.
    spare: Vec<FrameId>,
    pauses: Pauses,
    followed: Followed,
    batch: Vec<Received>,
    /// Segments that arrived and of which their connection has not heard yet, within a breath.
    train: Option<Train>,
    /// Flows whose time has come, of which so many were called.
    due: Vec<u32>,
    called: usize,
    /// How many of them are called in a tick, and are still to be in the last one.
    calls_tick_max: usize,
    calls_tick: u64,
    calls_left: usize,
    /// The same of UDP, within a breath.
    due_datagrams: Vec<u32>,
    verifies_checksums: bool,
    leaves_strays: bool,
    stations: Stations,
    blackhole: Blackhole,
    host: Host,
}

/// Of the timers of flows.
const NANOSECONDS_PER_TICK: u64 = 1_000_000;

/// Frames taken from a port at a time.
const BATCH: usize = 64;

/// Flows that are called in one breath as their time has come.
const CALLS_MAX: usize = 64;
/// The same where more has arrived than is taken at a time.
const CALLS_BUSY_MAX: usize = 8;
/// The same in one tick, where the time of more than [`CALLS_MANY`] came together: where 100,000 are
/// to close at once, as after a pause of the machine, they do so in 0.4 s, and the port at the other
/// end, which has room for 8,000 frames, may be away for 10 ms meanwhile. Where as many have come
/// together again by then, it is twice as many, and so on: a load that brings more in a tick is kept
/// up with.
const CALLS_TICK_MAX: usize = 256;
/// More than a load brings in a tick, paced connections included.
const CALLS_MANY: usize = 4_096;

impl Endpoint {
    /// An endpoint whose load begins at a time.
    pub fn new(options: EndpointOptions, now: Instant) -> Self {
        let mut random = Random::new(options.seed);
        let millis = now.as_nanos() / NANOSECONDS_PER_TICK;
        let mut templates = options.templates;
        let templates_known = templates.len();
        let servers = Servers::new(&mut templates);
        let holders = template::holders(&mut templates, templates_known);
        let templates = templates.into_iter().map(|template| {
            let random = Random::new(random.next());
            TemplateState::new(template, options.frame_length_max, now, random)
        });
        let templates = templates.collect();
        let secret = random.next();
        Self {
            templates,
            buffers: options.buffers,
            templates_known,
            servers,
            first_data: BTreeMap::new(),
            groups: options.groups,
            executions: Executions::new(),
            holders,
            starts: Starts::new(),
            first: 0,
            now,
            flows: Flows::new(millis),
            datagrams: Flows::new(millis),
            flows_max: options.flows_max,
            active_max: 0,
            frame_length_max: options.frame_length_max,
            links: Links::default(),
            paths: Paths::default(),
            fast_open: FastOpen::new(secret),
            allowance: Allowance::new(),
            pieces: Pieces::new(options.seed as u32),
            secret,
            random,
            strays: StrayCounters::default(),
            refusals: TcpCounters::default(),
            spare: Vec::new(),
            pauses: Pauses::default(),
            followed: Followed::default(),
            batch: Vec::with_capacity(BATCH),
            train: None,
            due: Vec::new(),
            called: 0,
            calls_tick_max: usize::MAX,
            calls_tick: 0,
            calls_left: usize::MAX,
            due_datagrams: Vec::new(),
            verifies_checksums: options.verifies_checksums,
            leaves_strays: false,
            stations: Stations::default(),
            blackhole: options.blackhole,
            host: options.host,
        }
    }

    /// Leaves to others that hear the same frames what belongs to none of its flows and servers:
    /// that is neither answered nor counted.
    pub const fn leave_strays(&mut self) {
        self.leaves_strays = true;
    }

    /// What was counted of the flows of a template; `None` beyond the last.
    pub fn tally(&self, template: usize) -> Option<&Tally> {
        self.templates[..self.templates_known].get(template).map(|it| &it.tally)
    }

    /// What was counted of all flows.
    pub fn counters(&self) -> FlowCounters {
        let mut sum = FlowCounters::default();
        self.tallies().for_each(|it| sum.merge(&it.flows));
        FlowCounters { active_max: self.active_max, ..sum }
    }

    /// What TCP counted, answers to segments of no connection included.
    pub fn tcp(&self) -> TcpCounters {
        let mut sum = self.refusals;
        self.tallies().for_each(|it| sum.merge(&it.tcp));
        sum
    }

    /// What UDP counted.
    pub fn udp(&self) -> UdpCounters {
        let mut sum = UdpCounters::default();
        self.tallies().for_each(|it| sum.merge(&it.udp));
        sum
    }

    /// How long all its flows took.
    pub fn times(&self) -> Times {
        let mut sum = Times::new();
        self.tallies().for_each(|it| sum.merge(&it.times));
        sum
    }

    /// What was counted of sessions, where templates have them.
    pub fn sessions(&self) -> SessionCounters {
        let mut sum = SessionCounters::default();
        self.tallies().for_each(|it| sum.merge(&it.sessions));
        sum
    }

    /// What its programs counted.
    pub fn statistics(&self) -> Statistics {
        let mut sum = Statistics::default();
        self.tallies().for_each(|it| sum.merge(&it.statistics));
        sum
    }

    /// What belonged to no flow.
    pub fn strays(&self) -> StrayCounters {
        let fragments_incomplete = self.strays.fragments_incomplete + self.pieces.waiting();
        StrayCounters { fragments_incomplete, ..self.strays }
    }

    fn tallies(&self) -> impl Iterator<Item = &Tally> {
        self.templates.iter().map(|it| &it.tally)
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
        self.now = now;
        if batch.len() > 1 && self.flows.are_many() {
            self.ask_ahead(&batch, receive);
        }
        for received in batch.drain(..) {
            let frame = receive.frame(&received);
            let mut offloads = received.offloads;
            if self.verifies_checksums && offloads.is_verified && has_damaged_header(frame) {
                self.strays.damaged += 1;
                receive.release(received);
                continue;
            }
            offloads.is_verified |= !self.verifies_checksums;
            if !self.train.as_mut().is_some_and(|train| train.takes(frame, offloads)) {
                self.hear_train(time);
                self.hear(frame, offloads, time, transmit);
            }
            receive.release(received);
        }
        self.hear_train(time);
        self.batch = batch;
        let tick = now.as_nanos() / NANOSECONDS_PER_TICK;
        self.call_due(tick, matches!(outcome, Ok(BATCH)), time);
        if !self.datagrams.is_empty() {
            let mut due = core::mem::take(&mut self.due_datagrams);
            self.datagrams.wheel.expire(tick, &mut due);
            due.drain(..).for_each(|place| self.call_datagrams(place));
            self.due_datagrams = due;
        }
        if self.pieces.expire(now, &mut self.strays) {
            self.tell_of_late(time, transmit);
        }
        self.serve_pending(time, transmit);
        if !self.executions.asked.is_empty() {
            self.execute(time, transmit);
        }
        self.starts.begin_breath(now, matches!(outcome, Ok(BATCH)));
        self.make_due(now, transmit);
        if self.followed.has_over() {
            self.end_those_over(time);
        }
        for frame in self.spare.drain(..) {
            transmit.release(frame);
        }
        transmit.flush()?;
        outcome
    }

    /// Asks for the memory of the flows that a batch is for, where there are so many flows that they
    /// are in no cache: so all of them are waited for at a time.
    fn ask_ahead(&self, batch: &[Received], receive: &impl Receive) {
        for received in batch {
            if let Ok(packet) = dissect(receive.frame(received), false) {
                self.flows.prefetch(&packet.key);
            }
        }
    }

    /// Calls flows whose time has come, so many in one breath and in one tick: where very many close
    /// at once, what that brings back is heard meanwhile, and the other end has time to hear it.
    /// `is_busy`: whether more has arrived than was heard.
    #[inline]
    fn call_due(&mut self, tick: u64, is_busy: bool, now: Now) {
        if self.called == self.due.len() {
            self.called = 0;
            self.due.clear();
            self.flows.wheel.expire(tick, &mut self.due);
            if self.due.is_empty() {
                return;
            }
            self.calls_tick_max = match (self.due.len() > CALLS_MANY, self.calls_tick_max) {
                (false, _) => usize::MAX,
                (true, usize::MAX) => CALLS_TICK_MAX,
                (true, earlier) => earlier.saturating_mul(2),
            };
            self.calls_left = self.calls_tick_max;
        }
        if tick != self.calls_tick {
            (self.calls_tick, self.calls_left) = (tick, self.calls_tick_max);
        }
        let most = if is_busy { CALLS_BUSY_MAX } else { CALLS_MAX }.min(self.calls_left);
        let end = self.due.len().min(self.called + most);
        self.calls_left -= end - self.called;
        while self.called < end {
            let place = self.due[self.called];
            self.called += 1;
            // It may be another flow by now, which then looks and goes back to sleep.
            self.call(place, now);
        }
    }

    /// Serves each flow once for all that has arrived: so one acknowledgement answers a batch of
    /// segments, as with the receive offloads of network interfaces.
    fn serve_pending(&mut self, now: Now, transmit: &mut impl Transmit) {
        for _ in 0..self.flows.pending.len() {
            // Where no frame is free, none of them can do anything.
            fill_up(&mut self.spare, 1, transmit);
            if self.spare.is_empty() {
                return;
            }
            let Some(place) = self.flows.pending.pop_front() else { break };
            if let Some(flow) = self.flows.get_mut(place) {
                flow.is_pending = false;
                self.serve(place, now, transmit);
            }
        }
        if !self.datagrams.pending.is_empty() {
            self.serve_pending_datagrams(now, transmit);
        }
    }

    /// Makes flows that are due, as many as there is time for: that of which template they are
    /// comes round.
    fn make_due(&mut self, now: Instant, transmit: &mut impl Transmit) {
        let count = self.templates.len();
        let first = core::mem::take(&mut self.first);
        for template in (first..count).chain(0..first) {
            self.make(template, now, transmit);
            if !self.starts.has_room() {
                self.first = if template + 1 < count { template + 1 } else { 0 };
                break;
            }
        }
    }

    /// Makes the flows of a template that are due.
    fn make(&mut self, template: usize, now: Instant, transmit: &mut impl Transmit) {
        for made in 0.. {
            let state = &mut self.templates[template];
            let tally = &state.tally;
            if !self.starts.has_room() || state.waits_for_answers() {
                break;
            }
            let due = state.arrivals.take(now, tally.flows.held(), made, tally.received());
            if due == Due::Not {
                break;
            }
            let flows = &mut state.tally.flows;
            if let Due::Skipped(count) | Due::NoClient(count) | Due::Late(count) = due {
                flows.offered += count;
                match due {
                    Due::Skipped(_) => flows.skipped += count,
                    Due::NoClient(_) => flows.switched_off += count,
                    _ => flows.late += count,
                }
                continue;
            }
            flows.offered += 1;
            self.starts.note();
            if !self.connect(template, now, transmit) {
                // An open loop asks for the next one all the same, a closed one later again.
                let state = &mut self.templates[template];
                if state.arrivals.give_back(now) {
                    state.tally.flows.offered -= 1;
                    break;
                }
            }
        }
    }

    /// How many flows there are, those in TIME-WAIT included.
    pub fn flows_now(&self) -> usize {
        self.flows.len() + self.datagrams.len()
    }

    /// Whether no more connections are to be made, but by [`Self::connect`], and there are none.
    pub fn is_done(&self) -> bool {
        self.flows.is_empty()
            && self.datagrams.is_empty()
            && self.templates.iter().all(|it| it.arrivals.is_done())
    }

    /// When it has something to do though nothing arrives; `None`: never. It may be early.
    pub fn next(&self) -> Option<Instant> {
        let is_busy = !self.flows.pending.is_empty()
            || !self.datagrams.pending.is_empty()
            || !self.executions.asked.is_empty()
            || self.called < self.due.len() && self.calls_left > 0;
        if is_busy {
            // They wait for a free frame, or for the next breath.
            return Some(Instant::ZERO);
        }
        let more = (self.called < self.due.len())
            .then(|| Instant::from_nanos((self.calls_tick + 1) * NANOSECONDS_PER_TICK));
        // Who comes behind those that are due waits for them.
        let flows = if more.is_none() { self.flows.wheel.next_tick() } else { None };
        let ticks = [flows, self.datagrams.wheel.next_tick()];
        let timer = ticks.into_iter().flatten().min();
        let timer =
            timer.map(|tick| Instant::from_nanos(tick.saturating_mul(NANOSECONDS_PER_TICK)));
        let begins = self.starts.next();
        let next = |it: &TemplateState| match it.waits_for_answers() {
            true => None,
            false => it.arrivals.next(it.tally.flows.held()).map(|at| at.max(begins)),
        };
        let loads = self.templates.iter().filter_map(next);
        loads.chain(timer).chain(more).chain(self.pieces.next()).min()
    }

    /// Multiplies all loads from now on by `numerator / denominator`: rates, numbers of flows held,
    /// throughputs; how many a rate has at once at most stays. It is what was asked for at first
    /// that is multiplied.
    ///
    /// # Errors
    /// Where a rate becomes too small or too great to be told; then all stays as it is.
    pub fn set_load_scale(
        &mut self,
        numerator: NonZero<u32>,
        denominator: NonZero<u32>,
        now: Instant,
    ) -> Result<(), RateError> {
        let scale = (numerator, denominator);
        let scaled = self.templates.iter().map(|it| it.arrivals.scaled(scale, now));
        let scaled: Vec<_> = scaled.collect::<Result<_, _>>()?;
        for (template, arrivals) in self.templates.iter_mut().zip(scaled) {
            template.arrivals = arrivals;
        }
        Ok(())
    }

    /// The clients in a set make no flows from now on, and all others do: the next client's turn
    /// comes sooner. What is due while all are off is skipped, where a rate asks for it, and counted.
    /// Flows that are there go on, and so do those that their programs ask for.
    pub fn switch_off(&mut self, clients: &AddressSet) {
        self.templates.iter_mut().for_each(|it| it.switch_off(clients));
    }

    /// No flow is due at a time or later, but those that [`Self::connect`] asks for.
    pub fn end_at(&mut self, end: Instant) {
        let last = Instant::from_nanos(end.as_nanos().saturating_sub(1));
        self.templates.iter_mut().for_each(|it| it.arrivals.set_until(last));
    }

    /// Whether flows were due by the last breath that there was no time for yet.
    pub fn is_behind(&self) -> bool {
        self.templates.iter().any(|it| it.arrivals.is_behind(self.now))
    }

    /// Makes no more connections but those that [`Self::connect`] asks for; those that are there
    /// go on. What was due by the last breath, and there was no time for, is counted.
    pub fn stop(&mut self) {
        for template in &mut self.templates {
            let late = template.arrivals.stop(self.now, template.tally.received());
            template.tally.flows.offered += late;
            template.tally.flows.late += late;
        }
    }

    /// Of a template that is to receive so much, and receives less: at how many flows at once more
    /// have brought no more.
    pub fn in_vain(&self, template: usize) -> Option<u64> {
        self.templates.get(template)?.arrivals.in_vain()
    }

    /// Of a template that is to receive so much, once it was stopped and no limit had ended it before:
    /// what it has received.
    pub fn throughput(&self, template: usize) -> Option<ThroughputOutcome> {
        self.templates.get(template)?.arrivals.throughput()
    }
}
