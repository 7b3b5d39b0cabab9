//! STAMP (RFC 8762, RFC 8972): sessions of two-way exchanges over UDP.
//!
//! ```text
//! Sender                                   Reflector
//!   request ─── request n ───────────────> reply(request, t2)
//!   departed(t1)                             departed(t3)
//!   received <── reply n, t2, t3 of n-1 ───
//!      └──> Exchange of n-1
//! ```
//!
//! The exact departure of a packet is known after it left. So a reply has the departure of the reply
//! before it, and an exchange is complete one request later.

mod packet;
mod reflector;
mod sender;

pub use packet::{BASE_LENGTH, ErrorEstimate, FollowUp, Reply, Request};
pub use reflector::{Reflected, Reflector};
pub use sender::{Sender, SenderCounters};

/// UDP port of reflectors (RFC 8762 section 4.1).
pub const PORT: u16 = 862;
