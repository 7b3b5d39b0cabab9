//! Scripts for the kernel's packet generator, pktgen.
//!
//! A script writes commands to files below `/proc/net/pktgen`. It adds devices to threads, sets
//! parameters of devices, and starts them through `pgctrl`. It then reads the results from the same
//! files.
//!
//! [`Pktgen`] emulates these files. [`Pktgen::write`] parses a command like the kernel,
//! [`Pktgen::show`] returns the kernel's output, and [`Pktgen::lower`] converts devices to streams.
//! A shell can run a script on these files. [`Script`] reads the simple form of most scripts
//! without a shell.
//!
//! Reference: net/core/pktgen.c and Documentation/networking/pktgen.rst.

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
pub use frame::TimestampPosition;
pub use lower::LoweredDevice;
pub use result::Counters;
pub use script::{Action, Script, Step, UnsupportedLine};
