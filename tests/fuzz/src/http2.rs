//! Arbitrary bytes from a peer to either end of HTTP/2 while its program sends. There must be no
//! panic, and sent and received data are bounded.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

use wirestorm_http2::{Http2Clients, Http2Servers, Http2Settings};
use wirestorm_stack::content::{SessionFactory, SessionState};

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const REQUESTS: &[u8] = b"GET /a HTTP/1.1\r\nHost: a.test\r\n\r\n\
    POST /b HTTP/1.1\r\nHost: a.test\r\nContent-Length: 9\r\n\r\n123456789";
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";

/// Checks one input.
///
/// The first byte selects the end, the second the length of segments.
pub fn run(input: &[u8]) {
    let Some(([which, segment], received)) = input.split_first_chunk::<2>() else { return };
    let settings = Http2Settings { streams: 4, window: 1_000 };
    let is_client = which & 1 == 0;
    let (mut session, words) = match is_client {
        true => (Http2Clients::new(None, settings).begin(PEER, PEER), REQUESTS),
        false => (Http2Servers::new(None, settings).begin(PEER, PEER), RESPONSE),
    };
    let (mut body_bytes, mut sent, mut unsent) = (0, VecDeque::new(), words);
    let preface = if is_client || which & 2 != 0 { &[][..] } else { PREFACE };
    for part in [preface].into_iter().chain(received.chunks(usize::from(*segment) + 1)) {
        session.receive_data(part, &mut |bytes| body_bytes += bytes.len());
        // Send like a program: when the session is open, and as a server only after a request.
        if session.state() == SessionState::Open && (is_client || body_bytes > 0) {
            let taken = session.send_data(unsent);
            unsent = &unsent[taken..];
        }
        session.transmit(&mut sent);
    }
    session.close();
    session.transmit(&mut sent);
    // HPACK expands a few bytes to at most 64 KiB of headers, and each frame has one answer.
    assert!(body_bytes <= (received.len() + 1) * (64 << 10), "{body_bytes}");
    assert!(sent.len() <= 1_000 + received.len() * 16, "{}", sent.len());
}
