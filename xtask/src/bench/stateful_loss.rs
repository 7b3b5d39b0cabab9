//! Benchmark of one TCP flow over a link with loss: Wirestorm and Linux.
//!
//! Both kinds of hosts use the same emulated link (`wirestorm impair`) round robin. Each round has
//! its own seed, so that both lose the same frames in each direction.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{End, Lab};

use super::Settings;
use super::contender::{number, output};
use super::figures::{Figures, Row, Target};
use crate::Fallible;

/// Loss and delay in each direction: a round trip of 10 ms.
const LOSS: &str = "--delay 5ms --loss 1%";

/// The same with a limited rate, which BBR fills despite the loss.
const LOSS_AND_RATE: &str = "--delay 5ms --loss 1% --rate 100M-l2 --queue 250kB";

/// Factor for the duration of a run. With ten segments in flight and 1 % loss, a few seconds vary
/// too much.
const LONGER: u32 = 5;

/// Plan of the sender; it has more data than a run can send.
const PLAN: &str = r#"
ports: [{name: clients, addresses: 198.51.100.1/24}, {name: servers, addresses: 198.51.100.2/24}]
templates:
  - name: bulk
    client:
      tx: clients
      servers: 198.51.100.2
      load: {concurrent: 1}
      limit: 1
      program: [{blocking: false}, {repeat: {steps: [{send: {size: 50000000}}]}}]
    server:
      tx: servers
      port: 80
      program: [{repeat: {steps: [{receive: 1000000}]}}]
    tcp: {congestion: CONGESTION, receive_buffer: 4000000, delayed_ack: 40ms}
"#;

/// Python program that receives for N seconds through Linux's TCP and prints the number of bytes.
const LINUX_RECEIVER: &str = "
import socket, sys, time
listener = socket.create_server(('198.51.100.2', 80))
listener.settimeout(20)
peer, _ = listener.accept()
end, total = time.monotonic() + float(sys.argv[1]), 0
while (left := end - time.monotonic()) > 0:
    peer.settimeout(left)
    try:
        total += len(peer.recv(1 << 16))
    except TimeoutError:
        break
print(total)
";

/// Python program that sends for longer, with a selected congestion control.
const LINUX_SENDER: &str = "
import socket, sys, time
for _ in range(100):
    peer = socket.socket()
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[2].encode())
    try:
        peer.connect(('198.51.100.2', 80))
        break
    except OSError:
        time.sleep(0.1)
peer.settimeout(float(sys.argv[1]) + 5)
try:
    while True:
        peer.sendall(bytes(1 << 16))
except OSError:
    pass
";

/// Measures the goodput of both with CUBIC, NewReno and BBR.
pub(super) fn run(settings: &Settings) -> Fallible<Vec<Row>> {
    let (hosts, scratch) = (Hosts::new()?, Scratch::new()?);
    let seconds = settings.seconds * LONGER;
    let mut rows = Vec::new();
    for (name, ours, linux, link) in [
        ("loss cubic", "cubic", "cubic", LOSS),
        ("loss new_reno", "new_reno", "reno", LOSS),
        ("loss bbr", "bbr", "bbr", LOSS_AND_RATE),
    ] {
        let plan = scratch.file("bulk.yaml");
        std::fs::write(&plan, PLAN.replace("CONGESTION", ours))?;
        let mut peer = Figures::default();
        let mut row = Row {
            name,
            unit: "Mb/s",
            wirestorm: Figures::default(),
            peer: None,
            target: Target::NearPeer(0.1),
            notes: vec![format!(
                "peer: Linux's TCP, over the same link with the same seeds: {link}"
            )],
        };
        for seed in 1..=settings.rounds {
            let seed = seed.to_string();
            let arguments: Vec<_> = link.split(' ').chain(["--seed", &seed]).collect();
            let link = hosts.join(settings, &arguments)?;
            peer.push(hosts.linux(linux, seconds)?);
            drop(link);
            let _link = hosts.join(settings, &arguments)?;
            row.wirestorm.push(hosts.wirestorm(settings, &plan, seconds)?);
        }
        row.peer = Some(peer);
        rows.push(row);
    }
    let _link = hosts.join(settings, &["--delay", "5ms"])?;
    let lossless = hosts.linux("cubic", settings.seconds)?;
    let note = format!("without loss, Linux's TCP reaches {lossless:.0} Mb/s over this link");
    rows.iter_mut().for_each(|row| row.notes.push(note.clone()));
    Ok(rows)
}

/// Two hosts, and the interfaces that a link joins.
struct Hosts {
    a: Lab,
    b: Lab,
}

impl Hosts {
    fn new() -> Fallible<Self> {
        let (a, b) = (Lab::new()?, Lab::new()?);
        // All labs use the same MAC addresses, but the two hosts need different ones.
        let other = format!("link set {} address 02:57:53:00:00:0b", b.a.interface());
        b.a.namespace().ip(&[&other])?;
        Ok(Self { a, b })
    }

    /// Joins the hosts until the value is dropped.
    fn join(&self, settings: &Settings, arguments: &[&str]) -> Fallible<Link> {
        let ends = [&self.a.b, &self.b.b];
        let mut command = punctual(&settings.wirestorm);
        command.args(["impair", "--quiet", "--backend", "af_xdp"]).args(ends.map(End::port));
        command.args(arguments).stdout(Stdio::null());
        let link = Link(command.spawn().map_err(|error| format!("wirestorm impair: {error}"))?);
        let deadline = Instant::now() + Duration::from_secs(20);
        while !ends.iter().all(|end| is_taken(end)) {
            if Instant::now() > deadline {
                return Err("wirestorm impair does not start".into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(link)
    }

    /// Measures the goodput in Mbit/s between two Linux hosts.
    fn linux(&self, congestion: &str, seconds: u32) -> Fallible<f64> {
        for (end, address) in [(&self.a.a, "198.51.100.1"), (&self.b.a, "198.51.100.2")] {
            let address = format!("addr add {address}/24 dev {}", end.interface());
            // Remove cached TCP metrics of the last round.
            end.namespace().ip(&[&address, "tcp_metrics flush"])?;
        }
        let seconds_text = seconds.to_string();
        let mut sender = self.a.a.command("python3");
        sender.args(["-c", LINUX_SENDER, &seconds_text, congestion]);
        let sender = Link(sender.spawn().map_err(|error| format!("python3: {error}"))?);
        let mut receiver = self.b.a.command("python3");
        let received = output(receiver.args(["-c", LINUX_RECEIVER, &seconds_text]))?;
        drop(sender);
        for end in [&self.a.a, &self.b.a] {
            end.namespace().ip(&[&format!("addr flush dev {}", end.interface())])?;
        }
        let bytes: f64 = received.trim().parse().map_err(|_| format!("{received:?}: no count"))?;
        Ok(bytes * 8.0 / f64::from(seconds) / 1e6)
    }

    /// Measures the goodput in Mbit/s between two emulated hosts.
    fn wirestorm(
        &self,
        settings: &Settings,
        plan: &std::path::Path,
        seconds: u32,
    ) -> Fallible<f64> {
        let mut command = punctual(&settings.wirestorm);
        command.arg("emulate").arg(plan).args(["--quiet", "--json", "-", "--drain-timeout", "1ms"]);
        command.args(["--duration", &format!("{seconds}s")]);
        for (name, end) in [("clients", &self.a.a), ("servers", &self.b.a)] {
            command.args(["--port", &format!("{name}={}", end.port())]);
        }
        let result: Value = serde_json::from_str(&output(&mut command)?)?;
        Ok(number(&result, "/ports/1/connections/tcp/rcvbyte")? * 8.0 / f64::from(seconds) / 1e6)
    }
}

/// Returns a command that runs with real-time priority, like the kernel's own TCP. On a busy
/// machine a process may otherwise wait for milliseconds, which would add to the round trip.
fn punctual(program: &std::path::Path) -> Command {
    let mut command = Command::new("chrt");
    command.args(["--fifo", "5"]).arg(program);
    command
}

/// Whether a program receives from an interface through XDP.
fn is_taken(end: &End) -> bool {
    let output = end.command("ip").args(["-d", "link", "show", end.interface()]).output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("prog/xdp"))
}

/// A process that is killed when the value is dropped.
struct Link(Child);

impl Drop for Link {
    fn drop(&mut self) {
        // Ignore errors: the process may have exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
