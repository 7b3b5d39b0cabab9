//! Agents that run PTP: one is the master of the other, or both follow ptp4l.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use wirestorm_e2e::{Outcome, can_run, run_command, start_command, wirestorm};
use wirestorm_testkit::net::{End, Lab, LabOptions, RouterLab};

use super::{Cluster, FLOW, assert_complete, assert_true, one_way};
use crate::clock::Ptp4l;

/// Errors of the clocks of agents, so that the result has the true delays.
const SMALL: &str = "offset=1us";
const LARGE: &str = "offset=2s,drift=50ppm";
/// Greatest difference between the starts: less than between the clocks. A busy machine is late.
const START_SKEW_NS_MAX: f64 = 1e9;

fn cluster() -> Option<Cluster> {
    Cluster::without_agents(IpAddr::V4(Ipv4Addr::LOCALHOST), None)
}

impl Cluster {
    /// Starts an agent with a PTP session on an end, and a clock with an error.
    fn start_ptp(&mut self, name: &str, end: &End, clock: &str, more: &[&str]) {
        let port = end.port();
        let arguments = ["--ptp", &port, "--ptp-log-interval=-4", "--virtual-clock", clock];
        self.start_agent(name, &[&arguments[..], more].concat());
    }

    /// Runs a test that compares clocks by PTP, which cannot start; checks that it sends nothing.
    /// Returns the time until the error.
    #[track_caller]
    fn refused(&self, words: &[&str]) -> Duration {
        let frames = || self.nodes.lab.b.counters().unwrap().rx_packets;
        let before = frames();
        let test = self.nodes.test(1, "clock: {source: ptp}");
        let began = Instant::now();
        let outcome = self.test(&test, &[]).wait();
        let waited = began.elapsed();
        outcome.expect_error(1, words);
        assert_eq!(frames(), before);
        waited
    }
}

fn method(outcome: &Outcome) -> &str {
    outcome.text(&format!("{FLOW}/measured/0/one_way/method"))
}

const L2: [&str; 2] = ["--ptp-transport", "l2"];
const L2_MASTER: [&str; 4] = ["--ptp-transport", "l2", "--ptp-role", "master"];

/// Identities of the ends of a lab, by their MAC addresses.
const IDENTITY_A: &str = "025753.fffe.000000";
const IDENTITY_B: &str = "025753.fffe.000001";

#[test]
fn slave_is_compared_with_its_master_in_both_directions() {
    if !can_run(&[]) {
        return;
    }
    let Some(mut cluster) = cluster() else { return };
    let link = Lab::new().unwrap();
    for (master, slave, drift) in [("tx", "rx", -50.0), ("rx", "tx", 50.0)] {
        drop(cluster.agents.drain(..));
        cluster.start_ptp(master, &link.a, SMALL, &L2_MASTER);
        cluster.start_ptp(slave, &link.b, LARGE, &L2);
        let test = cluster.nodes.test(3, "clock: {source: ptp}");
        let outcome = cluster.test(&test, &[]).wait().expect(0);
        assert_complete(&outcome, 3_000);
        assert_eq!(method(&outcome), format!("PTP over Ethernet, grandmaster {IDENTITY_A}"));
        let assumption = outcome.text(&format!("{FLOW}/measured/0/one_way/assumption"));
        assert_eq!(assumption, "symmetric path");
        assert_true(&outcome);
        // Half of the round trip of a veth pair, on a busy machine.
        assert!(one_way(&outcome, "bound_ns") > one_way(&outcome, "half_width_ns"), "{outcome}");
        assert!(one_way(&outcome, "bound_ns") < 1e6, "{outcome}");
        assert!((one_way(&outcome, "drift_ppm") - drift).abs() < 2.0, "{outcome}");
        assert!(outcome.decimal("/iterations/0/start_skew_ns") < START_SKEW_NS_MAX, "{outcome}");
    }
    // By itself, the comparison with the smaller bound counts, and the other one is known too.
    let test = cluster.nodes.test(2, "");
    let outcome = cluster.test(&test, &[]).wait().expect(0);
    assert_complete(&outcome, 2_000);
    assert_true(&outcome);
    let other = |value: &str| one_way(&outcome, &format!("alternatives/0/{value}"));
    let of_other = outcome.text(&format!("{FLOW}/measured/0/one_way/alternatives/0/method"));
    let mut methods = [method(&outcome), of_other].map(|it| it.split(' ').next().unwrap());
    methods.sort_unstable();
    assert_eq!(methods, ["PTP", "STAMP"], "{outcome}");
    assert!(other("bound_ns") > one_way(&outcome, "bound_ns"), "{outcome}");
    let apart = other("difference_ns").abs();
    assert!(apart <= other("bound_ns") + one_way(&outcome, "bound_ns"), "{outcome}");
}

#[test]
fn slaves_of_ptp4l_are_compared_with_each_other() {
    if !can_run(&["ptp4l", "pmc"]) {
        return;
    }
    let Some(mut cluster) = cluster() else { return };
    let lab = RouterLab::with(&LabOptions::default()).unwrap();
    let settings = ["logSyncInterval -4\nlogMinDelayReqInterval -4", "", ""];
    let _master = Ptp4l::start_on(&[&lab.router_a, &lab.router_b], "UDPv4", settings);
    cluster.start_ptp("tx", &lab.a, SMALL, &[]);
    cluster.start_ptp("rx", &lab.b, LARGE, &[]);
    let test = cluster.nodes.test(3, "clock: {source: ptp}");
    let outcome = cluster.test(&test, &[]).wait().expect(0);
    assert_complete(&outcome, 3_000);
    // ptp4l has the identity of its first interface.
    assert_eq!(method(&outcome), format!("PTP over UDP over IPv4, grandmaster {IDENTITY_B}"));
    assert_true(&outcome);
    assert!((one_way(&outcome, "drift_ppm") + 50.0).abs() < 2.0, "{outcome}");
    assert!(outcome.decimal("/iterations/0/start_skew_ns") < START_SKEW_NS_MAX, "{outcome}");
}

#[test]
fn test_that_needs_ptp_names_what_is_missing_and_sends_nothing() {
    if !can_run(&[]) {
        return;
    }
    let Some(mut cluster) = cluster() else { return };
    let (link, other) = (Lab::new().unwrap(), Lab::new().unwrap());
    cluster.start_ptp("rx", &link.a, LARGE, &L2);
    cluster.start_agent("tx", &[]);
    let waited = cluster.refused(&["no PTP on tx: start `wirestorm agent` there with --ptp"]);
    assert!(waited < Duration::from_secs(8), "{waited:?}");
    drop(cluster.agents.pop());
    cluster.start_ptp("tx", &other.a, SMALL, &L2_MASTER);
    let port = link.a.port();
    let missing = format!("agent rx has found no PTP master on {port} (l2, domain 0)");
    let waited = cluster.refused(&[&missing, "--ptp-role master"]);
    assert!(waited < Duration::from_secs(25), "{waited:?}");
    // Another master than the other agent.
    let mut command = link.b.command(wirestorm());
    command.args(["clock", "ptp", "--interface", link.b.interface(), "--role", "master"]);
    let _master = start_command(command.args(["--transport", "l2", "--log-interval=-4"]));
    cluster.agents[0].wait_for_message("follows grandmaster");
    cluster.refused(&[
        "PTP compares them with different clocks",
        &format!("agent rx follows grandmaster {IDENTITY_B} on {port}"),
        &format!("agent tx is grandmaster {IDENTITY_A} on {}", other.a.port()),
    ]);
}

#[test]
fn session_survives_an_interface_that_goes_down() {
    if !can_run(&[]) {
        return;
    }
    let Some(mut cluster) = cluster() else { return };
    let options = LabOptions { addresses: true, ..LabOptions::default() };
    let link = Lab::with(&options).unwrap();
    cluster.start_ptp("tx", &link.a, SMALL, &["--ptp-role", "master"]);
    cluster.start_ptp("rx", &link.b, LARGE, &[]);
    let rx = |cluster: &Cluster, text: &str| cluster.agents[1].wait_for_message(text);
    rx(&cluster, "follows grandmaster");
    link.b.set_up(false).unwrap();
    rx(&cluster, &format!("PTP on {} (udp4, domain 0) stopped: ", link.b.port()));
    link.b.set_up(true).unwrap();
    rx(&cluster, "works again");
    rx(&cluster, "follows grandmaster");
    let test = cluster.nodes.test(1, "clock: {source: ptp}");
    let outcome = cluster.test(&test, &[]).wait().expect(0);
    assert_complete(&outcome, 1_000);
    assert_true(&outcome);
    link.a.delete_interface().unwrap();
    rx(&cluster, "stopped: there is no interface");
    let waited = cluster.refused(&["PTP of agent", "there is no interface"]);
    assert!(waited < Duration::from_secs(25), "{waited:?}");
}

#[test]
fn agent_does_not_start_with_an_interface_that_ptp_cannot_use() {
    if !can_run(&[]) {
        return;
    }
    let Some(cluster) = cluster() else { return };
    let link = Lab::new().unwrap();
    let port = link.a.port();
    for (arguments, words) in [
        (&["--ptp", &port][..], &["--ptp: ", "has no IPv4 address"][..]),
        (&["--ptp", "lo", "--ptp-transport", "l2"], &["--ptp: ", "lo has no MAC address"]),
        (&["--ptp", "none0"], &["--ptp: there is no interface none0"]),
        (
            &["--ptp", &port, "--ptp-role", "master", "--ptp-unicast", "10.0.0.1"],
            &["--ptp-unicast is an option of a slave"],
        ),
        (&["--ptp-role", "master"], &["--ptp <INTERFACE>"]),
    ] {
        run_command(&mut cluster.agent_command("tx", arguments)).expect_error(2, words);
    }
}
