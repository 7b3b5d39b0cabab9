//! Searches for the largest load that a device handles.

pub mod bisection;
pub mod classification;
pub mod mlrsearch;

use wirestorm_base::time::Duration;

use crate::trial::{StepOutput, TrialError};

/// One measurement of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement {
    /// Intended load of each transmitting interface, in units per second.
    pub load: u64,
    /// Trial Duration (RFC 9971): the time in which the load is offered.
    pub duration: Duration,
    /// Trial Loss Ratio.
    pub loss_ratio: f64,
    /// Share of the intended load that the generator did not send.
    pub unsent_ratio: f64,
}

impl Measurement {
    /// Reads the output of a trial.
    pub fn new(load: u64, duration: Duration, output: &StepOutput) -> Self {
        let unsent_ratio = output.unsent() as f64 / output.intended.max(1) as f64;
        Self { load, duration, loss_ratio: output.loss_ratio(), unsent_ratio }
    }

    /// Returns whether the generator fell short of the load, and the device lost nothing of what it
    /// sent.
    pub fn is_generator_limited(&self) -> bool {
        self.unsent_ratio > 0.0 && self.loss_ratio <= self.unsent_ratio
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
