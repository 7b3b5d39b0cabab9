//! Ethernet service activation test: ITU-T Y.1564.
//!
//! ```text
//! configuration  each service alone: CIR in steps ─> CIR + EIR ─> more than the policer passes
//! performance    all services at their CIR at the same time, for a long time
//! ```
//!
//! The procedure follows documents of vendors that implement the Recommendation; the text of the
//! Recommendation was not available. [`Y1564::deviations`] lists what is open.

mod direction;

pub use direction::Y1564Direction;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirestorm_base::time::Duration;

use crate::rate::layer_2_rate;
use crate::seconds;
use crate::trial::{
    Length, Offer, OfferOutput, Step, StepOutput, Traffic, Trial, TrialError, TrialInput,
};

/// A test of the method.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// Service configuration test: steps up to the CIR.
    Cir,
    /// Service configuration test: CIR + EIR.
    Eir,
    /// Service configuration test: a load above CIR + EIR.
    Policing,
    /// Service performance test.
    Performance,
}

impl Test {
    /// All tests, in the order in which they run.
    pub const ALL: [Self; 4] = [Self::Cir, Self::Eir, Self::Policing, Self::Performance];

    /// Returns the name of the test in results and flags.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cir => "cir",
            Self::Eir => "eir",
            Self::Policing => "policing",
            Self::Performance => "performance",
        }
    }
}

/// Parameters of the method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Y1564 {
    /// Services.
    pub services: Vec<Service>,
    /// Tests to run.
    pub tests: Vec<Test>,
    /// Steps of the CIR test as fractions of the CIR, ascending; the last one is 1.
    pub cir_steps: Vec<f64>,
    /// Duration of a step of the configuration test in seconds.
    #[serde(rename = "step_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub step: Duration,
    /// Duration of the performance test in seconds.
    #[serde(rename = "performance_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub performance: Duration,
    /// Tolerance of the limits of the information rate, as a fraction of them.
    pub rate_tolerance: f64,
}

/// A service: its traffic, bandwidth profile and acceptance criteria. Rates are information rates:
/// bits of frames from the destination address to the FCS, tags included (layer 2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Service {
    /// Name in results.
    pub name: String,
    /// Protocol of the frames: `ipv4` or `ipv6`.
    pub protocol: String,
    /// Frame sizes in bytes with FCS. The configuration test uses each, the performance test the
    /// first.
    pub frame_sizes: Vec<u32>,
    /// VLAN ID, 1 to 4094; null without a tag.
    pub vlan: Option<u16>,
    /// Priority of the tag (PCP), 0 to 7.
    pub pcp: u8,
    /// DSCP, 0 to 63.
    pub dscp: u8,
    /// Committed information rate in bit/s.
    pub cir_bps: u64,
    /// Excess information rate in bit/s.
    pub eir_bps: u64,
    /// Committed burst size in bytes; 0 if it is unknown.
    pub cbs_bytes: u64,
    /// Excess burst size in bytes; 0 if it is unknown.
    pub ebs_bytes: u64,
    /// Service acceptance criteria.
    pub criteria: Criteria,
}

/// Service acceptance criteria. A null criterion accepts any value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Criteria {
    /// Largest frame loss ratio, 0 to 1.
    pub flr: f64,
    /// Largest frame transfer delay in seconds: mean one-way delay.
    pub ftd_s: Option<f64>,
    /// Largest frame delay variation in seconds: 99.9th percentile minus minimum of the one-way
    /// delay.
    pub fdv_s: Option<f64>,
    /// Smallest availability, 0 to 1.
    pub availability: Option<f64>,
}

/// Findings of the method.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Y1564Findings {
    /// Steps of the configuration test, and one row for each service of the performance test.
    pub rows: Vec<Y1564Row>,
}

/// Result of one service in a step. With several directions, the service passes if each does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Y1564Row {
    /// Test.
    pub test: Test,
    /// Name of the service.
    pub service: String,
    /// Frame size in bytes with FCS.
    pub frame_size: u32,
    /// Load in percent of the CIR; of the EIR without a CIR.
    pub load_percent: f64,
    /// Load in frames per second of each interface.
    pub load: u64,
    /// Load in bit/s of layer 2 of each interface.
    pub load_bps: f64,
    /// Smallest information rate that passes, in bit/s; null without a limit.
    pub ir_min_bps: Option<f64>,
    /// Largest information rate that passes, in bit/s; null without a limit.
    pub ir_max_bps: Option<f64>,
    /// Figures of all directions together. With several, its rate is that of one sending interface on
    /// average, and each reason of a failure begins with its direction.
    pub total: Y1564Direction,
    /// Results of each direction; empty with a single one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directions: Vec<Y1564Direction>,
}

impl Y1564Row {
    /// Returns whether the service passed.
    pub fn is_passed(&self) -> bool {
        self.total.is_passed()
    }

    /// Returns the results that were judged: those of each direction, or of the only one.
    pub fn results(&self) -> &[Y1564Direction] {
        if self.directions.is_empty() {
            std::slice::from_ref(&self.total)
        } else {
            &self.directions
        }
    }
}

/// Part of the frames of a second that must arrive for the second to be available.
const AVAILABLE_PART: f64 = 0.5;
/// Relative difference of a load in whole frames to the intended rate that is reported.
const ROUNDING_MAX: f64 = 0.005;

impl Service {
    /// Returns the rate of the policing test in bit/s: CIR + 1.25 EIR, or 1.25 CIR + EIR if the EIR
    /// is below 20 % of the CIR.
    pub fn policing_bps(&self) -> f64 {
        let (cir, eir) = (self.cir_bps as f64, self.eir_bps as f64);
        if self.eir_bps.saturating_mul(5) < self.cir_bps {
            1.25 * cir + eir
        } else {
            cir + 1.25 * eir
        }
    }

    /// Returns the sum of CIR and EIR in bit/s.
    fn profile_bps(&self) -> f64 {
        self.cir_bps as f64 + self.eir_bps as f64
    }

    /// Returns the traffic with a frame size.
    fn traffic(&self, frame_size: u32) -> Traffic {
        Traffic { name: self.name.clone(), frame_size: Some(frame_size) }
    }
}

impl Y1564 {
    /// Runs all tests. After an error, `findings` has the steps that were complete. The performance
    /// test also follows a failed configuration test, as its figures show what the service is worth.
    ///
    /// # Errors
    /// Returns the first error of a trial.
    pub fn run(
        &self,
        trial: &mut dyn Trial,
        findings: &mut Y1564Findings,
    ) -> Result<(), TrialError> {
        for service in &self.services {
            for &frame_size in &service.frame_sizes {
                for (test, bps) in self.steps(service) {
                    let row = self.configuration(service, frame_size, test, bps, trial)?;
                    findings.rows.push(row);
                }
            }
        }
        if self.tests.contains(&Test::Performance) {
            self.performance(trial, findings)?;
        }
        Ok(())
    }

    /// Returns the steps of the configuration test of a service, with their rates in bit/s.
    fn steps(&self, service: &Service) -> Vec<(Test, f64)> {
        let mut steps = Vec::new();
        let has = |test| self.tests.contains(&test);
        if has(Test::Cir) && service.cir_bps > 0 {
            let rate = |part: &f64| (Test::Cir, part * service.cir_bps as f64);
            steps.extend(self.cir_steps.iter().map(rate));
        }
        if has(Test::Eir) && service.eir_bps > 0 {
            steps.push((Test::Eir, service.profile_bps()));
        }
        if has(Test::Policing) {
            steps.push((Test::Policing, service.policing_bps()));
        }
        steps
    }

    fn configuration(
        &self,
        service: &Service,
        frame_size: u32,
        test: Test,
        bps: f64,
        trial: &mut dyn Trial,
    ) -> Result<Y1564Row, TrialError> {
        let load = frames(bps, frame_size, test);
        let traffic = service.traffic(frame_size);
        let length = Length::Time(self.step);
        let output = trial.run(&TrialInput::constant(test.name(), &traffic, load, length))?;
        let limits = (test != Test::Cir).then(|| self.rate_limits(service));
        Ok(row(service, frame_size, test, load, limits, &output.first(), |_| None))
    }

    /// Returns the limits of the information rate of a load above the CIR, in bit/s. The criteria
    /// apply to frames within the CIR only, and nothing marks these.
    fn rate_limits(&self, service: &Service) -> (f64, f64) {
        let committed = service.cir_bps as f64 * (1.0 - service.criteria.flr);
        // A token bucket passes its bursts in addition to its rates.
        let bursts = (service.cbs_bytes + service.ebs_bytes) as f64 * 8.0;
        let bursts = bursts / self.step.as_secs_f64().max(f64::MIN_POSITIVE);
        let least = committed * (1.0 - self.rate_tolerance);
        (least, service.profile_bps() * (1.0 + self.rate_tolerance) + bursts)
    }

    fn performance(
        &self,
        trial: &mut dyn Trial,
        findings: &mut Y1564Findings,
    ) -> Result<(), TrialError> {
        let committed = |service: &&Service| service.cir_bps > 0 && !service.frame_sizes.is_empty();
        let services: Vec<_> = self.services.iter().filter(committed).collect();
        if services.is_empty() {
            return Ok(());
        }
        let load = |service: &Service| {
            let frame_size = service.frame_sizes[0];
            (frame_size, frames(service.cir_bps as f64, frame_size, Test::Performance))
        };
        let offer = |service: &&Service| {
            let (frame_size, load) = load(service);
            let Traffic { name, frame_size } = service.traffic(frame_size);
            let steps = vec![Step { load, length: Length::Time(self.performance) }];
            Offer { traffic: name, frame_size, steps }
        };
        let offers = services.iter().map(offer).collect();
        let mut input = TrialInput::of_offers(Test::Performance.name(), offers);
        input.counts_seconds = true;
        let output = trial.run(&input)?;
        for (service, output) in services.into_iter().zip(&output.offers) {
            let (frame_size, load) = load(service);
            let available = |seconds: &[Vec<u64>]| availability(load, self.performance, seconds);
            let test = Test::Performance;
            let row = row(service, frame_size, test, load, None, output, available);
            findings.rows.push(row);
        }
        Ok(())
    }

    /// Returns the differences of the parameters from the procedure, and what is open because the text
    /// of the Recommendation was not available.
    pub fn deviations(&self) -> Vec<String> {
        let mut deviations = vec![
            "ITU-T Y.1564: the procedure follows documents of vendors, because the text of the \
             Recommendation was not available"
                .to_owned(),
            "FTD is the mean one-way delay; FDV is the 99.9th percentile minus the minimum of the \
             one-way delay"
                .to_owned(),
            "availability is the part of the seconds in which at least half of the frames arrive"
                .to_owned(),
            "colour-blind tests only, without burst tests of CBS and EBS".to_owned(),
        ];
        if self.rate_tolerance > 0.0 {
            deviations.push(format!(
                "limits of the information rate: tolerance {} %",
                self.rate_tolerance * 100.0
            ));
        }
        let has_bursts = |service: &Service| service.cbs_bytes + service.ebs_bytes > 0;
        if self.services.iter().any(has_bursts) {
            deviations.push(
                "the upper limit of the information rate includes CBS and EBS once for each step"
                    .into(),
            );
        }
        let has = |test| self.tests.contains(&test);
        let minimum = Duration::from_secs(900);
        if has(Test::Performance) && self.performance < minimum {
            let seconds = self.performance.as_secs_f64();
            deviations
                .push(format!("performance test: {seconds} s, usual are 15 min, 2 h and 24 h"));
        }
        if self.cir_steps.last() != Some(&1.0) && has(Test::Cir) {
            deviations.push("the last step of the CIR test is not 100 % of the CIR".into());
        }
        for service in &self.services {
            for (test, bps) in self.steps(service) {
                let Some(&size) = service.frame_sizes.iter().max() else { continue };
                let load = frames(bps, size, test);
                let difference = (layer_2_rate(load as f64, size) / bps - 1.0).abs();
                if difference > ROUNDING_MAX {
                    deviations.push(format!(
                        "{}: a load of {} becomes {load} whole frames/s of {size} B, {:.1} % off",
                        service.name,
                        megabits(bps),
                        difference * 100.0
                    ));
                    break;
                }
            }
        }
        deviations
    }
}

impl Y1564Findings {
    /// Returns the failures of all steps, one sentence each.
    pub fn shortfalls(&self) -> Vec<String> {
        let mut shortfalls = Vec::new();
        for row in &self.rows {
            let (service, test, size) = (&row.service, row.test.name(), row.frame_size);
            let load = row.load_percent;
            for failure in &row.total.failures {
                shortfalls.push(format!("{service}, {test} {load:.0} %, {size} B: {failure}"));
            }
        }
        shortfalls
    }
}

/// Returns the load in whole frames per second. A load within the bandwidth profile is rounded
/// down, so that it stays within; one above it is rounded up.
fn frames(bps: f64, frame_size: u32, test: Test) -> u64 {
    let frames = bps / layer_2_rate(1.0, frame_size);
    let whole = if test == Test::Policing { frames.ceil() } else { (frames + 1e-9).floor() };
    whole.max(1.0) as u64
}

/// Returns the row of a step. `limits` bound the information rate of a load above the CIR; without
/// them the criteria of the service apply.
fn row(
    service: &Service,
    frame_size: u32,
    test: Test,
    load: u64,
    limits: Option<(f64, f64)>,
    output: &OfferOutput,
    available: impl Fn(&[Vec<u64>]) -> Option<f64>,
) -> Y1564Row {
    let load_bps = layer_2_rate(load as f64, frame_size);
    let base = if service.cir_bps > 0 { service.cir_bps } else { service.eir_bps };
    let judged = |name: &str, total: &StepOutput, seconds: &[Vec<u64>]| {
        let mut direction = Y1564Direction::new(name, load_bps, total);
        direction.availability = available(seconds);
        match limits {
            None => direction.judge_criteria(&service.criteria),
            Some((least, most)) => direction.judge_rate(least, most),
        }
        direction.judge_tester(total);
        direction
    };
    let seconds = |place| output.seconds.get(place..=place).unwrap_or_default();
    let paths = output.paths.iter().enumerate();
    let directions: Vec<Y1564Direction> =
        paths.map(|(place, it)| judged(&it.path, &it.total, seconds(place))).collect();
    let mut total = judged("", &output.total(), &output.seconds);
    if !directions.is_empty() {
        let failures = directions.iter().flat_map(|it| {
            it.failures.iter().map(|failure| format!("{}: {failure}", it.direction))
        });
        total.failures = failures.collect();
    }
    let (ir_min_bps, ir_max_bps) = limits.unzip();
    Y1564Row {
        test,
        service: service.name.clone(),
        frame_size,
        load_percent: load_bps * 100.0 / base.max(1) as f64,
        load,
        load_bps,
        ir_min_bps,
        ir_max_bps,
        total,
        directions,
    }
}

/// Returns the part of whole seconds in which enough frames arrive on every path; `None` if the
/// test is shorter than a second or seconds were not counted.
fn availability(load: u64, duration: Duration, paths: &[Vec<u64>]) -> Option<f64> {
    let whole = usize::try_from(duration.as_nanos() / 1_000_000_000).ok().filter(|it| *it > 0)?;
    if paths.is_empty() {
        return None;
    }
    let least = load as f64 * AVAILABLE_PART;
    let is_available = |second: &usize| {
        paths.iter().all(|path| path.get(*second).copied().unwrap_or(0) as f64 >= least)
    };
    Some((0..whole).filter(is_available).count() as f64 / whole as f64)
}

fn megabits(bps: f64) -> String {
    format!("{:.3} Mbit/s", bps / 1e6)
}
