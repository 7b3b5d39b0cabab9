//! pktgen's scripts, run: what they write to `/proc/net/pktgen` configures and starts devices here,
//! what they read from there is how these went.
//!
//! ```text
//! script thread      a mount namespace with a /proc/net of its own (io::mounts), in it the script
//! file thread        serves that /proc/net (io::fuse): every write is a command, every read a text
//!                    `start` is passed on and answered when all devices have ended
//! main thread        runs what is started: one worker thread for each device
//! ```
//!
//! A file of nothing but settings needs no shell: [`Session::follow`] does what
//! [`Script`](wirestorm_plan::pktgen::Script) has read.

mod files;
mod machine;
mod receive;
mod report;
mod run;
mod session;
mod shell;
mod stamp;

pub use receive::Receiver;
pub use report::{DeviceReport, PktgenResult, PktgenRun, SCHEMA};
pub use run::{RunError, RunOptions};
pub use session::{Event, Session, StartError, StepError};
pub use shell::{ShellError, run_shell};
