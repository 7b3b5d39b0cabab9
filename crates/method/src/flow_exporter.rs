//! Test of a flow exporter (RFC 6645): flows sent against flows captured.
//!
//! ```text
//! flows/s ──> device ──> records ──> collector      captured < sent: loss begins
//! ```
//!
//! A sweep measures a list of rates. A search finds the Flow Monitoring Throughput: the largest
//! Flow Export Rate at which the device loses neither a flow nor a packet.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirestorm_base::time::Duration;

use crate::search::Measurement;
use crate::search::bisection::Bisection;
use crate::seconds;
use crate::trial::{
    ExportOutput, FlowAmount, Length, Traffic, Trial, TrialError, TrialInput, TrialOutput,
};

/// Traffic of one packet for each flow (RFC 6645 section 5.2).
pub const FLOWS: &str = "flows";
/// Traffic of a capture, with new addresses in each pass.
pub const CAPTURE: &str = "capture";

/// Returns whether a name of traffic is that of a flow exporter test.
pub fn is_traffic(name: &str) -> bool {
    [FLOWS, CAPTURE].contains(&name)
}

/// Parameters of the method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FlowExporter {
    /// Rates of the sweep in flows per second, ascending.
    pub rates: Vec<u64>,
    /// Whether to search the Flow Monitoring Throughput between the smallest and the largest rate.
    pub searches: bool,
    /// Resolution of the search: difference of the bounds as a fraction of the upper one.
    pub resolution: f64,
    /// Traffic: `flows` or `capture`.
    pub traffic: String,
    /// Frame size in bytes with FCS; null for a capture.
    pub frame_size: Option<u32>,
    /// Duration of the traffic of a trial in seconds.
    #[serde(rename = "trial_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub trial: Duration,
    /// Idle Timeout of the device in seconds.
    #[serde(rename = "idle_timeout_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub idle_timeout: Duration,
    /// Active Timeout of the device in seconds; null if it is unknown.
    pub active_timeout_s: Option<f64>,
    /// Cache Size of the device in flows; null if it is unknown.
    pub cache_size: Option<u64>,
}

/// Findings of the method.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FlowExporterFindings {
    /// Points of the sweep and the search, ascending by rate.
    pub points: Vec<FlowPoint>,
    /// Largest rate below all rates with loss, in flows per second: the Flow Monitoring Throughput
    /// if the search found it. Null if all rates lost flows.
    pub throughput: Option<u64>,
    /// Smallest rate with loss, in flows per second; null if no rate lost flows.
    pub loss_begins: Option<u64>,
    /// Whether the search is complete.
    pub is_searched: bool,
}

/// Result of one trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FlowPoint {
    /// Intended rate in flows per second.
    pub load: u64,
    /// Flows sent per second.
    pub sent_per_s: f64,
    /// Flows captured per second of traffic.
    pub captured_per_s: f64,
    /// Packets sent per second.
    pub packets_per_s: f64,
    /// Bit rate of the IP packets sent, in bit/s.
    pub bps_ip: f64,
    /// Lost flows in percent of the sent ones.
    pub flow_loss_percent: f64,
    /// Packets of the sent flows that no record reports, in percent.
    pub packet_loss_percent: f64,
    /// Duration of the traffic in seconds.
    pub seconds: f64,
    /// Whether the device lost nothing.
    pub is_lossless: bool,
    /// Whether the tester failed: its generator did not reach the rate, or its collector dropped
    /// export packets.
    pub is_tester_limited: bool,
    /// What was sent and reported.
    pub export: ExportOutput,
}

impl FlowExporter {
    /// Runs the sweep and the search. After an error, `findings` has the points that were complete.
    ///
    /// # Errors
    /// Returns the first error of a trial.
    pub fn run(
        &self,
        trial: &mut dyn Trial,
        findings: &mut FlowExporterFindings,
    ) -> Result<(), TrialError> {
        for &rate in &self.rates {
            let point = self.measure("sweep", rate, trial)?;
            findings.add(point);
        }
        if self.searches && self.rates.len() > 1 {
            self.search(trial, findings)?;
        }
        Ok(())
    }

    fn measure(
        &self,
        test: &str,
        rate: u64,
        trial: &mut dyn Trial,
    ) -> Result<FlowPoint, TrialError> {
        let traffic = Traffic { name: self.traffic.clone(), frame_size: self.frame_size };
        let input = TrialInput::constant(test, &traffic, rate, Length::Time(self.trial));
        FlowPoint::new(rate, trial.run(&input)?)
    }

    /// Searches between the rates of the sweep where loss begins.
    fn search(
        &self,
        trial: &mut dyn Trial,
        findings: &mut FlowExporterFindings,
    ) -> Result<(), TrialError> {
        let (Some(lower), Some(upper)) = (findings.throughput, findings.loss_begins) else {
            // All rates lost flows, or none did: the throughput is outside the sweep.
            return Ok(());
        };
        let search = Bisection::between(lower, upper, self.resolution, self.trial);
        search.search(&mut |load, duration| {
            let known = findings.points.iter().find(|point| point.load == load).cloned();
            let point = match known {
                Some(point) => point,
                None => self.measure("search", load, trial)?,
            };
            let loss_ratio = if point.is_lossless { 0.0 } else { point.loss_ratio() };
            findings.add(point);
            Ok(Measurement { load, duration, loss_ratio, tester_ratio: 0.0 })
        })?;
        findings.is_searched = true;
        Ok(())
    }

    /// Returns the differences of the parameters from what RFC 6645 requires.
    pub fn deviations(&self) -> Vec<String> {
        let mut deviations = Vec::new();
        if self.trial.as_nanos() < self.idle_timeout.as_nanos().saturating_mul(2) {
            deviations.push(format!(
                "trial duration: {} s, RFC 6645 section 5.2 requires twice the Idle Timeout of {} s",
                self.trial.as_secs_f64(),
                self.idle_timeout.as_secs_f64()
            ));
        }
        let flows = self.rates.first().map(|rate| *rate as f64 * self.trial.as_secs_f64());
        match (self.cache_size, flows) {
            (None, _) => deviations.push(
                "the Cache Size is unknown, RFC 6645 section 5.1 requires it; give it with \
                 --cache-size"
                    .into(),
            ),
            (Some(cache), Some(flows)) if flows < cache as f64 => deviations.push(format!(
                "the smallest rate creates {flows:.0} flows in a trial, RFC 6645 section 5.2 \
                 recommends more than the Cache Size of {cache}"
            )),
            _ => {}
        }
        if self.traffic == CAPTURE {
            deviations.push(
                "traffic: a capture instead of one packet for each flow of RFC 6645 section 5.2"
                    .into(),
            );
        }
        deviations
    }
}

impl FlowPoint {
    fn new(load: u64, output: TrialOutput) -> Result<Self, TrialError> {
        let missing = || TrialError::Failed("expected the counters of a collector".into());
        let total = output.first().total();
        let export = output.export.ok_or_else(missing)?;
        let seconds = total.seconds.max(1e-9);
        let FlowAmount { flows, packets, bytes } = export.sent;
        let captured = export.captured;
        let percent = |lost: u64, of: u64| lost as f64 * 100.0 / of.max(1) as f64;
        let lost_flows = flows.saturating_sub(captured.flows);
        let lost_packets = packets.saturating_sub(captured.packets);
        let forwarded = export.forwarding_lost.unwrap_or(0) == 0;
        Ok(Self {
            load,
            sent_per_s: flows as f64 / seconds,
            captured_per_s: captured.flows as f64 / seconds,
            packets_per_s: packets as f64 / seconds,
            bps_ip: bytes as f64 * 8.0 / seconds,
            flow_loss_percent: percent(lost_flows, flows),
            packet_loss_percent: percent(lost_packets, packets),
            seconds,
            is_lossless: lost_flows == 0 && lost_packets == 0 && forwarded && flows > 0,
            is_tester_limited: total.unsent() > 0 || export.collector_dropped > 0,
            export,
        })
    }

    /// Returns the largest loss of flows, packets and forwarded packets, as a fraction above 0.
    fn loss_ratio(&self) -> f64 {
        let forwarding = self.export.forwarding_lost.unwrap_or(0) as f64
            / self.export.sent.packets.max(1) as f64;
        let percent = self.flow_loss_percent.max(self.packet_loss_percent);
        (percent / 100.0).max(forwarding).max(f64::MIN_POSITIVE)
    }
}

impl FlowExporterFindings {
    /// Adds a point and finds the place where loss begins.
    fn add(&mut self, point: FlowPoint) {
        let mut points: BTreeMap<u64, FlowPoint> =
            self.points.drain(..).map(|point| (point.load, point)).collect();
        points.insert(point.load, point);
        self.points = points.into_values().collect();
        let lossy = self.points.iter().find(|point| !point.is_lossless);
        self.loss_begins = lossy.map(|point| point.load);
        let below = self.points.iter().take_while(|point| point.is_lossless);
        self.throughput = below.last().map(|point| point.load);
    }

    /// Returns what a reader must know before the figures.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let limited: Vec<_> = self.points.iter().filter(|point| point.is_tester_limited).collect();
        if let Some(first) = limited.first() {
            warnings.push(format!(
                "the tester failed at {} of {} rates, first at {} flows/s: its generator did not \
                 reach the rate, or its collector dropped export packets",
                limited.len(),
                self.points.len(),
                first.load
            ));
        }
        let unknown: u64 = self.points.iter().map(|point| point.export.unknown_template_sets).sum();
        if unknown > 0 {
            warnings.push(format!(
                "{unknown} sets of records had no template: restart the exporter, or wait for its \
                 templates"
            ));
        }
        if self.points.iter().any(|point| !point.export.is_by_key) {
            warnings.push(
                "some trials have too many flows to compare each: their figures sum all records"
                    .into(),
            );
        }
        if !self.points.is_empty() && self.points.iter().all(|point| point.export.records == 0) {
            warnings.push(
                "no records arrived: check the address of the collector in the configuration of \
                 the exporter"
                    .into(),
            );
        }
        warnings
    }
}
