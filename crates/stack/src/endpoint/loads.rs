//! Flows that loads start.

use wirestorm_base::port::Transmit;
use wirestorm_base::time::Instant;

use super::executions::FlowRequests;
use super::load::{Due, Starts};
use super::transports::Transports;
use crate::tcp::now::Now;

/// Start of flows by the loads.
#[derive(Debug)]
pub(super) struct Loads {
    pub(super) starts: Starts,
    /// Template whose flows are started first in the next iteration.
    first: usize,
}

impl Loads {
    pub(super) const fn new() -> Self {
        Self { starts: Starts::new(), first: 0 }
    }

    /// Starts the flows that are due, as far as [`Starts`] permits. The template that comes first
    /// rotates.
    #[inline(always)]
    pub(super) fn make_due(
        &mut self,
        now: Instant,
        transmit: &mut impl Transmit,
        on: &mut Transports,
        executions: &mut FlowRequests,
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

    /// Starts the flows of a template that are due.
    #[inline]
    fn make(
        &mut self,
        template: usize,
        now: Instant,
        transmit: &mut impl Transmit,
        on: &mut Transports,
        executions: &mut FlowRequests,
    ) {
        for started in 0.. {
            let state = &mut on.common.templates[template];
            let tally = &state.tally;
            if !self.starts.has_room() || state.waits_for_answers() {
                break;
            }
            let due = state.arrivals.take(now, tally.flows.held(), started, tally.received());
            if due == Due::Not {
                break;
            }
            let flows = &mut state.tally.flows;
            if let Due::Skipped(count) | Due::NoClient(count) | Due::Late(count) = due {
                flows.offered += count;
                match due {
                    Due::Skipped(_) => flows.skipped += count,
                    Due::NoClient(_) => flows.clients_disabled += count,
                    _ => flows.late += count,
                }
                continue;
            }
            flows.offered += 1;
            self.starts.note();
            if !start(template, now, transmit, on, executions) {
                // An open loop continues with the next flow, a closed loop retries later.
                let state = &mut on.common.templates[template];
                if state.arrivals.give_back(now) {
                    state.tally.flows.offered -= 1;
                    break;
                }
            }
        }
    }
}

/// Starts a flow of a template. Returns whether that was possible.
// Not inlined: most iterations start no flow and should not pay for this code.
#[inline(never)]
pub(super) fn start(
    template: usize,
    now: Instant,
    transmit: &mut impl Transmit,
    on: &mut Transports,
    executions: &mut FlowRequests,
) -> bool {
    let time = Now::from_micros(now.as_nanos() / 1_000);
    let Some(place) = on.open(template, None, time) else { return false };
    executions.serve(place, on, time, transmit);
    true
}
