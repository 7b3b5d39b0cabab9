//! Program of a stream, compiled for its template.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use wirestorm_base::prefetch::prefetch;
use wirestorm_base::resident::{self, Shape};
use wirestorm_base::time::Instant;
use wirestorm_model::stream::{ByteOrder, Checksum, PseudoHeader, Step, Stream, Write};
use wirestorm_wire::checksum;

use super::resident::lower;
use super::share::Share;
use super::variable::Variables;
use crate::measure::Signature;

/// Template with the operations that change it from frame to frame.
///
/// The template is padded with zeros to a multiple of the block size. An incrementally computed
/// checksum field holds the sum of all constant words.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct FrameBuilder {
    variables: Variables,
    operations: Arc<[Operation]>,
    /// Number of frames signed so far.
    signed: u64,
    /// Stream number in signatures.
    stream: u32,
    is_measured: bool,
    /// Whether signing takes more than writing the last bytes: a trailer follows the signature, or a
    /// CRC covers it.
    signs_apart: bool,
    /// Bytes behind the signature.
    trailer: u8,
    lengths_vary: bool,
    length: usize,
    /// Template longer than a block, padded to a multiple of it; otherwise empty.
    long: Box<[u8]>,
    /// Shorter template, in a cache line of the stream.
    pub(super) short: [u8; BLOCK],
}

/// Unit of copying templates, in bytes.
pub(super) const BLOCK: usize = 64;
/// Templates longer than this are copied as a whole, which is faster for them.
const BLOCKS_LENGTH_MAX: usize = 256;

/// Operations of all streams. Streams with equal steps and length share them.
#[derive(Debug, Default)]
pub(super) struct OperationCache(BTreeMap<(Vec<Step>, usize, usize), Arc<[Operation]>>);

/// Step in its fastest form. All offsets lie within the template; `cursor` identifies a variable.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    /// Writes a complete field of 16, 32 or 64 bits in network byte order.
    Write16 {
        cursor: usize,
        offset: usize,
        add: u16,
    },
    Write32 {
        cursor: usize,
        offset: usize,
        add: u32,
    },
    Write64 {
        cursor: usize,
        offset: usize,
        add: u64,
    },
    WriteBits(Write),
    Length {
        cursor: usize,
    },
    WriteLength {
        offset: usize,
        less: usize,
    },
    /// Clears the place of the signature, so that no checksum covers other bytes there.
    ClearSignature {
        /// Bytes at the end of the frame.
        bytes: usize,
    },
    /// Internet checksum of a frame of constant length. The template's field holds the sum of all
    /// constant words; `changing` lists the others.
    SumOfChanges {
        offset: usize,
        changing: Box<[VariableWords]>,
        never_zero: bool,
        /// Index of the step, and the step.
        step: (usize, Checksum),
    },
    /// Checksum computed over all covered bytes.
    WholeSum(Checksum),
    /// Checksum computed over all covered bytes, then made wrong on purpose.
    WrongSum(Checksum),
}

/// One or two 16-bit words that steps write: the 32 bits at `offset` under `mask`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VariableWords {
    pub(super) offset: usize,
    pub(super) mask: u32,
}

/// Minimum length to cut a frame to: an Ethernet header.
const FRAME_LENGTH_MIN: usize = 14;

impl FrameBuilder {
    /// Compiles a stream's program for a worker, starting at its first frame. Signatures contain
    /// the stream number `number`.
    ///
    /// # Panics
    /// Panics if a step refers to a byte beyond the template or to an unknown variable: plans are
    /// validated before.
    pub(super) fn new(
        plan: &Stream,
        number: u32,
        share: Share,
        recipes: &mut OperationCache,
    ) -> Self {
        let variables = Variables::new(&plan.program.variables, share.index, share.workers);
        let mut template = plan.template.clone();
        let length = template.len();
        let signed =
            if plan.is_measured { Signature::LENGTH + usize::from(plan.trailer) } else { 0 };
        clear_end(&mut template, signed);
        let mut steps = plan.program.steps.clone();
        for step in &mut steps {
            check(step, length, plan.program.variables.len());
            if let Step::Write(Write { variable, .. }) | Step::Length { variable } = step {
                *variable = variables.cursor_of(*variable).unwrap_or(*variable);
            }
        }
        let operations = recipes.operations(&steps, length, signed);
        for operation in operations.iter() {
            if let Operation::SumOfChanges { step: (index, sum), .. } = operation {
                store_constant_sum(*sum, &steps[..*index], &mut template);
            }
        }
        let is_crc = |sum: &Checksum| matches!(sum, Checksum::Crc32c { .. });
        let has_crc = steps.iter().any(
            |step| matches!(step, Step::Checksum(sum) | Step::WrongChecksum(sum) if is_crc(sum)),
        );
        let mut short = [0; BLOCK];
        let long = match short.get_mut(..length) {
            Some(bytes) => {
                bytes.copy_from_slice(&template);
                Box::default()
            }
            None => {
                template.resize(length.next_multiple_of(BLOCK), 0);
                template.into()
            }
        };
        Self {
            variables,
            operations,
            signed: 0,
            stream: number,
            is_measured: plan.is_measured,
            signs_apart: plan.is_measured && (has_crc || plan.trailer > 0),
            trailer: plan.trailer,
            lengths_vary: steps.iter().any(|step| matches!(step, Step::Length { .. })),
            length,
            long,
            short,
        }
    }

    /// Replaces template, program and trailer by those of `plan`, from the current frame on. The
    /// numbers of frames and of signatures continue.
    ///
    /// # Panics
    /// As [`FrameBuilder::new`].
    pub(super) fn replace(&mut self, plan: &Stream, share: Share) {
        let mut new = Self::new(plan, self.stream, share, &mut OperationCache::default());
        new.variables = Variables::new(&plan.program.variables, self.number(), share.workers);
        new.signed = self.signed;
        *self = new;
    }

    /// Returns what a port must know to make the frames by itself: their shape, and the state of their
    /// variables.
    ///
    /// # Errors
    /// The reason why no port can.
    pub(super) fn resident(&self) -> Result<(Shape, Vec<resident::Cursor>), &'static str> {
        if self.signs_apart {
            return Err("bytes follow the signature, or a CRC covers it");
        }
        let (cursors, states) = self.variables.resident()?.into_iter().unzip();
        let operations = lower(&self.operations)?;
        let signature = self.length.checked_sub(Signature::LENGTH).filter(|_| self.is_measured);
        Ok((Shape { length: self.length, cursors, operations, signature }, states))
    }

    /// Returns the number of the stream in signatures, and the next sequence number.
    pub(super) fn signing(&self) -> (u32, u64) {
        (self.stream, self.signed)
    }

    /// Skips frames that a port has made by itself.
    pub(super) fn skip_made(&mut self, frames: u64) {
        self.variables.skip(frames);
        self.signed += if self.is_measured { frames } else { 0 };
    }

    /// Returns whether all frames equal the template.
    pub(super) fn is_constant(&self) -> bool {
        self.operations.is_empty() && !self.is_measured
    }

    /// Returns the template of all frames.
    pub(super) fn template(&self) -> &[u8] {
        &self.blocks()[..self.length]
    }

    #[inline]
    fn blocks(&self) -> &[u8] {
        if self.long.is_empty() { &self.short } else { &self.long }
    }

    /// Returns whether a port may replace the departure in a frame: the signature is at its end, and
    /// no CRC covers it.
    pub(super) fn takes_stamp(&self) -> bool {
        self.is_measured && !self.signs_apart
    }

    /// Returns whether frames differ in length.
    pub(super) fn lengths_vary(&self) -> bool {
        self.lengths_vary
    }

    /// Returns the number of the current frame in its stream.
    #[inline]
    pub(super) fn number(&self) -> u64 {
        self.variables.number()
    }

    /// Returns the cursors of the variables that steps write to some bytes of the frame.
    pub(super) fn cursors_at(&self, bytes: &[Range<usize>]) -> Vec<usize> {
        let overlaps = |target: &Range<usize>| {
            bytes.iter().any(|key| key.start < target.end && target.start < key.end)
        };
        let mut cursors = Vec::new();
        for operation in self.operations.iter() {
            let (cursor, target) = match operation {
                Operation::Write16 { cursor, offset, .. } => (cursor, *offset..offset + 2),
                Operation::Write32 { cursor, offset, .. } => (cursor, *offset..offset + 4),
                Operation::Write64 { cursor, offset, .. } => (cursor, *offset..offset + 8),
                Operation::WriteBits(write) => (&write.variable, write.target()),
                _ => continue,
            };
            if overlaps(&target) && !cursors.contains(cursor) {
                cursors.push(*cursor);
            }
        }
        cursors
    }

    /// Returns the value of a variable in the current frame.
    #[inline]
    pub(super) fn value(&self, cursor: usize) -> u128 {
        self.variables.value(cursor)
    }

    /// Returns the length of any frame of the stream, by definition.
    pub(super) fn length(&self, number: u64) -> usize {
        match self.lengths_vary {
            true => self.length_by(|cursor| self.variables.value_in(cursor, number)),
            false => self.length,
        }
    }

    /// Skips the current frame; returns its length.
    pub(super) fn skip(&mut self) -> usize {
        let length = self.length_by(|cursor| self.variables.value(cursor));
        self.variables.step();
        length
    }

    fn length_by(&self, value: impl Fn(usize) -> u128) -> usize {
        let last = self.operations.iter().rev().find_map(|operation| match operation {
            Operation::Length { cursor } => Some(clamp_length(value(*cursor), self.length)),
            _ => None,
        });
        last.unwrap_or(self.length)
    }

    /// Writes the current frame to the start of `buffer` and advances to the next; returns its
    /// length. A signature contains `departure`.
    ///
    /// # Panics
    /// Panics if the buffer is shorter than the template.
    // Inlined: there is one call for each way to send, and a call would cost as much as some steps.
    #[inline(always)]
    pub(super) fn make(&mut self, buffer: &mut [u8], departure: Instant) -> usize {
        if self.long.is_empty()
            && let Some(block) = buffer.first_chunk_mut()
        {
            *block = self.short;
        } else {
            self.copy_long(buffer);
        }
        let frame = &mut buffer[..self.length];
        let mut length = self.length;
        for operation in self.operations.iter() {
            operation.run(&self.variables, frame, &mut length);
        }
        if self.is_measured {
            self.sign(&mut frame[..length], departure);
        }
        self.variables.step();
        length
    }

    /// Copies a template that is longer than a block, or into a buffer that is shorter than one.
    #[inline(never)]
    fn copy_long(&self, buffer: &mut [u8]) {
        match buffer.get_mut(..self.long.len()) {
            Some(blocks) if (BLOCK..=BLOCKS_LENGTH_MAX).contains(&blocks.len()) => {
                let (from, to) = (self.long.as_chunks(), blocks.as_chunks_mut());
                from.0.iter().zip(to.0).for_each(|(from, to): (&[u8; BLOCK], _)| *to = *from);
            }
            _ => buffer[..self.length].copy_from_slice(self.template()),
        }
    }

    #[inline]
    fn sign(&mut self, frame: &mut [u8], departure: Instant) {
        let (stream, sequence) = (self.stream, self.signed);
        self.signed += 1;
        // Plans reserve room for the signature; a frame without room stays unsigned.
        let Some(end) = frame.last_chunk_mut() else { return };
        *end = Signature { stream, sequence, departure: departure.as_nanos() }.encode();
        if self.signs_apart {
            self.move_signature(frame);
        }
    }

    /// Moves the signature in front of the trailer, and computes the CRC that covers it.
    #[cold]
    fn move_signature(&self, frame: &mut [u8]) {
        let trailer = usize::from(self.trailer);
        if let Some(start) = frame.len().checked_sub(Signature::LENGTH + trailer) {
            frame[start..].rotate_left(trailer);
        }
        for operation in self.operations.iter() {
            match operation {
                Operation::WholeSum(sum @ Checksum::Crc32c { .. }) => {
                    whole_sum(*sum, frame, frame.len());
                }
                Operation::WrongSum(sum @ Checksum::Crc32c { .. }) => {
                    wrong_sum(*sum, frame, frame.len());
                }
                _ => {}
            }
        }
    }

    /// Prefetches the cache lines that the next frame needs, except the first fields, which share a
    /// line with the stream.
    #[inline]
    pub(super) fn prefetch(&self) {
        self.variables.prefetch();
        prefetch(&self.signed);
        prefetch(&self.short);
    }
}

impl OperationCache {
    fn operations(&mut self, steps: &[Step], length: usize, signed: usize) -> Arc<[Operation]> {
        let key = (steps.to_vec(), length, signed);
        let operations = self.0.entry(key).or_insert_with(|| operations(steps, length, signed));
        Arc::clone(operations)
    }
}

/// Compiles steps. `signed`: bytes of signature and trailer; 0 without a signature.
fn operations(steps: &[Step], length: usize, signed: usize) -> Arc<[Operation]> {
    let varies = steps.iter().any(|step| matches!(step, Step::Length { .. }));
    let signature = length.saturating_sub(signed);
    let writes_there = |step| written(step).is_some_and(|range| range.end > signature);
    let mut clears = signed > 0 && (varies || steps.iter().any(writes_there));
    let mut operations = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        if clears && matches!(step, Step::Checksum(_) | Step::WrongChecksum(_)) {
            operations.push(Operation::ClearSignature { bytes: signed });
            clears = false;
        }
        operations.push(match step {
            Step::Write(write) => Operation::write(write),
            Step::Length { variable } => Operation::Length { cursor: *variable },
            Step::WriteLength { offset, less } => {
                Operation::WriteLength { offset: *offset, less: *less }
            }
            Step::Checksum(sum) if varies => Operation::WholeSum(*sum),
            Step::Checksum(sum) => Operation::sum(*sum, length, steps, index),
            Step::WrongChecksum(sum) => Operation::WrongSum(*sum),
        });
    }
    operations.into()
}

impl Operation {
    fn write(write: &Write) -> Self {
        let Write { variable: cursor, offset, width, add, shift, mask, order } = *write;
        let is_whole = shift == 0 && order == ByteOrder::Network;
        match width {
            2 if is_whole && mask & 0xffff == 0xffff => {
                Self::Write16 { cursor, offset, add: add as u16 }
            }
            4 if is_whole && mask & 0xffff_ffff == 0xffff_ffff => {
                Self::Write32 { cursor, offset, add: add as u32 }
            }
            8 if is_whole && mask as u64 == u64::MAX => {
                Self::Write64 { cursor, offset, add: add as u64 }
            }
            _ => Self::WriteBits(write.clone()),
        }
    }

    fn sum(sum: Checksum, length: usize, steps: &[Step], index: usize) -> Self {
        let Checksum::Internet { offset, never_zero, .. } = sum else {
            return Self::WholeSum(sum);
        };
        let before = &steps[..index];
        let is_free = !is_written(before, offset) && !is_written(before, offset + 1);
        match changing_words(sum, length, before) {
            Some(words) if is_free => {
                let changing = pairs(&words, length);
                Self::SumOfChanges { offset, changing, never_zero, step: (index, sum) }
            }
            _ => Self::WholeSum(sum),
        }
    }

    #[inline(always)]
    fn run(&self, variables: &Variables, frame: &mut [u8], length: &mut usize) {
        match self {
            Self::Write16 { cursor, offset, add } => {
                let value = (variables.lower(*cursor) as u16).wrapping_add(*add);
                frame[*offset..offset + 2].copy_from_slice(&value.to_be_bytes());
            }
            Self::Write32 { cursor, offset, add } => {
                let value = (variables.lower(*cursor) as u32).wrapping_add(*add);
                frame[*offset..offset + 4].copy_from_slice(&value.to_be_bytes());
            }
            Self::Write64 { cursor, offset, add } => {
                let value = variables.lower(*cursor).wrapping_add(*add);
                frame[*offset..offset + 8].copy_from_slice(&value.to_be_bytes());
            }
            Self::WriteBits(write) => write_bits(write, variables, frame),
            Self::Length { cursor } => {
                *length = clamp_length(variables.value(*cursor), frame.len());
            }
            Self::WriteLength { offset, less } => {
                let counted = length.saturating_sub(*less) as u16;
                frame[*offset..offset + 2].copy_from_slice(&counted.to_be_bytes());
            }
            Self::ClearSignature { bytes } => clear_end(&mut frame[..*length], *bytes),
            Self::SumOfChanges { offset, changing, never_zero, .. } => {
                let mut total = u64::from(u16_at(frame, *offset));
                for VariableWords { offset, mask } in changing {
                    total += u64::from(u32_at(frame, *offset) & mask);
                }
                write_checksum(frame, *offset, total, *never_zero);
            }
            Self::WholeSum(sum) => whole_sum(*sum, frame, *length),
            Self::WrongSum(sum) => wrong_sum(*sum, frame, *length),
        }
    }
}

#[inline(never)]
fn clear_end(frame: &mut [u8], bytes: usize) {
    if let Some(start) = frame.len().checked_sub(bytes) {
        frame[start..].fill(0);
    }
}

fn clamp_length(length: u128, length_max: usize) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX).clamp(FRAME_LENGTH_MIN, length_max)
}

/// Returns the words that a checksum covers and earlier steps write, without its own field; `None`
/// if these are not whole words. A checksum never precedes another one that covers it.
fn changing_words(sum: Checksum, length: usize, before: &[Step]) -> Option<Vec<usize>> {
    let Checksum::Internet { offset, start, end, pseudo_header, .. } = sum else { return None };
    let end = end.unwrap_or(length);
    let mut words = Vec::new();
    let mut take = |from: usize, to: usize| {
        (from..to).step_by(2).all(|word| {
            let is_whole = word + 1 < to;
            let changes = is_written(before, word) || is_whole && is_written(before, word + 1);
            if changes && word != offset {
                words.push(word);
            }
            is_whole || !changes
        })
    };
    let mut is_whole = take(start, end);
    match pseudo_header {
        PseudoHeader::None => {}
        PseudoHeader::Ipv4 { header, .. } => is_whole &= take(header + 12, header + 20),
        PseudoHeader::Ipv6 { header, .. } => is_whole &= take(header + 8, header + 40),
    }
    (is_whole && offset.wrapping_sub(start) % 2 == 0).then_some(words)
}

/// Stores the sum of all constant words that a checksum covers in its field.
fn store_constant_sum(sum: Checksum, before: &[Step], template: &mut [u8]) {
    let Checksum::Internet { offset, start, end, pseudo_header, .. } = sum else { return };
    let mut constant = template.to_vec();
    for word in changing_words(sum, template.len(), before).into_iter().flatten() {
        constant[word..word + 2].fill(0);
    }
    constant[offset..offset + 2].fill(0);
    let base = covered_sum(&constant, start, end.unwrap_or(template.len()), pseudo_header);
    template[offset..offset + 2].copy_from_slice(&base.to_be_bytes());
}

fn is_written(steps: &[Step], at: usize) -> bool {
    steps.iter().any(|step| written(step).is_some_and(|range| range.contains(&at)))
}

/// Returns the bytes that a step writes.
pub(crate) fn written(step: &Step) -> Option<core::ops::Range<usize>> {
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

/// Joins adjacent words, in a frame of `length` bytes.
fn pairs(words: &[usize], length: usize) -> Box<[VariableWords]> {
    let mut changing = Vec::new();
    let mut rest = words;
    while let Some((&offset, behind)) = rest.split_first() {
        rest = match behind.split_first() {
            Some((&next, behind)) if next == offset + 2 => {
                changing.push(VariableWords { offset, mask: u32::MAX });
                behind
            }
            _ => {
                // A single word is the upper half of 32 bits, or the lower half at the end of the
                // frame.
                changing.push(match offset + 4 <= length {
                    true => VariableWords { offset, mask: 0xffff_0000 },
                    false => VariableWords { offset: offset - 2, mask: 0xffff },
                });
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

#[inline(never)]
fn write_bits(write: &Write, variables: &Variables, frame: &mut [u8]) {
    let mut value = variables.value(write.variable).wrapping_add(write.add);
    value = match u32::try_from(write.shift) {
        Ok(left) => value.checked_shl(left).unwrap_or(0),
        Err(_) => value.checked_shr(write.shift.unsigned_abs()).unwrap_or(0),
    };
    let field = &mut frame[write.offset..write.offset + write.width];
    for place in 0..field.len() {
        // Byte with significance `place`, counted from the least significant one.
        let byte = match write.order {
            ByteOrder::Network => &mut field[write.width - 1 - place],
            ByteOrder::Little => &mut field[place],
        };
        let mask = (write.mask >> (8 * place)) as u8;
        *byte = *byte & !mask | (value >> (8 * place)) as u8 & mask;
    }
}

#[inline]
fn write_checksum(frame: &mut [u8], offset: usize, total: u64, never_zero: bool) {
    let (total, carry) = (total as u32).overflowing_add((total >> 32) as u32);
    // After an overflow the sum is small, so the carry cannot overflow again.
    let total = total + u32::from(carry);
    let total = (total & 0xffff) + (total >> 16);
    // The second folding absorbs the carry of the first.
    let sum = match !((total + (total >> 16)) as u16) {
        0 if never_zero => 0xffff,
        sum => sum,
    };
    frame[offset..offset + 2].copy_from_slice(&sum.to_be_bytes());
}

#[inline(never)]
fn whole_sum(sum: Checksum, frame: &mut [u8], length: usize) {
    match sum {
        Checksum::Internet { offset, start, end, pseudo_header, never_zero } => {
            let end = end.unwrap_or(length).min(length);
            if end < offset + 2 || start > end {
                return;
            }
            frame[offset..offset + 2].fill(0);
            let total = covered_sum(frame, start, end, pseudo_header);
            write_checksum(frame, offset, u64::from(total), never_zero);
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
            write_checksum(frame, offset, u64::from(right) + 1, never_zero);
        }
        Checksum::Crc32c { offset, .. } => {
            for byte in &mut frame[offset..offset + 4] {
                *byte = !*byte;
            }
        }
    }
}

/// Returns the sum over a part of a frame and its pseudo header.
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
    use wirestorm_model::stream::{Program, Speed, Transmission, Values, Variable};

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
        let plan = Stream {
            name: "stream".into(),
            template: (1..=40).collect(),
            program: Program { variables: vec![variable, length], steps },
            transmission: Transmission::continuous(Speed::Max),
            is_measured: false,
            trailer: 0,
            is_marked: false,
            member: None,
        };
        let mut maker = FrameBuilder::new(&plan, 0, Share::ALL, &mut OperationCache::default());
        let mut buffer = vec![0; 64];
        maker.make(&mut buffer, Instant::ZERO);
        let length = maker.make(&mut buffer, Instant::ZERO);
        buffer.truncate(length);
        assert_eq!(&buffer[20..22], &[0x56, 0x78]);
        buffer
    }

    #[test]
    fn wrong_checksum_differs_by_one() {
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
    fn wrong_crc_is_inverted() {
        let sum = Checksum::Crc32c { offset: 24, start: 16 };
        let right = second_frame(Step::Checksum(sum), false);
        let wrong = second_frame(Step::WrongChecksum(sum), false);
        for (right, wrong) in right[24..28].iter().zip(&wrong[24..28]) {
            assert_eq!(*wrong, !right);
        }
        assert_eq!((&wrong[..24], &wrong[28..]), (&right[..24], &right[28..]));
    }
}
