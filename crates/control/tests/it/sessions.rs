//! STARTTLS and HTTP/2 in virtual time.

use wirestorm_control::result::{RunResult, TemplateReport};
use wirestorm_plan::emulation::EmulationPlan;

use super::simulation;

/// Simulates a plan. Returns the result and the clients' capture.
fn run(text: &str) -> (RunResult, Vec<u8>) {
    let plan = EmulationPlan::parse(text).unwrap_or_else(|errors| panic!("{errors}"));
    simulation::captured(&plan, simulation::options())
}

/// Returns the client and server reports of a template.
#[track_caller]
fn of<'a>(result: &'a RunResult, name: &str) -> [&'a TemplateReport; 2] {
    [0, 1].map(|port| {
        let mut templates = result.ports[port].templates.iter();
        templates.find(|it| it.name == name).unwrap_or_else(|| panic!("no {name}"))
    })
}

/// Asserts that all flows of a template closed and used TLS. Returns the numbers of resumed
/// sessions.
#[track_caller]
fn assert_protected(result: &RunResult, name: &str, flows: u64) -> [u64; 2] {
    of(result, name).map(|report| {
        let side = &report.side;
        assert_eq!(report.flows["closed"], flows, "{name} {side}: {:?}", report.flows);
        assert!(report.failures.is_empty(), "{name} {side}: {:?}", report.failures.first());
        let tls = report.tls.as_ref().unwrap();
        assert!(tls.failures.is_empty(), "{name} {side}: {:?}", tls.failures);
        assert_eq!(
            (tls.full_handshakes + tls.resumed_handshakes, tls.truncated),
            (flows, 0),
            "{name} {side}"
        );
        tls.resumed_handshakes
    })
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

const MAIL: &str = r#"
ports: [{name: c}, {name: s}]
templates:
  - name: mail
    smtp: {start_tls: true, messages: 2, message: "secret\r\n.\r\n\r\n", delay: 1ms}
    tls: {versions: [1.3], sni: mail.test}
    client: {tx: c, addresses: 10.0.0.1, servers: 10.0.1.1, load: {concurrent: 1}, limit: 4}
    server: {tx: s}
"#;

#[test]
fn smtp_uses_tls_after_starttls() {
    for version in ["1.2", "1.3"] {
        let (result, capture) = run(&MAIL.replace("1.3", version));
        assert_eq!(assert_protected(&result, "mail", 4), [3, 3], "{version}");
        for (text, is_expected) in [
            ("EHLO client.example.net\r\n", true),
            ("250 STARTTLS\r\n", true),
            ("220 Ready to start TLS\r\n", true),
            ("MAIL FROM", false),
            ("secret", false),
        ] {
            assert_eq!(has(&capture, text), is_expected, "{version} {text}");
        }
    }
}

const FILES: &str = r#"
ports: [{name: c}, {name: s}]
templates:
  - name: files
    ftp: {files: [{name: a, size: 70000}], upload: [{name: b, size: 50000}, {name: e, size: 0}], list: [NLST], rounds: 2}
    tls: {versions: [1.3]}
    client: {tx: c, addresses: 10.0.0.1, servers: 10.0.1.1, load: {concurrent: 1}, limit: 3}
    server: {tx: s}
"#;

#[test]
fn ftp_data_connections_resume_the_tls_session_of_the_control_connection() {
    for version in ["1.2", "1.3"] {
        let (result, capture) = run(&FILES.replace("1.3", version));
        // All connections but the first resume a session.
        assert_eq!(assert_protected(&result, "files", 3), [2, 2], "{version}");
        for name in ["files.nlst", "files.retr.a", "files.stor.b", "files.stor.e"] {
            assert_eq!(assert_protected(&result, name, 6), [6, 6], "{version} {name}");
        }
        assert!(has(&capture, "AUTH TLS\r\n234 ") || has(&capture, "AUTH TLS\r\n"));
        for text in ["USER", "RETR", "PROT"] {
            assert!(!has(&capture, text), "{version} {text}");
        }
    }
}

/// Builds a plan with an FTP client that sends commands over TLS and expects these replies. Its own
/// server gets no connections.
fn talk(lines: &[(&str, &str)]) -> String {
    let step = |(command, reply): &(&str, &str)| {
        format!(
            "        - send: \"{command}\\r\\n\"\n        - receive: {{message: reply}}\n        \
             - expect: {{pattern: \"^{reply}\"}}\n"
        )
    };
    let begins = step(&("AUTH TLS", "234"));
    let steps: String = lines.iter().map(step).collect();
    format!(
        "{FILES}
  - name: asking
    tls: {{versions: [1.3]}}
    client:
      tx: c
      addresses: 10.0.0.2
      servers: 10.0.1.1
      server_port: 21
      load: {{concurrent: 1}}
      limit: 1
      program:
        - receive: {{message: reply}}
        - expect: {{pattern: \"^220\"}}
{begins}        - start_tls
{steps}    server:
      tx: s
      port: 9999
      program: [{{receive: {{until: \"\\n\"}}}}, start_tls, wait_for_close]
"
    )
}

#[test]
fn ftp_protection_commands_get_the_replies_of_their_rfcs() {
    let (result, _) = run(&talk(&[
        ("PROT P", "503"),
        ("EPSV", "229"),
        ("RETR a", "521"),
        ("PBSZ 0", "200"),
        ("PROT C", "534"),
        ("PROT S", "536"),
        ("prot e", "536"),
        ("PROT X", "504"),
        ("CCC", "534"),
        ("RETR a", "521"),
        ("PROT P", "200"),
        ("AUTH TLS", "503"),
        ("QUIT", "221"),
    ]));
    let asking = result.ports[0].templates.iter().find(|it| it.name == "asking").unwrap();
    assert_eq!(asking.flows["closed"], 1, "{:?} {:?}", asking.flows, asking.failures.first());
}

#[test]
fn ftp_without_tls_works_beside_ftp_with_tls() {
    let clear = "
  - name: clear
    ftp: {files: [], upload: [{name: b, size: 300000}], delay: 30ms}
    client: {tx: c, addresses: 10.0.0.2, servers: 10.0.1.1, server_port: 2121, load: {concurrent: 1}, limit: 2}
    server: {tx: s, port: 2121}
";
    let (result, _) = run(&format!("{FILES}{}", clear.trim_start_matches('\n')));
    assert_protected(&result, "files.stor.b", 6);
    for report in of(&result, "clear.stor.b") {
        assert_eq!(report.flows["closed"], 2, "{}: {:?}", report.side, report.flows);
    }
    assert_eq!(of(&result, "clear.stor.b")[1].tcp["rcvbyte"], 2 * 300_000);
}

/// Pipelined requests, each with a separate response.
const PIPELINED: &str = r#"
ports: [{name: c}, {name: s}]
templates:
  - name: t
    http2: true
    client:
      tx: c
      addresses: 10.0.0.1
      servers: 10.0.1.1
      server_port: 80
      load: {concurrent: 1}
      limit: 1
      program:
        - transaction: {start: all}
        - repeat:
            times: 10
            steps:
              - send: "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"
              - receive: {message: http}
              - receive: {message: http}
        - transaction: {end: all}
    server:
      tx: s
      port: 80
      program:
        - blocking: false
        - repeat:
            steps: [{receive: {message: http}}, {send: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"}]
"#;

#[test]
fn short_http2_responses_do_not_wait_for_delayed_acknowledgements() {
    let took = |text: &str| {
        let (result, _) = run(text);
        let [client, _] = of(&result, "t");
        assert_eq!(client.flows["closed"], 1, "{:?}", client.flows);
        assert_eq!(client.http2.as_ref().unwrap().responses["2xx"], 20);

        client.transactions[0].mean_ns.unwrap() / 1_000_000
    };
    // Ten round trips of 2 ms. The SETTINGS of the first one are acknowledged late, but nothing
    // waits for that.
    let at_once = took(PIPELINED);
    assert!((20..40).contains(&at_once), "{at_once} ms");
    // Responses that are due at different times are sent separately.
    let both = "GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\nGET / HTTP/1.1";
    let apart = PIPELINED.replace(
        both,
        "GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n\"\n              - delay: 1ms\n              - send: \"GET / HTTP/1.1",
    );
    let apart = apart.replace(
        "program:\n        - transaction",
        "program:\n        - blocking: false\n        - transaction",
    );
    let one_by_one = took(&apart);
    assert!((30..60).contains(&one_by_one), "{one_by_one} ms");
    // With Nagle's algorithm, the second response waits each time.
    let nagle = apart.replace("tx: s\n", "tx: s\n      tcp: {no_delay: false}\n");
    let nagle = took(&nagle);
    assert!(nagle > 300, "{nagle} ms");
}
