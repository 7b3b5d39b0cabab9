use std::net::IpAddr;

use wirestorm_base::rate::Rate;
use wirestorm_model::load::Load;
use wirestorm_model::pairing::{ClientOrder, Pairing};
use wirestorm_model::program::Step;
use wirestorm_wire::conversation::{
    Action, Conversation, Gaps, Imported, Side, Transport as Carrier, Turn,
};

use super::*;

const GENERATOR: &str = "
- duration : 10.0
  generator :
          distribution : \"seq\"
          clients_start : \"16.0.0.1\"
          clients_end   : \"16.0.0.255\"
          servers_start : \"48.0.0.1\"
          servers_end   : \"48.0.0.100\"
          clients_per_gb : 201
          min_clients    : 101
          dual_port_mask : \"1.0.0.0\"
          tcp_aging      : 0
          udp_aging      : 0
          generator_clients :
              - {name: c1, distribution: random, ip_start: 26.0.0.1, ip_end: 26.0.0.9}
          generator_servers :
              - {name: s1, distribution: random, ip_start: 28.0.0.1, ip_end: 28.0.0.9, track_ports: false}
";

const TIMES: &str = "ipg: 10000, rtt: 20000, w: 1";

/// Returns a profile with these fields after the generator, and these entries.
fn profile(fields: &str, entries: &[&str]) -> String {
    let entries: String = entries.iter().map(|it| format!("     - {{{it}}}\n")).collect();
    format!("{GENERATOR}{fields}  cap_info :\n{entries}")
}

fn flow(carrier: Carrier, client: &str, server: &str, messages: &[(Side, &str)]) -> Conversation {
    let turn = |(side, text): &(Side, &str)| Turn {
        side: *side,
        gap: Duration::from_millis(10),
        act: Action::Send(text.as_bytes().to_vec()),
    };
    Conversation {
        transport: carrier,
        client: client.parse().unwrap(),
        server: server.parse().unwrap(),
        packet: 1,
        has_beginning: true,
        turns: messages.iter().map(turn).collect(),
    }
}

/// Imports a fake capture by name.
fn capture(name: &str, _: Gaps) -> Result<Imported, String> {
    use Side::{Client, Server};
    let web = |text| {
        let messages = [(Client, text), (Server, "page"), (Server, "more")];
        flow(Carrier::Tcp, "1.1.1.1:4000", "2.2.2.2:80", &messages)
    };
    let flows = match name {
        "cap2/get.pcap" => vec![web("GET")],
        "post.pcap" => vec![web("POST longer")],
        "cap2/dns.pcap" => {
            let messages = [(Client, "who"), (Server, "me")];
            vec![flow(Carrier::Udp, "1.1.1.1:5000", "2.2.2.2:53", &messages)]
        }
        // A control connection, a flow that the server initiates, and one without data.
        "rtsp.pcap" => vec![
            web("PLAY"),
            flow(Carrier::Udp, "2.2.2.2:6000", "1.1.1.1:7000", &[(Client, "sound")]),
            flow(Carrier::Tcp, "1.1.1.1:4001", "2.2.2.2:81", &[]),
        ],
        "six.pcap" => {
            vec![flow(Carrier::Udp, "[2001:db8::1]:9", "[2001:db8::2]:10", &[(Client, "6")])]
        }
        "empty.pcap" => Vec::new(),
        name => return Err(format!("{name}: nowhere")),
    };
    Ok(Imported { flows: flows.into_iter().map(Ok).collect(), others: 0 })
}

fn read_all(
    fields: &str,
    entries: &[&str],
    options: &StatefulOptions,
) -> Result<CaptureProfile, String> {
    read(&profile(fields, entries), options, capture).map_err(|errors| errors.to_string())
}

fn plan(fields: &str, entries: &[&str]) -> EmulationPlan {
    read_all(fields, entries, &StatefulOptions::default()).unwrap().plan
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn an_entry_becomes_a_template_between_pools() {
    let entry = format!("name: cap2/get.pcap, cps: 2.776, {TIMES}, limit: 200");
    let options = StatefulOptions::default();
    let CaptureProfile { mut plan, duration } = read_all("", &[&entry], &options).unwrap();
    plan.multiply(wirestorm_base::rate::Decimal::parse("1000").unwrap()).unwrap();
    assert_eq!(duration, Some(Duration::from_secs(10)));
    let [template] = plan.templates.as_slice() else { panic!("{plan:?}") };
    assert_eq!((template.name.as_str(), template.transport), ("get", Transport::Tcp));
    let (client, server) = (template.client.as_ref().unwrap(), template.server.as_ref().unwrap());
    assert_eq!(
        client.load,
        Load::Rate { rate: Rate::parse_per_second("2776", 1).unwrap(), concurrent_max: None }
    );
    assert_eq!((client.consecutive_flows, client.reuse_after, client.limit), (1, Some(200), None));
    let clients = client.addresses.unwrap();
    assert_eq!((clients.first, clients.count), (address("16.0.0.1"), 255));
    assert_eq!((client.servers.first, client.servers.count), (address("48.0.0.1"), 100));
    assert_eq!((client.order, client.pairing), (ClientOrder::RoundRobin, Pairing::RoundRobin));
    assert_eq!((client.server_port, server.listen), (80, Some(80)));
    assert_eq!(server.addresses, Some(client.servers));
    assert_eq!((client.transmit, server.transmit), (0, 1));
    // Delays start when the send starts, not when it is acknowledged.
    assert_eq!(server.program[0], Step::SetBlocking(false));
    assert_eq!(
        plan.notes,
        [
            "[0].cap_info[0].limit: a connection that is still open, or in TIME-WAIT, repeats from \
             another port",
            "TCP captures are not sent packet by packet: their data goes over connections of \
             Wirestorm's TCP"
        ]
    );
}

#[test]
fn fields_of_an_entry_set_addresses_and_ports() {
    let entry = |words: &str| format!("name: cap2/dns.pcap, cps: 1, {words}");
    let cases = [
        ("ipg: 1, rtt: 1, w: 4", 4, "16.0.0.1", "48.0.0.1", 100, 1_024..=64_000),
        (
            "ipg: 1, rtt: 1, client_pool: c1, server_pool: s1",
            1,
            "26.0.0.1",
            "28.0.0.1",
            9,
            1_024..=64_000,
        ),
        (
            "ipg: 1, rtt: 1, one_app_server: true, server_addr: 48.0.0.7",
            1,
            "16.0.0.1",
            "48.0.0.7",
            1,
            1_024..=64_000,
        ),
        ("cap_ipg: true, keep_src_port: true", 1, "16.0.0.1", "48.0.0.1", 100, 5_000..=5_000),
    ];
    for (words, turn, clients, servers, count, ports) in cases {
        let plan = plan("", &[&entry(words)]);
        let client = plan.templates[0].client.as_ref().unwrap();
        assert_eq!(client.consecutive_flows, turn, "{words}");
        assert_eq!(client.addresses.unwrap().first, address(clients), "{words}");
        assert_eq!(client.servers.first, address(servers), "{words}");
        assert_eq!((client.servers.count, client.ports.clone()), (count, ports), "{words}");
        let is_random = words.contains("pool");
        assert_eq!(client.order == ClientOrder::Random, is_random, "{words}");
        assert_eq!(client.pairing == Pairing::Random, is_random, "{words}");
        assert_eq!(plan.notes, Vec::<String>::new(), "{words}");
    }
}

#[test]
fn packet_gaps_are_kept_or_replaced() {
    let fixed = |within, turning| {
        let [within, turning] = [within, turning].map(Duration::from_nanos);
        Gaps::Fixed { within, on_source_change: turning }
    };
    let least = Duration::from_micros(30);
    let instead = Duration::from_micros(200);
    let cases = [
        ("", "ipg: 1.5, rtt: 20", fixed(1_500, 20_000)),
        ("  cap_override_ipg: 3\n", "ipg: 1.5, rtt: 20", fixed(3_000, 3_000)),
        ("  cap_ipg: true\n", "ipg: 1.5, rtt: 20", Gaps::AsCaptured),
        ("  cap_ipg: true\n  cap_ipg_min: 30\n", "w: 1", Gaps::AsCaptured),
        ("  cap_ipg: true\n", "ipg: 1, rtt: 2, cap_ipg: false", fixed(1_000, 2_000)),
        (
            "  cap_ipg: true\n  cap_ipg_min: 30\n  cap_override_ipg: 200\n",
            "w: 1",
            Gaps::AtLeast { least, replacement: instead },
        ),
    ];
    for (fields, words, expected) in cases {
        let text = profile(fields, &[&format!("name: cap2/dns.pcap, cps: 1, {words}")]);
        let mut found = None;
        let load = |name: &str, gaps| {
            found = Some(gaps);
            capture(name, gaps)
        };
        read(&text, &StatefulOptions::default(), load).unwrap();
        assert_eq!(found, Some(expected), "{fields} {words}");
    }
}

#[test]
fn each_flow_of_a_capture_is_a_template_in_its_direction() {
    let entry = format!("name: rtsp.pcap, cps: 3, {TIMES}, plugin_id: 1");
    let plan = plan("", &[&entry]);
    let [control, media] = plan.templates.as_slice() else { panic!("{plan:?}") };
    assert_eq!((control.name.as_str(), media.name.as_str()), ("rtsp.1", "rtsp.2"));
    let (client, server) = (media.client.as_ref().unwrap(), media.server.as_ref().unwrap());
    // Servers send it to clients.
    assert_eq!((client.transmit, server.transmit, server.listen), (1, 0, Some(7_000)));
    assert_eq!(client.addresses.unwrap().first, address("48.0.0.1"));
    assert_eq!(server.addresses.unwrap().first, address("16.0.0.1"));
    // Both have the rate of the capture.
    let rate = Load::Rate { rate: Rate::parse_per_second("3", 1).unwrap(), concurrent_max: None };
    assert_eq!((control.client.as_ref().unwrap().load, client.load), (rate, rate));
    let notes = plan.notes.join("\n");
    for part in [
        "plugin_id: addresses and ports in payloads stay",
        "each of the 2 flows of its capture has this rate, independently",
        "skipped flow 3: neither side sends data",
    ] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
    assert!(!notes.contains("TRex refuses"), "{notes}");
    let entry = format!("name: rtsp.pcap, cps: 3, {TIMES}");
    let notes = self::plan("", &[&entry]).notes.join("\n");
    assert!(notes.contains("independently; TRex refuses such captures"), "{notes}");
    // `flows_dirs` overrides the addresses.
    let entry = format!("{entry}, multi_flow_enabled: true, flows_dirs: [1, 0, 0]");
    let plan = self::plan("", &[&entry]);
    let transmits = plan.templates.iter().map(|it| it.client.as_ref().unwrap().transmit);
    assert_eq!(transmits.collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn servers_at_one_port_split_the_pool() {
    let entries = ["cap2/get.pcap", "post.pcap", "cap2/get.pcap"];
    let entries = entries.map(|name| format!("name: {name}, cps: 1, {TIMES}"));
    let plan = plan("", &entries.each_ref().map(String::as_str));
    let names: Vec<_> = plan.templates.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["get", "post", "get-2"]);
    let parts: Vec<_> =
        plan.templates.iter().map(|it| it.client.as_ref().unwrap().servers).collect();
    let firsts: Vec<_> = parts.iter().map(|it| it.first).collect();
    assert_eq!(firsts, ["48.0.0.1", "48.0.0.34", "48.0.0.67"].map(address));
    assert_eq!(parts.iter().map(|it| it.count).sum::<u32>(), 100);
    let listens = plan.templates.iter().map(|it| it.server.as_ref().unwrap().addresses.unwrap());
    assert_eq!(listens.collect::<Vec<_>>(), parts);
    assert_eq!(
        plan.notes[0],
        "get, post, get-2: all go to port 80, so each has its own part of the 100 servers, 33 or \
         more"
    );
}

#[test]
fn equal_servers_can_share_an_address() {
    let one = "one_app_server: true, server_addr: 48.0.0.1";
    let entry = format!("name: cap2/dns.pcap, cps: 1, {TIMES}, {one}");
    let two = plan("", &[&entry, &entry]);
    assert_eq!(
        two.notes,
        ["dns, dns-2: all send the same at one server; its counters are those of dns"]
    );
    // The templates split the clients' port range, so that their flows do not collide.
    let ports = two.templates.iter().map(|it| it.client.as_ref().unwrap().ports.clone());
    assert_eq!(ports.collect::<Vec<_>>(), [1_024..=32_511, 32_512..=64_000]);
    // Different servers cannot share an address, be it the only one or one of a pool.
    let get = format!("name: cap2/get.pcap, cps: 1, {TIMES}, {one}");
    let post = format!("name: post.pcap, cps: 1, {TIMES}");
    for other in [format!("{post}, {one}"), post] {
        let error = read_all("", &[&get, &other], &StatefulOptions::default()).unwrap_err();
        let expected = "found other servers at port 80 in [0].cap_info[1], some at the same";
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn port_pairs_share_the_flows() {
    let options = StatefulOptions { pairs: 3, ..StatefulOptions::default() };
    let entry = format!("name: cap2/dns.pcap, cps: 0.6, {TIMES}, limit: 7");
    let plan = read_all("", &[&entry], &options).unwrap().plan;
    let ports: Vec<_> = plan.ports.iter().map(|port| port.name.as_str()).collect();
    assert_eq!(ports, ["clients", "servers", "clients1", "servers1", "clients2", "servers2"]);
    let clients: Vec<_> = plan.templates.iter().flat_map(|it| &it.client).collect();
    assert_eq!(clients.iter().map(|it| it.reuse_after.unwrap()).collect::<Vec<_>>(), [3, 2, 2]);
    assert_eq!(
        clients[2].load,
        Load::Rate { rate: Rate::parse_per_second("0.2", 1).unwrap(), concurrent_max: None }
    );
    let of_third = [clients[2].addresses.unwrap().first, clients[2].servers.first];
    assert_eq!(of_third, ["18.0.0.1", "50.0.0.1"].map(address));
}

#[test]
fn ipv6_addresses_are_prefix_and_pool_address() {
    let fields = "  src_ipv6 : [0x2001,0x0232,0x1002,0x0051,0x0000,0x0000]\n\
                  \x20 dst_ipv6 : [0x3001,0x0DB8,0x0003,0x0004,0x0000,0x0000]\n";
    let six = format!("name: six.pcap, cps: 1, {TIMES}");
    let four = format!("name: cap2/dns.pcap, cps: 1, {TIMES}");
    let firsts = |plan: &EmulationPlan| {
        let client = plan.templates[0].client.as_ref().unwrap();
        [client.addresses.unwrap().first, client.servers.first]
    };
    let expected = ["2001:232:1002:51::1000:1", "3001:db8:3:4::3000:1"].map(address);
    assert_eq!(firsts(&plan(fields, &[&six])), expected);
    let options = StatefulOptions { ipv6: true, ..StatefulOptions::default() };
    assert_eq!(firsts(&read_all(fields, &[&four], &options).unwrap().plan), expected);
    let plan = plan(fields, &[&four]);
    assert_eq!(firsts(&plan), ["16.0.0.1", "48.0.0.1"].map(address));
    assert_eq!(plan.notes, ["src_ipv6, dst_ipv6: used with --ipv6 only, as in TRex"]);
}

#[test]
fn vlan_depends_on_the_parity_of_the_client_address() {
    let fields = "  vlan       : { enable : 1  ,  vlan0 : 100 , vlan1 : 200 }\n";
    let entry = format!("name: cap2/dns.pcap, cps: 1, {TIMES}");
    let with = plan(fields, &[&entry]);
    let devices = &with.templates[0].client.as_ref().unwrap().devices;
    let found: Vec<_> = devices.iter().map(|it| (it.stride, it.vlan)).collect();
    // The first address is odd.
    assert_eq!(found, [(2, Some(200.into())), (1, Some(100.into()))]);
    assert!(with.notes[0].starts_with("vlan: clients with odd addresses are in VLAN 200 on"));
    let without = plan(&fields.replace("enable : 1", "enable : 0"), &[&entry]);
    assert_eq!(without.templates[0].client.as_ref().unwrap().devices, []);
}

#[test]
fn ignored_fields_have_notes() {
    let entry = format!("name: cap2/dns.pcap, cps: 1, {TIMES}");
    for (fields, words, expected) in [
        ("  tw: {buckets: 16384, levels: 2, bucket_time_usec: 20.0}\n", "", "[0].tw: ignored"),
        ("  mac_override_by_ip: 2\n", "", "[0].mac_override_by_ip: ignored"),
        ("  one_app_server: true\n", "", "[0].one_app_server: ignored, as in TRex"),
        ("", ", one_app_server: true", "one_app_server: ignored without server_addr"),
        ("", ", server_addr: 1.1.1.1", "server_addr: ignored without one_app_server"),
        ("", ", plugin_id: 5", "plugin_id: addresses and ports in payloads stay"),
        (
            "",
            ", dyn_pyload: [{pkt_id: 0, pyld_offset: 0, type: 0, len: 1, mask: 0xff}]",
            "dyn_pyload: payloads stay as captured",
        ),
        (
            "",
            ", server_pool: s1, limit: 2",
            "[0].cap_info[0]: each flow has random addresses, regardless of w and limit",
        ),
    ] {
        let notes = plan(fields, &[&format!("{entry}{words}")]).notes;
        assert!(notes.iter().any(|note| note.contains(expected)), "{fields}{words}: {notes:?}");
        assert_eq!(notes.len(), 1, "{notes:?}");
    }
}

#[test]
fn every_error_has_its_path() {
    let entry = format!("name: cap2/dns.pcap, cps: 1, {TIMES}");
    for (fields, entry, expected) in [
        ("", "name: cap2/dns.pcap, cps: 1", "[0].cap_info[0].ipg: found nothing"),
        ("", &entry.replace("cps: 1", "cps: 0"), "[0].cap_info[0].cps: found 0"),
        ("", &entry.replace("w: 1", "w: 0"), "[0].cap_info[0].w: found 0"),
        ("", &entry.replace("dns", "dnss"), "[0].cap_info[0].name: cap2/dnss.pcap: nowhere"),
        ("", &entry.replace("cap2/dns", "empty"), "name: no TCP or UDP flow with data"),
        ("", &format!("{entry}, wlen: 1"), "[0].cap_info[0].wlen: found an unknown field"),
        (
            "",
            &format!("{entry}, server_pool: s2"),
            "server_pool: found \"s2\", expected one of the generator's: default, s1",
        ),
        ("", &format!("{entry}, max_ip_tunnels: 2"), "max_ip_tunnels: found a tunnel"),
        ("", &format!("{entry}, plugin_id: 9"), "plugin_id: found 9"),
        (
            "",
            &entry.replace("cap2/dns", "rtsp").replace("w: 1", "flows_dirs: [0]"),
            "name: flow 2: has no direction: flows_dirs has 1",
        ),
        (
            "  vlan: {enable: 1, vlan0: 1, vlan1: 2}\n",
            &entry.replace("cap2/dns", "rtsp"),
            "flow 2: is initiated by a server",
        ),
        ("  src_ipv6: [1, 2]\n", &entry, "[0].src_ipv6: found a list of 2"),
        ("  cap_ipg: 7\n", &entry, "[0].cap_ipg: found 7, expected true or false"),
    ] {
        let error = read_all(fields, &[entry], &StatefulOptions::default()).unwrap_err();
        assert!(error.contains(expected), "{expected}: {error}");
    }
    let error = |text: &str| {
        let document = crate::document::read(text).unwrap();
        assert!(looks_like_profile(&document), "{text}");
        read(text, &StatefulOptions::default(), capture).unwrap_err().to_string()
    };
    let alone = error("- {distribution: seq, clients_start: 10.0.0.0}\n");
    assert!(alone.contains("the fields of a generator alone"), "{alone}");
    let old = error(&format!("- min_src_ip: 0x10000001\n  cap_info: [{{{entry}}}]\n"));
    assert!(old.contains("[0].generator: found nothing, expected distribution"), "{old}");
}
