//! TCP flows: their table, and how they start, run and end.

mod accept;
mod arrive;
mod burst;
mod fast_open;
mod first_data;
mod flow;
mod reset;
mod serve;
mod train;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use wirestorm_base::port::{Receive, Received};
use wirestorm_wire::flow::FlowKey;

use self::fast_open::FastOpen;
use self::first_data::FirstData;
pub(super) use self::flow::{Flow, FlowFlags};
pub use self::reset::ResetCursor;
pub(super) use self::train::Train;
use super::common::Common;
use super::details::{FlowDetails, Remaining, details};
use super::events::{Event, FlowSlot};
use super::table::Flows;
use super::template::{Role, TemplateState};
use super::times::age;
use crate::content::Exchange;
use crate::frame::dissect;
use crate::icmp_error::{Cause, segment_size};
use crate::program::Run;
use crate::tcp::connection::{Connection, EndReason, State};
use crate::tcp::now::Now;
use crate::tcp::sequence::SequenceNumber;

/// TCP flows of an endpoint.
#[derive(Debug)]
pub(super) struct Connections {
    pub(super) flows: Flows<Flow>,
    /// First data of connections without a known template, by slot.
    first_data: BTreeMap<u32, FirstData>,
    pub(super) fast_open: FastOpen,
    /// Received segments that their connection has not processed yet, within an iteration.
    pub(super) train: Option<Train>,
    /// Flows with an expired timer, of which the first `called` have been called.
    due: Vec<u32>,
    called: usize,
    /// Maximum number of calls in a tick, and the rest of it in the current tick.
    calls_tick_max: usize,
    calls_tick: u64,
    calls_left: usize,
}

/// Maximum number of timer calls in an iteration.
const CALLS_MAX: usize = 64;
/// The same while received frames are waiting.
const CALLS_BUSY_MAX: usize = 8;
/// The same in one tick, if more than [`CALLS_MANY`] timers expired together. If 100,000
/// connections close at once, such as after a pause of the machine, this spreads them over 0.4 s.
/// The port of the peer, with room for 8,000 frames, may then be inactive for 10 ms.
///
/// The limit doubles each time as many have expired again, so that it does not throttle a load with
/// more timers in a tick.
const CALLS_TICK_MAX: usize = 256;
/// More than a load with paced connections causes in a tick.
const CALLS_MANY: usize = 4_096;

impl Connections {
    /// Creates an empty table; the timer wheel starts at a time in ms.
    pub(super) fn new(millis: u64, secret: u64) -> Self {
        Self {
            flows: Flows::new(millis),
            first_data: BTreeMap::new(),
            fast_open: FastOpen::new(secret),
            train: None,
            due: Vec::new(),
            called: 0,
            calls_tick_max: usize::MAX,
            calls_tick: 0,
            calls_left: usize::MAX,
        }
    }

    pub(super) fn insert(
        &mut self,
        key: FlowKey,
        connection: Connection,
        template: u16,
        link: u32,
        now: Now,
        common: &mut Common,
    ) -> u32 {
        let mut run = Run::new(common.buffers.nothing());
        if let Some(session) = common.templates[usize::from(template)].session(&key) {
            run.attach_exchange(Exchange::new(session));
        }
        if let Some(payload) = common.templates[usize::from(template)].payload(&key) {
            run.attach_payload(payload);
        }
        let flow = Flow {
            key,
            connection,
            run,
            timer_at: 0,
            began_at: now.micros as u32,
            template,
            link,
            is_pending: false,
            marks: FlowFlags::default(),
        };
        let place = self.flows.insert(flow);
        common.note_begin(template);
        if common.followed.has_room() {
            self.follow(place, now, common);
        }
        place
    }

    pub(super) fn remove(&mut self, place: u32, now: Now, common: &mut Common) {
        if common.followed.is_any() {
            self.stop_following(place, now, common);
        }
        let Some(flow) = self.flows.get_mut(place) else { return };
        let is_known = usize::from(flow.template) < common.templates_known;
        let TemplateState { template, tally, arrivals, .. } =
            &mut common.templates[usize::from(flow.template)];
        let makes_flows = matches!(template.role, Role::Client { .. });
        tally.flows.active -= 1;
        let is_waiting = flow.marks.has(FlowFlags::WAITING);
        tally.flows.waiting -= u64::from(is_waiting);
        if !is_waiting {
            tally.times.duration.record(age(flow.began_at, now));
        }
        let failed_before = tally.flows.failed();
        if let Some(end) = flow.connection.end() {
            let counter = match end {
                _ if flow.run.has_program_failed() => &mut tally.flows.program_failed,
                EndReason::Closed if flow.run.has_failed() => &mut tally.flows.session_failed,
                EndReason::Reset | EndReason::ResetAfterClose if flow.run.has_failed_first() => {
                    &mut tally.flows.session_failed
                }
                EndReason::Reset | EndReason::ResetAfterClose if flow.run.has_ended() => {
                    &mut tally.flows.closed
                }
                EndReason::Reset | EndReason::ResetAfterClose if template.expects_resets => {
                    &mut tally.flows.expected_resets
                }
                // The reset of a connection that was just established may arrive before its ACK.
                EndReason::Refused if template.expects_resets && !makes_flows => {
                    &mut tally.flows.expected_resets
                }
                end => tally.flows.of(end),
            };
            // A connection without a server is counted as `no_match` only.
            *counter += u64::from(is_known || end != EndReason::Aborted);
        }
        let has_failed = tally.flows.failed() > failed_before;
        if has_failed {
            tally.findings.count_missing(flow.run.take_missing());
        }
        if !is_waiting && !flow.marks.has(FlowFlags::REPLACED) {
            let bytes = Some(flow.connection.bytes_received());
            arrivals.note_end(now.instant(), Some(age(flow.began_at, now)), bytes, has_failed);
        }
        if !self.first_data.is_empty() {
            self.first_data.remove(&place);
        }
        common.links.give_back(flow.link);
        self.flows.remove(place);
        common.active -= 1;
        if common.are_awaited {
            common.events.push(Event::Gone { place: FlowSlot::Tcp(place), has_failed });
        }
    }

    /// Prefetches the memory of the flows in a batch, if the flows exceed the caches. The cache
    /// misses of the batch then overlap.
    pub(super) fn prefetch_batch(&self, batch: &[Received], receive: &impl Receive) {
        for received in batch {
            if let Ok(packet) = dissect(receive.frame(received), false) {
                self.flows.prefetch(&packet.key);
            }
        }
    }

    /// Calls flows with expired timers, limited per iteration and per tick. If very many close at
    /// once, this leaves time to process the answers here and at the other end. `is_busy`: received
    /// frames are waiting.
    #[inline]
    pub(super) fn expire_timers(
        &mut self,
        tick: u64,
        is_busy: bool,
        now: Now,
        common: &mut Common,
    ) {
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
            // The slot may hold another flow by now. Its call is early then, and has no effect.
            self.call(place, now, common);
        }
    }

    /// Handles the expiry of a flow's timer.
    pub(super) fn call(&mut self, place: u32, now: Now, common: &mut Common) {
        let Some((flow, pending)) = self.flows.get_with_queue(place) else { return };
        flow.marks.clear(FlowFlags::TIMER_SET);
        let (_, settings, tally) = common.templates[usize::from(flow.template)].tcp(&flow.key);
        let opened_fast = flow.connection.opens_fast();
        flow.connection.handle_timeout(settings, now, &mut tally.tcp);
        if opened_fast && !flow.connection.opens_fast() {
            self.fast_open.note_unanswered(&flow.key, now);
        }
        if !flow.is_pending {
            flow.is_pending = true;
            pending.push_back(place);
        }
    }

    /// Returns the tick of the next calls, if any timers have expired.
    pub(super) fn next_call(&self) -> Option<u64> {
        (self.called < self.due.len()).then_some(self.calls_tick + 1)
    }

    /// Whether the next iteration calls flows.
    pub(super) fn is_called(&self) -> bool {
        self.called < self.due.len() && self.calls_left > 0
    }

    /// Changes a flow, and queues it to be served.
    pub(super) fn wake(&mut self, place: u32, work: impl FnOnce(&mut Flow)) {
        let Some((flow, pending)) = self.flows.get_with_queue(place) else { return };
        work(flow);
        if !flow.is_pending {
            flow.is_pending = true;
            pending.push_back(place);
        }
    }

    /// Resets a connection that no program uses.
    pub(super) fn abort(&mut self, place: u32, common: &mut Common) {
        self.wake(place, |flow| {
            let tally = &mut common.templates[usize::from(flow.template)].tally;
            flow.connection.abort(&mut tally.tcp);
        });
    }

    /// Shortens the packets of a flow after one exceeded the path MTU.
    #[cold]
    pub(super) fn shorten(
        &mut self,
        key: &FlowKey,
        number: SequenceNumber,
        mtu: u16,
        now: Now,
        common: &mut Common,
    ) {
        let Some(place) = self.flows.find(key) else { return };
        let Some((flow, pending)) = self.flows.get_with_queue(place) else { return };
        let (_, settings, tally) = common.templates[usize::from(flow.template)].tcp(&flow.key);
        let size = segment_size(&flow.key, mtu);
        let connection = &mut flow.connection;
        if connection.handle_packet_too_big(size, number, settings, now, &mut tally.tcp) {
            common.paths.note(key.source(), mtu);
            if !flow.is_pending {
                flow.is_pending = true;
                pending.push_back(place);
            }
        }
    }

    /// Handles an ICMP unreachable message about a flow.
    #[cold]
    pub(super) fn receive_unreachable(
        &mut self,
        key: &FlowKey,
        number: SequenceNumber,
        cause: Cause,
        common: &mut Common,
    ) {
        let Some(place) = self.flows.find(key) else { return };
        let Some((flow, pending)) = self.flows.get_with_queue(place) else { return };
        let (.., tally) = common.templates[usize::from(flow.template)].tcp(&flow.key);
        let is_refused = cause == Cause::Refused;
        if flow.connection.handle_unreachable(number, is_refused, &mut tally.tcp)
            && !flow.is_pending
        {
            flow.is_pending = true;
            pending.push_back(place);
        }
    }

    /// Counts the flows by template and by what they wait for.
    pub(super) fn count_remaining(&self, remaining: &mut [Remaining]) {
        for flow in self.flows.iter() {
            let of = &mut remaining[usize::from(flow.template)];
            let has_failed = flow.run.has_program_failed() || flow.run.has_failed();
            match flow.connection.state() {
                State::SynSent => of.syn_sent += 1,
                _ if flow.marks.has(FlowFlags::WAITING) => {
                    of.time_wait_failed += u64::from(has_failed);
                }
                _ => of.unfinished += 1,
            }
        }
    }

    /// Returns the flows of a template at one moment.
    pub(super) fn details(
        &self,
        template: usize,
        now: Now,
        common: &Common,
    ) -> impl Iterator<Item = FlowDetails> {
        let flows = self.flows.iter().filter(move |it| usize::from(it.template) == template);
        flows.map(move |it| Self::details_of(it, now, common))
    }

    /// Returns the flow with a key at one moment.
    pub(super) fn peek(&self, key: &FlowKey, now: Now, common: &Common) -> Option<FlowDetails> {
        Some(Self::details_of(self.flows.peek(key)?, now, common))
    }

    fn details_of(flow: &Flow, now: Now, common: &Common) -> FlowDetails {
        let details = details(&flow.key, flow.began_at, now);
        // The initial sequence number follows from the start time; nothing else stores it.
        let began = Now::from_micros(now.micros - details.age.as_nanos() / 1_000);
        let initial = common.initial(&flow.key, began);
        let settings = common.templates[usize::from(flow.template)].settings(&flow.key);
        FlowDetails { tcp: Some(flow.connection.details(settings, initial, now)), ..details }
    }

    /// Samples a flow that just got its template; call it if there is room for one more.
    #[cold]
    pub(super) fn follow(&mut self, place: u32, now: Now, common: &mut Common) {
        let Some(flow) = self.flows.get(place) else { return };
        let details = Self::details_of(flow, now, common);
        common.followed.begin(flow.template.into(), now.instant(), &details);
    }

    /// Ends the sampling of a flow that is over but not removed yet.
    #[cold]
    fn stop_following(&mut self, place: u32, now: Now, common: &mut Common) {
        let Some(flow) = self.flows.get(place) else { return };
        let details = Self::details_of(flow, now, common);
        common.followed.end(now.instant(), &details);
    }

    /// Ends the sampling of connections that entered TIME-WAIT in this iteration.
    #[cold]
    pub(super) fn stop_sampling_time_wait(&mut self, now: Now, common: &mut Common) {
        while let Some(place) = common.followed.take_over() {
            // The slot may hold a new flow.
            let is_over = |flow: &Flow| flow.connection.state() == State::TimeWait;
            if self.flows.get(place).is_some_and(is_over) {
                self.stop_following(place, now, common);
            }
        }
    }
}
