//! Tests of labs in real namespaces.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use wirestorm_testkit::net::{CaptureOptions, Lab, LabOptions, Namespace, RouterLab};
use wirestorm_testkit::require::{require_root, require_tool};
use wirestorm_testkit::sample::{FixedFrames, FixedOptions, write_file};
use wirestorm_testkit::{Scratch, pcap, tshark};

fn can_run() -> bool {
    require_root() && ["ip", "ethtool", "tcpdump"].into_iter().all(require_tool)
}

fn namespaces() -> String {
    let list = Command::new("ip").args(["netns", "list"]).output().unwrap();
    String::from_utf8(list.stdout).unwrap()
}

fn ping(from: &Namespace, to: impl ToString, count: u32) {
    let mut ping = from.command("ping");
    ping.args(["-n", "-q", "-i", "0.002", "-W", "5", "-c", &count.to_string(), &to.to_string()]);
    let output = ping.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn lab_sends_no_frames_by_itself() {
    if !can_run() {
        return;
    }
    let lab = Lab::new().unwrap();
    lab.a.set_up(false).unwrap();
    let capture = lab.b.capture().unwrap();
    lab.a.set_up(true).unwrap();
    let captured = capture.finish(0).unwrap();
    assert_eq!(captured.packets, []);
    assert_eq!(lab.b.counters().unwrap().rx_packets, 0);
}

#[test]
fn capture_has_every_frame_and_matches_the_counters() {
    if !can_run() || !require_tool("ping") {
        return;
    }
    let lab = Lab::with(&LabOptions { addresses: true, ..LabOptions::default() }).unwrap();
    for options in [CaptureOptions::default(), CaptureOptions::bulk()] {
        let capture = lab.b.capture_with(&options).unwrap();
        let before = lab.b.counters().unwrap();
        ping(lab.a.namespace(), lab.b.ipv4(), 20);
        let captured = capture.finish(20).unwrap();
        let after = lab.b.counters().unwrap();
        assert_eq!((captured.packets.len(), captured.dropped), (20, 0), "requests, no ARP");
        assert_eq!(after.rx_packets - before.rx_packets, 20);
        assert!(captured.frames().all(|frame| frame.starts_with(&lab.b.mac())));
        assert!(captured.packets.windows(2).all(|pair| pair[0].time < pair[1].time));
        assert!(
            captured.packets.iter().any(|packet| packet.time % 1_000 != 0),
            "time stamps are in nanoseconds"
        );
    }
}

#[test]
fn burst_at_full_speed_is_captured_completely_and_in_order() {
    if !can_run() || !require_tool("tcpreplay") {
        return;
    }
    let lab = Lab::new().unwrap();
    let scratch = Scratch::new().unwrap();
    let path = scratch.file("burst.pcap");
    let options = FixedOptions { packets: 200_000, ..FixedOptions::default() };
    write_file(FixedFrames::new(options), pcap::Resolution::Nanoseconds, &path).unwrap();
    let capture = lab.b.capture_with(&CaptureOptions::bulk()).unwrap();
    let mut tcpreplay = lab.a.command("tcpreplay");
    tcpreplay.args(["-q", "-t", "-K", "-i", lab.a.interface()]).arg(&path);
    assert!(tcpreplay.output().unwrap().status.success());
    let captured = capture.finish(200_000).unwrap();
    assert_eq!((captured.packets.len(), captured.dropped), (200_000, 0));
    let sent = pcap::read(&path).unwrap();
    assert!(sent.iter().map(|packet| packet.frame.as_slice()).eq(captured.frames()));
}

#[test]
fn capture_applies_its_filter() {
    if !can_run() || !require_tool("ping") {
        return;
    }
    let lab = Lab::with(&LabOptions { addresses: true, ..LabOptions::default() }).unwrap();
    let options = CaptureOptions {
        filter: "icmp[icmptype] == icmp-echo".into(),
        outgoing: true,
        ..CaptureOptions::default()
    };
    let capture = lab.b.capture_with(&options).unwrap();
    ping(lab.a.namespace(), lab.b.ipv4(), 3);
    assert_eq!(capture.finish(3).unwrap().packets.len(), 3, "replies are filtered out");
}

#[test]
fn options_reach_the_interfaces() {
    if !can_run() {
        return;
    }
    let options = LabOptions { mtu: 9000, queues: 2, gro: [false, true], ..LabOptions::default() };
    let lab = Lab::with(&options).unwrap();
    for (end, gro) in [(&lab.a, "off"), (&lab.b, "on")] {
        let features = end.command("ethtool").args(["-k", end.interface()]).output().unwrap();
        let features = String::from_utf8(features.stdout).unwrap();
        assert!(features.contains(&format!("generic-receive-offload: {gro}")), "{features}");
        assert!(features.contains("tx-checksumming: off"), "{features}");
        let link = end.command("ip").args(["-d", "link", "show", end.interface()]).output();
        let link = String::from_utf8(link.unwrap().stdout).unwrap();
        assert!(link.contains("mtu 9000"), "{link}");
        assert!(link.contains("numtxqueues 2 numrxqueues 2"), "{link}");
    }
}

#[test]
fn router_forwards_both_ways_without_arp() {
    if !can_run() || !require_tool("ping") {
        return;
    }
    let lab = RouterLab::with(&LabOptions { ipv6: true, ..LabOptions::default() }).unwrap();
    let options = CaptureOptions { filter: "arp or icmp".into(), ..CaptureOptions::default() };
    let capture = lab.b.capture_with(&options).unwrap();
    ping(lab.a.namespace(), lab.b.ipv4(), 5);
    ping(lab.a.namespace(), lab.b.ipv6(), 5);
    let captured = capture.finish(5).unwrap();
    assert_eq!(captured.packets.len(), 5);
    for frame in captured.frames() {
        assert_eq!(frame[6..12], lab.router_b.mac());
        assert_eq!(frame[14 + 8], 63, "the router has lowered the TTL");
    }
}

#[test]
fn drop_or_panic_removes_namespaces_and_their_processes() {
    if !can_run() {
        return;
    }
    let lab = Lab::new().unwrap();
    let name = lab.a.namespace().name().to_owned();
    let mut running = lab.a.command("cat").stdin(Stdio::piped()).spawn().unwrap();
    assert!(namespaces().contains(&name));
    let panicked = std::panic::catch_unwind(move || {
        let _lab = lab;
        panic!("on purpose");
    });
    assert!(panicked.is_err());
    assert!(!namespaces().contains(&name));
    assert!(!running.wait().unwrap().success(), "it was killed");
}

#[test]
fn removing_an_interface_removes_its_peer() {
    if !can_run() {
        return;
    }
    let lab = Lab::new().unwrap();
    lab.b.delete_interface().unwrap();
    assert!(lab.a.counters().is_err());
}

#[test]
fn drop_sink_drops_frames_before_the_network_stack() {
    if !can_run() || !["clang", "ping"].into_iter().all(require_tool) {
        return;
    }
    let lab = Lab::with(&LabOptions { addresses: true, ..LabOptions::default() }).unwrap();
    let sink = lab.b.drop_sink().unwrap();
    let mut blocked = lab.a.command("ping");
    blocked.args(["-n", "-q", "-c", "1", "-W", "0.1", &lab.b.ipv4().to_string()]);
    assert!(!blocked.output().unwrap().status.success());
    drop(sink);
    ping(lab.a.namespace(), lab.b.ipv4(), 1);
}

#[test]
fn tshark_returns_fields_of_written_packets() {
    if !require_tool("tshark") {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let path = scratch.file("one.pcap");
    let mut writer = pcap::Writer::new(Vec::new(), pcap::Resolution::Nanoseconds).unwrap();
    writer.write(1_000_000_001, &[0xff; 60]).unwrap();
    std::fs::write(&path, writer.finish().unwrap()).unwrap();
    let rows = tshark::fields(&path, "", &["frame.len", "frame.time_epoch", "ip.src"]).unwrap();
    assert_eq!(rows, [["60", "1.000000001", ""]]);
    assert_eq!(tshark::count(&path, "ip").unwrap(), 0);
    assert!(tshark::count(&path, "no such filter").is_err());
}

/// Runs [`child_with_a_lab`] in a child process and waits until its lab exists. Returns the child,
/// the name of its first namespace, and the rest of its output, which must stay open until it ends.
fn process_with_a_lab() -> (Child, String, impl Sized) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "net::child_with_a_lab", "--ignored", "--nocapture"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let name = lines.find_map(|line| line.split_once("lab: ").map(|it| it.1.to_owned()));
    (child, name.unwrap(), lines)
}

#[test]
#[ignore = "child process of other tests"]
fn child_with_a_lab() {
    let lab = Lab::new().unwrap();
    println!("lab: {}", lab.a.namespace().name());
    drop(std::io::stdin().lines().next());
}

#[test]
fn signal_removes_the_lab_and_ends_the_process() {
    if !can_run() {
        return;
    }
    let (mut child, name, _output) = process_with_a_lab();
    assert!(namespaces().contains(&name));
    // `wait` closes stdin, which could end the child before the signal does.
    let _stdin = child.stdin.take();
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    assert_eq!(child.wait().unwrap().to_string(), "signal: 15 (SIGTERM)");
    assert!(!namespaces().contains(&name));
}

#[test]
fn next_process_removes_the_leftovers_of_a_killed_one() {
    if !can_run() {
        return;
    }
    let (mut killed, name, _output) = process_with_a_lab();
    killed.kill().unwrap();
    killed.wait().unwrap();
    let (mut next, _, _output) = process_with_a_lab();
    assert!(!namespaces().contains(&name));
    drop(next.stdin.take());
    assert!(next.wait().unwrap().success());
}
