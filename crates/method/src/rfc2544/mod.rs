//! RFC 2544: throughput, latency, frame loss rate, back-to-back frames, system recovery, reset.
//!
//! RFC 9004 updates back-to-back frames, RFC 6201 the reset, RFC 5180 adds IPv6, RFC 8219 the
//! percentiles of delay and delay variation. Per frame size, the throughput comes first: latency,
//! back-to-back frames and recovery depend on it.

mod back_to_back;
mod frame_loss;
mod latency;
mod recovery;
mod throughput;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirestorm_base::time::Duration;

pub use back_to_back::{BackToBackOptions, BackToBackRow};
pub use frame_loss::{FrameLossPoint, FrameLossRow};
pub use latency::{LatencyOptions, LatencyRow, Repeated};
pub use recovery::{RecoveryOptions, RecoveryRow, ResetOptions, ResetRow};
pub use throughput::ThroughputRow;

use crate::rate::line_rate;
use crate::seconds;
use crate::trial::{Traffic, Trial, TrialError};

/// Frame sizes of RFC 2544 section 9.1 for Ethernet, in bytes with FCS.
pub const FRAME_SIZES: [u32; 7] = [64, 128, 256, 512, 1024, 1280, 1518];

/// A test of RFC 2544 section 26.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// Section 26.1.
    Throughput,
    /// Section 26.2, and RFC 8219 sections 7.2 and 7.3.
    Latency,
    /// Section 26.3.
    FrameLoss,
    /// RFC 9004.
    BackToBack,
    /// Section 26.5.
    Recovery,
    /// Section 26.6, and RFC 6201.
    Reset,
}

impl Test {
    /// All tests, in the order in which they run.
    pub const ALL: [Self; 6] = [
        Self::Throughput,
        Self::Latency,
        Self::FrameLoss,
        Self::BackToBack,
        Self::Recovery,
        Self::Reset,
    ];

    /// Returns the name of the test in results and flags.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Latency => "latency",
            Self::FrameLoss => "frame-loss",
            Self::BackToBack => "back-to-back",
            Self::Recovery => "recovery",
            Self::Reset => "reset",
        }
    }
}

/// Parameters of the method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Rfc2544 {
    /// Tests to run. The throughput is always measured.
    pub tests: Vec<Test>,
    /// Names of the traffic, such as `ipv4` and `ipv6`. Each is tested on its own.
    pub traffic: Vec<String>,
    /// Frame sizes in bytes with FCS.
    pub frame_sizes: Vec<u32>,
    /// Speed of the links in bit/s of layer 1.
    pub link_bps: u64,
    /// Largest load in frames per second of each interface; null: the line rate.
    pub load_max: Option<u64>,
    /// Duration of a trial in seconds.
    #[serde(rename = "trial_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub trial: Duration,
    /// Duration of the trials of a search before the final one, in seconds.
    #[serde(rename = "intermediate_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub intermediate: Duration,
    /// Resolution of the search: difference of the bounds as a fraction of the upper one.
    pub resolution: f64,
    /// Whether the search verifies its upper bound at the end. This shows that a device recovers from
    /// an overload later than the wait between trials.
    pub verifies_upper: bool,
    /// Further trials at the throughput, to confirm it.
    pub confirmations: u32,
    /// Step of the frame loss rate test as a fraction of the maximum load; at most 0.1.
    pub frame_loss_step: f64,
    /// Parameters of the latency test.
    pub latency: LatencyOptions,
    /// Parameters of the back-to-back test.
    pub back_to_back: BackToBackOptions,
    /// Parameters of the system recovery test.
    pub recovery: RecoveryOptions,
    /// Parameters of the reset test.
    pub reset: ResetOptions,
}

impl Default for Rfc2544 {
    fn default() -> Self {
        const MINUTE: Duration = Duration::from_secs(60);
        Self {
            tests: vec![Test::Throughput, Test::Latency, Test::FrameLoss, Test::BackToBack],
            traffic: vec!["ipv4".into()],
            frame_sizes: FRAME_SIZES.to_vec(),
            link_bps: 10_000_000_000,
            load_max: None,
            trial: MINUTE,
            intermediate: MINUTE,
            resolution: 0.005,
            verifies_upper: false,
            confirmations: 0,
            frame_loss_step: 0.1,
            latency: LatencyOptions::default(),
            back_to_back: BackToBackOptions::default(),
            recovery: RecoveryOptions::default(),
            reset: ResetOptions::default(),
        }
    }
}

/// Findings of the method. Each list has a row for each traffic and frame size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Rfc2544Findings {
    /// Throughput.
    pub throughput: Vec<ThroughputRow>,
    /// Latency and delay variation.
    pub latency: Vec<LatencyRow>,
    /// Frame loss rate.
    pub frame_loss: Vec<FrameLossRow>,
    /// Back-to-back frames.
    pub back_to_back: Vec<BackToBackRow>,
    /// System recovery.
    pub recovery: Vec<RecoveryRow>,
    /// Reset.
    pub reset: Vec<ResetRow>,
}

impl Rfc2544 {
    /// Runs all tests. After an error, `findings` has those that were complete.
    ///
    /// # Errors
    /// Returns the first error of a trial.
    pub fn run(
        &self,
        trial: &mut dyn Trial,
        findings: &mut Rfc2544Findings,
    ) -> Result<(), TrialError> {
        for name in &self.traffic {
            let traffic = Traffic::of_sizes(name, &self.frame_sizes);
            let least = traffic.iter().filter_map(|traffic| traffic.frame_size).min();
            for traffic in traffic {
                let frame_size = traffic.frame_size.unwrap_or_default();
                let is_least = Some(frame_size) == least;
                self.test_size(&Subject { traffic, frame_size, is_least }, trial, findings)?;
            }
        }
        Ok(())
    }

    fn test_size(
        &self,
        subject: &Subject,
        trial: &mut dyn Trial,
        findings: &mut Rfc2544Findings,
    ) -> Result<(), TrialError> {
        let throughput = self.throughput(subject, trial)?;
        findings.throughput.push(throughput.clone());
        let has = |test| self.tests.contains(&test);
        if has(Test::Latency) && throughput.load > 0 {
            findings.latency.push(self.latency(subject, &throughput, trial)?);
        }
        if has(Test::FrameLoss) {
            findings.frame_loss.push(self.frame_loss(subject, trial)?);
        }
        if has(Test::BackToBack) {
            findings.back_to_back.push(self.back_to_back(subject, &throughput, trial)?);
        }
        if has(Test::Recovery) && throughput.load > 0 {
            findings.recovery.push(self.recovery(subject, &throughput, trial)?);
        }
        // RFC 2544 section 26.6: only the minimum frame size.
        if has(Test::Reset) && subject.is_least && throughput.load > 0 {
            findings.reset.push(self.reset(subject, &throughput, trial)?);
        }
        Ok(())
    }

    /// Returns the largest load for a frame size, in frames per second of each interface.
    pub fn max_load(&self, frame_size: u32) -> u64 {
        let line_rate = line_rate(frame_size, self.link_bps);
        self.load_max.map_or(line_rate, |load| load.min(line_rate)).max(1)
    }

    /// Returns the differences of the parameters from what the RFCs recommend or require.
    pub fn deviations(&self) -> Vec<String> {
        let mut deviations = Vec::new();
        let has = |test| self.tests.contains(&test);
        let minute = Duration::from_secs(60);
        let mut short = |name: &str, found: Duration, expected: u64, source: &str| {
            if found < Duration::from_secs(expected) {
                let found = found.as_secs_f64();
                deviations.push(format!("{name}: {found} s, {source} recommends {expected} s"));
            }
        };
        short("trial duration", self.trial, 60, "RFC 2544 section 24");
        if has(Test::Latency) {
            short("latency stream", self.latency.stream(), 120, "RFC 2544 section 26.2");
        }
        if has(Test::Recovery) {
            short("overload", self.recovery.overload, 60, "RFC 2544 section 26.5");
        }
        let mut few = |name: &str, found: u32, expected: u32, source: &str| {
            if found < expected {
                deviations.push(format!("{name}: {found}, {source} requires {expected}"));
            }
        };
        if has(Test::Latency) {
            few("latency repetitions", self.latency.repetitions, 20, "RFC 2544 section 26.2");
        }
        if has(Test::BackToBack) {
            let repetitions = self.back_to_back.repetitions;
            few("back-to-back repetitions", repetitions, 50, "RFC 2544 section 26.4");
        }
        if self.intermediate < self.trial && self.trial >= minute {
            let seconds = self.intermediate.as_secs_f64();
            deviations.push(format!(
                "trials before the final one: {seconds} s, as RFC 2544 section 24 allows"
            ));
        }
        if let Some(load) = self.load_max {
            deviations.push(format!(
                "maximum load: {load} frames/s instead of the line rate of RFC 2544 section 20"
            ));
        }
        deviations
    }
}

impl Rfc2544Findings {
    /// Returns what a reader must know before the figures.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for row in &self.throughput {
            let subject = format!("{} {} B", row.traffic, row.frame_size);
            if row.is_tester_limited {
                warnings.push(format!(
                    "{subject}: the tester, not the device, limits the throughput; lower \
                     --max-load or use a faster tester"
                ));
            }
            if row.is_contradictory {
                warnings.push(format!(
                    "{subject}: the device recovers from an overload later than the wait between \
                     trials, so its throughput is higher; raise --settle"
                ));
            }
            if row.confirmed < row.confirmations {
                let (passed, all) = (row.confirmed, row.confirmations);
                warnings
                    .push(format!("{subject}: {passed} of {all} trials confirmed the throughput"));
            }
        }
        for row in &self.recovery {
            if !row.is_overloaded {
                warnings.push(format!(
                    "{} {} B: the overload lost no frames, so the recovery says nothing",
                    row.traffic, row.frame_size
                ));
            }
        }
        for row in &self.back_to_back {
            if row.max == Some(row.burst_max) {
                warnings.push(format!(
                    "{} {} B: the longest burst reached the limit of the search; raise --burst-max",
                    row.traffic, row.frame_size
                ));
            }
        }
        warnings
    }
}

/// What a test measures: traffic of one frame size.
struct Subject {
    traffic: Traffic,
    frame_size: u32,
    /// Whether this is the smallest size of the traffic.
    is_least: bool,
}
