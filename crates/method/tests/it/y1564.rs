//! Service activation on simulated devices, with and without a policer.

use wirestorm_base::time::Duration;
use wirestorm_method::device::{DeviceModel, SimulatedDevice};
use wirestorm_method::distribution::Distribution;
use wirestorm_method::method::{Findings, Method};
use wirestorm_method::trial::{PathOutput, Trial, TrialError, TrialInput, TrialOutput};
use wirestorm_method::y1564::{Criteria, Service, Test, Y1564, Y1564Findings, Y1564Row};

use crate::{Counted, StopBefore};

/// Size with a whole number of frames per second at all rates of these tests.
const FRAME_SIZE: u32 = 125;

fn service(name: &str, cir_bps: u64, eir_bps: u64) -> Service {
    Service {
        name: name.into(),
        protocol: "ipv4".into(),
        frame_sizes: vec![FRAME_SIZE],
        vlan: None,
        pcp: 0,
        dscp: 0,
        cir_bps,
        eir_bps,
        cbs_bytes: 0,
        ebs_bytes: 0,
        criteria: Criteria { flr: 0.001, ..Criteria::default() },
    }
}

fn method(services: &[Service]) -> Y1564 {
    Y1564 {
        services: services.to_vec(),
        tests: Test::ALL.to_vec(),
        cir_steps: vec![0.25, 0.5, 0.75, 1.0],
        step: Duration::from_secs(60),
        performance: Duration::from_secs(900),
        rate_tolerance: 0.01,
    }
}

fn run_on(method: &Y1564, trial: &mut dyn Trial) -> Y1564Findings {
    let mut findings = Y1564Findings::default();
    method.run(trial, &mut findings).unwrap();
    findings
}

fn run(method: &Y1564, model: DeviceModel) -> Vec<Y1564Row> {
    run_on(method, &mut SimulatedDevice::new(model)).rows
}

fn policed(bps: f64) -> DeviceModel {
    DeviceModel { police_bps: bps, ..DeviceModel::default() }
}

/// Returns the test, the load in Mbit/s, and whether it passed.
fn outcomes(rows: &[Y1564Row]) -> Vec<(Test, f64, bool)> {
    rows.iter().map(|row| (row.test, row.load_bps / 1e6, row.is_passed())).collect()
}

#[test]
fn service_with_a_right_policer_passes_all_steps() {
    let rows = run(&method(&[service("voice", 10_000_000, 5_000_000)]), policed(15e6));
    assert_eq!(
        outcomes(&rows),
        [
            (Test::Cir, 2.5, true),
            (Test::Cir, 5.0, true),
            (Test::Cir, 7.5, true),
            (Test::Cir, 10.0, true),
            (Test::Eir, 15.0, true),
            // CIR + 1.25 EIR.
            (Test::Policing, 16.25, true),
            (Test::Performance, 10.0, true),
        ]
    );
    let policing = &rows[5];
    assert_eq!(policing.total.ir_bps, 15e6);
    assert_eq!(policing.ir_min_bps, Some(10e6 * 0.999 * 0.99));
    assert_eq!(policing.ir_max_bps, Some(15e6 * 1.01));
    assert!((policing.total.flr - 1.25 / 16.25).abs() < 1e-4, "{policing:?}");
    assert_eq!(rows[6].total.availability, Some(1.0));
}

#[test]
fn policing_rate_depends_on_the_part_of_the_eir() {
    let rate = |cir, eir| service("s", cir, eir).policing_bps();
    assert_eq!(rate(10_000_000, 0), 12.5e6);
    assert_eq!(rate(10_000_000, 1_900_000), 14.4e6);
    // 20 % of the CIR belongs to the upper range.
    assert_eq!(rate(10_000_000, 2_000_000), 12.5e6);
    assert_eq!(rate(0, 2_000_000), 2.5e6);
}

#[test]
fn service_without_an_eir_has_no_step_for_it() {
    let rows = run(&method(&[service("voice", 8_000_000, 0)]), policed(8e6));
    let tests: Vec<_> = rows.iter().map(|row| row.test).collect();
    assert_eq!(tests[3..], [Test::Cir, Test::Policing, Test::Performance]);
    assert!(rows.iter().all(Y1564Row::is_passed), "{rows:?}");
}

#[test]
fn service_without_a_cir_has_only_excess() {
    let rows = run(&method(&[service("bulk", 0, 8_000_000)]), policed(8e6));
    assert_eq!(outcomes(&rows), [(Test::Eir, 8.0, true), (Test::Policing, 10.0, true)]);
    assert_eq!((rows[0].load_percent, rows[0].ir_min_bps), (100.0, Some(0.0)));
}

#[test]
fn missing_policer_fails_the_policing_test_only() {
    let rows = run(&method(&[service("voice", 10_000_000, 5_000_000)]), DeviceModel::default());
    let failed: Vec<_> = rows.iter().filter(|row| !row.is_passed()).collect();
    let [row] = &*failed else { panic!("{failed:?}") };
    assert_eq!(row.test, Test::Policing);
    assert!(row.total.failures[0].contains("IR 16.250 Mbit/s is above CIR + EIR"), "{row:?}");
}

#[test]
fn policer_below_the_cir_fails_the_last_step_and_everything_after() {
    let rows = run(&method(&[service("voice", 10_000_000, 5_000_000)]), policed(9e6));
    let passed: Vec<_> = rows.iter().map(Y1564Row::is_passed).collect();
    assert_eq!(passed, [true, true, true, false, false, false, false]);
    assert!((rows[3].total.flr - 0.1).abs() < 1e-3, "{rows:?}");
    assert!(rows[3].total.failures[0].starts_with("FLR 10.0"), "{rows:?}");
    assert!(rows[5].total.failures[0].contains("IR 9.000 Mbit/s is below the CIR"), "{rows:?}");
}

#[test]
fn burst_sizes_extend_the_upper_limit() {
    let mut voice = service("voice", 10_000_000, 0);
    let (passes, step) = (policed(10.2e6), Duration::from_secs(10));
    let policing = |service: &Service| {
        let method =
            Y1564 { tests: vec![Test::Policing], step, ..method(std::slice::from_ref(service)) };
        run(&method, passes.clone()).remove(0)
    };
    assert!(!policing(&voice).is_passed());
    // 125,000 bytes in 10 s are 0.1 Mbit/s.
    voice.cbs_bytes = 125_000;
    let row = policing(&voice);
    assert!(row.is_passed(), "{row:?}");
    assert_eq!(row.ir_max_bps, Some(10e6 * 1.01 + 100e3));
}

#[test]
fn loss_is_judged_against_the_criterion() {
    let model = DeviceModel { drops_each: 500, ..DeviceModel::default() };
    let mut voice = service("voice", 10_000_000, 0);
    let method = |service: &Service| {
        let tests = vec![Test::Cir, Test::Performance];
        Y1564 { tests, ..method(std::slice::from_ref(service)) }
    };
    assert!(run(&method(&voice), model.clone()).iter().all(|row| !row.is_passed()));
    voice.criteria.flr = 0.002;
    assert!(run(&method(&voice), model).iter().all(Y1564Row::is_passed));
}

#[test]
fn services_compete_in_the_performance_test_only() {
    let services = [service("voice", 6_000_000, 0), service("video", 6_000_000, 0)];
    let tests = vec![Test::Cir, Test::Performance];
    let method = Y1564 { tests, ..method(&services) };
    // 10,000 frames of 125 bytes per second are 10 Mbit/s.
    let model = DeviceModel { frames_per_second: 10_000.0, ..DeviceModel::default() };
    let findings = run_on(&method, &mut SimulatedDevice::new(model));
    let failed: Vec<_> = findings.rows.iter().filter(|row| !row.is_passed()).collect();
    let names: Vec<_> = failed.iter().map(|row| (row.test, &*row.service)).collect();
    assert_eq!(names, [(Test::Performance, "voice"), (Test::Performance, "video")]);
    let shortfalls = findings.shortfalls();
    assert_eq!(shortfalls.len(), 2);
    assert!(
        shortfalls[0].starts_with("voice, performance 100 %, 125 B: FLR 16.6"),
        "{shortfalls:?}"
    );
}

/// A device whose delays and arrivals in each second a test sets.
struct Changed<F> {
    device: SimulatedDevice,
    change: F,
}

impl<F: Fn(&mut TrialOutput)> Trial for Changed<F> {
    fn run(&mut self, input: &TrialInput) -> Result<TrialOutput, TrialError> {
        let mut output = self.device.run(input)?;
        (self.change)(&mut output);
        Ok(output)
    }
}

fn run_changed(method: &Y1564, change: impl Fn(&mut TrialOutput)) -> Vec<Y1564Row> {
    let device = SimulatedDevice::new(DeviceModel::default());
    run_on(method, &mut Changed { device, change }).rows
}

#[test]
fn delay_and_its_variation_are_judged() {
    let mut voice = service("voice", 10_000_000, 0);
    voice.criteria.ftd_s = Some(0.005);
    voice.criteria.fdv_s = Some(0.002);
    let method = Y1564 { tests: vec![Test::Cir], cir_steps: vec![1.0], ..method(&[voice.clone()]) };
    let delays = |late_ns: i64, late: u64| {
        let rows = run_changed(&method, |output| {
            let mut delay = Distribution::of(4_000_000, 1_000 - late);
            delay.merge(&Distribution::of(late_ns, late));
            output.offers[0].steps[0].delay = Some(delay);
        });
        rows[0].clone()
    };
    assert!(delays(6_000_000, 10).is_passed());
    // 1 frame of 1,000 is beyond the 99.9th percentile.
    assert!(delays(60_000_000, 1).is_passed());
    let variation = delays(6_100_000, 10);
    assert_eq!(variation.total.fdv_ns, Some(2_100_000));
    assert_eq!(variation.total.failures, ["FDV 2.100 ms, at most 2.000 ms"]);
    let slow = delays(6_000_000, 900);
    assert_eq!(slow.total.failures, ["FTD 5.800 ms, at most 5.000 ms"]);
    let unmeasured = run_changed(&method, |output| output.offers[0].steps[0].delay = None);
    assert_eq!(unmeasured[0].total.failures, ["FTD was not measured", "FDV was not measured"]);
}

#[test]
fn availability_counts_seconds_with_half_of_the_frames() {
    let mut voice = service("voice", 1_000_000, 0);
    voice.criteria.availability = Some(0.99);
    let method = Y1564 {
        tests: vec![Test::Performance],
        performance: Duration::from_secs(100),
        ..method(&[voice])
    };
    let with = |paths: Vec<Vec<u64>>| {
        run_changed(&method, |output| output.offers[0].seconds.clone_from(&paths)).remove(0)
    };
    // 1,000 frames per second.
    let mut seconds = vec![1_000; 100];
    seconds[40] = 499;
    seconds[41] = 500;
    let row = with(vec![seconds.clone()]);
    assert_eq!((row.total.availability, row.is_passed()), (Some(0.99), true));
    // The second direction is down in another second; it ends with a second without arrivals.
    let row = with(vec![seconds, vec![1_000; 99]]);
    assert_eq!(row.total.availability, Some(0.98));
    assert_eq!(row.total.failures, ["availability 98.0000 %, at least 99.0000 %"]);
}

#[test]
fn load_that_the_tester_does_not_reach_fails() {
    let model = DeviceModel { generator_max: 9_000.0, ..DeviceModel::default() };
    let rows = run(&method(&[service("voice", 10_000_000, 0)]), model);
    assert!(rows[2].is_passed());
    assert!(rows[3].total.failures[0].contains("the tester did not send 10.0"), "{rows:?}");
}

#[test]
fn each_frame_size_is_configured_and_the_first_performs() {
    let mut voice = service("voice", 10_000_000, 0);
    voice.frame_sizes = vec![125, 1250];
    let method = Y1564 { cir_steps: vec![1.0], ..method(&[voice]) };
    let rows = run(&method, policed(10e6));
    let shown: Vec<_> = rows.iter().map(|row| (row.test, row.frame_size, row.load)).collect();
    assert_eq!(
        shown,
        [
            (Test::Cir, 125, 10_000),
            (Test::Policing, 125, 12_500),
            (Test::Cir, 1250, 1_000),
            (Test::Policing, 1250, 1_250),
            (Test::Performance, 125, 10_000),
        ]
    );
    assert!(rows.iter().all(Y1564Row::is_passed), "{rows:?}");
}

#[test]
fn performance_test_offers_all_services_at_once() {
    let services = [service("voice", 1_000_000, 0), service("video", 6_000_000, 0)];
    let mut device = Counted::new(DeviceModel::default());
    run_on(&method(&services), &mut device);
    let (input, _) = device.trials.last().unwrap();
    let offers: Vec<_> = input.offers.iter().map(|it| (&*it.traffic, it.steps[0].load)).collect();
    assert_eq!(offers, [("voice", 1_000), ("video", 6_000)]);
    assert!(input.counts_seconds);
    assert_eq!(input.duration(), Duration::from_secs(900));
    // Steps of 60 s: 4 for the CIR and 1 for the policer, of each service.
    assert_eq!(device.seconds(), 2.0 * 5.0 * 60.0 + 900.0);
}

#[test]
fn stopped_method_has_the_completed_steps() {
    let method = method(&[service("voice", 1_000_000, 0)]);
    let device = SimulatedDevice::new(DeviceModel::default());
    let mut findings = Y1564Findings::default();
    let outcome = method.run(&mut StopBefore { trial: device, left: 3 }, &mut findings);
    assert_eq!((outcome, findings.rows.len()), (Err(TrialError::Stopped), 3));
}

#[test]
fn coarse_loads_and_short_tests_are_listed_as_deviations() {
    let rounding = |text: &&String| text.contains("whole frames/s");
    let fine = method(&[service("voice", 10_000_000, 0)]).deviations();
    assert_eq!(fine.iter().find(rounding), None);
    let mut slow = service("slow", 64_000, 0);
    slow.frame_sizes = vec![1518];
    let tests = vec![Test::Performance, Test::Cir];
    let short = Duration::from_secs(60);
    let method = Y1564 { tests, performance: short, cir_steps: vec![1.0], ..method(&[slow]) };
    let deviations = method.deviations();
    let found = deviations.iter().find(rounding).unwrap();
    // 64 kbit/s are 5.27 frames per second.
    assert!(found.contains("becomes 5 whole frames/s of 1518 B, 5.1 % off"), "{found}");
    assert!(deviations.iter().any(|text| text.contains("performance test: 60 s")));
}

#[test]
fn parameters_and_findings_survive_json() {
    let mut voice = service("voice", 1_000_000, 500_000);
    (voice.vlan, voice.pcp, voice.dscp) = (Some(100), 5, 46);
    voice.criteria =
        Criteria { flr: 1e-4, ftd_s: Some(0.01), fdv_s: None, availability: Some(0.999) };
    let method = Method::Y1564(method(&[voice]));
    let text = serde_json::to_string(&method).unwrap();
    assert!(text.starts_with(r#"{"method":"y1564""#), "{text}");
    assert_eq!(serde_json::from_str::<Method>(&text).unwrap(), method);
    let (findings, outcome) = method.run(&mut SimulatedDevice::new(policed(0.9e6)));
    outcome.unwrap();
    assert!(!findings.shortfalls().is_empty());
    let text = serde_json::to_string(&findings).unwrap();
    assert_eq!(serde_json::from_str::<Findings>(&text).unwrap(), findings);
}

/// Two directions, each through a device of its own.
struct BothWays([SimulatedDevice; 2]);

impl Trial for BothWays {
    fn run(&mut self, input: &TrialInput) -> Result<TrialOutput, TrialError> {
        let mut outputs = Vec::new();
        for device in &mut self.0 {
            outputs.push(device.run(input)?);
        }
        let mut sum = outputs[0].clone();
        for (place, offer) in sum.offers.iter_mut().enumerate() {
            offer.steps[0].add(&outputs[1].offers[place].steps[0]);
            let other = outputs[1].offers[place].seconds.clone();
            offer.seconds.extend(other);
            let path = |(name, output): (&str, &TrialOutput)| PathOutput {
                path: name.to_owned(),
                total: output.offers[place].total(),
            };
            offer.paths = ["a > b", "b > a"].into_iter().zip(&outputs).map(path).collect();
        }
        Ok(sum)
    }
}

fn run_both_ways(method: &Y1564, models: [DeviceModel; 2]) -> Vec<Y1564Row> {
    run_on(method, &mut BothWays(models.map(SimulatedDevice::new))).rows
}

#[test]
fn each_direction_is_judged_by_itself() {
    let mut service = service("voice", 10_000_000, 5_000_000);
    service.criteria = Criteria { flr: 0.06, ..Criteria::default() };
    // 9 of 10 Mbit/s pass in one direction: 10 % of its frames are lost, 5 % of all.
    let models = [policed(15e6), policed(9e6)];
    let rows = run_both_ways(&method(&[service.clone()]), models);
    let last = rows.iter().rfind(|row| row.test == Test::Cir).unwrap();
    assert!((last.total.flr - 0.05).abs() < 1e-9 && !last.is_passed(), "{last:?}");
    let [good, bad] = &*last.directions else { panic!("{last:?}") };
    assert_eq!(
        (&*good.direction, good.flr, good.ir_bps, good.is_passed()),
        ("a > b", 0.0, 10e6, true)
    );
    assert_eq!((&*bad.direction, bad.ir_bps, bad.is_passed()), ("b > a", 9e6, false));
    assert_eq!(bad.failures, ["FLR 10.0000 %, at most 6.0000 %"]);
    assert_eq!(last.total.failures, ["b > a: FLR 10.0000 %, at most 6.0000 %"]);
    // A policer that is missing in one direction only: 16.25 and 15 Mbit/s of 15.
    let rows = run_both_ways(&method(&[service]), [DeviceModel::default(), policed(15e6)]);
    let policing = rows.iter().find(|row| row.test == Test::Policing).unwrap();
    let passed: Vec<_> = policing.directions.iter().map(|it| (it.ir_bps, it.is_passed())).collect();
    assert_eq!(passed, [(16.25e6, false), (15e6, true)]);
    assert_eq!(policing.total.failures.len(), 1, "{policing:?}");
    assert!(
        policing.total.failures[0].starts_with("a > b: IR 16.250 Mbit/s is above"),
        "{policing:?}"
    );
}

#[test]
fn delay_and_availability_are_those_of_a_direction() {
    let mut service = service("voice", 10_000_000, 0);
    service.criteria.ftd_s = Some(0.001);
    service.criteria.availability = Some(0.9);
    let delay = |delay_ns| DeviceModel { delay_ns, ..DeviceModel::default() };
    let method = Y1564 { tests: vec![Test::Performance], ..method(&[service]) };
    // The mean of both directions is below 1 ms.
    let row = run_both_ways(&method, [delay(10_000), delay(1_500_000)]).remove(0);
    assert_eq!(row.total.failures, ["b > a: FTD 1.500 ms, at most 1.000 ms"]);
    let means: Vec<_> = row.directions.iter().map(|it| it.ftd_mean_ns).collect();
    assert_eq!(means, [Some(10_000.0), Some(1_500_000.0)]);
    // No second of the second direction is available: a tenth of its frames arrive.
    let row = run_both_ways(&method, [delay(10_000), policed(1e6)]).remove(0);
    let availability: Vec<_> = row.directions.iter().map(|it| it.availability).collect();
    assert_eq!((availability, row.total.availability), (vec![Some(1.0), Some(0.0)], Some(0.0)));
    assert!(row.total.failures.iter().all(|failure| failure.starts_with("b > a: ")), "{row:?}");
    assert_eq!(row.total.failures.len(), 2, "{row:?}");
}
