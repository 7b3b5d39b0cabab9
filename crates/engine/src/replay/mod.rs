//! Replay of captures.
//!
//! ```text
//! bytes of files ── Indexer ──> Chunk ── Feed ──> Worker::breathe(now, outputs) ──> Transmit
//!                   decodes,     bytes            due time, copy, edits
//!                   classifies,  + Records
//!                   counts flows
//! ```
//!
//! # Division of work and its cost
//!
//! The [`Indexer`] does everything that depends only on the capture: it decodes the file format,
//! finds the headers and identifies flows. It runs beside the worker, or before it for a preloaded
//! capture, and leaves a [`Record`] of 40 bytes for each frame. The [`Worker`] then does little for
//! each frame: it adds a gap to the schedule, copies the frame into the port's buffer and applies
//! edits, if any. Neither allocates, locks or reads a clock for a frame.

mod chunk;
mod flow_table;
mod indexer;
mod render;
mod resident;
mod schedule;
mod unique;
mod worker;

pub use chunk::{Chunk, Feed, FeedItem, KeptChunks, Record, RecordFlags};
pub use flow_table::{FlowState, FlowTable};
pub use indexer::{IndexError, Indexed, Indexer, IndexerOptions, SideSource};
pub use render::{RenderOptions, Renderer};
pub use schedule::Schedule;
pub use unique::{Unique, UniqueFields};
pub use worker::{
    Breath, FrameCallback, HashCallback, Outputs, ReplayCounters, Worker, WorkerOptions,
    WorkerState,
};
