//! Progress of a TCP flow in its program.

mod exchanging;
mod executions;
mod sending;

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::compute::delay;
use super::context::{ProgramContext, STEPS_MAX};
use super::findings::{Cause, ExpectedBytes};
use super::payload::{FlowPayload, Ports};
use super::reading::Taken;
use super::variables::Variables;
use super::{BufferId, Instruction, Program};
use crate::content::{Exchange, SendData};
use crate::tcp::connection::Connection;
use crate::tcp::counters::TcpCounters;
use crate::tcp::now::Now;
use crate::tcp::sequence::SequenceNumber;
pub(crate) use executions::FlowRequest;
use sending::Sending;

/// Event that a flow waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// Nothing: the program has not started, or continues at once.
    Nothing,
    /// The connection is established.
    Establishment,
    /// The peer has acknowledged all sent data.
    Acknowledgement,
    /// The peer has acknowledged all data that the exchange took.
    ExchangeAcknowledgement,
    /// All data has been sent once.
    Departure,
    /// This many bytes have arrived.
    Data,
    /// The data of a rule has arrived.
    Taking,
    /// A delay is over.
    Delay,
    /// The pause after many steps is over.
    Pause,
    /// A flow that the program started is over or has started.
    Template,
    /// The port to listen at is known.
    Port,
    /// Bytes without which the program fails have arrived.
    Needed,
    /// The connection that the program listens for has arrived.
    Arrival,
    /// The session starts.
    Session,
    /// The program continues over a new connection.
    Reconnection,
    /// The session is open.
    Handshake,
    /// Nothing: the awaited event failed.
    Failed,
    /// The peer closes.
    PeerClose,
    /// Nothing: the program is over.
    Over,
}

/// Result of an execution of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Waits for an event.
    Waits,
    /// Waits for an event, at most until a time in ms.
    WaitsUntil(u32),
    /// Yields after many steps; [`Run::pause`] sets when to continue.
    Pauses,
    /// Waits for a request to the endpoint.
    Requests(FlowRequest),
}

/// State that few programs need.
#[derive(Debug, Default)]
struct Extra {
    /// Buffers sent before the last one that are not acknowledged completely, if programs do not
    /// wait for acknowledgements.
    before: Vec<Sending>,
    variables: Variables,
    /// Traffic class that replaces that of the template.
    traffic_class: Option<u8>,
    /// Ports of the next flow.
    ports: Option<Ports>,
    /// Whether the program failed; for flows without `payload`.
    has_failed: bool,
    /// Exchange between the program and its connection, if any.
    exchange: Option<Box<Exchange>>,
    /// Per-flow payload state. If present, `exchange` is present as well.
    payload: Option<Box<FlowPayload>>,
}

impl Extra {
    /// Whether all of it has the default value.
    fn is_unused(&self) -> bool {
        let Self { before, variables, traffic_class, ports, has_failed, exchange, payload } = self;
        let is_empty = before.is_empty() && *variables == Variables::default();
        let has_no_state = traffic_class.is_none() && ports.is_none() && !has_failed;
        is_empty && has_no_state && exchange.is_none() && payload.is_none()
    }
}

/// State of a program in one TCP flow.
#[derive(Debug)]
pub(crate) struct Run {
    /// Received bytes since the last step that cleared the count.
    received: u64,
    /// Buffer of the last send, and the sequence number of its first byte.
    sending: Sending,
    extra: Option<Box<Extra>>,
    until: u32,
    place: u16,
    wait: Wait,
    waits_for_acknowledgements: bool,
}

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

    /// Traffic class that the program has set, if any.
    #[inline]
    pub(crate) fn traffic_class(&self) -> Option<u8> {
        self.extra.as_ref()?.traffic_class
    }

    /// Starts another program; data received so far counts for it.
    #[cold]
    pub(crate) const fn restart_program(&mut self) {
        self.place = 0;
        self.wait = Wait::Nothing;
    }

    /// Whether the program is over, or has not started yet.
    #[cold]
    pub(crate) fn is_over(&self) -> bool {
        self.wait == Wait::Over
    }

    /// Holds the program until [`Self::restart_program`].
    #[cold]
    pub(crate) const fn hold(&mut self) {
        self.wait = Wait::Over;
    }

    /// Handles the failure of an awaited event, or its absence after the peer closed. Returns
    /// whether the program continues.
    #[cold]
    fn survives_failure(&mut self, program: &Program, outside: &mut ProgramContext<'_>) -> bool {
        let cause = match (self.wait, program.instruction(self.place)) {
            (Wait::Failed, Some(Instruction::ExecTemplate)) => return true,
            (Wait::Failed, Some(Instruction::Listen { .. })) => Cause::NoPort,
            (Wait::Failed, Some(Instruction::Reconnect { .. })) => Cause::NotReconnected,
            (Wait::Failed, _) => Cause::ChildFlow,
            _ => Cause::Closed,
        };
        self.fail(cause, outside);
        false
    }

    #[cold]
    fn fail(&mut self, cause: Cause, outside: &mut ProgramContext<'_>) {
        let place = self.place;
        if let Some(payload) = self.payload_mut() {
            return payload.fail_waiting(place, cause, outside);
        }
        self.extra.get_or_insert_default().has_failed = true;
        outside.findings.note(place, cause, &Taken::default(), ExpectedBytes::Unseen);
    }

    /// Whether the program continues at once because its data has left.
    #[inline]
    pub(crate) fn goes_on(&self, connection: &Connection) -> bool {
        match self.exchange() {
            None => self.wait == Wait::Departure && connection.unsent() == 0,
            Some(exchange) if exchange.has_pending_send() => exchange.is_due(connection),
            Some(_) => self.wait == Wait::Departure && connection.unsent() == 0,
        }
    }

    // Inlined: a call costs as much as the whole check, and several run for each segment.
    #[inline(always)]
    fn is_waiting(&self, program: &Program, connection: &Connection, now: Now) -> bool {
        match self.wait {
            Wait::Nothing => false,
            Wait::Establishment => !connection.is_established(),
            Wait::Acknowledgement => connection.backlog() > 0,
            Wait::ExchangeAcknowledgement => {
                self.exchange().is_some_and(|it| it.is_unacknowledged(connection))
            }
            Wait::Departure => connection.unsent() > 0 || self.has_pending_send(),
            Wait::Data => match program.instruction(self.place) {
                Some(Instruction::Receive { bytes, .. }) => {
                    self.received < bytes && !self.is_peer_done(connection)
                }
                _ => false,
            },
            Wait::Needed => self.lacks(program) && !self.is_peer_done(connection),
            Wait::Taking => {
                !self.payload().is_some_and(FlowPayload::is_read_complete)
                    && !self.is_peer_done(connection)
            }
            Wait::Delay | Wait::Pause => now.millis.wrapping_sub(self.until).cast_signed() < 0,
            Wait::PeerClose | Wait::Arrival => !self.is_peer_done(connection),
            Wait::Template | Wait::Port | Wait::Session | Wait::Reconnection | Wait::Over => true,
            Wait::Handshake => self.exchange().is_some_and(Exchange::is_handshaking),
            Wait::Failed => false,
        }
    }

    /// Executes the program until it waits, and moves bytes through the session.
    #[inline]
    pub(crate) fn advance(
        &mut self,
        program: &Program,
        connection: &mut Connection,
        outside: &mut ProgramContext<'_>,
    ) -> Progress {
        if self.exchange().is_some()
            && !(self.is_begun(connection, outside)
                && self.consume_received(program, connection, outside))
        {
            return Progress::Waits;
        }
        let mut progress = self.follow(program, connection, outside);
        if self.extra.is_some() {
            if self.exchange().is_some() {
                self.move_bytes(connection, outside);
                if self.wait == Wait::Departure {
                    progress = self.coalesce_sends(progress, program, connection, outside);
                }
            }
            self.free_acknowledged(connection);
        }
        progress
    }

    /// Executes the program until it waits.
    #[inline]
    fn follow(
        &mut self,
        program: &Program,
        connection: &mut Connection,
        outside: &mut ProgramContext<'_>,
    ) -> Progress {
        let now = outside.now;
        if self.is_waiting(program, connection, now) {
            return self.progress();
        }
        for _ in 0..STEPS_MAX {
            if self.wait != Wait::Nothing {
                // The awaited event has happened, or never will.
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
                    | Wait::Reconnection => self.request_progress(program),
                    _ => self.progress(),
                };
            }
        }
        Progress::Pauses
    }

    /// Schedules the continuation after many steps, at a time in ms.
    #[cold]
    pub(crate) const fn pause(&mut self, until: u32) -> Progress {
        (self.wait, self.until) = (Wait::Pause, until);
        Progress::WaitsUntil(until)
    }

    /// Whether the program continues after the awaited event, or after the peer closed without it.
    #[inline]
    fn can_go_on(&mut self, program: &Program, outside: &mut ProgramContext<'_>) -> bool {
        match self.wait {
            Wait::Needed if self.lacks(program) => self.survives_failure(program, outside),
            Wait::Needed => {
                self.received = 0;
                true
            }
            Wait::Failed | Wait::Arrival => self.survives_failure(program, outside),
            Wait::Taking => self.has_all(program, outside),
            _ => true,
        }
    }

    /// Whether bytes that the program needs are missing.
    #[cold]
    fn lacks(&self, program: &Program) -> bool {
        match program.instruction(self.place) {
            Some(Instruction::Need { bytes }) => self.received < bytes,
            _ => false,
        }
    }

    #[inline]
    fn end(&mut self, connection: &mut Connection, outside: &mut ProgramContext<'_>) -> Progress {
        if let Some(payload) = self.payload_mut() {
            payload.forget();
        }
        self.close(connection, outside.counters);
        Progress::Waits
    }

    /// Closes the session and the connection: sends FIN after the queued data.
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
        outside: &mut ProgramContext<'_>,
    ) {
        let ProgramContext { buffers, random, now, counters, .. } = outside;
        match instruction {
            Instruction::Connect => self.wait = Wait::Establishment,
            Instruction::Send { buffer } => {
                match self.exchange_mut() {
                    Some(exchange) => {
                        exchange.send(SendData::Buffer(buffer));
                        self.wait = self.wait_after_exchange_send();
                    }
                    None => {
                        self.send(buffer, connection, buffers);
                        connection.queue(buffers.get(buffer).size(), counters);
                        // Close now, so that the last data segment carries FIN: nothing after it
                        // waits.
                        if !self.waits_for_acknowledgements
                            && program.instruction(self.place + 1).is_none()
                        {
                            connection.close();
                        }
                        self.wait = self.wait_after_send();
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
            Instruction::StartTemplate { port, local_port } => {
                self.wait = Wait::Template;
                if !self.finds_ports(port, local_port, program) {
                    self.fail(Cause::NoPort, outside);
                    self.end(connection, outside);
                }
            }
            Instruction::Listen { .. } => self.wait = Wait::Port,
            Instruction::AcceptTemplate => self.wait = Wait::Arrival,
            Instruction::StartSession => self.wait = Wait::Session,
            Instruction::Reconnect { unless } => {
                match self.is_peer_done(connection) || self.announces_close(unless, program) {
                    true => self.wait = Wait::Reconnection,
                    false => self.place += 1,
                }
            }
            Instruction::FailIfClosed => match self.is_peer_done(connection) {
                true => {
                    self.fail(Cause::ClosedBetween, outside);
                    self.end(connection, outside);
                }
                false => self.place += 1,
            },
            Instruction::WaitForPeerClose => {
                self.wait = Wait::PeerClose;
                if let Some(payload) = self.payload_mut() {
                    payload.stop_listening();
                }
            }
            Instruction::Reset => {
                connection.abort(counters);
                self.wait = Wait::Over;
            }
            Instruction::Jump { to } => self.place = to,
            instruction => match delay(instruction, random) {
                Some(micros) => {
                    let since = match (instruction, self.payload()) {
                        (Instruction::DelaySinceRead { .. }, Some(payload)) => payload.taken_at(),
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
