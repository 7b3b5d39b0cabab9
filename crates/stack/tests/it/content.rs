//! Sessions between programs and connections: their bytes arrive once and in order on any network,
//! and the counters show how sessions end.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use wirestorm_base::time::Duration;
use wirestorm_stack::content::{Handshake, Session, SessionFactory, SessionState};
use wirestorm_stack::program::{Buffer, Buffers, Contents, Instruction};

use crate::impaired::{Impairment, Side, World};

/// A toy session protocol: a greeting, then length-prefixed records. Each byte is XORed with a
/// value that depends on its offset. It fails if a byte is not the one that the peer sends.
#[derive(Debug)]
struct Toy {
    received: Vec<u8>,
    due: Vec<u8>,
    sent: usize,
    understood: usize,
    state: SessionState,
    greets: bool,
}

const HELLO: [u8; 5] = *b"hello";
const RECORD_MAX: usize = 1_000;

/// Value that hides the byte at an offset.
fn mask(place: usize) -> u8 {
    (place % 241) as u8 ^ 0x5a
}

#[derive(Debug)]
struct Toys {
    greets: bool,
}

impl SessionFactory for Toys {
    fn begin(&self, _: IpAddr, _: IpAddr) -> Box<dyn Session> {
        let due = if self.greets { HELLO.to_vec() } else { Vec::new() };
        let state = SessionState::Handshaking;
        Box::new(Toy {
            received: Vec::new(),
            due,
            sent: 0,
            understood: 0,
            state,
            greets: self.greets,
        })
    }
}

impl Session for Toy {
    fn receive_data(&mut self, bytes: &[u8], plaintext: &mut dyn FnMut(&[u8])) {
        self.received.extend_from_slice(bytes);
        loop {
            if self.state == SessionState::Handshaking {
                if self.received.len() < HELLO.len() {
                    return;
                }
                let hello: Vec<u8> = self.received.drain(..HELLO.len()).collect();
                if hello != HELLO || !self.greets {
                    self.due.extend_from_slice(&[0xff, 0xff]);
                    self.state = SessionState::Failed("no hello");
                    return;
                }
                self.state = SessionState::Open;
            }
            let Some(length) = self.received.first_chunk() else { return };
            let length = usize::from(u16::from_be_bytes(*length));
            match length {
                0 => self.state = SessionState::PeerClosed,
                0xffff => self.state = SessionState::Failed("a requested failure"),
                _ => {}
            }
            if self.state != SessionState::Open || self.received.len() < 2 + length {
                return;
            }
            let mut record: Vec<u8> = self.received.drain(..2 + length).skip(2).collect();
            for byte in &mut record {
                *byte ^= mask(self.understood);
                // Buffers without content count from 0 to 255.
                if *byte != self.understood as u8 {
                    self.state = SessionState::Failed("other content");
                }
                self.understood += 1;
            }
            plaintext(&record);
        }
    }

    fn send_data(&mut self, plaintext: &[u8]) -> usize {
        let record = &plaintext[..plaintext.len().min(RECORD_MAX)];
        self.due.extend_from_slice(&(record.len() as u16).to_be_bytes());
        for byte in record {
            self.due.push(byte ^ mask(self.sent));
            self.sent += 1;
        }
        record.len()
    }

    fn close(&mut self) {
        self.due.extend_from_slice(&[0, 0]);
    }

    fn transmit(&mut self, to: &mut VecDeque<u8>) {
        to.extend(self.due.drain(..));
    }

    fn state(&self) -> SessionState {
        self.state
    }

    fn handshake(&self) -> Option<Handshake> {
        let is_open = matches!(self.state, SessionState::Open | SessionState::PeerClosed);
        is_open.then_some(Handshake::Full)
    }
}

fn side(program: Vec<Instruction>, sessions: impl SessionFactory + 'static) -> Side {
    Side { program, contents: Contents::default(), sessions: Some(Arc::new(sessions)) }
}

const UP: u64 = 150_000;
const DOWN: u64 = 90_000;
const MINUTE: Duration = Duration::from_secs(60);

/// Both ends send a greeting, then the client sends much data and the server answers.
fn conversation(disturbance: Impairment, seed: u64, waits: bool, flows: u64) -> World {
    let mut buffers = Buffers::default();
    let [question, answer] =
        [UP, DOWN].map(|size| buffers.push(Buffer::new(&[], size as u32, &[])));
    let begin = [Instruction::SendBlocking { waits }, Instruction::Connect];
    let asks = [
        Instruction::Send { buffer: question },
        Instruction::Receive { bytes: DOWN, clear: true },
        Instruction::WaitForPeerClose,
    ];
    let answers =
        [Instruction::Receive { bytes: UP, clear: true }, Instruction::Send { buffer: answer }];
    let sides = [
        side([&begin[..], &asks].concat(), Toys { greets: true }),
        side([&begin[..], &answers].concat(), Toys { greets: true }),
    ];
    let mut world = World::new(sides, &buffers, [flows, flows], disturbance, seed);
    world.run(MINUTE);
    world
}

#[test]
fn every_byte_of_a_session_arrives_once_and_in_order() {
    for seed in 1..=25 {
        let world = conversation(Impairment::ROUGH, seed, seed % 2 == 0, 3);
        for side in [&world.client, &world.server] {
            let sessions = side.sessions();
            assert_eq!(sessions.failures.iter().next(), None, "seed {seed}");
            let opened =
                (sessions.full_handshakes, sessions.resumed_handshakes, sessions.truncated);
            assert_eq!(opened, (3, 0, 0), "seed {seed}");
            assert_eq!(sessions.handshake.count(), 3);
            let counters = side.counters();
            assert_eq!((counters.closed, counters.failed(), counters.active), (3, 0, 0), "{seed}");
        }
        assert!(world.client.tcp().rcvoopack > 0, "seed {seed}: no reordering");
        // Each record and each end marker has a length of two bytes; each side sends a greeting.
        let bytes = |plain: u64| 3 * (plain + 5 + 2);
        assert!(world.server.tcp().rcvbyte >= bytes(UP));
        assert!(world.client.tcp().rcvbyte >= bytes(DOWN));
    }
}

#[test]
fn only_the_output_of_the_session_is_sent() {
    let world = conversation(Impairment::NONE, 1, true, 1);
    // A record for each 1,000 bytes, the greeting, and the end marker.
    assert_eq!(world.client.tcp().sndbyte, UP + 2 * UP / 1_000 + 5 + 2);
    assert_eq!(world.client.tcp().sndrexmitpack, 0);
}

#[test]
fn session_failures_are_counted_by_cause() {
    let program = || vec![Instruction::Connect, Instruction::WaitForPeerClose];
    let sides = [side(program(), Toys { greets: true }), side(program(), Toys { greets: false })];
    let mut world = World::new(sides, &Buffers::default(), [4, 1], Impairment::NONE, 1);
    world.run(MINUTE);
    // The server sends no greeting but a record, which the client does not accept.
    let causes = |side: &wirestorm_stack::endpoint::Endpoint| {
        side.sessions().failures.iter().map(|(cause, times)| (*cause, *times)).collect::<Vec<_>>()
    };
    let early = "peer closed the connection during the handshake";
    assert_eq!(causes(&world.server), [("no hello", 4)]);
    assert_eq!(causes(&world.client), [(early, 4)]);
    for side in [&world.client, &world.server] {
        let counters = side.counters();
        assert_eq!((counters.failed(), counters.closed, counters.active), (4, 0, 0));
        assert_eq!(side.sessions().full_handshakes, 0);
    }
}

#[test]
fn truncated_sessions_are_counted() {
    let sides = [
        side(vec![Instruction::Connect, Instruction::WaitForPeerClose], Toys { greets: true }),
        // The greeting, sent by a plain flow.
        Side { program: Vec::new(), contents: Contents::default(), sessions: None },
    ];
    let mut buffers = Buffers::default();
    let buffer = buffers.push(Buffer::new(&HELLO, 0, &[]));
    let [client, mut server] = sides;
    server.program = vec![Instruction::Send { buffer }];
    let mut world = World::new([client, server], &buffers, [2, 1], Impairment::NONE, 1);
    world.run(MINUTE);
    let sessions = world.client.sessions();
    assert_eq!((sessions.truncated, sessions.full_handshakes), (2, 2));
    assert_eq!(world.client.counters().closed, 2);
}

#[test]
fn reset_after_both_ends_of_a_session_is_no_failure() {
    let mut buffers = Buffers::default();
    // A plain flow sends the greeting and the end marker, or the greeting alone.
    let both = buffers.push(Buffer::new(b"hello\0\0", 0, &[]));
    let hello = buffers.push(Buffer::new(b"hello", 0, &[]));
    for (buffer, closed) in [(both, 1), (hello, 0)] {
        // It receives another greeting, and an end marker if the peer closes.
        let program = vec![
            Instruction::SendBlocking { waits: false },
            Instruction::Send { buffer },
            Instruction::Receive { bytes: if closed > 0 { 7 } else { 5 }, clear: false },
            Instruction::Reset,
        ];
        let sides = [
            side(vec![Instruction::WaitForPeerClose], Toys { greets: true }),
            Side { program, contents: Contents::default(), sessions: None },
        ];
        let mut world = World::new(sides, &buffers, [1, 1], Impairment::NONE, 1);
        world.run(MINUTE);
        assert_eq!(world.client.tcp().rst_received, 1);
        let counters = world.client.counters();
        assert_eq!((counters.closed, counters.failed()), (closed, 1 - closed));
    }
}

#[test]
fn reset_of_a_failed_session_still_counts_as_failure() {
    let mut buffers = Buffers::default();
    let other = buffers.push(Buffer::new(b"other", 0, &[]));
    let send = Instruction::Send { buffer: other };
    let receive = |bytes| Instruction::Receive { bytes, clear: false };
    // The peer's session fails after a wrong greeting; or it has received nothing yet.
    let answered = vec![send, receive(5 + 2), Instruction::Reset];
    let silent = vec![receive(5), Instruction::Reset];
    let early = "connection lost during the handshake";
    for (program, cause, session_failed) in [(answered, "no hello", 1), (silent, early, 0)] {
        let sides = [
            side(vec![Instruction::Connect, Instruction::WaitForPeerClose], Toys { greets: true }),
            Side { program, contents: Contents::default(), sessions: None },
        ];
        let mut world = World::new(sides, &buffers, [1, 1], Impairment::NONE, 1);
        world.run(MINUTE);
        assert_eq!(world.client.tcp().rst_received, 1);
        assert_eq!(world.client.sessions().failures.get(cause), Some(&1));
        let counters = world.client.counters();
        let expected = (session_failed, 1 - session_failed);
        assert_eq!((counters.session_failed, counters.reset), expected, "{cause}");
    }
}
