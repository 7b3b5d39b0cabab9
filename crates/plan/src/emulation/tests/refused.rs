use super::*;

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
            "load: {rate: 5k, ramp_up: 5s}",
            "templates[0].client.load.ramp_up: belongs in the client, next to `load`: move ramp_up there",
        ),
        (
            "load: {rate: 5k}",
            "load: {users: 5, limit: 5}",
            "templates[0].client.load.limit: belongs in the client, next to `load`: move limit there",
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
        ("{rate: 5k}", "{rate: 1, concurrent: 2}", "templates[0].client.load: found both"),
        (
            "{rate: 5k}",
            "on-demand",
            "templates[0].client.load: found \"on-demand\", expected on_demand, or fields: rate, \
             poisson, concurrent, throughput, users",
        ),
        (
            "{rate: 5k}",
            "{on_demand: true}",
            "templates[0].client.load.on_demand: found an unknown field, expected one of rate, \
             poisson, concurrent, throughput, users, or the string on_demand",
        ),
        ("name: page", "name: ''", "templates[0].name: found \"\", expected a name"),
        (
            "name: page",
            "name: 204",
            "templates[0].name: found 204, expected a name; a string needs quotes: \"204\"",
        ),
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
            "templates[0].server.program[0]: found a reset before other steps",
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
        ("name: page", "name: page, nam: 1", "plan: invalid YAML"),
        (
            "10.0.1.1-10.0.1.255",
            "10.0.0.0-10.0.0.3",
            "templates[0].client.servers: found \"10.0.0.0-10.0.0.3\", expected addresses other \
             than the clients', which are 10.0.0.1",
        ),
        (
            "limit: 100",
            "addresses: 10.0.0.250-10.0.1.1",
            "templates[0].client.servers: found \"10.0.1.1-10.0.1.255\", expected addresses \
             other than the clients', which are 10.0.0.250 and the next 7",
        ),
        ("{name: s}", "{name: c}", "ports[1]: found a second port \"c\", expected a unique name"),
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
            "templates[0].client.order: found \"backwards\", expected round_robin or random",
        ),
        (
            "limit: 100",
            "pairing: any",
            "templates[0].client.pairing: found \"any\", expected round_robin, random or fixed",
        ),
        (
            "limit: 100",
            "ports: 2000-1000",
            "templates[0].client.ports: found \"2000-1000\", expected ports such as 1024-65535",
        ),
        (
            "limit: 100",
            "consecutive_flows: 0",
            "templates[0].client.consecutive_flows: found 0, expected a whole number from 1 to 4294967295",
        ),
        (
            "limit: 100",
            "limit: 0",
            "templates[0].client.limit: found 0, expected a whole number from 1 to",
        ),
        ("tx: c", "tx: c\n      tx: s", "plan: line 9 column 7: duplicate key \"tx\""),
        (
            "limit: 100",
            "order: random\n      consecutive_flows: 2",
            "templates[0].client.consecutive_flows: found 2, expected none with order: random, which is random \
             for each connection, or order: round_robin",
        ),
        (
            "limit: 100",
            "order: random\n      reuse_after: 9",
            "templates[0].client.reuse_after: found 9, expected none with order: random, which",
        ),
        (
            "limit: 100",
            "pairing: random\n      reuse_after: 9",
            "templates[0].client.reuse_after: found 9, expected none with pairing: random, which \
             is random for each connection, or pairing: round_robin or fixed",
        ),
    ] {
        let found = error(part, other);
        assert!(found.starts_with(expected), "{other}: {found}");
    }
    for (document, expected) in [
        ("ports: []\ntemplates: []", "templates: found no template, expected at least one"),
        ("ports: []", "templates: found nothing, expected a list of templates"),
        ("{\"ports\": [], \"templates\": ]", "plan: invalid JSON: expected value at line 1"),
        ("ports: [", "plan: invalid YAML: "),
        ("{\"ports\": [], \"ports\": []}", "plan: line 1 column 21: duplicate key \"ports\""),
        (
            "ports: [{name: s}]\ntemplates: [{name: a, server: {tx: s, port: 1, program: {send: a}}}]",
            "templates[0].server.program: found fields (send, ...), expected a list of",
        ),
    ] {
        let found = EmulationPlan::parse(document).unwrap_err().to_string();
        assert!(found.starts_with(expected), "{document}: {found}");
    }
    let twice = PAGE.to_owned() + PAGE.split("templates:").nth(1).unwrap();
    let found = EmulationPlan::parse(&twice).unwrap_err().to_string();
    let expected = "templates[1]: found a second template \"page\", expected a unique name\n\
                    templates[1]: \"page\" has a server at port 80 of \"s\", where \"page\" has one \
                    already";
    assert_eq!(found, expected);
}

#[test]
fn turn_is_allowed_with_random_servers() {
    let template_count = |words: &str| {
        let words = words.replace(", ", "\n      ");
        EmulationPlan::parse(&PAGE.replace("limit: 100", &words)).map(|plan| plan.templates.len())
    };
    for words in [
        "order: random, consecutive_flows: 1",
        "pairing: random, consecutive_flows: 4",
        "pairing: fixed, consecutive_flows: 4, reuse_after: 9",
    ] {
        assert_eq!(template_count(words), Ok(1), "{words}");
    }
}

#[test]
fn run_flow_needs_a_group_with_the_same_ip_version() {
    let plan = |asks: &str, port: &str, servers: &str| {
        let next = format!(
            "  - name: next\n    group: g\n    client: {{tx: {port}, addresses: {}, servers: {servers}, \
             load: on_demand, program: []}}\n",
            if servers.contains('.') { "10.0.0.9" } else { "\"fd00::9\"" }
        );
        let text = PAGE.replace("- wait_for_close", asks) + &next;
        EmulationPlan::parse(&text).map(|plan| plan.templates.len()).map_err(|it| it.to_string())
    };
    let runs = "- select_group: g\n        - run_flow";
    let expected = "templates[0].client.program[2].select_group: found \"g\", in which \"next\" connects \
                    to fd00::1, expected a group that connects over IPv4, like the flow that starts it";
    assert_eq!(plan(runs, "c", "\"fd00::1\""), Err(expected.to_owned()));
    let within = "- repeat: {times: 2, steps: [{select_group: g}, run_flow]}";
    let error = plan(within, "c", "\"fd00::1\"").unwrap_err();
    assert!(
        error.starts_with("templates[0].client.program[2].repeat.steps[0].select_group: "),
        "{error}"
    );
    assert_eq!(plan(runs, "c", "10.0.2.1"), Ok(2));
    // Flows on another port are not candidates.
    assert_eq!(plan(runs, "s", "\"fd00::1\""), Ok(2));
    // start_flow connects to the same server.
    let starts = "- set: {p: 80}\n        - select_group: g\n        - start_flow: {port: p}\n        - \
                  wait_flow";
    assert_eq!(plan(starts, "c", "\"fd00::1\""), Ok(2));
}

#[test]
fn servers_selected_by_first_bytes_need_equal_handshake_settings() {
    let plan = |first: &str, second: &str| {
        let first = PAGE.replace("port: 80", &format!("port: 80\n      {first}"));
        let text = format!("{first}  - {{name: other, {second}, program: []}}}}\n");
        EmulationPlan::parse(&text).map(|plan| plan.templates.len()).map_err(|it| it.to_string())
    };
    let get = "first_bytes: \"GET\"";
    let server = |words: &str| format!("server: {{tx: s, port: 80, {words}");
    // Congestion control and delayed acknowledgements may differ from the first server's.
    let alike = "tcp: {mss: 900, sack: false}";
    let reason = "as template \"page\" has at the same port: first_bytes select the server only \
                  after the handshake";
    for (words, expected) in [
        ("tcp: {mss: 900}", "server.tcp: found no sack, expected sack: false"),
        ("tcp: {mss: 901, sack: false}", "server.tcp: found mss: 901, expected mss: 900"),
        ("tcp: {sack: false}", "server.tcp: found no mss, expected mss: 900"),
        (
            "tcp: {mss: 900, sack: false, ecn: permit}",
            "server.tcp: found ecn: permit, expected no ecn",
        ),
    ] {
        let error = plan(get, &server(words)).unwrap_err();
        assert_eq!(error, format!("templates[1].{expected}, {reason}"));
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
        let error = plan(get, both.trim_end_matches(", ")).unwrap_err();
        let name = setting.split(':').next().unwrap();
        let expected = format!("templates[1].tcp: found {setting}, expected no {name}, {reason}");
        assert_eq!(error, expected);
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
        let result = plan(first, &server(&second));
        assert_eq!(result.is_ok(), is_right, "{first} {second}: {result:?}");
    }
}

#[test]
fn number_of_templates_is_bounded() {
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
                    act: Action::Send(b"all".to_vec()),
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
fn client_and_server_addresses_must_be_valid_for_hosts() {
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
            let error = wrong(place, text).unwrap_err();
            let text = text.trim_matches('"');
            let expected = format!(
                "templates[0].{place}: found {text:?}, expected addresses that a host may have, not \
                 {first}"
            );
            assert_eq!(error.lines().next(), Some(expected.as_str()));
        }
    }
    for text in ["0.0.0.1-223.255.255.255", "240.0.0.0-255.255.255.254", "\"::1\"", "\"ff02::9\""] {
        assert_eq!(wrong("server.addresses", text), Ok(1), "{text}");
    }
}

#[test]
fn on_demand_clients_may_overlap_with_servers() {
    let text = PAGE.replace("{rate: 5k}", "on_demand");
    let text = text.replace("10.0.1.1-10.0.1.255", "10.0.0.0-10.0.0.3");
    assert_eq!(EmulationPlan::parse(&text).map(|plan| plan.templates.len()), Ok(1));
}

#[test]
fn payload_steps_are_refused_where_first_bytes_select_the_server() {
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
        found.starts_with("templates[1].server.program: found steps that write values or read"),
        "{found}"
    );
    assert!(EmulationPlan::parse(&plan("udp", "first_bytes: GET, ")).is_ok());
    assert!(EmulationPlan::parse(&plan("tcp", "addresses: 10.0.0.1, ")).is_ok());
}
