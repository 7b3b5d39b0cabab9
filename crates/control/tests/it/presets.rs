//! Protocol presets in virtual time.

use std::net::SocketAddr;

use wirestorm_base::time::Duration;
use wirestorm_control::emulation::SimulationOptions;
use wirestorm_control::result::{RunResult, TemplateReport};
use wirestorm_plan::emulation::EmulationPlan;
use wirestorm_wire::conversation::{Action, Conversation, Side};

use super::simulation;

/// Simulates a plan; flows start within `duration`.
fn run(text: &str, duration: Duration) -> RunResult {
    captured(text, duration).0
}

/// Simulates a plan. Also returns the conversations from the clients' capture.
fn captured(text: &str, duration: Duration) -> (RunResult, Vec<Conversation>) {
    let plan = EmulationPlan::parse(text).unwrap_or_else(|errors| panic!("{errors}"));
    let options = SimulationOptions { duration, ..simulation::options() };
    let (result, capture) = simulation::captured(&plan, options);
    (result, simulation::conversations(&capture))
}

/// Returns the messages of one side, one for each turn.
fn messages(conversation: &Conversation, side: Side) -> Vec<String> {
    let of_side = conversation.turns.iter().filter(|turn| turn.side == side);
    let text = of_side.filter_map(|turn| match &turn.act {
        Action::Send(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    });
    text.collect()
}

/// Builds a plan with one template with both sides and these fields.
fn plan(fields: &str, limit: u64) -> String {
    format!(
        "ports: [{{name: c}}, {{name: s}}]\ntemplates:\n  - name: t\n    {fields}\n    client: {{tx: \
         c, addresses: 10.0.0.1, servers: 10.0.1.1, load: {{rate: 100}}, limit: {limit}}}\n    \
         server: {{tx: s}}\n"
    )
}

fn templates(result: &RunResult) -> [&TemplateReport; 2] {
    [&result.ports[0].templates[0], &result.ports[1].templates[0]]
}

/// Asserts that all flows of both sides closed.
#[track_caller]
fn assert_closed(result: &RunResult, flows: u64) {
    assert_flows(result, flows, flows);
}

/// The same with different numbers of flows for clients and servers.
#[track_caller]
fn assert_flows(result: &RunResult, of_clients: u64, of_servers: u64) {
    for (report, flows) in templates(result).into_iter().zip([of_clients, of_servers]) {
        let found: Vec<_> = report.failures.iter().collect();
        assert_eq!(report.flows["closed"], flows, "{}: {:?}", report.side, report.flows);
        assert!(found.is_empty(), "{}: {found:?}", report.side);
    }
}

/// Returns the minimum and mean duration of a transaction in milliseconds.
fn took(result: &RunResult, name: &str) -> (u64, u64) {
    let [client, _] = templates(result);
    let found = client.transactions.iter().find(|it| it.name == name);
    let found = found.unwrap_or_else(|| panic!("no {name}"));
    (found.min_ns.unwrap() / 1_000_000, found.mean_ns.unwrap() / 1_000_000)
}

#[test]
fn request_variables_have_values_for_each_flow() {
    let said_of = "set: {n: {counter: {start: 7}}, key: {random_text: 12}}, path: \"/${flow}/${n:03}\", \
                   headers: {X-Key: \"${key}\", X-From: \"${client}:${client_port}\"}, requests: 4, \
                   pipeline: 2, response: {body: 100}";
    let (result, conversations) =
        captured(&plan(&format!("http: {{{said_of}}}"), 3), Duration::from_secs(1));
    assert_closed(&result, 3);
    assert_eq!(
        result.ports[1].connections.as_ref().unwrap().http1.as_ref().map(|it| it.requests),
        Some(12)
    );
    let requests: Vec<_> = conversations.iter().flat_map(|it| messages(it, Side::Client)).collect();
    let requests = requests.concat();
    let paths: Vec<_> = requests.lines().filter_map(|line| line.strip_prefix("GET ")).collect();
    let expected = [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3].into_iter().zip(7..);
    let mut expected: Vec<_> =
        expected.map(|(flow, n)| format!("/{flow}/{n:03} HTTP/1.1")).collect();
    // The order of requests between flows decides which flow gets which number.
    let flow_of = |path: &str| path.split('/').nth(1).map(str::to_owned);
    let number_of = |path: &str| path.split([' ', '/']).nth(2).map(str::to_owned);
    assert_eq!(
        paths.iter().map(|it| flow_of(it)).collect::<Vec<_>>(),
        expected.iter().map(|it| flow_of(it)).collect::<Vec<_>>()
    );
    let mut numbers: Vec<_> = paths.iter().filter_map(|it| number_of(it)).collect();
    numbers.sort();
    expected.sort_by_key(|it| number_of(it));
    assert_eq!(numbers, expected.iter().filter_map(|it| number_of(it)).collect::<Vec<_>>());
    let mut keys: Vec<_> =
        requests.lines().filter_map(|line| line.strip_prefix("X-Key: ")).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 12, "{keys:?}");
    assert!(keys.iter().all(|it| it.len() == 12), "{keys:?}");
    assert_eq!(requests.matches("X-From: 10.0.0.1:102").count(), 12, "{requests}");

    let (result, _) =
        captured(&plan(&format!("http: {{version: 2, {said_of}}}"), 3), Duration::from_secs(1));
    assert_closed(&result, 3);
    assert_eq!(
        result.ports[1].connections.as_ref().unwrap().http2.as_ref().map(|it| it.requests),
        Some(12)
    );
    assert_eq!(
        result.ports[0]
            .connections
            .as_ref()
            .unwrap()
            .http2
            .as_ref()
            .and_then(|it| it.responses.get("2xx").copied()),
        Some(12)
    );
}

#[test]
fn udp_flows_survive_their_longest_delays() {
    let minute = Duration::from_secs(60);
    let result = run(&plan("sip: {ring_time: 2s, talk_time: 30s}", 5), minute);
    assert_closed(&result, 5);
    let [client, _] = templates(&result);
    assert!(client.times.duration.max_ns > Some(32_000_000_000), "{:?}", client.times.duration);
    assert!((2_000..2_010).contains(&took(&result, "sip.invite").0));

    let result = run(&plan("dns: {delay: 1200ms, queries: 2}", 5), minute);
    assert_closed(&result, 5);
    assert!((1_200..1_210).contains(&took(&result, "dns").0));

    let result =
        run(&plan("sip: {talk_time: {mean: 3s}, delay: {mean: 1s, stddev: 200ms}}", 50), minute);
    assert_closed(&result, 50);
    // Some calls last more than twice the mean.
    let [client, _] = templates(&result);
    assert!(client.times.duration.max_ns > Some(8_000_000_000), "{:?}", client.times.duration);
}

/// Builds a plan with a preset server (fields `server`) and a client with its own program (one step
/// for each line).
fn others(server: &str, port: u16, transport: &str, steps: &str) -> String {
    let steps = steps.lines().map(|line| format!("        - {}\n", line.trim()));
    format!(
        "ports: [{{name: c}}, {{name: s}}]\ntemplates:\n  - name: others\n    transport: \
         {transport}\n    client:\n      tx: c\n      addresses: 10.0.0.1\n      servers: \
         10.0.1.1\n      server_port: {port}\n      load: {{rate: 100}}\n      limit: 3\n      \
         program:\n{}  - name: ours\n    {server}\n    server: {{tx: s}}\n",
        steps.collect::<String>(),
    )
}

#[test]
fn dns_server_answers_each_question() {
    // ID, flags, and one question: a.bc with a record type.
    let query = |id: &str, flags: &str, kind: &str| {
        format!(
            "send_datagram: {{hex: '{id} {flags} 0001 0000 0000 0000 01 61 02 6263 00 00{kind} 0001'}}"
        )
    };
    let expects = |id: &str, flags: &str, count: &str, kind: &str, records: &str| {
        format!(
            "receive_datagrams: 1\nexpect: {{hex: '{id} {flags} 0001 {count} 0000 0000 01 61 02 \
             6263 00 00{kind} 0001 {records}'}}"
        )
    };
    let record = "c00c 0001 0001 00000e10 0004 c00002";
    let two = format!("{record}01 {record}02");
    let steps = [
        query("beef", "0100", "01"),
        expects("beef", "8180", "0002", "01", &two),
        query("0102", "0000", "01"),
        expects("0102", "8080", "0002", "01", &two),
        query("0103", "0120", "1c"),
        expects("0103", "8180", "0000", "1c", ""),
    ];
    let text = others("dns: {name: other.test, answers: 2}", 53, "udp", &steps.join("\n"));
    assert_flows(&run(&text, Duration::from_secs(1)), 3, 9);
    // With `queries`, several queries belong to one flow.
    let text = text.replace("answers: 2", "answers: 2, queries: 3");
    assert_flows(&run(&text, Duration::from_secs(1)), 3, 3);
}

#[test]
fn smtp_server_accepts_several_recipients_and_long_messages() {
    let steps = r#"receive: {message: reply}
        send: "EHLO a.test\r\n"
        receive: {message: reply}
        expect: "250-mail.example.net greets you\r\n250 8BITMIME\r\n"
        send: "STARTTLS\r\n"
        receive: {message: reply}
        expect: {pattern: "^502 "}
        send: "MAIL FROM:<a@b.test> SIZE=300000\r\nRCPT TO:<c@d.test>\r\nRCPT TO:<e@f.test>\r\nDATA\r\n"
        receive: {message: reply}
        receive: {message: reply}
        receive: {message: reply}
        receive: {message: reply}
        expect: {pattern: "^354 "}
        send: {size: 300000, fill: "some line\r\n"}
        send: "\r\n.\r\n"
        receive: {message: reply}
        expect: "250 OK, queued\r\n"
        send: "QUIT\r\n"
        receive: {message: reply}
        expect: {pattern: "^221 "}
        wait_for_close"#;
    let result = run(&others("smtp: {delay: 1ms}", 25, "tcp", steps), Duration::from_secs(1));
    assert_closed(&result, 3);
}

#[test]
fn rtsp_server_answers_each_method_with_the_cseq_of_the_request() {
    let steps = r#"send: "DESCRIBE rtsp://tv.test/a RTSP/1.0\r\nUser-Agent: x\r\ncseq: 42\r\n\r\n"
        receive: {until: "\r\n\r\n"}
        expect: {pattern: "^RTSP/1.0 200 OK\r\nCSeq: 42\r\nContent-Base: rtsp://tv.test/a/\r\n(?s:.*)Content-Length: 101\r\n"}
        receive: {bytes: 101}
        expect: {pattern: "^v=0\r\n"}
        send: "OPTIONS * RTSP/1.0\r\nCSeq: 43\r\n\r\nRECORD rtsp://tv.test/a RTSP/1.0\r\nCSeq: 44\r\n\r\n"
        receive: {until: "\r\n\r\n"}
        expect: {pattern: "^RTSP/1.0 200 OK\r\nCSeq: 43\r\nPublic: OPTIONS, "}
        receive: {until: "\r\n\r\n"}
        expect: {pattern: "^RTSP/1.0 405 (?s:.*)\nCSeq: 44\r\n"}
        send: "SETUP rtsp://tv.test/a/track1 RTSP/1.0\r\nCSeq: 45\r\nTransport: RTP/AVP;unicast;client_port=4000-4001\r\n\r\n"
        receive: {until: "\r\n\r\n"}
        expect: {pattern: "^RTSP/1.0 461 (?s:.*)\nCSeq: 45\r\n"}
        send: "SETUP rtsp://tv.test/a/track1 RTSP/1.0\r\nCSeq: 46\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n\r\n"
        receive: {until: "\r\n\r\n"}
        expect: {pattern: "^RTSP/1.0 200 OK\r\nCSeq: 46\r\nSession: "}
        send: "PLAY rtsp://tv.test/a/ RTSP/1.0\r\nCSeq: 47\r\nSession: 12345678\r\n\r\n"
        receive: {until: "\r\n\r\n"}
        expect: {pattern: "^RTSP/1.0 200 OK\r\nCSeq: 47\r\n(?s:.*)url=rtsp://tv.test/a/track1;"}
        receive: {bytes: 352}
        expect: {pattern: "(?s)^\\$\\x00\\x00\\xac\\x80\\x00\\x00\\x00\\x00\\x00\\x00\\x00.{164}\\$\\x00\\x00\\xac\\x80\\x00\\x00\\x01\\x00\\x00\\x00\\xa0"}
        receive: {bytes: 20}
        expect: {pattern: "(?s-u)^\\$\\x01\\x00\\x10\\x80\\xc9\\x00\\x01.{4}\\x81\\xcb\\x00\\x01.{4}$"}
        send: "$\0\0\u0004abcdTEARDOWN rtsp://tv.test/a RTSP/1.0\r\nCSeq: 48\r\n\r\n"
        receive: {until: "\r\n\r\n"}
        expect: {pattern: "^RTSP/1.0 200 OK\r\nCSeq: 48\r\n"}
        send: "hello\r\n\r\n"
        receive: {until: "\r\n\r\n"}
        expect: {pattern: "^RTSP/1.0 400 "}"#;
    let text = others("rtsp: {packets: 2, delay: 1ms}", 554, "tcp", steps);
    assert_closed(&run(&text, Duration::from_secs(1)), 3);
}

/// RFC 2326 section C.1.1.
#[test]
fn rtsp_client_sets_up_the_first_media_of_the_description() {
    for (base, description, track) in [
        ("", "m=audio 0 RTP/AVP 0\na=control:stream=0\n", "rtsp://media.example.net/a/stream=0"),
        (
            "Content-Base: rtsp://tv.test/b/\n",
            "a=control:*\nm=audio 0 RTP/AVP 0\na=x\na=control:stream=0\nm=video 0 RTP/AVP 96\na=control:s1\n",
            "rtsp://tv.test/b/stream=0",
        ),
        (
            "content-base:rtsp://tv.test/b\n",
            "m=audio 0 RTP/AVP 0\na=control:rtsp://tv.test/x?y=1\nm=video 0 RTP/AVP 96\na=control:s1\n",
            "rtsp://tv.test/x?y=1",
        ),
        ("Content-Base: rtsp://tv.test/b/\n", "m=audio 0 RTP/AVP 0\n", "rtsp://tv.test/b"),
    ] {
        let description = description.replace('\n', "\r\n");
        let length = description.len();
        let answers = [
            String::new(),
            format!("{}Content-Length: {length}\r\n\r\n{description}", base.replace('\n', "\r\n")),
            "Session: 7;timeout=60\r\n\r\n".to_owned(),
            "\r\n$\0\0\u{1}x".to_owned(),
            "$\0\0\u{1}y".to_owned(),
        ];
        let steps = answers.iter().zip(1..).map(|(answer, number)| {
            // Media frames before the response must be skipped.
            let (media, fields) = match number {
                1 => ("", "\r\n"),
                5 => (answer.as_str(), "\r\n"),
                _ => ("", answer.as_str()),
            };
            let response = format!("{media}RTSP/1.0 200 OK\r\nCSeq: {number}\r\n{fields}");
            format!(
                "        - receive: {{until: \"\\r\\n\\r\\n\"}}\n        - send: {}\n",
                serde_json::Value::from(response)
            )
        });
        let text = format!(
            "ports: [{{name: c}}, {{name: s}}]\ntemplates:\n  - name: ours\n    rtsp: {{path: /a, \
             packets: 5}}\n    client: {{tx: c, addresses: 10.0.0.1, servers: 10.0.1.1, load: {{rate: \
             100}}, limit: 2}}\n  - name: others\n    server:\n      tx: s\n      port: 554\n      \
             program:\n{}        - wait_for_close\n",
            steps.collect::<String>()
        );
        let (result, conversations) = captured(&text, Duration::from_secs(1));
        assert_closed(&result, 2);
        let requests = messages(&conversations[0], Side::Client);
        let lines: Vec<_> = requests.iter().filter_map(|it| it.lines().next()).collect();
        let url = "rtsp://media.example.net/a";
        let others =
            ["OPTIONS", "DESCRIBE", "PLAY", "TEARDOWN"].map(|it| format!("{it} {url} RTSP/1.0"));
        let [options, describe, play, teardown] = others;
        let set_up = format!("SETUP {track} RTSP/1.0");
        assert_eq!(lines, [options, describe, set_up, play, teardown], "{description}");
        assert_eq!(value(&requests[4], "Session"), "7");
        assert_eq!(value(&requests[4], "CSeq"), "5");
        // The media packets take 100 ms.
        let [client, _] = templates(&result);
        assert!(client.times.duration.max_ns >= Some(100_000_000), "{:?}", client.times.duration);
    }
}

/// Returns the value of a header line of a message.
fn value<'a>(message: &'a str, name: &str) -> &'a str {
    let line = message.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix([':', '=']));
    line.unwrap_or_else(|| panic!("no {name} in {message}")).trim()
}

#[test]
fn each_sip_call_has_unique_identifiers_on_both_sides() {
    for (client, server, host) in [
        ("10.0.0.1-10.0.0.4", "10.0.1.1", "10.0.0."),
        ("2001:db8::1-2001:db8::4", "2001:db8::9", "["),
    ] {
        let text = plan("sip: {ring_time: 5ms, talk_time: 9ms}", 4)
            .replace("addresses: 10.0.0.1,", &format!("addresses: \"{client}\","))
            .replace("servers: 10.0.1.1,", &format!("servers: \"{server}\","));
        let (result, calls) = captured(&text, Duration::from_secs(1));
        assert_closed(&result, 4);
        let mut names = Vec::new();
        for call in &calls {
            let (requests, answered) = (messages(call, Side::Client), messages(call, Side::Server));
            let first = |messages: &[String]| {
                let lines = messages.iter().map(|it| it.lines().next().unwrap().to_owned());
                lines.collect::<Vec<_>>()
            };
            let to = "sip:callee@example.net SIP/2.0";
            assert_eq!(first(&requests), ["INVITE ", "ACK ", "BYE "].map(|it| format!("{it}{to}")));
            let answers = ["100 Trying", "180 Ringing", "200 OK", "200 OK"];
            assert_eq!(first(&answered), answers.map(|it| format!("SIP/2.0 {it}")));
            for (answer, request) in answered.iter().zip([0, 0, 0, 2]) {
                for name in ["Via", "From", "Call-ID", "CSeq"] {
                    assert_eq!(value(answer, name), value(&requests[request], name));
                }
            }
            let tagged = value(&answered[2], "To");
            assert!(tagged.starts_with("<sip:callee@example.net>;tag="), "{tagged}");
            assert_eq!([value(&requests[1], "To"), value(&requests[2], "To")], [tagged; 2]);
            let via = value(&requests[0], "Via").to_owned();
            assert!(via.starts_with(&format!("SIP/2.0/UDP {host}")), "{via}");
            let sdp = requests[0].split("\r\n\r\n").nth(1).unwrap();
            assert_eq!(value(&requests[0], "Content-Length"), sdp.len().to_string());
            let address = call.client.ip().to_string();
            assert!(value(sdp, "c").ends_with(&address), "{sdp}");
            let answer = answered[2].split("\r\n\r\n").nth(1).unwrap();
            let family = if host == "[" { "IP6" } else { "IP4" };
            assert_eq!(value(answer, "c"), format!("IN {family} {server}"));
            names.push(value(&requests[0], "Call-ID").to_owned());
            names.push(value(&requests[0], "From").to_owned());
            names.push(tagged.to_owned());
            names.extend([
                via,
                value(&requests[1], "Via").to_owned(),
                value(&requests[2], "Via").to_owned(),
            ]);
            names.push(value(sdp, "m").to_owned());
            names.push(value(answer, "m").to_owned());
        }
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!((count, names.len()), (4 * 8, count), "{names:?}");
    }
}

#[test]
fn sip_media_flow_between_the_negotiated_ports() {
    for (client, server) in
        [("10.0.0.1-10.0.0.2", "10.0.1.1"), ("2001:db8::1-2001:db8::2", "2001:db8::9")]
    {
        let text = plan("sip: {ring_time: 5ms, packets: 50, media_port: 6000}", 4)
            .replace("addresses: 10.0.0.1,", &format!("addresses: \"{client}\","))
            .replace("servers: 10.0.1.1,", &format!("servers: \"{server}\","));
        let (result, flows) = captured(&text, Duration::from_secs(1));
        assert_closed(&result, 4);
        for port in &result.ports {
            let media = &port.templates[1];
            assert_eq!((media.name.as_str(), media.flows["closed"]), ("t.media", 4));
            assert!(media.failures.is_empty(), "{:?}", media.failures);
            assert_eq!((media.udp["sndpkt"], media.udp["rcvpkt"]), (4 * 50, 4 * 50));
        }
        let (calls, media): (Vec<_>, Vec<_>) =
            flows.iter().partition(|flow| flow.server.port() == 5060);
        assert_eq!((calls.len(), media.len()), (4, 4));
        for call in calls {
            let offered = messages(call, Side::Client)[0].clone();
            let taken = messages(call, Side::Server)[2].clone();
            let port = |line: &str| value(line, "m").split(' ').nth(1).unwrap().parse().unwrap();
            assert_eq!(port(&taken), 6_000);
            let ends = (SocketAddr::new(call.client.ip(), port(&offered)), call.server.ip());
            let of_call = |it: &&&Conversation| (it.client, it.server.ip()) == ends;
            let [media] = media.iter().filter(of_call).collect::<Vec<_>>()[..] else {
                panic!("no flow of {ends:?}")
            };
            for side in [Side::Client, Side::Server] {
                assert_eq!(packets(media, side, 0).len(), 5);
            }
        }
        // 50 packets at 20 ms have 49 gaps: 980 ms.
        let [client, _] = templates(&result);
        let took = client.times.duration.max_ns.unwrap() / 1_000_000;
        assert!((980..1_300).contains(&took), "{took}");
    }
}

#[test]
fn sip_call_fails_if_its_media_fail() {
    // No template listens at the media port of the answer.
    let steps = r#"receive_datagrams: 1
        send_datagram: "SIP/2.0 200 OK\r\nTo: <sip:x>;tag=1\r\n\r\nv=0\r\nm=audio 7777 RTP/AVP 0\r\n"
        receive_datagrams: 1
        idle: 5s
        receive_datagrams: 1"#;
    let text = plan("sip: {packets: 9}", 3);
    let (both, _) = text.split_once("    server:").unwrap();
    let steps = steps.lines().map(|line| format!("        - {}\n", line.trim()));
    let text = format!(
        "{both}  - name: others\n    transport: udp\n    server:\n      tx: s\n      port: 5060\n      \
         program:\n{}",
        steps.collect::<String>()
    );
    let result = run(&text, Duration::from_secs(1));
    let [calls, media] = &result.ports[0].templates[..] else { panic!("no media") };
    assert_eq!((media.flows["started"], media.flows["refused"]), (3, 3), "{:?}", media.flows);
    assert_eq!(calls.flows["program_failed"], 3, "{:?}", calls.flows);
    assert_eq!(calls.failures.len(), 1, "{:?}", calls.failures);
}

#[test]
fn sip_server_echoes_the_headers_of_each_request() {
    let steps = r#"send_datagram: "OPTIONS sip:x@10.0.1.1 SIP/2.0\r\nv: SIP/2.0/UDP a;branch=1\r\nVia: SIP/2.0/UDP b;branch=2\r\nFrom: <sip:a>;tag=ABC\r\nTo: <sip:x>\r\nCall-ID: 1@a\r\nCSeq: 9 OPTIONS\r\n\r\n"
        receive_datagrams: 1
        expect: {pattern: "^SIP/2.0 200 OK\r\nv: SIP/2.0/UDP a;branch=1\r\nVia: SIP/2.0/UDP b;branch=2\r\nFrom: <sip:a>;tag=ABC\r\nTo: <sip:x>;tag=\\w{8}\r\nCall-ID: 1@a\r\nCSeq: 9 OPTIONS\r\n"}
        send_datagram: "INVITE sip:bob@10.0.1.1 SIP/2.0\r\nVia: SIP/2.0/UDP 10.0.0.1:5060;branch=z9hG4bKxyz\r\nRecord-Route: <sip:p;lr>\r\nf: <sip:a>;tag=ABC\r\nt: <sip:bob@10.0.1.1>\r\ni: real-77\r\nCSeq: 314 INVITE\r\nContact: <sip:a@10.0.0.1>\r\nContent-Length: 0\r\n\r\n"
        receive_datagrams: 1
        expect: {pattern: "^SIP/2.0 100 Trying\r\nVia: SIP/2.0/UDP 10.0.0.1:5060;branch=z9hG4bKxyz\r\nf: <sip:a>;tag=ABC\r\nt: <sip:bob@10.0.1.1>;tag=\\w+\r\ni: real-77\r\nCSeq: 314 INVITE\r\n"}
        receive_datagrams: 1
        expect: {pattern: "^SIP/2.0 180 Ringing\r\n"}
        receive_datagrams: 1
        expect: {pattern: "^SIP/2.0 200 OK\r\n(?s:.*)\nRecord-Route: <sip:p;lr>\r\nContact: <sip:bob@10.0.1.1>\r\n"}
        extract: {to: {pattern: "\nt: ([^\r\n]*)"}}
        send_datagram: "\r\n\r\n"
        send_datagram: "ACK sip:bob@10.0.1.1 SIP/2.0\r\n\r\n"
        delay: 2s
        send_datagram: "INFO sip:bob@10.0.1.1 SIP/2.0\r\nVia: SIP/2.0/UDP a;branch=3\r\nFrom: <sip:a>;tag=ABC\r\nTo: <sip:bob>\r\nCall-ID: real-77\r\nCSeq: 315 INFO\r\n\r\n"
        receive_datagrams: 1
        expect: {pattern: "^SIP/2.0 405 "}
        send_datagram: "BYE sip:bob@10.0.1.1 SIP/2.0\r\nVia: SIP/2.0/UDP a;branch=4\r\nFrom: <sip:a>;tag=ABC\r\nTo: <sip:bob>;tag=mine\r\nCall-ID: real-77\r\nCSeq: 316 BYE\r\n\r\n"
        receive_datagrams: 1
        expect: {pattern: "^SIP/2.0 200 OK\r\n(?s:.*)To: <sip:bob>;tag=mine\r\nCall-ID: real-77\r\nCSeq: 316 BYE\r\n"}"#;
    let steps = format!("idle: 5s\n{steps}");
    let text = others("sip: {ring_time: 100ms}", 5060, "udp", &steps);
    // The OPTIONS request is a separate flow.
    assert_flows(&run(&text, Duration::from_secs(1)), 3, 6);
}

/// Returns the first five RTP packets of a side, each after a prefix of `before` bytes.
fn packets(conversation: &Conversation, side: Side, before: usize) -> Vec<Vec<u8>> {
    let of_side = conversation.turns.iter().filter(|turn| turn.side == side);
    let bytes = of_side.filter_map(|turn| match &turn.act {
        Action::Send(bytes) => Some(bytes.as_slice()),
        _ => None,
    });
    let bytes = bytes.collect::<Vec<_>>().concat();
    // The bytes before the media are text.
    let begin = bytes.windows(before + 2).position(|it| it[before..] == [0x80, 0]).unwrap();
    let media = bytes[begin..].chunks_exact(before + 172);
    media.take(5).map(|packet| packet[before..].to_vec()).collect()
}

#[test]
fn each_rtp_flow_has_its_own_source() {
    for (preset, side, before) in
        [("rtp: {packets: 5}", Side::Client, 0), ("rtsp: {packets: 5}", Side::Server, 4)]
    {
        let (result, flows) = captured(&plan(preset, 4), Duration::from_secs(1));
        assert_closed(&result, 4);
        let mut sources = Vec::new();
        for flow in &flows {
            let packets = packets(flow, side, before);
            for (number, packet) in packets.iter().enumerate() {
                let timestamp = 160 * number as u32;
                assert_eq!(packet[..2], [0x80, 0]);
                assert_eq!(packet[2..4], (number as u16).to_be_bytes());
                assert_eq!(packet[4..8], timestamp.to_be_bytes());
                assert_eq!(packet[8..12], packets[0][8..12]);
                assert!(packet[12..].iter().all(|byte| *byte == 0xff));
            }
            assert_eq!(packets.len(), 5);
            sources.push(packets[0][8..12].to_vec());
        }
        sources.sort();
        sources.dedup();
        assert_eq!(sources.len(), 4, "{preset}");
    }
}

#[test]
fn presets_do_not_wait_for_delayed_acknowledgements() {
    // A full segment, which is not acknowledged at once, and a short one.
    let post = "http: {method: POST, body: 1500, requests: 3}";
    let list = "http: {requests: 3, response: {body: 3000}}";
    let files = "ftp: {files: [a], list: [LIST], rounds: 3}";
    let tls = "ftp: {files: [a], rounds: 3}\n    tls: true";
    for (preset, name, most) in
        [(post, "http", 3), (list, "http", 3), (files, "ftp.retr", 12), (tls, "ftp.retr", 16)]
    {
        let result = run(&plan(preset, 3), Duration::from_secs(1));
        let (least, mean) = took(&result, name);
        assert!(least <= mean && mean <= most, "{preset}: {mean} ms");
    }
    // With Nagle's algorithm, both sides wait.
    let nagle = format!("{post}\n    tcp: {{no_delay: false}}");
    let (_, mean) = took(&run(&plan(&nagle, 3), Duration::from_secs(1)), "http");
    assert!(mean >= 40, "{mean} ms");
}

#[test]
fn interleaved_media_keep_their_timing() {
    let (result, flows) =
        captured(&plan("rtsp: {path: /, packets: 50}", 1), Duration::from_secs(1));
    assert_closed(&result, 1);
    let server = flows[0].turns.iter().filter(|turn| turn.side == Side::Server);
    let is_media = |act: &Action| matches!(act, Action::Send(bytes) if bytes.starts_with(b"$"));
    let gaps: Vec<_> = server.filter(|turn| is_media(&turn.act)).map(|turn| turn.gap).collect();
    let [client, _] = templates(&result);
    let duration_ms = client.times.duration.max_ns.unwrap() / 1_000_000;
    assert!((1_000..1_050).contains(&duration_ms), "{duration_ms} ms: {gaps:?}");
}

#[test]
fn http1_clients_count_responses_by_status_class() {
    let ask = |pipeline: u32, tls: bool| {
        format!(
            "ports: [{{name: c}}, {{name: s}}]\ntemplates:\n  - name: t\n    http: {{requests: 6, \
             pipeline: {pipeline}}}\n    tls: {tls}\n    client: {{tx: c, addresses: 10.0.0.1, servers: 10.0.1.1, \
             server_port: 80, load: {{rate: 100}}, limit: 3}}\n  - name: others\n    tls: {tls}\n    server:\n      tx: s\n      \
             port: 80\n      program:\n"
        )
    };
    let answer = |status: &str| {
        format!(
            "        - receive: {{message: http}}\n        - send: \"HTTP/1.1 {status} x\\r\\n\
             Content-Length: 4\\r\\n\\r\\n404 \"\n"
        )
    };
    let answers = ["200", "404", "500", "403", "304", "599"].map(answer).concat();
    let answers = answers.replace(
        "HTTP/1.1 304 x\\r\\nContent-Length: 4\\r\\n\\r\\n404 ",
        "HTTP/1.1 304 x\\r\\n\\r\\n",
    );
    for (pipeline, tls) in [(1, false), (3, false), (3, true)] {
        let result = run(&(ask(pipeline, tls) + &answers), Duration::from_secs(1));
        assert_closed(&result, 3);
        let [client, server] = templates(&result).map(|it| it.http1.as_ref().unwrap());
        let classes = ["1xx", "2xx", "3xx", "4xx", "5xx"].map(|it| client.responses[it] / 3);
        assert_eq!((client.requests, classes), (0, [0, 1, 1, 2, 2]), "{pipeline} {tls}");
        let sum: u64 = server.responses.values().sum();
        assert_eq!((server.requests, sum), (3 * 6, 0), "{pipeline} {tls}");
        let of_port = result.ports[0].connections.as_ref().unwrap().http1.as_ref().unwrap();
        assert_eq!(of_port.responses, client.responses, "{pipeline} {tls}");
        // Status classes do not change the program counters.
        assert!(result.ports[0].connections.as_ref().unwrap().counters.values().all(|it| *it == 0));
    }
    // Without parsed messages there is no HTTP/1.1 report, nor for HTTP/2, which programs see in
    // this form.
    for http in ["{requests: 6, response_bytes: 100}", "{requests: 6, version: 2}"] {
        let plan = ask(1, false).replace("{requests: 6, pipeline: 1}", http);
        let result = run(&(plan + &answers), Duration::from_secs(1));
        assert!(result.ports[0].connections.as_ref().unwrap().http1.is_none(), "{http}");
    }
}
