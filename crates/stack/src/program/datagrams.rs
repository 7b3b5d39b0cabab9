//! How far a flow of datagrams is in its program.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use super::compute::{compute, delay};
use super::findings::Cause;
use super::own::{Demand, Own, Ports};
use super::run::{Outside, STEPS_MAX};
use super::variables::Variables;
use super::{BufferId, Instruction, Program};
use crate::content::DatagramExchange;
use crate::tcp::connection::Now;

/// What is sent as one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// A buffer.
    Buffer(BufferId),
    /// What [`DatagramRun::composed`] has.
    Own,
    /// What its session has for the peer.
    Session,
}

/// What a program of datagrams wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// To send something; [`DatagramRun::go_on`] says that it was.
    Sends(Sent),
    /// To wait.
    Waits,
    /// To wait until a time, in ms.
    WaitsUntil(u32),
    /// To go on, after many steps; [`DatagramRun::pause`] says when.
    Pauses,
    /// To make a flow of a template of a group, or of its own, to the same server at ports where
    /// those are said; [`DatagramRun::end_waiting`] says that it is over.
    Executes { group: Option<u16>, ports: Option<Ports> },
    /// To wait until a flow is over that it has made; as above.
    Awaits,
    /// Nothing any more.
    Over,
}

/// The state of a program in one flow of datagrams.
#[derive(Debug)]
pub(crate) struct DatagramRun {
    /// Datagrams that have arrived.
    received: u64,
    variables: Option<Box<Variables>>,
    own: Option<Box<Own>>,
    /// What is to be sent of its own.
    composed: Vec<u8>,
    /// What is between the program and its flow, where anything is.
    exchange: Option<Box<DatagramExchange>>,
    /// When a delay is over, in ms.
    until: u32,
    /// After how long without traffic the flow is dropped, in ms; 0: never.
    idle_ms: u32,
    place: u16,
    /// Whether what is at `place` was begun, and is waited for.
    has_begun: bool,
    /// Whether it waits between two steps: it has done many.
    is_pausing: bool,
    /// Whether a flow that it waited for failed.
    has_other_failed: bool,
    /// Whether only what arrives is traffic.
    is_idle_by_receiving: bool,
    /// What packets have in place of the template's.
    traffic_class: Option<u8>,
}

/// After how long without traffic a flow is dropped, unless its program says so, in ms.
const IDLE_MS: u32 = 1_000;

impl DatagramRun {
    pub(crate) const fn new() -> Self {
        Self {
            received: 0,
            variables: None,
            own: None,
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

    /// The traffic class of its packets, where its program has said that.
    pub(crate) const fn traffic_class(&self) -> Option<u8> {
        self.traffic_class
    }

    /// Gives the flow something of its own, from the beginning.
    #[cold]
    pub(crate) fn own_by(&mut self, own: Own) {
        self.own = Some(Box::new(own));
    }

    /// Puts a session between the program and its flow, from the beginning.
    #[cold]
    pub(crate) fn exchange_by(&mut self, exchange: DatagramExchange) {
        self.exchange = Some(Box::new(exchange));
    }

    /// Whether what is between the program and its flow has failed.
    pub(crate) fn has_session_failed(&self) -> bool {
        self.exchange.as_ref().is_some_and(|it| it.has_failed())
    }

    /// Whether something else came than the program expects.
    pub(crate) fn has_program_failed(&self) -> bool {
        self.own.as_ref().is_some_and(|own| own.has_failed())
    }

    /// What is to be sent of its own, or of its session.
    pub(crate) fn composed(&self, sent: Sent) -> &[u8] {
        match &self.exchange {
            Some(exchange) if sent == Sent::Session => exchange.datagram(),
            _ => &self.composed,
        }
    }

    /// Something was sent.
    #[inline]
    pub(crate) fn note_sent(&mut self, sent: Sent) {
        match &mut self.exchange {
            Some(exchange) if sent == Sent::Session => exchange.note_sent(),
            _ => self.go_on(),
        }
    }

    /// A datagram has arrived.
    #[inline]
    pub(crate) fn hear(&mut self, data: &[u8], now: Now) {
        match self.exchange.take() {
            None => self.note_received(data),
            Some(mut exchange) => {
                exchange.hear(data, now, |message| self.note_received(message));
                self.exchange = Some(exchange);
            }
        }
    }

    /// What the program hears: a datagram, or a message of its session.
    #[inline]
    pub(crate) fn note_received(&mut self, data: &[u8]) {
        self.received += 1;
        if let Some(own) = &mut self.own {
            own.hear_datagram(data);
        }
    }

    /// Where the program is over and looks at what it receives: what came beside its last datagram.
    pub(crate) fn take_rest(&mut self) -> VecDeque<Vec<u8>> {
        // What comes within a session begins nothing else.
        if self.exchange.is_some() {
            return VecDeque::new();
        }
        self.own.as_mut().map(|own| own.take_rest()).unwrap_or_default()
    }

    /// When the flow is dropped that had its last traffic at a time, in ms.
    pub(crate) fn idle_at(&self, received_at: u32, sent_at: u32) -> Option<u32> {
        let is_sent_later = sent_at.wrapping_sub(received_at).cast_signed() > 0;
        let last = if is_sent_later && !self.is_idle_by_receiving { sent_at } else { received_at };
        (self.idle_ms > 0).then(|| last.wrapping_add(self.idle_ms))
    }

    /// What is at its place is done.
    pub(crate) const fn go_on(&mut self) {
        self.place += 1;
        self.has_begun = false;
    }

    /// A flow that it waited for is over or made, or one that belongs to it has failed.
    #[cold]
    pub(crate) const fn end_waiting(&mut self, has_failed: bool) {
        match has_failed {
            true => self.has_other_failed = true,
            false => self.go_on(),
        }
    }

    /// Goes on until it wants something.
    #[inline]
    pub(crate) fn advance(&mut self, program: &Program, outside: &mut Outside<'_>) -> Step {
        match self.exchange.take() {
            None => self.follow(program, outside),
            Some(mut exchange) => {
                let step = self.advance_within(&mut exchange, program, outside);
                self.exchange = Some(exchange);
                step
            }
        }
    }

    /// The same where there is a session: what it has to send leaves first, and the program begins
    /// once it is open.
    #[cold]
    fn advance_within(
        &mut self,
        exchange: &mut DatagramExchange,
        program: &Program,
        outside: &mut Outside<'_>,
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
                            exchange.say(&message, now)
                        }
                        Sent::Own | Sent::Session => exchange.say(&self.composed, now),
                    };
                    if !is_taken {
                        return wait(exchange.deadline(now), None, now);
                    }
                    self.go_on();
                }
                Step::Over => exchange.close(now),
                // Nothing more comes for which it could wait.
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

    /// Follows the program until it wants something.
    fn follow(&mut self, program: &Program, outside: &mut Outside<'_>) -> Step {
        let now @ Now { millis, .. } = outside.now;
        let place = self.place;
        if self.own.as_mut().is_some_and(|own| !own.has_room(place, outside)) {
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
                _ if self.has_other_failed => return self.fail(Cause::OtherFlow, outside),
                Instruction::SendDatagram { buffer } => return Step::Sends(Sent::Buffer(buffer)),
                // It was composed, and no frame was free.
                Instruction::SendOwnDatagram { .. } if self.has_begun => {
                    return Step::Sends(Sent::Own);
                }
                Instruction::ReceiveDatagrams { count, clear } => {
                    if self.received < count {
                        return Step::Waits;
                    }
                    match &mut self.own {
                        Some(own) if !clear => own.keep_datagrams(),
                        // What came beside them is for the next step.
                        Some(own) if program.contents().is_some_and(|it| it.looks()) => {
                            own.take_datagrams(count);
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
                Instruction::StartTemplate { port, own_port } => {
                    self.has_begun = true;
                    let variables = self.variables.get_or_insert_default();
                    let ports = match (&self.own, program.contents()) {
                        (Some(own), Some(contents)) => {
                            own.ports(port, own_port, contents, variables)
                        }
                        _ => None,
                    };
                    return match ports {
                        None => self.fail(Cause::NoPort, outside),
                        ports => Step::Executes { group: self.group(), ports },
                    };
                }
                // Nobody says that no more comes.
                Instruction::WaitForPeerClose => {
                    if let Some(own) = &mut self.own {
                        own.stop_listening();
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
                        let demand = match (&mut self.own, program.contents()) {
                            (Some(own), Some(contents)) => {
                                own.follow(instruction, self.place, contents, variables, outside)
                            }
                            _ => None,
                        };
                        match demand {
                            None => {
                                self.place = compute(instruction, self.place, variables, outside);
                            }
                            Some(Demand::Sends(bytes)) => {
                                self.composed = bytes;
                                self.has_begun = true;
                            }
                            Some(Demand::Fails) => return Step::Over,
                            Some(Demand::GoesOn(there)) => self.place = there,
                            // Only streams are taken by rules.
                            Some(Demand::Nothing | Demand::Takes) => self.go_on(),
                        }
                    }
                }
            }
        }
        Step::Pauses
    }

    /// Goes on at a time, in ms, where it has done many steps.
    #[cold]
    pub(crate) const fn pause(&mut self, until: u32) -> u32 {
        (self.is_pausing, self.until) = (true, until);
        until
    }

    /// Of which group the next template is.
    fn group(&self) -> Option<u16> {
        self.variables.as_ref().and_then(|it| it.group)
    }

    /// A flow to a port that a program says fails with it; programs that say one have something of
    /// their own.
    #[cold]
    fn fail(&mut self, cause: Cause, outside: &mut Outside<'_>) -> Step {
        let place = self.place;
        if let Some(own) = &mut self.own {
            own.fail_waiting(place, cause, outside);
        }
        Step::Over
    }
}

/// Waits until the sooner of two times, in ms, where there is any.
fn wait(one: Option<u32>, other: Option<u32>, now: Now) -> Step {
    let left = |at: &u32| at.wrapping_sub(now.millis).cast_signed();
    match [one, other].into_iter().flatten().min_by_key(left) {
        Some(until) => Step::WaitsUntil(until),
        None => Step::Waits,
    }
}
