//! Connections that are open when a run ends, and servers that do not close.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use wirestorm_e2e::{can_run, run_command, start_command};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;

use super::{KilledOnDrop, emulate, host, plan};

/// Accepts connections at port 80. Prints `ready`, a line for each connection, and how each one
/// ends.
const TAKES: &str = r#"
import os, socket, threading
listener = socket.create_server(("198.51.100.2", 80), backlog=256)
def say(line):
    # One write for each line, so that threads do not interleave.
    os.write(1, (line + "\n").encode())
def wait(connection):
    try:
        say("closed" if connection.recv(1) == b"" else "data")
    except ConnectionResetError:
        say("reset")
say("ready")
while True:
    connection, _ = listener.accept()
    say("open")
    threading.Thread(target=wait, args=(connection,), daemon=True).start()
"#;

/// Answers each request at port 80 with 2 bytes and never closes, whatever the request asks for.
const KEEPS: &str = r#"
import socket, threading
listener = socket.create_server(("198.51.100.2", 80), backlog=256)
def serve(connection):
    while (asked := connection.recv(4096)):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
print("ready", flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"#;

/// Starts a Python script at the other end; returns its output after `ready`.
fn start(lab: &Lab, script: &str) -> (KilledOnDrop, impl Iterator<Item = String>) {
    host(&lab.b);
    let mut command = lab.b.command("python3");
    let mut child = command.args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert_eq!(lines.next().as_deref(), Some("ready"));
    (KilledOnDrop(child), lines)
}

const HELD: &str = "
ports: [{name: clients, addresses: 198.51.100.77/24}]
templates:
  - name: held
    client: {tx: clients, servers: 198.51.100.2, load: {concurrent: 100}, program: [connect, wait_for_close]}
";

#[test]
fn open_connections_are_reset_when_a_run_ends() {
    if !can_run(&["python3"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let (_python, mut lines) = start(&lab, TAKES);
    let plan = plan(&scratch, HELD);
    let port = format!("clients={}", lab.a.port());
    // End by duration and by Ctrl-C; twice from the same ports, then from others.
    for (seed, is_interrupted) in [("1", false), ("1", true), ("2", true)] {
        let mut command = emulate(&plan);
        command.args(["--port", &port, "--seed", seed, "--drain-timeout", "100ms"]);
        let (mut open, mut reset) = (0, 0);
        let outcome = if is_interrupted {
            let running = start_command(&mut command);
            while open < 100 {
                assert_eq!(lines.next().as_deref(), Some("open"));
                open += 1;
            }
            running.signal(rustix::process::Signal::INT);
            running.wait()
        } else {
            run_command(command.args(["--duration", "1s"]))
        };
        let outcome = outcome.expect(if is_interrupted { 130 } else { 0 });
        while reset < 100 {
            match lines.next().as_deref() {
                Some("open") => open += 1,
                Some("reset") => reset += 1,
                other => panic!("{other:?}: {outcome}"),
            }
        }
        assert_eq!(open, 100, "{outcome}");
        let flows = |name: &str| outcome.number(&format!("/ports/0/connections/flows/{name}"));
        assert_eq!((flows("reset_at_end"), flows("left_open")), (100, 0), "{outcome}");
        assert_eq!((flows("unfinished"), flows("failed")), (100, 0), "{outcome}");
    }
}

#[test]
fn client_closes_after_a_complete_response() {
    if !can_run(&["python3"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let (_python, _lines) = start(&lab, KEEPS);
    let port = format!("clients={}", lab.a.port());
    for fields in ["{path: /x}", "{path: /x, response_bytes: 40}"] {
        let text = format!(
            "ports: [{{name: clients, addresses: 198.51.100.77/24}}]\ntemplates:\n  - name: page\n    \
             http: {fields}\n    client: {{tx: clients, servers: 198.51.100.2, load: {{concurrent: 5}}, \
             limit: 50}}\n"
        );
        let plan = plan(&scratch, &text);
        let outcome = run_command(emulate(&plan).args(["--port", &port])).expect(0);
        assert_eq!(outcome.number("/ports/0/connections/flows/closed"), 50, "{fields}: {outcome}");
        assert_eq!(
            outcome.number("/ports/0/connections/tcp/rcvbyte"),
            50 * 40,
            "{fields}: {outcome}"
        );
    }
}
