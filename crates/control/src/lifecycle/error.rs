//! Errors of runs.

use std::error::Error;
use std::fmt;

/// Error of a run without a result.
#[derive(Debug)]
pub struct RunError {
    kind: RunErrorKind,
    source: Box<dyn Error + Send + Sync>,
}

/// Kind of a run error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunErrorKind {
    /// The plan, the options or the machine do not allow the run. The message names the problem and
    /// the remedy.
    Input,
    /// The run was stopped before it started.
    Abandoned,
    /// A bug in Wirestorm.
    Defect,
}

impl RunError {
    /// Creates an error.
    pub(crate) fn new(kind: RunErrorKind, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { kind, source: source.into() }
    }

    /// Returns the kind of the error.
    pub const fn kind(&self) -> RunErrorKind {
        self.kind
    }

    /// Returns the underlying error if it has type `E`.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.source.downcast_ref()
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl Error for RunError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.source()
    }
}
