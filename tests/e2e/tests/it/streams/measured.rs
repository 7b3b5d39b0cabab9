//! Flows with signatures: their results, and compatibility with other receivers.

use std::path::Path;
use std::process::Command;

use wirestorm_e2e::{Receiver, can_run, run_command, wirestorm};
use wirestorm_testkit::net::{Captured, Lab};
use wirestorm_testkit::{Scratch, tshark};

use super::{plan, run_on};

/// One flow with varying ports and payload, one with IMIX sizes, and one that is not measured.
const FLOWS: &str = "
  - name: voice
    tx: a
    rx: b
    packet:
      - ethernet: {src: 02:00:00:00:00:01, dst: 02:00:00:00:00:02}
      - ipv4: {src: {increment: {start: 10.0.0.1, count: 200}}, dst: 192.0.2.1}
      - udp: {dst_port: {increment: {start: 1000, count: 7}}}
      - payload: {increment_byte: 0}
    size: 200
    rate: 2kpps
    duration: {fixed_packets: 600}
    metrics: {enable: true}
  - name: mixed
    tx: a
    rx: b
    packet: [{ethernet: {}}, {ipv6: {src: 2001:db8::1, dst: 2001:db8::2}}, {udp: {}}]
    size: {random: {min: 102, max: 1400, seed: 3}}
    rate: 1kpps
    duration: {fixed_packets: 300}
    metrics: {enable: true}
  - name: plain
    tx: a
    rx: b
    packet: [{ethernet: {}}, {ipv4: {src: 10.1.0.1, dst: 10.1.0.2}}, {udp: {}}]
    rate: 1kpps
    duration: {fixed_packets: 200}
";

#[test]
fn each_flow_is_measured_separately() {
    if !can_run(&["clang"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let plan = plan(&scratch, FLOWS);
    for backend in ["af_packet", "af_xdp", "xdp"] {
        let lab = Lab::new().unwrap();
        let outcome = run_on(&lab, &plan, &["--backend", backend]);
        assert_eq!(outcome.text("/ports/0/backend"), backend, "{outcome}");
        for (flow, packets) in [600, 300].into_iter().enumerate() {
            let number = |field: &str| outcome.number(&format!("/flows/{flow}/{field}"));
            assert_eq!(number("lost"), 0, "{outcome}");
            assert_eq!(number("measured/0/received"), packets, "{outcome}");
            assert_eq!(number("measured/0/duplicated"), 0);
            assert_eq!(number("measured/0/reordered"), 0);
            assert_eq!(number("measured/0/stale"), 0);
            assert_eq!(number("measured/0/delay/count"), packets);
            assert_eq!(number("measured/0/ipdv/count"), packets - 1);
            // Both ends have one clock, and a frame cannot arrive before it leaves.
            assert!(outcome.decimal(&format!("/flows/{flow}/measured/0/delay/min_ns")) > 0.0);
            let least = outcome.decimal(&format!("/flows/{flow}/measured/0/delay/min_ns"));
            let greatest = outcome.decimal(&format!("/flows/{flow}/measured/0/delay/max_ns"));
            let mean = outcome.decimal(&format!("/flows/{flow}/measured/0/delay/mean_ns"));
            assert!(least <= mean && mean <= greatest, "{outcome}");
            let series = outcome.result().pointer(&format!("/flows/{flow}/measured/0/series"));
            let arrived = series.and_then(|series| series["packets"].as_array()).unwrap();
            let sum: u64 = arrived.iter().filter_map(serde_json::Value::as_u64).sum();
            assert_eq!(sum, packets, "{series:?}");
        }
        assert_eq!(outcome.number("/flows/0/measured/0/corrupt"), 0, "{outcome}");
        let mixed = outcome.result().pointer("/flows/1/measured/0/corrupt").unwrap();
        assert!(mixed.is_null(), "frames of several lengths are not compared");
        assert!(outcome.result().pointer("/flows/2/lost").unwrap().is_null());
        // Other frames come from the kernel: neighbour discovery, multicast reports.
        assert!(outcome.number("/ports/1/rx/no_signature") >= 200, "{outcome}");
        assert_eq!(outcome.number("/ports/1/rx/wrong_port"), 0);
        let stamped = if backend == "xdp" { "xdp" } else { "process" };
        assert_eq!(outcome.text("/ports/0/tx/timestamp_point"), stamped);
        assert_eq!(outcome.text("/ports/1/rx/timestamp_point"), "xdp");
    }
}

#[test]
fn workers_share_a_measured_flow() {
    if !can_run(&["clang"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let plan = plan(&scratch, FLOWS);
    let lab = Lab::new().unwrap();
    let outcome = run_on(&lab, &plan, &["--backend", "af_packet", "--workers", "2"]);
    for (flow, packets) in [600, 300].into_iter().enumerate() {
        let number = |field: &str| outcome.number(&format!("/flows/{flow}/{field}"));
        assert_eq!((number("lost"), number("measured/0/received")), (0, packets), "{outcome}");
        assert_eq!(number("measured/0/delay/count"), packets);
        // Each worker's frames have their own order.
        assert_eq!(number("measured/0/reordered"), 0, "{outcome}");
        assert_eq!(number("measured/0/ipdv/count"), packets - 2);
    }
}

/// Frames in two VLANs round robin, and one in another VLAN inside a third.
const TAGGED: &str = "
  - name: turns
    tx: a
    rx: b
    packet:
      - ethernet: {src: 02:00:00:00:00:01, dst: 02:00:00:00:00:02}
      - vlan: {id: {values: [7, 8]}}
      - ipv4: {src: 10.0.0.1, dst: 192.0.2.1}
      - udp: {}
    size: 200
    rate: 2kpps
    duration: {fixed_packets: 600}
    metrics: {enable: true}
  - name: within
    tx: a
    rx: b
    packet: [{ethernet: {}}, {vlan: {id: 3}}, {vlan: {id: 5}}, {ipv4: {}}, {udp: {}}]
    size: 200
    rate: 1kpps
    duration: {fixed_packets: 300}
    metrics: {enable: true}
";

#[test]
fn frames_are_counted_by_vlan_tags_on_request() {
    if !can_run(&["clang"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let plan = plan(&scratch, TAGGED);
    let lab = Lab::new().unwrap();
    for workers in ["1", "2"] {
        let outcome = run_on(&lab, &plan, &["--per-vlan", "--workers", workers]);
        let number = |field: &str| outcome.number(&format!("/flows/{field}"));
        for (place, vlan) in [(0, 7), (1, 8)] {
            let tag = |field: &str| number(&format!("0/measured/0/tags/{place}/{field}"));
            let found = (tag("vlans/0"), tag("packets"), tag("bytes"), tag("duplicated"));
            assert_eq!(found, (vlan, 300, 300 * 196, 0), "{outcome}");
        }
        let within = |field: &str| number(&format!("1/measured/0/tags/0/{field}"));
        assert_eq!((within("vlans/0"), within("vlans/1"), within("packets")), (3, 5, 300));
        assert_eq!((within("missing"), within("gaps"), number("1/lost")), (0, 0, 0), "{outcome}");
    }
    let outcome = run_on(&lab, &plan, &[]);
    let tags = outcome.result().pointer("/flows/0/measured/0/tags").unwrap();
    assert!(tags.as_array().is_some_and(Vec::is_empty), "{tags}");
}

/// Runs a plan without a receiving port; returns a capture of its frames.
fn captured(lab: &Lab, plan: &Path, backend: &str, packets: u64) -> Captured {
    let receiver = Receiver::start(&lab.b).unwrap();
    let text = std::fs::read_to_string(plan).unwrap().replace("    rx: b\n", "");
    std::fs::write(plan, text).unwrap();
    let port = format!("a={}", lab.a.port());
    let mut command = Command::new(wirestorm());
    command.arg("run").arg(plan).args(["--json", "-", "--backend", backend, "--port", &port]);
    let outcome = run_command(&mut command);
    assert_eq!(outcome.number("/ports/0/tx/packets"), packets, "{outcome}");
    receiver.finish(packets).unwrap()
}

#[test]
fn checksums_stay_valid_with_departure_times() {
    if !can_run(&["clang", "tshark"]) {
        return;
    }
    let flows = "
  - name: udp
    tx: a
    packet: [{ethernet: {}}, {ipv4: {dst: 192.0.2.1}}, {udp: {src_port: {increment: {start: 1, count: 50}}}}]
    size: 101
    rate: 1kpps
    duration: {fixed_packets: 150}
    metrics: {enable: true}
  - name: sctp
    tx: a
    packet: [{ethernet: {}}, {ipv4: {dst: 192.0.2.1}}, {sctp: {}}]
    size: 150
    rate: 1kpps
    duration: {fixed_packets: 150}
    metrics: {enable: true}
";
    for backend in ["xdp", "af_packet"] {
        let scratch = Scratch::new().unwrap();
        let plan = plan(&scratch, flows);
        let lab = Lab::new().unwrap();
        let captured = captured(&lab, &plan, backend, 300);
        let count = |filter: &str| tshark::count(&captured.path(), filter).unwrap();
        assert_eq!(count("udp.checksum.status == 1"), 150, "{backend}");
        assert_eq!(count("sctp.checksum.status == 1"), 150, "{backend}");
    }
}

#[test]
fn control_commands_take_effect_during_a_run() {
    if !can_run(&["clang"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let flows = "
  - {name: held, tx: a, rx: b, packet: [{ethernet: {}}], rate: 1kpps, duration: {fixed_packets: 100000}}
  - {name: ended, tx: a, rx: b, packet: [{ethernet: {}}], rate: 1kpps}
  - {name: begun, tx: a, rx: b, packet: [{ethernet: {}}], rate: 1kpps, start: paused}
  - {name: slower, tx: a, rx: b, packet: [{ethernet: {}}], rate: 1kpps}
";
    let plan = plan(&scratch, flows);
    let orders = scratch.file("orders");
    let text = "pause held\nstop ended\nresume begun  # it was held from the start\n\
                scale slower 1%\nfaster slower\n";
    std::fs::write(&orders, text).unwrap();
    let lab = Lab::new().unwrap();
    let orders = orders.display().to_string();
    let arguments = ["--control", &orders, "--duration", "1s", "--backend", "af_packet"];
    let outcome = run_on(&lab, &plan, &arguments);
    let packets = |flow: usize| outcome.number(&format!("/flows/{flow}/packets"));
    // Commands take effect after 25 ms.
    assert!(packets(0) < 500 && packets(1) < 500, "{outcome}");
    assert!(packets(2) > 500, "{outcome}");
    assert!(packets(3) < 500 && packets(3) > 5, "{outcome}");
    // Flows with changed rates report no rate error.
    let errors = (1..4).map(|flow| &outcome.result()["flows"][flow]["rate_error_ppm"]);
    assert!(errors.into_iter().all(serde_json::Value::is_null), "{outcome}");
    assert!(outcome.messages.contains("line 5: found \"faster slower\", expected"), "{outcome}");
}

#[test]
fn multiplier_scales_the_total_rate_of_all_flows() {
    if !can_run(&["clang"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let flows = "
  - {name: one, tx: a, packet: [{ethernet: {}}], rate: 3kpps}
  - {name: three, tx: a, packet: [{ethernet: {}}], rate: 9kpps}
";
    let plan = plan(&scratch, flows);
    let lab = Lab::new().unwrap();
    let port = format!("a={}", lab.a.port());
    for (multiplier, targets) in [("0.5", [1500.0, 4500.0]), ("2kpps", [500.0, 1500.0])] {
        let mut command = Command::new(wirestorm());
        command.arg("run").arg(&plan).args(["--json", "-", "--port", &port]);
        command.args(["--multiplier", multiplier, "--duration", "200ms"]);
        let outcome = run_command(&mut command);
        assert_eq!(outcome.decimal("/flows/0/target_pps"), targets[0], "{outcome}");
        assert_eq!(outcome.decimal("/flows/1/target_pps"), targets[1], "{outcome}");
        let packets = outcome.number("/flows/1/packets");
        assert_eq!(packets, (targets[1] / 5.0) as u64, "{outcome}");
    }
    let mut command = Command::new(wirestorm());
    command.arg("run").arg(&plan).args(["--port", &port, "--multiplier", "fast"]);
    run_command(&mut command).expect_error(2, &["--multiplier \"fast\": expected a factor"]);
}
