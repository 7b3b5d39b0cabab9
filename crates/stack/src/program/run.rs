//! How far a flow is in its program.

use alloc::boxed::Box;
use alloc::vec::Vec;

use wirestorm_wire::checksum;

use super::compute::{compute, delay};
use super::findings::{Cause, Findings, Wanted};
use super::own::{Demand, Own};
use super::rule::Taken;
use super::variables::Variables;
use super::{BufferId, Buffers, Instruction, Program, Statistics};
use crate::content::{Exchange, Saying, SessionCounters};
use crate::random::Random;
use crate::tcp::arrival::Arrival;
use crate::tcp::connection::{Connection, Now};
use crate::tcp::counters::TcpCounters;
use crate::tcp::segment::Segment;
use crate::tcp::sequence::SequenceNumber;

/// What a flow waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// Nothing: it has not begun, or goes on at once.
    Nothing,
    /// That the connection is established.
    Establishment,
    /// That all is acknowledged that was sent.
    Acknowledgement,
    /// That all has left once.
    Departure,
    /// That so many bytes have arrived.
    Data,
    /// That what is to be taken has arrived.
    Taking,
    /// That a time is over.
    Delay,
    /// That a flow that it asked for is over.
    Template,
    /// That it is told at which port it listens.
    Port,
    /// So much data that it fails without.
    Needed,
    /// That the connection comes for which it listens.
    Arrival,
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
    /// It waits for what it wishes for.
    Wishes(Wish),
}

/// What a program wants of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// A flow of a template of a group, or of its own; [`Run::go_on`] says that it is over. Where a
    /// port is said, one to the same server there; [`Run::go_on`] says that it is made.
    Flow { group: Option<u16>, port: Option<u16> },
    /// The end of that flow; [`Run::go_on`] says when.
    End,
    /// A port to listen at; [`Run::listens_at`] says which.
    Port { first: u16, last: u16 },
    /// The connection that comes there, as one of a template of a group; [`Run::note_arrival`] says
    /// that it has come, [`Run::go_on`] that it is over.
    Arrival { group: Option<u16> },
}

/// A buffer on its way, and the number of its first byte.
type Sending = (BufferId, SequenceNumber);

/// What few programs need.
#[derive(Debug, Default)]
struct Extra {
    /// What was sent before the last buffer and is not all acknowledged, where programs do not wait
    /// for that.
    before: Vec<Sending>,
    variables: Variables,
    /// At which port of the server the next flow is.
    port: Option<u16>,
    /// Whether the program failed of a flow that has nothing of its own.
    has_failed: bool,
    /// What is between the program and its connection, where anything is.
    exchange: Option<Box<Exchange>>,
    /// What the flow has of its own; then there is an exchange as well.
    own: Option<Box<Own>>,
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

/// A program that never waits would keep all others from running: after so many steps it does.
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

    /// Puts something between the program and its connection, from the beginning.
    pub(crate) fn exchange_by(&mut self, exchange: Exchange) {
        self.extra.get_or_insert_default().exchange = Some(Box::new(exchange));
    }

    /// Gives the flow something of its own, from the beginning.
    #[cold]
    pub(crate) fn own_by(&mut self, own: Own) {
        let extra = self.extra.get_or_insert_default();
        extra.own = Some(Box::new(own));
        extra.exchange.get_or_insert_with(|| Box::new(Exchange::plain()));
    }

    fn own(&self) -> Option<&Own> {
        self.extra.as_ref()?.own.as_deref()
    }

    fn own_mut(&mut self) -> Option<&mut Own> {
        self.extra.as_mut()?.own.as_deref_mut()
    }

    /// What a segment brought, for what is between the program and its connection; returns how many
    /// bytes of it are for the program.
    #[cold]
    pub(crate) fn hear(
        &mut self,
        segment: &Segment<'_>,
        data: &[u8],
        arrival: &Arrival,
        connection: &Connection,
        now: Now,
    ) -> u32 {
        let Some(extra) = &mut self.extra else { return 0 };
        let Extra { exchange: Some(exchange), own, .. } = &mut **extra else { return 0 };
        exchange.hear(segment, data, arrival, connection, now, |plaintext| {
            if let Some(own) = own {
                own.hear(plaintext);
            }
        })
    }

    /// What is between the program and its connection.
    #[inline]
    pub(crate) fn exchange(&self) -> Option<&Exchange> {
        self.extra.as_ref()?.exchange.as_deref()
    }

    /// What is between the program and its connection.
    #[inline]
    pub(crate) fn exchange_mut(&mut self) -> Option<&mut Exchange> {
        self.extra.as_mut()?.exchange.as_deref_mut()
    }

    /// Copies what was sent from a number on, and returns its sum.
    #[inline]
    pub(crate) fn copy(&self, number: SequenceNumber, to: &mut [u8], buffers: &Buffers) -> u16 {
        let (buffer, start) = self.sending;
        if number.is_before(start) {
            return self.copy_across(number, to, buffers);
        }
        buffers.get(buffer).copy(number.0.wrapping_sub(start.0), to)
    }

    #[cold]
    fn copy_across(&self, number: SequenceNumber, to: &mut [u8], buffers: &Buffers) -> u16 {
        if let Some(exchange) = self.exchange() {
            return exchange.copy(number, to);
        }
        let all = || self.extra.iter().flat_map(|it| &it.before).chain([&self.sending]);
        let ends = all().skip(1).map(|(_, start)| Some(*start)).chain([None]);
        for (&(buffer, start), end) in all().zip(ends) {
            let from = number.0.wrapping_sub(start.0);
            let bytes = end.map_or(u32::MAX, |end| end.0.wrapping_sub(start.0));
            if number.is_before(start) || from >= bytes {
                continue;
            }
            let length = to.len().min((bytes - from) as usize);
            let (mine, others) = to.split_at_mut(length);
            buffers.get(buffer).copy(from, mine);
            if !others.is_empty() {
                self.copy(number + length as u32, others, buffers);
            }
            break;
        }
        checksum::sum(to)
    }

    /// Remembers that a buffer is sent from a number on.
    fn send(&mut self, buffer: BufferId, connection: &Connection) {
        if connection.backlog() > 0 {
            let before = &mut self.extra.get_or_insert_default().before;
            let unacknowledged = connection.unacknowledged();
            // Of two that follow one another, the first is needed up to where the second begins.
            before.push(self.sending);
            let needed = before.iter().rposition(|(_, start)| !unacknowledged.is_before(*start));
            before.drain(..needed.unwrap_or(0));
        } else if let Some(extra) = &mut self.extra {
            extra.before.clear();
        }
        self.sending = (buffer, connection.queued());
    }

    #[inline]
    pub(crate) fn note_received(&mut self, bytes: u32) {
        self.received += u64::from(bytes);
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

    /// A flow that belongs to it has failed.
    #[cold]
    pub(crate) fn fail_with_other(&mut self) {
        if self.wait != Wait::Over {
            self.wait = Wait::Failed;
        }
    }

    /// The flow that it waited for is over or made, or does not come.
    #[cold]
    pub(crate) const fn go_on(&mut self, has_failed: bool) {
        if matches!(self.wait, Wait::Template | Wait::Arrival) {
            match has_failed {
                true => self.wait = Wait::Failed,
                false => {
                    self.wait = Wait::Nothing;
                    self.place += 1;
                }
            }
        }
    }

    /// The connection has come for which it listens.
    #[cold]
    pub(crate) fn note_arrival(&mut self) {
        if self.wait == Wait::Arrival {
            self.wait = Wait::Template;
        }
    }

    /// It listens at a port, if one was free.
    #[cold]
    pub(crate) fn listens_at(&mut self, port: Option<u16>, program: &Program) {
        let Some(Instruction::Listen { variable, .. }) = program.instruction(self.place) else {
            return;
        };
        match port {
            None => self.wait = Wait::Failed,
            Some(port) => {
                let extra = self.extra.get_or_insert_default();
                *extra.variables.get_mut(variable) = port.into();
                self.wait = Wait::Nothing;
                self.place += 1;
            }
        }
    }

    /// What it waits for that others have.
    #[cold]
    fn wish(&self, program: &Program) -> Progress {
        match (self.wait, program.instruction(self.place)) {
            (Wait::Port, Some(Instruction::Listen { first, last, .. })) => {
                Progress::Wishes(Wish::Port { first, last })
            }
            (Wait::Arrival, _) => Progress::Wishes(Wish::Arrival { group: self.group() }),
            (Wait::Template, instruction) => {
                let port = match instruction {
                    Some(Instruction::AwaitTemplate) => return Progress::Wishes(Wish::End),
                    Some(Instruction::StartTemplate { .. }) => {
                        self.extra.as_ref().and_then(|it| it.port)
                    }
                    _ => None,
                };
                Progress::Wishes(Wish::Flow { group: self.group(), port })
            }
            _ => self.progress(),
        }
    }

    /// What was waited for failed, or nothing more comes; returns whether the program goes on
    /// all the same.
    #[cold]
    fn bears(&mut self, program: &Program, outside: &mut Outside<'_>) -> bool {
        let cause = match (self.wait, program.instruction(self.place)) {
            (Wait::Failed, Some(Instruction::ExecTemplate)) => return true,
            (Wait::Failed, Some(Instruction::Listen { .. })) => Cause::NoPort,
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
        outside.findings.note(place, cause, &Taken::default(), Wanted::Nothing);
    }

    /// Of which group the next template is.
    #[cold]
    fn group(&self) -> Option<u16> {
        self.extra.as_ref().and_then(|it| it.variables.group)
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

    /// Whether what is between the program and its connection has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.exchange().is_some_and(Exchange::has_failed)
    }

    /// Whether something else came than the program expects.
    pub(crate) fn has_program_failed(&self) -> bool {
        let has_failed = self.extra.as_ref().is_some_and(|it| it.has_failed);
        has_failed || self.own().is_some_and(Own::has_failed)
    }

    /// Whether what is between the program and its connection was ended by both sides.
    pub(crate) fn has_ended(&self) -> bool {
        self.exchange().is_some_and(Exchange::has_ended)
    }

    /// Whether the peer says no more.
    #[inline]
    fn is_peer_done(&self, connection: &Connection) -> bool {
        connection.is_peer_done() || self.exchange().is_some_and(Exchange::is_peer_done)
    }

    #[inline]
    fn has_unsaid(&self) -> bool {
        self.exchange().is_some_and(Exchange::has_unsaid)
    }

    // A call, of which there are several for each segment, costs as much as all that it looks at.
    #[inline(always)]
    fn is_waiting(&self, program: &Program, connection: &Connection, now: Now) -> bool {
        match self.wait {
            Wait::Nothing => false,
            Wait::Establishment => !connection.is_established(),
            Wait::Acknowledgement => connection.backlog() > 0 || self.has_unsaid(),
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
            Wait::Delay => now.millis.wrapping_sub(self.until).cast_signed() < 0,
            Wait::PeerClose | Wait::Arrival => !self.is_peer_done(connection),
            Wait::Template | Wait::Port | Wait::Over => true,
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
        let progress = self.follow(program, connection, outside);
        if self.exchange().is_some() {
            self.move_bytes(connection, outside);
        }
        progress
    }

    /// What has come for what is between the program and its connection is noted; returns whether
    /// the program has begun, as it does once a session is open.
    #[cold]
    fn is_begun(&mut self, connection: &mut Connection, outside: &mut Outside<'_>) -> bool {
        self.move_bytes(connection, outside);
        let is_handshaking = self.exchange().is_some_and(Exchange::is_handshaking);
        self.wait != Wait::Nothing || !is_handshaking
    }

    /// Takes of what has arrived what is to be taken; returns whether the program can go on.
    #[cold]
    fn attend(
        &mut self,
        program: &Program,
        connection: &mut Connection,
        outside: &mut Outside<'_>,
    ) -> bool {
        let (wait, place) = (self.wait, self.place);
        let (Some(own), Some(contents)) = (self.own_mut(), program.contents()) else { return true };
        let can_go_on = match (wait, program.instruction(place)) {
            (Wait::Over, _) => true,
            (Wait::Taking, Some(Instruction::Take { rule, .. })) => {
                own.go_on(place, contents, rule, outside)
            }
            _ => own.has_room(place, outside),
        };
        if !can_go_on {
            self.end(connection, outside);
            self.move_bytes(connection, outside);
        }
        can_go_on
    }

    /// Moves bytes between program, session and connection.
    #[cold]
    fn move_bytes(&mut self, connection: &mut Connection, outside: &mut Outside<'_>) {
        let Outside { buffers, counters, sessions, now, .. } = outside;
        let Some(exchange) = self.exchange_mut() else { return };
        let can_go_on = exchange.go_on(connection, buffers, counters, sessions, *now);
        if !can_go_on && self.wait != Wait::Over {
            self.end(connection, outside);
        }
        // So that all that is sent is before it, and copied from the exchange.
        self.sending.1 = connection.queued();
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
                self.wait = Wait::Nothing;
                self.place += 1;
            }
            let Some(instruction) = program.instruction(self.place) else {
                return self.end(connection, outside);
            };
            self.begin(instruction, program, connection, outside);
            if self.is_waiting(program, connection, now) {
                return match self.wait {
                    Wait::Template | Wait::Port | Wait::Arrival => self.wish(program),
                    _ => self.progress(),
                };
            }
        }
        // As good as a wait of one tick.
        Progress::WaitsUntil(now.millis.wrapping_add(1))
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

    /// Whether all is there that was to be taken, now that it is or nothing more comes.
    #[cold]
    fn has_all(&mut self, program: &Program, outside: &mut Outside<'_>) -> bool {
        let place = self.place;
        let Some(own) = self.own_mut() else { return true };
        let is_awaited =
            matches!(program.instruction(place), Some(Instruction::Take { is_awaited: true, .. }));
        let has_all = own.has_taken() || own.end_taking(place, is_awaited, outside);
        let waiting = own.waiting();
        self.received = waiting;
        has_all
    }

    fn end(&mut self, connection: &mut Connection, outside: &mut Outside<'_>) -> Progress {
        if let Some(own) = self.own_mut() {
            own.forget();
        }
        if let Some(exchange) = self.exchange_mut() {
            exchange.close(connection, outside.counters);
        }
        connection.close();
        self.wait = Wait::Over;
        Progress::Waits
    }

    fn progress(&self) -> Progress {
        match self.wait {
            Wait::Delay => Progress::WaitsUntil(self.until),
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
                    Some(exchange) => exchange.say(Saying::Buffer(buffer)),
                    None => {
                        self.send(buffer, connection);
                        connection.queue(buffers.get(buffer).size(), counters);
                        // Nothing is waited for behind it, so that FIN can be in its last segment.
                        if !self.waits_for_acknowledgements
                            && program.instruction(self.place + 1).is_none()
                        {
                            connection.close();
                        }
                    }
                }
                self.wait = self.wait_of_sending();
            }
            Instruction::SendBlocking { waits } => {
                self.waits_for_acknowledgements = waits;
                self.place += 1;
            }
            Instruction::Receive { .. } => self.wait = Wait::Data,
            Instruction::Need { .. } => self.wait = Wait::Needed,
            Instruction::ExecTemplate | Instruction::AwaitTemplate => self.wait = Wait::Template,
            Instruction::StartTemplate { port } => {
                self.wait = Wait::Template;
                if !self.finds_port(port, program) {
                    self.fail(Cause::NoPort, outside);
                    self.end(connection, outside);
                }
            }
            Instruction::Listen { .. } => self.wait = Wait::Port,
            Instruction::AcceptTemplate => self.wait = Wait::Arrival,
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
                    self.until = now.millis.wrapping_add(micros.div_ceil(1_000));
                    self.wait = Wait::Delay;
                }
                None => self.compute(instruction, program, connection, outside),
            },
        }
    }

    /// The next flow is at the port that a value says; returns whether it says one.
    #[cold]
    fn finds_port(&mut self, value: u16, program: &Program) -> bool {
        let Some((extra, contents)) = self.extra.as_mut().zip(program.contents()) else {
            return false;
        };
        let own = extra.own.as_ref();
        extra.port = own.and_then(|own| own.port(value, contents, &extra.variables));
        extra.port.is_some()
    }

    const fn wait_of_sending(&self) -> Wait {
        if self.waits_for_acknowledgements { Wait::Acknowledgement } else { Wait::Departure }
    }

    /// What is about bytes of single flows, or takes no time.
    #[cold]
    fn compute(
        &mut self,
        instruction: Instruction,
        program: &Program,
        connection: &mut Connection,
        outside: &mut Outside<'_>,
    ) {
        let Extra { variables, exchange, own, .. } = &mut **self.extra.get_or_insert_default();
        let demand = match (own, program.contents()) {
            (Some(own), Some(contents)) => {
                own.follow(instruction, self.place, contents, variables, outside)
            }
            _ => None,
        };
        match demand {
            None => self.place = compute(instruction, self.place, variables, outside),
            Some(Demand::Nothing) => self.place += 1,
            Some(Demand::GoesOn(there)) => self.place = there,
            Some(Demand::Takes) => self.wait = Wait::Taking,
            Some(Demand::Sends(bytes)) => {
                if let Some(exchange) = exchange {
                    exchange.say(Saying::Own(bytes));
                }
                self.wait = self.wait_of_sending();
            }
            Some(Demand::Fails) => {
                self.end(connection, outside);
            }
        }
    }
}
