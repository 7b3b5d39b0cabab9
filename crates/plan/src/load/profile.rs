//! Profiles of TRex.

use serde_json::Value;

use crate::trex::{self, captures, stateful};

/// A profile of TRex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Profile {
    /// A Python program. The package `wirestorm-trex` turns it into one of the others.
    Python,
    /// A stateless profile: the JSON of its streams.
    Streams(String),
    /// An advanced stateful profile: the JSON of its templates.
    Stateful(String),
    /// A stateful profile: the YAML of its captures.
    Captures(String),
}

impl Profile {
    /// Classifies the JSON that a Python program printed: an object is a stateful profile.
    pub fn of_python(text: String) -> Self {
        match text.trim_start().starts_with('{') {
            true => Self::Stateful(text),
            false => Self::Streams(text),
        }
    }

    /// The profile that a document is, whose text this is; `None` if it is none.
    pub(super) fn of_document(document: &Value, text: &str) -> Option<Self> {
        match document {
            it if captures::looks_like_profile(it) => Some(Self::Captures(text.to_owned())),
            it if trex::looks_like_streams(it) => Some(Self::Streams(text.to_owned())),
            it if stateful::looks_like_profile(it) => Some(Self::Stateful(text.to_owned())),
            _ => None,
        }
    }
}
