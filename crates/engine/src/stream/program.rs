//! A stream's program, prepared for its template: what can be computed once is.

use alloc::boxed::Box;
use alloc::vec::Vec;

use wirestorm_wire::checksum;
use wirestorm_wire::stream::{ByteOrder, Checksum, Program, PseudoHeader, Step, Write};

use super::variable::Variables;

/// A template and what differs from frame to frame.
#[derive(Clone, Debug)]
pub(super) struct FrameMaker {
    template: Box<[u8]>,
    operations: Box<[Operation]>,
    variables: Variables,
}

/// A step, in the form that is quickest to run. All offsets lie within the template.
#[derive(Clone, Debug)]
enum Operation {
    /// A whole field of 16, 32 or 64 bits in network order.
    Write16 {
        variable: usize,
        offset: usize,
        add: u16,
    },
    Write32 {
        variable: usize,
        offset: usize,
        add: u32,
    },
    Write64 {
        variable: usize,
        offset: usize,
        add: u64,
    },
    WriteBits(Write),
    Length {
        variable: usize,
    },
    WriteLength {
        offset: usize,
        less: usize,
    },
    /// An Internet checksum over a frame of one length: `base` is the sum of all words that
    /// never change, `changing` says where the others are.
    SumOfChanges {
        offset: usize,
        base: u16,
        changing: Box<[Changing]>,
        never_zero: bool,
    },
    /// Any other checksum, over all that it covers.
    WholeSum(Checksum),
    /// The same, and wrong on purpose.
    WrongSum(Checksum),
}

/// Words of 16 bits that steps write to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Changing {
    One { offset: usize },
    Two { offset: usize },
}

/// The least that a frame can be cut to: an Ethernet header.
const FRAME_LENGTH_MIN: usize = 14;

impl FrameMaker {
    /// Prepares a program for a worker that begins with frame `number` of the stream and sends
    /// every `stride`-th one.
    ///
    /// # Panics
    /// Where a step names a byte beyond the template or a variable that does not exist: plans
    /// are validated before.
    pub(super) fn new(template: &[u8], program: &Program, number: u64, stride: u64) -> Self {
        let varies = program.steps.iter().any(|step| matches!(step, Step::Length { .. }));
        let operations = program.steps.iter().enumerate().map(|(index, step)| {
            check(step, template.len(), program.variables.len());
            match step {
                Step::Write(write) => Operation::write(write),
                Step::Length { variable } => Operation::Length { variable: *variable },
                Step::WriteLength { offset, less } => {
                    Operation::WriteLength { offset: *offset, less: *less }
                }
                Step::Checksum(sum) if varies => Operation::WholeSum(*sum),
                Step::Checksum(sum) => Operation::sum(*sum, template, &program.steps, index),
                Step::WrongChecksum(sum) => Operation::WrongSum(*sum),
            }
        });
        Self {
            template: template.into(),
            operations: operations.collect(),
            variables: Variables::new(&program.variables, number, stride),
        }
    }

    /// Whether all frames are the template.
    pub(super) fn is_constant(&self) -> bool {
        self.operations.is_empty()
    }

    /// The template.
    pub(super) fn template(&self) -> &[u8] {
        &self.template
    }

    /// Whether frames differ in length.
    pub(super) fn lengths_vary(&self) -> bool {
        self.operations.iter().any(|operation| matches!(operation, Operation::Length { .. }))
    }

    /// Passes over the current frame; returns its length.
    pub(super) fn skip(&mut self) -> usize {
        let mut length = self.template.len();
        for operation in &self.operations {
            if let Operation::Length { variable } = operation {
                length = cut_length(self.variables.value(*variable), length);
            }
        }
        self.variables.step();
        length
    }

    /// Writes the current frame to the start of `buffer` and goes on to the next; returns its
    /// length.
    ///
    /// # Panics
    /// Where the buffer is shorter than the template.
    #[inline]
    pub(super) fn make(&mut self, buffer: &mut [u8]) -> usize {
        let frame = &mut buffer[..self.template.len()];
        copy_short(&self.template, frame);
        let mut length = frame.len();
        for operation in &self.operations {
            operation.run(&self.variables, frame, &mut length);
        }
        if !self.variables.is_empty() {
            self.variables.step();
        }
        length
    }
}

/// Copies, in whole words where that is quicker than a call.
#[inline]
fn copy_short(from: &[u8], to: &mut [u8]) {
    to.copy_from_slice(from);
}

impl Operation {
    fn write(write: &Write) -> Self {
        let Write { variable, offset, width, add, shift, mask, order } = *write;
        let is_whole = shift == 0 && order == ByteOrder::Network;
        match width {
            2 if is_whole && mask & 0xffff == 0xffff => {
                Self::Write16 { variable, offset, add: add as u16 }
            }
            4 if is_whole && mask & 0xffff_ffff == 0xffff_ffff => {
                Self::Write32 { variable, offset, add: add as u32 }
            }
            8 if is_whole && mask as u64 == u64::MAX => {
                Self::Write64 { variable, offset, add: add as u64 }
            }
            _ => Self::WriteBits(write.clone()),
        }
    }

    fn sum(sum: Checksum, template: &[u8], steps: &[Step], index: usize) -> Self {
        let Checksum::Internet { offset, start, end, pseudo_header, never_zero } = sum else {
            return Self::WholeSum(sum);
        };
        let end = end.unwrap_or(template.len());
        // Covered words that other steps write to; a checksum is never behind one that covers it.
        let is_written = |at: usize| {
            steps[..index].iter().any(|step| written(step).is_some_and(|range| range.contains(&at)))
        };
        let mut constant = template.to_vec();
        let mut words = Vec::new();
        let mut take = |from: usize, to: usize| {
            for word in (from..to).step_by(2) {
                if word == offset {
                    constant[word..word + 2].fill(0);
                } else if is_written(word) || (word + 1 < to && is_written(word + 1)) {
                    if word + 1 == to {
                        return false;
                    }
                    constant[word..word + 2].fill(0);
                    words.push(word);
                }
            }
            true
        };
        let mut is_even = take(start, end);
        if let PseudoHeader::Ipv4 { header, .. } = pseudo_header {
            is_even &= take(header + 12, header + 20);
        } else if let PseudoHeader::Ipv6 { header, .. } = pseudo_header {
            is_even &= take(header + 8, header + 40);
        }
        if !is_even || (offset.wrapping_sub(start)) % 2 != 0 {
            return Self::WholeSum(sum);
        }
        let base = covered_sum(&constant, start, end, pseudo_header);
        Self::SumOfChanges { offset, base, changing: pairs(&words), never_zero }
    }

    #[inline]
    fn run(&self, variables: &Variables, frame: &mut [u8], length: &mut usize) {
        match self {
            Self::Write16 { variable, offset, add } => {
                let value = (variables.value(*variable) as u16).wrapping_add(*add);
                frame[*offset..offset + 2].copy_from_slice(&value.to_be_bytes());
            }
            Self::Write32 { variable, offset, add } => {
                let value = (variables.value(*variable) as u32).wrapping_add(*add);
                frame[*offset..offset + 4].copy_from_slice(&value.to_be_bytes());
            }
            Self::Write64 { variable, offset, add } => {
                let value = (variables.value(*variable) as u64).wrapping_add(*add);
                frame[*offset..offset + 8].copy_from_slice(&value.to_be_bytes());
            }
            Self::WriteBits(write) => write_bits(write, variables, frame),
            Self::Length { variable } => {
                *length = cut_length(variables.value(*variable), frame.len());
            }
            Self::WriteLength { offset, less } => {
                let counted = length.saturating_sub(*less) as u16;
                frame[*offset..offset + 2].copy_from_slice(&counted.to_be_bytes());
            }
            Self::SumOfChanges { offset, base, changing, never_zero } => {
                let mut total = u64::from(*base);
                for change in changing {
                    total += match *change {
                        Changing::One { offset } => u64::from(u16_at(frame, offset)),
                        Changing::Two { offset } => u64::from(u32_at(frame, offset)),
                    };
                }
                put_checksum(frame, *offset, total, *never_zero);
            }
            Self::WholeSum(sum) => whole_sum(*sum, frame, *length),
            Self::WrongSum(sum) => wrong_sum(*sum, frame, *length),
        }
    }
}

fn cut_length(asked: u128, length_max: usize) -> usize {
    usize::try_from(asked).unwrap_or(usize::MAX).clamp(FRAME_LENGTH_MIN, length_max)
}

/// The bytes that a step writes to.
fn written(step: &Step) -> Option<core::ops::Range<usize>> {
    match step {
        Step::Write(write) => Some(write.offset..write.offset + write.width),
        Step::WriteLength { offset, .. }
        | Step::Checksum(Checksum::Internet { offset, .. })
        | Step::WrongChecksum(Checksum::Internet { offset, .. }) => Some(*offset..offset + 2),
        Step::Checksum(Checksum::Crc32c { offset, .. })
        | Step::WrongChecksum(Checksum::Crc32c { offset, .. }) => Some(*offset..offset + 4),
        Step::Length { .. } => None,
    }
}

/// Joins words that follow each other.
fn pairs(words: &[usize]) -> Box<[Changing]> {
    let mut changing = Vec::new();
    let mut rest = words;
    while let Some((&offset, behind)) = rest.split_first() {
        rest = match behind.split_first() {
            Some((&next, behind)) if next == offset + 2 => {
                changing.push(Changing::Two { offset });
                behind
            }
            _ => {
                changing.push(Changing::One { offset });
                behind
            }
        };
    }
    changing.into()
}

fn check(step: &Step, length: usize, variables: usize) {
    let last = match step {
        Step::Checksum(Checksum::Internet { end: Some(end), .. })
        | Step::WrongChecksum(Checksum::Internet { end: Some(end), .. }) => *end,
        _ => 0,
    };
    let end = written(step).map_or(0, |range| range.end).max(last);
    assert!(end <= length, "{step:?} is beyond a template of {length} bytes");
    if let Step::Write(Write { variable, .. }) | Step::Length { variable } = step {
        assert!(*variable < variables, "{step:?} of {variables} variables");
    }
}

#[cold]
fn write_bits(write: &Write, variables: &Variables, frame: &mut [u8]) {
    let mut value = variables.value(write.variable).wrapping_add(write.add);
    value = match u32::try_from(write.shift) {
        Ok(left) => value.checked_shl(left).unwrap_or(0),
        Err(_) => value.checked_shr(write.shift.unsigned_abs()).unwrap_or(0),
    };
    let field = &mut frame[write.offset..write.offset + write.width];
    for place in 0..field.len() {
        // The place-th byte from the least significant one.
        let byte = match write.order {
            ByteOrder::Network => &mut field[write.width - 1 - place],
            ByteOrder::Little => &mut field[place],
        };
        let mask = (write.mask >> (8 * place)) as u8;
        *byte = *byte & !mask | (value >> (8 * place)) as u8 & mask;
    }
}

#[inline]
fn put_checksum(frame: &mut [u8], offset: usize, mut total: u64, never_zero: bool) {
    // At most 2^16 words of 32 bits were added: two foldings leave 17 bits at most.
    total = (total & 0xffff_ffff) + (total >> 32);
    total = (total & 0xffff) + (total >> 16);
    total = (total & 0xffff) + (total >> 16);
    total = (total & 0xffff) + (total >> 16);
    let sum = match !(total as u16) {
        0 if never_zero => 0xffff,
        sum => sum,
    };
    frame[offset..offset + 2].copy_from_slice(&sum.to_be_bytes());
}

fn whole_sum(sum: Checksum, frame: &mut [u8], length: usize) {
    match sum {
        Checksum::Internet { offset, start, end, pseudo_header, never_zero } => {
            let end = end.unwrap_or(length).min(length);
            if end < offset + 2 || start > end {
                return;
            }
            frame[offset..offset + 2].fill(0);
            let total = covered_sum(frame, start, end, pseudo_header);
            put_checksum(frame, offset, u64::from(total), never_zero);
        }
        Checksum::Crc32c { offset, start } => {
            if length < offset + 4 {
                return;
            }
            frame[offset..offset + 4].fill(0);
            let crc = checksum::crc32c(&frame[start..length]);
            frame[offset..offset + 4].copy_from_slice(&crc.to_le_bytes());
        }
    }
}

#[cold]
fn wrong_sum(sum: Checksum, frame: &mut [u8], length: usize) {
    whole_sum(sum, frame, length);
    match sum {
        Checksum::Internet { offset, never_zero, .. } => {
            let right = !u16_at(frame, offset);
            put_checksum(frame, offset, u64::from(right) + 1, never_zero);
        }
        Checksum::Crc32c { offset, .. } => {
            for byte in &mut frame[offset..offset + 4] {
                *byte = !*byte;
            }
        }
    }
}

/// The sum over a part of a frame and its pseudo header.
fn covered_sum(frame: &[u8], start: usize, end: usize, pseudo_header: PseudoHeader) -> u16 {
    let part = checksum::sum(&frame[start..end]);
    let length = end - start;
    let pseudo = match pseudo_header {
        PseudoHeader::None => 0,
        PseudoHeader::Ipv4 { header, protocol } => checksum::combine(
            checksum::sum(&frame[header + 12..header + 20]),
            checksum::combine(u16::from(protocol), length as u16),
        ),
        PseudoHeader::Ipv6 { header, protocol } => checksum::combine(
            checksum::sum(&frame[header + 8..header + 40]),
            checksum::combine(u16::from(protocol), length as u16),
        ),
    };
    checksum::combine(part, pseudo)
}

#[inline]
fn u16_at(frame: &[u8], offset: usize) -> u16 {
    u16::from_be_bytes([frame[offset], frame[offset + 1]])
}

#[inline]
fn u32_at(frame: &[u8], offset: usize) -> u32 {
    let bytes = &frame[offset..offset + 4];
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use wirestorm_wire::stream::{Values, Variable};

    fn second_frame(step: Step, varies: bool) -> Vec<u8> {
        let variable = Variable::new(Values::List(vec![0x1234, 0x5678]));
        let length = Variable::new(Values::List(vec![39, 39]));
        let write = Write {
            variable: 0,
            offset: 20,
            width: 2,
            add: 0,
            shift: 0,
            mask: 0xffff,
            order: ByteOrder::Network,
        };
        let mut steps = vec![Step::Write(write), step];
        if varies {
            steps.insert(0, Step::Length { variable: 1 });
        }
        let program = Program { variables: vec![variable, length], steps };
        let template: Vec<u8> = (1..=40).collect();
        let mut maker = FrameMaker::new(&template, &program, 1, 1);
        let mut buffer = vec![0; 40];
        let length = maker.make(&mut buffer);
        buffer.truncate(length);
        assert_eq!(&buffer[20..22], &[0x56, 0x78]);
        buffer
    }

    #[test]
    fn a_checksum_that_is_wrong_on_purpose_is_that_of_one_more() {
        let sum = Checksum::Internet {
            offset: 26,
            start: 14,
            end: None,
            pseudo_header: PseudoHeader::None,
            never_zero: false,
        };
        for varies in [false, true] {
            let right = second_frame(Step::Checksum(sum), varies);
            assert_eq!(checksum::sum(&right[14..]), 0xffff);
            let wrong = second_frame(Step::WrongChecksum(sum), varies);
            assert_eq!(checksum::sum(&wrong[14..]), 0xfffe);
        }
    }

    #[test]
    fn a_crc_that_is_wrong_on_purpose_is_inverted() {
        let sum = Checksum::Crc32c { offset: 24, start: 16 };
        let right = second_frame(Step::Checksum(sum), false);
        let wrong = second_frame(Step::WrongChecksum(sum), false);
        for (right, wrong) in right[24..28].iter().zip(&wrong[24..28]) {
            assert_eq!(*wrong, !right);
        }
        assert_eq!((&wrong[..24], &wrong[28..]), (&right[..24], &right[28..]));
    }
}
