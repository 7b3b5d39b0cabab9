//! What is wrong with a document of streams.

/// Why TRex's streams cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrexError {
    /// The text is not JSON.
    #[error("not JSON: {reason}")]
    NotJson {
        /// Where and why, in the parser's words.
        reason: String,
    },
    /// An object lacks a field, has an unknown one, or one of another type.
    #[error("{path}: {reason}")]
    Malformed {
        /// Where it stands, from the document's root.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// A value that does not mean anything.
    #[error("{path}: found {found}, expected {expected}")]
    Value {
        /// Where it stands.
        path: String,
        /// What stands there.
        found: String,
        /// What should.
        expected: String,
    },
    /// A name that nothing has.
    #[error("{path}: there is no {kind} named {name:?}")]
    Unknown {
        /// Where it stands.
        path: String,
        /// What it should be the name of.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A name that something has already.
    #[error("{path}: another {kind} is named {name:?} already")]
    Duplicate {
        /// Where it stands.
        path: String,
        /// What it is the name of.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// Something that TRex can do and this cannot.
    #[error("{path}: {what}")]
    Unsupported {
        /// Where it stands.
        path: String,
        /// What it asks for, and what can be done instead.
        what: String,
    },
    /// A multiplier that leaves nothing for the streams whose rate it changes.
    #[error(
        "the multiplier asks for {asked} {unit} in all, but latency streams, whose rate it does \
         not change, send {fixed} {unit} by themselves"
    )]
    BelowFixed {
        /// Target of the run.
        asked: String,
        /// What those streams send.
        fixed: String,
        /// The unit of both.
        unit: &'static str,
    },
}

impl TrexError {
    pub(super) fn value(
        path: impl Into<String>,
        found: impl ToString,
        expected: impl Into<String>,
    ) -> Self {
        Self::Value { path: path.into(), found: found.to_string(), expected: expected.into() }
    }

    pub(super) fn unsupported(path: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Unsupported { path: path.into(), what: what.into() }
    }
}
