//! Errors and warnings of the store.

use std::io;
use std::path::{Path, PathBuf};

/// Error of an operation on the run history.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file or directory cannot be read or written.
    #[error("{}: cannot {operation}: {error}", path.display())]
    File {
        /// What failed, such as `write`.
        operation: &'static str,
        /// File or directory.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// A file is damaged, or has another format.
    #[error("{}: {reason}", path.display())]
    Damaged {
        /// File.
        path: PathBuf,
        /// What is wrong, and what was expected.
        reason: String,
    },
    /// The index cannot be read or written.
    #[error("{}: {error}", path.display())]
    Index {
        /// File of the index.
        path: PathBuf,
        /// Error of SQLite.
        error: rusqlite::Error,
    },
    /// The history has no run.
    #[error("{}: no run is saved here; save one with --save", .0.display())]
    Empty(PathBuf),
    /// No run fits.
    #[error("no run {selector:?} in {}; `wirestorm runs list` shows all", directory.display())]
    Unknown {
        /// Text that should name a run.
        selector: String,
        /// Directory of the store.
        directory: PathBuf,
    },
    /// Several runs fit.
    #[error("{selector:?} fits {} runs: {}; use the ID of one", ids.len(), listed(ids))]
    Ambiguous {
        /// Text that should name a run.
        selector: String,
        /// IDs of the runs.
        ids: Vec<String>,
    },
    /// The name of a run is not valid.
    #[error("run name {0:?}: expected 1 to 64 characters without control characters, not `latest`")]
    Name(String),
    /// The process of the run still runs.
    #[error("run {id} is still running (process {process}); wait for it or stop it")]
    Running {
        /// ID of the run.
        id: String,
        /// Process ID.
        process: u32,
    },
    /// The run ended: there is nothing to resume.
    #[error("run {0} is finished; start a new one")]
    Finished(String),
    /// A document cannot be written as JSON.
    #[error("{}: {error}", path.display())]
    Json {
        /// File.
        path: PathBuf,
        /// Reason.
        error: serde_json::Error,
    },
}

/// IDs that a message lists at most.
const LISTED_MAX: usize = 5;

fn listed(ids: &[String]) -> String {
    let mut text = ids.iter().take(LISTED_MAX).cloned().collect::<Vec<_>>().join(", ");
    if ids.len() > LISTED_MAX {
        text.push_str(" ...");
    }
    text
}

impl StoreError {
    /// Returns a function that adds the operation and the path to an error of the system.
    pub(crate) fn file(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::File { operation, path, error }
    }

    pub(crate) fn damaged(path: &Path, reason: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), reason: reason.into() }
    }
}

/// A file that the store ignores: damaged, or not its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// File or directory.
    pub path: PathBuf,
    /// What is wrong.
    pub reason: String,
}

impl Warning {
    pub(crate) fn new(path: &Path, reason: impl Into<String>) -> Self {
        Self { path: path.to_owned(), reason: reason.into() }
    }

    /// Makes a warning of an error that concerns one file. The message names the file once.
    pub(crate) fn of(path: &Path, error: &StoreError) -> Self {
        match error {
            StoreError::File { operation, path, error } => {
                Self::new(path, format!("cannot {operation}: {error}"))
            }
            StoreError::Damaged { path, reason } => Self::new(path, reason.clone()),
            other => Self::new(path, other.to_string()),
        }
    }
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason)
    }
}
