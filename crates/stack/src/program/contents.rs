//! What instructions about bytes of single flows refer to.

use alloc::vec::Vec;

use wirestorm_model::program::{Composition, Number, Rule, Value};

use super::Instruction;
use super::check::{Check, Extraction};

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
