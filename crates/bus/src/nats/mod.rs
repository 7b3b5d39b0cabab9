//! The bus over a NATS server.
//!
//! ```text
//!  caller's thread            thread "bus" (one for each process)
//!  NatsBus ── send queue ──▶ connection ──▶ server
//!     ▲                          │
//!     └── Calls, Queue ◀─────────┘
//! ```
//!
//! A caller puts messages into the send queue of the connection, and waits on a condition variable
//! for the answer. The thread of the event loop receives, and connects again after a loss.

pub mod advisories;
mod follow;
mod jetstream;
mod key;
mod link;
mod options;
mod runtime;
mod shared;
mod stores;

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

pub use key::Key;
pub use options::NatsOptions;

use crate::bus::StateChanges;
use crate::local::{checked_id, checked_message, no_request};
use crate::subject::{INBOX, checked_object, checked_pattern, checked_store, checked_subject};
use crate::watch::Watch;
use crate::{
    Appended, BucketConfig, Bus, BusError, ConnectionState, Entry, LogConfig, LogEntry, Message,
    ObjectsConfig, Revision, Subscription,
};

use shared::Shared;

/// Time for an answer of the server itself.
const SERVER_TIMEOUT: Duration = Duration::from_secs(5);
/// Status of an answer without a receiver of the request.
const NO_RESPONDERS: u16 = 503;

/// A connection to a NATS server, with the tasks that keep it. Clones share it; it ends with the
/// last clone. Messages that were not flushed may be lost then.
#[derive(Clone)]
pub struct NatsBus {
    shared: Arc<Shared>,
}

impl Debug for NatsBus {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("NatsBus").field("state", &self.state()).finish_non_exhaustive()
    }
}

impl NatsBus {
    /// Connects to the server. When the connection is lost later, the bus connects again by itself.
    ///
    /// # Errors
    /// `Disconnected` if the server cannot be reached, `Denied` if it does not know the key.
    pub fn connect(options: NatsOptions) -> Result<Self, BusError> {
        Ok(Self { shared: Shared::connect(options)? })
    }

    /// Returns the number of messages that the client library dropped, because this process did
    /// not receive them fast enough. The drops of each subscription are counted there.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped()
    }
}

impl Bus for NatsBus {
    fn publish(&self, subject: &str, payload: &[u8]) -> Result<(), BusError> {
        let subject = checked_message(subject, payload)?;
        self.shared.link(subject)?.send(subject, None, None, payload)
    }

    fn flush(&self, timeout: Duration) -> Result<(), BusError> {
        let link = self.shared.link("flush")?;
        link.sync(timeout)?;
        let refused = link.take_refused();
        match refused.first() {
            None => Ok(()),
            Some(first) => Err(BusError::Denied {
                what: first.clone(),
                reason: match refused.len() {
                    1 => "the key must not publish there".into(),
                    more => format!("the key must not publish there; {more} messages refused"),
                },
            }),
        }
    }

    fn request(&self, subject: &str, payload: &[u8], timeout: Duration) -> Result<Bytes, BusError> {
        let subject = checked_message(subject, payload)?;
        let reply = self.shared.link(subject)?.call(subject, None, payload, timeout)?;
        match reply.status {
            None => Ok(reply.payload),
            Some(NO_RESPONDERS) => Err(BusError::NoResponder { subject: subject.into() }),
            Some(status) => Err(BusError::server(subject, format!("status {status}"))),
        }
    }

    fn subscribe(&self, pattern: &str, capacity: usize) -> Result<Subscription, BusError> {
        let pattern = checked_pattern(pattern)?;
        let source = self.shared.subscribe(pattern, capacity, false, SERVER_TIMEOUT)?;
        Ok(Subscription::new(source))
    }

    fn respond(&self, message: &Message, payload: &[u8]) -> Result<(), BusError> {
        let reply = message.reply.as_deref().ok_or_else(|| no_request(message))?;
        checked_message(reply, payload)?;
        // Whoever sends a request chooses the subject of its answer. An answer elsewhere would
        // reach subjects to which the sender of the request must not publish.
        if !reply.strip_prefix(INBOX).is_some_and(|rest| rest.starts_with('.')) {
            let reason = format!("the answer would go to {reply}, which is no {INBOX} subject");
            return Err(BusError::invalid(message.subject.as_str(), reason));
        }
        self.shared.link(reply)?.send(reply, None, None, payload)
    }

    fn create_bucket(&self, config: &BucketConfig) -> Result<(), BusError> {
        checked_store("bucket", &config.name)?;
        self.shared.create_bucket(config)
    }

    fn create(&self, bucket: &str, key: &str, value: &[u8]) -> Result<Revision, BusError> {
        checked_message(key, value)?;
        self.shared.create_key(checked_store("bucket", bucket)?, key, value)
    }

    fn update(
        &self,
        bucket: &str,
        key: &str,
        value: &[u8],
        revision: Revision,
    ) -> Result<Revision, BusError> {
        checked_message(key, value)?;
        self.shared.write_key(checked_store("bucket", bucket)?, key, Some(value), revision)
    }

    fn get(&self, bucket: &str, key: &str) -> Result<Option<Entry>, BusError> {
        self.shared.read_key(checked_store("bucket", bucket)?, checked_subject(key)?)
    }

    fn delete(&self, bucket: &str, key: &str, revision: Revision) -> Result<(), BusError> {
        let (bucket, key) = (checked_store("bucket", bucket)?, checked_subject(key)?);
        self.shared.write_key(bucket, key, None, revision).map(drop)
    }

    fn keys(&self, bucket: &str) -> Result<Vec<String>, BusError> {
        self.shared.live_keys(checked_store("bucket", bucket)?)
    }

    fn watch(&self, bucket: &str, pattern: &str) -> Result<Watch, BusError> {
        self.shared.watch(checked_store("bucket", bucket)?, checked_pattern(pattern)?)
    }

    fn create_log(&self, config: &LogConfig) -> Result<(), BusError> {
        checked_store("log", &config.name)?;
        checked_pattern(&config.pattern)?;
        self.shared.create_log(config)
    }

    fn append(
        &self,
        log: &str,
        subject: &str,
        message_id: &str,
        payload: &[u8],
    ) -> Result<Appended, BusError> {
        let subject = checked_message(subject, payload)?;
        let (log, message_id) = (checked_store("log", log)?, checked_id(message_id)?);
        self.shared.append(log, subject, message_id, payload)
    }

    fn read(
        &self,
        log: &str,
        pattern: &str,
        from: u64,
        max: usize,
    ) -> Result<Vec<LogEntry>, BusError> {
        self.shared.read_log(checked_store("log", log)?, checked_pattern(pattern)?, from, max)
    }

    fn create_objects(&self, config: &ObjectsConfig) -> Result<(), BusError> {
        checked_store("object store", &config.name)?;
        self.shared.create_objects(config)
    }

    fn put_object(&self, store: &str, name: &str, bytes: &[u8]) -> Result<(), BusError> {
        let (store, name) = (checked_store("object store", store)?, checked_object(name)?);
        self.shared.put_object(store, name, bytes)
    }

    fn get_object(
        &self,
        store: &str,
        name: &str,
        bytes_max: usize,
    ) -> Result<Option<Bytes>, BusError> {
        let (store, name) = (checked_store("object store", store)?, checked_object(name)?);
        self.shared.get_object(store, name, bytes_max)
    }

    fn remove_object(&self, store: &str, name: &str) -> Result<(), BusError> {
        let (store, name) = (checked_store("object store", store)?, checked_object(name)?);
        self.shared.remove_object(store, name)
    }

    fn state(&self) -> ConnectionState {
        self.shared.state()
    }

    fn state_changes(&self) -> StateChanges {
        self.shared.state_changes()
    }
}
