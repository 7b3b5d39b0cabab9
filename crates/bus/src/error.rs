//! Errors of the bus.

use std::time::Duration;

/// Error of an operation on the bus.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BusError {
    /// Nobody is subscribed to the subject of a request. The request was not delivered.
    #[error("{subject}: nobody answers there; is the other side running and connected?")]
    NoResponder {
        /// Subject of the request.
        subject: String,
    },
    /// No answer in time. The operation may have happened, or may still happen.
    #[error("{what}: no answer within {} ms", after.as_millis())]
    Timeout {
        /// Operation, with its subject or key.
        what: String,
        /// Time that the caller waited.
        after: Duration,
    },
    /// There is no connection, or it was lost before the answer. If it was lost, the operation may
    /// have happened; the bus does not repeat it.
    #[error("{what}: no connection to the bus: {reason}")]
    Disconnected {
        /// Operation, with its subject or key.
        what: String,
        /// Reason of the disconnection.
        reason: String,
    },
    /// The server refused the operation or the key.
    #[error("{what}: refused: {reason}")]
    Denied {
        /// Operation, with its subject or key.
        what: String,
        /// Reason of the server.
        reason: String,
    },
    /// The key exists already, or has another revision than expected.
    #[error("bucket {bucket}, key {key}: {found}, expected {expected}")]
    Conflict {
        /// Bucket.
        bucket: String,
        /// Key.
        key: String,
        /// What the operation expected.
        expected: String,
        /// What the bucket has.
        found: String,
    },
    /// The bucket, the log or the object store does not exist.
    #[error("there is no {kind} {name}: a director creates it")]
    Missing {
        /// `bucket`, `log` or `object store`.
        kind: &'static str,
        /// Name.
        name: String,
    },
    /// A bound of the bus is reached.
    #[error("{what}: {reason}")]
    Full {
        /// Operation, with its subject or key.
        what: String,
        /// The bound.
        reason: String,
    },
    /// A name, a subject or an option is wrong.
    #[error("{what}: {reason}")]
    Invalid {
        /// Name, subject or option.
        what: String,
        /// What is wrong, and what is expected.
        reason: String,
    },
    /// The server cannot do what it was asked, or its answer cannot be used.
    #[error("{what}: {reason}")]
    Server {
        /// Operation, with its subject or key.
        what: String,
        /// Reason, in the words of the server where it gave one.
        reason: String,
    },
}

/// Result without an item from a subscription, a watch or the changes of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecvError {
    /// Nothing arrived in time.
    #[error("nothing arrived in time")]
    Timeout,
    /// The bus was dropped, so nothing can arrive any more.
    #[error("the bus is closed")]
    Closed,
}

impl BusError {
    pub(crate) fn invalid(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Invalid { what: what.into(), reason: reason.into() }
    }

    pub(crate) fn server(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Server { what: what.into(), reason: reason.into() }
    }

    pub(crate) fn full(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Full { what: what.into(), reason: reason.into() }
    }

    /// Conflict of `create`: the key exists.
    pub(crate) fn exists(bucket: &str, key: &str) -> Self {
        Self::Conflict {
            bucket: bucket.into(),
            key: key.into(),
            expected: "no key".into(),
            found: "the key exists".into(),
        }
    }

    /// Conflict of `update` or `delete`: the key has another revision, or does not exist.
    pub(crate) fn stale(bucket: &str, key: &str, revision: u64) -> Self {
        Self::Conflict {
            bucket: bucket.into(),
            key: key.into(),
            expected: format!("revision {revision}"),
            found: "another revision, or no key".into(),
        }
    }
}
