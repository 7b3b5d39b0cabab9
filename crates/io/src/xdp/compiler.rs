//! Compiles the shape of frames to a BPF program that makes and redirects them.
//!
//! Constants of the shape become constants of the program; what differs between streams is read
//! from the stream. A C program with the same constants as read-only data takes 18 ns a frame more,
//! because the verifier does not remove their loads and comparisons.

use std::mem::{offset_of, size_of};
use std::os::fd::BorrowedFd;

use wirestorm_base::resident::{FieldWrite, Operation, Shape, ValueSource};

use super::assembler::{Alu, Assembler, Helper, Instruction, Label, Register, When, Width};
use super::layout::{
    CLOCK_FRAMES, CursorRecord, ListValue, PROGRAM_RING, Ring, SHORT_TEMPLATE, SLAB_BYTES,
    SLAB_SHIFT, SLABS_MAX, StreamRecord,
};
use Register::{R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, Stack};

/// What a program works with.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    pub(super) ring: BorrowedFd<'a>,
    pub(super) streams: BorrowedFd<'a>,
    pub(super) values: BorrowedFd<'a>,
    pub(super) store: BorrowedFd<'a>,
    pub(super) programs: BorrowedFd<'a>,
    /// Map of the interface.
    pub(super) interface: BorrowedFd<'a>,
    /// Bytes of the frame in a page before the program runs.
    pub(super) page_bytes: usize,
    /// Whether the program runs first, for the only stream, without due times; otherwise another
    /// one has chosen the stream.
    pub(super) is_first: bool,
    /// Whether strict departures leave frames out.
    pub(super) leaves_out: bool,
}

// XDP actions (bpf.h).
const XDP_ABORTED: u32 = 0;
const XDP_DROP: u32 = 1;
const XDP_REDIRECT: i32 = 4;

// Offsets in `struct xdp_md` (bpf.h).
const DATA: usize = 0;
const DATA_END: usize = 4;

const SIGNATURE_MAGIC: u64 = 0x5753;

/// Frames for which the first program reads the clock once, if frames have no time.
const END_FRAMES: usize = 256;

/// Bytes on the stack: two words as keys of maps, then the wraps of each variable.
const KEY: usize = 4;
const WRAPS: usize = 8;

/// Compiles a shape. All offsets of its operations lie within its length, which is at most that of
/// a page's frame.
pub(super) fn compile(shape: &Shape, around: &Surroundings<'_>) -> Vec<Instruction> {
    let mut compiler = Compiler::new(shape, around);
    compiler.begin();
    compiler.fill();
    for operation in &shape.operations {
        compiler.operation(operation);
    }
    if let Some(offset) = shape.signature {
        compiler.sign(offset);
    }
    compiler.step();
    compiler.send();
    compiler.endings();
    compiler.code.finish()
}

/// Registers: `R6` is the context, `R7` the ring, `R8` the stream, `R9` the frame. `R4` is the sum
/// of a checksum.
struct Compiler<'a> {
    shape: &'a Shape,
    around: &'a Surroundings<'a>,
    code: Assembler,
    /// The frame cannot be made.
    refuse: Label,
    /// The frame is left out.
    leave_out: Label,
    /// The streams have ended, or have stopped.
    ring: Label,
    end: Label,
}

impl<'a> Compiler<'a> {
    fn new(shape: &'a Shape, around: &'a Surroundings<'a>) -> Self {
        let mut code = Assembler::default();
        let [refuse, leave_out, ring, end] = std::array::from_fn(|_| code.label());
        Self { shape, around, code, refuse, leave_out, ring, end }
    }

    /// Finds the stream, and counts the frame.
    fn begin(&mut self) {
        let code = &mut self.code;
        code.copy(R6, R1);
        code.map_value(R7, self.around.ring);
        if !self.around.is_first {
            code.load(Width::Double, R1, R7, offset_of!(Ring, resident.stream));
            code.push(Width::Word, KEY, R1);
            self.lookup(self.around.streams, KEY);
            self.code.copy(R8, R0);
            return;
        }
        code.map_value(R8, self.around.streams);
        for flag in [offset_of!(Ring, user.resident), offset_of!(Ring, resident.sending)] {
            code.load(Width::Double, R1, R7, flag);
            code.jump_if_constant(R1, When::Equal, 0, self.ring);
        }
        let left = offset_of!(StreamRecord, left);
        let (timed, more) = (code.label(), code.label());
        let frames = if self.shape.signature.is_some() { CLOCK_FRAMES } else { END_FRAMES };
        code.load(Width::Double, R9, R8, left);
        code.copy(R1, R9);
        code.alu_constant(Alu::And, R1, frames as i32 - 1);
        code.jump_if_constant(R1, When::NotEqual, 0, timed);
        code.call(Helper::KtimeGetNs);
        code.store(Width::Double, R7, offset_of!(Ring, resident.time), R0);
        code.load(Width::Double, R1, R7, offset_of!(Ring, resident.until));
        code.jump_if(R0, When::GreaterOrEqual, R1, self.end);
        code.place(timed);
        code.alu_constant(Alu::Add, R9, -1);
        code.store(Width::Double, R8, left, R9);
        code.jump_if_constant(R9, When::NotEqual, 0, more);
        code.store_constant(Width::Double, R7, offset_of!(Ring, resident.sending), 0);
        code.place(more);
    }

    /// Sets `R0` to the address of a value, whose key is on the stack.
    fn lookup(&mut self, map: BorrowedFd<'_>, key: usize) {
        let code = &mut self.code;
        code.map(R1, map);
        code.copy(R2, Stack);
        code.alu_constant(Alu::Add, R2, -(key as i32));
        code.call(Helper::MapLookup);
        code.jump_if_constant(R0, When::Equal, 0, self.refuse);
    }

    /// Sets `R9` to the frame.
    fn find_frame(&mut self) {
        let code = &mut self.code;
        code.load(Width::Word, R9, R6, DATA);
        code.load(Width::Word, R2, R6, DATA_END);
        code.copy(R1, R9);
        code.alu_constant(Alu::Add, R1, self.around.page_bytes as i32);
        code.jump_if(R1, When::Greater, R2, self.refuse);
    }

    /// Copies the template to the frame.
    fn fill(&mut self) {
        let length = self.shape.length;
        if length > SHORT_TEMPLATE {
            return self.fill_long();
        }
        self.find_frame();
        // A page has room behind a shorter frame, and a stream behind a shorter template.
        let has_room = length.next_multiple_of(8) <= self.around.page_bytes;
        let whole = if has_room { length.next_multiple_of(8) } else { length - length % 8 };
        let mut places: Vec<usize> = (0..whole).step_by(8).collect();
        // The last word overlaps.
        places.extend((whole < length).then(|| length - 8));
        const REGISTERS: [Register; 5] = [R1, R2, R3, R4, R5];
        for places in places.chunks(REGISTERS.len()) {
            for (place, register) in places.iter().zip(REGISTERS) {
                let offset = offset_of!(StreamRecord, template) + place;
                self.code.load(Width::Double, register, R8, offset);
            }
            for (place, register) in places.iter().zip(REGISTERS) {
                self.code.store(Width::Double, R9, *place, register);
            }
        }
    }

    fn fill_long(&mut self) {
        let code = &mut self.code;
        let source = offset_of!(StreamRecord, source);
        code.load(Width::Word, R1, R8, source);
        code.alu_constant(Alu::ShiftRight, R1, SLAB_SHIFT as i32);
        code.alu_constant(Alu::And, R1, SLABS_MAX as i32 - 1);
        code.push(Width::Word, KEY, R1);
        self.lookup(self.around.store, KEY);
        let code = &mut self.code;
        code.load(Width::Word, R3, R8, source);
        code.alu_constant(Alu::And, R3, SLAB_BYTES as i32 - 1);
        code.alu(Alu::Add, R3, R0);
        code.copy(R1, R6);
        code.set(R2, 0);
        code.set(R4, self.shape.length as u64);
        code.call(Helper::XdpStoreBytes);
        code.jump_if_constant(R0, When::NotEqual, 0, self.refuse);
        self.find_frame();
    }

    fn operation(&mut self, operation: &Operation) {
        match *operation {
            Operation::Write(ref write) => self.write(write),
            Operation::SumBegin { offset } => self.code.load(Width::Half, R4, R9, offset),
            Operation::SumAdd { offset, width } => {
                // 32 bits at a time, so that no carry is lost.
                let word = width.min(4);
                for offset in (offset..offset + width).step_by(word) {
                    self.code.load(Width::of(word), R1, R9, offset);
                    self.code.alu(Alu::Add, R4, R1);
                }
            }
            Operation::SumEnd { offset, never_zero } => {
                self.fold(R4);
                let code = &mut self.code;
                code.alu_constant(Alu::Xor, R4, 0xffff);
                if never_zero {
                    let differs = code.label();
                    code.jump_if_constant(R4, When::NotEqual, 0, differs);
                    code.set(R4, 0xffff);
                    code.place(differs);
                }
                code.store(Width::Half, R9, offset, R4);
            }
        }
    }

    /// Folds a sum of words of 32 bits to 16 bits.
    fn fold(&mut self, sum: Register) {
        let code = &mut self.code;
        code.copy(R1, sum);
        code.alu_constant(Alu::ShiftRight, R1, 32);
        code.copy_word(sum, sum);
        code.alu(Alu::Add, sum, R1);
        for _ in 0..3 {
            code.copy(R1, sum);
            code.alu_constant(Alu::ShiftRight, R1, 16);
            code.alu_constant(Alu::And, sum, 0xffff);
            code.alu(Alu::Add, sum, R1);
        }
    }

    fn write(&mut self, write: &FieldWrite) {
        self.value(write);
        let code = &mut self.code;
        match write.shift {
            0 => {}
            1.. => code.alu_constant(Alu::ShiftLeft, R1, write.shift),
            _ => code.alu_constant(Alu::ShiftRight, R1, -write.shift),
        }
        if !write.is_little && write.width > 1 {
            code.swap_to_network(R1, write.width);
        }
        if write.mask != FieldWrite::whole(write.width) {
            // The mask as it lies in memory.
            let swap = !write.is_little && write.width > 1;
            let shifted = write.mask << (64 - 8 * write.width);
            let mask = if swap { shifted.swap_bytes() } else { write.mask };
            code.and(R1, mask, R3);
            code.load(Width::of(write.width), R2, R9, write.offset);
            code.and(R2, !mask, R3);
            code.alu(Alu::Or, R1, R2);
        }
        code.store(Width::of(write.width), R9, write.offset, R1);
    }

    /// Sets `R1` to the value to write.
    fn value(&mut self, write: &FieldWrite) {
        let (add_lower, add_upper) = (write.add as u64, (write.add >> 64) as u64);
        let source = self.shape.cursors[write.cursor].source;
        let record = offset_of!(StreamRecord, cursors) + write.cursor * size_of::<CursorRecord>();
        let field = |offset: usize| record + offset;
        let code = &mut self.code;
        code.load(Width::Double, R1, R8, field(offset_of!(CursorRecord, place)));
        code.load(Width::Double, R2, R8, field(offset_of!(CursorRecord, base)));
        match source {
            ValueSource::Counter => {
                code.load(Width::Double, R3, R8, field(offset_of!(CursorRecord, step)));
                code.alu(Alu::Multiply, R1, R3);
                code.alu(Alu::Add, R1, R2);
            }
            ValueSource::List => {
                code.alu(Alu::Add, R1, R2);
                code.push(Width::Word, KEY, R1);
                self.lookup(self.around.values, KEY);
                self.code.load(Width::Double, R1, R0, offset_of!(ListValue, lower));
            }
            ValueSource::Random => {
                self.draw();
                let code = &mut self.code;
                code.load(Width::Double, R2, R8, field(offset_of!(CursorRecord, step)));
                self.multiply_high();
                let code = &mut self.code;
                code.load(Width::Double, R2, R8, field(offset_of!(CursorRecord, min)));
                code.alu(Alu::Add, R1, R2);
            }
        }
        let code = &mut self.code;
        if !write.is_upper {
            return code.add(R1, add_lower, R2);
        }
        let (source, offset) = match source {
            ValueSource::List => (R0, offset_of!(ListValue, upper)),
            _ => (R8, field(offset_of!(CursorRecord, upper))),
        };
        if add_lower == 0 {
            code.load(Width::Double, R1, source, offset);
            return code.add(R1, add_upper, R2);
        }
        // The carry of the lower half.
        code.copy(R3, R1);
        code.add(R3, add_lower, R2);
        code.load(Width::Double, R2, source, offset);
        let fits = code.label();
        code.jump_if(R3, When::GreaterOrEqual, R1, fits);
        code.alu_constant(Alu::Add, R2, 1);
        code.place(fits);
        code.copy(R1, R2);
        code.add(R1, add_upper, R2);
    }

    /// Sets `R1` to the draw of place `R1` with seed `R2`, as `wirestorm_base::random::draw`.
    fn draw(&mut self) {
        let code = &mut self.code;
        code.alu_constant(Alu::Add, R1, 1);
        code.set(R3, 0x9e37_79b9_7f4a_7c15);
        code.alu(Alu::Multiply, R1, R3);
        code.alu(Alu::Xor, R1, R2);
        for (shift, factor) in [(30, 0xbf58_476d_1ce4_e5b9), (27, 0x94d0_49bb_1331_11eb)] {
            code.copy(R2, R1);
            code.alu_constant(Alu::ShiftRight, R2, shift);
            code.alu(Alu::Xor, R1, R2);
            code.set(R3, factor);
            code.alu(Alu::Multiply, R1, R3);
        }
        code.copy(R2, R1);
        code.alu_constant(Alu::ShiftRight, R2, 31);
        code.alu(Alu::Xor, R1, R2);
    }

    /// Sets `R1` to the upper 64 bits of `R1 * R2`, from products of halves.
    fn multiply_high(&mut self) {
        let code = &mut self.code;
        // R3: upper half of R1. R4: upper half of R2. The lower halves stay.
        for (upper, whole) in [(R3, R1), (R4, R2)] {
            code.copy(upper, whole);
            code.alu_constant(Alu::ShiftRight, upper, 32);
            code.copy_word(whole, whole);
        }
        // R5: lower times lower, its upper half.
        code.copy(R5, R1);
        code.alu(Alu::Multiply, R5, R2);
        code.alu_constant(Alu::ShiftRight, R5, 32);
        // R0: upper times lower, with that carry; it fits.
        code.copy(R0, R3);
        code.alu(Alu::Multiply, R0, R2);
        code.alu(Alu::Add, R5, R0);
        // R1: lower times upper, with the lower half of the sum; it fits.
        code.alu(Alu::Multiply, R1, R4);
        code.copy_word(R0, R5);
        code.alu(Alu::Add, R1, R0);
        code.alu_constant(Alu::ShiftRight, R1, 32);
        code.alu_constant(Alu::ShiftRight, R5, 32);
        code.alu(Alu::Add, R1, R5);
        code.alu(Alu::Multiply, R3, R4);
        code.alu(Alu::Add, R1, R3);
    }

    /// Writes a signature, as `wirestorm_engine::measure::Signature` encodes it.
    fn sign(&mut self, offset: usize) {
        let code = &mut self.code;
        let sequence = offset_of!(StreamRecord, sequence);
        code.load(Width::Word, R1, R8, offset_of!(StreamRecord, number));
        code.load(Width::Double, R2, R8, sequence);
        code.copy(R3, R2);
        code.alu_constant(Alu::Add, R3, 1);
        code.store(Width::Double, R8, sequence, R3);
        // R3: magic, number, and the upper 24 bits of the sequence.
        code.copy(R3, R2);
        code.alu_constant(Alu::ShiftRight, R3, 16);
        code.alu_constant(Alu::And, R3, 0xff_ffff);
        code.alu_constant(Alu::ShiftLeft, R1, 24);
        code.alu(Alu::Or, R3, R1);
        code.set(R1, SIGNATURE_MAGIC << 48);
        code.alu(Alu::Or, R3, R1);
        // R4: the lower 16 bits of the sequence, and the departure.
        code.alu_constant(Alu::ShiftLeft, R2, 48);
        code.load(Width::Double, R4, R7, offset_of!(Ring, resident.time));
        code.alu_constant(Alu::ShiftLeft, R4, 16);
        code.alu_constant(Alu::ShiftRight, R4, 16);
        code.alu(Alu::Or, R4, R2);
        // R5: the word that makes the sum of all 0xffff.
        code.copy_word(R5, R3);
        code.copy_word(R1, R4);
        code.alu(Alu::Add, R5, R1);
        for half in [R3, R4] {
            code.copy(R1, half);
            code.alu_constant(Alu::ShiftRight, R1, 32);
            code.alu(Alu::Add, R5, R1);
        }
        self.fold(R5);
        let code = &mut self.code;
        code.alu_constant(Alu::Xor, R5, 0xffff);
        let parts = [(R3, offset, 8), (R4, offset + 8, 8), (R5, offset + 16, 2)];
        for (register, offset, bytes) in parts {
            code.swap_to_network(register, bytes);
            code.store(Width::of(bytes), R9, offset, register);
        }
    }

    /// Advances the variables to the next frame.
    fn step(&mut self) {
        let cursors = &self.shape.cursors;
        let wraps = |cursor: usize| WRAPS + 8 * (cursor + 1);
        for (index, cursor) in cursors.iter().enumerate() {
            let is_followed = cursors.iter().any(|other| other.follows == Some(index));
            let record = offset_of!(StreamRecord, cursors) + index * size_of::<CursorRecord>();
            let field = |offset: usize| record + offset;
            let code = &mut self.code;
            let done = code.label();
            code.load(Width::Double, R1, R8, field(offset_of!(CursorRecord, place)));
            match cursor.follows {
                None => code.load(Width::Double, R2, R8, field(offset_of!(CursorRecord, places))),
                Some(other) => code.pop(Width::Double, R2, wraps(other)),
            }
            code.alu(Alu::Add, R1, R2);
            if is_followed {
                code.load(Width::Double, R3, R8, field(offset_of!(CursorRecord, wraps_beside)));
            }
            code.load(Width::Double, R2, R8, field(offset_of!(CursorRecord, cycle)));
            code.jump_if(R1, When::Less, R2, done);
            code.alu(Alu::Subtract, R1, R2);
            if is_followed {
                code.alu_constant(Alu::Add, R3, 1);
            }
            if cursor.follows.is_some() {
                // Another variable may wrap several times in a step.
                code.jump_if(R1, When::Less, R2, done);
                code.copy(R4, R1);
                code.alu(Alu::Divide, R4, R2);
                if is_followed {
                    code.alu(Alu::Add, R3, R4);
                }
                code.alu(Alu::Modulo, R1, R2);
            }
            code.place(done);
            code.store(Width::Double, R8, field(offset_of!(CursorRecord, place)), R1);
            if is_followed {
                code.push(Width::Double, wraps(index), R3);
            }
        }
    }

    fn send(&mut self) {
        let length = self.shape.length;
        let page = self.around.page_bytes;
        let code = &mut self.code;
        if self.around.leaves_out {
            code.load(Width::Double, R1, R7, offset_of!(Ring, resident.leaves_out));
            code.jump_if_constant(R1, When::NotEqual, 0, self.leave_out);
        }
        if length != page {
            code.copy(R1, R6);
            code.alu_constant(Alu::Move, R2, length as i32 - page as i32);
            code.call(Helper::XdpAdjustTail);
            code.jump_if_constant(R0, When::NotEqual, 0, self.refuse);
        }
        code.map(R1, self.around.interface);
        code.set(R2, 0);
        code.set(R3, u64::from(XDP_ABORTED));
        code.call(Helper::RedirectMap);
        code.jump_if_constant(R0, When::NotEqual, XDP_REDIRECT, self.refuse);
        self.count(offset_of!(Ring, kernel.redirected), 1);
        self.count(offset_of!(Ring, kernel.redirected_bytes), length);
        self.code.exit();
    }

    /// Places the labels that have jumps: the verifier refuses code that nothing reaches.
    fn endings(&mut self) {
        for (label, counter) in [
            (self.refuse, offset_of!(Ring, kernel.refused)),
            (self.leave_out, offset_of!(Ring, kernel.unsent)),
        ] {
            if self.code.is_used(label) {
                self.code.place(label);
                self.count(counter, 1);
                self.code.exit_with(XDP_DROP);
            }
        }
        if !self.around.is_first {
            return;
        }
        self.code.place(self.end);
        self.code.store_constant(Width::Double, R7, offset_of!(Ring, resident.sending), 0);
        self.code.place(self.ring);
        self.code.copy(R1, R6);
        self.code.map(R2, self.around.programs);
        self.code.set(R3, PROGRAM_RING as u64);
        self.code.call(Helper::TailCall);
        self.code.exit_with(XDP_ABORTED);
    }

    fn count(&mut self, counter: usize, more: usize) {
        self.code.load(Width::Double, R1, R7, counter);
        self.code.alu_constant(Alu::Add, R1, more as i32);
        self.code.store(Width::Double, R7, counter, R1);
    }
}
