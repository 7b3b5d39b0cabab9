//! Tests of `wirestorm run`, `send`, `sim` and `frames`.

mod forwarding;
mod host;
mod measured;
mod pktgen;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use wirestorm_e2e::{
    Outcome, Receiver, assert_same_frames, can_run, frames, run_command, wirestorm,
};
use wirestorm_testkit::net::Lab;
use wirestorm_testkit::pcap::{self, Packet};
use wirestorm_testkit::require::{require_tool, skip};
use wirestorm_testkit::{Scratch, tshark};

/// A flow with varying addresses, ports and lengths.
const VARIED: &str = "
  - name: varied
    tx: a
    rx: b
    packet:
      - ethernet: {src: 02:00:00:00:00:01, dst: 02:00:00:00:00:02}
      - ipv4: {src: {increment: {start: 10.0.0.1, count: 200}}, dst: 192.0.2.1}
      - udp: {src_port: {random: {min: 1024, max: 65535, seed: 7}}, dst_port: {values: [40000, 40001], after: ipv4.src}}
    size: {increment: {start: 64, end: 1518, step: 7}}
    rate: 20kpps
    duration: {fixed_packets: 500}
";

fn wirestorm_with<S: AsRef<Path>>(arguments: &[S]) -> Outcome {
    run_command(Command::new(wirestorm()).args(arguments.iter().map(AsRef::as_ref)))
}

/// Writes a plan with these flows from port a to port b.
fn plan(scratch: &Scratch, flows: &str) -> PathBuf {
    let path = scratch.file("plan.yaml");
    let text = format!("ports:\n  - name: a\n    speed: 10G\n  - name: b\nflows:{flows}");
    std::fs::write(&path, text).unwrap();
    path
}

/// Simulates a plan; returns its frames.
fn simulated(scratch: &Scratch, plan: &Path, packets: &str) -> Vec<Packet> {
    let output = scratch.file("sim.pcap");
    let arguments =
        [Path::new("sim"), plan, "-o".as_ref(), &output, "-l".as_ref(), packets.as_ref()];
    wirestorm_with(&arguments).expect(0);
    pcap::read(&output).unwrap()
}

fn run_on(lab: &Lab, plan: &Path, more: &[&str]) -> Outcome {
    let (a, b) = (format!("a={}", lab.a.port()), format!("b={}", lab.b.port()));
    let mut command = Command::new(wirestorm());
    command.arg("run").arg(plan).args(["--json", "-", "--port", &a, "--port", &b]).args(more);
    run_command(&mut command)
}

#[test]
fn tshark_accepts_simulated_frames() {
    if !require_tool("tshark") {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let plan = plan(&scratch, VARIED);
    let packets = simulated(&scratch, &plan, "100000");
    assert_eq!(packets.len(), 500);
    let capture = scratch.file("sim.pcap");
    let wrong = "ip.checksum.status == 0 or udp.checksum.status == 0";
    assert_eq!(tshark::count(&capture, wrong).unwrap(), 0);
    let fields = tshark::fields(&capture, "udp", &["ip.src", "udp.dstport", "frame.len"]).unwrap();
    for (number, fields) in fields.iter().enumerate() {
        let round = number / 200 % 2;
        assert_eq!(fields[0], format!("10.0.0.{}", number % 200 + 1));
        assert_eq!(fields[1], ["40000", "40001"][round]);
        assert_eq!(fields[2], (60 + number % 208 * 7).to_string());
    }
    // 20,000 frames a second are exactly 50 us apart.
    let start = packets[0].time;
    for (number, packet) in packets.iter().enumerate() {
        assert_eq!(packet.time - start, number as u64 * 50_000);
    }
}

#[test]
fn sent_frames_equal_simulated_frames() {
    if !can_run(&["clang"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    // A rate that a busy machine keeps.
    let plan = plan(&scratch, &VARIED.replace("20kpps", "2kpps"));
    let expected = simulated(&scratch, &plan, "100000");
    for backend in ["af_packet", "af_xdp", "xdp"] {
        let lab = Lab::new().unwrap();
        let receiver = Receiver::start(&lab.b).unwrap();
        let outcome = run_on_without_rx(&lab, &scratch, backend);
        let captured = receiver.finish(expected.len() as u64).unwrap();
        assert_same_frames(backend, frames(&expected), captured.frames());
        assert_eq!(outcome.text("/ports/0/backend"), backend);
        assert_eq!(outcome.number("/flows/0/packets"), 500);
        assert_eq!(outcome.number("/ports/0/tx/packets"), 500);
    }
}

/// Runs the plan without a receiving port at the other end, where a capture runs.
fn run_on_without_rx(lab: &Lab, scratch: &Scratch, backend: &str) -> Outcome {
    let text = std::fs::read_to_string(scratch.file("plan.yaml")).unwrap();
    let path = scratch.file("without-rx.yaml");
    std::fs::write(&path, text.replace("    rx: b\n", "")).unwrap();
    let mut command = Command::new(wirestorm());
    let port = format!("a={}", lab.a.port());
    command.arg("run").arg(path).args(["--json", "-", "--backend", backend, "--port", &port]);
    run_command(&mut command)
}

#[test]
fn result_says_which_frames_the_kernel_made() {
    if !can_run(&[]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let flow = |name: &str, more: &str| {
        format!(
            "\n  - {{name: {name}, tx: a, packet: [{{ethernet: }}], rate: 2kpps, duration: \
             {{fixed_packets: 500}}{more}}}"
        )
    };
    let flows =
        flow("steady", "") + &flow("random", ", inter_departure: {poisson: {seed: 1}}") + "\n";
    let plan = plan(&scratch, &flows);
    let lab = Lab::new().unwrap();
    lab.b.set_gro(true).unwrap();
    let mut command = Command::new(wirestorm());
    command.arg("run").arg(&plan).args(["--port", &format!("a={}", lab.a.port())]);
    let outcome = run_command(command.args(["--json", "-", "--backend", "xdp"]));
    let made = |flow: usize| outcome.number(&format!("/flows/{flow}/made_in_kernel"));
    assert_eq!((made(0), made(1)), (500, 0), "{outcome}");
    assert_eq!(outcome.result().pointer("/flows/0/made_by_process"), Some(&Value::Null));
    assert_eq!(outcome.text("/flows/1/made_by_process"), "its gaps vary");
    assert_eq!(outcome.number("/ports/0/tx/packets"), 1_000, "{outcome}");
}

#[test]
fn one_cpu_is_enough_if_the_kernel_makes_all_frames() {
    if !can_run(&["taskset"]) {
        return;
    }
    let lab = Lab::new().unwrap();
    lab.b.set_gro(true).unwrap();
    let mut command = Command::new("taskset");
    command.args(["-c", "0"]).arg(wirestorm()).args(["send", "--tx", &lab.a.port()]);
    command.args(["--rate", "max", "--packets", "100000", "--json", "-"]);
    let outcome = run_command(&mut command).expect(0);
    assert_eq!(outcome.text("/ports/0/backend"), "xdp", "{outcome}");
    assert_eq!(outcome.number("/flows/0/made_in_kernel"), 100_000, "{outcome}");
    assert_eq!(lab.b.counters().unwrap().rx_packets, 100_000, "{outcome}");
}

#[test]
fn two_workers_send_the_same_frames_as_one() {
    if !can_run(&[]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let plan = plan(&scratch, &VARIED.replace("20kpps", "2kpps"));
    let mut expected: Vec<Vec<u8>> =
        simulated(&scratch, &plan, "100000").into_iter().map(|packet| packet.frame).collect();
    let lab = Lab::new().unwrap();
    let receiver = Receiver::start(&lab.b).unwrap();
    let text = std::fs::read_to_string(&plan).unwrap().replace("    rx: b\n", "");
    std::fs::write(&plan, text).unwrap();
    let outcome = run_on(&lab, &plan, &["--workers", "2", "--backend", "af_packet"]);
    let captured = receiver.finish(500).unwrap();
    let mut found: Vec<Vec<u8>> = captured.frames().map(<[u8]>::to_vec).collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected, "{outcome}");
}

#[test]
fn received_frames_are_counted() {
    if !can_run(&["clang"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let plan = plan(&scratch, VARIED);
    let lab = Lab::new().unwrap();
    let outcome = run_on(&lab, &plan, &[]);
    assert_eq!(outcome.number("/ports/1/rx/packets"), 500, "{outcome}");
    assert_eq!(outcome.number("/ports/1/rx/lost"), 0, "{outcome}");
    outcome.expect(0);
}

#[test]
fn send_command_sends_a_flow_from_options() {
    if !can_run(&["tshark"]) {
        return;
    }
    let lab = Lab::new().unwrap();
    let receiver = Receiver::start(&lab.b).unwrap();
    let mut command = Command::new(wirestorm());
    command.args(["send", "--tx", &lab.a.port(), "--tcp", "--src", "10.0.0.1-10.0.0.3"]);
    command.args(["--dport", "1000-1001", "--packets", "6", "--vlan", "7", "--json", "-"]);
    let outcome = run_command(&mut command).expect(0);
    assert_eq!(outcome.number("/flows/0/packets"), 6);
    let captured = receiver.finish(6).unwrap();
    let fields = ["ip.src", "tcp.dstport", "vlan.id", "tcp.flags.syn"];
    let found = tshark::fields(&captured.path(), "tcp", &fields).unwrap();
    let expected: Vec<Vec<String>> = (0..6)
        .map(|n| {
            let (source, port) = (format!("10.0.0.{}", n % 3 + 1), (1000 + n % 2).to_string());
            vec![source, port, "7".into(), "1".into()]
        })
        .collect();
    let is_set = |text: &String| text.replace("True", "1");
    let found: Vec<Vec<String>> =
        found.iter().map(|row| row.iter().map(is_set).collect()).collect();
    assert_eq!(found, expected);
}

#[test]
fn rate_is_computed_over_the_active_time_of_a_flow() {
    let scratch = Scratch::new().unwrap();
    let flow = |name: &str, more: &str| {
        format!("  - {{name: {name}, tx: a, packet: [{{ethernet: }}], rate: 10pps{more}}}\n")
    };
    let flows = "\n".to_owned()
        + &flow("one", "")
        + &flow("two", "")
        + &flow("late", ", start_delay: 500ms");
    let flows = flows + &flow("brief", ", duration: 300ms");
    let plan = plan(&scratch, &(flows + &flow("held", ", start: paused")));
    let lab = Lab::new().unwrap();
    let mut command = Command::new(wirestorm());
    command.arg("run").arg(&plan).args(["--port", &format!("a={}", lab.a.port())]);
    let outcome = run_command(command.args(["--duration", "1s", "--json", "-"]));
    let off =
        |flow: usize| outcome.result().pointer(&format!("/flows/{flow}/rate_error_ppm")).cloned();
    let off = |flow: usize| off(flow).map(|it| it.as_f64().map(|ppm| ppm / 1e6));
    for flow in 0..4 {
        // Not above the target, since the last frame left before the end.
        assert!(off(flow).flatten().unwrap() <= 0.001, "{flow}: {outcome}");
    }
    // The time of its five frames excludes the start delay.
    let elapsed_s = outcome.decimal("/times/elapsed_s");
    assert!(off(2).flatten().unwrap() > 0.6 / elapsed_s - 1.0, "{outcome}");
    assert_eq!(off(4), Some(None), "{outcome}");
}

#[test]
fn unreachable_rate_ends_at_the_duration() {
    let scratch = Scratch::new().unwrap();
    // Ten times the rate of the fastest machine.
    let flow = "\n  - {name: f, tx: a, packet: [{ethernet: }], rate: 100Mpps, duration: 500ms}\n";
    let plan = plan(&scratch, flow).display().to_string();
    let lab = Lab::new().unwrap();
    let port = format!("a={}", lab.a.port());
    let send = ["send", "--tx", &lab.a.port(), "--rate", "100Mpps", "--duration", "500ms"];
    for arguments in [&send[..], &["run", &plan, "--port", &port]] {
        let mut command = Command::new(wirestorm());
        command.args(arguments).args(["--backend", "af_packet", "--json", "-"]);
        let outcome = run_command(&mut command);
        assert_eq!(outcome.status.code(), Some(3), "{outcome}");
        let elapsed = outcome.decimal("/times/elapsed_s");
        // Sending all frames would take more than half a minute.
        assert!((0.5..20.0).contains(&elapsed), "{outcome}");
        assert!(outcome.number("/flows/0/packets") < 50_000_000, "{outcome}");
    }
}

#[test]
fn flows_keep_their_durations_for_all_departure_modes() {
    let scratch = Scratch::new().unwrap();
    let flow = |id: char, name: &str, rest: &str| {
        let packet = format!("packet: [{{ethernet: {{src: 02:00:00:00:00:0{id}}}}}]");
        format!("\n  - {{name: {name}, tx: a, {packet}, {rest}}}")
    };
    let flows = flow('1', "top", "rate: max, duration: 200ms, next: after")
        + &flow('2', "drawn", "rate: 10kpps, inter_departure: poisson, duration: 1s")
        + &flow('3', "mix", "rate: 10M-l1, size: imix, duration: 1s")
        + &flow('4', "after", "rate: 100pps, start: triggered, duration: {fixed_packets: 5}");
    let plan = plan(&scratch, &flows);
    let lab = Lab::new().unwrap();
    let outcome = run_on(&lab, &plan, &[]);
    let packets = |flow: usize| outcome.number(&format!("/flows/{flow}/packets"));
    assert!(packets(0) > 1_000 && packets(3) == 5, "{outcome}");
    // Random departures are the same in each run.
    assert!((9_500..10_500).contains(&packets(1)), "{outcome}");
    assert!((3_200..3_700).contains(&packets(2)), "{outcome}");
    // After the last frame without due time, the port keeps the times; there is one record for all
    // frames.
    assert!(outcome.decimal("/flows/1/pps") < 11_000.0, "{outcome}");
    assert!(outcome.number("/ports/0/tx/departures/gaps/count") > 13_000, "{outcome}");
}

#[test]
fn frames_command_prints_frames_without_sending() {
    let scratch = Scratch::new().unwrap();
    let plan = plan(&scratch, VARIED);
    let shown =
        wirestorm_with(&[Path::new("frames"), &plan, "-n".as_ref(), "2".as_ref()]).expect(0);
    assert!(shown.output.starts_with("flow varied\n00:00:00.000000000 IP 10.0.0.1."), "{shown}");
    assert!(shown.output.contains("00:00:00.000050000 IP 10.0.0.2."), "{shown}");
    assert!(shown.output.contains("0x0000:  0200 0000 0002 0200 0000 0001 0800"), "{shown}");
}

#[test]
fn unresolved_auto_addresses_are_reported() {
    let scratch = Scratch::new().unwrap();
    let known = plan(&scratch, VARIED);
    let output = scratch.file("sim.pcap");
    let simulate = |plan: &PathBuf| {
        let end = ["-l", "1", "-o"].map(Path::new);
        wirestorm_with(&[&[Path::new("sim"), plan], &end[..], &[output.as_path()]].concat())
    };
    let note = "note: Ethernet addresses with `auto`, in 1 of 1 flows, are zeros here:";
    assert!(!simulate(&known).expect(0).messages.contains("note"));
    let varied = plan(&scratch, &VARIED.replace("dst: 02:00:00:00:00:02", "dst: auto"));
    let simulated = simulate(&varied).expect(0);
    assert_eq!(simulated.messages.matches(note).count(), 1, "{simulated}");
    let shown = wirestorm_with(&[Path::new("frames"), &varied]).expect(0);
    let expected = "flow varied\n  ethernet.dst is auto: zeros here; a run resolves";
    assert!(shown.output.starts_with(expected), "{shown}");
    assert!(!shown.output.contains("ethernet.src"), "{shown}");
}

/// A flow from a capture that is stored beside the plan.
const CAPTURED: &str = "
  - name: captured
    tx: a
    packet:
      - capture:
          file: seen.pcap
          number: 2
          fields:
            ipv4.src: {increment: {start: 10.0.0.1, count: 200}}
            udp.dst_port: {values: [7, 9], after: ipv4.src}
            bytes[60..62]: {random: {seed: 5}}
    duration: {fixed_packets: 500}
";

#[test]
fn tshark_accepts_frames_from_captures() {
    if !require_tool("tshark") {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let varied = plan(&scratch, &VARIED.replace("64, end: 1518", "90, end: 1518"));
    simulated(&scratch, &varied, "2");
    std::fs::rename(scratch.file("sim.pcap"), scratch.file("seen.pcap")).unwrap();
    let seen = pcap::read(&scratch.file("seen.pcap")).unwrap().remove(1).frame;
    // The path of the capture is relative to the plan, not to the working directory.
    let plan = plan(&scratch, CAPTURED);
    let packets = simulated(&scratch, &plan, "100000");
    assert_eq!(packets.len(), 500);
    let capture = scratch.file("sim.pcap");
    let wrong = "ip.checksum.status == 0 or udp.checksum.status == 0";
    assert_eq!(tshark::count(&capture, wrong).unwrap(), 0);
    let fields = tshark::fields(&capture, "udp", &["ip.src", "udp.dstport"]).unwrap();
    for (number, (fields, packet)) in fields.iter().zip(&packets).enumerate() {
        assert_eq!(fields[0], format!("10.0.0.{}", number % 200 + 1));
        assert_eq!(fields[1], ["7", "9"][number / 200 % 2]);
        assert_eq!(packet.frame[..14], seen[..14]);
        assert_eq!(packet.frame[62..], seen[62..]);
    }
    let text = std::fs::read_to_string(&plan).unwrap();
    std::fs::write(&plan, text.replace("number: 2", "number: 3")).unwrap();
    let run = wirestorm_with(&[Path::new("frames"), &plan]);
    let path = "flows[0].packet[0].capture.file: ";
    run.expect_error(2, &[path, "seen.pcap: found 2 packets, expected 3 or more"]);
}

#[test]
fn errors_are_reported_before_sending() {
    let scratch = Scratch::new().unwrap();
    let path = plan(&scratch, &VARIED.replace("20kpps", "quickly"));
    let run = wirestorm_with(&[Path::new("run"), &path]);
    run.expect_error(2, &["plan.yaml: flows[0].rate: found \"quickly\", expected a rate"]);
    let path = plan(&scratch, VARIED);
    wirestorm_with(&[Path::new("run"), &path]).expect_error(2, &["--port a=INTERFACE"]);
    let nowhere = [Path::new("run"), &path, "--port".as_ref(), "c=eth1".as_ref()];
    wirestorm_with(&nowhere).expect_error(2, &["the plan's ports are a, b"]);
    let twice = [Path::new("run"), &path, "--port=a=eth1".as_ref(), "--port=a=eth2".as_ref()];
    wirestorm_with(&twice).expect_error(2, &["--port \"a=eth2\": a is already bound to eth1"]);
    let missing = [Path::new("sim"), "missing.yaml".as_ref(), "-o".as_ref(), "x".as_ref()];
    wirestorm_with(&missing).expect_error(2, &["missing.yaml: No such file"]);
    let endless = [Path::new("sim"), &path, "-o".as_ref(), "x".as_ref()];
    wirestorm_with(&endless).expect_error(2, &["--packets N or --duration TIME"]);
    let timeless = VARIED.replace("20kpps", "max").replace("{fixed_packets: 500}", "continuous");
    let timeless = plan(&scratch, &timeless);
    let end = ["-d", "1ms", "-o", "x"].map(Path::new);
    let run = wirestorm_with(&[&[Path::new("sim"), &timeless], &end[..]].concat());
    run.expect_error(2, &["flows[0].rate: found max", "a number of packets"]);
    let rate = ["send", "--tx", "lo", "--rate", "10G"].map(Path::new);
    wirestorm_with(&rate).expect_error(2, &["flows[0].rate: found \"10G\"", "10G-l1"]);
}

#[test]
fn flow_with_frames_over_the_mtu_is_rejected_by_name() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new().unwrap();
    let scratch = Scratch::new().unwrap();
    let path = plan(&scratch, &VARIED.replace("end: 1518", "end: 9018"));
    let port = format!("a={}", lab.a.port());
    let mut command = Command::new(wirestorm());
    let text = std::fs::read_to_string(&path).unwrap().replace("    rx: b\n", "");
    std::fs::write(&path, text).unwrap();
    command.arg("run").arg(&path).args(["--port", &port]);
    run_command(&mut command)
        .expect_error(2, &["flow \"varied\": a frame of", "exceeds the maximum"]);
}

#[test]
fn every_example_runs() {
    if !can_run(&["clang"]) {
        return;
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        if !text.contains("\nflows:\n") {
            // Plans of clients and servers.
            continue;
        }
        let lab = Lab::new().unwrap();
        // Lower the rates of the examples, which are too high for a test machine.
        let text = text.replace("100%", "10kpps").replace("100kpps", "10kpps");
        let text = text.replace("eth1", &lab.a.port()).replace("eth2", &lab.b.port());
        let scratch = Scratch::new().unwrap();
        let plan = scratch.file("example.yaml");
        std::fs::write(&plan, text).unwrap();
        let mut command = Command::new(wirestorm());
        command.arg("run").arg(&plan).args(["--duration", "300ms", "--json", "-"]);
        let outcome = run_command(&mut command);
        outcome.assert_no_panic();
        // Exit status 3 on a busy machine: a rate was missed.
        assert!(matches!(outcome.status.code(), Some(0 | 3)), "{}: {outcome}", path.display());
        assert!(outcome.number("/ports/0/tx/packets") > 0, "{}: {outcome}", path.display());
        let failed = outcome.number("/ports/0/tx/failed");
        assert_eq!(failed, 0, "{}: {outcome}", path.display());
        count += 1;
    }
    assert!(count >= 10, "only {count} examples");
}

/// Two streams as TRex clients write them: a burst, and one frame a millisecond with a counter.
const TREX: &str = r#"[
  {"name": "burst", "stream": {"enabled": true, "self_start": true, "isg": 0.0, "flags": 3, "action_count": 0,
    "mode": {"type": "single_burst", "total_pkts": 3, "rate": {"type": "pps", "value": 1000}},
    "packet": {"binary": "AgAAAAACAgAAAAABCABFAAAcAAEAAEARZs4KAAABCgAAAgQABwAACAAA", "meta": ""},
    "vm": {"instructions": []}, "next_stream_id": -1, "flow_stats": {"enabled": false}, "random_seed": 0, "core_id": -1}}
]"#;

#[test]
fn trex_streams_are_simulated() {
    let scratch = Scratch::new().unwrap();
    let (document, output) = (scratch.file("streams.json"), scratch.file("out.pcap"));
    std::fs::write(&document, TREX).unwrap();
    let arguments =
        [Path::new("sim"), &document, "-o".as_ref(), &output, "-l".as_ref(), "10".as_ref()];
    wirestorm_with(&arguments).expect(0);
    let packets = pcap::read(&output).unwrap();
    assert_eq!(packets.len(), 3);
    assert_eq!(packets[1].time - packets[0].time, 1_000_000);
    assert_eq!(packets[0].frame[26..34], [10, 0, 0, 1, 10, 0, 0, 2]);
    std::fs::write(&document, TREX.replace("single_burst", "often")).unwrap();
    wirestorm_with(&arguments).expect_error(2, &["[0].stream.mode", "often"]);
}

#[test]
fn simulation_limits_work_like_those_of_the_trex_simulator() {
    let scratch = Scratch::new().unwrap();
    let (document, output) = (scratch.file("streams.json"), scratch.file("out.pcap"));
    let continuous = TREX.replace(r#""single_burst", "total_pkts": 3"#, r#""continuous""#);
    std::fs::write(&document, continuous).unwrap();
    // A thousand frames a second.
    for (end, frames) in
        [(&[][..], 5_000), (&["-d", "2.5"], 2_500), (&["-l", "0", "-d", "7s"], 7_000)]
    {
        let mut arguments = vec![Path::new("sim"), &document, "-o".as_ref(), &output];
        arguments.extend(end.iter().map(Path::new));
        wirestorm_with(&arguments).expect(0);
        assert_eq!(pcap::read(&output).unwrap().len(), frames, "{end:?}");
    }
}

#[test]
fn trex_profiles_are_simulated_as_they_are() {
    if std::env::var_os("WIRESTORM_PYTHON").is_none() {
        skip("WIRESTORM_PYTHON names no Python with the package wirestorm-trex");
        return;
    }
    let scratch = Scratch::new().unwrap();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/trex/tests/profiles");
    let (profile, output) = (Path::new(folder).join("clients.py"), scratch.file("out.pcap"));
    let arguments =
        [Path::new("sim"), &profile, "-o".as_ref(), &output, "-l".as_ref(), "20".as_ref()];
    wirestorm_with(&arguments).expect(0);
    assert_eq!(pcap::read(&output).unwrap().len(), 20);
}

#[test]
fn trex_streams_are_sent_from_both_sides() {
    if !can_run(&["clang"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let document = scratch.file("streams.json");
    std::fs::write(&document, TREX).unwrap();
    let lab = Lab::new().unwrap();
    let run = |ports: [&str; 2], more: &[&str]| {
        let mut command = Command::new(wirestorm());
        command.arg("run").arg(&document).args(["--json", "-"]).args(more);
        run_command(command.args(["--port", ports[0], "--port", ports[1]]))
    };
    let (a, b) = (format!("0={}", lab.a.port()), format!("1={}", lab.b.port()));
    let outcome = run([&a, &b], &["--multiplier", "2"]);
    for (flow, [tx, rx]) in [["0", "1"], ["1", "0"]].iter().enumerate() {
        let at = |field: &str| format!("/flows/{flow}/{field}");
        assert_eq!(outcome.text(&at("tx")), *tx, "{outcome}");
        assert_eq!(outcome.text(&at("rx/0")), *rx, "{outcome}");
        assert_eq!(outcome.number(&at("packets")), 3, "{outcome}");
        assert_eq!(outcome.decimal(&at("target_pps")), 2000.0, "{outcome}");
        assert!(outcome.number(&format!("/ports/{flow}/rx/packets")) >= 3, "{outcome}");
    }
    let named = format!("left={}", lab.a.port());
    run([&named, &b], &[]).expect_error(2, &["--port \"left=", "expected NUMBER=INTERFACE"]);
    std::fs::write(&document, TREX.replace("single_burst", "often")).unwrap();
    run([&a, &b], &[]).expect_error(2, &["port 0: [0].stream.mode", "often"]);
}
