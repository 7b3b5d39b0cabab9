//! Which side a packet belongs to: the client's, which leaves through the first interface, or
//! the server's, which leaves through the second.
//!
//! Either a [`CacheFile`] of tcpprep says it for each packet of one capture, or [`Sides`] decide
//! it packet by packet, in one pass.

mod cache;
mod decide;

pub use cache::{CacheError, CacheFile};
pub use decide::Sides;
pub use wirestorm_model::sides::{SideRule, SidesOptions};

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It leaves through the first interface: the client's side.
    Primary,
    /// It leaves through the second interface: the server's side.
    Secondary,
    /// It is not sent.
    LeaveOut,
}

impl Side {
    /// The other side; what is left out stays so.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Self::Primary => Self::Secondary,
            Self::Secondary => Self::Primary,
            Self::LeaveOut => Self::LeaveOut,
        }
    }
}
