//! Methods on simulated devices with known limits.

mod collector;
mod estimate;
mod flow_exporter;
mod mlrsearch;
mod ndr;
mod recorded;
mod rfc2544;
mod rfc9411;
mod y1564;

use wirestorm_method::device::{DeviceModel, SimulatedDevice};
use wirestorm_method::trial::{Trial, TrialError, TrialInput, TrialOutput};

/// Counts trials and their seconds.
struct Counted<T> {
    trial: T,
    trials: Vec<(TrialInput, TrialOutput)>,
}

impl Counted<SimulatedDevice> {
    fn new(model: DeviceModel) -> Self {
        Self { trial: SimulatedDevice::new(model), trials: Vec::new() }
    }
}

impl<T> Counted<T> {
    fn seconds(&self) -> f64 {
        self.trials.iter().map(|(input, _)| input.duration().as_secs_f64()).sum()
    }
}

impl<T: Trial> Trial for Counted<T> {
    fn run(&mut self, input: &TrialInput) -> Result<TrialOutput, TrialError> {
        let output = self.trial.run(input)?;
        self.trials.push((input.clone(), output.clone()));
        Ok(output)
    }
}

/// Stops before a trial.
struct StopBefore<T> {
    trial: T,
    left: usize,
}

impl<T: Trial> Trial for StopBefore<T> {
    fn run(&mut self, input: &TrialInput) -> Result<TrialOutput, TrialError> {
        self.left = self.left.checked_sub(1).ok_or(TrialError::Stopped)?;
        self.trial.run(input)
    }
}
