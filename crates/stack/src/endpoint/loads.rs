//! The part of an endpoint that makes flows as loads ask for them.

use wirestorm_base::port::Transmit;
use wirestorm_base::time::Instant;

use super::executions::Executions;
use super::load::{Due, Starts};
use super::transports::Transports;
use crate::tcp::connection::Now;

/// Who starts flows, and when.
#[derive(Debug)]
pub(super) struct Loads {
    pub(super) starts: Starts,
    /// The template that flows are made of first, in the next breath.
    first: usize,
}

impl Loads {
    pub(super) const fn new() -> Self {
        Self { starts: Starts::new(), first: 0 }
    }

    /// Makes flows that are due, as many as there is time for: that of which template they are
    /// comes round.
    #[inline(always)]
    pub(super) fn make_due(
        &mut self,
        now: Instant,
        transmit: &mut impl Transmit,
        on: &mut Transports,
        executions: &mut Executions,
    ) {
        let count = on.common.templates.len();
        let first = core::mem::take(&mut self.first);
        for template in (first..count).chain(0..first) {
            self.make(template, now, transmit, on, executions);
            if !self.starts.has_room() {
                self.first = if template + 1 < count { template + 1 } else { 0 };
                break;
            }
        }
    }

    /// Makes the flows of a template that are due.
    #[inline]
    fn make(
        &mut self,
        template: usize,
        now: Instant,
        transmit: &mut impl Transmit,
        on: &mut Transports,
        executions: &mut Executions,
    ) {
        for made in 0.. {
            let state = &mut on.common.templates[template];
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
            if !start(template, now, transmit, on, executions) {
                // An open loop asks for the next one all the same, a closed one later again.
                let state = &mut on.common.templates[template];
                if state.arrivals.give_back(now) {
                    state.tally.flows.offered -= 1;
                    break;
                }
            }
        }
    }
}

/// Makes a flow of a template. Returns whether that was possible.
// Most breaths make none: what it takes is not to be among what each of them does.
#[inline(never)]
pub(super) fn start(
    template: usize,
    now: Instant,
    transmit: &mut impl Transmit,
    on: &mut Transports,
    executions: &mut Executions,
) -> bool {
    let time = Now::from_micros(now.as_nanos() / 1_000);
    let Some(place) = on.open(template, None, time) else { return false };
    executions.serve(place, on, time, transmit);
    true
}
