//! What is between a program and its connection, where anything is, and what its flow has of its
//! own.

use alloc::boxed::Box;

use super::{Extra, Outside, Progress, Run, STEPS_MAX, Wait};
use crate::content::{Exchange, Saying, Session};
use crate::program::compute::compute;
use crate::program::own::{Demand, Own};
use crate::program::{Ends, Instruction, Program};
use crate::tcp::arrival::Arrival;
use crate::tcp::connection::{Connection, Now};
use crate::tcp::segment::Segment;

impl Run {
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

    /// Keeps what arrives, and waits for [`Self::begin_accepted`].
    #[cold]
    pub(crate) fn gather(&mut self, own: Own) {
        self.own_by(own);
        self.hold();
    }

    /// Bytes that were gathered.
    #[cold]
    pub(crate) fn gathered(&self) -> u64 {
        self.own().map_or(0, Own::waiting)
    }

    /// Keeps none of them, and none that come.
    #[cold]
    pub(crate) fn stop_gathering(&mut self) {
        if let Some(own) = self.own_mut() {
            own.stop_listening();
        }
    }

    /// Begins its program with a session, for which all is that was gathered. Without one that was
    /// said to the program.
    #[cold]
    pub(crate) fn begin_accepted(&mut self, session: Option<Box<dyn Session>>, now: Now) {
        if let Some(session) = session {
            self.begin_session(session, now);
        } else if let Some(extra) = &mut self.extra {
            extra.exchange = None;
        }
        // Programs of flows that are accepted have nothing of their own.
        if let Some(extra) = &mut self.extra {
            extra.own = None;
        }
        self.begin_anew();
    }

    /// What goes on over another connection, between these ends: the program with all that it
    /// remembers, and the session that `fresh` begins. Here what is left of its connection stays.
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
        moved.own = extra.own.take();
        if let Some(own) = &mut moved.own {
            own.connect_anew(ends);
        }
        if moved.is_unused() {
            other.extra = None;
        }
        other
    }

    /// The session begins for which the program waits, if there is any.
    #[cold]
    pub(crate) fn start_session(&mut self, session: Option<Box<dyn Session>>, now: Now) {
        if self.wait == Wait::Session {
            self.wait = Wait::Handshake;
            if let Some(session) = session {
                self.begin_session(session, now);
            }
        }
    }

    /// Puts a session where bytes were as they are, and hands it what was not taken of them.
    #[cold]
    fn begin_session(&mut self, session: Box<dyn Session>, now: Now) {
        let Some(extra) = &mut self.extra else { return };
        let Extra { exchange: Some(exchange), own: Some(own), .. } = &mut **extra else { return };
        let came = own.begin_session();
        let said = exchange.start(session, &came, now, |plaintext| own.hear(plaintext, now.micros));
        self.received = said.into();
    }

    pub(super) fn own(&self) -> Option<&Own> {
        self.extra.as_ref()?.own.as_deref()
    }

    pub(super) fn own_mut(&mut self) -> Option<&mut Own> {
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
                own.hear(plaintext, now.micros);
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

    /// Whether what is between the program and its connection has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.exchange().is_some_and(Exchange::has_failed)
    }

    /// Whether it has failed while the connection was there.
    pub(crate) fn has_failed_first(&self) -> bool {
        self.exchange().is_some_and(Exchange::has_failed_first)
    }

    /// Whether something else came than the program expects.
    pub(crate) fn has_program_failed(&self) -> bool {
        let has_failed = self.extra.as_ref().is_some_and(|it| it.has_failed);
        has_failed || self.own().is_some_and(Own::has_failed)
    }

    /// Messages of HTTP/1 that do not come any more, as it fails.
    #[cold]
    pub(crate) fn take_missing(&mut self) -> u64 {
        self.own_mut().map_or(0, Own::take_missing)
    }

    /// Whether what is between the program and its connection was ended by both sides.
    pub(crate) fn has_ended(&self) -> bool {
        self.exchange().is_some_and(Exchange::has_ended)
    }

    /// Whether the peer says no more.
    #[inline]
    pub(super) fn is_peer_done(&self, connection: &Connection) -> bool {
        connection.is_peer_done() || self.exchange().is_some_and(Exchange::is_peer_done)
    }

    #[inline]
    pub(super) fn has_unsaid(&self) -> bool {
        self.exchange().is_some_and(Exchange::has_unsaid)
    }

    /// What has come for what is between the program and its connection is noted; returns whether
    /// the program has begun, as it does once a session is open.
    #[cold]
    pub(super) fn is_begun(
        &mut self,
        connection: &mut Connection,
        outside: &mut Outside<'_>,
    ) -> bool {
        self.move_bytes(connection, outside);
        let is_handshaking = self.exchange().is_some_and(Exchange::is_handshaking);
        self.wait != Wait::Nothing || !is_handshaking
    }

    /// Takes of what has arrived what is to be taken; returns whether the program can go on.
    #[cold]
    pub(super) fn attend(
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
    pub(super) fn move_bytes(&mut self, connection: &mut Connection, outside: &mut Outside<'_>) {
        let Outside { buffers, counters, sessions, now, .. } = outside;
        let Some(exchange) = self.exchange_mut() else { return };
        let can_go_on = exchange.go_on(connection, buffers, counters, sessions, *now);
        if !can_go_on && self.wait != Wait::Over {
            self.end(connection, outside);
        }
        // So that all that is sent is before it, and copied from the exchange.
        self.sending.1 = connection.queued();
    }

    /// Goes on before what was said has left, as long as more may leave with it: so the answers to
    /// requests that came together share segments.
    #[cold]
    pub(super) fn say_more(
        &mut self,
        mut progress: Progress,
        program: &Program,
        connection: &mut Connection,
        outside: &mut Outside<'_>,
    ) -> Progress {
        for _ in 0..STEPS_MAX {
            let takes_more = self.exchange().is_some_and(|it| it.takes_more(connection));
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

    /// Whether the last message fails the check for a connection that goes on.
    #[cold]
    pub(super) fn says_close(&self, keeps: Option<u16>, program: &Program) -> bool {
        let check = keeps.zip(program.contents());
        let check = check.and_then(|(place, it)| it.checks.get(usize::from(place)));
        check.zip(self.own()).is_some_and(|(check, own)| !own.passes(check))
    }

    /// Whether all is there that was to be taken, now that it is or nothing more comes.
    #[cold]
    pub(super) fn has_all(&mut self, program: &Program, outside: &mut Outside<'_>) -> bool {
        let place = self.place;
        let Some(own) = self.own_mut() else { return true };
        let is_awaited =
            matches!(program.instruction(place), Some(Instruction::Take { is_awaited: true, .. }));
        let has_all = own.has_taken() || own.end_taking(place, is_awaited, outside);
        let waiting = own.waiting();
        self.received = waiting;
        has_all
    }

    /// What is about bytes of single flows, or takes no time.
    #[cold]
    pub(super) fn compute(
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
                self.wait = self.wait_of_saying();
            }
            Some(Demand::Fails) => {
                self.end(connection, outside);
            }
        }
    }
}
