//! How far a flow is in its program.

mod exchanging;
mod executions;
mod sending;

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::compute::delay;
use super::findings::{Cause, Findings, Wanted};
use super::own::{Own, Ports};
use super::rule::Taken;
use super::variables::Variables;
use super::{BufferId, Buffers, Instruction, Program, Statistics};
use crate::content::{Exchange, Saying, SessionCounters};
use crate::random::Random;
use crate::tcp::connection::{Connection, Now};
use crate::tcp::counters::TcpCounters;
use crate::tcp::sequence::SequenceNumber;
pub(crate) use executions::Wish;
use sending::Sending;

/// What a flow waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// Nothing: it has not begun, or goes on at once.
    Nothing,
    /// That the connection is established.
    Establishment,
    /// That all is acknowledged that was sent.
    Acknowledgement,
    /// The same of what was said to what is between the program and its connection.
    Hearing,
    /// That all has left once.
    Departure,
    /// That so many bytes have arrived.
    Data,
    /// That what is to be taken has arrived.
    Taking,
    /// That a time is over.
    Delay,
    /// The same, between two steps: it has done many.
    Pause,
    /// That a flow that it asked for is over.
    Template,
    /// That it is told at which port it listens.
    Port,
    /// So much data that it fails without.
    Needed,
    /// That the connection comes for which it listens.
    Arrival,
    /// That its session begins.
    Session,
    /// That it goes on over another connection.
    Reconnection,
    /// That its session is open.
    Handshake,
    /// Nothing: what it waited for failed.
    Failed,
    /// That the peer closes.
    PeerClose,
    /// Nothing any more.
    Over,
}

/// What a program did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It waits.
    Waits,
    /// It waits until a time, in ms.
    WaitsUntil(u32),
    /// It has done many steps and would go on; [`Run::pause`] says when.
    Pauses,
    /// It waits for what it wishes for.
    Wishes(Wish),
}

/// What few programs need.
#[derive(Debug, Default)]
struct Extra {
    /// What was sent before the last buffer and is not all acknowledged, where programs do not wait
    /// for that.
    before: Vec<Sending>,
    variables: Variables,
    /// What packets have in place of the template's.
    traffic_class: Option<u8>,
    /// Between which ports the next flow is.
    ports: Option<Ports>,
    /// Whether the program failed of a flow that has nothing of its own.
    has_failed: bool,
    /// What is between the program and its connection, where anything is.
    exchange: Option<Box<Exchange>>,
    /// What the flow has of its own; then there is an exchange as well.
    own: Option<Box<Own>>,
}

impl Extra {
    /// Whether none would do as well.
    fn is_unused(&self) -> bool {
        let Self { before, variables, traffic_class, ports, has_failed, exchange, own } = self;
        let is_empty = before.is_empty() && *variables == Variables::default();
        let says_nothing = traffic_class.is_none() && ports.is_none() && !has_failed;
        is_empty && says_nothing && exchange.is_none() && own.is_none()
    }
}

/// What programs have in common.
pub(crate) struct Outside<'a> {
    pub(crate) buffers: &'a Buffers,
    pub(crate) random: &'a mut Random,
    pub(crate) statistics: &'a mut Statistics,
    pub(crate) findings: &'a mut Findings,
    pub(crate) counters: &'a mut TcpCounters,
    pub(crate) sessions: &'a mut SessionCounters,
    pub(crate) now: Now,
}

/// The state of a program in one flow.
#[derive(Debug)]
pub(crate) struct Run {
    /// Bytes that have arrived.
    received: u64,
    /// What is being sent, and the number of its first byte.
    sending: Sending,
    extra: Option<Box<Extra>>,
    until: u32,
    place: u16,
    wait: Wait,
    waits_for_acknowledgements: bool,
}

/// A program that never waits would keep all others from running: after so many steps it pauses.
pub(super) const STEPS_MAX: u32 = 1_000;

impl Run {
    pub(crate) fn new(nothing: BufferId) -> Self {
        Self {
            received: 0,
            sending: (nothing, SequenceNumber(0)),
            extra: None,
            until: 0,
            place: 0,
            wait: Wait::Nothing,
            waits_for_acknowledgements: true,
        }
    }

    #[inline]
    pub(crate) fn note_received(&mut self, bytes: u32) {
        self.received += u64::from(bytes);
    }

    /// The traffic class of its packets, where its program has said that.
    #[inline]
    pub(crate) fn traffic_class(&self) -> Option<u8> {
        self.extra.as_ref()?.traffic_class
    }

    /// Begins another program; what has arrived counts for it.
    #[cold]
    pub(crate) const fn begin_anew(&mut self) {
        self.place = 0;
        self.wait = Wait::Nothing;
    }

    /// Whether its program is, or does not begin yet.
    #[cold]
    pub(crate) fn is_over(&self) -> bool {
        self.wait == Wait::Over
    }

    /// Waits for [`Self::begin_anew`].
    #[cold]
    pub(crate) const fn hold(&mut self) {
        self.wait = Wait::Over;
    }

    /// What was waited for failed, or nothing more comes; returns whether the program goes on
    /// all the same.
    #[cold]
    fn bears(&mut self, program: &Program, outside: &mut Outside<'_>) -> bool {
        let cause = match (self.wait, program.instruction(self.place)) {
            (Wait::Failed, Some(Instruction::ExecTemplate)) => return true,
            (Wait::Failed, Some(Instruction::Listen { .. })) => Cause::NoPort,
            (Wait::Failed, Some(Instruction::Reconnect { .. })) => Cause::NotReconnected,
            (Wait::Failed, _) => Cause::OtherFlow,
            _ => Cause::Closed,
        };
        self.fail(cause, outside);
        false
    }

    #[cold]
    fn fail(&mut self, cause: Cause, outside: &mut Outside<'_>) {
        let place = self.place;
        if let Some(own) = self.own_mut() {
            return own.fail_waiting(place, cause, outside);
        }
        self.extra.get_or_insert_default().has_failed = true;
        outside.findings.note(place, cause, &Taken::default(), Wanted::Unseen);
    }

    /// Whether it goes on at once, because what it waited for has left.
    #[inline]
    pub(crate) fn goes_on(&self, connection: &Connection) -> bool {
        match self.exchange() {
            None => self.wait == Wait::Departure && connection.unsent() == 0,
            Some(exchange) if exchange.has_unsaid() => exchange.is_due(connection),
            Some(_) => self.wait == Wait::Departure && connection.unsent() == 0,
        }
    }

    // A call, of which there are several for each segment, costs as much as all that it looks at.
    #[inline(always)]
    fn is_waiting(&self, program: &Program, connection: &Connection, now: Now) -> bool {
        match self.wait {
            Wait::Nothing => false,
            Wait::Establishment => !connection.is_established(),
            Wait::Acknowledgement => connection.backlog() > 0,
            Wait::Hearing => self.exchange().is_some_and(|it| it.is_unheard(connection)),
            Wait::Departure => connection.unsent() > 0 || self.has_unsaid(),
            Wait::Data => match program.instruction(self.place) {
                Some(Instruction::Receive { bytes, .. }) => {
                    self.received < bytes && !self.is_peer_done(connection)
                }
                _ => false,
            },
            Wait::Needed => self.lacks(program) && !self.is_peer_done(connection),
            Wait::Taking => {
                !self.own().is_some_and(Own::has_taken) && !self.is_peer_done(connection)
            }
            Wait::Delay | Wait::Pause => now.millis.wrapping_sub(self.until).cast_signed() < 0,
            Wait::PeerClose | Wait::Arrival => !self.is_peer_done(connection),
            Wait::Template | Wait::Port | Wait::Session | Wait::Reconnection | Wait::Over => true,
            Wait::Handshake => self.exchange().is_some_and(Exchange::is_handshaking),
            Wait::Failed => false,
        }
    }

    /// Goes on as far as possible.
    #[inline]
    pub(crate) fn advance(
        &mut self,
        program: &Program,
        connection: &mut Connection,
        outside: &mut Outside<'_>,
    ) -> Progress {
        if self.exchange().is_some()
            && !(self.is_begun(connection, outside) && self.attend(program, connection, outside))
        {
            return Progress::Waits;
        }
        let mut progress = self.follow(program, connection, outside);
        if self.extra.is_some() {
            if self.exchange().is_some() {
                self.move_bytes(connection, outside);
                if self.wait == Wait::Departure {
                    progress = self.say_more(progress, program, connection, outside);
                }
            }
            self.forget_what_arrived(connection);
        }
        progress
    }

    /// Follows the program as far as possible.
    #[inline]
    fn follow(
        &mut self,
        program: &Program,
        connection: &mut Connection,
        outside: &mut Outside<'_>,
    ) -> Progress {
        let now = outside.now;
        if self.is_waiting(program, connection, now) {
            return self.progress();
        }
        for _ in 0..STEPS_MAX {
            if self.wait != Wait::Nothing {
                // What was waited for is there, or never comes.
                if self.wait == Wait::Data
                    && let Some(Instruction::Receive { clear, bytes }) =
                        program.instruction(self.place)
                {
                    if self.received < bytes {
                        return self.end(connection, outside);
                    }
                    if clear {
                        self.received = 0;
                    }
                } else if !self.can_go_on(program, outside) {
                    return self.end(connection, outside);
                }
                self.place += u16::from(self.wait != Wait::Pause);
                self.wait = Wait::Nothing;
            }
            let Some(instruction) = program.instruction(self.place) else {
                return self.end(connection, outside);
            };
            self.begin(instruction, program, connection, outside);
            if self.is_waiting(program, connection, now) {
                return match self.wait {
                    Wait::Template
                    | Wait::Port
                    | Wait::Arrival
                    | Wait::Session
                    | Wait::Reconnection => self.wish(program),
                    _ => self.progress(),
                };
            }
        }
        Progress::Pauses
    }

    /// Goes on at a time, in ms, where it has done many steps.
    #[cold]
    pub(crate) const fn pause(&mut self, until: u32) -> Progress {
        (self.wait, self.until) = (Wait::Pause, until);
        Progress::WaitsUntil(until)
    }

    /// Whether what was waited for lets the program go on, now that it is there or never comes.
    #[inline]
    fn can_go_on(&mut self, program: &Program, outside: &mut Outside<'_>) -> bool {
        match self.wait {
            Wait::Needed if self.lacks(program) => self.bears(program, outside),
            Wait::Needed => {
                self.received = 0;
                true
            }
            Wait::Failed | Wait::Arrival => self.bears(program, outside),
            Wait::Taking => self.has_all(program, outside),
            _ => true,
        }
    }

    /// Whether not all has come that a program cannot do without.
    #[cold]
    fn lacks(&self, program: &Program) -> bool {
        match program.instruction(self.place) {
            Some(Instruction::Need { bytes }) => self.received < bytes,
            _ => false,
        }
    }

    #[inline]
    fn end(&mut self, connection: &mut Connection, outside: &mut Outside<'_>) -> Progress {
        if let Some(own) = self.own_mut() {
            own.forget();
        }
        self.close(connection, outside.counters);
        Progress::Waits
    }

    /// Sends nothing more, and FIN.
    #[inline]
    pub(crate) fn close(&mut self, connection: &mut Connection, counters: &mut TcpCounters) {
        if let Some(exchange) = self.exchange_mut() {
            exchange.close(connection, counters);
        }
        connection.close();
        self.wait = Wait::Over;
    }

    fn progress(&self) -> Progress {
        match self.wait {
            Wait::Delay | Wait::Pause => Progress::WaitsUntil(self.until),
            _ => Progress::Waits,
        }
    }

    fn begin(
        &mut self,
        instruction: Instruction,
        program: &Program,
        connection: &mut Connection,
        outside: &mut Outside<'_>,
    ) {
        let Outside { buffers, random, now, counters, .. } = outside;
        match instruction {
            Instruction::Connect => self.wait = Wait::Establishment,
            Instruction::Send { buffer } => {
                match self.exchange_mut() {
                    Some(exchange) => {
                        exchange.say(Saying::Buffer(buffer));
                        self.wait = self.wait_of_saying();
                    }
                    None => {
                        self.send(buffer, connection, buffers);
                        connection.queue(buffers.get(buffer).size(), counters);
                        // Nothing is waited for behind it, so that FIN can be in its last segment.
                        if !self.waits_for_acknowledgements
                            && program.instruction(self.place + 1).is_none()
                        {
                            connection.close();
                        }
                        self.wait = self.wait_of_sending();
                    }
                }
            }
            Instruction::SendBlocking { waits } => {
                self.waits_for_acknowledgements = waits;
                self.place += 1;
            }
            Instruction::SetTrafficClass { class } => {
                self.extra.get_or_insert_default().traffic_class = Some(class);
                self.place += 1;
            }
            Instruction::Receive { .. } => self.wait = Wait::Data,
            Instruction::Need { .. } => self.wait = Wait::Needed,
            Instruction::ExecTemplate | Instruction::AwaitTemplate => self.wait = Wait::Template,
            Instruction::StartTemplate { port, own_port } => {
                self.wait = Wait::Template;
                if !self.finds_ports(port, own_port, program) {
                    self.fail(Cause::NoPort, outside);
                    self.end(connection, outside);
                }
            }
            Instruction::Listen { .. } => self.wait = Wait::Port,
            Instruction::AcceptTemplate => self.wait = Wait::Arrival,
            Instruction::StartSession => self.wait = Wait::Session,
            Instruction::Reconnect { unless } => {
                match self.is_peer_done(connection) || self.says_close(unless, program) {
                    true => self.wait = Wait::Reconnection,
                    false => self.place += 1,
                }
            }
            Instruction::NeedOpen => match self.is_peer_done(connection) {
                true => {
                    self.fail(Cause::ClosedBetween, outside);
                    self.end(connection, outside);
                }
                false => self.place += 1,
            },
            Instruction::WaitForPeerClose => {
                self.wait = Wait::PeerClose;
                if let Some(own) = self.own_mut() {
                    own.stop_listening();
                }
            }
            Instruction::Reset => {
                connection.abort(counters);
                self.wait = Wait::Over;
            }
            Instruction::Jump { to } => self.place = to,
            instruction => match delay(instruction, random) {
                Some(micros) => {
                    let since = match (instruction, self.own()) {
                        (Instruction::DelaySinceTaken { .. }, Some(own)) => own.taken_at(),
                        _ => now.micros,
                    };
                    self.until = now.millis_after(since, micros);
                    self.wait = Wait::Delay;
                }
                None => self.compute(instruction, program, connection, outside),
            },
        }
    }
}
