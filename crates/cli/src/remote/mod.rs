//! Runs on a server: the flag `--server` of commands.

mod flags;
mod follow;

pub(crate) use flags::{ServerFlags, user};
pub(crate) use follow::{RemotePlan, bindings, run_and_print};
