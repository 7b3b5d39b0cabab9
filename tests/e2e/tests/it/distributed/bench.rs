//! Benchmark methods between nodes: on one machine, and with agents on a NATS server.

use std::process::Command;
use std::time::Duration;

use rustix::process::{Signal, kill_process};
use serde_json::Value;
use wirestorm_e2e::{Outcome, can_run, run_command, start_command};

use super::policed_path::PolicedPath;
use super::{Cluster, TwoNodes};

impl TwoNodes {
    /// Writes a test with a method from one interface to another. `ports`: more fields of each port.
    pub(super) fn bench(&self, [left, right]: [&str; 2], ports: [&str; 2], method: &str) -> String {
        let text = format!(
            "
nodes: [tx, rx]
ports:
  - {{name: left, node: tx, interface: '{left}'{}}}
  - {{name: right, node: rx, interface: '{right}'{}}}
runs:
  - name: link
    bench: {{tx: left, rx: right, settle: 0s, learning_wait: 0s, {method}}}
    options: {{force_interface: true}}
",
            ports[0], ports[1]
        );
        let path = self.scratch.file("bench.yaml");
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// Writes a test with a method on the link of the nodes.
    fn bench_on_link(&self, method: &str) -> String {
        let [a, b] = [self.lab.a.port(), self.lab.b.port()];
        self.bench([&a, &b], ["", ""], method)
    }
}

const BENCH: &str = "/bench/result";

fn value<'a>(outcome: &'a Outcome, pointer: &str) -> &'a Value {
    let value = outcome.result().pointer(&format!("{BENCH}/{pointer}"));
    value.unwrap_or_else(|| panic!("no {pointer}\n{outcome}"))
}

#[test]
fn method_on_one_machine_has_findings_and_is_in_the_history() {
    if !can_run(&[]) {
        return;
    }
    let nodes = TwoNodes::new();
    let test = nodes.bench_on_link(
        "bidirectional: true, method: rfc2544, tests: [latency, frame-loss], frame_sizes: 128, \
         trial: 300ms, max_load: 2kpps, confirm: 1, latency_repetitions: 1, latency_stream: 400ms",
    );
    let outcome = run_command(&mut nodes.command(&["test", &test, "--json", "-", "--save=link"]));
    let outcome = outcome.expect(0);
    outcome.assert_valid("test");
    let throughput = value(&outcome, "findings/throughput/0");
    assert_eq!((&throughput["load"], &throughput["upper"]), (&2_000.into(), &Value::Null));
    assert_eq!(throughput["confirmed"], 1, "{outcome}");
    // 200 ms of two directions are measured.
    let latency = value(&outcome, "findings/latency/0");
    assert_eq!(latency["delay"]["count"], 800, "{outcome}");
    assert!(latency["typical"]["median_ns"].as_f64().is_some_and(|it| it > 0.0), "{latency}");
    assert_eq!(value(&outcome, "findings/frame_loss/0/points/0/received"), 1_200, "{outcome}");
    assert_eq!(value(&outcome, "verdict/outcome"), "met");
    assert_eq!(outcome.text("/bench/name"), "link");
    let trials = value(&outcome, "trials").as_u64().unwrap();
    let lines = outcome.messages.lines().filter(|line| line.contains("ipv4")).count() as u64;
    assert_eq!(lines, trials, "{outcome}");
    // The run history has it as a method, so that reports do.
    let report = ["report", "link", "--format", "markdown"];
    let report = run_command(&mut nodes.command(&report)).expect(0);
    assert!(report.output.contains("2,000") && report.output.contains("Throughput"), "{report}");
    // The table of the terminal.
    let table = run_command(&mut nodes.command(&["test", &test, "--quiet"])).expect(0);
    assert!(table.output.contains("throughput") && table.output.contains("done in"), "{table}");
}

#[test]
fn services_of_one_machine_meet_their_profile() {
    if !can_run(&[]) {
        return;
    }
    let nodes = TwoNodes::new();
    let test = nodes.bench_on_link(
        "method: y1564, services: [{name: voice, cir: 2M, vlan: 100, availability: 99%}], \
         tests: [cir, performance], cir_steps: [50, 100], step: 1s, performance: 2s",
    );
    let outcome = run_command(&mut nodes.command(&["test", &test, "--json", "-"])).expect(0);
    assert_eq!(value(&outcome, "verdict/outcome"), "met", "{outcome}");
    assert_eq!(value(&outcome, "parameters/services/0/vlan"), 100, "{outcome}");
    // Two steps, and the performance test, whose seconds count.
    assert_eq!(value(&outcome, "trials"), 3, "{outcome}");
}

#[test]
fn rate_of_a_policer_is_found_between_agents() {
    const RATE: u32 = 500;
    // The burst absorbs pauses of a busy machine of 100 ms.
    const BURST: u32 = 50;
    const TRIAL_S: f64 = 2.0;
    let Some(path) = PolicedPath::start(RATE, BURST) else { return };
    let test = path.bench(&format!(
        "method: rfc2544, tests: throughput, frame_sizes: 128, trial: {TRIAL_S}s, resolution: 2, \
         max_load: 1kpps"
    ));
    let outcome = path.cluster.test(&test, &[]).wait().expect(0);
    let found = value(&outcome, "findings/throughput/0/load").as_f64().unwrap();
    let expected = f64::from(RATE) * 0.97..=f64::from(RATE) + f64::from(BURST) / TRIAL_S + 1.0;
    assert!(expected.contains(&found), "found {found}, expected {expected:?}: {outcome}");
    assert_eq!(value(&outcome, "findings/throughput/0/is_tester_limited"), false, "{outcome}");
}

#[test]
fn searches_of_mlrsearch_and_ndr_find_the_rate_of_a_policer() {
    const RATE: u32 = 2_000;
    const BURST: u32 = 100;
    const TRIAL_S: f64 = 0.5;
    let Some(path) = PolicedPath::start(RATE, BURST) else { return };
    // What passes without loss in a trial, the width of the search, and a busy machine.
    let expected = f64::from(RATE) * 0.85..=(f64::from(RATE) + f64::from(BURST) / TRIAL_S) * 1.05;
    let common = "frame_sizes: 128, max_load: 4kpps, no_learning: true";
    let goal = format!("'name=short,final={TRIAL_S}s,sum={TRIAL_S}s,initial={TRIAL_S}s,width=5%'");
    let mlrsearch = format!("method: mlrsearch, goal: {goal}, min_load: 500pps, {common}");
    let ndr = format!(
        "method: ndr, pdr: 0, pdr_error: 4, iteration: {TRIAL_S}s, first_run: {TRIAL_S}s, {common}"
    );
    for (method, findings) in [
        (mlrsearch, ["searches/0/results/0/lower", "searches/0/results/0/upper"]),
        (ndr, ["rows/0/best/load", "rows/0/upper"]),
    ] {
        let test = path.bench(&method);
        let outcome = path.cluster.test(&test, &[]).wait().expect(0);
        outcome.assert_valid("test");
        let [found, upper] = findings
            .map(|pointer| value(&outcome, &format!("findings/{pointer}")).as_f64().unwrap());
        assert!(expected.contains(&found), "found {found}, expected {expected:?}: {outcome}");
        assert!(found < upper && upper < found * 1.2, "{found} to {upper}: {outcome}");
        assert_eq!(value(&outcome, "verdict/outcome"), "met", "{outcome}");
        let trials = value(&outcome, "trials").as_u64().unwrap();
        assert!((4..=20).contains(&trials), "{outcome}");
    }
}

#[test]
fn lost_agent_ends_a_method_and_completed_trials_are_kept() {
    if !can_run(&[]) {
        return;
    }
    let Some(cluster) = Cluster::start(&[]) else { return };
    let method = "method: rfc2544, tests: throughput, frame_sizes: 128, trial: 1s, confirm: 100, \
                  max_load: 1kpps, no_learning: true";
    let test = cluster.nodes.bench_on_link(method);
    let director = cluster.test(&test, &["--save=lost"]);
    director.wait_for_message("--save keeps its trials");
    director.wait_for_message("throughput");
    kill_process(cluster.agents[1].pid(), Signal::KILL).unwrap();
    let outcome = director.wait();
    outcome.assert_no_panic();
    let outcome = outcome.expect(1);
    outcome.assert_valid("test");
    let reason = value(&outcome, "verdict/reasons/0").as_str().unwrap();
    assert!(reason.contains("agent rx"), "{outcome}");
    assert!(outcome.messages.contains(reason), "{outcome}");
    assert_eq!(value(&outcome, "verdict/outcome"), "failed");
    let trials = value(&outcome, "trials").as_u64().unwrap();
    assert!(trials >= 1, "{outcome}");
    let shown = run_command(&mut cluster.nodes.command(&["runs", "show", "lost"])).expect(0);
    assert!(shown.output.contains("failed") && shown.output.contains("agent rx"), "{shown}");
}

#[test]
fn methods_that_cannot_run_are_refused_before_anything_is_sent() {
    if !can_run(&[]) {
        return;
    }
    let nodes = TwoNodes::new();
    for (method, words) in [
        ("method: rfc9411", ["run link: bench.method: found rfc9411", "bench rfc9411"]),
        ("method: rfc2544, tests: all", ["run link: bench.tests: reset", "resets the device"]),
        ("method: ndr, trial: 1s", ["run link: bench.trial: unknown field", "first_run"]),
    ] {
        let test = nodes.bench_on_link(method);
        run_command(&mut nodes.command(&["test", &test])).expect_error(2, &words);
    }
    assert_eq!(nodes.lab.b.counters().unwrap().rx_packets, 0);
}

/// Stops a method a time after the frames of its first trial have arrived. Returns the trials that it
/// has kept.
fn trials_before_a_stop(
    nodes: &TwoNodes,
    command: &mut Command,
    bench: &str,
    time: Duration,
) -> u64 {
    let before = nodes.lab.b.counters().unwrap().rx_packets;
    let running = start_command(command);
    nodes.wait_for_frames(before + 300);
    std::thread::sleep(time);
    running.signal(Signal::INT);
    let outcome = running.wait();
    outcome.assert_no_panic();
    assert_eq!(outcome.text(&format!("{bench}/verdict/outcome")), "interrupted", "{outcome}");
    outcome.number(&format!("{bench}/trials"))
}

#[test]
fn stop_while_the_device_settles_keeps_the_trial() {
    if !can_run(&[]) {
        return;
    }
    let nodes = TwoNodes::new();
    let path = nodes.bench_on_link(
        "method: rfc2544, tests: throughput, frame_sizes: 128, trial: 300ms, max_load: 1kpps, \
         no_learning: true, confirm: 10",
    );
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("settle: 0s", "settle: 50s")).unwrap();
    let [a, b] = [nodes.lab.a.port(), nodes.lab.b.port()];
    let mut test = nodes.command(&["test", &path, "--json", "-"]);
    let mut bench = nodes.command(&["bench", "rfc2544", "--tx", &a, "--rx", &b, "--json", "-"]);
    bench.args(["--tests=throughput", "--frame-sizes=128", "--trial=300ms", "--max-load=1kpps"]);
    bench.args(["--no-learning", "--confirm=10", "--settle=50s"]);
    for (command, pointer) in [(&mut test, BENCH), (&mut bench, "")] {
        // A busy machine needs longer until the wait begins, of which nothing tells.
        let kept = [1, 5, 25].map(Duration::from_secs).into_iter().any(|time| {
            let trials = trials_before_a_stop(&nodes, command, pointer, time);
            assert!(trials <= 1, "{trials} trials");
            trials == 1
        });
        assert!(kept, "{command:?}");
    }
}
