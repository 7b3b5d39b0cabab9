//! Clocks of this machine and of others: PTP sessions, and sources that tell the error of the system
//! clock. Nothing here sets a clock.

pub mod ptp;
pub mod sources;
mod transport;

pub use transport::{TransportError, TransportKind};
pub use wirestorm_clock as clock;
