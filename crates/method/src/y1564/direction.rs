//! Figures of one direction, and their acceptance.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Criteria, megabits};
use crate::trial::StepOutput;

/// Quantile of the delay for the frame delay variation.
const FDV_QUANTILE: f64 = 0.999;

/// Result of one direction of a service in a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Y1564Direction {
    /// Interfaces that send and receive, such as `eth1 > eth2`; empty for all together.
    pub direction: String,
    /// Information rate received, in bit/s of layer 2.
    pub ir_bps: f64,
    /// Frames sent.
    pub offered: u64,
    /// Frames received.
    pub received: u64,
    /// Frame loss ratio, 0 to 1.
    pub flr: f64,
    /// Frame transfer delay in nanoseconds: minimum; null if it was not measured.
    pub ftd_min_ns: Option<i64>,
    /// Mean; null if it was not measured.
    pub ftd_mean_ns: Option<f64>,
    /// Maximum; null if it was not measured.
    pub ftd_max_ns: Option<i64>,
    /// Frame delay variation in nanoseconds; null if it was not measured.
    pub fdv_ns: Option<i64>,
    /// Seconds of the performance test in which at least half of the frames arrived, as a fraction of
    /// all; null in the configuration test.
    pub availability: Option<f64>,
    /// Reasons why the direction failed; empty if it passed.
    pub failures: Vec<String>,
}

impl Y1564Direction {
    /// Creates the figures of a direction, not yet judged. `load_bps` is its load in bit/s of
    /// layer 2.
    pub(super) fn new(direction: &str, load_bps: f64, total: &StepOutput) -> Self {
        let delay = total.delay.as_ref().filter(|delay| delay.count > 0);
        let late = delay.and_then(|delay| delay.quantile(FDV_QUANTILE));
        Self {
            direction: direction.to_owned(),
            ir_bps: load_bps * total.received as f64 / total.intended.max(1) as f64,
            offered: total.offered,
            received: total.received,
            flr: total.lost() as f64 / total.offered.max(1) as f64,
            ftd_min_ns: delay.map(|delay| delay.min_ns),
            ftd_mean_ns: delay.map(|delay| delay.mean_ns),
            ftd_max_ns: delay.map(|delay| delay.max_ns),
            fdv_ns: delay.zip(late).map(|(delay, late)| late - delay.min_ns),
            availability: None,
            failures: Vec::new(),
        }
    }

    /// Returns whether the direction passed.
    pub fn is_passed(&self) -> bool {
        self.failures.is_empty()
    }

    /// Judges the frames of a load within the CIR.
    pub(super) fn judge_criteria(&mut self, criteria: &Criteria) {
        let percent = |part: f64| format!("{:.4} %", part * 100.0);
        if self.flr > criteria.flr {
            self.failures.push(format!(
                "FLR {}, at most {}",
                percent(self.flr),
                percent(criteria.flr)
            ));
        }
        let ms = |ns: f64| format!("{:.3} ms", ns / 1e6);
        let mut at_most = |name: &str, found: Option<f64>, limit_s: Option<f64>| {
            let Some(limit_ns) = limit_s.map(|limit| limit * 1e9) else { return };
            match found {
                Some(found) if found <= limit_ns => {}
                Some(found) => {
                    self.failures.push(format!("{name} {}, at most {}", ms(found), ms(limit_ns)));
                }
                None => self.failures.push(format!("{name} was not measured")),
            }
        };
        at_most("FTD", self.ftd_mean_ns, criteria.ftd_s);
        at_most("FDV", self.fdv_ns.map(|ns| ns as f64), criteria.fdv_s);
        if let (Some(found), Some(limit)) = (self.availability, criteria.availability)
            && found < limit
        {
            self.failures.push(format!(
                "availability {}, at least {}",
                percent(found),
                percent(limit)
            ));
        }
    }

    /// Judges the information rate of a load above the CIR by its limits in bit/s.
    pub(super) fn judge_rate(&mut self, least: f64, most: f64) {
        if self.ir_bps < least {
            self.failures.push(format!(
                "IR {} is below the CIR: at least {}",
                megabits(self.ir_bps),
                megabits(least)
            ));
        }
        if self.ir_bps > most {
            self.failures.push(format!(
                "IR {} is above CIR + EIR: at most {}",
                megabits(self.ir_bps),
                megabits(most)
            ));
        }
    }

    /// Fails a direction whose load the tester did not reach.
    pub(super) fn judge_tester(&mut self, total: &StepOutput) {
        let unsent = total.unsent();
        if unsent > 0 {
            let percent = unsent as f64 * 100.0 / total.intended.max(1) as f64;
            self.failures.push(format!("the tester did not send {percent:.3} % of the load"));
        }
    }
}
