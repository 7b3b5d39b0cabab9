//! Received segments of a connection.

use super::super::common::Common;
use super::super::load::Starts;
use super::super::servers::Decision;
use super::super::template::Role;
use super::super::times::age;
use super::first_data::FirstData;
use super::{Connections, FlowFlags};
use crate::tcp::counters::TcpCounters;
use crate::tcp::now::Now;
use crate::tcp::receive::SegmentOutcome;
use crate::tcp::segment::Segment;

impl Connections {
    /// Passes a segment, with its data for a session, to its connection.
    #[inline]
    pub(in crate::endpoint) fn arrive(
        &mut self,
        place: u32,
        segment: &Segment<'_>,
        data: &[u8],
        now: Now,
        common: &mut Common,
        starts: &mut Starts,
    ) -> SegmentOutcome {
        let Some((flow, pending)) = self.flows.get_with_queue(place) else {
            return SegmentOutcome::default();
        };
        let (template, settings, tally) =
            common.templates[usize::from(flow.template)].tcp(&flow.key);
        let round_trips = tally.tcp.rttupdated;
        let arrival = flow.connection.handle_segment(segment, settings, now, &mut tally.tcp);
        if tally.tcp.rttupdated != round_trips {
            tally.times.round_trip.record(flow.connection.timed_for(now));
        }
        if arrival.is_established {
            let after = age(flow.began_at, now);
            tally.times.connect.record(after);
            if matches!(template.role, Role::Client { .. }) {
                starts.note_answer(after);
            }
        }
        let mut received = arrival.data;
        if flow.run.exchange().is_some() {
            received = flow.run.receive(segment, data, &arrival, &flow.connection, now);
        }
        if received > 0 {
            flow.run.note_received(received);
            if !flow.marks.has(FlowFlags::ANSWERED) {
                flow.marks.set(FlowFlags::ANSWERED);
                tally.times.time_to_first_byte.record(age(flow.began_at, now));
            }
        }
        if !flow.is_pending {
            flow.is_pending = true;
            pending.push_back(place);
        }
        arrival
    }

    /// Passes a segment to a connection without a template. Its first data selects one; if none
    /// matches, the connection is reset.
    #[cold]
    pub(in crate::endpoint) fn arrive_undecided(
        &mut self,
        place: u32,
        segment: &Segment<'_>,
        data: &[u8],
        now: Now,
        common: &mut Common,
    ) -> SegmentOutcome {
        let Some((flow, pending)) = self.flows.get_with_queue(place) else {
            return SegmentOutcome::default();
        };
        let mut counted = TcpCounters::default();
        let (_, settings, tally) = common.templates[usize::from(flow.template)].tcp(&flow.key);
        let expected = flow.connection.expected();
        let arrival = flow.connection.handle_segment(segment, settings, now, &mut counted);
        if counted.rttupdated > 0 {
            tally.times.round_trip.record(flow.connection.timed_for(now));
        }
        if arrival.is_established {
            tally.times.connect.record(age(flow.began_at, now));
        }
        if arrival.data > 0 {
            flow.run.note_received(arrival.data);
            flow.marks.set(FlowFlags::ANSWERED);
        }
        let known = self.first_data.get(&place);
        let has_data = arrival.data > 0 || arrival.out_of_order > 0;
        let is_all = flow.connection.has_received_fin();
        let mut decision = Decision::Open;
        if known.is_none() && segment.sequence == expected {
            // The first segment usually suffices, and then nothing is buffered.
            let data = data.get(..arrival.data as usize).unwrap_or(data);
            if !data.is_empty() {
                decision = common.servers.decide(&flow.key, data, is_all);
            }
        }
        if decision == Decision::Open && (has_data || is_all && known.is_some()) {
            let length = common.servers.bytes_max(&flow.key);
            let first = self.first_data.entry(place);
            let first = first.or_insert_with(|| FirstData::new(expected, length, now));
            first.take(segment.sequence, data);
            decision = common.servers.decide(&flow.key, first.known(&flow.connection), is_all);
        }
        match decision {
            Decision::For(template) => {
                tally.flows.active -= 1;
                tally.tcp.accepts -= 1;
                tally.tcp.rcvtotal -= 1;
                // The data may have arrived with the ACK that established the connection.
                tally.tcp.connects -= 1 - counted.connects;
                let first = self.first_data.remove(&place);
                let answered_at = first.as_ref().map_or(now, |it| it.arrived_at);
                if let Some(first) = first {
                    tally.tcp.take_off(&first.counted);
                    counted.merge(&first.counted);
                }
                counted.accepts += 1;
                counted.rcvtotal += 1;
                counted.connects = 1;
                flow.template = template;
                flow.run.restart_program();
                let tally = &mut common.templates[usize::from(template)].tally;
                tally.flows.note_begin();
                tally.times.time_to_first_byte.record(age(flow.began_at, answered_at));
            }
            Decision::NoServer => {
                common.unmatched.no_match += 1;
                flow.connection.abort(&mut counted);
            }
            Decision::Open => {
                if let Some(first) = self.first_data.get_mut(&place) {
                    // `connects` is moved to the template separately.
                    first.counted.merge(&TcpCounters { connects: 0, ..counted });
                }
            }
        }
        common.templates[usize::from(flow.template)].tally.tcp.merge(&counted);
        if !flow.is_pending {
            flow.is_pending = true;
            pending.push_back(place);
        }
        if matches!(decision, Decision::For(_)) && common.followed.has_room() {
            self.follow(place, now, common);
        }
        arrival
    }

    /// Passes the segments of the current train to their connection.
    #[inline]
    pub(in crate::endpoint) fn receive_train(
        &mut self,
        now: Now,
        common: &mut Common,
        starts: &mut Starts,
    ) {
        if let Some(train) = self.train.take() {
            self.arrive(train.place, &train.segment, &[], now, common, starts);
        }
    }
}
