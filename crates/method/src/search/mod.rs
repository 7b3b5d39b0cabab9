//! Searches for the largest load that a device handles.

pub mod bisection;
pub mod classification;
pub mod mlrsearch;

use wirestorm_base::time::Duration;

use crate::trial::{TrialError, TrialOutput};

/// One measurement of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement {
    /// Intended load of each transmitting interface, in units per second.
    pub load: u64,
    /// Trial Duration (RFC 9971): the time in which the load is offered.
    pub duration: Duration,
    /// Trial Loss Ratio.
    pub loss_ratio: f64,
    /// Part of the loss ratio that the tester caused: units that the generator did not send, or that
    /// its receiver dropped.
    pub tester_ratio: f64,
}

impl Measurement {
    /// Reads the output of a trial with one offer.
    pub fn new(load: u64, duration: Duration, output: &TrialOutput) -> Self {
        let total = output.first().total();
        let by_tester = total.unsent() + output.receiver_dropped.min(total.lost());
        let tester_ratio = by_tester as f64 / total.intended.max(1) as f64;
        Self { load, duration, loss_ratio: total.loss_ratio(), tester_ratio }
    }

    /// Returns whether the tester caused all of the loss: the device may handle more.
    pub fn is_tester_limited(&self) -> bool {
        self.tester_ratio > 0.0 && self.loss_ratio <= self.tester_ratio * 1.000_001
    }

    /// Returns the units per second of each interface that arrived: the Trial Forwarding Rate.
    pub fn forwarding_rate(&self) -> f64 {
        self.load as f64 * (1.0 - self.loss_ratio)
    }
}

/// Executes a trial with a load over a time.
pub type Measure<'a> = dyn FnMut(u64, Duration) -> Result<Measurement, TrialError> + 'a;

/// Returns whether two loads are within a relative width: their difference is at most `width` of
/// the upper one, or one unit per second.
pub(crate) fn is_within(lower: u64, upper: u64, width: f64) -> bool {
    let difference = upper.saturating_sub(lower);
    difference <= 1 || difference as f64 <= width * upper as f64
}
