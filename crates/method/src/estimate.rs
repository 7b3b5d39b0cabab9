//! Plan and remaining time of a method, without sending.
//!
//! The method runs on the recorded trials, then on a model of the device. The model's capacity
//! follows from the recorded loss; without any, it is half of the largest load.

use crate::connections::LoadUnit;
use crate::device::{DeviceModel, SimulatedDevice};
use crate::method::Method;
use crate::recorded::Recorded;
use crate::rfc9411::Targets;
use crate::trial::{Trial, TrialError, TrialInput, TrialOutput};

/// Largest number of trials that an estimate follows. A method with more is longer than a year.
const TRIALS_MAX: usize = 1_000_000;

/// Returns the trials that a method would still execute after the recorded ones. What a search
/// needs depends on the device, so this is an estimate. `capacity` is the capacity of the assumed
/// device as a fraction of the largest load; recorded loss takes precedence.
pub fn remaining(
    method: &Method,
    records: &[(TrialInput, TrialOutput)],
    capacity: f64,
) -> Vec<TrialInput> {
    let targets = match method {
        Method::Rfc9411(method) => method.targets,
        _ => Targets::default(),
    };
    // A sweep offers its largest load last.
    let load_least = match method {
        Method::Collector(method) => method.rates.iter().copied().max(),
        Method::FlowExporter(method) => method.rates.iter().copied().max(),
        _ => None,
    };
    let load_least = load_least.unwrap_or(0);
    let model = Model { records, capacity, targets, planned: Vec::new(), load_max: 0, load_least };
    let mut trial = Recorded::new(records.iter().cloned(), model);
    // A record of other parameters ends the estimate; the run itself reports it.
    let (_, _outcome) = method.run(&mut trial);
    trial.into_rest().planned
}

/// Assumed device.
struct Model<'a> {
    records: &'a [(TrialInput, TrialOutput)],
    capacity: f64,
    /// Largest loads of connections, which a method does not offer first.
    targets: Targets,
    planned: Vec<TrialInput>,
    load_max: u64,
    /// Smallest `load_max`.
    load_least: u64,
}

impl Model<'_> {
    /// Returns the rate of one interface that the device forwards, from the recorded trial with
    /// loss of the same frame size, or else of any size.
    fn capacity(&mut self, input: &TrialInput) -> f64 {
        let size = |input: &TrialInput| input.offers.first().and_then(|offer| offer.frame_size);
        let forwarded = |(input, output): &(TrialInput, TrialOutput)| {
            let step = input.offers.first()?.steps.first()?;
            let total = output.offers.first()?.steps.first()?;
            let ratio = total.loss_ratio();
            (ratio > 0.0).then_some(step.load as f64 * (1.0 - ratio))
        };
        let all = || self.records.iter().rev();
        let same = all().filter(|record| size(&record.0) == size(input)).find_map(forwarded);
        let load = input.offers.iter().flat_map(|offer| &offer.steps).map(|step| step.load).max();
        self.load_max = self.load_max.max(load.unwrap_or(0));
        let any = same.or(all().find_map(forwarded));
        any.unwrap_or(self.load_max as f64 * self.capacity)
    }
}

impl Model<'_> {
    /// Returns the device that is assumed for a trial of connections. It limits only the unit of the
    /// load.
    fn device(&self, input: &TrialInput, unit: LoadUnit) -> DeviceModel {
        let traffic = |input: &TrialInput| input.offers.first().map(|it| it.traffic.clone());
        let forwarded = |(recorded, output): &(TrialInput, TrialOutput)| {
            let is_same = recorded.test == input.test && traffic(recorded) == traffic(input);
            let load = recorded.offers.first()?.steps.first()?.load;
            let ratio = output.offers.first()?.total().loss_ratio();
            (is_same && ratio > 0.0).then_some(load as f64 * (1.0 - ratio))
        };
        let recorded = self.records.iter().rev().find_map(forwarded);
        let limit = |target: Option<u64>| {
            recorded.or(target.map(|target| target as f64 * self.capacity)).unwrap_or(f64::INFINITY)
        };
        let Targets { connections_per_s, throughput_bps, concurrent } = self.targets;
        let model = DeviceModel::default();
        match unit {
            LoadUnit::ConnectionsPerSecond => {
                DeviceModel { connections_per_second: limit(connections_per_s), ..model }
            }
            LoadUnit::BitsPerSecond => {
                DeviceModel { bits_per_second: limit(throughput_bps), ..model }
            }
            LoadUnit::ConcurrentConnections => {
                DeviceModel { concurrent_connections: limit(concurrent), ..model }
            }
        }
    }
}

impl Trial for Model<'_> {
    fn run(&mut self, input: &TrialInput) -> Result<TrialOutput, TrialError> {
        if self.planned.len() >= TRIALS_MAX {
            return Err(TrialError::Stopped);
        }
        if let Some(connections) = &input.connections {
            let device = self.device(input, connections.unit);
            self.planned.push(input.clone());
            return SimulatedDevice::new(device).run(input);
        }
        let is_first_of_size = self.planned.last().is_none_or(|last| {
            let size = |input: &TrialInput| input.offers.first().and_then(|it| it.frame_size);
            size(last) != size(input)
        });
        if is_first_of_size {
            self.load_max = self.load_least;
        }
        let units_per_second = self.capacity(input);
        self.planned.push(input.clone());
        let model = DeviceModel {
            frames_per_second: units_per_second,
            connections_per_second: units_per_second,
            flows_per_second: units_per_second,
            ..DeviceModel::default()
        };
        SimulatedDevice::new(model).run(input)
    }
}
