//! Flows that programs ask for.

use std::collections::BTreeSet;

use wirestorm_base::time::{Duration, Instant};
use wirestorm_stack::endpoint::{Endpoint, EndpointOptions, Load, Role, Template, Transport};
use wirestorm_stack::program::{Buffer, BufferId, Buffers, Instruction};

use crate::world::{SECOND, World, client, options, pass_by, server, template};

use Instruction::{ExecTemplate, SetTemplate};

/// A question of 5 bytes, and an answer of 1,000.
struct Pages {
    buffers: Buffers,
    question: BufferId,
    answer: BufferId,
}

impl Pages {
    fn new() -> Self {
        let mut buffers = Buffers::default();
        let question = buffers.push(Buffer::new(b"query", 0, &[]));
        let answer = buffers.push(Buffer::new(b"answer", 1_000, &[]));
        Self { buffers, question, answer }
    }

    fn fetch(&self) -> Vec<Instruction> {
        vec![
            Instruction::Send { buffer: self.question },
            Instruction::Receive { bytes: 1_000, clear: true },
        ]
    }

    fn ask(&self) -> Vec<Instruction> {
        vec![
            Instruction::SendDatagram { buffer: self.question },
            Instruction::ReceiveDatagrams { count: 1, clear: true },
        ]
    }

    /// Servers of both transports at ports 80 to 83.
    fn servers(&self) -> Vec<Template> {
        let pages = vec![
            Instruction::Receive { bytes: 5, clear: true },
            Instruction::Delay { micros: 20_000 },
            Instruction::Send { buffer: self.answer },
            Instruction::Jump { to: 0 },
        ];
        let answers = vec![
            Instruction::ReceiveDatagrams { count: 1, clear: true },
            Instruction::Delay { micros: 20_000 },
            Instruction::SendDatagram { buffer: self.answer },
        ];
        let at = |port| {
            let udp = template(answers.clone(), server(port));
            [template(pages.clone(), server(port)), Template { transport: Transport::Udp, ..udp }]
        };
        (80..84).flat_map(at).collect()
    }

    fn world(&self, clients: Vec<Template>, groups: &[&[usize]]) -> World {
        let mut world = World::of(vec![], self.servers(), &self.buffers);
        let groups = groups.iter().map(|it| it.to_vec()).collect();
        let options = EndpointOptions { groups, ..options(clients, &self.buffers, 1) };
        world.client = Endpoint::new(options, Instant::ZERO);
        world
    }
}

fn udp(template: Template) -> Template {
    Template { transport: Transport::Udp, ..template }
}

fn one(port: u16) -> Role {
    client("16.0.0.1", port, Load::Hold { flows: 1 }, Some(1))
}

fn asked(port: u16) -> Role {
    client("16.0.0.1", port, Load::OnDemand, None)
}

#[test]
fn a_program_waits_for_the_flow_it_asked_for() {
    let pages = Pages::new();
    let main = |own: Vec<Instruction>| {
        let forever = Instruction::SetIdle { millis: 10_000, receive_only: false };
        let browse = [
            SetTemplate { group: 0 },
            ExecTemplate,
            SetTemplate { group: 1 },
            ExecTemplate,
            ExecTemplate,
        ];
        [vec![forever], own.clone(), browse.to_vec(), own].concat()
    };
    for is_udp in [false, true] {
        let main = match is_udp {
            false => template(main(pages.fetch()), one(80)),
            true => udp(template(main(pages.ask()), one(80))),
        };
        let clients =
            vec![main, template(pages.fetch(), asked(81)), udp(template(pages.ask(), asked(82)))];
        let mut world = pages.world(clients, &[&[1], &[2]]);
        let mut order = Vec::new();
        world.run(SECOND, |now, client| {
            let made: Vec<_> = (0..3).map(|it| client.tally(it).unwrap().flows.made).collect();
            if order.last().is_none_or(|(last, _)| *last != made) {
                order.push((made, now.as_nanos() / 1_000_000));
            }
            assert!(client.counters().active <= 2, "one at a time beside the first");
        });
        let (made, at): (Vec<_>, Vec<_>) = order.into_iter().unzip();
        assert_eq!(made, [[1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 1, 2]]);
        // A page takes 20 ms, and what is closed as it should be is remembered for 10 more.
        assert!(at.windows(2).all(|pair| (20..40).contains(&(pair[1] - pair[0]))), "{at:?}");
        let flows = world.client.tally(0).unwrap().flows;
        assert_eq!((flows.flows_total, flows.flows_other), (3, 3));
        let flows = world.client.counters();
        assert_eq!((flows.closed, flows.failed(), flows.active), (4, 0, 0));
    }
}

#[test]
fn the_flow_is_of_the_same_client_and_any_template_of_the_group() {
    let pages = Pages::new();
    let mut role = client("16.0.0.1", 80, Load::Hold { flows: 10 }, Some(10));
    let Role::Client { tuples, .. } = &mut role else { unreachable!("it is one") };
    tuples.clients.count = 10;
    let program: Vec<_> =
        [SetTemplate { group: 0 }].into_iter().chain([ExecTemplate; 20]).collect();
    let clients = vec![
        template(program, role),
        template(pages.fetch(), asked(81)),
        template(pages.fetch(), asked(82)),
        udp(template(pages.ask(), asked(83))),
    ];
    let mut world = pages.world(clients, &[&[1, 2, 3]]);
    let mut seen = BTreeSet::new();
    for _ in 0..15_000 {
        world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
        pass_by(&mut world.up, |frame| {
            // The client's last byte, and the server's port.
            seen.insert((frame[29], u16::from_be_bytes([frame[36], frame[37]])));
        });
        world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
        world.now += crate::world::STEP;
    }
    assert_eq!(world.client.counters().closed, 10 + 200);
    assert_eq!(world.client.tally(0).unwrap().flows.flows_total, 200);
    let made: Vec<_> = (1..4).map(|it| world.client.tally(it).unwrap().flows.made).collect();
    // 67 each, with a standard deviation of 7.
    assert!(made.iter().all(|made| (45..90).contains(made)), "{made:?}");
    let expected = (1..=10).flat_map(|client| (80..84).map(move |port| (client, port)));
    assert_eq!(seen, expected.collect());
}

#[test]
fn what_cannot_be_made_is_not_waited_for() {
    let pages = Pages::new();
    let program = vec![SetTemplate { group: 7 }, ExecTemplate];
    let empty = vec![SetTemplate { group: 0 }, ExecTemplate];
    let of_a_server = vec![SetTemplate { group: 1 }, ExecTemplate];
    let clients = vec![
        template(program, one(80)),
        template(empty, one(80)),
        template(of_a_server, one(80)),
        template(vec![], server(9)),
    ];
    let mut world = pages.world(clients, &[&[], &[3, 99]]);
    world.run(SECOND, |_, _| {});
    let flows = world.client.counters();
    assert_eq!((flows.closed, flows.active, flows.flows_total), (3, 0, 0));
}

#[test]
fn a_template_that_asks_for_itself_is_bounded() {
    let pages = Pages::new();
    let program = vec![Instruction::Connect, ExecTemplate];
    let clients = vec![template(program, one(80))];
    let mut world = pages.world(clients, &[]);
    let options = options(vec![], &pages.buffers, 1);
    let mut most = 0;
    world.run(Duration::from_secs(3), |_, client| most = most.max(client.counters().active));
    let flows = world.client.counters();
    assert!(most > 100, "{most}");
    assert!(flows.active_max <= options.flows_max as u64);
    assert_eq!((flows.flows_other, flows.flows_total + 1), (0, flows.made));
}

#[test]
fn who_is_gone_waits_for_nothing() {
    let pages = Pages::new();
    // It is dropped for want of traffic while its flow goes on; the next one takes its place.
    let program = vec![
        Instruction::SetIdle { millis: 7, receive_only: false },
        SetTemplate { group: 0 },
        ExecTemplate,
        Instruction::SendDatagram { buffer: pages.question },
    ];
    let role = client("16.0.0.1", 80, Load::Hold { flows: 1 }, Some(40));
    let clients = vec![udp(template(program, role)), template(pages.fetch(), asked(81))];
    let mut world = pages.world(clients, &[&[1]]);
    world.run(SECOND, |_, _| {});
    let [main, executed] = [0, 1].map(|it| world.client.tally(it).unwrap().flows);
    assert_eq!((main.idle, main.closed), (40, 0));
    assert_eq!((executed.closed, executed.active), (40, 0));
    assert_eq!(world.client.udp().sndpkt, 0);
}
