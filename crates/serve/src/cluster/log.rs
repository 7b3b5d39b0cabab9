//! Records in the log of results: compressed, in messages of bounded size.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use wirestorm_bus::cluster::RESULTS;
use wirestorm_bus::{Bus, LogEntry};

use super::protocol::{Record, decode, encode};

/// Bytes of a record in one message: a bus takes 1 MiB.
const PART_BYTES: usize = 512 << 10;

/// Largest record in bytes, before compression.
const RECORD_BYTES_MAX: u64 = 1 << 30;

/// Pauses between attempts to append.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// First line of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    /// Identifier of the record, unique for an agent in a test.
    record: String,
    /// Part of the record, from 0.
    part: usize,
    /// Number of parts.
    parts: usize,
}

/// Appends the records of an agent to the log, in order, until each one is there. A thread does it, so
/// a bus that is away delays nobody.
#[derive(Debug)]
pub(super) struct LogWriter {
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<VecDeque<Pending>>,
    changed: Condvar,
    stop: AtomicBool,
}

#[derive(Debug)]
struct Pending {
    subject: String,
    id: String,
    messages: Vec<Vec<u8>>,
    done: Arc<AtomicBool>,
}

impl LogWriter {
    pub(super) fn start(bus: Arc<dyn Bus>) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("agent-log".into());
        let thread = thread.spawn(move || write(&*bus, &of_thread))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Adds a record to the queue. The flag is set once the record is in the log.
    pub(super) fn append(&self, subject: String, id: String, record: &Record) -> Arc<AtomicBool> {
        let messages = messages(&id, record);
        let done = Arc::new(AtomicBool::new(false));
        let pending = Pending { subject, id, messages, done: Arc::clone(&done) };
        self.queue().push_back(pending);
        self.shared.changed.notify_all();
        done
    }

    /// Waits until all records are in the log, for at most `timeout`; returns whether they are.
    pub(super) fn wait(&self, timeout: Duration) -> bool {
        let outcome =
            self.shared.changed.wait_timeout_while(self.queue(), timeout, |it| !it.is_empty());
        outcome.unwrap_or_else(PoisonError::into_inner).0.is_empty()
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, VecDeque<Pending>> {
        self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.changed.notify_all();
        // A panic of the thread has nothing to clean up.
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

fn write(bus: &dyn Bus, shared: &Shared) {
    let lock = || shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
    let mut pause = PAUSE_MIN;
    loop {
        let is_stopped = || shared.stop.load(Ordering::Acquire);
        let queue = shared.changed.wait_while(lock(), |queue| queue.is_empty() && !is_stopped());
        let queue = queue.unwrap_or_else(PoisonError::into_inner);
        if is_stopped() {
            return;
        }
        let Some(first) = queue.front() else { continue };
        let (subject, id, messages) =
            (first.subject.clone(), first.id.clone(), first.messages.clone());
        drop(queue);
        let appended = messages.iter().enumerate().try_for_each(|(part, message)| {
            bus.append(RESULTS, &subject, &format!("{subject}.{id}.{part}"), message).map(drop)
        });
        match appended {
            Ok(()) => {
                pause = PAUSE_MIN;
                if let Some(first) = lock().pop_front() {
                    first.done.store(true, Ordering::Release);
                }
                shared.changed.notify_all();
            }
            Err(_) => {
                // The log knows the parts that it has, so repeating is safe.
                let until = Instant::now() + pause;
                pause = (2 * pause).min(PAUSE_MAX);
                while Instant::now() < until && !is_stopped() {
                    std::thread::sleep(PAUSE_MIN / 2);
                }
            }
        }
    }
}

/// Returns the messages of a record.
fn messages(id: &str, record: &Record) -> Vec<Vec<u8>> {
    // Level 3 is zstd's default. Writing to memory does not fail.
    let bytes = zstd::bulk::compress(&encode(record), 3).unwrap_or_default();
    let parts = bytes.chunks(PART_BYTES).count().max(1);
    let message = |(part, bytes): (usize, &[u8])| {
        let header = Header { record: id.to_owned(), part, parts };
        [&encode(&header)[..], b"\n", bytes].concat()
    };
    bytes.chunks(PART_BYTES).enumerate().map(message).collect()
}

/// Puts records together from the messages of a log.
#[derive(Debug)]
pub(super) struct LogReader {
    /// Sequence number from which to read next.
    pub(super) from: u64,
    incomplete: BTreeMap<(String, String), BTreeMap<usize, Vec<u8>>>,
}

impl Default for LogReader {
    fn default() -> Self {
        Self { from: 1, incomplete: BTreeMap::new() }
    }
}

impl LogReader {
    /// Returns the record that this message completes, with its subject.
    ///
    /// # Errors
    /// The message or the record is not valid.
    pub(super) fn add(&mut self, entry: &LogEntry) -> Result<Option<(String, Record)>, String> {
        self.from = self.from.max(entry.sequence + 1);
        let failed = |error: &dyn std::fmt::Display| {
            format!("record {} of {}: {error}", entry.sequence, entry.subject)
        };
        let line = entry.payload.iter().position(|byte| *byte == b'\n');
        let line = line.ok_or_else(|| failed(&"it has no header"))?;
        let (header, rest) = entry.payload.split_at(line);
        let header: Header = decode(header).map_err(|error| failed(&error))?;
        let key = (entry.subject.clone(), header.record.clone());
        let parts = self.incomplete.entry(key.clone()).or_default();
        parts.insert(header.part, rest.get(1..).unwrap_or_default().to_vec());
        if parts.len() < header.parts {
            return Ok(None);
        }
        let parts = self.incomplete.remove(&key).unwrap_or_default();
        let bytes: Vec<u8> = parts.into_values().flatten().collect();
        let bytes = decompress(&bytes).map_err(|error| failed(&error))?;
        let record = decode(&bytes).map_err(|error| failed(&error))?;
        Ok(Some((entry.subject.clone(), record)))
    }
}

fn decompress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let decoder = zstd::stream::Decoder::new(bytes)?;
    decoder.take(RECORD_BYTES_MAX + 1).read_to_end(&mut text)?;
    match text.len() as u64 > RECORD_BYTES_MAX {
        true => Err(io::Error::other(format!("it is longer than {RECORD_BYTES_MAX} bytes"))),
        false => Ok(text),
    }
}
