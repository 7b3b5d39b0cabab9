//! MLRsearch finds the bounds of its goals, with few trial seconds.

use wirestorm_base::time::Duration;
use wirestorm_method::device::DeviceModel;
use wirestorm_method::mlrsearch::{Mlrsearch, MlrsearchFindings, MlrsearchRow};
use wirestorm_method::rfc2544::{Rfc2544, Rfc2544Findings};
use wirestorm_method::search::classification::Goal;

use crate::Counted;

fn goals(names: &[&str]) -> Mlrsearch {
    Mlrsearch {
        goals: names.iter().map(|name| Goal::preset(name).unwrap()).collect(),
        traffic: vec!["ipv4".into()],
        frame_sizes: vec![64],
        link_bps: 10_000_000_000,
        load_max: None,
        load_min: None,
        search_max: Duration::from_secs(3_600),
    }
}

fn search(method: &Mlrsearch, model: DeviceModel) -> MlrsearchRow {
    let mut device = Counted::new(model);
    let mut findings = MlrsearchFindings::default();
    method.run(&mut device, &mut findings).unwrap();
    let row = findings.searches.remove(0);
    assert_eq!(device.trials.len(), row.trials as usize);
    assert!((device.seconds() - row.trial_seconds).abs() < 1e-6);
    row
}

/// Devices of the comparison with the bisection.
fn devices() -> Vec<(&'static str, DeviceModel)> {
    let limited = |frames_per_second| DeviceModel { frames_per_second, ..DeviceModel::default() };
    vec![
        ("1 Mpps", limited(1_000_000.0)),
        ("10 Mpps", limited(10_000_000.0)),
        ("123,457 frames/s", limited(123_457.0)),
        ("with a queue", DeviceModel { queue: 100_000, ..limited(3_000_000.0) }),
        (
            "late recovery",
            DeviceModel {
                overload_capacity: 0.5,
                overload_s: 4.0,
                pause_s: 5.0,
                ..limited(3_000_000.0)
            },
        ),
        (
            "hysteresis",
            DeviceModel { overload_capacity: 0.9, has_hysteresis: true, ..limited(3_000_000.0) },
        ),
    ]
}

#[test]
fn bounds_enclose_the_capacity_and_need_half_of_the_bisection() {
    for (name, model) in devices() {
        let capacity = model.capacity(Some(64));
        let row = search(&goals(&["rfc2544"]), model.clone());
        let result = &row.results[0];
        let (lower, upper) = (result.lower.unwrap(), result.upper.unwrap());
        assert!(result.is_regular, "{name}: {row:?}");
        assert!((upper - lower) as f64 <= 0.005 * upper as f64, "{name}: {row:?}");
        assert!(lower as f64 <= capacity * 1.0001, "{name}: {row:?}");
        // A device with hysteresis may be caught in its lower state.
        let floor = if model.has_hysteresis { 0.89 } else { 0.99 };
        assert!(upper as f64 > capacity * floor, "{name}: {row:?}");
        assert_eq!(result.conditional_throughput, Some(lower as f64));

        let mut device = Counted::new(model);
        let plain = Rfc2544 { tests: Vec::new(), frame_sizes: vec![64], ..Rfc2544::default() };
        let mut findings = Rfc2544Findings::default();
        plain.run(&mut device, &mut findings).unwrap();
        let part = row.trial_seconds / device.seconds();
        assert!(part <= 0.5, "{name}: {} s against {} s", row.trial_seconds, device.seconds());
    }
}

#[test]
fn several_goals_share_their_trials() {
    let model = DeviceModel { frames_per_second: 5e6, ..DeviceModel::default() };
    let both = search(&goals(&["ndr", "pdr"]), model.clone());
    let [ndr, pdr] = &*both.results else { panic!("{both:?}") };
    assert!(ndr.is_regular && pdr.is_regular, "{both:?}");
    // 0.5 % of loss allow 0.5 % more than the capacity.
    assert!(ndr.lower.unwrap() <= 5_000_000 && ndr.upper.unwrap() > 5_000_000, "{both:?}");
    assert!(pdr.lower.unwrap() <= 5_025_126 && pdr.upper.unwrap() > 5_025_126, "{both:?}");
    let single = ["ndr", "pdr"].map(|name| search(&goals(&[name]), model.clone()).trial_seconds);
    assert!(both.trial_seconds < single.iter().sum(), "{} {single:?}", both.trial_seconds);
}

#[test]
fn device_that_forwards_max_load_has_an_irregular_result() {
    let row = search(&goals(&["rfc2544"]), DeviceModel::default());
    let result = &row.results[0];
    assert!(!result.is_regular);
    assert_eq!((result.lower, result.upper), (Some(row.max_load), None));
    assert_eq!(result.conditional_throughput, Some(row.max_load as f64));
}

#[test]
fn device_that_always_loses_has_an_irregular_result() {
    let model = DeviceModel { drops_each: 10, ..DeviceModel::default() };
    let row = search(&goals(&["ndr"]), model);
    let result = &row.results[0];
    assert!(!result.is_regular);
    assert_eq!((result.lower, result.upper), (None, Some(row.max_load / 10_000)));
}

#[test]
fn noise_in_a_few_trials_does_not_move_a_goal_that_tolerates_it() {
    let model = DeviceModel {
        frames_per_second: 5e6,
        noise: 0.2,
        noise_frames: 100,
        ..DeviceModel::default()
    };
    for seed in 1..20 {
        let row = search(&goals(&["ndr"]), DeviceModel { seed, ..model.clone() });
        let lower = row.results[0].lower.unwrap();
        assert!(row.results[0].is_regular && lower > 4_900_000, "seed {seed}: {row:?}");
    }
    // A goal without tolerance finds a lower load, because RFC 2544 counts any loss.
    let strict = search(&goals(&["rfc2544"]), DeviceModel { noise: 0.5, ..model });
    assert!(strict.results[0].lower.unwrap_or(0) < 5_000_000);
}

#[test]
fn search_ends_at_its_limit_and_says_so() {
    let model = DeviceModel { frames_per_second: 5e6, ..DeviceModel::default() };
    let method = Mlrsearch { search_max: Duration::from_secs(30), ..goals(&["rfc2544"]) };
    let row = search(&method, model);
    assert!(!row.results[0].is_regular, "{row:?}");
    assert!(row.trial_seconds <= 30.0 + 60.0);
}
