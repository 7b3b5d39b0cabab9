//! Events of a server.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::capture::Capture;
use crate::plan::StoredPlan;
use crate::port::Port;
use crate::run::RunSummary;

/// A change on the server. The stream of events begins with the current ports and active runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The ports, their links and leases, and who captures frames of them.
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
    /// A plan was stored, or replaced.
    PlanStored {
        /// The plan.
        plan: StoredPlan,
    },
    /// A stored plan was deleted.
    PlanDeleted {
        /// Name of the plan.
        name: String,
    },
    /// A capture was uploaded, or replaced.
    CaptureUploaded {
        /// The capture.
        capture: Capture,
    },
    /// An uploaded capture was deleted.
    CaptureDeleted {
        /// Name of the capture.
        name: String,
    },
    /// The subscriber was too slow and missed events: read the lists again.
    Missed {
        /// Number of events.
        events: u64,
    },
}
