//! Requests to JetStream, the storage of a NATS server.
//!
//! They need no consumers: a consumer sends to any subject, so the right to create one would get
//! around all other permissions. Values are read by subject or by sequence number (direct get).

use std::time::Duration;

use async_nats::HeaderMap;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::link::Reply;
use super::shared::Shared;
use super::{NO_RESPONDERS, SERVER_TIMEOUT};
use crate::BusError;

/// Prefix of the subjects of JetStream's API.
const API: &str = "$JS.API";
/// Header with the revision that a key must have.
pub(super) const EXPECTED: &str = "Nats-Expected-Last-Subject-Sequence";
/// Header with the ID of a message, by which the server recognises a repeated one.
pub(super) const MESSAGE_ID: &str = "Nats-Msg-Id";
/// Header with the operation of a message in a bucket.
pub(super) const OPERATION: &str = "KV-Operation";

/// Error code: the key has another revision than expected.
const WRONG_SEQUENCE: u32 = 10071;
/// Error code: there is a stream of this name with other settings.
const STREAM_EXISTS: u32 = 10058;
/// Error code: there is no stream of this name.
const NO_STREAM: u32 = 10059;
/// Time for an answer of a stream, after which its existence is checked.
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);
/// Status of a direct get: there is no such message.
const NO_MESSAGE: u16 = 404;

/// A store on the server: what it is for messages, and its stream.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) stream: String,
}

/// A stored message.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) sequence: u64,
    pub(super) subject: String,
    pub(super) payload: Bytes,
    /// Whether it marks a deleted key.
    pub(super) is_deletion: bool,
}

/// Why a message was not stored.
#[derive(Debug)]
pub(super) enum NotStored {
    /// The key has another revision than expected.
    WrongRevision,
    Other(BusError),
}

/// An acknowledgement of the server.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Acknowledgement {
    pub(super) seq: u64,
    #[serde(default)]
    pub(super) duplicate: bool,
}

#[derive(Debug, Deserialize)]
struct ApiError {
    #[serde(default)]
    err_code: u32,
    #[serde(default)]
    description: String,
}

impl Stream {
    fn missing(&self) -> BusError {
        BusError::Missing { kind: self.kind, name: self.name.clone() }
    }

    fn what(&self) -> String {
        format!("{} {}", self.kind, self.name)
    }
}

impl Shared {
    /// Creates a stream, or changes its settings.
    pub(super) fn create_stream(&self, stream: &Stream, config: &Value) -> Result<(), BusError> {
        let what = stream.what();
        let request = |operation: &str| {
            let subject = format!("{API}.STREAM.{operation}.{}", stream.stream);
            self.api(&what, &subject, config)
        };
        match request("CREATE")? {
            Err(error) if error.err_code == STREAM_EXISTS => match request("UPDATE")? {
                Ok(_) => Ok(()),
                Err(error) => Err(BusError::server(what, error.description)),
            },
            Ok(_) => Ok(()),
            Err(error) => Err(BusError::server(what, error.description)),
        }
    }

    /// Lists the subjects of a stream that fit a pattern.
    pub(super) fn subjects(&self, of: &Stream, pattern: &str) -> Result<Vec<String>, BusError> {
        let subject = format!("{API}.STREAM.INFO.{}", of.stream);
        let mut found = Vec::new();
        loop {
            let body = json!({ "subjects_filter": pattern, "offset": found.len() });
            let answer = match self.api(&of.what(), &subject, &body)? {
                Ok(answer) => answer,
                Err(error) if error.err_code == NO_STREAM => return Err(of.missing()),
                Err(error) => return Err(BusError::server(of.what(), error.description)),
            };
            let page = answer.pointer("/state/subjects").and_then(Value::as_object);
            let page = page.map(|page| page.keys().cloned().collect()).unwrap_or_default();
            let page: Vec<String> = page;
            let total = answer.get("total").and_then(Value::as_u64).unwrap_or_default();
            let is_last = page.is_empty();
            found.extend(page);
            if is_last || u64::try_from(found.len()).is_ok_and(|length| length >= total) {
                return Ok(found);
            }
        }
    }

    /// Stores a message.
    pub(super) fn store(
        &self,
        to: &Stream,
        subject: &str,
        headers: Option<HeaderMap>,
        payload: &[u8],
    ) -> Result<Acknowledgement, NotStored> {
        let stored = || {
            let link = self.link(subject)?;
            let reply = link.call(subject, headers, payload, SERVER_TIMEOUT)?;
            match reply.status {
                Some(NO_RESPONDERS) => Err(to.missing()),
                _ => parsed(&to.what(), &reply.payload),
            }
        };
        let wrong = |error: BusError| NotStored::Other(error);
        match stored().map_err(wrong)? {
            Ok(answer) => serde_json::from_value(answer)
                .map_err(|error| wrong(BusError::server(to.what(), error.to_string()))),
            Err(error) if error.err_code == WRONG_SEQUENCE => Err(NotStored::WrongRevision),
            // "maximum bytes exceeded", "insufficient storage resources available", ...
            Err(error)
                if error.description.contains("exceeded")
                    || error.description.contains("insufficient") =>
            {
                Err(wrong(BusError::full(to.what(), error.description)))
            }
            Err(error) => Err(wrong(BusError::server(to.what(), error.description))),
        }
    }

    /// Reads the last message of a subject.
    pub(super) fn last(&self, of: &Stream, subject: &str) -> Result<Option<Stored>, BusError> {
        let request = format!("{API}.DIRECT.GET.{}.{subject}", of.stream);
        self.stored(of, &request, b"")
    }

    /// Reads the first message from a sequence number on whose subject fits a pattern.
    pub(super) fn next(
        &self,
        of: &Stream,
        pattern: &str,
        from: u64,
    ) -> Result<Option<Stored>, BusError> {
        let request = format!("{API}.DIRECT.GET.{}", of.stream);
        let body = json!({ "seq": from.max(1), "next_by_subj": pattern });
        self.stored(of, &request, body.to_string().as_bytes())
    }

    fn stored(&self, of: &Stream, request: &str, body: &[u8]) -> Result<Option<Stored>, BusError> {
        let read = |timeout| self.link(request)?.call(request, None, body, timeout);
        let reply = match read(FIRST_TIMEOUT) {
            // A server answers no reading of a stream that does not exist.
            Err(BusError::Timeout { .. }) => match self.exists(of)? {
                true => read(SERVER_TIMEOUT)?,
                false => return Err(of.missing()),
            },
            other => other?,
        };
        match reply.status {
            None => stored(of, reply).map(Some),
            Some(NO_MESSAGE) => Ok(None),
            Some(NO_RESPONDERS) => Err(of.missing()),
            Some(status) => Err(BusError::server(of.what(), format!("status {status}"))),
        }
    }

    /// Returns whether a stream exists; true if the server has too many to tell.
    fn exists(&self, stream: &Stream) -> Result<bool, BusError> {
        let subject = format!("{API}.STREAM.NAMES");
        let answer = match self.api(&stream.what(), &subject, &json!({}))? {
            Ok(answer) => answer,
            Err(error) => return Err(BusError::server(stream.what(), error.description)),
        };
        let number = |key| answer.get(key).and_then(Value::as_u64);
        let names = answer.get("streams").and_then(Value::as_array);
        let is_listed = names.is_some_and(|names| names.iter().any(|it| *it == *stream.stream));
        Ok(is_listed || number("total") > number("limit"))
    }

    /// Sends a request to the API. The inner error is one that the server told.
    fn api(
        &self,
        what: &str,
        subject: &str,
        body: &Value,
    ) -> Result<Result<Value, ApiError>, BusError> {
        let link = self.link(subject)?;
        let reply = link.call(subject, None, body.to_string().as_bytes(), SERVER_TIMEOUT)?;
        if reply.status == Some(NO_RESPONDERS) {
            let reason = "the server has no JetStream; start it with jetstream enabled";
            return Err(BusError::server(what, reason));
        }
        parsed(what, &reply.payload)
    }
}

fn parsed(what: &str, payload: &[u8]) -> Result<Result<Value, ApiError>, BusError> {
    let unusable = |error: serde_json::Error| {
        BusError::server(what, format!("the answer of the server cannot be read: {error}"))
    };
    let mut answer: Value = serde_json::from_slice(payload).map_err(unusable)?;
    match answer.get_mut("error").map(Value::take) {
        None => Ok(Ok(answer)),
        Some(error) => serde_json::from_value(error).map(Err).map_err(unusable),
    }
}

fn stored(of: &Stream, reply: Reply) -> Result<Stored, BusError> {
    let header = |name: &str| reply.headers.get(name).map(|value| value.as_str().to_owned());
    let sequence = header("Nats-Sequence").and_then(|text| text.parse().ok());
    let (Some(sequence), Some(subject)) = (sequence, header("Nats-Subject")) else {
        return Err(BusError::server(of.what(), "a stored message has no sequence number"));
    };
    let is_deletion = header(OPERATION).is_some();
    Ok(Stored { sequence, subject, payload: reply.payload, is_deletion })
}
