//! Observation of a port during a run: time series and sampled flows.

use wirestorm_base::time::{Duration, Instant};
use wirestorm_stack::endpoint::{Endpoint, SampleOptions};

use super::owner::TemplateOwner;
use super::sampled_flows::{FlowChoice, SampledFlows};
use super::timeline::Timeline;
use crate::result::SampledFlow;

/// Options of the observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchOptions {
    /// Interval of the time series.
    pub interval: Duration,
    /// Selection of the sampled flows.
    pub flows: FlowChoice,
}

impl Default for WatchOptions {
    /// Returns intervals of one second and no sampled flows.
    fn default() -> Self {
        Self { interval: Duration::from_secs(1), flows: FlowChoice::default() }
    }
}

impl WatchOptions {
    /// Returns the selection of sampled flows. `owners` has the owner of each template.
    pub(in crate::emulation) fn followed(&self, owners: &[TemplateOwner]) -> SampleOptions {
        self.flows.options(owners)
    }
}

/// Time series, sampled flows and end of the load of a port's endpoint.
#[derive(Clone, Debug)]
pub(in crate::emulation) struct FlowWatch {
    pub(in crate::emulation) timeline: Timeline,
    load: LoadWatch,
    followed: SampledFlows,
}

impl FlowWatch {
    /// Starts the observation of an endpoint with this number of templates at `start`.
    pub(in crate::emulation) fn new(
        options: &WatchOptions,
        templates: usize,
        intervals_max: usize,
        start: Instant,
    ) -> Self {
        Self {
            timeline: Timeline::new(start, options.interval, intervals_max, templates),
            load: LoadWatch { begun: 0, end: start, due: start, last: start },
            followed: SampledFlows::new(&options.flows, start, intervals_max),
        }
    }

    /// Updates the observation. Call it before the endpoint's iteration at `now`.
    #[inline]
    pub(in crate::emulation) fn update(&mut self, now: Instant, endpoint: &Endpoint) {
        let is_end = self.timeline.update(now, endpoint);
        self.followed.update(now, endpoint, is_end);
        self.load.look(now, endpoint);
    }

    /// Returns the time of the final update; the start if there is none yet.
    pub(in crate::emulation) fn end(&self) -> Instant {
        self.timeline.end()
    }

    /// Extends the series to `end` without further activity, if that is later.
    pub(in crate::emulation) fn extend(&mut self, end: Instant) {
        self.timeline.extend(end);
    }

    /// Records the final state. Call it after the last iteration.
    pub(in crate::emulation) fn finish(&mut self, now: Instant, endpoint: &Endpoint) {
        self.load.due = now;
        self.load.look(now, endpoint);
        self.load.end = self.load.end.max(endpoint.load_end().unwrap_or(self.load.end));
        self.timeline.finish(now, endpoint);
        self.followed.update(now, endpoint, true);
    }

    /// Returns the time until which loads, programs or peers started flows. It includes the last
    /// interval of a rate.
    pub(in crate::emulation) fn load_end(&self) -> Instant {
        self.load.end
    }

    /// Returns the reports of the sampled flows. `owners` has the owner of each template.
    pub(in crate::emulation) fn flows(&self, owners: &[TemplateOwner]) -> Vec<SampledFlow> {
        self.followed.reports(owners)
    }

    /// As [`Self::flows`], but with only the last sample of each flow.
    pub(in crate::emulation) fn flows_now(&self, owners: &[TemplateOwner]) -> Vec<SampledFlow> {
        self.followed.reports_now(owners)
    }
}

/// Detects the end of the load.
#[derive(Clone, Copy, Debug)]
struct LoadWatch {
    /// Number of flows that had started at the last check.
    begun: u64,
    /// End of the load so far.
    end: Instant,
    /// Time of the next check. A check iterates over all templates.
    due: Instant,
    /// Time of the previous iteration, by which flows that a check counts as new have started.
    last: Instant,
}

impl LoadWatch {
    /// Time between checks.
    const INTERVAL: Duration = Duration::from_millis(1);

    #[inline]
    fn look(&mut self, now: Instant, endpoint: &Endpoint) {
        let last = std::mem::replace(&mut self.last, now);
        if now < self.due {
            return;
        }
        self.due = now.saturating_add(Self::INTERVAL);
        let begun = endpoint.flows_started();
        if endpoint.makes_flows() {
            self.end = now;
        } else if begun != self.begun {
            self.end = last;
        }
        self.begun = begun;
    }
}
