//! A session that passes bytes through unchanged.

use alloc::collections::VecDeque;

use super::{Handshake, Session, SessionState};

/// Session that passes bytes through unchanged.
#[derive(Debug, Default)]
pub(super) struct Plain {
    due: VecDeque<u8>,
}

impl Session for Plain {
    fn receive_data(&mut self, bytes: &[u8], plaintext: &mut dyn FnMut(&[u8])) {
        plaintext(bytes);
    }

    fn send_data(&mut self, plaintext: &[u8]) -> usize {
        self.due.extend(plaintext);
        plaintext.len()
    }

    fn close(&mut self) {}

    fn transmit(&mut self, to: &mut VecDeque<u8>) {
        to.append(&mut self.due);
    }

    fn state(&self) -> SessionState {
        SessionState::Open
    }

    fn handshake(&self) -> Option<Handshake> {
        None
    }
}
