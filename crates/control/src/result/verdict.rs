//! Verdict of a run: whether it met its target. All kinds of runs use the same rules.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Verdict of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Verdict {
    /// Outcome of the run.
    pub outcome: Outcome,
    /// Reasons why the outcome is not `met`, one phrase each.
    pub reasons: Vec<String>,
}

/// Outcome of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The run met its target.
    #[default]
    Met,
    /// An error ended the run. Results measured before the error are valid.
    Failed,
    /// The run missed its target, or lost frames or connections.
    FellShort,
    /// The run was stopped early and had not fallen short by then.
    Interrupted,
}

impl Outcome {
    /// Returns the exit status of a command with this outcome.
    pub const fn exit_status(self) -> u8 {
        match self {
            Self::Met => 0,
            Self::Failed => 1,
            Self::FellShort => 3,
            // 128 + SIGINT, as shells report it.
            Self::Interrupted => 130,
        }
    }

    /// Returns the name of the outcome in results and APIs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Failed => "failed",
            Self::FellShort => "fell_short",
            Self::Interrupted => "interrupted",
        }
    }
}
