//! Memory use of flows.

use std::process::Command;

use wirestorm_base::time::Duration;
use wirestorm_model::load::Load;
use wirestorm_stack::endpoint::Role;
use wirestorm_stack::program::{Buffer, Buffers, Instruction};

use crate::endpoint::world::{SECOND, World, client, rate};

/// Number of flows.
const FLOWS: u64 = 10_000;

/// Returns the memory of an idle flow in bytes, both ends included, for these programs.
fn bytes_a_flow(asks: &[Instruction], answers: &[Instruction], buffers: &Buffers) -> u64 {
    let load = Load::Rate { rate: rate(FLOWS, SECOND), concurrent_max: None };
    let mut role = client("16.0.0.1", 80, load, Some(FLOWS));
    let Role::Client { tuples, .. } = &mut role else { unreachable!("it is one") };
    tuples.client_ports = 1_024..=65_535;
    let mut world = World::with(vec![role], buffers, asks, answers);
    let before = resident_bytes();
    world.run(Duration::from_secs(3), |_, _| {});
    let [client, server] = [&world.client, &world.server].map(|it| it.counters().active);
    assert_eq!([client, server], [FLOWS; 2]);
    resident_bytes().saturating_sub(before) / FLOWS
}

/// Resident memory of this process without the pages of its files, whose number varies
/// (`proc_pid_status(5)`).
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells it");
    let kibibytes = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kibibytes = kibibytes.expect("Linux tells it").trim().trim_end_matches(" kB");
    kibibytes.parse::<u64>().expect("a number") * 1_024
}

#[test]
fn idle_flow_that_has_sent_data_is_small() {
    // Other tests of this process allocate too, so the flows get a process of their own.
    let output = Command::new(std::env::current_exe().expect("its path"))
        .args(["--exact", "memory::idle_flows_in_a_process_of_their_own", "--ignored"])
        .arg("--nocapture")
        .output()
        .expect("the other process");
    let text = String::from_utf8_lossy(&output.stdout);
    let bytes = text.lines().find_map(|line| line.split_once("bytes a flow: "));
    let bytes: u64 =
        bytes.unwrap_or_else(|| panic!("no result: {text}")).1.parse().expect("a number");
    assert!((300..600).contains(&bytes), "{bytes} bytes of a connection's two ends");
}

#[test]
#[ignore = "the other process of the test that reads its result"]
fn idle_flows_in_a_process_of_their_own() {
    use Instruction::{Receive, Send, SendBlocking, WaitForPeerClose};
    let mut buffers = Buffers::default();
    let page = buffers.push(Buffer::new(b"page", 0, &[]));
    // The first write leaves before the SYN-ACK arrives, the second while the first is in flight.
    let asks = [
        SendBlocking { waits: false },
        Send { buffer: page },
        Send { buffer: page },
        WaitForPeerClose,
    ];
    let answers = [Receive { bytes: 8, clear: true }, Send { buffer: page }, WaitForPeerClose];
    println!("bytes a flow: {}", bytes_a_flow(&asks, &answers, &buffers));
}
