//! `--rx` and `--verify` with a router that drops and duplicates frames by rule.

use std::process::Command;
use std::time::{Duration, Instant};

use wirestorm_e2e::{Outcome, can_run, replay, start_replay, traffic, write_capture};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{Lab, LabOptions, RouterLab};
use wirestorm_testkit::pcap::Packet;

/// Forwards every frame that arrives from `a` to `b` unchanged, except for nftables rules.
fn wire_through(lab: &RouterLab, rules: &[&str]) {
    let router = &lab.router_a;
    let (from, to) = (router.interface(), lab.router_b.interface());
    let nft = |line: &str| run(router.command("nft").arg(line));
    nft(&format!(
        "add table netdev wire; add chain netdev wire passing \
         {{ type filter hook ingress device {from} priority 0; }}"
    ));
    for rule in rules {
        nft(&format!("add rule netdev wire passing {}", rule.replace("OUT", to)));
    }
    nft(&format!("add rule netdev wire passing fwd to {to}"));
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
}

fn router() -> RouterLab {
    RouterLab::with(&LabOptions::default()).unwrap()
}

fn is_dns(packet: &Packet) -> bool {
    let frame = &packet.frame;
    frame[12..14] == [0x08, 0x00] && frame[23] == 17 && frame[36..38] == [0, 53]
}

const DROP_DNS: &str = "meta protocol ip udp dport 53 drop";
const DOUBLE_NTP: &str = "meta protocol ip udp dport 123 dup to OUT";

/// Traffic without VLANs: the rules see a tag outside the packet.
fn untagged(conversations: u64, seed: u64) -> Vec<Packet> {
    let packets = traffic(conversations, seed).into_iter();
    packets.filter(|packet| packet.frame[12..14] != [0x81, 0x00]).collect()
}

fn check(lab: &RouterLab, options: &[&str], packets: &[Packet]) -> Outcome {
    let scratch = Scratch::new().unwrap();
    let path = write_capture(&scratch, "own.pcap", packets);
    let (a, b) = (lab.a.port(), lab.b.port());
    let target = ["--force-interface", "-i", &a, "--rx", &b, path.to_str().unwrap()];
    let outcome = replay(options.iter().copied().chain(target));
    outcome.assert_no_panic();
    outcome
}

#[test]
fn plain_link_counts_all_frames_without_loss() {
    if !can_run(&[]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let packets = traffic(100, 21);
    let bytes: usize = packets.iter().map(|packet| packet.frame.len()).sum();
    let path = write_capture(&scratch, "own.pcap", &packets);
    let path = path.to_str().unwrap();
    for backend in ["af_packet", "af_xdp", "xdp"] {
        for verify in [&[][..], &["--verify"]] {
            let lab = Lab::new().unwrap();
            let (a, b) = (lab.a.port(), lab.b.port());
            let target = ["--pps", "20000", "--tolerance", "90", "--backend", backend];
            let target = target.into_iter().chain(["-i", &a, "--rx", &b, path]);
            let outcome = replay(target.chain(verify.iter().copied())).expect(0);
            assert_eq!(outcome.number("/ports/1/rx/packets"), packets.len() as u64, "{outcome}");
            assert_eq!(outcome.number("/ports/1/rx/bytes"), bytes as u64, "{outcome}");
            assert_eq!(outcome.number("/ports/1/rx/lost"), 0, "{outcome}");
            let queues = outcome.result()["ports"][1]["rx"]["queues"].as_array().unwrap();
            let sum: u64 = queues.iter().map(|queue| queue["packets"].as_u64().unwrap()).sum();
            assert_eq!(sum, packets.len() as u64, "{outcome}");
            if !verify.is_empty() {
                assert_eq!(
                    outcome.number("/ports/1/rx/verify/intact"),
                    packets.len() as u64,
                    "{outcome}"
                );
                for anomaly in ["reordered", "duplicated", "unexpected", "unverified"] {
                    assert_eq!(
                        outcome.number(&format!("/ports/1/rx/verify/{anomaly}")),
                        0,
                        "{outcome}"
                    );
                }
            }
        }
    }
}

#[test]
fn loss_is_counted_exactly_and_sets_the_exit_status() {
    if !can_run(&["nft"]) {
        return;
    }
    let packets = untagged(100, 22);
    let dropped = packets.iter().filter(|packet| is_dns(packet)).count() as u64;
    assert!(dropped > 0);
    for options in [&["--pps", "10000"][..], &["--pps", "10000", "--verify"]] {
        let lab = router();
        wire_through(&lab, &[DROP_DNS]);
        let options = [options, &["--tolerance", "90"]].concat();
        let outcome = check(&lab, &options, &packets).expect(3);
        let sent = packets.len() as u64;
        assert_eq!(outcome.number("/achieved/packets"), sent);
        assert_eq!(outcome.number("/ports/1/rx/packets"), sent - dropped, "{outcome}");
        assert_eq!(outcome.number("/ports/1/rx/lost"), dropped, "{outcome}");
        let percent = dropped as f64 * 100.0 / sent as f64;
        assert!((outcome.decimal("/ports/1/rx/loss_percent") - percent).abs() < 1e-6, "{outcome}");
    }
}

#[test]
fn duplicates_are_counted_and_do_not_hide_loss() {
    if !can_run(&["nft"]) {
        return;
    }
    let packets = untagged(100, 23);
    let is_ntp = |packet: &&Packet| {
        let frame = &packet.frame;
        frame[12..14] == [0x08, 0x00] && frame[23] == 17 && frame[36..38] == [0, 123]
    };
    let dropped = packets.iter().filter(|packet| is_dns(packet)).count() as u64;
    let doubled = packets.iter().filter(is_ntp).count() as u64;
    assert!(dropped > 0 && doubled > 0);
    let lab = router();
    wire_through(&lab, &[DROP_DNS, DOUBLE_NTP]);
    let options = ["--pps", "10000", "--tolerance", "90", "--verify"];
    let outcome = check(&lab, &options, &packets).expect(3);
    assert_eq!(outcome.number("/ports/1/rx/lost"), dropped, "{outcome}");
    assert_eq!(outcome.number("/ports/1/rx/verify/duplicated"), doubled, "{outcome}");
    assert_eq!(
        outcome.number("/ports/1/rx/verify/intact"),
        packets.len() as u64 - dropped,
        "{outcome}"
    );
    assert_eq!(outcome.number("/ports/1/rx/verify/unexpected"), 0, "{outcome}");
}

fn wait_for_frames(lab: &Lab) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while lab.b.counters().unwrap().rx_packets < 10 {
        assert!(Instant::now() < deadline, "no frame arrives");
        std::thread::yield_now();
    }
}

#[test]
fn verify_counts_frames_of_other_senders_as_unexpected() {
    if !can_run(&["tcpreplay"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let others = traffic(10, 26);
    let noise = write_capture(&scratch, "noise.pcap", &others);
    let path = write_capture(&scratch, "own.pcap", &traffic(20, 25));
    let lab = Lab::new().unwrap();
    let (a, b) = (lab.a.port(), lab.b.port());
    let pace = ["--pps", "1000", "--loop", "0", "--limit", "2000", "--tolerance", "90"];
    let target = ["--verify", "-i", &a, "--rx", &b, path.to_str().unwrap()];
    let running = start_replay(pace.into_iter().chain(target));
    wait_for_frames(&lab);
    let mut tcpreplay = lab.a.command("tcpreplay");
    run(tcpreplay.args(["-q", "-t", "-i", lab.a.interface()]).arg(&noise));
    let outcome = running.wait().expect(0);
    assert_eq!(outcome.number("/ports/1/rx/verify/unexpected"), others.len() as u64, "{outcome}");
    assert_eq!(outcome.number("/ports/1/rx/verify/intact"), 2000, "{outcome}");
    assert_eq!(outcome.number("/ports/1/rx/packets"), 2000 + others.len() as u64, "{outcome}");
    assert_eq!(outcome.number("/ports/1/rx/lost"), 0, "{outcome}");
}

#[test]
fn frames_unsent_after_an_interrupt_are_not_lost() {
    if !can_run(&["clang"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let path = write_capture(&scratch, "own.pcap", &traffic(20, 25));
    for backend in ["af_packet", "xdp"] {
        let lab = Lab::new().unwrap();
        let (a, b) = (lab.a.port(), lab.b.port());
        let pace = ["--pps", "1000", "--loop", "0", "--backend", backend];
        let target = ["--verify", "-i", &a, "--rx", &b, path.to_str().unwrap()];
        let running = start_replay(pace.into_iter().chain(target));
        wait_for_frames(&lab);
        running.signal(rustix::process::Signal::INT);
        let outcome = running.wait().expect(130);
        assert_eq!(
            outcome.number("/ports/1/rx/verify/intact"),
            outcome.number("/achieved/packets"),
            "{outcome}"
        );
        assert_eq!(outcome.number("/ports/1/rx/lost"), 0, "{backend}: {outcome}");
        assert_eq!(outcome.number("/ports/1/rx/verify/duplicated"), 0, "{backend}: {outcome}");
        if backend == "xdp" {
            // Unsent are the frames due within the time by which the ring is filled ahead.
            assert!(outcome.number("/achieved/unsent") > 0, "{outcome}");
        }
    }
}
