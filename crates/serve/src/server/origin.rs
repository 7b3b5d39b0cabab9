//! How a run was started: from its request to the history, and back.

use std::collections::BTreeMap;

use wirestorm_api::run::{PlanSource, RunOrigin, RunRequest};
use wirestorm_store::record::{RecordKind, RunRecord};

use super::request::PLAN;

/// Longest streams or profile of TRex that the history keeps, in bytes of JSON.
const TREX_BYTES_MAX: usize = 1 << 20;

/// Returns the origin of a run for the history, without the files of the plan. The history has the
/// text of the plan itself.
pub(super) fn of_request(request: &RunRequest) -> RunOrigin {
    let (plan, plan_name) = match &request.plan {
        PlanSource::Text(_) | PlanSource::Document(_) => (None, None),
        PlanSource::Stored(name) => (None, Some(name.clone())),
        plan @ (PlanSource::TrexStreams(_) | PlanSource::TrexProfile(_)) => {
            let length = serde_json::to_string(plan).map_or(usize::MAX, |json| json.len());
            (Some(plan.clone()).filter(|_| length <= TREX_BYTES_MAX), None)
        }
        plan @ PlanSource::Replay(_) => (Some(plan.clone()), None),
    };
    RunOrigin {
        plan,
        plan_name,
        files: BTreeMap::new(),
        ports: request.ports.clone(),
        options: request.options.clone(),
        start: request.start,
        when_lease_ends: request.when_lease_ends,
        shared: request.shared,
        command: request.command.clone(),
    }
}

/// Returns the origin of a run of the history.
///
/// # Errors
/// Another version of Wirestorm has written the request.
pub(super) fn of_record(mut record: RunRecord) -> serde_json::Result<RunOrigin> {
    if let Some(request) = record.request {
        let mut origin: RunOrigin = serde_json::from_value(request)?;
        let name = origin.plan_name.as_deref().unwrap_or(PLAN);
        let text = record.files.remove(name).map(PlanSource::Text);
        origin.plan = origin.plan.or(text);
        return Ok(origin);
    }
    let mut origin = RunOrigin { command: record.command, ..RunOrigin::default() };
    let has_plan = matches!(record.kind, RecordKind::Streams | RecordKind::Emulation);
    // A run of the command line has the plan alone, or files that together are none.
    if has_plan && record.files.len() == 1 {
        let plan = record.files.pop_first();
        origin.plan_name = plan.as_ref().map(|(name, _)| name.clone());
        origin.plan = plan.map(|(_, text)| PlanSource::Text(text));
    }
    Ok(origin)
}
