//! Dialogue of both sides of a protocol, line by line, and its compilation into their programs.

use wirestorm_base::time::Duration;
use wirestorm_model::program::Step;
use wirestorm_wire::conversation::Side;

use super::idle_timeout::{idle_timeout, longest_delay};
use crate::emulation::types::Transport;

/// Action of one side or both.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Line {
    /// Sends `text`, then repeats `fill` up to `size` bytes.
    Sends { side: Side, text: Vec<u8>, size: u32, fill: Vec<u8> },
    /// Receives this many bytes from another host; fewer are a failure.
    Receives { side: Side, bytes: u64 },
    /// Waits by this delay step.
    Waits { side: Side, step: Step },
    /// Closes the connection; the other side waits for that.
    Closes(Side),
    /// Starts a transaction of the client.
    StartsTransaction(&'static str),
    /// Ends a transaction of the client, after all earlier data of the server has arrived.
    EndsTransaction(&'static str),
    /// Repeats lines of both sides; `None`: until the client closes.
    Repeat { times: Option<u64>, lines: Vec<Self> },
}

impl Line {
    /// Returns the lines within a transaction of this name.
    pub(super) fn timed(name: &'static str, lines: impl IntoIterator<Item = Self>) -> Vec<Self> {
        [Self::StartsTransaction(name)]
            .into_iter()
            .chain(lines)
            .chain([Self::EndsTransaction(name)])
            .collect()
    }

    /// Creates a line in which the client sends a text.
    pub(super) fn client(text: impl Into<Vec<u8>>) -> Self {
        Self::sends(Side::Client, text)
    }

    /// Creates a line in which the server sends a text.
    pub(super) fn server(text: impl Into<Vec<u8>>) -> Self {
        Self::sends(Side::Server, text)
    }

    fn sends(side: Side, text: impl Into<Vec<u8>>) -> Self {
        let text = text.into();
        let size = text.len() as u32;
        Self::Sends { side, text, size, fill: Vec::new() }
    }
}

/// Sides that Wirestorm plays. The data of another host is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::emulation) enum PlayedSides {
    /// Client and server.
    Both,
    /// Only the client.
    Client,
    /// Only the server.
    Server,
}

/// Compiles a dialogue into the programs of client and server.
pub(super) fn programs(lines: &[Line], who: PlayedSides, transport: Transport) -> [Vec<Step>; 2] {
    let mut programs = [Side::Client, Side::Server].map(|side| {
        let mut compiler = SideCompiler::new(side, who, transport);
        compiler.compile(lines);
        compiler.receive_pending();
        compiler.steps
    });
    if transport == Transport::Udp {
        let longest = programs.iter().map(|steps| longest_delay(steps)).max();
        let stay = idle_timeout(longest.unwrap_or(Duration::ZERO), Duration::ZERO);
        programs.iter_mut().for_each(|steps| drop(steps.splice(..0, stay.clone())));
    }
    programs
}

/// Compiler of one side's steps from the lines of both sides.
struct SideCompiler {
    side: Side,
    who: PlayedSides,
    transport: Transport,
    steps: Vec<Step>,
    /// Bytes (TCP) or datagrams (UDP) of the other side that no step has received yet.
    pending: u64,
}

impl SideCompiler {
    const fn new(side: Side, who: PlayedSides, transport: Transport) -> Self {
        Self { side, who, transport, steps: Vec::new(), pending: 0 }
    }

    fn compile(&mut self, lines: &[Line]) {
        for line in lines {
            match line {
                Line::Sends { side, text, size, fill } if *side == self.side => {
                    self.receive_pending();
                    let (text, size, fill) = (text.clone(), *size, fill.clone());
                    self.steps.push(match self.transport {
                        Transport::Tcp => Step::Send { text, size, fill },
                        Transport::Udp => Step::SendDatagram { text, size, fill },
                    });
                }
                Line::Sends { size, .. } if self.transport == Transport::Tcp => {
                    self.pending += u64::from(*size);
                }
                Line::Sends { .. } => self.pending += 1,
                Line::Waits { side, step } if *side == self.side => {
                    self.receive_pending();
                    self.steps.push(step.clone());
                }
                Line::Receives { side, bytes } if *side == self.side => {
                    self.receive_pending();
                    self.steps.push(Step::ReceiveOrFail(*bytes));
                }
                Line::Waits { .. } | Line::Receives { .. } => {}
                Line::StartsTransaction(name) if self.side == Side::Client => {
                    self.receive_pending();
                    self.steps.push(Step::StartTransaction((*name).to_owned()));
                }
                Line::EndsTransaction(name) if self.side == Side::Client => {
                    self.receive_pending();
                    self.steps.push(Step::EndTransaction((*name).to_owned()));
                }
                Line::StartsTransaction(_) | Line::EndsTransaction(_) => {}
                Line::Closes(side) if *side == self.side => {
                    self.receive_pending();
                    self.close();
                }
                Line::Closes(_) => {
                    self.receive_pending();
                    self.steps.push(Step::WaitForClose);
                }
                Line::Repeat { times, lines } => {
                    self.receive_pending();
                    let mut inner = Self::new(self.side, self.who, self.transport);
                    inner.compile(lines);
                    inner.receive_pending();
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
            self.steps.extend([Step::SetBlocking(false), last]);
        }
    }

    /// Appends a step that receives the pending data of the other side. If its length is unknown,
    /// the step waits for the first byte only.
    fn receive_pending(&mut self) {
        if self.pending > 0 {
            self.steps.push(match (self.transport, self.who) {
                (Transport::Udp, _) => Step::ReceiveDatagrams { count: self.pending, clear: true },
                (Transport::Tcp, _) if self.has_unknown_length() => Step::Receive(1),
                (Transport::Tcp, _) => Step::Receive(self.pending),
            });
            self.pending = 0;
        }
    }

    /// Returns whether the length of the other side's data is unknown.
    fn has_unknown_length(&self) -> bool {
        self.transport == Transport::Tcp && self.who != PlayedSides::Both
    }
}
