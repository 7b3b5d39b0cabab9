//! `wirestorm bench rfc9411` finds the limits of a Linux firewall.

use std::process::Command;

use serde_json::Value;
use wirestorm_e2e::{Outcome, can_run, run_command, wirestorm};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{End, LabOptions, RouterLab};

/// Most connections that the firewall tracks; it answers further SYNs with RST.
const CONNECTIONS: u64 = 300;

/// A router that translates addresses and refuses connections above the limit.
const RULES: &str = "
table ip witness {
    chain admission {
        type filter hook forward priority 0;
        ct state new ct count over 300 reject with tcp reset
    }
    chain translation {
        type nat hook postrouting priority 100;
        masquerade
    }
}";

/// Returns the result of a run between two ends, which passed.
fn rfc9411(lab: &[&End; 2], hosts: [&str; 2], flags: &[&str]) -> Outcome {
    let history = Scratch::new().unwrap();
    let mut command = Command::new(wirestorm());
    command.args(["bench", "rfc9411", "--json", "-", "--quiet"]).args(flags);
    command.arg("--runs-dir").arg(history.path());
    command.args(["--init", "0s", "--settle", "0s", "--ramp-up", "500ms", "--sustain", "1s"]);
    command.args(["--tx", &lab[0].port(), "--client-addresses", hosts[0]]);
    command.args(["--rx", &lab[1].port(), "--server-addresses", hosts[1]]);
    // A busy machine does not send at a constant rate, and may be late.
    command.args(["--max-rate-deviation", "90", "--force-interface"]);
    run_command(&mut command).expect(0)
}

/// Checks that each row of a result has a number of connections or transactions without failure.
fn assert_valid(outcome: &Outcome, rows: usize) {
    let found = outcome.result()["findings"]["rows"].as_array().unwrap();
    assert_eq!(found.len(), rows, "{outcome}");
    for row in found {
        assert!(row["load"].as_u64() > Some(0), "{row}\n{outcome}");
    }
    assert_eq!(outcome.result()["verdict"]["outcome"], Value::from("met"), "{outcome}");
}

#[test]
fn connections_over_ipv6_pass_a_bridge() {
    if !can_run(&[]) {
        return;
    }
    let lab = RouterLab::with(&LabOptions { ipv6: true, ..LabOptions::default() }).unwrap();
    let master = |end: &End| format!("link set {} master br0", end.interface());
    let quiet = "link add br0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0";
    let (a, b) = (master(&lab.router_a), master(&lab.router_b));
    lab.router_a.namespace().ip(&[quiet, &a, &b, "link set br0 up"]).unwrap();
    let targets = ["--target", "connections=200,throughput=4M,concurrent=100"];
    let tests = ["--tests", "connections,throughput,latency,concurrent", "--object-sizes", "1K"];
    let hosts = ["2001:db8:1::10-2001:db8:1::2f", "2001:db8:1::1:10-2001:db8:1::1:2f"];
    let ends = [&lab.a, &lab.b];
    let outcome = rfc9411(&ends, hosts, &[&targets[..], &tests].concat());
    assert_valid(&outcome, 5);
    let https = ["--https", "--target", "connections=50", "--tests", "connections"];
    assert_valid(&rfc9411(&ends, hosts, &[&https[..], &["--object-sizes", "1K"]].concat()), 1);
}

#[test]
fn concurrent_connections_are_those_that_a_firewall_admits() {
    if !can_run(&["nft"]) {
        return;
    }
    let lab = RouterLab::with(&LabOptions::default()).unwrap();
    let mut nft = lab.router_a.command("sh");
    let script = format!("echo '{RULES}' | nft -f -");
    let output = nft.args(["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{output:?}");

    let history = Scratch::new().unwrap();
    let mut command = Command::new(wirestorm());
    command.arg("bench").arg("rfc9411").arg("--runs-dir").arg(history.path());
    command.args(["--json", "-", "--quiet", "--tests", "concurrent"]);
    command.args(["--target", "connections=1200,concurrent=400", "--resolution", "15"]);
    command.args(["--init", "0s", "--settle", "0s", "--sustain", "2s"]);
    // A busy machine does not forward at a constant rate. The default route of `a` leads to the
    // device.
    command.args(["--max-rate-deviation", "90", "--force-interface"]);
    for (end, router, [port, hosts]) in [
        (&lab.a, &lab.router_a, ["--tx", "--client-addresses"]),
        (&lab.b, &lab.router_b, ["--rx", "--server-addresses"]),
    ] {
        let address = end.ipv4().to_string();
        let (network, _) = address.rsplit_once('.').unwrap();
        command.args([port, &end.port(), hosts, &format!("{network}.60-{network}.79")]);
        let router = router.ipv4();
        command.args(["--address", &format!("{}={network}.50/24,{router}", end.port())]);
    }
    let outcome = run_command(&mut command);
    outcome.assert_no_panic();
    let row = &outcome.result()["findings"]["rows"][0];
    let number = |what: &str| row[what].as_u64().unwrap_or_else(|| panic!("{what}: {outcome}"));
    let (load, upper) = (number("load"), number("upper"));
    assert!(load <= CONNECTIONS && CONNECTIONS < upper, "{load} {upper}: {outcome}");
    assert_eq!(row["kpis"]["concurrent"]["max"].as_f64(), Some(load as f64), "{outcome}");
    let unmet: Vec<&str> = row["upper_unmet"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|value| value["criterion"].as_str())
        .collect();
    assert!(unmet.starts_with(&["failed-transactions", "unexpected-resets"]), "{unmet:?}");
    assert_eq!(outcome.result()["verdict"]["outcome"], Value::from("met"), "{outcome}");
    outcome.expect(0);
}
