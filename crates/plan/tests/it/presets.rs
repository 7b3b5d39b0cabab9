//! Protocol presets: the steps of their programs.

use wirestorm_base::time::Duration;
use wirestorm_model::load::Load;
use wirestorm_model::program::{
    Composition, Condition, Delimiter, MessageFraming, Piece, Step, Value, ValueFormat, Variable,
};
use wirestorm_plan::emulation::{EmulationPlan, Template};

/// Returns the programs of client and server, without transaction timing. `fields` are those of the
/// template.
fn programs(fields: &str, sides: &str) -> Result<(Vec<Step>, Vec<Step>), String> {
    timed_programs(&format!("{fields}\n    transactions: false"), sides)
}

/// Returns the programs of client and server, with transaction timing.
fn timed_programs(fields: &str, sides: &str) -> Result<(Vec<Step>, Vec<Step>), String> {
    let client = "    client: {tx: c, servers: 10.0.1.1, load: {concurrent: 1}}\n";
    let text = format!(
        "ports: [{{name: c, addresses: 10.0.0.1/24}}, {{name: s}}]\n\
         templates:\n  - name: t\n    {fields}\n{}{}",
        if sides.contains('c') { client } else { "" },
        if sides.contains('s') { "    server: {tx: s}\n" } else { "" },
    );
    let plan = EmulationPlan::parse(&text).map_err(|errors| errors.to_string())?;
    let template = &plan.templates[0];
    let client = template.client.as_ref().map(|it| it.program.clone());
    let server = template.server.as_ref().map(|it| it.program.clone());
    Ok((client.unwrap_or_default(), server.unwrap_or_default()))
}

/// Formats a program as a dialogue: `>` sends, `<` waits for bytes.
fn shown(steps: &[Step]) -> String {
    let line = |step: &Step| match step {
        Step::Send { text, size, .. } => {
            let text = String::from_utf8_lossy(text);
            let more = *size as usize - text.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!(">{:?}{more}\n", text)
        }
        Step::Receive(bytes) => format!("<{bytes}\n"),
        Step::Delay { min, max } => {
            format!("waits {} to {} us\n", min.as_nanos() / 1_000, max.as_nanos() / 1_000)
        }
        Step::DelaySinceReceived { min, max } => {
            format!("waits from then {} to {} us\n", min.as_nanos() / 1_000, max.as_nanos() / 1_000)
        }
        Step::SetBlocking(false) => "at once\n".to_owned(),
        Step::Repeat { times: Some(times), steps } => {
            format!("{times} times:\n{}.\n", shown(steps))
        }
        Step::Repeat { times: None, steps } => format!("always:\n{}.\n", shown(steps)),
        Step::WaitForClose => "until it closes\n".to_owned(),
        Step::Reconnect { follows_http: true } => "anew unless kept\n".to_owned(),
        Step::Reconnect { follows_http: false } => "anew if closed\n".to_owned(),
        Step::ReceiveMessage(MessageFraming::Http) => "<message\n".to_owned(),
        Step::ReceiveMessageOrFail(MessageFraming::Http) => "<whole message\n".to_owned(),
        Step::Expect { expected: Condition::KeepsConnection, .. } => "kept\n".to_owned(),
        Step::StartTransaction(name) => format!("{name} starts\n"),
        Step::EndTransaction(name) => format!("{name} ends\n"),
        other => format!("{other:?}\n"),
    };
    steps.iter().map(line).collect()
}

const GET: &str =
    r#">"GET / HTTP/1.1\r\nHost: www.example.net\r\nUser-Agent: wirestorm\r\nAccept: */*\r\n"#;

#[test]
fn http_default_is_one_request_and_a_close_by_the_server() {
    let (client, server) = programs("http: {response: {body: 1000}}", "cs").unwrap();
    let response = r#"HTTP/1.1 200 OK\r\nServer: wirestorm\r\nContent-Type: application/octet-stream\r\nConnection: close\r\nContent-Length: 1000\r\n\r\n"#;
    let length = 1_000 + response.replace(r"\r\n", "..").len();
    let expected = format!("{GET}Connection: close\\r\\n\\r\\n\"\n<{length}\nuntil it closes\n");
    assert_eq!(shown(&client), expected);
    let request = GET.replace(r"\r\n", "..").len() - 2 + "Connection: close....".len();
    let expected = format!("<{request}\nat once\n>\"{response}\" and 1000 more\n");
    assert_eq!(shown(&server), expected);
}

#[test]
fn http2_frames_delimit_messages() {
    let get = format!("{GET}\\r\\n\"\n");
    let ok = r#">"HTTP/1.1 200 OK\r\nServer: wirestorm\r\nContent-Type: application/octet-stream\r\nContent-Length: 9\r\n\r\n" and 9 more"#;
    let always = |steps: &str| format!("at once\nalways:\n{steps}.\n");

    let (client, server) = programs("http: {version: 2, response: {body: 9}}", "cs").unwrap();
    assert_eq!(shown(&client), format!("{get}<message\n"));
    assert_eq!(shown(&server), always(&format!("<message\n{ok}\n")));

    let preset =
        "http: {version: 2, requests: 3, think_time: 1ms, response: {body: 9, delay: 5ms}}";
    let (client, server) = programs(preset, "cs").unwrap();
    let round = format!("{get}<message\n");
    let expected = format!("2 times:\n{round}waits 1000 to 1000 us\nanew if closed\n.\n{round}");
    assert_eq!(shown(&client), expected);
    let answer = format!("<message\nwaits from then 5000 to 5000 us\n{ok}\n");
    assert_eq!(shown(&server), always(&answer));
    // A plan with one side gives the same program.
    assert_eq!(shown(&programs(preset, "c").unwrap().0), expected);
    assert_eq!(shown(&programs(preset, "s").unwrap().1), always(&answer));

    let preset = "http: {version: 2, requests: 6, pipeline: 3}";
    let (client, server) = programs(preset, "cs").unwrap();
    let Step::Repeat { times: Some(1), steps } = &client[0] else { panic!("{client:?}") };
    let [Step::Send { text, .. }, messages, Step::Reconnect { .. }] = &steps[..] else {
        panic!("{steps:?}")
    };
    assert_eq!(String::from_utf8_lossy(text).matches("GET / HTTP/1.1\r\n").count(), 3);
    assert_eq!(shown(std::slice::from_ref(messages)), "3 times:\n<message\n.\n");
    let Step::Repeat { times: None, steps } = &server[1] else { panic!("{server:?}") };
    assert_eq!(shown(&steps[..1]), "3 times:\n<message\n.\n");

    let more = "http: {version: 2, requests: 101, pipeline: 101}\n    http2: {max_concurrent_streams: 101}";
    assert!(programs(more, "cs").is_ok());
    for (fields, sides, expected) in [
        ("http: {version: 3}", "cs", "templates[0].http.version: found 3, expected 1.1 or 2"),
        (
            "http: {version: 2, requests: 101, pipeline: 101}",
            "cs",
            "templates[0].http.pipeline: found 101, expected at most 100, the streams of http2",
        ),
        (
            "http: {version: 2, response_bytes: 5}",
            "c",
            "templates[0].http.response_bytes: is for HTTP/1.1: HTTP/2 messages carry",
        ),
        (
            "http: {version: 2, response: {body: 9, chunk: 3}}",
            "cs",
            "templates[0].http.response.chunk: is for HTTP/1.1: HTTP/2 has no chunks",
        ),
    ] {
        let error = programs(fields, sides).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn requests_contain_values_of_each_flow() {
    let preset = "http: {path: \"/${flow}/$${x}\", body: {text: a, size: 3, fill: b}}";
    let (client, server) = programs(preset, "cs").unwrap();
    let [Step::SendComposed(request), Step::ReceiveMessageOrFail(MessageFraming::Http)] =
        &client[..]
    else {
        panic!("{client:?}")
    };
    let rest = "/${x} HTTP/1.1\r\nHost: www.example.net\r\nUser-Agent: wirestorm\r\nAccept: */*\r\n\
                Connection: close\r\nContent-Length: 3\r\n\r\n";
    let pieces = [
        Piece::Bytes(b"GET /".to_vec()),
        Piece::Value(Value::Flow, ValueFormat::Plain),
        Piece::Bytes(rest.into()),
        Piece::Bytes(b"abb".to_vec()),
    ];
    assert_eq!(request, &Composition { pieces: pieces.to_vec(), ..Composition::default() });
    // The length of such a request is unknown, so the server parses it.
    assert!(shown(&server).contains("<message\n"), "{server:?}");

    let preset = "http: {set: {n: {counter: 5}}, host: \"h${n}\", requests: 4, pipeline: 2}";
    let (client, _) = programs(preset, "c").unwrap();
    let [
        Step::Set { variable: set, value: 2 },
        Step::Label(next),
        Step::SetBlocking(false),
        Step::Repeat { times: Some(2), steps: each },
        Step::ReceiveMessageOrFail(MessageFraming::Http),
        Step::Expect { .. },
        Step::ReceiveMessageOrFail(MessageFraming::Http),
        Step::DecrementAndJump { variable: decremented, to: between },
        Step::Jump { to: end, .. },
        Step::Label(between_here),
        Step::Reconnect { follows_http: true },
        Step::Jump { to: next_again, .. },
        Step::Label(end_here),
    ] = &client[..]
    else {
        panic!("{client:?}")
    };
    assert_eq!([*set, *decremented], [Variable::named(1); 2]);
    assert_eq!([next, between, end], [next_again, between_here, end_here]);
    // A counter shared by all flows is set once per request.
    assert!(
        matches!(each[..], [Step::SetNumber { variable, .. }, Step::SendComposed(_)]
            if variable == Variable::named(0)),
        "{each:?}"
    );

    // An escaped `$${` is constant text.
    let (client, _) = programs("http: {path: \"/$${x}\"}", "cs").unwrap();
    assert!(shown(&client).starts_with(">\"GET /${x} HTTP/1.1\\r\\n"), "{client:?}");
}

#[test]
fn several_requests_share_a_connection() {
    let preset = "http: {requests: 3, think_time: {min: 1ms, max: 2ms}, response: {delay: 5ms}}";
    let (client, server) = programs(preset, "cs").unwrap();
    let round = format!("{GET}\\r\\n\"\n<97\n");
    let expected = format!("2 times:\n{round}waits 1000 to 2000 us\nanew if closed\n.\n{round}");
    assert_eq!(shown(&client), expected);
    let request = GET.replace(r"\r\n", "..").len() - 2 + 2;
    let response = r#">"HTTP/1.1 200 OK\r\nServer: wirestorm\r\nContent-Type: application/octet-stream\r\nContent-Length: 0\r\n\r\n""#;
    let round = format!("<{request}\nwaits 5000 to 5000 us\n{response}\n");
    assert_eq!(shown(&server), format!("2 times:\n{round}.\n{round}until it closes\n"));

    let (client, server) = programs("http: {requests: 6, pipeline: 3}", "cs").unwrap();
    let Step::Repeat { times: Some(1), steps } = &client[0] else { panic!("{client:?}") };
    let [Step::Send { text, .. }, Step::Receive(bytes), Step::Reconnect { .. }] = &steps[..] else {
        panic!("{steps:?}")
    };
    assert_eq!(String::from_utf8_lossy(text).matches("GET / HTTP/1.1\r\n").count(), 3);
    assert_eq!(*bytes, 3 * 97);
    let Step::Repeat { steps, .. } = &server[0] else { panic!("{server:?}") };
    assert_eq!(steps[0], Step::Receive(3 * request as u64));
    let Step::Send { size, .. } = steps[1] else { panic!("{steps:?}") };
    assert_eq!(size, 3 * 97);
}

#[test]
fn http_uses_methods_headers_bodies_and_chunks_of_the_plan() {
    let preset = "http: {method: POST, path: /form, host: a.test, body: \"x=1\", \
                headers: {accept: text/html, X-Number: 7}, \
                response: {status: 404, headers: {content-type: text/plain}, body: \"none at all\", chunk: 6}}";
    let (client, server) = programs(preset, "cs").unwrap();
    let request = r#">"POST /form HTTP/1.1\r\nHost: a.test\r\nUser-Agent: wirestorm\r\nAccept: text/html\r\nX-Number: 7\r\nConnection: close\r\nContent-Length: 3\r\n\r\nx=1""#;
    assert!(shown(&client).starts_with(request), "{}", shown(&client));
    let response = r#">"HTTP/1.1 404 Not Found\r\nServer: wirestorm\r\nContent-Type: text/plain\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nnone a\r\n5\r\nt all\r\n0\r\n\r\n""#;
    assert!(shown(&server).ends_with(&format!("{response}\n")), "{}", shown(&server));

    let (_, server) = programs("http: {method: HEAD, response: {body: 9}}", "cs").unwrap();
    let expected = "Connection: close\\r\\nContent-Length: 9\\r\\n\\r\\n\"\n";
    assert!(shown(&server).ends_with(expected), "no body: {}", shown(&server));
    let (_, server) = programs("http: {response: {status: 304}}", "cs").unwrap();
    let expected =
        r#">"HTTP/1.1 304 Not Modified\r\nServer: wirestorm\r\nConnection: close\r\n\r\n""#;
    assert!(shown(&server).ends_with(&format!("{expected}\n")), "{}", shown(&server));
}

#[test]
fn clients_parse_responses_of_other_servers() {
    for preset in ["http: {}", "http: {requests: 1}", "http: {requests: \"0x1\"}"] {
        let (client, _) = programs(preset, "c").unwrap();
        assert_eq!(
            shown(&client),
            format!("{GET}Connection: close\\r\\n\\r\\n\"\n<whole message\n"),
            "{preset}"
        );
    }
    for (preset, waits, reuse) in [
        ("response_bytes: 900", "ReceiveOrFail(900)", "anew if closed\n"),
        ("think_time: 0s", "<whole message", "anew unless kept\n"),
        ("method: HEAD", "ReceiveMessageOrFail(HttpHead)", "anew unless kept\n"),
        ("reconnect: false", "<whole message", "kept\nFailIfClosed\n"),
        ("reconnect: false, response_bytes: 900", "ReceiveOrFail(900)", "FailIfClosed\n"),
    ] {
        let (client, _) = programs(&format!("http: {{requests: 2, {preset}}}"), "c").unwrap();
        let shown = shown(&client).replace("waits 0 to 0 us\n", "").replace("HEAD /", "GET /");
        let round = format!("{GET}\\r\\n\"\n{waits}\n");
        assert_eq!(shown, format!("1 times:\n{round}{reuse}.\n{round}"));
    }
    let (client, _) = programs("http: {requests: 6, pipeline: 3}", "c").unwrap();
    let lines = shown(&client).lines().skip(2).map(|it| format!("{it}\n")).collect::<String>();
    let waits = "2 times:\n<whole message\nkept\n.\n<whole message\n";
    assert!(lines.starts_with(&format!("{waits}anew unless kept\n.\n>")), "{lines}");
    assert!(lines.ends_with(waits), "{lines}");
    // `response_bytes` marks the end of the response, even if the server keeps the connection.
    let (client, _) = programs("http: {response_bytes: 900}", "c").unwrap();
    assert!(!shown(&client).contains("until it closes"), "{}", shown(&client));
    // Without clients in the plan, a server reads requests line by line.
    let (_, server) = programs("smtp: {}", "s").unwrap();
    let line = format!(
        "{:?}",
        Step::ReceiveMessage(MessageFraming::Until(Delimiter::new(b"\n").unwrap()))
    );
    let expected =
        format!("at once\n>\"220 mail.example.net ESMTP ready\\r\\n\"\nLabel(Label(0))\n{line}\n");
    assert!(shown(&server).starts_with(&expected), "{}", shown(&server));
    assert!(!shown(&server).contains("STARTTLS"));
}

#[test]
fn servers_parse_requests_of_other_clients() {
    let preset = "http: {requests: 2, response: {body: 1, delay: 5ms}}";
    let (_, server) = programs(preset, "s").unwrap();
    let response = |more: &str| {
        let head = r#">"HTTP/1.1 200 OK\r\nServer: wirestorm\r\nContent-Type: application/octet-stream\r\n"#;
        format!("{head}{more}Content-Length: 1\\r\\n\\r\\n\"")
    };
    let next = "Jump { to: Label(0), when: Received(KeepsConnection) }\n";
    let begin = "at once\nLabel(Label(0))\n<message\nwaits from then 5000 to 5000 us\nJump { to: \
                 Label(1), when: Received(Matches(Pattern(Regex(\"\\\\AHEAD \")))) }\n";
    let end = "Jump { to: Label(2), when: Always }\nLabel(Label(1))\n";
    let response_sent = response("");
    let expected = format!(
        "{begin}{response_sent} and 1 more\n{next}{end}{response_sent}\n{next}Label(Label(2))\n"
    );
    assert_eq!(shown(&server), expected);
    // After a single request the server announces the close, and closes.
    let (_, server) = programs(&preset.replace("2", "1"), "s").unwrap();
    let response_sent = response("Connection: close\\r\\n");
    let expected =
        format!("{begin}{response_sent} and 1 more\n{end}{response_sent}\nLabel(Label(2))\n");
    assert_eq!(shown(&server), expected);

    // If first bytes select the server, it reads a fixed number of bytes.
    let text = |port: u16| {
        format!(
            "ports: [{{name: s}}]\ntemplates:\n  - {{name: pages, http: {{requests: 2}}, server: {{tx: \
             s}}}}\n  - {{name: other, server: {{tx: s, port: {port}, first_bytes: \"X\", program: \
             [wait_for_close]}}}}\n"
        )
    };
    for (port, expected) in [(80, "always:\n<1\n>"), (81, "at once\nLabel")] {
        let plan = EmulationPlan::parse(&text(port)).unwrap();
        let server = plan.templates[0].server.as_ref().unwrap();
        assert!(shown(&server.program).starts_with(expected), "{}", shown(&server.program));
    }
    // Requests must therefore have the same length in all flows.
    let differs = text(80).replace("requests: 2", "path: \"/${flow}\"");
    let error = EmulationPlan::parse(&differs).unwrap_err().to_string();
    let expected = "templates[0].http: found requests with values, expected none, since";
    assert!(error.starts_with(expected), "{error}");
}

/// Formats the transaction marks of a program, with `...` for other steps.
fn timed(steps: &[Step]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in shown(steps).lines() {
        let is_mark = line.ends_with(" starts") || line.ends_with(" ends");
        match is_mark {
            true => lines.push(line.to_owned()),
            false if lines.last().is_some_and(|last| last == "...") => {}
            false => lines.push("...".to_owned()),
        }
    }
    lines.join(" ")
}

#[test]
fn clients_time_each_transaction() {
    for (preset, sides, expected) in [
        ("http: {}", "cs", "... http starts ... http ends ..."),
        ("http: {response_bytes: 9}", "c", "... http starts ... http ends"),
        ("http: {}", "c", "... http starts ... http ends"),
        (
            "http: {requests: 2}",
            "cs",
            "... http starts ... http ends ... http starts ... http ends",
        ),
        ("http: {requests: 2}", "c", "... http starts ... http ends ... http starts ... http ends"),
        ("http: {version: 2}\n    tls: true", "cs", "... http starts ... http ends"),
        ("smtp: {}", "cs", "... smtp starts ... smtp ends ..."),
        ("smtp: {messages: 3}", "c", "... smtp starts ... smtp ends ..."),
        ("smtp: {start_tls: true}\n    tls: true", "cs", "... smtp starts ... smtp ends ..."),
        (
            "ftp: {list: [LIST], files: [a], upload: [b]}",
            "c",
            "... ftp.list starts ... ftp.list ends ... ftp.retr starts ... ftp.retr ends \
             ftp.stor starts ... ftp.stor ends ...",
        ),
        (
            "sip: {talk_time: 1s}",
            "cs",
            "... sip.invite starts ... sip.invite ends ... sip.bye starts ... sip.bye ends ...",
        ),
        ("dns: {queries: 2}", "cs", "dns starts ... dns ends dns starts ... dns ends"),
        ("rtp: {}", "cs", "..."),
    ] {
        let (client, server) = timed_programs(preset, sides).unwrap();
        assert_eq!(timed(&client), expected, "{preset} of {sides}");
        assert!(!timed(&server).contains("starts"), "{preset} of {sides}");
        let (client, _) = programs(preset, sides).unwrap();
        assert!(!timed(&client).contains("starts"), "{preset} of {sides}");
    }
    // The connection setup does not count towards the transaction.
    let (client, _) = timed_programs("http: {}", "cs").unwrap();
    assert_eq!(client[0], Step::Connect);
    let (client, _) = timed_programs("http: {requests: 2}", "cs").unwrap();
    assert!(matches!(&client[..2], [Step::Connect, Step::Repeat { .. }]), "{client:?}");
    let error = programs("transport: tcp", "cs").unwrap_err();
    assert!(error.contains("transactions: is for preset protocols"), "{error}");
}

/// Returns the delays of a program, including those in loops.
fn waits(steps: &[Step]) -> Vec<Step> {
    let mut waits = Vec::new();
    for step in steps {
        match step {
            Step::Repeat { steps, .. } => waits.extend(self::waits(steps)),
            Step::Delay { .. } | Step::DelaySinceReceived { .. } | Step::RandomDelay { .. } => {
                waits.push(step.clone());
            }
            _ => {}
        }
    }
    waits
}

#[test]
fn delays_can_have_any_distribution() {
    let mean = Duration::from_millis(300);
    let normal = Step::RandomDelay { mean, stddev: Some(Duration::from_millis(50)) };
    let exponential = Step::RandomDelay { mean, stddev: None };
    for (preset, sides, of_client, of_server) in [
        ("http: {requests: 3, think_time: EXP, response: {delay: NORM}}", "cs", 1, 2),
        ("http: {response: {delay: NORM}}", "s", 0, 1),
        ("http: {requests: 3, think_time: EXP}", "c", 1, 0),
        ("http: {version: 2, requests: 3, think_time: EXP, response: {delay: NORM}}", "cs", 1, 1),
        ("smtp: {delay: NORM}", "cs", 0, 7),
        ("smtp: {start_tls: true, delay: NORM}\n    tls: true", "cs", 0, 4),
        ("smtp: {delay: NORM}", "s", 0, 3),
        ("ftp: {delay: NORM}", "cs", 0, 2),
        ("rtsp: {packets: 0, delay: NORM}", "cs", 0, 1),
        ("sip: {talk_time: EXP, delay: NORM}", "cs", 1, 3),
        ("sip: {ring_time: NORM}", "cs", 0, 1),
        ("dns: {queries: 2, delay: NORM}", "cs", 0, 2),
    ] {
        let fields =
            preset.replace("EXP", "{mean: 300ms}").replace("NORM", "{mean: 300ms, stddev: 50ms}");
        let (client, server) = programs(&fields, sides).unwrap();
        assert_eq!(waits(&client), vec![exponential.clone(); of_client], "{preset} of {sides}");
        assert_eq!(waits(&server), vec![normal.clone(); of_server], "{preset} of {sides}");
    }
}

#[test]
fn clients_check_replies_of_other_servers() {
    let (client, _) = timed_programs("smtp: {messages: 2}", "c").unwrap();
    let needs = |pattern: &str, otherwise: &str| {
        format!(
            "ReceiveMessage(Reply)\nExpect {{ expected: Matches(Pattern(Regex({pattern:?}))), \
             on_failure: {otherwise} }}\n"
        )
    };
    let shown = self::shown(&client);
    assert!(shown.starts_with(&format!("at once\n{}>\"EHLO", needs("^220", "Some(Label(0))"))));
    let expected = format!(
        "{}smtp ends\n.\nLabel(Label(0))\n>\"QUIT\\r\\n\"\n{}",
        needs("^250", "Some(Label(0))"),
        needs("^221", "None")
    );
    assert!(shown.ends_with(&expected), "{shown}");
    // The client waits while media arrive, and skips them with each further request.
    for (packets, repeats, rest) in [(2, None, 40), (250, Some(1), 0), (1_003, Some(4), 60)] {
        let (client, _) = programs(&format!("rtsp: {{packets: {packets}}}"), "c").unwrap();
        let found = client.iter().find_map(|it| match it {
            Step::Repeat { times, steps } => Some((*times, steps.clone())),
            _ => None,
        });
        assert_eq!(found.as_ref().and_then(|(times, _)| *times), repeats, "{client:?}");
        let delay = |millis: u64| {
            let time = Duration::from_millis(millis);
            Step::Delay { min: time, max: time }
        };
        if let Some((_, steps)) = found {
            assert_eq!(steps[0], delay(5_000));
            assert!(matches!(steps[..], [_, _, Step::SendComposed(_), ..]), "{steps:?}");
        }
        assert_eq!(client.contains(&delay(rest)), rest > 0, "{client:?}");
    }
    // Each response has one check, and 10,000 queries do not exceed the program limit.
    let (client, _) = programs("dns: {queries: 10000}", "c").unwrap();
    let codes = client.iter().filter(|it| {
        matches!(it, Step::Expect { expected: Condition::DnsNoError, on_failure: None })
    });
    assert_eq!(codes.count(), 10_000);
}

#[test]
fn smtp_sends_a_message_line_by_line() {
    let preset =
        "smtp: {from: a@b.test, to: c@d.test, message: \"one\\n.two\", messages: 2, delay: 1ms}";
    let (client, server) = programs(preset, "cs").unwrap();
    let expected = r#"<34
>"EHLO client.example.net\r\n"
<62
2 times:
>"MAIL FROM:<a@b.test>\r\n"
<8
>"RCPT TO:<c@d.test>\r\n"
<8
>"DATA\r\n"
<35
>"one\r\n..two\r\n.\r\n"
<16
.
>"QUIT\r\n"
<29
until it closes
"#;
    assert_eq!(shown(&client), expected);
    let answers = shown(&server);
    assert!(answers.starts_with("waits 1000 to 1000 us\n>\"220 "), "{answers}");
    let preset = "smtp: {message: 5000}";
    let (client, _) = programs(preset, "cs").unwrap();
    let longest = client.iter().filter_map(|step| match step {
        Step::Send { text, .. } => Some(text.clone()),
        _ => None,
    });
    let message = longest.max_by_key(Vec::len).unwrap();
    assert!(message.ends_with(b"\r\n.\r\n") && message.len() > 5_000);
    let lines = message.split(|byte| *byte == b'\n');
    assert!(lines.into_iter().all(|line| line.len() < 1_000 && !line.contains(&0)));
}

/// Returns the templates of an FTP plan with these fields and sides.
fn ftp(fields: &str, sides: &str) -> Result<Vec<Template>, String> {
    let client = "    client: {tx: c, servers: 10.0.1.1, load: {concurrent: 7}, limit: 9}\n";
    let text = format!(
        "ports: [{{name: c, addresses: 10.0.0.1/24}}, {{name: s}}]\n\
         templates:\n  - name: t\n    group: g\n    ftp: {{{fields}}}\n{}{}",
        if sides.contains('c') { client } else { "" },
        if sides.contains('s') { "    server: {tx: s}\n" } else { "" },
    );
    Ok(EmulationPlan::parse(&text).map_err(|errors| errors.to_string())?.templates)
}

/// Returns the programs of all templates but the first, by the suffix of their names.
fn transfers(templates: &[Template]) -> Vec<(&str, String, String)> {
    let program = |steps: Option<&Vec<Step>>| steps.map(|it| shown(it)).unwrap_or_default();
    let one = |it: &'_ Template| {
        let client = program(it.client.as_ref().map(|it| &it.program));
        (client, program(it.server.as_ref().map(|it| &it.program)))
    };
    let all = templates[1..].iter().map(|it| (it.name.trim_start_matches("t."), one(it)));
    all.map(|(name, (client, server))| (name, client, server)).collect()
}

#[test]
fn each_ftp_transfer_is_a_template_of_its_own() {
    let preset = "files: [{name: a, size: 9000}, b], upload: [{name: c, size: 0}], list: [NLST]";
    let templates = ftp(preset, "cs").unwrap();
    let closed = "until it closes\n".to_owned();
    let expected = [
        ("nlst", closed.clone(), "at once\n>\"a\\r\\nb\\r\\n\"\n".to_owned()),
        (
            "retr.a",
            format!("ReceiveOrFail(9000)\n{closed}"),
            "at once\n>\"\" and 9000 more\n".to_owned(),
        ),
        (
            "retr.b",
            format!("ReceiveOrFail(1024)\n{closed}"),
            "at once\n>\"\" and 1024 more\n".to_owned(),
        ),
        ("stor.c", "Connect\n".to_owned(), closed.clone()),
    ];
    assert_eq!(transfers(&templates), expected);
    assert_eq!(templates[0].group.as_deref(), Some("g"));
    assert_eq!(templates[0].client.as_ref().unwrap().load, Load::Concurrent(7));
    assert_eq!(templates[0].server.as_ref().unwrap().listen, Some(21));
    for template in &templates[1..] {
        let (client, server) = (template.client.as_ref().unwrap(), template.server.as_ref());
        assert_eq!((client.load, client.limit), (Load::OnDemand, None));
        assert_eq!((server.unwrap().listen, template.group.as_ref()), (None, Some(&template.name)));
        for steps in [
            &templates[0].client.as_ref().unwrap().program,
            &templates[0].server.as_ref().unwrap().program,
        ] {
            assert!(steps.contains(&Step::SelectGroup(template.name.clone())), "{}", template.name);
        }
    }

    // The sizes of other hosts' files are unknown; a server accepts every upload.
    let templates = ftp("files: [b], upload: [{name: c, size: 5}]", "c").unwrap();
    let expected = [
        ("retr.b", closed.clone(), String::new()),
        ("stor.c", "at once\n>\"\" and 5 more\n".to_owned(), String::new()),
    ];
    assert_eq!(transfers(&templates), expected);
    let templates = ftp("files: [b], upload: [{name: c, size: 5}]", "s").unwrap();
    let names: Vec<_> = transfers(&templates).iter().map(|(name, ..)| name.to_string()).collect();
    assert_eq!(names, ["list", "nlst", "retr.b", "stor.c", "stor"]);
    assert_eq!(transfers(&templates)[3].2, format!("ReceiveOrFail(5)\n{closed}"));
    assert_eq!(transfers(&templates)[4].2, closed);

    // Templates exist only for the configured transfers.
    for (fields, sides, expected) in [
        ("", "cs", &["retr.readme.txt"][..]),
        ("upload: [c]", "cs", &["stor.c"]),
        ("upload: [c]", "c", &["stor.c"]),
        ("upload: [c]", "s", &["list", "nlst", "retr.readme.txt", "stor.c", "stor"]),
        ("list: [NLST]", "cs", &["nlst"]),
        ("files: [], list: [NLST]", "c", &["nlst"]),
        ("files: [a], upload: [c]", "c", &["retr.a", "stor.c"]),
    ] {
        let templates = ftp(fields, sides).unwrap();
        let transfers = transfers(&templates);
        let names: Vec<_> = transfers.iter().map(|(name, ..)| *name).collect();
        assert_eq!(names, expected, "{fields} of {sides}");
    }

    let templates = ftp("files: [a.b], rounds: 2, user: \"a$${b}\"", "cs").unwrap();
    let client = &templates[0].client.as_ref().unwrap().program;
    let is_round = |it: &Step| matches!(it, Step::Repeat { times: Some(2), .. });
    assert_eq!(client.iter().filter(|it| is_round(it)).count(), 1, "{client:?}");
    assert!(shown(client).contains(">\"USER a${b}\\r\\n\"\n"), "no value is meant");
    // File names are escaped in patterns.
    let server = shown(&templates[0].server.as_ref().unwrap().program);
    assert!(server.contains(r"^RETR (?:.*/)?a\\.b\\r"), "{server}");
}

#[test]
fn ftp_errors_have_their_path() {
    for (fields, expected) in [
        ("files: [a, {name: a}]", "ftp.files[1]: found \"a\" twice, expected each file once"),
        ("files: [{size: 5}]", "ftp.files[0].name: found nothing, expected the name"),
        ("files: [{name: a, size: -1}]", "ftp.files[0].size: found -1, expected"),
        ("upload: [{name: a, bytes: 1}]", "ftp.upload[0].bytes: found an unknown field"),
        ("list: [DIR]", "ftp.list[0]: found \"DIR\", expected LIST or NLST"),
        ("data_ports: 70000", "ftp.data_ports: found 70000, expected ports such as"),
        ("delay: soon", "ftp.delay: found \"soon\", expected a time"),
    ] {
        let error = ftp(fields, "cs").unwrap_err();
        assert!(error.starts_with(&format!("templates[0].{expected}")), "{fields}: {error}");
    }
}

#[test]
fn rtsp_interleaves_media_on_the_connection() {
    let (client, server) = programs("rtsp: {packets: 3}", "cs").unwrap();
    let media = server.iter().find_map(|step| match step {
        Step::Repeat { times: Some(3), steps } => Some(steps),
        _ => None,
    });
    let [wait, Step::SendComposed(packet), ..] = &media.unwrap()[..] else { panic!("{server:?}") };
    // The next timer tick is at 20 ms.
    let nearly = Duration::from_micros(19_500);
    assert_eq!(*wait, Step::Delay { min: nearly, max: nearly });
    assert_eq!(packet.size, 4 + 12 + 160);
    // RTCP BYE follows the media.
    assert!(shown(&client).contains(&format!("<{}\n", 3 * packet.size + 20)), "{client:?}");
    let Step::Send { text, .. } = &client[client.len() - 2] else { panic!("{client:?}") };
    assert!(text.starts_with(b"TEARDOWN rtsp://media.example.net/stream RTSP/1.0\r\nCSeq: 5\r\n"));
}

#[test]
fn rtp_and_dns_use_datagrams() {
    let (client, server) = programs("rtp: {packets: 3}", "cs").unwrap();
    let Some(Step::SendComposedDatagram(packet)) = client.last() else { panic!("{client:?}") };
    assert_eq!(packet.size, 12 + 160);
    let is_loop = |it: &Step| matches!(it, Step::Repeat { times: Some(2), .. });
    assert_eq!(client.iter().filter(|it| is_loop(it)).count(), 1, "{client:?}");
    assert_eq!(server, [Step::ReceiveDatagrams { count: 3, clear: true }]);

    let (_, server) = programs("dns: {name: a.test, type: AAAA, answers: 2}", "cs").unwrap();
    let Step::SendDatagram { text, .. } = &server[1] else { panic!("{server:?}") };
    let header = [0, 1, 0x81, 0x80, 0, 1, 0, 2, 0, 0, 0, 0];
    assert_eq!(text[..12], header);
    assert_eq!(&text[12..24], b"\x01a\x04test\0\0\x1c\0\x01");
    assert_eq!(text.len(), 12 + 12 + 2 * 28);
}

#[test]
fn idle_timeouts_allow_for_the_longest_delay() {
    let idle = |steps: &[Step]| match steps.first() {
        Some(Step::SetIdleTimeout { time, receive_only: false }) => time.as_nanos() / 1_000_000,
        _ => 0,
    };
    for (preset, expected) in [
        ("dns: {}", 0),
        ("dns: {delay: 400ms}", 0),
        ("dns: {delay: 1200ms}", 2_400),
        ("dns: {delay: {min: 0s, max: 2s}}", 4_000),
        ("dns: {delay: {mean: 1s}}", 40_000),
        ("dns: {delay: {mean: 1s, stddev: 500ms}}", 8_000),
        ("dns: {delay: 4294s}", 8_588_000),
        ("sip: {ring_time: 2s, talk_time: 30s}", 60_000),
        ("rtp: {}", 0),
        ("sip: {packets: 1000}", 40_000),
    ] {
        let (client, server) = programs(preset, "cs").unwrap();
        assert_eq!((idle(&client), idle(&server)), (expected, expected), "{preset}");
    }
    // Other hosts may ring and talk for any time.
    assert_eq!(idle(&programs("sip: {}", "c").unwrap().0), 32_000);
    assert_eq!(idle(&programs("sip: {}", "s").unwrap().1), 300_000);
    assert_eq!(idle(&programs("sip: {talk_time: 10min}", "s").unwrap().1), 1_200_000);
}

/// Each side waits for as many bytes as the other sends.
#[test]
fn each_side_awaits_the_bytes_that_the_other_sends() {
    fn count(steps: &[Step]) -> (u64, u64) {
        steps.iter().fold((0, 0), |(sent, awaited), step| match step {
            Step::Send { size, .. } => (sent + u64::from(*size), awaited),
            Step::Receive(bytes) => (sent, awaited + bytes),
            Step::Repeat { times: Some(times), steps } => {
                let (inner_sent, inner_awaited) = count(steps);
                (sent + times * inner_sent, awaited + times * inner_awaited)
            }
            _ => (sent, awaited),
        })
    }
    for preset in [
        "http: {requests: 12, pipeline: 4, body: 77, response: {body: 5000, chunk: 999}}",
        "http: {response: {body: 70000000}}",
        "http: {method: HEAD, requests: 2, response: {body: 5}}",
        "smtp: {messages: 3, message: 3000}",
    ] {
        let (client, server) = programs(preset, "cs").unwrap();
        let ((requests_sent, responses_received), (responses_sent, requests_received)) =
            (count(&client), count(&server));
        assert_eq!(
            (requests_sent, responses_sent),
            (requests_received, responses_received),
            "{preset}"
        );
    }
}

#[test]
fn every_error_has_its_path() {
    for (preset, sides, expected) in [
        ("http: {path: a b}", "cs", "http.path: found \"a b\", expected a word without spaces"),
        ("http: {method: \"A/B\"}", "cs", "http.method: found \"A/B\", expected a method"),
        ("http: {meth: GET}", "cs", "http.meth: found an unknown field, expected method?"),
        ("http: {headers: {\"a b\": c}}", "cs", "http.headers.a b: found a name with other"),
        (
            "http: {headers: {host: c}}",
            "cs",
            "http.headers.host: host is set by other keys of the plan",
        ),
        (
            "http: {headers: {A: \"b\\r\\nC: d\"}}",
            "cs",
            "http.headers.A: found \"b\\r\\nC: d\", expected a text of one line",
        ),
        (
            "http: {requests: 4, pipeline: 3}",
            "cs",
            "http.pipeline: found 3, expected a divisor of the 4 requests",
        ),
        (
            "http: {response_bytes: 2}",
            "cs",
            "http.response_bytes: is for other hosts' servers: this template has one",
        ),
        (
            "http: {requests: 2, pipeline: 2}",
            "s",
            "http.pipeline: is for clients: this template has none",
        ),
        (
            "http: {response: {status: 304, body: 1}}",
            "cs",
            "http.response.body: a response of status 304 has no body",
        ),
        (
            "http: {response: {body: 100000000, chunk: 5}}",
            "cs",
            "http.response.chunk: found 5, expected at most 67108864 bytes here",
        ),
        ("http: {path: \"/${n}\"}", "cs", "http.path: found \"n\", expected a predefined value"),
        (
            "http: {headers: {A: \"${b}\"}}",
            "cs",
            "http.headers.A: found \"b\", expected a predefined",
        ),
        ("http: {host: \"${\"}", "cs", "http.host: found ${ without }"),
        ("http: {set: {flow: 1}}", "cs", "http.set.flow: \"flow\" is a predefined value already"),
        (
            "http: {set: {n: {of: 1}}}",
            "cs",
            "http.set.n.of: found an unknown field, expected one of counter",
        ),
        (
            "http: {set: {a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1}}",
            "cs",
            "http: found 11 variables and nested loops, expected at most 10",
        ),
        (
            "http: {path: \"/${flow}\", response_bytes: 9}",
            "c",
            "http.response_bytes: cannot be set if requests have values; remove it",
        ),
        (
            "http: {path: \"/${flow}\", body: 1048577}",
            "cs",
            "http.body: found 1048577, expected at most 1048576 bytes with values",
        ),
        (
            "http: {body: \"${b}\"}",
            "cs",
            "http.body: found ${ where values are not supported, expected the same text for all flows",
        ),
        ("http: {response: {body: {text: \"${b}\"}}}", "cs", "http.response.body.text: found ${"),
        (
            "dns: {name: \"${flow}.test\"}",
            "cs",
            "dns.name: found ${ where values are not supported",
        ),
        (
            "http: {}\n    tls: {alpn: [h2, http/1.1]}",
            "cs",
            "tls.alpn: found h2, but the template uses HTTP/1.1, expected other protocols",
        ),
        ("http: {}\n    smtp: {}", "cs", "smtp: another field defines the dialogue"),
        ("dns: {name: a..b}", "cs", "dns.name: found \"a..b\", expected a name such as"),
        ("dns: {type: MX}", "cs", "dns.type: found \"MX\", expected A or AAAA"),
        ("sip: {}\n    transport: tcp", "cs", "transport: the dialogue defines the transport"),
        ("sip: {packets: 0}", "cs", "sip.packets: found 0"),
        ("sip: {media_port: 6000}", "cs", "sip.media_port: needs `packets`"),
        ("sip: {packets: 9, talk_time: 1s}", "cs", "sip.talk_time: follows from `packets`"),
        ("ftp: {files: [\"a\\tb\"]}", "cs", "ftp.files[0]: found \"a\\tb\", expected a word"),
    ] {
        let error = programs(preset, sides).unwrap_err();
        assert!(error.starts_with(&format!("templates[0].{expected}")), "{preset}: {error}");
    }
}
