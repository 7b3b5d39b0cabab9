//! Streams of frames built from templates.
//!
//! ```text
//! Stream ── FrameMaker: template + program, stepped from frame to frame
//!        └─ Emission:   when each frame is due
//! Generator::breathe(now, port): Queue says whose turn it is -> make the frame -> Transmit
//! ```
//!
//! Several workers share all streams. Each has a generator with its own [`Share`] and sends every
//! n-th frame of each stream; all together send what one worker would.
//!
//! The members of a link aggregation group share streams as well, each on its own port: each follows
//! the whole stream and sends the frames whose addresses select it.
//!
//! # Resident streams
//!
//! A port may make and send steady streams by itself ([`ResidentStreams`]). The generator gives them to
//! it, and follows by their number of frames. Before a command it recalls them.
//!
//! # Fast paths
//!
//! A stream sends until another stream's next frame is due, without other checks. The template
//! holds the constant parts of all frames, including the constant part of checksums. A frame is a
//! copy of it plus the results of its operations. Constant gaps need an addition, not a division.
//!
//! With many streams, cache misses dominate. A stream's state occupies five cache lines, including
//! a template that fits; streams with equal programs share their operations. The state is
//! prefetched some turns ahead, or before the next day of the queue begins, so that the misses
//! overlap.

mod generator;
mod program;
mod queue;
mod resident;
mod schedule;
mod selection;
mod share;
mod variable;

pub(crate) use program::written;

pub use generator::{Generator, GeneratorOptions, StreamCounters};
pub use resident::ResidentStreams;
pub use share::Share;
