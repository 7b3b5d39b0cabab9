//! Endpoint: one side of a test on one port, with clients, servers or both.
//!
//! ```text
//!            routing: owner of a frame
//!              |        |          |
//!   frames -> connections  datagrams  responder -> frames      flows are started by:
//!   time   -> (TCP)        (UDP)      (no flow)                loads      (when they are due)
//!              \\________/                                     executions (for programs)
//!               common: templates with their counters, headers, paths
//! ```
//!
//! A frame of a connection takes this path: `dissect`, table, `Connection::arrive`, program,
//! `Connection::poll_transmit`. Each part owns its state, and gets what it needs of the others as
//! arguments. If another flow waits for a flow, its changes are events, which `executions` handles
//! as soon as the flow has been served.

mod common;
mod connections;
mod counters;
mod datagrams;
mod details;
mod events;
mod executions;
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
mod sampled;
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
pub use self::counters::{FlowCounters, Tally, UdpCounters, UnmatchedCounters};
use self::datagrams::Datagrams;
pub use self::details::{FlowDetails, Remaining};
use self::events::FlowSlot;
use self::executions::FlowRequests;
use self::fragments::FragmentState;
use self::frames::fill_up;
use self::links::LinkTable;
pub use self::links::{ClientLinks, Devices, ServerLink};
pub use self::listen::{Listen, MatchByte};
pub use self::load::{AddressSet, ThroughputOutcome, Tuples};
use self::loads::Loads;
use self::paths::PathMtus;
use self::pauses::YieldSchedule;
use self::responder::Responder;
use self::sampled::FlowSampler;
pub use self::sampled::{SampleOptions, TrackedFlow};
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
use crate::tcp::counters::TcpCounters;
use crate::tcp::now::Now;
use wirestorm_base::random::Random;

/// Options of an endpoint.
#[derive(Clone, Debug)]
pub struct EndpointOptions {
    /// Templates of the flows.
    pub templates: Vec<Template>,
    /// Groups of template indices, for programs that start a flow of a group.
    pub groups: Vec<Vec<usize>>,
    /// Buffers that the programs send.
    pub buffers: Buffers,
    /// Longest untagged frame that the port sends, in bytes without FCS. It limits the segments.
    pub frame_length_max: usize,
    /// Maximum number of flows at once.
    pub flows_max: usize,
    /// Host whose addresses the endpoint answers for: ARP, neighbour discovery and pings. Without
    /// addresses it answers none.
    pub host: Host,
    /// Packets of no flow that the endpoint does not answer.
    pub blackhole: Blackhole,
    /// Seed of initial sequence numbers and random delays.
    pub seed: u64,
    /// Whether to verify checksums of received packets. Not needed if the port does.
    pub verifies_checksums: bool,
}

/// One side of a test on one port.
#[derive(Debug)]
pub struct Endpoint {
    flows: Transports,
    loads: Loads,
    executions: FlowRequests,
    responder: Responder,
    /// Time of the last iteration.
    now: Instant,
    batch: Vec<Received>,
}

/// Length of a tick of the flows' timers.
const NANOSECONDS_PER_TICK: u64 = 1_000_000;

/// Frames taken from a port at a time.
const BATCH: usize = 64;

impl Endpoint {
    /// Creates an endpoint whose loads start at `now`.
    pub fn new(options: EndpointOptions, now: Instant) -> Self {
        let mut random = Random::new(options.seed);
        let millis = now.as_nanos() / NANOSECONDS_PER_TICK;
        let mut templates = options.templates;
        let templates_known = templates.len();
        let servers = Servers::new(&mut templates);
        let holders = template::holders(&mut templates, templates_known);
        let templates = templates.into_iter().map(|template| {
            let random = Random::new(random.next_u64());
            TemplateState::new(template, options.frame_length_max, now, random)
        });
        let templates = templates.collect();
        let secret = random.next_u64();
        let common = Common {
            templates,
            templates_known,
            buffers: options.buffers,
            servers,
            links: LinkTable::default(),
            paths: PathMtus::default(),
            pieces: FragmentState::new(options.seed as u32),
            pauses: YieldSchedule::default(),
            followed: FlowSampler::default(),
            unmatched: UnmatchedCounters::default(),
            spare: Vec::new(),
            requested: VecDeque::new(),
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
            executions: FlowRequests::new(holders, options.groups),
            responder: Responder::new(host, blackhole, options.verifies_checksums),
            now,
            batch: Vec::with_capacity(BATCH),
        }
    }

    /// Ignores packets of no flow or server, for ports with other receivers of the same frames. The
    /// endpoint then neither answers nor counts them.
    pub const fn ignore_unmatched(&mut self) {
        self.responder.ignores_unmatched = true;
    }

    /// Starts the clients of all templates at random source ports, which depend on the seed. An
    /// earlier run on the same addresses may have left connections open or in TIME-WAIT. Later
    /// ports follow in the same order as from the lowest one. Call it before the first iteration.
    pub fn randomize_first_ports(&mut self) {
        let common = &mut self.flows.common;
        for template in &mut common.templates {
            template.randomize_first_port(&mut common.random);
        }
    }

    /// Sets the MAC address `mac` and the addresses of the port. Frames then start a flow only if
    /// they are for `mac`, for a source MAC address of the clients, or for a range in `others`. A
    /// range is its first address and their number. Packets of no flow are refused only if they are
    /// for an own address.
    ///
    /// Without this call, frames to any unicast MAC address are for the endpoint. `hosts` are valid
    /// host addresses although they are group addresses.
    pub fn set_addresses(
        &mut self,
        mac: MacAddress,
        others: &[(MacAddress, u32)],
        addresses: Vec<Prefix>,
        hosts: &[AddressRange],
    ) {
        self.responder.live_at(mac, others, addresses, hosts, &self.flows.common);
    }

    /// Changes the MAC address of a next hop of clients ([`LinkHeader::to_next_hop`]; not 0), for
    /// existing and new flows. Returns the number of existing flows that use it.
    pub fn set_next_hop_mac(&mut self, number: u16, to: MacAddress) -> u32 {
        self.flows.common.next_hop_moved(number, to)
    }

    /// Changes the MAC address of a peer, in VLANs or without tags, for existing flows that the
    /// peer started. New flows are answered to their source. Returns the number of flows that use
    /// it.
    pub fn set_peer_mac(&mut self, tags: &[u8], from: MacAddress, to: MacAddress) -> u32 {
        self.flows.common.peer_moved(tags, from, to)
    }

    /// Samples flows that start from now on.
    pub fn follow(&mut self, options: SampleOptions) {
        self.flows.common.followed = FlowSampler::new(options);
    }

    /// Returns the sampled flows, with ended ones whose place no new flow has taken.
    pub fn followed(&self) -> &[TrackedFlow] {
        self.flows.common.followed.flows()
    }

    /// Returns the counters of a template; `None` beyond the last.
    pub fn tally(&self, template: usize) -> Option<&Tally> {
        self.flows.common.templates[..self.flows.common.templates_known]
            .get(template)
            .map(|it| &it.tally)
    }

    /// Returns the outcomes of all flows.
    pub fn counters(&self) -> FlowCounters {
        let mut sum = FlowCounters::default();
        self.tallies().for_each(|it| sum.merge(&it.flows));
        FlowCounters { active_max: self.flows.common.active_max, ..sum }
    }

    /// Returns the TCP counters, with the resets that answer segments of no connection.
    pub fn tcp(&self) -> TcpCounters {
        let mut sum = self.responder.refusals;
        self.tallies().for_each(|it| sum.merge(&it.tcp));
        sum
    }

    /// Returns the UDP counters.
    pub fn udp(&self) -> UdpCounters {
        let mut sum = UdpCounters::default();
        self.tallies().for_each(|it| sum.merge(&it.udp));
        sum
    }

    /// Returns the times of all flows.
    pub fn times(&self) -> Times {
        let mut sum = Times::new();
        self.tallies().for_each(|it| sum.merge(&it.times));
        sum
    }

    /// Returns the session counters of all templates.
    pub fn sessions(&self) -> SessionCounters {
        let mut sum = SessionCounters::default();
        self.tallies().for_each(|it| sum.merge(&it.sessions));
        sum
    }

    /// Returns the statistics of all programs.
    pub fn statistics(&self) -> Statistics {
        let mut sum = Statistics::default();
        self.tallies().for_each(|it| sum.merge(&it.statistics));
        sum
    }

    /// Returns the counters of packets that belong to no flow.
    pub fn unmatched(&self) -> UnmatchedCounters {
        let fragments_incomplete =
            self.flows.common.unmatched.fragments_incomplete + self.flows.common.pieces.waiting();
        UnmatchedCounters { fragments_incomplete, ..self.flows.common.unmatched }
    }

    fn tallies(&self) -> impl Iterator<Item = &Tally> {
        self.flows.common.templates.iter().map(|it| &it.tally)
    }

    /// Runs one iteration: processes received frames, timers and loads, and sends frames. Returns
    /// the number of received frames.
    ///
    /// # Errors
    /// If a port fails.
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
            self.flows.connections.prefetch_batch(&batch, receive);
        }
        for received in batch.drain(..) {
            let frame = receive.frame(&received);
            let mut offloads = received.offloads;
            if self.responder.verifies_checksums
                && offloads.is_verified
                && has_damaged_header(frame)
            {
                self.flows.common.unmatched.malformed += 1;
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
                self.flush_train(time);
                self.receive(frame, offloads, time, transmit);
            }
            receive.release(received);
        }
        self.flush_train(time);
        self.batch = batch;
        let tick = now.as_nanos() / NANOSECONDS_PER_TICK;
        let is_busy = matches!(outcome, Ok(BATCH));
        let Transports { common, connections, datagrams } = &mut self.flows;
        connections.expire_timers(tick, is_busy, time, common);
        if !datagrams.flows.is_empty() {
            datagrams.call_due(tick);
        }
        if common.pieces.expire(now, &mut common.unmatched) {
            self.responder.send_time_exceeded(time, transmit, common);
        }
        self.serve_pending(time, transmit);
        if !self.flows.common.requested.is_empty() {
            self.executions.execute(&mut self.flows, time, transmit);
        }
        self.loads.starts.begin_iteration(now, is_busy);
        self.loads.make_due(now, transmit, &mut self.flows, &mut self.executions);
        let Transports { common, connections, .. } = &mut self.flows;
        if common.followed.has_over() {
            connections.stop_sampling_time_wait(time, common);
        }
        for frame in self.flows.common.spare.drain(..) {
            transmit.release(frame);
        }
        transmit.flush()?;
        outcome
    }

    /// Starts a flow of a template. Returns whether that was possible.
    pub fn connect(&mut self, template: usize, now: Instant, transmit: &mut impl Transmit) -> bool {
        loads::start(template, now, transmit, &mut self.flows, &mut self.executions)
    }

    /// Serves each flow once for all its received segments. One acknowledgement then answers a
    /// batch, as with receive offload.
    fn serve_pending(&mut self, now: Now, transmit: &mut impl Transmit) {
        for _ in 0..self.flows.connections.flows.pending.len() {
            // Without a free frame no flow can send.
            fill_up(&mut self.flows.common.spare, 1, transmit);
            if self.flows.common.spare.is_empty() {
                return;
            }
            let Some(place) = self.flows.connections.flows.pending.pop_front() else { break };
            if let Some(flow) = self.flows.connections.flows.get_mut(place) {
                flow.is_pending = false;
                self.executions.serve(FlowSlot::Tcp(place), &mut self.flows, now, transmit);
            }
        }
        if !self.flows.datagrams.flows.pending.is_empty() {
            self.serve_pending_datagrams(now, transmit);
        }
    }

    /// Serves each UDP flow once for all its received datagrams.
    #[inline(never)]
    fn serve_pending_datagrams(&mut self, now: Now, transmit: &mut impl Transmit) {
        for _ in 0..self.flows.datagrams.flows.pending.len() {
            // Without a free frame, the next iteration continues with this flow.
            fill_up(&mut self.flows.common.spare, 1, transmit);
            if self.flows.common.spare.is_empty() {
                return;
            }
            let Some(place) = self.flows.datagrams.flows.pending.pop_front() else { break };
            if let Some(flow) = self.flows.datagrams.flows.get_mut(place) {
                flow.is_pending = false;
                self.executions.serve(FlowSlot::Udp(place), &mut self.flows, now, transmit);
            }
        }
    }

    /// Returns the number of flows, with those in TIME-WAIT.
    pub fn flows_now(&self) -> usize {
        self.flows.common.active
    }

    /// Whether there are no flows, and only [`Self::connect`] can start one.
    pub fn is_done(&self) -> bool {
        self.flows.common.active == 0
            && self.flows.common.templates.iter().all(|it| it.arrivals.is_done())
    }

    /// Returns the time of the next action without received frames; `None`: never. It may be early.
    pub fn next(&self) -> Option<Instant> {
        let Transports { common, connections, datagrams } = &self.flows;
        let is_busy = !connections.flows.pending.is_empty()
            || !datagrams.flows.pending.is_empty()
            || !common.requested.is_empty()
            || connections.is_called();
        if is_busy {
            // Flows wait for a free frame or for the next iteration.
            return Some(Instant::ZERO);
        }
        let more = connections.next_call();
        let more = more.map(|tick| Instant::from_nanos(tick * NANOSECONDS_PER_TICK));
        // Later timers are handled after those that are due now.
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

    /// Multiplies all loads by `numerator / denominator` from now on: rates, held flows, users and
    /// throughputs. The `at_most` of a rate stays. The factor applies to the original load.
    ///
    /// # Errors
    /// If a rate becomes too small or too great. All loads stay as they are then.
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

    /// Switches off the clients in a set, and switches on all others. Clients that are off start no
    /// flows, so the others' turns come sooner. While all are off, due flows of a rate are skipped
    /// and counted. Existing flows and flows that their programs start continue.
    pub fn switch_off(&mut self, clients: &AddressSet) {
        self.flows.common.templates.iter_mut().for_each(|it| it.switch_off(clients));
    }

    /// Stops all loads at `end`. [`Self::connect`] can still start flows.
    pub fn end_at(&mut self, end: Instant) {
        let last = Instant::from_nanos(end.as_nanos().saturating_sub(1));
        self.flows.common.templates.iter_mut().for_each(|it| it.arrivals.set_until(last));
    }

    /// Whether flows that were due at the last iteration have not started yet.
    pub fn is_behind(&self) -> bool {
        self.flows.common.templates.iter().any(|it| it.arrivals.is_behind(self.now))
    }

    /// Stops all loads. Existing flows continue, and [`Self::connect`] can still start flows. Flows
    /// that were due at the last iteration and have not started count as late.
    pub fn stop(&mut self) {
        for template in &mut self.flows.common.templates {
            let late = template.arrivals.stop(self.now, template.tally.received());
            template.tally.flows.offered += late;
            template.tally.flows.late += late;
        }
    }

    /// Returns, for a throughput load below its target, the number of flows at which more flows
    /// brought no more data.
    pub fn saturation_flows(&self, template: usize) -> Option<u64> {
        self.flows.common.templates.get(template)?.arrivals.in_vain()
    }

    /// Returns the result of a throughput load after it was stopped; `None` if a limit ended it
    /// before.
    pub fn throughput(&self, template: usize) -> Option<ThroughputOutcome> {
        self.flows.common.templates.get(template)?.arrivals.throughput()
    }

    /// Returns the existing flows of each template by what they wait for. Visits every flow.
    pub fn remaining(&self) -> Vec<Remaining> {
        let mut remaining = vec![Remaining::default(); self.flows.common.templates.len()];
        self.flows.connections.count_remaining(&mut remaining);
        self.flows.datagrams.count_remaining(&mut remaining);
        remaining
    }

    /// Returns the number of flows that this endpoint or its peers have started.
    pub fn flows_started(&self) -> u64 {
        self.tallies().map(|it| it.flows.started + it.tcp.accepts + it.udp.accepts).sum()
    }

    /// Whether any load may still start flows.
    pub fn makes_flows(&self) -> bool {
        self.flows.common.templates.iter().any(|it| !it.arrivals.is_done())
    }

    /// Returns the end of the rates that have reached their limit: one interval after the last
    /// flow, or an earlier end of the load. `None` without such a rate.
    pub fn load_end(&self) -> Option<Instant> {
        self.flows.common.templates.iter().filter_map(|it| it.arrivals.end()).max()
    }

    /// Returns the flows of a template at one moment, in arbitrary order.
    pub fn flows(&self, template: usize, now: Instant) -> impl Iterator<Item = FlowDetails> {
        let now = Now::from_micros(now.as_nanos() / 1_000);
        let Transports { common, connections, datagrams } = &self.flows;
        connections.details(template, now, common).chain(datagrams.details(template, now))
    }

    /// Returns the flow with a key at one moment, if it exists.
    pub fn flow(&self, key: &FlowKey, now: Instant) -> Option<FlowDetails> {
        let now = Now::from_micros(now.as_nanos() / 1_000);
        let Transports { common, connections, datagrams } = &self.flows;
        match key.protocol() {
            protocol::TCP => connections.peek(key, now, common),
            _ => datagrams.peek(key, now),
        }
    }

    /// Sends a reset for each open connection outside TIME-WAIT, from `from` on. Sends at most
    /// `most` resets, as long as frames are free. Counters and connections stay as they are.
    /// Afterwards, call only [`Self::answer_after_reset`], [`Self::note_left_open`] and methods that return
    /// counters.
    ///
    /// Returns where to continue; `None` at the end.
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

    /// Counts the connections that were not reset, from the last result of [`Self::reset_open`] on.
    pub fn note_left_open(&mut self, from: ResetCursor, now: Instant) {
        let Transports { common, connections, .. } = &mut self.flows;
        connections.note_left_open(from, now, common);
    }

    /// Answers segments of connections that were reset like those of no connection. A peer that has
    /// not received all data before a reset asks again (RFC 5961 section 3.2). So does one whose
    /// reset was lost. Returns the number of received frames.
    ///
    /// # Errors
    /// If the port fails.
    pub fn answer_after_reset(
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
