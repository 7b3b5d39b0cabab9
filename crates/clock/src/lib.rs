//! Clocks of several machines: how far they are apart, and how exactly that is known.
//!
//! Nothing here reads a clock or a socket. Time stamps come in as arguments and packets as bytes, so
//! the simulation and the tests use the same code as real sessions.
#![forbid(unsafe_code)]

pub mod estimate;
pub mod exchange;
mod hull;
pub mod ptp;
pub mod reference;
pub mod source;
pub mod stamp;
pub mod timestamp;
pub mod virtual_clock;
