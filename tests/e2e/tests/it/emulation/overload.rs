//! Loads that ask for more than there is time for, or for very little.

use std::time::{Duration, Instant};

use wirestorm_e2e::{Outcome, can_run};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;

use super::{BOTH, both_ports, emulate, plan};

/// Runs clients of a load for a while. Returns what became of it, and how many seconds it took.
fn run(load: &str, size: u32, arguments: &[&str]) -> (Outcome, f64) {
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let text = BOTH
        .replace("load: {rate: 1000}", load)
        .replace("      limit: 300\n", "")
        .replace("repeat: {times: 2, steps", "repeat: {times: 1, steps")
        .replace("20000}", &format!("{size}}}"));
    let plan = plan(&scratch, &text);
    // The command is built first, where it is not.
    let mut command = emulate(&plan);
    let begun = Instant::now();
    let outcome = both_ports(command.args(arguments), &lab);
    (outcome, begun.elapsed().as_secs_f64())
}

fn count(outcome: &Outcome, name: &str) -> u64 {
    outcome.number(&format!("/ports/0/templates/0/flows/{name}"))
}

#[test]
fn a_rate_that_nobody_can_make_ends_in_time_and_is_counted() {
    if !can_run(&[]) {
        return;
    }
    let arguments = ["--duration", "1s", "--drain-timeout", "1s"];
    let (outcome, seconds) = run("load: {rate: 100M}", 100, &arguments);
    let outcome = outcome.expect(3);
    assert!(seconds < 15.0, "{seconds} s");
    assert_eq!(count(&outcome, "offered"), 100_000_000, "{outcome}");
    let unmade = ["late", "overflow", "tuple_in_use"].map(|it| count(&outcome, it));
    assert_eq!(count(&outcome, "made") + unmade.iter().sum::<u64>(), 100_000_000);
    // What was begun came to an end.
    assert!(count(&outcome, "closed") * 10 > count(&outcome, "made") * 9, "{outcome}");
    let notes = outcome.result()["notes"].to_string();
    assert!(notes.contains("there was no time for them"), "{notes}");
}

#[test]
fn rates_are_exact_and_less_than_a_flow_at_once_is_possible() {
    if !can_run(&[]) {
        return;
    }
    for (load, duration, expected) in [("rate: 1000", "1s", 1_000), ("rate: 1", "2s", 2)] {
        let (outcome, _) = run(&format!("load: {{{load}}}"), 100, &["--duration", duration]);
        assert_eq!(count(&outcome.expect(0), "made"), expected, "{load}");
    }
    // One page in 80 ms, each of which takes a few.
    let (outcome, _) = run("load: {throughput: 100M}", 1_000_000, &["--duration", "2s"]);
    let outcome = outcome.expect(0);
    assert_eq!(count(&outcome, "made"), 25, "{outcome}");
    assert!(!outcome.output.contains("`throughput`"), "{outcome}");
}

/// One page in 800 ms, each of which is received at once: two where one and a half are asked for.
#[test]
fn a_throughput_that_pages_are_too_long_for_is_told() {
    if !can_run(&[]) {
        return;
    }
    let (outcome, _) = run("load: {throughput: 10M}", 1_000_000, &["--duration", "1200ms"]);
    let outcome = outcome.expect(0);
    assert_eq!(count(&outcome, "made"), 2, "{outcome}");
    let expected = " 33 % more than the 1500000 that its load's `throughput` asks for";
    assert!(outcome.output.contains(expected), "{outcome}");
}

#[test]
fn places_of_refused_connections_stay_empty_for_a_while() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let text = BOTH
        .replace("load: {rate: 1000}", "load: {hold: 10}")
        .replace("      limit: 300\n", "      server_port: 81\n");
    let plan = plan(&scratch, &text);
    let arguments = ["--duration", "1s", "--drain-timeout", "1s"];
    let outcome = both_ports(emulate(&plan).args(arguments), &lab).expect(3);
    let refused = count(&outcome, "refused");
    // At 0, 100, 300 and 700 ms.
    assert!((30..=40).contains(&refused), "{outcome}");
    let elapsed = Duration::from_secs_f64(outcome.result()["times"]["elapsed_s"].as_f64().unwrap());
    assert!(elapsed < Duration::from_secs(3));
}
