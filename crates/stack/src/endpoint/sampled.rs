//! Sampled flows: the state of single flows at their start and end, however short they are. Callers
//! read the state in between by key.

use alloc::vec::Vec;
use core::net::IpAddr;

use wirestorm_base::time::Instant;

use super::details::FlowDetails;

/// Selection of sampled flows: up to `count` at a time that match all criteria. When one ends, the
/// next new flow takes its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampleOptions {
    /// Maximum number of flows sampled at a time.
    pub count: usize,
    /// Indices of the templates to sample.
    pub templates: Vec<usize>,
    /// Address of either end; `None`: any.
    pub address: Option<IpAddr>,
    /// Port of either end; `None`: any.
    pub port: Option<u16>,
}

impl SampleOptions {
    fn takes(&self, template: usize, flow: &FlowDetails) -> bool {
        let ends = [flow.local, flow.peer];
        self.templates.contains(&template)
            && self.address.is_none_or(|address| ends.iter().any(|end| end.0 == address))
            && self.port.is_none_or(|port| ends.iter().any(|end| end.1 == port))
    }
}

/// Sampled flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackedFlow {
    /// Number of the flow among the sampled ones, from 0.
    pub number: u64,
    /// Index of the template.
    pub template: usize,
    /// Time and state when the flow got its template, usually at its start.
    pub first: (Instant, FlowDetails),
    /// Time and state at its end, which is TIME-WAIT or removal. `None` if it is not over.
    pub last: Option<(Instant, FlowDetails)>,
}

/// Sampled flows of an endpoint.
#[derive(Debug, Default)]
pub(super) struct FlowSampler {
    options: SampleOptions,
    flows: Vec<TrackedFlow>,
    /// Number of sampled flows that are not over.
    there: usize,
    next: u64,
    /// Slots of connections that entered TIME-WAIT in this iteration.
    over: Vec<u32>,
}

impl FlowSampler {
    /// Creates the state for a selection.
    pub(super) fn new(options: SampleOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Returns the sampled flows, with ended ones whose place no new flow has taken.
    pub(super) fn flows(&self) -> &[TrackedFlow] {
        &self.flows
    }

    /// Takes the slot of a connection that entered TIME-WAIT in this iteration.
    pub(super) fn take_over(&mut self) -> Option<u32> {
        self.over.pop()
    }

    /// Whether a new flow may be sampled.
    #[inline]
    pub(super) const fn has_room(&self) -> bool {
        self.there < self.options.count
    }

    /// Whether any existing flow is sampled.
    #[inline]
    pub(super) const fn is_any(&self) -> bool {
        self.there > 0
    }

    /// Records that a connection entered TIME-WAIT. Its state is read later in the iteration, which
    /// keeps this code out of the path that serves flows.
    #[inline]
    pub(super) fn note_over(&mut self, place: u32) {
        if self.is_any() {
            self.over.push(place);
        }
    }

    /// Whether any connection entered TIME-WAIT in this iteration.
    #[inline]
    pub(super) const fn has_over(&self) -> bool {
        !self.over.is_empty()
    }

    #[cold]
    pub(super) fn begin(&mut self, template: usize, now: Instant, flow: &FlowDetails) {
        if !self.options.takes(template, flow) {
            return;
        }
        let new = TrackedFlow { number: self.next, template, first: (now, *flow), last: None };
        self.next += 1;
        self.there += 1;
        // Replace the flow that ended first.
        let is_full = self.flows.len() >= self.options.count;
        let over = self.flows.iter_mut().filter(|it| it.last.is_some());
        match over.min_by_key(|it| it.last.map(|(at, _)| at)).filter(|_| is_full) {
            Some(old) => *old = new,
            None => self.flows.push(new),
        }
    }

    #[cold]
    pub(super) fn end(&mut self, now: Instant, flow: &FlowDetails) {
        let is_it = |it: &&mut TrackedFlow| it.last.is_none() && it.first.1.key == flow.key;
        if let Some(followed) = self.flows.iter_mut().find(is_it) {
            followed.last = Some((now, *flow));
            self.there -= 1;
        }
    }
}
