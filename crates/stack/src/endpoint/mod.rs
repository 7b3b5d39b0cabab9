//! One side of a test: clients that connect, servers that answer, or both, on one port.
//!
//! ```text
//!            routing: whose is a frame?
//!              |        |          |
//!   frames -> connections  datagrams  responder -> frames      who asks for flows:
//!   time   -> (TCP)        (UDP)      (no flow)                loads      (when they are due)
//!              \\________/                                     executions (as programs say)
//!               common: templates with their counters, headers, paths
//! ```
//!
//! A frame of a connection: dissect -> table -> `Connection::arrive` -> program -> `Connection::depart`.
//! Each part has its state to itself, and is handed what it needs of the others: nothing of one knows
//! of all. What becomes of a flow that another one waits for is an event, which `executions` looks at
//! as soon as the flow has been served.

mod common;
mod connections;
mod counters;
mod datagrams;
mod details;
mod events;
mod executions;
mod followed;
mod fragments;
mod frames;
mod index;
mod links;
mod listen;
mod load;
mod loads;
mod paths;
mod pauses;
mod responder;
mod routing;
mod servers;
mod table;
mod template;
mod times;
mod transports;

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::num::NonZero;

use wirestorm_base::port::{PortError, Receive, Received, Transmit};
use wirestorm_base::rate::RateError;
use wirestorm_base::time::Instant;
use wirestorm_model::address_range::AddressRange;
use wirestorm_model::blackhole::Blackhole;
use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::packet::{MacAddress, protocol};
use wirestorm_wire::prefix::Prefix;

use self::common::Common;
use self::connections::Connections;
pub use self::connections::ResetCursor;
pub use self::counters::{FlowCounters, StrayCounters, Tally, UdpCounters};
use self::datagrams::Datagrams;
pub use self::details::{FlowDetails, Remaining};
use self::events::Place;
use self::executions::Executions;
use self::followed::Followed;
pub use self::followed::{FollowOptions, FollowedFlow};
use self::fragments::Pieces;
use self::frames::fill_up;
use self::links::Links;
pub use self::links::{ClientLinks, Devices, ServerLink};
pub use self::listen::{Listen, MatchByte};
pub use self::load::{AddressSet, ThroughputOutcome, Tuples};
use self::loads::Loads;
use self::paths::Paths;
use self::pauses::Pauses;
use self::responder::Responder;
use self::servers::Servers;
use self::template::TemplateState;
pub use self::template::{Role, Template, Transport};
pub use self::times::{StampedTimes, Times};
use self::transports::Transports;
use crate::content::SessionCounters;
pub use crate::frame::LinkHeader;
use crate::frame::has_damaged_header;
use crate::host::Host;
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

/// One side of a test.
#[derive(Debug)]
pub struct Endpoint {
    flows: Transports,
    loads: Loads,
    executions: Executions,
    responder: Responder,
    /// Of the last breath.
    now: Instant,
    batch: Vec<Received>,
}

/// Of the timers of flows.
const NANOSECONDS_PER_TICK: u64 = 1_000_000;

/// Frames taken from a port at a time.
const BATCH: usize = 64;

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
        let common = Common {
            templates,
            templates_known,
            buffers: options.buffers,
            servers,
            links: Links::default(),
            paths: Paths::default(),
            pieces: Pieces::new(options.seed as u32),
            pauses: Pauses::default(),
            followed: Followed::default(),
            strays: StrayCounters::default(),
            spare: Vec::new(),
            asked: VecDeque::new(),
            are_awaited: false,
            events: Vec::new(),
            random,
            secret,
            frame_length_max: options.frame_length_max,
            flows_max: options.flows_max,
            active: 0,
            active_max: 0,
        };
        let (host, blackhole) = (options.host, options.blackhole);
        Self {
            flows: Transports {
                common,
                connections: Connections::new(millis, secret),
                datagrams: Datagrams::new(millis),
            },
            loads: Loads::new(),
            executions: Executions::new(holders, options.groups),
            responder: Responder::new(host, blackhole, options.verifies_checksums),
            now,
            batch: Vec::with_capacity(BATCH),
        }
    }

    /// Leaves to others that hear the same frames what belongs to none of its flows and servers:
    /// that is neither answered nor counted.
    pub const fn leave_strays(&mut self) {
        self.responder.leaves_strays = true;
    }

    /// Clients of all templates begin at any of their ports, which follow from the seed: who ran
    /// before on the same addresses may have left connections behind, at their peers or in TIME-WAIT.
    /// Later ports follow in the same order as from the lowest one. Call it before the first breath.
    pub fn draw_first_ports(&mut self) {
        let common = &mut self.flows.common;
        for template in &mut common.templates {
            template.draw_first_port(&mut common.random);
        }
    }

    /// Its port is at an Ethernet address, and has addresses beside those of clients and servers:
    /// from now on a flow is begun by what is sent to that one, to one that its clients' frames come
    /// from, or to others that are its own as well, each said with how many there are from it on. What
    /// belongs to no flow is refused only where it is for an address of its own. As long as nothing is
    /// said, all that is sent to one station is for it. `hosts` are hosts' addresses though they are
    /// those of groups.
    pub fn live_at(
        &mut self,
        mac: MacAddress,
        others: &[(MacAddress, u32)],
        addresses: Vec<Prefix>,
        hosts: &[AddressRange],
    ) {
        self.responder.live_at(mac, others, addresses, hosts, &self.flows.common);
    }

    /// A next hop of clients ([`LinkHeader::to_next_hop`]; not 0) is at another Ethernet address: frames
    /// of flows that are there and of new ones go there. Returns how many are there.
    pub fn next_hop_moved(&mut self, number: u16, to: MacAddress) -> u32 {
        self.flows.common.next_hop_moved(number, to)
    }

    /// A peer's MAC address has changed, in VLANs or without tags: answers of flows
    /// that others have begun go there. New ones are answered where they come from. Returns how many
    /// flows that are.
    pub fn peer_moved(&mut self, tags: &[u8], from: MacAddress, to: MacAddress) -> u32 {
        self.flows.common.peer_moved(tags, from, to)
    }

    /// Follows flows that begin from now on.
    pub fn follow(&mut self, options: FollowOptions) {
        self.flows.common.followed = Followed::new(options);
    }

    /// Flows that are followed, and those that were and whose place no other has taken yet.
    pub fn followed(&self) -> &[FollowedFlow] {
        self.flows.common.followed.flows()
    }

    /// What was counted of the flows of a template; `None` beyond the last.
    pub fn tally(&self, template: usize) -> Option<&Tally> {
        self.flows.common.templates[..self.flows.common.templates_known]
            .get(template)
            .map(|it| &it.tally)
    }

    /// What was counted of all flows.
    pub fn counters(&self) -> FlowCounters {
        let mut sum = FlowCounters::default();
        self.tallies().for_each(|it| sum.merge(&it.flows));
        FlowCounters { active_max: self.flows.common.active_max, ..sum }
    }

    /// What TCP counted, answers to segments of no connection included.
    pub fn tcp(&self) -> TcpCounters {
        let mut sum = self.responder.refusals;
        self.tallies().for_each(|it| sum.merge(&it.tcp));
        sum
    }

    /// UDP counters.
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

    /// Program counters.
    pub fn statistics(&self) -> Statistics {
        let mut sum = Statistics::default();
        self.tallies().for_each(|it| sum.merge(&it.statistics));
        sum
    }

    /// What belonged to no flow.
    pub fn strays(&self) -> StrayCounters {
        let fragments_incomplete =
            self.flows.common.strays.fragments_incomplete + self.flows.common.pieces.waiting();
        StrayCounters { fragments_incomplete, ..self.flows.common.strays }
    }

    fn tallies(&self) -> impl Iterator<Item = &Tally> {
        self.flows.common.templates.iter().map(|it| &it.tally)
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
        if batch.len() > 1 && self.flows.connections.flows.are_many() {
            self.flows.connections.ask_ahead(&batch, receive);
        }
        for received in batch.drain(..) {
            let frame = receive.frame(&received);
            let mut offloads = received.offloads;
            if self.responder.verifies_checksums
                && offloads.is_verified
                && has_damaged_header(frame)
            {
                self.flows.common.strays.damaged += 1;
                receive.release(received);
                continue;
            }
            offloads.is_verified |= !self.responder.verifies_checksums;
            if !self
                .flows
                .connections
                .train
                .as_mut()
                .is_some_and(|train| train.takes(frame, offloads))
            {
                self.hear_train(time);
                self.hear(frame, offloads, time, transmit);
            }
            receive.release(received);
        }
        self.hear_train(time);
        self.batch = batch;
        let tick = now.as_nanos() / NANOSECONDS_PER_TICK;
        let is_busy = matches!(outcome, Ok(BATCH));
        let Transports { common, connections, datagrams } = &mut self.flows;
        connections.call_due(tick, is_busy, time, common);
        if !datagrams.flows.is_empty() {
            datagrams.call_due(tick);
        }
        if common.pieces.expire(now, &mut common.strays) {
            self.responder.tell_of_late(time, transmit, common);
        }
        self.serve_pending(time, transmit);
        if !self.flows.common.asked.is_empty() {
            self.executions.execute(&mut self.flows, time, transmit);
        }
        self.loads.starts.begin_breath(now, is_busy);
        self.loads.make_due(now, transmit, &mut self.flows, &mut self.executions);
        let Transports { common, connections, .. } = &mut self.flows;
        if common.followed.has_over() {
            connections.stop_following_those_over(time, common);
        }
        for frame in self.flows.common.spare.drain(..) {
            transmit.release(frame);
        }
        transmit.flush()?;
        outcome
    }

    /// Makes a flow of a template, at a time. Returns whether that was possible.
    pub fn connect(&mut self, template: usize, now: Instant, transmit: &mut impl Transmit) -> bool {
        loads::start(template, now, transmit, &mut self.flows, &mut self.executions)
    }

    /// Serves each flow once for all that has arrived: so one acknowledgement answers a batch of
    /// segments, as with the receive offloads of network interfaces.
    fn serve_pending(&mut self, now: Now, transmit: &mut impl Transmit) {
        for _ in 0..self.flows.connections.flows.pending.len() {
            // Where no frame is free, none of them can do anything.
            fill_up(&mut self.flows.common.spare, 1, transmit);
            if self.flows.common.spare.is_empty() {
                return;
            }
            let Some(place) = self.flows.connections.flows.pending.pop_front() else { break };
            if let Some(flow) = self.flows.connections.flows.get_mut(place) {
                flow.is_pending = false;
                self.executions.serve(Place::Tcp(place), &mut self.flows, now, transmit);
            }
        }
        if !self.flows.datagrams.flows.pending.is_empty() {
            self.serve_pending_datagrams(now, transmit);
        }
    }

    /// Serves each flow once for all that has arrived.
    #[inline(never)]
    fn serve_pending_datagrams(&mut self, now: Now, transmit: &mut impl Transmit) {
        for _ in 0..self.flows.datagrams.flows.pending.len() {
            // Where no frame is free, the next one's turn comes first in the next breath.
            fill_up(&mut self.flows.common.spare, 1, transmit);
            if self.flows.common.spare.is_empty() {
                return;
            }
            let Some(place) = self.flows.datagrams.flows.pending.pop_front() else { break };
            if let Some(flow) = self.flows.datagrams.flows.get_mut(place) {
                flow.is_pending = false;
                self.executions.serve(Place::Udp(place), &mut self.flows, now, transmit);
            }
        }
    }

    /// How many flows there are, those in TIME-WAIT included.
    pub fn flows_now(&self) -> usize {
        self.flows.common.active
    }

    /// Whether no more connections are to be made, but by [`Self::connect`], and there are none.
    pub fn is_done(&self) -> bool {
        self.flows.common.active == 0
            && self.flows.common.templates.iter().all(|it| it.arrivals.is_done())
    }

    /// When it has something to do though nothing arrives; `None`: never. It may be early.
    pub fn next(&self) -> Option<Instant> {
        let Transports { common, connections, datagrams } = &self.flows;
        let is_busy = !connections.flows.pending.is_empty()
            || !datagrams.flows.pending.is_empty()
            || !common.asked.is_empty()
            || connections.is_called();
        if is_busy {
            // They wait for a free frame, or for the next breath.
            return Some(Instant::ZERO);
        }
        let more = connections.next_call();
        let more = more.map(|tick| Instant::from_nanos(tick * NANOSECONDS_PER_TICK));
        // Who comes behind those that are due waits for them.
        let flows = if more.is_none() { connections.flows.wheel.next_tick() } else { None };
        let ticks = [flows, datagrams.flows.wheel.next_tick()];
        let timer = ticks.into_iter().flatten().min();
        let timer =
            timer.map(|tick| Instant::from_nanos(tick.saturating_mul(NANOSECONDS_PER_TICK)));
        let begins = self.loads.starts.next();
        let next = |it: &TemplateState| match it.waits_for_answers() {
            true => None,
            false => it.arrivals.next(it.tally.flows.held()).map(|at| at.max(begins)),
        };
        let loads = common.templates.iter().filter_map(next);
        loads.chain(timer).chain(more).chain(common.pieces.next()).min()
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
        let scaled = self.flows.common.templates.iter().map(|it| it.arrivals.scaled(scale, now));
        let scaled: Vec<_> = scaled.collect::<Result<_, _>>()?;
        for (template, arrivals) in self.flows.common.templates.iter_mut().zip(scaled) {
            template.arrivals = arrivals;
        }
        Ok(())
    }

    /// The clients in a set make no flows from now on, and all others do: the next client's turn
    /// comes sooner. What is due while all are off is skipped, where a rate asks for it, and counted.
    /// Flows that are there go on, and so do those that their programs ask for.
    pub fn switch_off(&mut self, clients: &AddressSet) {
        self.flows.common.templates.iter_mut().for_each(|it| it.switch_off(clients));
    }

    /// No flow is due at a time or later, but those that [`Self::connect`] asks for.
    pub fn end_at(&mut self, end: Instant) {
        let last = Instant::from_nanos(end.as_nanos().saturating_sub(1));
        self.flows.common.templates.iter_mut().for_each(|it| it.arrivals.set_until(last));
    }

    /// Whether flows were due by the last breath that there was no time for yet.
    pub fn is_behind(&self) -> bool {
        self.flows.common.templates.iter().any(|it| it.arrivals.is_behind(self.now))
    }

    /// Makes no more connections but those that [`Self::connect`] asks for; those that are there
    /// go on. What was due by the last breath, and there was no time for, is counted.
    pub fn stop(&mut self) {
        for template in &mut self.flows.common.templates {
            let late = template.arrivals.stop(self.now, template.tally.received());
            template.tally.flows.offered += late;
            template.tally.flows.late += late;
        }
    }

    /// Of a template that is to receive so much, and receives less: at how many flows at once more
    /// have brought no more.
    pub fn in_vain(&self, template: usize) -> Option<u64> {
        self.flows.common.templates.get(template)?.arrivals.in_vain()
    }

    /// Of a template that is to receive so much, once it was stopped and no limit had ended it before:
    /// what it has received.
    pub fn throughput(&self, template: usize) -> Option<ThroughputOutcome> {
        self.flows.common.templates.get(template)?.arrivals.throughput()
    }

    /// The flows of each template that are there, by what they wait for. It looks at every flow.
    pub fn remaining(&self) -> Vec<Remaining> {
        let mut remaining = vec![Remaining::default(); self.flows.common.templates.len()];
        self.flows.connections.count_remaining(&mut remaining);
        self.flows.datagrams.count_remaining(&mut remaining);
        remaining
    }

    /// How many flows have begun here: those that were made, and those that peers began.
    pub fn flows_begun(&self) -> u64 {
        self.tallies().map(|it| it.flows.made + it.tcp.accepts + it.udp.accepts).sum()
    }

    /// Whether any load is to make flows yet, by itself.
    pub fn makes_flows(&self) -> bool {
        self.flows.common.templates.iter().any(|it| !it.arrivals.is_done())
    }

    /// When the load of rates ends whose limits are reached: an interval behind their last flows, or
    /// where that was ended. `None` where there is no such rate.
    pub fn load_end(&self) -> Option<Instant> {
        self.flows.common.templates.iter().filter_map(|it| it.arrivals.end()).max()
    }

    /// The flows of a template at a moment, in no order that means anything.
    pub fn flows(&self, template: usize, now: Instant) -> impl Iterator<Item = FlowDetails> {
        let now = Now::from_micros(now.as_nanos() / 1_000);
        let Transports { common, connections, datagrams } = &self.flows;
        connections.details(template, now, common).chain(datagrams.details(template, now))
    }

    /// The flow of a key at a moment, where it is there.
    pub fn flow(&self, key: &FlowKey, now: Instant) -> Option<FlowDetails> {
        let now = Now::from_micros(now.as_nanos() / 1_000);
        let Transports { common, connections, datagrams } = &self.flows;
        match key.protocol() {
            protocol::TCP => connections.peek(key, now, common),
            _ => datagrams.peek(key, now),
        }
    }

    /// Sends a reset for each connection that is there, TIME-WAIT aside, from where the last call came
    /// to: so many at most, and as long as frames are free. All that was counted of them stays as it
    /// is, and so do they: nothing is to be asked of this endpoint afterwards but
    /// [`Self::reset_late`], [`Self::note_left_open`] and what it has counted.
    ///
    /// Returns where to go on; `None`: there are no more.
    pub fn reset_open(
        &mut self,
        from: ResetCursor,
        most: usize,
        now: Instant,
        transmit: &mut impl Transmit,
    ) -> Option<ResetCursor> {
        let Transports { common, connections, .. } = &mut self.flows;
        connections.reset_open(from, most, now, transmit, common)
    }

    /// Counts the connections that were not reset, from where [`Self::reset_open`] has come to.
    pub fn note_left_open(&mut self, from: ResetCursor, now: Instant) {
        let Transports { common, connections, .. } = &mut self.flows;
        connections.note_left_open(from, now, common);
    }

    /// Answers what arrives of connections that were reset, as one that is not there is answered:
    /// a peer that has not seen all that was sent before a reset asks once more (RFC 5961 section
    /// 3.2), and so does one whose reset was lost. Returns how many frames arrived.
    ///
    /// # Errors
    /// Where the port does not work any more.
    pub fn reset_late(
        &mut self,
        transmit: &mut impl Transmit,
        receive: &mut impl Receive,
    ) -> Result<usize, PortError> {
        let mut batch = core::mem::take(&mut self.batch);
        let outcome = receive.receive(BATCH, &mut batch);
        for received in batch.drain(..) {
            self.reset_for(&received, transmit, receive);
            receive.release(received);
        }
        self.batch = batch;
        transmit.flush()?;
        outcome
    }
}
