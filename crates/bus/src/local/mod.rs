//! The bus within one process.
//!
//! It has the semantics of the NATS back end, with the bounds of its options. Everything is in
//! memory: logs and objects end with the process.

mod messages;
mod stores;

use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use crate::bus::{STATE_CHANGES_MAX, StateChanges};
use crate::clock::{Clock, MonotonicClock};
use crate::queue::Queue;
use crate::subject::{checked_object, checked_pattern, checked_store, checked_subject};
use crate::watch::{Follow, Watch};
use crate::{
    Appended, BucketConfig, Bus, BusError, ConnectionState, Entry, LogConfig, LogEntry, Message,
    ObjectsConfig, RecvError, Revision, Server, Subscription,
};

use messages::Messages;
use stores::Stores;

/// Largest payload of a message in bytes, as the default of a NATS server.
pub(crate) const PAYLOAD_MAX: usize = 1 << 20;
/// Longest ID of a message of a log in bytes: a subject and more.
const ID_MAX: usize = 512;
/// Number of hints that a watch holds.
const HINTS_MAX: usize = 1024;

/// A bus within this process. Clones share it.
#[derive(Clone)]
pub struct LocalBus {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Arc<dyn Clock>,
    messages: Messages,
    stores: Mutex<Stores>,
    server: Arc<Server>,
}

impl Default for LocalBus {
    fn default() -> Self {
        Self::with_clock(Arc::new(MonotonicClock::default()))
    }
}

impl Debug for LocalBus {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LocalBus").finish_non_exhaustive()
    }
}

impl LocalBus {
    /// Returns a new bus.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a new bus whose entries age by a clock. Timeouts of calls are real time.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        let server = Server {
            address: "in-process".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            advisories: Vec::new(),
        };
        let shared = Shared {
            clock,
            messages: Messages::default(),
            stores: Mutex::default(),
            server: Arc::new(server),
        };
        Self { shared: Arc::new(shared) }
    }
}

impl Shared {
    /// Locks the stores, after all that expired has been removed.
    fn stores(&self) -> MutexGuard<'_, Stores> {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        stores.expire(self.clock.now());
        stores
    }
}

impl Bus for LocalBus {
    fn publish(&self, subject: &str, payload: &[u8]) -> Result<(), BusError> {
        let subject = checked_message(subject, payload)?;
        self.shared.messages.send(subject, payload, None);
        Ok(())
    }

    fn flush(&self, _timeout: Duration) -> Result<(), BusError> {
        Ok(())
    }

    fn request(&self, subject: &str, payload: &[u8], timeout: Duration) -> Result<Bytes, BusError> {
        let subject = checked_message(subject, payload)?;
        self.shared.messages.request(subject, payload, timeout)
    }

    fn subscribe(&self, pattern: &str, capacity: usize) -> Result<Subscription, BusError> {
        Ok(Subscription::new(self.shared.messages.subscribe(checked_pattern(pattern)?, capacity)))
    }

    fn respond(&self, message: &Message, payload: &[u8]) -> Result<(), BusError> {
        let reply = message.reply.as_deref().ok_or_else(|| no_request(message))?;
        self.shared.messages.send(checked_message(reply, payload)?, payload, None);
        Ok(())
    }

    fn create_bucket(&self, config: &BucketConfig) -> Result<(), BusError> {
        checked_store("bucket", &config.name)?;
        self.shared.stores().create_bucket(config);
        Ok(())
    }

    fn create(&self, bucket: &str, key: &str, value: &[u8]) -> Result<Revision, BusError> {
        self.write(bucket, key, Some(value), None)
    }

    fn update(
        &self,
        bucket: &str,
        key: &str,
        value: &[u8],
        revision: Revision,
    ) -> Result<Revision, BusError> {
        self.write(bucket, key, Some(value), Some(revision))
    }

    fn get(&self, bucket: &str, key: &str) -> Result<Option<Entry>, BusError> {
        self.shared.stores().get(checked_store("bucket", bucket)?, checked_subject(key)?)
    }

    fn delete(&self, bucket: &str, key: &str, revision: Revision) -> Result<(), BusError> {
        self.write(bucket, key, None, Some(revision)).map(drop)
    }

    fn keys(&self, bucket: &str) -> Result<Vec<String>, BusError> {
        self.shared.stores().keys(checked_store("bucket", bucket)?)
    }

    fn watch(&self, bucket: &str, pattern: &str) -> Result<Watch, BusError> {
        let hints = Arc::new(Queue::new(HINTS_MAX));
        self.shared.stores().watch(checked_store("bucket", bucket)?, &hints)?;
        Watch::new(LocalFollow {
            shared: Arc::clone(&self.shared),
            bucket: bucket.into(),
            pattern: checked_pattern(pattern)?.into(),
            hints,
        })
    }

    fn create_log(&self, config: &LogConfig) -> Result<(), BusError> {
        checked_store("log", &config.name)?;
        checked_pattern(&config.pattern)?;
        self.shared.stores().create_log(config);
        Ok(())
    }

    fn append(
        &self,
        log: &str,
        subject: &str,
        message_id: &str,
        payload: &[u8],
    ) -> Result<Appended, BusError> {
        let subject = checked_message(subject, payload)?;
        checked_id(message_id)?;
        let now = self.shared.clock.now();
        let log = checked_store("log", log)?;
        self.shared.stores().append(log, subject, message_id, payload, now)
    }

    fn read(
        &self,
        log: &str,
        pattern: &str,
        from: u64,
        max: usize,
    ) -> Result<Vec<LogEntry>, BusError> {
        self.shared.stores().read(checked_store("log", log)?, checked_pattern(pattern)?, from, max)
    }

    fn create_objects(&self, config: &ObjectsConfig) -> Result<(), BusError> {
        checked_store("object store", &config.name)?;
        self.shared.stores().create_objects(config);
        Ok(())
    }

    fn put_object(&self, store: &str, name: &str, bytes: &[u8]) -> Result<(), BusError> {
        let (store, name) = (checked_store("object store", store)?, checked_object(name)?);
        self.shared.stores().put_object(store, name, bytes, self.shared.clock.now())
    }

    fn get_object(
        &self,
        store: &str,
        name: &str,
        bytes_max: usize,
    ) -> Result<Option<Bytes>, BusError> {
        let (store, name) = (checked_store("object store", store)?, checked_object(name)?);
        let object = self.shared.stores().get_object(store, name)?;
        object.map(|bytes| checked_size(name, bytes, bytes_max)).transpose()
    }

    fn remove_object(&self, store: &str, name: &str) -> Result<(), BusError> {
        let (store, name) = (checked_store("object store", store)?, checked_object(name)?);
        self.shared.stores().remove_object(store, name)
    }

    fn state(&self) -> ConnectionState {
        ConnectionState::Connected(Arc::clone(&self.shared.server))
    }

    fn state_changes(&self) -> StateChanges {
        let queue = Arc::new(Queue::new(STATE_CHANGES_MAX));
        queue.push(self.state());
        StateChanges { queue }
    }
}

impl LocalBus {
    /// Writes a value, or removes the key. `expected` is its revision; `None` if it must not exist.
    fn write(
        &self,
        bucket: &str,
        key: &str,
        value: Option<&[u8]>,
        expected: Option<Revision>,
    ) -> Result<Revision, BusError> {
        checked_message(key, value.unwrap_or_default())?;
        let now = self.shared.clock.now();
        self.shared.stores().write(checked_store("bucket", bucket)?, key, value, expected, now)
    }
}

/// Checks the subject and the size of a message.
pub(crate) fn checked_message<'a>(subject: &'a str, payload: &[u8]) -> Result<&'a str, BusError> {
    let subject = checked_subject(subject)?;
    if payload.len() > PAYLOAD_MAX {
        let reason = format!("{} bytes; at most {PAYLOAD_MAX}; use an object", payload.len());
        return Err(BusError::invalid(subject, reason));
    }
    Ok(subject)
}

/// Checks the ID of a message of a log, which becomes a header.
pub(crate) fn checked_id(id: &str) -> Result<&str, BusError> {
    match (1..=ID_MAX).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(id),
        false => {
            let reason = format!("expected 1 to {ID_MAX} printable ASCII characters");
            Err(BusError::invalid(format!("message ID {id:?}"), reason))
        }
    }
}

pub(crate) fn checked_size(name: &str, bytes: Bytes, most: usize) -> Result<Bytes, BusError> {
    match bytes.len() <= most {
        true => Ok(bytes),
        false => {
            let reason = format!("{} bytes; at most {most}", bytes.len());
            Err(BusError::full(format!("object {name}"), reason))
        }
    }
}

pub(crate) fn no_request(message: &Message) -> BusError {
    BusError::invalid(message.subject.as_str(), "the message is no request, so it has no answer")
}

/// A watched bucket.
struct LocalFollow {
    shared: Arc<Shared>,
    bucket: String,
    pattern: String,
    hints: Arc<Queue<String>>,
}

impl Debug for LocalFollow {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LocalFollow").field("bucket", &self.bucket).finish_non_exhaustive()
    }
}

impl Follow for LocalFollow {
    fn hint(&self, timeout: Duration) -> Result<String, RecvError> {
        let key = self.hints.pop(timeout)?;
        match crate::subject::matches(&self.pattern, &key) {
            true => Ok(key),
            false => Err(RecvError::Timeout),
        }
    }

    fn losses(&self) -> u64 {
        self.hints.dropped()
    }

    fn entry(&self, key: &str) -> Result<Option<Entry>, BusError> {
        self.shared.stores().get(&self.bucket, key)
    }

    fn keys(&self) -> Result<Vec<String>, BusError> {
        let mut keys = self.shared.stores().keys(&self.bucket)?;
        keys.retain(|key| crate::subject::matches(&self.pattern, key));
        Ok(keys)
    }
}
