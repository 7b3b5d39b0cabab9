//! Capture files on the server.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A capture file, or another file that plans name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Capture {
    /// Name; plans use it as the file name.
    pub name: String,
    /// Length in bytes.
    pub bytes: u64,
    /// Time of the upload in nanoseconds since the Unix epoch.
    pub uploaded_unix_ns: u64,
}
