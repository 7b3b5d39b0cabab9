//! Fields of IP headers, and which packets get an answer.

use wirestorm_base::port::{Receive, Transmit};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_model::blackhole::Blackhole;
use wirestorm_model::ip::{FlowLabel, Identification, IpSettings};
use wirestorm_model::load::Load;
use wirestorm_stack::endpoint::{Endpoint, Transport};
use wirestorm_stack::program::{Buffer, Buffers, Instruction};

use super::world::{SECOND, STEP, World, client, options, pass_by, rate, server, template};

/// Returns the packets, starting at their IP headers, of servers with IP settings that answer two
/// clients with 5,000 bytes each.
fn sent_packets(ip: IpSettings, first: &str) -> Vec<Vec<u8>> {
    let mut buffers = Buffers::default();
    let answer = buffers.push(Buffer::new(b"", 5_000, &[]));
    let answers = vec![Instruction::Send { buffer: answer }];
    let asks = vec![Instruction::Receive { bytes: 5_000, clear: false }];
    let load = Load::Rate { rate: rate(1, Duration::from_millis(10)), concurrent_max: None };
    let mut servers = template(answers, server(80));
    servers.ip = ip;
    let clients = template(asks, client(first, 80, load, Some(2)));
    let mut world = World::of(vec![clients], vec![servers], &buffers);
    let mut packets = Vec::new();
    let end = world.now + SECOND;
    while world.now < end {
        world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
        world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
        pass_by(&mut world.down, |frame| packets.push(frame[14..].to_vec()));
        world.now += STEP;
    }
    world.assert_over(2);
    packets
}

fn identification(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[4], packet[5]])
}

/// Traffic class of a packet.
fn class(packet: &[u8]) -> u8 {
    match packet[0] >> 4 {
        4 => packet[1],
        _ => packet[0] << 4 | packet[1] >> 4,
    }
}

#[test]
fn programs_set_the_traffic_class_of_later_packets() {
    const LONG: usize = 100;
    let mut buffers = Buffers::default();
    let buffer = buffers.push(Buffer::new(b"", 200, &[]));
    for transport in [None, Some(Transport::Udp)] {
        let (send, receive) = match transport {
            None => {
                (Instruction::Send { buffer }, Instruction::Receive { bytes: 400, clear: false })
            }
            Some(_) => (
                Instruction::SendDatagram { buffer },
                Instruction::ReceiveDatagrams { count: 2, clear: false },
            ),
        };
        let asks = vec![send, Instruction::SetTrafficClass { class: 0xb8 }, send];
        for first in ["16.0.0.1", "2001:db8:1::1"] {
            let load = Load::Rate { rate: rate(1, SECOND), concurrent_max: None };
            let mut clients = template(asks.clone(), client(first, 80, load, Some(1)));
            clients.ip = IpSettings { traffic_class: 0x20, ..IpSettings::default() };
            let mut servers = template(vec![receive], server(80));
            if let Some(udp) = &transport {
                (clients.transport, servers.transport) = (*udp, *udp);
            }
            let mut world = World::of(vec![clients], vec![servers], &buffers);
            let mut classes = Vec::new();
            let end = world.now + SECOND;
            while world.now < end {
                world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
                pass_by(&mut world.up, |frame| {
                    if frame.len() > LONG {
                        classes.push(class(&frame[14..]));
                    }
                });
                world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
                world.now += STEP;
            }
            assert_eq!(world.client.counters().closed, 1);
            assert_eq!(classes, [0x20, 0xb8], "{transport:?} {first}");
        }
    }
}

/// RFC 6864 section 4.1: a packet that must not be fragmented may have any identification.
#[test]
fn default_packets_have_df_and_no_identification() {
    let packets = sent_packets(IpSettings::default(), "16.0.0.1");
    assert!(packets.len() > 10);
    assert!(packets.iter().all(|packet| packet[4..8] == [0, 0, 0x40, 0]));
}

#[test]
fn counting_identifications_span_all_flows() {
    let ip = IpSettings {
        identification: Identification::Counting,
        dont_fragment: false,
        ..IpSettings::default()
    };
    let packets = sent_packets(ip, "16.0.0.1");
    assert!(packets.len() > 10);
    for pair in packets.windows(2) {
        assert_eq!(identification(&pair[1]), identification(&pair[0]).wrapping_add(1));
        assert_eq!(pair[0][6..8], [0, 0]);
    }
}

#[test]
fn random_identifications_differ() {
    let ip = IpSettings { identification: Identification::Random, ..IpSettings::default() };
    let packets = sent_packets(ip, "16.0.0.1");
    let mut numbers: Vec<u16> = packets.iter().map(|packet| identification(packet)).collect();
    assert_eq!(packets[0][6..8], [0x40, 0]);
    let steps = numbers.windows(2).filter(|pair| pair[1].wrapping_sub(pair[0]) == 1).count();
    assert!(steps <= 1, "{numbers:?}");
    numbers.sort_unstable();
    numbers.dedup();
    assert!(numbers.len() + 1 >= packets.len(), "{numbers:?}");
}

#[test]
fn flow_label_is_per_flow_or_fixed() {
    let labels = |flow_label| {
        let packets =
            sent_packets(IpSettings { flow_label, ..IpSettings::default() }, "2001:db8:1::1");
        let label = |packet: &Vec<u8>| {
            u32::from_be_bytes([packet[0], packet[1], packet[2], packet[3]]) & 0xf_ffff
        };
        let mut labels: Vec<u32> = packets.iter().map(label).collect();
        labels.sort_unstable();
        labels.dedup();
        labels
    };
    assert_eq!(labels(FlowLabel::Zero), [0]);
    assert_eq!(labels(FlowLabel::Value(0x1_2345)), [0x1_2345]);
    let of_flows = labels(FlowLabel::PerFlow);
    assert_eq!(of_flows.len(), 2);
    assert!(!of_flows.contains(&0));
}

/// A server at port 80 with a blackhole setting, and a SYN to port 81.
fn swallowing(blackhole: Blackhole) -> (World, Vec<u8>) {
    let buffers = Buffers::default();
    let load = Load::Concurrent(1);
    let asks = template(vec![], client("16.0.0.1", 81, load, Some(1)));
    let mut world = World::of(vec![asks], vec![], &buffers);
    let mut options = options(vec![template(vec![], server(80))], &buffers, 2);
    options.verifies_checksums = false;
    options.blackhole = blackhole;
    world.server = Endpoint::new(options, Instant::ZERO);
    let mut syn = Vec::new();
    world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
    pass_by(&mut world.up, |frame| syn = frame.to_vec());
    // Drop the queued frames, so that only the test's frames remain.
    let mut batch = Vec::new();
    world.up.1.receive(64, &mut batch).unwrap();
    batch.into_iter().for_each(|received| world.up.1.release(received));
    (world, syn)
}

/// Number of frames that answer a frame.
fn answers(world: &mut World, bytes: &[u8]) -> usize {
    let (transmit, _) = &mut world.up;
    let frame = transmit.take().unwrap();
    transmit.frame_mut(&frame)[..bytes.len()].copy_from_slice(bytes);
    transmit.send(frame, bytes.len(), Instant::ZERO);
    transmit.flush().unwrap();
    world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
    let mut batch = Vec::new();
    world.down.1.receive(64, &mut batch).unwrap();
    let count = batch.len();
    batch.into_iter().for_each(|received| world.down.1.release(received));
    count
}

/// RFC 9293 section 3.10.7.2, fourth; a port without listener answers by section 3.10.7.1.
#[test]
fn listener_ignores_segments_without_syn_and_ack() {
    // Without flags, FIN, PSH, URG; then a segment with ACK, and a RST.
    let cases =
        [(0, [0, 1]), (1, [0, 1]), (8, [0, 1]), (0x20, [0, 1]), (0x11, [1, 1]), (4, [0, 0])];
    for (flags, expected) in cases {
        let found = [80_u16, 81].map(|port| {
            let (mut world, mut segment) = swallowing(Blackhole::None);
            segment[36..38].copy_from_slice(&port.to_be_bytes());
            segment[47] = flags;
            let found = answers(&mut world, &segment);
            let unmatched = world.server.unmatched();
            assert_eq!((unmatched.no_flow, unmatched.malformed), (1, 0), "{flags:x}");
            found
        });
        assert_eq!(found, expected, "{flags:x}");
    }
}

/// RFC 8200 sections 4.2 and 4.4, RFC 5095.
#[test]
fn packets_with_invalid_extensions_are_discarded() {
    const ETHERNET_AND_IPV6: usize = 14 + 40;
    // What follows the next header field, in a header of options or routing.
    let cases = [
        (0, [0, 1, 4, 0, 0, 0, 0], 1),
        (60, [0, 1, 4, 0, 0, 0, 0], 1),
        // Options of an unknown type.
        (60, [0, 0x1e, 4, 0, 0, 0, 0], 1),
        (60, [0, 0x5e, 4, 0, 0, 0, 0], 0),
        (60, [0, 0x9e, 4, 0, 0, 0, 0], 0),
        (0, [0, 0xde, 4, 0, 0, 0, 0], 0),
        (60, [0, 0, 0, 0x5e, 2, 0, 0], 0),
        // Longer than its header.
        (60, [0, 0x1e, 5, 0, 0, 0, 0], 0),
        // Routing type 0 with no segments left, and with one; an unknown type.
        (43, [0, 0, 0, 0, 0, 0, 0], 1),
        (43, [0, 0, 1, 0, 0, 0, 0], 0),
        (43, [0, 99, 1, 0, 0, 0, 0], 0),
    ];
    for (kind, header, expected) in cases {
        let buffers = Buffers::default();
        let load = Load::Concurrent(1);
        let asks = template(vec![], client("2001:db8:1::1", 80, load, Some(1)));
        let mut world = World::of(vec![asks], vec![template(vec![], server(80))], &buffers);
        let mut syn = Vec::new();
        world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
        pass_by(&mut world.up, |frame| {
            syn = frame.to_vec();
            // To a MAC address of no host.
            frame[12] = 0;
        });
        world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
        let next = std::mem::replace(&mut syn[20], kind);
        syn.splice(ETHERNET_AND_IPV6..ETHERNET_AND_IPV6, [&[next][..], &header].concat());
        let length = (syn.len() - ETHERNET_AND_IPV6) as u16;
        syn[18..20].copy_from_slice(&length.to_be_bytes());
        assert_eq!(answers(&mut world, &syn), expected, "{kind}: {header:?}");
    }
}

/// RFC 9293 section 3.10.7.1, and how `blackhole(4)` of BSD changes it.
#[test]
fn blackhole_suppresses_resets() {
    for (blackhole, expected) in [
        (Blackhole::None, [1, 1, 1, 1]),
        (Blackhole::Syn, [0, 1, 1, 1]),
        (Blackhole::All, [0, 0, 0, 1]),
    ] {
        let (mut world, syn) = swallowing(blackhole);
        let mut acknowledgement = syn.clone();
        acknowledgement[47] = 0x10;
        let mut datagram = syn.clone();
        datagram[23] = 17;
        datagram[38..42].copy_from_slice(&[0, 26, 0, 0]);
        let mut to_server = syn.clone();
        to_server[36..38].copy_from_slice(&80_u16.to_be_bytes());
        let frames = [&syn, &acknowledgement, &datagram, &to_server];
        let found = frames.map(|frame| answers(&mut world, frame));
        assert_eq!(found, expected, "{blackhole:?}");
        let unmatched = world.server.unmatched();
        assert_eq!((unmatched.no_template, unmatched.no_flow), (1, 2), "all are counted");
        let resets = expected[0] + expected[1];
        assert_eq!(world.server.tcp().rst_sent, resets as u64);
        assert_eq!(unmatched.unreachable_sent, expected[2] as u64);
    }
}
