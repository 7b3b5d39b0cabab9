//! Streams and captures that a port sends by itself.
//!
//! The caller describes them once; after that, a frame costs the process nothing. What the frames of
//! streams have in common is a [`Shape`], which a port may compile. What differs is in each
//! [`ResidentStream`]. The frames of a [`ResidentCapture`] are in the memory of the port.

use alloc::boxed::Box;
use alloc::vec::Vec;

use core::ops::Range;

use crate::port::StoredBytes;
use crate::rate::FixedStepTicker;
use crate::time::Instant;

/// Highest number of shapes of a port.
pub const SHAPES_MAX: usize = 63;
/// Highest number of streams of a port.
pub const STREAMS_MAX: usize = 1 << 16;
/// Highest number of variables of a stream.
pub const CURSORS_MAX: usize = 6;
/// Highest number of values in the lists of all streams of a port.
pub const VALUES_MAX: usize = 1 << 20;

/// What the frames of some streams have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Length of the frames in bytes, without FCS.
    pub length: usize,
    /// Variables. Each follows only those before it.
    pub cursors: Vec<CursorShape>,
    /// Changes of the template, in this order.
    pub operations: Vec<Operation>,
    /// Offset of a signature of 18 bytes, which the port writes after the operations.
    pub signature: Option<usize>,
}

/// A variable: what streams of a shape have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorShape {
    /// Source of the values.
    pub source: ValueSource,
    /// Variable whose wraps advance this one; `None` if every frame does.
    pub follows: Option<usize>,
}

/// Source of the values of a variable; see [`CursorValues`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueSource {
    /// They are counted.
    Counter,
    /// They are in a list.
    List,
    /// They are drawn.
    Random,
}

/// A change of a template. All offsets lie within the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Writes a part of a variable.
    Write(FieldWrite),
    /// Begins a checksum (RFC 1071). The template has the sum of the words that do not change at
    /// `offset`.
    SumBegin {
        /// Offset of the checksum.
        offset: usize,
    },
    /// Adds a word, or two or four, to the checksum.
    SumAdd {
        /// Offset of the word.
        offset: usize,
        /// 2, 4 or 8 bytes.
        width: usize,
    },
    /// Ends a checksum and writes it.
    SumEnd {
        /// Offset of the checksum.
        offset: usize,
        /// Whether to write all ones instead of zero.
        never_zero: bool,
    },
}

/// A write of a part of a variable: `field = (field & !mask) | ((value + add) << shift & mask)`, in
/// 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldWrite {
    /// Index of the variable.
    pub cursor: usize,
    /// Whether to write of the upper 64 bits of the sum; otherwise of the lower ones.
    pub is_upper: bool,
    /// Addend; wraps.
    pub add: u128,
    /// Left shift; negative shifts right. Less than 64 in both directions.
    pub shift: i32,
    /// Offset of the field.
    pub offset: usize,
    /// Width of the field in bytes: 1, 2, 4 or 8.
    pub width: usize,
    /// Bits of the field to write.
    pub mask: u64,
    /// Whether the least significant byte comes first.
    pub is_little: bool,
}

impl FieldWrite {
    /// Returns the mask that writes the whole field.
    pub const fn whole(width: usize) -> u64 {
        if width >= 8 { u64::MAX } else { (1 << (8 * width)) - 1 }
    }
}

/// A stream, positioned at its next frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResidentStream {
    /// Index of its shape.
    pub shape: usize,
    /// Template, as long as the shape's frames.
    pub template: Box<[u8]>,
    /// Variables, as in the shape.
    pub cursors: Vec<Cursor>,
    /// Number of the stream in signatures.
    pub number: u32,
    /// Next sequence number in signatures.
    pub sequence: u64,
    /// Frames to send; more than 0.
    pub frames: u64,
    /// Due time of the first of them, and the gaps behind; `None`: as fast as the port can.
    pub schedule: Option<(Instant, FixedStepTicker)>,
}

/// State of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Index of the value in its cycle.
    pub place: u64,
    /// Length of the cycle, 1 to 2^62; `u64::MAX` without a cycle.
    pub cycle: u64,
    /// Advance with each frame; less than `cycle`.
    pub places: u64,
    /// Wraps with each frame, beside those of `places`.
    pub wraps_beside: u64,
    /// Values.
    pub values: CursorValues,
}

/// Values of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CursorValues {
    /// `base + place * step` modulo 2^64, below the constant upper bits.
    Counter {
        /// Value at place 0.
        base: u64,
        /// Step.
        step: u64,
        /// Upper 64 bits of all values.
        upper: u64,
    },
    /// A value for each place.
    List(Box<[u128]>),
    /// `min + draw(seed, place) * count / 2^64`, below the constant upper bits; see
    /// [`draw`](crate::random::draw).
    Random {
        /// Seed of the draws.
        seed: u64,
        /// Smallest value.
        min: u64,
        /// Number of values; the largest one is below 2^64.
        count: u64,
        /// Upper 64 bits of all values.
        upper: u64,
    },
}

impl CursorValues {
    /// Returns the number of values in a list; 0 if there is none.
    pub fn count(&self) -> usize {
        match self {
            Self::List(values) => values.len(),
            Self::Counter { .. } | Self::Random { .. } => 0,
        }
    }

    /// Returns the source.
    pub const fn source(&self) -> ValueSource {
        match self {
            Self::Counter { .. } => ValueSource::Counter,
            Self::List(_) => ValueSource::List,
            Self::Random { .. } => ValueSource::Random,
        }
    }
}

/// What a port should be able to send by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResidentOptions {
    /// Shapes of the streams.
    pub shapes: Vec<Shape>,
    /// Number of streams.
    pub streams: usize,
    /// Number of values in their lists.
    pub values: usize,
    /// Whether the streams or the capture have due times.
    pub is_timed: bool,
    /// Capture to send instead of streams.
    pub capture: Option<CaptureOptions>,
}

/// Capture that a port should be able to send by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureOptions {
    /// Highest number of frames, up to [`CAPTURED_MAX`].
    pub frames: usize,
}

/// Highest number of frames of a [`ResidentCapture`].
pub const CAPTURED_MAX: usize = 1 << 24;

/// Frames that a port sends in order, pass after pass, positioned at the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResidentCapture<'a> {
    /// Frames of a pass.
    pub frames: &'a [CapturedFrame],
    /// Gaps behind the frames. Empty without due times.
    pub gaps: &'a [CapturedGap],
    /// Fractions of a nanosecond in [`CapturedGap::rest`]; at least 1.
    pub units: u64,
    /// Number of passes with the same addresses, in thousandths, at least 1,000; `None`: addresses
    /// stay.
    pub passes_milli: Option<u64>,
    /// Next frame.
    pub position: CapturePosition,
}

/// A frame of a capture in the memory of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedFrame {
    /// Stored bytes.
    pub stored: StoredBytes,
    /// Range of the frame in them.
    pub range: Range<u32>,
    /// What changes with each pass.
    pub moving: Moving,
}

/// What changes in a frame when the addresses of a pass do. All offsets lie within the frame, with
/// the fields behind them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moving {
    /// Offsets of the source and the destination address: of its last 32 bits.
    pub addresses: Option<[u16; 2]>,
    /// Offset of the source port. The destination port follows it.
    pub ports: Option<u16>,
    /// Offset of the checksum that covers the ports, and whether zero is written as all ones.
    pub checksum: Option<(u16, bool)>,
}

/// Time between the due times of two frames: `gap + rest / units` ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CapturedGap {
    /// Whole nanoseconds.
    pub gap: u64,
    /// Remainder; less than the units.
    pub rest: u64,
}

/// Next frame of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CapturePosition {
    /// Number of the pass, from 0.
    pub pass: u64,
    /// Index of the frame in its pass.
    pub frame: usize,
    /// Due time; `None`: as fast as the port can.
    pub due: Option<Instant>,
    /// Remainder of the due time, in units.
    pub rest: u64,
}
