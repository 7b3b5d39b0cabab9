//! pktgen's scripts, run: what they write to `/proc/net/pktgen` configures and starts devices here,
//! what they read from there is how these went.
//!
//! ```text
//! script thread      a mount namespace with a /proc/net of its own (io::mounts), in it the script
//! file thread        serves that /proc/net (io::fuse): every write is a command, every read a text
//!                    `start` is passed on and answered when all devices have ended
//! supervisor thread  runs what is started: one worker thread for each device
//! ```
//!
//! A file of nothing but settings needs no shell: the session does what
//! [`Script`](wirestorm_plan::pktgen::Script) has read.

mod files;
mod machine;
mod report;
mod run;
mod script;
mod session;
mod shell;
mod stamp;

pub use run::{DeviceError, DeviceOptions};
pub(crate) use script::run;
pub use script::{PktgenPlan, PktgenRunError, ScriptSource};
pub use session::{Event, StartError, StepError, Tell};
pub use shell::ShellError;
