//! `wirestorm bench ndr` with a plan of clients and servers finds the limit of a Linux router.

use std::path::{Path, PathBuf};
use std::process::Command;

use wirestorm_e2e::{Outcome, can_run, run_command, wirestorm};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{End, LabOptions, RouterLab};

/// New connections per second that the router admits; it answers further SYNs with RST.
const CONNECTIONS_PER_SECOND: u64 = 400;
/// SYNs above the rate that pass at once, for the pauses of a busy machine.
const BURST: u64 = 40;

/// Writes a plan of 100 connections a second through the router.
fn plan(lab: &RouterLab, scratch: &Scratch) -> PathBuf {
    let network = |end: &End| {
        let address = end.ipv4().to_string();
        address.rsplit_once('.').unwrap().0.to_owned()
    };
    let [clients, servers] = [network(&lab.a), network(&lab.b)];
    let [to_servers, to_clients] = [lab.router_a.ipv4(), lab.router_b.ipv4()];
    let text = format!(
        "
ports:
  - {{name: clients, addresses: {clients}.50/24, gateway: {to_servers}}}
  - {{name: servers, addresses: {servers}.50/24, gateway: {to_clients}}}
templates:
  - name: page
    client:
      tx: clients
      addresses: {clients}.60-{clients}.79
      servers: {servers}.60-{servers}.79
      load: {{rate: 100}}
      program: [{{send: question}}, {{receive: 500}}]
    server:
      tx: servers
      port: 80
      program: [{{receive: 8}}, {{send: {{text: answer, size: 500}}}}]
"
    );
    let path = scratch.file("plan.yaml");
    std::fs::write(&path, text).unwrap();
    path
}

fn nft(device: &End, lines: &[String]) {
    for line in lines {
        let output = device.command("nft").arg(line).output().unwrap();
        assert!(output.status.success(), "nft {line}: {output:?}");
    }
}

fn ndr(scratch: &Scratch, plan: &Path, flags: &[&str]) -> Outcome {
    let mut command = Command::new(wirestorm());
    command.args(["bench", "ndr", "--json", "-", "--plan"]).arg(plan).args(flags);
    let outcome = run_command(command.env("WIRESTORM_RUNS", scratch.file("runs")));
    outcome.assert_no_panic();
    outcome
}

#[test]
fn rate_of_connections_is_the_one_that_a_router_admits() {
    if !can_run(&["nft"]) {
        return;
    }
    let (lab, scratch) =
        (RouterLab::with(&LabOptions::default()).unwrap(), Scratch::new().unwrap());
    let rules = [
        "add table ip admission".to_owned(),
        "add chain ip admission forward { type filter hook forward priority 0; }".to_owned(),
        format!(
            "add rule ip admission forward tcp flags & (syn | ack) == syn limit rate over \
             {CONNECTIONS_PER_SECOND}/second burst {BURST} packets reject with tcp reset"
        ),
    ];
    nft(&lab.router_a, &rules);
    let flags = ["--first-run", "2s", "--iteration", "2s", "--settle", "0", "--pdr", "1"];
    let (a, b) = (lab.a.port(), lab.b.port());
    // The default route of `a` leads to the device.
    let bed = ["--tx", &a, "--rx", &b, "--max-load", "10x", "--force-interface"];
    let outcome = ndr(&scratch, &plan(&lab, &scratch), &[&flags[..], &bed].concat()).expect(0);
    assert_eq!(outcome.number("/findings/rows/0/load_max"), 1_000, "{outcome}");
    let best = outcome.number("/findings/rows/0/best/load");
    // The burst passes once in the two seconds, and 1 % of the connections may fail.
    let most = (CONNECTIONS_PER_SECOND + BURST / 2) * 102 / 100;
    assert!((CONNECTIONS_PER_SECOND * 97 / 100..=most).contains(&best), "{best}: {outcome}");
    assert_eq!(outcome.text("/findings/rows/0/limit"), "drops", "{outcome}");
}

#[test]
fn retransmissions_fail_a_trial_of_connections() {
    if !can_run(&["nft"]) {
        return;
    }
    let (lab, scratch) =
        (RouterLab::with(&LabOptions::default()).unwrap(), Scratch::new().unwrap());
    // Each connection sends one segment with 500 bytes of data towards the clients.
    let rules = [
        "add table ip loss".to_owned(),
        "add chain ip loss forward { type filter hook forward priority 0; }".to_owned(),
        "add rule ip loss forward tcp sport 80 ip length > 300 numgen inc mod 10 == 0 drop".into(),
    ];
    nft(&lab.router_a, &rules);
    let flags =
        ["--first-run", "1s", "--iteration", "1s", "--settle", "0", "--max-iterations", "1"];
    let (a, b) = (lab.a.port(), lab.b.port());
    let bed = ["--tx", &a, "--rx", &b, "--max-load", "200", "--force-interface"];
    let outcome = ndr(&scratch, &plan(&lab, &scratch), &[&flags[..], &bed].concat()).expect(0);
    assert_eq!(outcome.text("/findings/rows/0/limit"), "retransmissions", "{outcome}");
    assert!(outcome.result()["findings"]["rows"][0]["best"].is_null(), "{outcome}");
    // All connections end well nevertheless.
    assert!(outcome.messages.contains("rexmit"), "{outcome}");
}

#[test]
fn rate_of_connections_of_a_simulated_device_is_exact() {
    let scratch = Scratch::new().unwrap();
    let plan = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/pages.yaml"));
    let flags = [
        "--simulate=connections_per_second=31234",
        "--max-load=100x",
        "--pdr=0",
        "--pdr-error=0.001",
        "--max-iterations=30",
    ];
    let outcome = ndr(&scratch, plan, &flags).expect(0);
    // The plan has a rate of 1,000 connections a second. The precision is one.
    assert_eq!(outcome.number("/findings/rows/0/load_max"), 100_000, "{outcome}");
    assert_eq!(outcome.number("/findings/rows/0/best/load"), 31_234, "{outcome}");
    ndr(&scratch, plan, &["--simulate="]).expect_error(2, &["needs --max-load", "20x"]);
}
