//! Contract tests of the ports in memory.

use std::sync::atomic::{AtomicU64, Ordering};

use wirestorm_base::contract::PortPair;
use wirestorm_base::port::{Receive, Transmit};
use wirestorm_base::port_contract;
use wirestorm_base::time::Instant;
use wirestorm_sim::memory::{MemoryReceive, MemorySink, MemoryTransmit, WireOptions, wire};

/// Returns a virtual time that advances by a microsecond with each call.
fn now() -> Instant {
    static LOOKS: AtomicU64 = AtomicU64::new(1);
    Instant::from_nanos(1_000 * LOOKS.fetch_add(1, Ordering::Relaxed))
}

fn connect_with(options: WireOptions) -> Option<PortPair<MemoryTransmit, MemoryReceive>> {
    let (transmit, receive) = wire(options);
    Some(PortPair { transmit, receive, now, window: options.frames, wire: Box::new(()) })
}

fn connect() -> Option<PortPair<MemoryTransmit, MemoryReceive>> {
    connect_with(WireOptions::default())
}

port_contract!(contract, connect);

fn connect_narrow() -> Option<PortPair<MemoryTransmit, MemoryReceive>> {
    connect_with(WireOptions { frames: 64, frame_length_max: 1_518 })
}

port_contract!(contract_with_few_buffers, connect_narrow);

#[test]
fn frames_leave_in_order_even_if_due_earlier() {
    let (mut transmit, mut receive) = wire(WireOptions { frames: 4, frame_length_max: 1_518 });
    for departure in [300, 200, 0, 400] {
        let frame = transmit.take().unwrap();
        transmit.send(frame, 60, Instant::from_nanos(departure));
    }
    transmit.flush().unwrap();
    let mut batch = Vec::new();
    receive.receive(4, &mut batch).unwrap();
    let arrivals: Vec<_> = batch.iter().map(|received| received.arrival.as_nanos()).collect();
    assert_eq!(arrivals, [300, 300, 300, 400]);
    let departures = transmit.departures().unwrap();
    assert_eq!(departures.frames, 3, "frames with a departure time");
    assert_eq!(departures.gaps.max().as_nanos(), 100);
}

#[test]
fn sink_records_only_the_departures_of_sent_frames() {
    let mut sink = MemorySink::new(WireOptions { frames: 4, frame_length_max: 1_518 });
    let send = |sink: &mut MemorySink, departure| {
        let frame = sink.take().unwrap();
        sink.send(frame, 60, Instant::from_nanos(departure));
    };
    send(&mut sink, 100);
    send(&mut sink, 250);
    sink.flush().unwrap();
    send(&mut sink, 400);
    assert_eq!(sink.in_flight(), 1);
    sink.abort();
    let (counters, departures) = (sink.transmitted(), sink.departures().unwrap());
    assert_eq!((counters.sent, counters.sent_bytes, counters.unsent), (2, 120, 1));
    assert_eq!(departures.frames, 2);
    assert_eq!(departures.first, Some(Instant::from_nanos(100)));
    assert_eq!(departures.last, Some(Instant::from_nanos(250)));
    let taken: Vec<_> = std::iter::from_fn(|| sink.take()).collect();
    assert_eq!(taken.len(), 4, "buffers");
}
