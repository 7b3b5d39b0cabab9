//! Clients behind two VLAN tags and MPLS labels.

use std::process::Stdio;

use wirestorm_e2e::{can_run, run_command, start_command, write_capture};
use wirestorm_testkit::net::{CaptureOptions, End, Lab, LabOptions};
use wirestorm_testkit::{Scratch, tshark};

use super::reports::wait_for_frames;
use super::{KilledOnDrop, both_ports, curl, emulate, plan, stop};

/// Nine clients: three in two VLANs, three behind labels, three behind both.
const PLAN: &str = r#"
ports:
  - {name: clients, addresses: 10.0.0.1/16}
  - {name: servers, addresses: 10.0.1.1/16}
templates:
  - name: page
    client:
      tx: clients
      addresses: 10.0.0.1-10.0.0.9
      servers: 10.0.1.1
      load: {rate: 200}
      limit: 18
      devices:
        - {clients: 10.0.0.1-10.0.0.3, vlan: [5, 7]}
        - {clients: 10.0.0.4-10.0.0.6, mpls: [16, {label: 1048575, tc: 3, ttl: 9}]}
        - {clients: 10.0.0.7-10.0.0.9, vlan: [5, 7], mpls: [1, 2, 3, 4]}
      program: [{send: {size: 9000}}, {receive: 20000}]
    server: {tx: servers, port: 80, program: [{receive: 9000}, {send: {size: 20000}}]}
  - name: datagram
    transport: udp
    client:
      tx: clients
      addresses: 10.0.0.1-10.0.0.9
      servers: 10.0.1.1
      server_port: 7
      load: {rate: 200}
      limit: 9
      devices:
        - {clients: 10.0.0.1-10.0.0.3, vlan: [5, 7]}
        - {clients: 10.0.0.4-10.0.0.6, mpls: [16, {label: 1048575, tc: 3, ttl: 9}]}
        - {clients: 10.0.0.7-10.0.0.9, vlan: [5, 7], mpls: [1, 2, 3, 4]}
      program: [{send_datagram: {size: 3000}}, {receive_datagrams: 1}]
    server: {tx: servers, port: 7, program: [{receive_datagrams: 1}, {send_datagram: {size: 3000}}]}
"#;

#[test]
fn clients_and_servers_use_the_tags_and_labels_of_the_plan() {
    if !can_run(&["tcpdump", "tshark"]) {
        return;
    }
    // With segmentation offload, the default of a veth, and without.
    for offloads in [true, false] {
        tags_and_labels_are_as_the_plan_has_them(offloads);
    }
}

fn tags_and_labels_are_as_the_plan_has_them(offloads: bool) {
    let options = LabOptions { offloads, ..LabOptions::default() };
    let (lab, scratch) = (Lab::with(&options).unwrap(), Scratch::new().unwrap());
    let options = CaptureOptions { filter: String::new(), ..CaptureOptions::default() };
    for backend in ["af_xdp", "af_packet"] {
        let captures = [&lab.a, &lab.b].map(|end| end.capture_with(&options).unwrap());
        let plan = plan(&scratch, PLAN);
        let outcome = both_ports(emulate(&plan).args(["--backend", backend]), &lab).expect(0);
        for port in [0, 1] {
            let number = |name: &str| outcome.number(&format!("/ports/{port}/{name}"));
            assert_eq!(number("connections/flows/closed"), 27, "{outcome}");
            for none in [
                "connections/flows/failed",
                "connections/flows/too_long",
                "tx/failed",
                "connections/udp/pkt_toobig",
            ] {
                assert_eq!(number(none), 0, "{none} {outcome}");
            }
        }
        if backend == "af_xdp" {
            continue;
        }
        for (capture, (port, side)) in captures.into_iter().zip([(1, "dst"), (0, "src")]) {
            let captured =
                capture.finish(outcome.number(&format!("/ports/{port}/tx/packets"))).unwrap();
            let path = write_capture(&scratch, "arrived.pcap", &captured.packets);
            let client = format!("ip.{side}");
            let fields = [
                client.as_str(),
                "ieee8021ad.id",
                "vlan.id",
                "mpls.label",
                "mpls.exp",
                "mpls.ttl",
                "mpls.bottom",
                "frame.len",
            ];
            let rows = tshark::fields(&path, "ip", &fields).unwrap();
            let mut longest = [0; 3];
            for row in &rows {
                let last: usize = row[0].strip_prefix("10.0.0.").unwrap().parse().unwrap();
                let kind = (last - 1) / 3;
                let expected = [
                    ["5", "7", "", "", "", ""],
                    ["", "", "16,1048575", "0,3", "64,9", "0,1"],
                    ["5", "7", "1,2,3,4", "0,0,0,0", "64,64,64,64", "0,0,0,1"],
                ];
                assert_eq!(row[1..7], expected[kind], "{row:?}");
                longest[kind] = longest[kind].max(row[7].parse().unwrap());
            }
            // The MTU of 1,500 bytes includes 802.1ad tags, everything after them, and labels. With
            // all of them the segments are full-sized. The template's segments are no longer with
            // fewer tags, where the longest packets are fragments.
            assert_eq!(longest, [1_514, 1_514, 1_514]);
        }
    }
}

/// A plan with two ports, each the next hop of the other, in two VLANs.
fn next_hops_in_two_vlans(limit: u32) -> String {
    let both = [("a", "b", 1, 2), ("b", "a", 2, 1)].map(|(name, other, here, there)| {
        format!(
            r#"
  - name: from {name}
    client:
      tx: {name}
      addresses: 10.0.9.{here}
      servers: 10.0.9.{there}
      load: {{rate: 100}}
      limit: {limit}
      devices:
        - {{clients: 10.0.9.{here}, vlan: [5, 7], next_hop: 10.0.9.{there}, next_hop_source: 10.0.9.{here}}}
      program: [{{send: {{size: 10}}}}]
    server: {{tx: {other}, port: 80, program: [{{receive: 10}}]}}"#
        )
    });
    format!("ports: [{{name: a}}, {{name: b}}]\ntemplates:{}\n", both.concat())
}

#[test]
fn next_hops_are_resolved_behind_two_tags() {
    if !can_run(&["tcpdump", "tshark"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let plan = plan(&scratch, &next_hops_in_two_vlans(5));
    let options = CaptureOptions { filter: String::new(), ..CaptureOptions::default() };
    for backend in ["af_xdp", "af_packet"] {
        let capture = lab.b.capture_with(&options).unwrap();
        let mut command = emulate(&plan);
        command.args(["--backend", backend, "--port", &format!("a={}", lab.a.port())]);
        command.args(["--port", &format!("b={}", lab.b.port())]);
        let outcome = run_command(&mut command).expect(0);
        assert_eq!(outcome.number("/ports/0/connections/flows/closed"), 10, "{outcome}");
        if backend == "af_xdp" {
            continue;
        }
        let captured = capture.finish(outcome.number("/ports/0/tx/packets")).unwrap();
        let path = write_capture(&scratch, "arrived.pcap", &captured.packets);
        let arp = tshark::fields(&path, "arp", &["arp.src.proto_ipv4", "ieee8021ad.id", "vlan.id"]);
        assert!(arp.unwrap().iter().any(|row| row[..] == ["10.0.9.1", "5", "7"]));
        let mac = lab.b.mac().map(|byte| format!("{byte:02x}")).join(":");
        let rows = tshark::fields(&path, "tcp", &["eth.dst", "ieee8021ad.id", "vlan.id"]).unwrap();
        // A connection has seven segments, of which each side sends at least three.
        assert!(rows.len() >= 10 * 3, "{}", rows.len());
        for row in rows {
            assert_eq!(row[..], [mac.as_str(), "5", "7"]);
        }
    }
}

/// Whether a host that is not resolved yet answers a ping.
fn answers(from: &End, arguments: &[&str]) -> bool {
    from.namespace().ip(&["neigh flush dev veth1"]).unwrap();
    let mut ping = from.command("ping");
    ping.args(["-q", "-c", "2", "-i", "0.2", "-W", "2"]).args(arguments);
    ping.output().unwrap().status.success()
}

#[test]
fn hosts_in_two_vlans_answer_pings_during_a_run() {
    if !can_run(&["ping", "tc", "clang"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let plan = plan(&scratch, &next_hops_in_two_vlans(1_000_000));
    // A Linux host beside the second port.
    lab.b.namespace().ip(&["addr add 10.0.9.77/24 dev veth1"]).unwrap();
    lab.b.join_vlan(Some(5), 7).unwrap();
    for (backend, is_beside) in [("af_packet", true), ("af_xdp", true), ("af_xdp", false)] {
        lab.b.set_vlan_offload(is_beside).unwrap();
        let mut command = emulate(&plan);
        command.args(["--backend", backend, "--port", &format!("a={}", lab.a.port())]);
        command.args(["--port", &format!("b={}", lab.b.port())]);
        let before = lab.b.counters().unwrap().rx_packets;
        let running = start_command(&mut command);
        wait_for_frames(&lab.b, before + 500);
        assert!(answers(&lab.b, &["10.0.9.1"]), "{backend}");
        // The request has the maximum length for one tag, and is 4 bytes longer with two.
        let is_answered = answers(&lab.b, &["-s", "1472", "10.0.9.1"]);
        // XDP drops frames of this length.
        assert!(is_answered || backend == "af_xdp");
        assert!(answers(&lab.b, &["10.0.9.1"]), "{backend}: the host still answers");
        running.signal(rustix::process::Signal::INT);
        let outcome = running.wait();
        outcome.assert_no_panic();
        assert!(outcome.number("/ports/0/connections/flows/closed") > 50, "{outcome}");
    }
}

/// A Linux host in VLANs without neighbours, at the second end of a veth pair.
fn host_in_vlan(outer: Option<u16>, inner: u16) -> Lab {
    let lab = Lab::with(&LabOptions { ipv6: true, ..LabOptions::default() }).unwrap();
    let addresses = ["198.51.100.2/24", "2001:db8:5::2/64 nodad"];
    let lines = addresses.map(|it| format!("addr add {it} dev veth1"));
    lab.b.namespace().ip(&lines.each_ref().map(String::as_str)).unwrap();
    lab.b.join_vlan(outer, inner).unwrap();
    // XDP sees only tags inside the frame.
    lab.b.set_vlan_offload(false).unwrap();
    lab
}

#[test]
fn hosts_behind_tags_resolve_servers() {
    if !can_run(&["curl", "ping", "tc", "clang"]) {
        return;
    }
    let text = r#"
ports: [{name: servers, addresses: 203.0.113.1/24}]
templates:
  - name: page
    http: {path: /, response: {body: 20000}}
    server: {tx: servers, port: 80, addresses: 198.51.100.77-198.51.100.80, vlans: [7, [5, 7]]}
  - name: page of IPv6
    http: {path: /, response: {body: 20000}}
    server: {tx: servers, port: 80, addresses: "2001:db8:5::77", vlans: [7, [5, 7]]}
"#;
    let scratch = Scratch::new().unwrap();
    let plan = plan(&scratch, text);
    for backend in ["af_packet", "af_xdp"] {
        for (outer, inner, is_found) in [(None, 7, true), (Some(5), 7, true), (None, 8, false)] {
            let lab = host_in_vlan(outer, inner);
            let port = format!("servers={}", lab.a.port());
            let servers =
                start_command(emulate(&plan).args(["--backend", backend, "--port", &port]));
            if is_found {
                for address in ["198.51.100.77", "198.51.100.80", "[2001:db8:5::77]"] {
                    assert_eq!(curl(&lab.b, address, 2).len(), 40_000, "{address} {backend}");
                }
            }
            for address in ["198.51.100.78", "2001:db8:5::77"] {
                let found = answers(&lab.b, &["-s", "1400", address]);
                assert_eq!(found, is_found, "{address} {outer:?} {inner} {backend}");
            }
            assert!(!answers(&lab.b, &["198.51.100.81"]), "no server has this address");
            // A port's own addresses are separate from those of its servers.
            lab.b.namespace().ip(&["addr add 203.0.113.2/24 dev veth1"]).unwrap();
            assert!(!answers(&lab.b, &["203.0.113.1"]), "the port has no tags");
            stop(servers);
        }
    }
}

#[test]
fn hosts_resolve_clients_behind_tags() {
    if !can_run(&["python3", "curl", "ping", "tc", "clang"]) {
        return;
    }
    let text = r#"
ports: [{name: clients, addresses: 203.0.113.1/24}]
templates:
  - name: page
    http: {path: /}
    client:
      tx: clients
      addresses: 198.51.100.40-198.51.100.47
      servers: 198.51.100.2
      load: {rate: 50}
      limit: 100
      devices:
        - {clients: 198.51.100.40-198.51.100.47, vlan: [5, 7], next_hop: 198.51.100.2, next_hop_source: 198.51.100.3}
"#;
    let scratch = Scratch::new().unwrap();
    let plan = plan(&scratch, text);
    for backend in ["af_packet", "af_xdp"] {
        let lab = host_in_vlan(Some(5), 7);
        let mut server = lab.b.command("python3");
        server.args(["-m", "http.server", "80", "-b", "198.51.100.2"]).stdout(Stdio::null());
        let folder = scratch.path();
        let _server =
            KilledOnDrop(server.current_dir(folder).stderr(Stdio::null()).spawn().unwrap());
        assert!(!curl(&lab.b, "198.51.100.2", 1).is_empty());
        let mut command = emulate(&plan);
        command.args(["--backend", backend, "--port", &format!("clients={}", lab.a.port())]);
        let clients = start_command(&mut command);
        assert!(answers(&lab.b, &["198.51.100.47"]), "{backend}");
        assert!(!answers(&lab.b, &["198.51.100.48"]), "{backend}: nobody lives there");
        let outcome = clients.wait().expect(0);
        assert_eq!(outcome.number("/ports/0/connections/flows/closed"), 100, "{outcome}");
    }
}
