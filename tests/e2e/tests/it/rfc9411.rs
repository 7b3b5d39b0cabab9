//! `wirestorm bench rfc9411` finds the limits of a Linux firewall.

use std::process::Command;

use serde_json::Value;
use wirestorm_e2e::{can_run, run_command, wirestorm};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{LabOptions, RouterLab};

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
