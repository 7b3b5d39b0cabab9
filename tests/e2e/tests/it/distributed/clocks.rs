//! Delays between agents whose clocks differ, by each method of comparison.

use wirestorm_e2e::{Outcome, can_run};

use super::{Cluster, FLOW, assert_complete, assert_true, one_way, over_time};
use crate::clock::sources::{Chronyd, lab};

#[test]
fn delay_is_measured_between_clocks_that_differ_and_drift() {
    if !can_run(&[]) {
        return;
    }
    let clock = ["--virtual-clock", "offset=2s,drift=50ppm"];
    let Some(cluster) = Cluster::start(&clock) else { return };
    let test = cluster.nodes.test(3, "");
    let outcome = cluster.test(&test, &[]).wait().expect(0);
    assert_complete(&outcome, 3_000);
    let (least, median) = (one_way(&outcome, "delay/min_ns"), one_way(&outcome, "delay/p50_ns"));
    let half_width = one_way(&outcome, "half_width_ns");
    // Microseconds on a veth pair, and more on a busy machine; the clocks are 2 s apart and drift by
    // 50 us a second.
    assert!(least > -half_width && median < 1e6, "{outcome}");
    assert!(half_width < 500e3 && one_way(&outcome, "bound_ns") >= half_width, "{outcome}");
    assert!((one_way(&outcome, "drift_ppm") + 50.0).abs() < 2.0, "{outcome}");
    let assumption = outcome.text(&format!("{FLOW}/measured/0/one_way/assumption"));
    assert_eq!(assumption, "symmetric path");
    assert!(outcome.decimal("/iterations/0/start_skew_ns") < 20e6, "{outcome}");
    // The variation over time does not depend on the offset of the clocks, as the delays do.
    for list in ["delay_min_ns", "delay_mean_ns", "delay_max_ns"] {
        assert!(over_time(&outcome, list).is_empty(), "{list}: {outcome}");
    }
    for list in ["pdv_max_ns", "ipdv_mean_ns", "jitter_ns"] {
        let values = over_time(&outcome, list);
        assert!(values.len() > 10 && values.iter().all(|it| *it < 1e9), "{list}: {outcome}");
    }
    let counted: f64 = over_time(&outcome, "ipdv_count").iter().sum();
    assert_eq!(counted, 2_999.0, "{outcome}");
}

#[test]
fn clocks_are_compared_by_references_and_the_smallest_bound_counts() {
    if !can_run(&["chronyd", "chronyc"]) {
        return;
    }
    let references = lab();
    let (_server, client) = Chronyd::pair(&references);
    let Some(mut cluster) = Cluster::start(&[]) else { return };
    drop(cluster.agents.drain(..));
    let socket = client.socket().display().to_string();
    for (name, clock) in [("tx", "offset=1us"), ("rx", "offset=2s,drift=50ppm")] {
        cluster.start_agent(name, &["--chrony", &socket, "--virtual-clock", clock]);
    }
    let assumption = |outcome: &Outcome| {
        outcome.text(&format!("{FLOW}/measured/0/one_way/assumption")).to_owned()
    };
    let test = cluster.nodes.test(2, "clock: {source: reference}");
    let outcome = cluster.test(&test, &[]).wait().expect(0);
    assert_complete(&outcome, 2_000);
    assert_eq!(assumption(&outcome), "independent");
    let method = outcome.text(&format!("{FLOW}/measured/0/one_way/method"));
    assert!(method.starts_with("chrony ("), "{outcome}");
    assert_true(&outcome);
    // The path between the agents is shorter than the bounds of chronyd.
    let test = cluster.nodes.test(2, "");
    let outcome = cluster.test(&test, &[]).wait().expect(0);
    assert_complete(&outcome, 2_000);
    assert_eq!(assumption(&outcome), "symmetric path");
    assert_true(&outcome);
    let other = |value: &str| one_way(&outcome, &format!("alternatives/0/{value}"));
    assert!(other("bound_ns") > one_way(&outcome, "bound_ns"), "{outcome}");
    assert!(
        other("difference_ns").abs() <= other("bound_ns") + one_way(&outcome, "bound_ns"),
        "{outcome}"
    );
    let asymmetry = one_way(&outcome, "asymmetry/value_ns");
    assert!(asymmetry.abs() <= one_way(&outcome, "asymmetry/half_width_ns"), "{outcome}");
}

#[test]
fn test_that_needs_references_does_not_start_without_them() {
    if !can_run(&[]) {
        return;
    }
    let Some(cluster) = Cluster::start(&["--chrony", "/nonexistent", "--chrony-port", "1"]) else {
        return;
    };
    let test = cluster.nodes.test(1, "clock: {source: reference, error_max: 1ns}");
    let outcome = cluster.test(&test, &[]).wait();
    outcome.expect_error(1, &["clocks of agents rx and tx"]);
    assert_eq!(cluster.nodes.lab.b.counters().unwrap().rx_packets, 0);
}
