//! Dialogue of both sides of a protocol, line by line, and its compilation into their programs.

use wirestorm_base::time::Duration;
use wirestorm_model::program::Step;
use wirestorm_wire::conversation::Side;

use super::waits::{longest_wait, stay};
use crate::emulation::types::Transport;

/// Action of one side or both.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Line {
    /// Sends `text`, then repeats `fill` up to `size` bytes.
    Says { side: Side, text: Vec<u8>, size: u32, fill: Vec<u8> },
    /// Receives this many bytes from another host; fewer are a failure.
    Hears { side: Side, bytes: u64 },
    /// Waits by this delay step.
    Waits { side: Side, step: Step },
    /// Closes the connection; the other side waits for that.
    Closes(Side),
    /// Starts a transaction of the client.
    Begins(&'static str),
    /// Ends a transaction of the client, after all earlier data of the server has arrived.
    Ends(&'static str),
    /// Repeats lines of both sides; `None`: until the client closes.
    Repeat { times: Option<u64>, lines: Vec<Self> },
}

impl Line {
    /// Returns the lines within a transaction of this name.
    pub(super) fn timed(name: &'static str, lines: impl IntoIterator<Item = Self>) -> Vec<Self> {
        [Self::Begins(name)].into_iter().chain(lines).chain([Self::Ends(name)]).collect()
    }

    /// Creates a line in which the client sends a text.
    pub(super) fn client(text: impl Into<Vec<u8>>) -> Self {
        Self::says(Side::Client, text)
    }

    /// Creates a line in which the server sends a text.
    pub(super) fn server(text: impl Into<Vec<u8>>) -> Self {
        Self::says(Side::Server, text)
    }

    fn says(side: Side, text: impl Into<Vec<u8>>) -> Self {
        let text = text.into();
        let size = text.len() as u32;
        Self::Says { side, text, size, fill: Vec::new() }
    }
}

/// Sides that Wirestorm plays. The data of another host is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::emulation) enum Who {
    /// Client and server.
    Both,
    /// Only the client.
    Client,
    /// Only the server.
    Server,
}

/// Compiles a dialogue into the programs of client and server.
pub(super) fn programs(lines: &[Line], who: Who, transport: Transport) -> [Vec<Step>; 2] {
    let mut programs = [Side::Client, Side::Server].map(|side| {
        let mut own = Own::new(side, who, transport);
        own.follow(lines);
        own.listen();
        own.steps
    });
    if transport == Transport::Udp {
        let longest = programs.iter().map(|steps| longest_wait(steps)).max();
        let stay = stay(longest.unwrap_or(Duration::ZERO), Duration::ZERO);
        programs.iter_mut().for_each(|steps| drop(steps.splice(..0, stay.clone())));
    }
    programs
}

/// Compiler of one side's steps from the lines of both sides.
struct Own {
    side: Side,
    who: Who,
    transport: Transport,
    steps: Vec<Step>,
    /// Bytes (TCP) or datagrams (UDP) of the other side that no step has received yet.
    awaited: u64,
}

impl Own {
    const fn new(side: Side, who: Who, transport: Transport) -> Self {
        Self { side, who, transport, steps: Vec::new(), awaited: 0 }
    }

    fn follow(&mut self, lines: &[Line]) {
        for line in lines {
            match line {
                Line::Says { side, text, size, fill } if *side == self.side => {
                    self.listen();
                    let (text, size, fill) = (text.clone(), *size, fill.clone());
                    self.steps.push(match self.transport {
                        Transport::Tcp => Step::Send { text, size, fill },
                        Transport::Udp => Step::SendDatagram { text, size, fill },
                    });
                }
                Line::Says { size, .. } if self.transport == Transport::Tcp => {
                    self.awaited += u64::from(*size);
                }
                Line::Says { .. } => self.awaited += 1,
                Line::Waits { side, step } if *side == self.side => {
                    self.listen();
                    self.steps.push(step.clone());
                }
                Line::Hears { side, bytes } if *side == self.side => {
                    self.listen();
                    self.steps.push(Step::Need(*bytes));
                }
                Line::Waits { .. } | Line::Hears { .. } => {}
                Line::Begins(name) if self.side == Side::Client => {
                    self.listen();
                    self.steps.push(Step::StartTransaction((*name).to_owned()));
                }
                Line::Ends(name) if self.side == Side::Client => {
                    self.listen();
                    self.steps.push(Step::EndTransaction((*name).to_owned()));
                }
                Line::Begins(_) | Line::Ends(_) => {}
                Line::Closes(side) if *side == self.side => {
                    self.listen();
                    self.close();
                }
                Line::Closes(_) => {
                    self.listen();
                    self.steps.push(Step::WaitForClose);
                }
                Line::Repeat { times, lines } => {
                    self.listen();
                    let mut inner = Self::new(self.side, self.who, self.transport);
                    inner.follow(lines);
                    inner.listen();
                    self.steps.push(Step::Repeat { times: *times, steps: inner.steps });
                }
            }
        }
    }

    /// Makes the last send non-blocking, since the program closes after its last step. So FIN
    /// leaves with the last segment instead of after its acknowledgement, which the peer may delay.
    fn close(&mut self) {
        if let Some(last @ Step::Send { .. }) =
            self.steps.pop_if(|it| matches!(it, Step::Send { .. }))
        {
            self.steps.extend([Step::Blocking(false), last]);
        }
    }

    /// Appends a step that receives the pending data of the other side. If its length is unknown,
    /// the step waits for the first byte only.
    fn listen(&mut self) {
        if self.awaited > 0 {
            self.steps.push(match (self.transport, self.who) {
                (Transport::Udp, _) => Step::ReceiveDatagrams { count: self.awaited, clear: true },
                (Transport::Tcp, _) if self.hears_beginnings() => Step::Receive(1),
                (Transport::Tcp, _) => Step::Receive(self.awaited),
            });
            self.awaited = 0;
        }
    }

    /// Returns whether the length of the other side's data is unknown.
    fn hears_beginnings(&self) -> bool {
        self.transport == Transport::Tcp && self.who != Who::Both
    }
}
