//! Arbitrary data from a peer to programs that receive, compare and extract. Each flow ends, with
//! the same outcome for any segmentation of the data.

use std::net::IpAddr;

use wirestorm_base::time::{Duration, Instant};
use wirestorm_model::address_range::AddressRange;
use wirestorm_model::blackhole::Blackhole;
use wirestorm_model::ip::IpSettings;
use wirestorm_model::load::Load;
use wirestorm_model::pairing::{ClientOrder, Pairing};
use wirestorm_model::program::{
    Composition, Delimiter, MessageFraming, MessagePart, Piece, TextVariable, Value, ValueFormat,
};
use wirestorm_model::tcp::Settings;
use wirestorm_sim::memory::{WireOptions, wire};
use wirestorm_stack::Host;
use wirestorm_stack::endpoint::{
    Endpoint, EndpointOptions, LinkHeader, Listen, Role, Template, Transport, Tuples,
};
use wirestorm_stack::program::{
    Buffer, Buffers, Check, Contents, Extraction, Failure, Instruction, Program,
};
use wirestorm_wire::pattern::Pattern;

const FRAME_LENGTH_MAX: usize = 1_514;
/// Highest number of iterations of both sides; more means that a flow does not end.
const ITERATIONS_MAX: usize = 100_000;

/// Checks one input.
///
/// The first bytes select the steps of the program, the rest is the peer's data.
pub fn run(input: &[u8]) {
    let Some((steps, text)) = input.split_first_chunk::<4>() else { return };
    if !text.is_empty() {
        assert_eq!(outcome(*steps, text, 1_460), outcome(*steps, text, 88));
    }
}

/// Returns the failures of the client's program.
fn outcome(steps: [u8; 4], text: &[u8], mss: u16) -> Vec<(u16, &'static str, Failure)> {
    let mut buffers = Buffers::default();
    let buffer = buffers.push(Buffer::new(text, 0, &[]));
    let range = |first: [u8; 4]| AddressRange { first: IpAddr::from(first), count: 1 };
    let tuples = Tuples {
        clients: range([16, 0, 0, 1]),
        order: ClientOrder::RoundRobin,
        servers: range([48, 0, 0, 1]),
        pairing: Pairing::RoundRobin,
        server_port: 80,
        client_ports: 1_024..=1_025,
        consecutive_flows: 1,
        reuse_after: None,
    };
    let ethernet = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    let link = LinkHeader::new(&ethernet).expect("an Ethernet header").into();
    let (ramp, limit) = (Duration::ZERO, Some(1));
    let client = Role::Client { tuples, link, load: Load::Concurrent(1), ramp, limit };
    let tcp = Settings { maximum_segment_size: mss, time_wait_ms: 1, ..Settings::default() };
    let endpoint = |program, role, seed| {
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
            frame_length_max: FRAME_LENGTH_MAX,
            flows_max: 4,
            host: Host::default(),
            seed,
            blackhole: Blackhole::None,
            verifies_checksums: false,
        };
        Endpoint::new(options, Instant::ZERO)
    };
    let server_program = Program::new([Instruction::Send { buffer }]).expect("a program");
    let mut ours = endpoint(program(steps), client, 1);
    let mut theirs = endpoint(server_program, Role::Server { listen: Listen::at(80) }, 2);
    let memory = WireOptions { frames: 64, frame_length_max: FRAME_LENGTH_MAX };
    let (mut up, mut down) = (wire(memory), wire(memory));
    let mut now = Instant::ZERO;
    for iteration in 0.. {
        assert!(iteration < ITERATIONS_MAX, "it does not end");
        ours.breathe(now, &mut up.0, &mut down.1).expect("memory does not fail");
        theirs.breathe(now, &mut down.0, &mut up.1).expect("memory does not fail");
        if ours.is_done() && theirs.is_done() {
            break;
        }
        now += Duration::from_micros(500);
    }
    let flows = ours.counters();
    assert_eq!((flows.started, flows.active, flows.closed + flows.program_failed), (1, 0, 1));
    let tally = ours.tally(0).expect("there is one");
    let failures = tally.findings.failures();
    let failures: Vec<_> =
        failures.map(|(at, cause, failure)| (at, cause.as_str(), failure.clone())).collect();
    assert_eq!(failures.len() as u64, flows.program_failed);
    for (_, _, failure) in &failures {
        assert!(failure.found.len() <= Failure::SHOWN_MAX);
    }
    failures
}

/// Builds a program with these steps.
fn program(steps: [u8; 4]) -> Program {
    let text = TextVariable::new(0).expect("one of several");
    let pattern = |text| Pattern::new(text).expect("a pattern");
    let contents = Contents {
        rules: vec![
            MessageFraming::Http,
            MessageFraming::Until(Delimiter::new(b"\r\n").expect("a delimiter")),
            MessageFraming::Until(Delimiter::new(b"aab").expect("a delimiter")),
            MessageFraming::Count(5),
            MessageFraming::HttpHead,
            MessageFraming::Reply,
            MessageFraming::Rtsp,
        ],
        compositions: vec![Composition {
            pieces: vec![Piece::Value(Value::Text(text), ValueFormat::Plain)],
            ..Composition::default()
        }],
        checks: vec![
            Check::Matches(pattern("(?i)^http/1.. [0-9]{3}|a+b*$")),
            Check::Contains(0),
            Check::Is(0),
            Check::KeepsConnection,
            Check::NoDnsAnswer(258),
            Check::DnsNoError,
        ],
        extractions: vec![
            Extraction { text, part: MessagePart::Group(pattern("id=([^&]*)|(.)"), 1) },
            Extraction { text, part: MessagePart::Between(b"<"[..].into(), b">"[..].into()) },
            Extraction { text, part: MessagePart::Bytes { offset: 2, length: 2 } },
        ],
        ..Contents::default()
    };
    let step = |step: u8| {
        let which = u16::from(step >> 2);
        match step & 3 {
            0 | 1 => Instruction::Take { rule: which % 7, is_required: step & 1 != 0 },
            2 => Instruction::Expect { check: which % 6 },
            _ => Instruction::Extract { extraction: which % 3 },
        }
    };
    Program::with_contents(steps.map(step), contents).expect("a program within its bounds")
}
