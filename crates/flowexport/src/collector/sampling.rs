//! Sampling intervals that exporters report in options data.

use alloc::vec::Vec;

use crate::layout::ReportedSampling;

/// Samplers of a domain that are remembered.
const SAMPLERS_MAX: usize = 64;

/// Sampling intervals of a domain.
#[derive(Debug, Default)]
pub(crate) struct Sampling {
    /// Interval of the domain; 0 if unknown.
    interval: u32,
    /// Identifiers of samplers with their intervals.
    samplers: Vec<(u64, u32)>,
}

impl Sampling {
    /// Sampling with one interval; 0 if it is unknown.
    pub(crate) const fn of(interval: u32) -> Self {
        Self { interval, samplers: Vec::new() }
    }

    /// Returns the interval of a record; 0 if unknown.
    #[inline]
    pub(crate) fn interval(&self, sampler: Option<u64>) -> u32 {
        let known = |id| self.samplers.iter().find(|sampler| sampler.0 == id);
        sampler.and_then(known).map_or(self.interval, |sampler| sampler.1)
    }

    /// Remembers what options data reports; `false` if there are too many samplers.
    pub(crate) fn learn(&mut self, reported: ReportedSampling) -> bool {
        let ReportedSampling { sampler, interval } = reported;
        if interval == 0 {
            return true;
        }
        let Some(id) = sampler else {
            self.interval = interval;
            return true;
        };
        if let Some(known) = self.samplers.iter_mut().find(|known| known.0 == id) {
            known.1 = interval;
            return true;
        }
        if self.samplers.len() == SAMPLERS_MAX {
            return false;
        }
        self.samplers.push((id, interval));
        true
    }
}
