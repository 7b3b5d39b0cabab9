//! What a flow has of its own, where its program writes or looks at bytes of single flows.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wirestorm_model::program::{Composition, Number, Rule, TextVariable};

use super::Instruction;
use super::arrivals::Arrivals;
use super::check::{Check, part_of};
use super::composition::{Ends, Values, compose};
use super::contents::Contents;
use super::findings::{Cause, Wanted};
use super::rule::{Reader, Reading, Taken};
use super::run::Outside;
use super::variables::Variables;

/// What a flow has of its own.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    ends: Ends,
    /// The flow's number among those of its template.
    number: u64,
    texts: [Vec<u8>; TextVariable::COUNT],
    /// What has arrived and was not taken: of a connection.
    stream: Vec<u8>,
    arrivals: Arrivals,
    /// The same of a flow of datagrams, and their bytes in all.
    datagrams: VecDeque<Vec<u8>>,
    datagrams_length: usize,
    /// Whether the last step that waited for datagrams has taken them.
    takes_datagrams: bool,
    /// What is being taken of a connection, and whether all of it is there.
    reader: Option<Reader>,
    is_done: bool,
    /// What was taken last.
    taken: Taken,
    /// Whether what arrives is looked at by any step to come.
    listens: bool,
    /// Messages of HTTP/1 that are still to be taken, where that is known.
    messages_left: u64,
    /// Whether it did not go on for what came, or did not.
    has_failed: bool,
}

/// What an instruction asks for.
#[derive(Debug)]
pub(super) enum Demand {
    /// Nothing: it is done.
    Nothing,
    /// That these bytes are sent.
    Sends(Vec<u8>),
    /// That more arrives.
    Takes,
    /// To go on there.
    GoesOn(u16),
    /// An end: it has failed.
    Fails,
}

/// Between which ports a flow is that a program asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ports {
    pub(crate) server: u16,
    /// `None`: any of its template's.
    pub(crate) client: Option<u16>,
}

/// Bytes that wait to be taken, at most.
const WAITING_MAX: usize = 1 << 20;
/// Datagrams that do.
const DATAGRAMS_MAX: usize = 1_024;
/// Bytes of a text.
const TEXT_MAX: usize = 16 << 10;

impl Own {
    /// Of the flow with this number. `listens`: whether what arrives is kept; `messages`: how many
    /// of HTTP/1 it takes, where that is known.
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

    /// Whether it did not go on for what came, or did not.
    pub(crate) const fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Messages of HTTP/1 that do not come any more, as it fails.
    pub(crate) const fn take_missing(&mut self) -> u64 {
        core::mem::replace(&mut self.messages_left, 0)
    }

    /// Whether what was to be taken is there.
    pub(super) const fn has_taken(&self) -> bool {
        self.is_done
    }

    /// Whether what was taken last passes a check that compares it with nothing.
    pub(super) fn passes(&self, check: &Check) -> bool {
        check.holds(&self.taken, &[])
    }

    /// The program goes on over another connection, between these.
    pub(super) fn connect_anew(&mut self, ends: Ends) {
        self.ends = ends;
        self.stream.clear();
        self.arrivals.clear();
        self.reader = None;
    }

    /// A session begins: it is given what has come and was not taken, and of what was taken nothing
    /// is looked at any more.
    pub(super) fn begin_session(&mut self) -> Vec<u8> {
        self.taken.clear();
        self.arrivals.clear();
        core::mem::take(&mut self.stream)
    }

    /// Bytes that wait to be taken.
    pub(super) const fn waiting(&self) -> u64 {
        self.stream.len() as u64
    }

    /// When the last byte arrived of what was taken last, in microseconds.
    pub(super) const fn taken_at(&self) -> u64 {
        self.arrivals.taken()
    }

    /// Bytes of a connection have arrived.
    pub(crate) fn hear(&mut self, bytes: &[u8], micros: u64) {
        if self.listens {
            self.arrivals.add(bytes.len(), micros);
            self.stream.extend_from_slice(bytes);
        }
    }

    /// A datagram has arrived.
    pub(crate) fn hear_datagram(&mut self, bytes: &[u8]) {
        if self.listens {
            self.datagrams_length += bytes.len();
            self.datagrams.push_back(bytes.to_vec());
        }
    }

    /// No step to come looks at anything.
    pub(super) fn stop_listening(&mut self) {
        self.listens = false;
        self.stream = Vec::new();
        self.arrivals.clear();
        self.datagrams = VecDeque::new();
        self.datagrams_length = 0;
    }

    /// The program is over: what it remembered goes.
    pub(super) fn forget(&mut self) {
        self.stop_listening();
        self.texts = Default::default();
        self.taken.clear();
    }

    /// Goes on with taking what arrives, for the step at `place`. Returns whether that can go on.
    pub(super) fn go_on(
        &mut self,
        place: u16,
        contents: &Contents,
        rule: u16,
        outside: &mut Outside<'_>,
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
                if matches!(rule, Rule::Http | Rule::HttpHead) {
                    self.count_message(outside);
                }
                true
            }
            Reading::Wrong => {
                let cause = match rule {
                    Rule::Reply => Cause::NoReply,
                    Rule::Rtsp => Cause::NoRtsp,
                    _ => Cause::NoMessage,
                };
                self.fail(place, cause, Wanted::Nothing, outside);
                false
            }
        }
    }

    /// Whether no more waits than may.
    pub(super) fn has_room(&mut self, place: u16, outside: &mut Outside<'_>) -> bool {
        let is_full = self.stream.len() + self.datagrams_length > WAITING_MAX
            || self.datagrams.len() > DATAGRAMS_MAX;
        if is_full {
            self.fail(place, Cause::TooMuch, Wanted::Nothing, outside);
        }
        !is_full
    }

    /// The peer says no more, where something was to be taken. Returns whether all is there;
    /// `is_awaited`: whether it has to be.
    pub(super) fn end_taking(
        &mut self,
        place: u16,
        is_awaited: bool,
        outside: &mut Outside<'_>,
    ) -> bool {
        let reader = self.reader.take();
        // Messages of HTTP/1 alone do.
        if reader.as_ref().is_some_and(Reader::ends_with_peer) {
            self.is_done = true;
            self.count_message(outside);
            return true;
        }
        // A peer that closes between messages has said all.
        if is_awaited || self.taken.length > 0 {
            let cause = match reader {
                Some(Reader::Until(_)) if self.taken.length > 0 => Cause::NoEnd,
                _ => Cause::Closed,
            };
            self.fail(place, cause, Wanted::Nothing, outside);
        }
        false
    }

    /// Takes so many datagrams; the last of them is what is looked at.
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

    /// A step has waited for datagrams that stay.
    pub(super) fn keep_datagrams(&mut self) {
        self.takes_datagrams = false;
    }

    /// What came beside the last datagrams that were taken. There is nothing where the program left
    /// those that it waited for: they are no beginning of anything.
    pub(super) fn take_rest(&mut self) -> VecDeque<Vec<u8>> {
        match self.takes_datagrams {
            true => core::mem::take(&mut self.datagrams),
            false => VecDeque::new(),
        }
    }

    /// What it waited for failed: what has come and was not taken may say why.
    pub(super) fn fail_waiting(&mut self, place: u16, cause: Cause, outside: &mut Outside<'_>) {
        if !self.stream.is_empty() {
            self.taken.clear();
            self.taken.add(&self.stream);
        }
        self.fail(place, cause, Wanted::Nothing, outside);
    }

    /// The port that a value says.
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

    /// A message of HTTP/1 was taken.
    fn count_message(&mut self, outside: &mut Outside<'_>) {
        self.messages_left = self.messages_left.saturating_sub(1);
        outside.findings.count_message(&self.taken);
    }

    /// It fails; of several causes the first one is told.
    fn fail(&mut self, place: u16, cause: Cause, wanted: Wanted<'_>, outside: &mut Outside<'_>) {
        if core::mem::replace(&mut self.has_failed, true) {
            return;
        }
        outside.findings.count_missing(self.take_missing());
        outside.findings.note(place, cause, &self.taken, wanted);
    }

    fn compose(
        &self,
        composition: &Composition,
        most: usize,
        variables: &Variables,
        outside: &mut Outside<'_>,
    ) -> Option<Vec<u8>> {
        compose(composition, &self.values(variables), outside.random, most)
    }

    fn values<'a>(&'a self, variables: &'a Variables) -> Values<'a> {
        Values { flow: self.number, ends: &self.ends, numbers: variables.all(), texts: &self.texts }
    }

    /// Does an instruction at a place; `None` of those that are not about bytes of single flows.
    pub(super) fn follow(
        &mut self,
        instruction: Instruction,
        place: u16,
        contents: &Contents,
        variables: &mut Variables,
        outside: &mut Outside<'_>,
    ) -> Option<Demand> {
        // What instructions refer to is there: a program is made with what has it.
        match instruction {
            Instruction::SendOwn { composition } | Instruction::SendOwnDatagram { composition } => {
                let composition = contents.compositions.get(usize::from(composition))?;
                let most = Composition::LENGTH_MAX;
                if let Some(bytes) = self.compose(composition, most, variables, outside) {
                    return Some(Demand::Sends(bytes));
                }
                self.fail(place, Cause::TooLong, Wanted::Nothing, outside);
                Some(Demand::Fails)
            }
            Instruction::Take { rule, .. } => {
                let own_rule = contents.rules.get(usize::from(rule))?;
                self.taken.clear();
                self.is_done = false;
                self.reader = Some(Reader::new(own_rule));
                match self.go_on(place, contents, rule, outside) {
                    true => Some(Demand::Takes),
                    false => Some(Demand::Fails),
                }
            }
            Instruction::Expect { check }
            | Instruction::ExpectOr { check, .. }
            | Instruction::JumpIfTaken { check, .. } => {
                let check = contents.checks.get(usize::from(check))?;
                let composition = check.composition().map(usize::from);
                let composed = match composition.and_then(|it| contents.compositions.get(it)) {
                    None => Some(Vec::new()),
                    Some(it) => self.compose(it, Composition::LENGTH_MAX, variables, outside),
                };
                let Some(composed) = composed else {
                    self.fail(place, Cause::TooLong, Wanted::Nothing, outside);
                    return Some(Demand::Fails);
                };
                let holds = check.holds(&self.taken, &composed);
                if let Instruction::JumpIfTaken { to, .. } = instruction {
                    return Some(if holds { Demand::GoesOn(to) } else { Demand::Nothing });
                }
                if holds {
                    return Some(Demand::Nothing);
                }
                let (cause, wanted) = check.failure(&self.taken, &composed);
                self.fail(place, cause, wanted, outside);
                Some(match instruction {
                    Instruction::ExpectOr { to, .. } => Demand::GoesOn(to),
                    _ => Demand::Fails,
                })
            }
            Instruction::Extract { extraction } => {
                let extraction = contents.extractions.get(usize::from(extraction))?;
                let cause = match part_of(&extraction.part, &self.taken.bytes) {
                    Some(found) if found.len() <= TEXT_MAX => {
                        self.texts[extraction.text.place()] = found.to_vec();
                        return Some(Demand::Nothing);
                    }
                    Some(_) => Cause::TooLong,
                    None => Cause::NotFound,
                };
                self.fail(place, cause, Wanted::Nothing, outside);
                Some(Demand::Fails)
            }
            Instruction::SetText { text, composition } => {
                let composition = contents.compositions.get(usize::from(composition))?;
                let Some(bytes) = self.compose(composition, TEXT_MAX, variables, outside) else {
                    self.fail(place, Cause::TooLong, Wanted::Nothing, outside);
                    return Some(Demand::Fails);
                };
                self.texts[text.place()] = bytes;
                Some(Demand::Nothing)
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
                Some(Demand::Nothing)
            }
            _ => None,
        }
    }
}
