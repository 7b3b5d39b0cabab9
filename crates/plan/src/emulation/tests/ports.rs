use super::*;

#[test]
fn gateways_must_be_in_the_networks_of_their_port() {
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
        let error = with(addresses, gateway).unwrap_err();
        assert!(error.starts_with(&format!("ports[1].gateway: {expected}")), "{error}");
    }
}

#[test]
fn blackhole_of_a_port_is_parsed() {
    for (word, expected) in
        [("none", Blackhole::None), ("syn", Blackhole::Syn), ("all", Blackhole::All)]
    {
        let text = PAGE.replace("{name: s}", &format!("{{name: s, blackhole: {word}}}"));
        let plan = EmulationPlan::parse(&text).unwrap();
        assert_eq!(
            plan.ports.iter().map(|it| it.blackhole).collect::<Vec<_>>(),
            [Blackhole::None, expected]
        );
    }
    let error = error("{name: s}", "{name: s, blackhole: 1}");
    assert_eq!(error, "ports[1].blackhole: found 1, expected none, syn or all");
}

#[test]
fn impairment_of_a_port_is_parsed() {
    let text = PAGE
        .replace("{name: s}", "{name: s, impair: {loss: 1%, delay: 5ms, rate: 1G-l2, queue: 50}}");
    let plan = EmulationPlan::parse(&text).unwrap();
    assert_eq!(plan.ports[0].impairment, None);
    let impairment = plan.ports[1].impairment.unwrap();
    assert_eq!(impairment.delay, Duration::from_millis(5));
    assert_eq!(impairment.loss, Loss::Random(Probability::from_billionths(10_000_000).unwrap()));
    assert_eq!(impairment.bottleneck.unwrap().queue, Queue::Frames(50));
    for (impair, expected) in [
        ("{loss: 1}", "ports[1].impair.loss: found 1, expected a share of frames"),
        ("{lost: 1%}", "ports[1].impair.lost: found an unknown field"),
        ("{queue: 5}", "ports[1].impair: a queue without a rate"),
        ("5ms", "ports[1].impair: found"),
    ] {
        let error = error("{name: s}", &format!("{{name: s, impair: {impair}}}"));
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn tunnels_of_a_port_are_parsed() {
    let port = "{name: s, addresses: [10.0.9.1/24, fd00::1/64], tunnels: [\
               {clients: 16.0.0.0-16.0.0.255, teid: 5, dst: 10.0.9.2}, \
               {clients: 17.0.0.1, teid: 0, teid_step: 9, src: fd00::2, source_port: 2152}]}";
    let plan = EmulationPlan::parse(&PAGE.replace("{name: s}", port)).unwrap();
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
        ("{teid: 1, dst: 1.1.1.1}", "[0].clients: "),
        ("{clients: 1.1.1.1, dst: 1.1.1.1}", "[0].teid: "),
        ("{clients: 1.1.1.1, teid: 4294967296, dst: 1.1.1.1}", "[0].teid: found 4294967296"),
        ("{clients: 1.1.1.1, teid: 1}", "[0]: found no end of the tunnel, expected dst, src"),
        (
            "{clients: 1.1.1.1, teid: 1, dst: \"fd00::1\"}",
            "[0]: found one end, fd00::1, expected the other, or an address of IPv6 of the port",
        ),
        (
            "{clients: 1.1.1.1, teid: 1, src: 1.1.1.1, dst: \"fd00::1\"}",
            "[0].dst: found \"fd00::1\", expected an address of the family of 1.1.1.1",
        ),
        ("{clients: 1.1.1.1, teid: 1, dst: 1.1.1.1, source_port: 0}", "[0].source_port: found 0"),
        ("{clients: 1.1.1.1, teid: 1, dst: 1.1.1.1, type: 1}", "[0].type: found an unknown field"),
        (
            "{clients: 1.1.1.1-1.1.1.9, teid: 1, dst: 1.1.1.1}, {clients: 1.1.1.0-1.1.1.3, teid: 1, dst: \
             1.1.1.1}",
            "[1].clients: 1.1.1.1 already has a tunnel",
        ),
        (
            "{clients: 1.1.1.1-1.1.1.3, teid: 4294967290, teid_step: 3, dst: 1.1.1.1}",
            "[0].teid: found 4294967290: with a step of 3 the last of 3 clients gets 4294967296, \
             expected at most 4294967295",
        ),
    ] {
        let port = format!("{{name: s, addresses: 10.0.9.1/24, tunnels: [{tunnels}]}}");
        let error = error("{name: s}", &port);
        assert!(error.starts_with(&format!("ports[1].tunnels{expected}")), "{error}");
    }
    let last = "{name: s, tunnels: [{clients: 1.1.1.1-1.1.1.3, teid: 4294967289, teid_step: 3, dst: \
                1.1.1.1, src: 1.1.1.2}]}";
    assert!(EmulationPlan::parse(&PAGE.replace("{name: s}", last)).is_ok());
}

#[test]
fn vlan_tags_mpls_labels_and_next_hops_of_devices_are_parsed() {
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
            "stride: 2",
            ": found no field that changes frames, expected at least one of dst, src, vlan, mpls, \
             next_hop",
        ),
        ("vlan: [5]", ".vlan: found 1 VLANs, expected two, the outer one first"),
        ("vlan: [5, 4096]", ".vlan[1]: found 4096, expected a whole number from 0 to 4094"),
        ("vlan: 4095", ".vlan: found 4095, expected a whole number from 0 to 4094"),
        (
            "dst: \"01:00:5e:00:00:01\"",
            ".dst: found \"01:00:5e:00:00:01\", expected a unicast Ethernet address",
        ),
        ("src: \"ff:ff:ff:ff:ff:ff\"", ".src: found \"ff:ff:ff:ff:ff:ff\", expected a unicast"),
        ("mpls: 16", ".mpls: "),
        ("mpls: []", ".mpls: found 0 labels, expected 1 to 4"),
        ("mpls: [1, 2, 3, 4, 5]", ".mpls: found 5 labels, expected 1 to 4"),
        ("mpls: [1048576]", ".mpls[0]: found 1048576, expected a whole number from 0 to 1048575"),
        ("mpls: [{label: 1, tc: 8}]", ".mpls[0].tc: found 8"),
        ("mpls: [{tc: 1}]", ".mpls[0].label: "),
        ("mpls: [{label: 1, exp: 1}]", ".mpls[0].exp: found an unknown field"),
        ("next_hop: router", ".next_hop: found \"router\", expected an IP address"),
        ("next_hop: 0.0.0.0", ".next_hop: found 0.0.0.0, expected a unicast address"),
        ("next_hop: \"ff02::1\"", ".next_hop: found ff02::1, expected a unicast address"),
        (
            "count: 3, next_hop: 223.255.255.254",
            ".next_hop: found 223.255.255.254 and the next 2, one address for each device, \
             expected unicast addresses, not 224.0.0.0",
        ),
        (
            "count: 3, next_hop: 255.255.255.254",
            ".next_hop: found 255.255.255.254 and the next 2, one address for each device, \
             expected unicast addresses, not 255.255.255.255",
        ),
        (
            "next_hop: 10.0.9.1, next_hop_source: 255.255.255.255",
            ".next_hop_source: found 255.255.255.255, expected a unicast address",
        ),
        (
            "next_hop: 10.0.9.1, dst: \"02:00:00:00:00:09\"",
            ".next_hop: found dst as well, expected one of them",
        ),
        (
            "vlan: 5, next_hop_source: 10.0.9.9",
            ".next_hop_source: needs next_hop, which is missing",
        ),
        (
            "next_hop: 10.0.9.1, next_hop_source: \"fd00::9\"",
            ".next_hop_source: found \"fd00::9\", expected an address of the family of 10.0.9.1",
        ),
    ] {
        let error = devices(words).unwrap_err().to_string();
        let expected = format!("templates[0].client.devices[0]{expected}");
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[test]
fn devices_must_apply_to_clients_of_the_template() {
    let with = |addresses: &str, devices: &str| {
        let client = format!("tx: c\n      {addresses}\n      devices: [{devices}]");
        let plan = EmulationPlan::parse(&PAGE.replace("tx: c", &client));
        plan.map(|plan| plan.notes).map_err(|errors| errors.to_string())
    };
    let ten = "addresses: 10.0.0.11-10.0.0.20";
    let all = "{clients: 10.0.0.11-10.0.0.20, vlan: 5}";
    // The first item that has a client applies; items may also have other addresses.
    for (addresses, devices) in [
        (ten, all.to_owned()),
        (ten, format!("{{clients: 10.0.0.1-10.0.0.11, vlan: 7}}, {all}")),
        (ten, format!("{{clients: 10.0.0.11-10.0.0.20, stride: 2, vlan: 7}}, {all}")),
        ("", "{clients: 10.0.0.1, vlan: 7}".to_owned()),
    ] {
        assert_eq!(with(addresses, &devices), Ok(vec![]), "{devices}");
    }
    for (addresses, devices, expected) in [
        (
            ten,
            "{clients: 10.0.0.21-10.0.0.30, vlan: 5}".to_owned(),
            "devices[0].clients: found \"10.0.0.21-10.0.0.30\", expected some of the template's \
             clients, 10.0.0.11 and the next 9",
        ),
        (
            "",
            "{clients: 10.0.0.2, vlan: 5}".to_owned(),
            "devices[0].clients: found \"10.0.0.2\", expected some of the template's clients, 10.0.0.1",
        ),
        (
            ten,
            format!("{all}, {{clients: 10.0.0.12-10.0.0.20, vlan: 7}}"),
            "devices[1].clients: devices[0] comes first and has all of these clients",
        ),
    ] {
        let error = with(addresses, &devices).unwrap_err();
        assert!(error.starts_with(&format!("templates[0].client.{expected}")), "{error}");
    }
}

#[test]
fn latency_probes_are_sent_from_a_port_with_an_address() {
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
        ("{from: c, to: s, stride: 1s}", "latency[0].stride: found an unknown field"),
        ("{from: c, to: s, protocol: tcp}", "latency[0].protocol: found \"tcp\", expected icmp or"),
        (
            "{from: c, to: s, port: 7}",
            "latency[0].port: found a port, expected one only with protocol",
        ),
        ("{from: c, to: s, protocol: udp, port: 0}", "latency[0].port: found 0, expected"),
    ] {
        let error = with(wrong).unwrap_err();
        assert!(error.contains(expected), "{wrong}: {error}");
    }
    let text = PAGE.replace("{name: s}", "{name: s}\n  - {name: idle, addresses: 10.0.2.1/24}");
    let idle = EmulationPlan::parse(&format!("{text}latency: [{{from: idle, to: c}}]\n"));
    let error = idle.unwrap_err().to_string();
    let expected = "latency[0].from: found port \"idle\", expected one that clients or servers use";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn udp_probes_need_a_port_without_a_server() {
    let with = |server: &str, probe: &str| {
        let text = format!(
            "ports: [{{name: c, addresses: 10.0.0.1/24}}, {{name: s, addresses: 10.0.0.9/24}}, \
             {{name: idle, addresses: 10.0.0.77/24}}]\n\
             latency: [{{from: c, protocol: udp, {probe}}}]\n\
             templates:\n  - name: names\n    transport: udp\n\
             \x20   client: {{tx: c, servers: 10.0.0.9, load: {{concurrent: 1}}, program: [{{send_datagram: a}}]}}\n\
             \x20   server: {{tx: s, {server}, program: [{{receive_datagrams: 1}}]}}\n"
        );
        EmulationPlan::parse(&text).map(|_| ()).map_err(|errors| errors.to_string())
    };
    let at_53 = "port: 53, addresses: 10.0.0.9";
    assert_eq!(with(at_53, "to: s, port: 54"), Ok(()));
    assert_eq!(with("port: 53, addresses: 10.0.0.8", "to: s, port: 53"), Ok(()));
    let error = with(at_53, "to: s, port: 53").unwrap_err();
    let expected = "latency[0].port: template \"names\" has a server there, expected a UDP port";
    assert!(error.contains(expected), "{error}");
    let error = with(at_53, "to: idle").unwrap_err();
    assert!(error.contains("latency[0].to: found port \"idle\", expected one that"), "{error}");
}
