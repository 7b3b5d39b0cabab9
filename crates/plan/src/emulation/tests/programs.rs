use super::*;

#[test]
fn loops_nest_up_to_a_maximum_depth() {
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
    assert!(error.ends_with("repeat: a program has at most 8 nested loops"), "{error}");
}

#[test]
fn steps_jump_compute_and_count() {
    let found = steps(
        "connect
         set: {n: 3}
         save_time: begin
         label: again
         receive_total: 10
         add: {m: -1}
         jump: {to: out, variable: m, greater_or_equal: 7}
         jump: {to: again, within: 5s, since: begin}
         decrement_and_jump: {variable: n, to: again}
         jump: again
         label: out
         add_time: {begin: 20ms}
         count: {A: 2}
         count: {D: {since: begin}}
         delay: {mean: 2ms}
         delay: {mean: 2ms, stddev: 1ms}",
    );
    let mean = Duration::from_millis(2);
    let (again, out) = (Label(0), Label(1));
    let greater = JumpCondition::Compares {
        variable: Variable::named(1),
        comparison: Comparison::GreaterOrEqual,
        value: 7,
    };
    let within =
        JumpCondition::Within { span: Duration::from_secs(5), since: TimeVariable::named(0) };
    assert_eq!(
        found.unwrap(),
        [
            Step::Connect,
            Step::Set { variable: Variable::named(0), value: 3 },
            Step::StoreTime(TimeVariable::named(0)),
            Step::Label(again),
            Step::ReceiveTotal(10),
            Step::Add { variable: Variable::named(1), value: u64::MAX },
            Step::Jump { to: out, when: greater },
            Step::Jump { to: again, when: within },
            Step::DecrementAndJump { variable: Variable::named(0), to: again },
            Step::Jump { to: again, when: JumpCondition::Always },
            Step::Label(out),
            Step::AdvanceTime { time: TimeVariable::named(0), by: Duration::from_millis(20) },
            Step::AddToCounter {
                counter: UserCounter::new(0).unwrap(),
                what: CountAmount::Number(2)
            },
            Step::AddToCounter {
                counter: UserCounter::new(3).unwrap(),
                what: CountAmount::Since { time: TimeVariable::named(0), unit: NonZeroU16::MIN }
            },
            Step::RandomDelay { mean, stddev: None },
            Step::RandomDelay { mean, stddev: Some(Duration::from_millis(1)) },
        ]
    );
}

#[test]
fn names_of_a_program_are_defined_once() {
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
            "program[0].count.A.since: found \"nix\", expected a time of a",
        ),
        (
            "save_time: then\njump: {to: a, within: 1s, since: nix}\nlabel: a",
            "program[1].jump.since: found \"nix\", expected one of the remembered times: then",
        ),
        (
            "add_time: {nix: 1s}\ncount: {A: {since: nix}}",
            "program[0].add_time.nix: found \"nix\", expected a time of a step `save_time`",
        ),
        ("add_time: {t: 1us}", "program[0].add_time.t: found \"1us\", expected whole milliseconds"),
        ("delay: {mean: 1ms, max: 1ms}", "delay.max: found a bound beside mean"),
        ("reset\nreceive: 1", "program[0]: found a reset before other steps"),
    ] {
        let error = steps(list).unwrap_err();
        assert!(error.contains(expected), "{list}: {error}");
    }
    let many: Vec<_> = (0..11).map(|it| format!("set: {{v{it}: 1}}")).collect();
    let error = steps(&many.join("\n")).unwrap_err();
    assert!(error.contains("a program has at most 10 variables"), "{error}");
    let loops = "repeat: {steps: [repeat: {steps: [receive: 1]}]}";
    let error = steps(&format!("{}\n{loops}", many[..9].join("\n"))).unwrap_err();
    assert!(error.contains("found 11 variables and nested loops"), "{error}");
    assert!(steps("jump: b\nreset\nlabel: b\nreceive: 1").is_ok());
}

#[test]
fn udp_template_is_parsed() {
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
      devices: [{clients: 10.0.0.1, stride: 2, count: 3, vlan: 100, dst: "02:00:00:00:00:09"}]
      program: [{idle: {time: 300ms, receive_only: true}}, {send_datagram: who}, {receive_datagrams: 2}, {select_group: 'dns'}, run_flow]
    server:
      tx: s
      port: 53
      addresses: 10.0.1.0-10.0.1.9
      vlans: [100, [5, 7]]
      first_bytes: wh
      program: [{receive_datagrams: {count: 1, clear: false}}, {idle: 2s}, {select_group: dns}]
  - name: other names
    transport: udp
    server: {tx: s, port: 53, first_bytes: [{offset: 4, value: 15, mask: 15}], program: []}
  - name: last names
    group: dns
    transport: udp
    client: {tx: c, servers: 10.0.1.1, server_port: 53, load: on_demand, consecutive_flows: 4, reuse_after: 20, program: []}
"#;
    let plan = EmulationPlan::parse(text).unwrap();
    let template = &plan.templates[0];
    assert_eq!((template.transport, template.group.as_deref()), (Transport::Udp, Some("dns")));
    let (client, server) = (template.client.as_ref().unwrap(), template.server.as_ref().unwrap());
    assert_eq!(client.load, Load::OnDemand);
    assert_eq!((client.order, client.pairing), (ClientOrder::Random, Pairing::Fixed));
    assert_eq!((client.consecutive_flows, client.reuse_after), (1, None));
    let last = plan.templates[2].client.as_ref().unwrap();
    assert_eq!((last.consecutive_flows, last.reuse_after), (4, Some(20)));
    let devices = Devices {
        clients: AddressRange { first: "10.0.0.1".parse().unwrap(), count: 1 },
        stride: 2,
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
            Step::SetIdleTimeout { time: Duration::from_millis(300), receive_only: true },
            Step::SendDatagram { text: b"who".to_vec(), size: 3, fill: Vec::new() },
            Step::ReceiveDatagrams { count: 2, clear: true },
            Step::SelectGroup("dns".into()),
            Step::RunFlow,
        ]
    );
    assert_eq!(server.addresses.unwrap().count, 10);
    assert_eq!(server.vlans, [100.into(), Vlans { outer: Some(5), inner: 7 }]);
    assert_eq!(server.first_bytes, Some(FirstBytes(vec![(0, 255, b'w'), (1, 255, b'h')])));
    assert_eq!(
        server.program,
        [
            Step::ReceiveDatagrams { count: 1, clear: false },
            Step::SetIdleTimeout { time: Duration::from_secs(2), receive_only: false },
            Step::SelectGroup("dns".into()),
        ]
    );
    let masked = plan.templates[1].server.as_ref().unwrap().first_bytes.as_ref();
    assert_eq!(masked, Some(&FirstBytes(vec![(4, 15, 15)])));
    for (part, other, expected) in [
        (
            "{send_datagram: who}",
            "{send: who}",
            "templates[0].client.program[1]: found a step for connections, but the template's",
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
            "first_bytes[0].value: found 0x10, expected no bits outside the mask 0x0f",
        ),
        ("mask: 15", "mask: 0", "first_bytes[0].mask: found 0, expected a whole number from 1"),
        // The second server would never receive a flow.
        (
            "port: 53, first_bytes: [{offset: 4, value: 15, mask: 15}]",
            "port: 53, addresses: 10.0.1.0-10.0.1.9, first_bytes: [{offset: 1, value: 104}, {offset: 0, value: 119}]",
            "templates[1]: \"other names\" has a server at port 53 of \"s\", where \"names\" has one already",
        ),
        (
            "select_group: dns",
            "select_group: web",
            "server.program[2].select_group: found \"web\", expected one of dns",
        ),
        ("transport: udp", "transport: sctp", "transport: found \"sctp\", expected tcp or udp"),
    ] {
        let error = EmulationPlan::parse(&text.replace(part, other)).unwrap_err().to_string();
        assert!(error.contains(expected), "{other}: {error}");
    }
}

#[test]
fn datagram_length_is_bounded_by_ip_version() {
    let with = |ends: [&str; 2], size: &str| {
        let [client, server] = ends;
        let text = format!(
            "ports: [{{name: c}}, {{name: s, addresses: 10.0.0.9/24}}]\n\
             templates:\n  - name: long\n    transport: udp\n\
             \x20   client: {{tx: c, {client}, load: {{concurrent: 1}}, program: [{{send_datagram: a}}]}}\n\
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
        // The port has an IPv4 address.
        (["", ""], 65_507),
        (["", "addresses: \"2001:db8::9\", "], 65_527),
    ] {
        let place = "templates[0].server.program[0].repeat.steps[1].send_datagram";
        for size in ["{size: SIZE}", "{text: \"${flow}\", size: SIZE}"] {
            let with = |bytes: u32| with(ends, &size.replace("SIZE", &bytes.to_string()));
            assert_eq!(with(most), Ok(()));
            let expected = format!("{place}: found {} bytes, expected at most {most}", most + 1);
            let error = with(most + 1).unwrap_err();
            assert!(error.starts_with(&expected), "{error}\nexpected {expected}");
        }
    }
    assert!(with([ipv4, ""], "{size: 4000000000}").is_err());
}

#[test]
fn steps_with_values_and_checks_are_parsed() {
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
    let n = Variable::named(0);
    let [key, form, id] = [0, 1, 2].map(TextVariable::named);
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
            composition: of(vec![text("k="), value(Value::Text(key), ValueFormat::Plain)]),
        },
        Step::SendComposed(of(vec![
            text("${n} "),
            value(Value::Number(n), ValueFormat::Digits(4)),
            value(Value::Flow, ValueFormat::Plain),
        ])),
        Step::SendComposed(Composition {
            size: 9,
            fields: vec![Field { offset: 1, width: 2, value: Value::Length(form) }],
            ..of(vec![Piece::Bytes(vec![0, 255])])
        }),
        Step::Send { size: plain.len() as u32, text: plain, fill: Vec::new() },
        Step::ReceiveMessage(MessageFraming::Until(Delimiter::new(b"ok").unwrap())),
        Step::Extract {
            text: id,
            part: MessagePart::Group(wirestorm_wire::pattern::Pattern::new("(a)(b)").unwrap(), 2),
        },
        Step::Expect {
            expected: Condition::Contains(of(vec![value(Value::Text(id), ValueFormat::Hex)])),
            on_failure: None,
        },
        Step::StartTransaction("all".into()),
    ];
    assert_eq!(found, expected);
}

#[test]
fn errors_in_values_have_their_path() {
    let path = "templates[0].client.program";
    for (list, expected) in [
        (
            "send: 'a ${user}'",
            "[0].send: found \"user\", expected a predefined value, or one that an earlier step \
             sets or extracts: flow, client, client_port, server, server_port; write $${ for",
        ),
        ("tos: 256", "[0].tos: found 256, expected"),
        ("send: '${flow'", "[0].send: found ${ without }, expected a value such as ${flow}"),
        (
            "send: '${flow:octal}'",
            "[0].send: found \"octal\" in ${flow:octal}, expected hex, bytes, u8, u16, u32, u64, octets,",
        ),
        ("send: '${flow.length}'", "[0].send: found \"flow.length\", expected a predefined value"),
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
        ("set: {client: 1}", "[0].set.client: \"client\" is a predefined value already"),
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
        ("expect: ok", "[0].expect: no earlier step receives data"),
        ("receive: 1\nexpect: ''", "[1].expect: found \"\", expected something to expect"),
        (
            "receive: 1\nexpect: {pattern: 'a('}",
            "[1].expect.pattern: found \"a(\" (unclosed group), expected a regular expression",
        ),
        ("receive: 1\nexpect: {text: a, hex: '00'}", "[1].expect: found both"),
        ("receive: 1\nexpect: {on_failure: x}", "[1].expect: found no field, expected one of"),
        (
            "receive: 1\nexpect: {text: a, on_failure: x}",
            "[1].expect.on_failure: found \"x\", expected a label of the program, but it has none",
        ),
        (
            "receive: 1\njump: {to: x, received: {text: a, on_failure: x}}",
            "[1].jump.received.on_failure: found an unknown field",
        ),
        ("extract: {a: {offset: 0, length: 1}}", "[0].extract: no earlier step receives data"),
        ("receive: 1\nextract: {}", "[1].extract: found no fields, expected a name and what it"),
        ("receive: 1\nextract: {a: {offset: 0}}", "[1].extract.a: select a part by `pattern`"),
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
    assert!(found.contains("a program has at most 10 texts"), "{found}");
    let names: String = (0..33).map(|n| format!("transaction: {{start: t{n}}}\n")).collect();
    let found = steps(names.trim()).unwrap_err();
    assert!(found.contains("a program has at most 32 transactions"), "{found}");
}

#[test]
fn payload_steps_are_bound_to_a_transport() {
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
        assert!(found.starts_with("templates[0].server.program[0]: found a step for"), "{found}");
    }
}

/// A control connection whose programs start and accept flows of another template.
const ACCEPTING: &str = r#"
ports: [{name: c, addresses: 10.0.0.1/24}, {name: s}]
templates:
  - name: control
    client:
      tx: c
      servers: 10.0.1.1
      load: {concurrent: 1}
      program:
        - receive: {message: reply}
        - jump: {to: end, received: {pattern: "^5"}}
        - extract: {port: {pattern: "(\\d+)\\)"}}
        - select_group: data
        - start_flow: {port: port}
        - wait_flow
        - label: end
    server:
      tx: s
      port: 21
      program:
        - listen: {variable: port, ports: 50000-50010}
        - send: "229 (${port:octets})\r\n"
        - select_group: data
        - accept_flow
  - name: file
    group: data
    client: {tx: c, servers: 10.0.1.1, load: on_demand, program: [{receive: {bytes: 7}}]}
    server: {tx: s, port: on_demand, program: [{send: {size: 7}}]}
"#;

#[test]
fn listen_start_flow_and_accept_flow_are_parsed() {
    let plan = EmulationPlan::parse(ACCEPTING).unwrap();
    let [control, file] = plan.templates.as_slice() else { panic!("{plan:?}") };
    let client = &control.client.as_ref().unwrap().program;
    assert_eq!(client[0], Step::ReceiveMessage(MessageFraming::Reply));
    let Step::Jump { when: JumpCondition::Received(Condition::Matches(pattern)), .. } = &client[1]
    else {
        panic!("{client:?}")
    };
    assert_eq!(pattern.as_str(), "^5");
    assert_eq!(
        client[4],
        Step::StartFlow { port: Value::Text(TextVariable::named(0)), client_port: None }
    );
    let server = &control.server.as_ref().unwrap().program;
    assert_eq!(server[0], Step::Listen { variable: Variable::named(0), ports: 50_000..=50_010 });
    let Step::SendComposed(Composition { pieces, .. }) = &server[1] else { panic!("{server:?}") };
    assert_eq!(
        pieces[1],
        Piece::Value(Value::Number(Variable::named(0)), ValueFormat::DecimalBytes)
    );
    assert_eq!(server[3], Step::AcceptFlow);
    assert_eq!(file.client.as_ref().unwrap().program, [Step::ReceiveOrFail(7)]);
    assert_eq!(file.server.as_ref().unwrap().listen, None);
    let text = ACCEPTING
        .replace("- start_flow: {port: port}", "- start_flow: {port: port, client_port: port}");
    let plan = EmulationPlan::parse(&text).unwrap();
    let client = &plan.templates[0].client.as_ref().unwrap().program;
    let port = Value::Text(TextVariable::named(0));
    assert_eq!(client[4], Step::StartFlow { port, client_port: Some(port) });
    let text = ACCEPTING.replace("{variable: port, ports: 50000-50010}", "port");
    let plan = EmulationPlan::parse(&text).unwrap();
    let server = &plan.templates[0].server.as_ref().unwrap().program;
    assert_eq!(server[0], Step::Listen { variable: Variable::named(0), ports: 49_152..=65_535 });
}

#[test]
fn errors_in_accepted_flows_have_their_path() {
    let control = "templates[0].server.program";
    for (part, other, expected) in [
        (
            "- start_flow: {port: port}",
            "- start_flow: {port: prot}",
            "templates[0].client.program[4].start_flow.port: found \"prot\", expected a predefined value",
        ),
        (
            "- start_flow: {port: port}",
            "- start_flow: {port: port, client_port: prot}",
            "templates[0].client.program[4].start_flow.client_port: found \"prot\", expected a \
             predefined value",
        ),
        (
            "- start_flow: {port: port}",
            "- start_flow: port",
            "templates[0].client.program[4].start_flow: found \"port\", expected",
        ),
        (
            "received: {pattern: \"^5\"}",
            "received: {pattern: \"^5\"}, variable: n, less: 4",
            "templates[0].client.program[1].jump: a jump has",
        ),
        (
            "receive: {message: reply}",
            "send: \"HELP\\r\\n\"",
            "templates[0].client.program[1].jump.received: no earlier step receives data",
        ),
        (
            "ports: 50000-50010",
            "ports: 50010-50000",
            "templates[0].server.program[0].listen.ports: found \"50010-50000\", expected ports",
        ),
        (
            "        - listen: {variable: port, ports: 50000-50010}",
            "        - set: {port: 5}",
            &format!("{control}: accept_flow: found no step `listen`, expected one before it"),
        ),
        (
            "        - select_group: data\n        - accept_flow",
            "        - accept_flow",
            &format!(
                "{control}: accept_flow: found no step `select_group`, expected one before it"
            ),
        ),
        (
            "port: on_demand",
            "port: 22",
            &format!("{control}: accept_flow: found group \"data\", expected one with a server"),
        ),
        (
            "port: on_demand",
            "port: on_demand, addresses: 10.0.1.1",
            "templates[1].server.addresses: not allowed with `port: on_demand`: remove it",
        ),
        (
            "    group: data\n",
            "    group: data\n    http2: true\n",
            "templates[1].http2: found HTTP/2, which an on-demand server does not support",
        ),
        (
            "[{send: {size: 7}}]",
            "[{send: \"${flow}\"}]",
            "templates[1].server.program: found steps that write values,",
        ),
        ("{bytes: 7}", "{bytes: 0}", "templates[1].client.program[0].receive.bytes: found 0"),
    ] {
        assert!(ACCEPTING.contains(part), "{part}");
        let error = EmulationPlan::parse(&ACCEPTING.replace(part, other)).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}\nexpected {expected}");
    }
    let udp = ACCEPTING
        .replace("    group: data\n", "    group: data\n    transport: udp\n")
        .replace("[{receive: {bytes: 7}}]", "[{receive_datagrams: 1}]")
        .replace("[{send: {size: 7}}]", "[{send_datagram: {size: 7}}]");
    let error = EmulationPlan::parse(&udp).unwrap_err().to_string();
    let expected = "templates[1].server.port: found on_demand, which only TCP supports";
    assert!(error.starts_with(expected), "{error}");
}

/// Parses a plan with a client that has these steps, and a group `parts`. Returns the error, if
/// any.
fn parse_with_group(steps: &str) -> Result<(), String> {
    let text = format!(
        "ports: [{{name: c, addresses: 10.0.0.1/24}}]\n\
         templates:\n\
         - {{name: a, client: {{tx: c, servers: 10.0.1.1, load: {{concurrent: 1}}, program: {steps}}}}}\n\
         - {{name: b, group: parts, client: {{tx: c, servers: 10.0.1.1, load: on_demand, \
         program: [{{send: a}}]}}}}\n"
    );
    EmulationPlan::parse(&text).map(drop).map_err(|errors| errors.to_string())
}

#[test]
fn flows_need_a_group_on_every_path() {
    let no_group =
        "found a flow without a group, expected a step `select_group` on every path to it";
    let port = "{set: {p: 21}}";
    for (steps, expected) in [
        ("[run_flow]", format!("[0]: {no_group}")),
        ("[run_flow, {select_group: parts}]", format!("[0]: {no_group}")),
        (&format!("[{port}, {{start_flow: {{port: p}}}}]"), format!("[1]: {no_group}")),
        ("[{repeat: {times: 2, steps: [{send: a}, run_flow]}}]", {
            format!("[0].repeat.steps[1]: {no_group}")
        }),
        (
            "[{jump: {to: b, variable: n, equal: 1}}, {select_group: parts}, {label: b}, run_flow]",
            format!("[3]: {no_group}"),
        ),
        (
            "[{select_group: parts}, run_flow, wait_flow]",
            "[2]: found wait_flow, expected a step `start_flow` before it".to_owned(),
        ),
    ] {
        let error = parse_with_group(steps).unwrap_err();
        assert!(error.starts_with(&format!("templates[0].client.program{expected}")), "{error}");
    }
    for steps in [
        "[{select_group: parts}, run_flow]",
        "[{repeat: {times: 2, steps: [{select_group: parts}, run_flow]}}, run_flow]",
        &format!("[{port}, {{select_group: parts}}, {{start_flow: {{port: p}}}}, wait_flow]"),
        // The label precedes the jump to it.
        "[{select_group: parts}, {jump: b}, {label: a}, run_flow, reset, {label: b}, {jump: a}]",
    ] {
        assert_eq!(parse_with_group(steps), Ok(()), "{steps}");
    }
}

#[test]
fn endless_loop_needs_a_step_that_waits() {
    let message = "found an endless loop without a wait, expected a step in it";
    for (steps, place) in [
        ("[{label: x}, {add: {n: 1}}, {jump: x}]", "[2]"),
        ("[{label: x}, {jump: x}]", "[1]"),
        ("[{send: a}, {repeat: {steps: [{add: {n: 1}}]}}]", "[1]"),
        ("[{repeat: {times: 3, steps: [{repeat: {steps: [{set: {n: 1}}]}}]}}]", {
            "[0].repeat.steps[0]"
        }),
        ("[{label: x}, {delay: 0ms}, {delay: {mean: 0us}}, {jump: x}]", "[3]"),
        // One of two paths leads to the loop.
        ("[{jump: {to: x, variable: n, less: 1}}, reset, {label: x}, {jump: x}]", "[3]"),
        // The peer closes once and the connection opens once, so these steps wait only once.
        ("[{label: x}, connect, wait_for_close, {jump: x}]", "[3]"),
        ("[{label: x}, {jump: y}, {label: y}, {count: {A: 1}}, {jump: x}]", "[1]"),
    ] {
        let error = parse_with_group(steps).unwrap_err();
        let expected = format!("templates[0].client.program{place}: {message}");
        assert!(error.starts_with(&expected), "{error}\nexpected {expected}");
    }
    for steps in [
        "[{label: x}, {delay: 1us}, {jump: x}]",
        "[{label: x}, {delay: {min: 0ms, max: 1ms}}, {jump: x}]",
        "[{repeat: {steps: [{send: a}]}}]",
        "[{repeat: {steps: [{receive: 1}]}}]",
        "[{repeat: {times: 1000000, steps: [{add: {n: 1}}]}}]",
        "[{set: {n: 9}}, {label: x}, {decrement_and_jump: {variable: n, to: x}}]",
        "[{save_time: t}, {label: x}, {jump: {to: x, within: 1s, since: t}}]",
        "[{label: x}, {jump: {to: y, variable: n, equal: 9}}, {add: {n: 1}}, {jump: x}, {label: y}]",
        "[{repeat: {steps: [{select_group: parts}, run_flow]}}]",
    ] {
        assert_eq!(parse_with_group(steps), Ok(()), "{steps}");
    }
}
