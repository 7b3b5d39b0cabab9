//! Errors of the API.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Body of a response that reports an error.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ErrorDocument {
    /// Kind of the error.
    pub code: ErrorCode,
    /// Message for the user: what is wrong, where, and what to do.
    pub message: String,
    /// Errors of a plan or a request, each with its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ErrorAt>,
}

/// An error at a place of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorAt {
    /// Path in the document, such as `flows[0].rate`; empty for the whole document.
    pub path: String,
    /// What was found, and what was expected.
    pub message: String,
}

/// Kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The request is not valid.
    Invalid,
    /// The plan has errors, or the machine does not allow the run.
    Plan,
    /// The plan names a file that the server does not have.
    MissingFile,
    /// No token, or a wrong one.
    Unauthorized,
    /// The role of the user, or its limits, do not allow the request.
    Forbidden,
    /// No such object.
    NotFound,
    /// The state of the object, or its owner, does not allow the request.
    Conflict,
    /// The request is too long.
    TooLarge,
    /// The server cannot store data, or has no room for more.
    Storage,
    /// A defect of the server.
    Internal,
}

impl ErrorCode {
    /// Returns the HTTP status.
    pub const fn status(self) -> u16 {
        match self {
            Self::Invalid => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::Conflict => 409,
            Self::TooLarge => 413,
            Self::Plan | Self::MissingFile => 422,
            Self::Internal => 500,
            Self::Storage => 507,
        }
    }
}

impl ErrorDocument {
    /// Creates an error without places.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), errors: Vec::new() }
    }
}

impl fmt::Display for ErrorDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        for ErrorAt { path, message } in &self.errors {
            match path.as_str() {
                "" => write!(f, "\n{message}")?,
                path => write!(f, "\n{path}: {message}")?,
            }
        }
        Ok(())
    }
}
