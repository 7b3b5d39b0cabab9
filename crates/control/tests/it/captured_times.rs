//! Replayed conversations take as long as in their capture.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use wirestorm_base::time::{Duration, Instant};
use wirestorm_control::emulation::{Part, SimulationOptions, simulate};
use wirestorm_control::files::HostFiles;
use wirestorm_plan::emulation::EmulationPlan;
use wirestorm_plan::load;
use wirestorm_testkit::Scratch;
use wirestorm_testkit::require::require_shared_captures;
use wirestorm_wire::capture::Records;
use wirestorm_wire::conversation::{ImportLimits, Imported, Importer, Transport};
use wirestorm_wire::dissect::dissect;
use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::packet::{ethertype, ipv4, protocol, tcp};

use super::simulation;

const NO_TIME: Duration = Duration::ZERO;

/// Simulates one flow of each template with this round-trip time. Returns the clients' capture.
fn run(plan: &EmulationPlan, round_trip: Duration, scratch: &Scratch) -> PathBuf {
    let options = SimulationOptions {
        output: Some(scratch.file("out.pcap")),
        part: Part::One,
        duration: Duration::from_secs(600),
        round_trip,
        flows_max: 100,
        ..simulation::options()
    };
    let (result, files) = simulate(plan, &options).expect("a simulation");
    assert!(
        result.ports.iter().all(|port| port.connections.as_ref().unwrap().flows.failed == 0),
        "{:?}",
        result.ports
    );
    files[0].clone()
}

fn import(capture: &Path) -> Imported {
    let file = std::fs::read(capture).expect("a readable capture");
    let mut importer = Importer::new(ImportLimits::default());
    for record in Records::new(&file) {
        let (header, frame) = record.expect("a whole capture");
        importer.take(&header, frame).expect("a small capture");
    }
    importer.finish()
}

/// Returns the time from the first segment to the last one with data for each IPv4 connection, by
/// client port.
fn durations(capture: &Path) -> BTreeMap<u16, Duration> {
    let file = std::fs::read(capture).expect("a readable capture");
    let mut ends = BTreeMap::<FlowKey, (u16, Instant, Instant)>::new();
    for record in Records::new(&file) {
        let (header, frame) = record.expect("a whole capture");
        let found = dissect(header.link_type, frame);
        let key = found.flow().filter(|key| key.protocol() == protocol::TCP);
        let Some(key) = key.filter(|_| found.ethertype == ethertype::IPV4) else { continue };
        let network = &frame[usize::from(found.network_offset)..];
        let ip = ipv4::Packet::new(network).expect("a header of IPv4");
        let transport = usize::from(found.transport_offset - found.network_offset);
        let segment = &network[transport..usize::from(ip.total_length())];
        let segment = tcp::Packet::new(segment).expect("a header of TCP");
        let now = header.timestamp;
        let of = ends.entry(key.conversation()).or_insert((key.source_port(), now, now));
        if !segment.payload().is_empty() {
            of.2 = now;
        }
    }
    ends.into_values().map(|(port, first, last)| (port, last.saturating_since(first))).collect()
}

/// Returns the duration of a flow of a capture when it is replayed without network delay.
fn replayed(capture: &Path, flow: usize) -> Duration {
    let scratch = Scratch::new().expect("a folder");
    let text = format!(
        "ports: [{{name: left}}, {{name: right}}]\n\
         templates:\n\
         \x20 - name: said\n\
         \x20   conversation: {{file: {:?}, flow: {flow}}}\n\
         \x20   client: {{tx: left, addresses: 10.0.0.1, servers: 10.0.1.1, load: {{concurrent: 1}}}}\n\
         \x20   server: {{tx: right}}\n",
        capture.canonicalize().expect("a path")
    );
    let plan = load::emulation(&text, Path::new(""), &HostFiles).expect("a plan");
    let captured = run(&plan, NO_TIME, &scratch);
    let durations: Vec<_> = durations(&captured).into_values().collect();
    let [duration] = durations.as_slice() else { panic!("{durations:?}") };
    *duration
}

/// Asserts that a time equals another one within 2 % + 5 ms.
fn assert_about(found: Duration, expected: Duration, what: &str) {
    let (found, expected) = (found.as_secs_f64(), expected.as_secs_f64());
    let most = expected * 0.02 + 0.005;
    assert!((found - expected).abs() <= most, "{what}: {found} s, expected {expected} s");
}

/// A remote desktop session: the client types and moves a window. The server echoes it, sends a
/// page and continues by itself.
const SESSION: &str = r#"
ports: [{name: left}, {name: right}]
templates:
  - name: session
    client:
      tx: left
      addresses: 10.0.0.1
      servers: 10.0.1.1
      load: {concurrent: 1}
      tcp: {no_delay: true}
      program:
        - blocking: false
        - repeat: {times: 40, steps: [{send: fifteen bytes..}, {delay: 25ms}]}
        - receive: 30000
        - delay: 300ms
        - send: {size: 2000, fill: thanks}
        - receive: 400
    server:
      tx: right
      port: 80
      tcp: {no_delay: true}
      program:
        - blocking: false
        - receive: 600
        - delay: 20ms
        - send: {size: 30000, fill: page}
        - receive: 2000
        - repeat: {times: 20, steps: [{send: twenty bytes of news}, {delay: 33ms}]}
"#;

#[test]
fn session_keeps_its_captured_duration() {
    let scratch = Scratch::new().expect("a folder");
    let plan = EmulationPlan::parse(SESSION).expect("a plan");
    let round_trip = Duration::from_millis(24);
    let capture = run(&plan, round_trip, &scratch);
    let [captured] = durations(&capture).into_values().collect::<Vec<_>>()[..] else {
        panic!("a connection")
    };
    // The page of 30,000 bytes needs two windows, so the replay without delay saves one round trip.
    assert_about(replayed(&capture, 1), captured.saturating_sub(round_trip), "session");
}

/// Messages of two segments, each with a response.
const MESSAGES: &str = "
ports: [{name: left}, {name: right}]
templates:
  - name: messages
    tcp: {no_delay: true}
    client:
      tx: left
      addresses: 10.0.0.1
      servers: 10.0.1.1
      load: {concurrent: 1}
      program: [{repeat: {times: 10, steps: [{send: {size: 2000, fill: ask}}, {receive: 100}]}}]
    server:
      tx: right
      port: 80
      program: [{repeat: {times: 10, steps: [{receive: 2000}, {send: {size: 100, fill: b}}]}}]
";

#[test]
fn multi_segment_messages_are_not_delayed() {
    let scratch = Scratch::new().expect("a folder");
    let plan = EmulationPlan::parse(MESSAGES).expect("a plan");
    let capture = run(&plan, Duration::from_millis(2), &scratch);
    let captured = durations(&capture).into_values().next().expect("a connection");
    assert_about(replayed(&capture, 1), captured, "messages");
}

#[test]
fn real_conversations_keep_their_captured_duration() {
    let Some(folder) = require_shared_captures() else { return };
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut captures: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    captures.retain(|path| path.extension().is_some_and(|it| it == "pcap"));
    captures.sort();
    for capture in captures {
        let durations = durations(&capture);
        let name = capture.file_stem().unwrap_or_default().display().to_string();
        for (index, flow) in import(&capture).flows.into_iter().enumerate() {
            let Ok(flow) = flow else { continue };
            if flow.transport != Transport::Tcp || !flow.has_data() || !flow.has_beginning {
                continue;
            }
            let what = format!("{name}, flow {}", index + 1);
            let Some(captured) = durations.get(&flow.client.port()).copied() else { continue };
            let replayed = replayed(&capture, index + 1);
            println!("{what}: {captured} captured, {replayed} replayed");
            assert!(replayed.as_secs_f64() <= captured.as_secs_f64() * 1.02 + 0.005, "{what}");
            // Interactive sessions: no turn waits for acknowledgements.
            if ["citrix_0", "exchange_0"].contains(&name.as_str()) {
                assert!(replayed.as_secs_f64() >= captured.as_secs_f64() * 0.95, "{what}");
            }
        }
    }
}
