//! Measured flows through Linux network devices: the results match the counters of the device.

use std::process::Command;

use serde_json::Value;
use wirestorm_e2e::{Outcome, can_run, run_command, wirestorm};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{End, LabOptions, RouterLab};

/// Default number of frames of a flow.
const FRAMES: u64 = 2_000;

/// A device between two ends.
struct Device {
    lab: RouterLab,
    scratch: Scratch,
}

impl Device {
    /// A router, or a device that a test configures.
    fn new() -> Self {
        Self::with(&LabOptions::default())
    }

    fn with(options: &LabOptions) -> Self {
        let lab = RouterLab::with(options).unwrap();
        Self { lab, scratch: Scratch::new().unwrap() }
    }

    fn ip(&self, lines: &[&str]) {
        self.lab.router_a.namespace().ip(lines).unwrap();
    }

    /// Joins interfaces of the device with a bridge that sends no frames of its own.
    fn bridge(&self, ports: [&str; 2]) {
        let quiet = "stp_state 0 forward_delay 0 mcast_snooping 0";
        self.ip(&[
            &format!("link add br0 type bridge {quiet}"),
            &format!("link set {} master br0", ports[0]),
            &format!("link set {} master br0", ports[1]),
            "link set br0 up",
        ]);
    }

    fn tool(&self, program: &str, line: &str) -> String {
        let mut command = self.lab.router_a.command(program);
        let output = command.args(line.split(' ')).output().unwrap();
        assert!(output.status.success(), "{program} {line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Creates a table with a chain at a hook. Each rule gets a counter in place of `COUNT`:
    /// `count0`, `count1`, ...
    fn nft(&self, family: &str, hook: &str, rules: &[&str]) {
        let nft = |line: String| self.tool("nft", &line);
        nft(format!("add table {family} witness"));
        nft(format!("add chain {family} witness rules {{ {hook}; }}"));
        for (number, rule) in rules.iter().enumerate() {
            nft(format!("add counter {family} witness count{number}"));
            let rule = rule.replace("COUNT", &format!("counter name count{number}"));
            nft(format!("add rule {family} witness rules {rule}"));
        }
    }

    /// Value of the counter of a rule.
    fn count(&self, family: &str, number: usize) -> u64 {
        let text = self.tool("nft", &format!("-j list counter {family} witness count{number}"));
        let document: Value = serde_json::from_str(&text).unwrap();
        let found = document["nftables"].as_array().unwrap().iter();
        found.filter_map(|it| it["counter"]["packets"].as_u64()).next().unwrap()
    }

    /// A flow to the router's MAC address, for forwarding to `b`.
    fn flow(&self) -> String {
        self.flow_to(&self.lab.router_a)
    }

    /// A flow with this interface's MAC address and the IP address of `b`.
    fn flow_to(&self, next: &End) -> String {
        let (source, next) = (mac(&self.lab.a), mac(next));
        let target = self.lab.b.ipv4();
        format!(
            "
  - name: measured
    tx: a
    rx: b
    packet:
      - ethernet: {{src: {source}, dst: {next}}}
      - ipv4: {{src: {{increment: {{start: 10.77.0.10, count: 200}}}}, dst: {target}}}
      - udp: {{src_port: {{increment: {{start: 20000, count: 1000}}}}, dst_port: {{values: [7000, 7001, 7002, 7003]}}}}
      - payload: {{increment_byte: 0}}
    size: 132
    rate: 5kpps
    duration: {{fixed_packets: {FRAMES}}}
    metrics: {{enable: true}}
"
        )
    }

    /// Sends flows from `a` and measures them at `b`.
    fn run(&self, flows: &str) -> Outcome {
        self.run_with(flows, &[])
    }

    fn run_with(&self, flows: &str, options: &[&str]) -> Outcome {
        let plan = self.scratch.file("plan.yaml");
        std::fs::write(&plan, format!("ports: [{{name: a}}, {{name: b}}]\nflows:{flows}")).unwrap();
        let ports = [format!("a={}", self.lab.a.port()), format!("b={}", self.lab.b.port())];
        let mut command = Command::new(wirestorm());
        // The default route of `a` leads to the device.
        command.arg("run").arg(plan).args(["--json", "-", "--force-interface"]).args(options);
        let outcome = run_command(command.args(["--port", &ports[0], "--port", &ports[1]]));
        outcome.assert_no_panic();
        outcome
    }
}

fn mac(end: &End) -> String {
    let bytes: Vec<_> = end.mac().iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(":")
}

/// A measured value of a flow.
#[track_caller]
fn measured(outcome: &Outcome, flow: usize, what: &str) -> u64 {
    outcome.number(&format!("/flows/{flow}/measured/0/{what}"))
}

/// Checks that all frames of the first flow arrived once, in order and unchanged.
#[track_caller]
fn assert_whole(outcome: &Outcome, frames: u64) {
    assert_eq!(outcome.number("/flows/0/packets"), frames, "{outcome}");
    assert_eq!(outcome.number("/flows/0/lost"), 0, "{outcome}");
    for (what, expected) in
        [("received", frames), ("duplicated", 0), ("reordered", 0), ("corrupt", 0), ("too_late", 0)]
    {
        assert_eq!(measured(outcome, 0, what), expected, "{what}: {outcome}");
    }
    assert_eq!(outcome.number("/ports/1/rx/no_signature"), 0, "{outcome}");
    assert_eq!(outcome.number("/ports/1/rx/wrong_port"), 0, "{outcome}");
}

#[test]
fn router_forwards_as_many_frames_as_it_counts() {
    if !can_run(&["clang"]) {
        return;
    }
    let device = Device::new();
    let outcome = device.run(&device.flow());
    assert_whole(&outcome, FRAMES);
    assert_eq!(device.lab.router_a.counters().unwrap().rx_packets, FRAMES);
    assert_eq!(device.lab.router_b.counters().unwrap().tx_packets, FRAMES);
    assert!(outcome.decimal("/flows/0/measured/0/delay/min_ns") > 0.0, "{outcome}");
    outcome.expect(0);
}

#[test]
fn frames_of_several_workers_through_a_router_are_one_flow() {
    if !can_run(&["clang", "nft"]) {
        return;
    }
    let device = Device::new();
    device.nft("ip", "type filter hook forward priority 0", &["udp dport 7001 COUNT drop"]);
    let outcome = device.run_with(&device.flow(), &["--workers", "2", "--backend", "af_packet"]);
    let dropped = device.count("ip", 0);
    assert_eq!(dropped, FRAMES / 4, "{outcome}");
    assert_eq!(outcome.number("/flows/0/lost"), dropped, "{outcome}");
    assert_eq!(measured(&outcome, 0, "received"), FRAMES - dropped, "{outcome}");
    assert_eq!(measured(&outcome, 0, "duplicated"), 0, "{outcome}");
    assert_eq!(measured(&outcome, 0, "corrupt"), 0, "{outcome}");
}

#[test]
fn router_forwards_ipv6() {
    if !can_run(&["clang", "nft"]) {
        return;
    }
    let device = Device::with(&LabOptions { ipv6: true, ..LabOptions::default() });
    let hook = "type filter hook forward priority 0";
    device.nft("ip6", hook, &["udp dport 7001 COUNT drop", "udp dport 7000-7003 COUNT"]);
    let (from, to) = (device.lab.a.ipv6(), device.lab.b.ipv6());
    let source = "{increment: {start: 10.77.0.10, count: 200}}";
    let flow = device.flow().replace(&device.lab.b.ipv4().to_string(), &format!("\"{to}\""));
    let flow = flow.replace(source, &format!("\"{from}\"")).replace("ipv4", "ipv6");
    let outcome = device.run(&flow);
    let [dropped, forwarded] = [0, 1].map(|rule| device.count("ip6", rule));
    assert_eq!((dropped, forwarded), (FRAMES / 4, FRAMES - FRAMES / 4), "{outcome}");
    assert_eq!(outcome.number("/flows/0/lost"), dropped, "{outcome}");
    assert_eq!(measured(&outcome, 0, "received"), forwarded, "{outcome}");
    assert_eq!(measured(&outcome, 0, "corrupt"), 0, "{outcome}");
}

#[test]
fn only_frames_dropped_by_the_router_are_lost() {
    if !can_run(&["clang", "nft"]) {
        return;
    }
    let device = Device::new();
    let rules = ["udp dport 7001 COUNT drop", "numgen random mod 10 < 1 COUNT drop"];
    device.nft("ip", "type filter hook forward priority 0", &rules);
    // A second flow without rules has its own name, port and loss.
    let flow = device.flow();
    let other = flow.replace("measured", "other").replace("[7000, 7001, 7002, 7003]", "[9000]");
    let outcome = device.run(&format!("{}{other}", flow.replace("5kpps", "4kpps")));
    let (by_port, at_random) = (device.count("ip", 0), device.count("ip", 1));
    assert_eq!(by_port, FRAMES / 4, "{outcome}");
    let lost = [0, 1].map(|flow| outcome.number(&format!("/flows/{flow}/lost")));
    assert!(at_random > 0 && lost[0] > by_port && lost[1] > 0, "{at_random}: {outcome}");
    assert_eq!(lost[0] + lost[1], by_port + at_random, "{outcome}");
    assert_eq!(outcome.number("/ports/1/rx/lost"), by_port + at_random, "{outcome}");
    let forwarded = device.lab.router_b.counters().unwrap().tx_packets;
    assert_eq!(measured(&outcome, 0, "received") + measured(&outcome, 1, "received"), forwarded);
    for flow in [0, 1] {
        assert_eq!(measured(&outcome, flow, "received"), FRAMES - lost[flow], "{outcome}");
        assert_eq!(measured(&outcome, flow, "reordered"), 0, "{outcome}");
        assert_eq!(measured(&outcome, flow, "duplicated"), 0, "{outcome}");
    }
    outcome.expect(3);
}

#[test]
fn duplicated_and_damaged_frames_are_counted_exactly() {
    if !can_run(&["clang", "nft"]) {
        return;
    }
    let device = Device::new();
    let (from, to) = (device.lab.router_a.interface(), device.lab.router_b.interface());
    let dup = format!("udp dport 7002 COUNT dup to {to}");
    let hook = format!("type filter hook ingress device {from} priority 0");
    device.nft("netdev", &hook, &[&dup]);
    // Change bytes 9 and 10 of the payload, which are 8 and 9.
    let damage = ["udp dport 7003 @th,128,16 set 0xdead COUNT"];
    device.nft("ip", "type filter hook forward priority 0", &damage);
    let outcome = device.run(&device.flow());
    let (repeated, damaged) = (device.count("netdev", 0), device.count("ip", 0));
    assert_eq!((repeated, damaged), (FRAMES / 4, FRAMES / 4));
    assert_eq!(measured(&outcome, 0, "received"), FRAMES, "{outcome}");
    assert_eq!(measured(&outcome, 0, "duplicated"), repeated, "{outcome}");
    assert_eq!(measured(&outcome, 0, "corrupt"), damaged, "{outcome}");
    assert_eq!(outcome.number("/flows/0/lost"), 0, "{outcome}");
}

#[test]
fn flows_are_measured_through_nat() {
    if !can_run(&["clang", "nft"]) {
        return;
    }
    let device = Device::new();
    let (to, address) = (device.lab.router_b.interface(), device.lab.router_b.ipv4());
    device.nft("ip", "type nat hook postrouting priority 100", &["COUNT masquerade"]);
    let hook = format!("type filter hook egress device {to} priority 0");
    let translated = format!("ip saddr {address} COUNT");
    device.nft("netdev", &hook, &[&translated, "COUNT"]);
    let outcome = device.run(&device.flow());
    assert_whole(&outcome, FRAMES);
    // The first counter counts connections, the second one packets.
    assert_eq!(device.count("ip", 0), 1_000);
    assert_eq!([0, 1].map(|rule| device.count("netdev", rule)), [FRAMES; 2]);
}

#[test]
fn loss_matches_the_drop_counter_of_a_bridge() {
    if !can_run(&["clang", "nft"]) {
        return;
    }
    let device = Device::new();
    device.bridge(["veth1", "veth2"]);
    let flow = device.flow_to(&device.lab.b);
    assert_whole(&device.run(&flow), FRAMES);
    let rules = ["numgen random mod 10 < 1 COUNT drop"];
    device.nft("bridge", "type filter hook forward priority 0", &rules);
    let before = device.lab.router_b.counters().unwrap().tx_packets;
    let outcome = device.run(&flow);
    let dropped = device.count("bridge", 0);
    assert!(dropped > 0);
    assert_eq!(outcome.number("/flows/0/lost"), dropped, "{outcome}");
    let forwarded = device.lab.router_b.counters().unwrap().tx_packets - before;
    assert_eq!(measured(&outcome, 0, "received"), forwarded, "{outcome}");
}

#[test]
fn measured_frames_may_arrive_in_a_tunnel() {
    if !can_run(&["clang"]) {
        return;
    }
    let device = Device::new();
    let (near, far) = (device.lab.router_b.ipv4(), device.lab.b.ipv4());
    device.ip(&[
        &format!("link add vx0 type vxlan id 42 local {near} remote {far} dev veth2 dstport 4789"),
        "link set vx0 up",
    ]);
    device.bridge(["veth1", "vx0"]);
    let outcome = device.run(&device.flow_to(&device.lab.b));
    assert_whole(&outcome, FRAMES);
    // Ethernet, IPv4, UDP and VXLAN headers around 128 bytes.
    assert_eq!(measured(&outcome, 0, "received_bytes"), FRAMES * (128 + 50), "{outcome}");
    let tunnel = device.lab.router_a.namespace().counters("vx0").unwrap();
    assert_eq!((tunnel.tx_packets, tunnel.tx_errors), (FRAMES, 0));
}

#[test]
fn measured_frames_may_be_sent_in_a_tunnel() {
    if !can_run(&["clang"]) {
        return;
    }
    let device = Device::new();
    let (near, far) = (device.lab.router_a.ipv4(), device.lab.a.ipv4());
    device.ip(&[
        &format!("link add vx0 type vxlan id 42 local {near} remote {far} dev veth1 dstport 4789"),
        "link set vx0 up",
    ]);
    device.bridge(["veth2", "vx0"]);
    let inner = device.flow_to(&device.lab.b);
    let outer = format!(
        "packet:
      - ethernet: {{src: {}, dst: {}}}
      - ipv4: {{src: {far}, dst: {near}}}
      - udp: {{src_port: {{random: {{min: 49152}}}}}}
      - vxlan: {{vni: 42}}",
        mac(&device.lab.a),
        mac(&device.lab.router_a)
    );
    let outcome = device.run(&inner.replace("packet:", &outer).replace("132", "182"));
    assert_whole(&outcome, FRAMES);
    assert_eq!(measured(&outcome, 0, "received_bytes"), FRAMES * 128, "{outcome}");
    let tunnel = device.lab.router_a.namespace().counters("vx0").unwrap();
    assert_eq!((tunnel.rx_packets, tunnel.rx_errors), (FRAMES, 0));
}

#[test]
fn two_flows_share_the_rate_of_a_shaper() {
    if !can_run(&["clang", "tc"]) {
        return;
    }
    const RATE: f64 = 10e6;
    // A burst bridges times when the machine does not run the shaper.
    const BURST: f64 = 64e3;
    let device = Device::new();
    let to = device.lab.router_b.interface();
    device.tool("tc", &format!("qdisc add dev {to} root tbf rate 10mbit burst 64kb limit 32kb"));
    let flow = device.flow();
    let small = flow.replace("5kpps", "2kpps").replace("packets: 2000", "packets: 4000");
    let large = flow.replace("measured", "large").replace("132", "1004");
    let large = large.replace("5kpps", "4kpps").replace("packets: 2000", "packets: 8000");
    let outcome = device.run(&format!("{small}{large}"));

    let text = device.tool("tc", &format!("-s -j qdisc show dev {to}"));
    let shaper: Value = serde_json::from_str(&text).unwrap();
    let counted = |what: &str| shaper[0][what].as_u64().unwrap();
    let sum = |what: &str| measured(&outcome, 0, what) + measured(&outcome, 1, what);
    assert_eq!(sum("received"), counted("packets"), "{outcome}");
    assert_eq!(sum("received_bytes"), counted("bytes"), "{outcome}");
    let lost = outcome.number("/flows/0/lost") + outcome.number("/flows/1/lost");
    assert_eq!(lost, counted("drops"), "{outcome}");
    assert_eq!(sum("received") + lost, 12_000, "{outcome}");

    let span = |flow: usize| {
        let arrivals = measured(&outcome, flow, "received") - 1;
        arrivals as f64 / outcome.decimal(&format!("/flows/{flow}/measured/0/pps"))
    };
    let seconds = span(0).max(span(1));
    let bits = sum("received_bytes") as f64 * 8.0;
    assert!(bits <= RATE * seconds + 8.0 * BURST * 1.1, "{bits} bits in {seconds} s\n{outcome}");
    assert!(bits >= 0.8 * RATE * seconds, "{bits} bits in {seconds} s\n{outcome}");
    // Frames wait in the queue: the delay is at most that of 32 kB, and far above that of a veth.
    let median = outcome.number("/flows/1/measured/0/delay/p50_ns") as f64 / 1e9;
    assert!((0.01..0.2).contains(&median), "{median} s\n{outcome}");
}
