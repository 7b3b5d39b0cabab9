//! Sent frames equal those of the capture, byte by byte and in order.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use wirestorm_e2e::{
    Receiver, assert_same_frames, can_run, frames, replay, traffic, write_capture,
};
use wirestorm_testkit::net::{Lab, LabOptions};
use wirestorm_testkit::pcap::{self, Packet};
use wirestorm_testkit::require::require_shared_captures;
use wirestorm_testkit::{Scratch, tshark};

/// Longest frame for an MTU of 1500 bytes.
const FRAME_MAX: usize = 1514;

/// Longest frame with a VLAN tag, which Linux allows on top of the MTU (`packet_snd` of
/// `net/packet/af_packet.c`).
const TAGGED_FRAME_MAX: usize = 1518;

/// Whether a frame fits the MTU of a link.
fn fits(frame: &[u8]) -> bool {
    let is_tagged = matches!(frame.get(12..14), Some([0x81, 0x00] | [0x88, 0xa8]));
    frame.len() <= if is_tagged { TAGGED_FRAME_MAX } else { FRAME_MAX }
}

/// Replays captures in one run and compares the received frames.
fn check_backend(requested: &str, used: &[&str], captures: &[PathBuf]) {
    let lab = Lab::new().unwrap();
    let receiver = Receiver::start(&lab.b).unwrap();
    let port = lab.a.port();
    let mut arguments: Vec<&Path> =
        ["-t", "-K", "--backend", requested, "-i", &port].map(Path::new).to_vec();
    arguments.extend(captures.iter().map(PathBuf::as_path));
    let outcome = replay(arguments);
    let backend = outcome.text("/ports/0/backend");
    assert!(used.contains(&backend), "{outcome}");

    let packets = captures.iter().flat_map(|path| pcap::read(path).unwrap());
    let (fitting, too_long): (Vec<Packet>, Vec<Packet>) =
        packets.partition(|packet| fits(&packet.frame));
    let captured = receiver.finish(fitting.len() as u64).unwrap();
    assert_same_frames(requested, frames(&fitting), captured.frames());
    assert_eq!(captured.dropped, 0);
    assert_eq!(outcome.number("/achieved/packets"), fitting.len() as u64);
    assert_eq!(outcome.number("/ports/0/tx/packets"), fitting.len() as u64);
    let bytes: usize = fitting.iter().map(|packet| packet.frame.len()).sum();
    assert_eq!(outcome.number("/achieved/bytes"), bytes as u64);
    assert_eq!(outcome.number("/achieved/failed"), too_long.len() as u64, "{outcome}");
    let longest = too_long.iter().map(|packet| packet.frame.len()).max().unwrap_or(0);
    assert_eq!(outcome.number("/achieved/refused/too_long_max"), longest as u64);
    assert_eq!(outcome.lines("/notes").contains("--mtu-trunc"), !too_long.is_empty());
    outcome.expect(if too_long.is_empty() { 0 } else { 3 });
}

fn check_backend_with_all_captures(requested: &str, used: &[&str]) {
    if !can_run(&["clang"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let capture = write_capture(&scratch, "own.pcap", &traffic(300, 1));
    check_backend(requested, used, &[capture]);
    if let Some(captures) = shared_captures() {
        check_backend(requested, used, &captures);
    }
}

fn shared_captures() -> Option<Vec<PathBuf>> {
    let folder = require_shared_captures()?;
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut captures: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|extension| extension == "pcap"))
        .collect();
    captures.sort();
    assert!(!captures.is_empty());
    Some(captures)
}

#[test]
fn af_packet_sends_the_frames_of_the_capture() {
    check_backend_with_all_captures("af_packet", &["af_packet"]);
}

#[test]
fn af_xdp_sends_the_frames_of_the_capture() {
    check_backend_with_all_captures("af_xdp", &["af_xdp"]);
}

#[test]
fn xdp_sends_the_frames_of_the_capture() {
    check_backend_with_all_captures("xdp", &["xdp"]);
}

#[test]
fn auto_sends_the_frames_of_the_capture() {
    check_backend_with_all_captures("auto", &["af_packet", "af_xdp", "xdp"]);
}

#[test]
fn every_backend_rejects_and_reports_the_same_frames_over_the_mtu() {
    if !can_run(&["clang"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let sample = &traffic(1, 1)[0];
    let untagged: &[u8] = &[0x08, 0x00];
    let (customer, service) = (&[0x81, 0, 0, 7, 0x08, 0][..], &[0x88, 0xa8, 0, 7, 0x08, 0][..]);
    // Tagged frames first: Linux delivers them to packet sockets before untagged ones that arrived
    // in the same batch.
    let fitting = [(service, 1518), (customer, 1518), (untagged, 1514)];
    let long = [(untagged, 1515), (untagged, 1518), (untagged, 1519), (untagged, 9000)];
    let packets: Vec<Packet> = fitting
        .into_iter()
        .chain(long)
        .map(|(kind, length)| {
            let mut frame = [&sample.frame[..12], kind, &sample.frame[14..]].concat();
            frame.resize(length, 0);
            Packet { time: sample.time, frame }
        })
        .collect();
    let path = write_capture(&scratch, "long.pcap", &packets);
    for backend in ["af_packet", "af_xdp", "xdp"] {
        let lab = Lab::new().unwrap();
        let receiver = Receiver::start(&lab.b).unwrap();
        let path = path.to_str().unwrap();
        let port = lab.a.port();
        let arguments = ["-t", "--backend", backend, "-i", &port, path];
        let outcome = replay(arguments).expect(3);
        let captured = receiver.finish(3).unwrap();
        assert_same_frames(backend, frames(&packets[..3]), captured.frames());
        assert_eq!(outcome.number("/achieved/refused/too_long"), 4, "{outcome}");
        assert_eq!(outcome.number("/achieved/refused/too_long_max"), 9000, "{outcome}");
        assert_eq!(outcome.number("/ports/0/tx/failed"), 4, "none but those: {outcome}");
        assert!(outcome.lines("/notes").starts_with("4 frames were longer"), "{outcome}");
        assert!(outcome.lines("/notes").contains("--mtu-trunc"), "{outcome}");

        let receiver = Receiver::start(&lab.b).unwrap();
        let outcome = replay(["--mtu-trunc"].into_iter().chain(arguments)).expect(0);
        let captured = receiver.finish(7).unwrap();
        let lengths: Vec<usize> = captured.frames().map(<[u8]>::len).collect();
        assert_eq!(lengths, [1518, 1518, 1514, 1514, 1514, 1514, 1514], "{outcome}");
    }
}

#[test]
fn write_keeps_frames_and_gaps_of_the_capture() {
    let scratch = Scratch::new().unwrap();
    let capture = write_capture(&scratch, "own.pcap", &traffic(300, 1));
    let mut captures = vec![capture];
    captures.extend(shared_captures().into_iter().flatten());
    for path in captures {
        let written = scratch.file("written.pcap");
        let outcome = replay([Path::new("-w"), &written, &path]).expect(0);
        let (expected, found) = (pcap::read(&path).unwrap(), pcap::read(&written).unwrap());
        assert_same_frames(&path.display().to_string(), frames(&expected), frames(&found));
        assert_eq!(outcome.number("/achieved/packets"), expected.len() as u64);
        let distances = |packets: &[Packet]| -> Vec<u64> {
            packets.windows(2).map(|pair| pair[1].time.saturating_sub(pair[0].time)).collect()
        };
        assert_eq!(distances(&expected), distances(&found), "{}", path.display());
    }
}

#[test]
fn every_pass_of_a_loop_sends_all_frames() {
    if !can_run(&["clang"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let packets = traffic(20, 2);
    let path = write_capture(&scratch, "own.pcap", &packets);
    for backend in ["af_packet", "af_xdp", "xdp"] {
        let lab = Lab::new().unwrap();
        let receiver = Receiver::start(&lab.b).unwrap();
        let path = path.to_str().unwrap();
        let port = lab.a.port();
        let outcome =
            replay(["-t", "--loop", "50", "--backend", backend, "-i", &port, path]).expect(0);
        let expected = std::iter::repeat_n(&packets, 50).flat_map(|packets| frames(packets));
        let captured = receiver.finish(50 * packets.len() as u64).unwrap();
        assert_same_frames(backend, expected, captured.frames());
        assert_eq!(outcome.number("/achieved/passes"), 50);
    }
}

#[test]
fn workers_on_two_queues_send_the_same_frames_and_keep_flow_order() {
    if !can_run(&["tshark", "clang"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let packets = traffic(300, 3);
    let path = write_capture(&scratch, "own.pcap", &packets);
    let sent = by_flow(&path);
    assert!(sent.len() > 300, "two flows for most conversations");
    for backend in ["af_packet", "af_xdp", "xdp", "auto"] {
        let lab = Lab::with(&LabOptions { queues: 2, ..LabOptions::default() }).unwrap();
        let receiver = Receiver::start(&lab.b).unwrap();
        let path = path.to_str().unwrap();
        let port = lab.a.port();
        let outcome =
            replay(["-t", "--workers", "2", "--backend", backend, "-i", &port, path]).expect(0);
        let captured = receiver.finish(packets.len() as u64).unwrap();
        // The in-kernel sender also works with fewer CPUs than workers, which then share them.
        let used = outcome.text("/ports/0/backend");
        assert!(backend == "auto" || used == backend, "{used} for {backend}: {outcome}");
        assert_eq!(outcome.number("/achieved/packets"), packets.len() as u64);
        assert_eq!(captured.packets.len(), packets.len(), "{backend}");
        let arrived = by_flow(&captured.path());
        assert_eq!(sent.keys().collect::<Vec<_>>(), arrived.keys().collect::<Vec<_>>());
        for (flow, expected) in &sent {
            let what = format!("{backend}: {flow:?}");
            assert_same_frames(&what, frames(expected), frames(&arrived[flow]));
        }
    }
}

/// The packets of each flow in order, with flows identified by tshark.
fn by_flow(path: &Path) -> BTreeMap<Vec<String>, Vec<Packet>> {
    let fields = [
        "vlan.id",
        "ip.src",
        "ip.dst",
        "ipv6.src",
        "ipv6.dst",
        "tcp.srcport",
        "tcp.dstport",
        "udp.srcport",
        "udp.dstport",
        "arp.src.proto_ipv4",
    ];
    let rows = tshark::fields(path, "", &fields).unwrap();
    let packets = pcap::read(path).unwrap();
    assert_eq!(rows.len(), packets.len());
    let mut flows: BTreeMap<Vec<String>, Vec<Packet>> = BTreeMap::new();
    for (flow, packet) in rows.into_iter().zip(packets) {
        flows.entry(flow).or_default().push(packet);
    }
    flows
}
