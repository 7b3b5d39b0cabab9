//! The user of a request.

use std::sync::Arc;

use wirestorm_api::error::{ErrorCode, ErrorDocument};
use wirestorm_api::session::{Limits, Role};

/// The user of a request, with its session and rights.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// Name of the user.
    pub(crate) user: Arc<str>,
    /// Session of the user; empty for the default session.
    pub(crate) session: Arc<str>,
    /// Role of the user.
    pub(crate) role: Role,
    /// Limits of the user.
    pub(crate) limits: Arc<Limits>,
}

/// Longest name of a user or a session, in characters.
const NAME_CHARACTERS_MAX: usize = 64;

impl Identity {
    /// Name of the user of requests without a user name, on a server without users.
    pub(crate) const ANONYMOUS: &'static str = "local";

    /// Returns the owner of leases and runs, as messages show it.
    pub(crate) fn owner(&self) -> String {
        owner(&self.user, &self.session)
    }

    /// Returns whether this is the session of the owner.
    pub(crate) fn is(&self, user: &str, session: &str) -> bool {
        *self.user == *user && *self.session == *session
    }

    /// Checks that the user may change what belongs to `user`: it is the same user, or an
    /// administrator. `what` names the object for the message.
    ///
    /// # Errors
    /// The user may not.
    pub(crate) fn may_change(&self, user: &str, what: &str) -> Result<(), ErrorDocument> {
        if *self.user == *user || self.role == Role::Administer {
            return Ok(());
        }
        let message = format!(
            "{what} belongs to {user}: ask {user}, or use a token with the role administer"
        );
        Err(ErrorDocument::new(ErrorCode::Forbidden, message))
    }
}

/// Returns the name of a user's session, as messages show it.
pub(crate) fn owner(user: &str, session: &str) -> String {
    match session {
        "" => user.to_owned(),
        session => format!("{user} (session {session})"),
    }
}

/// Checks the name of a user or a session.
///
/// # Errors
/// The name is empty, too long, or has a character that is not printable.
pub(crate) fn checked_name(kind: &str, name: &str) -> Result<(), ErrorDocument> {
    let length = name.chars().count();
    if (1..=NAME_CHARACTERS_MAX).contains(&length) && !name.chars().any(char::is_control) {
        return Ok(());
    }
    let message = format!(
        "{kind} {name:?}: expected 1 to {NAME_CHARACTERS_MAX} characters without control characters"
    );
    Err(ErrorDocument::new(ErrorCode::Invalid, message))
}
