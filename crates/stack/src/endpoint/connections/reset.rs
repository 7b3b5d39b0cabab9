//! Resets of connections that are open when a run ends.

use wirestorm_base::port::Transmit;
use wirestorm_base::time::Instant;

use super::super::common::Common;
use super::super::frames::room;
use super::Connections;
use crate::frame::{Headers, write_segment};
use crate::tcp::counters::TcpCounters;
use crate::tcp::now::Now;

/// Progress of resetting connections: the next slot of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResetCursor(u32);

/// Maximum number of slots visited in a call.
const LOOKED_AT_MAX: u32 = 1 << 14;

impl Connections {
    /// See [`Endpoint::reset_open`](crate::endpoint::Endpoint::reset_open).
    pub(in crate::endpoint) fn reset_open(
        &mut self,
        from: ResetCursor,
        most: usize,
        now: Instant,
        transmit: &mut impl Transmit,
        common: &mut Common,
    ) -> Option<ResetCursor> {
        let time = Now::from_micros(now.as_nanos() / 1_000);
        let mut left = most;
        for place in from.0..from.0.saturating_add(LOOKED_AT_MAX) {
            if place >= self.flows.places() {
                return None;
            }
            let Some(flow) = self.flows.get_mut(place) else { continue };
            if left == 0 {
                return Some(ResetCursor(place));
            }
            let Some(frame) = transmit.take() else { return Some(ResetCursor(place)) };
            let state = &mut common.templates[usize::from(flow.template)];
            let tally = &mut state.tally;
            let Some(outgoing) = flow.connection.abort_segment(time, &mut tally.tcp) else {
                transmit.release(frame);
                continue;
            };
            let ip = &state.template.ip;
            let how = ip.identification_of(&flow.key);
            let headers = Headers {
                link: common.links.get(flow.link),
                key: &flow.key,
                ip,
                identification: common.pieces.identify(how, 1, &mut common.random),
                cookie: &[],
            };
            match write_segment(room(transmit, &frame), &headers, &outgoing, &[], |_| 0) {
                Some(length) => {
                    transmit.send(frame, length, Instant::ZERO);
                    tally.flows.reset_at_end += 1;
                    left -= 1;
                }
                None => {
                    transmit.release(frame);
                    tally.flows.too_long += 1;
                    tally.flows.left_open += 1;
                }
            }
        }
        Some(ResetCursor(from.0.saturating_add(LOOKED_AT_MAX)))
    }

    /// Counts the connections that were not reset, from the last result of [`Self::reset_open`] on.
    pub(in crate::endpoint) fn note_left_open(
        &self,
        from: ResetCursor,
        now: Instant,
        common: &mut Common,
    ) {
        let time = Now::from_micros(now.as_nanos() / 1_000);
        for place in from.0..self.flows.places() {
            let Some(flow) = self.flows.get(place) else { continue };
            let is_open =
                flow.connection.abort_segment(time, &mut TcpCounters::default()).is_some();
            let tally = &mut common.templates[usize::from(flow.template)].tally;
            tally.flows.left_open += u64::from(is_open);
        }
    }
}
