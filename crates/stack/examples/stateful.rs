//! Measures the connection rate of one core that runs both ends over wires in memory.
//!
//! `stateful CONNECTIONS REQUESTS PAGE` prints one JSON document; `./bench` runs it.
//! Each connection sends REQUESTS requests of 100 bytes, receives PAGE bytes for each, and closes.
//! With 0 requests the connections stay open without data, and the result includes their memory.

use std::net::IpAddr;
use std::time::Instant as Clock;

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
    Endpoint, EndpointOptions, LinkHeader, Listen, Role, Tally, Template, Transport, Tuples,
};
use wirestorm_stack::program::{Buffer, Buffers, Instruction, Program};

/// Bytes of a request.
const REQUEST: u32 = 100;
/// Interval between connections, and between two polls of the wires.
const STEP: Duration = Duration::from_micros(10);
const START: Instant = Instant::from_nanos(1);

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let (Some(Ok(connections)), Some(Ok(requests @ 0..=30_000)), Some(Ok(page @ 1..=1_000_000))) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        eprintln!("usage: stateful CONNECTIONS REQUESTS PAGE");
        std::process::exit(2);
    };
    let [mut client, mut server] = endpoints(connections, requests, page as u32);
    let options = WireOptions { frames: 512, frame_length_max: 1_600 };
    let (mut to_server, mut at_server) = wire(options);
    let (mut to_client, mut at_client) = wire(options);

    let [resident_before, _] = resident_bytes();
    let began = Clock::now();
    let (mut now, mut frames) = (START, 0);
    let is_idle = requests == 0;
    let is_done = |client: &Tally, server: &Tally| match is_idle {
        _ if client.tcp.connattempt < connections => false,
        true => server.tcp.connects == connections,
        false => client.flows.active + server.flows.active == 0,
    };
    while !is_done(tally(&client), tally(&server)) {
        frames += client.breathe(now, &mut to_server, &mut at_client).expect("memory works");
        frames += server.breathe(now, &mut to_client, &mut at_server).expect("memory works");
        now += STEP;
    }
    let elapsed = began.elapsed().as_secs_f64();

    let counters = [&client, &server].map(|it| (it.counters(), it.tcp()));
    for (flows, tcp) in &counters {
        let closed = if is_idle { 0 } else { connections };
        assert_eq!((flows.closed, flows.failed()), (closed, 0), "{flows:?} {tcp:?}");
        assert_eq!(tcp.sndrexmitpack, 0, "{tcp:?}");
    }
    assert_eq!(counters[0].1.rcvbyte, connections * requests * page);
    let [resident, resident_max] = resident_bytes();
    println!(
        "{{\"connections\": {connections}, \"requests\": {}, \"frames\": {frames}, \
         \"elapsed_s\": {elapsed}, \"bytes_a_flow\": {}, \"resident_bytes_max\": {resident_max}}}",
        connections * requests,
        resident.saturating_sub(resident_before) / (2 * connections).max(1),
    );
}

/// Counters of the endpoint's only template.
fn tally(endpoint: &Endpoint) -> &Tally {
    endpoint.tally(0).expect("there is one")
}

/// Current and maximum resident memory of this process (`proc_pid_status(5)`).
fn resident_bytes() -> [u64; 2] {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ["VmRSS:", "VmHWM:"].map(|name| {
        let kilobytes =
            status.lines().find_map(|line| line.strip_prefix(name)?.split(' ').nth_back(1));
        kilobytes.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or(0) * 1_024
    })
}

/// A client and a server.
fn endpoints(connections: u64, requests: u64, page: u32) -> [Endpoint; 2] {
    let mut buffers = Buffers::default();
    let request = buffers.push(Buffer::new(b"GET / HTTP/1.1\r\n", REQUEST, &[]));
    let reply = buffers.push(Buffer::new(b"HTTP/1.1 200 OK\r\n", page, &[]));
    let receive = |bytes: u32| Instruction::Receive { bytes: bytes.into(), clear: true };
    let send = |buffer| Instruction::Send { buffer };
    let again = |both: [Instruction; 2]| (0..requests).flat_map(move |_| both);
    let not_blocking = [Instruction::SendBlocking { waits: false }];
    let idle = [Instruction::Connect, Instruction::WaitForPeerClose];
    let idle = idle.into_iter().filter(|_| requests == 0);
    let asks =
        not_blocking.into_iter().chain(again([send(request), receive(page)])).chain(idle.clone());
    let answers =
        not_blocking.into_iter().chain(again([receive(REQUEST), send(reply)])).chain(idle);

    let range = |first: [u8; 4]| AddressRange { first: IpAddr::from(first), count: 255 };
    let tuples = Tuples {
        clients: range([16, 0, 0, 1]),
        order: ClientOrder::RoundRobin,
        servers: range([48, 0, 0, 1]),
        pairing: Pairing::RoundRobin,
        server_port: 80,
        client_ports: 1_024..=65_535,
        consecutive_flows: 1,
        reuse_after: None,
    };
    let ethernet = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    let link = LinkHeader::new(&ethernet).expect("an Ethernet header").into();
    let load = Load::Rate { rate: Rate::new(1, STEP).expect("not zero"), concurrent_max: None };
    let limit = Some(connections);
    let endpoint = |instructions: Vec<Instruction>, role, seed| {
        let program = Program::new(instructions).expect("a program within its bounds");
        let tcp = Settings { receive_buffer: 64 << 10, ..Settings::default() };
        let transport = Transport::Tcp(tcp);
        let options = EndpointOptions {
            templates: vec![Template {
                program,
                transport,
                ip: IpSettings::default(),
                sessions: None,
                expects_resets: false,
                role,
            }],
            groups: Vec::new(),
            buffers: buffers.clone(),
            frame_length_max: 1_514,
            flows_max: 4_000_000,
            host: Host::default(),
            seed,
            blackhole: Blackhole::None,
            verifies_checksums: false,
        };
        Endpoint::new(options, START)
    };
    [
        endpoint(
            asks.collect(),
            Role::Client { tuples, link, load, ramp: Duration::ZERO, limit },
            1,
        ),
        endpoint(answers.collect(), Role::Server { listen: Listen::at(80) }, 2),
    ]
}
