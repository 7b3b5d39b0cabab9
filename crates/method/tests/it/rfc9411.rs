//! RFC 9411 finds the limits of the simulated device, and applies the validation criteria.

use wirestorm_base::time::Duration;
use wirestorm_method::connections::{LoadUnit, TlsSettings};
use wirestorm_method::device::{DeviceModel, SimulatedDevice};
use wirestorm_method::estimate::remaining;
use wirestorm_method::method::Method;
use wirestorm_method::rfc9411::{
    Criterion, KILOBYTE, MixClass, Rfc9411, Rfc9411Findings, Rfc9411Row, Targets, Test,
};
use wirestorm_method::trial::{Trial, TrialError, TrialInput, TrialOutput};

use crate::Counted;

fn method(tests: &[Test], targets: Targets) -> Rfc9411 {
    Rfc9411 {
        tests: tests.to_vec(),
        object_sizes: Some(vec![KILOBYTE]),
        has_mixed_objects: false,
        targets,
        ..Rfc9411::default()
    }
}

fn of_connections(connections_per_s: u64) -> Targets {
    Targets { connections_per_s: Some(connections_per_s), ..Targets::default() }
}

fn run(method: &Rfc9411, model: DeviceModel) -> (Rfc9411Findings, Counted<SimulatedDevice>) {
    let mut device = Counted::new(model);
    let mut findings = Rfc9411Findings::default();
    method.run(&mut device, &mut findings).unwrap();
    (findings, device)
}

fn unmet(row: &Rfc9411Row) -> Vec<Criterion> {
    row.criteria.iter().filter(|it| !it.is_met).map(|it| it.criterion).collect()
}

fn upper_unmet(row: &Rfc9411Row) -> Vec<Criterion> {
    row.upper_unmet.iter().map(|it| it.criterion).collect()
}

#[test]
fn connections_per_second_are_the_capacity_of_the_device() {
    let model = DeviceModel { connections_per_second: 7_000.0, ..DeviceModel::default() };
    let method = Rfc9411 {
        object_sizes: None,
        resolution: 0.001,
        ..method(&[Test::Connections], of_connections(10_000))
    };
    let (findings, device) = run(&method, model);
    let traffic: Vec<_> = findings.rows.iter().map(|row| &*row.traffic).collect();
    assert_eq!(traffic, ["http 1 KB", "http 2 KB", "http 4 KB", "http 16 KB", "http 64 KB"]);
    for row in &findings.rows {
        assert_eq!((&*row.section, row.initial, row.is_qualified), ("7.2", 1_000, true));
        let (load, upper) = (row.load.unwrap(), row.upper.unwrap());
        assert!(load <= 7_000 && 7_000 < upper && upper - load <= 8, "{load} {upper}");
        assert_eq!(unmet(row), []);
        assert_eq!(upper_unmet(row), [Criterion::FailedTransactions]);
        let kpis = row.kpis.as_ref().unwrap();
        assert!((kpis.connections_per_s.mean - load as f64).abs() < 1.0, "{kpis:?}");
        let first_byte = kpis.time_to_first_byte.unwrap();
        assert_eq!(
            (first_byte.min_ns, first_byte.p99_ns, first_byte.max_ns),
            (40_000, 40_000, 40_000)
        );
        assert_eq!(kpis.response_time, None);
    }
    assert_eq!(findings.shortfalls(), [""; 0]);
    // Init, ramp up and sustain of the RFC.
    assert!(device.trials.iter().all(|(input, _)| input.duration() == Duration::from_secs(335)));
}

#[test]
fn device_that_reaches_the_target_needs_two_trials() {
    let (findings, device) =
        run(&method(&[Test::Connections], of_connections(10_000)), DeviceModel::default());
    let row = &findings.rows[0];
    assert_eq!((row.load, row.upper, row.trials), (Some(10_000), None, 2));
    let loads: Vec<_> = device.trials.iter().map(|it| it.0.offers[0].steps[0].load).collect();
    assert_eq!(loads, [1_000, 10_000]);
}

#[test]
fn a_failure_of_step_1_ends_the_test() {
    let model = DeviceModel { connections_per_second: 900.0, ..DeviceModel::default() };
    let (findings, _) = run(&method(&[Test::Connections], of_connections(10_000)), model);
    let row = &findings.rows[0];
    assert_eq!((row.is_qualified, row.load, row.trials), (false, None, 1));
    assert_eq!(unmet(row), [Criterion::FailedTransactions, Criterion::TargetMissed]);
    let shortfalls = findings.shortfalls();
    assert_eq!(
        shortfalls,
        [
            "section 7.2 connections, http 1 KB: step 1 failed (failed transactions, load below its target)"
        ]
    );
}

#[test]
fn throughput_is_searched_in_bits_of_layer_2() {
    let model = DeviceModel { bits_per_second: 2e9, ..DeviceModel::default() };
    let targets = Targets { throughput_bps: Some(10_000_000_000), ..Targets::default() };
    let method = Rfc9411 {
        object_sizes: None,
        has_mixed_objects: true,
        resolution: 0.001,
        ..method(&[Test::Throughput], targets)
    };
    let (findings, _) = run(&method, model);
    assert_eq!(findings.rows.len(), 5);
    assert_eq!(findings.rows[4].traffic, "http mixed");
    for row in &findings.rows {
        assert_eq!((row.unit, row.transactions), (LoadUnit::BitsPerSecond, 10));
        let load = row.load.unwrap();
        assert!(load <= 2_000_000_000 && load > 1_990_000_000, "{load}");
        let kpis = row.kpis.as_ref().unwrap();
        assert!((kpis.throughput_bps.mean / load as f64 - 1.0).abs() < 0.01, "{kpis:?}");
    }
}

/// Counts more bytes than the estimated volume of connections.
struct Larger(SimulatedDevice);

impl Trial for Larger {
    fn run(&mut self, input: &TrialInput) -> Result<TrialOutput, TrialError> {
        let mut output = self.0.run(input)?;
        let connections = output.connections.as_mut().unwrap();
        // 1.3 times the estimate, whatever the method assumes now.
        let bits = connections.established as f64 * ESTIMATE * 1.3;
        connections.layer_2_bytes = (bits / 8.0) as u64;
        Ok(output)
    }
}

/// Bits of a connection of ten objects of 1 KB.
const ESTIMATE: f64 = 115_000.0;

#[test]
fn volume_of_a_connection_is_corrected_after_step_1() {
    let targets = Targets { throughput_bps: Some(1_000_000_000), ..Targets::default() };
    let method = method(&[Test::Throughput], targets);
    let mut device = Larger(SimulatedDevice::new(DeviceModel::default()));
    let mut findings = Rfc9411Findings::default();
    method.run(&mut device, &mut findings).unwrap();
    let row = &findings.rows[0];
    assert_eq!(row.load, Some(1_000_000_000), "{row:?}");
    let mean = row.kpis.as_ref().unwrap().throughput_bps.mean;
    assert!((mean / 1e9 - 1.0).abs() < 0.01, "{mean}");
}

#[test]
fn latency_is_measured_at_half_of_the_maximum() {
    let model = DeviceModel {
        connections_per_second: 4_000.0,
        bits_per_second: 3e8,
        ..DeviceModel::default()
    };
    let targets = Targets {
        connections_per_s: Some(10_000),
        throughput_bps: Some(2_000_000_000),
        concurrent: None,
    };
    let method = method(&[Test::Connections, Test::Throughput, Test::Latency], targets);
    let (findings, device) = run(&method, model);
    let [connections, throughput, short, long] = &*findings.rows else { panic!("{findings:?}") };
    assert_eq!(short.load, connections.load.map(|load| load / 2));
    assert_eq!(long.load, throughput.load.map(|load| load / 2));
    assert_eq!((short.transactions, long.transactions, short.trials), (1, 10, 2));
    let kpis = long.kpis.as_ref().unwrap();
    assert_eq!(kpis.time_to_last_byte.unwrap().mean_ns, 50_000.0);
    assert!(kpis.response_time.is_some());
    let latency: Vec<_> = device.trials.iter().filter(|it| it.0.test == "latency").collect();
    assert_eq!(latency.len(), 4);
}

fn of_concurrent(concurrent: u64, connections_per_s: u64) -> Targets {
    Targets {
        connections_per_s: Some(connections_per_s),
        concurrent: Some(concurrent),
        throughput_bps: None,
    }
}

#[test]
fn concurrent_connections_are_the_size_of_the_table() {
    let model = DeviceModel { concurrent_connections: 60_000.0, ..DeviceModel::default() };
    let method =
        Rfc9411 { resolution: 0.001, ..method(&[Test::Concurrent], of_concurrent(100_000, 2_000)) };
    let (findings, device) = run(&method, model);
    let row = &findings.rows[0];
    assert!((59_900..=60_000).contains(&row.load.unwrap()), "{row:?}");
    assert_eq!(row.kpis.as_ref().unwrap().concurrent.mean, row.load.unwrap() as f64);
    // The ramp has half of the connections per second, and ten requests take the whole trial.
    let (input, _) = &device.trials[1];
    let connections = input.connections.as_ref().unwrap();
    assert_eq!(connections.ramp_up, Duration::from_secs(100));
    assert_eq!(connections.think_time, Duration::from_secs(40));
    assert_eq!(input.duration(), Duration::from_secs(5 + 100 + 300 + 100));
}

#[test]
fn ramp_that_is_too_steep_fails_step_1() {
    // The data sheet promises four times the connections per second that the device handles.
    let model = DeviceModel { connections_per_second: 1_000.0, ..DeviceModel::default() };
    let (findings, _) =
        run(&method(&[Test::Concurrent], of_concurrent(100_000, 4_000)), model.clone());
    assert_eq!((findings.rows[0].is_qualified, findings.rows[0].load), (false, None));
    let (findings, _) =
        run(&method(&[Test::Concurrent], of_concurrent(100_000, 2_000)), model.clone());
    assert_eq!(findings.rows[0].load, Some(100_000));
    // The connections test in the same run corrects the data sheet.
    let tests = [Test::Connections, Test::Concurrent];
    let (findings, _) = run(&method(&tests, of_concurrent(100_000, 4_000)), model);
    assert_eq!(findings.rows[1].load, Some(100_000));
}

#[test]
fn unexpected_resets_are_not_valid() {
    let model = DeviceModel { reset_ratio: 2e-5, ..DeviceModel::default() };
    let (findings, _) = run(&method(&[Test::Connections], of_connections(10_000)), model);
    let row = &findings.rows[0];
    assert_eq!(unmet(row), [Criterion::FailedTransactions, Criterion::UnexpectedResets]);
    let model = DeviceModel { reset_ratio: 5e-6, ..DeviceModel::default() };
    let (findings, _) = run(&method(&[Test::Connections], of_connections(10_000)), model);
    assert_eq!(findings.rows[0].load, Some(10_000));
}

#[test]
fn rate_has_to_be_constant() {
    let model = |rate_variation| DeviceModel { rate_variation, ..DeviceModel::default() };
    let method = method(&[Test::Connections], of_connections(10_000));
    let (findings, _) = run(&method, model(0.06));
    assert_eq!(unmet(&findings.rows[0]), [Criterion::RateDeviation]);
    let (findings, _) = run(&method, model(0.04));
    let kpis = findings.rows[0].kpis.clone().unwrap();
    assert_eq!(findings.rows[0].load, Some(10_000));
    assert!((kpis.connections_per_s.max / kpis.connections_per_s.mean - 1.04).abs() < 1e-3);
    // A higher limit is a deviation from the RFC.
    let mut lenient = method;
    lenient.criteria.rate_deviation = 0.1;
    assert_eq!(run(&lenient, model(0.06)).0.rows[0].load, Some(10_000));
    let deviations = lenient.deviations();
    assert!(deviations.iter().any(|it| it.contains("less than 10 %")), "{deviations:?}");
}

#[test]
fn tester_that_is_too_slow_is_named() {
    let model = DeviceModel { generator_max: 5_000.0, ..DeviceModel::default() };
    let (findings, _) = run(&method(&[Test::Connections], of_connections(10_000)), model);
    let row = &findings.rows[0];
    assert!(row.is_tester_limited && row.load.unwrap() < 5_300, "{row:?}");
    assert!(findings.warnings()[0].contains("the tester"), "{:?}", findings.warnings());
}

#[test]
fn mix_shares_the_throughput() {
    let tls = TlsSettings { version: "1.3".into(), cipher: "TLS_AES_128_GCM_SHA256".into() };
    let class = |name: &str, tls, size, share| MixClass {
        name: name.into(),
        tls,
        objects: vec![size * KILOBYTE],
        share,
    };
    let targets = Targets { throughput_bps: Some(1_000_000_000), ..Targets::default() };
    let mut method = method(&[Test::Mix], targets);
    method.mix = vec![class("web", Some(tls), 64, 0.7), class("api", None, 1, 0.3)];
    let model = DeviceModel { bits_per_second: 5e8, ..DeviceModel::default() };
    let (findings, device) = run(&method, model);
    let row = &findings.rows[0];
    assert_eq!((&*row.section, &*row.traffic), ("7.1", "mix"));
    let load = row.load.unwrap();
    assert!(load <= 500_000_000 && load > 485_000_000, "{load}");
    let output = device.trials[0].1.connections.as_ref().unwrap();
    // Objects of 1 KB need many more connections than their share of the throughput.
    assert!(output.tls_handshakes > 0 && output.tls_handshakes * 10 < output.established);
}

#[test]
fn plan_has_the_trials_of_all_tests() {
    let targets = Targets {
        connections_per_s: Some(10_000),
        throughput_bps: Some(1_000_000_000),
        concurrent: Some(50_000),
    };
    let method = Method::Rfc9411(Rfc9411 { targets, ..Rfc9411::default() });
    let trials = remaining(&method, &[], 0.5);
    for test in ["connections", "throughput", "latency", "concurrent"] {
        assert!(trials.iter().any(|input| input.test == test), "{test}");
    }
    // A device with half of each target: the search passes the target and finds the half.
    let first: Vec<_> =
        trials.iter().take_while(|it| it.offers[0].traffic == "http 1 KB").collect();
    let loads: Vec<_> = first.iter().map(|it| it.offers[0].steps[0].load).collect();
    assert_eq!(&loads[..3], [1_000, 10_000, 5_500]);
    assert!(first.len() < 12, "{loads:?}");
}

#[test]
fn deviations_name_the_sections() {
    assert_eq!(Rfc9411::default().deviations(), [""; 0]);
    let second = Duration::from_secs(1);
    let short = Rfc9411 { init: second, sustain: second, initial: 0.5, ..Rfc9411::default() };
    let deviations = short.deviations();
    assert_eq!(deviations.len(), 3, "{deviations:?}");
    assert!(deviations.iter().all(|it| it.contains("RFC 9411")), "{deviations:?}");
}
