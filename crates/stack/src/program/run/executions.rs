//! What a program waits for that other flows have: those that it starts, and those that it listens
//! for.

use super::{Progress, Run, Wait};
use crate::program::{Instruction, Ports, Program};

/// What a program wants of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// A flow of a template of a group, or of its own; [`Run::go_on`] says that it is over. Where
    /// ports are said, one to the same server there; [`Run::go_on`] says that it is made.
    Flow { group: Option<u16>, ports: Option<Ports> },
    /// The end of that flow; [`Run::go_on`] says when.
    End,
    /// A port to listen at; [`Run::listens_at`] says which.
    Port { first: u16, last: u16 },
    /// The connection that comes there, as one of a template of a group; [`Run::note_arrival`] says
    /// that it has come, [`Run::go_on`] that it is over.
    Arrival { group: Option<u16> },
    /// The session of its template; [`Run::start_session`] begins it.
    Session,
    /// Another connection; [`Run::leave`] has what goes on there.
    Reconnection,
}

impl Run {
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
        if matches!(self.wait, Wait::Template | Wait::Arrival | Wait::Reconnection) {
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
    pub(super) fn wish(&self, program: &Program) -> Progress {
        match (self.wait, program.instruction(self.place)) {
            (Wait::Port, Some(Instruction::Listen { first, last, .. })) => {
                Progress::Wishes(Wish::Port { first, last })
            }
            (Wait::Arrival, _) => Progress::Wishes(Wish::Arrival { group: self.group() }),
            (Wait::Session, _) => Progress::Wishes(Wish::Session),
            (Wait::Reconnection, _) => Progress::Wishes(Wish::Reconnection),
            (Wait::Template, instruction) => {
                let ports = match instruction {
                    Some(Instruction::AwaitTemplate) => return Progress::Wishes(Wish::End),
                    Some(Instruction::StartTemplate { .. }) => {
                        self.extra.as_ref().and_then(|it| it.ports)
                    }
                    _ => None,
                };
                Progress::Wishes(Wish::Flow { group: self.group(), ports })
            }
            _ => self.progress(),
        }
    }

    /// Of which group the next template is.
    #[cold]
    fn group(&self) -> Option<u16> {
        self.extra.as_ref().and_then(|it| it.variables.group)
    }

    /// The next flow is at the ports that values say; returns whether they say some.
    #[cold]
    pub(super) fn finds_ports(
        &mut self,
        server: u16,
        client: Option<u16>,
        program: &Program,
    ) -> bool {
        let Some((extra, contents)) = self.extra.as_mut().zip(program.contents()) else {
            return false;
        };
        let own = extra.own.as_ref();
        extra.ports = own.and_then(|own| own.ports(server, client, contents, &extra.variables));
        extra.ports.is_some()
    }
}
