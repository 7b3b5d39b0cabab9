//! TCP and IP settings, all together in virtual time: the sent packets show their effect.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use wirestorm_base::time::Duration;
use wirestorm_control::emulation::{Part, SimulationOptions, WatchOptions, simulate};
use wirestorm_control::result::RunResult;
use wirestorm_plan::emulation::EmulationPlan;
use wirestorm_testkit::Scratch;
use wirestorm_wire::capture::Records;
use wirestorm_wire::packet::tcp::{self, Flags};

/// Simulates a plan. Returns the result and the packets of all ports' captures without Ethernet
/// headers.
fn run(plan: &str) -> (RunResult, Vec<Vec<Vec<u8>>>) {
    let plan = EmulationPlan::parse(plan).unwrap();
    let scratch = Scratch::new().unwrap();
    let options = SimulationOptions {
        files: std::sync::Arc::new(wirestorm_control::files::HostFiles),
        output: Some(scratch.file("out.pcap")),
        part: Part::Full,
        duration: Duration::from_millis(500),
        drain_timeout: Duration::from_secs(5),
        limit: None,
        watch: WatchOptions::default(),
        round_trip: Duration::from_millis(2),
        flows_max: 1_000,
        seed: 1,
        folder: PathBuf::new(),
    };
    let (result, files) = simulate(&plan, &options).unwrap();
    (result, files.iter().map(|file| packets(file)).collect())
}

fn packets(file: &Path) -> Vec<Vec<u8>> {
    let capture = std::fs::read(file).unwrap();
    Records::new(&capture).map(|record| record.unwrap().1[14..].to_vec()).collect()
}

fn segment(packet: &[u8]) -> tcp::Packet<&[u8]> {
    let header = if packet[0] >> 4 == 4 { 20 } else { 40 };
    tcp::Packet::new(&packet[header..]).unwrap()
}

/// Builds a plan that uses all settings on both sides, over IPv4 or IPv6.
fn all(ipv6: bool) -> String {
    let (clients, servers) = match ipv6 {
        false => ("10.0.0.1-10.0.0.4", "10.0.1.1"),
        true => ("2001:db8::1-2001:db8::4", "2001:db8:1::1"),
    };
    format!(
        "
ports: [{{name: left, blackhole: all}}, {{name: right, blackhole: syn}}]
templates:
  - name: all
    tcp: {{initial_window: 4, receive_buffer: 65536, send_buffer: 2000, window_scaling: true,
      window_scale: 5, timestamps: true, sack: true, rack: false, dupack_threshold: 4,
      reassembly_max: 8, no_delay: true, congestion: new_reno, rto_initial: 2s, rto_min: 1s,
      rto_max: 60s, retries: 3, syn_retries: 2, connect_timeout: 9s, delayed_ack: 30ms,
      ack_after_bytes: 1500, time_wait: 10ms, keepalive: 2s, keepalive_interval: 3s,
      keepalive_probes: 4, push_all: true}}
    ip: {{ttl: 9, tos: 8, dont_fragment: false, flow_label: flow}}
    client:
      tx: left
      addresses: {clients}
      servers: {servers}
      load: {{rate: 20}}
      program: [{{send: page}}, {{receive: 6000}}]
      tcp: {{mss: 112, ecn: true}}
    server:
      tx: right
      port: 80
      program: [{{receive: 4}}, {{send: {{size: 6000}}}}]
      tcp: {{ecn: permit}}
      ip: {{identification: random, flow_label: 74565}}
"
    )
}

#[test]
fn all_settings_take_effect() {
    for ipv6 in [false, true] {
        let (result, captures) = run(&all(ipv6));
        let [left, right] = result.ports.as_slice() else { panic!("two ports") };
        assert_eq!(
            (
                left.connections.as_ref().unwrap().flows.closed,
                right.connections.as_ref().unwrap().flows.closed
            ),
            (10, 10)
        );
        assert_eq!(
            (
                left.connections.as_ref().unwrap().flows.failed,
                right.connections.as_ref().unwrap().flows.failed
            ),
            (0, 0)
        );
        assert_eq!(
            (
                left.connections.as_ref().unwrap().tcp["ecn_shs"],
                right.connections.as_ref().unwrap().tcp["ecn_shs"]
            ),
            (10, 10)
        );
        assert_eq!(
            (
                right.connections.as_ref().unwrap().tcp["sndrexmitpack"],
                left.connections.as_ref().unwrap().tcp["rcvbyte"]
            ),
            (0, 60_000)
        );
        let is_client = |packet: &&Vec<u8>| segment(packet).destination_port() == 80;
        let (clients, servers): (Vec<_>, Vec<_>) = captures[0].iter().partition(is_client);
        for packet in &captures[0] {
            let (class, hops) = match ipv6 {
                false => (packet[1], packet[8]),
                true => ((packet[0] << 4) | (packet[1] >> 4), packet[7]),
            };
            assert_eq!((class & 0xfc, hops), (8, 9));
        }
        let syns: Vec<_> = clients
            .iter()
            .map(|it| segment(it))
            .filter(|it| it.flags().contains(Flags::SYN))
            .collect();
        assert_eq!(syns.len(), 10);
        for syn in syns {
            assert!(syn.flags().contains(Flags::ECE) && syn.flags().contains(Flags::CWR));
            let options = syn.options();
            assert!(options.starts_with(&[2, 4, 0, 112]), "{options:?}");
            assert!(options.ends_with(&[1, 3, 3, 5]), "{options:?}");
        }
        // Segments of 100 bytes with timestamps. Each 15th one is acknowledged.
        let data = servers.iter().map(|it| segment(it)).filter(|it| !it.payload().is_empty());
        assert!(
            data.clone().all(|it| it.payload().len() == 100 && it.flags().contains(Flags::PSH))
        );
        assert_eq!(data.count(), 600);
        let acknowledging = clients.len();
        assert!((50..=110).contains(&acknowledging), "{acknowledging} of the clients' frames");
        match ipv6 {
            false => {
                let number = |it: &&Vec<u8>| u16::from_be_bytes([it[4], it[5]]);
                assert!(captures[0].iter().all(|packet| packet[6..8] == [0, 0]));
                let counts = clients
                    .windows(2)
                    .filter(|pair| number(&pair[1]) == number(&pair[0]).wrapping_add(1));
                assert_eq!(counts.count(), clients.len() - 1);
                let random_numbers: BTreeSet<u16> = servers.iter().map(number).collect();
                assert!(
                    random_numbers.len() > servers.len() * 98 / 100,
                    "{} drawn",
                    random_numbers.len()
                );
            }
            true => {
                let label =
                    |it: &&Vec<u8>| u32::from_be_bytes([it[0], it[1], it[2], it[3]]) & 0xf_ffff;
                assert!(servers.iter().all(|it| label(it) == 0x1_2345));
                let labels: BTreeSet<u32> = clients.iter().map(label).collect();
                assert!(labels.len() == 10 && !labels.contains(&0), "{labels:x?}");
            }
        }
    }
}

#[test]
fn connection_to_a_blackhole_times_out() {
    let plan = |blackhole: &str| {
        format!(
            "
ports: [{{name: left}}, {{name: right, blackhole: {blackhole}}}]
templates:
  - name: asks
    tcp: {{connect_timeout: 2500ms, rto_initial: 500ms}}
    client:
      tx: left
      addresses: 10.0.0.1
      servers: 10.0.1.1
      server_port: 81
      load: {{rate: 2}}
      limit: 1
      program: [{{send: page}}]
    server: {{tx: right, port: 80, program: []}}
"
        )
    };
    let (result, captures) = run(&plan("none"));
    assert_eq!(
        (
            result.ports[0].connections.as_ref().unwrap().flows.refused,
            result.ports[1].connections.as_ref().unwrap().tcp["rst_sent"]
        ),
        (1, 1)
    );
    assert_eq!(captures[0].len(), 2);
    for blackhole in ["syn", "all"] {
        let (result, captures) = run(&plan(blackhole));
        let [left, right] = result.ports.as_slice() else { panic!("two ports") };
        assert_eq!(
            (
                left.connections.as_ref().unwrap().flows.syn_timeout,
                left.connections.as_ref().unwrap().flows.refused,
                right.connections.as_ref().unwrap().tcp["rst_sent"]
            ),
            (1, 0, 0)
        );
        assert_eq!(left.connections.as_ref().unwrap().tcp["keepdrops"], 1);
        // SYNs at 0, 0.5 and 1.5 s.
        assert_eq!(captures[0].len(), 3);
    }
}

/// Runs the example with different segment sizes for clients.
#[test]
fn clients_have_individual_segment_sizes() {
    let plan = std::fs::read_to_string("../../examples/segment-sizes.yaml").unwrap();
    let (result, captures) = run(&plan);
    assert_eq!(
        (
            result.ports[0].connections.as_ref().unwrap().flows.closed,
            result.ports[0].connections.as_ref().unwrap().flows.failed
        ),
        (150, 0)
    );
    let mut lengths = [0; 2];
    for packet in &captures[0] {
        let segment = segment(packet);
        // Separate the segments by the destination client.
        if segment.source_port() == 80 {
            let place = usize::from(packet[19] > 30);
            lengths[place] = segment.payload().len().max(lengths[place]);
        }
    }
    assert_eq!(lengths, [1_448, 1_188]);
}
