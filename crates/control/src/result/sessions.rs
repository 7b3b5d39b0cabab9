//! TLS, HTTP/1.1 and HTTP/2 on connections.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{HistogramReport, Label};

/// TLS of a port.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TlsReport {
    /// Full handshakes.
    pub full: u64,
    /// Handshakes that resumed an earlier session.
    pub resumed: u64,
    /// Connections that peers ended without close_notify.
    pub truncated: u64,
    /// Connections on which TLS failed, by cause.
    pub failures: BTreeMap<Label, u64>,
    /// From when TCP was established, or a program began TLS, until the handshake was over.
    pub handshake: HistogramReport,
}

/// Messages of HTTP/1.1, within TLS or not, that programs have received as such.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Http1Report {
    /// Requests that servers got.
    pub requests: u64,
    /// Final responses that clients got, by the class of their status: `2xx`.
    pub responses: BTreeMap<Label, u64>,
    /// Responses that clients were to get, and did not get whole, as their connections failed.
    pub missing: u64,
}

/// What became of HTTP/2.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Http2Report {
    /// Requests that clients sent, or servers got.
    pub requests: u64,
    /// Responses that servers sent, or clients got, by the class of their status: `2xx`.
    pub responses: BTreeMap<Label, u64>,
    /// Streams that were reset.
    pub resets: u64,
    /// Connections on which HTTP/2 failed, by cause.
    pub failures: BTreeMap<Label, u64>,
}

impl TlsReport {
    pub(crate) fn add(&mut self, other: &Self) {
        let Self { full, resumed, truncated, failures, handshake } = other;
        self.full += full;
        self.resumed += resumed;
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

/// Adds counts of the same names.
pub(super) fn add_counts(sums: &mut BTreeMap<Label, u64>, counted: &BTreeMap<Label, u64>) {
    for (name, count) in counted {
        *sums.entry(name.clone()).or_default() += count;
    }
}
