//! Benchmarks of connections with both ends in one process, in memory and over a veth pair.

use std::process::Command;

use serde_json::Value;
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{Lab, LabOptions};

use super::Settings;
use super::contender::{number, output};
use super::figures::{Figures, Row, Target};
use crate::{Fallible, workspace};

/// Unit of the figure that the JSON document also contains as `connections_per_s`.
pub(super) const CONNECTIONS: &str = "k conn/s";

/// Connections with one request of 100 bytes and a response of 32,000 bytes each.
pub(super) fn page(settings: &Settings) -> Fallible<Vec<Row>> {
    let mut row = row("page memory", CONNECTIONS, Target::AtLeast(250.0));
    row.notes.push("segments of 1,460 bytes with timestamps, delayed acknowledgements".into());
    measure(settings, row, ["200000", "1", "32000"], "/connections", 1e3)
}

/// Connections with 500 requests of 100 bytes and responses of 1,024 bytes each.
pub(super) fn keepalive(settings: &Settings) -> Fallible<Vec<Row>> {
    let row = row("keep-alive memory", "M req/s", Target::AtLeast(1.5));
    measure(settings, row, ["6000", "500", "1024"], "/requests", 1e6)
}

/// Idle connections with both ends in one process. Measures the rate of opening, the memory of each
/// end, and the peak memory of the process.
pub(super) fn idle(settings: &Settings) -> Fallible<Vec<Row>> {
    const CONNECTIONS: &str = "4000000";
    let mut opened = row("idle opened", "k flows/s", Target::AtLeast(500.0));
    let mut bytes = row("idle flow", "bytes", Target::AtMost(256.0));
    let mut memory = row("idle memory", "GB", Target::AtMost(2.5));
    bytes.notes.push(format!("memory that each end of {CONNECTIONS} connections adds"));
    memory.notes.push(format!("peak memory with both ends of {CONNECTIONS} connections"));
    let stateful = workspace::build_example("wirestorm-stack", "stateful")?;
    for _ in 0..settings.rounds {
        let printed = output(Command::new(&stateful).args([CONNECTIONS, "0", "1"]))?;
        let result: Value = serde_json::from_str(&printed)?;
        let seconds = number(&result, "/elapsed_s")?;
        opened.wirestorm.push(number(&result, "/connections")? / seconds / 1e3);
        bytes.wirestorm.push(number(&result, "/bytes_a_flow")?);
        memory.wirestorm.push(number(&result, "/resident_bytes_max")? / 1e9);
    }
    Ok(vec![opened, bytes, memory])
}

/// Plan of [`over_veth`]: 512 concurrent connections at the highest rate.
const VETH_PLAN: &str = r#"
ports: [{name: clients, addresses: 10.0.0.1/16}, {name: servers, addresses: 10.0.1.1/16}]
templates:
  - name: page
    client:
      tx: clients
      addresses: 10.0.0.1-10.0.0.255
      servers: 10.0.1.1-10.0.1.255
      load: {concurrent: 512}
      program: [{send: {size: 100}}, {receive: 32000}]
    server:
      tx: servers
      port: 80
      program: [{receive: 100}, {send: {size: 32000}}]
    tcp: {time_wait: 1ms}
"#;

/// The connections of [`page`] over a veth pair, with one worker for each side.
pub(super) fn over_veth(settings: &Settings) -> Fallible<Vec<Row>> {
    // The kernel enables offloads on a veth by default.
    let lab = Lab::with(&LabOptions { offloads: true, ..LabOptions::default() })?;
    let scratch = Scratch::new()?;
    let plan = scratch.file("pages.yaml");
    std::fs::write(&plan, VETH_PLAN)?;
    let mut row = row("page veth", CONNECTIONS, Target::AtLeast(25.0));
    let (mut again, mut cpu, mut connections) = (0.0, 0.0, 0.0);
    for _ in 0..settings.rounds {
        let mut command = Command::new(&settings.wirestorm);
        command.arg("emulate").arg(&plan).args(["--quiet", "--json", "-"]);
        command.args(["--duration", &format!("{}s", settings.seconds)]);
        for (name, end) in [("clients", &lab.a), ("servers", &lab.b)] {
            command.args(["--port", &format!("{name}={}", end.port())]);
        }
        let result: Value = serde_json::from_str(&output(&mut command)?)?;
        let made = number(&result, "/ports/0/connections/tcp/connects")?;
        row.wirestorm.push(made / f64::from(settings.seconds) / 1e3);
        connections += made;
        for port in [0, 1] {
            again += number(&result, &format!("/ports/{port}/connections/tcp/sndrexmitpack"))?;
            cpu += number(&result, &format!("/ports/{port}/cpu_s"))?;
        }
    }
    row.notes.push(format!(
        "{again} retransmitted segments; {:.1} us of CPU time a connection, both sides",
        cpu / connections * 1e6
    ));
    Ok(vec![row])
}

/// Full TLS 1.3 handshakes, one on each connection, with both ends on one CPU. The peer is rustls
/// with the same settings and without connections.
pub(super) fn tls(settings: &Settings) -> Fallible<Vec<Row>> {
    const COUNT: &str = "10000";
    let handshakes = workspace::build_example("wirestorm-tls", "handshakes")?;
    let mut row = row("TLS memory", "k handshakes/s", Target::TimesPeer(0.85));
    let mut alone = Figures::default();
    for _ in 0..settings.rounds {
        for (what, figures) in [("stack", &mut row.wirestorm), ("rustls", &mut alone)] {
            let printed = output(Command::new(&handshakes).args([what, COUNT]))?;
            let result: Value = serde_json::from_str(&printed)?;
            let per_second = number(&result, "/handshakes")? / number(&result, "/elapsed_s")?;
            figures.push(per_second / 1e3);
        }
    }
    row.peer = Some(alone);
    row.notes.push("peer: rustls alone; ECDSA P-256, X25519, AES-128-GCM, close_notify".into());
    Ok(vec![row])
}

fn row(name: &'static str, unit: &'static str, target: Target) -> Row {
    let (wirestorm, notes) = (Figures::default(), Vec::new());
    Row { name, unit, wirestorm, peer: None, target, notes }
}

fn measure(
    settings: &Settings,
    mut row: Row,
    arguments: [&str; 3],
    counted: &str,
    unit: f64,
) -> Fallible<Vec<Row>> {
    let stateful = workspace::build_example("wirestorm-stack", "stateful")?;
    for _ in 0..settings.rounds {
        let printed = output(Command::new(&stateful).args(arguments))?;
        let result: Value = serde_json::from_str(&printed)?;
        row.wirestorm.push(number(&result, counted)? / number(&result, "/elapsed_s")? / unit);
    }
    Ok(vec![row])
}
