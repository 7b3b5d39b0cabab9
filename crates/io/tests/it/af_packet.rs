//! The packet socket port on the two ends of a veth pair.

use wirestorm_base::contract::PortPair;
use wirestorm_base::port::{Receive, Received, Transmit};
use wirestorm_base::port_contract;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_io::af_packet::{
    AfPacketError, AfPacketOptions, AfPacketReceive, AfPacketTransmit, Fanout, FanoutBy,
    FilterInstruction,
};
use wirestorm_io::clock;
use wirestorm_io::link::{Link, UnsuitableLinkError};
use wirestorm_io::namespace::InterfaceName;

use crate::support::{VethPair, check_link_down, check_removed_interface, eventually, run};

fn options(interface: &InterfaceName) -> AfPacketOptions {
    AfPacketOptions { frames: 256, ..AfPacketOptions::new(interface.clone()) }
}

fn open(pair: &VethPair) -> (AfPacketTransmit, AfPacketReceive) {
    let transmit = AfPacketTransmit::open(&options(&pair.left)).unwrap();
    (transmit, AfPacketReceive::open(&options(&pair.right)).unwrap())
}

fn connect() -> Option<PortPair<AfPacketTransmit, AfPacketReceive>> {
    connect_with(1500)
}

fn connect_with(mtu: u32) -> Option<PortPair<AfPacketTransmit, AfPacketReceive>> {
    let pair = VethPair::with(&[], mtu)?;
    let (transmit, receive) = open(&pair);
    Some(PortPair { transmit, receive, now: clock::now, window: 512, wire: Box::new(pair) })
}

port_contract!(contract, connect);

fn connect_jumbo() -> Option<PortPair<AfPacketTransmit, AfPacketReceive>> {
    connect_with(9000)
}

port_contract!(contract_with_jumbo_frames, connect_jumbo);

/// A 60-byte IPv4 frame for another MAC address.
fn frame_of(number: u8) -> [u8; 60] {
    let mut frame = [number; 60];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 0x08, 0x00]);
    frame
}

fn send(transmit: &mut AfPacketTransmit, bytes: &[u8]) {
    let frame = transmit.take().unwrap();
    transmit.frame_mut(&frame)[..bytes.len()].copy_from_slice(bytes);
    transmit.send(frame, bytes.len(), Instant::ZERO);
}

fn receive(receive: &mut AfPacketReceive, count: usize) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let mut batch: Vec<Received> = Vec::new();
    eventually("frames", || {
        receive.receive(64, &mut batch).unwrap();
        for received in batch.drain(..) {
            frames.push(receive.frame(&received).to_vec());
            receive.release(received);
        }
        (frames.len() >= count).then_some(())
    });
    frames
}

#[test]
fn wait_ends_on_a_frame_or_a_timeout() {
    let Some(pair) = VethPair::new() else { return };
    let (mut transmit, receiver) = open(&pair);
    let before = clock::now();
    receiver.wait(Duration::from_millis(20));
    assert!(clock::now().saturating_since(before) >= Duration::from_millis(20));
    send(&mut transmit, &frame_of(1));
    transmit.flush().unwrap();
    // Without the frame this would exceed the time limit of a test.
    receiver.wait(Duration::from_secs(3_600));
}

#[test]
fn vlan_tags_are_restored_on_receive() {
    let Some(pair) = VethPair::new() else { return };
    let (mut transmit, mut receiver) = open(&pair);
    let mut single = frame_of(1).to_vec();
    single[12..18].copy_from_slice(&[0x81, 0x00, 0xe0, 0x64, 0x08, 0x00]);
    let mut double = frame_of(2).to_vec();
    double[12..22].copy_from_slice(&[0x88, 0xa8, 0x00, 0x0a, 0x81, 0x00, 0x20, 0x0b, 0x08, 0x00]);
    let mut priority = frame_of(3).to_vec();
    priority[12..18].copy_from_slice(&[0x81, 0x00, 0x00, 0x00, 0x08, 0x06]);
    for frame in [&single, &double, &priority] {
        send(&mut transmit, frame);
    }
    transmit.flush().unwrap();
    assert_eq!(receive(&mut receiver, 3), [single, double, priority]);
}

#[test]
fn frames_that_the_kernel_would_reject_count_as_failed() {
    let Some(pair) = VethPair::new() else { return };
    let (mut transmit, mut receiver) = open(&pair);
    let mut too_long = vec![0; 1515];
    too_long[12..14].copy_from_slice(&[0x08, 0x00]);
    send(&mut transmit, &too_long);
    send(&mut transmit, &[0; 13]);
    send(&mut transmit, &frame_of(7));
    transmit.flush().unwrap();
    assert_eq!(receive(&mut receiver, 1), [frame_of(7).to_vec()]);
    let counters = transmit.transmitted();
    assert_eq!((counters.sent, counters.failed, counters.sent_bytes), (1, 2, 60));
}

#[test]
fn interface_down_stops_both_halves_until_it_is_up() {
    let Some(pair) = VethPair::new() else { return };
    let (mut transmit, mut receiver) = open(&pair);
    let frame = check_link_down(&pair, (&mut transmit, &mut receiver), |transmit| {
        send(transmit, &frame_of(1))
    });
    assert_eq!(frame, frame_of(1));
}

#[test]
fn removed_interface_is_reported_as_gone() {
    let Some(pair) = VethPair::new() else { return };
    let (mut transmit, mut receiver) = open(&pair);
    check_removed_interface(&pair, (&mut transmit, &mut receiver), |transmit| {
        send(transmit, &frame_of(1))
    });
}

#[test]
fn peer_that_is_down_is_an_error_instead_of_an_endless_retry() {
    let Some(pair) = VethPair::new() else { return };
    let mut transmit = AfPacketTransmit::open(&options(&pair.left)).unwrap();
    run(&pair.right.namespace, "ip", &["link", "set", "right", "down"]);
    send(&mut transmit, &frame_of(1));
    let error = eventually("an error", || transmit.flush().err());
    assert!(error.to_string().contains("no carrier"), "{error}");
    let counters = transmit.transmitted();
    assert!(counters.retried_no_buffers > 0);
    assert_eq!((counters.sent, transmit.in_flight()), (0, 1));
    transmit.abort();
    assert_eq!((transmit.transmitted().unsent, transmit.in_flight()), (1, 0));
}

#[test]
fn promiscuous_mode_ends_with_the_port() {
    let Some(pair) = VethPair::new() else { return };
    let promiscuity = || run(&pair.right.namespace, "ip", &["-d", "link", "show", "right"]);
    assert!(promiscuity().contains("promiscuity 0 "));
    let receiver = AfPacketReceive::open(&options(&pair.right)).unwrap();
    assert!(promiscuity().contains("promiscuity 1 "));
    drop(receiver);
    eventually("the mode to end", || promiscuity().contains("promiscuity 0 ").then_some(()));
}

#[test]
fn frames_beyond_a_full_ring_count_as_missed() {
    let Some(pair) = VethPair::new() else { return };
    let mut transmit = AfPacketTransmit::open(&options(&pair.left)).unwrap();
    let small = AfPacketOptions { receive_ring_bytes: 256 << 10, ..options(&pair.right) };
    let mut receiver = AfPacketReceive::open(&small).unwrap();
    let total = 4000_u64;
    for number in 0..total {
        eventually("a buffer", || {
            let free = transmit.take();
            if free.is_none() {
                transmit.flush().unwrap();
            }
            free.map(|frame| {
                let bytes = frame_of(number as u8);
                transmit.frame_mut(&frame)[..60].copy_from_slice(&bytes);
                transmit.send(frame, 60, Instant::ZERO);
            })
        });
    }
    eventually("all to leave", || {
        transmit.flush().unwrap();
        (transmit.in_flight() == 0).then_some(())
    });
    let missed = receiver.received().rx_dropped;
    assert!(missed > 0, "4000 frames fit into 256 KiB");
    let arrived = receive(&mut receiver, (total - missed) as usize);
    assert_eq!(arrived.len() as u64, total - missed);
    assert_eq!(receiver.received().received, total);
    // The ring space was released: the next frame arrives.
    send(&mut transmit, &frame_of(200));
    transmit.flush().unwrap();
    assert_eq!(receive(&mut receiver, 1), [frame_of(200).to_vec()]);
}

#[test]
fn filter_receives_only_matching_frames() {
    let Some(pair) = VethPair::new() else { return };
    let mut transmit = AfPacketTransmit::open(&options(&pair.left)).unwrap();
    // Load the byte at offset 20; return all of the frame if it is 5, else nothing.
    let instruction = |code, jump_true, jump_false, operand| FilterInstruction {
        code,
        jump_true,
        jump_false,
        operand,
    };
    let filter = vec![
        instruction(0x30, 0, 0, 20),
        instruction(0x15, 0, 1, 5),
        instruction(0x06, 0, 0, 0x4_0000),
        instruction(0x06, 0, 0, 0),
    ];
    let filtered = AfPacketOptions { filter, ..options(&pair.right) };
    let mut receiver = AfPacketReceive::open(&filtered).unwrap();
    for number in [4, 5, 6, 5] {
        send(&mut transmit, &frame_of(number));
    }
    transmit.flush().unwrap();
    assert_eq!(receive(&mut receiver, 2), [frame_of(5), frame_of(5)]);
    assert_eq!(receiver.received().received, 2);
}

#[test]
fn fan_out_group_distributes_the_frames() {
    let Some(pair) = VethPair::new() else { return };
    let mut transmit = AfPacketTransmit::open(&options(&pair.left)).unwrap();
    let member = |queue| {
        let fanout = Some(Fanout { group: 7, by: FanoutBy::RoundRobin });
        let options = AfPacketOptions { fanout, queue, ..options(&pair.right) };
        AfPacketReceive::open(&options).unwrap()
    };
    let mut members = [member(0), member(1)];
    for number in 0..100 {
        send(&mut transmit, &frame_of(number));
    }
    transmit.flush().unwrap();
    let mut batch = Vec::new();
    eventually("all frames", || {
        for member in &mut members {
            member.receive(64, &mut batch).unwrap();
        }
        (batch.len() == 100).then_some(())
    });
    let of_first = batch.iter().filter(|received| received.queue == 0).count();
    assert_eq!(of_first, 50, "frames of the first member");
}

#[test]
fn frames_sent_by_the_interface_are_not_received() {
    let Some(pair) = VethPair::new() else { return };
    let (mut transmit, mut receiver) = open(&pair);
    let mut port = AfPacketReceive::open(&options(&pair.left)).unwrap();
    // Without the bypass, so that taps on this host get a copy.
    let plain = AfPacketOptions { queueing_bypass: false, ..options(&pair.left) };
    let mut through_queue = AfPacketTransmit::open(&plain).unwrap();
    send(&mut through_queue, &frame_of(1));
    through_queue.flush().unwrap();
    send(&mut transmit, &frame_of(2));
    transmit.flush().unwrap();
    assert_eq!(receive(&mut receiver, 2), [frame_of(1), frame_of(2)]);
    assert_eq!(port.received().received, 0);
    assert_eq!(port.receive(8, &mut Vec::new()), Ok(0));
}

#[test]
fn port_and_kernel_counters_agree() {
    let Some(pair) = VethPair::new() else { return };
    let (mut transmit, mut receiver) = open(&pair);
    let before = Link::open(&pair.left).unwrap().counters;
    for number in 0..200 {
        send(&mut transmit, &frame_of(number));
    }
    transmit.flush().unwrap();
    receive(&mut receiver, 200);
    let after = Link::open(&pair.left).unwrap().counters;
    assert_eq!(after.transmit_packets - before.transmit_packets, transmit.transmitted().sent);
    assert_eq!(after.transmit_bytes - before.transmit_bytes, transmit.transmitted().sent_bytes);
}

#[test]
fn opening_an_interface_that_is_down_fails() {
    let Some(pair) = VethPair::new() else { return };
    run(&pair.left.namespace, "ip", &["link", "set", "left", "down"]);
    let Err(error) = AfPacketTransmit::open(&options(&pair.left)) else { panic!("it opened") };
    assert!(matches!(error, AfPacketError::Link(UnsuitableLinkError::Down(_))), "{error}");
    assert!(error.to_string().contains("ip link set left up"), "{error}");
}
