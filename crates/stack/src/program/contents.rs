//! What instructions about bytes of single flows refer to.

use alloc::vec::Vec;

use super::Instruction;
use super::check::{Check, Extraction};
use super::composition::{Composition, Value};
use super::rule::Rule;

/// What the instructions of a program about bytes of single flows refer to, by places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// What is put together.
    pub compositions: Vec<Composition>,
    /// How much is taken.
    pub rules: Vec<Rule>,
    /// What is expected.
    pub checks: Vec<Check>,
    /// What is extracted.
    pub extractions: Vec<Extraction>,
    /// Numbers.
    pub numbers: Vec<Number>,
    /// Values that say ports.
    pub ports: Vec<Value>,
    /// Messages of HTTP/1 that each flow takes, where that is known: those of a flow that fails are
    /// missing.
    pub messages: u64,
    /// Whether datagrams that arrive are looked at.
    pub looks_at_datagrams: bool,
}

/// A number that differs from flow to flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// All flows of the template count together, modulo 2^64.
    Counter {
        /// The first one.
        start: u64,
        /// From one to the next, not 0.
        step: u64,
        /// Behind the last one that is not greater, the first one comes again.
        max: u64,
    },
    /// Each from `min` to `max` is equally likely.
    Random {
        /// Minimum.
        min: u64,
        /// Maximum.
        max: u64,
    },
}

impl Contents {
    /// Whether what arrives is looked at.
    pub(crate) fn looks(&self) -> bool {
        self.looks_at_datagrams || !self.rules.is_empty()
    }

    /// Whether what an instruction refers to is there.
    pub(super) fn has(&self, instruction: &Instruction) -> bool {
        let has = |place: u16, count: usize| usize::from(place) < count;
        match instruction {
            Instruction::SendOwn { composition }
            | Instruction::SendOwnDatagram { composition }
            | Instruction::SetText { composition, .. } => {
                has(*composition, self.compositions.len())
            }
            Instruction::Take { rule, .. } => has(*rule, self.rules.len()),
            Instruction::StartTemplate { port, own_port } => {
                let mut ports = [Some(*port), *own_port].into_iter().flatten();
                ports.all(|it| has(it, self.ports.len()))
            }
            Instruction::Expect { check }
            | Instruction::ExpectOr { check, .. }
            | Instruction::JumpIfTaken { check, .. }
            | Instruction::Reconnect { unless: Some(check) } => {
                let check = self.checks.get(usize::from(*check));
                check.is_some_and(|check| {
                    let composition = check.composition();
                    composition.is_none_or(|it| has(it, self.compositions.len()))
                })
            }
            Instruction::Extract { extraction } => has(*extraction, self.extractions.len()),
            Instruction::SetNumber { number, .. } => has(*number, self.numbers.len()),
            _ => true,
        }
    }
}
