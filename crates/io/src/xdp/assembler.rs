//! Assembler of BPF programs (RFC 9669).

use std::os::fd::{AsRawFd, BorrowedFd};

/// One instruction; a constant of 64 bits takes two.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    code: u8,
    /// Source in the upper half, destination in the lower half.
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Register {
    /// Return value of a program or a helper.
    R0,
    /// First argument of a program or a helper. Helpers change this one and those up to `R5`.
    R1,
    R2,
    R3,
    R4,
    R5,
    /// First of the registers that helpers keep.
    R6,
    R7,
    R8,
    R9,
    /// End of the stack, read-only.
    Stack,
}

/// Width of a load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    Byte,
    Half,
    Word,
    Double,
}

impl Width {
    /// Returns the width of this number of bytes: 1, 2, 4 or 8.
    pub(super) fn of(bytes: usize) -> Self {
        match bytes {
            1 => Self::Byte,
            2 => Self::Half,
            4 => Self::Word,
            8 => Self::Double,
            _ => unreachable!("a field of {bytes} bytes"),
        }
    }

    const fn code(self) -> u8 {
        match self {
            Self::Word => 0x00,
            Self::Half => 0x08,
            Self::Byte => 0x10,
            Self::Double => 0x18,
        }
    }
}

/// Operation on 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Alu {
    Add = 0x00,
    Multiply = 0x20,
    Divide = 0x30,
    Or = 0x40,
    And = 0x50,
    ShiftLeft = 0x60,
    ShiftRight = 0x70,
    Modulo = 0x90,
    Xor = 0xa0,
    Move = 0xb0,
    Subtract = 0x10,
}

/// Condition of a jump; comparisons are unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum When {
    Equal = 0x10,
    Greater = 0x20,
    GreaterOrEqual = 0x30,
    NotEqual = 0x50,
    Less = 0xa0,
}

/// Function of the kernel (`bpf.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(super) enum Helper {
    MapLookup = 1,
    KtimeGetNs = 5,
    TailCall = 12,
    RedirectMap = 51,
    XdpAdjustTail = 65,
    XdpStoreBytes = 190,
}

/// Target of jumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label(usize);

/// A program under construction.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    instructions: Vec<Instruction>,
    /// Position of each label.
    labels: Vec<usize>,
    /// Position and label of each jump.
    jumps: Vec<(usize, Label)>,
}

/// Classes and sources of instruction codes.
const LOAD_CONSTANT: u8 = 0x18;
const LOAD: u8 = 0x61;
const STORE: u8 = 0x63;
const STORE_CONSTANT: u8 = 0x62;
const ALU64: u8 = 0x07;
const JUMP: u8 = 0x05;
const FROM_REGISTER: u8 = 0x08;
const TO_BIG_ENDIAN: u8 = 0xdc;
const TRUNCATE_TO_WORD: u8 = 0xbc;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
/// Kinds of constants: the descriptor of a map, and the address of the value of a map with one.
const MAP: u8 = 1;
const MAP_VALUE: u8 = 2;

impl Assembler {
    fn emit(&mut self, code: u8, to: Register, from: u8, offset: i16, immediate: i32) {
        let registers = from << 4 | to as u8;
        self.instructions.push(Instruction { code, registers, offset, immediate });
    }

    /// `to = *(from + offset)`, without sign.
    pub(super) fn load(&mut self, width: Width, to: Register, from: Register, offset: usize) {
        self.emit(LOAD & !0x18 | width.code(), to, from as u8, short(offset), 0);
    }

    /// `*(to + offset) = from`
    pub(super) fn store(&mut self, width: Width, to: Register, offset: usize, from: Register) {
        self.emit(STORE & !0x18 | width.code(), to, from as u8, short(offset), 0);
    }

    /// `*(to + offset) = constant`
    pub(super) fn store_constant(&mut self, width: Width, to: Register, offset: usize, value: i32) {
        self.emit(STORE_CONSTANT & !0x18 | width.code(), to, 0, short(offset), value);
    }

    /// Stores a register `depth` bytes below the end of the stack.
    pub(super) fn push(&mut self, width: Width, depth: usize, from: Register) {
        let code = STORE & !0x18 | width.code();
        self.emit(code, Register::Stack, from as u8, -short(depth), 0);
    }

    /// Loads from `depth` bytes below the end of the stack.
    pub(super) fn pop(&mut self, width: Width, to: Register, depth: usize) {
        let code = LOAD & !0x18 | width.code();
        self.emit(code, to, Register::Stack as u8, -short(depth), 0);
    }

    /// `to = to OP from`
    pub(super) fn alu(&mut self, operation: Alu, to: Register, from: Register) {
        self.emit(ALU64 | FROM_REGISTER | operation as u8, to, from as u8, 0, 0);
    }

    /// `to = to OP constant`, extended with its sign.
    pub(super) fn alu_constant(&mut self, operation: Alu, to: Register, value: i32) {
        self.emit(ALU64 | operation as u8, to, 0, 0, value);
    }

    /// `to = from`
    pub(super) fn copy(&mut self, to: Register, from: Register) {
        self.alu(Alu::Move, to, from);
    }

    /// `to = from & 0xffff_ffff`
    pub(super) fn copy_word(&mut self, to: Register, from: Register) {
        self.emit(TRUNCATE_TO_WORD, to, from as u8, 0, 0);
    }

    /// `to = value`
    pub(super) fn set(&mut self, to: Register, value: u64) {
        match i32::try_from(value.cast_signed()) {
            Ok(value) => self.alu_constant(Alu::Move, to, value),
            Err(_) => self.constant(to, 0, value as u32, (value >> 32) as u32),
        }
    }

    /// `to = to + value`, modulo 2^64.
    pub(super) fn add(&mut self, to: Register, value: u64, scratch: Register) {
        match i32::try_from(value.cast_signed()) {
            Ok(0) => {}
            Ok(value) => self.alu_constant(Alu::Add, to, value),
            Err(_) => {
                self.set(scratch, value);
                self.alu(Alu::Add, to, scratch);
            }
        }
    }

    /// `to = to & value`
    pub(super) fn and(&mut self, to: Register, value: u64, scratch: Register) {
        match i32::try_from(value.cast_signed()) {
            Ok(value) => self.alu_constant(Alu::And, to, value),
            Err(_) => {
                self.set(scratch, value);
                self.alu(Alu::And, to, scratch);
            }
        }
    }

    /// `to` = address of a map.
    pub(super) fn map(&mut self, to: Register, map: BorrowedFd<'_>) {
        self.constant(to, MAP, map.as_raw_fd().cast_unsigned(), 0);
    }

    /// `to` = address of the only value of an array.
    pub(super) fn map_value(&mut self, to: Register, map: BorrowedFd<'_>) {
        self.constant(to, MAP_VALUE, map.as_raw_fd().cast_unsigned(), 0);
    }

    fn constant(&mut self, to: Register, kind: u8, lower: u32, upper: u32) {
        self.emit(LOAD_CONSTANT, to, kind, 0, lower.cast_signed());
        self.emit(0, Register::R0, 0, 0, upper.cast_signed());
    }

    /// Converts the lower 2, 4 or 8 bytes of a register to network byte order; clears the others.
    pub(super) fn swap_to_network(&mut self, register: Register, bytes: usize) {
        self.emit(TO_BIG_ENDIAN, register, 0, 0, 8 * bytes as i32);
    }

    /// Creates a label, to be placed later.
    pub(super) fn label(&mut self) -> Label {
        self.labels.push(usize::MAX);
        Label(self.labels.len() - 1)
    }

    /// Places a label here.
    pub(super) fn place(&mut self, label: Label) {
        self.labels[label.0] = self.instructions.len();
    }

    pub(super) fn jump_if(&mut self, a: Register, when: When, b: Register, label: Label) {
        self.jumps.push((self.instructions.len(), label));
        self.emit(JUMP | FROM_REGISTER | when as u8, a, b as u8, 0, 0);
    }

    pub(super) fn jump_if_constant(&mut self, a: Register, when: When, b: i32, label: Label) {
        self.jumps.push((self.instructions.len(), label));
        self.emit(JUMP | when as u8, a, 0, 0, b);
    }

    pub(super) fn call(&mut self, helper: Helper) {
        self.emit(CALL, Register::R0, 0, 0, helper as i32);
    }

    /// Ends the program with an XDP action.
    pub(super) fn exit_with(&mut self, action: u32) {
        self.set(Register::R0, u64::from(action));
        self.exit();
    }

    /// Ends the program with the result in `R0`.
    pub(super) fn exit(&mut self) {
        self.emit(EXIT, Register::R0, 0, 0, 0);
    }

    /// Returns whether a jump leads to a label.
    pub(super) fn is_used(&self, label: Label) -> bool {
        self.jumps.iter().any(|(_, target)| *target == label)
    }

    /// Returns the program.
    ///
    /// # Panics
    /// Panics if a jump leads to a label without a place.
    pub(super) fn finish(mut self) -> Vec<Instruction> {
        for (at, label) in self.jumps {
            let place = self.labels[label.0];
            assert_ne!(place, usize::MAX, "a label without a place");
            let distance = place as isize - at as isize - 1;
            self.instructions[at].offset = i16::try_from(distance).expect("a short program");
        }
        self.instructions
    }
}

/// Converts an offset.
fn short(offset: usize) -> i16 {
    i16::try_from(offset).expect("an offset within a stream or a frame")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_encoded_as_in_rfc_9669() {
        let mut assembler = Assembler::default();
        let end = assembler.label();
        assembler.load(Width::Word, Register::R2, Register::R1, 4);
        assembler.push(Width::Double, 8, Register::R2);
        assembler.set(Register::R3, 0x1234_5678_9abc_def0);
        assembler.alu(Alu::Add, Register::R2, Register::R3);
        assembler.swap_to_network(Register::R2, 2);
        assembler.jump_if_constant(Register::R2, When::NotEqual, -1, end);
        assembler.store_constant(Width::Byte, Register::R9, 3, 7);
        assembler.place(end);
        assembler.call(Helper::RedirectMap);
        assembler.exit();
        let bytes: Vec<_> = assembler
            .finish()
            .iter()
            .map(|it| (it.code, it.registers, it.offset, it.immediate))
            .collect();
        let expected = [
            (0x61, 0x12, 4, 0),
            (0x7b, 0x2a, -8, 0),
            (0x18, 0x03, 0, 0x9abc_def0_u32.cast_signed()),
            (0x00, 0x00, 0, 0x1234_5678),
            (0x0f, 0x32, 0, 0),
            (0xdc, 0x02, 0, 16),
            (0x55, 0x02, 1, -1),
            (0x72, 0x09, 3, 7),
            (0x85, 0x00, 0, 51),
            (0x95, 0x00, 0, 0),
        ];
        assert_eq!(bytes, expected);
    }
}
