//! Scripts for the kernel's packet generator, pktgen.
//!
//! Such a script writes commands to files below `/proc/net/pktgen`: a thread gets devices, a
//! device its settings, `pgctrl` the word to start; then it reads the results from the same files.
//! [`Pktgen`] is what these files are: [`Pktgen::write`] reads a command as the kernel does,
//! [`Pktgen::show`] gives what the kernel shows, [`Pktgen::lower`] what the devices send, as
//! streams. A script can therefore be run by a shell whose files these are, or be read by
//! [`Script`], which knows the simple form that most have.
//!
//! The reference for all of it is net/core/pktgen.c with Documentation/networking/pktgen.rst.

mod command;
mod control;
mod device;
mod error;
mod flags;
mod flows;
mod frame;
mod lower;
mod notes;
mod result;
mod scan;
mod script;
mod show;

pub use control::{DIRECTORY, Effect, Pktgen};
pub use device::Link;
pub use error::{Errno, LowerError, PktgenError, Problem};
pub use frame::Stamps;
pub use lower::LoweredDevice;
pub use result::Counters;
pub use script::{Action, NotUnderstood, Script, Step};
