//! Writing a run while it executes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde::Serialize;
use wirestorm_control::result::RunResult;

use crate::error::StoreError;
use crate::file::{remove_alternative, write_compact, write_document};
use crate::index::Index;
use crate::record::{BenchResult, RunRecord, State, TrialRecord, now_unix_ns};
use crate::row::rows_of;
use crate::saved;

/// Writer of a run. A run whose writer was not finished counts as died once its process is gone.
///
/// A method returns when its file is durable. An index that cannot be written is no error: the next
/// [`Store::open`](crate::Store::open) repairs it.
#[derive(Debug)]
pub struct RunWriter {
    /// Directory of the run.
    directory: PathBuf,
    record: RunRecord,
    index: Option<Index>,
}

impl RunWriter {
    /// Adds the run to the index. Its record exists.
    pub(crate) fn new(store: &Path, record: RunRecord) -> Self {
        let mut index = Index::connect(store).ok();
        if let Some(index) = &mut index {
            // Repaired at the next open.
            let _ = index.update(&record.id);
        }
        Self { directory: store.join(&record.id), record, index }
    }

    /// Returns the ID of the run.
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// Returns the record as it was written last.
    pub fn record(&self) -> &RunRecord {
        &self.record
    }

    /// Returns the directory of the run.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Changes the record, for facts that are known only after the start.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn update(&mut self, change: impl FnOnce(&mut RunRecord)) -> Result<(), StoreError> {
        change(&mut self.record);
        write_document(&self.directory.join(saved::RUN), &self.record)
    }

    /// Writes a finished trial. A trial with the same number is replaced.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn trial(&mut self, trial: &TrialRecord) -> Result<(), StoreError> {
        let path = self.directory.join(saved::TRIALS).join(saved::trial_name(trial.number));
        let written = write_compact(&path, trial)?;
        remove_alternative(&path, &written)?;
        if let Some(index) = &mut self.index {
            let TrialRecord { number, started_unix_ns, input, output, .. } = trial;
            let rows = rows_of(*number, *started_unix_ns, input, output);
            // Repaired at the next open.
            let _ = index.add_trial(&self.record.id, &rows);
        }
        Ok(())
    }

    /// Writes the result: a `RunResult`, or the `BenchResult` of a method.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn result(&mut self, result: &impl Serialize) -> Result<(), StoreError> {
        write_document(&self.directory.join(saved::RESULT), result)
    }

    /// Writes the result of a run, and ends the run in the state that follows from it. The error is
    /// `reason`, or the first one of the result.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn end_with(
        &mut self,
        result: &RunResult,
        reason: Option<String>,
    ) -> Result<(), StoreError> {
        self.result(result)?;
        self.end(State::of(result), reason.or_else(|| result.errors.first().cloned()))
    }

    /// Writes the result of a method, and ends the run in the state that follows from it.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn end_bench(&mut self, result: &BenchResult) -> Result<(), StoreError> {
        self.result(result)?;
        let state = result.state();
        let error = result.verdict.reasons.first().filter(|_| state == State::Failed);
        self.end(state, error.cloned())
    }

    /// Ends the run in a state, with the error that ended it, if one did.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn finish(mut self, state: State, error: Option<String>) -> Result<RunRecord, StoreError> {
        self.end(state, error)?;
        Ok(self.record)
    }

    /// Like [`finish`](Self::finish), for callers that try again after an error.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn end(&mut self, state: State, error: Option<String>) -> Result<(), StoreError> {
        self.update(|record| {
            record.state = state;
            record.error = error;
            record.ended_unix_ns = Some(now_unix_ns());
        })?;
        if let Some(index) = &mut self.index {
            // Repaired at the next open.
            let _ = index.update(&self.record.id);
        }
        Ok(())
    }

    /// Deletes the run, because it did not begin.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn discard(mut self) -> Result<(), StoreError> {
        fs::remove_dir_all(&self.directory).map_err(StoreError::file("delete", &self.directory))?;
        match &mut self.index {
            Some(index) => index.remove(&self.record.id),
            None => Ok(()),
        }
    }
}

/// Makes an empty run directory with a hidden name.
pub(crate) fn staging(store: &Path) -> Result<PathBuf, StoreError> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = store.join(format!(".new-{}-{number}", std::process::id()));
    // A process with the same number may have left it when it was killed.
    match fs::remove_dir_all(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(StoreError::file("remove", &path)(error));
        }
        _ => {}
    }
    let trials = path.join(saved::TRIALS);
    fs::create_dir_all(&trials).map_err(StoreError::file("create", &trials))?;
    Ok(path)
}
