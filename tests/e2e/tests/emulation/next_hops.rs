//! Clients behind routers, which are asked where they are.

use wirestorm_e2e::{Outcome, can_run, run_command, write_capture};
use wirestorm_testkit::net::{CaptureOptions, End, Lab, LabOptions, RouterLab};
use wirestorm_testkit::{Scratch, tshark};

use super::emulate;

const CAPTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/web-and-mail.pcap");

const PROFILE: &str = "
- duration : 0.9
  generator :
          distribution : \"seq\"
          clients_start : \"16.0.0.1\"
          clients_end   : \"16.0.0.4\"
          servers_start : \"48.0.0.1\"
          servers_end   : \"48.0.0.9\"
  cap_ipg : true
  cap_info :
     - {name: both.pcap, cps: 8, w: 1, plugin_id: 1}
";

const CONFIGURATION: &str = "
vlan: false
groups:
  - ip_start: 16.0.0.1
    ip_end: 16.0.0.4
    initiator: {next_hop: 1.1.1.1, src_ip: 1.1.1.100}
    responder: {next_hop: 2.2.2.1, src_ip: 2.2.2.100}
    count: 2
";

/// Runs the profile between two ports with a configuration of its clients.
fn run(scratch: &Scratch, ends: [&End; 2], configuration: &str) -> Outcome {
    let file = |name: &str, text: &str| {
        std::fs::write(scratch.file(name), text).unwrap();
        scratch.file(name)
    };
    std::fs::copy(CAPTURE, scratch.file("both.pcap")).unwrap();
    let mut command = emulate(&file("profile.yaml", PROFILE));
    // Frames of this backend pass the kernel, where tcpdump sees them.
    command.args(["--backend", "af_packet", "--force-interface"]);
    command.arg("--client_cfg").arg(file("clients.yaml", configuration));
    for (port, end) in ["clients", "servers"].iter().zip(ends) {
        command.args(["--port", &format!("{port}={}", end.port())]);
    }
    run_command(&mut command)
}

fn all_are_said(outcome: &Outcome) {
    for port in [0, 1] {
        assert_eq!(outcome.number(&format!("/ports/{port}/flows/closed")), 16, "{outcome}");
        assert_eq!(outcome.number(&format!("/ports/{port}/flows/failed")), 0, "{outcome}");
    }
}

#[test]
fn clients_go_by_the_routers_that_a_configuration_names() {
    if !can_run(&["tcpdump"]) {
        return;
    }
    let (lab, scratch) =
        (RouterLab::with(&LabOptions::default()).unwrap(), Scratch::new().unwrap());
    // Two addresses of Linux, which finds its way back by asking for those of both ports.
    let [a, b] = [&lab.router_a, &lab.router_b].map(|end| end.interface());
    let lines = [
        format!("addr add 1.1.1.1/24 dev {a}"),
        format!("addr add 1.1.1.2/24 dev {a}"),
        format!("addr add 2.2.2.1/24 dev {b}"),
        "route add 16.0.0.0/8 via 1.1.1.100".into(),
        "route add 48.0.0.0/8 via 2.2.2.100".into(),
    ];
    let router = lab.router_a.namespace();
    router.ip(&lines.each_ref().map(String::as_str)).unwrap();
    let outcome = run(&scratch, [&lab.a, &lab.b], CONFIGURATION).expect(0);
    all_are_said(&outcome);
    // Nobody has told Linux.
    let neighbours = router.command("ip").args(["neigh", "show"]).output().unwrap();
    let neighbours = String::from_utf8(neighbours.stdout).unwrap();
    for address in ["1.1.1.100 ", "2.2.2.100 "] {
        assert!(neighbours.contains(address), "{neighbours}");
    }
    // One of them is not there.
    let three = CONFIGURATION.replace("count: 2", "count: 3");
    let said = run(&scratch, [&lab.a, &lab.b], &three).expect(2).messages.clone();
    assert!(said.contains("1.1.1.3 did not tell its Ethernet address"), "{said}");
    // Somebody has to ask.
    let nobody = CONFIGURATION.replace(", src_ip: 1.1.1.100", "");
    let said = run(&scratch, [&lab.a, &lab.b], &nobody).expect(2).messages.clone();
    let expected = "[0].cap_info[0].client.devices[0]: nobody is there to ask for the next hop";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn routers_are_asked_and_answer_in_their_vlans() {
    if !can_run(&["tcpdump", "tshark"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    // The servers' port is the next hop itself: of the first clients in one VLAN, of others in
    // another one.
    let configuration = "
vlan: true
groups:
  - ip_start: 16.0.0.1
    ip_end: 16.0.0.2
    initiator: {vlan: 100, next_hop: 1.1.1.1, src_ip: 1.1.1.100}
    responder: {vlan: 100, src_ip: 1.1.1.1}
  - ip_start: 16.0.0.3
    ip_end: 16.0.0.4
    initiator: {vlan: 200, next_hop: 2.2.2.1, src_ip: 2.2.2.100}
    responder: {vlan: 200, src_ip: 2.2.2.1}
";
    let options = CaptureOptions { filter: String::new(), ..CaptureOptions::default() };
    let capture = lab.b.capture_with(&options).unwrap();
    let outcome = run(&scratch, [&lab.a, &lab.b], configuration).expect(0);
    all_are_said(&outcome);
    let captured = capture.finish(outcome.number("/ports/0/sent")).unwrap();
    let path = write_capture(&scratch, "arrived.pcap", &captured.packets);
    let mac = lab.b.mac().map(|byte| format!("{byte:02x}")).join(":");
    for row in tshark::fields(&path, "tcp", &["ip.src", "vlan.id", "eth.dst"]).unwrap() {
        let vlan = if ["16.0.0.1", "16.0.0.2"].contains(&row[0].as_str()) { "100" } else { "200" };
        assert_eq!([&row[1], &row[2]], [vlan, &mac], "{row:?}");
    }
    let told = tshark::fields(&path, "arp", &["arp.src.proto_ipv4", "vlan.id"]).unwrap();
    for expected in [["1.1.1.100", "100"], ["2.2.2.100", "200"]] {
        assert!(told.iter().any(|row| row[..] == expected), "{told:?}");
    }
}
