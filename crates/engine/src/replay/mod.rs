//! Replaying captures.
//!
//! ```text
//! bytes of files ── Indexer ──> Chunk ── Feed ──> Worker::breathe(now, outputs) ──> Transmit
//!                   decodes,     bytes            due time, copy, edits
//!                   classifies,  + Records
//!                   counts flows
//! ```
//!
//! # What is done where, and what it costs
//!
//! All that depends on the capture alone is done once, by the [`Indexer`], which usually runs
//! beside the worker and, for a preloaded capture, before it: decoding the file format, finding
//! the headers, telling flows apart. It leaves a [`Record`] of 40 bytes beside each frame.
//! The [`Worker`] then has little to do for each frame: add one gap to the schedule, copy the
//! frame into the port's buffer, apply edits if there are any. Neither allocates, locks or reads
//! a clock for a frame.

mod chunk;
mod flow_table;
mod indexer;
mod render;
mod schedule;
mod unique;
mod worker;

pub use chunk::{Chunk, Fed, Feed, Record, RecordFlags};
pub use flow_table::{FlowTable, Seen};
pub use indexer::{IndexError, Indexed, Indexer, IndexerOptions, SideSource};
pub use render::{RenderOptions, Renderer};
pub use schedule::Schedule;
pub use unique::{Unique, UniqueAddresses};
pub use worker::{
    Breath, Outputs, PublishHashes, ReplayCounters, ShowFrame, Worker, WorkerOptions, WorkerState,
};
