//! Buckets, logs and objects within one process.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;

use crate::queue::Queue;
use crate::subject::matches;
use crate::{
    Appended, BucketConfig, BusError, Entry, LogConfig, LogEntry, ObjectsConfig, Revision,
};

/// All stores of a bus, by name.
#[derive(Debug, Default)]
pub(super) struct Stores {
    buckets: BTreeMap<String, Bucket>,
    logs: BTreeMap<String, Log>,
    objects: BTreeMap<String, Objects>,
}

#[derive(Debug)]
struct Bucket {
    config: BucketConfig,
    values: BTreeMap<String, Value>,
    size: usize,
    last: u64,
    watches: Vec<Weak<Queue<String>>>,
}

#[derive(Debug)]
struct Value {
    value: Bytes,
    revision: u64,
    written: Duration,
}

#[derive(Debug)]
struct Log {
    config: LogConfig,
    /// Messages by sequence number.
    messages: BTreeMap<u64, LogMessage>,
    size: usize,
    last: u64,
    /// Sequence number and time of each ID within the duplicate window.
    ids: BTreeMap<String, (u64, Duration)>,
}

#[derive(Debug)]
struct LogMessage {
    subject: String,
    payload: Bytes,
    written: Duration,
}

#[derive(Debug)]
struct Objects {
    config: ObjectsConfig,
    objects: BTreeMap<String, (Bytes, Duration)>,
    size: usize,
}

fn is_expired(written: Duration, age_max: Option<Duration>, now: Duration) -> bool {
    age_max.is_some_and(|most| now.saturating_sub(written) >= most)
}

fn check_room(what: &str, needed: usize, bytes_max: u64) -> Result<(), BusError> {
    match u64::try_from(needed).is_ok_and(|needed| needed <= bytes_max) {
        true => Ok(()),
        false => Err(BusError::full(what, format!("more than {bytes_max} bytes in all"))),
    }
}

impl Stores {
    /// Removes what has expired.
    pub(super) fn expire(&mut self, now: Duration) {
        for bucket in self.buckets.values_mut() {
            let age_max = bucket.config.time_to_live;
            bucket.values.retain(|_, value| !is_expired(value.written, age_max, now));
            bucket.size = bucket.values.values().map(|value| value.value.len()).sum();
        }
        for log in self.logs.values_mut() {
            let age_max = log.config.age_max;
            while let Some(first) = log.messages.first_entry()
                && is_expired(first.get().written, age_max, now)
            {
                log.size -= first.remove().payload.len();
            }
            let window = Some(log.config.duplicate_window);
            log.ids.retain(|_, (_, seen)| !is_expired(*seen, window, now));
        }
        for store in self.objects.values_mut() {
            let age_max = store.config.age_max;
            store.objects.retain(|_, (_, written)| !is_expired(*written, age_max, now));
            store.size = store.objects.values().map(|(bytes, _)| bytes.len()).sum();
        }
    }

    pub(super) fn create_bucket(&mut self, config: &BucketConfig) {
        let new = || Bucket {
            config: config.clone(),
            values: BTreeMap::new(),
            size: 0,
            last: 0,
            watches: Vec::new(),
        };
        self.buckets.entry(config.name.clone()).or_insert_with(new).config = config.clone();
    }

    fn bucket(&mut self, name: &str) -> Result<&mut Bucket, BusError> {
        let missing = || BusError::Missing { kind: "bucket", name: name.into() };
        self.buckets.get_mut(name).ok_or_else(missing)
    }

    pub(super) fn write(
        &mut self,
        name: &str,
        key: &str,
        value: Option<&[u8]>,
        expected: Option<Revision>,
        now: Duration,
    ) -> Result<Revision, BusError> {
        let bucket = self.bucket(name)?;
        let found = bucket.values.get(key);
        match (expected, found) {
            (None, Some(_)) => return Err(BusError::exists(name, key)),
            (Some(expected), found) if found.map(|value| value.revision) != Some(expected.0) => {
                return Err(BusError::stale(name, key, expected.0));
            }
            _ => {}
        }
        let size = bucket.size - found.map_or(0, |value| value.value.len());
        let size = size + value.map_or(0, <[u8]>::len);
        check_room(&format!("bucket {name}, key {key}"), size, bucket.config.bytes_max)?;
        bucket.size = size;
        bucket.last += 1;
        match value {
            Some(value) => {
                let value = Bytes::copy_from_slice(value);
                let value = Value { value, revision: bucket.last, written: now };
                bucket.values.insert(key.into(), value);
            }
            None => {
                bucket.values.remove(key);
            }
        }
        bucket.watches.retain(|watch| match watch.upgrade() {
            Some(hints) => {
                hints.push(key.to_owned());
                true
            }
            None => false,
        });
        Ok(Revision(bucket.last))
    }

    pub(super) fn get(&mut self, name: &str, key: &str) -> Result<Option<Entry>, BusError> {
        let found = self.bucket(name)?.values.get(key);
        Ok(found.map(|value| Entry {
            key: key.into(),
            value: value.value.clone(),
            revision: Revision(value.revision),
        }))
    }

    pub(super) fn keys(&mut self, name: &str) -> Result<Vec<String>, BusError> {
        Ok(self.bucket(name)?.values.keys().cloned().collect())
    }

    pub(super) fn watch(&mut self, name: &str, hints: &Arc<Queue<String>>) -> Result<(), BusError> {
        self.bucket(name)?.watches.push(Arc::downgrade(hints));
        Ok(())
    }

    pub(super) fn create_log(&mut self, config: &LogConfig) {
        let new = || Log {
            config: config.clone(),
            messages: BTreeMap::new(),
            size: 0,
            last: 0,
            ids: BTreeMap::new(),
        };
        self.logs.entry(config.name.clone()).or_insert_with(new).config = config.clone();
    }

    fn log(&mut self, name: &str) -> Result<&mut Log, BusError> {
        let missing = || BusError::Missing { kind: "log", name: name.into() };
        self.logs.get_mut(name).ok_or_else(missing)
    }

    pub(super) fn append(
        &mut self,
        name: &str,
        subject: &str,
        message_id: &str,
        payload: &[u8],
        now: Duration,
    ) -> Result<Appended, BusError> {
        let log = self.log(name)?;
        if !matches(&log.config.pattern, subject) {
            let reason = format!("log {name} takes {} alone", log.config.pattern);
            return Err(BusError::invalid(subject, reason));
        }
        if let Some((sequence, _)) = log.ids.get(message_id) {
            return Ok(Appended { sequence: *sequence, is_duplicate: true });
        }
        let size = log.size + payload.len();
        check_room(&format!("log {name}"), size, log.config.bytes_max)?;
        log.size = size;
        log.last += 1;
        let payload = Bytes::copy_from_slice(payload);
        let message = LogMessage { subject: subject.into(), payload, written: now };
        log.messages.insert(log.last, message);
        log.ids.insert(message_id.into(), (log.last, now));
        Ok(Appended { sequence: log.last, is_duplicate: false })
    }

    pub(super) fn read(
        &mut self,
        name: &str,
        pattern: &str,
        from: u64,
        max: usize,
    ) -> Result<Vec<LogEntry>, BusError> {
        let messages = self.log(name)?.messages.range(from..);
        let fitting = messages.filter(|(_, message)| matches(pattern, &message.subject));
        Ok(fitting
            .take(max)
            .map(|(sequence, message)| LogEntry {
                sequence: *sequence,
                subject: message.subject.clone(),
                payload: message.payload.clone(),
            })
            .collect())
    }

    pub(super) fn create_objects(&mut self, config: &ObjectsConfig) {
        let new = || Objects { config: config.clone(), objects: BTreeMap::new(), size: 0 };
        self.objects.entry(config.name.clone()).or_insert_with(new).config = config.clone();
    }

    fn objects(&mut self, name: &str) -> Result<&mut Objects, BusError> {
        let missing = || BusError::Missing { kind: "object store", name: name.into() };
        self.objects.get_mut(name).ok_or_else(missing)
    }

    pub(super) fn put_object(
        &mut self,
        name: &str,
        object: &str,
        bytes: &[u8],
        now: Duration,
    ) -> Result<(), BusError> {
        let store = self.objects(name)?;
        let replaced = store.objects.get(object).map_or(0, |(bytes, _)| bytes.len());
        let size = store.size - replaced + bytes.len();
        check_room(&format!("object store {name}"), size, store.config.bytes_max)?;
        store.size = size;
        store.objects.insert(object.into(), (Bytes::copy_from_slice(bytes), now));
        Ok(())
    }

    pub(super) fn get_object(
        &mut self,
        name: &str,
        object: &str,
    ) -> Result<Option<Bytes>, BusError> {
        Ok(self.objects(name)?.objects.get(object).map(|(bytes, _)| bytes.clone()))
    }

    pub(super) fn remove_object(&mut self, name: &str, object: &str) -> Result<(), BusError> {
        let store = self.objects(name)?;
        let removed = store.objects.remove(object).map_or(0, |(bytes, _)| bytes.len());
        store.size -= removed;
        Ok(())
    }
}
