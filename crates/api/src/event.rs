//! Events of a server.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::port::Port;
use crate::run::RunSummary;

/// A change on the server. The stream of events begins with the current ports and active runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The ports, their links and leases.
    Ports {
        /// All ports.
        ports: Vec<Port>,
    },
    /// A run appeared or changed its state.
    Run {
        /// The run.
        run: Box<RunSummary>,
    },
    /// A run was deleted from the history.
    RunDeleted {
        /// ID of the run.
        id: String,
    },
    /// The subscriber was too slow and missed events: read the lists again.
    Missed {
        /// Number of events.
        events: u64,
    },
}
