//! Compiles the steps of a program to instructions.

use std::collections::BTreeMap;

use wirestorm_base::time::Duration;
use wirestorm_model::program::{
    Condition, CountAmount, JumpCondition, Label, MessagePart, Step, Variable,
};

use wirestorm_stack::program::{Buffer, Buffers, Contents, Instruction};

use super::contents::ContentTables;
use crate::emulation::observe::findings::{ProgramNames, StepLocation};

/// Compiled program.
#[derive(Debug)]
pub(in crate::emulation) struct CompiledProgram {
    pub(in crate::emulation) instructions: Vec<Instruction>,
    pub(in crate::emulation) contents: Contents,
    /// Names and plan paths, for reports.
    pub(in crate::emulation) names: ProgramNames,
}

/// Compiles steps. `groups` are the groups of the plan. With `awaits`, a flow fails if the peer
/// closes before the data of a check arrives. A jump to a target above 16 bits leads beyond the
/// end of the program.
pub(in crate::emulation) fn compile(
    steps: &[Step],
    groups: &[&str],
    awaits: bool,
    buffers: &mut Buffers,
) -> CompiledProgram {
    let mut compiler = ProgramCompiler {
        awaits,
        gathered: ContentTables::of(steps, awaits),
        locations: BTreeMap::new(),
        groups,
        buffers,
        instructions: Vec::new(),
        labels: BTreeMap::new(),
        jumps: Vec::new(),
    };
    compiler.lower(steps, 0, "program");
    let ProgramCompiler { mut instructions, labels, jumps, gathered, locations, .. } = compiler;
    for (place, label) in jumps {
        let target = labels.get(&label).copied().unwrap_or(u16::MAX);
        if let Instruction::Jump { to }
        | Instruction::JumpIf { to, .. }
        | Instruction::JumpIfMatches { to, .. }
        | Instruction::ExpectOr { to, .. }
        | Instruction::JumpWithin { to, .. }
        | Instruction::DecrementAndJump { to, .. } = &mut instructions[place]
        {
            *to = target;
        }
    }
    let takes_http = gathered.receives_http();
    let ContentTables { contents, transactions, .. } = gathered;
    CompiledProgram {
        instructions,
        contents,
        names: ProgramNames { transactions, steps: locations, takes_http },
    }
}

/// State of a compilation.
struct ProgramCompiler<'a> {
    groups: &'a [&'a str],
    awaits: bool,
    buffers: &'a mut Buffers,
    gathered: ContentTables,
    /// Steps that may fail, by instruction index.
    locations: BTreeMap<u16, StepLocation>,
    instructions: Vec<Instruction>,
    /// Instruction index of each label.
    labels: BTreeMap<Label, u16>,
    /// Indices of jumps, and their target labels.
    jumps: Vec<(usize, Label)>,
}

impl ProgramCompiler<'_> {
    /// Appends the instructions of steps. `depth` is the number of enclosing loops, `path` the path
    /// of the steps in the plan.
    fn lower(&mut self, steps: &[Step], depth: usize, path: &str) {
        for (place, step) in steps.iter().enumerate() {
            let next = steps.get(place + 1);
            let is_checked = matches!(
                next,
                Some(
                    Step::Expect { .. }
                        | Step::Extract { .. }
                        | Step::Jump { when: JumpCondition::Received(_), .. }
                )
            );
            let is_awaited = self.awaits && is_checked;
            let instruction = self.gathered.instruction(step, is_awaited);
            // The peer may send more than the buffer keeps at any step.
            if instruction.is_some() || self.gathered.examines_data() || may_fail(step) {
                self.locations
                    .insert(self.next_index(), step_location(step, &format!("{path}[{place}]")));
            }
            if let Some(instruction) = instruction {
                if let Step::Jump { to, .. } | Step::Expect { on_failure: Some(to), .. } = step {
                    self.jumps.push((self.instructions.len(), *to));
                }
                self.instructions.push(instruction);
                continue;
            }
            match step {
                Step::Label(label) => {
                    let here = self.next_index();
                    self.labels.insert(*label, here);
                }
                Step::Repeat { times, steps } => {
                    let path = format!("{path}[{place}].repeat.steps");
                    self.repeat(*times, steps, depth, &path);
                }
                Step::Jump { to, .. } | Step::DecrementAndJump { to, .. } => {
                    self.jumps.push((self.instructions.len(), *to));
                    self.instructions.extend(control_instruction(step));
                }
                Step::Send { text, size, fill } => {
                    for piece in Buffer::in_pieces(text, *size, fill) {
                        let buffer = self.buffers.push(piece);
                        self.instructions.push(Instruction::Send { buffer });
                    }
                }
                Step::SendDatagram { text, size, fill } => {
                    let buffer = self.buffers.push(Buffer::new(text, *size, fill));
                    self.instructions.push(Instruction::SendDatagram { buffer });
                }
                Step::SelectGroup(name) => {
                    let group = self.groups.iter().position(|group| group == name);
                    // The plan has checked the name, and limits the number of groups.
                    let group = group.and_then(|group| u16::try_from(group).ok());
                    self.instructions.extend(group.map(|group| Instruction::SetTemplate { group }));
                }
                _ => self
                    .instructions
                    .extend(single_instruction(step).or_else(|| control_instruction(step))),
            }
        }
    }

    /// Appends a loop: counted with `times`, endless without.
    fn repeat(&mut self, times: Option<u64>, steps: &[Step], depth: usize, path: &str) {
        // The plan limits the depth of loops to the number of loop variables.
        let counter = times.and_then(|times| Some((Variable::new(depth)?, times)));
        if let Some((variable, value)) = counter {
            self.instructions.push(Instruction::Set { variable, value });
        }
        let to = self.next_index();
        self.lower(steps, depth + 1, path);
        self.instructions.push(match counter {
            Some((variable, _)) => Instruction::DecrementAndJump { variable, to },
            None => Instruction::Jump { to },
        });
    }

    /// Returns the index of the next instruction, at most `u16::MAX`. A program of that length is
    /// refused later.
    fn next_index(&self) -> u16 {
        u16::try_from(self.instructions.len()).unwrap_or(u16::MAX)
    }
}

/// Whether a flow may fail at a step without a check of data.
const fn may_fail(step: &Step) -> bool {
    matches!(
        step,
        Step::ReceiveOrFail(_)
            | Step::Listen { .. }
            | Step::AcceptFlow
            | Step::Reconnect { .. }
            | Step::FailIfClosed
    )
}

/// Returns the path and pattern of a step, for reports. `path` is the path of the step.
fn step_location(step: &Step, path: &str) -> StepLocation {
    let (field, pattern) = match step {
        Step::SendComposed(_) => (".send", None),
        Step::SendComposedDatagram(_) => (".send_datagram", None),
        Step::Receive(_) | Step::ReceiveOrFail(_) => (".receive", None),
        Step::ReceiveMessage(_) | Step::ReceiveMessageOrFail(_) => (".receive", None),
        Step::StartFlow { .. } => (".start_flow", None),
        Step::Listen { .. } => (".listen", None),
        Step::Expect { expected: Condition::Matches(pattern), .. } => (".expect", Some(pattern)),
        Step::Expect { .. } => (".expect", None),
        Step::Extract { part: MessagePart::Group(pattern, _), .. } => (".extract", Some(pattern)),
        Step::Extract { .. } => (".extract", None),
        Step::SetText { .. } | Step::SetNumber { .. } => (".set", None),
        _ => ("", None),
    };
    let pattern = pattern.map(|pattern| pattern.as_str().to_owned());
    StepLocation { path: format!("{path}{field}"), pattern }
}

/// Compiles a step that is a single instruction without a jump or variable.
fn single_instruction(step: &Step) -> Option<Instruction> {
    Some(match *step {
        Step::Receive(bytes) => Instruction::Receive { bytes, clear: true },
        Step::ReceiveTotal(bytes) => Instruction::Receive { bytes, clear: false },
        Step::Connect => Instruction::Connect,
        Step::ReceiveOrFail(bytes) => Instruction::Need { bytes },
        Step::RunFlow => Instruction::ExecTemplate,
        Step::WaitFlow => Instruction::AwaitTemplate,
        Step::AcceptFlow => Instruction::AcceptTemplate,
        Step::ReceiveDatagrams { count, clear } => Instruction::ReceiveDatagrams { count, clear },
        Step::SetIdleTimeout { time, receive_only } => {
            Instruction::SetIdle { millis: millis(time), receive_only }
        }
        Step::Delay { min, max } if min == max => Instruction::Delay { micros: micros(min) },
        Step::Delay { min, max } => {
            Instruction::DelayUniform { min: micros(min), max: micros(max) }
        }
        Step::DelaySinceReceived { min, max } => {
            Instruction::DelaySinceRead { min: micros(min), max: micros(max) }
        }
        Step::RandomDelay { mean, stddev: None } => {
            Instruction::DelayExponential { mean: micros(mean) }
        }
        Step::RandomDelay { mean, stddev: Some(deviation) } => {
            Instruction::DelayNormal { mean: micros(mean), deviation: micros(deviation) }
        }
        Step::StartTls => Instruction::StartSession,
        Step::Reconnect { .. } => Instruction::Reconnect { unless: None },
        Step::FailIfClosed => Instruction::FailIfClosed,
        Step::WaitForClose => Instruction::WaitForPeerClose,
        Step::Reset => Instruction::Reset,
        Step::SetBlocking(waits) => Instruction::SendBlocking { waits },
        Step::SetTrafficClass(class) => Instruction::SetTrafficClass { class },
        _ => return None,
    })
}

/// Compiles a step that jumps, counts or computes. Jumps lead to instruction 0 until `lower` sets
/// their target.
fn control_instruction(step: &Step) -> Option<Instruction> {
    const UNKNOWN: u16 = 0;
    Some(match *step {
        Step::Jump { ref when, .. } => match *when {
            JumpCondition::Always => Instruction::Jump { to: UNKNOWN },
            JumpCondition::Compares { variable, comparison, value } => {
                Instruction::JumpIf { variable, comparison, value, to: UNKNOWN }
            }
            JumpCondition::Within { span, since } => {
                Instruction::JumpWithin { tick: since, millis: millis(span), to: UNKNOWN }
            }
            // `ContentTables` compiles it, because it needs a check.
            JumpCondition::Received(_) => return None,
        },
        Step::Listen { variable, ref ports } => {
            Instruction::Listen { variable, first: *ports.start(), last: *ports.end() }
        }
        Step::DecrementAndJump { variable, .. } => {
            Instruction::DecrementAndJump { variable, to: UNKNOWN }
        }
        Step::Set { variable, value } => Instruction::Set { variable, value },
        Step::Add { variable, value } => Instruction::Add { variable, value },
        Step::StoreTime(time) => Instruction::SetTick { tick: time },
        Step::AdvanceTime { time, by } => Instruction::AddTick { tick: time, millis: millis(by) },
        Step::AddToCounter { counter, what: CountAmount::Number(value) } => {
            Instruction::Count { statistic: counter, value }
        }
        Step::AddToCounter { counter, what: CountAmount::Since { time, unit } } => {
            Instruction::CountSince { statistic: counter, tick: time, unit }
        }
        _ => return None,
    })
}

fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_nanos() / 1_000).unwrap_or(u32::MAX)
}

fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_nanos() / 1_000_000).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirestorm_model::program::TimeVariable;

    fn lowered(steps: &[Step]) -> Vec<Instruction> {
        compile(steps, &[], true, &mut Buffers::default()).instructions
    }

    #[test]
    fn loops_count_down_and_jump_behind_the_counter_setup() {
        let delay =
            |us| Step::Delay { min: Duration::from_micros(us), max: Duration::from_micros(us) };
        let inner = Step::Repeat { times: Some(3), steps: vec![Step::Receive(1)] };
        let steps = [Step::Repeat { times: None, steps: vec![delay(5), inner] }, Step::Reset];
        let variable = Variable::new(1).unwrap();
        assert_eq!(
            lowered(&steps),
            [
                Instruction::Delay { micros: 5 },
                Instruction::Set { variable, value: 3 },
                Instruction::Receive { bytes: 1, clear: true },
                Instruction::DecrementAndJump { variable, to: 2 },
                Instruction::Jump { to: 0 },
                Instruction::Reset,
            ]
        );
    }

    #[test]
    fn jumps_lead_to_labels_and_named_variables_differ_from_loop_counters() {
        let (again, end) = (Label(0), Label(1));
        let (counter, named) = (Variable::new(0).unwrap(), Variable::named(0));
        let tick = TimeVariable::named(1);
        let steps = [
            Step::Jump {
                to: end,
                when: JumpCondition::Within { span: Duration::from_millis(7), since: tick },
            },
            Step::Label(again),
            Step::Repeat { times: Some(2), steps: vec![Step::ReceiveTotal(9)] },
            Step::DecrementAndJump { variable: named, to: again },
            Step::Label(end),
        ];
        assert_eq!(
            lowered(&steps),
            [
                Instruction::JumpWithin { tick, millis: 7, to: 5 },
                Instruction::Set { variable: counter, value: 2 },
                Instruction::Receive { bytes: 9, clear: false },
                Instruction::DecrementAndJump { variable: counter, to: 2 },
                Instruction::DecrementAndJump { variable: named, to: 1 },
            ]
        );
    }

    /// At most half of the sequence numbers may be in flight (RFC 9293 section 3.4).
    #[test]
    fn data_too_long_for_one_buffer_is_sent_in_pieces() {
        let mut buffers = Buffers::default();
        let step = |size| [Step::Send { text: b"own".to_vec(), size, fill: Vec::new() }];
        for size in [3, Buffer::SIZE_MAX, Buffer::SIZE_MAX + 1, u32::MAX] {
            let sent = |it: &Instruction| match it {
                Instruction::Send { buffer } => *buffer,
                other => panic!("{other:?}"),
            };
            let lowered = compile(&step(size), &[], true, &mut buffers).instructions;
            let sizes = lowered.iter().map(|it| buffers.get(sent(it)).size());
            assert!(sizes.clone().all(|size| size <= Buffer::SIZE_MAX));
            assert_eq!(sizes.map(u64::from).sum::<u64>(), u64::from(size));
        }
    }
}
