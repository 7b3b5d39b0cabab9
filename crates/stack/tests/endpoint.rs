//! Endpoints over wires in memory: how many connections there are, and when.

use std::net::IpAddr;

use wirestorm_base::rate::Rate;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_sim::memory::{MemoryReceive, MemoryTransmit, WireOptions, wire};
use wirestorm_stack::Host;
use wirestorm_stack::endpoint::{
    AddressRange, Endpoint, EndpointOptions, IpSettings, LinkHeader, Load, Role, Template, Tuples,
};
use wirestorm_stack::program::{Buffer, Buffers, Instruction, Program};
use wirestorm_stack::tcp::settings::Settings;

const STEP: Duration = Duration::from_micros(100);

fn endpoint(templates: Vec<Template>, buffers: &Buffers, seed: u64) -> Endpoint {
    let options = EndpointOptions {
        templates,
        buffers: buffers.clone(),
        flows_max: 10_000,
        host: Host::default(),
        seed,
        verifies_checksums: true,
    };
    Endpoint::new(options, Instant::ZERO)
}

fn template(instructions: Vec<Instruction>, role: Role) -> Template {
    let program = Program::new(instructions).unwrap();
    let tcp = Settings { time_wait_ms: 10, ..Settings::default() };
    Template { program, tcp, ip: IpSettings::default(), role }
}

fn client(first: &str, port: u16, load: Load, limit: Option<u64>) -> Role {
    let range =
        |first: &str, count| AddressRange { first: first.parse::<IpAddr>().unwrap(), count };
    let servers = if first.contains(':') { "2001:db8::1" } else { "48.0.0.1" };
    let ethertype: [u8; 2] = if first.contains(':') { [0x86, 0xdd] } else { [8, 0] };
    let header = [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1][..], &ethertype].concat();
    Role::Client {
        tuples: Tuples {
            clients: range(first, 10),
            servers: range(servers, 3),
            server_port: port,
            client_ports: 10_000..=20_000,
        },
        link: LinkHeader::new(&header).unwrap(),
        load,
        limit,
    }
}

/// Two endpoints, and the wires between them.
struct World {
    client: Endpoint,
    server: Endpoint,
    up: (MemoryTransmit, MemoryReceive),
    down: (MemoryTransmit, MemoryReceive),
    now: Instant,
}

impl World {
    /// Templates in which the client says 4 bytes, and the server 5,000 after so many
    /// microseconds.
    fn new(roles: Vec<Role>, think: u32) -> Self {
        let mut buffers = Buffers::default();
        let ask = buffers.push(Buffer::new(b"page", 0, &[]));
        let answer = buffers.push(Buffer::new(b"", 5_000, &[]));
        let receive = |bytes| Instruction::Receive { bytes, clear: false };
        let asks = vec![Instruction::Send { buffer: ask }, receive(5_000)];
        let delay = Instruction::Delay { micros: think };
        let answers = vec![receive(4), delay, Instruction::Send { buffer: answer }];
        let ports = roles.iter().map(|role| match role {
            Role::Client { tuples, .. } => tuples.server_port,
            Role::Server { port } => *port,
        });
        let servers = ports.map(|port| template(answers.clone(), Role::Server { port })).collect();
        let clients = roles.into_iter().map(|role| template(asks.clone(), role)).collect();
        let options = WireOptions { frames: 256, frame_length_max: 1_600 };
        Self {
            client: endpoint(clients, &buffers, 1),
            server: endpoint(servers, &buffers, 2),
            up: wire(options),
            down: wire(options),
            now: Instant::ZERO,
        }
    }

    /// Lets time pass; `look` sees the client after every step.
    fn run(&mut self, span: Duration, mut look: impl FnMut(Instant, &Endpoint)) {
        let end = self.now + span;
        while self.now < end {
            self.client.breathe(self.now, &mut self.up.0, &mut self.down.1).unwrap();
            self.server.breathe(self.now, &mut self.down.0, &mut self.up.1).unwrap();
            look(self.now, &self.client);
            self.now += STEP;
        }
    }

    /// Ends the load, and expects that so many connections were made and are over.
    #[track_caller]
    fn assert_over(&mut self, connections: u64) {
        self.client.stop();
        self.run(Duration::from_secs(1), |_, _| {});
        let (client, server) = (&self.client, &self.server);
        assert_eq!(client.tcp().connattempt, connections);
        assert_eq!((client.counters().closed, client.counters().active), (connections, 0));
        assert_eq!((server.counters().closed, server.counters().active), (connections, 0));
        assert_eq!(client.tcp().rcvbyte, connections * 5_000);
        assert_eq!(server.tcp().rcvackbyte, client.tcp().rcvbyte);
        assert_eq!(client.counters().damaged + server.counters().damaged, 0);
        assert_eq!(client.tcp().sndrexmitpack + server.tcp().sndrexmitpack, 0);
    }
}

const SECOND: Duration = Duration::from_secs(1);

fn rate(units: u64, span: Duration) -> Rate {
    Rate::new(units, span).unwrap()
}

#[test]
fn each_template_has_its_own_exact_rate() {
    let roles = vec![
        client("16.0.0.1", 80, Load::Constant { rate: rate(1_000, SECOND) }, None),
        client("17.0.0.1", 81, Load::Constant { rate: rate(7, Duration::from_secs(3)) }, None),
        client("2001:db8:1::1", 82, Load::Constant { rate: rate(100, SECOND) }, Some(50)),
    ];
    let mut world = World::new(roles, 0);
    world.run(Duration::from_secs(3), |now, client| {
        let millis = now.as_nanos() / 1_000_000;
        let sevenths = now.as_nanos() * 7 / 3_000_000_000;
        let expected = 1 + millis + 1 + sevenths + (1 + millis / 10).min(50);
        assert_eq!(client.tcp().connattempt, expected, "at {now:?}");
    });
    world.assert_over(3_000 + 7 + 50);
}

#[test]
fn independent_users_come_as_often_as_was_said_and_at_any_distance() {
    let load = Load::Poisson { rate: rate(1_000, SECOND) };
    let mut world = World::new(vec![client("16.0.0.1", 80, load, None)], 0);
    let (mut before, mut in_step) = (0, [0_u64; 5]);
    world.run(Duration::from_secs(20), |_, client| {
        let made = client.tcp().connattempt - before;
        before = client.tcp().connattempt;
        in_step[(made as usize).min(4)] += 1;
    });
    // 20,000 with a standard deviation of 141.
    assert!((19_400..20_600).contains(&before), "{before}");
    // A step is a tenth of an interval: exp(-0.1) = 0.905 of the steps have none, 0.0905 one,
    // 0.0045 two.
    let share = |count: u64| count as f64 / 200_000.0;
    assert!((0.900..0.910).contains(&share(in_step[0])), "{in_step:?}");
    assert!((0.087..0.094).contains(&share(in_step[1])), "{in_step:?}");
    assert!((0.003..0.006).contains(&share(in_step[2])), "{in_step:?}");
    world.assert_over(before);
}

#[test]
fn so_many_flows_are_held() {
    let load = Load::Hold { flows: 20 };
    let mut world = World::new(vec![client("16.0.0.1", 80, load, Some(500))], 50_000);
    world.run(SECOND, |now, client| {
        assert_eq!(client.counters().active, 20, "at {now:?}");
    });
    let made = world.client.tcp().connattempt;
    // 50 ms each, and 10 ms of TIME-WAIT.
    assert!((300..400).contains(&made), "{made}");
    world.run(SECOND, |_, _| {});
    world.assert_over(500);
}

#[test]
fn the_next_thing_to_do_is_known() {
    let load = Load::Constant { rate: rate(10, SECOND) };
    let mut world = World::new(vec![client("16.0.0.1", 80, load, Some(3))], 0);
    assert_eq!(world.client.next(), Some(Instant::ZERO));
    assert_eq!(world.server.next(), None);
    world.run(Duration::from_millis(50), |_, _| {});
    assert_eq!(world.client.next(), Some(Instant::ZERO + Duration::from_millis(100)));
    world.assert_over(1);
    assert_eq!((world.client.next(), world.server.next()), (None, None));
}
