//! Client and server sides on two interfaces.

use std::process::Command;

use wirestorm_e2e::{assert_same_frames, can_run, frames, replay, traffic, write_capture};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{CaptureOptions, Lab};
use wirestorm_testkit::pcap::Packet;

/// Two links; the first has the client side.
struct Pair {
    client: Lab,
    server: Lab,
}

impl Pair {
    fn new() -> Self {
        Self { client: Lab::new().unwrap(), server: Lab::new().unwrap() }
    }

    /// Replays to both interfaces; returns the frames received from the client and the server side.
    fn replay(&self, arguments: &[&str], expected: [usize; 2]) -> [Vec<Packet>; 2] {
        let bulk = CaptureOptions::bulk();
        let captures = [&self.client, &self.server].map(|lab| lab.b.capture_with(&bulk).unwrap());
        let [client, server] = [self.client.a.port(), self.server.a.port()];
        let target = ["-t", "-i", &client, "-I", &server];
        let outcome = replay(target.into_iter().chain(arguments.iter().copied())).expect(0);
        assert_eq!(outcome.number("/ports/0/tx/packets"), expected[0] as u64, "{outcome}");
        assert_eq!(outcome.number("/ports/1/tx/packets"), expected[1] as u64, "{outcome}");
        let [client, server] = captures;
        [(client, expected[0]), (server, expected[1])]
            .map(|(capture, expected)| capture.finish(expected as u64).unwrap().packets)
    }
}

/// Sides of the sample traffic, from the role in the second byte of its MAC addresses.
fn sample_sides(packets: &[Packet]) -> [Vec<Packet>; 2] {
    let (client, server) = packets.iter().cloned().partition(|packet| packet.frame[7] == 1);
    [client, server]
}

fn remove_arp(packets: Vec<Packet>) -> Vec<Packet> {
    packets.into_iter().filter(|packet| packet.frame[12..14] != [0x08, 0x06]).collect()
}

#[test]
fn split_auto_finds_the_sides_of_clients_and_servers() {
    if !can_run(&[]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let packets = remove_arp(traffic(60, 17));
    let path = write_capture(&scratch, "own.pcap", &packets);
    let path = path.to_str().unwrap();
    let pair = Pair::new();
    let expected = sample_sides(&packets);
    let counts = [expected[0].len(), expected[1].len()];
    for rule in ["auto", "first", "cidr:10.0.0.0/8,fd00::/16"] {
        let arrived = pair.replay(&["--split", rule, path], counts);
        for (expected, arrived) in expected.iter().zip(&arrived) {
            assert_same_frames(rule, frames(expected), frames(arrived));
        }
    }
    let reverse = ["--split", "first", "--split-reverse", path];
    let arrived = pair.replay(&reverse, [counts[1], counts[0]]);
    assert_same_frames("reverse", frames(&expected[1]), frames(&arrived[0]));
}

#[test]
fn tcpprep_cache_selects_the_same_sides_as_tcpreplay() {
    if !can_run(&["tcpprep"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let packets = traffic(60, 18);
    let path = write_capture(&scratch, "own.pcap", &packets);
    let path = path.to_str().unwrap();
    let cache = scratch.file("own.cache");
    let cache = cache.to_str().unwrap();
    let mut tcpprep = Command::new("tcpprep");
    tcpprep.args(["--cidr=10.0.0.0/8,fd00::/16", "-i", path, "-o", cache]);
    let output = tcpprep.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    // Apply the cache's rule to addresses, independently of the cache. Frames without IP go to the
    // server side.
    let is_client = |packet: &Packet| packet.frame[7] == 1 && packet.frame[12..14] != [0x08, 0x06];
    let (client, server): (Vec<Packet>, Vec<Packet>) = packets.iter().cloned().partition(is_client);
    let arrived = Pair::new().replay(&["-c", cache, path], [client.len(), server.len()]);
    assert_same_frames("client", frames(&client), frames(&arrived[0]));
    assert_same_frames("server", frames(&server), frames(&arrived[1]));
}

#[test]
fn two_files_provide_the_two_sides() {
    if !can_run(&[]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let sides = sample_sides(&traffic(40, 19));
    let paths = [("client.pcap", &sides[0]), ("server.pcap", &sides[1])]
        .map(|(name, packets)| write_capture(&scratch, name, packets));
    let [client, server] = paths.each_ref().map(|path| path.to_str().unwrap());
    let counts = [sides[0].len(), sides[1].len()];
    let arrived = Pair::new().replay(&["--dualfile", client, server], counts);
    for (expected, arrived) in sides.iter().zip(&arrived) {
        assert_same_frames("dualfile", frames(expected), frames(arrived));
    }
}

#[test]
fn mac_addresses_differ_by_side() {
    if !can_run(&[]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let packets = remove_arp(traffic(20, 20));
    let path = write_capture(&scratch, "own.pcap", &packets);
    let expected = sample_sides(&packets).map(|packets| packets.len());
    let both = "02:00:00:00:00:01,02:00:00:00:00:02";
    let arguments = ["--split", "first", "--enet-dmac", both, path.to_str().unwrap()];
    let arrived = Pair::new().replay(&arguments, expected);
    for (packets, last) in arrived.iter().zip([1, 2]) {
        assert!(packets.iter().all(|packet| packet.frame[..6] == [2, 0, 0, 0, 0, last]), "{last}");
    }
}

#[test]
fn one_interface_cannot_have_both_sides() {
    if !can_run(&[]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let path = write_capture(&scratch, "a.pcap", &traffic(1, 1));
    let lab = Lab::new().unwrap();
    let port = lab.a.port();
    let arguments = ["-i", &port, "-I", &port, "--split", "auto", path.to_str().unwrap()];
    replay(arguments).expect_error(2, &["veth0 is named twice"]);
}
