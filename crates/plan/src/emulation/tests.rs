use std::net::IpAddr;
use std::num::NonZeroU16;

use super::*;
use wirestorm_base::rate::Rate;
use wirestorm_base::time::Duration;
use wirestorm_wire::conversation::{self, Act, Conversation, Turn};
use wirestorm_wire::impairment::{Loss, Queue, Share};
use wirestorm_wire::tunnel::ClientTunnels;

const PAGE: &str = r#"
ports:
  - {name: c, addresses: 10.0.0.1/24}
  - {name: s}
templates:
  - name: page
    client:
      tx: c
      servers: 10.0.1.1-10.0.1.255
      load: {rate: 5k}
      limit: 100
      program:
        - send: "GET / HTTP/1.1\r\n\r\n"
        - receive: 32000
        - wait_for_close
      ip: {ttl: 9}
    server:
      tx: s
      tcp: {mss: 900}
      port: 80
      program:
        - receive: 18
        - delay: {min: 1ms, max: 2ms}
        - send: {text: "HTTP/1.1 200 OK\r\n\r\n", size: 32000, fill: ab}
    tcp: {mss: 1460, congestion: new_reno, delayed_ack: 40ms, sack: false}
    ip: {tos: 4}
"#;

#[test]
fn a_template_has_two_ends() {
    let plan = EmulationPlan::parse(PAGE).unwrap();
    let [template] = plan.templates.as_slice() else { panic!("{plan:?}") };
    let (client, server) = (template.client.as_ref().unwrap(), template.server.as_ref().unwrap());
    assert_eq!((client.transmit, server.transmit), (0, 1));
    assert_eq!(client.addresses, None);
    assert_eq!(client.servers.count, 255);
    assert_eq!(
        (client.server_port, client.ports.clone(), client.limit),
        (80, 1_024..=65_535, Some(100))
    );
    assert_eq!(
        client.load,
        Load::Rate { rate: Rate::parse_per_second("5000", 1).unwrap(), at_most: None }
    );
    assert_eq!(client.program[1..], [Step::Receive(32_000), Step::WaitForClose]);
    let delay = Step::Delay { min: Duration::from_millis(1), max: Duration::from_millis(2) };
    let text = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    let send = Step::Send { text, size: 32_000, fill: b"ab".to_vec() };
    assert_eq!(server.program, [Step::Receive(18), delay, send]);
    let tcp = Tcp {
        mss: Some(1_460),
        congestion: Some(Congestion::NewReno),
        delayed_ack_ms: Some(40),
        sack: Some(false),
        ..Tcp::default()
    };
    assert_eq!((client.tcp, server.tcp), (tcp, Tcp { mss: Some(900), ..tcp }));
    assert_eq!(client.ip, Ip { ttl: Some(9), tos: Some(4), ..Ip::default() });
    assert_eq!(server.ip, Ip { ttl: None, tos: Some(4), ..Ip::default() });
}

#[test]
fn the_bounds_of_timeouts_agree_wherever_they_are_said() {
    let said = |both: &str, server: &str| {
        let text = PAGE.replace("{mss: 900}", server);
        let text = text.replace("congestion: new_reno", &format!("congestion: new_reno, {both}"));
        assert!(text.contains(both));
        EmulationPlan::parse(&text).map(|plan| plan.templates.len()).map_err(|it| it.to_string())
    };
    // Where a side says less at most than both say at least, or both than one side.
    for (both, server, expected) in [
        (
            "rto_min: 1s",
            "{rto_max: 500ms}",
            "templates[0].server.tcp.rto_max: found \"500ms\", expected at least rto_min, which is \
             1000ms",
        ),
        (
            "rto_max: 500ms",
            "{rto_min: 1s}",
            "templates[0].tcp.rto_max: found \"500ms\", expected at least rto_min, which is 1000ms",
        ),
        (
            "rto_initial: 2s",
            "{rto_max: 1s}",
            "templates[0].tcp.rto_initial: found \"2s\", expected at most rto_max, which is 1000ms",
        ),
        (
            "rto_max: 3s",
            "{rto_initial: 4s}",
            "templates[0].server.tcp.rto_initial: found \"4s\", expected at most rto_max, which is \
             3000ms",
        ),
    ] {
        let said = said(both, server).unwrap_err();
        assert_eq!(said.lines().next(), Some(expected));
    }
    assert_eq!(said("rto_max: 200ms", "{rto_min: 200ms}"), Ok(1));
    assert_eq!(said("rto_min: 5ms", "{rto_max: 10ms}"), Ok(1));
    assert_eq!(said("rto_max: 2s", "{rto_initial: 2s}"), Ok(1));
}

/// All that can be set of TCP and IP, by its words.
const TCP_WORDS: &str = "{mss: 10, initial_window: 4, receive_buffer: 65536, send_buffer: 20000, \
    window_scaling: true, window_scale: 5, timestamps: true, sack: true, rack: false, \
    duplicate_threshold: 4, reassembly_max: 0, ecn: permit, no_delay: true, congestion: bbr, \
    rto_initial: 2s, rto_min: 1s, rto_max: 60s, retries: 3, syn_retries: 2, open_timeout: 9s, \
    delayed_ack: 1ms, acknowledge_after: 3000, fast_open: true, time_wait: 1s, keepalive: 2s, \
    keepalive_interval: 3s, keepalive_probes: 4, push_all: true}";
const IP_WORDS: &str =
    "{ttl: 9, tos: 4, dont_fragment: false, identification: random, flow_label: flow}";

#[test]
fn all_of_tcp_and_ip_can_be_set_on_either_side() {
    let text = PAGE.replace("{mss: 900}", TCP_WORDS).replace(
        "      program:\n        - receive: 18",
        &format!("      ip: {IP_WORDS}\n      program:\n        - receive: 18"),
    );
    let plan = EmulationPlan::parse(&text).unwrap();
    let server = plan.templates[0].server.as_ref().unwrap();
    let tcp = Tcp {
        mss: Some(10),
        initial_window: Some(4),
        receive_buffer: Some(65_536),
        send_buffer: Some(20_000),
        window_scaling: Some(true),
        window_scale: Some(5),
        timestamps: Some(true),
        sack: Some(true),
        rack: Some(false),
        duplicate_threshold: Some(4),
        reassembly_max: Some(0),
        ecn: Some(Ecn::Permit),
        no_delay: Some(true),
        congestion: Some(Congestion::Bbr),
        rto_initial_ms: Some(2_000),
        rto_min_ms: Some(1_000),
        rto_max_ms: Some(60_000),
        retries: Some(3),
        syn_retries: Some(2),
        open_timeout_ms: Some(9_000),
        delayed_ack_ms: Some(1),
        acknowledge_after: Some(3_000),
        fast_open: Some(true),
        time_wait_ms: Some(1_000),
        keepalive_ms: Some(2_000),
        keepalive_interval_ms: Some(3_000),
        keepalive_probes: Some(4),
        push_all: Some(true),
    };
    assert_eq!(server.tcp, tcp);
    // A side's own words come first, those of both sides fill in for none of these.
    assert_eq!(tcp.or(plan.templates[0].client.as_ref().unwrap().tcp), tcp);
    assert_eq!(Tcp::default().or(tcp), tcp);
    let ip = Ip {
        ttl: Some(9),
        tos: Some(4),
        dont_fragment: Some(false),
        identification: Some(Identification::Random),
        flow_label: Some(FlowLabel::OfFlow),
    };
    assert_eq!((server.ip, Ip::default().or(ip)), (ip, ip));
}

#[test]
fn what_is_set_of_tcp_and_ip_has_bounds_with_paths() {
    for (tcp, expected) in [
        ("mss: 9", "mss: found 9, expected a whole number from 10 to 65495"),
        ("receive_buffer: 1023", "receive_buffer: found 1023, expected a whole number from 1024"),
        ("send_buffer: 9", "send_buffer: found 9, expected a whole number from 1024"),
        ("window_scale: 15", "window_scale: found 15, expected a whole number from 0 to 14"),
        (
            "window_scaling: false, window_scale: 3",
            "window_scale: windows are not scaled (window_scaling: false): leave it out",
        ),
        ("duplicate_threshold: 0", "duplicate_threshold: found 0, expected"),
        ("reassembly_max: 1001", "reassembly_max: found 1001, expected"),
        ("ecn: maybe", "ecn: found \"maybe\", expected true, false, or permit"),
        ("ecn: 2", "ecn: found 2, expected true, false, or permit"),
        ("rto_initial: 0ms", "rto_initial: found \"0ms\", expected at least 1ms"),
        ("rto_min: 2h", "rto_min: found \"2h\", expected"),
        ("rto_max: 1500us", "rto_max: found \"1500us\", expected whole milliseconds"),
        (
            "rto_min: 2s, rto_max: 1s",
            "rto_max: found \"1s\", expected at least rto_min, which is 2000ms",
        ),
        (
            "rto_max: 199ms",
            "rto_max: found \"199ms\", expected at least rto_min, which is 200ms where nothing",
        ),
        ("retries: 256", "retries: found 256, expected a whole number from 0 to 255"),
        ("syn_retries: -1", "syn_retries: found -1, expected"),
        ("open_timeout: soon", "open_timeout: found \"soon\", expected"),
        ("acknowledge_after: -1", "acknowledge_after: found -1, expected"),
        ("keepalive_probes: 0", "keepalive_probes: found 0, expected"),
    ] {
        let said = error("{mss: 900}", &format!("{{{tcp}}}"));
        let expected = format!("templates[0].server.tcp.{expected}");
        assert!(said.starts_with(&expected), "{said}, not {expected}");
    }
    for (ip, expected) in [
        ("dont_fragment: 1", "dont_fragment: found 1, expected"),
        (
            "identification: none",
            "identification: found \"none\", expected zero, counting or random",
        ),
        ("flow_label: any", "flow_label: found \"any\", expected flow, or a whole number from 0"),
        (
            "flow_label: 1048576",
            "flow_label: found 1048576, expected flow, or a whole number from 0 to 1048575",
        ),
    ] {
        let said = error("tcp: {mss: 900}", &format!("ip: {{{ip}}}"));
        let expected = format!("templates[0].server.ip.{expected}");
        assert!(said.starts_with(&expected), "{said}, not {expected}");
    }
}

#[test]
fn routers_of_a_port_are_in_its_networks() {
    let with = |addresses: &str, gateway: &str| {
        let port = format!("{{name: s, addresses: {addresses}, gateway: {gateway}}}");
        let plan = EmulationPlan::parse(&PAGE.replace("{name: s}", &port));
        plan.map(|plan| plan.ports[1].gateways.len()).map_err(|errors| errors.to_string())
    };
    let both = "[10.0.9.1/24, \"fd00::1/64\"]";
    assert_eq!(with("10.0.9.1/24", "10.0.9.254"), Ok(1));
    assert_eq!(with(both, "[10.0.9.254, \"fd00::9\"]"), Ok(2));
    assert_eq!(with("\"fd00::1/64\"", "\"fe80::1\""), Ok(1));
    assert_eq!(with("[]", "10.0.9.254"), Ok(1));
    for (addresses, gateway, expected) in [
        ("10.0.9.1/24", "router", "found \"router\", expected the address of a router, such as"),
        (
            "10.0.9.1/24",
            "\"fd00::9\"",
            "found fd00::9, expected a router in the port's networks: 10.0.9.1/24",
        ),
        ("10.0.9.1/24", "\"fe80::1\"", "found fe80::1, expected a router in the port's networks: "),
        (
            "\"fd00::1/64\"",
            "10.0.9.9",
            "found 10.0.9.9, expected a router in the port's networks: ",
        ),
        (
            both,
            "[10.0.9.254, 10.0.10.1]",
            "found 10.0.10.1, expected a router in the port's networks: 10.0.9.1/24, fd00::1/64",
        ),
        (
            "10.0.9.1",
            "10.0.9.254",
            "found 10.0.9.254, expected a router in the port's networks: 10.0.9.1/32",
        ),
    ] {
        let said = with(addresses, gateway).unwrap_err();
        assert!(said.starts_with(&format!("ports[1].gateway: {expected}")), "{said}");
    }
}

#[test]
fn a_port_may_swallow_what_belongs_to_nobody() {
    for (word, expected) in
        [("none", Blackhole::Nothing), ("syn", Blackhole::Syn), ("all", Blackhole::All)]
    {
        let text = PAGE.replace("{name: s}", &format!("{{name: s, blackhole: {word}}}"));
        let plan = EmulationPlan::parse(&text).unwrap();
        assert_eq!(
            plan.ports.iter().map(|it| it.blackhole).collect::<Vec<_>>(),
            [Blackhole::Nothing, expected]
        );
    }
    let said = error("{name: s}", "{name: s, blackhole: 1}");
    assert_eq!(said, "ports[1].blackhole: found 1, expected none, syn or all");
}

#[test]
fn a_port_may_impair_what_it_sends() {
    let text = PAGE
        .replace("{name: s}", "{name: s, impair: {loss: 1%, delay: 5ms, rate: 1G-l2, queue: 50}}");
    let plan = EmulationPlan::parse(&text).unwrap();
    assert_eq!(plan.ports[0].impairment, None);
    let impairment = plan.ports[1].impairment.unwrap();
    assert_eq!(impairment.delay, Duration::from_millis(5));
    assert_eq!(impairment.loss, Loss::Random(Share::from_billionths(10_000_000).unwrap()));
    assert_eq!(impairment.bottleneck.unwrap().queue, Queue::Frames(50));
    for (impair, expected) in [
        ("{loss: 1}", "ports[1].impair.loss: found 1, expected a share of frames"),
        ("{lost: 1%}", "ports[1].impair.lost: found an unknown field"),
        ("{queue: 5}", "ports[1].impair: a queue without a rate"),
        ("5ms", "ports[1].impair: found"),
    ] {
        let said = error("{name: s}", &format!("{{name: s, impair: {impair}}}"));
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn a_port_may_have_tunnels() {
    let own = "{name: s, addresses: [10.0.9.1/24, fd00::1/64], tunnels: [\
               {clients: 16.0.0.0-16.0.0.255, teid: 5, to: 10.0.9.2}, \
               {clients: 17.0.0.1, teid: 0, teid_step: 9, from: fd00::2, source_port: 2152}]}";
    let plan = EmulationPlan::parse(&PAGE.replace("{name: s}", own)).unwrap();
    assert_eq!(plan.ports[0].tunnels, None);
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    let first = ClientTunnels {
        first: address("16.0.0.0"),
        last: address("16.0.0.255"),
        teid: 5,
        teid_step: 1,
        from: address("10.0.9.1"),
        to: address("10.0.9.2"),
        source_port: None,
    };
    let second = ClientTunnels {
        first: address("17.0.0.1"),
        last: address("17.0.0.1"),
        teid: 0,
        teid_step: 9,
        from: address("fd00::2"),
        to: address("fd00::1"),
        source_port: NonZeroU16::new(2_152),
    };
    assert_eq!(plan.ports[1].tunnels, Some(vec![first, second]));
    for (tunnels, expected) in [
        ("{teid: 1, to: 1.1.1.1}", "[0].clients: "),
        ("{clients: 1.1.1.1, to: 1.1.1.1}", "[0].teid: "),
        ("{clients: 1.1.1.1, teid: 4294967296, to: 1.1.1.1}", "[0].teid: found 4294967296"),
        ("{clients: 1.1.1.1, teid: 1}", "[0]: found no end of the tunnel, expected to, from"),
        (
            "{clients: 1.1.1.1, teid: 1, to: \"fd00::1\"}",
            "[0]: found one end, fd00::1, expected the other, or an address of IPv6 of the port",
        ),
        (
            "{clients: 1.1.1.1, teid: 1, from: 1.1.1.1, to: \"fd00::1\"}",
            "[0].to: found \"fd00::1\", expected an address of the family of 1.1.1.1",
        ),
        ("{clients: 1.1.1.1, teid: 1, to: 1.1.1.1, source_port: 0}", "[0].source_port: found 0"),
        ("{clients: 1.1.1.1, teid: 1, to: 1.1.1.1, type: 1}", "[0].type: found an unknown field"),
        (
            "{clients: 1.1.1.1-1.1.1.9, teid: 1, to: 1.1.1.1}, {clients: 1.1.1.0-1.1.1.3, teid: 1, to: \
             1.1.1.1}",
            "[1].clients: 1.1.1.1 has a tunnel already",
        ),
        (
            "{clients: 1.1.1.1-1.1.1.3, teid: 4294967290, teid_step: 3, to: 1.1.1.1}",
            "[0].teid: found 4294967290, with which the last of 3 clients, in steps of 3, has \
             4294967296: expected that to be at most 4294967295",
        ),
    ] {
        let own = format!("{{name: s, addresses: 10.0.9.1/24, tunnels: [{tunnels}]}}");
        let said = error("{name: s}", &own);
        assert!(said.starts_with(&format!("ports[1].tunnels{expected}")), "{said}");
    }
    let last = "{name: s, tunnels: [{clients: 1.1.1.1-1.1.1.3, teid: 4294967289, teid_step: 3, to: \
                1.1.1.1, from: 1.1.1.2}]}";
    assert!(EmulationPlan::parse(&PAGE.replace("{name: s}", last)).is_ok());
}

#[test]
fn devices_may_have_two_tags_and_labels() {
    let devices = |words: &str| {
        let client = format!("tx: c\n      devices: [{{clients: 10.0.0.1, {words}}}]");
        let plan = EmulationPlan::parse(&PAGE.replace("tx: c", &client));
        plan.map(|plan| plan.templates[0].client.as_ref().unwrap().devices[0])
    };
    assert!(devices("count: 2, next_hop: 223.255.255.254").is_ok());
    let both = devices("vlan: [5, 7], mpls: [16, {label: 1048575, tc: 3, ttl: 9}]").unwrap();
    assert_eq!(both.vlan, Some(Vlans { outer: Some(5), inner: 7 }));
    assert_eq!(both.vlan.unwrap().tags(), [0x88, 0xa8, 0, 5, 0x81, 0, 0, 7]);
    assert_eq!(both.labels.stack(), [0, 1, 0, 64, 0xff, 0xff, 0xf7, 9]);
    let one = devices("vlan: 7").unwrap();
    assert_eq!((one.vlan.unwrap().tags(), one.labels.stack()), (vec![0x81, 0, 0, 7], vec![]));
    for (words, expected) in [
        (
            "every: 2",
            ": found nothing that is said of the clients' frames, expected one of dst, src, vlan, \
             mpls, next_hop or more",
        ),
        ("vlan: [5]", ".vlan: found 1 VLANs, expected two, the outer one first"),
        ("vlan: [5, 4096]", ".vlan[1]: found 4096, expected a whole number from 0 to 4094"),
        ("vlan: 4095", ".vlan: found 4095, expected a whole number from 0 to 4094"),
        (
            "dst: \"01:00:5e:00:00:01\"",
            ".dst: found \"01:00:5e:00:00:01\", expected the Ethernet address of one station",
        ),
        ("src: \"ff:ff:ff:ff:ff:ff\"", ".src: found \"ff:ff:ff:ff:ff:ff\", expected the Ethernet"),
        ("mpls: 16", ".mpls: "),
        ("mpls: []", ".mpls: found 0 labels, expected 1 to 4"),
        ("mpls: [1, 2, 3, 4, 5]", ".mpls: found 5 labels, expected 1 to 4"),
        ("mpls: [1048576]", ".mpls[0]: found 1048576, expected a whole number from 0 to 1048575"),
        ("mpls: [{label: 1, tc: 8}]", ".mpls[0].tc: found 8"),
        ("mpls: [{tc: 1}]", ".mpls[0].label: "),
        ("mpls: [{label: 1, exp: 1}]", ".mpls[0].exp: found an unknown field"),
        ("next_hop: router", ".next_hop: found \"router\", expected an IP address"),
        ("next_hop: 0.0.0.0", ".next_hop: found 0.0.0.0, expected the address of one station"),
        ("next_hop: \"ff02::1\"", ".next_hop: found ff02::1, expected the address of one station"),
        (
            "count: 3, next_hop: 223.255.255.254",
            ".next_hop: found 223.255.255.254 and the 2 behind it, the addresses of so many devices, \
             expected such as stations may have, not 224.0.0.0",
        ),
        (
            "count: 3, next_hop: 255.255.255.254",
            ".next_hop: found 255.255.255.254 and the 2 behind it, the addresses of so many devices, \
             expected such as stations may have, not 255.255.255.255",
        ),
        (
            "next_hop: 10.0.9.1, next_hop_from: 255.255.255.255",
            ".next_hop_from: found 255.255.255.255, expected the address of one station",
        ),
        (
            "next_hop: 10.0.9.1, dst: \"02:00:00:00:00:09\"",
            ".next_hop: found dst as well, expected one of them",
        ),
        (
            "vlan: 5, next_hop_from: 10.0.9.9",
            ".next_hop_from: belongs to next_hop, which is not there",
        ),
        (
            "next_hop: 10.0.9.1, next_hop_from: \"fd00::9\"",
            ".next_hop_from: found \"fd00::9\", expected an address of the family of 10.0.9.1",
        ),
    ] {
        let said = devices(words).unwrap_err().to_string();
        let expected = format!("templates[0].client.devices[0]{expected}");
        assert!(said.starts_with(&expected), "{said}");
    }
}

#[test]
fn devices_are_those_of_clients_that_there_are() {
    let with = |addresses: &str, devices: &str| {
        let client = format!("tx: c\n      {addresses}\n      devices: [{devices}]");
        let plan = EmulationPlan::parse(&PAGE.replace("tx: c", &client));
        plan.map(|plan| plan.notes).map_err(|errors| errors.to_string())
    };
    let ten = "addresses: 10.0.0.11-10.0.0.20";
    let all = "{clients: 10.0.0.11-10.0.0.20, vlan: 5}";
    // The first that names a client is its own, and some may be nobody's.
    for (addresses, devices) in [
        (ten, all.to_owned()),
        (ten, format!("{{clients: 10.0.0.1-10.0.0.11, vlan: 7}}, {all}")),
        (ten, format!("{{clients: 10.0.0.11-10.0.0.20, every: 2, vlan: 7}}, {all}")),
        ("", "{clients: 10.0.0.1, vlan: 7}".to_owned()),
    ] {
        assert_eq!(with(addresses, &devices), Ok(vec![]), "{devices}");
    }
    for (addresses, devices, expected) in [
        (
            ten,
            "{clients: 10.0.0.21-10.0.0.30, vlan: 5}".to_owned(),
            "devices[0].clients: found \"10.0.0.21-10.0.0.30\", expected some of the template's \
             clients, 10.0.0.11 and the 9 behind it",
        ),
        (
            "",
            "{clients: 10.0.0.2, vlan: 5}".to_owned(),
            "devices[0].clients: found \"10.0.0.2\", expected some of the template's clients, 10.0.0.1",
        ),
        (
            ten,
            format!("{all}, {{clients: 10.0.0.12-10.0.0.20, vlan: 7}}"),
            "devices[1].clients: all of these go by devices[0] already, which comes first",
        ),
    ] {
        let said = with(addresses, &devices).unwrap_err();
        assert!(said.starts_with(&format!("templates[0].client.{expected}")), "{said}");
    }
}

#[test]
fn servers_whose_addresses_nobody_connects_to_are_told_of() {
    let with = |addresses: &str| {
        let server = format!("tx: s\n      addresses: \"{addresses}\"");
        EmulationPlan::parse(&PAGE.replace("tx: s", &server)).unwrap().notes
    };
    assert_eq!(with("10.0.1.200-10.0.2.9"), [""; 0]);
    for addresses in ["10.0.2.1-10.0.2.9", "2001:db8::1"] {
        let notes = with(addresses);
        let expected = "templates[0].server.addresses: no client of the plan connects to any of";
        assert!(notes.len() == 1 && notes[0].starts_with(expected), "{notes:?}");
    }
}

/// What is said where a part of the plan above is another one.
fn error(part: &str, other: &str) -> String {
    assert!(PAGE.contains(part), "{part}");
    EmulationPlan::parse(&PAGE.replace(part, other)).unwrap_err().to_string()
}

#[test]
fn every_error_has_its_path() {
    for (part, other, expected) in [
        (
            "tx: c",
            "tx: d",
            "templates[0].client.tx: found \"d\", expected one of the plan's ports: c, s",
        ),
        (
            "port: 80",
            "port: 0",
            "templates[0].server.port: found 0, expected a whole number from 1 to 65535",
        ),
        (
            "load: {rate: 5k}",
            "load: {rate: 5k, ramp: 5s}",
            "templates[0].client.load.ramp: stands in the client, beside `load`: put ramp there",
        ),
        (
            "load: {rate: 5k}",
            "load: {users: 5, limit: 5}",
            "templates[0].client.load.limit: stands in the client, beside `load`: put limit there",
        ),
        (
            "10.0.1.1-10.0.1.255",
            "10.0.1.9-10.0.1.1",
            "templates[0].client.servers: found \"10.0.1.9-10.0.1.1\", expected an address, or two",
        ),
        (
            "10.0.1.1-10.0.1.255",
            "2001:db8::1",
            "templates[0].client.servers: found \"2001:db8::1\", expected addresses of the clients' family",
        ),
        (
            "{name: c, addresses: 10.0.0.1/24}",
            "{name: c}",
            "templates[0].client: the clients have no addresses",
        ),
        (
            "{rate: 5k}",
            "{rate: fast}",
            "templates[0].client.load.rate: found \"fast\", expected connections a second",
        ),
        ("{rate: 5k}", "{rate: 1, hold: 2}", "templates[0].client.load: found both"),
        (
            "{rate: 5k}",
            "on-demand",
            "templates[0].client.load: found \"on-demand\", expected on_demand, or fields: rate, \
             poisson, hold, throughput, users",
        ),
        (
            "{rate: 5k}",
            "{on_demand: true}",
            "templates[0].client.load.on_demand: found an unknown field, expected one of rate, \
             poisson, hold, throughput, users, or on_demand alone",
        ),
        ("name: page", "name: ''", "templates[0].name: found \"\", expected a name"),
        ("name: page", "name: page\n    group: ''", "templates[0].group: found \"\", expected"),
        ("{name: c,", "{name: '',", "ports[0].name: found \"\", expected a name"),
        (
            "- receive: 18",
            "- recieve: 18",
            "templates[0].server.program[0].recieve: found an unknown field, expected receive?",
        ),
        (
            "- receive: 18",
            "- reset",
            "templates[0].server.program[0]: found a step behind which nothing is done",
        ),
        (
            "size: 32000",
            "size: 3",
            "templates[0].server.program[2].send.size: found 3, expected a whole number from 19 to 4294967295",
        ),
        (
            "max: 2ms",
            "max: 2us",
            "templates[0].server.program[1].delay.max: found \"2us\", expected at least as much as min",
        ),
        (
            "delayed_ack: 40ms",
            "delayed_ack: 40us",
            "templates[0].tcp.delayed_ack: found \"40us\", expected whole milliseconds",
        ),
        ("mss: 1460", "mss: 1", "templates[0].tcp.mss: found 1, expected a whole number from 10"),
        ("name: page", "name: page, nam: 1", "plan: found no YAML"),
        (
            "10.0.1.1-10.0.1.255",
            "10.0.0.0-10.0.0.3",
            "templates[0].client.servers: found \"10.0.0.0-10.0.0.3\", expected addresses of which \
             none is a client's: those are 10.0.0.1",
        ),
        (
            "limit: 100",
            "addresses: 10.0.0.250-10.0.1.1",
            "templates[0].client.servers: found \"10.0.1.1-10.0.1.255\", expected addresses of \
             which none is a client's: those are 10.0.0.250 and the 7 behind it",
        ),
        (
            "{name: s}",
            "{name: c}",
            "ports[1]: found a second port \"c\", expected a name of its own",
        ),
        (
            "{name: s}",
            "{name: s, gateway: nowhere}",
            "ports[1].gateway: found \"nowhere\", expected the address of a router, such as 10.0.0.254",
        ),
        (
            "10.0.0.1/24}",
            "10.0.0.1/24, gateway: 10.0.1.1}",
            "ports[0].gateway: found 10.0.1.1, expected a router in the port's networks: 10.0.0.1/24",
        ),
        (
            "- receive: 18",
            "- repeat: {times: 2, steps: []}",
            "templates[0].server.program[0].repeat.steps: found a list of 0, expected",
        ),
        (
            "limit: 100",
            "order: backwards",
            "templates[0].client.order: found \"backwards\", expected in_turn or random",
        ),
        (
            "limit: 100",
            "pairing: any",
            "templates[0].client.pairing: found \"any\", expected in_turn, random or fixed",
        ),
        (
            "limit: 100",
            "ports: 2000-1000",
            "templates[0].client.ports: found \"2000-1000\", expected ports such as 1024-65535",
        ),
        (
            "limit: 100",
            "turn: 0",
            "templates[0].client.turn: found 0, expected a whole number from 1 to 4294967295",
        ),
        (
            "limit: 100",
            "limit: 0",
            "templates[0].client.limit: found 0, expected a whole number from 1 to",
        ),
        (
            "tx: c",
            "tx: c\n      tx: s",
            "plan: found no YAML: line 9 column 7: duplicate mapping key: tx",
        ),
        (
            "limit: 100",
            "order: random\n      turn: 2",
            "templates[0].client.turn: found 2, expected none beside order: random, which draws for \
             each connection, or order: in_turn",
        ),
        (
            "limit: 100",
            "order: random\n      again_after: 9",
            "templates[0].client.again_after: found 9, expected none beside order: random, which",
        ),
        (
            "limit: 100",
            "pairing: random\n      again_after: 9",
            "templates[0].client.again_after: found 9, expected none beside pairing: random, which \
             draws for each connection, or pairing: in_turn or fixed",
        ),
    ] {
        let found = error(part, other);
        assert!(found.starts_with(expected), "{other}: {found}");
    }
    for (whole, expected) in [
        ("ports: []\ntemplates: []", "templates: found no template, expected at least one"),
        ("ports: []", "templates: found nothing, expected a list of templates"),
        ("{\"ports\": [], \"templates\": ]", "plan: found no JSON: expected value at line 1"),
        ("ports: [", "plan: found no YAML: "),
        ("{\"ports\": [], \"ports\": []}", "plan: found no JSON: duplicate key: ports at line 1"),
        (
            "ports: [{name: s}]\ntemplates: [{name: a, server: {tx: s, port: 1, program: {send: a}}}]",
            "templates[0].server.program: found fields (send, ...), expected a list of",
        ),
    ] {
        let found = EmulationPlan::parse(whole).unwrap_err().to_string();
        assert!(found.starts_with(expected), "{whole}: {found}");
    }
    let twice = PAGE.to_owned() + PAGE.split("templates:").nth(1).unwrap();
    let found = EmulationPlan::parse(&twice).unwrap_err().to_string();
    let expected = "templates[1]: found a second template \"page\", expected a name of its own\n\
                    templates[1]: \"page\" has a server at port 80 of \"s\", where \"page\" has one \
                    already";
    assert_eq!(found, expected);
}

#[test]
fn what_is_in_turn_beside_what_is_drawn_may_have_turns() {
    let said = |words: &str| {
        let words = words.replace(", ", "\n      ");
        EmulationPlan::parse(&PAGE.replace("limit: 100", &words)).map(|plan| plan.templates.len())
    };
    for words in [
        "order: random, turn: 1",
        "pairing: random, turn: 4",
        "pairing: fixed, turn: 4, again_after: 9",
    ] {
        assert_eq!(said(words), Ok(1), "{words}");
    }
}

#[test]
fn flows_that_programs_ask_for_are_over_their_version_of_ip() {
    let plan = |asks: &str, port: &str, servers: &str| {
        let next = format!(
            "  - name: next\n    group: g\n    client: {{tx: {port}, addresses: {}, servers: {servers}, \
             load: on_demand, program: []}}\n",
            if servers.contains('.') { "10.0.0.9" } else { "\"fd00::9\"" }
        );
        let text = PAGE.replace("- wait_for_close", asks) + &next;
        EmulationPlan::parse(&text).map(|plan| plan.templates.len()).map_err(|it| it.to_string())
    };
    let runs = "- next_group: g\n        - run_next";
    let expected = "templates[0].client.program[2].next_group: found \"g\", of which \"next\" connects \
                    to fd00::1, expected a group that connects over IPv4, as the flow that asks for it";
    assert_eq!(plan(runs, "c", "\"fd00::1\""), Err(expected.to_owned()));
    let within = "- repeat: {times: 2, steps: [{next_group: g}, run_next]}";
    let said = plan(within, "c", "\"fd00::1\"").unwrap_err();
    assert!(
        said.starts_with("templates[0].client.program[2].repeat.steps[0].next_group: "),
        "{said}"
    );
    assert_eq!(plan(runs, "c", "10.0.2.1"), Ok(2));
    // Those on another port are not drawn.
    assert_eq!(plan(runs, "s", "\"fd00::1\""), Ok(2));
    // A port that is said is one of the same server.
    let starts = "- set: {p: 80}\n        - next_group: g\n        - start_next: {port: p}\n        - \
                  end_next";
    assert_eq!(plan(starts, "c", "\"fd00::1\""), Ok(2));
}

#[test]
fn servers_that_are_told_apart_by_first_bytes_begin_connections_alike() {
    let plan = |first: &str, second: &str| {
        let first = PAGE.replace("port: 80", &format!("port: 80\n      {first}"));
        let text = format!("{first}  - {{name: other, {second}, program: []}}}}\n");
        EmulationPlan::parse(&text).map(|plan| plan.templates.len()).map_err(|it| it.to_string())
    };
    let get = "first_bytes: \"GET\"";
    let server = |words: &str| format!("server: {{tx: s, port: 80, {words}");
    // As the first one is, apart from its congestion control and its delayed acknowledgements.
    let alike = "tcp: {mss: 900, sack: false}";
    let reason = "as template \"page\" has at the same port: connections are told apart by \
                  first_bytes, and have begun before these come";
    for (words, expected) in [
        ("tcp: {mss: 900}", "server.tcp: found no sack, expected sack: false"),
        ("tcp: {mss: 901, sack: false}", "server.tcp: found mss: 901, expected mss: 900"),
        ("tcp: {sack: false}", "server.tcp: found no mss, expected mss: 900"),
        (
            "tcp: {mss: 900, sack: false, ecn: permit}",
            "server.tcp: found ecn: permit, expected no ecn",
        ),
    ] {
        let said = plan(get, &server(words)).unwrap_err();
        assert_eq!(said, format!("templates[1].{expected}, {reason}"));
    }
    let settings = [
        "initial_window: 3",
        "receive_buffer: 5000",
        "window_scaling: true",
        "window_scale: 3",
        "timestamps: false",
        "fast_open: true",
    ];
    for setting in settings {
        let both = format!("tcp: {{mss: 900, sack: false, {setting}}}, {}", server(""));
        let said = plan(get, both.trim_end_matches(", ")).unwrap_err();
        let name = setting.split(':').next().unwrap();
        let expected = format!("templates[1].tcp: found {setting}, expected no {name}, {reason}");
        assert_eq!(said, expected);
    }
    let [near, far] = ["addresses: 10.0.1.1-10.0.1.9", "addresses: 10.0.1.10-10.0.1.19"];
    for (first, second, is_right) in [
        (get, alike.to_owned(), true),
        ("", format!("{get}, tcp: {{mss: 500}}"), false),
        (near, format!("{get}, tcp: {{mss: 500}}"), true),
        (near, format!("addresses: 10.0.1.9, {get}, tcp: {{mss: 500}}"), false),
        (near, format!("{far}, {get}, tcp: {{mss: 500}}"), true),
        (near, format!("{far}, tcp: {{mss: 500}}"), true),
    ] {
        let said = plan(first, &server(&second));
        assert_eq!(said.is_ok(), is_right, "{first} {second}: {said:?}");
    }
}

#[test]
fn a_plan_has_so_many_templates_at_most() {
    let captured = |_: &str| {
        let found = |port: u16| {
            Ok(Conversation {
                transport: conversation::Transport::Tcp,
                client: "192.0.2.1:5000".parse().unwrap(),
                server: ([192, 0, 2, 2], port).into(),
                packet: 1,
                has_beginning: true,
                turns: vec![Turn {
                    side: Side::Client,
                    gap: Duration::ZERO,
                    act: Act::Says(b"all".to_vec()),
                }],
            })
        };
        Ok(Imported { flows: [81, 82].map(found).to_vec(), others: 0 })
    };
    let plan = |count: usize, last: &str| {
        let server = |number: usize| {
            format!(
                r#"{{"name": "t{number}", "server": {{"tx": "s", "port": 80, "addresses": "fd00::{number:x}", "program": []}}}}, "#
            )
        };
        let text: String = (0..count).map(server).collect();
        let text = format!(r#"{{"ports": [{{"name": "s"}}], "templates": [{text}{last}]}}"#);
        EmulationPlan::parse_with(&text, captured)
            .map(|plan| plan.templates.len())
            .map_err(|it| it.to_string())
    };
    let last = r#"{"name": "last", "server": {"tx": "s", "port": 81, "program": []}}"#;
    assert_eq!(plan(16_383, last), Ok(16_384));
    let expected = "templates: found a list of 16385, expected at most 16384 templates";
    assert_eq!(plan(16_384, last), Err(expected.to_owned()));
    let two = r#"{"name": "two", "conversation": "a.pcap", "server": {"tx": "s"}}"#;
    let expected = "templates[16383]: found 16385 templates with the conversations up to here, \
                    expected at most 16384";
    assert_eq!(plan(16_383, two), Err(expected.to_owned()));
}

#[test]
fn clients_and_servers_have_addresses_of_hosts() {
    let wrong = |place: &str, text: &str| {
        let plan = PAGE.replace("10.0.0.1/24", "[10.0.0.1/24, \"fd00::1/64\"]");
        let plan = match place {
            "client.servers" => plan.replace("10.0.1.1-10.0.1.255", text),
            "client.addresses" => plan.replace("tx: c", &format!("tx: c\n      addresses: {text}")),
            _ => plan.replace("tx: s", &format!("tx: s\n      addresses: {text}")),
        };
        EmulationPlan::parse(&plan).map(|plan| plan.templates.len()).map_err(|it| it.to_string())
    };
    for (text, first) in [
        ("0.0.0.0-0.0.0.9", "0.0.0.0"),
        ("223.255.255.0-224.0.0.0", "224.0.0.0"),
        ("230.0.0.1", "230.0.0.1"),
        ("239.255.255.255-240.0.0.9", "239.255.255.255"),
        ("255.255.255.250-255.255.255.255", "255.255.255.255"),
        ("\"::-::9\"", "::"),
    ] {
        for place in ["client.servers", "client.addresses", "server.addresses"] {
            let said = wrong(place, text).unwrap_err();
            let text = text.trim_matches('"');
            let expected = format!(
                "templates[0].{place}: found {text:?}, expected addresses that hosts may have, not \
                 such as {first}"
            );
            assert_eq!(said.lines().next(), Some(expected.as_str()));
        }
    }
    for text in ["0.0.0.1-223.255.255.255", "240.0.0.0-255.255.255.254", "\"::1\"", "\"ff02::9\""] {
        assert_eq!(wrong("server.addresses", text), Ok(1), "{text}");
    }
}

#[test]
fn clients_of_flows_that_others_ask_for_are_not_the_templates() {
    let text = PAGE.replace("{rate: 5k}", "on_demand");
    let text = text.replace("10.0.1.1-10.0.1.255", "10.0.0.0-10.0.0.3");
    assert_eq!(EmulationPlan::parse(&text).map(|plan| plan.templates.len()), Ok(1));
}

#[test]
fn loops_lie_within_each_other_up_to_a_depth() {
    let nested = |depth: usize| {
        let mut steps = "[{receive: 1}]".to_owned();
        for _ in 0..depth {
            steps = format!("[{{repeat: {{steps: {steps}}}}}]");
        }
        EmulationPlan::parse(&format!(
            "{{\"ports\": [{{\"name\": \"s\"}}], \"templates\": [{{\"name\": \"t\", \"server\": \
             {{\"tx\": \"s\", \"port\": 1, \"program\": {}}}}}]}}",
            steps
                .replace("repeat", "\"repeat\"")
                .replace("steps", "\"steps\"")
                .replace("receive", "\"receive\"")
        ))
    };
    assert!(nested(program::DEPTH_MAX).is_ok());
    let error = nested(program::DEPTH_MAX + 1).unwrap_err().to_string();
    assert!(error.ends_with("repeat: loops within each other are at most 8"), "{error}");
}

/// The steps of a client's program, or what is wrong with them.
fn steps(list: &str) -> Result<Vec<Step>, String> {
    let lines = list.lines().map(|line| format!("        - {}\n", line.trim()));
    let plan = format!(
        "ports: [{{name: c, addresses: 10.0.0.1/24}}]\ntemplates:\n  - name: a\n    client:\n      \
         tx: c\n      servers: 10.0.1.1\n      load: {{hold: 1}}\n      program:\n{}",
        lines.collect::<String>()
    );
    let plan = EmulationPlan::parse(&plan).map_err(|errors| errors.to_string())?;
    Ok(plan.templates[0].client.clone().unwrap().program)
}

#[test]
fn steps_jump_compute_and_count() {
    let found = steps(
        "connect
         set: {n: 3}
         remember: begin
         label: again
         receive_in_all: 10
         add: {m: -1}
         jump: {to: out, variable: m, greater_or_equal: 7}
         jump: {to: again, within: 5s, since: begin}
         count_down: {variable: n, to: again}
         jump: again
         label: out
         postpone: {begin: 20ms}
         count: {A: 2}
         count: {D: {since: begin}}
         delay: {mean: 2ms}
         delay: {mean: 2ms, deviation: 1ms}",
    );
    let mean = Duration::from_millis(2);
    let (again, out) = (Label(0), Label(1));
    let greater = When::Compares { variable: 1, comparison: Comparison::GreaterOrEqual, value: 7 };
    let within = When::Within { span: Duration::from_secs(5), since: 0 };
    assert_eq!(
        found.unwrap(),
        [
            Step::Connect,
            Step::Set { variable: 0, value: 3 },
            Step::Remember(0),
            Step::Label(again),
            Step::ReceiveInAll(10),
            Step::Add { variable: 1, value: u64::MAX },
            Step::Jump { to: out, when: greater },
            Step::Jump { to: again, when: within },
            Step::CountDown { variable: 0, to: again },
            Step::Jump { to: again, when: When::Always },
            Step::Label(out),
            Step::Postpone { time: 0, by: Duration::from_millis(20) },
            Step::Count { counter: 0, what: Counted::Number(2) },
            Step::Count { counter: 3, what: Counted::Since(0) },
            Step::DelayAbout { mean, deviation: None },
            Step::DelayAbout { mean, deviation: Some(Duration::from_millis(1)) },
        ]
    );
}

#[test]
fn names_of_a_program_have_to_be_there_once() {
    for (list, expected) in [
        (
            "label: a\njump: b",
            "program[1].jump: found \"b\", expected one of the program's labels: a",
        ),
        ("label: a\nlabel: a", "program[1].label: found a second label \"a\", expected"),
        ("jump: {to: a, variable: n}\nlabel: a", "program[0].jump: a jump has `to` alone, or"),
        ("count: {E: 1}", "program[0].count.E: found an unknown field, expected one of A, B, C, D"),
        (
            "count: {A: {since: nix}}",
            "program[0].count.A.since: found \"nix\", expected a time that a",
        ),
        (
            "remember: then\njump: {to: a, within: 1s, since: nix}\nlabel: a",
            "program[1].jump.since: found \"nix\", expected a time that a step remembers: then",
        ),
        (
            "postpone: {nix: 1s}\ncount: {A: {since: nix}}",
            "program[0].postpone.nix: found \"nix\", expected a time that a step `remember`",
        ),
        ("postpone: {t: 1us}", "program[0].postpone.t: found \"1us\", expected whole milliseconds"),
        ("delay: {mean: 1ms, max: 1ms}", "delay.max: found a bound beside mean"),
        ("reset\nreceive: 1", "program[0]: found a step behind which nothing is done"),
    ] {
        let error = steps(list).unwrap_err();
        assert!(error.contains(expected), "{list}: {error}");
    }
    let many: Vec<_> = (0..11).map(|it| format!("set: {{v{it}: 1}}")).collect();
    let error = steps(&many.join("\n")).unwrap_err();
    assert!(error.contains("variables of a program are at most 10"), "{error}");
    let loops = "repeat: {steps: [repeat: {steps: [receive: 1]}]}";
    let error = steps(&format!("{}\n{loops}", many[..9].join("\n"))).unwrap_err();
    assert!(error.contains("found 11 variables and loops within each other"), "{error}");
    assert!(steps("jump: b\nreset\nlabel: b\nreceive: 1").is_ok());
}

#[test]
fn a_template_of_udp_talks_in_datagrams() {
    let text = r#"
ports: [{name: c, addresses: 10.0.0.1/24}, {name: s}]
templates:
  - name: names
    group: dns
    transport: udp
    client:
      tx: c
      servers: 10.0.1.1
      server_port: 53
      load: on_demand
      order: random
      pairing: fixed
      devices: [{clients: 10.0.0.1, every: 2, count: 3, vlan: 100, dst: "02:00:00:00:00:09"}]
      program: [{idle: {time: 300ms, receive_only: true}}, {send_datagram: who}, {receive_datagrams: 2}, {next_group: 'dns'}, run_next]
    server:
      tx: s
      port: 53
      addresses: 10.0.1.0-10.0.1.9
      vlans: [100, [5, 7]]
      first_bytes: wh
      program: [{receive_datagrams: {count: 1, clear: false}}, {idle: 2s}, {next_group: dns}]
  - name: other names
    transport: udp
    server: {tx: s, port: 53, first_bytes: [{offset: 4, value: 15, mask: 15}], program: []}
  - name: last names
    group: dns
    transport: udp
    client: {tx: c, servers: 10.0.1.1, server_port: 53, load: on_demand, turn: 4, again_after: 20, program: []}
"#;
    let plan = EmulationPlan::parse(text).unwrap();
    let template = &plan.templates[0];
    assert_eq!((template.transport, template.group.as_deref()), (Transport::Udp, Some("dns")));
    let (client, server) = (template.client.as_ref().unwrap(), template.server.as_ref().unwrap());
    assert_eq!(client.load, Load::OnDemand);
    assert_eq!((client.order, client.pairing), (Order::Random, Pairing::Fixed));
    assert_eq!((client.turn, client.again_after), (1, None));
    let last = plan.templates[2].client.as_ref().unwrap();
    assert_eq!((last.turn, last.again_after), (4, Some(20)));
    let devices = Devices {
        clients: AddressRange { first: "10.0.0.1".parse().unwrap(), count: 1 },
        every: 2,
        count: 3,
        vlan: Some(100.into()),
        labels: MplsLabels::default(),
        destination: Some("02:00:00:00:00:09".parse().unwrap()),
        source: None,
        next_hop: None,
    };
    assert_eq!(client.devices, [devices]);
    assert_eq!(
        client.program,
        [
            Step::Idle { time: Duration::from_millis(300), receive_only: true },
            Step::SendDatagram { text: b"who".to_vec(), size: 3, fill: Vec::new() },
            Step::ReceiveDatagrams { count: 2, clear: true },
            Step::NextGroup("dns".into()),
            Step::RunNext,
        ]
    );
    assert_eq!(server.addresses.unwrap().count, 10);
    assert_eq!(server.vlans, [100.into(), Vlans { outer: Some(5), inner: 7 }]);
    assert_eq!(server.first_bytes, Some(FirstBytes(vec![(0, 255, b'w'), (1, 255, b'h')])));
    assert_eq!(
        server.program,
        [
            Step::ReceiveDatagrams { count: 1, clear: false },
            Step::Idle { time: Duration::from_secs(2), receive_only: false },
            Step::NextGroup("dns".into()),
        ]
    );
    let masked = plan.templates[1].server.as_ref().unwrap().first_bytes.as_ref();
    assert_eq!(masked, Some(&FirstBytes(vec![(4, 15, 15)])));
    for (part, other, expected) in [
        (
            "{send_datagram: who}",
            "{send: who}",
            "templates[0].client.program[1]: found a step of connections, where the template's",
        ),
        ("vlans: [100,", "vlans: [4095,", "server.vlans[0]: found 4095, expected a whole number"),
        ("vlans: [100, [5, 7]]", "vlans: [[5]]", "server.vlans[0]: found 1 VLANs, expected two"),
        (
            "first_bytes: wh",
            "first_bytes: ''",
            "first_bytes: found \"\", expected a text of 1 to 8",
        ),
        (
            "[{offset: 4, value: 15, mask: 15}]",
            "[{offset: 4, value: 2}, {offset: 4, value: 3}]",
            "templates[1].server.first_bytes: found byte 4 twice, expected each byte once",
        ),
        (
            "value: 15",
            "value: 16",
            "first_bytes[0].value: found 0x10, expected no bits beside those of the mask 0x0f",
        ),
        ("mask: 15", "mask: 0", "first_bytes[0].mask: found 0, expected a whole number from 1"),
        // Nothing would ever come to the second one.
        (
            "port: 53, first_bytes: [{offset: 4, value: 15, mask: 15}]",
            "port: 53, addresses: 10.0.1.0-10.0.1.9, first_bytes: [{offset: 1, value: 104}, {offset: 0, value: 119}]",
            "templates[1]: \"other names\" has a server at port 53 of \"s\", where \"names\" has one already",
        ),
        (
            "next_group: dns",
            "next_group: web",
            "server.program[2].next_group: found \"web\", expected one of dns",
        ),
        ("transport: udp", "transport: sctp", "transport: found \"sctp\", expected tcp or udp"),
    ] {
        let error = EmulationPlan::parse(&text.replace(part, other)).unwrap_err().to_string();
        assert!(error.contains(expected), "{other}: {error}");
    }
}

#[test]
fn datagrams_are_no_longer_than_they_can_be() {
    let with = |ends: [&str; 2], size: &str| {
        let [client, server] = ends;
        let text = format!(
            "ports: [{{name: c}}, {{name: s, addresses: 10.0.0.9/24}}]\n\
             templates:\n  - name: long\n    transport: udp\n\
             \x20   client: {{tx: c, {client}, load: {{hold: 1}}, program: [{{send_datagram: a}}]}}\n\
             \x20   server: {{tx: s, port: 53, {server}program: [{{repeat: {{times: 2, steps: \
             [{{receive_datagrams: 1}}, {{send_datagram: {size}}}]}}}}]}}\n"
        );
        let text = match client {
            "" => text.lines().filter(|it| !it.contains("client:")).collect::<Vec<_>>().join("\n"),
            _ => text,
        };
        EmulationPlan::parse(&text).map(drop).map_err(|errors| errors.to_string())
    };
    let ipv4 = "addresses: 10.0.0.1, servers: 10.0.0.9";
    let ipv6 = "addresses: \"2001:db8::1\", servers: \"2001:db8::9\"";
    for (ends, most) in [
        ([ipv4, ""], 65_507),
        ([ipv6, ""], 65_527),
        ([ipv4, "addresses: \"2001:db8::9\", "], 65_527),
        // As the port's own.
        (["", ""], 65_507),
        (["", "addresses: \"2001:db8::9\", "], 65_527),
    ] {
        let place = "templates[0].server.program[0].repeat.steps[1].send_datagram";
        for size in ["{size: SIZE}", "{text: \"${flow}\", size: SIZE}"] {
            let with = |bytes: u32| with(ends, &size.replace("SIZE", &bytes.to_string()));
            assert_eq!(with(most), Ok(()));
            let expected = format!("{place}: found {} bytes, expected at most {most}", most + 1);
            let said = with(most + 1).unwrap_err();
            assert!(said.starts_with(&expected), "{said}\nexpected {expected}");
        }
    }
    assert!(with([ipv4, ""], "{size: 4000000000}").is_err());
}

#[test]
fn a_template_may_have_tls() {
    let with = |tls: &str| {
        let plan = EmulationPlan::parse(&format!("{PAGE}    tls: {tls}\n"));
        plan.map(|plan| plan.templates[0].tls.clone())
    };
    assert_eq!(with("true").unwrap(), Some(Tls::default()));
    assert_eq!(with("{}").unwrap(), Some(Tls::default()));
    assert_eq!(with("false").unwrap(), None);
    let all = "{versions: [1.2, \"1.3\"], sni: pages.test, alpn: [h2, http/1.1], resume: false, \
               ciphers: [TLS_AES_128_GCM_SHA256], certificate: a.pem, key: a.key, ca: ca.pem, \
               client_certificate: b.pem, client_key: b.key, client_ca: cb.pem}";
    let expected = Tls {
        versions: vec![TlsVersion::Tls12, TlsVersion::Tls13],
        sni: Some("pages.test".into()),
        alpn: vec!["h2".into(), "http/1.1".into()],
        ciphers: vec!["TLS_AES_128_GCM_SHA256".into()],
        identity: Some(TlsFiles { certificate: "a.pem".into(), key: "a.key".into() }),
        client_identity: Some(TlsFiles { certificate: "b.pem".into(), key: "b.key".into() }),
        client_ca: Some("cb.pem".into()),
        ca: Some("ca.pem".into()),
        resume: false,
    };
    assert_eq!(with(all).unwrap(), Some(expected));
    for (tls, expected) in [
        ("yes please", "templates[0].tls: found \"yes please\", expected fields: versions, sni"),
        (
            "{version: [1.2]}",
            "templates[0].tls.version: found an unknown field, expected versions?",
        ),
        ("{versions: [1.1]}", "templates[0].tls.versions[0]: found 1.1, expected 1.2 or 1.3"),
        ("{versions: []}", "expected a list of versions, 1.2 and 1.3"),
        ("{alpn: h2}", "tls.alpn: found \"h2\", expected a list of protocols such as http/1.1"),
        ("{ciphers: [3]}", "tls.ciphers[0]: found 3, expected a cipher suite such as"),
        ("{key: a.key}", "templates[0].tls: found key alone, expected certificate as well"),
        ("{certificate: a}", "templates[0].tls: found certificate alone, expected key as well"),
        ("{client_key: a}", "tls: found client_key alone, expected client_certificate as well"),
        ("{client_ca: 5}", "templates[0].tls.client_ca: found 5, expected the name of a file"),
        ("{resume: 1}", "templates[0].tls.resume: found 1, expected true or false"),
        ("{sni: \"\"}", "tls.sni: found \"\", expected a host's name"),
    ] {
        let error = with(tls).unwrap_err().to_string();
        assert!(error.contains(expected), "{tls}: {error}");
    }
}

#[test]
fn a_template_may_have_http_2() {
    let with = |fields: &str| {
        let plan = EmulationPlan::parse(&format!("{PAGE}{fields}"));
        plan.map(|plan| (plan.templates[0].http2, plan.templates[0].tls.clone()))
    };
    let usual = Http2::default();
    assert_eq!(with("    http2: true\n").unwrap(), (Some(usual), None));
    assert_eq!(with("    http2: false\n").unwrap(), (None, None));
    assert_eq!(with("    tls: true\n").unwrap().1.unwrap().alpn, Vec::<String>::new());
    // Over TLS it is agreed upon.
    let (http2, tls) = with("    http2: {streams: 8, window: 65535}\n    tls: true\n").unwrap();
    assert_eq!(http2, Some(Http2 { streams: 8, window: 65_535 }));
    assert_eq!(tls.unwrap().alpn, ["h2"]);
    let (_, tls) = with("    http2: true\n    tls: {alpn: [h2, http/1.1]}\n").unwrap();
    assert_eq!(tls.unwrap().alpn, ["h2", "http/1.1"]);
    for (fields, expected) in [
        ("    http2: yes please\n", "templates[0].http2: found \"yes please\", expected fields"),
        ("    http2: {stream: 1}\n", "http2.stream: found an unknown field, expected streams?"),
        (
            "    http2: {streams: 0}\n",
            "templates[0].http2.streams: found 0, expected a whole number",
        ),
        ("    http2: {window: 99999999}\n", "templates[0].http2.window: found 99999999, expected"),
        (
            "    http2: true\n    tls: {alpn: [http/1.1, spdy/3]}\n",
            "templates[0].tls.alpn: found http/1.1, spdy/3, expected h2 among them",
        ),
    ] {
        let error = with(fields).unwrap_err().to_string();
        assert!(error.contains(expected), "{fields}: {error}");
    }
}

#[test]
fn http_2_is_of_connections_that_nobody_looks_into() {
    let plan = |templates: &str| {
        EmulationPlan::parse(&format!("ports: [{{name: s}}]\ntemplates: [{templates}]"))
    };
    let looks = "{name: l, server: {tx: s, port: 80, first_bytes: abc, program: []}}";
    let server =
        |tls: &str| format!("{{name: h, server: {{tx: s, port: 80, program: []}}, {tls}}}");
    assert!(plan(&server("http2: true")).is_ok());
    let error = plan(&format!("{}, {looks}", server("http2: true"))).unwrap_err().to_string();
    let expected = "templates[0]: found HTTP/2 at port 80, where servers are told apart by";
    assert!(error.contains(expected), "{error}");
    let error = plan(&server("transport: udp, http2: true")).unwrap_err().to_string();
    let expected = "templates[0].http2: found http2, expected the template's transport to be tcp";
    assert!(error.contains(expected), "{error}");
    for speech in ["http: {}", "smtp: {}"] {
        let error = plan(&format!("{{name: h, server: {{tx: s}}, {speech}, http2: true}}"));
        let expected = "templates[0].http2: is of http with version: 2, or of programs that are";
        assert!(error.clone().unwrap_err().to_string().contains(expected), "{error:?}");
    }
    let error = plan("{name: h, server: {tx: s}, http: {version: 2}, http2: false}");
    let expected = "templates[0].http2: http has version: 2: leave this out";
    assert!(error.clone().unwrap_err().to_string().contains(expected), "{error:?}");
}

#[test]
fn tls_is_of_connections_that_nobody_looks_into() {
    let server = |more: &str| {
        format!("{{name: a{}, server: {{tx: s, port: 443, program: []}}, {more}}}", more.len())
    };
    let plan = |templates: &str| {
        EmulationPlan::parse(&format!("ports: [{{name: s}}]\ntemplates: [{templates}]"))
    };
    let looks = "{name: b, server: {tx: s, port: 443, first_bytes: ab, program: []}}";
    assert!(plan(&server("tls: true")).is_ok());
    let error = plan(&format!("{}, {looks}", server("tls: true"))).unwrap_err().to_string();
    let expected = "templates[0].tls: found tls at port 443, where servers are told apart by";
    assert!(error.contains(expected), "{error}");
    assert!(plan(&server("transport: udp, tls: false")).is_ok());
    let error = plan(&server("transport: udp, tls: true")).unwrap_err().to_string();
    let expected = "templates[0].tls: found tls, expected the template's transport to be tcp";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn a_rate_may_grow_and_a_throughput_is_a_load() {
    let client = |load: &str| {
        let plan = EmulationPlan::parse(&PAGE.replace("load: {rate: 5k}", load));
        plan.map(|plan| plan.templates[0].client.clone().unwrap()).map_err(|it| it.to_string())
    };
    let grows = client("load: {rate: 5k}\n      ramp: 3s").unwrap();
    assert_eq!(grows.ramp, Duration::from_secs(3));
    assert_eq!(client("load: {throughput: 1.5M}").unwrap().load, Load::Throughput(1_500_000));
    let grows = client("load: {hold: 5}\n      ramp: 3s").unwrap();
    assert_eq!(grows.ramp, Duration::from_secs(3));
    let error = client("load: {throughput: 5M}\n      ramp: 3s").unwrap_err();
    assert!(error.contains("client.ramp: found a ramp, expected none"), "{error}");
}

#[test]
fn all_loads_are_multiplied() {
    let multiplied = |load: &str, factor: &str| {
        let text = PAGE.replace("load: {rate: 5k}", &format!("load: {load}"));
        let mut plan = EmulationPlan::parse(&text).unwrap();
        let outcome = plan.multiply(Decimal::parse(factor).unwrap());
        outcome.map(|()| plan.templates[0].client.as_ref().unwrap().load)
    };
    let rate = Rate::parse_per_second("12500", 1).unwrap();
    let faster = Load::Rate { rate, at_most: Some(9) };
    assert_eq!(multiplied("{rate: 5k, at_most: 9}", "2.5"), Ok(faster));
    assert_eq!(multiplied("{hold: 5}", "2.5"), Ok(Load::Hold(13)));
    assert_eq!(multiplied("{hold: 5}", "0.01"), Ok(Load::Hold(1)));
    assert_eq!(multiplied("{throughput: 1.5M}", "3"), Ok(Load::Throughput(4_500_000)));
    let Ok(Load::Users { users, .. }) = multiplied("{users: 7, think: 1s}", "3") else {
        panic!("users")
    };
    assert_eq!(users, 21);
    let error = multiplied("{hold: 5}", "1000000000").unwrap_err().to_string();
    let expected = "templates[0].client.load: times the multiplier: 5000000000, expected at most";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn flows_that_make_flows_without_end_are_refused() {
    let client = |name: &str, group: &str, load: &str, program: &str| {
        format!(
            "\n  - {{name: {name}, group: {group}, client: {{tx: c, servers: 10.0.1.1, \
             load: {load}, program: [{program}]}}}}"
        )
    };
    let plan = |templates: &[String]| {
        let text = format!("{}\ntemplates:{}", &PAGE[..PAGE.find("templates").unwrap()], {
            templates.concat()
        });
        EmulationPlan::parse(&text).map_err(|errors| errors.to_string())
    };
    let on_demand =
        |name: &str, group: &str, program: &str| client(name, group, "on_demand", program);
    let first = client("a", "first", "{rate: 1}", "{next_group: second}, run_next");
    // Through another template, within a loop, and of its own group.
    let ring =
        on_demand("b", "second", "{repeat: {times: 2, steps: [{next_group: third}, run_next]}}");
    let back = on_demand("c", "third", "connect, {next_group: second}, run_next");
    let error = plan(&[first.clone(), ring.clone(), back.clone()]).unwrap_err();
    let expected = "templates[1]: each flow makes another one, without end and whatever `limit` \
                    says: \"b\" makes \"c\" makes \"b\"; let a jump decide";
    assert!(error.starts_with(expected), "{error}");
    let own = client("a", "first", "{rate: 1}", "{next_group: first}, run_next");
    let error = plan(&[own]).unwrap_err();
    assert!(error.contains("\"a\" makes \"a\""), "{error}");
    // One that makes none may be drawn, or the program may go on without.
    let none = on_demand("d", "third", "connect");
    assert!(plan(&[first.clone(), ring.clone(), back, none]).is_ok());
    let jumps = "{set: {n: 3}}, {jump: {to: end, variable: n, equal: 3}}, {next_group: second}, run_next, {label: end}";
    let jumps = on_demand("c", "third", jumps);
    assert!(plan(&[first, ring, jumps]).is_ok());
}

#[test]
fn a_rate_may_have_so_many_at_once_at_most() {
    let load = |load: &str| {
        let plan = EmulationPlan::parse(&PAGE.replace("load: {rate: 5k}", load));
        plan.map(|plan| plan.templates[0].client.clone().unwrap().load)
            .map_err(|errors| errors.to_string())
    };
    let (rate, at_most) = (Rate::parse_per_second("5000", 1).unwrap(), Some(64));
    assert_eq!(load("load: {rate: 5k, at_most: 64}").unwrap(), Load::Rate { rate, at_most });
    assert_eq!(load("load: {at_most: 64, poisson: 5k}").unwrap(), Load::Poisson { rate, at_most });
    let ramping = load("load: {poisson: 5k, at_most: 64}\n      ramp: 3s");
    assert_eq!(ramping.unwrap(), Load::Poisson { rate, at_most });
    for (wrong, expected) in [
        ("{rate: 5k, at_most: 0}", "client.load.at_most: found 0, expected a whole number from 1"),
        ("{rate: x}", "client.load.rate: found \"x\", expected connections a second"),
        ("{hold: 5, at_most: 6}", "client.load.at_most: found an unknown field, expected one of"),
        ("{at_most: 6}", "client.load.at_most: found an unknown field, expected one of"),
        ("{rate: 5k, poisson: 6}", "client.load: found both"),
        ("{rate: 5k, hold: 6}", "client.load: found both"),
    ] {
        let error = load(&format!("load: {wrong}")).unwrap_err();
        assert!(error.contains(expected), "{wrong}: {error}");
    }
}

#[test]
fn users_think_as_delays_are_drawn() {
    let load = |load: &str| {
        let plan = EmulationPlan::parse(&PAGE.replace("load: {rate: 5k}", load));
        plan.map(|plan| plan.templates[0].client.clone().unwrap().load)
            .map_err(|errors| errors.to_string())
    };
    let [one, two] = [1, 2].map(Duration::from_secs);
    for (think, expected) in [
        ("", Think::Between { min: Duration::ZERO, max: Duration::ZERO }),
        (", think: 2s", Think::Between { min: two, max: two }),
        (", think: {min: 1s, max: 2s}", Think::Between { min: one, max: two }),
        (", think: {mean: 2s}", Think::About { mean: two, deviation: None }),
        (", think: {mean: 2s, deviation: 1s}", Think::About { mean: two, deviation: Some(one) }),
    ] {
        let found = load(&format!("load: {{users: 30{think}}}\n      ramp: 3s"));
        assert_eq!(found.unwrap(), Load::Users { users: 30, think: expected }, "{think}");
    }
    for (wrong, expected) in [
        ("{users: 0}", "client.load.users: found 0, expected a whole number from 1 to"),
        ("{users: 3, think: 5}", "client.load.think: found 5, expected a time with its unit"),
        ("{users: 3, think: {max: 1s}}", "client.load.think.min: found nothing, expected a time"),
        ("{users: 3, hold: 5}", "client.load.hold: found an unknown field, expected one of users"),
        ("{think: 5s}", "client.load.think: found an unknown field, expected one of rate"),
    ] {
        let error = load(&format!("load: {wrong}")).unwrap_err();
        assert!(error.contains(expected), "{wrong}: {error}");
    }
}

#[test]
fn values_are_written_and_parts_are_looked_at() {
    let found = steps(
        "set: {n: {counter: {step: 2}}}
         set: {key: {random_text: 8}}
         set: {form: {text: 'k=${key}'}}
         send: '$${n} ${n:04}${flow}'
         send: {hex: '00 ff', size: 9, fields: [{offset: 1, width: 2, value: form.length}]}
         send: 'only $5 {n} $'
         receive: {until: ok}
         extract: {id: {pattern: '(a)(b)', group: 2}}
         expect: {contains: '${id:hex}'}
         transaction: {start: all}",
    )
    .unwrap();
    let of = |pieces| Composition { pieces, ..Composition::default() };
    let (n, key, form, id) = (0, 0, 1, 2);
    let value = |value, form| Piece::Value(value, form);
    let text = |text: &str| Piece::Bytes(text.as_bytes().to_vec());
    let plain = "only $5 {n} $".as_bytes().to_vec();
    let expected = [
        Step::SetNumber {
            variable: n,
            number: Number::Counter { start: 1, step: 2, max: u64::MAX },
        },
        Step::SetText { text: key, composition: of(vec![Piece::RandomText(8)]) },
        Step::SetText {
            text: form,
            composition: of(vec![text("k="), value(FlowValue::Text(key), Form::Plain)]),
        },
        Step::SendOwn(of(vec![
            text("${n} "),
            value(FlowValue::Number(n), Form::Digits(4)),
            value(FlowValue::Flow, Form::Plain),
        ])),
        Step::SendOwn(Composition {
            size: 9,
            fields: vec![Field { offset: 1, width: 2, value: FlowValue::Length(form) }],
            ..of(vec![Piece::Bytes(vec![0, 255])])
        }),
        Step::Send { size: plain.len() as u32, text: plain, fill: Vec::new() },
        Step::ReceiveWhole(Received::Until(b"ok".to_vec())),
        Step::Extract {
            text: id,
            part: Part::Group(wirestorm_wire::pattern::Pattern::new("(a)(b)").unwrap(), 2),
        },
        Step::Expect {
            expected: Expected::Contains(of(vec![value(FlowValue::Text(id), Form::Hex)])),
            otherwise: None,
        },
        Step::StartTransaction("all".into()),
    ];
    assert_eq!(found, expected);
}

#[test]
fn what_is_wrong_with_values_has_its_path() {
    let path = "templates[0].client.program";
    for (list, expected) in [
        (
            "send: 'a ${user}'",
            "[0].send: found \"user\", expected a value that every flow has, or that a step before \
             sets or extracts: flow, client, client_port, server, server_port; $${ stands for",
        ),
        ("tos: 256", "[0].tos: found 256, expected"),
        ("send: '${flow'", "[0].send: found ${ without }, expected a value such as ${flow}"),
        (
            "send: '${flow:octal}'",
            "[0].send: found \"octal\" in ${flow:octal}, expected hex, bytes, u8, u16, u32, u64, octets,",
        ),
        ("send: '${flow.length}'", "[0].send: found \"flow.length\", expected a value"),
        ("send: {text: a, hex: '00'}", "[0].send.hex: found hex beside text"),
        ("send: {hex: '0'}", "[0].send.hex: found \"0\", expected bytes in hexadecimal"),
        ("send: {hex: '+1'}", "[0].send.hex: found \"+1\", expected bytes in hexadecimal"),
        (
            "send: {text: abcd, fields: [{offset: 3, width: 2, value: flow}]}",
            "[0].send.fields[0]: found a field beyond the end, expected one within 4 bytes",
        ),
        (
            "send: {text: abcd, fields: [{offset: 0, width: 0, value: flow}]}",
            "[0].send.fields[0].width: found 0, expected a whole number from 1 to 65535",
        ),
        (
            "send: {text: '${flow}', size: 1048577}",
            "[0].send.size: found 1048577, expected a whole number from 1 to 1048576",
        ),
        ("send: {fields: []}", "[0].send: found neither, expected text, size, or both"),
        ("set: {n: {count: 1}}", "[0].set.n.count: found an unknown field, expected counter?"),
        (
            "set: {n: {random: {min: 5, max: 4}}}",
            "[0].set.n.random.max: found 4, expected at least as much as min",
        ),
        ("set: {n: {random_text: 0}}", "[0].set.n.random_text: found 0, expected a whole number"),
        ("set: {client: 1}", "[0].set.client: \"client\" is a value of every flow already"),
        ("set: {a: 1}\nset: {a: {text: x}}", "[1].set.a: \"a\" is a number already"),
        ("set: {a: {text: x}}\nadd: {a: 1}", "[1].add.a: \"a\" is a text already"),
        (
            "receive: {until: ''}",
            "[0].receive.until: found \"\", expected a text of 1 to 1024 bytes",
        ),
        (
            "receive: {message: ftp}",
            "[0].receive.message: found \"ftp\", expected http, http_head, reply, rtsp",
        ),
        ("expect: ok", "[0].expect: no step before receives anything"),
        ("receive: 1\nexpect: ''", "[1].expect: found \"\", expected something to expect"),
        (
            "receive: 1\nexpect: {pattern: 'a('}",
            "[1].expect.pattern: found \"a(\" (unclosed group), expected a regular expression",
        ),
        ("receive: 1\nexpect: {text: a, hex: '00'}", "[1].expect: found both"),
        ("receive: 1\nexpect: {otherwise: x}", "[1].expect: found no field, expected one of"),
        (
            "receive: 1\nexpect: {text: a, otherwise: x}",
            "[1].expect.otherwise: found \"x\", expected a label of the program, which has none",
        ),
        (
            "receive: 1\njump: {to: x, received: {text: a, otherwise: x}}",
            "[1].jump.received.otherwise: found an unknown field",
        ),
        ("extract: {a: {offset: 0, length: 1}}", "[0].extract: no step before receives anything"),
        ("receive: 1\nextract: {}", "[1].extract: found no fields, expected a name and what it"),
        ("receive: 1\nextract: {a: {offset: 0}}", "[1].extract.a: a part is told by `pattern`"),
        (
            "receive: 1\nextract: {a: {pattern: 'b', group: 1}}",
            "[1].extract.a.group: found 1, expected a whole number from 0 to 0",
        ),
        ("receive: 1\nextract: {a: {between: [x]}}", "[1].extract.a.between: found a list of 1"),
        (
            "receive: 1\nextract: {a: {between: [x, '']}}",
            "[1].extract.a.between[1]: found \"\", expected a text of at least one byte",
        ),
        (
            "transaction: {end: x}",
            "[0].transaction.end: found \"x\", expected a transaction that a step starts",
        ),
        ("transaction: {begin: x}", "[0].transaction.begin: found an unknown field"),
    ] {
        let found = steps(list).unwrap_err();
        assert!(found.starts_with(&format!("{path}{expected}")), "{list}: {found}");
    }
    let long = format!("receive: 1\nexpect: {}", "x".repeat(65_537));
    let found = steps(&long).unwrap_err();
    assert!(found.contains("[1].expect: found 65537 bytes, expected at most 65536"), "{found}");
    let texts: String = (0..11).map(|n| format!("set: {{t{n}: {{random_text: 1}}}}\n")).collect();
    let found = steps(texts.trim()).unwrap_err();
    assert!(found.contains("texts of a program are at most 10"), "{found}");
    let names: String = (0..33).map(|n| format!("transaction: {{start: t{n}}}\n")).collect();
    let found = steps(names.trim()).unwrap_err();
    assert!(found.contains("transactions of a program are at most 32"), "{found}");
}

#[test]
fn servers_that_look_at_bytes_are_not_told_apart_by_them() {
    let server = |name: &str, first: &str, program: &str| {
        format!("  - name: {name}\n    server: {{tx: s, port: 80, {first}program: [{program}]}}\n")
    };
    let plan = |transport: &str, first: &str| {
        let second = server("b", "", "{receive: {until: x}}");
        let plan = format!(
            "ports: [{{name: s}}]\ntemplates:\n{}{second}",
            server("a", first, "wait_for_close")
        );
        match transport {
            "udp" => plan
                .replace("    server:", "    transport: udp\n    server:")
                .replace("{receive: {until: x}}", "{receive_datagrams: 1}, {expect: x}")
                .replace("wait_for_close", "{receive_datagrams: 1}"),
            _ => plan,
        }
    };
    let found = EmulationPlan::parse(&plan("tcp", "first_bytes: GET, ")).unwrap_err().to_string();
    assert!(
        found.starts_with("templates[1].server.program: found steps that write values or look at"),
        "{found}"
    );
    assert!(EmulationPlan::parse(&plan("udp", "first_bytes: GET, ")).is_ok());
    assert!(EmulationPlan::parse(&plan("tcp", "addresses: 10.0.0.1, ")).is_ok());
}

#[test]
fn steps_of_single_flows_are_of_their_transport() {
    let plan = |transport: &str, step: &str| {
        EmulationPlan::parse(&format!(
            "ports: [{{name: s}}]\ntemplates: [{{name: t, transport: {transport}, server: {{tx: s, \
             port: 1, program: [{step}]}}}}]"
        ))
    };
    for (of, other, step) in [
        ("tcp", "udp", "{send: '${flow}'}"),
        ("udp", "tcp", "{send_datagram: '${flow}'}"),
        ("tcp", "udp", "{receive: {message: http}}"),
    ] {
        assert!(plan(of, step).is_ok(), "{step}");
        let found = plan(other, step).unwrap_err().to_string();
        assert!(found.starts_with("templates[0].server.program[0]: found a step of"), "{found}");
    }
}

#[test]
fn latency_is_asked_from_a_port_with_an_address() {
    let with = |latency: &str| {
        let text = PAGE.replace("{name: s}", "{name: s, addresses: 10.0.0.9/24}\n  - {name: e}");
        let plan = EmulationPlan::parse(&format!("{text}latency: [{latency}]\n"));
        plan.map(|plan| plan.latency).map_err(|errors| errors.to_string())
    };
    let probe = |to: &str, rate| LatencyProbe {
        from: 0,
        to: to.parse().unwrap(),
        protocol: ProbeProtocol::Icmp,
        rate: Rate::new(rate, Duration::from_secs(1)).unwrap(),
        path: "latency[0]".into(),
    };
    assert_eq!(with("{from: c, to: s}").unwrap(), [probe("10.0.0.9", 100)]);
    assert_eq!(with("{from: c, to: 192.0.2.1, rate: 1k}").unwrap(), [probe("192.0.2.1", 1_000)]);
    assert_eq!(with("{from: c, to: s, protocol: icmp}").unwrap(), [probe("10.0.0.9", 100)]);
    for (words, port) in [("protocol: udp", 7), ("protocol: udp, port: 5001", 5_001)] {
        let by_udp =
            LatencyProbe { protocol: ProbeProtocol::Udp { port }, ..probe("10.0.0.9", 100) };
        assert_eq!(with(&format!("{{from: c, to: s, {words}}}")).unwrap(), [by_udp]);
    }
    for (wrong, expected) in [
        ("{from: x, to: s}", "latency[0].from: found \"x\", expected one of the plan's ports"),
        ("{from: e, to: s}", "latency[0].from: found port \"e\", which has none, expected a port"),
        ("{from: c}", "latency[0].to: found nothing, expected an address, or the name"),
        ("{from: c, to: nobody}", "latency[0].to: found \"nobody\", expected an address, or"),
        ("{from: c, to: e}", "latency[0].to: found port \"e\", which has no address of the family"),
        ("{from: c, to: s, rate: 1M}", "latency[0].rate: found \"1M\", expected probes a second"),
        ("{from: c, to: s, every: 1s}", "latency[0].every: found an unknown field"),
        ("{from: c, to: s, protocol: tcp}", "latency[0].protocol: found \"tcp\", expected icmp or"),
        ("{from: c, to: s, port: 7}", "latency[0].port: found a port, expected one with protocol"),
        ("{from: c, to: s, protocol: udp, port: 0}", "latency[0].port: found 0, expected"),
    ] {
        let error = with(wrong).unwrap_err();
        assert!(error.contains(expected), "{wrong}: {error}");
    }
    let text = PAGE.replace("{name: s}", "{name: s}\n  - {name: idle, addresses: 10.0.2.1/24}");
    let idle = EmulationPlan::parse(&format!("{text}latency: [{{from: idle, to: c}}]\n"));
    let error = idle.unwrap_err().to_string();
    let expected = "latency[0].from: found port \"idle\", expected one that clients or servers";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn datagrams_are_sent_back_where_nobody_else_waits_for_them() {
    let with = |server: &str, probe: &str| {
        let text = format!(
            "ports: [{{name: c, addresses: 10.0.0.1/24}}, {{name: s, addresses: 10.0.0.9/24}}, \
             {{name: idle, addresses: 10.0.0.77/24}}]\n\
             latency: [{{from: c, protocol: udp, {probe}}}]\n\
             templates:\n  - name: names\n    transport: udp\n\
             \x20   client: {{tx: c, servers: 10.0.0.9, load: {{hold: 1}}, program: [{{send_datagram: a}}]}}\n\
             \x20   server: {{tx: s, {server}, program: [{{receive_datagrams: 1}}]}}\n"
        );
        EmulationPlan::parse(&text).map(|_| ()).map_err(|errors| errors.to_string())
    };
    let at_53 = "port: 53, addresses: 10.0.0.9";
    assert_eq!(with(at_53, "to: s, port: 54"), Ok(()));
    assert_eq!(with("port: 53, addresses: 10.0.0.8", "to: s, port: 53"), Ok(()));
    let error = with(at_53, "to: s, port: 53").unwrap_err();
    let expected = "latency[0].port: template \"names\" has a server there, expected a port of UDP";
    assert!(error.contains(expected), "{error}");
    let error = with(at_53, "to: idle").unwrap_err();
    assert!(error.contains("latency[0].to: found port \"idle\", expected one that"), "{error}");
}

/// A control connection whose flows make those of another template, and accept them.
const ACCEPTING: &str = r#"
ports: [{name: c, addresses: 10.0.0.1/24}, {name: s}]
templates:
  - name: control
    client:
      tx: c
      servers: 10.0.1.1
      load: {hold: 1}
      program:
        - receive: {message: reply}
        - jump: {to: end, received: {pattern: "^5"}}
        - extract: {port: {pattern: "(\\d+)\\)"}}
        - next_group: data
        - start_next: {port: port}
        - end_next
        - label: end
    server:
      tx: s
      port: 21
      program:
        - listen: {variable: port, ports: 50000-50010}
        - send: "229 (${port:octets})\r\n"
        - next_group: data
        - accept_next
  - name: file
    group: data
    client: {tx: c, servers: 10.0.1.1, load: on_demand, program: [{receive: {bytes: 7}}]}
    server: {tx: s, port: on_demand, program: [{send: {size: 7}}]}
"#;

#[test]
fn programs_listen_and_accept_what_others_make() {
    let plan = EmulationPlan::parse(ACCEPTING).unwrap();
    let [control, file] = plan.templates.as_slice() else { panic!("{plan:?}") };
    let client = &control.client.as_ref().unwrap().program;
    assert_eq!(client[0], Step::ReceiveWhole(Received::Reply));
    let Step::Jump { when: When::Received(Expected::Matches(pattern)), .. } = &client[1] else {
        panic!("{client:?}")
    };
    assert_eq!(pattern.as_str(), "^5");
    assert_eq!(client[4], Step::StartNext { port: FlowValue::Text(0), client_port: None });
    let server = &control.server.as_ref().unwrap().program;
    assert_eq!(server[0], Step::Listen { variable: 0, ports: 50_000..=50_010 });
    let Step::SendOwn(Composition { pieces, .. }) = &server[1] else { panic!("{server:?}") };
    assert_eq!(pieces[1], Piece::Value(FlowValue::Number(0), Form::Octets));
    assert_eq!(server[3], Step::AcceptNext);
    assert_eq!(file.client.as_ref().unwrap().program, [Step::Need(7)]);
    assert_eq!(file.server.as_ref().unwrap().listen, None);
    let text = ACCEPTING
        .replace("- start_next: {port: port}", "- start_next: {port: port, client_port: port}");
    let plan = EmulationPlan::parse(&text).unwrap();
    let client = &plan.templates[0].client.as_ref().unwrap().program;
    let port = FlowValue::Text(0);
    assert_eq!(client[4], Step::StartNext { port, client_port: Some(port) });
    let text = ACCEPTING.replace("{variable: port, ports: 50000-50010}", "port");
    let plan = EmulationPlan::parse(&text).unwrap();
    let server = &plan.templates[0].server.as_ref().unwrap().program;
    assert_eq!(server[0], Step::Listen { variable: 0, ports: 49_152..=65_535 });
}

#[test]
fn what_is_wrong_with_accepting_has_its_path() {
    let control = "templates[0].server.program";
    for (part, other, expected) in [
        (
            "- start_next: {port: port}",
            "- start_next: {port: prot}",
            "templates[0].client.program[4].start_next.port: found \"prot\", expected a value",
        ),
        (
            "- start_next: {port: port}",
            "- start_next: {port: port, client_port: prot}",
            "templates[0].client.program[4].start_next.client_port: found \"prot\", expected a value",
        ),
        (
            "- start_next: {port: port}",
            "- start_next: port",
            "templates[0].client.program[4].start_next: found \"port\", expected",
        ),
        (
            "received: {pattern: \"^5\"}",
            "received: {pattern: \"^5\"}, variable: n, less: 4",
            "templates[0].client.program[1].jump: a jump has",
        ),
        (
            "receive: {message: reply}",
            "send: \"HELP\\r\\n\"",
            "templates[0].client.program[1].jump.received: no step before receives anything",
        ),
        (
            "ports: 50000-50010",
            "ports: 50010-50000",
            "templates[0].server.program[0].listen.ports: found \"50010-50000\", expected ports",
        ),
        (
            "        - listen: {variable: port, ports: 50000-50010}",
            "        - set: {port: 5}",
            &format!("{control}: accept_next: found no step `listen`, expected one before it"),
        ),
        (
            "        - next_group: data\n        - accept_next",
            "        - accept_next",
            &format!("{control}: accept_next: found no step `next_group`, expected one before it"),
        ),
        (
            "port: on_demand",
            "port: 22",
            &format!("{control}: accept_next: found group \"data\", expected one with a server"),
        ),
        (
            "port: on_demand",
            "port: on_demand, addresses: 10.0.1.1",
            "templates[1].server.addresses: who listens on demand does not say where: leave it out",
        ),
        (
            "    group: data\n",
            "    group: data\n    http2: true\n",
            "templates[1].http2: found HTTP/2, which a server on demand does not have",
        ),
        (
            "[{send: {size: 7}}]",
            "[{send: \"${flow}\"}]",
            "templates[1].server.program: found steps that write values,",
        ),
        ("{bytes: 7}", "{bytes: 0}", "templates[1].client.program[0].receive.bytes: found 0"),
    ] {
        assert!(ACCEPTING.contains(part), "{part}");
        let said = EmulationPlan::parse(&ACCEPTING.replace(part, other)).unwrap_err().to_string();
        assert!(said.starts_with(expected), "{said}\nexpected {expected}");
    }
    let udp = ACCEPTING
        .replace("    group: data\n", "    group: data\n    transport: udp\n")
        .replace("[{receive: {bytes: 7}}]", "[{receive_datagrams: 1}]")
        .replace("[{send: {size: 7}}]", "[{send_datagram: {size: 7}}]");
    let said = EmulationPlan::parse(&udp).unwrap_err().to_string();
    let expected = "templates[1].server.port: found on_demand, which connections alone have";
    assert!(said.starts_with(expected), "{said}");
}

/// A client that does these steps, in a plan with a group `parts`; or what is wrong with it.
fn following(steps: &str) -> Result<(), String> {
    let text = format!(
        "ports: [{{name: c, addresses: 10.0.0.1/24}}]\n\
         templates:\n\
         - {{name: a, client: {{tx: c, servers: 10.0.1.1, load: {{hold: 1}}, program: {steps}}}}}\n\
         - {{name: b, group: parts, client: {{tx: c, servers: 10.0.1.1, load: on_demand, \
         program: [{{send: a}}]}}}}\n"
    );
    EmulationPlan::parse(&text).map(drop).map_err(|errors| errors.to_string())
}

#[test]
fn flows_that_programs_ask_for_are_of_a_group_whatever_way_leads_there() {
    let no_group = "found a flow of no group, expected a step `next_group` on every way to it";
    let port = "{set: {p: 21}}";
    for (steps, expected) in [
        ("[run_next]", format!("[0]: {no_group}")),
        ("[run_next, {next_group: parts}]", format!("[0]: {no_group}")),
        (&format!("[{port}, {{start_next: {{port: p}}}}]"), format!("[1]: {no_group}")),
        ("[{repeat: {times: 2, steps: [{send: a}, run_next]}}]", {
            format!("[0].repeat.steps[1]: {no_group}")
        }),
        (
            "[{jump: {to: b, variable: n, equal: 1}}, {next_group: parts}, {label: b}, run_next]",
            format!("[3]: {no_group}"),
        ),
        (
            "[{next_group: parts}, run_next, end_next]",
            "[2]: found end_next, expected a step `start_next` before it".to_owned(),
        ),
    ] {
        let error = following(steps).unwrap_err();
        assert!(error.starts_with(&format!("templates[0].client.program{expected}")), "{error}");
    }
    for steps in [
        "[{next_group: parts}, run_next]",
        "[{repeat: {times: 2, steps: [{next_group: parts}, run_next]}}, run_next]",
        &format!("[{port}, {{next_group: parts}}, {{start_next: {{port: p}}}}, end_next]"),
        // It stands before what leads there.
        "[{next_group: parts}, {jump: b}, {label: a}, run_next, reset, {label: b}, {jump: a}]",
    ] {
        assert_eq!(following(steps), Ok(()), "{steps}");
    }
}

#[test]
fn a_loop_without_an_end_has_a_step_that_waits() {
    let error = "found a loop without an end in which nothing waits, expected a step in it";
    for (steps, place) in [
        ("[{label: x}, {add: {n: 1}}, {jump: x}]", "[2]"),
        ("[{label: x}, {jump: x}]", "[1]"),
        ("[{send: a}, {repeat: {steps: [{add: {n: 1}}]}}]", "[1]"),
        ("[{repeat: {times: 3, steps: [{repeat: {steps: [{set: {n: 1}}]}}]}}]", {
            "[0].repeat.steps[0]"
        }),
        ("[{label: x}, {delay: 0ms}, {delay: {mean: 0us}}, {jump: x}]", "[3]"),
        // One of two ways leads there.
        ("[{jump: {to: x, variable: n, less: 1}}, reset, {label: x}, {jump: x}]", "[3]"),
        // The other end closes once, and the connection opens once.
        ("[{label: x}, connect, wait_for_close, {jump: x}]", "[3]"),
        ("[{label: x}, {jump: y}, {label: y}, {count: {A: 1}}, {jump: x}]", "[1]"),
    ] {
        let said = following(steps).unwrap_err();
        let expected = format!("templates[0].client.program{place}: {error}");
        assert!(said.starts_with(&expected), "{said}\nexpected {expected}");
    }
    for steps in [
        "[{label: x}, {delay: 1us}, {jump: x}]",
        "[{label: x}, {delay: {min: 0ms, max: 1ms}}, {jump: x}]",
        "[{repeat: {steps: [{send: a}]}}]",
        "[{repeat: {steps: [{receive: 1}]}}]",
        "[{repeat: {times: 1000000, steps: [{add: {n: 1}}]}}]",
        "[{set: {n: 9}}, {label: x}, {count_down: {variable: n, to: x}}]",
        "[{remember: t}, {label: x}, {jump: {to: x, within: 1s, since: t}}]",
        "[{label: x}, {jump: {to: y, variable: n, equal: 9}}, {add: {n: 1}}, {jump: x}, {label: y}]",
        "[{repeat: {steps: [{next_group: parts}, run_next]}}]",
    ] {
        assert_eq!(following(steps), Ok(()), "{steps}");
    }
}

/// A client and a server that begin TLS when both have agreed to.
const STARTING_TLS: &str = r#"
ports: [{name: c, addresses: 10.0.0.1/24}, {name: s}]
templates:
  - name: t
    tls: true
    client: {tx: c, servers: 10.0.1.1, load: {hold: 1}, program: [{send: s}, {receive: 1}, start_tls, {send: a}]}
    server: {tx: s, port: 25, program: [{receive: 1}, {send: g}, start_tls, {receive: 1}]}
"#;

#[test]
fn tls_begins_by_a_step_where_that_makes_sense() {
    let plan = EmulationPlan::parse(STARTING_TLS).unwrap();
    let template = &plan.templates[0];
    assert_eq!(template.client.as_ref().unwrap().program[2], Step::StartTls);
    let path = "templates[0].client.program: start_tls: ";
    for (part, other, expected) in [
        ("    tls: true\n", "", "found no `tls` of the template, expected it, such as"),
        ("    tls: true\n", "    tls: true\n    http2: true\n", "found HTTP/2, which is there"),
        ("{receive: 1}, start_tls, {send: a}", "{receive_in_all: 1}, start_tls", "found a step `r"),
        ("{send: g}, start_tls", "{send: g}", "found none on the other side, where TLS is there"),
    ] {
        assert!(STARTING_TLS.contains(part), "{part}");
        let said = EmulationPlan::parse(&STARTING_TLS.replace(part, other)).unwrap_err();
        let said = said.to_string();
        assert!(said.starts_with(&format!("{path}{expected}")), "{said}\nexpected {expected}");
    }
    let udp = STARTING_TLS.replace("    tls: true\n", "    transport: udp\n");
    let said = EmulationPlan::parse(&udp).unwrap_err().to_string();
    assert!(said.contains("found a step of connections, where the template's"), "{said}");
}
