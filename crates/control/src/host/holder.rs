//! Holders of interfaces.

use std::fmt;

use crate::lifecycle::RunId;

/// Holder of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseHolder {
    /// Run; `None` for a lease without a run.
    pub run: Option<RunId>,
    /// Owner of the run or the lease.
    pub owner: String,
}

impl fmt::Display for LeaseHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.run, self.owner.as_str()) {
            (Some(run), "") => write!(f, "run {run}"),
            (Some(run), owner) => write!(f, "run {run} of {owner}"),
            (None, "") => f.write_str("a lease without a run"),
            (None, owner) => write!(f, "a lease of {owner}"),
        }
    }
}
