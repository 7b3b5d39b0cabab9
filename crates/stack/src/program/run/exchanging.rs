//! The exchange between a program and its connection, and the per-flow payload state.

use alloc::boxed::Box;

use super::{Extra, Progress, Run, Wait};
use crate::content::{Exchange, SendData, Session};
use crate::program::compute::compute;
use crate::program::context::{ProgramContext, STEPS_MAX};
use crate::program::payload::{FlowPayload, StepResult};
use crate::program::{Ends, Instruction, Program};
use crate::tcp::connection::Connection;
use crate::tcp::now::Now;
use crate::tcp::receive::SegmentOutcome;
use crate::tcp::segment::Segment;

impl Run {
    /// Puts an exchange between the program and its connection. Call it before the first step.
    pub(crate) fn attach_exchange(&mut self, exchange: Exchange) {
        self.extra.get_or_insert_default().exchange = Some(Box::new(exchange));
    }

    /// Attaches per-flow payload state. Call it before the first step.
    #[cold]
    pub(crate) fn attach_payload(&mut self, payload: FlowPayload) {
        let extra = self.extra.get_or_insert_default();
        extra.payload = Some(Box::new(payload));
        extra.exchange.get_or_insert_with(|| Box::new(Exchange::plain()));
    }

    /// Buffers received data until [`Self::begin_accepted`].
    #[cold]
    pub(crate) fn buffer_received(&mut self, payload: FlowPayload) {
        self.attach_payload(payload);
        self.hold();
    }

    /// Returns the number of buffered bytes.
    #[cold]
    pub(crate) fn buffered_bytes(&self) -> u64 {
        self.payload().map_or(0, FlowPayload::waiting)
    }

    /// Drops the buffered data, and stops buffering.
    #[cold]
    pub(crate) fn stop_buffering(&mut self) {
        if let Some(payload) = self.payload_mut() {
            payload.stop_listening();
        }
    }

    /// Starts the program, with an optional session. The session gets the buffered bytes; without
    /// one, they count as received data of the program.
    #[cold]
    pub(crate) fn begin_accepted(&mut self, session: Option<Box<dyn Session>>, now: Now) {
        if let Some(session) = session {
            self.begin_session(session, now);
        } else if let Some(extra) = &mut self.extra {
            extra.exchange = None;
        }
        // Programs of accepted flows have no per-flow payload.
        if let Some(extra) = &mut self.extra {
            extra.payload = None;
        }
        self.restart_program();
    }

    /// Returns the run for another connection between `ends`: this program with its state, and the
    /// session of `fresh`. This run keeps only what belongs to the old connection.
    #[cold]
    pub(crate) fn leave(&mut self, ends: Ends, fresh: Self) -> Self {
        let has_session = fresh.exchange().is_some_and(Exchange::is_handshaking);
        let mut other = Self {
            place: self.place,
            wait: if has_session { Wait::Handshake } else { Wait::Establishment },
            waits_for_acknowledgements: self.waits_for_acknowledgements,
            ..fresh
        };
        let Some(extra) = &mut self.extra else { return other };
        let moved = other.extra.get_or_insert_default();
        moved.variables = core::mem::take(&mut extra.variables);
        moved.traffic_class = extra.traffic_class;
        moved.has_failed = core::mem::take(&mut extra.has_failed);
        moved.payload = extra.payload.take();
        if let Some(payload) = &mut moved.payload {
            payload.reset_for_connection(ends);
        }
        if moved.is_unused() {
            other.extra = None;
        }
        other
    }

    /// Starts the session that the program waits for, if there is one.
    #[cold]
    pub(crate) fn start_session(&mut self, session: Option<Box<dyn Session>>, now: Now) {
        if self.wait == Wait::Session {
            self.wait = Wait::Handshake;
            if let Some(session) = session {
                self.begin_session(session, now);
            }
        }
    }

    /// Replaces plain bytes by a session, which gets the unconsumed bytes.
    #[cold]
    fn begin_session(&mut self, session: Box<dyn Session>, now: Now) {
        let Some(extra) = &mut self.extra else { return };
        let Extra { exchange: Some(exchange), payload: Some(payload), .. } = &mut **extra else {
            return;
        };
        let unconsumed = payload.begin_session();
        let received_bytes = exchange
            .start(session, &unconsumed, now, |plaintext| payload.receive(plaintext, now.micros));
        self.received = received_bytes.into();
    }

    pub(super) fn payload(&self) -> Option<&FlowPayload> {
        self.extra.as_ref()?.payload.as_deref()
    }

    pub(super) fn payload_mut(&mut self) -> Option<&mut FlowPayload> {
        self.extra.as_mut()?.payload.as_deref_mut()
    }

    /// Processes the data of a segment in the exchange; returns the number of bytes for the
    /// program.
    #[cold]
    pub(crate) fn receive(
        &mut self,
        segment: &Segment<'_>,
        data: &[u8],
        arrival: &SegmentOutcome,
        connection: &Connection,
        now: Now,
    ) -> u32 {
        let Some(extra) = &mut self.extra else { return 0 };
        let Extra { exchange: Some(exchange), payload, .. } = &mut **extra else { return 0 };
        exchange.receive(segment, data, arrival, connection, now, |plaintext| {
            if let Some(payload) = payload {
                payload.receive(plaintext, now.micros);
            }
        })
    }

    /// Returns the exchange between the program and its connection, if any.
    #[inline]
    pub(crate) fn exchange(&self) -> Option<&Exchange> {
        self.extra.as_ref()?.exchange.as_deref()
    }

    /// Returns the exchange between the program and its connection, if any.
    #[inline]
    pub(crate) fn exchange_mut(&mut self) -> Option<&mut Exchange> {
        self.extra.as_mut()?.exchange.as_deref_mut()
    }

    /// Whether the session failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.exchange().is_some_and(Exchange::has_failed)
    }

    /// Whether the session failed before the connection ended.
    pub(crate) fn has_failed_first(&self) -> bool {
        self.exchange().is_some_and(Exchange::has_failed_first)
    }

    /// Whether the program failed, such as by a check.
    pub(crate) fn has_program_failed(&self) -> bool {
        let has_failed = self.extra.as_ref().is_some_and(|it| it.has_failed);
        has_failed || self.payload().is_some_and(FlowPayload::has_failed)
    }

    /// Returns the HTTP/1 messages that the failed flow has not received.
    #[cold]
    pub(crate) fn take_missing(&mut self) -> u64 {
        self.payload_mut().map_or(0, FlowPayload::take_missing)
    }

    /// Whether both sides have closed the session.
    pub(crate) fn has_ended(&self) -> bool {
        self.exchange().is_some_and(Exchange::has_ended)
    }

    /// Whether the peer has closed the connection or the session.
    #[inline]
    pub(super) fn is_peer_done(&self, connection: &Connection) -> bool {
        connection.has_received_fin() || self.exchange().is_some_and(Exchange::is_peer_done)
    }

    #[inline]
    pub(super) fn has_pending_send(&self) -> bool {
        self.exchange().is_some_and(Exchange::has_pending_send)
    }

    /// Moves received data through the session. Returns whether the program has started, which it
    /// does once the session is open.
    #[cold]
    pub(super) fn is_begun(
        &mut self,
        connection: &mut Connection,
        outside: &mut ProgramContext<'_>,
    ) -> bool {
        self.move_bytes(connection, outside);
        let is_handshaking = self.exchange().is_some_and(Exchange::is_handshaking);
        self.wait != Wait::Nothing || !is_handshaking
    }

    /// Consumes received data for the current step. Returns false if the program failed.
    #[cold]
    pub(super) fn consume_received(
        &mut self,
        program: &Program,
        connection: &mut Connection,
        outside: &mut ProgramContext<'_>,
    ) -> bool {
        let (wait, place) = (self.wait, self.place);
        let (Some(payload), Some(contents)) = (self.payload_mut(), program.contents()) else {
            return true;
        };
        let can_go_on = match (wait, program.instruction(place)) {
            (Wait::Over, _) => true,
            (Wait::Taking, Some(Instruction::Take { rule, .. })) => {
                payload.go_on(place, contents, rule, outside)
            }
            _ => payload.has_room(place, outside),
        };
        if !can_go_on {
            self.end(connection, outside);
            self.move_bytes(connection, outside);
        }
        can_go_on
    }

    /// Moves bytes between the program, the session and the connection.
    #[cold]
    pub(super) fn move_bytes(
        &mut self,
        connection: &mut Connection,
        outside: &mut ProgramContext<'_>,
    ) {
        let ProgramContext { buffers, counters, sessions, now, .. } = outside;
        let Some(exchange) = self.exchange_mut() else { return };
        let can_go_on = exchange.go_on(connection, buffers, counters, sessions, *now);
        if !can_go_on && self.wait != Wait::Over {
            self.end(connection, outside);
        }
        // All data sent so far then lies before this number, so `copy` reads it from the exchange.
        self.sending.1 = connection.queued();
    }

    /// Continues before the last data has left, as long as more may share its segments. Responses
    /// to pipelined requests then share segments.
    #[cold]
    pub(super) fn coalesce_sends(
        &mut self,
        mut progress: Progress,
        program: &Program,
        connection: &mut Connection,
        outside: &mut ProgramContext<'_>,
    ) -> Progress {
        for _ in 0..STEPS_MAX {
            let takes_more = self.exchange().is_some_and(|it| it.has_room_to_coalesce(connection));
            if self.wait != Wait::Departure || !takes_more {
                break;
            }
            self.wait = Wait::Nothing;
            self.place += 1;
            progress = self.follow(program, connection, outside);
            self.move_bytes(connection, outside);
        }
        progress
    }

    /// Whether the last message fails the check for a persistent connection.
    #[cold]
    pub(super) fn announces_close(&self, keeps: Option<u16>, program: &Program) -> bool {
        let check = keeps.zip(program.contents());
        let check = check.and_then(|(place, it)| it.checks.get(usize::from(place)));
        check.zip(self.payload()).is_some_and(|(check, payload)| !payload.passes(check))
    }

    /// Whether the data of a step is complete, after it arrived or the peer closed.
    #[cold]
    pub(super) fn has_all(&mut self, program: &Program, outside: &mut ProgramContext<'_>) -> bool {
        let place = self.place;
        let Some(payload) = self.payload_mut() else { return true };
        let is_awaited =
            matches!(program.instruction(place), Some(Instruction::Take { is_required: true, .. }));
        let has_all =
            payload.is_read_complete() || payload.end_of_stream(place, is_awaited, outside);
        let waiting = payload.waiting();
        self.received = waiting;
        has_all
    }

    /// Executes payload instructions and those that take no time.
    #[cold]
    pub(super) fn compute(
        &mut self,
        instruction: Instruction,
        program: &Program,
        connection: &mut Connection,
        outside: &mut ProgramContext<'_>,
    ) {
        let Extra { variables, exchange, payload, .. } = &mut **self.extra.get_or_insert_default();
        let demand = match (payload, program.contents()) {
            (Some(payload), Some(contents)) => {
                payload.follow(instruction, self.place, contents, variables, outside)
            }
            _ => None,
        };
        match demand {
            None => self.place = compute(instruction, self.place, variables, outside),
            Some(StepResult::Nothing) => self.place += 1,
            Some(StepResult::Jumps(there)) => self.place = there,
            Some(StepResult::Takes) => self.wait = Wait::Taking,
            Some(StepResult::Sends(bytes)) => {
                if let Some(exchange) = exchange {
                    exchange.send(SendData::Bytes(bytes));
                }
                self.wait = self.wait_after_exchange_send();
            }
            Some(StepResult::Fails) => {
                self.end(connection, outside);
            }
        }
    }
}
