//! Runs pktgen scripts. Writes to `/proc/net/pktgen` configure and start devices of this program;
//! reads return their results.
//!
//! ```text
//! script thread      runs the script in a mount namespace with a private /proc/net (io::mounts)
//! file thread        serves that /proc/net (io::fuse): each write is a command, each read a text;
//!                    passes `start` on and answers it when all devices have ended
//! supervisor thread  runs the devices: one worker thread for each
//! ```
//!
//! A file that contains only settings needs no shell: the session executes the parsed
//! [`Script`](wirestorm_plan::pktgen::Script).

mod files;
mod machine;
mod progress;
mod report;
mod run;
mod script;
mod session;
mod shell;
mod stamp;

pub use run::{DeviceError, DeviceOptions};
pub(crate) use script::run;
pub use script::{PktgenPlan, PktgenRunError, ScriptSource};
pub use session::{Event, EventCallback, StartError, StepError};
pub use shell::ShellError;
