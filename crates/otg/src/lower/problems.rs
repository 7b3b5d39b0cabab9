//! Errors and warnings of a configuration.

use crate::decode::{WARNINGS_MAX, Warning};

/// Maximum number of errors that are reported.
pub(super) const ERRORS_MAX: usize = 100;

/// What a configuration asks for and Wirestorm cannot do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct ConfigError {
    /// Path in the configuration, such as `flows[3].packet[1].ipv4.src`.
    pub path: String,
    /// What was found and expected.
    pub message: String,
}

impl ConfigError {
    pub(super) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }
}

/// Collects errors and warnings.
#[derive(Debug, Default)]
pub(super) struct Problems {
    pub(super) errors: Vec<ConfigError>,
    warnings: Vec<Warning>,
    /// Number of warnings beyond the limit.
    left_out: usize,
}

impl Problems {
    /// Records an error; returns the value otherwise.
    pub(super) fn take<T>(&mut self, outcome: Result<T, ConfigError>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(error) => {
                self.error(error);
                None
            }
        }
    }

    pub(super) fn error(&mut self, error: ConfigError) {
        if self.errors.len() < ERRORS_MAX {
            self.errors.push(error);
        }
    }

    pub(super) fn warn(&mut self, path: impl Into<String>, message: impl Into<String>) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(Warning { path: path.into(), message: message.into() });
        } else {
            self.left_out += 1;
        }
    }

    /// Returns the warnings; the last one counts those that are left out.
    pub(super) fn into_warnings(self) -> Vec<Warning> {
        Warning::counted(self.warnings, self.left_out)
    }

    /// Warns of a field that has no effect on the traffic.
    pub(super) fn ignore(&mut self, path: impl Into<String>) {
        self.warn(path, "not supported, ignored");
    }
}

/// Returns the error of a field that Wirestorm does not support.
pub(super) fn unsupported(path: impl Into<String>) -> ConfigError {
    ConfigError::new(path, "not supported")
}
