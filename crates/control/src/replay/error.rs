//! Why a replay did not begin.

use std::io;

use wirestorm_engine::sides::CacheError;
use wirestorm_plan::replay::PlanConflict;

use super::input::InputError;
use super::reader::ReadError;
use crate::lifecycle::Abandoned;
use crate::port::OpenError;

/// Why a replay did not begin.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The plan contradicts itself.
    #[error(transparent)]
    Plan(#[from] PlanConflict),
    /// A capture does not open.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A capture cannot be read from its first packet on.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file of tcpprep does not open.
    #[error("{path}: {error}")]
    CacheFile {
        /// The file.
        path: String,
        /// What the system said.
        error: io::Error,
    },
    /// A file of tcpprep makes no sense.
    #[error("{path}: {error}")]
    Cache {
        /// The file.
        path: String,
        /// What is wrong with it.
        error: CacheError,
    },
    /// An interface does not open.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The receiving end does not open.
    #[error("{0}")]
    Receive(String),
    /// The run was stopped before it began.
    #[error(transparent)]
    Abandoned(#[from] Abandoned),
    /// A thread does not start.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}
