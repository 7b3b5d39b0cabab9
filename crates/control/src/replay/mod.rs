//! Replays captures on interfaces.
//!
//! ```text
//! supervisor thread  opens ports, waits for the start, publishes snapshots, builds the result
//! reader thread      files -> Chunk           (ends after the first pass with preloading)
//! worker thread(s)   Chunk -> frames in ports
//! port threads       in-kernel senders, one for each xdp port
//! ```

mod compile;
mod error;
mod hooks;
mod input;
mod pair;
mod reader;
mod reader_counters;
mod report;
mod run;
mod target;
mod work;

pub use error::ReplayError;
pub use hooks::{Callbacks, FrameCallback, PacketPrompt};
pub use input::{Input, InputError, expand_inputs};
pub use reader::{ReadError, Reader, ReaderFeed, ReaderOptions};
pub(crate) use run::run;
