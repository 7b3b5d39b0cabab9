//! One side of a TLS connection.

use std::collections::VecDeque;
use std::io::{BufRead, Write};

use rustls::{Connection, HandshakeKind, ProtocolVersion};
use wirestorm_stack::content::{Handshake, Session, SessionState};

use crate::cause;

/// One side of a TLS connection, implemented by rustls.
#[derive(Debug)]
pub(crate) struct TlsSession {
    connection: Connection,
    state: SessionState,
    /// Whether the program has sent data or closed.
    has_sent: bool,
}

/// Failure cause of rustls errors that no peer caused.
const INTERNAL: &str = "internal error";

impl TlsSession {
    pub(crate) fn new(connection: Connection) -> Self {
        Self { connection, state: SessionState::Handshaking, has_sent: false }
    }

    fn fail(&mut self, cause: &'static str) {
        self.state = SessionState::Failed(cause);
    }

    fn has_failed(&self) -> bool {
        matches!(self.state, SessionState::Failed(_))
    }

    /// Returns whether only session tickets are pending; they wait until the program sends data. An
    /// FTP client that stores a file may send and close right after its handshake. Linux answers
    /// tickets that arrive then with RST, and discards the unsent rest of the file.
    fn tickets_wait(&self) -> bool {
        // In TLS 1.3 the server completes its handshake messages before the client (RFC 8446
        // section 2).
        let is_server = matches!(self.connection, Connection::Server(_));
        let is_tls13 = self.connection.protocol_version() == Some(ProtocolVersion::TLSv1_3);
        let is_open = matches!(self.state, SessionState::Open | SessionState::PeerClosed);
        is_server && is_tls13 && is_open && !self.has_sent
    }

    /// Processes the TLS records that were read.
    fn process(&mut self, plaintext: &mut dyn FnMut(&[u8])) {
        let io_state = match self.connection.process_new_packets() {
            Ok(io_state) => io_state,
            Err(error) => return self.fail(cause::of(&error)),
        };
        if io_state.plaintext_bytes_to_read() > 0 {
            let mut reader = self.connection.reader();
            while let Ok(bytes @ [_, ..]) = reader.fill_buf() {
                plaintext(bytes);
                let length = bytes.len();
                reader.consume(length);
            }
        }
        if io_state.peer_has_closed() {
            self.state = SessionState::PeerClosed;
        } else if self.state == SessionState::Handshaking && !self.connection.is_handshaking() {
            self.state = SessionState::Open;
        }
    }
}

impl Session for TlsSession {
    fn receive_data(&mut self, mut bytes: &[u8], plaintext: &mut dyn FnMut(&[u8])) {
        while !bytes.is_empty() && !self.has_failed() {
            match self.connection.read_tls(&mut bytes) {
                Ok(0) => break,
                Ok(_) => self.process(plaintext),
                // `process` empties the buffers each time, so there is always room.
                Err(_) => self.fail(INTERNAL),
            }
        }
    }

    fn send_data(&mut self, plaintext: &[u8]) -> usize {
        self.has_sent = true;
        match self.connection.writer().write(plaintext) {
            Ok(taken @ 1..) => taken,
            _ => {
                if !plaintext.is_empty() {
                    self.fail(INTERNAL);
                }
                0
            }
        }
    }

    fn close(&mut self) {
        self.has_sent = true;
        self.connection.send_close_notify();
    }

    fn transmit(&mut self, to: &mut VecDeque<u8>) {
        if self.tickets_wait() {
            return;
        }
        while self.connection.wants_write() {
            // A queue in memory accepts everything.
            if !matches!(self.connection.write_tls(to), Ok(1..)) {
                break;
            }
        }
    }

    fn state(&self) -> SessionState {
        self.state
    }

    fn handshake(&self) -> Option<Handshake> {
        match self.connection.handshake_kind() {
            _ if self.connection.is_handshaking() => None,
            Some(HandshakeKind::Resumed) => Some(Handshake::Resumed),
            Some(_) => Some(Handshake::Full),
            None => None,
        }
    }

    fn protocol(&self) -> Option<&[u8]> {
        self.connection.alpn_protocol()
    }
}

/// Session that failed before it began, with its cause.
#[derive(Debug)]
pub(crate) struct FailedSession(pub(crate) &'static str);

impl Session for FailedSession {
    fn receive_data(&mut self, _: &[u8], _: &mut dyn FnMut(&[u8])) {}

    fn send_data(&mut self, _: &[u8]) -> usize {
        0
    }

    fn close(&mut self) {}

    fn transmit(&mut self, _: &mut VecDeque<u8>) {}

    fn state(&self) -> SessionState {
        SessionState::Failed(self.0)
    }

    fn handshake(&self) -> Option<Handshake> {
        None
    }
}
