//! Errors of edit options.

/// An invalid edit option, or options that conflict.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// An invalid value.
    #[error("--{option}: found {found:?}, expected {expected}")]
    Malformed {
        /// The option's name.
        option: &'static str,
        /// The invalid part of the value.
        found: String,
        /// The accepted notation.
        expected: &'static str,
    },
    /// More values than an option accepts.
    #[error("--{option}: found {found} values, expected {limit} at most")]
    TooMany {
        /// The option's name.
        option: &'static str,
        /// Number of values found.
        found: usize,
        /// Maximum number of values.
        limit: usize,
    },
    /// Two options that are mutually exclusive.
    #[error("--{option} and --{other} exclude each other: leave one of them out")]
    Conflict {
        /// First option.
        option: &'static str,
        /// Second option.
        other: &'static str,
    },
    /// An option that requires another one.
    #[error("--{option} needs --{needs}: add that, or leave it out")]
    Needs {
        /// The option that is set.
        option: &'static str,
        /// The missing option.
        needs: &'static str,
    },
}
