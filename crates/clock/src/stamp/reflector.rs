//! Session reflector: answers requests.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::packet::{ErrorEstimate, FollowUp, Reply, Request};
use crate::timestamp::Timestamp;

/// Number of sessions. The one without requests for the longest time makes room for a new one.
const SESSIONS_MAX: usize = 4_096;

/// Answers the requests of many sessions, with a state for each: its replies have numbers of their
/// own, so senders know in which direction packets are lost.
#[derive(Debug, Default)]
pub struct Reflector {
    sessions: BTreeMap<Key, Session>,
    /// Number of requests so far.
    requests: u64,
}

/// Source and identifier of a session.
type Key = (SocketAddr, u16);

#[derive(Debug)]
struct Session {
    next: u32,
    /// Departure of the last reply, once known.
    last: Option<FollowUp>,
    /// Number of requests of all sessions at the last one of this session.
    used: u64,
}

/// A reply to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reflected {
    /// Where to send it.
    pub to: SocketAddr,
    /// The packet.
    pub bytes: Vec<u8>,
    /// Session and number, for [`Reflector::departed`].
    pub session: u16,
    /// Number of the reply in its session.
    pub sequence: u32,
}

impl Reflector {
    /// Answers a packet that arrived from `from` at `received`, with the time `now` until the exact
    /// departure is known. Returns `None` if the packet is no request.
    pub fn reply(
        &mut self,
        packet: &[u8],
        from: SocketAddr,
        received: Timestamp,
        ttl: Option<u8>,
        (now, error): (Timestamp, ErrorEstimate),
    ) -> Option<Reflected> {
        let request = Request::decode(packet, received)?;
        self.requests += 1;
        let key = (from, request.session);
        if !self.sessions.contains_key(&key) && self.sessions.len() >= SESSIONS_MAX {
            self.forget_one();
        }
        let session = self.sessions.entry(key).or_insert(Session { next: 0, last: None, used: 0 });
        session.used = self.requests;
        let sequence = session.next;
        session.next = session.next.wrapping_add(1);
        let reply = Reply {
            sequence,
            sent: now,
            error,
            session: request.session,
            received,
            request,
            ttl: ttl.unwrap_or(u8::MAX),
            follows_up: true,
            follow_up: session.last.take(),
        };
        let bytes = reply.encode(packet);
        Some(Reflected { to: from, bytes, session: request.session, sequence })
    }

    /// Records the exact departure of a reply.
    pub fn departed(&mut self, to: SocketAddr, session: u16, sequence: u32, at: Timestamp) {
        if let Some(session) = self.sessions.get_mut(&(to, session)) {
            session.last = Some(FollowUp { sequence, sent: at });
        }
    }

    /// Returns the number of sessions.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    fn forget_one(&mut self) {
        let oldest = self.sessions.iter().min_by_key(|(_, session)| session.used);
        if let Some(key) = oldest.map(|(key, _)| *key) {
            self.sessions.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_sessions_is_bounded() {
        let mut reflector = Reflector::default();
        let error = ErrorEstimate::new(1.0, false);
        let now = Timestamp::from_nanos(1_795_000_000_000_000_000);
        let mut ask = |port: u16, session: u16| {
            let request = Request { sequence: 0, sent: now, error, session };
            let from = SocketAddr::from(([192, 0, 2, 1], port));
            let reply = reflector.reply(&request.encode(), from, now, None, (now, error)).unwrap();
            (reply.sequence, reflector.sessions())
        };
        for number in 0..SESSIONS_MAX as u16 {
            assert_eq!(ask(number, 1), (0, usize::from(number) + 1));
        }
        assert_eq!(ask(0, 1), (1, SESSIONS_MAX));
        // The second session had no request for the longest time.
        assert_eq!(ask(0, 2), (0, SESSIONS_MAX));
        assert_eq!(ask(1, 1), (0, SESSIONS_MAX));
        assert_eq!(ask(0, 1), (2, SESSIONS_MAX));
    }
}
