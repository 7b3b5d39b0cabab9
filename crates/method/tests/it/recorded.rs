//! A method continues from its recorded trials.

use wirestorm_method::device::{DeviceModel, SimulatedDevice};
use wirestorm_method::method::Method;
use wirestorm_method::recorded::Recorded;
use wirestorm_method::rfc2544::{Rfc2544, Test};
use wirestorm_method::trial::TrialError;

use crate::{Counted, StopBefore};

fn method() -> Method {
    let mut method =
        Rfc2544 { tests: Test::ALL.to_vec(), frame_sizes: vec![64, 256], ..Rfc2544::default() };
    method.back_to_back.repetitions = 2;
    method.latency.repetitions = 3;
    Method::Rfc2544(method)
}

fn model() -> DeviceModel {
    DeviceModel { frames_per_second: 3e6, queue: 500, ..DeviceModel::default() }
}

#[test]
fn interrupted_method_finds_the_same_as_an_uninterrupted_one() {
    let mut device = Counted::new(model());
    let (expected, outcome) = method().run(&mut device);
    outcome.unwrap();
    let records = device.trials;
    for stop in 0..records.len() {
        let mut first = StopBefore { trial: Counted::new(model()), left: stop };
        let (_, outcome) = method().run(&mut first);
        assert_eq!(outcome, Err(TrialError::Stopped));
        assert!(first.trial.trials == records[..stop]);
        let rest = Counted::new(model());
        let mut resumed = Recorded::new(first.trial.trials, rest);
        let (findings, outcome) = method().run(&mut resumed);
        assert_eq!(outcome, Ok(()));
        assert_eq!(findings, expected, "stopped before trial {stop}");
        assert!(resumed.into_rest().trials == records[stop..]);
    }
}

#[test]
fn other_parameters_do_not_continue_a_record() {
    let mut device = Counted::new(model());
    method().run(&mut device).1.unwrap();
    let other = Method::Rfc2544(Rfc2544 { frame_sizes: vec![128], ..Rfc2544::default() });
    let mut resumed = Recorded::new(device.trials, SimulatedDevice::new(model()));
    let Err(TrialError::Failed(message)) = other.run(&mut resumed).1 else { panic!() };
    assert!(message.contains("recorded trial 1"), "{message}");
}

#[test]
fn records_survive_json() {
    let mut device = Counted::new(model());
    method().run(&mut device).1.unwrap();
    let text = serde_json::to_string(&device.trials).unwrap();
    let read: Vec<_> = serde_json::from_str(&text).unwrap();
    assert!(device.trials == read);
    let text = serde_json::to_string(&method()).unwrap();
    assert_eq!(serde_json::from_str::<Method>(&text).unwrap(), method());
}
