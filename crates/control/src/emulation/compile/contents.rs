//! Compiles steps about the payload of each flow, and the tables that their instructions refer to.

use wirestorm_model::program::{
    Composition, Condition, JumpCondition, MessageFraming, Step, TransactionId,
};

use wirestorm_stack::program::{Check, Contents, Extraction, Instruction};

/// Tables that the instructions of a program refer to, filled while its steps are compiled.
#[derive(Debug, Default)]
pub(in crate::emulation) struct ContentTables {
    pub(in crate::emulation) contents: Contents,
    /// Transaction names, by transaction index.
    pub(in crate::emulation) transactions: Vec<String>,
    /// Whether the program examines received data.
    looks: bool,
}

impl ContentTables {
    /// Starts the tables of a program with these steps. `awaits` is true for a client's program.
    pub(in crate::emulation) fn of(steps: &[Step], awaits: bool) -> Self {
        let looks = examine_data(steps);
        let contents = Contents {
            examines_datagrams: looks && receive_datagrams(steps),
            messages: messages(steps).filter(|_| awaits).unwrap_or(0),
            ..Contents::default()
        };
        Self { contents, transactions: Vec::new(), looks }
    }

    /// Whether the program receives HTTP messages.
    pub(in crate::emulation) fn receives_http(&self) -> bool {
        self.contents
            .rules
            .iter()
            .any(|rule| matches!(rule, MessageFraming::Http | MessageFraming::HttpHead))
    }

    /// Whether the program examines received data.
    pub(in crate::emulation) const fn examines_data(&self) -> bool {
        self.looks
    }

    /// Compiles a step about payload. Returns `None` for other steps, or if a table is full.
    /// `is_awaited` is true if the flow fails when the data of this step does not arrive.
    pub(in crate::emulation) fn instruction(
        &mut self,
        step: &Step,
        is_awaited: bool,
    ) -> Option<Instruction> {
        Some(match step {
            Step::SendComposed(it) => Instruction::SendComposed { composition: self.compose(it)? },
            Step::SendComposedDatagram(it) => {
                Instruction::SendComposedDatagram { composition: self.compose(it)? }
            }
            Step::Receive(bytes) if self.looks => {
                self.take(MessageFraming::Count(*bytes), is_awaited)?
            }
            Step::ReceiveOrFail(bytes) if self.looks => {
                self.take(MessageFraming::Count(*bytes), true)?
            }
            Step::ReceiveMessage(received) => self.take(received.clone(), is_awaited)?,
            Step::ReceiveMessageOrFail(received) => self.take(received.clone(), true)?,
            Step::Expect { expected, on_failure: None } => {
                Instruction::Expect { check: self.check(expected)? }
            }
            // `lower` sets the target once all labels are known.
            Step::Expect { expected, on_failure: Some(_) } => {
                Instruction::ExpectOr { check: self.check(expected)?, to: 0 }
            }
            Step::Jump { when: JumpCondition::Received(expected), .. } => {
                Instruction::JumpIfMatches { check: self.check(expected)?, to: 0 }
            }
            Step::StartFlow { port, client_port } => {
                let ports = &mut self.contents.ports;
                let port = push(ports, *port)?;
                let local_port = match client_port {
                    None => None,
                    Some(client_port) => Some(push(ports, *client_port)?),
                };
                Instruction::StartTemplate { port, local_port }
            }
            Step::Reconnect { follows_http: true } => {
                Instruction::Reconnect { unless: Some(self.check(&Condition::KeepsConnection)?) }
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

    fn take(&mut self, rule: MessageFraming, is_awaited: bool) -> Option<Instruction> {
        Some(Instruction::Take {
            rule: push(&mut self.contents.rules, rule)?,
            is_required: is_awaited,
        })
    }

    fn check(&mut self, expected: &Condition) -> Option<u16> {
        let check = match expected {
            Condition::Equals(it) => Check::Is(self.compose(it)?),
            Condition::Contains(it) => Check::Contains(self.compose(it)?),
            Condition::Matches(pattern) => Check::Matches(pattern.clone()),
            Condition::KeepsConnection => Check::KeepsConnection,
            Condition::NotDnsAnswer(number) => Check::NoDnsAnswer(*number),
            Condition::DnsNoError => Check::DnsNoError,
        };
        push(&mut self.contents.checks, check)
    }

    fn compose(&mut self, composition: &Composition) -> Option<u16> {
        push(&mut self.contents.compositions, composition.clone())
    }

    /// Returns the transaction with this name, and adds it if it is new. The plan limits their
    /// number.
    fn transaction(&mut self, name: &str) -> Option<TransactionId> {
        let known = self.transactions.iter().position(|other| other == name);
        TransactionId::new(known.unwrap_or_else(|| {
            self.transactions.push(name.to_owned());
            self.transactions.len() - 1
        }))
    }
}

/// Appends an entry to a table. Returns its index, or `None` if it exceeds 16 bits.
fn push<T>(all: &mut Vec<T>, one: T) -> Option<u16> {
    all.push(one);
    u16::try_from(all.len() - 1).ok()
}

/// Whether any step examines received data.
fn examine_data(steps: &[Step]) -> bool {
    steps.iter().any(|step| match step {
        Step::Repeat { steps, .. } => examine_data(steps),
        Step::ReceiveMessage(_) | Step::ReceiveMessageOrFail(_) => true,
        Step::Expect { .. } | Step::Extract { .. } => true,
        // The program must consume earlier data, to tell it from the TLS handshake.
        Step::StartTls => true,
        Step::Jump { when: JumpCondition::Received(_), .. } => true,
        _ => false,
    })
}

/// Returns the number of HTTP messages that steps receive; `None` if it depends on the flow.
fn messages(steps: &[Step]) -> Option<u64> {
    steps.iter().try_fold(0_u64, |sum, step| {
        let more = match step {
            Step::Repeat { times, steps } => (*times)?.checked_mul(messages(steps)?)?,
            Step::ReceiveMessage(MessageFraming::Http | MessageFraming::HttpHead)
            | Step::ReceiveMessageOrFail(MessageFraming::Http | MessageFraming::HttpHead) => 1,
            Step::Jump { .. } | Step::DecrementAndJump { .. } => return None,
            _ => 0,
        };
        sum.checked_add(more)
    })
}

/// Whether any step receives datagrams.
fn receive_datagrams(steps: &[Step]) -> bool {
    steps.iter().any(|step| match step {
        Step::Repeat { steps, .. } => receive_datagrams(steps),
        Step::ReceiveDatagrams { .. } => true,
        _ => false,
    })
}
