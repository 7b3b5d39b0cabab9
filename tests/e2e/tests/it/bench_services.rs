//! `wirestorm bench y1564` and `bench ndr` through a Linux bridge that polices.

use std::process::Command;

use serde_json::Value;
use wirestorm_e2e::{Outcome, can_run, run_command, wirestorm};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{Lab, LabOptions, RouterLab};

/// A bridge that forwards a number of frames per second.
struct PolicingBridge {
    lab: RouterLab,
    scratch: Scratch,
}

impl PolicingBridge {
    /// `burst` is in frames: a sender that pauses for longer than the burst lasts loses frames.
    fn new(frames_per_second: u64, burst: u64) -> Self {
        let lab = RouterLab::with(&LabOptions::default()).unwrap();
        let bridge = Self { lab, scratch: Scratch::new().unwrap() };
        let device = bridge.lab.router_a.namespace();
        let master = |end: &str| format!("link set {end} master br0");
        let quiet = "stp_state 0 forward_delay 0 mcast_snooping 0";
        device
            .ip(&[
                &format!("link add br0 type bridge {quiet}"),
                &master(bridge.lab.router_a.interface()),
                &master(bridge.lab.router_b.interface()),
                "link set br0 up",
            ])
            .unwrap();
        bridge.nft("add table bridge policer");
        bridge.nft("add chain bridge policer rules { type filter hook forward priority 0; }");
        bridge.nft(&format!(
            "add rule bridge policer rules limit rate over {frames_per_second}/second burst \
             {burst} packets drop"
        ));
        bridge
    }

    fn nft(&self, line: &str) {
        let output = self.lab.router_a.command("nft").arg(line).output().unwrap();
        assert!(output.status.success(), "nft {line}: {output:?}");
    }

    fn bench(&self, method: &str, flags: &[&str]) -> Outcome {
        let ports = [self.lab.a.port(), self.lab.b.port()];
        bench(&self.scratch, method, &ports, flags)
    }
}

fn bench(scratch: &Scratch, method: &str, ports: &[String; 2], flags: &[&str]) -> Outcome {
    let mut command = Command::new(wirestorm());
    command.args(["bench", method, "--tx", &ports[0], "--rx", &ports[1], "--link-speed", "1G"]);
    command.args(["--settle", "0", "--learning-wait", "100ms", "--json", "-"]).args(flags);
    // The default route of `a` leads to the device.
    command.arg("--force-interface").env("WIRESTORM_RUNS", scratch.file("runs"));
    let outcome = run_command(&mut command);
    outcome.assert_no_panic();
    outcome
}

const SERVICES: &str = "
services:
  - {name: voice, cir: 2M, frame_size: 256, vlan: 100, pcp: 5, dscp: 46, flr: 1%, ftd: 1s}
  - {name: data, cir: 4096k, eir: 4096k, frame_size: 512, vlan: 200, flr: 1%, availability: 50%}
";

#[test]
fn services_meet_their_profiles_behind_a_policer() {
    if !can_run(&["nft", "clang"]) {
        return;
    }
    // CIR and EIR of `data` are 2,000 frames of 512 bytes per second; the burst lasts 125 ms.
    let bridge = PolicingBridge::new(2_000, 250);
    let file = bridge.scratch.file("services.yaml");
    std::fs::write(&file, SERVICES).unwrap();
    let flags = ["--cir-steps", "50,100", "--step", "3s", "--performance", "3s"];
    let tolerance = ["--rate-tolerance", "10", "--services", file.to_str().unwrap()];
    let outcome = bridge.bench("y1564", &[&flags[..], &tolerance].concat());
    let rows = outcome.result().pointer("/findings/rows").and_then(Value::as_array).unwrap();
    let row = |service: &str, test: &str| {
        let is_it = |row: &&Value| row["service"] == service && row["test"] == test;
        rows.iter().rfind(is_it).unwrap_or_else(|| panic!("{outcome}"))
    };
    assert_eq!(rows.len(), 3 + 4 + 2, "{outcome}");
    // CIR + 1.25 EIR is a load of 9.2 Mbit/s, of which the policer passes at most 8.192 and its
    // burst. It passes less if the sender pauses for longer than the burst lasts.
    let policed = &row("data", "policing")["total"];
    assert_eq!(policed["failures"], Value::Array(Vec::new()), "{outcome}");
    let (offered, received) = (policed["offered"].as_u64(), policed["received"].as_u64().unwrap());
    assert_eq!(offered, Some(6_750), "{outcome}");
    let passed = 3 * 2_000 + 250;
    assert!((passed * 4 / 5..passed + passed / 100).contains(&received), "{outcome}");
    // The device does not police `voice`, whose 1.25 CIR are 1,220 frames per second.
    let failure = row("voice", "policing")["total"]["failures"][0].as_str().unwrap();
    assert!(failure.contains("is above CIR + EIR"), "{outcome}");
    assert_eq!(row("data", "performance")["total"]["availability"], 1.0, "{outcome}");
    assert!(
        row("voice", "performance")["total"]["ftd_mean_ns"].as_f64().unwrap() > 0.0,
        "{outcome}"
    );
    assert_eq!(outcome.text("/verdict/outcome"), "fell_short", "{outcome}");
    let [reason] = &**outcome.result()["verdict"]["reasons"].as_array().unwrap() else {
        panic!("{outcome}")
    };
    assert!(reason.as_str().unwrap().starts_with("voice, policing"), "{outcome}");
}

#[test]
fn direction_with_a_policer_fails_alone() {
    if !can_run(&["nft", "clang"]) {
        return;
    }
    let bridge = PolicingBridge::new(1_000_000, 50);
    bridge.nft("flush chain bridge policer rules");
    let from_b = bridge.lab.router_b.interface();
    bridge.nft(&format!(
        "add rule bridge policer rules iifname {from_b} numgen inc mod 10 == 0 drop"
    ));
    let flags = ["--bidirectional", "--cir", "4096k", "--cir-steps", "100", "--step", "2s"];
    let tests = ["--flr", "6%", "--tests", "cir,performance", "--performance", "2s"];
    let outcome = bridge.bench("y1564", &[&flags[..], &tests].concat());
    assert_eq!(outcome.text("/verdict/outcome"), "fell_short", "{outcome}");
    for row in 0..2 {
        let direction = |place| format!("/findings/rows/{row}/directions/{place}");
        // 5 % of all frames are lost, but 10 % of one direction.
        assert!((outcome.decimal(&format!("/findings/rows/{row}/total/flr")) - 0.05).abs() < 0.002);
        assert_eq!(outcome.decimal(&format!("{}/flr", direction(0))), 0.0, "{outcome}");
        assert!((outcome.decimal(&format!("{}/flr", direction(1))) - 0.1).abs() < 0.002);
        let [a, b] = [bridge.lab.a.port(), bridge.lab.b.port()];
        assert_eq!(outcome.text(&format!("{}/direction", direction(1))), format!("{b} > {a}"));
        let failures = outcome.lines(&format!("/findings/rows/{row}/total/failures"));
        assert!(failures.starts_with(&format!("{b} > {a}: FLR")), "{failures}");
        assert_eq!(failures.lines().count(), 1, "{failures}");
    }
}

const PLAN: &str = "
ports: [{name: left}, {name: right}]
flows:
  - name: small
    tx: left
    packet:
      - ethernet: {src: 02:00:00:00:00:01, dst: 02:00:00:00:00:02}
      - ipv4: {src: 198.18.0.1, dst: 198.18.0.2}
      - udp: {}
    size: 128
    rate: 3kpps
  - name: large
    tx: left
    packet:
      - ethernet: {src: 02:00:00:00:00:01, dst: 02:00:00:00:00:02}
      - ipv4: {src: 198.18.0.1, dst: 198.18.0.2}
      - udp: {}
    size: 1400
    rate: 1kpps
";

#[test]
fn rate_of_the_policer_is_found_with_a_plan() {
    if !can_run(&["nft", "clang"]) {
        return;
    }
    let bridge = PolicingBridge::new(3_000, 200);
    let file = bridge.scratch.file("plan.yaml");
    std::fs::write(&file, PLAN).unwrap();
    let flags = ["--max-load", "8kpps", "--first-run", "2s", "--iteration", "2s", "--pdr", "3"];
    let outcome = bridge.bench("ndr", &[&flags[..], &["--plan", file.to_str().unwrap()]].concat());
    let load = outcome.number("/findings/rows/0/best/load");
    // 3 % of drops are allowed, and the burst of the policer is 200 frames, so that a sender which a
    // busy machine holds up for 50 ms loses none below the limit.
    assert!((2_900..=3_200).contains(&load), "{outcome}");
    assert_eq!(outcome.text("/findings/rows/0/limit"), "drops", "{outcome}");
    assert!(outcome.decimal("/findings/rows/0/best/latency_mean_ns") > 0.0, "{outcome}");
}

#[test]
fn capture_is_offered_at_a_packet_rate() {
    if !can_run(&["clang"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/web-and-mail.pcap");
    let flags = ["--max-load", "2kpps", "--first-run", "1s", "--capture", capture];
    let outcome = bench(&scratch, "ndr", &[lab.a.port(), lab.b.port()], &flags);
    assert_eq!(outcome.number("/findings/rows/0/best/load"), 2_000, "{outcome}");
    assert!(outcome.result().pointer("/findings/rows/0/frame_size").unwrap().is_null());
    assert_eq!(outcome.text("/verdict/outcome"), "met", "{outcome}");
}
