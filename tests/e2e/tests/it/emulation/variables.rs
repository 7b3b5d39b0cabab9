//! Programs that send variables and check received data: between both ports, with a server of
//! tokens, and with curl.

use std::fs;
use std::path::Path;

use wirestorm_e2e::{can_run, run_command};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;

use super::{KilledOnDrop, both_ports, curl, emulate, host, plan, serve, stop};

fn example() -> String {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/login.yaml");
    fs::read_to_string(Path::new(file)).unwrap()
}

#[test]
fn login_example_runs() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let text = example().replace("load: {rate: 200}", "load: {rate: 200}\n      limit: 100");
    let outcome = both_ports(&mut emulate(&plan(&scratch, &text)), &lab).expect(0);
    for port in [0, 1] {
        assert_eq!(
            outcome.number(&format!("/ports/{port}/connections/flows/closed")),
            100,
            "{outcome}"
        );
        assert_eq!(
            outcome.number(&format!("/ports/{port}/connections/flows/failed")),
            0,
            "{outcome}"
        );
    }
    for (place, name) in ["login", "item"].into_iter().enumerate() {
        let transaction = format!("/ports/0/templates/0/transactions/{place}");
        assert_eq!(outcome.text(&format!("{transaction}/name")), name, "{outcome}");
        assert_eq!(outcome.number(&format!("{transaction}/time/count")), 100, "{outcome}");
    }
}

/// Issues a token for each user in chunks, and accepts requests with that token.
const SERVER: &str = r#"
import http.server, secrets

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    tokens = {}

    def log_message(self, *_):
        pass

    def do_GET(self):
        user = self.tokens.get(self.headers.get("Authorization", "").removeprefix("Bearer "))
        body = f"item {self.path.rsplit('/', 1)[1]} of {user}".encode()
        self.send_response(200 if user else 403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        form = self.rfile.read(int(self.headers["Content-Length"])).decode()
        token = secrets.token_urlsafe(24)
        self.tokens[token] = form.split("&")[0].removeprefix("user=")
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        # Chunk boundaries differ from token boundaries.
        body = '{"token": "%s"}' % token
        for part in (body[:15], body[15:], ""):
            self.wfile.write(f"{len(part):x}\r\n{part}\r\n".encode())

http.server.ThreadingHTTPServer(("198.51.100.2", 80), Handler).serve_forever()
"#;

#[test]
fn server_accepts_the_tokens_that_it_issued() {
    if !can_run(&["python3", "curl"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    lab.b.namespace().ip(&["link set lo up"]).unwrap();
    let script = scratch.file("server.py");
    fs::write(&script, SERVER).unwrap();
    let _server = KilledOnDrop(lab.b.command("python3").arg(&script).spawn().unwrap());
    assert_eq!(curl(&lab.b, "198.51.100.2", 1), b"item  of None");

    let text = example();
    let (client, _) = text.split_once("    server:\n").unwrap();
    let client = client
        .replace(
            "{name: clients, addresses: 10.0.0.1/16}",
            "{name: clients, addresses: 198.51.100.77/24}",
        )
        .replace("  - {name: servers, addresses: 10.0.1.1/16}\n", "")
        .replace("10.0.0.1-10.0.0.100", "198.51.100.77-198.51.100.96")
        .replace("servers: 10.0.1.1", "servers: 198.51.100.2")
        .replace("load: {rate: 200}", "load: {concurrent: 5}\n      limit: 40");
    let port = format!("clients={}", lab.a.port());
    let run = |text: &str, status| {
        let plan = plan(&scratch, text);
        run_command(emulate(&plan).args(["--port", &port])).expect(status)
    };
    let outcome = run(&client, 0);
    assert_eq!(outcome.number("/ports/0/connections/flows/closed"), 40, "{outcome}");

    // Requests with invalid tokens fail and are reported.
    let outcome = run(&client.replace("Bearer ${token}", "Bearer no${token}"), 3);
    assert_eq!(outcome.number("/ports/0/connections/flows/program_failed"), 40, "{outcome}");
    let failure = |name: &str| outcome.text(&format!("/ports/0/templates/0/failures/0/{name}"));
    assert_eq!(failure("step"), "program[11].expect", "{outcome}");
    assert!(failure("found").starts_with("HTTP/1.1 403 "), "{outcome}");
    assert!(failure("expected").starts_with("item 10"), "{outcome}");
}

#[test]
fn server_echoes_data_of_curl() {
    if !can_run(&["curl"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    let text = r#"
ports: [{name: servers, addresses: 198.51.100.77/24}]
templates:
  - name: hello
    server:
      tx: servers
      port: 80
      program:
        - repeat:
            steps:
              - receive: {message: http}
              - extract: {name: {pattern: "^GET /([a-z]*) HTTP/1.1\r\n"}}
              - set: {answer: {text: "hello ${name}, ${client}\n"}}
              - send: "HTTP/1.1 200 OK\r\nContent-Length: ${answer.length}\r\n\r\n${answer}"
"#;
    let server = serve(&lab, &scratch, text);
    for name in ["alice", "bob"] {
        let mut command = lab.b.command("curl");
        command.args(["--silent", "--show-error", "--max-time", "5"]);
        command.args(["--retry", "5", "--retry-delay", "1", "--retry-all-errors"]);
        let output = command.arg(format!("http://198.51.100.77/{name}")).output().unwrap();
        let expected = format!("hello {name}, 198.51.100.2\n");
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    }
    let outcome = stop(server);
    assert_eq!(outcome.number("/ports/0/connections/flows/closed"), 2, "{outcome}");
}
