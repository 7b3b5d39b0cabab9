//! Ready-made protocols, in virtual time.

use std::path::PathBuf;

use wirestorm_base::time::Duration;
use wirestorm_control::emulation::{
    EmulationResult, Part, SimulationOptions, TemplateReport, WatchOptions, simulate,
};
use wirestorm_plan::emulation::EmulationPlan;
use wirestorm_testkit::Scratch;

/// The result of a plan whose flows begin within this time.
fn run(text: &str, duration: Duration) -> EmulationResult {
    let plan = EmulationPlan::parse(text).unwrap_or_else(|errors| panic!("{errors}"));
    let scratch = Scratch::new().unwrap();
    let options = SimulationOptions {
        output: Some(scratch.file("out.pcap")),
        part: Part::Full,
        limit: None,
        duration,
        watch: WatchOptions::default(),
        linger: Duration::from_secs(2),
        round_trip: Duration::from_millis(2),
        flows_max: 1_000,
        seed: 1,
        folder: PathBuf::new(),
    };
    let (result, _) = simulate(&plan, &options).unwrap();
    result
}

/// A plan with a template of both sides, of which these fields say what they say.
fn plan(fields: &str, limit: u64) -> String {
    format!(
        "ports: [{{name: c}}, {{name: s}}]\ntemplates:\n  - name: t\n    {fields}\n    client: {{tx: \
         c, addresses: 10.0.0.1, servers: 10.0.1.1, load: {{rate: 100}}, limit: {limit}}}\n    \
         server: {{tx: s}}\n"
    )
}

fn templates(result: &EmulationResult) -> [&TemplateReport; 2] {
    [&result.ports[0].templates[0], &result.ports[1].templates[0]]
}

/// All flows of both sides closed.
#[track_caller]
fn assert_closed(result: &EmulationResult, flows: u64) {
    assert_flows(result, flows, flows);
}

/// The same, where servers have others than clients.
#[track_caller]
fn assert_flows(result: &EmulationResult, of_clients: u64, of_servers: u64) {
    for (report, flows) in templates(result).into_iter().zip([of_clients, of_servers]) {
        let found: Vec<_> = report.failures.iter().collect();
        assert_eq!(report.flows["closed"], flows, "{}: {:?}", report.side, report.flows);
        assert!(found.is_empty(), "{}: {found:?}", report.side);
    }
}

/// How long a transaction took, the least and on average, in milliseconds.
fn took(result: &EmulationResult, name: &str) -> (u64, u64) {
    let [client, _] = templates(result);
    let found = client.transactions.iter().find(|it| it.name == name);
    let found = found.unwrap_or_else(|| panic!("no {name}"));
    (found.min_ns / 1_000_000, found.mean_ns / 1_000_000)
}

#[test]
fn flows_of_datagrams_last_through_their_longest_waits() {
    let minute = Duration::from_secs(60);
    let result = run(&plan("sip: {ring: 2s, talk: 30s}", 5), minute);
    assert_closed(&result, 5);
    let [client, _] = templates(&result);
    assert!(client.times.whole.max_ns > 32_000_000_000, "{:?}", client.times.whole);
    assert!((2_000..2_010).contains(&took(&result, "sip.invite").0));

    let result = run(&plan("dns: {delay: 1200ms, queries: 2}", 5), minute);
    assert_closed(&result, 5);
    assert!((1_200..1_210).contains(&took(&result, "dns").0));

    let result =
        run(&plan("sip: {talk: {mean: 3s}, delay: {mean: 1s, deviation: 200ms}}", 50), minute);
    assert_closed(&result, 50);
    // Some talk longer than twice as long as most.
    let [client, _] = templates(&result);
    assert!(client.times.whole.max_ns > 8_000_000_000, "{:?}", client.times.whole);
}

/// A plan with a server for others, of which these fields say what it says, and others, who are a
/// program, a step a line.
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
fn a_server_of_names_answers_what_it_is_asked() {
    // Its number, flags, and one question: a.bc, of a type.
    let asks = |id: &str, flags: &str, kind: &str| {
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
        asks("beef", "0100", "01"),
        expects("beef", "8180", "0002", "01", &two),
        asks("0102", "0000", "01"),
        expects("0102", "8080", "0002", "01", &two),
        asks("0103", "0120", "1c"),
        expects("0103", "8180", "0000", "1c", ""),
    ];
    let text = others("dns: {name: other.test, answers: 2}", 53, "udp", &steps.join("\n"));
    assert_flows(&run(&text, Duration::from_secs(1)), 3, 9);
    // As many as the plan says are of one flow.
    let text = text.replace("answers: 2", "answers: 2, queries: 3");
    assert_flows(&run(&text, Duration::from_secs(1)), 3, 3);
}

#[test]
fn a_server_of_mail_takes_several_recipients_and_long_messages() {
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
    let result = run(&others("smtp: {delay: 1ms}", 25, "tcp", &steps), Duration::from_secs(1));
    assert_closed(&result, 3);
}

#[test]
fn a_server_of_media_answers_by_method_with_the_number_that_it_is_asked_with() {
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
        send: "$\0\0\u0004abcdTEARDOWN rtsp://tv.test/a RTSP/1.0\r\nCSeq: 48\r\n\r\n"
        receive: {until: "\r\n\r\n"}
        expect: {pattern: "^RTSP/1.0 200 OK\r\nCSeq: 48\r\n"}
        send: "hello\r\n\r\n"
        receive: {until: "\r\n\r\n"}
        expect: {pattern: "^RTSP/1.0 400 "}"#;
    let text = others("rtsp: {packets: 2, delay: 1ms}", 554, "tcp", steps);
    assert_closed(&run(&text, Duration::from_secs(1)), 3);
}
