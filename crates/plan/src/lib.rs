//! Plans of traffic, replays and emulated hosts: parsing, validation and lowering.
//!
//! Every front end (flags, plan files, scripts of other tools) translates its input to the types of
//! this crate. Text becomes numbers with units in this one place.
#![forbid(unsafe_code)]

mod document;
pub mod edit;
pub mod emulation;
pub mod files;
pub mod impairment;
pub mod load;
mod multiplier;
pub mod pktgen;
pub mod replay;
pub mod services;
pub mod sides;
pub mod test_plan;
pub mod traffic;
pub mod trex;
mod tunnels;

pub use multiplier::Multiplier;
