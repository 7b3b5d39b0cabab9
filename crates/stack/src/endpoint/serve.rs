//! How flows begin, go on and end.

use core::net::IpAddr;

use wirestorm_base::port::Transmit;
use wirestorm_base::time::Instant;
use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::packet::tcp::Flags;

use super::Endpoint;
use super::burst::{BURST_MAX, fill_up, segments_in_one, send_burst, send_long};
use super::executions::{Asked, Place};
use super::fast_open::Cookie;
use super::flow::{Flow, FlowMarks};
use super::template::{Role, TemplateState, Transport};
use super::times::age;
use crate::content::Exchange;
use crate::frame::Headers;
use crate::ip_settings::{Identification, IpSettings};
use crate::program::{Outside, Progress, Run};
use crate::random::Random;
use crate::tcp::connection::{Connection, End, Now, State};
use crate::tcp::departure::Room;
use crate::tcp::ranges::SequenceRange;
use crate::tcp::segment::SACK_BLOCKS_MAX;
use crate::tcp::sequence::SequenceNumber;

/// A flow that waits for nothing is not called later than this, as those that have just been opened
/// would be for their SYN: by then it is in no cache any more, where there are very many. What was
/// asked for sooner is most often asked for again with the next segment.
const CALL_FAR_MS: i32 = 500;

/// The ends of a flow that another one asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub(super) client: IpAddr,
    /// Its port; `None`: one of its template's.
    pub(super) port: Option<u16>,
    /// And the port of the server; `None`: as its template says.
    pub(super) server: Option<(IpAddr, u16)>,
}

impl Endpoint {
    /// Makes a flow of a template, at a time. Returns whether that was possible.
    pub fn connect(&mut self, template: usize, now: Instant, transmit: &mut impl Transmit) -> bool {
        let time = Now::from_micros(now.as_nanos() / 1_000);
        let Some(place) = self.open(template, None, time) else { return false };
        self.serve_at(place, time, transmit);
        true
    }

    /// Begins a flow of a template, of certain ends where that is said.
    #[inline]
    pub(super) fn open(
        &mut self,
        template: usize,
        origin: Option<Origin>,
        now: Now,
    ) -> Option<Place> {
        let is_full = self.is_full();
        let state = self.templates.get_mut(template)?;
        let Role::Client { tuples, link, .. } = &state.template.role else { return None };
        if is_full {
            state.tally.flows.overflow += 1;
            return None;
        }
        let transport = &state.template.transport;
        // Who asks for a flow has its own client, on or off.
        let number = match state.off.as_ref().filter(|_| origin.is_none()) {
            None => Some(state.used),
            Some(off) => tuples.on_from(state.used, off),
        };
        let Some(number) = number else {
            state.tally.flows.switched_off += 1;
            return None;
        };
        let protocol = transport.protocol();
        state.used = number + 1;
        let is_free = |key: &FlowKey| match transport {
            Transport::Tcp(_) => !self.flows.contains(key),
            Transport::Udp => !self.datagrams.contains(key),
        };
        let (off, random) = (state.off.as_ref(), &mut self.random);
        let ports = state.first_port;
        let key = tuples.answers_to(number, ports, origin, protocol, off, random).find(is_free);
        let Some(key) = key else {
            state.tally.flows.tuple_in_use += 1;
            return None;
        };
        let link = self.links.take(link.of(key.destination(), key.source()));
        if self.flows.are_many() && tuples.are_in_turn() {
            // That it is free, too, is waited for while other things are done.
            let drawn = &mut Random::new(0);
            let next = tuples.answers_to(number + 1, ports, None, protocol, None, drawn).next();
            next.iter().for_each(|key| self.flows.prefetch(key));
        }
        state.tally.flows.made += 1;
        match transport {
            Transport::Tcp(_) => {
                let initial = self.initial(&key, now);
                let (_, settings, tally) = self.templates[template].tcp(&key);
                let mut connection = Connection::connect(settings, initial, now, &mut tally.tcp);
                self.paths.limit(&key, &mut connection, settings);
                if settings.fast_open {
                    self.fast_open.begin(&key, now, &mut connection);
                }
                Some(Place::Tcp(self.insert(key, connection, template as u16, link, now)))
            }
            Transport::Udp => {
                state.tally.udp.connects += 1;
                Some(Place::Udp(self.insert_datagrams(key, template as u16, link, now)))
            }
        }
    }

    pub(super) fn serve_at(&mut self, place: Place, now: Now, transmit: &mut impl Transmit) {
        match place {
            Place::Tcp(place) => self.serve(place, now, transmit),
            Place::Udp(place) => self.serve_datagrams(place, now, transmit),
        }
    }

    /// Whether there are as many flows as there may be.
    pub(super) fn is_full(&self) -> bool {
        self.flows_now() >= self.flows_max
    }

    /// A flow of a template was added.
    pub(super) fn note_begin(&mut self, template: u16) {
        self.templates[usize::from(template)].tally.flows.note_begin();
        let active = self.flows_now() as u64;
        self.active_max = self.active_max.max(active);
    }

    /// The first number of a connection (RFC 6528 section 3, RFC 9293 section 3.4.1): it grows with
    /// time, so that those who remember an earlier connection of the same tuple can tell, from
    /// where nobody knows.
    pub(super) fn initial(&self, key: &FlowKey, now: Now) -> SequenceNumber {
        const TICK_MICROS: u64 = 4;
        SequenceNumber(
            (key.hash64(self.secret) as u32).wrapping_add((now.micros / TICK_MICROS) as u32),
        )
    }

    pub(super) fn insert(
        &mut self,
        key: FlowKey,
        connection: Connection,
        template: u16,
        link: u32,
        now: Now,
    ) -> u32 {
        let mut run = Run::new(self.buffers.nothing());
        if let Some(session) = self.templates[usize::from(template)].session(&key) {
            run.exchange_by(Exchange::new(session));
        }
        if let Some(own) = self.templates[usize::from(template)].own(&key) {
            run.own_by(own);
        }
        let flow = Flow {
            key,
            connection,
            run,
            called_at: 0,
            began_at: now.micros as u32,
            template,
            link,
            is_pending: false,
            marks: FlowMarks::default(),
        };
        let place = self.flows.insert(flow);
        self.note_begin(template);
        if self.followed.has_room() {
            self.begin_followed(Place::Tcp(place), now);
        }
        place
    }

    pub(super) fn remove(&mut self, place: u32, now: Now) {
        if self.followed.is_any() {
            self.end_followed(Place::Tcp(place), now);
        }
        let Some(flow) = self.flows.get_mut(place) else { return };
        let is_known = usize::from(flow.template) < self.templates_known;
        let TemplateState { template, tally, arrivals, .. } =
            &mut self.templates[usize::from(flow.template)];
        let makes_flows = matches!(template.role, Role::Client { .. });
        tally.flows.active -= 1;
        let is_waiting = flow.marks.has(FlowMarks::WAITING);
        tally.flows.waiting -= u64::from(is_waiting);
        if !is_waiting {
            tally.times.whole.record(age(flow.began_at, now));
        }
        let failed_before = tally.flows.failed();
        if let Some(end) = flow.connection.end() {
            let counter = match end {
                _ if flow.run.has_program_failed() => &mut tally.flows.program_failed,
                End::Closed if flow.run.has_failed() => &mut tally.flows.session_failed,
                End::Reset | End::ResetAfterClose if flow.run.has_failed_first() => {
                    &mut tally.flows.session_failed
                }
                End::Reset | End::ResetAfterClose if flow.run.has_ended() => {
                    &mut tally.flows.closed
                }
                End::Reset | End::ResetAfterClose if template.meets_resets => {
                    &mut tally.flows.reset_meant
                }
                // A client that resets what has just been established may do so before it is here.
                End::Refused if template.meets_resets && !makes_flows => {
                    &mut tally.flows.reset_meant
                }
                end => tally.flows.of(end),
            };
            // One that was nobody's is counted as that.
            *counter += u64::from(is_known || end != End::Aborted);
        }
        let has_failed = tally.flows.failed() > failed_before;
        if has_failed {
            tally.findings.count_missing(flow.run.take_missing());
        }
        if !is_waiting && !flow.marks.has(FlowMarks::REPLACED) {
            let bytes = Some(flow.connection.bytes_received());
            arrivals.note_end(now.instant(), Some(age(flow.began_at, now)), bytes, has_failed);
        }
        if !self.first_data.is_empty() {
            self.first_data.remove(&place);
        }
        self.links.give_back(flow.link);
        self.flows.remove(place);
        if !self.executions.is_empty() {
            self.end_execution(Place::Tcp(place), has_failed);
        }
    }

    /// The wheel has called a flow.
    pub(super) fn call(&mut self, place: u32, now: Now) {
        let Some((flow, pending)) = self.flows.get_with_queue(place) else { return };
        flow.marks.clear(FlowMarks::CALLED);
        let (_, settings, tally) = self.templates[usize::from(flow.template)].tcp(&flow.key);
        let opened_fast = flow.connection.opens_fast();
        flow.connection.expire(settings, now, &mut tally.tcp);
        if opened_fast && !flow.connection.opens_fast() {
            self.fast_open.note_unanswered(&flow.key, now);
        }
        if !flow.is_pending {
            flow.is_pending = true;
            pending.push_back(place);
        }
    }

    /// Lets a flow go on with its program and send what it has.
    #[inline]
    pub(super) fn serve(&mut self, place: u32, now: Now, transmit: &mut impl Transmit) {
        let Some((flow, pending)) = self.flows.get_with_queue(place) else { return };
        let (template, settings, tally) = self.templates[usize::from(flow.template)].tcp(&flow.key);
        let mut progress;
        loop {
            let mut outside = Outside {
                buffers: &self.buffers,
                random: &mut self.random,
                statistics: &mut tally.statistics,
                findings: &mut tally.findings,
                counters: &mut tally.tcp,
                sessions: &mut tally.sessions,
                now,
            };
            progress = flow.run.advance(&template.program, &mut flow.connection, &mut outside);
            let all_left = loop {
                let connection = &mut flow.connection;
                if !connection.may_depart() {
                    break true;
                }
                let wanted = connection.burst_max().min(BURST_MAX);
                // Where the port cuts, what is as many frames on the wire is one here.
                let link = self.links.get(flow.link);
                let in_one =
                    if wanted > 1 { segments_in_one(connection, link, transmit) } else { 1 };
                fill_up(&mut self.spare, if in_one > 1 { 1 } else { wanted }, transmit);
                let frames = self.spare.len() as u32;
                if frames == 0 {
                    break false;
                }
                let is_cut = in_one > 1;
                let how = template.ip.identification_of(&flow.key);
                let segments = match how {
                    _ if is_cut => in_one,
                    Identification::Zero => frames,
                    // Segments that are written as one pattern have one identification.
                    _ => 1,
                };
                let room = Room { segments, has_tail: is_cut };
                let Some(mut outgoing) =
                    connection.depart_burst(room, settings, now, &mut tally.tcp)
                else {
                    break true;
                };
                let mut sack = [SequenceRange::default(); SACK_BLOCKS_MAX];
                if outgoing.sack_blocks > 0 {
                    connection.sack_blocks(&mut sack);
                }
                let mut cookie = Cookie::default();
                if outgoing.options.cookie_length.is_some() {
                    let is_answer = outgoing.flags.contains(Flags::ACK);
                    cookie = self.fast_open.cookie(&flow.key, is_answer);
                    outgoing.options.cookie_length = Some(cookie.as_slice().len() as u8);
                }
                let (run, buffers) = (&flow.run, &self.buffers);
                let identification =
                    self.pieces.identify(how, outgoing.segments(), &mut self.random);
                let mut ip = IpSettings::default();
                let headers = Headers {
                    link,
                    key: &flow.key,
                    ip: template.ip.with_class(run.traffic_class(), &mut ip),
                    identification,
                    cookie: cookie.as_slice(),
                };
                let fill = |from, data: &mut [u8]| run.copy(from, data, buffers);
                let frames = &mut self.spare;
                tally.flows.too_long += match is_cut && outgoing.more > 0 {
                    true => send_long(&headers, &outgoing, &sack, frames, transmit, fill),
                    false => send_burst(&headers, &outgoing, &sack, frames, transmit, fill),
                };
            };
            if !all_left && !flow.is_pending {
                flow.is_pending = true;
                pending.push_back(place);
            }
            // A program that waits only until all has left goes on at once.
            if !all_left || !flow.run.goes_on(&flow.connection) {
                break;
            }
        }
        if flow.connection.is_over() {
            return self.remove(place, now);
        }
        if let Progress::Wishes(wish) = progress {
            let (parent, key, template) = (Place::Tcp(place), flow.key, flow.template);
            self.executions.asked.push_back(Asked { parent, key, template, wish });
        }
        if progress == Progress::Pauses {
            progress = flow.run.pause(self.pauses.next(now));
        }
        let is_over =
            flow.connection.state() == State::TimeWait && !flow.marks.has(FlowMarks::WAITING);
        if is_over {
            flow.marks.set(FlowMarks::WAITING);
            tally.flows.waiting += 1;
            tally.times.whole.record(age(flow.began_at, now));
        }
        let mut at = flow.connection.deadline(settings, now);
        if is_over {
            let has_failed = flow.run.has_failed() || flow.run.has_program_failed();
            let took = Some(age(flow.began_at, now));
            let arrivals = &mut self.templates[usize::from(flow.template)].arrivals;
            let bytes = Some(flow.connection.bytes_received());
            // Its load has the flow that goes on in its place.
            if !flow.marks.has(FlowMarks::REPLACED) {
                arrivals.note_end(now.instant(), took, bytes, has_failed);
            }
            self.followed.note_over(place);
        }
        if let Progress::WaitsUntil(until) = progress {
            let is_sooner = |at: u32| until.wrapping_sub(at).cast_signed() < 0;
            at = Some(at.filter(|at| !is_sooner(*at)).unwrap_or(until));
        }
        // A call that comes too early costs less than to move it with every segment.
        if let Some(at) = at
            && (!flow.marks.has(FlowMarks::CALLED)
                || at.wrapping_sub(flow.called_at).cast_signed() < 0)
        {
            flow.called_at = at;
            flow.marks.set(FlowMarks::CALLED);
            let ticks = at.wrapping_sub(now.millis).cast_signed().max(0) as u64;
            self.flows.wheel.set(place, now.micros / 1_000 + ticks);
        } else if at.is_none()
            && flow.marks.has(FlowMarks::CALLED)
            && flow.called_at.wrapping_sub(now.millis).cast_signed() > CALL_FAR_MS
        {
            flow.marks.clear(FlowMarks::CALLED);
            self.flows.wheel.cancel(place);
        }
        if !self.executions.is_empty() {
            self.settle(place, is_over);
        }
    }
}
