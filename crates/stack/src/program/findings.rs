//! What the programs of a template's flows have found, together.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use wirestorm_base::histogram::Histogram;
use wirestorm_base::time::Duration;
use wirestorm_model::program::Transaction;

use super::dns;
use super::rule::Taken;
use crate::content::MessageCounters;
use crate::http1::{self, StartLine};

/// Why a flow did not go on with its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Something else came than was expected.
    Differs,
    /// What was to be extracted was not there.
    NotFound,
    /// The peer closed before all had come.
    Closed,
    /// The peer closed before what ends that which was to be taken.
    NoEnd,
    /// What came is no message of the kind that was to be taken.
    NoMessage,
    /// What came is no reply of FTP or SMTP.
    NoReply,
    /// What came is no response of RTSP.
    NoRtsp,
    /// The answer of DNS has this response code.
    DnsError(u8),
    /// The peer ends the connection behind a response, and more was to be asked.
    LastResponse,
    /// More came than waits to be taken.
    TooMuch,
    /// What was to be sent, or to be kept, is too long.
    TooLong,
    /// What was to be the number of a port is none, or no port was free.
    NoPort,
    /// A flow that belongs to it failed, or could not be made.
    OtherFlow,
    /// The peer closed between two requests.
    ClosedBetween,
    /// The peer closed between two requests, and no other connection could be made.
    NotReconnected,
}

impl Cause {
    /// It in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Differs => "not what was expected",
            Self::NotFound => "not found",
            Self::Closed => "closed before all had come",
            Self::NoEnd => "closed, and the text that ends it had not come",
            Self::NoMessage => "no message of HTTP/1",
            Self::NoReply => "no reply of FTP or SMTP",
            Self::NoRtsp => "no response of RTSP",
            Self::DnsError(code) => dns::name(code),
            Self::LastResponse => "the server ends the connection before all is asked",
            Self::TooMuch => "more came than is kept",
            Self::TooLong => "too long",
            Self::NoPort => "no port",
            Self::OtherFlow => "a flow that belongs to it failed",
            Self::ClosedBetween => "the server closed the connection between two requests",
            Self::NotReconnected => {
                "the server closed the connection between two requests, and no other could be made"
            }
        }
    }
}

/// How often flows did not go on at one place, for one cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// Flows.
    pub times: u64,
    /// Of the first one: where what came differs from what was expected, if it was to be the same.
    pub offset: Option<u64>,
    /// What was expected, from a little before there on, at most [`Self::SHOWN_MAX`] bytes.
    pub expected: Option<Vec<u8>>,
    /// What came there.
    pub found: Vec<u8>,
    /// Whether that was kept; else nothing is known of it.
    pub is_seen: bool,
}

/// What was expected.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted<'a> {
    /// Nothing that could be shown, and nor could what came: the flow keeps no bytes.
    Unseen,
    /// Nothing that could be shown.
    Nothing,
    /// These bytes.
    Whole(&'a [u8]),
    /// These bytes somewhere.
    Part(&'a [u8]),
}

impl Failure {
    /// Bytes of the first one that are kept.
    pub const SHOWN_MAX: usize = 200;

    fn new(taken: &Taken, wanted: Wanted<'_>) -> Self {
        /// What is shown before the first difference.
        const BEFORE: usize = 40;
        let (offset, expected) = match wanted {
            Wanted::Unseen | Wanted::Nothing => (None, None),
            Wanted::Part(bytes) => (None, Some(bytes)),
            Wanted::Whole(bytes) => {
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
            is_seen: !matches!(wanted, Wanted::Unseen),
        }
    }
}

/// How long transactions of one name took.
#[derive(Clone, Debug)]
pub struct TransactionTimes {
    /// Those that began; what did not end is not in `times`.
    pub begun: u64,
    /// From begin to end, in steps of 1 us.
    pub times: Histogram,
    /// The shortest.
    pub min: Duration,
    /// All of them.
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

/// What the programs of a template's flows have found, together.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    transactions: Vec<TransactionTimes>,
    failures: BTreeMap<(u16, Cause), Failure>,
    messages: MessageCounters,
    /// How often each of the program's numbers was asked for.
    numbers: Vec<u64>,
    /// Flows with bytes of their own.
    flows: u64,
}

impl Findings {
    /// The transactions of a name; `None` where none has begun.
    pub fn transaction(&self, transaction: Transaction) -> Option<&TransactionTimes> {
        self.transactions.get(transaction.place()).filter(|it| it.begun > 0)
    }

    /// Where in the program flows did not go on, why, and how often.
    pub fn failures(&self) -> impl Iterator<Item = (u16, Cause, &Failure)> {
        self.failures.iter().map(|((place, cause), failure)| (*place, *cause, failure))
    }

    /// Messages of HTTP/1 that flows have taken as a whole: requests that servers got, responses
    /// that clients got.
    pub const fn messages(&self) -> &MessageCounters {
        &self.messages
    }

    /// A message of HTTP/1 was taken.
    pub(super) fn count_message(&mut self, taken: &Taken) {
        match http1::lines(&taken.bytes).next().and_then(http1::start_line) {
            Some(StartLine::Request { .. }) => self.messages.requests += 1,
            Some(StartLine::Response { status }) => self.messages.count_response(status),
            // It was taken, so that it begins with either.
            None => {}
        }
    }

    /// So many messages of HTTP/1 that a flow was to take are not going to come.
    pub(crate) const fn count_missing(&mut self, messages: u64) {
        self.messages.missing += messages;
    }

    pub(super) fn begin(&mut self, transaction: Transaction) {
        self.of(transaction).begun += 1;
    }

    pub(super) fn end(&mut self, transaction: Transaction, took: Duration) {
        let times = self.of(transaction);
        times.times.record(took);
        times.min = times.min.min(took);
        times.sum = Duration::from_nanos(times.sum.as_nanos().saturating_add(took.as_nanos()));
    }

    fn of(&mut self, transaction: Transaction) -> &mut TransactionTimes {
        let place = transaction.place();
        if self.transactions.len() <= place {
            self.transactions.resize_with(place + 1, TransactionTimes::default);
        }
        &mut self.transactions[place]
    }

    #[cold]
    pub(super) fn note(&mut self, place: u16, cause: Cause, taken: &Taken, wanted: Wanted<'_>) {
        let first = || Failure::new(taken, wanted);
        self.failures.entry((place, cause)).or_insert_with(first).times += 1;
    }

    /// How often a number of the program was asked for before.
    pub(super) fn next_of(&mut self, number: u16) -> u64 {
        let place = usize::from(number);
        if self.numbers.len() <= place {
            self.numbers.resize(place + 1, 0);
        }
        let before = self.numbers[place];
        self.numbers[place] += 1;
        before
    }

    /// The number of a new flow, from 1.
    pub(crate) const fn next_flow(&mut self) -> u64 {
        self.flows += 1;
        self.flows
    }
}
