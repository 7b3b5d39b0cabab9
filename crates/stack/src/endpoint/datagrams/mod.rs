//! UDP flows: their table, and how they start, run and end.

mod stamp;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wirestorm_base::port::Transmit;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_wire::checksum;
use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::packet::{ethernet, ipv4, ipv6, udp};

use self::stamp::Stamp;
use super::common::Common;
use super::counters::Tally;
use super::details::{FlowDetails, Remaining, details};
use super::events::{Event, FlowSlot, PendingRequest};
use super::fragments::Cut;
use super::frames::{fill_up, room};
use super::table::{Flows, Keyed};
use super::template::TemplateState;
use super::times::age;
use crate::content::DatagramExchange;
use crate::frame::{Headers, LinkHeader, Packet, write_datagram};
use crate::icmp_error::Cause;
use crate::program::{DatagramRun, FlowRequest, ProgramContext, Sent, Step};
use crate::tcp::now::Now;
use wirestorm_model::ip::IpSettings;

/// UDP flow with its program.
#[derive(Debug)]
pub(super) struct DatagramFlow {
    /// Key of packets from the peer to us.
    pub(super) key: FlowKey,
    run: DatagramRun,
    /// Start in microseconds, modulo 2^32.
    pub(super) began_at: u32,
    /// Times of the last received and sent datagram in ms; initially the start.
    received_at: u32,
    sent_at: u32,
    /// Time of the next timer call in ms, if `is_called`.
    called_at: u32,
    is_called: bool,
    /// Whether any data has arrived.
    is_answered: bool,
    /// Whether the flow is in the queue of flows to serve.
    pub(super) is_pending: bool,
    pub(super) template: u16,
    link: u32,
    /// Time stamp state, if the program stamps its datagrams.
    stamp: Option<Box<Stamp>>,
}

/// Possible successor of a flow that is over, with the same key.
pub(super) struct Successor {
    key: FlowKey,
    link: LinkHeader,
    stamp: Option<Box<Stamp>>,
    /// Datagrams that its predecessor received and did not consume.
    received: VecDeque<Vec<u8>>,
}

impl Keyed for DatagramFlow {
    fn key(&self) -> &FlowKey {
        &self.key
    }
}

/// Datagrams that a flow sends before other flows are served.
const DATAGRAMS_MAX: usize = 256;

/// UDP flows of an endpoint.
#[derive(Debug)]
pub(super) struct Datagrams {
    pub(super) flows: Flows<DatagramFlow>,
    /// Flows with an expired timer, within an iteration.
    due: Vec<u32>,
}

impl Datagrams {
    /// Creates an empty table; the timer wheel starts at a time in ms.
    pub(super) fn new(millis: u64) -> Self {
        Self { flows: Flows::new(millis), due: Vec::new() }
    }

    /// Creates a flow of a template for its first datagram.
    pub(super) fn accept(
        &mut self,
        packet: &Packet<'_>,
        template: u16,
        now: Now,
        common: &mut Common,
    ) -> Option<u32> {
        if common.is_full() {
            common.templates[usize::from(template)].tally.flows.flow_table_full += 1;
            return None;
        }
        let link = common.reply_link(packet)?;
        let link = common.links.take(link);
        common.templates[usize::from(template)].tally.udp.accepts += 1;
        Some(self.insert(packet.key, template, link, now, common))
    }

    pub(super) fn insert(
        &mut self,
        key: FlowKey,
        template: u16,
        link: u32,
        now: Now,
        common: &mut Common,
    ) -> u32 {
        let mut run = DatagramRun::new();
        let state = &mut common.templates[usize::from(template)];
        let stamp = state.template.program.stamp().map(|it| Box::new(Stamp::new(it)));
        if let Some(payload) = state.payload(&key) {
            run.attach_payload(payload);
        }
        if let Some(session) = state.datagram_session(&key) {
            let longest = room_for_data(common.frame_length_max, &key);
            run.exchange_by(DatagramExchange::new(session, longest, now));
        }
        let flow = DatagramFlow {
            key,
            run,
            began_at: now.micros as u32,
            received_at: now.millis,
            sent_at: now.millis,
            called_at: 0,
            is_called: false,
            is_answered: false,
            is_pending: false,
            template,
            link,
            stamp,
        };
        let place = self.flows.insert(flow);
        common.note_begin(template);
        if common.followed.has_room() {
            self.follow(place, now, common);
        }
        place
    }

    /// Passes a datagram to its flow.
    pub(super) fn arrive(&mut self, place: u32, data: &[u8], now: Now, common: &mut Common) {
        let Some((flow, pending)) = self.flows.get_with_queue(place) else { return };
        let tally = &mut common.templates[usize::from(flow.template)].tally;
        tally.udp.rcvpkt += 1;
        tally.udp.rcvbyte += data.len() as u64;
        let data = match &mut flow.stamp {
            Some(stamp) => measure(stamp, data, tally, now),
            None => data,
        };
        flow.run.receive(data, now);
        flow.received_at = now.millis;
        if !flow.is_answered {
            flow.is_answered = true;
            tally.times.time_to_first_byte.record(age(flow.began_at, now));
        }
        if !flow.is_pending {
            flow.is_pending = true;
            pending.push_back(place);
        }
    }

    /// Continues a flow whose awaited event has happened or failed.
    pub(super) fn go_on(&mut self, place: u32, has_failed: bool) {
        if let Some(flow) = self.flows.get_mut(place) {
            flow.run.end_waiting(has_failed);
            self.wake(place);
        }
    }

    /// Calls flows with expired timers.
    pub(super) fn call_due(&mut self, tick: u64) {
        let mut due = core::mem::take(&mut self.due);
        self.flows.wheel.expire(tick, &mut due);
        due.drain(..).for_each(|place| self.call(place));
        self.due = due;
    }

    /// Handles the expiry of a flow's timer.
    fn call(&mut self, place: u32) {
        if let Some(flow) = self.flows.get_mut(place) {
            flow.is_called = false;
            self.wake(place);
        }
    }

    fn wake(&mut self, place: u32) {
        let Some((flow, pending)) = self.flows.get_with_queue(place) else { return };
        if !flow.is_pending {
            flow.is_pending = true;
            pending.push_back(place);
        }
    }

    /// Runs the program of a flow and sends its datagrams, until it waits, is over, or no frame is
    /// free. Returns its possible successor.
    pub(super) fn serve(
        &mut self,
        place: u32,
        now: Now,
        transmit: &mut impl Transmit,
        common: &mut Common,
    ) -> Option<Successor> {
        let (flow, pending) = self.flows.get_with_queue(place)?;
        let state = &mut common.templates[usize::from(flow.template)];
        let (template, tally) = (&state.template, &mut state.tally);
        let has_passed = |at: u32| now.millis.wrapping_sub(at).cast_signed() >= 0;
        let mut at = None;
        for count in 0.. {
            if flow.run.idle_at(flow.received_at, flow.sent_at).is_some_and(has_passed) {
                tally.udp.keepdrops += 1;
                tally.flows.idle_timeout += 1;
                // The timeout took long enough: the load may start the next flow at once.
                self.remove(place, true, false, now, common);
                return None;
            }
            let mut outside = ProgramContext {
                buffers: &common.buffers,
                random: &mut common.random,
                statistics: &mut tally.statistics,
                findings: &mut tally.findings,
                counters: &mut tally.tcp,
                sessions: &mut tally.sessions,
                now,
            };
            let sent = match flow.run.advance(&template.program, &mut outside) {
                Step::Sends(sent) => sent,
                Step::Waits => break,
                Step::WaitsUntil(until) => {
                    at = Some(until);
                    break;
                }
                Step::Pauses => {
                    at = Some(flow.run.pause(common.pauses.next(now)));
                    break;
                }
                Step::Executes { group, ports } => {
                    let (parent, key, template) = (FlowSlot::Udp(place), flow.key, flow.template);
                    let kind = FlowRequest::Flow { group, ports };
                    common.requested.push_back(PendingRequest { parent, key, template, kind });
                    break;
                }
                Step::Awaits => {
                    let (parent, key, template) = (FlowSlot::Udp(place), flow.key, flow.template);
                    let kind = FlowRequest::End;
                    common.requested.push_back(PendingRequest { parent, key, template, kind });
                    break;
                }
                Step::Over => {
                    let has_session_failed = flow.run.has_session_failed();
                    let has_failed = flow.run.has_program_failed() || has_session_failed;
                    match has_failed {
                        true if has_session_failed => tally.flows.session_failed += 1,
                        true => tally.flows.program_failed += 1,
                        false => tally.flows.closed += 1,
                    }
                    let next = Successor {
                        key: flow.key,
                        link: *common.links.get(flow.link),
                        stamp: flow.stamp.take(),
                        received: flow.run.take_rest(),
                    };
                    self.remove(place, has_failed, has_failed, now, common);
                    return (!has_failed).then_some(next);
                }
            };
            fill_up(&mut common.spare, 1, transmit);
            let Some(frame) = common.spare.pop_if(|_| count < DATAGRAMS_MAX) else {
                if !flow.is_pending {
                    flow.is_pending = true;
                    pending.push_back(place);
                }
                break;
            };
            let link = common.links.get(flow.link);
            let bytes = room(transmit, &frame);
            let frame_max = bytes.len().min(common.frame_length_max + link.tag_length());
            let mtu = frame_max.saturating_sub(link.as_slice().len());
            let mtu = common.paths.mtu(flow.key.source()).map_or(mtu, |path| mtu.min(path.into()));
            let bytes = &mut bytes[..frame_max.min(link.as_slice().len() + mtu)];
            let how = template.ip.identification_of(&flow.key);
            let identification = common.pieces.identify(how, 1, &mut common.random);
            let (run, buffers) = (&flow.run, &common.buffers);
            let mut ip = IpSettings::default();
            let ip = template.ip.with_class(run.traffic_class(), &mut ip);
            let headers = Headers { link, key: &flow.key, ip, identification, cookie: &[] };
            let stamp = flow.stamp.as_ref().map(|it| it.header(now));
            let stamp = stamp.as_ref().map_or(&[][..], |header| header);
            let payload_length = match sent {
                Sent::Buffer(buffer) => buffers.get(buffer).size(),
                sent => run.composed(sent).len() as u32,
            };
            let size = payload_length.saturating_add(stamp.len() as u32);
            let fill: &dyn Fn(&mut [u8]) -> u16 = &|data| {
                let (head, data) = data.split_at_mut(stamp.len());
                let sum = match sent {
                    Sent::Buffer(buffer) => buffers.get(buffer).copy(0, data),
                    sent => {
                        data.copy_from_slice(run.composed(sent));
                        checksum::sum(data)
                    }
                };
                if head.is_empty() {
                    return sum;
                }
                head.copy_from_slice(stamp);
                checksum::combine(checksum::sum(stamp), sum)
            };
            let has_left = match write_datagram(bytes, &headers, size, fill) {
                Some(length) => {
                    transmit.send(frame, length, Instant::ZERO);
                    true
                }
                None => {
                    common.spare.push(frame);
                    common.pieces.take_back(how);
                    match common.pieces.send(&headers, mtu, size, fill, &mut common.spare, transmit)
                    {
                        Cut::Sent => {
                            tally.udp.fragmented += 1;
                            true
                        }
                        Cut::TooLong => {
                            tally.udp.pkt_toobig += 1;
                            false
                        }
                        Cut::Waits => {
                            if !flow.is_pending {
                                flow.is_pending = true;
                                pending.push_back(place);
                            }
                            break;
                        }
                    }
                }
            };
            if has_left {
                tally.udp.sndpkt += 1;
                tally.udp.sndbyte += u64::from(size);
                flow.sent_at = now.millis;
            }
            if let Some(stamp) = &mut flow.stamp {
                stamp.go_on();
            }
            flow.run.note_sent(sent);
        }
        let is_sooner = |a: u32, b: u32| a.wrapping_sub(b).cast_signed() < 0;
        let idle = flow.run.idle_at(flow.received_at, flow.sent_at);
        let at =
            [at, idle].into_iter().flatten().reduce(|a, b| if is_sooner(a, b) { a } else { b });
        // An early call costs less than moving the timer with every datagram.
        if let Some(at) = at
            && (!flow.is_called || is_sooner(at, flow.called_at))
        {
            flow.called_at = at;
            flow.is_called = true;
            let ticks = at.wrapping_sub(now.millis).cast_signed().max(0) as u64;
            self.flows.wheel.set(place, now.micros / 1_000 + ticks);
        }
        None
    }

    /// Starts a new flow from the unconsumed datagrams of a flow that is over. They would have
    /// started it if they had arrived a little later.
    pub(super) fn start_successor(&mut self, next: Successor, now: Now, common: &mut Common) {
        let Successor { key, link, stamp, received } = next;
        let Some(first) = received.front() else { return };
        let Some(template) = common.servers.with_data(&key, first) else { return };
        let link = common.links.take(link);
        let place = self.insert(key, template, link, now, common);
        let tally = &mut common.templates[usize::from(template)].tally;
        tally.udp.accepts += 1;
        tally.times.time_to_first_byte.record(Duration::ZERO);
        if let Some(flow) = self.flows.get_mut(place) {
            flow.is_answered = true;
            // They were measured already. An answer returns the header of the last one, so keep it.
            if flow.stamp.is_some() && stamp.is_some() {
                flow.stamp = stamp;
            }
            received.iter().for_each(|data| flow.run.note_received(data));
        }
        self.wake(place);
    }

    /// Ends a flow after an ICMP error. RFC 1122 section 4.1.3.3: "UDP MUST pass to the application
    /// layer all ICMP error messages". Programs do not handle them, so the flow is over.
    pub(super) fn receive_unreachable(
        &mut self,
        key: &FlowKey,
        cause: Cause,
        now: Now,
        common: &mut Common,
    ) {
        let Some(place) = self.flows.find(key) else { return };
        let Some(flow) = self.flows.get_mut(place) else { return };
        let flows = &mut common.templates[usize::from(flow.template)].tally.flows;
        match cause {
            Cause::Refused => flows.refused += 1,
            Cause::Unreachable => flows.unreachable += 1,
            // One datagram is lost; later ones are shorter.
            Cause::TooBig { .. } => return,
        }
        self.remove(place, true, true, now, common);
    }

    /// Removes a flow. `backs_off`: its load must wait before the next flow.
    fn remove(
        &mut self,
        place: u32,
        has_failed: bool,
        backs_off: bool,
        now: Now,
        common: &mut Common,
    ) {
        if common.followed.is_any() {
            self.stop_following(place, now, common);
        }
        let Some(flow) = self.flows.get_mut(place) else { return };
        let TemplateState { tally, arrivals, .. } =
            &mut common.templates[usize::from(flow.template)];
        arrivals.note_end(now.instant(), Some(age(flow.began_at, now)), None, backs_off);
        tally.flows.active -= 1;
        tally.udp.closed += 1;
        tally.times.duration.record(age(flow.began_at, now));
        common.links.give_back(flow.link);
        self.flows.remove(place);
        common.active -= 1;
        if common.are_awaited {
            common.events.push(Event::Gone { place: FlowSlot::Udp(place), has_failed });
        }
    }

    /// Counts the flows by template.
    pub(super) fn count_remaining(&self, remaining: &mut [Remaining]) {
        for flow in self.flows.iter() {
            remaining[usize::from(flow.template)].unfinished += 1;
        }
    }

    /// Returns the flows of a template at one moment.
    pub(super) fn details(&self, template: usize, now: Now) -> impl Iterator<Item = FlowDetails> {
        let flows = self.flows.iter().filter(move |it| usize::from(it.template) == template);
        flows.map(move |it| details(it.key(), it.began_at, now))
    }

    /// Returns the flow with a key at one moment.
    pub(super) fn peek(&self, key: &FlowKey, now: Now) -> Option<FlowDetails> {
        Some(details(key, self.flows.peek(key)?.began_at, now))
    }

    /// Samples a new flow; call it if there is room for one more.
    #[cold]
    fn follow(&mut self, place: u32, now: Now, common: &mut Common) {
        let Some(flow) = self.flows.get(place) else { return };
        let details = details(flow.key(), flow.began_at, now);
        common.followed.begin(flow.template.into(), now.instant(), &details);
    }

    /// Ends the sampling of a flow that is over but not removed yet.
    #[cold]
    fn stop_following(&mut self, place: u32, now: Now, common: &mut Common) {
        let Some(flow) = self.flows.get(place) else { return };
        common.followed.end(now.instant(), &details(flow.key(), flow.began_at, now));
    }
}

/// Returns the bytes of data that fit a frame of `frame_length_max` bytes.
fn room_for_data(frame_length_max: usize, key: &FlowKey) -> usize {
    let ip = match key.version() {
        4 => ipv4::HEADER_LENGTH_MIN,
        _ => ipv6::HEADER_LENGTH,
    };
    frame_length_max.saturating_sub(ethernet::HEADER_LENGTH + ip + udp::HEADER_LENGTH)
}

/// Removes the time stamp of a datagram, records its time, and returns the rest. A datagram without
/// a stamp, such as of a peer without TRex's add-on, is returned whole.
#[cold]
#[inline(never)]
fn measure<'a>(stamp: &mut Stamp, data: &'a [u8], tally: &mut Tally, now: Now) -> &'a [u8] {
    let Some((left_at, behind)) = stamp.take(data) else { return data };
    if let Some(stamped) = &mut tally.stamped {
        stamped.record(left_at, now);
    }
    behind
}
