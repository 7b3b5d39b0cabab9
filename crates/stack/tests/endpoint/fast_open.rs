//! TCP Fast Open, RFC 7413.

use wirestorm_base::port::{Receive, Transmit};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_stack::endpoint::{Endpoint, Load, Role, Template, Transport};
use wirestorm_stack::program::{Buffer, Buffers, Instruction};
use wirestorm_stack::tcp::segment::{Ecn, Segment};
use wirestorm_wire::packet::tcp::Flags;

use crate::world::{STEP, World, client, endpoint, server, template};

const ASKED: u32 = 40;
const ANSWERED: u32 = 5_000;

/// One client that makes so many connections to one server, one after the other.
struct Opened {
    world: World,
    servers: Vec<Template>,
    buffers: Buffers,
    /// Of SYNs: bytes of their cookies, and of their data.
    syns: Vec<(Option<u8>, u32)>,
    /// How many steps each answer took.
    steps: Vec<u64>,
}

fn fast(template: Template) -> Template {
    let Transport::Tcp(settings) = template.transport else { return template };
    let settings = wirestorm_stack::tcp::settings::Settings { fast_open: true, ..settings };
    Template { transport: Transport::Tcp(settings), ..template }
}

impl Opened {
    fn new(client_is_fast: bool, server_is_fast: bool) -> Self {
        let mut buffers = Buffers::default();
        let ask = buffers.push(Buffer::new(b"", ASKED, &[]));
        let answer = buffers.push(Buffer::new(b"", ANSWERED, &[]));
        let receive = |bytes: u32| Instruction::Receive { bytes: bytes.into(), clear: false };
        let asks = vec![Instruction::Send { buffer: ask }, receive(ANSWERED)];
        let answers = vec![receive(ASKED), Instruction::Send { buffer: answer }];
        let mut role = client("16.0.0.1", 80, Load::Hold { flows: 0 }, None);
        if let Role::Client { tuples, .. } = &mut role {
            (tuples.clients.count, tuples.servers.count) = (1, 1);
        }
        let if_fast = |is_fast, it: Template| if is_fast { fast(it) } else { it };
        let clients = vec![if_fast(client_is_fast, template(asks, role))];
        let servers = vec![if_fast(server_is_fast, template(answers, server(80)))];
        let world = World::of(clients, servers.clone(), &buffers);
        Self { world, servers, buffers, syns: Vec::new(), steps: Vec::new() }
    }

    /// Makes a connection; `lose` says which frame of the client's is lost.
    fn connect(&mut self, lose: Option<usize>) {
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
                let (segment, _) = Segment::parse(&bytes[34..], Ecn::NOT_CAPABLE).unwrap();
                if segment.flags.contains(Flags::SYN) {
                    self.syns.push((segment.options.cookie_length, segment.length));
                }
                if lose != Some(frames) {
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
                && world.client.tcp().rcvbyte >= (before + 1) * u64::from(ANSWERED)
            {
                answered = Some(steps);
            }
        }
        self.steps.extend(answered);
        world.now += Duration::from_millis(20);
    }

    /// Expects that so many connections said all, and nothing twice.
    #[track_caller]
    fn assert_said(&self, connections: u64) {
        let [client, server] = [&self.world.client, &self.world.server].map(Endpoint::tcp);
        assert_eq!(self.world.client.counters().failed(), 0);
        assert_eq!(client.rcvbyte, connections * u64::from(ANSWERED));
        assert_eq!(client.rcvackbyte, connections * u64::from(ASKED));
        assert_eq!(client.sndbyte_ok, connections * u64::from(ASKED));
        assert_eq!(server.sndrexmitpack, 0);
    }
}

#[test]
fn data_goes_with_syn_to_a_server_that_gave_a_cookie() {
    let mut opened = Opened::new(true, true);
    (0..3).for_each(|_| opened.connect(None));
    assert_eq!(opened.syns, [(Some(0), 0), (Some(8), ASKED), (Some(8), ASKED)]);
    // The answer comes a round trip sooner: with that to the SYN.
    assert_eq!(opened.steps, [4, 3, 3]);
    let (client, server) = (opened.world.client.tcp(), opened.world.server.tcp());
    assert_eq!((client.fast_open_sent, client.fast_open_acked, server.fast_open_taken), (2, 2, 2));
    opened.assert_said(3);
    assert_eq!(opened.world.server.tcp().rcvbyte, 3 * u64::from(ASKED));
    assert_eq!(opened.world.client.tcp().sndrexmitpack, 0);
}

#[test]
fn who_knows_nothing_of_it_is_spoken_to_as_always() {
    for (client, server, cookie) in [(true, false, Some(0)), (false, true, None)] {
        let mut opened = Opened::new(client, server);
        (0..2).for_each(|_| opened.connect(None));
        assert_eq!(opened.syns, [(cookie, 0), (cookie, 0)]);
        assert_eq!(opened.steps, [4, 4]);
        opened.assert_said(2);
    }
}

#[test]
fn data_with_the_cookie_of_another_server_is_not_taken_and_comes_again() {
    let mut opened = Opened::new(true, true);
    opened.connect(None);
    // Another one at the same address, with another secret.
    opened.world.server = endpoint(opened.servers.clone(), &opened.buffers, 77);
    (0..2).for_each(|_| opened.connect(None));
    assert_eq!(opened.syns, [(Some(0), 0), (Some(8), ASKED), (Some(8), ASKED)]);
    // It told its own with the answer.
    assert_eq!(opened.steps, [4, 4, 3]);
    opened.assert_said(3);
    assert_eq!(opened.world.server.tcp().rcvbyte, 2 * u64::from(ASKED));
    let (client, server) = (opened.world.client.tcp(), opened.world.server.tcp());
    assert_eq!((client.fast_open_sent, client.fast_open_acked, server.fast_open_taken), (2, 1, 1));
    assert_eq!(client.sndrexmitpack, 1);
}

#[test]
fn a_syn_with_data_that_is_lost_is_sent_again_without() {
    let mut opened = Opened::new(true, true);
    opened.connect(None);
    opened.connect(Some(0));
    assert_eq!(opened.syns, [(Some(0), 0), (Some(8), ASKED), (None, 0)]);
    opened.assert_said(2);
    assert_eq!(opened.world.server.tcp().rcvbyte, 2 * u64::from(ASKED));
}
