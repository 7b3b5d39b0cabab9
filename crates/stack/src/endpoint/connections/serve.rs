//! Service of a connection: its program and its sending.

use wirestorm_base::port::Transmit;
use wirestorm_wire::packet::tcp::Flags;

use super::super::common::Common;
use super::super::events::{Event, FlowSlot, PendingRequest};
use super::super::frames::fill_up;
use super::super::times::age;
use super::burst::{BURST_MAX, segments_in_one, send_burst, send_long};
use super::fast_open::Cookie;
use super::{Connections, FlowFlags};
use crate::frame::Headers;
use crate::program::{ProgramContext, Progress};
use crate::tcp::connection::State;
use crate::tcp::now::Now;
use crate::tcp::ranges::SequenceRange;
use crate::tcp::segment::SACK_BLOCKS_MAX;
use crate::tcp::transmit::BurstLimit;
use wirestorm_model::ip::{Identification, IpSettings};

/// Distance in ms up to which an unneeded timer entry stays. A farther one, such as that of a SYN,
/// is cancelled: with very many flows, its call would miss all caches. The next segment usually
/// needs a nearer entry again.
const TIMER_CANCEL_MS: i32 = 500;

impl Connections {
    /// Runs the program of a flow and sends its data.
    // One copy for all callers: several would not fit the instruction cache.
    #[inline(never)]
    pub(in crate::endpoint) fn serve(
        &mut self,
        place: u32,
        now: Now,
        transmit: &mut impl Transmit,
        common: &mut Common,
    ) {
        let Some((flow, pending)) = self.flows.get_with_queue(place) else { return };
        let (template, settings, tally) =
            common.templates[usize::from(flow.template)].tcp(&flow.key);
        let mut progress;
        loop {
            let mut outside = ProgramContext {
                buffers: &common.buffers,
                random: &mut common.random,
                statistics: &mut tally.statistics,
                findings: &mut tally.findings,
                counters: &mut tally.tcp,
                sessions: &mut tally.sessions,
                now,
            };
            progress = flow.run.advance(&template.program, &mut flow.connection, &mut outside);
            let all_left = loop {
                let connection = &mut flow.connection;
                if !connection.may_transmit() {
                    break true;
                }
                let frame_count = connection.burst_max().min(BURST_MAX);
                // A long frame that the port segments counts as one frame here.
                let link = common.links.get(flow.link);
                let in_one =
                    if frame_count > 1 { segments_in_one(connection, link, transmit) } else { 1 };
                fill_up(&mut common.spare, if in_one > 1 { 1 } else { frame_count }, transmit);
                let frames = common.spare.len() as u32;
                if frames == 0 {
                    break false;
                }
                let is_cut = in_one > 1;
                let how = template.ip.identification_of(&flow.key);
                let segments = match how {
                    _ if is_cut => in_one,
                    Identification::Zero => frames,
                    // Segments written from one pattern share one identification.
                    _ => 1,
                };
                let room = BurstLimit { segments, has_tail: is_cut };
                let Some(mut outgoing) =
                    connection.poll_transmit_burst(room, settings, now, &mut tally.tcp)
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
                let (run, buffers) = (&flow.run, &common.buffers);
                let identification =
                    common.pieces.identify(how, outgoing.segments(), &mut common.random);
                let mut ip = IpSettings::default();
                let headers = Headers {
                    link,
                    key: &flow.key,
                    ip: template.ip.with_class(run.traffic_class(), &mut ip),
                    identification,
                    cookie: cookie.as_slice(),
                };
                let fill = |from, data: &mut [u8]| run.copy(from, data, buffers);
                let frames = &mut common.spare;
                tally.flows.too_long += match is_cut && outgoing.more > 0 {
                    true => send_long(&headers, &outgoing, &sack, frames, transmit, fill),
                    false => send_burst(&headers, &outgoing, &sack, frames, transmit, fill),
                };
            };
            if !all_left && !flow.is_pending {
                flow.is_pending = true;
                pending.push_back(place);
            }
            // A program that only waits until all has left continues at once.
            if !all_left || !flow.run.goes_on(&flow.connection) {
                break;
            }
        }
        if flow.connection.is_over() {
            return self.remove(place, now, common);
        }
        if let Progress::Requests(kind) = progress {
            let (parent, key, template) = (FlowSlot::Tcp(place), flow.key, flow.template);
            common.requested.push_back(PendingRequest { parent, key, template, kind });
        }
        if progress == Progress::Pauses {
            progress = flow.run.pause(common.pauses.next(now));
        }
        let is_over =
            flow.connection.state() == State::TimeWait && !flow.marks.has(FlowFlags::WAITING);
        if is_over {
            flow.marks.set(FlowFlags::WAITING);
            tally.flows.waiting += 1;
            tally.times.duration.record(age(flow.began_at, now));
        }
        let mut at = flow.connection.deadline(settings, now);
        if is_over {
            let has_failed = flow.run.has_failed() || flow.run.has_program_failed();
            let took = Some(age(flow.began_at, now));
            let arrivals = &mut common.templates[usize::from(flow.template)].arrivals;
            let bytes = Some(flow.connection.bytes_received());
            // The load counts the replacement instead.
            if !flow.marks.has(FlowFlags::REPLACED) {
                arrivals.note_end(now.instant(), took, bytes, has_failed);
            }
            common.followed.note_over(place);
        }
        if let Progress::WaitsUntil(until) = progress {
            let is_sooner = |at: u32| until.wrapping_sub(at).cast_signed() < 0;
            at = Some(at.filter(|at| !is_sooner(*at)).unwrap_or(until));
        }
        // An early call costs less than moving the timer with every segment.
        if let Some(at) = at
            && (!flow.marks.has(FlowFlags::TIMER_SET)
                || at.wrapping_sub(flow.timer_at).cast_signed() < 0)
        {
            flow.timer_at = at;
            flow.marks.set(FlowFlags::TIMER_SET);
            let ticks = at.wrapping_sub(now.millis).cast_signed().max(0) as u64;
            self.flows.wheel.set(place, now.micros / 1_000 + ticks);
        } else if at.is_none()
            && flow.marks.has(FlowFlags::TIMER_SET)
            && flow.timer_at.wrapping_sub(now.millis).cast_signed() > TIMER_CANCEL_MS
        {
            flow.marks.clear(FlowFlags::TIMER_SET);
            self.flows.wheel.cancel(place);
        }
        if common.are_awaited {
            common.events.push(Event::Served { place, is_over });
        }
    }
}
