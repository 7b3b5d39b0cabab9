//! What is to be sent: as it was written, and as it was understood.
//!
//! Every front-end (flags, plan files, other tools' scripts) is translated to the types here, so
//! there is one place where words become numbers with units.
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
pub mod sides;
pub mod traffic;
pub mod trex;
mod tunnels;

pub use multiplier::Multiplier;
