//! `wirestorm clock calibrate`: exchanges of a machine with itself, and frames on a cable.

use std::process::Command;

use wirestorm_e2e::{can_run, run_command, wirestorm};
use wirestorm_testkit::net::Lab;

fn calibrate(arguments: &[&str]) -> Command {
    let mut command = Command::new(wirestorm());
    command.args(["clock", "calibrate", "--duration", "500ms", "--json"]).args(arguments);
    command
}

#[test]
fn stamps_of_this_machine_are_calibrated_with_and_without_frames() {
    if !can_run(&[]) {
        return;
    }
    let outcome = run_command(&mut calibrate(&[])).expect(0);
    outcome.assert_valid("clock-calibration");
    // The last reply has no follow-up.
    assert!((50..=100).contains(&outcome.number("/exchanges/count")), "{outcome}");
    let half_round_trip = outcome.decimal("/exchanges/half_round_trip_ns");
    // The clock is the same, so the offset is between the delays of both directions.
    let offset = outcome.decimal("/exchanges/offset_ns");
    assert!(offset.abs() <= half_round_trip + 1_000.0, "{outcome}");
    let asymmetry = outcome.decimal("/exchanges/asymmetry_ns");
    assert!((asymmetry + 2.0 * offset).abs() <= 1.0, "{outcome}");

    let lab = Lab::new().unwrap();
    let (a, b) = (lab.a.port(), lab.b.port());
    let outcome = run_command(&mut calibrate(&[&a, &b, "--size", "256"])).expect(0);
    outcome.assert_valid("clock-calibration");
    assert_eq!(outcome.number("/frames/sent"), 500, "{outcome}");
    assert_eq!(outcome.number("/frames/received"), 500, "{outcome}");
    assert_eq!(outcome.number("/frames/delay/count"), 500, "{outcome}");
    let bias = outcome.number("/frames/bias_ns");
    assert!((1..20_000_000).contains(&bias), "{outcome}");
    assert_eq!(bias, outcome.number("/frames/delay/p50_ns"), "{outcome}");
}

#[test]
fn frames_that_do_not_arrive_are_an_error() {
    if !can_run(&[]) {
        return;
    }
    let (one, other) = (Lab::new().unwrap(), Lab::new().unwrap());
    let (a, b) = (one.a.port(), other.b.port());
    let outcome = run_command(&mut calibrate(&[&a, &b]));
    outcome.expect_error(1, &["no frame from", "connect them by a cable"]);
}
