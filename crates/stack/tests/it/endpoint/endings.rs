//! Connections that are open when a run ends, those whose peers close between two requests, and the
//! ports from which clients begin.

use std::collections::BTreeSet;

use wirestorm_base::port::Transmit;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_model::load::Load;
use wirestorm_stack::endpoint::{ResetCursor, Role};
use wirestorm_stack::program::{Buffer, Buffers, Cause, Instruction};

use super::world::{SECOND, World, client, frames, pass_by, rate};

/// So many connections without data.
fn idle(connections: u64) -> World {
    let wait = [Instruction::Connect, Instruction::WaitForPeerClose];
    let load = Load::Hold(connections);
    let roles = vec![client("16.0.0.1", 80, load, Some(connections))];
    let mut world = World::with(roles, &Buffers::default(), &wait, &wait);
    world.run(SECOND, |_, _| {});
    assert_eq!(world.server.tcp().connects, connections);
    world
}

/// Resets what the client has open, so many at a time; returns how many calls that took.
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
fn peers_forget_the_connections_that_are_open_at_the_end() {
    let mut world = idle(1_000);
    let before = (world.client.counters(), world.client.remaining());
    assert_eq!(reset_all(&mut world, 64), 1_000_usize.div_ceil(64));
    assert_eq!(world.server.counters().active, 0);
    assert_eq!(world.server.counters().reset, 1_000);
    let counters = world.client.counters();
    assert_eq!((counters.reset_at_end, counters.left_open), (1_000, 0));
    assert_eq!(world.client.tcp().rst_sent, 1_000);
    // What they were at the end of the run stays told.
    assert_eq!((counters.active, counters.failed()), (before.0.active, 0));
    assert_eq!(world.client.remaining(), before.1);
    assert_eq!(before.1[0].unfinished, 1_000);
}

#[test]
fn connections_that_there_was_no_time_to_reset_are_counted() {
    let mut world = idle(100);
    let from = world.client.reset_open(ResetCursor::default(), 30, world.now, &mut world.up.0);
    world.client.note_left_open(from.unwrap(), world.now);
    let counters = world.client.counters();
    assert_eq!((counters.reset_at_end, counters.left_open), (30, 70));
}

/// RFC 5961 section 3.2: a reset beside the next number is answered by a challenge, and the peer of
/// a connection that is gone "would then send back a RST" with the number that is asked for.
#[test]
fn who_asks_once_more_before_it_believes_a_reset_is_answered() {
    let mut world = idle(1);
    let from = world.client.reset_open(ResetCursor::default(), 9, world.now, &mut world.up.0);
    world.up.0.flush().unwrap();
    assert_eq!(from, None);
    // It has not seen all that was sent before.
    pass_by(&mut world.up, |frame| {
        let sequence = u32::from_be_bytes(frame[38..42].try_into().unwrap());
        frame[38..42].copy_from_slice(&sequence.wrapping_add(10).to_be_bytes());
        let checksum = u16::from_be_bytes(frame[50..52].try_into().unwrap());
        // RFC 1624: the sum of the header has 10 more.
        let sum = u32::from(!checksum) + 10;
        let sum = (sum & 0xffff) + (sum >> 16);
        frame[50..52].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    });
    world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
    assert_eq!((world.server.counters().active, world.server.tcp().challenge_ack), (1, 1));
    assert_eq!(world.client.reset_late(&mut world.up.0, &mut world.down.1), Ok(1));
    world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
    assert_eq!((world.server.counters().active, world.server.counters().reset), (0, 1));
}

#[test]
fn a_server_that_was_only_asked_is_told_that_nobody_asks_any_more() {
    let wait = [Instruction::Connect, Instruction::WaitForPeerClose];
    let load = Load::Hold(5);
    let roles = vec![client("16.0.0.1", 80, load, Some(5))];
    let mut world = World::with(roles, &Buffers::default(), &wait, &wait);
    world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
    world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
    assert_eq!(world.client.remaining()[0].syn_sent, 5);
    reset_all(&mut world, 64);
    assert_eq!((world.server.counters().active, world.server.counters().refused), (0, 5));
    assert_eq!(world.client.counters().reset_at_end, 5);
}

/// Ports of the first SYNs.
fn first_ports(seed: u64, draws: bool) -> Vec<u16> {
    let load = Load::Hold(20);
    let mut world = World::new(vec![client("16.0.0.1", 80, load, Some(20))], 0);
    world.client = super::world::endpoint(
        vec![super::world::template(vec![], client("16.0.0.1", 80, load, Some(20)))],
        &Buffers::default(),
        seed,
    );
    if draws {
        world.client.draw_first_ports();
    }
    world.client.breathe(Instant::ZERO, &mut world.up.0, &mut world.down.1).unwrap();
    let port = |frame: &Vec<u8>| u16::from_be_bytes([frame[34], frame[35]]);
    frames(&mut world.up.1).iter().map(port).collect()
}

#[test]
fn clients_begin_at_any_of_their_ports_which_follows_from_the_seed() {
    let Role::Client { tuples, .. } = client("16.0.0.1", 80, Load::OnDemand, None) else {
        panic!("it is a client")
    };
    let lowest = first_ports(1, false);
    assert!(lowest.iter().all(|port| (10_000..10_002).contains(port)), "{lowest:?}");
    assert_eq!(first_ports(1, true), first_ports(1, true));
    let firsts: BTreeSet<u16> = (0..50).map(|seed| first_ports(seed, true)[0]).collect();
    assert!(firsts.len() > 40, "{firsts:?}");
    assert!(firsts.iter().all(|port| tuples.client_ports.contains(port)), "{firsts:?}");
    // Behind the first one the order is the usual one: 10 clients, then the next server.
    let drawn = first_ports(3, true);
    assert!(drawn.iter().all(|port| *port == drawn[0]), "{drawn:?}");
}

/// A client that asks three times, and thinks for 10 ms before each time but the first; a server that
/// answers as often as is said, and closes then.
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
    // Its end does not wait for acknowledgements, which are delayed.
    let replies = [AT_ONCE].into_iter().chain((0..answers).flat_map(|_| reply));
    let replies: Vec<_> = replies.collect();
    let load = Load::Rate { rate: rate(100, SECOND), at_most: None };
    let roles = vec![client("16.0.0.1", 80, load, Some(20))];
    let mut world = World::with(roles, &buffers, &asks, &replies);
    world.run(SECOND, |_, _| {});
    world
}

const AT_ONCE: Instruction = Instruction::SendBlocking { waits: false };
const RECONNECT: Option<Instruction> = Some(Instruction::Reconnect { unless: None });

#[test]
fn a_client_whose_server_closes_while_it_thinks_goes_on_over_a_new_connection() {
    for (answers, connections) in [(1, 3), (2, 2), (3, 1)] {
        let world = thinking(RECONNECT, answers);
        let [flows, served] = [&world.client, &world.server].map(|it| it.counters());
        assert_eq!(flows.made, 20 * connections, "{answers} answers of each connection");
        assert_eq!(flows.reconnected, 20 * (connections - 1));
        assert_eq!((flows.closed, flows.failed(), flows.active), (20 * connections, 0, 0));
        assert_eq!((served.failed(), served.active), (0, 0));
        // The load knows of the flows that it asked for.
        assert_eq!(flows.offered, 20);
        assert_eq!(world.client.tcp().rcvbyte, 20 * 3 * 500);
    }
}

#[test]
fn users_stay_as_many_as_they_are_though_their_connections_are_replaced() {
    let mut buffers = Buffers::default();
    let ask = buffers.push(Buffer::new(b"page", 0, &[]));
    let receive = |bytes| Instruction::Receive { bytes, clear: true };
    let round =
        [Instruction::Send { buffer: ask }, receive(4), Instruction::Delay { micros: 5_000 }];
    let asks: Vec<_> = round.into_iter().chain(RECONNECT).chain(round).collect();
    let answers = [AT_ONCE, receive(4), Instruction::Send { buffer: ask }];
    let think = wirestorm_model::load::Think::Uniform {
        min: Duration::from_millis(1),
        max: Duration::from_millis(1),
    };
    let load = Load::Users { users: 7, think };
    let mut world =
        World::with(vec![client("16.0.0.1", 80, load, None)], &buffers, &asks, &answers);
    world.run(SECOND, |now, client| {
        let flows = client.counters();
        assert!(flows.active - flows.waiting <= 14, "at {now:?}: {flows:?}");
    });
    let flows = world.client.counters();
    // A user takes a little more than 11 ms for a round, so that 7 make about 600 in a second.
    let rounds = flows.made - flows.reconnected;
    assert!((450..640).contains(&rounds), "{flows:?}");
    assert!(flows.reconnected >= rounds - 7, "{flows:?}");
}

#[test]
fn a_client_that_does_not_reconnect_fails_by_name() {
    let world = thinking(Some(Instruction::NeedOpen), 1);
    let flows = world.client.counters();
    assert_eq!((flows.made, flows.program_failed, flows.failed()), (20, 20, 20));
    let failures: Vec<_> = world.client.tally(0).unwrap().findings.failures().collect();
    assert_eq!((failures.len(), failures[0].1, failures[0].2.times), (1, Cause::ClosedBetween, 20));
    assert_eq!(world.server.counters().failed(), 0);
}

#[test]
fn a_connection_is_not_replaced_where_there_is_no_room_for_another() {
    let mut world = thinking(RECONNECT, 3);
    assert_eq!(world.client.counters().failed(), 0);
    // One port, and the old connection has it yet.
    let mut role = client("16.0.0.1", 80, Load::Hold(1), Some(1));
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
    assert_eq!((flows.made, flows.reconnected, flows.program_failed), (1, 0, 1), "{flows:?}");
    let failures: Vec<_> = world.client.tally(0).unwrap().findings.failures().collect();
    assert_eq!((failures[0].1, failures[0].2.times), (Cause::NotReconnected, 1));
}

#[test]
fn what_is_said_to_a_peer_that_has_closed_and_is_reset_is_told_from_other_resets() {
    let mut world = thinking(None, 1);
    // Nobody is there any more who would take what is said: a kernel resets then.
    let flows = world.client.counters();
    assert_eq!(flows.reset + flows.reset_after_close, 0, "ours stays to the end: {flows:?}");
    let mut buffers = Buffers::default();
    let ask = buffers.push(Buffer::new(b"page", 0, &[]));
    let wait = Instruction::Delay { micros: 10_000 };
    let asks = [Instruction::Connect, wait, Instruction::Send { buffer: ask }, wait];
    world = World::with(
        vec![client("16.0.0.1", 80, Load::Hold(1), Some(1))],
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
            // The server forgets, as one whose process is over.
            is_closed = true;
            world.server = super::world::endpoint(Vec::new(), &Buffers::default(), 2);
        }
        world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
        world.now += super::world::STEP;
    }
    let flows = world.client.counters();
    assert_eq!((flows.reset, flows.reset_after_close, flows.failed()), (0, 1, 1), "{flows:?}");
}
