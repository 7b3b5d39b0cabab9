//! Loads above the capacity, and very low loads.

use std::time::{Duration, Instant};

use wirestorm_e2e::{Outcome, can_run};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;

use super::{BOTH, both_ports, emulate, plan};

/// Runs clients with a load for some time. Returns the outcome and the seconds that it took.
fn run(load: &str, size: u32, arguments: &[&str]) -> (Outcome, f64) {
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let text = BOTH
        .replace("load: {rate: 1000}", load)
        .replace("      limit: 300\n", "")
        .replace("repeat: {times: 2, steps", "repeat: {times: 1, steps")
        .replace("20000}", &format!("{size}}}"));
    let plan = plan(&scratch, &text);
    // Build the binary before the measurement.
    let mut command = emulate(&plan);
    let begun = Instant::now();
    let outcome = both_ports(command.args(arguments), &lab);
    (outcome, begun.elapsed().as_secs_f64())
}

fn count(outcome: &Outcome, name: &str) -> u64 {
    outcome.number(&format!("/ports/0/templates/0/flows/{name}"))
}

#[test]
fn unreachable_rate_ends_in_time_and_is_counted() {
    if !can_run(&[]) {
        return;
    }
    let arguments = ["--duration", "1s", "--drain-timeout", "1s"];
    let (outcome, seconds) = run("load: {rate: 100M}", 100, &arguments);
    let outcome = outcome.expect(3);
    assert!(seconds < 15.0, "{seconds} s");
    assert_eq!(count(&outcome, "offered"), 100_000_000, "{outcome}");
    let not_started = ["late", "flow_table_full", "no_free_tuple"].map(|it| count(&outcome, it));
    assert_eq!(count(&outcome, "started") + not_started.iter().sum::<u64>(), 100_000_000);
    // All started flows ended.
    assert!(count(&outcome, "closed") * 10 > count(&outcome, "started") * 9, "{outcome}");
    let notes = outcome.result()["notes"].to_string();
    assert!(notes.contains("flows of its load did not start in time"), "{notes}");
}

#[test]
fn low_rates_are_exact() {
    if !can_run(&[]) {
        return;
    }
    for (load, duration, expected) in [("rate: 1000", "1s", 1_000), ("rate: 1", "2s", 2)] {
        let (outcome, _) = run(&format!("load: {{{load}}}"), 100, &["--duration", duration]);
        assert_eq!(count(&outcome.expect(0), "started"), expected, "{load}");
    }
    // One page in 80 ms; each takes a few milliseconds.
    let (outcome, _) = run("load: {throughput: 100M}", 1_000_000, &["--duration", "2s"]);
    let outcome = outcome.expect(0);
    assert_eq!(count(&outcome, "started"), 25, "{outcome}");
    assert!(!outcome.output.contains("`throughput`"), "{outcome}");
}

/// One page in 800 ms, each received in one burst: two pages instead of the target of one and a
/// half.
#[test]
fn throughput_missed_by_whole_pages_is_reported() {
    if !can_run(&[]) {
        return;
    }
    let (outcome, _) = run("load: {throughput: 10M}", 1_000_000, &["--duration", "1200ms"]);
    let outcome = outcome.expect(0);
    assert_eq!(count(&outcome, "started"), 2, "{outcome}");
    let expected = " 33 % more than the 1500000 of its load's `throughput`";
    assert!(outcome.output.contains(expected), "{outcome}");
}

#[test]
fn refused_connections_are_retried_with_backoff() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let text = BOTH
        .replace("load: {rate: 1000}", "load: {concurrent: 10}")
        .replace("      limit: 300\n", "      server_port: 81\n");
    let plan = plan(&scratch, &text);
    let arguments = ["--duration", "1s", "--drain-timeout", "1s"];
    let outcome = both_ports(emulate(&plan).args(arguments), &lab).expect(3);
    let refused = count(&outcome, "refused");
    // Attempts at 0, 100, 300 and 700 ms.
    assert!((30..=40).contains(&refused), "{outcome}");
    let elapsed = Duration::from_secs_f64(outcome.result()["times"]["elapsed_s"].as_f64().unwrap());
    assert!(elapsed < Duration::from_secs(3));
}
