//! Reading a run directory.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use wirestorm_control::result::{Outcome, RunResult};

use crate::error::{StoreError, Warning};
use crate::figures::{self, Figure};
use crate::file;
use crate::record::{BenchResult, RUN_SCHEMA, RecordKind, RunRecord, State, TrialRecord};
use crate::row::{TrialHead, TrialRow, rows_of_run};

/// Names in a run directory.
pub(crate) const RUN: &str = "run.json";
pub(crate) const RESULT: &str = "result.json";
pub(crate) const TRIALS: &str = "trials";

/// A run of the history. Trials are read when they are asked for.
#[derive(Debug)]
pub struct SavedRun {
    directory: PathBuf,
    /// Facts about the run. [`SavedRun::state`] is its state.
    pub record: RunRecord,
    /// State as a reader sees it.
    pub state: State,
    /// Result; `None` if the run has none (yet), or if its file is damaged.
    pub result: Option<SavedResult>,
    /// Files that cannot be read.
    pub warnings: Vec<Warning>,
}

/// Result of a saved run.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum SavedResult {
    /// Result of a run.
    Run(Box<RunResult>),
    /// Result of a method.
    Bench(Box<BenchResult>),
}

impl SavedResult {
    /// Returns the outcome of the verdict.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Run(result) => result.verdict.outcome,
            Self::Bench(result) => result.verdict.outcome,
        }
    }

    /// Returns the figures; the first one is the key figure.
    pub fn figures(&self) -> Vec<Figure> {
        match self {
            Self::Run(result) => figures::of_run(result),
            Self::Bench(result) => figures::of_findings(&result.findings),
        }
    }
}

impl SavedRun {
    /// Reads the record and the result of a run.
    ///
    /// # Errors
    /// The record does not exist or is damaged. A damaged result is a warning.
    pub(crate) fn open(directory: &Path) -> Result<Self, StoreError> {
        let record = record(directory)?;
        let state = record.observed_state();
        let mut warnings = Vec::new();
        let path = directory.join(RESULT);
        let result = match path.exists().then(|| result(&path, record.kind)).transpose() {
            Ok(result) => result,
            Err(error) => {
                warnings.push(Warning::of(&path, &error));
                None
            }
        };
        Ok(Self { directory: directory.to_owned(), record, state, result, warnings })
    }

    /// Returns the directory of the run.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Iterates over all trials with their full results, in order. An item is the warning of a file
    /// that cannot be read.
    ///
    /// # Errors
    /// The directory of the trials cannot be listed.
    pub fn trials(
        &self,
    ) -> Result<impl Iterator<Item = Result<TrialRecord, Warning>> + use<>, StoreError> {
        let listing = Listing::of(&self.directory)?;
        let foreign = listing.foreign.into_iter().map(Err);
        let trials = listing.trials.into_values().map(|path| {
            file::read::<TrialRecord>(&path).map_err(|error| Warning::of(&path, &error))
        });
        Ok(trials.chain(foreign))
    }

    /// Returns the rows of all trials, or of the result of a run without trials. Adds warnings for
    /// the files that cannot be read.
    ///
    /// # Errors
    /// The directory of the trials cannot be listed.
    pub fn rows(&mut self) -> Result<Vec<TrialRow>, StoreError> {
        let Listing { trials, foreign } = Listing::of(&self.directory)?;
        self.warnings.extend(foreign);
        let mut rows = Vec::new();
        for path in trials.values() {
            match file::read::<TrialHead>(path) {
                Ok(head) => rows.extend(head.rows()),
                Err(error) => self.warnings.push(Warning::of(path, &error)),
            }
        }
        match &self.result {
            Some(SavedResult::Run(result)) if trials.is_empty() => {
                Ok(rows_of_run(self.record.kind, result))
            }
            _ => Ok(rows),
        }
    }

    /// Returns the figures of the result; none without a result.
    pub fn figures(&self) -> Vec<Figure> {
        self.result.as_ref().map(SavedResult::figures).unwrap_or_default()
    }
}

/// Reads the trials of a run directory in order, compressed ones too; none if there is no directory
/// of trials. Files that are no trials are ignored.
///
/// # Errors
/// The directory cannot be listed. An item is the error of a file that cannot be read or is damaged.
pub fn trials_of(
    directory: &Path,
) -> Result<impl ExactSizeIterator<Item = Result<TrialRecord, StoreError>> + use<>, StoreError> {
    let Listing { trials, .. } = Listing::of(directory)?;
    Ok(trials.into_values().map(|path| file::read(&path)))
}

/// Reads the record of a run directory.
pub(crate) fn record(directory: &Path) -> Result<RunRecord, StoreError> {
    let path = directory.join(RUN);
    // The format comes first: a record of another version may lack any other field.
    #[derive(serde::Deserialize)]
    struct Format {
        schema: String,
    }
    let Format { schema } = file::read(&path)?;
    if schema != RUN_SCHEMA {
        let reason = format!("found format {schema:?}, expected {RUN_SCHEMA:?}");
        return Err(StoreError::damaged(&path, reason));
    }
    let record: RunRecord = file::read(&path)?;
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    if record.id != name {
        let reason = format!("found the record of run {:?} in the directory {name:?}", record.id);
        return Err(StoreError::damaged(&path, reason));
    }
    Ok(record)
}

fn result(path: &Path, kind: RecordKind) -> Result<SavedResult, StoreError> {
    Ok(match kind {
        RecordKind::Bench => SavedResult::Bench(file::read(path)?),
        _ => SavedResult::Run(file::read(path)?),
    })
}

/// Files of the trials of a run.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// Path of each trial by its number.
    pub(crate) trials: BTreeMap<u32, PathBuf>,
    /// Files that are no trials.
    pub(crate) foreign: Vec<Warning>,
}

impl Listing {
    /// Lists the trials of a run directory; none if there is no directory of trials.
    pub(crate) fn of(directory: &Path) -> Result<Self, StoreError> {
        let path = directory.join(TRIALS);
        let mut listing = Self::default();
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(listing),
            Err(error) => return Err(StoreError::file("list", &path)(error)),
        };
        for entry in entries {
            let entry = entry.map_err(StoreError::file("list", &path))?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            // Files that a writer has not renamed yet, or that it left when it was killed.
            if name.starts_with('.') {
                continue;
            }
            match number(&name) {
                Some(number) => drop(listing.trials.insert(number, entry.path())),
                None => listing.foreign.push(Warning::new(&entry.path(), "not a trial; ignored")),
            }
        }
        Ok(listing)
    }
}

/// Returns the name of a trial's file, without the suffix of a compressed one.
pub(crate) fn trial_name(number: u32) -> String {
    format!("{number:06}.json")
}

/// Returns the number of a trial's file: `000001.json` or `000001.json.zst`.
fn number(name: &str) -> Option<u32> {
    let stem = name.strip_suffix(".zst").unwrap_or(name).strip_suffix(".json")?;
    let number = stem.parse().ok()?;
    (number > 0 && trial_name(number).strip_suffix(".json") == Some(stem)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_the_writer_gives_are_trials() {
        for (name, expected) in [
            ("000001.json", Some(1)),
            ("000012.json.zst", Some(12)),
            ("1234567.json", Some(1_234_567)),
            ("1.json", None),
            ("000000.json", None),
            ("+00001.json", None),
            ("000001.txt", None),
            ("000001.zst", None),
        ] {
            assert_eq!(number(name), expected, "{name}");
        }
    }
}
