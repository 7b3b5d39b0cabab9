//! Users and their rights.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Header with the name of the session. Leases belong to a session of a user.
pub const SESSION_HEADER: &str = "wirestorm-session";

/// Header with the name of the user, for a server without users.
pub const USER_HEADER: &str = "wirestorm-user";

/// Rights of a user. A role includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Read everything; change nothing.
    Observe,
    /// Lease ports; start, command and delete own runs; upload plans and captures.
    Operate,
    /// Also take ports from other users, command and delete their runs, and manage users.
    Administer,
}

impl Role {
    /// All roles, the least rights first.
    pub const ALL: [Self; 3] = [Self::Observe, Self::Operate, Self::Administer];

    /// Returns the name of the role.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Operate => "operate",
            Self::Administer => "administer",
        }
    }
}

/// Limits of a user. A limit that is null does not apply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Names of the ports that the user may use.
    pub ports: Option<Vec<String>>,
    /// Maximum number of ports that the user leases or uses at a time.
    pub ports_max: Option<usize>,
    /// Maximum rate of a port in frames per second.
    pub pps_max: Option<u64>,
    /// Maximum rate of a port in bits per second, with preamble, gap and FCS.
    pub bps_max: Option<u64>,
}

/// The user of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// User.
    pub user: String,
    /// Session of the user; empty for the default session.
    pub session: String,
    /// Role of the user.
    pub role: Role,
    /// Limits of the user.
    pub limits: Limits,
    /// Version of the server.
    pub version: String,
    /// Host name of the server.
    pub host: String,
}

/// A user of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct User {
    /// Name.
    pub name: String,
    /// Role.
    pub role: Role,
    /// Limits.
    #[serde(default)]
    pub limits: Limits,
    /// Whether the user has a token.
    pub has_token: bool,
    /// Common name of the client certificate of the user; null without one.
    pub certificate: Option<String>,
}

/// Request to add a user, or to replace its role, limits and token.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UserRequest {
    /// Role.
    pub role: Role,
    /// Limits.
    #[serde(default)]
    pub limits: Limits,
    /// Common name of the client certificate; null for a user with a token only.
    #[serde(default)]
    pub certificate: Option<String>,
}

/// Answer to a [`UserRequest`].
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct NewUser {
    /// The user.
    pub user: User,
    /// Token of the user. The server stores only its digest, so this is the only time it is shown.
    pub token: String,
}
