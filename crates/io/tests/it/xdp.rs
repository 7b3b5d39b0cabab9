//! The in-kernel sender and the counting receiver on the two ends of a veth pair.

use wirestorm_base::contract::PortPair;
use wirestorm_base::departure::{CatchUp, DeparturePolicy};
use wirestorm_base::port::Transmit;
use wirestorm_base::port_contract;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_io::af_packet::{AfPacketOptions, AfPacketReceive};
use wirestorm_io::af_xdp::{AfXdp, AfXdpOptions, AfXdpReceive, Direction};
use wirestorm_io::clock;
use wirestorm_io::link::Link;
use wirestorm_io::xdp::{CpuArrivals, XdpCounter, XdpTransmit, XdpTransmitOptions};

use crate::support::{VethPair, eventually, ping, run};

fn open_with(pair: &VethPair, policy: DeparturePolicy, paced: bool) -> XdpTransmit {
    let link = Link::open(&pair.left).unwrap();
    let options = XdpTransmitOptions {
        interface: pair.left.name().to_owned(),
        frame_length_max: link.frame_length_max(),
        untagged_length_max: link.untagged_length_max(),
        cpu: None,
        policy,
        paced,
        store_bytes: 1 << 20,
        resident: None,
    };
    pair.left.namespace.enter(|| XdpTransmit::open(&options)).unwrap().unwrap()
}

fn open(pair: &VethPair) -> XdpTransmit {
    open_with(pair, DeparturePolicy::default(), true)
}

fn count(pair: &VethPair) -> XdpCounter {
    let open = || XdpCounter::open(pair.right.name(), true);
    pair.right.namespace.enter(open).unwrap().unwrap()
}

/// Sends `frames` frames of 60 bytes and waits until all have left. `due(n)` is the departure time
/// of frame n.
fn send(port: &mut XdpTransmit, frames: u64, due: impl Fn(u64) -> Instant) {
    let mut sent = 0;
    eventually("frames to leave", || {
        while sent < frames
            && let Some(frame) = port.take()
        {
            port.frame_mut(&frame)[..60].copy_from_slice(&[0x5a; 60]);
            port.send(frame, 60, due(sent));
            sent += 1;
        }
        port.flush().unwrap();
        (sent == frames && port.in_flight() == 0).then_some(())
    });
}

fn connect_to_socket() -> Option<PortPair<XdpTransmit, AfPacketReceive>> {
    let pair = VethPair::new()?;
    run(&pair.right.namespace, "ethtool", &["-K", "right", "gro", "on"]);
    let receive = AfPacketReceive::open(&AfPacketOptions::new(pair.right.clone())).unwrap();
    let transmit = open(&pair);
    Some(PortPair { transmit, receive, now: clock::now, window: 512, wire: Box::new(pair) })
}

port_contract!(contract_to_packet_socket, connect_to_socket);

fn connect_to_af_xdp() -> Option<PortPair<XdpTransmit, AfXdpReceive>> {
    let pair = VethPair::new()?;
    let options = AfXdpOptions::new(pair.right.clone(), Direction::Receive);
    let receive = AfXdp::open(&options).unwrap().receive.pop().unwrap();
    let transmit = open(&pair);
    Some(PortPair { transmit, receive, now: clock::now, window: 512, wire: Box::new(pair) })
}

port_contract!(contract_to_af_xdp, connect_to_af_xdp);

#[test]
fn frames_dropped_by_the_driver_count_as_failed() {
    // A peer without XDP program and GRO accepts no redirected frames.
    let Some(pair) = VethPair::new() else { return };
    let mut port = open(&pair);
    send(&mut port, 100, |_| Instant::ZERO);
    let counters = port.transmitted();
    assert_eq!((counters.sent, counters.failed), (0, 100));
}

#[test]
fn counter_counts_and_times_every_frame() {
    let Some(pair) = VethPair::new() else { return };
    let counter = count(&pair);
    let mut port = open(&pair);
    let start = clock::now().as_nanos() + 2_000_000;
    send(&mut port, 1_000, |number| Instant::from_nanos(start + number * 10_000));
    let arrived: Vec<CpuArrivals> = counter.read().unwrap();
    assert_eq!(arrived.iter().map(|cpu| cpu.packets).sum::<u64>(), 1_000);
    assert_eq!(arrived.iter().map(|cpu| cpu.bytes).sum::<u64>(), 60_000);
    let first = arrived.iter().filter_map(|cpu| cpu.first).min().unwrap();
    let last = arrived.iter().filter_map(|cpu| cpu.last).max().unwrap();
    let record = port.departures().unwrap();
    assert!(first >= record.first.unwrap() && last >= record.last.unwrap());
    assert_eq!(record.frames, 1_000);
    assert_eq!(record.gaps.count(), 999);
    assert_eq!(port.transmitted().sent, 1_000);
}

#[test]
fn counter_passes_neighbour_discovery_and_pings_to_the_kernel() {
    let Some(pair) = VethPair::new() else { return };
    let counter = count(&pair);
    pair.add_addresses();
    assert!(ping(&pair.left.namespace, &["10.9.8.2"]), "requests arrive at the counter");
    assert!(ping(&pair.right.namespace, &["10.9.8.1"]), "replies arrive at the counter");
    let signed = ["-p", "5753", "10.9.8.2"];
    assert!(!ping(&pair.left.namespace, &signed), "test traffic ends there");
    let arrived = counter.read().unwrap();
    let neighbours: u64 = arrived.iter().map(|cpu| cpu.neighbour_packets).sum();
    let packets: u64 = arrived.iter().map(|cpu| cpu.packets).sum();
    assert!(neighbours >= 1);
    assert_eq!(packets, neighbours + 3);
}

#[test]
fn counter_passes_neighbour_discovery_and_pings_in_two_vlans_to_the_kernel() {
    for is_beside in [true, false] {
        let Some(pair) = VethPair::new() else { return };
        let counter = count(&pair);
        pair.set_stag_offload(is_beside);
        pair.add_addresses();
        pair.join_two_vlans();
        assert!(ping(&pair.left.namespace, &["10.9.8.2"]), "beside the frame: {is_beside}");
        let arrived = counter.read().unwrap();
        assert!(arrived.iter().map(|cpu| cpu.neighbour_packets).sum::<u64>() >= 1);
    }
}

#[test]
fn strict_schedule_skips_late_frames() {
    let Some(pair) = VethPair::new() else { return };
    let _counter = count(&pair);
    let policy = DeparturePolicy { catch_up: CatchUp::Strict, backlog: Duration::from_millis(1) };
    let mut port = open_with(&pair, policy, true);
    let start = clock::now().as_nanos();
    // The schedule starts with the first frame; the others are due 100 ms before it.
    send(&mut port, 10, |number| match number {
        0 => Instant::from_nanos(start),
        _ => Instant::from_nanos(start - 100_000_000 + number),
    });
    assert_eq!(port.transmitted().unsent, 9);
    assert_eq!(port.transmitted().sent, 1);
}

#[test]
fn bounded_schedule_shifts_by_the_lateness_beyond_the_backlog() {
    let Some(pair) = VethPair::new() else { return };
    let _counter = count(&pair);
    let mut port = open(&pair);
    let start = clock::now().as_nanos();
    send(&mut port, 2, |number| match number {
        0 => Instant::from_nanos(start),
        _ => Instant::from_nanos(start - 100_000_000),
    });
    let shifted = port.departures().unwrap().shifted;
    assert!(shifted >= Duration::from_millis(99), "{shifted}");
    assert_eq!(port.transmitted().sent, 2);
}

#[test]
fn kernel_catches_up_with_a_bounded_schedule_like_the_process() {
    const GAP: u64 = 1_000_000;
    let Some(pair) = VethPair::new() else { return };
    let _counter = count(&pair);
    let mut port = open(&pair);
    let start = clock::now().as_nanos();
    // All frames but the first are 100 ms late.
    let late = |number: u64| start - 100 * GAP + number * GAP;
    send(&mut port, 100, |number| {
        Instant::from_nanos(if number == 0 { start } else { late(number) })
    });
    let record = port.departures().unwrap();
    assert_eq!(record.frames, 100);
    // The gaps shrink to no less than an eighth, and less for the last ones.
    let regained = Duration::from_millis(70);
    assert!(record.recovered >= regained && record.recovered <= record.shifted, "{record:?}");
    let span = record.last.unwrap().saturating_since(record.first.unwrap());
    assert!(span >= Duration::from_nanos(90 * (GAP / 8)), "{span}: no burst but the backlog");
}
