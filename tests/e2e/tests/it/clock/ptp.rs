//! PTP sessions with ptp4l. Both ends have the same clock, so the true offset is 0.

use std::time::Duration;

use rustix::process::Signal;
use wirestorm_e2e::{Outcome, can_run, run_command, start_command};
use wirestorm_testkit::net::{End, Lab, LabOptions, RouterLab};

use super::{OFFSET_NS_MAX, Ptp4l, clock, until};

/// Identities of the ends, from their MAC addresses 02:57:53:00:00:00 and 02:57:53:00:00:01.
const IDENTITY_A: &str = "025753.fffe.000000";
const IDENTITY_B: &str = "025753.fffe.000001";

/// Settings of a slave. It expects Announce messages as often as it would send them.
const SLAVE: &str = "slaveOnly 1\nlogAnnounceInterval 1";

/// Settings of a unicast master.
const UNICAST_MASTER: &str = "unicast_listen 1\ninhibit_multicast_service 1";

fn lab() -> Lab {
    Lab::with(&LabOptions { addresses: true, ipv6: true, ..LabOptions::default() }).unwrap()
}

/// Runs a slave on an end for some seconds.
fn slave(end: &End, seconds: u32, arguments: &[&str]) -> Outcome {
    let duration = format!("{seconds}s");
    let mut command = clock(end, &["ptp", "--interface", end.interface()]);
    command.args(["--duration", duration.as_str(), "--json"]).args(arguments);
    run_command(&mut command)
}

/// Returns a number that may be negative.
#[track_caller]
fn signed(outcome: &Outcome, pointer: &str) -> i64 {
    outcome.result().pointer(pointer).and_then(|it| it.as_i64()).unwrap_or_else(|| {
        panic!("no number at {pointer}\n{outcome}");
    })
}

/// Checks what a slave has measured from a master on the same machine. Returns the offset.
#[track_caller]
fn check_measurement(outcome: &Outcome, identity: &str) -> i64 {
    outcome.assert_valid("clock-ptp");
    assert_eq!(outcome.text("/status/master/port"), format!("{identity}-1"), "{outcome}");
    assert_eq!(outcome.text("/status/master/grandmaster"), identity, "{outcome}");
    let measured = outcome.number("/status/measurement/exchanges");
    assert!(measured >= 5, "{outcome}");
    let offset = signed(outcome, "/status/measurement/offset_median_ns");
    let delay = signed(outcome, "/status/measurement/path_delay_median_ns");
    assert!(offset.abs() < OFFSET_NS_MAX, "{outcome}");
    assert!((1..OFFSET_NS_MAX).contains(&delay), "{outcome}");
    // The true offset is within the bound.
    let estimate = outcome.decimal("/status/measurement/estimate/offset_ns").abs();
    assert!(estimate <= outcome.decimal("/status/measurement/estimate/bound_ns"), "{outcome}");
    for problem in ["missing_stamps", "malformed", "other_domain", "refusals"] {
        assert_eq!(outcome.number(&format!("/status/messages/{problem}")), 0, "{outcome}");
    }
    offset
}

/// Each follows the other over a transport. `unicast` are the options of the slave, and of ptp4l as
/// master and as slave.
fn follow_each_other(
    lab: &Lab,
    network: &str,
    transport: &str,
    unicast: Option<(&[&str], &str, [&str; 2])>,
) {
    let (options, master, [port, table]) = unicast.unwrap_or((&[], "", ["", ""]));
    let ours = {
        let _master = Ptp4l::start(&lab.b, network, [master, "", ""]);
        let arguments = [&["--transport", transport, "--log-interval=-3"], options].concat();
        check_measurement(&slave(&lab.a, 12, &arguments).expect(0), IDENTITY_B)
    };
    let mut command = clock(&lab.a, &["ptp", "--interface", lab.a.interface()]);
    command.args(["--role", "master", "--transport", transport, "--log-interval=-3", "--json"]);
    let running = start_command(&mut command);
    let theirs = {
        let slave = Ptp4l::start(&lab.b, network, [SLAVE, port, table]);
        until("the grandmaster of ptp4l", || {
            let grandmaster = slave.field("TIME_STATUS_NP", "gmIdentity")?;
            (grandmaster == IDENTITY_A).then_some(())
        });
        assert_eq!(slave.field("TIME_STATUS_NP", "gmPresent").as_deref(), Some("true"));
        let offset = slave.offset_median();
        // A clock that is never set stays uncalibrated.
        let state = slave.field("PORT_DATA_SET", "portState").unwrap_or_default();
        assert!(["UNCALIBRATED", "SLAVE"].contains(&state.as_str()), "{state}");
        let parent = slave.field("PARENT_DATA_SET", "parentPortIdentity");
        assert_eq!(parent, Some(format!("{IDENTITY_A}-1")));
        offset
    };
    running.signal(Signal::INT);
    let outcome = running.wait().expect(0);
    outcome.assert_valid("clock-ptp");
    let number = |name: &str| outcome.number(&format!("/status/messages/{name}"));
    assert!(number("delay_req") > 0, "{outcome}");
    assert_eq!(number("delay_resp"), number("delay_req"), "{outcome}");
    assert_eq!(number("follow_up"), number("sync"), "{outcome}");
    assert_eq!(outcome.text("/status/port"), format!("{IDENTITY_A}-1"));
    assert!(theirs.abs() < OFFSET_NS_MAX, "ptp4l: {theirs} ns");
    assert!((ours - theirs).abs() < OFFSET_NS_MAX, "{ours} ns, ptp4l: {theirs} ns");
}

#[test]
fn ptp4l_and_wirestorm_follow_each_other_over_ethernet() {
    if can_run(&["ptp4l", "pmc"]) {
        follow_each_other(&lab(), "L2", "l2", None);
    }
}

#[test]
fn ptp4l_and_wirestorm_follow_each_other_over_udp_multicast() {
    if can_run(&["ptp4l", "pmc"]) {
        follow_each_other(&lab(), "UDPv4", "udp4", None);
    }
}

#[test]
fn ptp4l_and_wirestorm_follow_each_other_over_ipv6() {
    if can_run(&["ptp4l", "pmc"]) {
        follow_each_other(&lab(), "UDPv6", "udp6", None);
    }
}

#[test]
fn ptp4l_and_wirestorm_follow_each_other_over_udp_unicast() {
    if !can_run(&["ptp4l", "pmc"]) {
        return;
    }
    let lab = lab();
    let (a, b) = (lab.a.ipv4().to_string(), lab.b.ipv4().to_string());
    let table = format!("[unicast_master_table]\ntable_id 1\nlogQueryInterval 0\nUDPv4 {a}");
    let ptp4l = ["unicast_master_table 1", table.as_str()];
    let options = ["--unicast", b.as_str()];
    follow_each_other(&lab, "UDPv4", "udp4", Some((&options, UNICAST_MASTER, ptp4l)));
}

#[test]
fn unicast_master_behind_a_router_is_followed() {
    if !can_run(&["ptp4l", "pmc"]) {
        return;
    }
    let lab = RouterLab::with(&LabOptions::default()).unwrap();
    let _master = Ptp4l::start(&lab.b, "UDPv4", [UNICAST_MASTER, "", ""]);
    let address = lab.b.ipv4().to_string();
    let arguments = ["--transport", "udp4", "--unicast", &address, "--log-interval=-3"];
    let outcome = slave(&lab.a, 12, &arguments).expect(0);
    check_measurement(&outcome, "025753.fffe.000003");
    assert_eq!(outcome.text("/status/master/address"), address);
    assert!(outcome.number("/status/messages/grants") >= 3, "{outcome}");
}

#[test]
fn slave_without_a_master_fails() {
    if !can_run(&["ptp4l", "pmc"]) {
        return;
    }
    let lab = lab();
    let outcome = slave(&lab.a, 1, &["--transport", "l2"]).expect(3);
    assert!(outcome.result()["status"]["master"].is_null(), "{outcome}");
    // A master of another domain is none.
    let _master = Ptp4l::start(&lab.b, "L2", ["domainNumber 3", "", ""]);
    let outcome = slave(&lab.a, 6, &["--transport", "l2"]).expect(3);
    assert!(outcome.number("/status/messages/other_domain") > 0, "{outcome}");
    let outcome = slave(&lab.a, 6, &["--transport", "l2", "--domain", "3"]).expect(0);
    check_exchanges(&outcome);
}

#[track_caller]
fn check_exchanges(outcome: &Outcome) {
    assert!(outcome.number("/status/measurement/exchanges") > 0, "{outcome}");
}

#[test]
fn lost_master_is_reported() {
    if !can_run(&["ptp4l", "pmc"]) {
        return;
    }
    let lab = lab();
    let master = Ptp4l::start(&lab.b, "L2", ["", "", ""]);
    let mut command = clock(&lab.a, &["ptp", "--interface", lab.a.interface()]);
    command.args(["--transport", "l2", "--duration", "12s"]);
    let running = start_command(&mut command);
    std::thread::sleep(Duration::from_secs(8));
    drop(master);
    let outcome = running.wait().expect(0);
    let last = outcome.output.lines().rfind(|line| line.contains(" s ")).unwrap_or_default();
    assert!(last.ends_with("none"), "{outcome}");
    assert!(outcome.output.contains("no master in domain 0"), "{outcome}");
    assert!(outcome.output.contains("path is symmetric"), "{outcome}");
}

#[test]
fn wrong_options_are_refused() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new().unwrap();
    let run = |arguments: &[&str]| {
        run_command(clock(&lab.a, &["ptp", "--interface", "veth0"]).args(arguments))
    };
    run(&["--transport", "l2", "--unicast", "10.0.0.1"])
        .expect_error(2, &["10.0.0.1 is no address for this transport", "a MAC address"]);
    run(&["--role", "master", "--unicast", "10.0.0.1"]).expect_error(2, &["a slave"]);
    run(&["--unicast", "host"]).expect_error(2, &["expected an IP address"]);
    run(&["--duration", "10"]).expect_error(2, &["--duration", "10s"]);
    run(&["--role", "master"]).expect_error(2, &["veth0 has no IPv4 address", "ip address add"]);
}
