//! Edits of frames, checked with tshark.

use std::path::Path;

use wirestorm_e2e::{Receiver, can_run, replay, traffic, write_capture};
use wirestorm_testkit::net::Lab;
use wirestorm_testkit::pcap::Packet;
use wirestorm_testkit::require::require_tool;
use wirestorm_testkit::{Scratch, tshark};

struct Case {
    arguments: &'static [&'static str],
    /// Display filter for the packets that have the field.
    filter: &'static str,
    field: &'static str,
    /// Expected value of the field, from the value before the edit.
    edited: fn(&str) -> String,
}

const fn case(
    arguments: &'static [&'static str],
    filter: &'static str,
    field: &'static str,
    edited: fn(&str) -> String,
) -> Case {
    Case { arguments, filter, field, edited }
}

const CASES: [Case; 11] = [
    case(&["--enet-dmac", "02:00:00:00:00:aa"], "", "eth.dst", |_| "02:00:00:00:00:aa".into()),
    case(&["--enet-smac", "02:00:00:00:00:bb"], "", "eth.src", |_| "02:00:00:00:00:bb".into()),
    case(&["--pnat", "10.0.0.0/8:172.16.0.0/16"], "ip", "ip.src", |address| {
        mapped(address, "10.0.", "172.16.")
    }),
    case(&["--pnat", "10.0.0.0/8:172.16.0.0/16"], "ip", "ip.dst", |address| {
        mapped(address, "10.0.", "172.16.")
    }),
    case(&["--srcipmap", "198.18.0.0/16:203.0.0.0/16"], "ip", "ip.src", |address| {
        mapped(address, "198.18.", "203.0.")
    }),
    case(&["--portmap", "443:8443"], "tcp", "tcp.dstport", |port| {
        if port == "443" { "8443" } else { port }.into()
    }),
    case(&["--portmap", "53:5353"], "udp", "udp.srcport", |port| {
        if port == "53" { "5353" } else { port }.into()
    }),
    case(&["--ttl", "7"], "ip", "ip.ttl", |_| "7".into()),
    case(&["--ttl", "-3"], "ipv6", "ipv6.hlim", |limit| {
        (limit.parse::<u32>().unwrap() - 3).to_string()
    }),
    case(&["--tos", "184"], "ip", "ip.dsfield", |_| "0xb8".into()),
    case(&["--flowlabel", "4660"], "ipv6", "ipv6.flow", |_| "0x001234".into()),
];

fn mapped(address: &str, from: &str, to: &str) -> String {
    match address.strip_prefix(from) {
        Some(rest) => format!("{to}{rest}"),
        None => address.into(),
    }
}

/// Filter for packets with a wrong checksum.
const BAD_CHECKSUM: &str =
    "ip.checksum.status == 0 || tcp.checksum.status == 0 || udp.checksum.status == 0";

fn column(path: &Path, filter: &str, field: &str) -> Vec<String> {
    tshark::fields(path, filter, &[field]).unwrap().into_iter().map(|row| row.join(",")).collect()
}

#[test]
fn edits_change_the_fields_and_keep_checksums_valid() {
    if !can_run(&["clang", "tshark"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let packets = traffic(60, 13);
    let path = write_capture(&scratch, "own.pcap", &packets);
    let lab = Lab::new().unwrap();
    for Case { arguments, filter, field, edited } in CASES {
        let receiver = Receiver::start(&lab.b).unwrap();
        let port = lab.a.port();
        let target = ["-t", "-i", &port, path.to_str().unwrap()];
        replay(arguments.iter().copied().chain(target)).expect(0);
        let captured = receiver.finish(packets.len() as u64).unwrap();
        assert_eq!(captured.packets.len(), packets.len());
        let before = column(&path, filter, field);
        let expected: Vec<String> = before.iter().map(|value| edited(value)).collect();
        assert_ne!(before, expected, "{arguments:?} {field}: the sample has nothing to edit");
        assert_eq!(column(&captured.path(), filter, field), expected, "{arguments:?} {field}");
        assert_eq!(tshark::count(&captured.path(), BAD_CHECKSUM).unwrap(), 0, "{arguments:?}");
    }
}

/// Replays a capture with edits to a file.
fn edited(scratch: &Scratch, arguments: &[&str], path: &Path) -> std::path::PathBuf {
    let written = scratch.file("written.pcap");
    let target = ["-w", written.to_str().unwrap(), path.to_str().unwrap()];
    replay(arguments.iter().copied().chain(target)).expect(0);
    written
}

#[test]
fn vlan_tags_are_added_removed_and_changed() {
    if !require_tool("tshark") {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let path = write_capture(&scratch, "own.pcap", &traffic(100, 14));
    let before = column(&path, "", "vlan.id");
    assert!(before.iter().any(String::is_empty) && before.iter().any(|id| !id.is_empty()));

    let push = ["--enet-vlan", "add", "--enet-vlan-tag", "77", "--enet-vlan-pri", "5"];
    let written = edited(&scratch, &push, &path);
    let expected: Vec<String> = before
        .iter()
        .map(|id| if id.is_empty() { "77".into() } else { format!("77,{id}") })
        .collect();
    assert_eq!(column(&written, "", "vlan.id"), expected);
    assert_eq!(tshark::count(&written, "vlan.priority == 5").unwrap(), before.len());

    let written = edited(&scratch, &["--enet-vlan", "del"], &path);
    assert!(column(&written, "", "vlan.id").iter().all(String::is_empty));
    assert_eq!(column(&written, "", "ip.src"), column(&path, "", "ip.src"));

    let written = edited(&scratch, &["--enet-vlan", "set", "--enet-vlan-tag", "88"], &path);
    let expected: Vec<String> =
        before.iter().map(|id| if id.is_empty() { "" } else { "88" }.into()).collect();
    assert_eq!(column(&written, "", "vlan.id"), expected);
}

#[test]
fn wrong_checksums_are_fixed_only_on_request() {
    if !require_tool("tshark") {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let mut packets = traffic(30, 15);
    let is_plain_ipv4 =
        |packet: &&mut Packet| packet.frame[12..14] == [0x08, 0x00] && packet.frame.len() > 60;
    let mut damaged = 0;
    for packet in packets.iter_mut().filter(is_plain_ipv4) {
        // Checksum of the IPv4 header.
        packet.frame[24] ^= 0x55;
        damaged += 1;
    }
    let path = write_capture(&scratch, "wrong.pcap", &packets);
    assert!(damaged > 0);
    assert_eq!(tshark::count(&edited(&scratch, &[], &path), BAD_CHECKSUM).unwrap(), damaged);
    assert_eq!(tshark::count(&edited(&scratch, &["-C"], &path), BAD_CHECKSUM).unwrap(), 0);
}

#[test]
fn frames_over_the_mtu_are_truncated_on_request_and_counted() {
    if !can_run(&["clang", "tshark"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let mut sample = traffic(30, 16)
        .into_iter()
        .find(|packet| packet.frame[12..14] == [0x08, 0x00] && packet.frame[23] == 17);
    let sample = sample.as_mut().unwrap();
    // An IPv4 packet of 3000 bytes, headers included.
    sample.frame.resize(3014, 0x5a);
    sample.frame[16..18].copy_from_slice(&3000_u16.to_be_bytes());
    let path = write_capture(&scratch, "long.pcap", std::slice::from_ref(sample));
    for backend in ["af_packet", "af_xdp", "xdp"] {
        let lab = Lab::new().unwrap();
        let receiver = Receiver::start(&lab.b).unwrap();
        let port = lab.a.port();
        let target = ["--backend", backend, "-i", &port, path.to_str().unwrap()];
        replay(["-t", "--mtu-trunc", "-C"].into_iter().chain(target)).expect(0);
        let captured = receiver.finish(1).unwrap();
        let lengths: Vec<usize> = captured.frames().map(<[u8]>::len).collect();
        assert_eq!(lengths, [1514], "{backend}");
        assert_eq!(column(&captured.path(), "ip", "ip.len"), ["1500"], "{backend}");
        assert_eq!(tshark::count(&captured.path(), "ip.checksum.status == 1").unwrap(), 1);
    }
}
