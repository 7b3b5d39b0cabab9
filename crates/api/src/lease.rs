//! Leases of ports.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Request for the lease of a port.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LeaseRequest {
    /// Take the port from its owner. Runs of the owner on the port that end with the lease stop. The
    /// role `operate` can take ports from other sessions of the same user; taking those of other
    /// users needs `administer`.
    pub force: bool,
    /// Time in seconds after which the lease ends if it is not renewed; no end if null.
    pub ttl_s: Option<f64>,
}

/// Lease of a port by a session of a user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Lease {
    /// User.
    pub user: String,
    /// Session of the user; empty for the default session.
    pub session: String,
    /// Start of the lease in nanoseconds since the Unix epoch.
    pub since_unix_ns: u64,
    /// Time in seconds until the lease ends if it is not renewed; null for no end.
    pub expires_in_s: Option<f64>,
}
