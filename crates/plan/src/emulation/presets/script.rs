//! What both sides of a protocol say, line by line, and the programs that follow from it.

use wirestorm_base::time::Duration;
use wirestorm_model::program::Step;
use wirestorm_wire::conversation::Side;

use super::waits::{longest_wait, stay};
use crate::emulation::types::Transport;

/// What one side does.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Line {
    /// Says these bytes, and behind them `fill` again and again until there are `size`.
    Says { side: Side, text: Vec<u8>, size: u32, fill: Vec<u8> },
    /// Waits for so many bytes, which nobody of ours says; fewer are a failure.
    Hears { side: Side, bytes: u64 },
    /// Waits before it goes on, by this step.
    Waits { side: Side, step: Step },
    /// Closes a connection; the other side waits for that.
    Closes(Side),
    /// A transaction of the client's begins.
    Begins(&'static str),
    /// It ends, with all that the server has said by then.
    Ends(&'static str),
    /// Both do so again and again; `None`: until the client closes.
    Repeat { times: Option<u64>, lines: Vec<Self> },
}

impl Line {
    /// Lines that are a transaction of this name.
    pub(super) fn timed(name: &'static str, lines: impl IntoIterator<Item = Self>) -> Vec<Self> {
        [Self::Begins(name)].into_iter().chain(lines).chain([Self::Ends(name)]).collect()
    }

    /// A text of the client's.
    pub(super) fn client(text: impl Into<Vec<u8>>) -> Self {
        Self::says(Side::Client, text)
    }

    /// A text of the server's.
    pub(super) fn server(text: impl Into<Vec<u8>>) -> Self {
        Self::says(Side::Server, text)
    }

    fn says(side: Side, text: impl Into<Vec<u8>>) -> Self {
        let text = text.into();
        let size = text.len() as u32;
        Self::Says { side, text, size, fill: Vec::new() }
    }
}

/// Whose programs are needed: where one side is somebody else, what it says is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::emulation) enum Who {
    /// Both sides are ours.
    Both,
    /// The client alone is.
    Client,
    /// The server alone is.
    Server,
}

/// The programs of client and server.
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

/// The steps of one side, while the lines of both go by.
struct Own {
    side: Side,
    who: Who,
    transport: Transport,
    steps: Vec<Step>,
    /// Bytes or datagrams of the other side that were not waited for yet.
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

    /// Behind its last step a program closes. Where it says something before that, it does not wait
    /// until all of it is acknowledged, which the other side may delay: FIN is in the last segment.
    fn close(&mut self) {
        if let Some(last @ Step::Send { .. }) =
            self.steps.pop_if(|it| matches!(it, Step::Send { .. }))
        {
            self.steps.extend([Step::Blocking(false), last]);
        }
    }

    /// Waits for what the other side says: all of it, or, where nobody knows how much that is, the
    /// beginning.
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

    /// Whether it is not known how much the other side says.
    fn hears_beginnings(&self) -> bool {
        self.transport == Transport::Tcp && self.who != Who::Both
    }
}
