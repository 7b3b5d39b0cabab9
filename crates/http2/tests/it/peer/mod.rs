//! Hand-made frames, for peers that violate the protocol (RFC 9113 sections 4 and 6).

use std::collections::VecDeque;

use wirestorm_stack::content::Session;

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;

pub(crate) const ACK: u8 = 1;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

/// `:status: 200`, encoded by HPACK's static table (RFC 7541 appendix A).
pub(crate) const OK: &[u8] = &[0x88];
/// `:method: GET`, `:scheme: http`, `:path: /`, encoded by HPACK's static table.
pub(crate) const GET: &[u8] = &[0x82, 0x86, 0x84];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Splits bytes into frames; the last one must be complete.
pub(crate) fn frames(mut bytes: &[u8]) -> Vec<Frame> {
    let mut frames = Vec::new();
    while let [a, b, c, kind, flags, d, e, f, g, rest @ ..] = bytes {
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        let stream = u32::from_be_bytes([*d, *e, *f, *g]);
        let (payload, behind) = rest.split_at(length);
        frames.push(Frame { kind: *kind, flags: *flags, stream, payload: payload.to_vec() });
        bytes = behind;
    }
    assert!(bytes.is_empty(), "{bytes:?}");
    frames
}

/// Returns the bytes that a session sends now.
pub(crate) fn sent(session: &mut dyn Session) -> Vec<u8> {
    let mut bytes = VecDeque::new();
    session.transmit(&mut bytes);
    bytes.into()
}

/// Passes received bytes to a session; returns what the program receives.
pub(crate) fn receive(session: &mut dyn Session, bytes: &[u8]) -> String {
    let mut text = Vec::new();
    session.receive_data(bytes, &mut |plaintext| text.extend_from_slice(plaintext));
    String::from_utf8(text).unwrap()
}

/// Sends a text, which the session must take completely.
#[track_caller]
pub(crate) fn send(session: &mut dyn Session, text: &str) {
    assert_eq!(session.send_data(text.as_bytes()), text.len());
}
