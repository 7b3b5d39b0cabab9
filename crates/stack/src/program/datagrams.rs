//! Progress of a UDP flow in its program.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use super::compute::{compute, delay};
use super::context::{ProgramContext, STEPS_MAX};
use super::findings::Cause;
use super::payload::{FlowPayload, Ports, StepResult};
use super::variables::Variables;
use super::{BufferId, Instruction, Program};
use crate::content::DatagramExchange;
use crate::tcp::now::Now;

/// Source of a datagram to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// Shared buffer.
    Buffer(BufferId),
    /// Payload of the flow, in [`DatagramRun::composed`].
    Composed,
    /// Datagram of the session.
    Session,
}

/// Next action of a program over UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Send a datagram; [`DatagramRun::note_sent`] confirms it.
    Sends(Sent),
    /// Wait for an event.
    Waits,
    /// Wait for an event, at most until a time in ms.
    WaitsUntil(u32),
    /// Yield after many steps; [`DatagramRun::pause`] sets when to continue.
    Pauses,
    /// Start a flow of a template of `group`, or of its own template if `None`. With `ports`, the
    /// flow goes to the same server at these ports. [`DatagramRun::end_waiting`] reports the
    /// result.
    Executes { group: Option<u16>, ports: Option<Ports> },
    /// Wait for the end of the flow that it started; [`DatagramRun::end_waiting`] reports it.
    Awaits,
    /// End the flow.
    Over,
}

/// State of a program in one UDP flow.
#[derive(Debug)]
pub(crate) struct DatagramRun {
    /// Received datagrams since the last step that cleared the count.
    received: u64,
    variables: Option<Box<Variables>>,
    payload: Option<Box<FlowPayload>>,
    /// Payload of the flow to send next.
    composed: Vec<u8>,
    /// Session between the program and the flow, if any.
    exchange: Option<Box<DatagramExchange>>,
    /// End of the current delay, in ms.
    until: u32,
    /// Idle timeout in ms; 0: none.
    idle_ms: u32,
    place: u16,
    /// Whether the instruction at `place` has started and the program waits for it.
    has_begun: bool,
    /// Whether the program yields after many steps.
    is_pausing: bool,
    /// Whether a flow that the program waits for, or owns, has failed.
    has_other_failed: bool,
    /// Whether only received datagrams restart the idle timeout.
    is_idle_by_receiving: bool,
    /// Traffic class that replaces that of the template.
    traffic_class: Option<u8>,
}

/// Default idle timeout in ms.
const IDLE_MS: u32 = 1_000;

impl DatagramRun {
    pub(crate) const fn new() -> Self {
        Self {
            received: 0,
            variables: None,
            payload: None,
            composed: Vec::new(),
            exchange: None,
            until: 0,
            idle_ms: IDLE_MS,
            place: 0,
            has_begun: false,
            is_pausing: false,
            has_other_failed: false,
            is_idle_by_receiving: false,
            traffic_class: None,
        }
    }

    /// Traffic class that the program has set, if any.
    pub(crate) const fn traffic_class(&self) -> Option<u8> {
        self.traffic_class
    }

    /// Attaches per-flow payload state. Call it before the first step.
    #[cold]
    pub(crate) fn attach_payload(&mut self, payload: FlowPayload) {
        self.payload = Some(Box::new(payload));
    }

    /// Attaches a session. Call it before the first step.
    #[cold]
    pub(crate) fn exchange_by(&mut self, exchange: DatagramExchange) {
        self.exchange = Some(Box::new(exchange));
    }

    /// Whether the session failed.
    pub(crate) fn has_session_failed(&self) -> bool {
        self.exchange.as_ref().is_some_and(|it| it.has_failed())
    }

    /// Whether the program failed, such as by a check.
    pub(crate) fn has_program_failed(&self) -> bool {
        self.payload.as_ref().is_some_and(|payload| payload.has_failed())
    }

    /// Returns the payload of the flow or of its session to send.
    pub(crate) fn composed(&self, sent: Sent) -> &[u8] {
        match &self.exchange {
            Some(exchange) if sent == Sent::Session => exchange.datagram(),
            _ => &self.composed,
        }
    }

    /// Records that a datagram was sent.
    #[inline]
    pub(crate) fn note_sent(&mut self, sent: Sent) {
        match &mut self.exchange {
            Some(exchange) if sent == Sent::Session => exchange.note_sent(),
            _ => self.go_on(),
        }
    }

    /// Processes a received datagram.
    #[inline]
    pub(crate) fn receive(&mut self, data: &[u8], now: Now) {
        match self.exchange.take() {
            None => self.note_received(data),
            Some(mut exchange) => {
                exchange.receive_datagram(data, now, |message| self.note_received(message));
                self.exchange = Some(exchange);
            }
        }
    }

    /// Takes a datagram, or a message of the session, for the program.
    #[inline]
    pub(crate) fn note_received(&mut self, data: &[u8]) {
        self.received += 1;
        if let Some(payload) = &mut self.payload {
            payload.receive_datagram(data);
        }
    }

    /// Returns the datagrams that the program has received and not consumed, after its end.
    pub(crate) fn take_rest(&mut self) -> VecDeque<Vec<u8>> {
        // Datagrams within a session start no other flow.
        if self.exchange.is_some() {
            return VecDeque::new();
        }
        self.payload.as_mut().map(|payload| payload.take_rest()).unwrap_or_default()
    }

    /// Returns the time of the idle timeout in ms, from the times of the last datagrams.
    pub(crate) fn idle_at(&self, received_at: u32, sent_at: u32) -> Option<u32> {
        let is_sent_later = sent_at.wrapping_sub(received_at).cast_signed() > 0;
        let last = if is_sent_later && !self.is_idle_by_receiving { sent_at } else { received_at };
        (self.idle_ms > 0).then(|| last.wrapping_add(self.idle_ms))
    }

    /// Completes the current instruction.
    pub(crate) const fn go_on(&mut self) {
        self.place += 1;
        self.has_begun = false;
    }

    /// Reports the end or the start of the flow that the program waits for. `has_failed`: that flow
    /// has failed.
    #[cold]
    pub(crate) const fn end_waiting(&mut self, has_failed: bool) {
        match has_failed {
            true => self.has_other_failed = true,
            false => self.go_on(),
        }
    }

    /// Executes instructions until one waits or sends.
    #[inline]
    pub(crate) fn advance(&mut self, program: &Program, outside: &mut ProgramContext<'_>) -> Step {
        match self.exchange.take() {
            None => self.follow(program, outside),
            Some(mut exchange) => {
                let step = self.advance_within(&mut exchange, program, outside);
                self.exchange = Some(exchange);
                step
            }
        }
    }

    /// Like [`Self::advance`], with a session. Datagrams of the session leave first; the program
    /// starts once the session is open.
    #[cold]
    fn advance_within(
        &mut self,
        exchange: &mut DatagramExchange,
        program: &Program,
        outside: &mut ProgramContext<'_>,
    ) -> Step {
        let now = outside.now;
        for _ in 0..STEPS_MAX {
            if exchange.go_on(now, outside.sessions) {
                return Step::Sends(Sent::Session);
            }
            if exchange.has_failed() || exchange.is_over() {
                return Step::Over;
            }
            if !exchange.is_open() || exchange.is_closed() {
                return wait(exchange.deadline(now), None, now);
            }
            let step = self.follow(program, outside);
            match step {
                Step::Sends(sent) => {
                    let is_taken = match sent {
                        Sent::Buffer(buffer) => {
                            let buffer = outside.buffers.get(buffer);
                            let mut message = vec![0; buffer.size() as usize];
                            buffer.copy(0, &mut message);
                            exchange.send_message(&message, now)
                        }
                        Sent::Composed | Sent::Session => {
                            exchange.send_message(&self.composed, now)
                        }
                    };
                    if !is_taken {
                        return wait(exchange.deadline(now), None, now);
                    }
                    self.go_on();
                }
                Step::Over => exchange.close(now),
                // The peer sends nothing more, so the wait cannot end.
                Step::Waits if exchange.is_peer_done() => exchange.close(now),
                Step::Waits => return wait(exchange.deadline(now), None, now),
                Step::WaitsUntil(until) => {
                    return wait(exchange.deadline(now), Some(until), now);
                }
                step => return step,
            }
        }
        Step::Pauses
    }

    /// Executes the program until an instruction waits or sends.
    fn follow(&mut self, program: &Program, outside: &mut ProgramContext<'_>) -> Step {
        let now @ Now { millis, .. } = outside.now;
        let place = self.place;
        if self.payload.as_mut().is_some_and(|payload| !payload.has_room(place, outside)) {
            return Step::Over;
        }
        if self.is_pausing && millis.wrapping_sub(self.until).cast_signed() < 0 {
            return Step::WaitsUntil(self.until);
        }
        self.is_pausing = false;
        for _ in 0..STEPS_MAX {
            let Some(instruction) = program.instruction(self.place) else { return Step::Over };
            match instruction {
                Instruction::ExecTemplate if self.has_other_failed => {
                    self.has_other_failed = false;
                    self.go_on();
                }
                _ if self.has_other_failed => return self.fail(Cause::ChildFlow, outside),
                Instruction::SendDatagram { buffer } => return Step::Sends(Sent::Buffer(buffer)),
                // The payload is composed already: no frame was free before.
                Instruction::SendComposedDatagram { .. } if self.has_begun => {
                    return Step::Sends(Sent::Composed);
                }
                Instruction::ReceiveDatagrams { count, clear } => {
                    if self.received < count {
                        return Step::Waits;
                    }
                    match &mut self.payload {
                        Some(payload) if !clear => payload.keep_datagrams(),
                        // Datagrams beyond the count belong to the next step.
                        Some(payload)
                            if program.contents().is_some_and(|it| it.examines_data()) =>
                        {
                            payload.take_datagrams(count);
                            self.received -= count;
                        }
                        _ if clear => self.received = 0,
                        _ => {}
                    }
                    self.go_on();
                }
                Instruction::SetTrafficClass { class } => {
                    self.traffic_class = Some(class);
                    self.go_on();
                }
                Instruction::SetIdle { millis, receive_only } => {
                    self.idle_ms = millis;
                    self.is_idle_by_receiving = receive_only;
                    self.go_on();
                }
                Instruction::ExecTemplate
                | Instruction::StartTemplate { .. }
                | Instruction::AwaitTemplate
                    if self.has_begun =>
                {
                    return Step::Waits;
                }
                Instruction::AwaitTemplate => {
                    self.has_begun = true;
                    return Step::Awaits;
                }
                Instruction::ExecTemplate => {
                    self.has_begun = true;
                    return Step::Executes { group: self.group(), ports: None };
                }
                Instruction::StartTemplate { port, local_port } => {
                    self.has_begun = true;
                    let variables = self.variables.get_or_insert_default();
                    let ports = match (&self.payload, program.contents()) {
                        (Some(payload), Some(contents)) => {
                            payload.ports(port, local_port, contents, variables)
                        }
                        _ => None,
                    };
                    return match ports {
                        None => self.fail(Cause::NoPort, outside),
                        ports => Step::Executes { group: self.group(), ports },
                    };
                }
                // UDP has no end-of-stream signal.
                Instruction::WaitForPeerClose => {
                    if let Some(payload) = &mut self.payload {
                        payload.stop_listening();
                    }
                    return Step::Waits;
                }
                Instruction::Jump { to } => self.place = to,
                Instruction::Reset => return Step::Over,
                instruction => {
                    if self.has_begun {
                        if millis.wrapping_sub(self.until).cast_signed() < 0 {
                            return Step::WaitsUntil(self.until);
                        }
                        self.go_on();
                    } else if let Some(micros) = delay(instruction, outside.random) {
                        self.until = now.millis_after(now.micros, micros);
                        self.has_begun = true;
                    } else {
                        let variables = self.variables.get_or_insert_default();
                        let demand = match (&mut self.payload, program.contents()) {
                            (Some(payload), Some(contents)) => payload.follow(
                                instruction,
                                self.place,
                                contents,
                                variables,
                                outside,
                            ),
                            _ => None,
                        };
                        match demand {
                            None => {
                                self.place = compute(instruction, self.place, variables, outside);
                            }
                            Some(StepResult::Sends(bytes)) => {
                                self.composed = bytes;
                                self.has_begun = true;
                            }
                            Some(StepResult::Fails) => return Step::Over,
                            Some(StepResult::Jumps(there)) => self.place = there,
                            // Rules apply to streams only.
                            Some(StepResult::Nothing | StepResult::Takes) => self.go_on(),
                        }
                    }
                }
            }
        }
        Step::Pauses
    }

    /// Schedules the continuation after many steps, at a time in ms.
    #[cold]
    pub(crate) const fn pause(&mut self, until: u32) -> u32 {
        (self.is_pausing, self.until) = (true, until);
        until
    }

    /// Group of the next template.
    fn group(&self) -> Option<u16> {
        self.variables.as_ref().and_then(|it| it.group)
    }

    /// Ends the program with a failure of a flow that it started or awaited. Such programs have
    /// per-flow state.
    #[cold]
    fn fail(&mut self, cause: Cause, outside: &mut ProgramContext<'_>) -> Step {
        let place = self.place;
        if let Some(payload) = &mut self.payload {
            payload.fail_waiting(place, cause, outside);
        }
        Step::Over
    }
}

/// Waits until the earlier of two times in ms, if any.
fn wait(one: Option<u32>, other: Option<u32>, now: Now) -> Step {
    let left = |at: &u32| at.wrapping_sub(now.millis).cast_signed();
    match [one, other].into_iter().flatten().min_by_key(left) {
        Some(until) => Step::WaitsUntil(until),
        None => Step::Waits,
    }
}
