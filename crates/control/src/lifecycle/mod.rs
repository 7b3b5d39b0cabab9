//! Lifecycle of a run of any kind: state, commands and published snapshots.
//!
//! Each run has a supervisor thread, which opens ports, waits for the start, runs the workers and
//! builds the result. Handles share [`Supervised`] with it. This module does not depend on the
//! kinds of runs.

mod checkpoint;
mod command;
mod context;
mod error;
mod flow_control;
mod handle;
mod id;
mod load_control;
mod run_state;
mod snapshot;
mod state;

pub use command::{Command, CommandError};
pub use context::Abandoned;
pub(crate) use context::{Context, Start, with_verdict};
pub use error::{RunError, RunErrorKind};
pub use flow_control::FlowCommand;
pub(crate) use flow_control::{FlowControl, PendingCommand};
pub use handle::RunHandle;
pub use id::RunId;
pub(crate) use load_control::LoadFollower;
pub use load_control::{Detail, LoadFactor, TunnelChangeError};
pub use run_state::RunState;
pub use snapshot::{
    ConnectionSnapshot, Delivery, FlowSnapshot, MeasuredSnapshot, PortSnapshot, Snapshot,
    Subscription,
};
pub(crate) use state::{Controls, LiveQuery, Supervised};
pub use state::{RunOutcome, StartAt};
