//! Runs of tests in the run history.

use wirestorm_api::event::Event;
use wirestorm_api::run::RunOrigin;
use wirestorm_control::inventory;
use wirestorm_control::result::RunResult;
use wirestorm_store::record::{InterfaceRecord, OwnerRecord, RecordKind, RunRecord};
use wirestorm_store::{Store, StoreError};

use crate::cluster::{IterationOutcome, RunOutcome};
use crate::server::{Identity, Server};

/// Name of the text of the test.
const FILE: &str = "test";

/// A test whose runs are saved in the run history.
pub(super) struct SavedTest<'a> {
    pub(super) server: &'a Server,
    pub(super) user: &'a Identity,
    /// Name of the test.
    pub(super) name: &'a str,
    /// Text of the test.
    pub(super) text: &'a str,
    /// Whether it runs in this process.
    pub(super) is_local: bool,
    /// Whether it has several iterations, whose numbers the names of runs have.
    pub(super) is_repeated: bool,
}

impl SavedTest<'_> {
    /// Saves the runs of an iteration. Returns the ID of each, or why it is not saved.
    pub(super) fn save(
        &self,
        number: u32,
        outcome: &IterationOutcome,
    ) -> Vec<Result<String, String>> {
        let save = |run: &RunOutcome| {
            let result = run.result.as_ref().map_err(Clone::clone)?;
            let mut name = format!("{}/{}", self.name, run.name);
            if self.is_repeated {
                name = format!("{name}/{number}");
            }
            self.save_run(name, run, result)
        };
        outcome.runs.iter().map(save).collect()
    }

    fn save_run(
        &self,
        name: String,
        run: &RunOutcome,
        result: &RunResult,
    ) -> Result<String, String> {
        let mut record = RunRecord::new(RecordKind::from(result.kind), Vec::new());
        record.name = Some(name).filter(|name| Store::is_name(name));
        record.owner = Some(OwnerRecord {
            user: self.user.user.to_string(),
            session: self.user.session.to_string(),
        });
        record.files.insert(FILE.to_owned(), self.text.to_owned());
        let plan = run.plan_file(self.name);
        // What `GET /runs/{run}/plan` shows: the plan, or the test if the run has no plan.
        let shown = plan.as_ref().map_or(FILE, |(name, _)| name).to_owned();
        let origin = RunOrigin { plan_name: Some(shown), ..RunOrigin::default() };
        record.request = serde_json::to_value(origin).ok();
        record.files.extend(plan);
        record.started_unix_ns = result.times.started_unix_ns.unwrap_or(record.started_unix_ns);
        record.interfaces =
            result.ports.iter().map(|port| interface(&port.interface, self.is_local)).collect();
        let failed = |error: StoreError| format!("the result is not saved: {error}");
        let mut writer = self.server.store().create(record).map_err(failed)?;
        if let Err(error) = writer.end_with(result, None) {
            // Without its result, it would be listed as a run that goes on.
            let _ = writer.discard();
            return Err(failed(error));
        }
        let id = writer.id().to_owned();
        if let Ok(run) = self.server.run(&id) {
            self.server.publish(Event::Run { run: Box::new(run) });
        }
        Ok(id)
    }
}

/// Returns the record of an interface; of one on another machine, the name alone is known.
fn interface(name: &str, is_local: bool) -> InterfaceRecord {
    let facts = inventory::interface(name).ok().filter(|_| is_local);
    let facts = facts.and_then(|facts| facts.interfaces.into_iter().next());
    let unknown = || InterfaceRecord { interface: name.to_owned(), ..Default::default() };
    facts.map_or_else(unknown, InterfaceRecord::from)
}
