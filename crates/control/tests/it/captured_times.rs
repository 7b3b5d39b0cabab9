//! Conversations out of captures take as long as they were captured.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use wirestorm_base::time::{Duration, Instant};
use wirestorm_control::emulation::{Part, SimulationOptions, WatchOptions, simulate};
use wirestorm_control::files::HostFiles;
use wirestorm_plan::emulation::EmulationPlan;
use wirestorm_plan::load;
use wirestorm_testkit::Scratch;
use wirestorm_testkit::require::require_shared_captures;
use wirestorm_wire::capture::Records;
use wirestorm_wire::conversation::{Bounds, Imported, Importer, Transport};
use wirestorm_wire::dissect::dissect;
use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::packet::{ethertype, ipv4, protocol, tcp};

const NO_TIME: Duration = Duration::ZERO;

/// Simulates one flow of each template over wires of such a round trip; returns what the clients
/// captured.
fn run(plan: &EmulationPlan, round_trip: Duration, scratch: &Scratch) -> PathBuf {
    let options = SimulationOptions {
        files: std::sync::Arc::new(wirestorm_control::files::HostFiles),
        output: Some(scratch.file("out.pcap")),
        part: Part::One,
        limit: None,
        duration: Duration::from_secs(600),
        drain_timeout: Duration::from_secs(2),
        watch: WatchOptions::default(),
        round_trip,
        flows_max: 100,
        seed: 1,
        folder: PathBuf::new(),
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
    let mut importer = Importer::new(Bounds::default());
    for record in Records::new(&file) {
        let (header, frame) = record.expect("a whole capture");
        importer.take(&header, frame).expect("a small capture");
    }
    importer.finish()
}

/// How long connections over IPv4 take from their first segment to the last one with data, by
/// their clients' ports.
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

/// How long a flow of a capture takes where it is said again over wires without delay.
fn replayed(capture: &Path, flow: usize) -> Duration {
    let scratch = Scratch::new().expect("a folder");
    let text = format!(
        "ports: [{{name: left}}, {{name: right}}]\n\
         templates:\n\
         \x20 - name: said\n\
         \x20   conversation: {{file: {:?}, flow: {flow}}}\n\
         \x20   client: {{tx: left, addresses: 10.0.0.1, servers: 10.0.1.1, load: {{hold: 1}}}}\n\
         \x20   server: {{tx: right}}\n",
        capture.canonicalize().expect("a path")
    );
    let plan = load::emulation(&text, Path::new(""), &HostFiles).expect("a plan");
    let captured = run(&plan, NO_TIME, &scratch);
    let durations: Vec<_> = durations(&captured).into_values().collect();
    let [duration] = durations.as_slice() else { panic!("{durations:?}") };
    *duration
}

/// Asserts that a time is as long as another one, within 2 % and 5 ms.
fn assert_about(found: Duration, expected: Duration, what: &str) {
    let (found, expected) = (found.as_secs_f64(), expected.as_secs_f64());
    let most = expected * 0.02 + 0.005;
    assert!((found - expected).abs() <= most, "{what}: {found} s, expected {expected} s");
}

/// Somebody types and pulls a window about, while the other side shows it, sends a page and goes on
/// by itself.
const SESSION: &str = r#"
ports: [{name: left}, {name: right}]
templates:
  - name: session
    client:
      tx: left
      addresses: 10.0.0.1
      servers: 10.0.1.1
      load: {hold: 1}
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
fn a_session_takes_as_long_as_it_was_captured() {
    let scratch = Scratch::new().expect("a folder");
    let plan = EmulationPlan::parse(SESSION).expect("a plan");
    let round_trip = Duration::from_millis(24);
    let capture = run(&plan, round_trip, &scratch);
    let [captured] = durations(&capture).into_values().collect::<Vec<_>>()[..] else {
        panic!("a connection")
    };
    // The page of 30,000 bytes takes two windows, which is a round trip without delay.
    assert_about(replayed(&capture, 1), captured.saturating_sub(round_trip), "session");
}

/// Messages of two segments, each with an answer.
const MESSAGES: &str = "
ports: [{name: left}, {name: right}]
templates:
  - name: messages
    tcp: {no_delay: true}
    client:
      tx: left
      addresses: 10.0.0.1
      servers: 10.0.1.1
      load: {hold: 1}
      program: [{repeat: {times: 10, steps: [{send: {size: 2000, fill: ask}}, {receive: 100}]}}]
    server:
      tx: right
      port: 80
      program: [{repeat: {times: 10, steps: [{receive: 2000}, {send: {size: 100, fill: b}}]}}]
";

#[test]
fn messages_of_several_segments_are_not_held_back() {
    let scratch = Scratch::new().expect("a folder");
    let plan = EmulationPlan::parse(MESSAGES).expect("a plan");
    let capture = run(&plan, Duration::from_millis(2), &scratch);
    let captured = durations(&capture).into_values().next().expect("a connection");
    assert_about(replayed(&capture, 1), captured, "messages");
}

#[test]
fn real_conversations_take_as_long_as_they_were_captured() {
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
            // Somebody types and is answered: nothing waits for acknowledgements.
            if ["citrix_0", "exchange_0"].contains(&name.as_str()) {
                assert!(replayed.as_secs_f64() >= captured.as_secs_f64() * 0.95, "{what}");
            }
        }
    }
}
