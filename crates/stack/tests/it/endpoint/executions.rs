//! Flows that programs start.

use std::collections::BTreeSet;

use wirestorm_base::time::{Duration, Instant};
use wirestorm_model::load::Load;
use wirestorm_model::program::{
    Composition, Delimiter, MessageFraming, MessagePart, Piece, TextVariable, Value, ValueFormat,
    Variable,
};
use wirestorm_stack::endpoint::{Endpoint, EndpointOptions, Role, Template, Transport};
use wirestorm_stack::program::{
    Buffer, BufferId, Buffers, Cause, Check, Contents, Extraction, Instruction, Program,
};
use wirestorm_wire::pattern::Pattern;

use super::world::{SECOND, World, client, options, pass_by, server, template};

use Instruction::{AcceptTemplate, ExecTemplate, SetTemplate};

/// A request of 5 bytes, and a response of 1,000.
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
    client("16.0.0.1", port, Load::Concurrent(1), Some(1))
}

fn on_demand_client(port: u16) -> Role {
    client("16.0.0.1", port, Load::OnDemand, None)
}

#[test]
fn program_waits_for_the_flow_that_it_started() {
    let pages = Pages::new();
    let main = |instructions: Vec<Instruction>| {
        let forever = Instruction::SetIdle { millis: 10_000, receive_only: false };
        let browse = [
            SetTemplate { group: 0 },
            ExecTemplate,
            SetTemplate { group: 1 },
            ExecTemplate,
            ExecTemplate,
        ];
        [vec![forever], instructions.clone(), browse.to_vec(), instructions].concat()
    };
    for is_udp in [false, true] {
        let main = match is_udp {
            false => template(main(pages.fetch()), one(80)),
            true => udp(template(main(pages.ask()), one(80))),
        };
        let clients = vec![
            main,
            template(pages.fetch(), on_demand_client(81)),
            udp(template(pages.ask(), on_demand_client(82))),
        ];
        let mut world = pages.world(clients, &[&[1], &[2]]);
        let mut order = Vec::new();
        world.run(SECOND, |now, client| {
            let flows_started: Vec<_> =
                (0..3).map(|it| client.tally(it).unwrap().flows.started).collect();
            if order.last().is_none_or(|(last, _)| *last != flows_started) {
                order.push((flows_started, now.as_nanos() / 1_000_000));
            }
            let flows = client.counters();
            assert!(flows.active - flows.waiting <= 2, "one at a time beside the first");
        });
        let (flows_started, at): (Vec<_>, Vec<_>) = order.into_iter().unzip();
        assert_eq!(flows_started, [[1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 1, 2]]);
        // A page takes 20 ms. The 10 ms of TIME-WAIT do not count.
        assert!(at.windows(2).all(|pair| (20..30).contains(&(pair[1] - pair[0]))), "{at:?}");
        let flows = world.client.tally(0).unwrap().flows;
        assert_eq!((flows.flows_total, flows.flows_other), (3, 3));
        let flows = world.client.counters();
        assert_eq!((flows.closed, flows.failed(), flows.active), (4, 0, 0));
    }
}

#[test]
fn started_flow_has_the_same_client_and_a_random_template_of_the_group() {
    let pages = Pages::new();
    let mut role = client("16.0.0.1", 80, Load::Concurrent(10), Some(10));
    let Role::Client { tuples, .. } = &mut role else { unreachable!("it is one") };
    tuples.clients.count = 10;
    let program: Vec<_> =
        [SetTemplate { group: 0 }].into_iter().chain([ExecTemplate; 20]).collect();
    let clients = vec![
        template(program, role),
        template(pages.fetch(), on_demand_client(81)),
        template(pages.fetch(), on_demand_client(82)),
        udp(template(pages.ask(), on_demand_client(83))),
    ];
    let mut world = pages.world(clients, &[&[1, 2, 3]]);
    let mut seen = BTreeSet::new();
    for _ in 0..15_000 {
        world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
        pass_by(&mut world.up, |frame| {
            // Last byte of the client's address, and server port.
            seen.insert((frame[29], u16::from_be_bytes([frame[36], frame[37]])));
        });
        world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
        world.now += super::world::STEP;
    }
    assert_eq!(world.client.counters().closed, 10 + 200);
    assert_eq!(world.client.tally(0).unwrap().flows.flows_total, 200);
    let flows_started: Vec<_> =
        (1..4).map(|it| world.client.tally(it).unwrap().flows.started).collect();
    // 67 each, with a standard deviation of 7.
    assert!(
        flows_started.iter().all(|flows_started| (45..90).contains(flows_started)),
        "{flows_started:?}"
    );
    let expected = (1..=10).flat_map(|client| (80..84).map(move |port| (client, port)));
    assert_eq!(seen, expected.collect());
}

#[test]
fn program_does_not_wait_for_a_flow_that_cannot_start() {
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
fn recursive_templates_are_bounded() {
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
    assert_eq!((flows.flows_other, flows.flows_total + 1), (0, flows.started));
}

#[test]
fn dropped_flow_does_not_wait_for_its_started_flow() {
    let pages = Pages::new();
    // The flow is dropped as idle while the flow that it started continues; the next one takes its
    // place.
    let program = vec![
        Instruction::SetIdle { millis: 7, receive_only: false },
        SetTemplate { group: 0 },
        ExecTemplate,
        Instruction::SendDatagram { buffer: pages.question },
    ];
    let role = client("16.0.0.1", 80, Load::Concurrent(1), Some(40));
    let clients = vec![udp(template(program, role)), template(pages.fetch(), on_demand_client(81))];
    let mut world = pages.world(clients, &[&[1]]);
    world.run(SECOND, |_, _| {});
    let [main, executed] = [0, 1].map(|it| world.client.tally(it).unwrap().flows);
    assert_eq!((main.idle_timeout, main.closed), (40, 0));
    assert_eq!((executed.closed, executed.active), (40, 0));
    assert_eq!(world.client.udp().sndpkt, 0);
}

/// A control connection: the client sends `query`, receives the port of the answer, and fetches the
/// answer from there. Then the server reports that it is done.
struct Transfer {
    pages: Pages,
    through: BufferId,
}

impl Transfer {
    fn new() -> Self {
        let mut pages = Pages::new();
        let through = pages.buffers.push(Buffer::new(b"through\n", 0, &[]));
        Self { pages, through }
    }

    /// Client program; `value` selects the port.
    fn asks(&self, value: Value) -> Program {
        let line = MessageFraming::Until(Delimiter::new(b"\n").unwrap());
        let digits = MessagePart::Group(Pattern::new(r"^(\d+)\n").unwrap(), 1);
        let text = TextVariable::new(0).unwrap();
        let contents = Contents {
            rules: vec![line],
            checks: vec![Check::Matches(Pattern::new("^through").unwrap())],
            extractions: vec![Extraction { text, part: digits }],
            ports: vec![value],
            ..Contents::default()
        };
        let instructions = [
            Instruction::Send { buffer: self.pages.question },
            Instruction::Take { rule: 0, is_required: true },
            Instruction::Extract { extraction: 0 },
            SetTemplate { group: 0 },
            Instruction::StartTemplate { port: 0, local_port: None },
            Instruction::AwaitTemplate,
            Instruction::Take { rule: 0, is_required: true },
            Instruction::Expect { check: 0 },
        ];
        Program::with_contents(instructions, contents).unwrap()
    }

    /// Server program; `delay` is the time before it accepts the connection, in us.
    fn answers(&self, delay: u32) -> Program {
        let variable = Variable::new(0).unwrap();
        let port = Composition {
            pieces: vec![
                Piece::Value(Value::Number(variable), ValueFormat::Plain),
                Piece::Bytes(b"\n".as_slice().into()),
            ],
            ..Composition::default()
        };
        let contents = Contents { compositions: vec![port], ..Contents::default() };
        let instructions = [
            Instruction::Receive { bytes: 5, clear: true },
            Instruction::Listen { variable, first: 50_000, last: 50_001 },
            Instruction::SendComposed { composition: 0 },
            Instruction::Delay { micros: delay },
            SetTemplate { group: 0 },
            AcceptTemplate,
            Instruction::Send { buffer: self.through },
            Instruction::WaitForPeerClose,
        ];
        Program::with_contents(instructions, contents).unwrap()
    }

    fn world(&self, asks: Program, answers: Program, clients: u64) -> World {
        self.world_of(asks, answers, clients, vec![Instruction::Need { bytes: 1_000 }])
    }

    fn world_of(
        &self,
        asks: Program,
        answers: Program,
        clients: u64,
        fetch: Vec<Instruction>,
    ) -> World {
        let buffers = &self.pages.buffers;
        let data = vec![Instruction::Send { buffer: self.pages.answer }];
        let role = client("16.0.0.1", 80, Load::Concurrent(clients), Some(clients));
        let asks = Template { program: asks, ..template(vec![], role) };
        let answers = Template { program: answers, ..template(vec![], server(80)) };
        let mut world = World::of(vec![], vec![], buffers);
        let clients = vec![asks, template(fetch, on_demand_client(81))];
        let servers = vec![answers, template(data, Role::Accepted)];
        let of = |templates, seed| {
            let options = options(templates, buffers, seed);
            Endpoint::new(EndpointOptions { groups: vec![vec![1]], ..options }, Instant::ZERO)
        };
        (world.client, world.server) = (of(clients, 1), of(servers, 2));
        world
    }
}

fn received_text() -> Value {
    Value::Text(TextVariable::new(0).unwrap())
}

/// Results of both templates' flows of an endpoint, and the number of failed programs.
fn ends(endpoint: &Endpoint) -> [(u64, u64, u64); 2] {
    [0, 1].map(|it| {
        let flows = endpoint.tally(it).unwrap().flows;
        (flows.closed, flows.failed(), flows.active)
    })
}

/// First cause of failure, and the received data.
fn failure(endpoint: &Endpoint, template: usize) -> Option<(Cause, String)> {
    let findings = &endpoint.tally(template).unwrap().findings;
    let (_, cause, failure) = findings.failures().next()?;
    Some((cause, String::from_utf8(failure.found.clone()).unwrap()))
}

#[test]
fn connection_reaches_a_listening_program() {
    let transfer = Transfer::new();
    // The connection arrives before or after the server waits for it. There are more flows than
    // ports of one client; each flow has its own port.
    for delay in [0, 50_000] {
        let mut world = transfer.world(transfer.asks(received_text()), transfer.answers(delay), 20);
        let mut ports = BTreeSet::new();
        world.run(SECOND, |_, _| {});
        for endpoint in [&world.client, &world.server] {
            assert_eq!(ends(endpoint), [(20, 0, 0); 2], "{delay} us");
            let tally = endpoint.tally(1).unwrap();
            assert_eq!((tally.flows.active_max > 0, tally.tcp.connects), (true, 20));
            assert_eq!(endpoint.tally(0).unwrap().flows.flows_other, 20);
        }
        assert_eq!(world.client.tally(1).unwrap().tcp.rcvbyte, 20 * 1_000);
        let tcp = world.server.tally(1).unwrap().tcp;
        assert_eq!((tcp.accepts, tcp.sndbyte), (20, 20 * 1_000));
        // The three segments that arrived while the connection was held moved with it.
        assert_eq!(tcp.rcvtotal, world.client.tally(1).unwrap().tcp.sndtotal);
        assert_eq!(world.server.counters().failed() + world.server.unmatched().no_template, 0);
        // Both ports are free again.
        let mut world = transfer.world(transfer.asks(received_text()), transfer.answers(delay), 1);
        for _ in 0..2_000 {
            world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
            pass_by(&mut world.up, |frame| {
                ports.insert(u16::from_be_bytes([frame[36], frame[37]]));
            });
            world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
            world.now += super::world::STEP;
        }
        assert_eq!(ports, [80, 50_000].into(), "the announced port");
    }
}

#[test]
fn failure_of_a_started_flow_fails_the_waiting_one() {
    let transfer = Transfer::new();
    // The client uses its own port as that of the server; nothing listens there.
    let asks = transfer.asks(Value::ClientPort);
    let mut world = transfer.world(asks, transfer.answers(0), 3);
    world.run(SECOND, |_, _| {});
    assert_eq!(ends(&world.client), [(0, 3, 0), (0, 3, 0)]);
    assert_eq!(world.client.tally(1).unwrap().flows.refused, 3);
    assert_eq!(failure(&world.client, 0).unwrap().0, Cause::ChildFlow);
    // The server's program learns that no connection will come.
    assert_eq!(ends(&world.server), [(0, 3, 0), (0, 0, 0)]);
    assert_eq!(failure(&world.server, 0).unwrap().0, Cause::Closed);

    // A value that is no port.
    let mut world = transfer.world(transfer.asks(Value::Server), transfer.answers(0), 3);
    world.run(SECOND, |_, _| {});
    assert_eq!(ends(&world.client), [(0, 3, 0), (0, 0, 0)]);
    assert_eq!(failure(&world.client, 0).unwrap().0, Cause::NoPort);

    // The response is shorter than required.
    let fetch = vec![Instruction::Need { bytes: 1_001 }];
    let mut world =
        transfer.world_of(transfer.asks(received_text()), transfer.answers(0), 3, fetch);
    world.run(SECOND, |_, _| {});
    assert_eq!(ends(&world.client), [(0, 3, 0), (0, 3, 0)]);
    assert_eq!(failure(&world.client, 1), Some((Cause::Closed, String::new())));
    // The data received on the other flow is reported.
    assert_eq!(failure(&world.client, 0), Some((Cause::ChildFlow, "through\n".to_owned())));
    assert_eq!(ends(&world.server)[1], (3, 0, 0));
}

#[test]
fn connections_without_an_accepting_program_are_reset() {
    let transfer = Transfer::new();
    let (variable, delay) = (Variable::new(0).unwrap(), Instruction::Delay { micros: 20_000 });
    let listen = Instruction::Listen { variable, first: 50_000, last: 50_000 };
    let port = Value::Number(variable);
    let asks = |waits: Instruction| {
        let contents = Contents { ports: vec![port], ..Contents::default() };
        let set = Instruction::Set { variable, value: 50_000 };
        let start = Instruction::StartTemplate { port: 0, local_port: None };
        let group = SetTemplate { group: 0 };
        let instructions =
            [Instruction::Connect, waits, set, group, start, Instruction::AwaitTemplate];
        Program::with_contents(instructions, contents).unwrap()
    };
    // The listener ends while the connection is held, or before it arrives. Or it listens again,
    // which drops the first connection if the second port is not free; else the connection would be
    // refused.
    for (answers, waits, expected) in [
        (vec![listen, delay, delay], delay, (0, 1)),
        (vec![listen], delay, (1, 0)),
        (vec![listen, delay, delay, listen, delay, delay], delay, (0, 1)),
    ] {
        let answers = Program::new(answers).unwrap();
        let mut world = transfer.world(asks(waits), answers, 1);
        world.run(SECOND, |_, _| {});
        let flows = world.client.tally(1).unwrap().flows;
        assert_eq!((flows.refused, flows.reset, flows.active), (expected.0, expected.1, 0));
        assert_eq!(world.server.counters().active, 0);
    }
    // Accepting without a listener fails, and so does listening without a free port.
    let taken = vec![SetTemplate { group: 0 }, AcceptTemplate];
    let busy = vec![Instruction::Listen { variable, first: 80, last: 80 }];
    for (answers, cause) in [(taken, Cause::ChildFlow), (busy, Cause::NoPort)] {
        let answers = Program::new(answers).unwrap();
        let mut world = transfer.world(asks(delay), answers, 1);
        world.run(SECOND, |_, _| {});
        assert_eq!(failure(&world.server, 0).unwrap().0, cause);
        assert_eq!(ends(&world.server)[0], (0, 1, 0));
    }
}
