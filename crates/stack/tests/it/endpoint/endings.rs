//! Open connections at the end of a run, peers that close between two requests, and the first ports
//! of clients.

use std::collections::BTreeSet;

use wirestorm_base::port::Transmit;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_model::load::Load;
use wirestorm_stack::endpoint::{ResetCursor, Role};
use wirestorm_stack::program::{Buffer, Buffers, Cause, Instruction};

use super::world::{SECOND, World, client, frames, pass_by, rate};

/// Creates connections without data.
fn idle(connections: u64) -> World {
    let wait = [Instruction::Connect, Instruction::WaitForPeerClose];
    let load = Load::Concurrent(connections);
    let roles = vec![client("16.0.0.1", 80, load, Some(connections))];
    let mut world = World::with(roles, &Buffers::default(), &wait, &wait);
    world.run(SECOND, |_, _| {});
    assert_eq!(world.server.tcp().connects, connections);
    world
}

/// Resets the client's open connections, at most `most` per call; returns the number of calls.
fn reset_all(world: &mut World, most: usize) -> usize {
    let (mut from, mut calls) = (Some(ResetCursor::default()), 0);
    while let Some(place) = from {
        from = world.client.reset_open(place, most, world.now, &mut world.up.0);
        world.up.0.flush().unwrap();
        calls += 1;
        assert!(calls < 10_000, "it does not end");
        world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
    }
    calls
}

#[test]
fn reset_open_ends_the_peers_connections() {
    let mut world = idle(1_000);
    let before = (world.client.counters(), world.client.remaining());
    assert_eq!(reset_all(&mut world, 64), 1_000_usize.div_ceil(64));
    assert_eq!(world.server.counters().active, 0);
    assert_eq!(world.server.counters().reset, 1_000);
    let counters = world.client.counters();
    assert_eq!((counters.reset_at_end, counters.left_open), (1_000, 0));
    assert_eq!(world.client.tcp().rst_sent, 1_000);
    // The counters keep the state at the end of the run.
    assert_eq!((counters.active, counters.failed()), (before.0.active, 0));
    assert_eq!(world.client.remaining(), before.1);
    assert_eq!(before.1[0].unfinished, 1_000);
}

#[test]
fn connections_without_time_to_reset_are_counted() {
    let mut world = idle(100);
    let from = world.client.reset_open(ResetCursor::default(), 30, world.now, &mut world.up.0);
    world.client.note_left_open(from.unwrap(), world.now);
    let counters = world.client.counters();
    assert_eq!((counters.reset_at_end, counters.left_open), (30, 70));
}

/// RFC 5961 section 3.2: a RST with another number gets a challenge ACK. The peer, whose connection
/// is gone, "would then send back a RST" with the expected number.
#[test]
fn challenge_ack_after_reset_open_is_answered() {
    let mut world = idle(1);
    let from = world.client.reset_open(ResetCursor::default(), 9, world.now, &mut world.up.0);
    world.up.0.flush().unwrap();
    assert_eq!(from, None);
    // The peer has not received the last data.
    pass_by(&mut world.up, |frame| {
        let sequence = u32::from_be_bytes(frame[38..42].try_into().unwrap());
        frame[38..42].copy_from_slice(&sequence.wrapping_add(10).to_be_bytes());
        let checksum = u16::from_be_bytes(frame[50..52].try_into().unwrap());
        // RFC 1624: the checksum sum of the header grows by 10.
        let sum = u32::from(!checksum) + 10;
        let sum = (sum & 0xffff) + (sum >> 16);
        frame[50..52].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    });
    world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
    assert_eq!((world.server.counters().active, world.server.tcp().challenge_ack), (1, 1));
    assert_eq!(world.client.answer_after_reset(&mut world.up.0, &mut world.down.1), Ok(1));
    world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
    assert_eq!((world.server.counters().active, world.server.counters().reset), (0, 1));
}

#[test]
fn reset_open_also_resets_connections_in_syn_sent() {
    let wait = [Instruction::Connect, Instruction::WaitForPeerClose];
    let load = Load::Concurrent(5);
    let roles = vec![client("16.0.0.1", 80, load, Some(5))];
    let mut world = World::with(roles, &Buffers::default(), &wait, &wait);
    world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
    world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
    assert_eq!(world.client.remaining()[0].syn_sent, 5);
    reset_all(&mut world, 64);
    assert_eq!((world.server.counters().active, world.server.counters().refused), (0, 5));
    assert_eq!(world.client.counters().reset_at_end, 5);
}

/// Source ports of the first SYNs.
fn first_ports(seed: u64, draws: bool) -> Vec<u16> {
    let load = Load::Concurrent(20);
    let mut world = World::new(vec![client("16.0.0.1", 80, load, Some(20))], 0);
    world.client = super::world::endpoint(
        vec![super::world::template(vec![], client("16.0.0.1", 80, load, Some(20)))],
        &Buffers::default(),
        seed,
    );
    if draws {
        world.client.randomize_first_ports();
    }
    world.client.breathe(Instant::ZERO, &mut world.up.0, &mut world.down.1).unwrap();
    let port = |frame: &Vec<u8>| u16::from_be_bytes([frame[34], frame[35]]);
    frames(&mut world.up.1).iter().map(port).collect()
}

#[test]
fn first_client_port_depends_on_the_seed() {
    let Role::Client { tuples, .. } = client("16.0.0.1", 80, Load::OnDemand, None) else {
        panic!("it is a client")
    };
    let lowest = first_ports(1, false);
    assert!(lowest.iter().all(|port| (10_000..10_002).contains(port)), "{lowest:?}");
    assert_eq!(first_ports(1, true), first_ports(1, true));
    let firsts: BTreeSet<u16> = (0..50).map(|seed| first_ports(seed, true)[0]).collect();
    assert!(firsts.len() > 40, "{firsts:?}");
    assert!(firsts.iter().all(|port| tuples.client_ports.contains(port)), "{firsts:?}");
    // After the first one the order is the default one: 10 clients, then the next server.
    let ports = first_ports(3, true);
    assert!(ports.iter().all(|port| *port == ports[0]), "{ports:?}");
}

/// A client that sends three requests, with a delay of 10 ms between them. The server closes after
/// `answers` responses.
fn thinking(before_next: Option<Instruction>, answers: u64) -> World {
    let mut buffers = Buffers::default();
    let ask = buffers.push(Buffer::new(b"page", 0, &[]));
    let answer = buffers.push(Buffer::new(b"", 500, &[]));
    let receive = |bytes| Instruction::Receive { bytes, clear: true };
    let need = Instruction::Need { bytes: 500 };
    let mut asks = vec![AT_ONCE];
    for round in 0..3 {
        if round > 0 {
            asks.push(Instruction::Delay { micros: 10_000 });
            asks.extend(before_next);
        }
        asks.extend([Instruction::Send { buffer: ask }, need]);
    }
    let reply = [receive(4), Instruction::Send { buffer: answer }];
    // The server's close does not wait for delayed acknowledgements.
    let replies = [AT_ONCE].into_iter().chain((0..answers).flat_map(|_| reply));
    let replies: Vec<_> = replies.collect();
    let load = Load::Rate { rate: rate(100, SECOND), concurrent_max: None };
    let roles = vec![client("16.0.0.1", 80, load, Some(20))];
    let mut world = World::with(roles, &buffers, &asks, &replies);
    world.run(SECOND, |_, _| {});
    world
}

const AT_ONCE: Instruction = Instruction::SendBlocking { waits: false };
const RECONNECT: Option<Instruction> = Some(Instruction::Reconnect { unless: None });

#[test]
fn client_reconnects_when_the_server_closes_between_requests() {
    for (answers, connections) in [(1, 3), (2, 2), (3, 1)] {
        let world = thinking(RECONNECT, answers);
        let [flows, served] = [&world.client, &world.server].map(|it| it.counters());
        assert_eq!(flows.started, 20 * connections, "{answers} answers of each connection");
        assert_eq!(flows.reconnected, 20 * (connections - 1));
        assert_eq!((flows.closed, flows.failed(), flows.active), (20 * connections, 0, 0));
        assert_eq!((served.failed(), served.active), (0, 0));
        // The load counts the flows that it requested, without replacements.
        assert_eq!(flows.offered, 20);
        assert_eq!(world.client.tcp().rcvbyte, 20 * 3 * 500);
    }
}

#[test]
fn reconnects_do_not_change_the_number_of_users() {
    let mut buffers = Buffers::default();
    let ask = buffers.push(Buffer::new(b"page", 0, &[]));
    let receive = |bytes| Instruction::Receive { bytes, clear: true };
    let round =
        [Instruction::Send { buffer: ask }, receive(4), Instruction::Delay { micros: 5_000 }];
    let asks: Vec<_> = round.into_iter().chain(RECONNECT).chain(round).collect();
    let answers = [AT_ONCE, receive(4), Instruction::Send { buffer: ask }];
    let think = wirestorm_model::load::ThinkTime::Uniform {
        min: Duration::from_millis(1),
        max: Duration::from_millis(1),
    };
    let load = Load::Users { users: 7, think_time: think };
    let mut world =
        World::with(vec![client("16.0.0.1", 80, load, None)], &buffers, &asks, &answers);
    world.run(SECOND, |now, client| {
        let flows = client.counters();
        assert!(flows.active - flows.waiting <= 14, "at {now:?}: {flows:?}");
    });
    let flows = world.client.counters();
    // A user needs a little more than 11 ms per round, so 7 users make about 600 rounds per second.
    let rounds = flows.started - flows.reconnected;
    assert!((450..640).contains(&rounds), "{flows:?}");
    assert!(flows.reconnected >= rounds - 7, "{flows:?}");
}

#[test]
fn client_without_reconnect_fails_with_a_cause() {
    let world = thinking(Some(Instruction::FailIfClosed), 1);
    let flows = world.client.counters();
    assert_eq!((flows.started, flows.program_failed, flows.failed()), (20, 20, 20));
    let failures: Vec<_> = world.client.tally(0).unwrap().findings.failures().collect();
    assert_eq!((failures.len(), failures[0].1, failures[0].2.times), (1, Cause::ClosedBetween, 20));
    assert_eq!(world.server.counters().failed(), 0);
}

#[test]
fn reconnect_fails_without_a_free_port() {
    let mut world = thinking(RECONNECT, 3);
    assert_eq!(world.client.counters().failed(), 0);
    // Only one port, which the old connection still holds.
    let mut role = client("16.0.0.1", 80, Load::Concurrent(1), Some(1));
    if let Role::Client { tuples, .. } = &mut role {
        tuples.client_ports = 10_000..=10_000;
    }
    let mut buffers = Buffers::default();
    let ask = buffers.push(Buffer::new(b"page", 0, &[]));
    let receive = Instruction::Receive { bytes: 4, clear: true };
    let asks: Vec<_> =
        [Instruction::Send { buffer: ask }, receive, Instruction::Delay { micros: 9_000 }]
            .into_iter()
            .chain(RECONNECT)
            .chain([Instruction::Send { buffer: ask }])
            .collect();
    let answers = [AT_ONCE, receive, Instruction::Send { buffer: ask }];
    world = World::with(vec![role], &buffers, &asks, &answers);
    world.run(SECOND, |_, _| {});
    let flows = world.client.counters();
    assert_eq!((flows.started, flows.reconnected, flows.program_failed), (1, 0, 1), "{flows:?}");
    let failures: Vec<_> = world.client.tally(0).unwrap().findings.failures().collect();
    assert_eq!((failures[0].1, failures[0].2.times), (Cause::NotReconnected, 1));
}

#[test]
fn resets_after_close_are_counted_separately() {
    let mut world = thinking(None, 1);
    // The peer is gone, so its kernel would answer with RST.
    let flows = world.client.counters();
    assert_eq!(flows.reset + flows.reset_after_close, 0, "the server stays to the end: {flows:?}");
    let mut buffers = Buffers::default();
    let ask = buffers.push(Buffer::new(b"page", 0, &[]));
    let wait = Instruction::Delay { micros: 10_000 };
    let asks = [Instruction::Connect, wait, Instruction::Send { buffer: ask }, wait];
    world = World::with(
        vec![client("16.0.0.1", 80, Load::Concurrent(1), Some(1))],
        &buffers,
        &asks,
        &[Instruction::Connect],
    );
    let mut is_closed = false;
    let end = world.now + Duration::from_millis(100);
    while world.now < end {
        world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
        let mut has_data = false;
        pass_by(&mut world.up, |frame| has_data |= frame.ends_with(b"page"));
        if has_data && !is_closed {
            // The server loses its state, as if its process had ended.
            is_closed = true;
            world.server = super::world::endpoint(Vec::new(), &Buffers::default(), 2);
        }
        world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
        world.now += super::world::STEP;
    }
    let flows = world.client.counters();
    assert_eq!((flows.reset, flows.reset_after_close, flows.failed()), (0, 1, 1), "{flows:?}");
}
