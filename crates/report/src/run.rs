//! Stored runs, read from run directories and from the documents that `--json` writes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use wirestorm_control::result::{ClockKind, Kind, Outcome, RunResult, SCHEMA};
use wirestorm_store::StoreError;
use wirestorm_store::record::{
    BENCH_SCHEMA, BenchResult, RUN_SCHEMA, RecordKind, RunRecord, State, TrialRecord,
};

/// Most trials of a run that are read. A method with more is longer than a month.
const TRIALS_MAX: usize = 100_000;

/// A stored run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Facts about the run. For a document of `--json`, those that the document has.
    pub record: RunRecord,
    /// Completed trials of a method.
    pub trials: Vec<TrialRecord>,
    /// Result; `None` if the run had none when it ended.
    pub result: Option<RunOutput>,
}

/// Result of a stored run.
#[derive(Clone, Debug)]
pub enum RunOutput {
    /// Result of a plain run.
    Run(Box<RunResult>),
    /// Result of a method.
    Bench(Box<BenchResult>),
}

/// Error that prevents reading a run.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file cannot be read.
    #[error("{path}: {error}")]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// System error.
        error: io::Error,
    },
    /// A file is not what it should be.
    #[error("{path}: {error}; expected {expected}")]
    Format {
        /// Path of the file.
        path: PathBuf,
        /// Place in the file and what was found.
        error: serde_json::Error,
        /// Document that was expected.
        expected: &'static str,
    },
    /// The file has another format.
    #[error(
        "{path}: the format is {found:?}; expected a run directory, or a file of `--json` with the \
         format {SCHEMA} or {BENCH_SCHEMA}"
    )]
    Schema {
        /// Path of the file.
        path: PathBuf,
        /// Value of `schema`.
        found: String,
    },
    /// A trial cannot be read.
    #[error(transparent)]
    Trial(#[from] StoreError),
    /// The run has too many trials.
    #[error("{path}: more than {TRIALS_MAX} trials")]
    TooManyTrials {
        /// Path of the trials.
        path: PathBuf,
    },
}

impl Run {
    /// Reads a run directory, or a file that `--json` wrote.
    ///
    /// # Errors
    /// Names the file and the position in it.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        if path.is_dir() { Self::read_directory(path) } else { Self::read_document(path) }
    }

    /// Reads the files of a run directory. A run that did not end has no `result.json`.
    ///
    /// # Errors
    /// Names the file and the position in it.
    pub fn read_directory(path: &Path) -> Result<Self, ReadError> {
        let mut record: RunRecord = read_json(&path.join("run.json"), RUN_SCHEMA)?;
        // The file of a run whose process died still says that it is running.
        record.state = record.observed_state();
        let result = path.join("result.json");
        let result = if result.exists() { Some(RunOutput::read(&result)?) } else { None };
        Ok(Self { record, trials: read_trials(path)?, result })
    }

    /// Reads the document of one result.
    ///
    /// # Errors
    /// Names the file and the position in it.
    pub fn read_document(path: &Path) -> Result<Self, ReadError> {
        let output = RunOutput::read(path)?;
        let id = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Ok(Self { record: output.record(id), trials: Vec::new(), result: Some(output) })
    }

    /// Returns the name that the user gave, or else the ID.
    pub fn label(&self) -> &str {
        self.record.name.as_deref().filter(|name| !name.is_empty()).unwrap_or(&self.record.id)
    }

    /// Returns whether a simulation took the place of interfaces.
    pub fn is_simulated(&self) -> bool {
        match &self.result {
            Some(RunOutput::Run(result)) => result.clock == ClockKind::Virtual,
            Some(RunOutput::Bench(result)) => result.is_simulated,
            None => false,
        }
    }

    /// Returns the result of a plain run.
    pub fn run_result(&self) -> Option<&RunResult> {
        match &self.result {
            Some(RunOutput::Run(result)) => Some(result),
            _ => None,
        }
    }

    /// Returns the result of a method.
    pub fn bench_result(&self) -> Option<&BenchResult> {
        match &self.result {
            Some(RunOutput::Bench(result)) => Some(result),
            _ => None,
        }
    }
}

impl RunOutput {
    fn read(path: &Path) -> Result<Self, ReadError> {
        let value: serde_json::Value = read_json(path, "a result")?;
        let schema = value.get("schema").and_then(|it| it.as_str()).unwrap_or_default();
        let format =
            |expected| move |error| ReadError::Format { path: path.to_owned(), error, expected };
        match schema {
            SCHEMA => serde_json::from_value(value).map(Self::Run).map_err(format(SCHEMA)),
            BENCH_SCHEMA => {
                serde_json::from_value(value).map(Self::Bench).map_err(format(BENCH_SCHEMA))
            }
            found => Err(ReadError::Schema { path: path.to_owned(), found: found.to_owned() }),
        }
    }

    /// Returns the facts that a result has about its run.
    fn record(&self, id: String) -> RunRecord {
        let (kind, verdict) = match self {
            Self::Run(result) => (record_kind(result.kind), &result.verdict),
            Self::Bench(result) => (RecordKind::Bench, &result.verdict),
        };
        let state = match verdict.outcome {
            Outcome::Failed => State::Failed,
            Outcome::Interrupted => State::Interrupted,
            Outcome::Met | Outcome::FellShort => State::Finished,
        };
        let (version, host, started) = match self {
            Self::Run(result) => {
                (result.version.to_string(), result.host.clone(), result.times.started_unix_ns)
            }
            Self::Bench(result) => (result.version.clone(), Default::default(), None),
        };
        let mut record = RunRecord::new(kind, Vec::new());
        record.id = id;
        record.state = state;
        record.version = version;
        record.host = host;
        // The facts of this machine are not those of the run.
        record.machine = Default::default();
        record.method = match self {
            Self::Run(_) => None,
            Self::Bench(result) => Some(result.parameters.clone()),
        };
        record.started_unix_ns = started.unwrap_or(0);
        record
    }
}

const fn record_kind(kind: Kind) -> RecordKind {
    match kind {
        Kind::Replay => RecordKind::Replay,
        Kind::Streams => RecordKind::Streams,
        Kind::Emulation => RecordKind::Emulation,
        Kind::Impair => RecordKind::Impair,
        Kind::Pktgen => RecordKind::Pktgen,
    }
}

fn read_json<T: DeserializeOwned>(path: &Path, expected: &'static str) -> Result<T, ReadError> {
    let text = fs::read(path).map_err(|error| ReadError::Read { path: path.to_owned(), error })?;
    serde_json::from_slice(&text).map_err(|error| ReadError::Format {
        path: path.to_owned(),
        error,
        expected,
    })
}

/// Reads the trials of a run in the order of their numbers. A plain run has no directory of trials.
fn read_trials(path: &Path) -> Result<Vec<TrialRecord>, ReadError> {
    let trials = wirestorm_store::trials_of(path)?;
    if trials.len() > TRIALS_MAX {
        return Err(ReadError::TooManyTrials { path: path.join("trials") });
    }
    Ok(trials.collect::<Result<_, _>>()?)
}
