//! Test of a collector: records that emulated flow exporters send against records that it stores.
//!
//! ```text
//! exporters ──> records/s ──> collector ──> stored      stored < sent: loss begins
//! ```
//!
//! Without a count of the stored records, a sweep only reports what was sent.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirestorm_base::time::Duration;

use crate::repeating::Repeating;
use crate::search::Measurement;
use crate::search::bisection::Bisection;
use crate::seconds;
use crate::trial::{
    CollectorOutput, Length, StreamSent, Traffic, Trial, TrialError, TrialInput, TrialOutput,
};

/// Protocols of the exporters: NetFlow v5, NetFlow v9, IPFIX and sFlow v5.
pub const PROTOCOLS: [&str; 4] = ["v5", "v9", "ipfix", "sflow"];

/// Delay behind the schedule from which a warning names the burst that follows, in seconds.
const LATE_MAX_S: f64 = 0.02;

/// Returns whether a name of traffic is that of a collector test.
pub fn is_traffic(name: &str) -> bool {
    PROTOCOLS.contains(&name)
}

/// Parameters of the method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Collector {
    /// Rates of the sweep in records per second of all exporters, ascending.
    pub rates: Vec<u64>,
    /// Whether to search the largest rate without loss, between the rates.
    pub searches: bool,
    /// Resolution of the search: difference of the bounds as a fraction of the upper one.
    pub resolution: f64,
    /// Protocol: `v5`, `v9`, `ipfix` or `sflow`.
    pub protocol: String,
    /// IP version of the flows: `ipv4`, `ipv6` or `both`.
    pub family: String,
    /// Number of exporters.
    pub exporters: u32,
    /// Observation domains, source identifiers, engines or sub-agents of each exporter.
    pub domains: u32,
    /// Flows of a stream before its keys repeat; 0 if no key repeats.
    pub flows_per_stream: u64,
    /// Longest datagram in bytes, without UDP and IP.
    pub datagram_length_max: u32,
    /// Time after which templates are sent again, in seconds.
    #[serde(rename = "template_refresh_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub template_refresh: Duration,
    /// Datagrams of a stream after which its templates are sent again; 0 for never.
    pub template_refresh_datagrams: u32,
    /// Duration of a trial in seconds.
    #[serde(rename = "trial_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub trial: Duration,
}

/// Findings of the method.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CollectorFindings {
    /// Points of the sweep and the search, ascending by rate.
    pub points: Vec<CollectorPoint>,
    /// Largest rate below all rates with loss, in records per second. Null if the stored records
    /// are unknown, or if all rates lost records.
    pub throughput: Option<u64>,
    /// Smallest rate with loss, in records per second; null if no rate lost records.
    pub loss_begins: Option<u64>,
    /// Whether the search is complete.
    pub is_searched: bool,
    /// What each stream sent in all trials, repeated trials included. The sequence numbers of a
    /// resumed run start again.
    pub streams: Vec<StreamSent>,
}

/// Result of one trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CollectorPoint {
    /// Intended rate in records per second.
    pub load: u64,
    /// Records sent per second.
    pub sent_per_s: f64,
    /// Datagrams sent per second.
    pub datagrams_per_s: f64,
    /// Bit rate of the datagrams without UDP and IP, in bit/s.
    pub bps: f64,
    /// Sent records that the collector did not store, in percent; null if the stored records are
    /// unknown.
    pub loss_percent: Option<f64>,
    /// Duration of the traffic in seconds.
    pub seconds: f64,
    /// Whether the collector stored all sent records; null if the stored records are unknown.
    pub is_lossless: Option<bool>,
    /// Whether the exporters did not reach the rate.
    pub is_tester_limited: bool,
    /// What was sent and stored. Its streams are in the records of the trials.
    pub collector: CollectorOutput,
}

impl Collector {
    /// Runs the sweep and the search. After an error, `findings` has the points that were complete.
    /// A trial that the tester spoiled is repeated, at most twice.
    ///
    /// # Errors
    /// Returns the first error of a trial.
    pub fn run(
        &self,
        trial: &mut dyn Trial,
        findings: &mut CollectorFindings,
    ) -> Result<(), TrialError> {
        let mut summing = Summing { trial, streams: BTreeMap::new() };
        let outcome = self.sweep(&mut summing, findings);
        findings.streams = summing.streams.into_values().collect();
        outcome
    }

    fn sweep(
        &self,
        trial: &mut dyn Trial,
        findings: &mut CollectorFindings,
    ) -> Result<(), TrialError> {
        let trial = &mut Repeating::new(trial);
        for &rate in &self.rates {
            let (point, _) = self.measure("sweep", rate, trial)?;
            findings.add(point);
        }
        if self.searches {
            self.search(trial, findings)?;
        }
        Ok(())
    }

    /// Returns the point of a trial, and its loss ratio with the unsent records.
    fn measure(
        &self,
        test: &str,
        rate: u64,
        trial: &mut dyn Trial,
    ) -> Result<(CollectorPoint, f64), TrialError> {
        let traffic = Traffic { name: self.protocol.clone(), frame_size: None };
        let input = TrialInput::constant(test, &traffic, rate, Length::Time(self.trial));
        let output = trial.run(&input)?;
        let loss_ratio = output.first().total().loss_ratio();
        Ok((CollectorPoint::new(rate, output)?, loss_ratio))
    }

    /// Searches between the rates of the sweep where loss begins.
    fn search(
        &self,
        trial: &mut dyn Trial,
        findings: &mut CollectorFindings,
    ) -> Result<(), TrialError> {
        let (Some(lower), Some(upper)) = (findings.throughput, findings.loss_begins) else {
            // All rates lost records, or none did: the throughput is outside the sweep.
            return Ok(());
        };
        let search = Bisection::between(lower, upper, self.resolution, self.trial);
        search.search(&mut |load, duration| {
            let known = findings.points.iter().find(|point| point.load == load);
            let loss_ratio = match known {
                Some(point) if point.is_passed() => 0.0,
                Some(_) => f64::MIN_POSITIVE,
                None => {
                    let (point, loss_ratio) = self.measure("search", load, trial)?;
                    findings.add(point);
                    loss_ratio
                }
            };
            Ok(Measurement { load, duration, loss_ratio, tester_ratio: 0.0 })
        })?;
        findings.is_searched = true;
        Ok(())
    }
}

impl CollectorPoint {
    fn new(load: u64, output: TrialOutput) -> Result<Self, TrialError> {
        let missing = || TrialError::Failed("expected the counters of exporters".into());
        let total = output.first().total();
        let mut collector = output.collector.ok_or_else(missing)?;
        collector.streams.clear();
        let seconds = total.seconds.max(1e-9);
        let sent = collector.records;
        let lost = collector.stored.map(|stored| sent.saturating_sub(stored));
        Ok(Self {
            load,
            sent_per_s: sent as f64 / seconds,
            datagrams_per_s: collector.datagrams as f64 / seconds,
            bps: collector.bytes as f64 * 8.0 / seconds,
            loss_percent: lost.map(|lost| lost as f64 * 100.0 / sent.max(1) as f64),
            seconds,
            is_lossless: lost.map(|lost| lost == 0 && sent > 0),
            is_tester_limited: total.unsent() > 0,
            collector,
        })
    }

    /// Returns whether the collector stored all records of the intended rate.
    fn is_passed(&self) -> bool {
        self.is_lossless == Some(true) && !self.is_tester_limited
    }
}

impl CollectorFindings {
    /// Adds a point and finds the place where loss begins.
    fn add(&mut self, point: CollectorPoint) {
        self.points.retain(|other| other.load != point.load);
        self.points.push(point);
        self.points.sort_by_key(|point| point.load);
        let lossy = self.points.iter().find(|point| point.is_lossless == Some(false));
        self.loss_begins = lossy.map(|point| point.load);
        let below = self.points.iter().take_while(|point| point.is_lossless != Some(false));
        self.throughput = below.filter(|point| point.is_passed()).last().map(|point| point.load);
    }

    /// Returns what a reader must know before the figures.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let limited: Vec<_> = self.points.iter().filter(|point| point.is_tester_limited).collect();
        if let Some(first) = limited.first() {
            warnings.push(format!(
                "limited by the tester: the exporters did not reach {} of {} rates, first {} \
                 records/s",
                limited.len(),
                self.points.len(),
                first.load
            ));
        }
        let refused: u64 = self.points.iter().map(|point| point.collector.refused).sum();
        if refused > 0 {
            warnings.push(format!(
                "the target refused datagrams with {refused} ICMP messages: check that the \
                 collector receives at --target"
            ));
        }
        let late = |point: &&CollectorPoint| point.collector.late_max_s > LATE_MAX_S;
        if let Some(point) = self.points.iter().find(late) {
            warnings.push(format!(
                "the exporters were up to {:.0} ms late at {} records/s, and caught up in a burst",
                point.collector.late_max_s * 1e3,
                point.load
            ));
        }
        let surplus = |point: &&CollectorPoint| {
            point.collector.stored.is_some_and(|stored| stored > point.collector.records)
        };
        if let Some(point) = self.points.iter().find(surplus) {
            warnings.push(format!(
                "the collector stored more records than were sent, first at {} records/s: check \
                 that --received-command counts records, and that no other exporter sends to it",
                point.load
            ));
        }
        warnings
    }
}

/// Sums what each stream sent, over all trials.
struct Summing<'a> {
    trial: &'a mut dyn Trial,
    /// Streams by exporter and domain.
    streams: BTreeMap<(u32, u32), StreamSent>,
}

impl Trial for Summing<'_> {
    fn run(&mut self, input: &TrialInput) -> Result<TrialOutput, TrialError> {
        let output = self.trial.run(input)?;
        for stream in output.collector.iter().flat_map(|it| &it.streams) {
            let sum = self.streams.entry((stream.exporter, stream.domain));
            sum.and_modify(|sum| sum.add(stream)).or_insert_with(|| stream.clone());
        }
        Ok(output)
    }
}
