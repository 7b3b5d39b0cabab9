//! Protocol presets as servers, with independent clients.

use std::path::Path;
use std::process::Command;

use wirestorm_e2e::can_run;
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{End, Lab};

use super::{curl, host, serve, stop, stop_with_failures};

/// Builds a shell command at an end whose resolver uses our server, in its own mount namespace.
fn resolving(end: &End, scratch: &Scratch, words: &str) -> Command {
    let file = scratch.file("resolv.conf");
    std::fs::write(&file, "nameserver 198.51.100.77\noptions timeout:3 attempts:3\n").unwrap();
    let mut command = end.command("sh");
    let script = format!("mount --bind {} /etc/resolv.conf && {words}", file.display());
    command.args(["-c", &script]);
    command
}

/// Output of a command that must succeed.
#[track_caller]
fn messages_of(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn linux_resolver_accepts_answers_of_a_dns_server() {
    const BOTH: &str = "python3 -c 'import socket\nfor it in socket.getaddrinfo(\"a.test\", 80): \
                        print(it[4][0])'";
    if !can_run(&["getent", "python3"]) || !Path::new("/etc/resolv.conf").exists() {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    for (fields, words, expected) in [
        ("answers: 3", "getent ahostsv4 www.example.net", "192.0.2.1 192.0.2.2 192.0.2.3"),
        ("type: AAAA", "getent hosts some.other.test", "2001:db8::1"),
        // A and AAAA queries at the same time.
        ("", BOTH, "192.0.2.1"),
    ] {
        let text = format!(
            "ports: [{{name: servers, addresses: 198.51.100.77/24}}]\ntemplates: [{{name: names, \
             dns: {{{fields}}}, server: {{tx: servers}}}}]"
        );
        let server = serve(&lab, &scratch, &text);
        let answer = messages_of(&mut resolving(&lab.b, &scratch, words));
        let mut addresses: Vec<_> =
            answer.lines().filter_map(|line| line.split_whitespace().next()).collect();
        addresses.sort_unstable();
        addresses.dedup();
        assert_eq!(addresses.join(" "), expected, "{answer}");
        let outcome = stop(server);
        assert_eq!(outcome.number("/ports/0/connections/flows/failed"), 0, "{outcome}");
    }
}

/// Python program that sends many queries from one port at the same time, and prints the answers.
/// The kernel queues them until the server is resolved, which then receives them in a burst.
const ASKS_MANY: &str = r#"
import socket, struct
asker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asker.connect(("198.51.100.77", 53))
asker.settimeout(9)
for number in range(30):
    header = struct.pack("!6H", number, 0x0100, 1, 0, 0, 0)
    asker.send(header + b"\1a\4test\0" + struct.pack("!2H", 1, 1))
answers = [asker.recv(512) for _ in range(30)]
print(sorted({struct.unpack("!H", answer[:2])[0] for answer in answers}) == list(range(30)))
"#;

#[test]
fn burst_of_dns_queries_from_one_port_is_answered() {
    if !can_run(&["python3"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    let text = "ports: [{name: servers, addresses: 198.51.100.77/24}]\ntemplates: [{name: names, \
                dns: {queries: 4}, server: {tx: servers}}]";
    let server = serve(&lab, &scratch, text);
    assert_eq!(messages_of(lab.b.command("python3").args(["-c", ASKS_MANY])).trim(), "True");
    let outcome = stop(server);
    assert_eq!(outcome.number("/ports/0/connections/udp/sndpkt"), 30, "{outcome}");
    assert_eq!(outcome.number("/ports/0/connections/udp/accepts"), 8, "{outcome}");
}

/// Python program that submits a message of N bytes for two recipients.
const SUBMITS: &str = r#"
import smtplib, sys
letter = "Subject: Hello\r\n\r\n" + ("." + "x" * 70 + "\r\n") * (int(sys.argv[1]) // 73)
with smtplib.SMTP("198.51.100.77", 25, timeout=9) as server:
    print(server.sendmail("a@example.net", ["b@example.net", "c@example.net"], letter))
"#;

#[test]
fn smtp_clients_submit_long_messages_for_several_recipients() {
    if !can_run(&["curl", "python3"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    let text = "ports: [{name: servers, addresses: 198.51.100.77/24}]\ntemplates: [{name: mail, \
                smtp: {}, server: {tx: servers}}]";
    let server = serve(&lab, &scratch, text);
    let message = scratch.file("message");
    std::fs::write(&message, "Hello, reader.\r\n".repeat(28_000)).unwrap();
    let mut curl = lab.b.command("curl");
    curl.args(["--silent", "--show-error", "--max-time", "9", "--url", "smtp://198.51.100.77"]);
    curl.args(["--mail-from", "a@example.net", "--mail-rcpt", "b@example.net"]);
    curl.args(["--mail-rcpt", "c@example.net", "--upload-file"]);
    // The server may not be ready yet.
    curl.arg(&message).args(["--retry", "5", "--retry-delay", "1", "--retry-all-errors"]);
    messages_of(&mut curl);
    let mut submits = lab.b.command("python3");
    assert_eq!(messages_of(submits.args(["-c", SUBMITS, "450000"])), "{}\n", "nobody was refused");
    let outcome = stop(server);
    assert_eq!(outcome.number("/ports/0/connections/tcp/accepts"), 2, "{outcome}");
    assert_eq!(outcome.number("/ports/0/connections/flows/failed"), 0, "{outcome}");
    assert!(outcome.number("/ports/0/connections/tcp/rcvbyte") > 890_000, "{outcome}");
}

/// Python program of a media player; its methods have their own numbers.
const PLAYS: &str = r#"
import socket
server = socket.create_connection(("198.51.100.77", 554), 9)
def ask(method, number, more=""):
    url = "rtsp://198.51.100.77/live"
    server.sendall(f"{method} {url} RTSP/1.0\r\nCSeq: {number}\r\n{more}\r\n".encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += server.recv(1)
    assert answer.startswith(b"RTSP/1.0 200 OK\r\nCSeq: %d\r\n" % number), answer
    return answer
def take(count):
    taken = b""
    while len(taken) < count:
        taken += server.recv(count - len(taken))
    return taken
answer = ask("DESCRIBE", 312)
assert b"Content-Base: rtsp://198.51.100.77/live/" in answer, answer
take(101)
ask("SETUP", 313, "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n")
ask("PLAY", 314)
media = take(5 * 176)
assert media[::176] == b"$$$$$", media
# Then on the other channel: a report, and BYE of the source.
bye = take(20)
assert bye[:8] == b"$\x01\x00\x10\x80\xc9\x00\x01" and bye[12:16] == b"\x81\xcb\x00\x01", bye
assert bye[8:12] == bye[16:] == media[12:16], bye
ask("TEARDOWN", 315)
print("done")
"#;

#[test]
fn rtsp_clients_play_from_a_media_server() {
    if !can_run(&["curl", "python3"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    let text = "ports: [{name: servers, addresses: 198.51.100.77/24}]\ntemplates: [{name: media, \
                rtsp: {packets: 5}, server: {tx: servers}}]";
    let server = serve(&lab, &scratch, text);
    let mut curl = lab.b.command("curl");
    curl.args(["--silent", "--show-error", "--max-time", "9", "--include"]);
    // The server may not be ready yet.
    curl.args(["--retry", "5", "--retry-delay", "1", "--retry-all-errors"]);
    let answer = messages_of(curl.arg("rtsp://198.51.100.77/live"));
    assert!(answer.contains("Public: OPTIONS, DESCRIBE"), "{answer}");
    assert_eq!(messages_of(lab.b.command("python3").args(["-c", PLAYS])), "done\n");
    let outcome = stop(server);
    assert_eq!(outcome.number("/ports/0/connections/flows/failed"), 0, "{outcome}");
}

/// Python program that pipelines requests with bodies, split at unusual places, the last one with
/// `Connection: close`. It prints the number of responses.
const PIPELINES: &str = r#"
import socket
server = socket.create_connection(("198.51.100.77", 80), 9)
def ask(size, more=""):
    body = b"GET / HTTP/1.1\r\n\r\n" * (size // 18 + 1)
    head = f"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n{more}\r\n"
    return head.encode() + body[:size]
said = b"".join(ask(100 * number) for number in range(20)) + ask(50000, "Connection: close\r\n")
for start in range(0, len(said), 777):
    server.sendall(said[start:start + 777])
received = b""
while more := server.recv(65536):
    received += more
print(received.count(b"HTTP/1.1 200 OK\r\n"), len(received) // 21 > 5000)
"#;

#[test]
fn each_http_request_gets_one_response() {
    if !can_run(&["curl", "python3"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    let text = "ports: [{name: servers, addresses: 198.51.100.77/24}]\ntemplates: [{name: pages, \
                http: {requests: 2, response: {body: {size: 5000, fill: x}}}, server: {tx: servers}}]";
    let server = serve(&lab, &scratch, text);
    assert_eq!(curl(&lab.b, "198.51.100.77", 1).len(), 5_000);
    let upload = scratch.file("upload");
    std::fs::write(&upload, vec![b'x'; 3_000_000]).unwrap();
    let upload = format!("@{}", upload.display());
    let request = |arguments: &[&str]| {
        let mut command = lab.b.command("curl");
        command.args(["--silent", "--show-error", "--max-time", "9", "--header", "Expect:"]);
        messages_of(command.args(arguments).args(["http://198.51.100.77/"; 3]))
    };
    assert_eq!(request(&["--data-binary", &upload]).len(), 3 * 5_000);
    let chunked = ["--data-binary", &upload, "--header", "Transfer-Encoding: chunked"];
    assert_eq!(request(&chunked).len(), 3 * 5_000);
    let heads = request(&["--head"]);
    assert_eq!(heads.matches("Content-Length: 5000\r\n\r\n").count(), 3, "{heads}");
    assert_eq!(messages_of(lab.b.command("python3").args(["-c", PIPELINES])), "21 True\n");
    let outcome = stop(server);
    assert_eq!(outcome.number("/ports/0/connections/tcp/accepts"), 5, "{outcome}");
    assert_eq!(outcome.number("/ports/0/connections/http1/requests"), 1 + 9 + 21, "{outcome}");
    // The server closes after the last one.
    let flows = |name: &str| outcome.number(&format!("/ports/0/connections/flows/{name}"));
    assert_eq!((flows("closed") + flows("time_wait"), flows("failed")), (5, 0), "{outcome}");
}

#[test]
fn pipelined_requests_of_wrk_are_answered() {
    if !can_run(&["wrk", "curl"]) {
        return;
    }
    const TEN: &str = "init = function()\n  local one = wrk.format('POST', '/', nil, \
                       string.rep('x', 2500))\n  ten = string.rep(one, 10)\nend\nrequest = \
                       function() return ten end\n";
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    let text = "ports: [{name: servers, addresses: 198.51.100.77/24}]\ntemplates: [{name: pages, \
                http: {requests: 2, response: {body: 300}}, server: {tx: servers}}]";
    let server = serve(&lab, &scratch, text);
    assert_eq!(curl(&lab.b, "198.51.100.77", 1).len(), 300);
    let script = scratch.file("ten.lua");
    std::fs::write(&script, TEN).unwrap();
    let mut wrk = lab.b.command("wrk");
    wrk.args(["-t1", "-c4", "-d1s", "-s"]).arg(&script).arg("http://198.51.100.77/");
    let messages = messages_of(&mut wrk);
    assert!(!messages.contains("Socket errors") && !messages.contains("Non-2xx"), "{messages}");
    let words: Vec<_> = messages.split_whitespace().collect();
    let place = words.iter().position(|word| *word == "requests").unwrap();
    let requests: u64 = words[place - 1].parse().unwrap();
    // At its end wrk resets its connections.
    let outcome = stop_with_failures(server);
    let counted = outcome.number("/ports/0/connections/http1/requests");
    assert!(requests > 100 && counted >= requests, "{requests} of {counted}: {messages}");
    assert_eq!(outcome.number("/ports/0/connections/flows/program_failed"), 0, "{outcome}");
}
