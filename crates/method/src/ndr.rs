//! Non-drop rate by binary search, with the options of TRex's `ndr`.
//!
//! The first run offers the maximum load and finds the largest load that the tester reaches. The
//! search then halves the range below it until the bounds are close enough. Unlike RFC 2544, the
//! method tolerates a small loss (`pdr`), which finds a rate quickly on systems with rare loss.
//!
//! The units are frames, or the connections of emulated clients ([`CONNECTIONS`]). TRex fails a
//! trial of connections if an error counter is above zero: failed connections and retransmissions
//! among others. Here each of these two ratios may reach `pdr`, so that 0 is the limit of TRex.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirestorm_base::time::Duration;

use crate::rate::line_rate;
use crate::seconds;
use crate::trial::{Length, StepOutput, Traffic, Trial, TrialError, TrialInput, TrialOutput};

/// Name of the traffic whose units are connections. Its loads are those of all clients together.
pub const CONNECTIONS: &str = "clients";

/// Returns whether the units of a traffic are connections.
pub fn is_connections(traffic: &str) -> bool {
    traffic == CONNECTIONS
}

/// Parameters of the method. The defaults are those of TRex.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Ndr {
    /// Names of the traffic. Each is searched on its own.
    pub traffic: Vec<String>,
    /// Frame sizes in bytes with FCS; empty if the traffic defines its own sizes.
    pub frame_sizes: Vec<u32>,
    /// Speed of the links in bit/s of layer 1; unused for connections.
    pub link_bps: u64,
    /// Load of the first run in units per second of each interface; null: the line rate, of 64-byte
    /// frames if the traffic defines its own sizes.
    pub load_max: Option<u64>,
    /// Duration of the first run in seconds.
    #[serde(rename = "first_run_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub first_run: Duration,
    /// Duration of an iteration in seconds.
    #[serde(rename = "iteration_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub iteration: Duration,
    /// Largest number of iterations after the first run.
    pub iterations_max: u32,
    /// Largest allowed drop ratio; 0 for the non-drop rate.
    pub pdr: f64,
    /// Distance of the bounds at which the search ends, as a fraction of the maximum rate.
    pub pdr_error: f64,
    /// Largest allowed part of the load that the tester does not send or receive. In TRex, this is the
    /// limit for full transmit queues.
    pub tester_limit: f64,
    /// Maximum latency.
    pub latency: Option<LatencyLimit>,
    /// Half width of the first range around the rate that the first run lets expect, as a fraction of
    /// this rate; null to search the whole range.
    pub expected_range: Option<f64>,
    /// Number of results: the rate found, its half, its third and so on, each measured.
    pub results: u32,
}

impl Default for Ndr {
    fn default() -> Self {
        let iteration = Duration::from_secs(20);
        Self {
            traffic: vec!["ipv4".into()],
            frame_sizes: vec![64],
            link_bps: 10_000_000_000,
            load_max: None,
            first_run: iteration,
            iteration,
            iterations_max: 10,
            pdr: 0.001,
            pdr_error: 0.01,
            tester_limit: 0.02,
            latency: None,
            expected_range: None,
            results: 1,
        }
    }
}

/// Limit of the latency in a passed trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LatencyLimit {
    /// Maximum latency in seconds.
    #[serde(rename = "max_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub max: Duration,
    /// Part of the received units that may be later; 0 compares the maximum latency of the trial.
    pub tolerance: f64,
}

/// Findings of the method.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct NdrFindings {
    /// A row for each traffic and frame size.
    pub rows: Vec<NdrRow>,
}

/// Result of one search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct NdrRow {
    /// Name of the traffic.
    pub traffic: String,
    /// Frame size in bytes with FCS; null if the traffic defines its own sizes.
    pub frame_size: Option<u32>,
    /// Load of the first run in units per second of each interface.
    pub load_max: u64,
    /// Largest load that the tester reached in the first run: the maximum rate.
    pub rate_max: u64,
    /// Trial at the largest passed load; null if none passed.
    pub best: Option<NdrPoint>,
    /// Smallest failed load; null if none failed.
    pub upper: Option<u64>,
    /// Reason why that load failed; null without one.
    pub limit: Option<Limit>,
    /// Largest passed load in percent of the maximum rate.
    pub rate_percent: f64,
    /// Trials at the half, the third and so on of the largest passed load.
    pub points: Vec<NdrPoint>,
    /// Number of iterations after the first run.
    pub iterations: u32,
    /// Whether the search reached its number of iterations before its precision.
    pub is_exhausted: bool,
}

/// Result of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct NdrPoint {
    /// Load in units per second of each interface.
    pub load: u64,
    /// Dropped units in percent of those sent. For connections: those that failed.
    pub drop_percent: f64,
    /// Retransmitted TCP segments in percent of those sent; null for frames.
    #[serde(default)]
    pub retransmitted_percent: Option<f64>,
    /// Units that the tester did not send or receive, in percent of the load.
    pub tester_percent: f64,
    /// Mean latency in nanoseconds; null if it was not measured.
    pub latency_mean_ns: Option<f64>,
    /// Maximum latency in nanoseconds; null if it was not measured.
    pub latency_max_ns: Option<i64>,
}

/// Criterion that a trial failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The device dropped more than `pdr`.
    Drops,
    /// Clients and servers retransmitted more than `pdr`.
    Retransmissions,
    /// The tester did not send or receive more than `tester_limit`.
    Tester,
    /// The latency was above its limit.
    Latency,
}

impl Limit {
    /// Returns the name of the limit in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Drops => "drops",
            Self::Retransmissions => "rexmit",
            Self::Tester => "tester",
            Self::Latency => "latency",
        }
    }
}

impl Ndr {
    /// Runs all searches. After an error, `findings` has those that were complete.
    ///
    /// # Errors
    /// Returns the first error of a trial.
    pub fn run(&self, trial: &mut dyn Trial, findings: &mut NdrFindings) -> Result<(), TrialError> {
        for name in &self.traffic {
            let traffic = match self.frame_sizes.as_slice() {
                [] => vec![Traffic { name: name.clone(), frame_size: None }],
                sizes => Traffic::of_sizes(name, sizes),
            };
            for traffic in traffic {
                let mut search =
                    Search { method: self, traffic: &traffic, trial, row: self.row(&traffic) };
                search.run()?;
                findings.rows.push(search.row);
            }
        }
        Ok(())
    }

    fn row(&self, traffic: &Traffic) -> NdrRow {
        let Traffic { name, frame_size } = traffic.clone();
        let line_rate = line_rate(frame_size.unwrap_or(64), self.link_bps);
        let load_max = match frame_size {
            Some(_) => self.load_max.map_or(line_rate, |load| load.min(line_rate)),
            None => self.load_max.unwrap_or(line_rate),
        };
        NdrRow { traffic: name, frame_size, load_max: load_max.max(1), ..NdrRow::default() }
    }

    /// Returns the criterion that a trial failed; `None` if it passed.
    fn failed(&self, sum: &StepOutput, point: &NdrPoint) -> Option<Limit> {
        if point.drop_percent > self.pdr * 100.0 {
            return Some(Limit::Drops);
        }
        if point.retransmitted_percent.is_some_and(|percent| percent > self.pdr * 100.0) {
            return Some(Limit::Retransmissions);
        }
        if point.tester_percent > self.tester_limit * 100.0 {
            return Some(Limit::Tester);
        }
        let limit = self.latency?;
        let delay = sum.delay.as_ref()?;
        let max_ns = i64::try_from(limit.max.as_nanos()).unwrap_or(i64::MAX);
        let is_late = match limit.tolerance > 0.0 {
            true => delay.fraction_above(max_ns) > limit.tolerance,
            false => delay.max_ns > max_ns,
        };
        is_late.then_some(Limit::Latency)
    }

    /// Returns the differences of the parameters from TRex's defaults that change the figures.
    pub fn deviations(&self) -> Vec<String> {
        let mut deviations = Vec::new();
        let shortest = self.iteration.min(self.first_run);
        if shortest < Duration::from_secs(20) {
            let seconds = shortest.as_secs_f64();
            deviations.push(format!("trial duration: {seconds} s, the default is 20 s"));
        }
        // Connections have no line rate.
        let has_line_rate = !self.traffic.iter().all(|name| is_connections(name));
        if let Some(load) = self.load_max.filter(|_| has_line_rate) {
            deviations.push(format!("maximum load: {load}/s instead of the line rate"));
        }
        deviations
    }
}

impl NdrFindings {
    /// Returns what a reader must know before the figures.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for row in &self.rows {
            let size = row.frame_size.map_or_else(String::new, |size| format!(" {size} B"));
            let subject = format!("{}{size}", row.traffic);
            let rate_max = row.rate_max;
            if rate_max < row.load_max {
                warnings.push(format!(
                    "{subject}: the tester reached {rate_max}/s of {}/s; the device may handle more",
                    row.load_max
                ));
            }
            if row.limit == Some(Limit::Tester) {
                warnings.push(format!(
                    "{subject}: the tester, not the device, limits the rate; lower --max-load or \
                     use a faster tester"
                ));
            }
            if row.best.is_none() {
                warnings.push(format!("{subject}: no load passed"));
            }
            if row.is_exhausted {
                warnings.push(format!(
                    "{subject}: the search ended after {} iterations, before its precision; raise \
                     --max-iterations",
                    row.iterations
                ));
            }
        }
        warnings
    }
}

/// Distance to the maximum rate, as a fraction of it, within which the upper end of the expected
/// range is not tried.
const CLOSE: f64 = 0.05;

/// A running search.
struct Search<'a> {
    method: &'a Ndr,
    traffic: &'a Traffic,
    trial: &'a mut dyn Trial,
    row: NdrRow,
}

impl Search<'_> {
    fn run(&mut self) -> Result<(), TrialError> {
        let method = self.method;
        let first = self.measure("first-run", self.row.load_max, method.first_run)?;
        let reached = self.row.load_max as f64 * first.sent_ratio;
        self.row.rate_max = (reached.round() as u64).clamp(1, self.row.load_max);
        let top = if first.failed == Some(Limit::Tester) {
            self.judge(&first);
            self.iterate(self.row.rate_max)?
        } else {
            // The tester sent the maximum rate, so the first run is a trial of it.
            let top = Measured { load: self.row.rate_max, ..first };
            self.judge(&top);
            top
        };
        if top.failed.is_some() {
            let (low, high) = match method.expected_range {
                Some(width) => self.narrow(&top, width)?,
                None => (0, self.row.rate_max),
            };
            self.bisect(low, high)?;
        }
        self.row.rate_percent =
            self.row.best.map_or(0.0, |best| best.load as f64) * 100.0 / self.row.rate_max as f64;
        let best = self.row.best.map_or(0, |best| best.load);
        for divisor in 2..=u64::from(method.results) {
            if best / divisor > 0 {
                let measured = self.measure("point", best / divisor, method.iteration)?;
                self.row.points.push(measured.point());
            }
        }
        Ok(())
    }

    /// Tries both ends of the range around the expected rate. Returns the bounds of the search.
    fn narrow(&mut self, top: &Measured, width: f64) -> Result<(u64, u64), TrialError> {
        let rate_max = self.row.rate_max;
        // The load without what was lost at the maximum rate.
        let missed = match top.failed {
            Some(Limit::Tester) => top.tester_ratio,
            Some(Limit::Retransmissions) => top.retransmitted_ratio.unwrap_or(0.0),
            _ => top.drop_ratio,
        };
        let expected = rate_max as f64 * (1.0 - missed);
        let at = |part: f64| ((expected * part) as u64).clamp(1, rate_max);
        let (lower, upper) = (at(1.0 - width), at(1.0 + width));
        let is_close = (rate_max - upper) as f64 <= CLOSE * rate_max as f64;
        if !is_close && self.iterate(upper)?.failed.is_none() {
            return Ok((upper, rate_max));
        }
        let upper = if is_close { rate_max } else { upper };
        let is_passed = self.iterate(lower)?.failed.is_none();
        Ok(if is_passed { (lower, upper) } else { (0, lower) })
    }

    /// Halves the range between a passed and a failed load.
    fn bisect(&mut self, mut low: u64, mut high: u64) -> Result<(), TrialError> {
        let width = (self.method.pdr_error * self.row.rate_max as f64).max(1.0);
        while (high - low) as f64 > width {
            if self.row.iterations >= self.method.iterations_max {
                self.row.is_exhausted = true;
                break;
            }
            let middle = low + (high - low) / 2;
            match self.iterate(middle)?.failed {
                None => low = middle,
                Some(_) => high = middle,
            }
        }
        Ok(())
    }

    /// Measures a load and keeps it as a bound.
    fn iterate(&mut self, load: u64) -> Result<Measured, TrialError> {
        self.row.iterations += 1;
        let measured = self.measure("iteration", load, self.method.iteration)?;
        self.judge(&measured);
        Ok(measured)
    }

    /// Keeps the largest passed and the smallest failed load.
    fn judge(&mut self, measured: &Measured) {
        match measured.failed {
            None if self.row.best.is_none_or(|best| best.load < measured.load) => {
                self.row.best = Some(measured.point());
            }
            Some(limit) if self.row.upper.is_none_or(|upper| upper > measured.load) => {
                self.row.upper = Some(measured.load);
                self.row.limit = Some(limit);
            }
            _ => {}
        }
    }

    fn measure(
        &mut self,
        test: &str,
        load: u64,
        duration: Duration,
    ) -> Result<Measured, TrialError> {
        let length = Length::Time(duration);
        let input = TrialInput::constant(test, self.traffic, load, length);
        let output = self.trial.run(&input)?;
        let mut measured = Measured::new(load, &output);
        let total = output.first().total();
        measured.failed = self.method.failed(&total, &measured.point());
        Ok(measured)
    }
}

/// What the search reads of a trial.
#[derive(Clone, Copy)]
struct Measured {
    load: u64,
    /// Units sent as a fraction of the intended ones.
    sent_ratio: f64,
    drop_ratio: f64,
    retransmitted_ratio: Option<f64>,
    tester_ratio: f64,
    latency_mean_ns: Option<f64>,
    latency_max_ns: Option<i64>,
    failed: Option<Limit>,
}

impl Measured {
    fn new(load: u64, output: &TrialOutput) -> Self {
        let total = output.first().total();
        let unsent = total.unsent();
        let by_receiver = output.receiver_dropped.min(total.lost());
        let intended = total.intended.max(1) as f64;
        let delay = total.delay.as_ref().filter(|delay| delay.count > 0);
        Self {
            load,
            sent_ratio: if unsent > 0 { total.offered as f64 / intended } else { 1.0 },
            drop_ratio: (total.lost() - by_receiver) as f64 / total.offered.max(1) as f64,
            retransmitted_ratio: output.segments.map(|segments| segments.retransmitted_ratio()),
            tester_ratio: (unsent + by_receiver) as f64 / intended,
            latency_mean_ns: delay.map(|delay| delay.mean_ns),
            latency_max_ns: delay.map(|delay| delay.max_ns),
            failed: None,
        }
    }

    fn point(&self) -> NdrPoint {
        NdrPoint {
            load: self.load,
            drop_percent: self.drop_ratio * 100.0,
            retransmitted_percent: self.retransmitted_ratio.map(|ratio| ratio * 100.0),
            tester_percent: self.tester_ratio * 100.0,
            latency_mean_ns: self.latency_mean_ns,
            latency_max_ns: self.latency_max_ns,
        }
    }
}
