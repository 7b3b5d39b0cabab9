//! Clients behind routers whose MAC addresses are resolved.

use std::process::Stdio;

use wirestorm_e2e::{Outcome, can_run, run_command, start_command, write_capture};
use wirestorm_testkit::net::{CaptureOptions, End, Lab, LabOptions, RouterLab};
use wirestorm_testkit::{Scratch, tshark};

use super::reports::wait_for_frames;
use super::{KilledOnDrop, curl, emulate, host, plan, serve, stop_with_failures};

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

/// Runs the profile between two ports with a client configuration.
fn run(scratch: &Scratch, ends: [&End; 2], configuration: &str) -> Outcome {
    let file = |name: &str, text: &str| {
        std::fs::write(scratch.file(name), text).unwrap();
        scratch.file(name)
    };
    std::fs::copy(CAPTURE, scratch.file("both.pcap")).unwrap();
    let mut command = emulate(&file("profile.yaml", PROFILE));
    // Frames of this backend pass through the kernel, where tcpdump sees them.
    command.args(["--backend", "af_packet", "--force-interface"]);
    command.arg("--client_cfg").arg(file("clients.yaml", configuration));
    for (port, end) in ["clients", "servers"].iter().zip(ends) {
        command.args(["--port", &format!("{port}={}", end.port())]);
    }
    run_command(&mut command)
}

fn assert_all_closed(outcome: &Outcome) {
    for port in [0, 1] {
        assert_eq!(
            outcome.number(&format!("/ports/{port}/connections/flows/closed")),
            16,
            "{outcome}"
        );
        assert_eq!(
            outcome.number(&format!("/ports/{port}/connections/flows/failed")),
            0,
            "{outcome}"
        );
    }
}

#[test]
fn clients_use_the_routers_of_the_configuration() {
    if !can_run(&["tcpdump"]) {
        return;
    }
    let (lab, scratch) =
        (RouterLab::with(&LabOptions::default()).unwrap(), Scratch::new().unwrap());
    // Two addresses of Linux, which resolves both ports to send replies.
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
    assert_all_closed(&outcome);
    // Linux has resolved both ports itself.
    let neighbours = router.command("ip").args(["neigh", "show"]).output().unwrap();
    let neighbours = String::from_utf8(neighbours.stdout).unwrap();
    for address in ["1.1.1.100 ", "2.2.2.100 "] {
        assert!(neighbours.contains(address), "{neighbours}");
    }
    // One of the routers does not exist.
    let three = CONFIGURATION.replace("count: 2", "count: 3");
    let messages = run(&scratch, [&lab.a, &lab.b], &three).expect(2).messages.clone();
    assert!(messages.contains("1.1.1.3 did not answer"), "{messages}");
    // Without `src_ip` there is no source address for ARP requests.
    let nobody = CONFIGURATION.replace(", src_ip: 1.1.1.100", "");
    let messages = run(&scratch, [&lab.a, &lab.b], &nobody).expect(2).messages.clone();
    let expected = "[0].cap_info[0].client.devices[0]: no source address to resolve the next hop";
    assert!(messages.contains(expected), "{messages}");
}

#[test]
fn routers_are_resolved_in_their_vlans() {
    if !can_run(&["tcpdump", "tshark"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    // The servers' port is the next hop itself: for the first clients in one VLAN, for others in
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
    assert_all_closed(&outcome);
    let captured = capture.finish(outcome.number("/ports/0/tx/packets")).unwrap();
    let path = write_capture(&scratch, "arrived.pcap", &captured.packets);
    let mac = lab.b.mac().map(|byte| format!("{byte:02x}")).join(":");
    for row in tshark::fields(&path, "tcp", &["ip.src", "vlan.id", "eth.dst"]).unwrap() {
        let vlan = if ["16.0.0.1", "16.0.0.2"].contains(&row[0].as_str()) { "100" } else { "200" };
        assert_eq!([&row[1], &row[2]], [vlan, &mac], "{row:?}");
    }
    let rows = tshark::fields(&path, "arp", &["arp.src.proto_ipv4", "vlan.id"]).unwrap();
    for expected in [["1.1.1.100", "100"], ["2.2.2.100", "200"]] {
        assert!(rows.iter().any(|row| row[..] == expected), "{rows:?}");
    }
}

/// New MAC address of a host.
const NEW: &str = "02:00:00:00:00:77";

/// Flushes the neighbour table of a Linux host, and changes its MAC address.
fn move_away(end: &End) {
    end.namespace().ip(&[&format!("link set veth1 address {NEW}")]).unwrap();
}

/// A Linux host that serves pages, until it is dropped.
fn pages(end: &End, address: &str, folder: &Scratch) -> KilledOnDrop {
    let mut server = end.command("python3");
    server.args(["-m", "http.server", "80", "-b", address]).current_dir(folder.path());
    let server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let server = KilledOnDrop(server);
    assert!(!curl(end, address, 1).is_empty());
    server
}

const CLIENTS: &str = r#"
ports: [{name: clients, addresses: 198.51.100.1/24}]
templates:
  - name: page
    http: {path: /}
    client:
      tx: clients
      addresses: 198.51.100.40-198.51.100.47
      servers: 198.51.100.2
      load: {rate: 40}
      limit: 360
latency: [{from: clients, to: 198.51.100.2, rate: 20}]
"#;

#[test]
fn frames_go_directly_to_servers_in_the_network() {
    if !can_run(&["python3", "curl"]) {
        return;
    }
    let (lab, other, scratch) = (Lab::new().unwrap(), Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    let _server = pages(&lab.b, "198.51.100.2", &scratch);
    // Another host on the same Ethernet, and one behind it.
    let place = other.b.namespace();
    lab.b
        .namespace()
        .ip(&[&format!("link add link veth1 name second netns {} type macvlan", place.name())])
        .unwrap();
    place.ip(&["addr add 198.51.100.3/24 dev second", "link set second up"]).unwrap();
    place.ip(&["addr add 192.0.2.1/32 dev lo"]).unwrap();
    let _others = ["198.51.100.3", "192.0.2.1"].map(|it| pages(&other.b, it, &scratch));
    let text = |servers: &str, limit: u32| {
        format!(
            "ports: [{{name: clients, addresses: 198.51.100.1/24, gateway: 198.51.100.3}}]\n\
             templates:\n  - name: page\n    http: {{path: /}}\n    client: {{tx: clients, \
             servers: {servers}, load: {{rate: 50}}, limit: {limit}}}\n"
        )
    };
    for servers in ["198.51.100.2-198.51.100.3", "192.0.2.1"] {
        let plan = plan(&scratch, &text(servers, 10));
        let port = format!("clients={}", lab.a.port());
        let outcome = run_command(emulate(&plan).args(["--port", &port])).expect(0);
        assert_eq!(outcome.number("/ports/0/connections/flows/closed"), 10, "{outcome}");
        assert_eq!(outcome.number("/ports/0/connections/flows/failed"), 0, "{outcome}");
    }
    // An unresolved server is reported before sending.
    let plan = plan(&scratch, &text("198.51.100.2-198.51.100.4", 10));
    let port = format!("clients={}", lab.a.port());
    let messages = run_command(emulate(&plan).args(["--port", &port])).expect(2).messages.clone();
    assert!(messages.contains("198.51.100.4 did not answer"), "{messages}");
}

#[test]
fn clients_follow_a_next_hop_with_a_new_mac_address() {
    if !can_run(&["python3", "curl", "nft"]) {
        return;
    }
    for says_so in [true, false] {
        let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
        host(&lab.b);
        let _server = pages(&lab.b, "198.51.100.2", &scratch);
        let plan = plan(&scratch, CLIENTS);
        let before = lab.b.counters().unwrap().rx_packets;
        let mut command = emulate(&plan);
        command.args(["--drain-timeout", "20s", "--port", &format!("clients={}", lab.a.port())]);
        let running = start_command(&mut command);
        wait_for_frames(&lab.b, before + 300);
        if !says_so {
            // The host sends no ARP requests, and replies only to requests.
            let rules = "add table arp t; \
                add chain arp t c { type filter hook output priority 0; }; \
                add rule arp t c arp operation request drop";
            assert!(lab.b.command("nft").arg(rules).status().unwrap().success());
        }
        move_away(&lab.b);
        if !says_so {
            let mac = lab.a.mac().map(|byte| format!("{byte:02x}")).join(":");
            let addresses = (40..48).map(|last| format!("198.51.100.{last}"));
            let addresses = addresses.chain(["198.51.100.1".into()]);
            let lines: Vec<_> = addresses
                .map(|it| format!("neigh replace {it} lladdr {mac} dev veth1 nud permanent"))
                .collect();
            lab.b.namespace().ip(&lines.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        }
        let outcome = running.wait();
        let closed = outcome.number("/ports/0/connections/flows/closed");
        assert_eq!(
            (closed, outcome.number("/ports/0/connections/flows/failed")),
            (360, 0),
            "{outcome}"
        );
        let notes = outcome.result()["notes"].to_string();
        assert!(notes.contains("198.51.100.2 moved from"), "{says_so} {outcome}");
        assert!(notes.contains(&format!("to {NEW}")), "{outcome}");
        // Probes use the new address too, after nine seconds.
        let [sent, received] =
            ["sent", "received"].map(|it| outcome.number(&format!("/latency/0/{it}")));
        assert!(received > 10 && received + 200 > sent, "{outcome}");
    }
}

#[test]
fn servers_follow_clients_with_a_new_mac_address() {
    if !can_run(&["curl"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    let text = r#"
ports: [{name: servers, addresses: 198.51.100.1/24}]
templates:
  - name: page
    http: {path: /, response: {body: 20000000}}
    server: {tx: servers, port: 80}
"#;
    let servers = serve(&lab, &scratch, text);
    assert_eq!(curl(&lab.b, "198.51.100.1", 1).len(), 20_000_000);
    // Remove the entry from the announcement, so that the host sends an ARP request and the server
    // learns its address.
    lab.b.namespace().ip(&["neigh flush dev veth1"]).unwrap();
    let mut slow = lab.b.command("curl");
    slow.args([
        "--silent",
        "--show-error",
        "--max-time",
        "60",
        "--limit-rate",
        "5M",
        "http://198.51.100.1/",
    ]);
    let before = lab.b.counters().unwrap().rx_packets;
    let mut slow = slow.arg("-o").arg(scratch.file("page")).spawn().unwrap();
    wait_for_frames(&lab.b, before + 300);
    move_away(&lab.b);
    let status = slow.wait().unwrap();
    if !status.success() {
        panic!("{status}: {}", stop_with_failures(servers));
    }
    assert_eq!(std::fs::metadata(scratch.file("page")).unwrap().len(), 20_000_000);
    let outcome = stop_with_failures(servers);
    assert!(outcome.result()["notes"].to_string().contains(&format!("to {NEW}")), "{outcome}");
}
