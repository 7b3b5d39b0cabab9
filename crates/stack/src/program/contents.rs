//! Tables that payload instructions refer to.

use alloc::vec::Vec;

use wirestorm_model::program::{Composition, MessageFraming, Number, Value};

use super::Instruction;
use super::check::{Check, Extraction};

/// Tables that the payload instructions of a program refer to, by index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Payloads to send or compare with.
    pub compositions: Vec<Composition>,
    /// Rules for how much data a step consumes.
    pub rules: Vec<MessageFraming>,
    /// Checks of consumed data.
    pub checks: Vec<Check>,
    /// Extractions from consumed data.
    pub extractions: Vec<Extraction>,
    /// Generators of numbers.
    pub numbers: Vec<Number>,
    /// Values that contain a port.
    pub ports: Vec<Value>,
    /// Number of HTTP/1 messages that each flow receives, if known. A flow that fails counts those
    /// that it has not received as missing.
    pub messages: u64,
    /// Whether the program examines received datagrams.
    pub examines_datagrams: bool,
}

impl Contents {
    /// Whether the program examines received data.
    pub(crate) fn examines_data(&self) -> bool {
        self.examines_datagrams || !self.rules.is_empty()
    }

    /// Whether the tables have the entries that an instruction refers to.
    pub(super) fn has(&self, instruction: &Instruction) -> bool {
        let has = |place: u16, count: usize| usize::from(place) < count;
        match instruction {
            Instruction::SendComposed { composition }
            | Instruction::SendComposedDatagram { composition }
            | Instruction::SetText { composition, .. } => {
                has(*composition, self.compositions.len())
            }
            Instruction::Take { rule, .. } => has(*rule, self.rules.len()),
            Instruction::StartTemplate { port, local_port } => {
                let mut ports = [Some(*port), *local_port].into_iter().flatten();
                ports.all(|it| has(it, self.ports.len()))
            }
            Instruction::Expect { check }
            | Instruction::ExpectOr { check, .. }
            | Instruction::JumpIfMatches { check, .. }
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
