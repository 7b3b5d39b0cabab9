//! Errors of starting a replay.

use std::io;

use wirestorm_engine::sides::CacheError;
use wirestorm_plan::replay::PlanConflict;

use super::input::InputError;
use super::reader::ReadError;
use crate::lifecycle::Abandoned;
use crate::port::OpenError;

/// Error of starting a replay.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The plan contains a conflict.
    #[error(transparent)]
    Plan(#[from] PlanConflict),
    /// A capture does not open.
    #[error(transparent)]
    Input(#[from] InputError),
    /// No packet of the captures can be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A tcpprep cache file does not open.
    #[error("{path}: {error}")]
    CacheFile {
        /// File.
        path: String,
        /// System error.
        error: io::Error,
    },
    /// A tcpprep cache file is invalid.
    #[error("{path}: {error}")]
    Cache {
        /// File.
        path: String,
        /// Error in the file.
        error: CacheError,
    },
    /// An interface does not open.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The receiver does not open.
    #[error("{0}")]
    Receive(String),
    /// The run was stopped before it started.
    #[error(transparent)]
    Abandoned(#[from] Abandoned),
    /// A thread does not start.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}
