//! Replaying captures onto real interfaces.
//!
//! ```text
//! main thread        progress, signals, result
//! reader thread      files -> Chunk           (ends after the pass where captures are preloaded)
//! worker thread(s)   Chunk -> frames in ports
//! port threads       the in-kernel sender's, one for each xdp port
//! ```

mod compile;
mod control;
mod error;
mod input;
mod pair;
mod reader;
mod report;
mod run;
mod target;
mod work;

pub use control::{Ask, Control, Hooks, ShowFrame};
pub use error::ReplayError;
pub use input::{Input, InputError, expand_inputs};
pub use reader::{ReadError, Reader, ReaderFeed, ReaderOptions};
pub use run::{Progress, run};
