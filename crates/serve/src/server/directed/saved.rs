//! Runs of tests in the run history.

use wirestorm_api::event::Event;
use wirestorm_api::run::RunOrigin;
use wirestorm_control::bench::CompletedTrial;
use wirestorm_control::inventory;
use wirestorm_control::method::method::Method;
use wirestorm_control::result::RunResult;
use wirestorm_store::record::{
    BenchResult, InterfaceRecord, OwnerRecord, RecordKind, RunRecord, TrialRecord,
};
use wirestorm_store::{RunWriter, Store, StoreError};

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
        let mut record = self.record(name, RecordKind::from(result.kind));
        let plan = run.plan_file(self.name);
        // What `GET /runs/{run}/plan` shows: the plan, or the test if the run has no plan.
        let shown = plan.as_ref().map_or(FILE, |(name, _)| name).to_owned();
        let origin = RunOrigin { plan_name: Some(shown), ..RunOrigin::default() };
        record.request = serde_json::to_value(origin).ok();
        record.files.extend(plan);
        record.started_unix_ns = result.times.started_unix_ns.unwrap_or(record.started_unix_ns);
        record.interfaces =
            result.ports.iter().map(|port| interface(&port.interface, self.is_local)).collect();
        let mut writer = self.server.store().create(record).map_err(not_saved)?;
        if let Err(error) = writer.end_with(result, None) {
            // Without its result, it would be listed as a run that goes on.
            let _ = writer.discard();
            return Err(not_saved(error));
        }
        Ok(self.publish(&writer))
    }

    /// Returns the record of a run of this name, with the text of the test.
    fn record(&self, name: String, kind: RecordKind) -> RunRecord {
        let mut record = RunRecord::new(kind, Vec::new());
        record.name = Some(name).filter(|name| Store::is_name(name));
        record.owner = Some(OwnerRecord {
            user: self.user.user.to_string(),
            session: self.user.session.to_string(),
        });
        record.files.insert(FILE.to_owned(), self.text.to_owned());
        record
    }

    /// Tells the clients of the server about a run that is saved; returns its ID.
    fn publish(&self, writer: &RunWriter) -> String {
        let id = writer.id().to_owned();
        if let Ok(run) = self.server.run(&id) {
            self.server.publish(Event::Run { run: Box::new(run) });
        }
        id
    }

    /// Begins the record of a benchmark method. `run`: its name in the test. `interfaces`: those of this
    /// machine.
    pub(super) fn begin_method(
        &self,
        run: &str,
        method: &Method,
        interfaces: &[String],
    ) -> Result<RunWriter, String> {
        let mut record = self.record(format!("{}/{run}", self.name), RecordKind::Bench);
        let origin = RunOrigin { plan_name: Some(FILE.to_owned()), ..RunOrigin::default() };
        record.request = serde_json::to_value(origin).ok();
        record.method = Some(method.clone());
        record.interfaces = interfaces.iter().map(|name| interface(name, self.is_local)).collect();
        let writer = self.server.store().create(record).map_err(not_saved)?;
        self.publish(&writer);
        Ok(writer)
    }

    /// Saves the result of a method. Returns the ID of its record.
    pub(super) fn end_method(
        &self,
        mut writer: RunWriter,
        result: &BenchResult,
    ) -> Result<String, String> {
        writer.end_bench(result).map_err(not_saved)?;
        Ok(self.publish(&writer))
    }
}

/// Saves a completed trial of a method.
pub(super) fn save_trial(writer: &mut RunWriter, trial: &CompletedTrial<'_>) -> Result<(), String> {
    writer.trial(&TrialRecord::from(trial)).map_err(not_saved)
}

fn not_saved(error: StoreError) -> String {
    format!("the result is not saved: {error}")
}

/// Returns the record of an interface; of one on another machine, the name alone is known.
fn interface(name: &str, is_local: bool) -> InterfaceRecord {
    let facts = inventory::interface(name).ok().filter(|_| is_local);
    let facts = facts.and_then(|facts| facts.interfaces.into_iter().next());
    let unknown = || InterfaceRecord { interface: name.to_owned(), ..Default::default() };
    facts.map_or_else(unknown, InterfaceRecord::from)
}
