//! Errors of requests of Open Traffic Generator.

use wirestorm_api::error::{ErrorCode, ErrorDocument};
use wirestorm_otg::proto::error::kind;
use wirestorm_otg::{ConfigError, DecodeError, proto};

/// Error of a request.
#[derive(Clone, Debug)]
pub(crate) struct OtgError {
    /// HTTP status.
    pub(super) status: u16,
    /// Messages; at least one.
    pub(super) messages: Vec<String>,
}

impl OtgError {
    /// Creates the error of a wrong request.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self { status: 400, messages: vec![message.into()] }
    }

    /// Creates the error of what went wrong in the server.
    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self { status: 500, messages: vec![message.into()] }
    }

    /// Returns the error as a message of the models.
    pub(super) fn message(&self) -> proto::Error {
        let kind = if self.status < 500 { kind::Enum::Validation } else { kind::Enum::Internal };
        proto::Error {
            code: Some(self.status.into()),
            kind: Some(kind.into()),
            errors: self.messages.clone(),
        }
    }
}

impl From<ErrorDocument> for OtgError {
    fn from(document: ErrorDocument) -> Self {
        let status = match document.code {
            ErrorCode::Internal | ErrorCode::Storage => 500,
            code => code.status(),
        };
        let places =
            document.errors.iter().map(|error| format!("{}: {}", error.path, error.message));
        let messages = std::iter::once(document.message.clone()).chain(places).collect();
        Self { status, messages }
    }
}

impl From<Vec<ConfigError>> for OtgError {
    fn from(errors: Vec<ConfigError>) -> Self {
        Self { status: 400, messages: errors.iter().map(ToString::to_string).collect() }
    }
}

impl From<DecodeError> for OtgError {
    fn from(error: DecodeError) -> Self {
        Self::invalid(error.to_string())
    }
}
