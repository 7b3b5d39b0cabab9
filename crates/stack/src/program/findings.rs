//! Results of the programs of a template's flows.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use wirestorm_base::histogram::Histogram;
use wirestorm_base::time::Duration;
use wirestorm_model::program::TransactionId;

use super::dns;
use super::reading::Taken;
use crate::content::MessageCounters;
use crate::http1::{self, StartLine};

/// Reason for which a program failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The data differs from what was expected.
    Differs,
    /// The part to extract is missing.
    NotFound,
    /// The peer closed before all data arrived.
    Closed,
    /// The peer closed before the delimiter arrived.
    NoDelimiter,
    /// The data is not an HTTP/1 message.
    NoMessage,
    /// The data is not a reply of FTP or SMTP.
    NoReply,
    /// The data is not an RTSP response.
    NoRtsp,
    /// The DNS answer has this response code.
    DnsError(u8),
    /// The peer closes the connection after a response, before the last request.
    LastResponse,
    /// More data is waiting than the buffer keeps.
    BufferFull,
    /// The payload to send, or the text to keep, is too long.
    TooLong,
    /// The value is not a valid port, or no port is free.
    NoPort,
    /// A child flow failed or could not start.
    ChildFlow,
    /// The peer closed the connection between two requests.
    ClosedBetween,
    /// The peer closed the connection between two requests, and reconnecting failed.
    NotReconnected,
}

impl Cause {
    /// Returns the text of the reason for reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Differs => "not what was expected",
            Self::NotFound => "not found",
            Self::Closed => "closed before all data arrived",
            Self::NoDelimiter => "closed before the delimiter arrived",
            Self::NoMessage => "not an HTTP/1 message",
            Self::NoReply => "not an FTP or SMTP reply",
            Self::NoRtsp => "not an RTSP response",
            Self::DnsError(code) => dns::name(code),
            Self::LastResponse => "the server closes the connection before the last request",
            Self::BufferFull => "receive buffer full",
            Self::TooLong => "too long",
            Self::NoPort => "no valid or free port",
            Self::ChildFlow => "a child flow failed",
            Self::ClosedBetween => "the server closed the connection between two requests",
            Self::NotReconnected => {
                "the server closed the connection between two requests, and reconnecting failed"
            }
        }
    }
}

/// Failures at one instruction for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// Number of flows that failed.
    pub times: u64,
    /// Offset of the first difference in the first failure, if the data was compared as a whole.
    pub offset: Option<u64>,
    /// Expected data, from shortly before the difference on, at most [`Self::SHOWN_MAX`] bytes.
    pub expected: Option<Vec<u8>>,
    /// Received data at the same position.
    pub found: Vec<u8>,
    /// Whether received data was kept. If false, `found` means nothing.
    pub is_kept: bool,
}

/// Expected data, for the report.
#[derive(Clone, Copy, Debug)]
pub(super) enum ExpectedBytes<'a> {
    /// Unknown, and no received data is kept either.
    Unseen,
    /// Nothing to show.
    Nothing,
    /// Exactly these bytes.
    Whole(&'a [u8]),
    /// These bytes somewhere in the data.
    Part(&'a [u8]),
}

impl Failure {
    /// Maximum length of the shown data in bytes.
    pub const SHOWN_MAX: usize = 200;

    fn new(taken: &Taken, expected_bytes: ExpectedBytes<'_>) -> Self {
        /// Bytes shown before the first difference.
        const BEFORE: usize = 40;
        let (offset, expected) = match expected_bytes {
            ExpectedBytes::Unseen | ExpectedBytes::Nothing => (None, None),
            ExpectedBytes::Part(bytes) => (None, Some(bytes)),
            ExpectedBytes::Whole(bytes) => {
                let same = bytes.iter().zip(&taken.bytes).take_while(|(a, b)| a == b).count();
                (Some(same), Some(bytes))
            }
        };
        let start = offset.unwrap_or(0).saturating_sub(BEFORE);
        let shown = |bytes: &[u8]| {
            let rest = bytes.get(start..).unwrap_or_default();
            rest[..rest.len().min(Self::SHOWN_MAX)].to_vec()
        };
        Self {
            times: 0,
            offset: offset.map(|offset| offset as u64),
            expected: expected.map(shown),
            found: shown(&taken.bytes),
            is_kept: !matches!(expected_bytes, ExpectedBytes::Unseen),
        }
    }
}

/// Times of the transactions of one name.
#[derive(Clone, Debug)]
pub struct TransactionTimes {
    /// Started transactions. Those that did not end are not in `times`.
    pub begun: u64,
    /// Time from start to end, in steps of 1 us.
    pub times: Histogram,
    /// Minimum.
    pub min: Duration,
    /// Sum of all times.
    pub sum: Duration,
}

impl Default for TransactionTimes {
    fn default() -> Self {
        Self {
            begun: 0,
            times: Histogram::new(),
            min: Duration::from_nanos(u64::MAX),
            sum: Duration::ZERO,
        }
    }
}

/// Results of the programs of a template's flows.
#[derive(Clone, Debug, Default)]
pub struct ProgramResults {
    transactions: Vec<TransactionTimes>,
    failures: BTreeMap<(u16, Cause), Failure>,
    messages: MessageCounters,
    /// Uses of each number generator, by index.
    numbers: Vec<u64>,
    /// Number of flows with per-flow payload.
    flows: u64,
}

impl ProgramResults {
    /// Returns the times of a transaction, or `None` if none has started.
    pub fn transaction(&self, transaction: TransactionId) -> Option<&TransactionTimes> {
        self.transactions.get(transaction.place()).filter(|it| it.begun > 0)
    }

    /// Returns the failures: index of the instruction, reason and count.
    pub fn failures(&self) -> impl Iterator<Item = (u16, Cause, &Failure)> {
        self.failures.iter().map(|((place, cause), failure)| (*place, *cause, failure))
    }

    /// Returns the counters of complete HTTP/1 messages: requests that servers received, responses
    /// that clients received.
    pub const fn messages(&self) -> &MessageCounters {
        &self.messages
    }

    /// Counts a complete HTTP/1 message.
    pub(super) fn count_message(&mut self, taken: &Taken) {
        match http1::lines(&taken.bytes).next().and_then(http1::start_line) {
            Some(StartLine::Request { .. }) => self.messages.requests += 1,
            Some(StartLine::Response { status }) => self.messages.count_response(status),
            // The reader accepts only messages that start with one of these.
            None => {}
        }
    }

    /// Counts HTTP/1 messages that a failed flow does not receive.
    pub(crate) const fn count_missing(&mut self, messages: u64) {
        self.messages.missing += messages;
    }

    pub(super) fn begin(&mut self, transaction: TransactionId) {
        self.of(transaction).begun += 1;
    }

    pub(super) fn end(&mut self, transaction: TransactionId, took: Duration) {
        let times = self.of(transaction);
        times.times.record(took);
        times.min = times.min.min(took);
        times.sum = Duration::from_nanos(times.sum.as_nanos().saturating_add(took.as_nanos()));
    }

    fn of(&mut self, transaction: TransactionId) -> &mut TransactionTimes {
        let place = transaction.place();
        if self.transactions.len() <= place {
            self.transactions.resize_with(place + 1, TransactionTimes::default);
        }
        &mut self.transactions[place]
    }

    #[cold]
    pub(super) fn note(
        &mut self,
        place: u16,
        cause: Cause,
        taken: &Taken,
        expected: ExpectedBytes<'_>,
    ) {
        let first = || Failure::new(taken, expected);
        self.failures.entry((place, cause)).or_insert_with(first).times += 1;
    }

    /// Returns how often a number generator was used before, and counts this use.
    pub(super) fn next_of(&mut self, number: u16) -> u64 {
        let place = usize::from(number);
        if self.numbers.len() <= place {
            self.numbers.resize(place + 1, 0);
        }
        let before = self.numbers[place];
        self.numbers[place] += 1;
        before
    }

    /// Returns the number of a new flow, from 1.
    pub(crate) const fn next_flow(&mut self) -> u64 {
        self.flows += 1;
        self.flows
    }
}
