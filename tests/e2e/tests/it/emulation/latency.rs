//! Latency probes during load: between two ports, and to a Linux host.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;
use wirestorm_e2e::{Outcome, can_run, run_command};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;

use super::{BOTH, KilledOnDrop, both_ports, emulate, host, plan};

/// Checks that the counters of a probe are consistent.
fn assert_fit(outcome: &Outcome, probe: usize) {
    let number = |name: &str| outcome.number(&format!("/latency/{probe}/{name}"));
    assert_eq!(number("sent"), number("received") + number("lost"), "{outcome}");
    assert_eq!(number("round_trip/count"), number("received"), "{outcome}");
    let ordered =
        ["min_ns", "p50_ns", "p99_ns", "max_ns"].map(|it| number(&format!("round_trip/{it}")));
    assert!(ordered[0] > 0 && ordered.is_sorted(), "{outcome}");
    let mean = outcome.decimal(&format!("/latency/{probe}/round_trip/mean_ns"));
    assert!(((ordered[0] as f64)..=(ordered[3] as f64)).contains(&mean), "{outcome}");
    assert!(number("jitter_ns") > 0, "{outcome}");
}

#[test]
fn ports_probe_each_other_during_load() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let probes = "latency:\n  - {from: clients, to: servers, rate: 200}\n  \
                  - {from: servers, to: 10.0.0.1}\n  - {from: clients, to: 10.0.1.5, rate: 50}\n";
    let text = BOTH.replace("limit: 300", "limit: 1000") + probes;
    let plan = plan(&scratch, &text);
    for backend in ["af_xdp", "af_packet"] {
        let outcome = both_ports(emulate(&plan).args(["--backend", backend]), &lab).expect(0);
        let text = |path: &str| outcome.text(path).to_owned();
        assert_eq!(
            (text("/latency/0/port"), text("/latency/0/target")),
            ("clients".into(), "10.0.1.1".into())
        );
        assert_eq!(
            (text("/latency/1/port"), text("/latency/1/target")),
            ("servers".into(), "10.0.0.1".into())
        );
        for (probe, expected) in [(0, 200), (1, 100), (2, 50)] {
            assert_fit(&outcome, probe);
            let sent = outcome.number(&format!("/latency/{probe}/sent"));
            let unsent = outcome.number(&format!("/latency/{probe}/unsent"));
            // A run of a thousand connections lasts a second plus the time of the last ones.
            assert!(sent + unsent >= expected, "{sent} of {expected}, {outcome}");
            assert!(sent <= 2 * expected, "{sent} of {expected}, {outcome}");
            assert_eq!(outcome.number(&format!("/latency/{probe}/lost")), 0, "{outcome}");
        }
        // The counters of the load do not include the probes.
        assert_eq!(outcome.number("/ports/0/connections/tcp/connects"), 1_000, "{outcome}");
        assert_eq!(outcome.number("/ports/0/connections/flows/failed"), 0, "{outcome}");
    }
}

/// A plan of a port that probes a Linux host 500 times a second, for one second.
struct Probe(PathBuf);

impl Probe {
    /// `how`: settings of the probe, each followed by a comma.
    fn new(scratch: &Scratch, how: &str) -> Self {
        let text = format!(
            "ports: [{{name: clients, addresses: 198.51.100.77/24}}]\n\
             latency: [{{from: clients, to: 198.51.100.2, {how}rate: 500}}]\n\
             templates:\n  - name: page\n    \
             server: {{tx: clients, port: 80, program: [{{receive: 1}}]}}\n"
        );
        Self(plan(scratch, &text))
    }

    fn run(&self, lab: &Lab) -> Outcome {
        let port = format!("clients={}", lab.a.port());
        run_command(emulate(&self.0).args(["--port", &port, "--duration", "1s"])).expect(0)
    }
}

#[test]
fn probes_count_replies_and_losses_of_a_linux_host() {
    if !can_run(&["nft"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    let probe = Probe::new(&scratch, "");
    let run = || probe.run(&lab);
    let outcome = run();
    assert_fit(&outcome, 0);
    let number = |name: &str| outcome.number(&format!("/latency/0/{name}"));
    // A busy machine sends fewer probes and reports so.
    let due = number("sent") + number("unsent");
    assert!((400..=1_000).contains(&due) && number("sent") > 100, "{outcome}");
    assert!(number("lost") < 10, "{outcome}");
    // Drop a third of the requests.
    let rules = "table ip loss { chain input { type filter hook input priority 0; icmp type \
                 echo-request numgen inc mod 3 == 0 drop; }; }";
    assert!(lab.b.command("nft").arg(rules).status().unwrap().success());
    let outcome = run();
    assert_fit(&outcome, 0);
    let (sent, lost) = (outcome.number("/latency/0/sent"), outcome.number("/latency/0/lost"));
    assert!((sent * 30 / 100..=sent * 36 / 100).contains(&lost), "{lost} of {sent}, {outcome}");
}

#[test]
fn other_port_echoes_udp_probes_during_load() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let probes = "latency:\n  - {from: clients, to: servers, protocol: udp, rate: 200}\n  \
                  - {from: servers, to: clients, protocol: udp, port: 5001, rate: 50}\n  \
                  - {from: clients, to: servers, rate: 50}\n";
    let text = BOTH.replace("limit: 300", "limit: 1000") + probes;
    let plan = plan(&scratch, &text);
    for backend in ["af_xdp", "af_packet"] {
        let outcome = both_ports(emulate(&plan).args(["--backend", backend]), &lab).expect(0);
        let by = [("udp", Some(7)), ("udp", Some(5_001)), ("icmp", None)];
        for (probe, ((protocol, port), expected)) in by.into_iter().zip([200, 50, 50]).enumerate() {
            assert_eq!(outcome.text(&format!("/latency/{probe}/protocol")), protocol);
            let target_port = outcome.result().pointer(&format!("/latency/{probe}/target_port"));
            assert_eq!(target_port.and_then(Value::as_u64), port, "{outcome}");
            assert_fit(&outcome, probe);
            let number = |name: &str| outcome.number(&format!("/latency/{probe}/{name}"));
            assert!(number("sent") + number("unsent") >= expected, "{outcome}");
            for name in ["lost", "duplicated", "reordered"] {
                assert_eq!(number(name), 0, "{name}, {outcome}");
            }
        }
        // The load does not see the probes, and they are not counted as unmatched.
        assert_eq!(outcome.number("/ports/0/connections/tcp/connects"), 1_000, "{outcome}");
        for port in 0..2 {
            for name in ["failed", "no_template", "unreachable", "unreachable_sent"] {
                let found = outcome.number(&format!("/ports/{port}/connections/flows/{name}"));
                assert_eq!(found, 0, "{name} of {port}, {outcome}");
            }
        }
    }
}

/// Echoes datagrams; of ten, one is dropped, one comes after the next one, and one comes twice.
const ECHO: &str = r#"
import socket

server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("198.51.100.2", 5007))
print("ready", flush=True)
held = None
while True:
    data, asker = server.recvfrom(2048)
    place = int.from_bytes(data[8:16], "big") % 10
    if place == 3:
        held = data
        continue
    if place != 7:
        server.sendto(data, asker)
    if place == 5:
        server.sendto(data, asker)
    if held:
        server.sendto(held, asker)
        held = None
"#;

#[test]
fn late_and_duplicate_udp_probe_replies_are_counted() {
    if !can_run(&["python3"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    let probe = Probe::new(&scratch, "protocol: udp, port: 5007, ");
    let run = || probe.run(&lab);
    // No program echoes them yet, and the host sends ICMP errors.
    let outcome = run();
    assert_eq!(outcome.number("/latency/0/received"), 0, "{outcome}");
    assert!(outcome.number("/latency/0/lost") >= 400, "{outcome}");
    let script = scratch.file("echo.py");
    fs::write(&script, ECHO).unwrap();
    let mut echo = lab.b.command("python3");
    let mut echo = KilledOnDrop(echo.arg(&script).stdout(Stdio::piped()).spawn().unwrap());
    let mut ready = String::new();
    BufReader::new(echo.0.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    let outcome = run();
    assert_fit(&outcome, 0);
    let number = |name: &str| outcome.number(&format!("/latency/0/{name}"));
    let sent = number("sent");
    assert!((400..=520).contains(&sent), "{outcome}");
    for name in ["lost", "duplicated", "reordered"] {
        assert!((sent / 10 - 1..=sent / 10 + 2).contains(&number(name)), "{name}, {outcome}");
    }
}
