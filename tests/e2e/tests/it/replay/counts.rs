//! Counts of packets, flows and addresses, compared with tshark.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use wirestorm_e2e::{assert_same_frames, frames, replay, traffic, write_capture};
use wirestorm_testkit::pcap;
use wirestorm_testkit::require::{require_shared_captures, require_tool};
use wirestorm_testkit::{Scratch, tshark};

/// Fields that identify a flow in tshark.
const FLOW: [&str; 11] = [
    "vlan.id",
    "ip.src",
    "ip.dst",
    "ip.proto",
    "ipv6.src",
    "ipv6.dst",
    "ipv6.nxt",
    "tcp.srcport",
    "tcp.dstport",
    "udp.srcport",
    "udp.dstport",
];

/// Filter for packets with a wrong checksum.
const BAD_CHECKSUM: &str =
    "ip.checksum.status == 0 || tcp.checksum.status == 0 || udp.checksum.status == 0";

fn flows(path: &Path) -> BTreeSet<Vec<String>> {
    let rows = tshark::fields(path, "ip || ipv6", &FLOW).unwrap();
    // An ICMP error quotes the headers of another packet. Its own headers come first, and the
    // quoted ports do not belong to it.
    let first = |value: &String| value.split(',').next().unwrap_or_default().to_owned();
    let flow = |row: Vec<String>| {
        let mut row: Vec<String> = row.iter().map(first).collect();
        if row[3] == "1" || row[6] == "58" {
            row[7..].iter_mut().for_each(String::clear);
        }
        row
    };
    rows.into_iter().map(flow).collect()
}

/// Replays a capture to a file.
fn replayed(
    scratch: &Scratch,
    arguments: &[&str],
    path: &Path,
) -> (wirestorm_e2e::Outcome, PathBuf) {
    let written = scratch.file("written.pcap");
    let target = ["-w", written.to_str().unwrap(), path.to_str().unwrap()];
    let outcome = replay(arguments.iter().copied().chain(target)).expect(0);
    (outcome, written)
}

#[test]
fn packet_byte_and_flow_counts_match_tshark() {
    if !require_tool("tshark") {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let mut captures = vec![write_capture(&scratch, "own.pcap", &traffic(300, 9))];
    if let Some(folder) = require_shared_captures() {
        let names = ["mixed_web", "http_get_0", "https_0", "dns_0", "sip_0", "smtp_2", "ipv6"];
        captures.extend(names.map(|name| folder.join(format!("{name}.pcap"))));
    }
    for path in captures {
        let (outcome, _) = replayed(&scratch, &[], &path);
        let lengths = tshark::fields(&path, "", &["frame.len"]).unwrap();
        let bytes: u64 = lengths.iter().map(|row| row[0].parse::<u64>().unwrap()).sum();
        let name = path.display();
        assert_eq!(outcome.number("/achieved/packets"), lengths.len() as u64, "{name}");
        assert_eq!(outcome.number("/achieved/bytes"), bytes, "{name}");
        let ip = tshark::count(&path, "ip || ipv6").unwrap() as u64;
        assert_eq!(outcome.number("/achieved/flows/flow_packets"), ip, "{name}");
        assert_eq!(
            outcome.number("/achieved/flows/non_flow_packets"),
            lengths.len() as u64 - ip,
            "{name}"
        );
        assert_eq!(outcome.number("/achieved/flows/count"), flows(&path).len() as u64, "{name}");
    }
}

#[test]
fn unique_ip_creates_new_flows_in_every_pass_with_valid_checksums() {
    if !require_tool("tshark") {
        return;
    }
    const PASSES: usize = 5;
    let scratch = Scratch::new().unwrap();
    let path = write_capture(&scratch, "own.pcap", &traffic(100, 10));
    let once = flows(&path).len();
    let not_ip = tshark::count(&path, "!ip && !ipv6").unwrap();
    assert!(not_ip > 0, "the sample has ARP");
    for option in ["--unique-ip", "--unique-flows"] {
        let (outcome, written) = replayed(&scratch, &["--loop", "5", option], &path);
        assert_eq!(outcome.number("/achieved/flows/count"), (PASSES * once) as u64, "{option}");
        assert_eq!(flows(&written).len(), PASSES * once, "{option}");
        assert_eq!(tshark::count(&written, BAD_CHECKSUM).unwrap(), 0, "{option}");
        assert_eq!(tshark::count(&written, "!ip && !ipv6").unwrap(), PASSES * not_ip, "{option}");
        // Both directions of a conversation stay together.
        let ports = |path: &Path| -> Vec<Vec<String>> {
            tshark::fields(path, "tcp", &["tcp.srcport", "tcp.dstport"]).unwrap()
        };
        let (original, moved) = (ports(&path), ports(&written));
        assert_eq!(moved.len(), PASSES * original.len());
        assert_eq!(moved[..original.len()], original, "{option}: the first pass is as captured");
        let second = &moved[original.len()..2 * original.len()];
        assert_eq!(second == original, option == "--unique-ip", "{option}: ports of pass two");
    }
}

#[test]
fn passes_with_shared_addresses_are_equal_and_addresses_do_not_repeat() {
    let scratch = Scratch::new().unwrap();
    let packets = traffic(10, 11);
    let path = write_capture(&scratch, "own.pcap", &packets);
    // Address iteration of each pass.
    let cases: [(&str, &[usize]); 3] =
        [("1", &[0, 1, 2, 3, 4, 5]), ("2", &[0, 0, 1, 1, 2, 2]), ("1.5", &[0, 0, 1, 2, 2, 3])];
    for (loops, iterations) in cases {
        let options = ["--loop", "6", "--unique-ip", "--unique-ip-loops", loops];
        let (_, written) = replayed(&scratch, &options, &path);
        let written = pcap::read(&written).unwrap();
        assert_eq!(written.len(), 6 * packets.len());
        let passes: Vec<_> = written.chunks(packets.len()).collect();
        assert_same_frames(loops, frames(&packets), frames(passes[0]));
        for (one, a) in iterations.iter().enumerate() {
            for (other, b) in iterations.iter().enumerate().skip(one + 1) {
                let are_equal = frames(passes[one]).eq(frames(passes[other]));
                assert_eq!(are_equal, a == b, "{loops}: passes {one} and {other}");
            }
        }
    }
}

#[test]
fn only_selected_packets_are_sent() {
    let scratch = Scratch::new().unwrap();
    let packets = traffic(20, 12);
    let path = write_capture(&scratch, "own.pcap", &packets);
    type Wanted = fn(usize) -> bool;
    let cases: [(&[&str], Wanted); 2] = [
        (&["--include", "1-5,9,72-"], |n| n <= 5 || n == 9 || n >= 72),
        (&["--exclude", "1-5,9,72-"], |n| (n > 5 && n < 72) && n != 9),
    ];
    for (arguments, is_sent) in cases {
        let (outcome, written) = replayed(&scratch, arguments, &path);
        let expected =
            frames(&packets).enumerate().filter(|(index, _)| is_sent(index + 1)).map(|(_, f)| f);
        let written = pcap::read(&written).unwrap();
        assert_same_frames(arguments[0], expected, frames(&written));
        assert_eq!(outcome.number("/achieved/filtered"), (packets.len() - written.len()) as u64);
    }
}
