//! Errors in a plan.

use std::fmt;

/// An error at one place of a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct PlanError {
    /// Path of the value, such as `flows[0].packet[1].ipv4.src`; `plan` for the whole document.
    pub path: String,
    /// What the reader found there, and what it expected.
    pub message: String,
}

/// Path of the whole document.
pub(crate) const ROOT_PATH: &str = "plan";

impl PlanError {
    /// Returns whether the error concerns the whole document, so that the file name alone locates
    /// it.
    pub fn is_document_error(&self) -> bool {
        self.path == ROOT_PATH
    }
}

/// All errors of a plan, in document order; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanErrors(Vec<PlanError>);

impl PlanErrors {
    /// Iterates over the errors.
    pub fn iter(&self) -> impl Iterator<Item = &PlanError> {
        self.0.iter()
    }
}

impl From<PlanError> for PlanErrors {
    fn from(error: PlanError) -> Self {
        Self(vec![error])
    }
}

impl fmt::Display for PlanErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, error) in self.0.iter().enumerate() {
            let separator = if position == 0 { "" } else { "\n" };
            write!(f, "{separator}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for PlanErrors {}

/// Collects errors, so that the user can fix several at once.
#[derive(Debug, Default)]
pub(crate) struct ErrorCollector(Vec<PlanError>);

impl ErrorCollector {
    /// Returns the value, or records the error and returns `None`.
    pub(crate) fn take<T>(&mut self, outcome: Result<T, PlanError>) -> Option<T> {
        outcome.map_err(|error| self.0.push(error)).ok()
    }

    /// Returns the value, or records the errors and returns `None`.
    pub(crate) fn take_all<T>(&mut self, outcome: Result<T, PlanErrors>) -> Option<T> {
        outcome.map_err(|errors| self.0.extend(errors.0)).ok()
    }

    /// Returns the first recorded error.
    pub(crate) fn into_first(self) -> Option<PlanError> {
        self.0.into_iter().next()
    }

    /// Returns `value` if no error was recorded, otherwise all errors.
    pub(crate) fn finish<T>(self, value: T) -> Result<T, PlanErrors> {
        if self.0.is_empty() { Ok(value) } else { Err(PlanErrors(self.0)) }
    }
}
