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

mod emission;
mod generator;
mod program;
mod queue;
mod share;
mod variable;

pub use generator::{Generator, GeneratorOptions, StreamCounters};
pub use share::Share;
