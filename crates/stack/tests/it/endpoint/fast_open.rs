//! TCP Fast Open (RFC 7413).

use std::ops::Range;

use wirestorm_base::port::{Receive, Transmit};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_model::load::Load;
use wirestorm_model::program::MessageFraming;
use wirestorm_stack::endpoint::{Endpoint, Role, Template, Transport};
use wirestorm_stack::program::{Buffer, Buffers, Contents, Instruction, Program};
use wirestorm_stack::tcp::segment::{Ecn, Segment};
use wirestorm_wire::packet::tcp::Flags;

use super::world::{STEP, World, client, endpoint, server, template};

const REQUEST_LENGTH: u32 = 40;
const ANSWERED: u32 = 5_000;

/// One client that makes connections to one server, one after the other.
struct Opened {
    world: World,
    servers: Vec<Template>,
    buffers: Buffers,
    /// Length of a response in bytes.
    answered: u32,
    /// For each SYN: length of its cookie, and of its data.
    syns: Vec<(Option<u8>, u32)>,
    /// Number of steps until each response.
    steps: Vec<u64>,
}

fn fast(template: Template) -> Template {
    let Transport::Tcp(settings) = template.transport else { return template };
    let settings = wirestorm_model::tcp::Settings { fast_open: true, ..settings };
    Template { transport: Transport::Tcp(settings), ..template }
}

impl Opened {
    fn new(client_is_fast: bool, server_is_fast: bool) -> Self {
        Self::with(client_is_fast, server_is_fast, ANSWERED)
    }

    /// Creates a world with responses of `answered` bytes.
    fn with(client_is_fast: bool, server_is_fast: bool, answered: u32) -> Self {
        let mut buffers = Buffers::default();
        let ask = buffers.push(Buffer::new(b"", REQUEST_LENGTH, &[]));
        let answer = buffers.push(Buffer::new(b"", answered, &[]));
        let receive = |bytes: u32| Instruction::Receive { bytes: bytes.into(), clear: false };
        let asks = Program::new([Instruction::Send { buffer: ask }, receive(answered)]);
        let answers = Program::new([receive(REQUEST_LENGTH), Instruction::Send { buffer: answer }]);
        Self::of(client_is_fast, server_is_fast, answered, [asks, answers], buffers)
    }

    /// Like [`Self::with`], with programs that check the received data.
    fn looking(answered: u32) -> Self {
        let mut buffers = Buffers::default();
        let ask = buffers.push(Buffer::new(b"", REQUEST_LENGTH, &[]));
        let answer = buffers.push(Buffer::new(b"", answered, &[]));
        let take = Instruction::Take { rule: 0, is_required: true };
        let program = |instructions: [Instruction; 2], bytes: u32| {
            let rules = vec![MessageFraming::Count(bytes.into())];
            Program::with_contents(instructions, Contents { rules, ..Contents::default() })
        };
        let asks = program([Instruction::Send { buffer: ask }, take], answered);
        let answers = program([take, Instruction::Send { buffer: answer }], REQUEST_LENGTH);
        Self::of(true, true, answered, [asks, answers], buffers)
    }

    fn of(
        client_is_fast: bool,
        server_is_fast: bool,
        answered: u32,
        programs: [Option<Program>; 2],
        buffers: Buffers,
    ) -> Self {
        let [asks, answers] = programs.map(Option::unwrap);
        let mut role = client("16.0.0.1", 80, Load::Concurrent(0), None);
        if let Role::Client { tuples, .. } = &mut role {
            (tuples.clients.count, tuples.servers.count) = (1, 1);
        }
        let if_fast = |is_fast, it: Template| if is_fast { fast(it) } else { it };
        let of = |program, role| Template { program, ..template(Vec::new(), role) };
        let clients = vec![if_fast(client_is_fast, of(asks, role))];
        let servers = vec![if_fast(server_is_fast, of(answers, server(80)))];
        let world = World::of(clients, servers.clone(), &buffers);
        Self { world, servers, buffers, answered, syns: Vec::new(), steps: Vec::new() }
    }

    /// Makes a connection; `lost` is the range of the client's frames to lose.
    fn connect(&mut self, lost: Range<usize>) {
        let world = &mut self.world;
        let before = world.client.counters().closed;
        assert!(world.client.connect(0, world.now, &mut world.up.0));
        let (mut frames, mut steps, mut answered) = (0, 0, None);
        while world.client.counters().closed == before {
            assert!(steps < 50_000, "{:?} {:?}", world.client.tcp(), world.server.tcp());
            world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
            let mut batch = Vec::new();
            world.up.1.receive(64, &mut batch).unwrap();
            for received in batch {
                let bytes = world.up.1.frame(&received).to_vec();
                world.up.1.release(received);
                let (segment, _) = Segment::parse(&bytes[34..], Ecn::NOT_ECT).unwrap();
                if segment.flags.contains(Flags::SYN) {
                    self.syns.push((segment.options.cookie_length, segment.length));
                }
                if !lost.contains(&frames) {
                    let frame = world.up.0.take().unwrap();
                    world.up.0.frame_mut(&frame)[..bytes.len()].copy_from_slice(&bytes);
                    world.up.0.send(frame, bytes.len(), Instant::ZERO);
                }
                frames += 1;
            }
            world.up.0.flush().unwrap();
            world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
            world.now += STEP;
            steps += 1;
            if answered.is_none()
                && world.client.tcp().rcvbyte >= (before + 1) * u64::from(self.answered)
            {
                answered = Some(steps);
            }
        }
        self.steps.extend(answered);
        world.now += Duration::from_millis(20);
    }

    /// Asserts that `connections` connections carried all data, and nothing twice.
    #[track_caller]
    fn assert_data(&self, connections: u64) {
        let [client, server] = [&self.world.client, &self.world.server].map(Endpoint::tcp);
        assert_eq!(self.world.client.counters().failed(), 0);
        assert_eq!(client.rcvbyte, connections * u64::from(self.answered));
        assert_eq!(client.rcvackbyte, connections * u64::from(REQUEST_LENGTH));
        assert_eq!(client.sndbyte_ok, connections * u64::from(REQUEST_LENGTH));
        assert_eq!(server.sndrexmitpack, 0);
    }
}

#[test]
fn data_is_on_the_syn_to_a_server_with_a_known_cookie() {
    let mut opened = Opened::new(true, true);
    (0..3).for_each(|_| opened.connect(0..0));
    assert_eq!(opened.syns, [(Some(0), 0), (Some(8), REQUEST_LENGTH), (Some(8), REQUEST_LENGTH)]);
    // The response arrives one round trip earlier, with the acknowledgement of the SYN.
    assert_eq!(opened.steps, [4, 3, 3]);
    let (client, server) = (opened.world.client.tcp(), opened.world.server.tcp());
    assert_eq!(
        (client.fast_open_sent, client.fast_open_acked, server.fast_open_accepted),
        (2, 2, 2)
    );
    opened.assert_data(3);
    assert_eq!(opened.world.server.tcp().rcvbyte, 3 * u64::from(REQUEST_LENGTH));
    assert_eq!(opened.world.client.tcp().sndrexmitpack, 0);
}

#[test]
fn short_response_arrives_a_round_trip_earlier() {
    let mut opened = Opened::with(true, true, 500);
    (0..3).for_each(|_| opened.connect(0..0));
    assert_eq!(opened.steps, [3, 2, 2]);
    opened.assert_data(3);
    // Time to first byte: the first connection's data follows the SYN, that of others is on it.
    assert_eq!(opened.world.server.times().time_to_first_byte.count(), 3);
}

#[test]
fn data_of_checking_programs_is_on_the_syn_too() {
    let mut opened = Opened::looking(500);
    (0..3).for_each(|_| opened.connect(0..0));
    assert_eq!(opened.syns, [(Some(0), 0), (Some(8), REQUEST_LENGTH), (Some(8), REQUEST_LENGTH)]);
    assert_eq!(opened.steps, [3, 2, 2]);
    opened.assert_data(3);
    assert_eq!(opened.world.client.tcp().sndrexmitpack, 0);
    // If the SYN is lost, the data is sent again once the connection is open.
    opened.connect(0..1);
    assert_eq!(opened.syns[3..], [(Some(8), REQUEST_LENGTH), (None, 0)]);
    opened.assert_data(4);
}

#[test]
fn peers_without_fast_open_get_a_normal_handshake() {
    for (client, server, cookie) in [(true, false, Some(0)), (false, true, None)] {
        let mut opened = Opened::new(client, server);
        (0..2).for_each(|_| opened.connect(0..0));
        assert_eq!(opened.syns, [(cookie, 0), (cookie, 0)]);
        assert_eq!(opened.steps, [4, 4]);
        opened.assert_data(2);
    }
}

#[test]
fn data_with_a_wrong_cookie_is_dropped_and_sent_again() {
    let mut opened = Opened::new(true, true);
    opened.connect(0..0);
    // Another server at the same address, with another secret.
    opened.world.server = endpoint(opened.servers.clone(), &opened.buffers, 77);
    (0..2).for_each(|_| opened.connect(0..0));
    assert_eq!(opened.syns, [(Some(0), 0), (Some(8), REQUEST_LENGTH), (Some(8), REQUEST_LENGTH)]);
    // It sent its own cookie with the answer.
    assert_eq!(opened.steps, [4, 4, 3]);
    opened.assert_data(3);
    assert_eq!(opened.world.server.tcp().rcvbyte, 2 * u64::from(REQUEST_LENGTH));
    let (client, server) = (opened.world.client.tcp(), opened.world.server.tcp());
    assert_eq!(
        (client.fast_open_sent, client.fast_open_acked, server.fast_open_accepted),
        (2, 1, 1)
    );
    assert_eq!(client.sndrexmitpack, 1);
}

#[test]
fn lost_syn_is_retransmitted_without_data() {
    let mut opened = Opened::new(true, true);
    opened.connect(0..0);
    opened.connect(0..1);
    assert_eq!(opened.syns, [(Some(0), 0), (Some(8), REQUEST_LENGTH), (None, 0)]);
    opened.assert_data(2);
    assert_eq!(opened.world.server.tcp().rcvbyte, 2 * u64::from(REQUEST_LENGTH));
}

#[test]
fn early_response_waits_for_the_syn_ack_retransmission() {
    let mut opened = Opened::with(true, true, 500);
    opened.connect(0..0);
    // No answer of the client arrives before the server retransmits.
    opened.connect(1..6);
    let server = opened.world.server.tcp();
    assert_eq!((server.rexmttimeo_syn, server.tlpresends), (1, 0));
    opened.assert_data(2);
}

#[test]
fn unanswered_fast_open_syns_disable_it_for_a_minute() {
    let (fast, again, plain) = ((Some(8), REQUEST_LENGTH), (None, 0), (None, 0));
    let mut opened = Opened::new(true, true);
    opened.connect(0..0);
    // A single lost SYN does not disable Fast Open.
    for lost in [1, 0, 1, 1, 0, 0] {
        opened.connect(0..lost);
    }
    assert_eq!(opened.syns[1..], [fast, again, fast, fast, again, fast, again, plain, plain]);
    opened.world.now += Duration::from_secs(60);
    (0..2).for_each(|_| opened.connect(0..0));
    assert_eq!(opened.syns[10..], [fast, fast]);
    opened.assert_data(9);
}
