//! A run as lists show it.

use serde::Serialize;
use wirestorm_control::result::Outcome;

use crate::figures::Figure;
use crate::record::{OwnerRecord, RecordKind, State};

/// Summary of a run, from the index.
#[derive(Clone, Debug, Serialize)]
pub struct RunEntry {
    /// ID: the name of the run directory.
    pub id: String,
    /// Name that the user gave.
    pub name: Option<String>,
    /// Kind of the run.
    pub kind: RecordKind,
    /// Name of the method; null unless the run is a method.
    pub method: Option<String>,
    /// State as a reader sees it.
    pub state: State,
    /// Process ID of the run.
    pub process: u32,
    /// Command line, with spaces between the arguments.
    pub command: String,
    /// User of the server that executed the run; null for a run of the command line.
    pub owner: Option<OwnerRecord>,
    /// Interfaces, with their namespaces.
    pub interfaces: Vec<String>,
    /// Start in nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// End in nanoseconds since the Unix epoch; null until the end.
    pub ended_unix_ns: Option<u64>,
    /// Error that ended the run.
    pub error: Option<String>,
    /// Outcome of the verdict; null without a result.
    pub outcome: Option<Outcome>,
    /// Key figure of the result; null without a result.
    pub figure: Option<Figure>,
    /// Number of finished trials.
    pub trials: u32,
}
