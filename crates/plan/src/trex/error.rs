//! Errors in a document of streams.

/// An invalid or unsupported document of TRex streams.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrexError {
    /// The text is not JSON.
    #[error("not JSON: {reason}")]
    NotJson {
        /// Position and reason from the parser.
        reason: String,
    },
    /// An object with a missing field, an unknown field, or a field of the wrong type.
    #[error("{path}: {reason}")]
    Malformed {
        /// Path from the document's root.
        path: String,
        /// Reason from the deserializer.
        reason: String,
    },
    /// An invalid value.
    #[error("{path}: found {found}, expected {expected}")]
    Value {
        /// Path of the value.
        path: String,
        /// The value found.
        found: String,
        /// The accepted value.
        expected: String,
    },
    /// An unknown name.
    #[error("{path}: there is no {kind} named {name:?}")]
    Unknown {
        /// Path of the value.
        path: String,
        /// Kind of the missing item.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A duplicate name.
    #[error("{path}: another {kind} is named {name:?} already")]
    Duplicate {
        /// Path of the value.
        path: String,
        /// Kind of the items.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A feature of TRex that Wirestorm does not support.
    #[error("{path}: {what}")]
    Unsupported {
        /// Path of the value.
        path: String,
        /// The feature, and an alternative.
        what: String,
    },
    /// A total below the load of the streams that the multiplier does not change.
    #[error(
        "the multiplier asks for {requested} {unit} in total, but latency streams, whose rate it \
         does not change, already send {fixed} {unit}"
    )]
    BelowFixed {
        /// Requested total.
        requested: String,
        /// Load of the latency streams.
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
