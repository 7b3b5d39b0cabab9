//! Two endpoints over wires in memory.

use std::net::IpAddr;

use wirestorm_base::port::{Receive, Transmit};
use wirestorm_base::rate::Rate;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_model::address_range::AddressRange;
use wirestorm_model::blackhole::Blackhole;
use wirestorm_model::ip::IpSettings;
use wirestorm_model::load::Load;
use wirestorm_model::pairing::{ClientOrder, Pairing};
use wirestorm_model::tcp::Settings;
use wirestorm_sim::memory::{MemoryReceive, MemoryTransmit, WireOptions, wire};
use wirestorm_stack::Host;
use wirestorm_stack::endpoint::{
    Endpoint, EndpointOptions, LinkHeader, Listen, Role, Template, Transport, Tuples,
};
use wirestorm_stack::program::{Buffer, Buffers, Instruction, Program};

pub(crate) const STEP: Duration = Duration::from_micros(100);

pub(crate) fn endpoint(templates: Vec<Template>, buffers: &Buffers, seed: u64) -> Endpoint {
    Endpoint::new(options(templates, buffers, seed), Instant::ZERO)
}

pub(crate) fn options(templates: Vec<Template>, buffers: &Buffers, seed: u64) -> EndpointOptions {
    EndpointOptions {
        templates,
        groups: Vec::new(),
        buffers: buffers.clone(),
        frame_length_max: 1_514,
        flows_max: 10_000,
        host: Host::default(),
        seed,
        blackhole: Blackhole::None,
        verifies_checksums: true,
    }
}

pub(crate) fn template(instructions: Vec<Instruction>, role: Role) -> Template {
    let program = Program::new(instructions).unwrap();
    let tcp = Settings { time_wait_ms: 10, maximum_segment_size: 9_000, ..Settings::default() };
    Template {
        program,
        transport: Transport::Tcp(tcp),
        ip: IpSettings::default(),
        sessions: None,
        expects_resets: false,
        role,
    }
}

pub(crate) fn client(first: &str, port: u16, load: Load, limit: Option<u64>) -> Role {
    let range =
        |first: &str, count| AddressRange { first: first.parse::<IpAddr>().unwrap(), count };
    let servers = if first.contains(':') { "2001:db8::1" } else { "48.0.0.1" };
    let ethertype: [u8; 2] = if first.contains(':') { [0x86, 0xdd] } else { [8, 0] };
    let header = [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1][..], &ethertype].concat();
    Role::Client {
        tuples: Tuples {
            clients: range(first, 10),
            order: ClientOrder::RoundRobin,
            servers: range(servers, 3),
            pairing: Pairing::RoundRobin,
            server_port: port,
            client_ports: 10_000..=20_000,
            consecutive_flows: 1,
            reuse_after: None,
        },
        link: LinkHeader::new(&header).unwrap().into(),
        load,
        ramp: Duration::ZERO,
        limit,
    }
}

/// A server at a port.
pub(crate) fn server(port: u16) -> Role {
    Role::Server { listen: Listen::at(port) }
}

/// Two endpoints, and the wires between them.
pub(crate) struct World {
    pub(crate) client: Endpoint,
    pub(crate) server: Endpoint,
    pub(crate) up: (MemoryTransmit, MemoryReceive),
    pub(crate) down: (MemoryTransmit, MemoryReceive),
    pub(crate) now: Instant,
}

impl World {
    /// Creates a world in which the client sends 4 bytes, and the server 5,000 after `think`
    /// microseconds.
    pub(crate) fn new(roles: Vec<Role>, think: u32) -> Self {
        let mut buffers = Buffers::default();
        let ask = buffers.push(Buffer::new(b"page", 0, &[]));
        let answer = buffers.push(Buffer::new(b"", 5_000, &[]));
        let receive = |bytes| Instruction::Receive { bytes, clear: false };
        let asks = vec![Instruction::Send { buffer: ask }, receive(5_000)];
        let delay = Instruction::Delay { micros: think };
        let answers = vec![receive(4), delay, Instruction::Send { buffer: answer }];
        Self::with(roles, &buffers, &asks, &answers)
    }

    /// Creates a world with other programs.
    pub(crate) fn with(
        roles: Vec<Role>,
        buffers: &Buffers,
        asks: &[Instruction],
        answers: &[Instruction],
    ) -> Self {
        let ports = roles.iter().map(|role| match role {
            Role::Client { tuples, .. } => tuples.server_port,
            Role::Server { listen } => listen.port,
            Role::Accepted => 0,
        });
        let servers = ports.map(|port| template(answers.to_vec(), server(port))).collect();
        let clients = roles.into_iter().map(|role| template(asks.to_vec(), role)).collect();
        Self::of(clients, servers, buffers)
    }

    /// Creates a world with these client and server templates.
    pub(crate) fn of(clients: Vec<Template>, servers: Vec<Template>, buffers: &Buffers) -> Self {
        let options = WireOptions { frames: 256, frame_length_max: 1_600 };
        Self {
            client: endpoint(clients, buffers, 1),
            server: endpoint(servers, buffers, 2),
            up: wire(options),
            down: wire(options),
            now: Instant::ZERO,
        }
    }

    /// Runs for a time; `look` sees the client after each step.
    pub(crate) fn run(&mut self, span: Duration, mut look: impl FnMut(Instant, &Endpoint)) {
        let end = self.now + span;
        while self.now < end {
            self.client.breathe(self.now, &mut self.up.0, &mut self.down.1).unwrap();
            self.server.breathe(self.now, &mut self.down.0, &mut self.up.1).unwrap();
            look(self.now, &self.client);
            self.now += STEP;
        }
    }

    /// Stops the load, and asserts that `connections` connections were made and are over.
    #[track_caller]
    pub(crate) fn assert_over(&mut self, connections: u64) {
        self.client.stop();
        self.run(Duration::from_secs(1), |_, _| {});
        let (client, server) = (&self.client, &self.server);
        assert_eq!(client.tcp().connattempt, connections);
        assert_eq!((client.counters().closed, client.counters().active), (connections, 0));
        assert_eq!((server.counters().closed, server.counters().active), (connections, 0));
        assert_eq!(client.tcp().rcvbyte, connections * 5_000);
        assert_eq!(server.tcp().rcvackbyte, client.tcp().rcvbyte);
        assert_eq!(client.unmatched().malformed + server.unmatched().malformed, 0);
        assert_eq!(client.tcp().sndrexmitpack + server.tcp().sndrexmitpack, 0);
    }
}

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn rate(units: u64, span: Duration) -> Rate {
    Rate::new(units, span).unwrap()
}

/// Passes each frame on a wire to `look`, which may modify it.
pub(crate) fn pass_by(
    (transmit, receive): &mut (MemoryTransmit, MemoryReceive),
    mut look: impl FnMut(&mut [u8]),
) {
    let mut batch = Vec::new();
    receive.receive(64, &mut batch).unwrap();
    for received in batch {
        let mut bytes = receive.frame(&received).to_vec();
        look(&mut bytes);
        let frame = transmit.take().unwrap();
        transmit.frame_mut(&frame)[..bytes.len()].copy_from_slice(&bytes);
        transmit.send(frame, bytes.len(), Instant::ZERO);
        receive.release(received);
    }
    transmit.flush().unwrap();
}

/// Takes the frames from a wire.
pub(crate) fn frames(transmitted: &mut impl Receive) -> Vec<Vec<u8>> {
    let mut batch = Vec::new();
    transmitted.receive(256, &mut batch).unwrap();
    let frames = batch.iter().map(|it| transmitted.frame(it).to_vec()).collect();
    batch.into_iter().for_each(|it| transmitted.release(it));
    frames
}

/// Puts a frame on a wire.
pub(crate) fn put(transmit: &mut impl Transmit, frame: &[u8]) {
    let id = transmit.take().unwrap();
    transmit.frame_mut(&id)[..frame.len()].copy_from_slice(frame);
    transmit.send(id, frame.len(), Instant::ZERO);
    transmit.flush().unwrap();
}
