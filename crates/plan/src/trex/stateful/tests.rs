use std::net::IpAddr;

use wirestorm_model::blackhole::Blackhole;
use wirestorm_model::load::Load;
use wirestorm_model::pairing::{ClientOrder, Pairing};
use wirestorm_model::program::{
    Comparison, CountAmount, JumpCondition, Label, Step, TimeVariable, UserCounter, Variable,
};
use wirestorm_model::tcp::EcnMode;

use super::*;
use crate::emulation::{NextHop, Tcp, Transport};

const PAGE: &str = r#"{
  "buf_list": ["R0VU", {"base": "QUI=", "size": 5, "fill": "Qw=="}],
  "ip_gen_dist_list": [
    {"ip_start": "16.0.0.1", "ip_end": "16.0.0.255", "ip_offset": "1.0.0.0", "dir": "c", "distribution": "seq"},
    {"ip_start": "48.0.0.1", "ip_end": "48.0.0.9", "ip_offset": "2.0.0.0", "dir": "s", "distribution": "seq"}],
  "program_list": [
    {"commands": [{"name": "set_var", "id": 2, "val": 3}, {"name": "tx", "buf_index": 0},
      {"name": "rx", "min_bytes": 5, "clear": true}, {"name": "jmp_nz", "id": 2, "offset": -2},
      {"name": "jmp_cmp", "id": 0, "offset": 1, "cmp_op": "gt", "cmp_val": 7}]},
    {"commands": [{"name": "rx", "min_bytes": 3}, {"name": "delay", "usec": 10.4}, {"name": "tx", "buf_index": 1}]}],
  "c_glob_info": {"scheduler": {"rampup_sec": 5}, "tcp": {"mss": 500, "keepidle": 3}, "ipv6": {"dst_msb": [32, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9]}},
  "s_glob_info": {"ip": {"tos": 3, "ttl": 200}, "tcp": {"blackhole": 2}},
  "templates": [{
    "client_template": {"program_index": 0, "port": 80, "cps": 2.776, "limit": 7, "cluster": {},
      "ip_gen": {"dist_client": {"index": 0}, "dist_server": {"index": 1}},
      "glob_info": {"tcp": {"mss": 700}}},
    "server_template": {"program_index": 1, "assoc": [{"port": 80, "l7_map": {"offset": [0, 2]}}]},
    "tg_id": 1}],
  "tg_names": ["pages"]}"#;

fn options(pairs: u32) -> StatefulOptions {
    StatefulOptions { pairs, ..StatefulOptions::default() }
}

#[test]
fn a_template_has_two_sides_with_tunables() {
    let mut plan = read(PAGE, &options(1)).unwrap();
    plan.multiply(wirestorm_base::rate::Decimal::parse("10").unwrap()).unwrap();
    let names: Vec<_> = plan.ports.iter().map(|port| port.name.as_str()).collect();
    assert_eq!(names, ["clients", "servers"]);
    let [template] = plan.templates.as_slice() else { panic!("{plan:?}") };
    assert_eq!((template.name.as_str(), template.group.as_deref()), ("0", Some("pages")));
    assert_eq!((template.transport, template.path.as_str()), (Transport::Tcp, "templates[0]"));
    let (client, server) = (template.client.as_ref().unwrap(), template.server.as_ref().unwrap());
    let rate = wirestorm_base::rate::Rate::parse_per_second("27.76", 1).unwrap();
    assert_eq!((client.load, client.limit), (Load::Rate { rate, concurrent_max: None }, Some(7)));
    assert_eq!(client.ramp_up, wirestorm_base::time::Duration::from_secs(5));
    let addresses = client.addresses.unwrap();
    assert_eq!((addresses.first, addresses.count), ("16.0.0.1".parse().unwrap(), 255));
    assert_eq!((client.servers.count, client.server_port, server.listen), (9, 80, Some(80)));
    // Precedence: the template's tunables, the side's, TRex's defaults.
    assert_eq!((client.tcp.mss, server.tcp.mss), (Some(700), None));
    assert_eq!((client.tcp.keepalive_ms, server.tcp.keepalive_ms), (Some(3_000), Some(5_000)));
    assert_eq!((client.ip.ttl, server.ip.ttl, server.ip.tos), (Some(127), Some(127), Some(2)));
    assert_eq!(server.first_bytes.as_ref().unwrap().0, [(0, 255, b'G'), (2, 255, b'T')]);
    assert_eq!(plan.notes, [""; 0]);
}

#[test]
fn tunables_become_settings_of_the_plan() {
    let text = PAGE
        .replace(
            "\"mss\": 500",
            "\"mss\": 10, \"txbufsize\": 65536, \"no_delay_counter\": 5000, \"rexmtthresh\": 7, \
             \"reass_maxqlen\": 0, \"keepinit\": 9, \"do_ecn\": 2, \"blackhole\": 1",
        )
        .replace("{\"mss\": 700}", "{\"txbufsize\": 4096}");
    let plan = read(&text, &options(1)).unwrap();
    let template = &plan.templates[0];
    let (client, server) = (template.client.as_ref().unwrap(), template.server.as_ref().unwrap());
    let tcp = Tcp {
        mss: Some(10),
        send_buffer: Some(4_096),
        ack_after_bytes: Some(5_000),
        dupack_threshold: Some(7),
        reassembly_max: Some(0),
        ecn: Some(EcnMode::Accept),
        open_timeout_ms: Some(9_000),
        syn_retries: Some(12),
        ..client.tcp
    };
    assert_eq!(client.tcp, tcp);
    // TRex's defaults.
    assert_eq!((server.tcp.open_timeout_ms, server.tcp.send_buffer), (Some(5_000), None));
    assert_eq!((server.tcp.ecn, server.tcp.dupack_threshold), (None, None));
    assert_eq!(plan.notes, [""; 0]);
}

#[test]
fn blackhole_acts_as_in_the_code_of_trex() {
    for (number, expected) in [
        (0, [Blackhole::None, Blackhole::None]),
        (1, [Blackhole::All, Blackhole::Syn]),
        (2, [Blackhole::All, Blackhole::All]),
    ] {
        let text = PAGE
            .replace("\"mss\": 500", &format!("\"blackhole\": {number}"))
            .replace("\"blackhole\": 2", &format!("\"blackhole\": {number}"));
        let plan = read(&text, &options(2)).unwrap();
        let found: Vec<_> = plan.ports.iter().map(|port| port.blackhole).collect();
        assert_eq!(found, [expected, expected].concat());
    }
}

#[test]
fn cont_limits_concurrent_flows_instead_of_the_total() {
    let text = PAGE.replace("\"limit\": 7", "\"limit\": 7, \"cont\": true");
    let mut plan = read(&text, &options(1)).unwrap();
    plan.multiply(wirestorm_base::rate::Decimal::parse("10").unwrap()).unwrap();
    let client = plan.templates[0].client.as_ref().unwrap();
    // As in TRex, the multiplier scales rates only.
    let rate = wirestorm_base::rate::Rate::parse_per_second("27.76", 1).unwrap();
    assert_eq!((client.load, client.limit), (Load::Rate { rate, concurrent_max: Some(7) }, None));
    let pairs = read(&text, &options(3)).unwrap();
    let at_most = |it: &Template| match it.client.as_ref().unwrap().load {
        Load::Rate { concurrent_max: at_most, .. } => at_most.unwrap(),
        ref other => panic!("{other:?}"),
    };
    assert_eq!(pairs.templates.iter().map(at_most).collect::<Vec<_>>(), [3, 2, 2]);
    let text = text.replace("\"cont\": true", "\"cont\": false");
    let plan = read(&text, &options(1)).unwrap();
    assert_eq!(plan.templates[0].client.as_ref().unwrap().limit, Some(7));
}

#[test]
fn commands_become_steps_and_offsets_labels() {
    let plan = read(PAGE, &options(1)).unwrap();
    let template = &plan.templates[0];
    let (again, end) = (Label(0), Label(1));
    assert_eq!(
        template.client.as_ref().unwrap().program,
        [
            Step::Set { variable: Variable::named(2), value: 3 },
            Step::Label(again),
            Step::Send { text: b"GET".to_vec(), size: 3, fill: Vec::new() },
            Step::Receive(5),
            Step::DecrementAndJump { variable: Variable::named(2), to: again },
            Step::Jump {
                to: end,
                when: JumpCondition::Compares {
                    variable: Variable::named(0),
                    comparison: Comparison::Greater,
                    value: 7
                }
            },
            Step::Label(end),
        ]
    );
    let ten = wirestorm_base::time::Duration::from_micros(10);
    assert_eq!(
        template.server.as_ref().unwrap().program,
        [
            Step::ReceiveTotal(3),
            Step::Delay { min: ten, max: ten },
            Step::Send { text: b"AB".to_vec(), size: 5, fill: b"C".to_vec() },
        ]
    );
}

#[test]
fn port_pairs_share_the_flows_and_have_separate_addresses() {
    let plan = read(PAGE, &options(3)).unwrap();
    assert_eq!(plan.ports[5].name, "servers2");
    let clients: Vec<_> = plan.templates.iter().flat_map(|it| &it.client).collect();
    let limits: Vec<_> = clients.iter().map(|it| it.limit.unwrap()).collect();
    assert_eq!(limits, [3, 2, 2]);
    let of_third: [IpAddr; 2] = ["18.0.0.1".parse().unwrap(), "52.0.0.1".parse().unwrap()];
    assert_eq!([clients[2].addresses.unwrap().first, clients[2].servers.first], of_third);
    assert_eq!((clients[2].transmit, plan.templates[2].server.as_ref().unwrap().transmit), (4, 5));
    let Load::Rate { rate, .. } = clients[0].load else { panic!("a rate") };
    assert!((rate.per_second() * 3.0 - 2.776).abs() < 1e-9);
}

#[test]
fn templates_with_equal_addresses_split_the_port_range() {
    let mut document: serde_json::Value = serde_json::from_str(PAGE).unwrap();
    let template = document["templates"][0].clone();
    document["templates"] = vec![template; 3].into();
    document["templates"][2]["client_template"]["port"] = 81.into();
    let plan = read(&document.to_string(), &options(1)).unwrap();
    let ports = plan.templates.iter().map(|it| it.client.as_ref().unwrap().ports.clone());
    assert_eq!(ports.collect::<Vec<_>>(), [1_024..=32_511, 32_512..=64_000, 1_024..=64_000]);
}

#[test]
fn tunables_set_the_upper_96_bits_of_ipv6_addresses() {
    let plan = read(PAGE, &StatefulOptions { ipv6: true, ..options(1) }).unwrap();
    let client = plan.templates[0].client.as_ref().unwrap();
    assert_eq!(client.addresses.unwrap().first, "::16.0.0.1".parse::<IpAddr>().unwrap());
    assert_eq!(client.servers.first, "2001::3000:1".parse::<IpAddr>().unwrap());
    assert_eq!(client.ip.ttl, Some(64));
}

#[test]
fn every_error_has_its_path() {
    for (part, other, expected) in [
        (
            "\"buf_index\": 0",
            "\"buf_index\": 2",
            "program_list[0].commands[1].buf_index: found 2, expected the number of one of the 2 buffers, from 0",
        ),
        (
            "\"offset\": -2",
            "\"offset\": -4",
            "program_list[0].commands[3].offset: found -4, expected a number of commands",
        ),
        (
            "\"name\": \"delay\"",
            "\"name\": \"deley\"",
            "program_list[1].commands[1]: found a command \"deley\"",
        ),
        (
            "\"mss\": 500",
            "\"mss\": 1",
            "c_glob_info.tcp.mss: found 1, expected a whole number from 10 to 9216",
        ),
        ("\"mss\": 500", "\"mss_\": 1", "c_glob_info.tcp.mss_: found an unknown field"),
        ("\"mss\": 500", "\"keepinit\": 1", "c_glob_info.tcp.keepinit: found 1, expected"),
        ("\"mss\": 500", "\"txbufsize\": 9", "c_glob_info.tcp.txbufsize: found 9, expected"),
        ("\"mss\": 500", "\"rexmtthresh\": 0", "c_glob_info.tcp.rexmtthresh: found 0, expected"),
        (
            "\"mss\": 500",
            "\"reass_maxqlen\": 1001",
            "c_glob_info.tcp.reass_maxqlen: found 1001, expected a whole number from 0 to 1000",
        ),
        ("\"mss\": 500", "\"do_ecn\": 3", "c_glob_info.tcp.do_ecn: found 3, expected"),
        ("\"blackhole\": 2", "\"blackhole\": 3", "s_glob_info.tcp.blackhole: found 3, expected"),
        (
            "\"mss\": 700",
            "\"no_delay_counter\": 70000",
            "templates[0].client_template.glob_info.tcp.no_delay_counter: found 70000, expected",
        ),
        (
            "\"mss\": 700",
            "\"do_sack\": 1",
            "templates[0].client_template.glob_info.tcp.do_sack: found an unknown field",
        ),
        ("\"tg_id\": 1", "\"tg_id\": 2", "templates[0].tg_id: found 2"),
        (
            "\"offset\": [0, 2]",
            "\"offset\": [0, 3]",
            "l7_map.offset: the client sends fewer first bytes",
        ),
        (
            "\"offset\": [0, 2]",
            "\"offset\": [0, 2], \"mask\": [15], \"value\": [16, 255]",
            "l7_map.value[0]: found 0x10, expected no bits outside the mask 0x0f",
        ),
        (
            "\"name\": \"rx\", \"min_bytes\": 5, \"clear\": true}",
            "\"name\": \"set_template\", \"tg_id\": 1}, {\"name\": \"exec_template\"}",
            "templates[0]: each flow starts another one without end, whatever `limit` is",
        ),
        (
            "\"name\": \"rx\", \"min_bytes\": 5, \"clear\": true}",
            "\"name\": \"exec_template\"}",
            "without end, whatever `limit` is: \"0\" starts \"0\"",
        ),
        (
            "\"name\": \"tx\", \"buf_index\": 0",
            "\"name\": \"tx_msg\", \"buf_index\": 0",
            "program_list[0].commands[1]: tx_msg is a command of UDP, in a program of TCP",
        ),
        ("R0VU", "R0V", "buf_list[0]: found \"R0V\", expected bytes in base 64"),
        (
            "\"ip_end\": \"16.0.0.255\"",
            "\"ip_end\": \"16.0.0.0\"",
            "ip_gen_dist_list[0]: ip_end 16.0.0.0 is before ip_start 16.0.0.1",
        ),
    ] {
        assert!(PAGE.contains(part), "{part}");
        let error = read(&PAGE.replace(part, other), &options(1)).unwrap_err().to_string();
        assert!(error.contains(expected), "{other}: {error}");
    }
}

#[test]
fn tick_counters_use_ticks_of_ten_milliseconds() {
    let stats = r#"{"name": "set_tick_var", "id": 1}, {"name": "add_tick_stats", "stats_id": 3, "var_id": 1}, "#;
    let at = PAGE.find(r#"{"name": "delay""#).unwrap();
    let plan = read(&[&PAGE[..at], stats, &PAGE[at..]].concat(), &options(1)).unwrap();
    let server = plan.templates[0].server.as_ref().unwrap();
    let unit = std::num::NonZeroU16::new(10).unwrap();
    let counted = Step::AddToCounter {
        counter: UserCounter::new(3).unwrap(),
        what: CountAmount::Since { time: TimeVariable::named(1), unit },
    };
    assert!(server.program.contains(&counted), "{:?}", server.program);
}

#[test]
fn distribution_rand_selects_random_addresses() {
    for (clients, servers) in [("rand", "seq"), ("seq", "rand")] {
        let side =
            |dir: &str, how: &str| format!("\"dir\": \"{dir}\", \"distribution\": \"{how}\"");
        let text = PAGE.replace(&side("c", "seq"), &side("c", clients));
        let text = text.replace(&side("s", "seq"), &side("s", servers));
        let plan = read(&text, &options(1)).unwrap();
        let client = plan.templates[0].client.as_ref().unwrap();
        assert_eq!(client.order == ClientOrder::Random, clients == "rand");
        assert_eq!(client.pairing == Pairing::Random, servers == "rand");
        assert!(!plan.notes.iter().any(|note| note.contains("drawn")), "{:?}", plan.notes);
    }
}

#[test]
fn client_configuration_sets_routers_and_their_source_address() {
    let text = r#"
vlan: true
groups:
  - ip_start: 16.0.0.1
    ip_end: 16.0.0.254
    initiator: {vlan: 9, next_hop: 1.1.1.1, src_ip: 1.1.1.100}
    responder: {vlan: 10, next_hop: 2.2.2.1, src_ip: 2.2.2.100}
    count: 4
  - {ip_start: 16.0.0.255, ip_end: 16.0.0.255, initiator: {vlan: 9, src_ip: 1.1.1.100}, responder: {vlan: 9}}
  - {ip_start: 17.0.0.1, ip_end: 17.0.0.9, initiator: {vlan: 9, src_ip: 1.1.1.200}, responder: {vlan: 9}}
"#;
    let mut plan = read(PAGE, &options(1)).unwrap();
    apply_client_configuration(&mut plan, text).unwrap();
    let devices = plan.templates[0].client.as_ref().unwrap().devices[0];
    let [first, from] = ["1.1.1.1", "1.1.1.100"].map(|it| it.parse().unwrap());
    assert_eq!(devices.next_hop, Some(NextHop { first, from: Some(from) }));
    assert_eq!((devices.count, devices.destination), (4, None));
    let guests: Vec<_> =
        plan.answered_addresses.iter().map(|it| (it.port, it.vlan, it.address)).collect();
    // No client is in the third group.
    assert_eq!(
        guests,
        [(0, Some(9.into()), from), (1, Some(10.into()), "2.2.2.100".parse().unwrap())]
    );
}

#[test]
fn client_configuration_puts_clients_behind_devices() {
    let text = r#"
vlan: true
groups:
  - {ip_start: 16.0.0.0, ip_end: 16.0.0.127, count: 3, initiator: {vlan: 9, dst_mac: "02:00:00:00:00:01"}}
  - {ip_start: 16.0.0.128, ip_end: 16.0.1.0, count: 1, initiator: {vlan: 10}, responder: {vlan: 1}}
"#;
    let mut plan = read(PAGE, &options(1)).unwrap();
    apply_client_configuration(&mut plan, text).unwrap();
    let [first, second] = plan.templates[0].client.as_ref().unwrap().devices[..] else {
        panic!("two groups")
    };
    assert_eq!((first.clients.count, first.count, first.vlan), (128, 3, Some(9.into())));
    assert_eq!(first.destination, Some("02:00:00:00:00:01".parse().unwrap()));
    assert_eq!(
        (second.clients.count, second.vlan, second.destination),
        (129, Some(10.into()), None)
    );
    for (part, other, expected) in [
        ("16.0.1.0", "16.0.0.200", "no group of the clients' configuration has 16.0.0.201"),
        ("vlan: true", "vlan: false", "groups[0]: found another vlan, expected none"),
        (
            "dst_mac: ",
            "next_hop: 1.1.1.1, dst_mac: ",
            "groups[0].initiator.next_hop: found dst_mac or src_mac as well",
        ),
        ("count: 3", "count: 0", "groups[0].count: found 0"),
    ] {
        let error = apply_client_configuration(&mut plan, &text.replace(part, other))
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{other}: {error}");
    }
}

#[test]
fn ipv6_clients_match_groups_by_the_last_32_bits() {
    let text = r#"
vlan: true
groups:
  - ip_start: 16.0.0.1
    ip_end: 16.0.0.254
    initiator: {vlan: 9, ipv6_next_hop: "fd01::1", src_ipv6: "fd01::2", src_ip: 1.1.1.100}
    responder: {vlan: 10, src_ipv6: "fd02::2"}
  - {ip_start: 16.0.0.255, ip_end: 16.0.1.0, initiator: {vlan: 9}, responder: {vlan: 9}}
"#;
    let plan = || read(PAGE, &StatefulOptions { ipv6: true, ..options(1) }).unwrap();
    let mut configured = plan();
    apply_client_configuration(&mut configured, text).unwrap();
    let client = configured.templates[0].client.as_ref().unwrap();
    let [first, from, answers, other] =
        ["fd01::1", "fd01::2", "fd02::2", "1.1.1.100"].map(|it| it.parse().unwrap());
    assert_eq!(client.devices[0].next_hop, Some(NextHop { first, from: Some(from) }));
    assert_eq!(client.devices[0].clients.first, client.addresses.unwrap().first);
    let guests: Vec<_> =
        configured.answered_addresses.iter().map(|it| (it.port, it.vlan, it.address)).collect();
    let [clients, servers] = [Some(9.into()), Some(10.into())];
    assert_eq!(guests, [(0, clients, other), (0, clients, from), (1, servers, answers)]);
    for (part, other, expected) in [
        ("ip_end: 16.0.0.254", "ip_end: 16.0.0.253", "clients' configuration has ::1000:fe, which"),
        (
            "src_ip: 1.1.1.100",
            "next_hop: 1.1.1.1",
            "groups[0].initiator.ipv6_next_hop: found ipv6_next_hop beside next_hop, expected one",
        ),
        (
            "ipv6_next_hop: \"fd01::1\"",
            "ipv6_next_hop: 1.1.1.1",
            "groups[0].initiator.ipv6_next_hop: found \"1.1.1.1\", expected an IPv6 address",
        ),
    ] {
        assert!(text.contains(part), "{part}");
        let error = apply_client_configuration(&mut plan(), &text.replace(part, other))
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{other}: {error}");
    }
}

/// Returns two UDP templates at one port with the add-on `latency`. `rules` extends the rule of
/// each.
fn stamped(rules: [&str; 2]) -> String {
    let template = |index: u32, rule: &str| {
        format!(
            r#"{{"client_template": {{"program_index": {index}, "port": 80, "cps": 1,
              "ip_gen": {{"dist_client": {{"index": 0}}, "dist_server": {{"index": 1}}}}}},
             "server_template": {{"program_index": 1, "assoc": [{{"port": 80{rule}}}]}}}}"#
        )
    };
    let head = PAGE.split("\"program_list\"").next().unwrap();
    let [first, second] = [template(0, rules[0]), template(0, rules[1])];
    format!(
        r#"{head} "program_list": [
          {{"stream": false, "addon": "latency", "commands": [{{"name": "tx_msg", "buf_index": 0}}]}},
          {{"stream": false, "addon": "latency", "commands": [{{"name": "rx_msg", "min_pkts": 1}}]}}],
        "templates": [{first}, {second}]}}"#
    )
}

#[test]
fn datagrams_with_the_add_on_name_their_server() {
    let read = |rules| read(&stamped(rules), &options(2)).unwrap();
    let bytes = |id: u32| {
        let bytes = (8..12).zip(id.to_be_bytes());
        bytes.map(|(at, byte)| (at, 255, byte)).collect::<Vec<_>>()
    };
    let plan = read(["", r#", "assoc_id": 7, "l7_map": {"offset": [0]}"#]);
    for (template, id) in plan.templates.iter().zip([0x1234_5678, 7, 0x1234_5678, 7]) {
        let server = template.server.as_ref().unwrap();
        assert_eq!((template.client.as_ref().unwrap().stamp, server.stamp), (Some(id), Some(id)));
        assert_eq!(server.first_bytes.as_ref().unwrap().0, bytes(id));
    }
    assert_eq!(
        plan.notes,
        ["templates[1].server_template.assoc[0].l7_map: ignored with an add-on, as in TRex"]
    );
    // A single server at a port receives all flows, regardless of the number they name.
    let text =
        stamped(["", ""]).replacen("\"assoc\": [{\"port\": 80", "\"assoc\": [{\"port\": 81", 1);
    let plan = super::read(&text, &options(1)).unwrap();
    let servers = plan.templates.iter().map(|it| it.server.as_ref().unwrap());
    let selections: Vec<_> = servers.map(|it| (it.stamp, it.first_bytes.is_some())).collect();
    assert_eq!(selections, [(Some(0x1234_5678), false), (Some(0x1234_5679), false)]);
}

#[test]
fn add_ons_that_trex_ignores_have_no_effect() {
    let text = stamped(["", ""]);
    for (addon, what) in [("rtp", "is unknown to TRex"), ("latency", "needs UDP")] {
        let text = text.replacen("\"latency\"", &format!("\"{addon}\""), 1);
        let text = match addon {
            "latency" => text
                .replace("\"stream\": false", "\"stream\": true")
                .replace("_msg", "")
                .replace("min_pkts", "min_bytes"),
            _ => text,
        };
        let plan = read(&text, &options(1)).unwrap();
        assert!(plan.templates.iter().all(|it| it.client.as_ref().unwrap().stamp.is_none()));
        let expected =
            format!("program_list[0].addon: {addon} {what}, so it has no effect, as in TRex");
        assert_eq!(plan.notes[0], expected);
    }
}
