//! What is wrong with a plan.

use std::fmt;

/// What is wrong at one place of a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct PlanError {
    /// Where, such as `flows[0].packet[1].ipv4.src`; `plan` for the whole.
    pub path: String,
    /// What was found there, and what was expected.
    pub message: String,
}

/// The path of the whole.
pub(crate) const WHOLE: &str = "plan";

impl PlanError {
    /// Whether it is about the whole, of which a file's name says enough.
    pub fn is_of_whole(&self) -> bool {
        self.path == WHOLE
    }
}

/// All that is wrong with a plan, in its order; at least one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanErrors(Vec<PlanError>);

impl PlanErrors {
    /// The single errors.
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

/// Collects errors, so that several can be mended at once.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<PlanError>);

impl Problems {
    /// The value, or nothing and its error noted.
    pub(crate) fn take<T>(&mut self, outcome: Result<T, PlanError>) -> Option<T> {
        outcome.map_err(|error| self.0.push(error)).ok()
    }

    /// The value, or nothing and its errors noted.
    pub(crate) fn take_all<T>(&mut self, outcome: Result<T, PlanErrors>) -> Option<T> {
        outcome.map_err(|errors| self.0.extend(errors.0)).ok()
    }

    /// The first of what was noted.
    pub(crate) fn into_first(self) -> Option<PlanError> {
        self.0.into_iter().next()
    }

    /// All of `value` where nothing was noted.
    pub(crate) fn finish<T>(self, value: T) -> Result<T, PlanErrors> {
        if self.0.is_empty() { Ok(value) } else { Err(PlanErrors(self.0)) }
    }
}
