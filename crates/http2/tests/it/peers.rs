//! Peers that reset streams, send GOAWAY, cancel requests or violate the protocol.

use std::net::{IpAddr, Ipv4Addr};

use wirestorm_http2::{Http2Clients, Http2Servers, Http2Settings};
use wirestorm_stack::content::{Session, SessionFactory, SessionState};

use crate::peer::*;

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const REQUEST: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const RESPONSE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";

/// A client that has sent `requests` requests, after both sides exchanged SETTINGS.
fn client(settings: &[u8], requests: usize) -> Box<dyn Session> {
    let mut client = Http2Clients::new(None, Http2Settings::default()).begin(LOCAL, PEER);
    let begun = sent(client.as_mut());
    assert_eq!(begun.strip_prefix(PREFACE).map(frames).unwrap()[0].kind, SETTINGS);
    receive(client.as_mut(), &frame(SETTINGS, 0, 0, settings));
    receive(client.as_mut(), &frame(SETTINGS, ACK, 0, &[]));
    assert_eq!(frames(&sent(client.as_mut())), frames(&frame(SETTINGS, ACK, 0, &[])));
    client.send_data(REQUEST.repeat(requests).as_bytes());
    client
}

/// A server that has received the client's preface and SETTINGS.
fn server() -> Box<dyn Session> {
    let mut server = Http2Servers::new(None, Http2Settings::default()).begin(LOCAL, PEER);
    receive(server.as_mut(), &[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat());
    let sent_frames = frames(&sent(server.as_mut()));
    assert!(sent_frames.iter().any(|it| (it.kind, it.flags) == (SETTINGS, ACK)), "{sent_frames:?}");
    receive(server.as_mut(), &frame(SETTINGS, ACK, 0, &[]));
    server
}

fn data(stream: u32, text: &str, flags: u8) -> Vec<u8> {
    frame(DATA, flags, stream, text.as_bytes())
}

fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.to_be_bytes())
}

fn goaway(last: u32, code: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
}

fn opened(session: &mut dyn Session) -> Vec<u32> {
    let sent = frames(&sent(session));
    sent.iter().filter(|it| it.kind == HEADERS).map(|it| it.stream).collect()
}

#[test]
fn responses_reach_the_program_in_request_order() {
    let mut client = client(&[], 3);
    assert_eq!(opened(client.as_mut()), [1, 3, 5]);
    let ok = |stream| frame(HEADERS, END_HEADERS, stream, OK);
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let second = [ok(3), data(3, "second", END_STREAM), ok(5), data(5, "thi", 0)].concat();
    assert_eq!(receive(client.as_mut(), &second), "");
    let begins = [ok(1), data(1, "fir", 0)].concat();
    assert_eq!(receive(client.as_mut(), &begins), format!("{head}3\r\nfir\r\n"));
    let rest = receive(client.as_mut(), &data(1, "st", END_STREAM));
    let whole = format!("2\r\nst\r\n0\r\n\r\n{head}6\r\nsecond\r\n0\r\n\r\n{head}3\r\nthi\r\n");
    assert_eq!(rest, whole);
    assert_eq!(receive(client.as_mut(), &data(5, "", END_STREAM)), "0\r\n\r\n");
    assert_eq!(client.state(), SessionState::Open);
    assert_eq!(client.take_messages().responses, [0, 3, 0, 0, 0]);
}

#[test]
fn waiting_responses_keep_their_window_closed() {
    let mut client = client(&[], 2);
    sent(client.as_mut());
    let ok = frame(HEADERS, END_HEADERS, 3, OK);
    receive(client.as_mut(), &ok);
    let piece = "x".repeat(16_384);
    let mut updates = 0;
    let mut updated = |client: &mut dyn Session| {
        updates += frames(&sent(client)).iter().filter(|it| it.kind == WINDOW_UPDATE).count();
        updates
    };
    for _ in 0..256 / 16 {
        receive(client.as_mut(), &data(3, &piece, 0));
    }
    assert_eq!(updated(client.as_mut()), 0);
    // One byte more than the window permits.
    receive(client.as_mut(), &data(3, "x", 0));
    let SessionState::Failed(cause) = client.state() else { panic!("{:?}", client.state()) };
    assert_eq!(cause, "http2: peer misbehaved: FLOW_CONTROL_ERROR");
}

#[test]
fn client_respects_the_settings_of_its_peer() {
    // SETTINGS_MAX_CONCURRENT_STREAMS: 1; SETTINGS_INITIAL_WINDOW_SIZE: 3.
    let mut client = client(&[0, 3, 0, 0, 0, 1, 0, 4, 0, 0, 0, 3], 2);
    assert_eq!(opened(client.as_mut()), [1]);
    let answer = [frame(HEADERS, END_HEADERS, 1, OK), data(1, "x", END_STREAM)].concat();
    receive(client.as_mut(), &answer);
    assert_eq!(opened(client.as_mut()), [3]);
    receive(client.as_mut(), &frame(HEADERS, END_HEADERS | END_STREAM, 3, OK));

    let put = "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\n";
    send(client.as_mut(), put);
    let bytes = |client: &mut dyn Session| -> Vec<u8> {
        let sent = frames(&sent(client));
        let sent = sent.into_iter().filter(|it| it.kind == DATA);
        sent.flat_map(|it| it.payload).collect()
    };
    assert_eq!(client.send_data(b"1234567"), 3);
    assert_eq!(bytes(client.as_mut()), b"123");
    assert_eq!(client.send_data(b"4567"), 0);
    receive(client.as_mut(), &frame(WINDOW_UPDATE, 0, 5, &[0, 0, 0, 9]));
    assert_eq!(client.send_data(b"4567"), 4);
    assert_eq!(bytes(client.as_mut()), b"4567");
    assert_eq!(client.state(), SessionState::Open);
}

#[test]
fn pipelined_requests_wait_for_the_stream_limit_of_the_server() {
    // SETTINGS_MAX_CONCURRENT_STREAMS: 2; without the setting a server accepts any number.
    for (settings, expected) in [(&[0, 3, 0, 0, 0, 2][..], &[3][..]), (&[], &[3, 5])] {
        let mut client = Http2Clients::new(None, Http2Settings::default()).begin(LOCAL, PEER);
        client.send_data(REQUEST.repeat(3).as_bytes());
        let begun = sent(client.as_mut());
        let begun = frames(begun.strip_prefix(PREFACE).unwrap());
        let first: Vec<u32> =
            begun.iter().filter(|it| it.kind == HEADERS).map(|it| it.stream).collect();
        assert_eq!(first, [1]);
        receive(client.as_mut(), &frame(SETTINGS, 0, 0, settings));
        assert_eq!(opened(client.as_mut()), expected);
    }
}

#[test]
fn settings_frames_announce_the_configured_window() {
    const INITIAL_WINDOW_SIZE: [u8; 2] = [0, 4];
    let settings = Http2Settings { window: 123_456, ..Http2Settings::default() };
    let mut client = Http2Clients::new(None, settings).begin(LOCAL, PEER);
    let mut server = Http2Servers::new(None, settings).begin(LOCAL, PEER);
    receive(server.as_mut(), &[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat());
    let client_bytes = sent(client.as_mut());
    for sent_frames in
        [frames(client_bytes.strip_prefix(PREFACE).unwrap()), frames(&sent(server.as_mut()))]
    {
        let sent_settings =
            sent_frames.iter().find(|it| (it.kind, it.flags) == (SETTINGS, 0)).unwrap();
        let expected = [&INITIAL_WINDOW_SIZE[..], &123_456_u32.to_be_bytes()].concat();
        assert!(sent_settings.payload.chunks(6).any(|it| it == expected), "{sent_settings:?}");
    }
}

#[test]
fn client_answers_ping() {
    let mut client = client(&[], 0);
    receive(client.as_mut(), &frame(PING, 0, 0, b"12345678"));
    assert_eq!(sent(client.as_mut()), frame(PING, ACK, 0, b"12345678"));
}

#[test]
fn client_failures_name_the_error_of_the_server() {
    let cancel = 8;
    let ok = frame(HEADERS, END_HEADERS, 1, OK);
    for (bytes, expected) in [
        (reset(1, cancel), "http2: received RST_STREAM CANCEL"),
        (reset(1, 7), "http2: received RST_STREAM REFUSED_STREAM"),
        ([ok.clone(), reset(1, 77)].concat(), "http2: received RST_STREAM another code"),
        (goaway(0, 0), "http2: received GOAWAY NO_ERROR"),
        (goaway(0, 11), "http2: received GOAWAY ENHANCE_YOUR_CALM"),
        (data(1, "no head", 0), "http2: peer misbehaved: PROTOCOL_ERROR"),
        (frame(HEADERS, END_HEADERS, 1, &[0xff; 9]), "http2: peer misbehaved: PROTOCOL_ERROR"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "http2: peer misbehaved: FRAME_SIZE_ERROR"),
    ] {
        let mut client = client(&[], 1);
        sent(client.as_mut());
        receive(client.as_mut(), &bytes);
        assert_eq!(client.state(), SessionState::Failed(expected), "{bytes:?}");
        let resets = u64::from(expected.contains("RST_STREAM"));
        assert_eq!(client.take_messages().resets, resets, "{expected}");
        // The client reports the error to the peer and accepts no more data.
        let sent_frames = frames(&sent(client.as_mut()));
        let is_end = |it: &Frame| matches!(it.kind, GOAWAY | RST_STREAM);
        assert!(sent_frames.iter().all(is_end), "{expected}: {sent_frames:?}");
        assert_eq!(receive(client.as_mut(), &ok), "");
    }
}

#[test]
fn client_accepts_an_early_response() {
    // RFC 9113 section 8.1: a server may respond early and reset the stream with NO_ERROR.
    let answer = frame(HEADERS, END_HEADERS | END_STREAM, 1, OK);
    let body = [frame(HEADERS, END_HEADERS, 1, OK), data(1, "no", END_STREAM)].concat();
    for answer in [answer, body] {
        let mut client = self::client(&[0, 4, 0, 0, 0, 4], 0);
        send(client.as_mut(), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n");
        assert_eq!(client.send_data(&[b'x'; 100]), 4);
        sent(client.as_mut());
        let response = receive(client.as_mut(), &[answer, reset(1, 0)].concat());
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response:?}");
        // The rest of the body is discarded, and the next request opens a new stream.
        assert_eq!(client.send_data(&[b'x'; 96]), 96);
        send(client.as_mut(), REQUEST);
        assert_eq!(opened(client.as_mut()), [3]);
        assert_eq!(client.state(), SessionState::Open);
    }
}

#[test]
fn responses_arrive_after_goaway_for_accepted_requests() {
    let mut client = client(&[], 1);
    receive(client.as_mut(), &goaway(1, 0));
    assert_eq!(client.state(), SessionState::Open);
    let answer = [frame(HEADERS, END_HEADERS, 1, OK), data(1, "x", END_STREAM)].concat();
    assert!(receive(client.as_mut(), &answer).contains("1\r\nx\r\n"));
    assert_eq!(client.state(), SessionState::PeerClosed);

    let mut client = self::client(&[], 1);
    receive(client.as_mut(), &goaway(1, 0));
    client.send_data(REQUEST.as_bytes());
    let expected = "http2: peer accepts no more requests (GOAWAY)";
    assert_eq!(client.state(), SessionState::Failed(expected));
}

#[test]
fn server_drops_cancelled_requests() {
    let mut server = server();
    let get = |stream, flags| frame(HEADERS, END_HEADERS | flags, stream, GET);
    let request = "GET / HTTP/1.1\r\n\r\n";
    // The program receives the first request. The second arrives and is cancelled at once.
    assert_eq!(receive(server.as_mut(), &get(1, END_STREAM)), request);
    assert_eq!(receive(server.as_mut(), &[get(3, 0), reset(3, 8)].concat()), "");
    assert_eq!(receive(server.as_mut(), &[reset(1, 8), get(7, END_STREAM)].concat()), request);
    // The response to the first request is discarded; the next one answers the last request.
    sent(server.as_mut());
    send(server.as_mut(), RESPONSE);
    assert_eq!(opened(server.as_mut()), Vec::<u32>::new());
    send(server.as_mut(), RESPONSE);
    assert_eq!(opened(server.as_mut()), [7]);
    assert_eq!(server.state(), SessionState::Open);
    let counted = server.take_messages();
    assert_eq!((counted.requests, counted.responses), (3, [0, 1, 0, 0, 0]));

    // Here the program has received a part of the request.
    let body = "transfer-encoding: chunked\r\n\r\n2\r\nha\r\n";
    let half = [get(9, 0), data(9, "ha", 0)].concat();
    assert!(receive(server.as_mut(), &half).ends_with(body));
    receive(server.as_mut(), &reset(9, 8));
    let expected = "http2: peer cancelled a partly delivered request";
    assert_eq!(server.state(), SessionState::Failed(expected));
}

#[test]
fn server_limits_rapid_cancellation() {
    let mut server = server();
    for stream in 0..100_000 {
        let stream = stream * 2 + 1;
        let get = frame(HEADERS, END_HEADERS | END_STREAM, stream, GET);
        receive(server.as_mut(), &get);
        receive(server.as_mut(), &reset(stream, 8));
        if let SessionState::Failed(cause) = server.state() {
            assert_eq!(cause, "http2: peer cancels requests faster than the program responds");
            assert!(stream > 600, "{stream}");
            return;
        }
    }
    panic!("the server does not limit cancellation");
}

#[test]
fn server_limits_unread_ping_replies() {
    let mut server = server();
    let ping = frame(PING, 0, 0, &[0; 8]).repeat(10_000);
    let mut queue = std::collections::VecDeque::new();
    for _ in 0..1_000 {
        server.receive_data(&ping, &mut |_| {});
        server.transmit(&mut queue);
        if let SessionState::Failed(cause) = server.state() {
            assert_eq!(cause, "http2: peer does not read the replies to its frames");
            return;
        }
    }
    panic!("{} bytes wait", queue.len());
}

#[test]
fn server_failures_name_the_error_of_the_client() {
    let mut server = Http2Servers::new(None, Http2Settings::default()).begin(LOCAL, PEER);
    receive(server.as_mut(), REQUEST.as_bytes());
    let expected = SessionState::Failed("http2: peer misbehaved: PROTOCOL_ERROR");
    assert_eq!(server.state(), expected);
    let mut server = self::server();
    receive(server.as_mut(), &goaway(0, 2));
    let expected = "http2: received GOAWAY INTERNAL_ERROR";
    assert_eq!(server.state(), SessionState::Failed(expected));
    let mut server = self::server();
    receive(server.as_mut(), &goaway(0, 0));
    assert_eq!(server.state(), SessionState::PeerClosed);
    // GOAWAY leaves when the program ends, not before: the peer may already be gone.
    assert_eq!(sent(server.as_mut()), b"");
    server.close();
    assert_eq!(frames(&sent(server.as_mut()))[0].kind, GOAWAY);
}

#[test]
fn damaged_bytes_never_cause_a_panic() {
    let mut random = 1_u64;
    let mut draw = |end: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 11) as usize % end.max(1)
    };
    let mut failures = 0;
    for round in 0..3_000 {
        let settings = Http2Settings::default();
        let mut ends = [
            Http2Clients::new(None, settings).begin(LOCAL, PEER),
            Http2Servers::new(None, settings).begin(LOCAL, PEER),
        ];
        let damaged = round % 6;
        for flight in 0..8 {
            let from = flight % 2;
            match flight {
                0 | 4 => drop(ends[0].send_data(REQUEST.repeat(3).as_bytes())),
                3 | 5 => drop(ends[1].send_data(RESPONSE.repeat(2).as_bytes())),
                _ => {}
            }
            let mut bytes = sent(ends[from].as_mut());
            if flight == damaged && !bytes.is_empty() {
                match draw(4) {
                    0 => bytes.truncate(draw(bytes.len())),
                    1 => bytes.drain(..draw(bytes.len())).for_each(drop),
                    2 => bytes.iter_mut().for_each(|byte| *byte = draw(256) as u8),
                    _ => {
                        let place = draw(bytes.len());
                        bytes[place] ^= 1 << draw(8);
                    }
                }
            }
            ends[1 - from].receive_data(&bytes, &mut |_| {});
        }
        for end in &mut ends {
            failures += u64::from(matches!(end.state(), SessionState::Failed(_)));
            end.close();
            sent(end.as_mut());
        }
    }
    assert!(failures > 1_000, "{failures}");
}
