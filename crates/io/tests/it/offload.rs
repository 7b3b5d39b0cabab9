//! The offload port on the two ends of a veth pair.

use wirestorm_base::contract::PortPair;
use wirestorm_base::port::{Offloads, Receive, Received, Segmentation, Transmit};
use wirestorm_base::port_contract;
use wirestorm_base::time::Instant;
use wirestorm_io::af_packet::{
    AfPacketOptions, AfPacketReceive, AfPacketTransmit, FetchExtent, OffloadReceive,
    OffloadTransmit,
};
use wirestorm_io::clock;
use wirestorm_io::link::Link;
use wirestorm_wire::checksum;
use wirestorm_wire::packet::{ipv4, protocol, tcp};

use crate::support::{VethPair, check_link_down, check_removed_interface, eventually, run};

fn open(pair: &VethPair) -> (OffloadTransmit, OffloadReceive) {
    open_with(pair, FetchExtent::Whole)
}

fn open_with(pair: &VethPair, fetched: FetchExtent) -> (OffloadTransmit, OffloadReceive) {
    let options = |interface| AfPacketOptions {
        queueing_bypass: false,
        ..AfPacketOptions::new(Clone::clone(interface))
    };
    let transmit = OffloadTransmit::open(&options(&pair.left)).unwrap();
    (transmit, OffloadReceive::open(&options(&pair.right), fetched).unwrap())
}

fn open_ring(pair: &VethPair) -> (OffloadTransmit, OffloadReceive) {
    let (transmit, _) = open(pair);
    let receive = OffloadReceive::open_ring(&AfPacketOptions::new(pair.right.clone())).unwrap();
    (transmit, receive)
}

fn connect_with(
    mtu: u32,
    open: impl FnOnce(&VethPair) -> (OffloadTransmit, OffloadReceive),
) -> Option<PortPair<OffloadTransmit, OffloadReceive>> {
    let pair = VethPair::with(&[], mtu)?;
    let (transmit, receive) = open(&pair);
    Some(PortPair { transmit, receive, now: clock::now, window: 128, wire: Box::new(pair) })
}

fn connect() -> Option<PortPair<OffloadTransmit, OffloadReceive>> {
    connect_with(1500, open)
}

port_contract!(contract, connect);

fn connect_jumbo() -> Option<PortPair<OffloadTransmit, OffloadReceive>> {
    connect_with(9000, open)
}

port_contract!(contract_with_jumbo_frames, connect_jumbo);

fn connect_beginning() -> Option<PortPair<OffloadTransmit, OffloadReceive>> {
    connect_with(1500, |pair| open_with(pair, FetchExtent::HeadersOnly))
}

port_contract!(contract_where_beginnings_are_fetched, connect_beginning);

fn connect_ring() -> Option<PortPair<OffloadTransmit, OffloadReceive>> {
    connect_with(1500, open_ring)
}

port_contract!(contract_of_a_ring, connect_ring);

fn connect_jumbo_ring() -> Option<PortPair<OffloadTransmit, OffloadReceive>> {
    connect_with(9000, open_ring)
}

port_contract!(contract_of_a_ring_with_jumbo_frames, connect_jumbo_ring);

const HEADERS: usize = 14 + 20 + 20;
const SEGMENT: u16 = 1_000;

/// A TCP segment with `data` bytes of data and a pseudo header checksum, for segmentation.
fn long_frame(data: usize) -> (Vec<u8>, Segmentation) {
    let (from, to) = ([10, 9, 8, 1], [10, 9, 8, 2]);
    let ethernet = [[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1].as_slice(), &[0x08, 0x00]].concat();
    let mut ip = [0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol::TCP, 0, 0, 10, 9, 8, 1, 10, 9, 8, 2];
    ip[2..4].copy_from_slice(&((20 + 20 + data) as u16).to_be_bytes());
    let sum = checksum::checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut header = [0x10, 0x00, 0x20, 0x00, 0, 0, 0, 7, 0, 0, 0, 9, 0x50, 0x18, 1, 0, 0, 0, 0, 0];
    let pseudo_header = checksum::pseudo_header_ipv4(from, to, protocol::TCP, (20 + data) as u16);
    header[tcp::field::CHECKSUM].copy_from_slice(&pseudo_header.to_be_bytes());
    let data: Vec<u8> = (0..data).map(|place| (place * 7 / 3) as u8).collect();
    let segments =
        Segmentation { is_ipv6: false, transport: 34, headers: HEADERS as u16, data: SEGMENT };
    ([ethernet.as_slice(), &ip, &header, &data].concat(), segments)
}

fn push_long(transmit: &mut OffloadTransmit, data: usize) -> Vec<u8> {
    let (frame, segments) = long_frame(data);
    let buffer = transmit.take().unwrap();
    transmit.frame_mut(&buffer)[..frame.len()].copy_from_slice(&frame);
    transmit.send_segments(buffer, frame.len(), &segments, Instant::ZERO);
    frame
}

fn send_long(transmit: &mut OffloadTransmit, data: usize) -> Vec<u8> {
    let frame = push_long(transmit, data);
    transmit.flush().unwrap();
    frame
}

fn receive(receiver: &mut impl Receive, count: usize) -> Vec<(Vec<u8>, Offloads)> {
    let mut frames = Vec::new();
    let mut batch: Vec<Received> = Vec::new();
    eventually("frames", || {
        receiver.receive(64, &mut batch).unwrap();
        for received in batch.drain(..) {
            frames.push((receiver.frame(&received).to_vec(), received.offloads));
            receiver.release(received);
        }
        (frames.len() >= count).then_some(())
    });
    frames
}

#[test]
fn long_frame_crosses_a_veth_in_one_piece() {
    let Some(pair) = VethPair::new() else { return };
    assert_eq!(Link::open(&pair.left).unwrap().segmentation_offload, Some(true));
    let (mut transmit, mut receiver) = open(&pair);
    for data in [2_001, 40_000, 65_000] {
        let sent = send_long(&mut transmit, data);
        let offloads = Offloads { is_verified: true, segment_data: SEGMENT };
        assert_eq!(receive(&mut receiver, 1), [(sent, offloads)]);
        assert_eq!(offloads.segments(data as u32), data.div_ceil(1_000) as u16);
    }
    let counters = transmit.transmitted();
    assert_eq!((counters.sent, counters.failed), (3, 0));
    assert_eq!(counters.sent_bytes, 3 * HEADERS as u64 + 107_001);
}

/// Checks frames longer than the interface's MTU, and one that fits it.
fn beginnings_arrive(
    (mut transmit, mut receiver): (OffloadTransmit, OffloadReceive),
    length_max: usize,
) {
    for data in [40_000, 65_000, 1_400] {
        let sent = send_long(&mut transmit, data);
        let [(frame, offloads)] = receive(&mut receiver, 1).try_into().unwrap();
        assert_eq!((frame.len(), offloads.is_verified), (sent.len(), true));
        assert_eq!(offloads.segments(data as u32), data.div_ceil(1_000) as u16);
        let beginning = if sent.len() <= length_max { sent.len() } else { HEADERS };
        assert_eq!(frame[..beginning], sent[..beginning]);
    }
    assert_eq!(receiver.received().received_bytes, 3 * HEADERS as u64 + 106_400);
}

#[test]
fn long_frame_reports_its_beginning_and_its_length() {
    let Some(pair) = VethPair::new() else { return };
    let length_max = Link::open(&pair.right).unwrap().frame_length_max();
    beginnings_arrive(open_with(&pair, FetchExtent::HeadersOnly), length_max);
    beginnings_arrive(open_ring(&pair), length_max);
}

/// Packets delivered to the kernel of a namespace (`InReceives` of RFC 4293).
fn packets_for_the_host(pair: &VethPair) -> u64 {
    let printed = run(&pair.right.namespace, "cat", &["/proc/net/snmp"]);
    let value = printed.lines().filter(|line| line.starts_with("Ip:")).nth(1);
    value.and_then(|line| line.split_whitespace().nth(3)?.parse().ok()).unwrap()
}

/// Sends a frame without offloads, and waits until it arrives.
fn send_plain(pair: &VethPair, frame: &[u8], receiver: &mut OffloadReceive) -> (Vec<u8>, Offloads) {
    let mut transmit = AfPacketTransmit::open(&AfPacketOptions::new(pair.left.clone())).unwrap();
    let buffer = transmit.take().unwrap();
    transmit.frame_mut(&buffer)[..frame.len()].copy_from_slice(frame);
    transmit.send(buffer, frame.len(), Instant::ZERO);
    transmit.flush().unwrap();
    let [arrived] = receive(receiver, 1).try_into().unwrap();
    arrived
}

#[test]
fn host_receives_ring_frames_only_if_it_has_an_address() {
    let Some(pair) = VethPair::new() else { return };
    let mut segment = long_frame(100).0;
    segment[..6].copy_from_slice(&Link::open(&pair.right).unwrap().mac.unwrap());
    let mut ping = segment.clone();
    ping[14 + 9] = protocol::ICMP;
    ping[14 + 10..14 + 12].fill(0);
    let sum = checksum::checksum(&ping[14..34]);
    ping[14 + 10..14 + 12].copy_from_slice(&sum.to_be_bytes());
    {
        let (_, mut receiver) = open_ring(&pair);
        send_plain(&pair, &segment, &mut receiver);
        assert_eq!(packets_for_the_host(&pair), 0);
        send_plain(&pair, &ping, &mut receiver);
        assert_eq!(packets_for_the_host(&pair), 1);
    }
    run(&pair.right.namespace, "ip", &["addr", "add", "10.9.8.2/24", "dev", "right"]);
    let (_, mut receiver) = open_ring(&pair);
    send_plain(&pair, &segment, &mut receiver);
    assert_eq!(packets_for_the_host(&pair), 2);
}

#[test]
fn ring_reports_unverified_checksums() {
    let Some(pair) = VethPair::new() else { return };
    let (_, mut receiver) = open_ring(&pair);
    let frame = long_frame(100).0;
    let offloads = Offloads { is_verified: false, segment_data: 0 };
    assert_eq!(send_plain(&pair, &frame, &mut receiver), (frame, offloads));
}

#[test]
fn frames_beyond_a_full_ring_count_as_missed() {
    const FRAMES: u64 = 50_000;
    let Some(pair) = VethPair::new() else { return };
    let (_, mut receiver) = open_ring(&pair);
    let mut transmit = AfPacketTransmit::open(&AfPacketOptions::new(pair.left.clone())).unwrap();
    let frame = long_frame(10).0;
    for _ in 0..FRAMES {
        let buffer = eventually("a free buffer", || {
            transmit.take().or_else(|| {
                transmit.flush().unwrap();
                None
            })
        });
        transmit.frame_mut(&buffer)[..frame.len()].copy_from_slice(&frame);
        transmit.send(buffer, frame.len(), Instant::ZERO);
    }
    eventually("all to have left", || {
        transmit.flush().unwrap();
        (transmit.transmitted().sent == FRAMES).then_some(())
    });
    let missed = receiver.received().rx_dropped;
    assert!((1..FRAMES).contains(&missed), "{missed}");
    receive(&mut receiver, (FRAMES - missed) as usize);
    let counters = receiver.received();
    assert_eq!((counters.received, counters.rx_dropped), (FRAMES, missed));
}

#[test]
fn kernel_segments_if_the_interface_does_not() {
    let Some(pair) = VethPair::new() else { return };
    run(&pair.left.namespace, "ethtool", &["-K", "left", "tso", "off"]);
    assert_eq!(Link::open(&pair.left).unwrap().segmentation_offload, Some(false));
    let (mut transmit, mut receiver) = open(&pair);
    let sent = send_long(&mut transmit, 2_500);
    let segments = receive(&mut receiver, 3);
    assert_eq!(segments.len(), 3);
    let mut data = Vec::new();
    for (number, (frame, _)) in segments.iter().enumerate() {
        let packet = ipv4::Packet::new(&frame[14..]).unwrap();
        let segment = tcp::Packet::new(packet.payload()).unwrap();
        assert_eq!(packet.checksum(), packet.computed_checksum());
        assert_eq!(segment.sequence(), 7 + number as u32 * u32::from(SEGMENT));
        data.extend_from_slice(&packet.payload()[20..]);
    }
    assert_eq!(data, sent[HEADERS..]);
}

#[test]
fn vlan_tags_are_restored_on_receive() {
    let Some(pair) = VethPair::new() else { return };
    let (_, mut receiver) = open(&pair);
    let (_, mut ring) = open_ring(&pair);
    let mut transmit = AfPacketTransmit::open(&AfPacketOptions::new(pair.left.clone())).unwrap();
    let tags: [&[u8]; 3] = [
        &[0x81, 0x00, 0xe0, 0x64, 0x08, 0x00],
        &[0x88, 0xa8, 0x00, 0x0a, 0x81, 0x00, 0x20, 0x0b, 0x08, 0x00],
        &[0x81, 0x00, 0x00, 0x00, 0x08, 0x06],
    ];
    let frames = tags.map(|tag| {
        let mut frame = vec![0x55; 64];
        frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1]);
        frame[12..12 + tag.len()].copy_from_slice(tag);
        let buffer = transmit.take().unwrap();
        transmit.frame_mut(&buffer)[..64].copy_from_slice(&frame);
        transmit.send(buffer, 64, Instant::ZERO);
        frame
    });
    transmit.flush().unwrap();
    for receiver in [&mut receiver, &mut ring] {
        let received: Vec<_> = receive(receiver, 3).into_iter().map(|(frame, _)| frame).collect();
        assert_eq!(received, frames);
    }
}

#[test]
fn ring_reports_frames_that_need_no_checksum() {
    let Some(pair) = VethPair::new() else { return };
    let (mut transmit, _) = open(&pair);
    let mut receiver = AfPacketReceive::open(&AfPacketOptions::new(pair.right.clone())).unwrap();
    let sent = send_long(&mut transmit, 3_000);
    let offloads = Offloads { is_verified: true, segment_data: 0 };
    assert_eq!(receive(&mut receiver, 1), [(sent, offloads)]);
}

#[test]
fn interface_down_stops_both_halves_until_it_is_up() {
    for open in [open, open_ring] {
        let Some(pair) = VethPair::new() else { return };
        let (mut transmit, mut receiver) = open(&pair);
        let frame = check_link_down(&pair, (&mut transmit, &mut receiver), |transmit| {
            drop(push_long(transmit, 3_000))
        });
        let sent = long_frame(3_000).0;
        assert_eq!((frame.len(), &frame[..HEADERS]), (sent.len(), &sent[..HEADERS]));
    }
}

#[test]
fn removed_interface_is_reported_as_gone() {
    for open in [open, open_ring] {
        let Some(pair) = VethPair::new() else { return };
        let (mut transmit, mut receiver) = open(&pair);
        check_removed_interface(&pair, (&mut transmit, &mut receiver), |transmit| {
            drop(push_long(transmit, 3_000))
        });
    }
}
