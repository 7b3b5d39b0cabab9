//! The non-drop rate search finds the limits of the simulated device.

use wirestorm_base::time::Duration;
use wirestorm_method::device::{DeviceModel, SimulatedDevice};
use wirestorm_method::method::{Findings, Method};
use wirestorm_method::ndr::{CONNECTIONS, LatencyLimit, Limit, Ndr, NdrFindings, NdrRow};
use wirestorm_method::trial::{SegmentsOutput, Trial, TrialError, TrialInput, TrialOutput};

use crate::Counted;

fn run(method: &Ndr, model: DeviceModel) -> (NdrRow, Counted<SimulatedDevice>) {
    let mut device = Counted::new(model);
    let mut findings = NdrFindings::default();
    method.run(&mut device, &mut findings).unwrap();
    (findings.rows.remove(0), device)
}

fn limited(frames_per_second: f64) -> DeviceModel {
    DeviceModel { frames_per_second, ..DeviceModel::default() }
}

fn loads(device: &Counted<SimulatedDevice>) -> Vec<u64> {
    device.trials.iter().map(|(input, _)| input.offers[0].steps[0].load).collect()
}

#[test]
fn search_ends_within_the_error_around_the_capacity() {
    for capacity in [200_000.0, 1_000_000.0, 3_333_333.0, 9_999_999.0, 14_000_000.0] {
        let method = Ndr { pdr: 0.0, ..Ndr::default() };
        let (row, device) = run(&method, limited(capacity));
        let (best, upper) = (row.best.unwrap().load, row.upper.unwrap());
        assert!(best as f64 <= capacity && upper as f64 > capacity, "{row:?}");
        // 1 % of the maximum rate.
        assert!(upper - best <= 148_809, "{row:?}");
        assert_eq!((row.limit, row.is_exhausted), (Some(Limit::Drops), false));
        assert_eq!((row.rate_max, row.iterations), (14_880_952, 7));
        assert_eq!(device.trials.len(), 8);
    }
}

#[test]
fn trials_are_those_of_the_bisection() {
    let method = Ndr { load_max: Some(1_000_000), pdr: 0.0, ..Ndr::default() };
    let (row, device) = run(&method, limited(700_000.0));
    let expected = [1_000_000, 500_000, 750_000, 625_000, 687_500, 718_750, 703_125, 695_312];
    assert_eq!(loads(&device), expected);
    assert_eq!((row.best.unwrap().load, row.upper), (695_312, Some(703_125)));
    assert!((row.rate_percent - 69.5312).abs() < 1e-9);
}

#[test]
fn device_that_forwards_the_maximum_needs_one_run() {
    let (row, device) = run(&Ndr::default(), DeviceModel::default());
    assert_eq!(device.trials.len(), 1);
    assert_eq!((row.best.unwrap().load, row.rate_percent), (14_880_952, 100.0));
    assert_eq!((row.upper, row.limit), (None, None));
}

#[test]
fn allowed_drops_raise_the_rate() {
    let method = Ndr { pdr: 0.05, pdr_error: 0.000_1, iterations_max: 30, ..Ndr::default() };
    let (row, _) = run(&method, limited(1_000_000.0));
    let best = row.best.unwrap();
    // 5 % of what is sent may be lost.
    assert!((best.load as f64 - 1_000_000.0 / 0.95).abs() < 1_500.0, "{row:?}");
    assert!(best.drop_percent <= 5.0 && best.drop_percent > 4.8, "{row:?}");
}

#[test]
fn drop_rate_of_the_first_run_narrows_the_search() {
    let plain = Ndr { pdr: 0.0, ..Ndr::default() };
    let narrow = Ndr { expected_range: Some(0.05), ..plain.clone() };
    for capacity in [2_000_000.0, 6_000_000.0, 12_000_000.0] {
        let (row, _) = run(&narrow, limited(capacity));
        let (best, upper) = (row.best.unwrap().load, row.upper.unwrap());
        assert!(best as f64 <= capacity && upper as f64 > capacity, "{row:?}");
        assert!(upper - best <= 148_809, "{row:?}");
        assert!(row.iterations < run(&plain, limited(capacity)).0.iterations, "{row:?}");
    }
    // A device that is worse after an overload, so the expectation is wrong: both outer ranges.
    let model = DeviceModel { overload_capacity: 0.5, overload_s: 5.0, ..limited(6_000_000.0) };
    let (row, _) = run(&narrow, model);
    assert!(row.best.unwrap().load <= 6_000_000, "{row:?}");
    let (row, _) = run(&narrow, DeviceModel { drops_each: 50, ..DeviceModel::default() });
    assert_eq!((row.best, row.rate_percent), (None, 0.0));
}

#[test]
fn latency_above_its_limit_fails_a_load() {
    // The queue of 100,000 frames delays by 100 ms at a load above the capacity, without drops in the
    // measured time.
    let model = DeviceModel { queue: 100_000_000_000, ..limited(1_000_000.0) };
    let (row, _) = run(&Ndr::default(), model.clone());
    assert_eq!(row.best.unwrap().load, 14_880_952);
    let latency = Some(LatencyLimit { max: Duration::from_millis(1), tolerance: 0.0 });
    let method = Ndr { latency, ..Ndr::default() };
    let (row, _) = run(&method, model.clone());
    assert!(row.best.unwrap().load <= 1_000_000, "{row:?}");
    assert_eq!(row.limit, Some(Limit::Latency));
    let latency = Some(LatencyLimit { max: Duration::from_millis(1), tolerance: 1.0 });
    let (row, _) = run(&Ndr { latency, ..method }, model);
    assert_eq!(row.best.unwrap().load, 14_880_952);
}

#[test]
fn slow_generator_is_the_maximum_rate_and_named_as_the_limit() {
    let model = DeviceModel { generator_max: 1_000_000.0, ..DeviceModel::default() };
    let method = Ndr { load_max: Some(4_000_000), ..Ndr::default() };
    let (row, device) = run(&method, model.clone());
    assert_eq!(loads(&device), [4_000_000, 1_000_000]);
    assert_eq!((row.rate_max, row.best.unwrap().load), (1_000_000, 1_000_000));
    assert_eq!((row.limit, row.upper), (Some(Limit::Tester), Some(4_000_000)));
    let warnings = NdrFindings { rows: vec![row] }.warnings();
    assert!(
        warnings.iter().any(|text| text.contains("the tester reached 1000000/s")),
        "{warnings:?}"
    );
    // A device below the generator is found all the same.
    let (row, _) = run(&method, DeviceModel { frames_per_second: 300_000.0, ..model });
    let best = row.best.unwrap().load;
    assert!((290_000..=300_300).contains(&best), "{row:?}");
    assert_eq!(row.limit, Some(Limit::Drops));
}

#[test]
fn noise_within_the_allowed_drops_moves_nothing() {
    for seed in 1..20 {
        let model = DeviceModel { noise: 0.5, noise_frames: 100, seed, ..limited(5_000_000.0) };
        let (row, _) = run(&Ndr::default(), model);
        assert!(row.best.unwrap().load > 4_850_000, "seed {seed}: {row:?}");
    }
}

#[test]
fn number_of_iterations_is_limited() {
    let method = Ndr { iterations_max: 3, ..Ndr::default() };
    let (row, device) = run(&method, limited(5_000_000.0));
    assert_eq!((row.iterations, row.is_exhausted, device.trials.len()), (3, true, 4));
    assert!(NdrFindings { rows: vec![row] }.warnings()[0].contains("--max-iterations"));
}

#[test]
fn further_results_are_parts_of_the_rate() {
    let method = Ndr { results: 4, load_max: Some(1_200_000), ..Ndr::default() };
    let (row, device) = run(&method, DeviceModel::default());
    assert_eq!(loads(&device), [1_200_000, 600_000, 400_000, 300_000]);
    assert_eq!(row.points.iter().map(|point| point.load).sum::<u64>(), 1_300_000);
    assert_eq!(row.points[0].latency_mean_ns, Some(10_000.0));
}

#[test]
fn traffic_with_its_own_sizes_has_no_frame_size() {
    let method = Ndr { traffic: vec!["plan".into()], frame_sizes: Vec::new(), ..Ndr::default() };
    let (row, device) = run(&method, limited(1_000_000.0));
    assert_eq!((&*row.traffic, row.frame_size, row.load_max), ("plan", None, 14_880_952));
    assert!(device.trials.iter().all(|(input, _)| input.offers[0].frame_size.is_none()));
}

#[test]
fn parameters_and_findings_survive_json() {
    let latency = Some(LatencyLimit { max: Duration::from_micros(1_500), tolerance: 0.05 });
    let method = Method::Ndr(Ndr { latency, expected_range: Some(0.05), ..Ndr::default() });
    let text = serde_json::to_string(&method).unwrap();
    assert!(text.starts_with(r#"{"method":"ndr""#), "{text}");
    assert_eq!(serde_json::from_str::<Method>(&text).unwrap(), method);
    let (findings, outcome) = method.run(&mut SimulatedDevice::new(limited(3_000_000.0)));
    outcome.unwrap();
    let text = serde_json::to_string(&findings).unwrap();
    assert_eq!(serde_json::from_str::<Findings>(&text).unwrap(), findings);
}

/// Connections of clients instead of frames.
fn of_connections(load_max: u64, pdr: f64) -> Ndr {
    let (traffic, frame_sizes) = (vec![CONNECTIONS.to_owned()], Vec::new());
    Ndr { traffic, frame_sizes, load_max: Some(load_max), pdr, ..Ndr::default() }
}

#[test]
fn rate_of_connections_is_the_limit_of_the_device() {
    let method = Ndr { pdr_error: 0.000_01, iterations_max: 30, ..of_connections(100_000, 0.0) };
    let model = DeviceModel { connections_per_second: 31_234.0, ..limited(100.0) };
    let (row, _) = run(&method, model);
    assert_eq!((row.best.unwrap().load, row.upper), (31_234, Some(31_235)), "{row:?}");
    assert_eq!((row.load_max, row.limit), (100_000, Some(Limit::Drops)));
    assert_eq!(method.deviations(), Vec::<String>::new());
}

#[test]
fn part_of_the_connections_may_fail() {
    let model = DeviceModel { reset_ratio: 0.004, ..DeviceModel::default() };
    let (row, _) = run(&of_connections(10_000, 0.005), model.clone());
    let best = row.best.unwrap();
    assert_eq!((best.load, row.upper), (10_000, None), "{row:?}");
    assert!((best.drop_percent - 0.4).abs() < 0.001, "{row:?}");
    assert_eq!(run(&of_connections(10_000, 0.003), model).0.best, None);
}

/// A device in front of which TCP retransmits a part of the segments above a load.
struct Retransmitting {
    load: u64,
    ratio: f64,
}

impl Trial for Retransmitting {
    fn run(&mut self, input: &TrialInput) -> Result<TrialOutput, TrialError> {
        let output = SimulatedDevice::new(DeviceModel::default()).run(input)?;
        let sent = output.first().total().offered * 10;
        let is_above = input.offers[0].steps[0].load > self.load;
        let retransmitted = if is_above { (sent as f64 * self.ratio) as u64 } else { 0 };
        Ok(TrialOutput { segments: Some(SegmentsOutput { sent, retransmitted }), ..output })
    }
}

#[test]
fn retransmissions_limit_the_rate_of_connections() {
    let search = |pdr| {
        let mut findings = NdrFindings::default();
        let mut device = Retransmitting { load: 6_000, ratio: 0.002 };
        of_connections(10_000, pdr).run(&mut device, &mut findings).unwrap();
        findings.rows.remove(0)
    };
    let row = search(0.001);
    assert_eq!(row.limit, Some(Limit::Retransmissions), "{row:?}");
    let (best, upper) = (row.best.unwrap(), row.upper.unwrap());
    assert!(best.load <= 6_000 && upper > 6_000 && upper - best.load <= 100, "{row:?}");
    assert_eq!((best.drop_percent, best.retransmitted_percent), (0.0, Some(0.0)));
    let tolerated = search(0.003).best.unwrap();
    assert_eq!((tolerated.load, tolerated.retransmitted_percent), (10_000, Some(0.2)));
}
