//! Benchmarks of `wirestorm serve`: configurations and metrics of Open Traffic Generator, batches of
//! TRex's `add_stream`.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;
use wirestorm_testkit::zmtp::ZmtpSocket;

use super::Settings;
use super::contender::output;
use super::figures::{Figures, Row, Target};
use crate::Fallible;

/// Flows of a configuration.
const FLOWS: usize = 4_096;
/// Streams to add: the most that a port of TRex takes.
const STREAMS: usize = 20_000;
/// Streams of a batch. TRex refuses messages above 999,999 bytes.
const BATCH: usize = 500;
/// Environment variable with the address of requests of a TRex server, `HOST:PORT`.
const TREX_SERVER: &str = "WIRESTORM_TREX_SERVER";

/// Sets 4,096 flows and reads their metrics while they are sent.
pub(super) fn flows(settings: &Settings) -> Fallible<Vec<Row>> {
    let lab = Lab::new()?;
    let scratch = Scratch::new()?;
    let mut server = Server::start(settings, &lab, &scratch, &[])?;
    let address = server.address_after("serving at ")?;
    let config = scratch.file("config.json");
    std::fs::write(&config, configuration(&lab).to_string())?;
    let transmit = |state: &str| {
        json!({
            "choice": "traffic",
            "traffic": {"choice": "flow_transmit", "flow_transmit": {"state": state}},
        })
        .to_string()
    };
    let request = json!({"choice": "flow", "flow": {}});
    let (mut set, mut metrics) = (Figures::default(), Figures::default());
    for _ in 0..settings.rounds {
        set.push(post(&format!("{address}/config"), &format!("@{}", config.display()))?);
        post(&format!("{address}/control/state"), &transmit("start"))?;
        metrics.push(post(&format!("{address}/monitor/metrics"), &request.to_string())?);
        post(&format!("{address}/control/state"), &transmit("stop"))?;
        // Ends the run, so that the next configuration does not wait for its result.
        post(&format!("{address}/config"), "{}")?;
    }
    Ok(vec![
        row("otg set_config", "ms", set, Target::AtMost(100.0)),
        row("otg metrics", "ms", metrics, Target::AtMost(20.0)),
    ])
}

/// Adds 20,000 streams in batches, as TRex's client sends them, to this server and to a TRex
/// server in turn.
pub(super) fn streams(settings: &Settings) -> Fallible<Vec<Row>> {
    let lab = Lab::new()?;
    let scratch = Scratch::new()?;
    let options = ["--trex", "stl", "--trex-port", "0", "--trex-async-port", "0"];
    let mut server = Server::start(settings, &lab, &scratch, &options)?;
    let address = server.address_after("clients at ")?;
    let address = address.trim_end_matches(',');
    let peer = std::env::var(TREX_SERVER).ok();
    let (mut mine, mut trex) = (Figures::default(), Figures::default());
    for _ in 0..settings.rounds {
        mine.push(add_streams(address)?);
        if let Some(peer) = &peer {
            trex.push(add_streams(peer)?);
        }
    }
    let target = if peer.is_some() { Target::AtMostPeer(0.2) } else { Target::Unset };
    let mut row = row("trex add_stream", "ms", mine, target);
    row.peer = peer.is_some().then_some(trex);
    row.notes.push(match peer {
        Some(_) => format!(
            "{STREAMS} streams with a field program, {BATCH} a message; peer: TRex's server"
        ),
        None => format!(
            "{STREAMS} streams with a field program, {BATCH} a message; {TREX_SERVER}=HOST:4501 \
             names a TRex server to compare with"
        ),
    });
    Ok(vec![row])
}

fn row(name: &'static str, unit: &'static str, wirestorm: Figures, target: Target) -> Row {
    Row { name, unit, wirestorm, peer: None, target, notes: Vec::new() }
}

/// A running `wirestorm serve`, killed when the value is dropped.
struct Server {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStderr>>,
}

impl Server {
    fn start(
        settings: &Settings,
        lab: &Lab,
        scratch: &Scratch,
        options: &[&str],
    ) -> Fallible<Self> {
        let mut command = Command::new(&settings.wirestorm);
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(options);
        for end in [&lab.a, &lab.b] {
            command.args(["--port", &end.port()]);
        }
        command.arg("--state-dir").arg(scratch.file("server"));
        command.arg("--runs-dir").arg(scratch.file("runs"));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let stderr = child.stderr.take().ok_or("the server has no standard error")?;
        Ok(Self { child, lines: BufReader::new(stderr).lines() })
    }

    /// Returns the word after `before` in the next line that contains it.
    fn address_after(&mut self, before: &str) -> Fallible<String> {
        let mut printed = Vec::new();
        for line in &mut self.lines {
            let line = line?;
            if let Some((_, rest)) = line.split_once(before) {
                return Ok(rest.split(' ').next().unwrap_or_default().to_owned());
            }
            printed.push(line);
        }
        Err(format!("the server ended: {}", printed.join("; ")).into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Ignore errors: the process may have exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a document; returns the time until the end of the answer in milliseconds.
fn post(url: &str, document: &str) -> Fallible<f64> {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--fail-with-body", "--output", "/dev/null"]);
    curl.args(["--write-out", "%{time_total}", "--header", "content-type: application/json"]);
    curl.args(["--data-binary", document, url]);
    Ok(output(&mut curl)?.trim().parse::<f64>()? * 1e3)
}

/// Returns flows in both directions with metrics, 10 frames a second each.
fn configuration(lab: &Lab) -> Value {
    let value = |value: &str| json!({"choice": "value", "value": value});
    let packet = json!([
        {"choice": "ethernet", "ethernet": {
            "src": value("00:00:01:01:01:01"), "dst": value("00:00:01:01:01:02"),
        }},
        {"choice": "ipv4", "ipv4": {"src": value("192.0.2.1"), "dst": value("192.0.2.2")}},
        {"choice": "udp", "udp": {
            "src_port": {"choice": "value", "value": 5000},
            "dst_port": {"choice": "value", "value": 6000},
        }},
    ]);
    let flow = |number: usize| {
        let (from, to) = if number.is_multiple_of(2) { ("p1", "p2") } else { ("p2", "p1") };
        json!({
            "name": format!("flow{number}"),
            "tx_rx": {"choice": "port", "port": {"tx_name": from, "rx_names": [to]}},
            "packet": packet,
            "size": {"choice": "fixed", "fixed": 128},
            "rate": {"choice": "pps", "pps": "10"},
            "metrics": {"enable": true},
        })
    };
    json!({
        "ports": [
            {"name": "p1", "location": lab.a.port()},
            {"name": "p2", "location": lab.b.port()},
        ],
        "flows": (0..FLOWS).map(flow).collect::<Vec<_>>(),
    })
}

/// Takes port 0 of a TRex server and adds streams to it; returns the time of the batches in
/// milliseconds. The streams go with the next client that takes the port.
fn add_streams(address: &str) -> Fallible<f64> {
    let mut client = TrexClient::connect(address)?;
    let acquire = json!({"port_id": 0, "user": "bench", "session_id": 1, "force": true});
    let handler = client.call("acquire", acquire)?;
    let of_port = json!({"handler": handler, "port_id": 0});
    client.call("remove_all_streams", of_port.clone())?;
    let request = |id: &usize| {
        let mut parameters = of_port.clone();
        parameters["stream_id"] = (*id).into();
        parameters["stream"] = stream();
        client.request("add_stream", parameters)
    };
    let ids: Vec<usize> = (1..=STREAMS).collect();
    let batches = ids.chunks(BATCH).map(|ids| Value::from_iter(ids.iter().map(request)));
    let batches: Vec<String> = batches.map(|batch| batch.to_string()).collect();
    let before = Instant::now();
    let answers = batches.iter().map(|batch| client.socket.exchange(batch.as_bytes()));
    let answers = answers.collect::<Result<Vec<_>, _>>()?;
    let took = before.elapsed();
    for answer in answers {
        let answers: Vec<Value> = serde_json::from_slice(&answer)?;
        if let Some(answer) = answers.iter().find(|answer| !answer["error"].is_null()) {
            return Err(format!("{address}: {answer}").into());
        }
    }
    client.call("remove_all_streams", of_port.clone())?;
    client.call("release", of_port)?;
    Ok(took.as_secs_f64() * 1e3)
}

/// Returns a continuous stream of one UDP frame with a source address that counts.
fn stream() -> Value {
    const FRAME: &str =
        "AAAAAQAAAAAAAgAACABFAAAuAAEAAEARavgQAAABMAAAAQQBAAwAGgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    json!({
        "enabled": true, "self_start": true, "isg": 0.0, "flags": 0, "action_count": 0,
        "next_stream_id": -1, "core_id": -1, "random_seed": 0, "start_paused": false,
        "mode": {"type": "continuous", "rate": {"type": "pps", "value": 1.0}},
        "packet": {"binary": FRAME, "meta": ""},
        "vm": {"cache": null, "instructions": [
            {"type": "flow_var", "name": "source", "size": 4, "op": "inc", "init_value": 0x1000_0001,
             "min_value": 0x1000_0001, "max_value": 0x1000_00fe, "step": 1},
            {"type": "write_flow_var", "name": "source", "pkt_offset": 26, "add_value": 0,
             "is_big_endian": true},
            {"type": "fix_checksum_ipv4", "pkt_offset": 14},
        ]},
        "flow_stats": {"enabled": false},
    })
}

/// A client of TRex's requests.
struct TrexClient {
    socket: ZmtpSocket,
    api: Value,
}

impl TrexClient {
    fn connect(address: &str) -> Fallible<Self> {
        let stream = TcpStream::connect(address).map_err(|error| format!("{address}: {error}"))?;
        let mut client = Self { socket: ZmtpSocket::over(stream, "REQ")?, api: Value::Null };
        let sync = client.call("api_sync_v2", json!({"name": "STL", "major": 5, "minor": 1}))?;
        client.api = sync["api_h"].clone();
        Ok(client)
    }

    fn request(&self, method: &str, mut parameters: Value) -> Value {
        if !self.api.is_null() {
            parameters["api_h"] = self.api.clone();
        }
        json!({"jsonrpc": "2.0", "id": "1", "method": method, "params": parameters})
    }

    fn call(&mut self, method: &str, parameters: Value) -> Fallible<Value> {
        let request = self.request(method, parameters).to_string();
        let mut answer: Value = serde_json::from_slice(&self.socket.exchange(request.as_bytes())?)?;
        match answer["error"].is_null() {
            true => Ok(answer["result"].take()),
            false => Err(format!("{method}: {}", answer["error"]).into()),
        }
    }
}
