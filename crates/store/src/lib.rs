//! Run history: a directory for each run, and an SQLite index of all.
//!
//! ```text
//! ~/.local/state/wirestorm/runs/
//!   index.sqlite                 runs and trials, for lists and queries; rebuilt if it is lost
//!   2026-11-26T23-45-01-rfc2544/
//!     run.json                   RunRecord: command, machine, interfaces, state
//!     trials/000001.json.zst     TrialRecord: input, output and result; `.json` if it is short
//!     result.json                RunResult of a run, or BenchResult of a method
//! ```
//!
//! The files are the truth. Each is written beside its place, synchronised and renamed, so a process
//! that dies at any point leaves all finished trials.
#![forbid(unsafe_code)]

pub mod compare;
pub mod entry;
mod error;
pub mod export;
pub mod figures;
mod file;
mod index;
mod input;
pub mod process;
pub mod record;
pub mod row;
mod saved;
pub mod schema;
mod store;
mod writer;

pub use error::{StoreError, Warning};
pub use saved::{SavedResult, SavedRun, trials_of};
pub use store::{LATEST, Store};
pub use writer::RunWriter;
