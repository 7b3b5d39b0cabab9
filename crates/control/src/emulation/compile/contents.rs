//! From a program's words about bytes of single flows to what instructions refer to.

use wirestorm_model::program::{Composition, Expected, Rule, Step, Transaction, When};

use wirestorm_stack::program::{Check, Contents, Extraction, Instruction};

/// What the instructions of a program refer to, as it is gathered, and what of that is told later.
#[derive(Debug, Default)]
pub(in crate::emulation) struct Gathered {
    pub(in crate::emulation) contents: Contents,
    /// The names of transactions, by their places.
    pub(in crate::emulation) transactions: Vec<String>,
    /// Whether the program looks at what arrives.
    looks: bool,
}

impl Gathered {
    /// Of a program with these steps; `awaits`: whether it is a client's.
    pub(in crate::emulation) fn of(steps: &[Step], awaits: bool) -> Self {
        let looks = look(steps);
        let contents = Contents {
            looks_at_datagrams: looks && receive_datagrams(steps),
            messages: messages(steps).filter(|_| awaits).unwrap_or(0),
            ..Contents::default()
        };
        Self { contents, transactions: Vec::new(), looks }
    }

    /// Whether the program takes messages of HTTP.
    pub(in crate::emulation) fn takes_http(&self) -> bool {
        self.contents.rules.iter().any(|rule| matches!(rule, Rule::Http | Rule::HttpHead))
    }

    /// Whether the program looks at what arrives.
    pub(in crate::emulation) const fn looks(&self) -> bool {
        self.looks
    }

    /// The instruction of a step; `None` where it is about something else, or too many are.
    /// `is_awaited`: whether it is a failure that what this one receives does not come.
    pub(in crate::emulation) fn instruction(
        &mut self,
        step: &Step,
        is_awaited: bool,
    ) -> Option<Instruction> {
        Some(match step {
            Step::SendOwn(it) => Instruction::SendOwn { composition: self.compose(it)? },
            Step::SendOwnDatagram(it) => {
                Instruction::SendOwnDatagram { composition: self.compose(it)? }
            }
            Step::Receive(bytes) if self.looks => self.take(Rule::Count(*bytes), is_awaited)?,
            Step::Need(bytes) if self.looks => self.take(Rule::Count(*bytes), true)?,
            Step::ReceiveWhole(received) => self.take(received.clone(), is_awaited)?,
            Step::NeedWhole(received) => self.take(received.clone(), true)?,
            Step::Expect { expected, otherwise: None } => {
                Instruction::Expect { check: self.check(expected)? }
            }
            // Where those are is known later.
            Step::Expect { expected, otherwise: Some(_) } => {
                Instruction::ExpectOr { check: self.check(expected)?, to: 0 }
            }
            Step::Jump { when: When::Received(expected), .. } => {
                Instruction::JumpIfTaken { check: self.check(expected)?, to: 0 }
            }
            Step::StartFlow { port, client_port } => {
                let ports = &mut self.contents.ports;
                let port = push(ports, *port)?;
                let own_port = match client_port {
                    None => None,
                    Some(own) => Some(push(ports, *own)?),
                };
                Instruction::StartTemplate { port, own_port }
            }
            Step::Reconnect { follows_http: true } => {
                Instruction::Reconnect { unless: Some(self.check(&Expected::KeepsConnection)?) }
            }
            Step::Extract { text, part } => {
                let extraction = Extraction { text: *text, part: part.clone() };
                let extraction = push(&mut self.contents.extractions, extraction)?;
                Instruction::Extract { extraction }
            }
            Step::SetText { text, composition } => {
                Instruction::SetText { text: *text, composition: self.compose(composition)? }
            }
            Step::SetNumber { variable: name, number } => {
                let number = push(&mut self.contents.numbers, *number)?;
                Instruction::SetNumber { variable: *name, number }
            }
            Step::StartTransaction(name) => {
                Instruction::BeginTransaction { transaction: self.transaction(name)? }
            }
            Step::EndTransaction(name) => {
                Instruction::EndTransaction { transaction: self.transaction(name)? }
            }
            _ => return None,
        })
    }

    fn take(&mut self, rule: Rule, is_awaited: bool) -> Option<Instruction> {
        Some(Instruction::Take { rule: push(&mut self.contents.rules, rule)?, is_awaited })
    }

    fn check(&mut self, expected: &Expected) -> Option<u16> {
        let check = match expected {
            Expected::Is(it) => Check::Is(self.compose(it)?),
            Expected::Contains(it) => Check::Contains(self.compose(it)?),
            Expected::Matches(pattern) => Check::Matches(pattern.clone()),
            Expected::KeepsConnection => Check::KeepsConnection,
            Expected::NoDnsAnswer(number) => Check::NoDnsAnswer(*number),
            Expected::DnsNoError => Check::DnsNoError,
        };
        push(&mut self.contents.checks, check)
    }

    fn compose(&mut self, composition: &Composition) -> Option<u16> {
        push(&mut self.contents.compositions, composition.clone())
    }

    /// Plans name no more than there are.
    fn transaction(&mut self, name: &str) -> Option<Transaction> {
        let known = self.transactions.iter().position(|other| other == name);
        Transaction::new(known.unwrap_or_else(|| {
            self.transactions.push(name.to_owned());
            self.transactions.len() - 1
        }))
    }
}

/// Appends something; its place, where there is a number for it.
fn push<T>(all: &mut Vec<T>, one: T) -> Option<u16> {
    all.push(one);
    u16::try_from(all.len() - 1).ok()
}

/// Whether steps look at what arrives.
fn look(steps: &[Step]) -> bool {
    steps.iter().any(|step| match step {
        Step::Repeat { steps, .. } => look(steps),
        Step::ReceiveWhole(_) | Step::NeedWhole(_) => true,
        Step::Expect { .. } | Step::Extract { .. } => true,
        // What arrives before TLS is told from what belongs to it by being taken.
        Step::StartTls => true,
        Step::Jump { when: When::Received(_), .. } => true,
        _ => false,
    })
}

/// How many messages of HTTP steps take; `None` where that depends on what comes.
fn messages(steps: &[Step]) -> Option<u64> {
    steps.iter().try_fold(0_u64, |sum, step| {
        let more = match step {
            Step::Repeat { times, steps } => (*times)?.checked_mul(messages(steps)?)?,
            Step::ReceiveWhole(Rule::Http | Rule::HttpHead)
            | Step::NeedWhole(Rule::Http | Rule::HttpHead) => 1,
            Step::Jump { .. } | Step::DecrementAndJump { .. } => return None,
            _ => 0,
        };
        sum.checked_add(more)
    })
}

fn receive_datagrams(steps: &[Step]) -> bool {
    steps.iter().any(|step| match step {
        Step::Repeat { steps, .. } => receive_datagrams(steps),
        Step::ReceiveDatagrams { .. } => true,
        _ => false,
    })
}
