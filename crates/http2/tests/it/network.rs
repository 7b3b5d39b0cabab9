//! Client and server endpoints with HTTP/2 over a network in memory, with and without TLS.

use std::collections::BTreeMap;
use std::sync::Arc;

use wirestorm_base::time::Duration;
use wirestorm_http2::{Http2Clients, Http2Servers, Http2Settings};
use wirestorm_model::program::{MessageFraming, Variable};
use wirestorm_stack::content::SessionFactory;
use wirestorm_stack::endpoint::Endpoint;
use wirestorm_stack::program::{Buffer, Buffers, Check, Contents, Instruction};
use wirestorm_tls::{TlsClients, TlsServers, TlsSettings};
use wirestorm_wire::pattern::Pattern;

use crate::impaired::{Impairment, Side, World};

const FLOWS: u64 = 6;
/// Pipelined requests in each round, and the number of rounds.
const AT_ONCE: u64 = 4;
const ROUNDS: u64 = 3;
const MINUTE: Duration = Duration::from_secs(60);

const UP: u32 = 5_000;
const DOWN: u32 = 60_000;

/// Sessions below HTTP/2, of clients and of servers.
type Both = [Option<Arc<dyn SessionFactory>>; 2];

fn tls(alpn: [&str; 2]) -> Both {
    let of = |protocol: &str| TlsSettings {
        alpn: (!protocol.is_empty()).then(|| protocol.to_owned()).into_iter().collect(),
        ..TlsSettings::default()
    };
    [
        Some(Arc::new(TlsClients::new(&of(alpn[0])).unwrap())),
        Some(Arc::new(TlsServers::new(&of(alpn[1])).unwrap())),
    ]
}

/// Clients send requests and servers respond with long bodies; both check what they receive.
fn world(below: Both, settings: Http2Settings, disturbance: Impairment, seed: u64) -> World {
    let mut buffers = Buffers::default();
    let head = format!("POST /a HTTP/1.1\r\nHost: a.test\r\nContent-Length: {UP}\r\n\r\n");
    let request: Vec<u8> = [head.as_bytes(), &vec![b'u'; UP as usize]].concat();
    let requests = request.repeat(AT_ONCE as usize);
    let request = buffers.push(Buffer::new(&requests, requests.len() as u32, &[]));
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {DOWN}\r\n\r\n");
    let response = Buffer::new(head.as_bytes(), head.len() as u32 + DOWN, b"d");
    let response = buffers.push(response);
    let expects = |pattern: &str| Contents {
        rules: vec![MessageFraming::Http],
        checks: vec![Check::Matches(Pattern::new(pattern).unwrap())],
        ..Contents::default()
    };
    let (outer, inner) = (Variable::new(0).unwrap(), Variable::new(1).unwrap());
    let take = |is_awaited| Instruction::Take { rule: 0, is_required: is_awaited };
    let asks = vec![
        Instruction::Set { variable: outer, value: ROUNDS },
        Instruction::Send { buffer: request },
        Instruction::Set { variable: inner, value: AT_ONCE },
        take(true),
        Instruction::Expect { check: 0 },
        Instruction::DecrementAndJump { variable: inner, to: 3 },
        Instruction::DecrementAndJump { variable: outer, to: 1 },
    ];
    let answers = vec![
        take(false),
        Instruction::Expect { check: 0 },
        Instruction::Send { buffer: response },
        Instruction::Jump { to: 0 },
    ];
    let [client, server] = below;
    let sides = [
        Side {
            program: asks,
            contents: expects("(?s)^HTTP/1.1 200 .*\r\n\r\nd+$"),
            sessions: Some(Arc::new(Http2Clients::new(client, settings))),
        },
        Side {
            program: answers,
            contents: expects("(?s)^POST /a .*\r\n\r\nu+$"),
            sessions: Some(Arc::new(Http2Servers::new(server, settings))),
        },
    ];
    let mut world = World::new(sides, &buffers, [FLOWS, 2], disturbance, seed);
    world.run(MINUTE);
    world
}

#[test]
fn messages_arrive_over_a_rough_network() {
    let narrow = Http2Settings { streams: 3, window: 20_000 };
    for settings in [Http2Settings::default(), narrow] {
        for seed in 1..=4 {
            for below in [[None, None], tls(["h2", "h2"])] {
                let is_tls = below[0].is_some();
                let world = world(below, settings, Impairment::ROUGH, seed);
                for side in [&world.client, &world.server] {
                    let sessions = side.sessions();
                    assert_eq!(sessions.failures, BTreeMap::new(), "seed {seed}");
                    let counters = side.counters();
                    assert_eq!((counters.closed, counters.failed()), (FLOWS, 0), "seed {seed}");
                    let messages = FLOWS * ROUNDS * AT_ONCE;
                    assert_eq!(sessions.messages.requests, messages);
                    assert_eq!(sessions.messages.responses, [0, messages, 0, 0, 0]);
                    assert_eq!(sessions.messages.resets, 0);
                    let handshakes = if is_tls { FLOWS } else { 0 };
                    assert_eq!(sessions.full_handshakes + sessions.resumed_handshakes, handshakes);
                    assert_eq!(sessions.truncated, 0, "seed {seed}");
                }
            }
        }
    }
}

/// Returns the failure cause of an endpoint on which all flows failed for one cause.
fn cause(side: &Endpoint) -> &'static str {
    let sessions = side.sessions();
    assert_eq!((side.counters().failed(), side.counters().active), (FLOWS, 0));
    let [(cause, times)] = sessions.failures.iter().collect::<Vec<_>>()[..] else {
        panic!("{:?}", sessions.failures)
    };
    assert_eq!(*times, FLOWS, "{cause}");
    cause
}

#[test]
fn flows_fail_when_alpn_does_not_select_h2() {
    let not_agreed = "http2: peer does not agree on h2 (ALPN)";
    let of = |alpn| world(tls(alpn), Http2Settings::default(), Impairment::NONE, 1);
    let world = of(["h2", ""]);
    assert_eq!([cause(&world.client), cause(&world.server)], [not_agreed; 2]);
    let world = of(["", "h2"]);
    assert_eq!([cause(&world.client), cause(&world.server)], [not_agreed; 2]);
    let world = of(["h2", "http/1.1"]);
    let expected = ["received alert no_application_protocol", "no ALPN protocol in common"];
    assert_eq!([cause(&world.client), cause(&world.server)], expected);
}

fn buffer_of(buffers: &mut Buffers, text: &str) -> Instruction {
    let buffer = buffers.push(Buffer::new(text.as_bytes(), text.len() as u32, &[]));
    Instruction::Send { buffer }
}

/// Runs programs that do not check contents, over HTTP/2 without TLS.
fn plain([asks, answers]: [Vec<Instruction>; 2], buffers: &Buffers) -> World {
    let http = || Contents { rules: vec![MessageFraming::Http], ..Contents::default() };
    let settings = Http2Settings::default();
    let clients: Arc<dyn SessionFactory> = Arc::new(Http2Clients::new(None, settings));
    let servers: Arc<dyn SessionFactory> = Arc::new(Http2Servers::new(None, settings));
    let side = |program, sessions| Side { program, contents: http(), sessions: Some(sessions) };
    let sides = [side(asks, clients), side(answers, servers)];
    let mut world = World::new(sides, buffers, [FLOWS, FLOWS], Impairment::NONE, 1);
    world.run(MINUTE);
    world
}

const TAKE: Instruction = Instruction::Take { rule: 0, is_required: false };

#[test]
fn delays_since_arrival_of_pipelined_requests_run_in_parallel() {
    const COUNT: usize = 5;
    const MICROS: u32 = 100_000;
    let took = |delay| {
        let mut buffers = Buffers::default();
        let requests = "GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(COUNT);
        let requests = buffer_of(&mut buffers, &requests);
        let asks = [&[requests][..], &[TAKE; COUNT], &[requests], &[TAKE; COUNT]].concat();
        let response = buffer_of(&mut buffers, "HTTP/1.1 204 No Content\r\n\r\n");
        let at_once = Instruction::SendBlocking { waits: false };
        let answers = vec![at_once, TAKE, delay, response, Instruction::Jump { to: 1 }];
        let world = plain([asks, answers], &buffers);
        let responses = FLOWS * 2 * COUNT as u64;
        assert_eq!(world.client.sessions().messages.responses, [0, responses, 0, 0, 0]);
        world.now.as_nanos() / 1_000_000
    };
    let since = took(Instruction::DelaySinceRead { min: MICROS, max: MICROS });
    // Nagle's algorithm holds short segments until an acknowledgement, which the peer delays.
    assert!((198..600).contains(&since), "{since} ms");
    let one_by_one = took(Instruction::Delay { micros: MICROS });
    assert!(one_by_one >= 990, "{one_by_one} ms");
}

#[test]
fn short_responses_to_pipelined_requests_share_a_segment() {
    const COUNT: usize = 5;
    let mut buffers = Buffers::default();
    let requests = "GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(COUNT);
    let requests = buffer_of(&mut buffers, &requests);
    let asks = [&[requests][..], &[TAKE; COUNT], &[requests], &[TAKE; COUNT]].concat();
    let response = buffer_of(&mut buffers, "HTTP/1.1 204 No Content\r\n\r\n");
    let at_once = Instruction::SendBlocking { waits: false };
    let answers = vec![at_once, TAKE, response, Instruction::Jump { to: 1 }];
    let world = plain([asks, answers], &buffers);
    let responses = FLOWS * 2 * COUNT as u64;
    assert_eq!(world.client.sessions().messages.responses, [0, responses, 0, 0, 0]);
    // Expected: SETTINGS, SETTINGS ACK, and one segment for each five responses.
    let segments = world.server.tcp().sndpack;
    assert!(segments <= FLOWS * 4, "{segments} of {FLOWS} flows");
}

#[test]
fn program_data_that_is_not_http_fails_at_once() {
    let mut buffers = Buffers::default();
    let mut buffer_of = |text| buffer_of(&mut buffers, text);
    // After this pause, no event is pending that could wake the flow.
    let pause = Instruction::Delay { micros: 1_000_000 };
    let asks = buffer_of("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let sends = vec![asks, TAKE, pause, buffer_of("hello\r\n\r\n"), Instruction::WaitForPeerClose];
    let answers = buffer_of("HTTP/1.1 204 No Content\r\n\r\n");
    let answers = vec![TAKE, answers, Instruction::WaitForPeerClose];
    let world = plain([sends, answers], &buffers);
    let expected = "http2: the program's data is not an HTTP/1 message";
    assert_eq!(cause(&world.client), expected);
    assert_eq!(world.server.counters().failed(), 0);
}
