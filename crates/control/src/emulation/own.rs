//! From a program's words about bytes of single flows to what instructions refer to.

use wirestorm_plan::emulation::{self, Expected, FlowValue, Received, Step, When};
use wirestorm_stack::program::{
    Check, Composition, Contents, Delimiter, Extraction, Field, Form, Instruction, Number, Part,
    Piece, Rule, TextVariable, Transaction, Value,
};

use super::program::variable;

/// What the instructions of a program refer to, as it is gathered, and what of that is told later.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) contents: Contents,
    /// The names of transactions, by their places.
    pub(super) transactions: Vec<String>,
    /// Whether the program looks at what arrives.
    looks: bool,
}

impl Gathered {
    /// Of a program with these steps; `awaits`: whether it is a client's.
    pub(super) fn of(steps: &[Step], awaits: bool) -> Self {
        let looks = look(steps);
        let contents = Contents {
            looks_at_datagrams: looks && receive_datagrams(steps),
            messages: messages(steps).filter(|_| awaits).unwrap_or(0),
            ..Contents::default()
        };
        Self { contents, transactions: Vec::new(), looks }
    }

    /// Whether the program takes messages of HTTP.
    pub(super) fn takes_http(&self) -> bool {
        self.contents.rules.iter().any(|rule| matches!(rule, Rule::Http | Rule::HttpHead))
    }

    /// Whether the program looks at what arrives.
    pub(super) const fn looks(&self) -> bool {
        self.looks
    }

    /// The instruction of a step; `None` where it is about something else, or too many are.
    /// `is_awaited`: whether it is a failure that what this one receives does not come.
    pub(super) fn instruction(&mut self, step: &Step, is_awaited: bool) -> Option<Instruction> {
        Some(match step {
            Step::SendOwn(it) => Instruction::SendOwn { composition: self.compose(it)? },
            Step::SendOwnDatagram(it) => {
                Instruction::SendOwnDatagram { composition: self.compose(it)? }
            }
            Step::Receive(bytes) if self.looks => self.take(Rule::Count(*bytes), is_awaited)?,
            Step::Need(bytes) if self.looks => self.take(Rule::Count(*bytes), true)?,
            Step::ReceiveWhole(received) => self.take(rule(received)?, is_awaited)?,
            Step::NeedWhole(received) => self.take(rule(received)?, true)?,
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
                let port = push(ports, value(*port)?)?;
                let own_port = match client_port {
                    None => None,
                    Some(own) => Some(push(ports, value(*own)?)?),
                };
                Instruction::StartTemplate { port, own_port }
            }
            Step::Reconnect { follows_http: true } => {
                Instruction::Reconnect { unless: Some(self.check(&Expected::KeepsConnection)?) }
            }
            Step::Extract { text, part } => {
                let part = match part {
                    emulation::Part::Group(pattern, group) => Part::Group(pattern.clone(), *group),
                    emulation::Part::Between(before, behind) => {
                        Part::Between(before.as_slice().into(), behind.as_slice().into())
                    }
                    emulation::Part::At { offset, length } => {
                        Part::At { offset: *offset, length: *length }
                    }
                };
                let extraction = Extraction { text: TextVariable::new(*text)?, part };
                let extraction = push(&mut self.contents.extractions, extraction)?;
                Instruction::Extract { extraction }
            }
            Step::SetText { text, composition } => Instruction::SetText {
                text: TextVariable::new(*text)?,
                composition: self.compose(composition)?,
            },
            Step::SetNumber { variable: name, number } => {
                let number = match *number {
                    emulation::Number::Counter { start, step, max } => {
                        Number::Counter { start, step, max }
                    }
                    emulation::Number::Random { min, max } => Number::Random { min, max },
                };
                let number = push(&mut self.contents.numbers, number)?;
                Instruction::SetNumber { variable: variable(*name)?, number }
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

    fn compose(&mut self, asked: &emulation::Composition) -> Option<u16> {
        push(&mut self.contents.compositions, composition(asked)?)
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

fn rule(received: &Received) -> Option<Rule> {
    Some(match received {
        Received::Until(bytes) => Rule::Until(Delimiter::new(bytes)?),
        Received::Http => Rule::Http,
        Received::HttpHead => Rule::HttpHead,
        Received::Reply => Rule::Reply,
        Received::Rtsp => Rule::Rtsp,
    })
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
            Step::ReceiveWhole(Received::Http | Received::HttpHead)
            | Step::NeedWhole(Received::Http | Received::HttpHead) => 1,
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

fn composition(asked: &emulation::Composition) -> Option<Composition> {
    let piece = |piece: &emulation::Piece| {
        Some(match piece {
            emulation::Piece::Bytes(bytes) => Piece::Bytes(bytes.as_slice().into()),
            emulation::Piece::Value(of, form) => Piece::Value(value(*of)?, self::form(*form)),
            emulation::Piece::RandomBytes(count) => Piece::RandomBytes(*count),
            emulation::Piece::RandomText(count) => Piece::RandomText(*count),
        })
    };
    let field = |field: &emulation::Field| {
        Some(Field { offset: field.offset, width: field.width, value: value(field.value)? })
    };
    Some(Composition {
        pieces: asked.pieces.iter().map(piece).collect::<Option<_>>()?,
        size: asked.size,
        fill: asked.fill.clone(),
        fields: asked.fields.iter().map(field).collect::<Option<_>>()?,
    })
}

fn value(asked: FlowValue) -> Option<Value> {
    Some(match asked {
        FlowValue::Flow => Value::Flow,
        FlowValue::Client => Value::Client,
        FlowValue::ClientPort => Value::ClientPort,
        FlowValue::Server => Value::Server,
        FlowValue::ServerPort => Value::ServerPort,
        FlowValue::Number(name) => Value::Number(variable(name)?),
        FlowValue::Text(name) => Value::Text(TextVariable::new(name)?),
        FlowValue::Length(name) => Value::Length(TextVariable::new(name)?),
    })
}

const fn form(asked: emulation::Form) -> Form {
    match asked {
        emulation::Form::Plain => Form::Plain,
        emulation::Form::Digits(digits) => Form::Digits(digits),
        emulation::Form::Octets => Form::Octets,
        emulation::Form::Hex => Form::Hex,
        emulation::Form::Bytes => Form::Bytes,
        emulation::Form::Width(width) => Form::Width(width),
    }
}

// What a plan may name has a place.
const _: () = assert!(emulation::TEXTS_MAX == TextVariable::COUNT);
const _: () = assert!(emulation::TRANSACTIONS_MAX == Transaction::COUNT);
