//! Reports on TLS, HTTP/1.1 and HTTP/2 sessions.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{HistogramReport, Label};

/// TLS counters.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TlsReport {
    /// Full handshakes.
    pub full_handshakes: u64,
    /// Resumed handshakes.
    pub resumed_handshakes: u64,
    /// Connections closed by the peer without close_notify.
    pub truncated: u64,
    /// Failed TLS connections by cause.
    pub failures: BTreeMap<Label, u64>,
    /// Handshake duration.
    pub handshake: HistogramReport,
}

/// HTTP/1.1 messages that programs parsed, with or without TLS.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Http1Report {
    /// Requests received by servers.
    pub requests: u64,
    /// Final responses received by clients, by status class (`2xx`).
    pub responses: BTreeMap<Label, u64>,
    /// Responses not received completely because the connection failed.
    pub missing: u64,
}

/// HTTP/2 counters.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Http2Report {
    /// Requests sent by clients or received by servers.
    pub requests: u64,
    /// Responses sent by servers or received by clients, by status class (`2xx`).
    pub responses: BTreeMap<Label, u64>,
    /// Streams reset.
    pub resets: u64,
    /// Failed HTTP/2 connections by cause.
    pub failures: BTreeMap<Label, u64>,
}

impl TlsReport {
    pub(crate) fn add(&mut self, other: &Self) {
        let Self {
            full_handshakes: full,
            resumed_handshakes: resumed,
            truncated,
            failures,
            handshake,
        } = other;
        self.full_handshakes += full;
        self.resumed_handshakes += resumed;
        self.truncated += truncated;
        add_counts(&mut self.failures, failures);
        self.handshake.add(handshake);
    }
}

impl Http1Report {
    pub(crate) fn add(&mut self, other: &Self) {
        let Self { requests, responses, missing } = other;
        self.requests += requests;
        add_counts(&mut self.responses, responses);
        self.missing += missing;
    }
}

impl Http2Report {
    pub(crate) fn add(&mut self, other: &Self) {
        let Self { requests, responses, resets, failures } = other;
        self.requests += requests;
        add_counts(&mut self.responses, responses);
        self.resets += resets;
        add_counts(&mut self.failures, failures);
    }
}

/// Adds `counted` to `sums`, name by name.
pub(super) fn add_counts(sums: &mut BTreeMap<Label, u64>, counted: &BTreeMap<Label, u64>) {
    for (name, count) in counted {
        *sums.entry(name.clone()).or_default() += count;
    }
}
