//! Flows between devices, and link aggregation groups.

use std::net::IpAddr;

use wirestorm_otg::lower::NextHop;
use wirestorm_otg::proto::Config;
use wirestorm_otg::{Lowered, Resolve, from_json, lower};
use wirestorm_wire::packet::MacAddress;

use crate::support::{errors, fixture, frames, lowered};

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn mac(last: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, last])
}

/// Returns Ethernet destination and source, IP source and destination of the first frames.
fn addresses(lowered: &Lowered, flow: usize, count: u64) -> Vec<[u8; 4]> {
    let sent = frames(&lowered.plan.flows[flow].stream, count);
    sent.iter().map(|frame| [frame[5], frame[11], frame[29], frame[33]]).collect()
}

#[test]
fn next_hops_are_resolved_in_a_second_pass() {
    let config = fixture("devices");
    let first = lowered(&config);
    let gateway = ip("10.0.0.254");
    let missing = [0, 1].map(|interface| NextHop { interface, address: gateway });
    assert_eq!(first.unresolved, missing);
    let mut resolve = Resolve::default();
    for NextHop { interface, address } in first.unresolved {
        let name = first.interfaces[interface].name.clone();
        resolve.set_neighbour(name, address, mac(0xf0 + interface as u8));
    }
    let second = lower(&config, &resolve).unwrap();
    assert_eq!(second.unresolved, []);
    let mesh = [[0xf0, 0xa, 1, 1], [0xf0, 0xa, 1, 2], [0xf1, 0xb, 2, 1], [0xf1, 0xb, 2, 2]];
    assert_eq!(addresses(&second, 0, 5), [&mesh[..], &mesh[..1]].concat());
    let pairs = [[0xf0, 0xa, 1, 1], [0xf1, 0xb, 2, 2]];
    assert_eq!(addresses(&second, 1, 3), [&pairs[..], &pairs[..1]].concat());
    assert_eq!(second.plan.flows[0].rx_ports, [1]);
}

#[test]
fn devices_are_interfaces_of_ports() {
    let lowered = lowered(&fixture("devices"));
    let interface = &lowered.interfaces[2];
    assert_eq!((interface.name.as_str(), interface.port, interface.mtu), ("c.eth", 1, 1500));
    assert_eq!(interface.mac, mac(0xc));
    assert_eq!(interface.addresses[0].gateway, ip("10.0.1.254"));
    assert_eq!(lowered.plan.ports[0].addresses.len(), 2);
    assert_eq!(lowered.plan.ports[0].gateways, [ip("10.0.0.254")]);
}

fn config(devices: &str, flow: &str) -> Config {
    let text = format!(
        r#"{{"ports": [{{"name": "p1"}}, {{"name": "p2"}}], "devices": {devices},
            "flows": [{{"name": "f", {flow}}}]}}"#
    );
    from_json(&text).unwrap().0
}

const TWO: &str = r#"[
    {"name": "a", "ethernets": [{"name": "a.eth", "mac": "02:00:00:00:00:0a",
        "connection": {"port_name": "p1"},
        "ipv4_addresses": [{"name": "a.ip", "address": "10.0.0.1", "gateway": "10.0.0.2",
            "gateway_mac": {"value": "02:00:00:00:00:99"}}]}]},
    {"name": "b", "ethernets": [{"name": "b.eth", "mac": "02:00:00:00:00:0b",
        "connection": {"port_name": "p2"},
        "ipv4_addresses": [{"name": "b.ip", "address": "10.0.0.2", "gateway": "10.0.0.1",
            "gateway_mac": {"value": "02:00:00:00:00:98"}}]}]}]"#;

#[test]
fn a_bidirectional_flow_has_a_stream_for_each_direction() {
    let flow = r#""tx_rx": {"device": {"tx_names": ["a.ip"], "rx_names": ["b.ip"],
        "bidirectional": true}}, "packet": [{"ethernet": {}}, {"ipv4": {}}, {"udp": {"src_port":
        {"value": 1}, "dst_port": {"values": [2, 3]}}}]"#;
    let lowered = lowered(&config(TWO, flow));
    assert_eq!(lowered.unresolved, []);
    let flow = &lowered.flows[0];
    assert_eq!(flow.streams.iter().map(|it| it.is_reversed).collect::<Vec<_>>(), [false, true]);
    assert_eq!(addresses(&lowered, 0, 1), [[0x99, 0xa, 1, 2]]);
    assert_eq!(addresses(&lowered, 1, 1), [[0x98, 0xb, 2, 1]]);
    let back = &lowered.plan.flows[1];
    assert_eq!((back.tx_port, &back.rx_ports[..]), (1, &[0][..]));
    let ports: Vec<_> =
        frames(&back.stream, 2).iter().map(|frame| (frame[35], frame[37])).collect();
    assert_eq!(ports, [(2, 1), (3, 1)]);
    assert_eq!(lowered.plan.flows[1].stream.name, "f (p2, reverse)");
}

#[test]
fn given_addresses_are_kept() {
    let flow = r#""tx_rx": {"device": {"tx_names": ["a.ip"], "rx_names": ["b.ip"]}}, "packet":
        [{"ethernet": {"src": {"value": "02:00:00:00:00:77"}}}, {"ipv4": {"dst": {"values":
        ["10.0.0.7", "10.0.0.8"]}}}]"#;
    let lowered = lowered(&config(TWO, flow));
    assert_eq!(addresses(&lowered, 0, 2), [[0x99, 0x77, 1, 7], [0x99, 0x77, 1, 8]]);
}

#[test]
fn ethernet_interfaces_send_to_each_other() {
    let flow = r#""tx_rx": {"device": {"tx_names": ["a.eth"], "rx_names": ["b.eth"]}}"#;
    let lowered = lowered(&config(TWO, flow));
    let sent = frames(&lowered.plan.flows[0].stream, 1);
    assert_eq!(sent[0][..12], [2, 0, 0, 0, 0, 0xb, 2, 0, 0, 0, 0, 0xa]);
}

#[test]
fn protocols_and_unknown_names_are_errors() {
    let devices = r#"[{"name": "a", "bgp": {"router_id": "1.1.1.1"}, "ethernets":
        [{"name": "a.eth", "connection": {"port_name": "p9"}}]}]"#;
    let flow = r#""tx_rx": {"device": {"tx_names": ["x"], "rx_names": ["y"]}}"#;
    assert_eq!(
        errors(&config(devices, flow)),
        [
            "devices[0].bgp: not supported",
            "devices[0].ethernets[0].connection.port_name: found \"p9\", which is no port of this \
             configuration",
            "flows[0].tx_rx.device.tx_names[0]: found \"x\", which is no interface or address of \
             a device",
        ]
    );
}

#[test]
fn the_members_of_a_static_lag_share_frames_by_address() {
    let text = r#"{"ports": [{"name": "p1"}, {"name": "p2"}, {"name": "p3"}],
        "lags": [{"name": "l", "protocol": {"choice": "static"}, "ports":
            [{"port_name": "p2", "ethernet": {"name": "m1", "mac": "02:00:00:00:00:01"}},
             {"port_name": "p3", "ethernet": {"name": "m2", "mac": "02:00:00:00:00:02"}}]}],
        "flows": [{"name": "to", "tx_rx": {"port": {"tx_name": "p1", "rx_names": ["l"]}}},
            {"name": "from", "tx_rx": {"port": {"tx_name": "l", "rx_names": ["p1"]}},
            "packet": [{"ethernet": {}}, {"ipv4": {"src": {"increment": {"start": "10.0.0.0",
            "count": 50}}}}], "duration": {"fixed_packets": {"packets": 200}}}]}"#;
    let (mut config, _) = from_json::<Config>(text).unwrap();
    let lowered = lowered(&config);
    assert_eq!(lowered.lags[0].ports, [1, 2]);
    assert_eq!(lowered.plan.flows[0].rx_ports, [1, 2]);
    assert_eq!(lowered.flows[1].streams.iter().map(|it| it.part).collect::<Vec<_>>(), [0, 0]);
    let members = [1, 2].map(|flow| &lowered.plan.flows[flow]);
    assert_eq!(members.map(|flow| flow.tx_port), [1, 2]);
    assert_eq!(members.map(|flow| &*flow.stream.name), ["from (p2)", "from (p3)"]);
    let sources = members.map(|flow| -> Vec<u8> {
        frames(&flow.stream, 1_000).iter().map(|frame| frame[29]).collect()
    });
    assert_eq!(sources[0].len() + sources[1].len(), 200);
    for source in 0..50 {
        let counts = sources.each_ref().map(|of| of.iter().filter(|it| **it == source).count());
        assert!([[4, 0], [0, 4]].contains(&counts), "{source}: {counts:?}");
    }
    assert!(sources.iter().all(|of| of.len() >= 40), "both send");
    config.lags[0].protocol = None;
    let expected = "lags[0].protocol: LACP is not supported: expected protocol.choice static";
    assert_eq!(errors(&config), [expected]);
}
