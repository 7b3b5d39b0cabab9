//! Per-flow state of a program that composes payload or examines received data.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wirestorm_model::program::{Composition, MessageFraming, Number, TextVariable};

use super::Instruction;
use super::arrivals::Arrivals;
use super::check::{Check, part_of};
use super::composition::{Ends, Values, compose};
use super::contents::Contents;
use super::findings::{Cause, ExpectedBytes};
use super::reading::{Reading, Taken};

use super::context::ProgramContext;
use super::rule::Reader;
use super::variables::Variables;

/// Per-flow state of a program that composes payload or examines received data.
#[derive(Clone, Debug)]
pub(crate) struct FlowPayload {
    ends: Ends,
    /// Number of the flow within its template.
    number: u64,
    texts: [Vec<u8>; TextVariable::COUNT],
    /// Received bytes of a connection that no step has consumed.
    stream: Vec<u8>,
    arrivals: Arrivals,
    /// Received datagrams that no step has consumed, and their total length in bytes.
    datagrams: VecDeque<Vec<u8>>,
    datagrams_length: usize,
    /// Whether the last step that waited for datagrams consumed them.
    takes_datagrams: bool,
    /// Reader of the current step, and whether its data is complete.
    reader: Option<Reader>,
    is_done: bool,
    /// Last consumed data.
    taken: Taken,
    /// Whether a later step examines received data.
    listens: bool,
    /// HTTP/1 messages that the flow still has to receive, if known.
    messages_left: u64,
    /// Whether a step failed.
    has_failed: bool,
}

/// Result of an instruction.
#[derive(Debug)]
pub(super) enum StepResult {
    /// The instruction is done.
    Nothing,
    /// Send these bytes.
    Sends(Vec<u8>),
    /// Wait for more data.
    Takes,
    /// Jump to this instruction.
    Jumps(u16),
    /// The flow has failed; end the program.
    Fails,
}

/// Ports of a flow that a program starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ports {
    pub(crate) server: u16,
    /// `None`: any client port of its template.
    pub(crate) client: Option<u16>,
}

/// Maximum number of unconsumed bytes.
const WAITING_MAX: usize = 1 << 20;
/// Maximum number of unconsumed datagrams.
const DATAGRAMS_MAX: usize = 1_024;
/// Maximum length of a text in bytes.
const TEXT_MAX: usize = 16 << 10;

impl FlowPayload {
    /// Creates the state of the flow `number`. `listens`: whether to keep received data.
    /// `messages`: HTTP/1 messages that the flow receives, if known.
    pub(crate) fn new(ends: Ends, number: u64, listens: bool, messages: u64) -> Self {
        Self {
            ends,
            number,
            texts: Default::default(),
            stream: Vec::new(),
            arrivals: Arrivals::default(),
            datagrams: VecDeque::new(),
            datagrams_length: 0,
            takes_datagrams: false,
            reader: None,
            is_done: false,
            taken: Taken::default(),
            listens,
            messages_left: messages,
            has_failed: false,
        }
    }

    /// Whether a step failed.
    pub(crate) const fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Returns the HTTP/1 messages that the flow has not received, and resets their number.
    pub(crate) const fn take_missing(&mut self) -> u64 {
        core::mem::replace(&mut self.messages_left, 0)
    }

    /// Whether the data of the current step is complete.
    pub(super) const fn is_read_complete(&self) -> bool {
        self.is_done
    }

    /// Whether the last consumed data passes a check without a composition.
    pub(super) fn passes(&self, check: &Check) -> bool {
        check.holds(&self.taken, &[])
    }

    /// Continues over another connection, between `ends`.
    pub(super) fn reset_for_connection(&mut self, ends: Ends) {
        self.ends = ends;
        self.stream.clear();
        self.arrivals.clear();
        self.reader = None;
    }

    /// Starts a session: returns the unconsumed bytes for it, and drops the consumed data.
    pub(super) fn begin_session(&mut self) -> Vec<u8> {
        self.taken.clear();
        self.arrivals.clear();
        core::mem::take(&mut self.stream)
    }

    /// Returns the number of unconsumed bytes.
    pub(super) const fn waiting(&self) -> u64 {
        self.stream.len() as u64
    }

    /// Returns the arrival time of the last consumed byte, in microseconds.
    pub(super) const fn taken_at(&self) -> u64 {
        self.arrivals.taken()
    }

    /// Takes received bytes of a connection.
    pub(crate) fn receive(&mut self, bytes: &[u8], micros: u64) {
        if self.listens {
            self.arrivals.add(bytes.len(), micros);
            self.stream.extend_from_slice(bytes);
        }
    }

    /// Takes a received datagram.
    pub(crate) fn receive_datagram(&mut self, bytes: &[u8]) {
        if self.listens {
            self.datagrams_length += bytes.len();
            self.datagrams.push_back(bytes.to_vec());
        }
    }

    /// Drops received data: no later step examines any.
    pub(super) fn stop_listening(&mut self) {
        self.listens = false;
        self.stream = Vec::new();
        self.arrivals.clear();
        self.datagrams = VecDeque::new();
        self.datagrams_length = 0;
    }

    /// Frees all data: the program is over.
    pub(super) fn forget(&mut self) {
        self.stop_listening();
        self.texts = Default::default();
        self.taken.clear();
    }

    /// Consumes received data for the step at `place`. Returns false if the flow failed.
    pub(super) fn go_on(
        &mut self,
        place: u16,
        contents: &Contents,
        rule: u16,
        outside: &mut ProgramContext<'_>,
    ) -> bool {
        let Some(rule) = contents.rules.get(usize::from(rule)) else { return true };
        let Some(reader) = &mut self.reader else { return self.has_room(place, outside) };
        let (length, reading) = reader.read(rule, &self.stream, &mut self.taken);
        self.stream.drain(..length);
        self.arrivals.take(length);
        match reading {
            Reading::Unfinished => true,
            Reading::Done => {
                self.reader = None;
                self.is_done = true;
                if matches!(rule, MessageFraming::Http | MessageFraming::HttpHead) {
                    self.count_message(outside);
                }
                true
            }
            Reading::Wrong => {
                let cause = match rule {
                    MessageFraming::Reply => Cause::NoReply,
                    MessageFraming::Rtsp => Cause::NoRtsp,
                    _ => Cause::NoMessage,
                };
                self.fail(place, cause, ExpectedBytes::Nothing, outside);
                false
            }
        }
    }

    /// Whether the unconsumed data is within its limits; fails the flow if not.
    pub(super) fn has_room(&mut self, place: u16, outside: &mut ProgramContext<'_>) -> bool {
        let is_full = self.stream.len() + self.datagrams_length > WAITING_MAX
            || self.datagrams.len() > DATAGRAMS_MAX;
        if is_full {
            self.fail(place, Cause::BufferFull, ExpectedBytes::Nothing, outside);
        }
        !is_full
    }

    /// Ends a step that consumes data, since the peer has closed. Returns whether the data is
    /// complete. `is_awaited`: whether an absence of data is a failure.
    pub(super) fn end_of_stream(
        &mut self,
        place: u16,
        is_awaited: bool,
        outside: &mut ProgramContext<'_>,
    ) -> bool {
        let reader = self.reader.take();
        // Only HTTP/1 messages may end with the connection.
        if reader.as_ref().is_some_and(Reader::ends_with_peer) {
            self.is_done = true;
            self.count_message(outside);
            return true;
        }
        // A close between messages is no failure.
        if is_awaited || self.taken.length > 0 {
            let cause = match reader {
                Some(Reader::Until(_)) if self.taken.length > 0 => Cause::NoDelimiter,
                _ => Cause::Closed,
            };
            self.fail(place, cause, ExpectedBytes::Nothing, outside);
        }
        false
    }

    /// Consumes `count` datagrams; checks apply to the last one.
    pub(super) fn take_datagrams(&mut self, count: u64) {
        self.takes_datagrams = true;
        self.taken.clear();
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(self.datagrams.len());
        for datagram in self.datagrams.drain(..count) {
            self.datagrams_length -= datagram.len();
            self.taken.clear();
            self.taken.add(&datagram);
        }
    }

    /// Records that a step waited for datagrams without consuming them.
    pub(super) fn keep_datagrams(&mut self) {
        self.takes_datagrams = false;
    }

    /// Returns the datagrams after the last consumed one. Empty if the last step left its datagrams
    /// unconsumed: they start no other flow.
    pub(super) fn take_rest(&mut self) -> VecDeque<Vec<u8>> {
        match self.takes_datagrams {
            true => core::mem::take(&mut self.datagrams),
            false => VecDeque::new(),
        }
    }

    /// Fails a step that waited. The unconsumed data may show the reason.
    pub(super) fn fail_waiting(
        &mut self,
        place: u16,
        cause: Cause,
        outside: &mut ProgramContext<'_>,
    ) {
        if !self.stream.is_empty() {
            self.taken.clear();
            self.taken.add(&self.stream);
        }
        self.fail(place, cause, ExpectedBytes::Nothing, outside);
    }

    /// Returns the ports in two values, or `None` if one is not valid.
    pub(super) fn ports(
        &self,
        server: u16,
        client: Option<u16>,
        contents: &Contents,
        variables: &Variables,
    ) -> Option<Ports> {
        let values = self.values(variables);
        let port = |place: u16| values.port(*contents.ports.get(usize::from(place))?);
        let client = match client {
            None => None,
            Some(place) => Some(port(place)?),
        };
        Some(Ports { server: port(server)?, client })
    }

    /// Counts a complete HTTP/1 message.
    fn count_message(&mut self, outside: &mut ProgramContext<'_>) {
        self.messages_left = self.messages_left.saturating_sub(1);
        outside.findings.count_message(&self.taken);
    }

    /// Fails the flow; only the first reason is reported.
    fn fail(
        &mut self,
        place: u16,
        cause: Cause,
        expected: ExpectedBytes<'_>,
        outside: &mut ProgramContext<'_>,
    ) {
        if core::mem::replace(&mut self.has_failed, true) {
            return;
        }
        outside.findings.count_missing(self.take_missing());
        outside.findings.note(place, cause, &self.taken, expected);
    }

    fn compose(
        &self,
        composition: &Composition,
        most: usize,
        variables: &Variables,
        outside: &mut ProgramContext<'_>,
    ) -> Option<Vec<u8>> {
        compose(composition, &self.values(variables), outside.random, most)
    }

    fn values<'a>(&'a self, variables: &'a Variables) -> Values<'a> {
        Values { flow: self.number, ends: &self.ends, numbers: variables.all(), texts: &self.texts }
    }

    /// Executes an instruction at `place`. Returns `None` if it is not a payload instruction.
    pub(super) fn follow(
        &mut self,
        instruction: Instruction,
        place: u16,
        contents: &Contents,
        variables: &mut Variables,
        outside: &mut ProgramContext<'_>,
    ) -> Option<StepResult> {
        // `Program::with_contents` has checked that the entries exist.
        match instruction {
            Instruction::SendComposed { composition }
            | Instruction::SendComposedDatagram { composition } => {
                let composition = contents.compositions.get(usize::from(composition))?;
                let most = Composition::LENGTH_MAX;
                if let Some(bytes) = self.compose(composition, most, variables, outside) {
                    return Some(StepResult::Sends(bytes));
                }
                self.fail(place, Cause::TooLong, ExpectedBytes::Nothing, outside);
                Some(StepResult::Fails)
            }
            Instruction::Take { rule, .. } => {
                let framing = contents.rules.get(usize::from(rule))?;
                self.taken.clear();
                self.is_done = false;
                self.reader = Some(Reader::new(framing));
                match self.go_on(place, contents, rule, outside) {
                    true => Some(StepResult::Takes),
                    false => Some(StepResult::Fails),
                }
            }
            Instruction::Expect { check }
            | Instruction::ExpectOr { check, .. }
            | Instruction::JumpIfMatches { check, .. } => {
                let check = contents.checks.get(usize::from(check))?;
                let composition = check.composition().map(usize::from);
                let composed = match composition.and_then(|it| contents.compositions.get(it)) {
                    None => Some(Vec::new()),
                    Some(it) => self.compose(it, Composition::LENGTH_MAX, variables, outside),
                };
                let Some(composed) = composed else {
                    self.fail(place, Cause::TooLong, ExpectedBytes::Nothing, outside);
                    return Some(StepResult::Fails);
                };
                let holds = check.holds(&self.taken, &composed);
                if let Instruction::JumpIfMatches { to, .. } = instruction {
                    return Some(if holds { StepResult::Jumps(to) } else { StepResult::Nothing });
                }
                if holds {
                    return Some(StepResult::Nothing);
                }
                let (cause, expected) = check.failure(&self.taken, &composed);
                self.fail(place, cause, expected, outside);
                Some(match instruction {
                    Instruction::ExpectOr { to, .. } => StepResult::Jumps(to),
                    _ => StepResult::Fails,
                })
            }
            Instruction::Extract { extraction } => {
                let extraction = contents.extractions.get(usize::from(extraction))?;
                let cause = match part_of(&extraction.part, &self.taken.bytes) {
                    Some(found) if found.len() <= TEXT_MAX => {
                        self.texts[extraction.text.place()] = found.to_vec();
                        return Some(StepResult::Nothing);
                    }
                    Some(_) => Cause::TooLong,
                    None => Cause::NotFound,
                };
                self.fail(place, cause, ExpectedBytes::Nothing, outside);
                Some(StepResult::Fails)
            }
            Instruction::SetText { text, composition } => {
                let composition = contents.compositions.get(usize::from(composition))?;
                let Some(bytes) = self.compose(composition, TEXT_MAX, variables, outside) else {
                    self.fail(place, Cause::TooLong, ExpectedBytes::Nothing, outside);
                    return Some(StepResult::Fails);
                };
                self.texts[text.place()] = bytes;
                Some(StepResult::Nothing)
            }
            Instruction::SetNumber { variable, number } => {
                let value = match *contents.numbers.get(usize::from(number))? {
                    Number::Counter { start, step, max } => {
                        let times = outside.findings.next_of(number);
                        let last = max.saturating_sub(start) / step.max(1);
                        let within = last.checked_add(1).map_or(times, |count| times % count);
                        start.wrapping_add(step.wrapping_mul(within))
                    }
                    Number::Random { min, max } => outside.random.between(min, max),
                };
                *variables.get_mut(variable) = value;
                Some(StepResult::Nothing)
            }
            _ => None,
        }
    }
}
