//! Client presets with erroneous server replies.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{ChildStdout, Stdio};

use wirestorm_e2e::{Outcome, can_run, run_command};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{End, Lab};

use super::{KilledOnDrop, emulate, host, plan};

/// A server in Python.
struct PythonServer {
    _server: KilledOnDrop,
    output: BufReader<ChildStdout>,
}

impl PythonServer {
    /// Starts the server; returns after its first line of output.
    fn start(end: &End, script: &str, argument: &str) -> Self {
        let mut command = end.command("python3");
        command.args(["-c", script, argument]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut others = Self { _server: KilledOnDrop(child), output };
        assert_eq!(others.line(), "ready");
        others
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

/// Runs clients of the host at 198.51.100.2: templates with these fields and server ports, three
/// flows each.
fn clients(lab: &Lab, templates: &[(&str, u16)], status: i32) -> Outcome {
    let scratch = Scratch::new().unwrap();
    let mut text = "ports: [{name: clients, addresses: 198.51.100.77/24}]\ntemplates:\n".to_owned();
    for (number, (fields, port)) in templates.iter().enumerate() {
        text.push_str(&format!(
            "  - name: t{number}\n    {fields}\n    client: {{tx: clients, servers: 198.51.100.2, \
             server_port: {port}, load: {{concurrent: 1}}, limit: 3}}\n"
        ));
    }
    let port = format!("clients={}", lab.a.port());
    run_command(emulate(&plan(&scratch, &text)).args(["--port", &port])).expect(status)
}

/// Counters of the three flows of a template: failed flows, cause, and completed transactions.
fn flow_results(outcome: &Outcome, template: usize) -> (u64, String, u64) {
    let of = &outcome.result()["ports"][0]["templates"][template];
    let number = |pointer: &str| of.pointer(pointer).and_then(|it| it.as_u64()).unwrap_or(0);
    let failures = of["failures"].as_array().unwrap();
    let causes: Vec<_> = failures.iter().map(|it| it["cause"].as_str().unwrap()).collect();
    let failed = number("/flows/program_failed");
    assert_eq!(number("/flows/closed") + failed - number("/flows/reconnected"), 3, "{of}");
    let ended = of["transactions"].as_array().unwrap().iter();
    let ended = ended.map(|it| it["time"]["count"].as_u64().unwrap()).sum();
    (failed, causes.join(", "), ended)
}

/// Answers requests at each port round robin, and closes.
const ANSWERS: &str = r#"
import json, socketserver, sys, threading
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
def serve(port, answers):
    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            for answer in answers:
                while self.rfile.readline() not in (b"\r\n", b""):
                    pass
                self.wfile.write(answer.encode())
    server = Server(("198.51.100.2", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
for number, answers in enumerate(json.loads(sys.argv[1])):
    serve(8000 + number, answers)
print("ready", flush=True)
sys.stdin.read()
"#;

const CUT: &str = "closed before all data arrived";
const LAST: &str = "the server closes the connection before the last request";

#[test]
fn incomplete_responses_are_failures() {
    if !can_run(&["python3"]) {
        return;
    }
    let page = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let last = "HTTP/1.1 200 OK\r\nconnection: x, Close\r\nContent-Length: 2\r\n\r\nok";
    let old = "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let to_head = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
    // Request, response, and results of three connections: failed flows and cause, completed
    // transactions, 2xx responses, and missing ones.
    type Case<'a> = (&'a str, &'a [&'a str], (u64, &'a str, u64), u64, u64);
    let cases: &[Case<'_>] = &[
        ("", &["HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345"], (3, CUT, 0), 0, 3),
        (
            "",
            &["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n"],
            (3, CUT, 0),
            0,
            3,
        ),
        ("", &["HTTP/1.1 200 OK\r\n\r\nup to the end"], (0, "", 3), 3, 0),
        ("", &[""], (3, CUT, 0), 0, 3),
        ("requests: 3", &[page, ""], (3, CUT, 3), 3, 6),
        ("requests: 3, reconnect: false", &[last], (3, LAST, 3), 3, 6),
        ("requests: 2, reconnect: false", &[old], (3, LAST, 3), 3, 3),
        // One connection for each request.
        ("requests: 3", &[last], (0, "", 9), 9, 0),
        ("requests: 2", &[page, last], (0, "", 6), 6, 0),
        ("response_bytes: 50", &[page], (3, CUT, 0), 0, 0),
        ("response_bytes: 40", &[page], (0, "", 3), 0, 0),
        ("method: HEAD, requests: 2", &[to_head, to_head], (0, "", 6), 6, 0),
        (
            "requests: 4",
            &[
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
                "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
                "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno",
                page,
            ],
            (0, "", 12),
            6,
            0,
        ),
    ];
    // Requests after the server's close are reset: there is no cause, but missing responses are
    // counted.
    let hung_up: &[&str] = &[page];
    let lab = Lab::new().unwrap();
    host(&lab.b);
    let answers: Vec<_> = cases.iter().map(|case| case.1).chain([hung_up]).collect();
    let answers = serde_json::to_string(&answers).unwrap();
    let _others = PythonServer::start(&lab.b, ANSWERS, &answers);
    let fields: Vec<_> = cases.iter().map(|case| format!("http: {{{}}}", case.0)).collect();
    let fields = fields.iter().map(String::as_str).chain(["http: {requests: 3, reconnect: false}"]);
    let templates: Vec<_> = fields.zip(8000..).collect();
    let outcome = clients(&lab, &templates, 3);
    for (number, (request, _, expected, good, missing)) in cases.iter().enumerate() {
        let (failed, causes, ended) = flow_results(&outcome, number);
        assert_eq!((failed, causes.as_str(), ended), *expected, "{number} {request}: {outcome}");
        if !request.starts_with("response_bytes") {
            let http = |name: &str| format!("/ports/0/templates/{number}/http1/{name}");
            assert_eq!(outcome.number(&http("responses/2xx")), *good, "{number}: {outcome}");
            assert_eq!(outcome.number(&http("missing")), *missing, "{number}: {outcome}");
        }
    }
    let hung_up =
        |name: &str| outcome.number(&format!("/ports/0/templates/{}/{name}", cases.len()));
    let failed = ["reset", "reset_after_close", "program_failed"];
    let failed: u64 = failed.iter().map(|name| hung_up(&format!("flows/{name}"))).sum();
    assert_eq!((failed, hung_up("http1/missing")), (3, 6), "{outcome}");
}

#[test]
fn clients_reconnect_after_nginx_closes() {
    if !can_run(&["nginx"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    fs::write(scratch.file("index.html"), vec![b'x'; 20_000]).unwrap();
    let folder = scratch.path().display();
    let configuration = format!(
        "daemon off; user root; pid {folder}/pid; error_log {folder}/errors; events {{}}\n\
         http {{ access_log off; client_body_temp_path {folder}; proxy_temp_path {folder}; \
         fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};\n\
         server {{ listen 80; root {folder}; location /none {{ return 204; }} }}\n\
         server {{ listen 81; root {folder}; keepalive_requests 2; }}\n\
         server {{ listen 82; root {folder}; keepalive_timeout 1s; }} }}"
    );
    let file = scratch.file("nginx.conf");
    fs::write(&file, configuration).unwrap();
    let _nginx = KilledOnDrop(lab.b.command("nginx").arg("-c").arg(&file).spawn().unwrap());
    super::curl(&lab.b, "198.51.100.2", 1);
    let templates = [
        ("http: {requests: 6, reconnect: false}", 81),
        ("http: {method: HEAD, requests: 6, pipeline: 3}", 80),
        ("http: {path: /none, requests: 6, pipeline: 3}", 80),
        ("http: {method: HEAD}", 80),
        ("http: {requests: 6}", 81),
        // nginx closes during the client's think time.
        ("http: {requests: 3, think_time: 2s}", 82),
    ];
    let outcome = clients(&lab, &templates, 3);
    let expected = [
        ((3, LAST, 6), 6),
        ((0, "", 6), 18),
        ((0, "", 6), 18),
        ((0, "", 3), 3),
        ((0, "", 18), 18),
        ((0, "", 9), 9),
    ];
    for (number, (expected, answered)) in expected.into_iter().enumerate() {
        let (failed, causes, ended) = flow_results(&outcome, number);
        assert_eq!((failed, causes.as_str(), ended), expected, "{number}: {outcome}");
        let responses = format!("/ports/0/templates/{number}/http1/responses/2xx");
        assert_eq!(outcome.number(&responses), answered, "{number}: {outcome}");
    }
    assert_eq!(outcome.number("/ports/0/connections/http1/missing"), 3 * 4, "{outcome}");
    // Three flows each: two more connections for 6 requests, and two for those with think time.
    let reconnected = outcome.number("/ports/0/connections/flows/reconnected");
    assert_eq!(reconnected, 3 * 2 + 3 * 2, "{outcome}");
}

/// SMTP server that rejects another command at each port, and prints the commands of each
/// connection.
const MAIL: &str = r#"
import json, socketserver, sys, threading
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
def serve(port, refused, reply):
    class Handler(socketserver.StreamRequestHandler):
        def answer(self, word, usual):
            text = reply if word == refused else usual
            self.wfile.write(text.encode() + b"\r\n")
            return text == usual
        def handle(self):
            self.answer("greeting", "220-good\r\n220 morning")
            received = []
            for line in self.rfile:
                word = line.split()[0].decode()
                received.append(word)
                if word == "QUIT":
                    self.answer(word, "221 bye")
                    break
                if word != "DATA":
                    self.answer(word, "250-one\r\n250-550 two\r\n250 three")
                elif self.answer(word, "354 go on"):
                    while self.rfile.readline() not in (b".\r\n", b""):
                        pass
                    self.answer("message", "250 taken")
            sys.stdout.write(f"{port} {' '.join(received)}\n")
            sys.stdout.flush()
    server = Server(("198.51.100.2", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
for number, (refused, reply) in enumerate(json.loads(sys.argv[1])):
    serve(2500 + number, refused, reply)
print("ready", flush=True)
sys.stdin.read()
"#;

#[test]
fn rejected_mail_is_a_failure_and_clients_quit() {
    if !can_run(&["python3"]) {
        return;
    }
    let cases = [
        ("", "", "EHLO MAIL RCPT DATA MAIL RCPT DATA QUIT"),
        ("greeting", "554 none here", "QUIT"),
        ("EHLO", "421-too\r\n421 many", "EHLO QUIT"),
        ("MAIL", "451 later", "EHLO MAIL QUIT"),
        ("RCPT", "550-no such\r\n550 reader", "EHLO MAIL RCPT QUIT"),
        ("DATA", "250 what?", "EHLO MAIL RCPT DATA QUIT"),
        ("message", "552 too long", "EHLO MAIL RCPT DATA QUIT"),
        ("QUIT", "500 stay", "EHLO MAIL RCPT DATA MAIL RCPT DATA QUIT"),
    ];
    let lab = Lab::new().unwrap();
    host(&lab.b);
    let refused: Vec<_> = cases.iter().map(|case| (case.0, case.1)).collect();
    let refused = serde_json::to_string(&refused).unwrap();
    let mut others = PythonServer::start(&lab.b, MAIL, &refused);
    let templates: Vec<_> =
        (2500..).map(|port| ("smtp: {messages: 2}", port)).take(cases.len()).collect();
    let outcome = clients(&lab, &templates, 3);
    let mut lines: Vec<_> = (0..3 * cases.len()).map(|_| others.line()).collect();
    lines.sort();
    for (number, (refused, reply, expected)) in cases.iter().enumerate() {
        let (failed, causes, ended) = flow_results(&outcome, number);
        let is_whole = ["", "QUIT"].contains(refused);
        let failures = if refused.is_empty() { (0, "") } else { (3, "not what was expected") };
        assert_eq!((failed, causes.as_str()), failures, "{refused}: {outcome}");
        assert_eq!(ended, if is_whole { 6 } else { 0 }, "{refused}: {outcome}");
        if !refused.is_empty() {
            let found = outcome.text(&format!("/ports/0/templates/{number}/failures/0/found"));
            assert!(found.starts_with(&reply[..4]), "{refused}: {found}");
        }
        for line in &lines[3 * number..][..3] {
            assert_eq!(*line, format!("{} {expected}", 2500 + number), "{refused}");
        }
    }
}

/// RTSP server that plays to clients with its session ID; the second port has no media.
const MEDIA: &str = r#"
import re, socketserver, sys, threading
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
def serve(port, status):
    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            received = []
            while True:
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    line = self.rfile.readline()
                    if not line:
                        sys.stdout.write(f"{port} {' '.join(received)}\n")
                        sys.stdout.flush()
                        return
                    head += line
                method = head.split()[0].decode()
                received.append(method)
                number = re.search(rb"CSeq: (\d+)", head)[1].decode()
                answer, fields, body = "200 OK", "", ""
                if method == "DESCRIBE":
                    answer, body = status, "v=0\r\n\r\nRTSP/1.0 999 no\r\n\r\n"
                    fields = f"Content-Length: {len(body)}\r\n"
                elif method == "SETUP":
                    fields = "session:  Ab-9.z;timeout=60\r\n"
                elif method in ("PLAY", "TEARDOWN"):
                    if b"\r\nSession: Ab-9.z\r\n" not in head:
                        answer = "454 Session Not Found"
                if method == "TEARDOWN":
                    self.wfile.write(b"$\0\0\x04\r\n\r\n" * 9)
                self.wfile.write(f"RTSP/1.0 {answer}\r\nCSeq: {number}\r\n{fields}\r\n{body}".encode())
    server = Server(("198.51.100.2", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
serve(8554, "200 OK")
serve(8555, "404 Not Found")
print("ready", flush=True)
sys.stdin.read()
"#;

#[test]
fn rtsp_clients_use_the_session_id_of_the_server() {
    if !can_run(&["python3"]) {
        return;
    }
    let lab = Lab::new().unwrap();
    host(&lab.b);
    let mut others = PythonServer::start(&lab.b, MEDIA, "");
    let outcome = clients(&lab, &[("rtsp: {}", 8554), ("rtsp: {}", 8555)], 3);
    assert_eq!(flow_results(&outcome, 0), (0, String::new(), 15), "{outcome}");
    let expected = (3, "not what was expected".to_owned(), 3);
    assert_eq!(flow_results(&outcome, 1), expected, "{outcome}");
    let found = outcome.text("/ports/0/templates/1/failures/0/found");
    assert!(found.starts_with("RTSP/1.0 404 Not Found"), "{found}");
    let mut lines: Vec<_> = (0..6).map(|_| others.line()).collect();
    lines.sort();
    let methods = "8554 OPTIONS DESCRIBE SETUP PLAY TEARDOWN";
    assert_eq!(lines, [[methods; 3], ["8555 OPTIONS DESCRIBE"; 3]].concat());
}

/// DNS server that first sends a reply with another ID, a query, and an empty datagram.
const NAMES: &str = r#"
import socket
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("198.51.100.2", 5300))
print("ready", flush=True)
while True:
    query, asker = server.recvfrom(512)
    answer = b"\x81\x80" + query[4:]
    wrong = bytes([query[0], query[1] ^ 1])
    for datagram in (wrong + b"\x81\x83" + query[4:], query, b"", query[:2] + answer):
        server.sendto(datagram, asker)
"#;

#[test]
fn dns_replies_must_match_the_query_and_errors_are_failures() {
    if !can_run(&["python3", "dnsmasq"]) {
        return;
    }
    let lab = Lab::new().unwrap();
    host(&lab.b);
    let _others = PythonServer::start(&lab.b, NAMES, "");
    let mut dnsmasq = lab.b.command("dnsmasq");
    dnsmasq.args(["--keep-in-foreground", "--no-resolv", "--no-hosts", "--conf-file=/dev/null"]);
    dnsmasq.args(["--user=root", "--bind-interfaces", "--listen-address=198.51.100.2"]);
    dnsmasq.args(["--address=/known.test/192.0.2.7", "--local=/gone.test/", "--pid-file="]);
    let _dnsmasq =
        KilledOnDrop(dnsmasq.args(["--log-facility=-", "--no-dhcp-interface=*"]).spawn().unwrap());
    // Wait until its port is in use.
    let exists = || {
        let output = lab.b.command("ss").args(["-Huln", "sport = 53"]).output().unwrap();
        !output.stdout.is_empty()
    };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(9);
    while !exists() {
        assert!(std::time::Instant::now() < deadline, "dnsmasq is not there");
    }
    let templates = [
        ("dns: {queries: 3}", 5300),
        ("dns: {name: a.known.test, queries: 2}", 53),
        ("dns: {name: a.gone.test}", 53),
        ("dns: {name: a.unknown.test, queries: 2}", 53),
    ];
    let outcome = clients(&lab, &templates, 3);
    for (number, expected) in
        [(0, "", 9), (0, "", 6), (3, "answered NXDOMAIN (3)", 0), (3, "answered REFUSED (5)", 0)]
            .into_iter()
            .enumerate()
    {
        let (failed, causes, ended) = flow_results(&outcome, number);
        assert_eq!((failed, causes.as_str(), ended), expected, "{number}: {outcome}");
    }
}

/// SIP server that rejects calls after some time with different codes, and checks the ACK.
const REFUSES: &str = r#"
import re, socket
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("198.51.100.2", 5060))
print("ready", flush=True)
def line(name, message):
    return re.search(rf"(?m)^{name}: (.*)\r$", message)[1]
for status in ("302 Moved", "486 Busy Here", "603 Decline"):
    invite, caller = server.recvfrom(4096)
    invite = invite.decode()
    assert invite.startswith("INVITE "), invite
    same = "".join(f"{name}: {line(name, invite)}\r\n" for name in ("Via", "From", "Call-ID", "CSeq"))
    for answer in ("100 Trying", "180 Ringing", status):
        tag = "" if answer == "100 Trying" else ";tag=xyz"
        text = f"SIP/2.0 {answer}\r\n{same}To: {line('To', invite)}{tag}\r\nContent-Length: 0\r\n\r\n"
        server.sendto(text.encode(), caller)
    ack = server.recvfrom(4096)[0].decode()
    is_so = ack.split()[:2] == ["ACK", invite.split()[1]]
    is_so &= all(line(name, ack) == line(name, invite) for name in ("Via", "From", "Call-ID"))
    is_so &= line("CSeq", ack) == "1 ACK" and line("To", ack) == line("To", invite) + ";tag=xyz"
    print(status if is_so else ack.encode(), flush=True)
"#;

#[test]
fn rejected_sip_calls_are_acknowledged_and_fail() {
    if !can_run(&["python3"]) {
        return;
    }
    let lab = Lab::new().unwrap();
    host(&lab.b);
    let mut others = PythonServer::start(&lab.b, REFUSES, "");
    let outcome = clients(&lab, &[("sip: {}", 5060)], 3);
    let expected = (3, "not what was expected".to_owned(), 0);
    assert_eq!(flow_results(&outcome, 0), expected, "{outcome}");
    let lines = [others.line(), others.line(), others.line()];
    assert_eq!(lines, ["302 Moved", "486 Busy Here", "603 Decline"]);
}
