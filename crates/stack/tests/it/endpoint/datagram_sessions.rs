//! Sessions over UDP flows, with a toy protocol. It has a handshake, hides the payload,
//! acknowledges each message and retransmits after a timeout.

use std::net::IpAddr;
use std::sync::Arc;

use wirestorm_base::port::{Receive, Transmit};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_model::load::Load;
use wirestorm_sim::memory::{MemoryReceive, MemoryTransmit};
use wirestorm_stack::content::{DatagramSession, Handshake, Session, SessionFactory, SessionState};
use wirestorm_stack::endpoint::{Template, Transport};
use wirestorm_stack::program::{Buffer, Buffers, Instruction, Program};

use super::world::{SECOND, STEP, World, client, server, template};

/// First byte of each kind of datagram.
const HELLO: u8 = b'H';
const WELCOME: u8 = b'W';
const DATA: u8 = b'D';
const TAKEN: u8 = b'T';
const BYE: u8 = b'B';

/// Retransmission timeout and maximum number of retransmissions.
const AGAIN: Duration = Duration::from_millis(20);
const TIMES: u32 = 10;

#[derive(Debug)]
struct Toy {
    is_client: bool,
    state: SessionState,
    /// Datagrams to send, first one first.
    outgoing: Vec<Vec<u8>>,
    /// Unacknowledged datagram, the time of its last transmission, and their number.
    unanswered: Option<(Vec<u8>, Instant, u32)>,
    /// Numbers of the next messages, to and from the peer.
    next: [u8; 2],
    longest_requested: usize,
}

impl Toy {
    fn new(is_client: bool) -> Self {
        let state = SessionState::Handshaking;
        let (outgoing, unanswered) = (Vec::new(), None);
        Self { is_client, state, outgoing, unanswered, next: [0; 2], longest_requested: 0 }
    }

    fn ask(&mut self, datagram: Vec<u8>, now: Instant) {
        self.outgoing.push(datagram.clone());
        self.unanswered = Some((datagram, now, 1));
    }

    fn hidden(number: u8, message: &[u8]) -> Vec<u8> {
        let hidden = message.iter().map(|byte| byte ^ 0x5a);
        [DATA, number].into_iter().chain(hidden).collect()
    }
}

impl DatagramSession for Toy {
    fn receive_datagram(&mut self, datagram: &[u8], _: Instant, message: &mut dyn FnMut(&[u8])) {
        match *datagram {
            [HELLO] if !self.is_client => {
                self.outgoing.push(vec![WELCOME]);
                if self.state == SessionState::Handshaking {
                    self.state = SessionState::Open;
                }
            }
            [WELCOME] if self.is_client && self.state == SessionState::Handshaking => {
                (self.state, self.unanswered) = (SessionState::Open, None);
            }
            [DATA, number, ref hidden @ ..] => {
                self.outgoing.push(vec![TAKEN, number]);
                if number == self.next[1] {
                    self.next[1] = number.wrapping_add(1);
                    message(&hidden.iter().map(|byte| byte ^ 0x5a).collect::<Vec<_>>());
                }
            }
            [TAKEN, number] if self.next[0] == number.wrapping_add(1) => self.unanswered = None,
            [BYE] => {
                self.outgoing.push(vec![TAKEN, self.next[0].wrapping_sub(1)]);
                self.state = SessionState::PeerClosed;
            }
            _ => {}
        }
    }

    fn send_message(&mut self, message: &[u8], now: Instant) -> bool {
        if self.unanswered.is_some() {
            return false;
        }
        let datagram = Self::hidden(self.next[0], message);
        self.next[0] = self.next[0].wrapping_add(1);
        self.ask(datagram, now);
        true
    }

    fn close(&mut self, _: Instant) {
        self.outgoing.push(vec![BYE]);
    }

    fn transmit(&mut self, now: Instant, longest: usize, to: &mut Vec<u8>) -> bool {
        self.longest_requested = longest;
        let begins = self.is_client && self.state == SessionState::Handshaking;
        if begins && self.unanswered.is_none() {
            self.ask(vec![HELLO], now);
        }
        if self.outgoing.is_empty() {
            return false;
        }
        to.extend(self.outgoing.remove(0));
        true
    }

    fn deadline(&self) -> Option<Instant> {
        let (_, at, _) = self.unanswered.as_ref()?;
        Some(*at + AGAIN)
    }

    fn expire(&mut self, now: Instant) {
        let Some((datagram, at, times)) = &mut self.unanswered else { return };
        if *times == TIMES {
            self.unanswered = None;
            self.state = SessionState::Failed("no answer");
            return;
        }
        (*at, *times) = (now, *times + 1);
        self.outgoing.push(datagram.clone());
    }

    fn state(&self) -> SessionState {
        self.state
    }

    fn handshake(&self) -> Option<Handshake> {
        let is_open = matches!(self.state, SessionState::Open | SessionState::PeerClosed);
        is_open.then_some(Handshake::Full)
    }

    fn is_busy(&self) -> bool {
        self.unanswered.is_some() || !self.outgoing.is_empty()
    }
}

#[derive(Debug)]
struct Toys {
    is_client: bool,
}

impl SessionFactory for Toys {
    fn begin(&self, _: IpAddr, _: IpAddr) -> Box<dyn Session> {
        unreachable!("flows are of UDP")
    }

    fn begin_datagrams(&self, _: IpAddr, _: IpAddr) -> Option<Box<dyn DatagramSession>> {
        Some(Box::new(Toy::new(self.is_client)))
    }
}

const REQUEST: &[u8] = b"what is to be hidden";
const FLOWS: u64 = 20;

/// A client sends three requests; each response has `answer` bytes.
fn world(answer: u32) -> World {
    let mut buffers = Buffers::default();
    let ask = buffers.push(Buffer::new(REQUEST, 0, &[]));
    let answer = buffers.push(Buffer::new(b"shown", answer, b"again"));
    let receive = Instruction::ReceiveDatagrams { count: 1, clear: true };
    let send = |buffer| Instruction::SendDatagram { buffer };
    let idle = Instruction::SetIdle { millis: 3_000, receive_only: false };
    let asks = [send(ask), receive].into_iter().cycle().take(6);
    let answers = [receive, send(answer)].into_iter().cycle().take(6);
    let of = |instructions: Vec<Instruction>, role, is_client| Template {
        program: Program::new(instructions).unwrap(),
        transport: Transport::Udp,
        sessions: Some(Arc::new(Toys { is_client })),
        ..template(Vec::new(), role)
    };
    let role = client("16.0.0.1", 80, Load::Concurrent(5), Some(FLOWS));
    let asks = of([idle].into_iter().chain(asks).collect(), role, true);
    let answers = of([idle].into_iter().chain(answers).collect(), server(80), false);
    World::of(vec![asks], vec![answers], &buffers)
}

/// Forwards the frames on a wire, except every Nth one; `look` sees all of them.
fn carry(
    (transmit, receive): &mut (MemoryTransmit, MemoryReceive),
    count: &mut u64,
    lost: u64,
    look: &mut impl FnMut(&[u8]),
) {
    let mut batch = Vec::new();
    receive.receive(64, &mut batch).unwrap();
    for received in batch {
        let bytes = receive.frame(&received).to_vec();
        receive.release(received);
        look(&bytes);
        *count += 1;
        if count.is_multiple_of(lost) {
            continue;
        }
        let frame = transmit.take().unwrap();
        transmit.frame_mut(&frame)[..bytes.len()].copy_from_slice(&bytes);
        transmit.send(frame, bytes.len(), Instant::ZERO);
    }
    transmit.flush().unwrap();
}

/// Runs both ends over wires that lose every Nth frame.
fn talk(world: &mut World, lost: u64, span: Duration, mut look: impl FnMut(&[u8])) {
    let end = world.now + span;
    let mut count = 0;
    while world.now < end {
        world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
        carry(&mut world.up, &mut count, lost, &mut look);
        world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
        carry(&mut world.down, &mut count, lost, &mut look);
        world.now += STEP;
    }
}

#[test]
fn session_hides_the_payload_of_programs() {
    let mut world = world(600);
    let is_seen = |frame: &[u8], text: &[u8]| frame.windows(text.len()).any(|it| it == text);
    let (mut frames, mut seen) = (0, 0);
    talk(&mut world, u64::MAX, SECOND, |frame| {
        frames += 1;
        seen += u32::from(is_seen(frame, REQUEST) || is_seen(frame, b"shown"));
    });
    assert!(frames > 10 * FLOWS, "{frames}");
    assert_eq!(seen, 0);
    for side in [&world.client, &world.server] {
        let (flows, sessions) = (side.counters(), side.sessions());
        assert_eq!((flows.closed, flows.failed(), flows.active), (FLOWS, 0, 0), "{flows:?}");
        assert_eq!((sessions.full_handshakes, sessions.handshake.count()), (FLOWS, FLOWS));
        assert!(sessions.failures.is_empty());
    }
}

#[test]
fn session_timers_retransmit_lost_datagrams() {
    for lost in [3, 5, 7] {
        let mut world = world(600);
        talk(&mut world, lost, Duration::from_secs(20), |_| {});
        let (flows, sessions) = (world.client.counters(), world.client.sessions());
        assert_eq!((flows.closed, flows.failed()), (FLOWS, 0), "1 of {lost} lost: {flows:?}");
        assert_eq!((sessions.full_handshakes, sessions.failures.len()), (FLOWS, 0));
        // All messages arrived, and the program received no duplicate.
        assert!(world.client.udp().sndpkt > 5 * FLOWS);
    }
}

#[test]
fn unanswered_session_fails_with_a_cause() {
    let mut world = world(600);
    talk(&mut world, 1, SECOND, |_| {});
    let (flows, sessions) = (world.client.counters(), world.client.sessions());
    assert!(flows.session_failed >= 5, "{flows:?}");
    assert_eq!((flows.closed, sessions.full_handshakes), (0, 0));
    assert_eq!(sessions.failures.get("no answer"), Some(&flows.session_failed));
    // Ten transmissions each, and no more.
    let begun = flows.started - flows.active;
    assert!(world.client.udp().sndpkt >= begun * u64::from(TIMES));
}

#[test]
fn messages_longer_than_a_packet_are_fragmented() {
    let mut world = world(4_000);
    talk(&mut world, u64::MAX, SECOND, |_| {});
    let flows = world.client.counters();
    assert_eq!((flows.closed, flows.failed()), (FLOWS, 0), "{flows:?}");
    assert_eq!(world.server.udp().fragmented, 3 * FLOWS);
    assert_eq!(world.client.unmatched().reassembled, 3 * FLOWS);
}
