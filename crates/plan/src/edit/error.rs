//! What is wrong with an edit as it was written.

/// Why edits cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// A value that does not mean anything.
    #[error("--{option}: found {found:?}, expected {expected}")]
    Malformed {
        /// The option's name.
        option: &'static str,
        /// The part of the value that is wrong.
        found: String,
        /// What should stand there.
        expected: &'static str,
    },
    /// More values than an option takes.
    #[error("--{option}: found {found} values, expected {limit} at most")]
    TooMany {
        /// The option's name.
        option: &'static str,
        /// Values that were given.
        found: usize,
        /// Values that it takes.
        limit: usize,
    },
    /// Two options of which each would undo the other.
    #[error("--{option} and --{other} exclude each other: leave one of them out")]
    Conflict {
        /// The one.
        option: &'static str,
        /// Second interface.
        other: &'static str,
    },
    /// An option that has no meaning without another one.
    #[error("--{option} needs --{needs}: add that, or leave it out")]
    Needs {
        /// The option that was given.
        option: &'static str,
        /// The one that is lacking.
        needs: &'static str,
    },
}
