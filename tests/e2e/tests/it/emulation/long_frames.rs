//! Long frames: segmented by the interface, or merged by the kernel.

use wirestorm_e2e::{Outcome, can_run};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{Lab, LabOptions};

use super::{both_ports, emulate, plan, serve, stop};

/// Size of a page with its header: more than one long frame.
const PAGE: usize = 300_000;
const HEADER: &str = r"HTTP/1.1 200 OK\r\nContent-Length: 299957\r\n\r\n";

/// A veth pair with offloads, as the kernel creates it.
fn lab() -> Lab {
    Lab::with(&LabOptions { offloads: true, ipv6: true, ..LabOptions::default() }).unwrap()
}

/// Numbers of frames and of segments that a port sent.
fn sent(outcome: &Outcome, port: usize) -> (u64, u64) {
    let number = |name: &str| outcome.number(&format!("/ports/{port}/{name}"));
    (number("tx/packets"), number("connections/tcp/sndtotal"))
}

#[test]
fn pages_leave_in_long_frames_while_segmentation_offload_is_on() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (lab(), Scratch::new().unwrap());
    for version in ["10.0.0", "fd00::"] {
        let address = |side: u8| match version {
            "fd00::" => format!("fd00::{side}"),
            _ => format!("10.0.0.{side}"),
        };
        let text = format!(
            r#"
ports: [{{name: clients, addresses: "{0}/24"}}, {{name: servers, addresses: "{1}/24"}}]
templates:
  - name: page
    client:
      tx: clients
      servers: "{1}"
      load: {{concurrent: 3}}
      limit: 30
      program: [{{send: {{size: 100}}}}, {{receive: {PAGE}}}]
    server:
      tx: servers
      port: 80
      program: [{{receive: 100}}, {{send: {{size: {PAGE}}}}}]
"#,
            address(1),
            address(2)
        );
        let outcome = both_ports(&mut emulate(&plan(&scratch, &text)), &lab).expect(0);
        let number = |name: &str| outcome.number(name);
        assert_eq!(number("/ports/0/connections/tcp/rcvbyte"), 30 * PAGE as u64, "{outcome}");
        assert_eq!(number("/ports/1/connections/flows/closed"), 30, "{outcome}");
        assert!(
            outcome
                .text("/ports/1/backend_reason")
                .starts_with("not af_xdp: long frames, until: ethtool")
        );
        let (frames, segments) = sent(&outcome, 1);
        assert!(frames * 4 < segments, "{frames} frames of {segments} segments: {outcome}");
        // Both sides count segments, independently of the number in a frame.
        assert_eq!(number("/ports/0/connections/tcp/rcvtotal"), segments, "{outcome}");
        assert!(segments > 30 * PAGE as u64 / 1_460, "{outcome}");
    }
    let text = super::BOTH.replace("{rate: 1000}", "{concurrent: 3}");
    let lab = Lab::new().unwrap();
    let mut command = emulate(&plan(&scratch, &text));
    let outcome = both_ports(command.args(["--backend", "af_packet"]), &lab).expect(0);
    let (frames, segments) = sent(&outcome, 1);
    assert!(frames >= segments, "{frames} frames of {segments} segments: {outcome}");
}

#[test]
fn long_frames_may_have_a_vlan_tag() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (lab(), Scratch::new().unwrap());
    let devices =
        "devices: [{clients: 10.0.0.1-10.0.0.20, vlan: 100}]\n      load: {concurrent: 3}";
    let text = super::BOTH
        .replace("load: {rate: 1000}", devices)
        .replace("20000", "60000")
        .replace("/16", "/8");
    let outcome = both_ports(&mut emulate(&plan(&scratch, &text)), &lab).expect(0);
    assert_eq!(outcome.number("/ports/0/connections/tcp/rcvbyte"), 300 * 2 * 60_000, "{outcome}");
    let (frames, segments) = sent(&outcome, 1);
    assert!(frames * 4 < segments, "{frames} frames of {segments} segments: {outcome}");
}

#[test]
fn linux_receives_long_frames_over_ipv4_and_ipv6() {
    if !can_run(&["curl"]) {
        return;
    }
    let (lab, scratch) = (lab(), Scratch::new().unwrap());
    let addresses = ["198.51.100.77/24", "fd00::77/64"];
    let lines = ["addr add 198.51.100.2/24 dev veth1", "addr add fd00::2/64 dev veth1 nodad"];
    lab.b.namespace().ip(&lines).unwrap();
    for (address, host) in addresses.into_iter().zip(["198.51.100.77", "[fd00::77]"]) {
        let text = format!(
            r#"
ports: [{{name: servers, addresses: "{address}"}}]
templates:
  - name: page
    server:
      tx: servers
      port: 80
      program: [{{receive: 1}}, {{send: {{text: "{HEADER}", size: {PAGE}, fill: "wire"}}}}]
"#
        );
        let server = serve(&lab, &scratch, &text);
        let page = super::curl(&lab.b, host, 1);
        let expected: Vec<u8> = b"wire".iter().copied().cycle().take(299_957).collect();
        assert!(page == expected, "{} bytes, of 299,957", page.len());
        let outcome = stop(server);
        let (frames, segments) = sent(&outcome, 0);
        assert!(frames * 4 < segments, "{frames} frames of {segments} segments: {outcome}");
        assert_eq!(super::retransmitted(&outcome, 0), 0, "{outcome}");
    }
}

#[test]
fn link_drops_segments_instead_of_long_frames() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (lab(), Scratch::new().unwrap());
    let text = super::BOTH
        .replace("10.0.1.1/16}", "10.0.1.1/16, impair: {loss: 1%}}")
        .replace("{rate: 1000}", "{concurrent: 3}");
    let mut command = emulate(&plan(&scratch, &text));
    let outcome =
        both_ports(command.args(["--backend", "af_packet", "--drain-timeout", "30s"]), &lab);
    let outcome = outcome.expect(0);
    let (frames, segments) = sent(&outcome, 1);
    let lost = outcome.number("/ports/1/impairment/lost");
    assert!(lost > 0 && frames + lost >= segments, "{frames} + {lost} of {segments}: {outcome}");
    assert_eq!(
        outcome.number("/ports/0/connections/tcp/rcvbyte"),
        300 * 2 * super::PAGE,
        "{outcome}"
    );
}
