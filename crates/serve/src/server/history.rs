//! The runs of a server and of its history: list, results, deletion.

use std::path::PathBuf;

use wirestorm_api::error::{ErrorCode, ErrorDocument};
use wirestorm_api::event::Event;
use wirestorm_api::run::{RunList, RunOrigin, RunSummary};
use wirestorm_store::entry::RunEntry;
use wirestorm_store::{SavedResult, SavedRun, StoreError};

use super::identity::Identity;
use super::request::invalid;
use super::{Answer, Server, origin, runs};

/// Most runs of a page of the list.
const RUNS_PAGE_MAX: usize = 1_000;

impl Server {
    /// Returns a page of the runs of the server and of the history, the newest first: at most
    /// `limit`, those after the cursor `after` that the page before had.
    ///
    /// # Errors
    /// The limit is 0 or above [`RUNS_PAGE_MAX`], or the cursor is not one.
    pub(crate) fn runs(&self, limit: usize, after: Option<&str>) -> Answer<RunList> {
        check_limit(limit)?;
        let cursor = after.map(|text| {
            parse_cursor(text).ok_or_else(|| {
                invalid("after", format!("found {text:?}, expected `next` of the page before"))
            })
        });
        let cursor = cursor.transpose()?;
        let (mut entries, total) = {
            let store = self.store();
            // One more tells whether another page follows.
            let entries = store.page(cursor, limit + 1).map_err(|error| of_store(&error))?;
            (entries, store.count().map_err(|error| of_store(&error))?)
        };
        let has_more = entries.len() > limit;
        entries.truncate(limit);
        let last = entries.last().filter(|_| has_more);
        let next = last.map(|last| format!("{}.{}", last.started_unix_ns, last.id));
        let runs = entries.into_iter().map(|entry| self.summary(entry)).collect();
        Ok(RunList { runs, total, next })
    }

    /// Returns the active runs of the server and of its history, the newest first: at most `limit`,
    /// or [`RUNS_PAGE_MAX`] without one. The total counts all active runs.
    ///
    /// # Errors
    /// As [`Self::runs`].
    pub(crate) fn active_list(&self, limit: Option<usize>) -> Answer<RunList> {
        let limit = limit.map_or(Ok(RUNS_PAGE_MAX), check_limit)?;
        let entries = self.store().running().map_err(|error| of_store(&error))?;
        let runs = entries.into_iter().map(|entry| self.summary(entry));
        // The row of a run that has just ended, or whose result could not be saved, is older.
        let mut runs: Vec<RunSummary> = runs.filter(|run| !run.state.is_over()).collect();
        let total = runs.len();
        runs.truncate(limit);
        Ok(RunList { runs, total, next: None })
    }

    /// Returns the summary of a run of the history.
    fn summary(&self, entry: RunEntry) -> RunSummary {
        match self.runs.get(&entry.id) {
            Some(run) => run.summary(),
            None => runs::summary_of(entry),
        }
    }

    /// Returns a run by its ID, its name, the beginning of its ID, or `latest`.
    pub(crate) fn run(&self, selector: &str) -> Answer<RunSummary> {
        if let Some(run) = self.runs.get(selector) {
            return Ok(run.summary());
        }
        let entry = self.store().find(selector).map_err(|error| of_store(&error))?;
        Ok(self.summary(entry))
    }

    /// Returns the result of a run as JSON.
    pub(crate) fn result(&self, selector: &str) -> Answer<String> {
        let json = |json: serde_json::Result<String>| {
            json.map_err(|error| ErrorDocument::new(ErrorCode::Internal, error.to_string()))
        };
        let summary = self.run(selector)?;
        if let Some(run) = self.runs.get(&summary.id) {
            return match run.result() {
                Some(result) => json(serde_json::to_string(&*result)),
                None => Err(without_result(&summary)),
            };
        }
        match self.saved(&summary.id)?.result {
            Some(SavedResult::Run(result)) => json(serde_json::to_string(&*result)),
            Some(SavedResult::Bench(result)) => json(serde_json::to_string(&*result)),
            None => Err(without_result(&summary)),
        }
    }

    /// Returns a run of the history.
    fn saved(&self, id: &str) -> Answer<SavedRun> {
        self.store().load(id).map_err(|error| of_store(&error))
    }

    /// Returns the directory of a run in the history.
    pub(crate) fn run_directory(&self, selector: &str) -> Answer<PathBuf> {
        let summary = self.run(selector)?;
        Ok(self.saved(&summary.id)?.directory().to_owned())
    }

    /// Deletes a run from the history.
    pub(crate) fn delete_run(&self, user: &Identity, selector: &str) -> Answer<()> {
        let summary = self.run(selector)?;
        let owner = summary.user.as_deref().unwrap_or("the command line");
        user.may_change(owner, &format!("run {}", summary.id))?;
        self.store().delete(&summary.id).map_err(|error| of_store(&error))?;
        self.runs.remove(&summary.id);
        self.publish(Event::RunDeleted { id: summary.id });
        Ok(())
    }

    /// Returns how a run was started.
    pub(crate) fn origin(&self, selector: &str) -> Answer<RunOrigin> {
        let summary = self.run(selector)?;
        let record = self.saved(&summary.id)?.record;
        origin::of_record(record)
            .map_err(|error| ErrorDocument::new(ErrorCode::Storage, error.to_string()))
    }
}

/// Returns the number of runs of a page.
fn check_limit(limit: usize) -> Answer<usize> {
    match (1..=RUNS_PAGE_MAX).contains(&limit) {
        true => Ok(limit),
        false => Err(invalid("limit", format!("found {limit}, expected 1 to {RUNS_PAGE_MAX}"))),
    }
}

/// Returns the start time and the ID of a cursor, which names the last run of a page.
fn parse_cursor(text: &str) -> Option<(u64, &str)> {
    let (started, id) = text.split_once('.')?;
    Some((started.parse().ok()?, id))
}

fn without_result(run: &RunSummary) -> ErrorDocument {
    let message = match run.state.is_over() {
        false => format!("run {} has not ended", run.id),
        true => {
            let reason = run.message.as_deref().unwrap_or("it ended before it measured anything");
            format!("run {} has no result: {reason}", run.id)
        }
    };
    ErrorDocument::new(ErrorCode::Conflict, message)
}

pub(super) fn of_store(error: &StoreError) -> ErrorDocument {
    // The store tells users of the command line where it looked.
    match error {
        StoreError::Empty(_) => {
            return ErrorDocument::new(ErrorCode::NotFound, "there are no runs");
        }
        StoreError::Unknown { selector, .. } => {
            return ErrorDocument::new(ErrorCode::NotFound, format!("no run {selector:?}"));
        }
        _ => {}
    }
    let code = match error {
        StoreError::Ambiguous { .. } | StoreError::Running { .. } | StoreError::Finished(_) => {
            ErrorCode::Conflict
        }
        StoreError::Name(_) => ErrorCode::Invalid,
        _ => ErrorCode::Storage,
    };
    ErrorDocument::new(code, error.to_string())
}
