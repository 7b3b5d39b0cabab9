//! Following the keys of a bucket.
//!
//! A hint reports that a key was written; its value is then read. Hints may be lost, and no hint
//! reports that a key expired, so the keys are listed each second too.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::{BusError, Entry, RecvError, Revision};

/// Time between two lists of the keys.
const LIST_INTERVAL: Duration = Duration::from_secs(1);

/// A change of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The key has a new value.
    Put(Entry),
    /// The key was deleted, or it expired.
    Removed {
        /// The key.
        key: String,
    },
}

/// The keys of a bucket that fit a pattern: first those that exist, then each change.
///
/// The last value of each key is always reported; values that were soon replaced may be left out.
/// An expired key is reported at most 1 s later. When the connection comes back, the watch reads all
/// keys again, so it misses nothing.
#[derive(Debug)]
pub struct Watch {
    bucket: Box<dyn Follow>,
    state: Mutex<State>,
}

/// What a back end gives for a watch.
pub(crate) trait Follow: Send + Sync + Debug {
    /// Waits for the key of a write.
    fn hint(&self, timeout: Duration) -> Result<String, RecvError>;
    /// Returns a number that grows each time when hints may have been lost.
    fn losses(&self) -> u64;
    /// Reads a key.
    fn entry(&self, key: &str) -> Result<Option<Entry>, BusError>;
    /// Lists the keys that fit the pattern. Deleted ones may be among them.
    fn keys(&self) -> Result<Vec<String>, BusError>;
}

#[derive(Debug)]
struct State {
    /// Revision of each key that was told; `None` for a removed one.
    known: BTreeMap<String, Option<Revision>>,
    ready: VecDeque<Change>,
    next_list: Instant,
    /// Value of [`Follow::losses`] at the last full reading; `None` if one is due.
    losses: Option<u64>,
}

impl Watch {
    pub(crate) fn new(bucket: impl Follow + 'static) -> Result<Self, BusError> {
        let mut state = State {
            known: BTreeMap::new(),
            ready: VecDeque::new(),
            next_list: Instant::now() + LIST_INTERVAL,
            losses: None,
        };
        state.list(&bucket)?;
        Ok(Self { bucket: Box::new(bucket), state: Mutex::new(state) })
    }

    /// Takes the next change; waits for it at most for `timeout`, and for one answer of the server.
    ///
    /// # Errors
    /// See [`RecvError`].
    pub fn recv(&self, timeout: Duration) -> Result<Change, RecvError> {
        let started = Instant::now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = &*self.bucket;
        loop {
            if let Some(change) = state.ready.pop_front() {
                return Ok(change);
            }
            let now = Instant::now();
            if now >= state.next_list {
                state.next_list = now + LIST_INTERVAL;
                // Without a connection, the next list tells what happened meanwhile.
                let _ = state.list(bucket);
                continue;
            }
            let left = timeout.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Err(RecvError::Timeout);
            }
            match bucket.hint(left.min(state.next_list - now)) {
                Ok(key) => {
                    if state.read(bucket, key).is_err() {
                        state.losses = None;
                    }
                }
                Err(RecvError::Timeout) => {}
                Err(RecvError::Closed) => return Err(RecvError::Closed),
            }
        }
    }
}

impl State {
    /// Lists the keys, and reads those that may have changed.
    fn list(&mut self, bucket: &dyn Follow) -> Result<(), BusError> {
        let losses = bucket.losses();
        let is_complete = self.losses == Some(losses);
        let mut keys = bucket.keys()?;
        keys.sort_unstable();
        let gone: Vec<String> =
            self.known.keys().filter(|key| keys.binary_search(key).is_err()).cloned().collect();
        for key in gone {
            if self.known.remove(&key).flatten().is_some() {
                self.ready.push_back(Change::Removed { key });
            }
        }
        self.losses = None;
        for key in keys {
            if !is_complete || !self.known.contains_key(&key) {
                self.read(bucket, key)?;
            }
        }
        self.losses = Some(losses);
        Ok(())
    }

    /// Reads a key, and reports it if it has changed.
    fn read(&mut self, bucket: &dyn Follow, key: String) -> Result<(), BusError> {
        match bucket.entry(&key)? {
            Some(entry) => {
                if self.known.insert(key, Some(entry.revision)) != Some(Some(entry.revision)) {
                    self.ready.push_back(Change::Put(entry));
                }
            }
            None => {
                if self.known.insert(key.clone(), None).flatten().is_some() {
                    self.ready.push_back(Change::Removed { key });
                }
            }
        }
        Ok(())
    }
}
