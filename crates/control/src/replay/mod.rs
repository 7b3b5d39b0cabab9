//! Replaying captures onto real interfaces.
//!
//! ```text
//! supervisor thread  opens, waits for the start, snapshots, result
//! reader thread      files -> Chunk           (ends after the pass where captures are preloaded)
//! worker thread(s)   Chunk -> frames in ports
//! port threads       the in-kernel sender's, one for each xdp port
//! ```

mod compile;
mod error;
mod hooks;
mod input;
mod pair;
mod reader;
mod report;
mod run;
mod target;
mod work;

pub use error::ReplayError;
pub use hooks::{Ask, Hooks, ShowFrame};
pub use input::{Input, InputError, expand_inputs};
pub use reader::{ReadError, Reader, ReaderFeed, ReaderOptions};
pub(crate) use run::run;
