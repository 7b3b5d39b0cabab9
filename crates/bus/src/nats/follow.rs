//! Watching a bucket: the server sends each write, after it has stored it, to a subject of the key.

use std::sync::Arc;
use std::time::Duration;

use super::SERVER_TIMEOUT;
use super::shared::{NatsSource, Shared};
use crate::bus::Source;
use crate::watch::{Follow, Watch};
use crate::{BusError, Entry, RecvError};

/// Number of hints that a watch holds.
const HINTS_MAX: usize = 1024;

#[derive(Debug)]
struct NatsFollow {
    shared: Arc<Shared>,
    bucket: String,
    pattern: String,
    hints: NatsSource,
}

impl Shared {
    pub(super) fn watch(self: &Arc<Self>, bucket: &str, pattern: &str) -> Result<Watch, BusError> {
        let subjects = self.written_subject(bucket, pattern);
        let hints = self.subscribe(&subjects, HINTS_MAX, true, SERVER_TIMEOUT)?;
        Watch::new(NatsFollow {
            shared: Arc::clone(self),
            bucket: bucket.into(),
            pattern: pattern.into(),
            hints,
        })
    }
}

impl Follow for NatsFollow {
    fn hint(&self, timeout: Duration) -> Result<String, RecvError> {
        let message = self.hints.recv(timeout)?;
        let prefix = self.shared.written_subject(&self.bucket, "");
        message.subject.strip_prefix(&prefix).map(str::to_owned).ok_or(RecvError::Timeout)
    }

    fn losses(&self) -> u64 {
        // Writes between two connections give no hints.
        self.shared.connections() + self.shared.dropped() + self.hints.dropped()
    }

    fn entry(&self, key: &str) -> Result<Option<Entry>, BusError> {
        self.shared.read_key(&self.bucket, key)
    }

    fn keys(&self) -> Result<Vec<String>, BusError> {
        self.shared.all_keys(&self.bucket, &self.pattern)
    }
}
