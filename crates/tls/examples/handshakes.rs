//! Measures full TLS 1.3 handshakes per second of one core that runs both sides. `handshakes stack
//! COUNT` opens, shakes hands on and closes COUNT connections of the stack over wires in memory.
//! `handshakes rustls COUNT` uses the same settings with rustls alone. Both print one JSON
//! document; `./bench` runs them.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Instant as Clock;

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, Connection, ServerConnection};
use wirestorm_base::rate::Rate;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_model::address_range::AddressRange;
use wirestorm_model::blackhole::Blackhole;
use wirestorm_model::ip::IpSettings;
use wirestorm_model::load::Load;
use wirestorm_model::pairing::{ClientOrder, Pairing};
use wirestorm_model::tcp::Settings;
use wirestorm_sim::memory::{WireOptions, wire};
use wirestorm_stack::Host;
use wirestorm_stack::endpoint::{
    Endpoint, EndpointOptions, LinkHeader, Listen, Role, Template, Transport, Tuples,
};
use wirestorm_stack::program::{Buffers, Instruction, Program};
use wirestorm_tls::{Resume, TlsClients, TlsServers, TlsSettings, Version};

/// Interval between connections, and between two polls of the wires.
const STEP: Duration = Duration::from_micros(10);
const START: Instant = Instant::from_nanos(1);
const PORT: u16 = 443;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (what, count) = (arguments.next(), arguments.next());
    let shake: fn(Arc<TlsClients>, Arc<TlsServers>, u64) = match what.as_deref() {
        Some("stack") => over_the_stack,
        Some("rustls") => alone,
        _ => usage(),
    };
    let Some(count) = count.and_then(|it| it.parse().ok()) else { usage() };
    let settings = TlsSettings {
        versions: vec![Version::Tls13],
        ciphers: vec!["TLS_AES_128_GCM_SHA256".into()],
        resume: Resume::NONE,
        ..TlsSettings::default()
    };
    let clients = Arc::new(TlsClients::new(&settings).expect("good settings"));
    let servers = Arc::new(TlsServers::new(&settings).expect("good settings"));
    let began = Clock::now();
    shake(clients, servers, count);
    let elapsed = began.elapsed().as_secs_f64();
    println!("{{\"handshakes\": {count}, \"elapsed_s\": {elapsed}}}");
}

fn usage() -> ! {
    eprintln!("usage: handshakes stack|rustls COUNT");
    std::process::exit(2);
}

/// Handshakes with nothing between the two sides.
fn alone(clients: Arc<TlsClients>, servers: Arc<TlsServers>, count: u64) {
    let name = ServerName::from(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let mut flight = Vec::new();
    for _ in 0..count {
        let client = ClientConnection::new(Arc::clone(clients.config()), name.clone());
        let server = ServerConnection::new(Arc::clone(servers.config()));
        let mut client = Connection::from(client.expect("good settings"));
        let mut server = Connection::from(server.expect("good settings"));
        while client.is_handshaking() || server.is_handshaking() {
            pass(&mut client, &mut server, &mut flight);
            pass(&mut server, &mut client, &mut flight);
        }
        client.send_close_notify();
        pass(&mut client, &mut server, &mut flight);
        server.send_close_notify();
        pass(&mut server, &mut client, &mut flight);
    }
}

/// Passes all pending bytes from one side to the other.
fn pass(from: &mut Connection, to: &mut Connection, flight: &mut Vec<u8>) {
    flight.clear();
    while from.wants_write() {
        from.write_tls(flight.by_ref()).expect("memory works");
    }
    let mut bytes = flight.as_slice();
    while !bytes.is_empty() {
        to.read_tls(&mut bytes).expect("memory works");
        to.process_new_packets().expect("a good peer");
    }
}

/// Handshakes between two endpoints of the stack.
fn over_the_stack(clients: Arc<TlsClients>, servers: Arc<TlsServers>, count: u64) {
    let range = |first: [u8; 4]| AddressRange { first: IpAddr::from(first), count: 255 };
    let tuples = Tuples {
        clients: range([16, 0, 0, 1]),
        servers: range([48, 0, 0, 1]),
        server_port: PORT,
        client_ports: 1_024..=65_535,
        consecutive_flows: 1,
        reuse_after: None,
        order: ClientOrder::default(),
        pairing: Pairing::default(),
    };
    let ethernet = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    let link = LinkHeader::new(&ethernet).expect("an Ethernet header");
    let load = Load::Rate { rate: Rate::new(1, STEP).expect("not zero"), concurrent_max: None };
    let (link, ramp, limit) = (link.into(), Duration::ZERO, Some(count));
    let asks = Role::Client { tuples, link, load, ramp, limit };
    let answers = Role::Server { listen: Listen::at(PORT) };
    let endpoint = |program: &[Instruction], sessions, role, seed| {
        let program = Program::new(program).expect("a program within its bounds");
        let (transport, ip) = (Transport::Tcp(Settings::default()), IpSettings::default());
        let options = EndpointOptions {
            templates: vec![Template {
                program,
                transport,
                ip,
                sessions: Some(sessions),
                expects_resets: false,
                role,
            }],
            groups: Vec::new(),
            buffers: Buffers::default(),
            frame_length_max: 1_514,
            flows_max: 4_000_000,
            host: Host::default(),
            seed,
            blackhole: Blackhole::None,
            verifies_checksums: false,
        };
        Endpoint::new(options, START)
    };
    let mut client = endpoint(&[], clients, asks, 1);
    let mut server = endpoint(&[Instruction::WaitForPeerClose], servers, answers, 2);
    let options = WireOptions { frames: 512, frame_length_max: 1_600 };
    let (mut to_server, mut at_server) = wire(options);
    let (mut to_client, mut at_client) = wire(options);
    let is_done = |it: &Endpoint| it.tally(0).is_some_and(|it| it.flows.closed == count);
    let mut now = START;
    while !is_done(&client) || !is_done(&server) {
        client.breathe(now, &mut to_server, &mut at_client).expect("memory works");
        server.breathe(now, &mut to_client, &mut at_server).expect("memory works");
        now += STEP;
    }
    for sessions in [client.sessions(), server.sessions()] {
        assert_eq!(
            (sessions.full_handshakes, sessions.resumed_handshakes, sessions.failures.len()),
            (count, 0, 0)
        );
    }
}
