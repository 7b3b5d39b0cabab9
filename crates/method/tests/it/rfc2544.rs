//! RFC 2544 finds the limits of the simulated device.

use wirestorm_base::time::Duration;
use wirestorm_method::device::{DeviceModel, SimulatedDevice};
use wirestorm_method::rfc2544::{Rfc2544, Rfc2544Findings, Test};

use crate::Counted;

fn run(method: &Rfc2544, model: DeviceModel) -> (Rfc2544Findings, Counted<SimulatedDevice>) {
    let mut device = Counted::new(model);
    let mut findings = Rfc2544Findings::default();
    method.run(&mut device, &mut findings).unwrap();
    (findings, device)
}

fn of_tests(tests: &[Test], frame_sizes: &[u32]) -> Rfc2544 {
    let (tests, frame_sizes) = (tests.to_vec(), frame_sizes.to_vec());
    Rfc2544 { tests, frame_sizes, ..Rfc2544::default() }
}

fn limited(frames_per_second: f64) -> DeviceModel {
    DeviceModel { frames_per_second, ..DeviceModel::default() }
}

#[test]
fn throughput_is_the_capacity_of_each_frame_size() {
    let method = Rfc2544 { confirmations: 3, ..of_tests(&[], &[64, 512, 1518]) };
    let (findings, device) = run(&method, limited(2_000_000.0));
    let [small, medium, large] = &*findings.throughput else { panic!("{findings:?}") };
    assert!(small.load <= 2_000_000 && small.load > 1_990_000, "{small:?}");
    assert!(small.upper.unwrap() > 2_000_000);
    // 512-byte frames: 2,349,624 frames per second are above the capacity; 1518: they are below.
    assert!(medium.load <= 2_000_000 && medium.load > 1_990_000, "{medium:?}");
    assert_eq!((large.load, large.upper, large.line_rate_percent), (812_743, None, 100.0));
    assert!(findings.throughput.iter().all(|row| row.confirmed == 3));
    let trials = device.trials.len();
    let expected: u32 = findings.throughput.iter().map(|row| row.trials + 3).sum();
    assert_eq!(trials, expected as usize);
    assert!(device.trials.iter().all(|(input, _)| input.duration() == Duration::from_secs(60)));
}

#[test]
fn device_that_recovers_later_than_the_pause_is_found_by_verification() {
    let model = DeviceModel { overload_capacity: 0.1, overload_s: 3.0, ..limited(2_000_000.0) };
    let (plain, _) = run(&of_tests(&[], &[64]), model.clone());
    assert!(plain.throughput[0].load < 1_900_000, "{plain:?}");
    assert!(!plain.throughput[0].is_contradictory);
    let method = Rfc2544 { verifies_upper: true, ..of_tests(&[], &[64]) };
    let (verified, _) = run(&method, model);
    assert!(verified.throughput[0].is_contradictory, "{verified:?}");
}

#[test]
fn generator_that_is_too_slow_is_named_as_the_limit() {
    let model = DeviceModel { generator_max: 1_000_000.0, ..DeviceModel::default() };
    let (findings, _) = run(&of_tests(&[], &[64]), model);
    let row = &findings.throughput[0];
    assert!(row.is_tester_limited);
    assert!(row.load <= 1_000_010 && row.load > 990_000, "{row:?}");
    let (findings, _) = run(&of_tests(&[], &[64]), limited(1_000_000.0));
    assert!(!findings.throughput[0].is_tester_limited);
}

#[test]
fn device_with_regular_loss_has_no_throughput_but_an_exact_loss_rate() {
    let model = DeviceModel { drops_each: 1_000, ..DeviceModel::default() };
    let (findings, _) = run(&of_tests(&[Test::FrameLoss], &[64]), model);
    assert_eq!(findings.throughput[0].load, 0);
    let points = &findings.frame_loss[0].points;
    assert_eq!(points.len(), 10);
    assert!(points.iter().all(|point| (point.loss_percent - 0.1).abs() < 1e-6), "{points:?}");
}

#[test]
fn frame_loss_ends_after_two_trials_without_loss() {
    // 60 % of the line rate of 64-byte frames.
    let (findings, _) = run(&of_tests(&[Test::FrameLoss], &[64]), limited(8_928_572.0));
    let points = &findings.frame_loss[0].points;
    let shown: Vec<_> =
        points.iter().map(|it| (it.load_percent, it.loss_percent.round() as u64)).collect();
    assert_eq!(shown, [(100.0, 40), (90.0, 33), (80.0, 25), (70.0, 14), (60.0, 0), (50.0, 0)]);
}

#[test]
fn back_to_back_finds_the_queue_length() {
    let model = DeviceModel { queue: 1_000, ..limited(7_440_476.0) };
    let mut method = of_tests(&[Test::BackToBack], &[64, 1518]);
    method.back_to_back.repetitions = 3;
    method.resolution = 1e-6;
    let (findings, _) = run(&method, model);
    let [small, large] = &*findings.back_to_back else { panic!("{findings:?}") };
    // At twice the capacity, half of a burst waits: a burst of 2,000 frames fills the queue.
    assert_eq!((small.min, small.max), (Some(2_000), Some(2_000)));
    assert_eq!((small.average, small.standard_deviation), (Some(2_000.0), Some(0.0)));
    // RFC 9004: the corrected buffer time is that of the frames that wait.
    let buffer_s = small.corrected_buffer_s.unwrap();
    assert!((buffer_s - 1_000.0 / 14_880_952.0).abs() < 1e-9, "{buffer_s}");
    assert!(large.skipped.is_some() && large.bursts.is_empty());
}

#[test]
fn recovery_is_the_time_of_the_last_loss_after_the_overload() {
    let model = DeviceModel {
        overload_capacity: 0.25,
        overload_s: 7.0,
        pause_s: 10.0,
        ..limited(1_000_000.0)
    };
    let mut method = of_tests(&[Test::Recovery], &[64]);
    method.recovery.repetitions = 2;
    let (findings, _) = run(&method, model);
    let row = &findings.recovery[0];
    assert!(row.is_overloaded);
    assert_eq!(row.recovery_s.len(), 2);
    assert!((row.mean_s.unwrap() - 7.0).abs() < 0.01, "{row:?}");
}

#[test]
fn reset_is_reported_by_loss_and_by_timestamps() {
    let model = DeviceModel { reset_s: 12.5, ..limited(1_000_000.0) };
    let (findings, _) = run(&of_tests(&[Test::Reset], &[64, 128]), model);
    let [row] = &*findings.reset else { panic!("one row, of the smallest size") };
    assert_eq!((row.frame_size, row.by_timestamps_s), (64, Some(12.5)));
    assert!((row.by_loss_s - 12.5).abs() < 0.01, "{row:?}");
}

#[test]
fn latency_has_the_percentiles_of_rfc_8219() {
    let (findings, device) = run(&of_tests(&[Test::Latency], &[1518]), DeviceModel::default());
    let row = &findings.latency[0];
    assert_eq!((row.repetitions, row.mean_ns), (20, Some(10_000.0)));
    assert_eq!(row.typical.unwrap().median_ns, 10_000.0);
    assert_eq!(row.pdv.unwrap().median_ns, 0.0);
    // 20 streams of 120 s, of which the last 60 s count.
    assert_eq!(row.delay.count, 20 * 60 * 812_743);
    assert_eq!(device.seconds(), 60.0 + 20.0 * 120.0);
}

#[test]
fn short_trials_are_listed_as_deviations() {
    assert_eq!(Rfc2544::default().deviations(), [""; 0]);
    let mut method = Rfc2544 { trial: Duration::from_secs(2), ..Rfc2544::default() };
    method.back_to_back.repetitions = 5;
    let deviations = method.deviations();
    assert_eq!(deviations.len(), 2, "{deviations:?}");
    assert!(deviations[0].contains("section 24"), "{deviations:?}");
}
