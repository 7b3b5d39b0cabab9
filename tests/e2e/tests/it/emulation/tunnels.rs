//! Clients whose packets are carried in GTP-U tunnels.

use std::path::PathBuf;

use wirestorm_e2e::{Outcome, can_run, write_capture};
use wirestorm_testkit::net::{Capture, CaptureOptions, Lab};
use wirestorm_testkit::{Scratch, tshark};

use super::{both_ports, emulate, plan};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/tunnels.yaml");

/// Starts captures at both ends.
fn captures(lab: &Lab) -> [Capture; 2] {
    let options = CaptureOptions { filter: String::new(), ..CaptureOptions::default() };
    [&lab.a, &lab.b].map(|end| end.capture_with(&options).unwrap())
}

/// Writes both captures to one file.
fn written(scratch: &Scratch, captures: [Capture; 2], outcome: &Outcome) -> PathBuf {
    let captured = captures.into_iter().zip(["/ports/1/tx/packets", "/ports/0/tx/packets"]);
    let packets: Vec<_> = captured
        .flat_map(|(capture, sent)| capture.finish(outcome.number(sent)).unwrap().packets)
        .collect();
    write_capture(scratch, "arrived.pcap", &packets)
}

#[track_caller]
fn all_closed(outcome: &Outcome, flows: u64) {
    for port in [0, 1] {
        let number = |name: &str| outcome.number(&format!("/ports/{port}/{name}"));
        assert_eq!(number("connections/flows/closed"), flows, "{outcome}");
        assert_eq!(
            number("connections/flows/failed") + number("connections/flows/no_flow"),
            0,
            "{outcome}"
        );
        assert_eq!(number("tunnels/dropped"), 0, "{outcome}");
        assert_eq!(number("tunnels/encapsulated"), number("tx/packets"), "{outcome}");
    }
    for (port, other) in [(0, 1), (1, 0)] {
        let number =
            |port: u8, name: &str| outcome.number(&format!("/ports/{port}/tunnels/{name}"));
        assert_eq!(number(port, "decapsulated"), number(other, "encapsulated"), "{outcome}");
    }
}

#[test]
fn each_client_uses_its_tunnel_of_the_plan() {
    if !can_run(&["tcpdump", "tshark"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let example = std::fs::read_to_string(EXAMPLE).unwrap();
    let plan = plan(&scratch, &example);
    for backend in ["af_packet", "af_xdp"] {
        let captures = (backend == "af_packet").then(|| captures(&lab));
        let outcome = both_ports(emulate(&plan).args(["--backend", backend]), &lab).expect(0);
        all_closed(&outcome, 202);
        let Some(captures) = captures else { continue };
        let path = written(&scratch, captures, &outcome);
        let fields =
            ["ip.src", "ip.dst", "udp.srcport", "udp.dstport", "gtp.teid", "ip.checksum.status"];
        let rows = tshark::fields(&path, "gtp && tcp", &fields).unwrap();
        assert!(rows.len() > 1_000, "{}", rows.len());
        let mut clients = std::collections::BTreeSet::new();
        for row in &rows {
            // Fields of the outer and of the inner headers.
            let ends = |place: usize| row[place].split_once(',').unwrap();
            let ((from, source), (to, destination)) = (ends(0), ends(1));
            let (client, expected) = match source.starts_with("16.") {
                true => (source, ["10.0.0.1", "10.0.0.2"]),
                false => (destination, ["10.0.0.2", "10.0.0.1"]),
            };
            assert_eq!([from, to], expected, "{row:?}");
            let last: u32 = client.strip_prefix("16.0.0.").unwrap().parse().unwrap();
            let teid = if last == 101 { 7 } else { 999 + last };
            assert_eq!(row[4], format!("{teid:#010x}"), "{row:?}");
            let port = if last == 101 { None } else { Some("2152") };
            assert!(port.is_none_or(|port| row[2] == port), "{row:?}");
            assert_eq!(row[3], "2152", "{row:?}");
            clients.insert(last);
        }
        assert_eq!(clients.len(), 101);
        let wrong = "ip.checksum.status == 0 || udp.checksum.status == 0 || tcp.checksum.status == 0 \
                     || _ws.malformed || (ip && !gtp)";
        assert_eq!(tshark::fields(&path, wrong, &["frame.number"]).unwrap(), [[""; 0]; 0]);
    }
}

#[test]
fn tunnels_over_ipv6_reduce_the_segment_size() {
    if !can_run(&["tcpdump", "tshark"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let text = std::fs::read_to_string(EXAMPLE).unwrap();
    let text = text.replace("10.0.0.1/24", "fd00::1/64").replace("10.0.0.2/24", "fd00::2/64");
    let text = text.replace("10.0.0.1,", "\"fd00::1\",").replace("10.0.0.2", "\"fd00::2\"");
    let text = text.replace("\"fd00::2\"/64", "fd00::2/64");
    let plan = plan(&scratch, &text);
    let captures = captures(&lab);
    let outcome = both_ports(emulate(&plan).args(["--backend", "af_packet"]), &lab).expect(0);
    all_closed(&outcome, 202);
    let path = written(&scratch, captures, &outcome);
    // IPv6, UDP, GTP-U, IP and TCP with options: 1,500 bytes at most.
    let rows =
        tshark::fields(&path, "gtp && tcp", &["frame.len", "ipv6.plen", "tcp.options.mss_val"]);
    let rows = rows.unwrap();
    let length = |row: &Vec<String>| row[0].parse::<u32>().unwrap();
    assert_eq!(rows.iter().map(length).max(), Some(1_514));
    let sizes: Vec<_> =
        rows.iter().map(|row| row[2].as_str()).filter(|it| !it.is_empty()).collect();
    // 1,500 bytes, less 56 around the packet and 40 of its headers.
    assert!(!sizes.is_empty() && sizes.iter().all(|size| *size == "1404"), "{sizes:?}");
    let wrong = "udp.checksum.status == 0 || tcp.checksum.status == 0 || _ws.malformed";
    assert_eq!(tshark::fields(&path, wrong, &["frame.number"]).unwrap(), [[""; 0]; 0]);
}

#[test]
fn frames_of_a_client_without_tunnel_are_counted_instead_of_sent() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let text = std::fs::read_to_string(EXAMPLE).unwrap();
    let text = text.replace("addresses: 16.0.0.1-16.0.0.101", "addresses: 16.0.0.101-16.0.0.102");
    let plan = plan(&scratch, &text.replace("limit: 202", "limit: 2"));
    let mut command = emulate(&plan);
    let outcome =
        both_ports(command.args(["--duration", "500ms", "--drain-timeout", "100ms"]), &lab)
            .expect(3);
    assert_eq!(outcome.number("/ports/0/connections/flows/closed"), 1, "{outcome}");
    let dropped = outcome.number("/ports/0/tunnels/no_tunnel");
    assert!(dropped >= 1, "{outcome}");
    assert_eq!(outcome.number("/ports/0/tunnels/dropped"), dropped, "{outcome}");
    let notes = outcome.lines("/notes");
    assert!(notes.contains(&format!("{dropped} frames of this run were not sent")), "{notes}");
    assert!(notes.contains("give each client one in the port's `tunnels`"), "{notes}");
}
