//! `wirestorm test` and `wirestorm agent`: two agents, a director and a real NATS server.

mod attacks;
mod bench;
mod clocks;
mod demos;
mod faults;
mod files;
mod member;
mod policed_path;
mod ptp;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use wirestorm_e2e::{Outcome, Running, can_run, run_command, start_command, wirestorm};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::nats::{NatsServer, free_port, require_nats_server};
use wirestorm_testkit::net::Lab;

/// Two interfaces, each of a node of its own, and a test with a flow from one to the other.
struct TwoNodes {
    lab: Lab,
    scratch: Scratch,
}

impl TwoNodes {
    fn new() -> Self {
        Self { lab: Lab::new().unwrap(), scratch: Scratch::new().unwrap() }
    }

    /// Writes a test of 1,000 frames a second.
    fn test(&self, seconds: u32, more: &str) -> String {
        let text = format!(
            "
nodes: [tx, rx]
ports:
  - {{name: left, node: tx, interface: '{}'}}
  - {{name: right, node: rx, interface: '{}'}}
runs:
  - name: flows
    streams:
      flows:
        - name: forward
          tx: left
          rx: right
          size: 128
          rate: 1kpps
          metrics: {{enable: true}}
          packet:
            - ethernet: {{src: 02:00:00:00:00:01, dst: 02:00:00:00:00:02}}
            - ipv4: {{src: 198.18.0.1, dst: 198.18.0.2}}
            - udp: {{}}
duration: {seconds}s
{more}",
            self.lab.a.port(),
            self.lab.b.port()
        );
        let path = self.scratch.file("test.yaml");
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(wirestorm());
        command.args(arguments).env("XDG_STATE_HOME", self.scratch.file("state"));
        command.env_remove("WIRESTORM_RUNS");
        command
    }

    /// Watches arrivals for a time; returns when the last frame arrived, from now on.
    fn last_frame(&self, time: Duration) -> Duration {
        let arrived = || self.lab.b.counters().unwrap().rx_packets;
        let (began, mut frames, mut last) = (Instant::now(), arrived(), Duration::ZERO);
        while began.elapsed() < time {
            std::thread::sleep(Duration::from_millis(5));
            let now = arrived();
            if now != frames {
                (frames, last) = (now, began.elapsed());
            }
        }
        last
    }

    fn wait_for_frames(&self, count: u64) {
        let began = Instant::now();
        while self.lab.b.counters().unwrap().rx_packets < count {
            assert!(began.elapsed() < Duration::from_secs(60), "no {count} frames arrived");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Lease of the agents: sending ends within this time.
const LEASE: Duration = Duration::from_secs(2);

/// The nodes with an agent each, on a server.
struct Cluster {
    nodes: TwoNodes,
    server: NatsServer,
    credentials: PathBuf,
    agents: Vec<Running>,
}

impl Cluster {
    /// Starts the server and both agents; `None` if there is no server.
    fn start(of_receiver: &[&str]) -> Option<Self> {
        Self::start_at(IpAddr::V4(Ipv4Addr::LOCALHOST), None, of_receiver)
    }

    /// Starts the server at an address, in a network namespace.
    fn start_at(address: IpAddr, namespace: Option<&str>, of_receiver: &[&str]) -> Option<Self> {
        let mut cluster = Self::without_agents(address, namespace)?;
        cluster.start_agent("tx", &[]);
        cluster.start_agent("rx", of_receiver);
        Some(cluster)
    }

    /// Starts the server alone, at an address in a network namespace.
    fn without_agents(address: IpAddr, namespace: Option<&str>) -> Option<Self> {
        let program = require_nats_server()?;
        let nodes = TwoNodes::new();
        let directory = nodes.scratch.file("cluster");
        let listen = SocketAddr::new(address, free_port().unwrap());
        let (dir, at) = (directory.display().to_string(), listen.to_string());
        let init = ["cluster", "init", "--listen", &at, "--agents", "tx,rx", "--dir", &dir];
        let outcome = run_command(&mut nodes.command(&init));
        assert!(outcome.status.success(), "{outcome}");
        let config = directory.join("nats-server.conf");
        let server = NatsServer::with_config(&program, &config, listen, namespace).unwrap();
        let credentials = directory.join("credentials");
        Some(Self { nodes, server, credentials, agents: Vec::new() })
    }

    fn agent_command(&self, name: &str, more: &[&str]) -> Command {
        let runs = self.nodes.scratch.file(&format!("runs-{name}")).display().to_string();
        let arguments = ["agent", "--reflector", "127.0.0.1:0", "--runs-dir", &runs];
        let mut command = self.nodes.command(&arguments);
        command.args(more).arg("--bus-credentials");
        command.arg(self.credentials.join(format!("{name}.json")));
        command
    }

    fn start_agent(&mut self, name: &str, more: &[&str]) {
        let agent = start_command(&mut self.agent_command(name, more));
        agent.wait_for_message("waits for orders");
        self.agents.push(agent);
    }

    fn test(&self, test: &str, more: &[&str]) -> Running {
        let mut command = self.nodes.command(&["test", test, "--json", "-", "--lease"]);
        command.arg(format!("{}s", LEASE.as_secs())).args(more).arg("--bus-credentials");
        command.arg(self.credentials.join("director.json"));
        start_command(&mut command)
    }

    /// Runs a short test to its end, once the leases of an earlier one have expired.
    fn assert_works(&self) {
        let test = self.nodes.test(1, "");
        let deadline = Instant::now() + Duration::from_secs(40);
        loop {
            let outcome = self.test(&test, &[]).wait();
            outcome.assert_no_panic();
            if outcome.status.success() {
                return assert_complete(&outcome, 1_000);
            }
            assert!(Instant::now() < deadline, "{outcome}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

const FLOW: &str = "/iterations/0/runs/0/result/flows/0";

fn assert_complete(outcome: &Outcome, packets: u64) {
    assert_eq!(outcome.number(&format!("{FLOW}/packets")), packets, "{outcome}");
    assert_eq!(outcome.number(&format!("{FLOW}/lost")), 0, "{outcome}");
    let delays = outcome.number(&format!("{FLOW}/measured/0/one_way/delay/count"));
    assert_eq!(delays, packets, "{outcome}");
}

/// Checks that the median delay is as far from the true one as its interval allows.
#[track_caller]
fn assert_true(outcome: &Outcome) {
    let error = one_way(outcome, "delay/p50_ns") - one_way(outcome, "truth/p50_ns");
    // Delays are counted in buckets, which are 1/64 of the value wide.
    let most = one_way(outcome, "half_width_ns") + one_way(outcome, "truth/p50_ns") / 32.0;
    assert!(error.abs() <= most, "{error}\n{outcome}");
    assert!((0.0..20e6).contains(&one_way(outcome, "truth/p50_ns")), "{outcome}");
}

/// Returns a value of the one-way delay of the flow, in ns.
fn one_way(outcome: &Outcome, value: &str) -> f64 {
    outcome.decimal(&format!("{FLOW}/measured/0/one_way/{value}"))
}

/// Returns the values of a time series of the flow, without intervals that have none.
fn over_time(outcome: &Outcome, values: &str) -> Vec<f64> {
    let pointer = format!("{FLOW}/measured/0/series/{values}");
    let values = outcome.result().pointer(&pointer).and_then(serde_json::Value::as_array);
    values.into_iter().flatten().filter_map(serde_json::Value::as_f64).collect()
}

#[test]
fn nodes_on_one_machine_need_no_bus() {
    if !can_run(&[]) {
        return;
    }
    let nodes = TwoNodes::new();
    let test = nodes.test(1, "iterations: 2");
    let outcome = run_command(&mut nodes.command(&["test", &test, "--json", "-"])).expect(0);
    outcome.assert_valid("test");
    assert_complete(&outcome, 1_000);
    assert_eq!(outcome.text(&format!("{FLOW}/measured/0/one_way/assumption")), "one clock");
    assert!((0.0..20e6).contains(&one_way(&outcome, "delay/p50_ns")), "{outcome}");
    let delays = over_time(&outcome, "delay_min_ns");
    assert!(!delays.is_empty() && delays.iter().all(|it| (0.0..1e9).contains(it)), "{outcome}");
    assert_eq!(outcome.number("/iterations/1/runs/0/result/flows/0/packets"), 1_000, "{outcome}");
    assert!(outcome.decimal("/iterations/0/start_skew_ns") < 20e6, "{outcome}");
}

#[test]
fn limits_of_a_test_decide_its_exit_status() {
    if !can_run(&[]) {
        return;
    }
    let nodes = TwoNodes::new();
    let run = |limits: &str| {
        let test = nodes.test(1, &format!("drain: 100ms\nfail_if: [{limits}]"));
        run_command(&mut nodes.command(&["test", &test, "--json", "-"]))
    };
    let outcome = run("loss>0%, 'max_delay[forward]>10s'").expect(0);
    assert_eq!(outcome.text("/iterations/0/limits/1/limit"), "max_delay[forward]>10s");
    assert_eq!(outcome.number("/iterations/0/limits/1/figures"), 1, "{outcome}");
    let outcome = run("rate<2kpps").expect(3);
    outcome.assert_valid("test");
    assert!(outcome.messages.contains("fail_if rate<2kpps: "), "{outcome}");
    assert_complete(&outcome, 1_000);
    run("'loss[nobody]>0%'").expect_error(1, &["no figure of the test belongs"]);
    run("'loss>1'").expect_error(2, &["fail_if[0]: ", "expected a unit"]);
}
