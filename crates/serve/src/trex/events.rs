//! Events of the server, queued for each session of a client.
//!
//! The async socket sends no content: `{}` tells clients to ask for their events.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Time after which a session that does not ask for its events gets no more.
const STALLED: Duration = Duration::from_secs(10);
/// Maximum number of events of a session.
const EVENTS_MAX: usize = 10_000;
/// Maximum number of sessions. The one that asked least recently makes room.
const SESSIONS_MAX: usize = 256;

/// An event, in the numbers of TRex.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Event {
    PortStarted(usize),
    PortStopped(usize),
    PortPaused(usize),
    PortResumed(usize),
    PortFinished(usize),
    PortAcquired { port: usize, user: String, session: u32, force: bool },
    PortReleased { port: usize, user: String, session: u32 },
    PortError(usize),
    PortAttributes { port: usize, attributes: Value },
    ProfileStarted(usize, String),
    ProfileStopped(usize, String),
    ProfilePaused(usize, String),
    ProfileResumed(usize, String),
    ProfileFinished(usize, String),
    AstfState { state: u8, epoch: u64 },
    AstfProfileState { profile: String, state: u8, epoch: u64, error: Option<String> },
    AstfProfileCleared { profile: String, epoch: u64 },
    ServerStopped,
}

impl Event {
    /// Returns the number of the event and its data.
    fn document(&self) -> (u32, Value) {
        let port = |port: &usize| json!({"port_id": port});
        let profile =
            |port: &usize, profile: &String| json!({"port_id": port, "profile_id": profile});
        match self {
            Self::PortStarted(number) => (0, port(number)),
            Self::PortStopped(number) => (1, port(number)),
            Self::PortPaused(number) => (2, port(number)),
            Self::PortResumed(number) => (3, port(number)),
            Self::PortFinished(number) => (4, port(number)),
            Self::PortAcquired { port, user, session, force } => {
                (5, json!({"port_id": port, "who": user, "session_id": session, "force": force}))
            }
            Self::PortReleased { port, user, session } => {
                (6, json!({"port_id": port, "who": user, "session_id": session}))
            }
            Self::PortError(number) => (7, json!({"port_id": number, "thread_id": 0})),
            Self::PortAttributes { port, attributes } => {
                (8, json!({"port_id": port, "attr": attributes}))
            }
            Self::ProfileStarted(port, name) => (10, profile(port, name)),
            Self::ProfileStopped(port, name) => (11, profile(port, name)),
            Self::ProfilePaused(port, name) => (12, profile(port, name)),
            Self::ProfileResumed(port, name) => (13, profile(port, name)),
            Self::ProfileFinished(port, name) => (14, profile(port, name)),
            Self::AstfState { state, epoch } => (50, json!({"state": state, "epoch": epoch})),
            Self::AstfProfileState { profile, state, epoch, error } => {
                let mut data = json!({"profile_id": profile, "state": state, "epoch": epoch});
                if let Some(error) = error {
                    data["error"] = error.as_str().into();
                }
                (60, data)
            }
            Self::AstfProfileCleared { profile, epoch } => {
                (61, json!({"profile_id": profile, "epoch": epoch}))
            }
            Self::ServerStopped => (100, json!({"cause": "the server ends"})),
        }
    }
}

/// Sessions and their events.
#[derive(Default)]
pub(super) struct Sessions(BTreeMap<u32, Session>);

struct Session {
    events: VecDeque<Value>,
    /// Number of the next event. Clients end their process if one is missing.
    next: u64,
    asked: Instant,
    /// Whether it owns or owned a port; others are removed when they stall.
    is_owner: bool,
}

impl Sessions {
    /// Adds a session that owns ports.
    pub(super) fn add_owner(&mut self, session: u32) {
        self.session(session).is_owner = true;
    }

    /// Makes a session one that only reads.
    pub(super) fn remove_owner(&mut self, session: u32) {
        if let Some(session) = self.0.get_mut(&session) {
            session.is_owner = false;
        }
    }

    /// Removes and returns the events of a session. Adds the session if it is new.
    pub(super) fn take(&mut self, session: u32) -> Vec<Value> {
        let session = self.session(session);
        session.asked = Instant::now();
        session.events.drain(..).collect()
    }

    /// Queues an event for all sessions.
    pub(super) fn publish(&mut self, event: &Event) {
        let (number, data) = event.document();
        let now = Instant::now();
        self.0.retain(|_, session| {
            if session.events.is_empty() {
                session.asked = now;
            } else if now.duration_since(session.asked) >= STALLED
                || session.events.len() >= EVENTS_MAX
            {
                return session.is_owner;
            }
            session.events.push_back(json!({
                "name": "trex-event", "type": number, "data": data, "seq": session.next,
            }));
            session.next += 1;
            true
        });
    }

    fn session(&mut self, number: u32) -> &mut Session {
        if !self.0.contains_key(&number) && self.0.len() >= SESSIONS_MAX {
            let oldest = self.0.iter().min_by_key(|(_, session)| session.asked);
            if let Some(oldest) = oldest.map(|(number, _)| *number) {
                self.0.remove(&oldest);
            }
        }
        self.0.entry(number).or_insert_with(|| Session {
            events: VecDeque::new(),
            next: 0,
            asked: Instant::now(),
            is_owner: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_gets_events_after_it_is_known_without_gaps_in_their_numbers() {
        let mut sessions = Sessions::default();
        sessions.publish(&Event::PortStarted(0));
        assert!(sessions.take(7).is_empty());
        sessions.publish(&Event::PortStarted(1));
        sessions.publish(&Event::ProfileFinished(1, "_".to_owned()));
        let events = sessions.take(7);
        assert_eq!(events[0]["type"], 0);
        assert_eq!(events[1]["data"], json!({"port_id": 1, "profile_id": "_"}));
        sessions.publish(&Event::PortFinished(1));
        assert_eq!(sessions.take(7)[0]["seq"], 2);
        assert!(sessions.take(7).is_empty());
    }

    #[test]
    fn number_of_sessions_has_a_bound() {
        let mut sessions = Sessions::default();
        for number in 0..2 * SESSIONS_MAX as u32 {
            sessions.take(number);
        }
        assert_eq!(sessions.0.len(), SESSIONS_MAX);
    }
}
