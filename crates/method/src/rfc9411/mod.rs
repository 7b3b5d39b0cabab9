//! RFC 9411: performance of network security devices with emulated clients and servers.
//!
//! ```text
//! step 1: 10 % of the target, must meet the validation criteria
//! step 2: the target ──met──> result
//!            └──not met──> step 3: search the largest load that meets the criteria
//! ```
//!
//! The latency test (sections 7.4 and 7.8) has only the first two steps. With TLS settings, the
//! tests are those of sections 7.6 to 7.9.

mod criteria;
mod kpis;
pub(crate) mod simulation;
mod volume;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirestorm_base::time::Duration;

pub use criteria::{Criteria, Criterion, CriterionValue};
pub use kpis::{Kpis, Summary, TimeSummary};
pub use volume::bits_per_connection;

use crate::connections::{
    ConnectionsInput, ConnectionsOutput, LoadUnit, TlsSettings, TrafficClass,
};
use crate::search::Measurement;
use crate::search::bisection::Bisection;
use crate::seconds;
use crate::trial::{Length, Traffic, Trial, TrialError, TrialInput};

/// Bytes of a kilobyte of object sizes.
pub const KILOBYTE: u32 = 1_024;

/// Sizes of the mixed objects in bytes (RFC 9411 table 5): a connection requests each once.
pub const MIXED_OBJECTS: [u32; 10] = [
    KILOBYTE / 5,
    6 * KILOBYTE,
    8 * KILOBYTE,
    9 * KILOBYTE,
    10 * KILOBYTE,
    25 * KILOBYTE,
    26 * KILOBYTE,
    35 * KILOBYTE,
    59 * KILOBYTE,
    347 * KILOBYTE,
];

/// Transactions of a connection in the throughput and concurrent connections tests.
const TRANSACTIONS: u32 = 10;

/// A test of RFC 9411 section 7.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// TCP connections per second: sections 7.2 and 7.6.
    Connections,
    /// Throughput: sections 7.3 and 7.7.
    Throughput,
    /// Transaction latency: sections 7.4 and 7.8.
    Latency,
    /// Concurrent TCP connections: sections 7.5 and 7.9.
    Concurrent,
    /// Throughput with an application traffic mix: section 7.1.
    Mix,
}

impl Test {
    /// All tests, in the order in which they run: the latency test and the concurrent connections
    /// test need the results of the first two.
    pub const ALL: [Self; 5] =
        [Self::Connections, Self::Throughput, Self::Latency, Self::Concurrent, Self::Mix];

    /// Returns the name of the test in results and flags.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Throughput => "throughput",
            Self::Latency => "latency",
            Self::Concurrent => "concurrent",
            Self::Mix => "mix",
        }
    }

    /// Returns the section of RFC 9411.
    pub const fn section(self, has_tls: bool) -> &'static str {
        match (self, has_tls) {
            (Self::Mix, _) => "7.1",
            (Self::Connections, false) => "7.2",
            (Self::Throughput, false) => "7.3",
            (Self::Latency, false) => "7.4",
            (Self::Concurrent, false) => "7.5",
            (Self::Connections, true) => "7.6",
            (Self::Throughput, true) => "7.7",
            (Self::Latency, true) => "7.8",
            (Self::Concurrent, true) => "7.9",
        }
    }

    /// Returns the object sizes in bytes that the RFC recommends, without mixed objects.
    pub fn object_sizes(self) -> Vec<u32> {
        let kilobytes: &[u32] = match self {
            Self::Connections => &[1, 2, 4, 16, 64],
            Self::Throughput => &[1, 16, 64, 256],
            Self::Latency => &[1, 16, 64],
            Self::Concurrent => &[1],
            Self::Mix => &[],
        };
        kilobytes.iter().map(|size| size * KILOBYTE).collect()
    }
}

/// Parameters of the method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Rfc9411 {
    /// Tests to run.
    pub tests: Vec<Test>,
    /// TLS settings for HTTPS; null for HTTP.
    pub tls: Option<TlsSettings>,
    /// Object sizes in bytes of the tests of connections, throughput and latency; null for those of
    /// the RFC.
    pub object_sizes: Option<Vec<u32>>,
    /// Whether the throughput test also measures the mixed objects of table 5.
    pub has_mixed_objects: bool,
    /// Application traffic mix of section 7.1; empty without this test.
    pub mix: Vec<MixClass>,
    /// Target objectives.
    pub targets: Targets,
    /// Initial load of each test as a fraction of its target. The RFC has 0.1.
    pub initial: f64,
    /// Time before the first connection in seconds.
    #[serde(rename = "init_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub init: Duration,
    /// Time in seconds in which the load grows from zero. The concurrent connections test computes
    /// its own.
    #[serde(rename = "ramp_up_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub ramp_up: Duration,
    /// Time in seconds of the constant load, which is measured.
    #[serde(rename = "sustain_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub sustain: Duration,
    /// The same for the trials of a search before the final one.
    #[serde(rename = "search_sustain_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub search_sustain: Duration,
    /// Resolution of a search: difference of the bounds as a fraction of the upper one.
    pub resolution: f64,
    /// Validation criteria.
    pub criteria: Criteria,
    /// Client addresses of each pair of interfaces, for the report.
    pub clients: Vec<String>,
    /// Server addresses of each pair of interfaces, for the report.
    pub servers: Vec<String>,
}

/// Application of a traffic mix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct MixClass {
    /// Name in results.
    pub name: String,
    /// TLS settings; null for HTTP.
    pub tls: Option<TlsSettings>,
    /// Sizes in bytes of the objects that a connection requests.
    pub objects: Vec<u32>,
    /// Share of the throughput, 0 to 1. The shares of all applications sum to 1.
    pub share: f64,
}

/// Target objectives: from a data sheet, or for a deployment. The link rate is one for the
/// throughput.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Targets {
    /// TCP connections per second; null unless a test needs it.
    pub connections_per_s: Option<u64>,
    /// Throughput in bit/s of layer 2 in both directions; null unless a test needs it.
    pub throughput_bps: Option<u64>,
    /// Concurrent TCP connections; null unless a test needs it.
    pub concurrent: Option<u64>,
}

impl Default for Rfc9411 {
    /// Returns the profile of the RFC, without targets.
    fn default() -> Self {
        const SUSTAIN: Duration = Duration::from_secs(300);
        Self {
            tests: vec![Test::Connections, Test::Throughput, Test::Latency, Test::Concurrent],
            tls: None,
            object_sizes: None,
            has_mixed_objects: true,
            mix: Vec::new(),
            targets: Targets::default(),
            initial: 0.1,
            init: Duration::from_secs(5),
            ramp_up: Duration::from_secs(30),
            sustain: SUSTAIN,
            search_sustain: SUSTAIN,
            resolution: 0.02,
            criteria: Criteria::default(),
            clients: Vec::new(),
            servers: Vec::new(),
        }
    }
}

/// Findings of the method.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Rfc9411Findings {
    /// A row for each test, object size and scenario.
    pub rows: Vec<Rfc9411Row>,
}

/// Result of a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Rfc9411Row {
    /// Test.
    pub test: Test,
    /// Section of RFC 9411.
    pub section: String,
    /// Traffic, such as `http 1 KB`.
    pub traffic: String,
    /// Transactions of a connection; 0 for a mix.
    pub transactions: u64,
    /// Unit of the loads.
    pub unit: LoadUnit,
    /// Target objective.
    pub target: u64,
    /// Load of step 1.
    pub initial: u64,
    /// Whether step 1 met the validation criteria. If not, no other step ran.
    pub is_qualified: bool,
    /// Largest load that met the validation criteria for the whole sustain time; null if none did.
    pub load: Option<u64>,
    /// Smallest load that did not; null if there is none.
    pub upper: Option<u64>,
    /// Whether the tester, not the device, failed at the upper load: it did not start all connections
    /// in time.
    pub is_tester_limited: bool,
    /// Number of trials.
    pub trials: u32,
    /// Validation criteria of the trial at `load`, or else of the last one.
    pub criteria: Vec<CriterionValue>,
    /// Criteria that the trial at `upper` did not meet.
    pub upper_unmet: Vec<CriterionValue>,
    /// Indicators of the trial at `load`; null if none was valid.
    pub kpis: Option<Kpis>,
}

impl Rfc9411Row {
    /// Returns whether a trial met all criteria for the whole sustain time.
    pub const fn is_valid(&self) -> bool {
        self.load.is_some()
    }

    /// Returns test and traffic, for messages.
    pub fn subject(&self) -> String {
        format!("section {} {}, {}", self.section, self.test.name(), self.traffic)
    }
}

impl Rfc9411Findings {
    /// Returns what a reader must know before the figures.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for row in &self.rows {
            let subject = row.subject();
            if row.is_tester_limited {
                warnings.push(format!(
                    "{subject}: the tester did not start all connections in time, so the device may \
                     handle more; lower the target or use a faster tester"
                ));
            }
            if row.test == Test::Connections
                && let Some(kpis) = &row.kpis
                && let Some(limit) = self.throughput_limit(&row.traffic)
                && kpis.throughput_bps.mean >= limit * 0.95
            {
                warnings.push(format!(
                    "{subject}: the throughput reached its own maximum, so the connections per \
                     second are not valid (section {})",
                    row.section
                ));
            }
        }
        warnings
    }

    /// Returns the measured maximum throughput of a traffic, if the device did not reach the target.
    fn throughput_limit(&self, traffic: &str) -> Option<f64> {
        let row = self.rows.iter().find(|row| {
            row.test == Test::Throughput && row.traffic == traffic && row.upper.is_some()
        })?;
        row.load.map(|load| load as f64)
    }

    /// Returns the tests without a valid result, one sentence each.
    pub fn shortfalls(&self) -> Vec<String> {
        let invalid = self.rows.iter().filter(|row| !row.is_valid());
        invalid
            .map(|row| {
                let unmet = row.criteria.iter().filter(|value| !value.is_met);
                let unmet: Vec<_> = unmet.map(|value| value.criterion.name()).collect();
                let step = if row.is_qualified { "no valid load" } else { "step 1 failed" };
                format!("{}: {step} ({})", row.subject(), unmet.join(", "))
            })
            .collect()
    }

    /// Returns the largest valid load of a test with this traffic, or with any.
    fn load(&self, test: Test, traffic: &str) -> Option<u64> {
        let of_test = || self.rows.iter().filter(|row| row.test == test);
        let same = of_test().find(|row| row.traffic == traffic);
        same.or_else(|| of_test().next())?.load
    }
}

/// Connections that a test varies the load of.
struct Subject {
    test: Test,
    traffic: String,
    unit: LoadUnit,
    classes: Vec<TrafficClass>,
    target: u64,
    /// Connections per second at which the concurrent connections ramp up.
    ramp_rate: f64,
}

/// Outcome of a trial.
struct Judged {
    load: u64,
    values: Vec<CriterionValue>,
    is_valid: bool,
    output: ConnectionsOutput,
}

/// Trials of a subject.
struct Measuring<'a> {
    method: &'a Rfc9411,
    subject: Subject,
    trial: &'a mut dyn Trial,
    trials: u32,
}

impl Rfc9411 {
    /// Runs all tests. After an error, `findings` has the rows that were complete.
    ///
    /// # Errors
    /// Returns the first error of a trial, or an error for a missing target.
    pub fn run(
        &self,
        trial: &mut dyn Trial,
        findings: &mut Rfc9411Findings,
    ) -> Result<(), TrialError> {
        for test in Test::ALL.into_iter().filter(|test| self.tests.contains(test)) {
            for subject in self.subjects(test, findings)? {
                let searches = test != Test::Latency;
                let measuring = Measuring { method: self, subject, trial: &mut *trial, trials: 0 };
                findings.rows.push(measuring.row(searches)?);
            }
        }
        Ok(())
    }

    /// Returns the subjects of a test, in the order in which they are measured.
    fn subjects(&self, test: Test, findings: &Rfc9411Findings) -> Result<Vec<Subject>, TrialError> {
        let Targets { connections_per_s, throughput_bps, concurrent } = self.targets;
        let target = |value: Option<u64>, name: &str| {
            value.ok_or_else(|| {
                TrialError::Failed(format!("the {} test needs a target of {name}", test.name()))
            })
        };
        let sizes = || self.object_sizes.clone().unwrap_or_else(|| test.object_sizes());
        let subject = |objects: &[u32], rounds: u32, unit: LoadUnit, target: u64| {
            let classes = vec![self.class(objects, rounds)];
            let traffic = classes[0].name.clone();
            Subject { test, traffic, unit, classes, target: target.max(1), ramp_rate: 0.0 }
        };
        let mut subjects = Vec::new();
        match test {
            Test::Connections => {
                let target = target(connections_per_s, "connections per second")?;
                for size in sizes() {
                    subjects.push(subject(&[size], 1, LoadUnit::ConnectionsPerSecond, target));
                }
            }
            Test::Throughput => {
                let target = target(throughput_bps, "throughput")?;
                for size in sizes() {
                    subjects.push(subject(&[size], TRANSACTIONS, LoadUnit::BitsPerSecond, target));
                }
                if self.has_mixed_objects {
                    subjects.push(subject(&MIXED_OBJECTS, 1, LoadUnit::BitsPerSecond, target));
                }
            }
            Test::Latency => {
                // Half of the maximum of the tests before, or of the given targets.
                for (rounds, unit, of, fallback, name) in [
                    (
                        1,
                        LoadUnit::ConnectionsPerSecond,
                        Test::Connections,
                        connections_per_s,
                        "connections per second",
                    ),
                    (
                        TRANSACTIONS,
                        LoadUnit::BitsPerSecond,
                        Test::Throughput,
                        throughput_bps,
                        "throughput",
                    ),
                ] {
                    for size in sizes() {
                        let traffic = self.class(&[size], rounds).name;
                        let most = findings.load(of, &traffic);
                        let most = most.map_or_else(|| target(fallback, name), Ok)?;
                        subjects.push(subject(&[size], rounds, unit, most / 2));
                    }
                }
            }
            Test::Concurrent => {
                let target_concurrent = target(concurrent, "concurrent connections")?;
                let size = test.object_sizes()[0];
                let traffic = self.class(&[size], 1).name;
                let most = findings.load(Test::Connections, &traffic);
                let most =
                    most.map_or_else(|| target(connections_per_s, "connections per second"), Ok)?;
                let unit = LoadUnit::ConcurrentConnections;
                let subject = subject(&[size], TRANSACTIONS, unit, target_concurrent);
                // The ramp up has half of the connections per second that the device handles.
                subjects.push(Subject { ramp_rate: (most as f64 / 2.0).max(1.0), ..subject });
            }
            Test::Mix => {
                let target = target(throughput_bps, "throughput")?;
                subjects.push(Subject {
                    test,
                    traffic: "mix".into(),
                    unit: LoadUnit::BitsPerSecond,
                    classes: self.mix.iter().map(MixClass::class).collect(),
                    target,
                    ramp_rate: 0.0,
                });
            }
        }
        Ok(subjects)
    }

    fn class(&self, objects: &[u32], rounds: u32) -> TrafficClass {
        let protocol = if self.tls.is_some() { "https" } else { "http" };
        let size = match objects {
            [size] => size_name(*size),
            _ => "mixed".into(),
        };
        let class = TrafficClass {
            name: format!("{protocol} {size}"),
            tls: self.tls.clone(),
            objects: objects.to_vec(),
            rounds,
            share: 1.0,
            bits_per_connection: 0.0,
        };
        TrafficClass { bits_per_connection: bits_per_connection(&class), ..class }
    }

    /// Returns the differences of the parameters from what the RFC recommends or requires.
    pub fn deviations(&self) -> Vec<String> {
        let mut deviations = Vec::new();
        let seconds = |time: Duration| time.as_secs_f64();
        if self.init < Duration::from_secs(5) {
            deviations.push(format!(
                "init phase: {} s, RFC 9411 section 4.3.4 recommends at least 5 s",
                seconds(self.init)
            ));
        }
        if self.sustain < Duration::from_secs(300) {
            deviations.push(format!(
                "sustain phase: {} s, RFC 9411 section 4.3.4 recommends at least 300 s",
                seconds(self.sustain)
            ));
        }
        if self.search_sustain < self.sustain {
            deviations.push(format!(
                "sustain phase of a search: {} s; the final iteration has {} s",
                seconds(self.search_sustain),
                seconds(self.sustain)
            ));
        }
        if (self.initial - 0.1).abs() > 1e-9 {
            deviations.push(format!(
                "initial load: {} % of the target, RFC 9411 section 7 has 10 %",
                self.initial * 100.0
            ));
        }
        if self.object_sizes.is_some() {
            deviations.push("object sizes: not all, or others than those of RFC 9411".into());
        }
        let expected = Criteria::default();
        let limits = [
            ("failed transactions", self.criteria.failed, expected.failed),
            ("unexpected RST", self.criteria.resets, expected.resets),
            ("deviation of the rate", self.criteria.rate_deviation, expected.rate_deviation),
            (
                "deviation of concurrent connections",
                self.criteria.concurrent_deviation,
                expected.concurrent_deviation,
            ),
        ];
        for (name, found, limit) in limits {
            if (found - limit).abs() > 1e-12 {
                let [found, limit] = [found, limit].map(percent);
                deviations.push(format!(
                    "criterion {name}: less than {found} %, RFC 9411 requires {limit} %"
                ));
            }
        }
        deviations
    }
}

/// Formats a fraction as percent without the digits of its binary form.
fn percent(fraction: f64) -> f64 {
    (fraction * 1e8).round() / 1e6
}

impl MixClass {
    fn class(&self) -> TrafficClass {
        let class = TrafficClass {
            name: self.name.clone(),
            tls: self.tls.clone(),
            objects: self.objects.clone(),
            rounds: 1,
            share: self.share,
            bits_per_connection: 0.0,
        };
        TrafficClass { bits_per_connection: bits_per_connection(&class), ..class }
    }
}

/// Returns the name of an object size: `16 KB`, or `500 B`.
fn size_name(bytes: u32) -> String {
    match bytes % KILOBYTE {
        0 => format!("{} KB", bytes / KILOBYTE),
        _ => format!("{bytes} B"),
    }
}

impl Measuring<'_> {
    /// Runs the steps of a test.
    fn row(mut self, searches: bool) -> Result<Rfc9411Row, TrialError> {
        let target = self.subject.target;
        let initial = ((target as f64 * self.method.initial).round() as u64).clamp(1, target);
        let first = self.qualify(initial)?;
        let is_qualified = self.is_qualified(&first);
        let mut tried = vec![first];
        let (mut load, mut upper) = (None, None);
        if is_qualified && searches {
            (load, upper) = self.search(initial, &mut tried)?;
        } else if is_qualified {
            let second = self.measure(target, self.method.sustain)?;
            (load, upper) = match second.is_valid {
                true => (Some(target), None),
                false => (None, Some(target)),
            };
            tried.push(second);
        }
        // The last trial at a load is the one that decided.
        let at = |load: Option<u64>| tried.iter().rev().find(|it| Some(it.load) == load);
        let failed = at(upper);
        let last = at(load).or(failed).or(tried.last());
        let unmet = |it: &Judged| it.values.iter().filter(|it| !it.is_met).copied().collect();
        let transactions = match &*self.subject.classes {
            [class] => class.transactions(),
            _ => 0,
        };
        let has_tls = self.method.tls.is_some();
        Ok(Rfc9411Row {
            test: self.subject.test,
            section: self.subject.test.section(has_tls).into(),
            traffic: self.subject.traffic.clone(),
            transactions,
            unit: self.subject.unit,
            target,
            initial,
            is_qualified,
            load,
            upper,
            is_tester_limited: failed.is_some_and(|it| it.output.late > 0),
            trials: self.trials,
            criteria: last.map(|it| it.values.clone()).unwrap_or_default(),
            upper_unmet: failed.map(unmet).unwrap_or_default(),
            kpis: at(load).map(|it| Kpis::new(&it.output)),
        })
    }

    /// Runs step 1. If the load differed from its target because the volume of a connection was only
    /// estimated, runs it again.
    fn qualify(&mut self, initial: u64) -> Result<Judged, TrialError> {
        let estimate = self.bits();
        let first = self.measure(initial, self.method.sustain)?;
        let error = (self.bits() / estimate - 1.0).abs();
        if error >= self.method.criteria.rate_deviation {
            return self.measure(initial, self.method.sustain);
        }
        Ok(first)
    }

    /// Returns whether step 1 allows the next one. Some criteria are optional or absent in step 1 of
    /// sections 7.3, 7.7 and 7.9.
    fn is_qualified(&self, first: &Judged) -> bool {
        let has_tls = self.method.tls.is_some();
        let is_lenient = match self.subject.test {
            Test::Throughput => true,
            Test::Concurrent => has_tls,
            Test::Connections | Test::Latency | Test::Mix => false,
        };
        let is_optional = |it: &CriterionValue| {
            let of_rate = [Criterion::RateDeviation, Criterion::ConcurrentDeviation];
            is_lenient && of_rate.contains(&it.criterion)
        };
        first.values.iter().all(|it| it.is_met || is_optional(it))
    }

    /// Runs steps 2 and 3. Returns the largest valid load and the smallest invalid one.
    fn search(
        &mut self,
        initial: u64,
        tried: &mut Vec<Judged>,
    ) -> Result<(Option<u64>, Option<u64>), TrialError> {
        let method = self.method;
        let search = Bisection {
            min_load: initial,
            max_load: self.subject.target,
            width: method.resolution,
            loss_ratio: 0.0,
            intermediate: method.search_sustain.min(method.sustain),
            full: method.sustain,
            verifies_upper: false,
        };
        let mut measure = |load: u64, duration: Duration| {
            let judged = self.measure(load, duration)?;
            let loss_ratio = if judged.is_valid { 0.0 } else { 1.0 };
            tried.push(judged);
            Ok(Measurement { load, duration, loss_ratio, tester_ratio: 0.0 })
        };
        let bounds = search.search(&mut measure)?;
        Ok((bounds.lower.map(|it| it.load), bounds.upper.map(|it| it.load)))
    }

    /// Runs and judges a trial.
    fn measure(&mut self, load: u64, sustain: Duration) -> Result<Judged, TrialError> {
        let input = self.input(load, sustain);
        self.trials += 1;
        let output = self.trial.run(&input)?.connections;
        let (Some(input), Some(output)) = (input.connections, output) else {
            return Err(TrialError::Failed("expected results of connections".into()));
        };
        let values = self.method.criteria.judge(self.subject.test, load, &input, &output);
        self.calibrate(&output);
        let is_valid = values.iter().all(|value| value.is_met);
        Ok(Judged { load, values, is_valid, output })
    }

    fn input(&self, load: u64, sustain: Duration) -> TrialInput {
        let subject = &self.subject;
        let (mut ramp_up, mut think_time) = (self.method.ramp_up, Duration::ZERO);
        if subject.unit == LoadUnit::ConcurrentConnections {
            // Section 7.5: ramp up time = target / ramp up rate, think time = (ramp up + steady
            // state) / 10.
            let milliseconds = load as f64 * 1e3 / subject.ramp_rate;
            ramp_up = Duration::from_millis((milliseconds.ceil() as u64).max(1_000));
            let loaded = ramp_up.saturating_add(sustain).as_nanos();
            think_time = Duration::from_nanos(loaded / u64::from(TRANSACTIONS));
        }
        let connections = ConnectionsInput {
            unit: subject.unit,
            classes: subject.classes.clone(),
            init: self.method.init,
            ramp_up,
            sustain,
            think_time,
        };
        let traffic = Traffic { name: subject.traffic.clone(), frame_size: None };
        let length = Length::Time(connections.duration());
        let mut input = TrialInput::constant(subject.test.name(), &traffic, load, length);
        input.connections = Some(connections);
        input
    }

    /// Returns the mean bits of a connection, as the next trial assumes them.
    fn bits(&self) -> f64 {
        let rate = |class: &TrafficClass| class.share / class.bits_per_connection.max(1.0);
        1.0 / self.subject.classes.iter().map(rate).sum::<f64>().max(f64::MIN_POSITIVE)
    }

    /// Corrects the bits of a connection by those of a trial with hardly a failure.
    fn calibrate(&mut self, output: &ConnectionsOutput) {
        let is_usable = output.failed * 1_000 <= output.established && output.established > 0;
        if self.subject.unit != LoadUnit::BitsPerSecond || !is_usable {
            return;
        }
        let measured = output.layer_2_bytes as f64 * 8.0 / output.established as f64;
        let factor = measured / self.bits();
        if factor.is_finite() && factor > 0.0 {
            for class in &mut self.subject.classes {
                class.bits_per_connection *= factor;
            }
        }
    }
}
