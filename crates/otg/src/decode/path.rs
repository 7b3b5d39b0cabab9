//! State of a decoder: the encoding so far, the place in the message, and the warnings.

use std::fmt::Write as _;

use super::{DecodeError, WARNINGS_MAX, Warning};

/// State of a decoder.
#[derive(Debug, Default)]
pub(super) struct Context {
    /// The canonical encoding.
    pub(super) out: Vec<u8>,
    path: Vec<Segment>,
    warnings: Vec<Warning>,
    left_out: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Segment {
    Field(&'static str),
    Index(usize),
}

impl Context {
    pub(super) fn enter(&mut self, segment: Segment) {
        self.path.push(segment);
    }

    pub(super) fn leave(&mut self) {
        self.path.pop();
    }

    /// Returns the current path.
    pub(super) fn path(&self) -> String {
        let mut path = String::new();
        for segment in &self.path {
            match segment {
                Segment::Field(name) if path.is_empty() => path.push_str(name),
                Segment::Field(name) => {
                    path.push('.');
                    path.push_str(name);
                }
                Segment::Index(index) => {
                    // Writing to a string cannot fail.
                    let _ = write!(path, "[{index}]");
                }
            }
        }
        path
    }

    /// Returns the path of a field of the current message.
    pub(super) fn path_of(&self, field: &str) -> String {
        let path = self.path();
        if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") }
    }

    pub(super) fn error(&self, message: impl Into<String>) -> DecodeError {
        DecodeError { path: self.path(), message: message.into() }
    }

    pub(super) fn error_at(&self, field: &str, message: impl Into<String>) -> DecodeError {
        DecodeError { path: self.path_of(field), message: message.into() }
    }

    pub(super) fn warn(&mut self, path: impl FnOnce(&Self) -> String, message: String) {
        if self.warnings.len() < WARNINGS_MAX {
            let path = path(self);
            self.warnings.push(Warning { path, message });
        } else {
            self.left_out += 1;
        }
    }

    pub(super) fn into_warnings(self) -> Vec<Warning> {
        Warning::counted(self.warnings, self.left_out)
    }
}
