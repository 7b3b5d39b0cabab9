//! Lowers TRex's field engine to the program of a stream.
//!
//! The frame's number determines the value of a variable. If TRex keeps a variable per core
//! (`split_to_cores` is false), it advances with every `cores`-th frame of the stream. A counter up
//! to `cores`, which is not written, drives it. A cached stream repeats its first frames: its
//! variables become lists of their values in those frames.
//!
//! Intended differences from TRex:
//!
//! - Random values cover their whole range; TRex's do not.
//! - A 64-bit variable can take all values. A masked write uses its low 32 bits.
//! - A variable that another one advances has its initial value in the first frame. This also holds
//!   if the other one does not start at the start of its range.
//! - A masked write in little-endian order changes the bytes of its field, not of the variable's
//!   width.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use serde_json::Value;
use wirestorm_model::stream::{
    Advance, ByteOrder, Checksum, Program, PseudoHeader, Step, Values, Variable, Write, draw,
};

use super::TrexError;
use super::document::{Instruction, Operation, deserialize_at};
use super::template::FRAME_LENGTH_MIN;

/// Maximum entries of a list, here and in TRex.
const LIST_MAX: usize = 65_535;

/// Maximum frames of TRex's cache.
const CACHE_MAX: u32 = 10_000;

/// Result of lowering the instructions of a stream.
pub(super) struct Lowered {
    pub(super) program: Program,
    /// Twice the mean length of a frame in bytes without FCS, from which TRex computes gaps.
    pub(super) double_length: u64,
}

/// Input of a program beside its instructions.
pub(super) struct Context<'a> {
    pub(super) path: &'a str,
    pub(super) template: &'a [u8],
    /// Seed of random values.
    pub(super) seed: u64,
    pub(super) cores: NonZeroU64,
    /// Number of frames that repeat; 0: no cache.
    pub(super) cache: u32,
}

/// A variable before it enters the program.
struct VariableDraft {
    variable: Variable,
    size: usize,
    next: Option<String>,
    is_split: bool,
    /// Whether one pass through the values is one wrap, so that another variable can follow.
    wraps_once_per_pass: bool,
    path: String,
}

struct Builder<'a> {
    context: &'a Context<'a>,
    drafts: Vec<VariableDraft>,
    names: BTreeMap<String, usize>,
    steps: Vec<Step>,
    length: Option<usize>,
}

/// Lowers instructions to a program.
pub(super) fn lower(instructions: Vec<Value>, context: &Context<'_>) -> Result<Lowered, TrexError> {
    let paths = |index: usize| format!("{}.vm.instructions[{index}]", context.path);
    let instructions = instructions
        .into_iter()
        .enumerate()
        .map(|(index, value)| {
            Ok((paths(index), deserialize_at::<Instruction>(value, &paths(index))?))
        })
        .collect::<Result<Vec<_>, TrexError>>()?;
    let mut builder = Builder {
        context,
        drafts: Vec::new(),
        names: BTreeMap::new(),
        steps: Vec::new(),
        length: None,
    };
    // Collect the length variables first: their values are limited to the template's length.
    let lengths: Vec<&str> = instructions
        .iter()
        .filter_map(|(_, instruction)| match instruction {
            Instruction::TrimPktSize { name } => Some(name.as_str()),
            _ => None,
        })
        .collect();
    for (path, instruction) in &instructions {
        builder.variable(path, instruction, &lengths)?;
    }
    for (path, instruction) in &instructions {
        builder.step(path, instruction)?;
    }
    builder.finish()
}

impl Builder<'_> {
    fn variable(
        &mut self,
        path: &str,
        instruction: &Instruction,
        lengths: &[&str],
    ) -> Result<(), TrexError> {
        match instruction {
            Instruction::FlowVar { name, size, op, step, value_list, split_to_cores, .. } => {
                let size = width(path, *size)?;
                if *step == 0 {
                    return Err(TrexError::value(format!("{path}.step"), 0, "at least 1"));
                }
                let is_length = lengths.contains(&name.as_str());
                let (values, is_plain) = match value_list {
                    Some(list) => self.list(path, list, *op, *step, size, is_length)?,
                    None => self.range(path, instruction, size, is_length)?,
                };
                let next = match instruction {
                    Instruction::FlowVar { next_var, .. } => next_var.clone(),
                    _ => None,
                };
                if next.is_some() && *op == Operation::Random {
                    let what = "a random variable has no order, so no other variable can follow it";
                    return Err(TrexError::unsupported(format!("{path}.next_var"), what));
                }
                let is_split = *split_to_cores || *op == Operation::Random;
                let variable = Variable::new(values);
                let path = path.to_owned();
                self.add(
                    name,
                    VariableDraft {
                        variable,
                        size,
                        next,
                        is_split,
                        wraps_once_per_pass: is_plain,
                        path,
                    },
                )
            }
            Instruction::FlowVarRandLimit {
                name,
                size,
                limit,
                seed,
                min_value,
                max_value,
                split_to_cores,
                next_var,
            } => {
                let size = width(path, *size)?;
                check_order_of_bounds(path, "min_value", "max_value", *min_value, *max_value)?;
                check_width(&format!("{path}.max_value"), *max_value, size)?;
                let Some(restart_after) = NonZeroU64::new(*limit) else {
                    return Err(TrexError::value(format!("{path}.limit"), 0, "at least 1"));
                };
                let values = Values::Random {
                    min: u128::from(*min_value),
                    max: u128::from(*max_value),
                    seed: *seed,
                };
                let variable = Variable {
                    values,
                    advance: Advance::EveryFrame,
                    restart_after: Some(restart_after),
                };
                let (next, is_split) = (next_var.clone(), *split_to_cores);
                let path = path.to_owned();
                self.add(
                    name,
                    VariableDraft {
                        variable,
                        size,
                        next,
                        is_split,
                        wraps_once_per_pass: true,
                        path,
                    },
                )
            }
            Instruction::TupleFlowVar { .. } => self.tuple(path, instruction),
            _ => Ok(()),
        }
    }

    /// Adds a tuple of address and port: all addresses for each port.
    fn tuple(&mut self, path: &str, instruction: &Instruction) -> Result<(), TrexError> {
        /// TRex's flag that disables the limits of the ports.
        const UNLIMITED: u16 = 1;
        /// First port after a wrap, with that flag.
        const UNLIMITED_PORT_MIN: u16 = 1_025;
        let Instruction::TupleFlowVar {
            name,
            ip_min,
            ip_max,
            port_min,
            port_max,
            limit_flows,
            flags,
        } = instruction
        else {
            return Ok(());
        };
        check_order_of_bounds(path, "ip_min", "ip_max", (*ip_min).into(), (*ip_max).into())?;
        let is_unlimited = flags & UNLIMITED != 0;
        let ports = if is_unlimited {
            (*port_min.min(&UNLIMITED_PORT_MIN), u16::MAX)
        } else {
            check_order_of_bounds(
                path,
                "port_min",
                "port_max",
                (*port_min).into(),
                (*port_max).into(),
            )?;
            (*port_min, *port_max)
        };
        let counter = |start: u32, min: u32, max: u32| Values::Counter {
            start: start.into(),
            min: min.into(),
            max: max.into(),
            step: 1,
            downwards: false,
        };
        let restart_after = NonZeroU64::new((*limit_flows).into()).filter(|_| !is_unlimited);
        let address = Variable {
            values: counter(*ip_min, *ip_min, *ip_max),
            advance: Advance::EveryFrame,
            restart_after,
        };
        let port = Variable::new(counter((*port_min).into(), ports.0.into(), ports.1.into()));
        let (address_name, port_name) = (format!("{name}.ip"), format!("{name}.port"));
        let draft = |variable, size, next| VariableDraft {
            variable,
            size,
            next,
            is_split: true,
            wraps_once_per_pass: true,
            path: path.to_owned(),
        };
        self.add(&address_name, draft(address, 4, Some(port_name.clone())))?;
        self.add(&port_name, draft(port, 2, None))
    }

    /// Returns the values of a variable with bounds.
    fn range(
        &self,
        path: &str,
        instruction: &Instruction,
        size: usize,
        is_length: bool,
    ) -> Result<(Values, bool), TrexError> {
        let Instruction::FlowVar {
            op,
            step,
            init_value: Some(init),
            min_value: Some(min),
            max_value: Some(max),
            ..
        } = instruction
        else {
            let reason = "expected init_value, min_value and max_value, or a value_list".to_owned();
            return Err(TrexError::Malformed { path: path.to_owned(), reason });
        };
        check_order_of_bounds(path, "min_value", "max_value", *min, *max)?;
        check_width(&format!("{path}.max_value"), *max, size)?;
        if !(*min..=*max).contains(init) {
            let expected = format!("{min} to {max}");
            return Err(TrexError::value(format!("{path}.init_value"), init, expected));
        }
        let (mut start, mut min, mut max) = (u128::from(*init), u128::from(*min), u128::from(*max));
        let step = u128::from(*step);
        // Extend the range to a multiple of the step, so that every pass repeats the same values.
        let lacking = (step - (max - min + 1) % step) % step;
        match op {
            Operation::Inc => max += lacking,
            Operation::Dec if lacking <= min => min -= lacking,
            Operation::Dec => {
                let expected =
                    format!("at least {lacking}, so that the range can be a multiple of the step");
                return Err(TrexError::value(format!("{path}.min_value"), min, expected));
            }
            Operation::Random => {}
        }
        if is_length {
            let longest = self.context.template.len() as u128;
            max = max.clamp(FRAME_LENGTH_MIN as u128, longest);
            min = min.clamp(FRAME_LENGTH_MIN as u128, max);
            start = start.clamp(min, max);
        }
        if *op == Operation::Random {
            return Ok((Values::Random { min, max, seed: self.seed() }, false));
        }
        let downwards = *op == Operation::Dec;
        if (max - min + 1) % step == 0 {
            return Ok((Values::Counter { start, min, max, step, downwards }, true));
        }
        // Only the limited range of a length gets here. The position moves by the step modulo the
        // range until it repeats.
        let range = max - min + 1;
        let begin = if downwards { max - start } else { start - min };
        let places = std::iter::successors(Some(begin), |place| {
            Some((place + step) % range).filter(|place| *place != begin)
        });
        let values = places.map(|place| if downwards { max - place } else { min + place });
        Ok((Values::List(values.collect()), false))
    }

    /// Returns the values of a variable with a list.
    fn list(
        &self,
        path: &str,
        list: &[u64],
        op: Operation,
        step: u64,
        size: usize,
        is_length: bool,
    ) -> Result<(Values, bool), TrexError> {
        let path = format!("{path}.value_list");
        if list.is_empty() || list.len() > LIST_MAX {
            let found = format!("{} values", list.len());
            return Err(TrexError::value(path, found, format!("1 to {LIST_MAX}")));
        }
        for (index, value) in list.iter().enumerate() {
            let path = format!("{path}[{index}]");
            check_width(&path, *value, size)?;
            let lengths = FRAME_LENGTH_MIN as u64..=self.context.template.len() as u64;
            if is_length && !lengths.contains(value) {
                let expected = format!("a length from {} to {}", lengths.start(), lengths.end());
                return Err(TrexError::value(path, value, expected));
            }
        }
        let count = list.len();
        let Some(step) = usize::try_from(step).ok().filter(|step| *step <= count) else {
            return Err(TrexError::value(
                path,
                format!("{count} values, step {step}"),
                "a step of at most that many values",
            ));
        };
        if op == Operation::Random {
            let choices = list.iter().map(|value| (u128::from(*value), 1)).collect();
            return Ok((Values::Weighted { choices, seed: self.seed() }, false));
        }
        let begin = if op == Operation::Dec { count - 1 } else { 0 };
        let forward = if op == Operation::Dec { count - step } else { step };
        let places = std::iter::successors(Some(begin), |place| {
            Some((place + forward) % count).filter(|place| *place != begin)
        });
        let values = places.map(|place| u128::from(list[place])).collect();
        Ok((Values::List(values), count.is_multiple_of(step)))
    }

    /// Returns the seed of the next variable.
    fn seed(&self) -> u64 {
        draw(self.context.seed, self.drafts.len() as u64)
    }

    fn add(&mut self, name: &str, draft: VariableDraft) -> Result<(), TrexError> {
        let path = format!("{}.name", draft.path);
        if self.names.insert(name.to_owned(), self.drafts.len()).is_some() {
            return Err(TrexError::Duplicate { path, kind: "variable", name: name.to_owned() });
        }
        self.drafts.push(draft);
        Ok(())
    }

    fn find(&self, path: &str, name: &str) -> Result<usize, TrexError> {
        self.names.get(name).copied().ok_or_else(|| TrexError::Unknown {
            path: path.to_owned(),
            kind: "variable",
            name: name.to_owned(),
        })
    }

    fn step(&mut self, path: &str, instruction: &Instruction) -> Result<(), TrexError> {
        let step = match instruction {
            Instruction::WriteFlowVar { name, pkt_offset, add_value, is_big_endian } => {
                let variable = self.find(&format!("{path}.name"), name)?;
                let width = self.drafts[variable].size;
                Step::Write(Write {
                    variable,
                    offset: self.offset(path, *pkt_offset, width)?,
                    width,
                    add: i128::from(*add_value) as u128,
                    shift: 0,
                    mask: u128::MAX,
                    order: order(*is_big_endian),
                })
            }
            Instruction::WriteMaskFlowVar {
                name,
                pkt_offset,
                pkt_cast_size,
                mask,
                shift,
                add_value,
                is_big_endian,
            } => {
                let width = usize::from(*pkt_cast_size);
                if ![1, 2, 4].contains(&width) {
                    let path = format!("{path}.pkt_cast_size");
                    return Err(TrexError::value(path, width, "1, 2 or 4"));
                }
                Step::Write(Write {
                    variable: self.find(&format!("{path}.name"), name)?,
                    offset: self.offset(path, *pkt_offset, width)?,
                    width,
                    add: i128::from(*add_value) as u128,
                    shift: *shift,
                    mask: u128::from(*mask),
                    order: order(*is_big_endian),
                })
            }
            Instruction::TrimPktSize { name } => {
                let variable = self.find(&format!("{path}.name"), name)?;
                if self.drafts[variable].size != 2 {
                    let found = format!("{name:?} of {} bytes", self.drafts[variable].size);
                    let path = format!("{path}.name");
                    return Err(TrexError::value(path, found, "a variable of 2 bytes"));
                }
                self.length = Some(variable);
                Step::Length { variable }
            }
            Instruction::FixChecksumIpv4 { pkt_offset } => {
                let header = usize::from(*pkt_offset);
                let length = self.ipv4_header_length(path, header)?;
                Step::Checksum(ipv4_checksum(header, length))
            }
            Instruction::FixChecksumIcmpv6 { l2_len, l3_len } => {
                let header = usize::from(*l2_len);
                let start = header + usize::from(*l3_len);
                self.check_bounds(path, header, 40)?;
                self.check_bounds(path, start, 4)?;
                /// IP protocol number of ICMPv6.
                const ICMPV6: u8 = 58;
                self.transport_checksum(start, 2, false, true, header, ICMPV6)
            }
            Instruction::FixChecksumHw { l2_len, l3_len, l4_type } => {
                return self.hardware_checksum(path, *l2_len, *l3_len, *l4_type);
            }
            _ => return Ok(()),
        };
        self.steps.push(step);
        Ok(())
    }

    /// Adds the checksums that TRex offloads to the interface: those of an IPv4 header and its
    /// payload, or of an IPv6 payload.
    fn hardware_checksum(
        &mut self,
        path: &str,
        l2_len: u16,
        l3_len: u16,
        l4_type: u16,
    ) -> Result<(), TrexError> {
        /// TRex's numbers of checksum types.
        const TYPE_UDP: u16 = 11;
        const TYPE_TCP: u16 = 13;
        const TYPE_IP: u16 = 17;
        /// IP protocol numbers.
        const TCP: u8 = 6;
        const UDP: u8 = 17;
        if ![TYPE_UDP, TYPE_TCP, TYPE_IP].contains(&l4_type) {
            let expected = "11 (UDP), 13 (TCP) or 17 (IP)";
            return Err(TrexError::value(format!("{path}.l4_type"), l4_type, expected));
        }
        let header = usize::from(l2_len);
        self.check_bounds(path, header, 20)?;
        let version = self.context.template[header] >> 4;
        let (start, protocol) = match version {
            4 => {
                let length = self.ipv4_header_length(path, header)?;
                self.steps.push(Step::Checksum(ipv4_checksum(header, length)));
                if l4_type != TYPE_IP && usize::from(l3_len) != length {
                    let expected = format!("{length}, the length of the IPv4 header");
                    return Err(TrexError::value(format!("{path}.l3_len"), l3_len, expected));
                }
                (header + length, self.context.template[header + 9])
            }
            6 if l4_type == TYPE_TCP => (header + usize::from(l3_len), TCP),
            6 if l4_type == TYPE_UDP => (header + usize::from(l3_len), UDP),
            6 => {
                let expected = "11 (UDP) or 13 (TCP) behind IPv6";
                return Err(TrexError::value(format!("{path}.l4_type"), l4_type, expected));
            }
            _ => {
                let found = format!("a packet of version {version} at {header}");
                return Err(TrexError::value(format!("{path}.l2_len"), found, "IPv4 or IPv6"));
            }
        };
        if version == 6 {
            self.check_bounds(path, header, 40)?;
        }
        let (field, length) = match protocol {
            TCP => (16, 20),
            UDP => (6, 8),
            _ => return Ok(()),
        };
        self.check_bounds(path, start, length)?;
        let is_udp = protocol == UDP;
        let step = self.transport_checksum(start, field, is_udp, version == 6, header, protocol);
        self.steps.push(step);
        Ok(())
    }

    fn transport_checksum(
        &self,
        start: usize,
        field: usize,
        never_zero: bool,
        is_ipv6: bool,
        header: usize,
        protocol: u8,
    ) -> Step {
        let template = self.context.template;
        let pseudo_header = match is_ipv6 {
            true => PseudoHeader::Ipv6 { header, protocol },
            false => PseudoHeader::Ipv4 { header, protocol },
        };
        // Exclude the padding of a short frame. Frames of varying length have none.
        let packet_end = match is_ipv6 {
            true => header + 40 + be16(template, header + 4),
            false => header + be16(template, header + 2),
        };
        let is_within = start + field + 2 <= packet_end && packet_end < template.len();
        Step::Checksum(Checksum::Internet {
            offset: start + field,
            start,
            end: (self.length.is_none() && is_within).then_some(packet_end),
            pseudo_header,
            never_zero,
        })
    }

    fn ipv4_header_length(&self, path: &str, header: usize) -> Result<usize, TrexError> {
        const HEADER_MIN: usize = 20;
        self.check_bounds(path, header, HEADER_MIN)?;
        let length = usize::from(self.context.template[header] & 15) * 4;
        let length = length.max(HEADER_MIN);
        self.check_bounds(path, header, length)?;
        Ok(length)
    }

    fn offset(&self, path: &str, offset: u16, width: usize) -> Result<usize, TrexError> {
        self.check_bounds(path, offset.into(), width)?;
        Ok(offset.into())
    }

    fn check_bounds(&self, path: &str, offset: usize, length: usize) -> Result<(), TrexError> {
        let (end, longest) = (offset + length, self.context.template.len());
        if end > longest {
            let found = format!("bytes {offset} to {end}");
            return Err(TrexError::value(path, found, format!("bytes of a frame of {longest}")));
        }
        Ok(())
    }

    fn finish(self) -> Result<Lowered, TrexError> {
        let mut variables: Vec<Variable> =
            self.drafts.iter().map(|draft| draft.variable.clone()).collect();
        for (index, draft) in self.drafts.iter().enumerate() {
            let Some(next) = &draft.next else { continue };
            let path = format!("{}.next_var", draft.path);
            let follower = self.find(&path, next)?;
            if !draft.wraps_once_per_pass {
                let what = "the step passes the end of the values more than once before all values \
                            occur: no other variable can follow it";
                return Err(TrexError::unsupported(path, what));
            }
            if variables[follower].advance != Advance::EveryFrame {
                let expected = "a variable that follows no other";
                return Err(TrexError::value(path, format!("{next:?}"), expected));
            }
            variables[follower].advance = Advance::WhenWraps(index);
        }
        self.check_order(&variables)?;
        let count = variables.len();
        for (index, draft) in self.drafts.iter().enumerate() {
            if draft.is_split || variables[index].advance != Advance::EveryFrame {
                continue;
            }
            if self.context.cores.get() > 1 {
                variables[index].advance = Advance::WhenWraps(count);
            }
        }
        if variables.iter().any(|variable| variable.advance == Advance::WhenWraps(count)) {
            variables.push(Variable::new(Values::Counter {
                start: 0,
                min: 0,
                max: u128::from(self.context.cores.get()) - 1,
                step: 1,
                downwards: false,
            }));
        }
        let double_length = match self.length {
            Some(length) => double_mean(&variables[length].values),
            None => 2 * self.context.template.len() as u64,
        };
        let variables = self.cached(variables, count)?;
        Ok(Lowered { program: Program { variables, steps: self.steps }, double_length })
    }

    /// Returns an error if a variable follows itself, directly or through others.
    fn check_order(&self, variables: &[Variable]) -> Result<(), TrexError> {
        for (index, draft) in self.drafts.iter().enumerate() {
            let before = std::iter::successors(Some(index), |at| match variables[*at].advance {
                Advance::WhenWraps(other) => Some(other),
                Advance::EveryFrame => None,
            });
            if before.take(variables.len() + 1).count() > variables.len() {
                let path = format!("{}.next_var", draft.path);
                return Err(TrexError::value(path, "a cycle", "a chain of variables"));
            }
        }
        Ok(())
    }

    fn cached(&self, variables: Vec<Variable>, count: usize) -> Result<Vec<Variable>, TrexError> {
        let Context { cache, cores, path, .. } = *self.context;
        if cache == 0 || self.drafts.is_empty() {
            return Ok(variables);
        }
        if cache > CACHE_MAX {
            let expected = format!("{CACHE_MAX} at most");
            return Err(TrexError::value(format!("{path}.vm.cache"), cache, expected));
        }
        let frames = u64::from(cache).max(cores.get());
        let repeated = variables[..count].iter().map(|variable| {
            let values = (0..frames).map(|number| variable.value(number, &variables));
            Variable::new(Values::List(values.collect()))
        });
        Ok(repeated.collect())
    }
}

/// Returns twice the mean of the values of a length variable.
fn double_mean(values: &Values) -> u64 {
    let double = match values {
        Values::Counter { min, max, .. } | Values::Random { min, max, .. } => min + max,
        Values::List(values) => 2 * values.iter().sum::<u128>() / values.len().max(1) as u128,
        Values::Weighted { choices, .. } => {
            let sum: u128 = choices.iter().map(|(value, _)| value).sum();
            2 * sum / choices.len().max(1) as u128
        }
    };
    u64::try_from(double).unwrap_or(u64::MAX)
}

fn ipv4_checksum(header: usize, length: usize) -> Checksum {
    Checksum::Internet {
        offset: header + 10,
        start: header,
        end: Some(header + length),
        pseudo_header: PseudoHeader::None,
        never_zero: false,
    }
}

const fn order(is_big_endian: bool) -> ByteOrder {
    if is_big_endian { ByteOrder::Network } else { ByteOrder::Little }
}

fn be16(bytes: &[u8], at: usize) -> usize {
    usize::from(bytes[at]) << 8 | usize::from(bytes[at + 1])
}

fn width(path: &str, size: u8) -> Result<usize, TrexError> {
    match size {
        1 | 2 | 4 | 8 => Ok(size.into()),
        _ => Err(TrexError::value(format!("{path}.size"), size, "1, 2, 4 or 8")),
    }
}

fn check_width(path: &str, value: u64, size: usize) -> Result<(), TrexError> {
    let max = u64::MAX >> (64 - 8 * size);
    if value > max {
        return Err(TrexError::value(path, value, format!("{max} at most, in {size} bytes")));
    }
    Ok(())
}

fn check_order_of_bounds(
    path: &str,
    least: &'static str,
    greatest: &'static str,
    min: u64,
    max: u64,
) -> Result<(), TrexError> {
    if min > max {
        let expected = format!("{least} or more, which is {min}");
        return Err(TrexError::value(format!("{path}.{greatest}"), max, expected));
    }
    Ok(())
}
