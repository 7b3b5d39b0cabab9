//! Two endpoints and a network that loses, duplicates, reorders and damages frames, seeded and in
//! virtual time.

use std::net::IpAddr;
use std::sync::Arc;

use wirestorm_base::port::{Receive, Transmit};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_model::address_range::AddressRange;
use wirestorm_model::blackhole::Blackhole;
use wirestorm_model::ip::IpSettings;
use wirestorm_model::load::Load;
use wirestorm_model::pairing::{ClientOrder, Pairing};
use wirestorm_model::tcp::Settings;
use wirestorm_sim::memory::{MemoryReceive, MemoryTransmit, WireOptions, wire};
use wirestorm_stack::Host;
use wirestorm_stack::content::SessionFactory;
use wirestorm_stack::endpoint::{
    Endpoint, EndpointOptions, LinkHeader, Listen, Role, Template, Transport, Tuples,
};
use wirestorm_stack::program::{Buffers, Contents, Instruction, Program};

/// Configuration of one side.
pub(crate) struct Side {
    pub(crate) program: Vec<Instruction>,
    pub(crate) contents: Contents,
    pub(crate) sessions: Option<Arc<dyn SessionFactory>>,
}

/// Impairment of frames by the network.
#[derive(Clone, Copy)]
pub(crate) struct Impairment {
    /// Frames lost per 1,000.
    pub(crate) lost: u64,
    /// Frames duplicated per 1,000.
    pub(crate) doubled: u64,
    /// Frames per 1,000 with one flipped bit after the Ethernet header.
    pub(crate) damaged: u64,
    /// Maximum random extra delay of a frame in microseconds.
    pub(crate) jitter: u64,
}

impl Impairment {
    pub(crate) const NONE: Self = Self { lost: 0, doubled: 0, damaged: 0, jitter: 0 };
    pub(crate) const ROUGH: Self = Self { lost: 30, doubled: 20, damaged: 20, jitter: 3_000 };
}

type Ends = (MemoryTransmit, MemoryReceive);

/// One direction: what one side sends and the other receives.
struct Path {
    from: Ends,
    to: Ends,
    held: Vec<(Instant, Vec<u8>)>,
}

impl Path {
    fn new() -> Self {
        let options = WireOptions { frames: 512, frame_length_max: 1_600 };
        Self { from: wire(options), to: wire(options), held: Vec::new() }
    }
}

pub(crate) struct World {
    pub(crate) client: Endpoint,
    pub(crate) server: Endpoint,
    up: Path,
    down: Path,
    pub(crate) now: Instant,
    random: u64,
    disturbance: Impairment,
}

const STEP: Duration = Duration::from_micros(100);

impl World {
    /// Creates a world with a number of clients, all active at once.
    pub(crate) fn new(
        sides: [Side; 2],
        buffers: &Buffers,
        clients: [u64; 2],
        disturbance: Impairment,
        seed: u64,
    ) -> Self {
        let range = |first: [u8; 4]| AddressRange { first: IpAddr::from(first), count: 10 };
        let ethernet = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        let tuples = Tuples {
            clients: range([16, 0, 0, 1]),
            servers: range([48, 0, 0, 1]),
            server_port: 443,
            client_ports: 10_000..=60_000,
            consecutive_flows: 1,
            reuse_after: None,
            order: ClientOrder::default(),
            pairing: Pairing::default(),
        };
        let load = Load::Concurrent(clients[1]);
        let link = LinkHeader::new(&ethernet).expect("an Ethernet header");
        let (link, ramp, limit) = (link.into(), Duration::ZERO, Some(clients[0]));
        let client = Role::Client { tuples, link, load, ramp, limit };
        let endpoint = |side: Side, role, seed| {
            let program = Program::with_contents(side.program, side.contents);
            let program = program.expect("a program within its bounds");
            let tcp = Settings { time_wait_ms: 10, retries: 30, ..Settings::default() };
            let (transport, ip) = (Transport::Tcp(tcp), IpSettings::default());
            let sessions = side.sessions;
            let options = EndpointOptions {
                templates: vec![Template {
                    program,
                    transport,
                    ip,
                    sessions,
                    expects_resets: false,
                    role,
                }],
                groups: Vec::new(),
                buffers: buffers.clone(),
                frame_length_max: 1_514,
                flows_max: 1_000,
                host: Host::default(),
                seed,
                blackhole: Blackhole::None,
                verifies_checksums: true,
            };
            Endpoint::new(options, Instant::ZERO)
        };
        let [asks, answers] = sides;
        Self {
            client: endpoint(asks, client, seed),
            server: endpoint(answers, Role::Server { listen: Listen::at(443) }, seed + 1),
            up: Path::new(),
            down: Path::new(),
            now: Instant::ZERO,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            disturbance,
        }
    }

    /// Runs until all flows are over, but at most for this time.
    pub(crate) fn run(&mut self, most: Duration) {
        let end = self.now + most;
        while self.now < end {
            let World { client, server, up, down, now, random, disturbance } = self;
            client.breathe(*now, &mut up.from.0, &mut down.to.1).expect("memory works");
            server.breathe(*now, &mut down.from.0, &mut up.to.1).expect("memory works");
            carry(up, *now, random, disturbance);
            carry(down, *now, random, disturbance);
            if client.is_done() && server.counters().active == 0 {
                return;
            }
            self.now += STEP;
        }
    }
}

fn carry(path: &mut Path, now: Instant, random: &mut u64, disturbance: &Impairment) {
    let mut draw = |end: u64| {
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        (*random >> 11) % end.max(1)
    };
    let mut batch = Vec::new();
    path.from.1.receive(64, &mut batch).expect("memory works");
    for received in batch {
        let mut bytes = path.from.1.frame(&received).to_vec();
        path.from.1.release(received);
        if draw(1_000) < disturbance.lost {
            continue;
        }
        if draw(1_000) < disturbance.damaged {
            let bit = draw(8 * (bytes.len() as u64 - 14)) as usize;
            bytes[14 + bit / 8] ^= 1 << (bit % 8);
        }
        let copies = 1 + u64::from(draw(1_000) < disturbance.doubled);
        for _ in 0..copies {
            let delay = Duration::from_micros(draw(disturbance.jitter + 1));
            path.held.push((now + delay, bytes.clone()));
        }
    }
    let (due, later) = path.held.drain(..).partition(|(at, _)| *at <= now);
    path.held = later;
    for (at, bytes) in due {
        let Some(frame) = path.to.0.take() else {
            path.held.push((at, bytes));
            continue;
        };
        path.to.0.frame_mut(&frame)[..bytes.len()].copy_from_slice(&bytes);
        path.to.0.send(frame, bytes.len(), Instant::ZERO);
    }
    path.to.0.flush().expect("memory works");
}
