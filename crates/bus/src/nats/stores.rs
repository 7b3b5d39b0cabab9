//! Buckets, logs and object stores as streams of JetStream.
//!
//! | store | stream | subjects |
//! | --- | --- | --- |
//! | bucket | `KV_ws-SITE-BUCKET` | `$KV.ws-SITE-BUCKET.KEY`, as other clients of NATS use them |
//! | log | `LOG_ws-SITE-LOG` | the pattern of the log |
//! | objects | `OBJ_ws-SITE-STORE` | `ws.SITE.object.STORE.NAME.PART`: numbers, then `meta` |
//!
//! The parts of an object have subjects of their own, unlike in NATS's object store: so a client
//! reads an object only if it may read its subject and knows its name.

use std::time::Duration;

use async_nats::HeaderMap;
use bytes::{Bytes, BytesMut};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::SERVER_TIMEOUT;
use super::jetstream::{EXPECTED, MESSAGE_ID, NotStored, OPERATION, Stream};
use super::shared::Shared;
use crate::local::checked_size;
use crate::{
    Appended, BucketConfig, BusError, Entry, LogConfig, LogEntry, ObjectsConfig, Revision,
};

/// Size of a part of an object in bytes.
const PART: usize = 128 << 10;
/// Most parts of an object; so nobody makes another one clear parts forever.
const PARTS_MAX: usize = 1 << 16;
/// Longest time for which a bucket or an object store remembers IDs, which they do not use.
const DUPLICATE_WINDOW_MAX: Duration = Duration::from_secs(120);
/// Messages that are sent without a wait for the server; fewer than the send queue holds.
const UNCONFIRMED_MAX: usize = 512;

/// The description of an object, which is stored after its parts.
#[derive(Debug, Serialize, Deserialize)]
struct ObjectMeta {
    size: usize,
    parts: usize,
    /// SHA-256 of the object, in hexadecimal digits.
    sha256: String,
}

impl Shared {
    fn bucket(&self, name: &str) -> Stream {
        let stream = self.site().bucket_stream(name);
        Stream { kind: "bucket", name: name.into(), stream }
    }

    fn log(&self, name: &str) -> Stream {
        Stream { kind: "log", name: name.into(), stream: self.site().log_stream(name) }
    }

    fn objects(&self, name: &str) -> Stream {
        let stream = self.site().objects_stream(name);
        Stream { kind: "object store", name: name.into(), stream }
    }

    /// Returns the subject of a key, or the pattern of several.
    pub(super) fn key_subject(&self, bucket: &str, key: &str) -> String {
        format!("$KV.{}.{key}", self.site().bucket(bucket))
    }

    /// Returns the subject to which the server sends the writes of a key.
    pub(super) fn written_subject(&self, bucket: &str, key: &str) -> String {
        format!("{}.{key}", self.site().written(bucket))
    }

    pub(super) fn create_bucket(&self, config: &BucketConfig) -> Result<(), BusError> {
        let stream = self.bucket(&config.name);
        let subjects = self.key_subject(&config.name, ">");
        let age = config.time_to_live;
        let mut settings = settings(&stream, &subjects, age, config.bytes_max, None, 1);
        // The server sends each write there after it has stored it, for those who watch.
        if let Some(settings) = settings.as_object_mut() {
            let to = self.written_subject(&config.name, ">");
            settings.insert("republish".into(), json!({ "src": subjects, "dest": to }));
        }
        self.create_stream(&stream, &settings)
    }

    /// Creates a key, also where a deleted one was.
    pub(super) fn create_key(
        &self,
        bucket: &str,
        key: &str,
        value: &[u8],
    ) -> Result<Revision, BusError> {
        match self.write_key(bucket, key, Some(value), Revision(0)) {
            Err(BusError::Conflict { .. }) => {}
            other => return other,
        }
        let stream = self.bucket(bucket);
        match self.last(&stream, &self.key_subject(bucket, key))? {
            Some(stored) if stored.is_deletion => {
                let created = self.write_key(bucket, key, Some(value), Revision(stored.sequence));
                created.map_err(|error| as_exists(error, bucket, key))
            }
            _ => Err(BusError::exists(bucket, key)),
        }
    }

    /// Writes a value, or marks the key as deleted. `expected` is its revision; 0 for none.
    pub(super) fn write_key(
        &self,
        bucket: &str,
        key: &str,
        value: Option<&[u8]>,
        expected: Revision,
    ) -> Result<Revision, BusError> {
        let mut headers = HeaderMap::new();
        headers.insert(EXPECTED, expected.0.to_string());
        if value.is_none() {
            headers.insert(OPERATION, "DEL");
        }
        let (stream, subject) = (self.bucket(bucket), self.key_subject(bucket, key));
        match self.store(&stream, &subject, Some(headers), value.unwrap_or_default()) {
            Ok(acknowledgement) => Ok(Revision(acknowledgement.seq)),
            Err(NotStored::WrongRevision) => Err(BusError::stale(bucket, key, expected.0)),
            Err(NotStored::Other(error)) => Err(error),
        }
    }

    pub(super) fn read_key(&self, bucket: &str, key: &str) -> Result<Option<Entry>, BusError> {
        let stored = self.last(&self.bucket(bucket), &self.key_subject(bucket, key))?;
        Ok(stored.filter(|stored| !stored.is_deletion).map(|stored| Entry {
            key: key.into(),
            value: stored.payload,
            revision: Revision(stored.sequence),
        }))
    }

    /// Lists the keys that fit a pattern, with deleted ones.
    pub(super) fn all_keys(&self, bucket: &str, pattern: &str) -> Result<Vec<String>, BusError> {
        let subjects = self.subjects(&self.bucket(bucket), &self.key_subject(bucket, pattern))?;
        let prefix = self.key_subject(bucket, "");
        let keys = subjects.iter().filter_map(|subject| subject.strip_prefix(&prefix));
        Ok(keys.map(str::to_owned).collect())
    }

    pub(super) fn live_keys(&self, bucket: &str) -> Result<Vec<String>, BusError> {
        let mut keys = Vec::new();
        for key in self.all_keys(bucket, ">")? {
            if self.read_key(bucket, &key)?.is_some() {
                keys.push(key);
            }
        }
        keys.sort_unstable();
        Ok(keys)
    }

    pub(super) fn create_log(&self, config: &LogConfig) -> Result<(), BusError> {
        let stream = self.log(&config.name);
        let window = Some(config.duplicate_window);
        let (age, bytes) = (config.age_max, config.bytes_max);
        self.create_stream(&stream, &settings(&stream, &config.pattern, age, bytes, window, -1))
    }

    pub(super) fn append(
        &self,
        log: &str,
        subject: &str,
        message_id: &str,
        payload: &[u8],
    ) -> Result<Appended, BusError> {
        let mut headers = HeaderMap::new();
        headers.insert(MESSAGE_ID, message_id);
        // Without it, the server would store the message in whatever log takes the subject.
        let stream = self.log(log);
        headers.insert("Nats-Expected-Stream", stream.stream.as_str());
        match self.store(&stream, subject, Some(headers), payload) {
            Ok(acknowledgement) => Ok(Appended {
                sequence: acknowledgement.seq,
                is_duplicate: acknowledgement.duplicate,
            }),
            Err(NotStored::WrongRevision) => Err(BusError::server(subject, "wrong revision")),
            Err(NotStored::Other(error)) => Err(error),
        }
    }

    pub(super) fn read_log(
        &self,
        log: &str,
        pattern: &str,
        from: u64,
        max: usize,
    ) -> Result<Vec<LogEntry>, BusError> {
        let stream = self.log(log);
        let mut found: Vec<LogEntry> = Vec::new();
        let mut next = from;
        while found.len() < max {
            let Some(stored) = self.next(&stream, pattern, next)? else { break };
            next = stored.sequence.saturating_add(1);
            found.push(LogEntry {
                sequence: stored.sequence,
                subject: stored.subject,
                payload: stored.payload,
            });
        }
        Ok(found)
    }

    pub(super) fn create_objects(&self, config: &ObjectsConfig) -> Result<(), BusError> {
        let stream = self.objects(&config.name);
        let subjects = format!("{}.>", self.site().objects(&config.name));
        let (age, bytes) = (config.age_max, config.bytes_max);
        self.create_stream(&stream, &settings(&stream, &subjects, age, bytes, None, 1))
    }

    pub(super) fn put_object(&self, store: &str, name: &str, bytes: &[u8]) -> Result<(), BusError> {
        let stream = self.objects(store);
        let prefix = self.object_prefix(store, name);
        if bytes.len() > PARTS_MAX * PART {
            let reason = format!("{} bytes; at most {}", bytes.len(), PARTS_MAX * PART);
            return Err(BusError::invalid(format!("object {name}"), reason));
        }
        let put = |part: &str, payload: &[u8]| match self.store(
            &stream,
            &format!("{prefix}.{part}"),
            None,
            payload,
        ) {
            Ok(_) => Ok(()),
            Err(NotStored::Other(error)) => Err(error),
            Err(NotStored::WrongRevision) => Err(BusError::server(name, "wrong revision")),
        };
        for (number, part) in bytes.chunks(PART).enumerate() {
            if let Err(error) = put(&number.to_string(), part) {
                // Parts without a description would take room until they expire. If the bus is
                // away, they do.
                let _ = self.clear_parts(&prefix, number);
                return Err(error);
            }
        }
        let parts = bytes.len().div_ceil(PART);
        let meta = ObjectMeta { size: bytes.len(), parts, sha256: sha256(bytes) };
        let meta = serde_json::to_vec(&meta)
            .map_err(|error| BusError::server(format!("object {name}"), error.to_string()))?;
        put("meta", &meta)
    }

    pub(super) fn get_object(
        &self,
        store: &str,
        name: &str,
        bytes_max: usize,
    ) -> Result<Option<Bytes>, BusError> {
        let stream = self.objects(store);
        let prefix = self.object_prefix(store, name);
        let wrong = |reason: String| BusError::server(format!("object {name}"), reason);
        let Some(meta) = self.object_meta(store, name)? else { return Ok(None) };
        if meta.size > bytes_max {
            let reason = format!("{} bytes; at most {bytes_max}", meta.size);
            return Err(BusError::full(format!("object {name}"), reason));
        }
        if meta.parts != meta.size.div_ceil(PART) {
            return Err(wrong("its description has a wrong number of parts".into()));
        }
        let mut bytes = BytesMut::with_capacity(meta.size);
        for number in 0..meta.parts {
            let Some(part) = self.last(&stream, &format!("{prefix}.{number}"))? else {
                return Err(wrong(format!("part {number} of {} is missing", meta.parts)));
            };
            checked_size(name, part.payload.clone(), meta.size.saturating_sub(bytes.len()))?;
            bytes.extend_from_slice(&part.payload);
        }
        if sha256(&bytes) != meta.sha256 {
            return Err(wrong("its digest is wrong; was it replaced meanwhile?".into()));
        }
        Ok(Some(bytes.freeze()))
    }

    /// Replaces the messages of an object by empty ones. So nobody needs the right to delete.
    pub(super) fn remove_object(&self, store: &str, name: &str) -> Result<(), BusError> {
        let Some(meta) = self.object_meta(store, name)? else { return Ok(()) };
        let prefix = self.object_prefix(store, name);
        self.clear_parts(&prefix, meta.size.div_ceil(PART).min(PARTS_MAX))?;
        match self.store(&self.objects(store), &format!("{prefix}.meta"), None, b"") {
            Ok(_) => Ok(()),
            Err(NotStored::Other(error)) => Err(error),
            Err(NotStored::WrongRevision) => Err(BusError::server(name, "wrong revision")),
        }
    }

    /// Returns the prefix of the subjects of an object, without a dot at the end.
    fn object_prefix(&self, store: &str, name: &str) -> String {
        format!("{}.{name}", self.site().objects(store))
    }

    /// Reads the description of an object; `None` if there is none, or it was removed.
    fn object_meta(&self, store: &str, name: &str) -> Result<Option<ObjectMeta>, BusError> {
        let subject = format!("{}.meta", self.object_prefix(store, name));
        let meta = self.last(&self.objects(store), &subject)?;
        let Some(meta) = meta.filter(|meta| !meta.payload.is_empty()) else { return Ok(None) };
        serde_json::from_slice(&meta.payload).map(Some).map_err(|error| {
            let reason = format!("its description cannot be read: {error}");
            BusError::server(format!("object {name}"), reason)
        })
    }

    /// Replaces the first parts of an object by empty messages.
    fn clear_parts(&self, prefix: &str, parts: usize) -> Result<(), BusError> {
        let link = self.link(prefix)?;
        for number in 0..parts {
            link.send(&format!("{prefix}.{number}"), None, None, b"")?;
            if (number + 1) % UNCONFIRMED_MAX == 0 {
                link.sync(SERVER_TIMEOUT)?;
            }
        }
        link.sync(SERVER_TIMEOUT)
    }
}

/// Returns the settings of a stream, in the words of JetStream.
fn settings(
    stream: &Stream,
    subjects: &str,
    age: Option<Duration>,
    bytes_max: u64,
    window: Option<Duration>,
    per_subject: i64,
) -> Value {
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let window = window.unwrap_or(DUPLICATE_WINDOW_MAX);
    json!({
        "name": stream.stream,
        "subjects": [subjects],
        "retention": "limits",
        "storage": "file",
        "num_replicas": 1,
        "max_consumers": -1,
        "max_msgs": -1,
        "max_bytes": bytes_max,
        "max_age": age.map_or(0, nanoseconds),
        "max_msgs_per_subject": per_subject,
        "max_msg_size": -1,
        // A full store reports an error, and does not drop what it has.
        "discard": "new",
        // The server refuses a longer window than the age.
        "duplicate_window": nanoseconds(age.map_or(window, |age| window.min(age))),
        "allow_direct": true,
        "deny_delete": true,
        "deny_purge": true,
    })
}

fn as_exists(error: BusError, bucket: &str, key: &str) -> BusError {
    match error {
        BusError::Conflict { .. } => BusError::exists(bucket, key),
        other => other,
    }
}

fn sha256(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
