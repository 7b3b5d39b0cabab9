//! The trait of a bus, and its values.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::queue::Queue;
use crate::watch::Watch;
use crate::{Advisory, BusError, RecvError};

/// Messages, key-value buckets, logs and objects that the machines of a test share.
///
/// All calls block; none waits longer than its timeout, or 5 s where it has none. Subjects are
/// tokens with dots between them, at most 255 bytes; [`crate::subject`] builds them. In patterns,
/// `*` is any token and `>` at the end is one or more tokens.
///
/// # Errors
/// See [`BusError`]. Each operation can be `Disconnected`, `Denied`, `Timeout` or `Invalid`.
pub trait Bus: Send + Sync + Debug {
    /// Sends a message to all subscribers. Returns before the server has it: [`Bus::flush`] waits.
    ///
    /// # Errors
    /// `Disconnected` at once if there is no connection: the message is not kept. `Full` if more
    /// than 2048 messages wait to be sent. `Invalid` above 1 MiB.
    fn publish(&self, subject: &str, payload: &[u8]) -> Result<(), BusError>;

    /// Waits until the server has all messages that this bus published before.
    ///
    /// # Errors
    /// `Denied` names the first message that the server refused since the last call.
    fn flush(&self, timeout: Duration) -> Result<(), BusError>;

    /// Sends a request, and waits for the first answer. The bus sends it once, whatever happens.
    ///
    /// # Errors
    /// `NoResponder` at once if nobody is subscribed.
    fn request(&self, subject: &str, payload: &[u8], timeout: Duration) -> Result<Bytes, BusError>;

    /// Subscribes to a pattern. Messages that anybody sends after the return are received.
    ///
    /// The subscription holds at most `capacity` messages; more are dropped and counted. It lives
    /// on when the connection is lost, without the messages of that time.
    ///
    /// # Errors
    /// See [`BusError`].
    fn subscribe(&self, pattern: &str, capacity: usize) -> Result<Subscription, BusError>;

    /// Answers a request.
    ///
    /// # Errors
    /// `Invalid` if the message is no request.
    fn respond(&self, message: &Message, payload: &[u8]) -> Result<(), BusError>;

    /// Creates a bucket, or changes its settings to these.
    ///
    /// # Errors
    /// See [`BusError`].
    fn create_bucket(&self, config: &BucketConfig) -> Result<(), BusError>;

    /// Writes a key that does not exist. Keys are like subjects.
    ///
    /// # Errors
    /// `Conflict` if the key exists.
    fn create(&self, bucket: &str, key: &str, value: &[u8]) -> Result<Revision, BusError>;

    /// Writes a key whose revision is `revision`, and starts its time to live anew.
    ///
    /// # Errors
    /// `Conflict` if the revision is another one, or the key has expired.
    fn update(
        &self,
        bucket: &str,
        key: &str,
        value: &[u8],
        revision: Revision,
    ) -> Result<Revision, BusError>;

    /// Reads a key; `None` if it does not exist.
    ///
    /// # Errors
    /// See [`BusError`].
    fn get(&self, bucket: &str, key: &str) -> Result<Option<Entry>, BusError>;

    /// Removes a key whose revision is `revision`.
    ///
    /// # Errors
    /// `Conflict` if the revision is another one, or the key has expired.
    fn delete(&self, bucket: &str, key: &str, revision: Revision) -> Result<(), BusError>;

    /// Lists the keys of a bucket in order.
    ///
    /// # Errors
    /// See [`BusError`].
    fn keys(&self, bucket: &str) -> Result<Vec<String>, BusError>;

    /// Follows the keys of a bucket that fit a pattern; see [`Watch`].
    ///
    /// # Errors
    /// See [`BusError`].
    fn watch(&self, bucket: &str, pattern: &str) -> Result<Watch, BusError>;

    /// Creates a log, or changes its settings to these.
    ///
    /// # Errors
    /// See [`BusError`].
    fn create_log(&self, config: &LogConfig) -> Result<(), BusError>;

    /// Appends a message to a log. After the return it is on disk.
    ///
    /// A message with an ID that the log has seen within its duplicate window is not appended
    /// again. So after any error the caller can repeat the call. An ID has 1 to 512 printable ASCII
    /// characters without spaces.
    ///
    /// # Errors
    /// `Full` if the log has reached its size. `Invalid` if the log does not take the subject.
    fn append(
        &self,
        log: &str,
        subject: &str,
        message_id: &str,
        payload: &[u8],
    ) -> Result<Appended, BusError>;

    /// Reads at most `max` messages of a log whose subject fits a pattern, from a sequence number
    /// on. An empty list means that there are no more yet. Sequence numbers start with 1.
    ///
    /// # Errors
    /// See [`BusError`].
    fn read(
        &self,
        log: &str,
        pattern: &str,
        from: u64,
        max: usize,
    ) -> Result<Vec<LogEntry>, BusError>;

    /// Creates an object store, or changes its settings to these.
    ///
    /// # Errors
    /// See [`BusError`].
    fn create_objects(&self, config: &ObjectsConfig) -> Result<(), BusError>;

    /// Stores an object under a name of one to four tokens. An object of that name is replaced.
    ///
    /// # Errors
    /// `Full` if the store has reached its size.
    fn put_object(&self, store: &str, name: &str, bytes: &[u8]) -> Result<(), BusError>;

    /// Reads an object; `None` if it does not exist.
    ///
    /// # Errors
    /// `Full` if it is larger than `bytes_max`. `Server` if its digest does not fit its content.
    fn get_object(
        &self,
        store: &str,
        name: &str,
        bytes_max: usize,
    ) -> Result<Option<Bytes>, BusError>;

    /// Removes an object, so that its room is free. One that does not exist is no error.
    ///
    /// # Errors
    /// See [`BusError`].
    fn remove_object(&self, store: &str, name: &str) -> Result<(), BusError>;

    /// Returns the state of the connection.
    fn state(&self) -> ConnectionState;

    /// Follows the state of the connection, beginning with the present one.
    fn state_changes(&self) -> StateChanges;
}

/// A message of a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Subject to which it was sent.
    pub subject: String,
    /// Content.
    pub payload: Bytes,
    /// Subject of the answer, if it is a request. See [`Bus::respond`].
    pub reply: Option<String>,
}

/// Number of a write to a bucket. Later writes have higher numbers, also of other keys; so a
/// revision can be a fencing token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

/// A key of a bucket, with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Key.
    pub key: String,
    /// Value.
    pub value: Bytes,
    /// Revision of the value.
    pub revision: Revision,
}

/// Settings of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketConfig {
    /// Name: lower-case letters and digits, at most 32.
    pub name: String,
    /// Time after its last write at which a key vanishes, at least 100 ms; `None` for never.
    pub time_to_live: Option<Duration>,
    /// Maximum size of all values together in bytes.
    pub bytes_max: u64,
}

/// Settings of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// Name: lower-case letters and digits, at most 32.
    pub name: String,
    /// Pattern of the subjects that the log takes. The patterns of two logs must not overlap.
    pub pattern: String,
    /// Age at which a message vanishes; `None` for never.
    pub age_max: Option<Duration>,
    /// Maximum size of all messages together in bytes. A full log refuses new messages.
    pub bytes_max: u64,
    /// Time for which the log remembers the IDs of messages.
    pub duplicate_window: Duration,
}

/// Settings of an object store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectsConfig {
    /// Name: lower-case letters and digits, at most 32.
    pub name: String,
    /// Age at which an object vanishes; `None` for never.
    pub age_max: Option<Duration>,
    /// Maximum size of all objects together in bytes. A full store refuses new objects.
    pub bytes_max: u64,
}

/// Result of [`Bus::append`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Sequence number of the message in the log.
    pub sequence: u64,
    /// Whether the log had a message with this ID already.
    pub is_duplicate: bool,
}

/// A message of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Sequence number; later messages have higher ones, with gaps.
    pub sequence: u64,
    /// Subject.
    pub subject: String,
    /// Content.
    pub payload: Bytes,
}

/// State of the connection to the bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// There is a connection.
    Connected(Arc<Server>),
    /// There is none. The bus tries to connect again, each 2 s at the latest.
    Disconnected {
        /// Time of the loss.
        since: Instant,
        /// Reason of the loss, or of the last failed attempt.
        reason: String,
    },
}

impl ConnectionState {
    /// Returns whether there is a connection.
    pub const fn is_connected(&self) -> bool {
        matches!(self, Self::Connected(_))
    }
}

/// The server of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Address, or `in-process`.
    pub address: String,
    /// Version, as the server reports it.
    pub version: String,
    /// Known faults of this version, to be shown as warnings.
    pub advisories: Vec<Advisory>,
}

/// A source of items for a [`Subscription`].
pub(crate) trait Source<T>: Send + Sync + Debug {
    fn recv(&self, timeout: Duration) -> Result<T, RecvError>;
    fn dropped(&self) -> u64;
}

/// Messages that fit a pattern. Dropping it ends the subscription.
#[derive(Debug)]
pub struct Subscription {
    source: Box<dyn Source<Message>>,
}

impl Subscription {
    pub(crate) fn new(source: impl Source<Message> + 'static) -> Self {
        Self { source: Box::new(source) }
    }

    /// Takes the next message; waits for it at most for `timeout`.
    ///
    /// # Errors
    /// See [`RecvError`].
    pub fn recv(&self, timeout: Duration) -> Result<Message, RecvError> {
        self.source.recv(timeout)
    }

    /// Returns the number of messages that were dropped because the subscription was full.
    pub fn dropped(&self) -> u64 {
        self.source.dropped()
    }
}

/// Changes of the state of a connection. It holds the last 64; more are dropped.
#[derive(Debug)]
pub struct StateChanges {
    pub(crate) queue: Arc<Queue<ConnectionState>>,
}

/// Number of changes that a [`StateChanges`] holds.
pub(crate) const STATE_CHANGES_MAX: usize = 64;

impl StateChanges {
    /// Takes the next change; waits for it at most for `timeout`.
    ///
    /// # Errors
    /// See [`RecvError`].
    pub fn recv(&self, timeout: Duration) -> Result<ConnectionState, RecvError> {
        self.queue.pop(timeout)
    }
}
