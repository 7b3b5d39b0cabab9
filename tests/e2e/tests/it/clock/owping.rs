//! `wirestorm owping` between two network namespaces.

use std::process::Command;

use rustix::process::Signal;
use wirestorm_e2e::{Running, can_run, run_command, start_command, wirestorm};
use wirestorm_testkit::net::{End, Lab, LabOptions};

fn owping(end: &End, arguments: &[&str]) -> Command {
    let mut command = Command::new(wirestorm());
    command.args(["owping", "--netns", end.namespace().name()]).args(arguments);
    command
}

fn reflector(end: &End) -> Running {
    let running = start_command(&mut owping(end, &["--reflect", "--listen", "0.0.0.0:8620"]));
    running.wait_for_message("Answering on");
    running
}

#[test]
fn delays_of_both_directions_have_an_error_and_a_bound() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::with(&LabOptions { addresses: true, ..LabOptions::default() }).unwrap();
    let reflector = reflector(&lab.b);
    let target = format!("{}:8620", lab.b.ipv4());
    let arguments = [&target, "--count", "300", "--interval", "5ms", "--json"];
    let outcome = run_command(&mut owping(&lab.a, &arguments)).expect(0);
    outcome.assert_valid("owping");
    assert_eq!((outcome.number("/sent"), outcome.number("/received")), (300, 300), "{outcome}");
    assert_eq!((outcome.number("/lost_forward"), outcome.number("/lost_backward")), (0, 0));
    let offset = outcome.decimal("/offset_ns").abs();
    let (half_width, bound) = (outcome.decimal("/half_width_ns"), outcome.decimal("/bound_ns"));
    // Both namespaces have one clock.
    assert!(offset <= bound && half_width <= bound, "{outcome}");
    // Tens of microseconds, but a busy machine delays time stamps.
    assert!(bound < 2e6, "{outcome}");
    for direction in ["forward", "backward"] {
        let median = outcome.decimal(&format!("/{direction}/p50_ns"));
        assert!(median > -half_width && median < 2e6, "{outcome}");
    }
    let round_trip = outcome.decimal("/round_trip/min_ns");
    assert!(round_trip > 0.0 && bound >= round_trip / 2.0, "{outcome}");
    assert_eq!(outcome.text("/assumption"), "symmetric_path");
    reflector.signal(Signal::INT);
    let outcome = reflector.wait();
    assert!(outcome.status.success() && outcome.messages.contains("300 requests"), "{outcome}");
}

#[test]
fn missing_reflector_is_an_error_with_the_remedy() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::with(&LabOptions { addresses: true, ..LabOptions::default() }).unwrap();
    let target = lab.b.ipv4().to_string();
    let arguments = [&*target, "--count", "8", "--interval", "5ms"];
    let outcome = run_command(&mut owping(&lab.a, &arguments));
    outcome.expect_error(1, &["no reply to 8 requests", "wirestorm owping --reflect", "862"]);
}
