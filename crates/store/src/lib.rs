//! Run history: a directory for each run, and an SQLite index of all.
//!
//! ```text
//! ~/.local/state/wirestorm/runs/
//!   index.sqlite                 runs and trials, for lists and queries; rebuilt if it is lost
//!   2026-11-26T23-45-01-rfc2544/
//!     run.json                   RunRecord: command, machine, interfaces, state
//!     trials/000001.json         TrialRecord: input, output and result of each trial
//!     result.json                RunResult of a run, or BenchResult of a method
//! ```
//!
//! The files are the truth. Each is written beside its place, synchronised and renamed, so a process
//! that dies at any point leaves all finished trials.
#![forbid(unsafe_code)]

pub mod record;
