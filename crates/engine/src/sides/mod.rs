//! Sides of packets: client packets leave through the first interface, server packets through the
//! second.
//!
//! Either a tcpprep [`CacheFile`] lists the side of each packet of a capture, or [`Sides`] decides
//! packet by packet in one pass.

mod cache;
mod rules;

pub use cache::{CacheError, CacheFile};
pub use rules::Sides;
pub use wirestorm_model::sides::{SideRule, SidesOptions};

/// Side of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Client side: the packet leaves through the first interface.
    Primary,
    /// Server side: the packet leaves through the second interface.
    Secondary,
    /// The packet is not sent.
    Excluded,
}

impl Side {
    /// Returns the other side; [`Side::Excluded`] stays.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Self::Primary => Self::Secondary,
            Self::Secondary => Self::Primary,
            Self::Excluded => Self::Excluded,
        }
    }
}
