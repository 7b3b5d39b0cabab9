//! Simulated TRex stateful profiles, compared with the output of TRex's own simulator.
//!
//! `WIRESTORM_TREX_PROFILES` names a folder of profiles as JSON, as `python3 -m trex.astf.dump`
//! prints them. Each file has the name of its profile and belongs to one golden capture.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use wirestorm_base::time::Duration;
use wirestorm_control::emulation::{SimulationOptions, simulate};
use wirestorm_plan::trex::stateful::{self, StatefulOptions};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::require::skip;
use wirestorm_wire::capture::Records;
use wirestorm_wire::conversation::{Action, ImportLimits, Importer, Side, Transport};

use super::simulation;

/// Profiles with golden captures.
const GOLDENS: [&str; 14] = [
    "http_manual_commands_delay",
    "http_manual_commands_delay_client2",
    "http_manual_commands_fin_ack",
    "http_manual_commands_pipeline",
    "http_manual_commands_pipeline4",
    "http_simple_limit",
    "param_ipv6",
    "param_no_delay_counter",
    "param_tcp_delay_ack",
    "param_tcp_no_timestamp",
    "param_tcp_rxbufsize_8k",
    "tcp_param_change",
    "udp2",
    "udp_sip",
];

/// Duration for which TRex's simulator started flows.
const DURATION: Duration = Duration::from_secs(5);

/// Profiles with random delays.
const DRAWN: [&str; 1] = ["http_manual_commands_pipeline4"];

/// Maximum difference of shorter delays. TRex's simulator checks timers every 20 ms, and starts and
/// ends a measurement at such a check.
const SHORTER_MAX: Duration = Duration::from_millis(45);
/// Maximum difference of longer delays.
const LONGER_MAX: Duration = Duration::from_millis(20);

/// Properties of a flow that its profile determines.
#[derive(Debug, PartialEq)]
struct Portrait {
    client: IpAddr,
    server: SocketAddr,
    /// Window and options of SYN and SYN-ACK, without timestamp values.
    handshake: Vec<(u16, Vec<Vec<u8>>)>,
    /// TTL and type of service of both sides.
    ip: Vec<Option<(u8, u8)>>,
    /// TCP: data of each turn. UDP: each datagram.
    turns: Vec<(Side, Vec<u8>)>,
    /// Side that closes, and whether it resets.
    ends: Vec<(Side, bool)>,
}

/// A flow, and the delay before each turn.
type Flow = (Portrait, Vec<Duration>);

#[test]
fn flows_match_those_of_trexs_simulator() {
    let Some((goldens, profiles)) = folders() else { return };
    let mut wrong = Vec::new();
    for name in GOLDENS {
        let golden = flows(&goldens.join(format!("sim_astf-{name}.pcap")));
        let ours = simulated(&profiles.join(format!("{name}.json")));
        if let Err(reason) = compare(ours, golden, !DRAWN.contains(&name)) {
            wrong.push(format!("{name}: {reason}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Two groups of clients in VLANs, with different next hops.
const CONFIGURATION: &str = r#"
vlan: true
groups:
  - ip_start: 16.0.0.0
    ip_end: 16.0.0.127
    initiator: {vlan: 100, dst_mac: "00:00:00:02:00:00"}
    responder: {vlan: 200, dst_mac: "00:00:00:01:00:00"}
    count: 128
  - ip_start: 16.0.0.128
    ip_end: 16.0.0.255
    initiator: {vlan: 101, dst_mac: "00:00:00:03:00:00"}
    count: 128
"#;

#[test]
fn clients_use_the_vlan_and_next_hop_of_their_device() {
    let Some((goldens, profiles)) = folders() else { return };
    let golden = goldens.join("sim_astf-http_simple_cc_http_simple.pcap");
    let scratch = Scratch::new().expect("a folder");
    let ours = clients_capture(&profiles.join("http_simple.json"), Some(CONFIGURATION), &scratch);
    compare(flows(&ours), flows(&golden), true).expect("the same flows");
    let tags = |path: &Path| -> BTreeMap<IpAddr, Vec<u8>> {
        let file = std::fs::read(path).expect("a readable capture");
        let frames = Records::new(&file).map(|record| record.expect("a whole capture").1.to_vec());
        // Frames of clients: destination Ethernet address and VLAN tag.
        let of_clients = frames.filter(|frame| frame[30] == 16);
        let link = |frame: &[u8]| [&frame[..6], &frame[12..16]].concat();
        of_clients.map(|it| (IpAddr::from([it[30], it[31], it[32], it[33]]), link(&it))).collect()
    };
    let ours = tags(&ours);
    assert_eq!(ours.len(), 14);
    assert_eq!(ours, tags(&golden));
}

/// Returns the folders of captures and profiles. Prints a note and returns `None` if one is absent.
fn folders() -> Option<(PathBuf, PathBuf)> {
    let goldens = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/goldens/trex-astf");
    if !goldens.is_dir() {
        skip("shared/goldens is absent");
        return None;
    }
    let Some(profiles) = std::env::var_os("WIRESTORM_TREX_PROFILES") else {
        skip("WIRESTORM_TREX_PROFILES names no folder of stateful profiles as JSON");
        return None;
    };
    Some((goldens, profiles.into()))
}

fn simulated(profile: &Path) -> BTreeMap<u16, Vec<Flow>> {
    let scratch = Scratch::new().expect("a folder");
    flows(&clients_capture(profile, None, &scratch))
}

/// Simulates a profile and returns the clients' capture.
fn clients_capture(profile: &Path, configuration: Option<&str>, scratch: &Scratch) -> PathBuf {
    let json = std::fs::read_to_string(profile).expect("a readable profile");
    let mut plan = stateful::read(&json, &StatefulOptions::default()).expect("a profile");
    if let Some(configuration) = configuration {
        stateful::apply_client_configuration(&mut plan, configuration).expect("a configuration");
    }
    let options = SimulationOptions {
        output: Some(scratch.file("out.pcap")),
        duration: DURATION,
        round_trip: Duration::from_micros(20),
        ..simulation::options()
    };
    let (_, files) = simulate(&plan, &options).expect("a simulation");
    files[0].clone()
}

/// Returns the flows of a capture by server port, in order. With several templates, TRex draws the
/// next template at random.
fn flows(path: &Path) -> BTreeMap<u16, Vec<Flow>> {
    let file = std::fs::read(path).expect("a readable capture");
    let mut importer = Importer::new(ImportLimits::default());
    let mut headers: BTreeMap<[SocketAddr; 2], Headers> = BTreeMap::new();
    for record in Records::new(&file) {
        let (header, frame) = record.expect("a whole capture");
        importer.take(&header, frame).expect("a small capture");
        note_headers(frame, &mut headers);
    }
    let mut found: BTreeMap<u16, Vec<Flow>> = BTreeMap::new();
    for conversation in importer.finish().flows {
        let conversation = conversation.expect("a whole conversation");
        let mut ends = [conversation.client, conversation.server];
        ends.sort();
        let Headers { handshake, ip } = headers.remove(&ends).unwrap_or_default();
        let ip = [conversation.client, conversation.server].map(|it| ip.get(&it).copied()).to_vec();
        let (mut turns, mut times, mut ends) =
            (Vec::<(Side, Vec<u8>)>::new(), Vec::new(), Vec::new());
        for turn in conversation.turns {
            match turn.act {
                Action::Send(bytes) => match turns.last_mut() {
                    Some((side, before))
                        if *side == turn.side && conversation.transport == Transport::Tcp =>
                    {
                        before.extend(bytes);
                    }
                    _ => {
                        turns.push((turn.side, bytes));
                        times.push(turn.gap);
                    }
                },
                Action::Close => ends.push((turn.side, false)),
                Action::Reset => ends.push((turn.side, true)),
            }
        }
        let (client, server) = (conversation.client.ip(), conversation.server);
        let portrait = Portrait { client, server, handshake, ip, turns, ends };
        found.entry(server.port()).or_default().push((portrait, times));
    }
    found
}

/// Header fields of a flow.
#[derive(Debug, Default)]
struct Headers {
    handshake: Vec<(u16, Vec<Vec<u8>>)>,
    /// TTL and type of service of each end.
    ip: BTreeMap<SocketAddr, (u8, u8)>,
}

fn note_headers(frame: &[u8], headers: &mut BTreeMap<[SocketAddr; 2], Headers>) {
    let network = if frame[12..14] == [0x81, 0] { &frame[18..] } else { &frame[14..] };
    let address = |at: usize, length: usize| -> IpAddr {
        match length {
            4 => <[u8; 4]>::try_from(&network[at..at + 4]).expect("four bytes").into(),
            _ => <[u8; 16]>::try_from(&network[at..at + 16]).expect("sixteen bytes").into(),
        }
    };
    let (source, destination, transport, ip, protocol) = match network[0] >> 4 {
        4 => (address(12, 4), address(16, 4), &network[20..], (network[8], network[1]), network[9]),
        _ => {
            let class = network[0] << 4 | network[1] >> 4;
            (address(8, 16), address(24, 16), &network[40..], (network[7], class), network[6])
        }
    };
    let port = |at: usize| u16::from_be_bytes([transport[at], transport[at + 1]]);
    let source = SocketAddr::new(source, port(0));
    let mut ends = [source, SocketAddr::new(destination, port(2))];
    ends.sort();
    let headers = headers.entry(ends).or_default();
    headers.ip.entry(source).or_insert(ip);
    if protocol == 6 && transport[13] & 2 != 0 {
        let end = usize::from(transport[12] >> 4) * 4;
        headers.handshake.push((port(14), options(&transport[20..end])));
    }
}

/// Returns TCP options sorted by kind, without timestamp values.
fn options(mut options: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    while let [kind, rest @ ..] = options {
        match kind {
            0 => break,
            1 => options = rest,
            _ => {
                let length = usize::from(rest[0]);
                let is_timestamp = *kind == 8;
                found.push(options[..if is_timestamp { 2 } else { length }].to_vec());
                options = &options[length..];
            }
        }
    }
    found.sort();
    found
}

/// Compares flows, and their delays if `with_delays`.
fn compare(
    mut ours: BTreeMap<u16, Vec<Flow>>,
    mut golden: BTreeMap<u16, Vec<Flow>>,
    with_delays: bool,
) -> Result<(), String> {
    let counts = |of: &BTreeMap<u16, Vec<Flow>>| -> Vec<(u16, usize)> {
        of.iter().map(|(port, flows)| (*port, flows.len())).collect()
    };
    // In TRex, several templates take addresses from one pool in random order, so ignore addresses.
    if ours.len() > 1 {
        let nobody = IpAddr::from([0; 4]);
        for (flow, _) in ours.values_mut().chain(golden.values_mut()).flatten() {
            (flow.client, flow.server) = (nobody, SocketAddr::new(nobody, flow.server.port()));
        }
    } else if counts(&ours) != counts(&golden) {
        return Err(format!("flows at ports {:?}, TRex's {:?}", counts(&ours), counts(&golden)));
    }
    let total = |of: &BTreeMap<u16, Vec<Flow>>| of.values().map(Vec::len).sum::<usize>();
    if !ours.keys().eq(golden.keys()) || total(&ours).abs_diff(total(&golden)) > 1 {
        return Err(format!("flows at ports {:?}, TRex's {:?}", counts(&ours), counts(&golden)));
    }
    let pairs =
        ours.values().zip(golden.values()).flat_map(|(ours, golden)| ours.iter().zip(golden));
    for (number, ((flow, times), (theirs, their_times))) in pairs.enumerate() {
        if flow != theirs {
            return Err(format!("flow {number}: {}", difference(flow, theirs)));
        }
        for (turn, (ours, theirs)) in times.iter().zip(their_times).enumerate() {
            let is_right =
                *ours <= *theirs + LONGER_MAX && *theirs <= *ours + SHORTER_MAX || !with_delays;
            if !is_right {
                return Err(format!("flow {number}, turn {turn}: {ours:?}, TRex's {theirs:?}"));
            }
        }
    }
    Ok(())
}

/// Describes the difference of two flows; data by its lengths.
fn difference(ours: &Portrait, theirs: &Portrait) -> String {
    let lengths = |flow: &Portrait| -> Vec<(Side, usize)> {
        flow.turns.iter().map(|(side, bytes)| (*side, bytes.len())).collect()
    };
    let head = |flow: &Portrait| {
        format!(
            "{} {} {:?} {:?} {:?}",
            flow.client, flow.server, flow.handshake, flow.ip, flow.ends
        )
    };
    if head(ours) != head(theirs) {
        return format!("\n  {}\n  {}", head(ours), head(theirs));
    }
    format!("says {:?}, TRex's {:?}", lengths(ours), lengths(theirs))
}
