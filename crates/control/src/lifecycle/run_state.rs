//! States of a run.

/// State of a run.
///
/// ```text
/// preparing ─> prepared ─> armed ─> running ─> draining ─> finished
///      └──────────┴──────────┴─────────┴───────────┴─────> failed, interrupted
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunState {
    /// Opening files and ports, resolving neighbours.
    Preparing,
    /// Everything is open; nothing was sent.
    Prepared,
    /// Waiting for the start time.
    Armed,
    /// Sending.
    Running,
    /// Sending nothing new; waiting for the last arrivals or for open connections.
    Draining,
    /// Ended normally.
    Finished,
    /// Failed to start, or ended by an error.
    Failed,
    /// Stopped early.
    Interrupted,
}

impl RunState {
    /// Returns whether the state is final.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Finished | Self::Failed | Self::Interrupted)
    }

    /// Returns the name of the state in results and APIs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Preparing => "preparing",
            Self::Prepared => "prepared",
            Self::Armed => "armed",
            Self::Running => "running",
            Self::Draining => "draining",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}
