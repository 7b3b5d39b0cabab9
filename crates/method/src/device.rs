//! Simulated device under test: a model of a forwarding device with known limits.
//!
//! ```text
//! offered load ──> [ queue of N frames ] ──> server of a capacity ──> received
//!                     overflow = loss          may recover late, may have noise
//! ```
//!
//! Each step is a fluid model: the queue fills at the difference of load and capacity. A trial of
//! any length costs the same few operations.

use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;
use crate::rfc9411::simulation::simulate;
use crate::trial::{
    CollectorOutput, ExportOutput, FlowAmount, Offer, OfferOutput, StepOutput, Trial, TrialError,
    TrialInput, TrialOutput,
};
use crate::{collector, flow_exporter, ndr};

/// Bytes of preamble, start delimiter and inter-packet gap.
const WIRE_OVERHEAD: f64 = 20.0;

/// Limits of a simulated device. The default has none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeviceModel {
    /// Largest rate in frames per second; infinite without a limit.
    pub frames_per_second: f64,
    /// Largest layer-1 rate in bit/s, layer 2 for connections; infinite without a limit.
    pub bits_per_second: f64,
    /// Largest layer-2 rate of each traffic in bit/s: a policer without burst; infinite without a
    /// limit.
    pub police_bps: f64,
    /// Frames that the device queues.
    pub queue: u64,
    /// The device drops each Nth frame; 0: none.
    pub drops_each: u64,
    /// Probability that a trial has a burst of loss of its own.
    pub noise: f64,
    /// Frames lost in such a burst.
    pub noise_frames: u64,
    /// Part of the capacity that the device has after an overload, 0 to 1.
    pub overload_capacity: f64,
    /// Time in seconds for which it has only this part.
    pub overload_s: f64,
    /// Whether the reduced capacity lasts until the load is below it: hysteresis.
    pub has_hysteresis: bool,
    /// Time between two trials in seconds.
    pub pause_s: f64,
    /// Time in seconds that a reset takes.
    pub reset_s: f64,
    /// Delay without a queue, in nanoseconds.
    pub delay_ns: u64,
    /// Largest rate of flows that the device exports, or of records that it stores, per second;
    /// infinite without a limit.
    pub flows_per_second: f64,
    /// Largest rate of new connections per second; infinite without a limit.
    pub connections_per_second: f64,
    /// Largest rate of transactions per second; infinite without a limit.
    pub transactions_per_second: f64,
    /// Largest number of concurrent connections; infinite without a limit.
    pub concurrent_connections: f64,
    /// Part of the connections that the device resets, 0 to 1.
    pub reset_ratio: f64,
    /// Variation of the forwarding rate of connections from second to second, 0 to 1.
    pub rate_variation: f64,
    /// Largest load that the generator reaches, in frames or connections per second; infinite without
    /// a limit.
    pub generator_max: f64,
    /// Seed of the noise.
    pub seed: u64,
}

impl Default for DeviceModel {
    fn default() -> Self {
        Self {
            frames_per_second: f64::INFINITY,
            bits_per_second: f64::INFINITY,
            police_bps: f64::INFINITY,
            queue: 0,
            drops_each: 0,
            noise: 0.0,
            noise_frames: 1,
            overload_capacity: 1.0,
            overload_s: 0.0,
            has_hysteresis: false,
            pause_s: 0.0,
            reset_s: 0.0,
            delay_ns: 10_000,
            flows_per_second: f64::INFINITY,
            connections_per_second: f64::INFINITY,
            transactions_per_second: f64::INFINITY,
            concurrent_connections: f64::INFINITY,
            reset_ratio: 0.0,
            rate_variation: 0.0,
            generator_max: f64::INFINITY,
            seed: 1,
        }
    }
}

impl DeviceModel {
    /// Returns the largest load without loss, in frames per second.
    pub fn capacity(&self, frame_size: Option<u32>) -> f64 {
        self.capacity_of_share(frame_size, 1.0)
    }

    /// Returns the largest load without loss of a traffic that has a share of the device. The
    /// policer limits each traffic on its own.
    fn capacity_of_share(&self, frame_size: Option<u32>, share: f64) -> f64 {
        let Some(size) = frame_size else { return self.frames_per_second * share };
        let bits = (f64::from(size) + WIRE_OVERHEAD) * 8.0;
        let shared = self.frames_per_second.min(self.bits_per_second / bits) * share;
        shared.min(self.police_bps / (f64::from(size) * 8.0))
    }
}

/// A simulated device and its state between trials.
#[derive(Clone, Debug)]
pub struct SimulatedDevice {
    model: DeviceModel,
    /// Virtual time in seconds.
    now_s: f64,
    /// End of the reduced capacity.
    reduced_until_s: f64,
    is_reduced: bool,
    random: u64,
    /// Frames since the start, for `drops_each`.
    frames: u64,
    /// Part of the device that the current traffic has, by its part of the load.
    share: f64,
    /// Whether the units of the current traffic are connections.
    is_connections: bool,
}

impl SimulatedDevice {
    /// Creates a device.
    pub fn new(model: DeviceModel) -> Self {
        let random = model.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Self {
            model,
            now_s: 0.0,
            reduced_until_s: 0.0,
            is_reduced: false,
            random,
            frames: 0,
            share: 1.0,
            is_connections: false,
        }
    }

    /// Returns the virtual time in seconds: the sum of all trials.
    pub const fn now_s(&self) -> f64 {
        self.now_s
    }

    /// Returns a random number from 0 to 1 (xorshift64*).
    fn random(&mut self) -> f64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns the capacity at this time for a load, in frames per second.
    fn capacity(&self, frame_size: Option<u32>, load: f64) -> f64 {
        let full = match self.is_connections {
            true => self.model.connections_per_second,
            false => self.model.capacity_of_share(frame_size, self.share),
        };
        let reduced = full * self.model.overload_capacity;
        let is_reduced = self.now_s < self.reduced_until_s || (self.is_reduced && load > reduced);
        if is_reduced { reduced } else { full }
    }

    /// Executes one step and returns its counters and the queue afterwards.
    fn step(&mut self, step: &StepInput) -> StepResult {
        let load = step.load.min(self.model.generator_max);
        let offered = (step.frames as f64 * load / step.load).floor() as u64;
        let seconds = step.frames as f64 / step.load;
        let model = &self.model;
        let room = model.queue as f64 - step.queued;
        let end_s = self.now_s + seconds;
        let mut capacity = self.capacity(step.frame_size, load);
        // The part of the step with a reduced capacity, then the rest.
        let reduced_s = (self.reduced_until_s.min(end_s) - self.now_s).clamp(0.0, seconds);
        let mut queued = step.queued;
        let mut lost = 0.0;
        let mut last_loss_s = None;
        let mut at_s = 0.0;
        for part_s in [reduced_s, seconds - reduced_s] {
            if part_s <= 0.0 {
                continue;
            }
            let excess = (load - capacity) * part_s;
            let after = queued + excess;
            if after > model.queue as f64 && excess > 0.0 {
                lost += after - (model.queue as f64).max(queued);
                last_loss_s = Some(at_s + part_s);
            }
            queued = after.clamp(0.0, model.queue as f64);
            at_s += part_s;
            self.now_s += part_s;
            capacity = self.capacity(step.frame_size, load);
        }
        let lost = (lost.ceil() as u64).min(offered);
        // An overload by less than a frame is none.
        let is_overloaded = lost > 0;
        if is_overloaded {
            if self.model.overload_s > 0.0 {
                self.reduced_until_s = end_s + self.model.overload_s;
            }
            self.is_reduced = self.model.has_hysteresis;
        } else if load <= self.model.capacity(step.frame_size) * self.model.overload_capacity {
            self.is_reduced = false;
        }
        let delay_s = if load > capacity { room.max(0.0) / capacity } else { 0.0 };
        StepResult { offered, lost, seconds, queued, last_loss_s, queue_delay_s: delay_s }
    }

    /// Returns the frames that the device drops besides an overload.
    fn other_loss(&mut self, offered: u64) -> u64 {
        let before = self.frames;
        self.frames += offered;
        let each = self.model.drops_each;
        let regular = |frames: u64| frames.checked_div(each).unwrap_or(0);
        let regular = regular(self.frames) - regular(before);
        let is_noisy = self.model.noise > 0.0 && self.random() < self.model.noise;
        regular + if is_noisy { self.model.noise_frames } else { 0 }
    }
}

/// Returns the received units of each second, spread evenly.
fn by_second(total: &StepOutput) -> Vec<u64> {
    let seconds = total.seconds.ceil().max(1.0) as u64;
    let until = |second: u64| {
        let part = (second as f64 / total.seconds.max(f64::MIN_POSITIVE)).min(1.0);
        (total.received as f64 * part).round() as u64
    };
    (0..seconds).map(|second| until(second + 1) - until(second)).collect()
}

/// Limits the received records to those that a collector with a capacity stores; returns what was
/// sent and stored.
fn collect(output: &mut OfferOutput, records_per_second: f64) -> CollectorOutput {
    for step in &mut output.steps {
        step.received = step.received.min((records_per_second * step.seconds) as u64);
    }
    let total = output.total();
    CollectorOutput {
        records: total.offered,
        stored: Some(total.received),
        ..CollectorOutput::default()
    }
}

/// Returns what a flow exporter with a capacity reports of flows of one packet.
fn export(offer: &OfferOutput, frame_size: Option<u32>, flows_per_second: f64) -> ExportOutput {
    let total = offer.total();
    // An IP packet has neither the Ethernet header nor the FCS.
    let bytes = u64::from(frame_size.unwrap_or(64)) - 18;
    let amount = |flows: u64| FlowAmount { flows, packets: flows, bytes: flows * bytes };
    let captured = total.offered.min((flows_per_second * total.seconds) as u64);
    ExportOutput {
        sent: amount(total.offered),
        captured: amount(captured),
        is_by_key: true,
        missing_flows: total.offered - captured,
        export_rate: Some(captured as f64 / total.seconds.max(1e-9)),
        protocol: "IPFIX".into(),
        records: captured,
        datagrams: captured.div_ceil(30),
        ..ExportOutput::default()
    }
}

struct StepInput {
    load: f64,
    frames: u64,
    frame_size: Option<u32>,
    queued: f64,
}

struct StepResult {
    offered: u64,
    lost: u64,
    seconds: f64,
    queued: f64,
    last_loss_s: Option<f64>,
    queue_delay_s: f64,
}

impl Trial for SimulatedDevice {
    fn run(&mut self, input: &TrialInput) -> Result<TrialOutput, TrialError> {
        let started_s = self.now_s;
        if let Some(connections) = &input.connections {
            self.now_s += input.duration().as_secs_f64() + self.model.pause_s;
            return Ok(simulate(&self.model, input, connections));
        }
        let mut offers = Vec::new();
        let (mut exported, mut collected) = (None, None);
        let bits = |offer: &Offer| {
            let load = offer.steps.first().map_or(0.0, |step| step.load as f64);
            load * (f64::from(offer.frame_size.unwrap_or(0)) + WIRE_OVERHEAD)
        };
        let all_bits: f64 = input.offers.iter().map(bits).sum();
        for offer in &input.offers {
            self.now_s = started_s;
            self.is_connections = ndr::is_connections(&offer.traffic);
            self.share = bits(offer) / all_bits.max(f64::MIN_POSITIVE);
            let mut queued = 0.0;
            let mut output = OfferOutput::default();
            for step in &offer.steps {
                let result = self.step(&StepInput {
                    load: step.load as f64,
                    frames: step.units(),
                    frame_size: offer.frame_size,
                    queued,
                });
                queued = result.queued;
                let delay_ns = self.model.delay_ns + (result.queue_delay_s * 1e9) as u64;
                let mut lost = result.lost + self.other_loss(result.offered);
                if self.is_connections {
                    lost += (result.offered as f64 * self.model.reset_ratio) as u64;
                }
                let mut last_loss_s = result.last_loss_s;
                if input.reset_after_s.is_some() && self.model.reset_s > 0.0 {
                    lost += (self.model.reset_s * step.load as f64) as u64;
                    output.outage_s = Some(self.model.reset_s);
                    last_loss_s = Some(self.model.reset_s);
                }
                let received = result.offered.saturating_sub(lost);
                output.steps.push(StepOutput {
                    intended: step.units(),
                    offered: result.offered,
                    received,
                    seconds: result.seconds,
                    last_loss_s: last_loss_s.filter(|_| lost > 0),
                    // Connections have no latency of frames.
                    delay: (!self.is_connections)
                        .then(|| Distribution::of(delay_ns as i64, received)),
                });
            }
            if input.counts_seconds {
                output.seconds.push(by_second(&output.total()));
            }
            if flow_exporter::is_traffic(&offer.traffic) {
                let rate = self.model.flows_per_second;
                exported = Some(export(&output, offer.frame_size, rate));
            }
            if collector::is_traffic(&offer.traffic) {
                collected = Some(collect(&mut output, self.model.flows_per_second));
            }
            offers.push(output);
        }
        let elapsed_s = input.duration().as_secs_f64();
        self.now_s = started_s + elapsed_s + self.model.pause_s;
        Ok(TrialOutput {
            offers,
            export: exported,
            collector: collected,
            elapsed_s,
            ..TrialOutput::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use wirestorm_base::time::Duration;

    use super::*;
    use crate::trial::{Length, Step, Traffic};

    fn trial(device: &mut SimulatedDevice, load: u64, length: Length) -> StepOutput {
        let traffic = Traffic { name: "ipv4".into(), frame_size: Some(64) };
        let output = device.run(&TrialInput::constant("test", &traffic, load, length)).unwrap();
        output.first().total()
    }

    fn seconds(seconds: u64) -> Length {
        Length::Time(Duration::from_secs(seconds))
    }

    #[test]
    fn loss_is_the_load_above_the_capacity() {
        let model = DeviceModel { frames_per_second: 1e6, ..DeviceModel::default() };
        let mut device = SimulatedDevice::new(model);
        assert_eq!(trial(&mut device, 1_000_000, seconds(10)).lost(), 0);
        assert_eq!(trial(&mut device, 1_200_000, seconds(10)).lost(), 2_000_000);
        assert_eq!(device.now_s(), 20.0);
    }

    #[test]
    fn queue_absorbs_a_burst() {
        let model = DeviceModel { frames_per_second: 1e6, queue: 1_000, ..DeviceModel::default() };
        let mut device = SimulatedDevice::new(model);
        // At twice the capacity, half of the frames wait.
        assert_eq!(trial(&mut device, 2_000_000, Length::Units(2_000)).lost(), 0);
        assert_eq!(trial(&mut device, 2_000_000, Length::Units(2_200)).lost(), 100);
    }

    #[test]
    fn capacity_by_bits_depends_on_the_frame_size() {
        let model = DeviceModel { bits_per_second: 1e9, ..DeviceModel::default() };
        assert_eq!(model.capacity(Some(64)).floor(), 1_488_095.0);
        assert_eq!(model.capacity(Some(1518)).floor(), 81_274.0);
    }

    #[test]
    fn policer_limits_each_traffic_and_the_capacity_is_shared() {
        let offers = |loads: [u64; 2]| {
            let offer = |load| Offer {
                traffic: "ipv4".into(),
                frame_size: Some(125),
                steps: vec![Step { load, length: seconds(10) }],
            };
            TrialInput::of_offers("test", loads.map(offer).to_vec())
        };
        let lost = |model: DeviceModel, loads| {
            let output = SimulatedDevice::new(model).run(&offers(loads)).unwrap();
            output.offers.iter().map(|offer| offer.total().lost()).collect::<Vec<_>>()
        };
        let policer = DeviceModel { police_bps: 1e6, ..DeviceModel::default() };
        assert_eq!(lost(policer, [1_000, 1_500]), [0, 5_000]);
        let shared = DeviceModel { frames_per_second: 2_000.0, ..DeviceModel::default() };
        assert_eq!(lost(shared, [1_000, 3_000]), [5_000, 15_000]);
    }

    #[test]
    fn regular_drops_continue_over_trials() {
        let model = DeviceModel { drops_each: 1_000, ..DeviceModel::default() };
        let mut device = SimulatedDevice::new(model);
        let lost: u64 = (0..4).map(|_| trial(&mut device, 500, seconds(1)).lost()).sum();
        assert_eq!(lost, 2);
    }

    #[test]
    fn device_recovers_late_after_an_overload() {
        let model = DeviceModel {
            frames_per_second: 1e6,
            overload_capacity: 0.5,
            overload_s: 10.0,
            ..DeviceModel::default()
        };
        let mut device = SimulatedDevice::new(model);
        assert_eq!(trial(&mut device, 800_000, seconds(5)).lost(), 0);
        trial(&mut device, 1_100_000, seconds(5));
        let next = trial(&mut device, 800_000, seconds(20));
        assert_eq!((next.lost(), next.last_loss_s.map(f64::round)), (3_000_000, None));
    }

    #[test]
    fn hysteresis_lasts_until_the_load_is_low() {
        let model = DeviceModel {
            frames_per_second: 1e6,
            overload_capacity: 0.5,
            has_hysteresis: true,
            ..DeviceModel::default()
        };
        let mut device = SimulatedDevice::new(model);
        trial(&mut device, 1_100_000, seconds(1));
        assert!(trial(&mut device, 900_000, seconds(1)).lost() > 0);
        assert_eq!(trial(&mut device, 400_000, seconds(1)).lost(), 0);
        assert_eq!(trial(&mut device, 900_000, seconds(1)).lost(), 0);
    }
}
