//! Waits for other flows: those that a program starts, and those that it listens for.

use super::{Progress, Run, Wait};
use crate::program::{Instruction, Ports, Program};

/// Request of a program that needs other flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowRequest {
    /// A flow of a template of `group`, or of its own template. [`Run::go_on`] reports its end.
    /// With `ports`, the flow goes to the same server there, and [`Run::go_on`] reports its start.
    Flow { group: Option<u16>, ports: Option<Ports> },
    /// The end of that flow, which [`Run::go_on`] reports.
    End,
    /// A port to listen at, which [`Run::listens_at`] reports.
    Port { first: u16, last: u16 },
    /// The connection to that port, with a template of `group`. [`Run::note_arrival`] reports its
    /// arrival, [`Run::go_on`] its end.
    Arrival { group: Option<u16> },
    /// The session of the template, which [`Run::start_session`] starts.
    Session,
    /// A new connection; [`Run::leave`] moves the program to it.
    Reconnection,
}

impl Run {
    /// Fails the program because a child flow failed.
    #[cold]
    pub(crate) fn fail_with_child(&mut self) {
        if self.wait != Wait::Over {
            self.wait = Wait::Failed;
        }
    }

    /// Reports the end or the start of the flow that the program waits for, or its failure.
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

    /// Reports the arrival of the connection that the program listens for.
    #[cold]
    pub(crate) fn note_arrival(&mut self) {
        if self.wait == Wait::Arrival {
            self.wait = Wait::Template;
        }
    }

    /// Reports the port at which the flow listens, or that none was free.
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

    /// Returns the request that the program waits for.
    #[cold]
    pub(super) fn request_progress(&self, program: &Program) -> Progress {
        match (self.wait, program.instruction(self.place)) {
            (Wait::Port, Some(Instruction::Listen { first, last, .. })) => {
                Progress::Requests(FlowRequest::Port { first, last })
            }
            (Wait::Arrival, _) => Progress::Requests(FlowRequest::Arrival { group: self.group() }),
            (Wait::Session, _) => Progress::Requests(FlowRequest::Session),
            (Wait::Reconnection, _) => Progress::Requests(FlowRequest::Reconnection),
            (Wait::Template, instruction) => {
                let ports = match instruction {
                    Some(Instruction::AwaitTemplate) => {
                        return Progress::Requests(FlowRequest::End);
                    }
                    Some(Instruction::StartTemplate { .. }) => {
                        self.extra.as_ref().and_then(|it| it.ports)
                    }
                    _ => None,
                };
                Progress::Requests(FlowRequest::Flow { group: self.group(), ports })
            }
            _ => self.progress(),
        }
    }

    /// Group of the next template.
    #[cold]
    fn group(&self) -> Option<u16> {
        self.extra.as_ref().and_then(|it| it.variables.group)
    }

    /// Reads the ports of the next flow from values; returns whether they are valid.
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
        let payload = extra.payload.as_ref();
        extra.ports =
            payload.and_then(|payload| payload.ports(server, client, contents, &extra.variables));
        extra.ports.is_some()
    }
}
