//! Streams of frames made from templates.
//!
//! ```text
//! Stream ── FrameMaker: template + program, stepped from frame to frame
//!        └─ Emission:   when each frame is due
//! Generator::breathe(now, port): Queue says whose turn it is -> make the frame -> Transmit
//! ```
//!
//! Several workers share all streams: each has a generator with its own [`Share`] and sends every
//! n-th frame of each stream, so that all together send what one would.
//!
//! # What makes it quick
//!
//! A stream sends until another one's next frame is due, without a look at anything else. What
//! its frames have in common is in the template, also the part of a checksum that never changes;
//! a frame is a copy of it and what its operations write. Due times at an even distance need an
//! addition, not a division. With many streams the memory is what takes time: a stream's state is
//! kept together in five cache lines, a template that fits included, streams that do the same share
//! their operations, and the state of a stream is asked for some turns ahead of its own, or when
//! the day before begins, so that the misses overlap.

mod emission;
mod generator;
mod program;
mod queue;
mod share;
mod variable;

pub(crate) use program::written;

pub use generator::{Generator, GeneratorOptions, StreamCounters};
pub use share::Share;
