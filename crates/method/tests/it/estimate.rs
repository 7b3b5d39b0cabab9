//! The plan of a method before and during a run.

use wirestorm_method::device::DeviceModel;
use wirestorm_method::estimate::remaining;
use wirestorm_method::method::Method;
use wirestorm_method::rfc2544::{Rfc2544, Test};
use wirestorm_method::trial::TrialInput;

use crate::Counted;

fn seconds(trials: &[TrialInput]) -> f64 {
    trials.iter().map(|input| input.duration().as_secs_f64()).sum()
}

#[test]
fn estimate_approaches_the_run_as_it_proceeds() {
    let method = Method::Rfc2544(Rfc2544 { tests: vec![Test::FrameLoss], ..Rfc2544::default() });
    let model = DeviceModel { frames_per_second: 4e6, ..DeviceModel::default() };
    let mut device = Counted::new(model);
    method.run(&mut device).1.unwrap();
    let all = device.seconds();
    let before = seconds(&remaining(&method, &[], 0.5));
    assert!(before > all * 0.5 && before < all * 2.0, "{before} s estimated, {all} s needed");
    for done in [1, device.trials.len() / 2, device.trials.len() - 3] {
        let (past, future) = device.trials.split_at(done);
        let expected: f64 = future.iter().map(|it| it.0.duration().as_secs_f64()).sum();
        let estimated = seconds(&remaining(&method, past, 0.5));
        assert!((estimated - expected).abs() <= expected * 0.3 + 300.0, "{estimated} {expected}");
    }
    assert_eq!(remaining(&method, &device.trials, 0.5), []);
}
