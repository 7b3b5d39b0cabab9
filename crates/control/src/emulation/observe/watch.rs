//! What is looked at while a port works: flows over time, and single ones.

use wirestorm_base::time::{Duration, Instant};
use wirestorm_stack::endpoint::{Endpoint, FollowOptions};

use super::owner::Owner;
use super::sampled_flows::{FlowChoice, Followed};
use super::timeline::Timeline;
use crate::result::SampledFlow;

/// What is to be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchOptions {
    /// How long the intervals are in which flows are told over time.
    pub interval: Duration,
    /// Which flows are followed.
    pub flows: FlowChoice,
}

impl Default for WatchOptions {
    /// Intervals of a second; no single flows.
    fn default() -> Self {
        Self { interval: Duration::from_secs(1), flows: FlowChoice::default() }
    }
}

impl WatchOptions {
    /// What an endpoint is told to follow; `owners`: of its templates.
    pub(in crate::emulation) fn followed(&self, owners: &[Owner]) -> FollowOptions {
        self.flows.options(owners)
    }
}

/// What was seen of a port's endpoint.
#[derive(Clone, Debug)]
pub(in crate::emulation) struct FlowWatch {
    pub(in crate::emulation) timeline: Timeline,
    load: LoadWatch,
    followed: Followed,
}

impl FlowWatch {
    /// Looks from a time on at so many templates, at `intervals_max` intervals at most.
    pub(in crate::emulation) fn new(
        options: &WatchOptions,
        templates: usize,
        intervals_max: usize,
        start: Instant,
    ) -> Self {
        Self {
            timeline: Timeline::new(start, options.interval, intervals_max, templates),
            load: LoadWatch { begun: 0, end: start, due: start, last: start },
            followed: Followed::new(&options.flows, start, intervals_max),
        }
    }

    /// Looks at an endpoint before it does what is to be done at a time.
    #[inline]
    pub(in crate::emulation) fn look(&mut self, now: Instant, endpoint: &Endpoint) {
        let is_end = self.timeline.look(now, endpoint);
        self.followed.look(now, endpoint, is_end);
        self.load.look(now, endpoint);
    }

    /// When the last look was.
    pub(in crate::emulation) fn end(&self) -> Instant {
        self.timeline.end()
    }

    /// Says that nothing was done until a time behind the last look.
    pub(in crate::emulation) fn extend(&mut self, end: Instant) {
        self.timeline.extend(end);
    }

    /// The last look, behind all that was done.
    pub(in crate::emulation) fn finish(&mut self, now: Instant, endpoint: &Endpoint) {
        self.load.due = now;
        self.load.look(now, endpoint);
        self.load.end = self.load.end.max(endpoint.load_end().unwrap_or(self.load.end));
        self.timeline.finish(now, endpoint);
        self.followed.look(now, endpoint, true);
    }

    /// Until when flows were made: by a load, its last interval included, by programs, or by peers.
    pub(in crate::emulation) fn load_end(&self) -> Instant {
        self.load.end
    }

    /// What was found out of flows that are followed.
    pub(in crate::emulation) fn flows(&self, owners: &[Owner]) -> Vec<SampledFlow> {
        self.followed.reports(owners)
    }

    /// The same, each with its last sample alone.
    pub(in crate::emulation) fn flows_now(&self, owners: &[Owner]) -> Vec<SampledFlow> {
        self.followed.reports_now(owners)
    }
}

/// Until when flows are made.
#[derive(Clone, Copy, Debug)]
struct LoadWatch {
    /// How many had begun when it looked last.
    begun: u64,
    end: Instant,
    /// When it looks again: all templates are to be asked.
    due: Instant,
    /// When it was shown the endpoint last: what has begun since did so then.
    last: Instant,
}

impl LoadWatch {
    const INTERVAL: Duration = Duration::from_millis(1);

    #[inline]
    fn look(&mut self, now: Instant, endpoint: &Endpoint) {
        let last = std::mem::replace(&mut self.last, now);
        if now < self.due {
            return;
        }
        self.due = now.saturating_add(Self::INTERVAL);
        let begun = endpoint.flows_begun();
        if endpoint.makes_flows() {
            self.end = now;
        } else if begun != self.begun {
            self.end = last;
        }
        self.begun = begun;
    }
}
