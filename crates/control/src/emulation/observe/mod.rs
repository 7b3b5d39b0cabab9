//! Measurements during a run, and their reports.

pub(super) mod findings;
pub(super) mod flow_notes;
pub(super) mod latency;
pub(super) mod load_notes;
pub(super) mod neighbour_changes;
pub(super) mod owner;
pub(super) mod probes;
pub(super) mod report;
pub(super) mod sampled_flows;
pub(super) mod timeline;
pub(super) mod watch;
