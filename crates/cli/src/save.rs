//! The flag `--save`: puts a run into the run history.
//!
//! The record is written before the run begins, so that a run that is killed is listed as died.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use wirestorm_control::RunErrorKind;
use wirestorm_control::bench::CompletedTrial;
use wirestorm_control::inventory;
use wirestorm_control::method::method::Method;
use wirestorm_control::result::RunResult;
use wirestorm_store::record::{
    BenchResult, InterfaceRecord, RecordKind, RunRecord, State, TrialRecord,
};
use wirestorm_store::{RunWriter, Store};

use crate::foreground::Failure;

/// Longest plan or script that a record holds, in bytes. Longer ones are captures or data.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Environment variable with the directory of the run history.
const RUNS: &str = "WIRESTORM_RUNS";

/// Flag for the directory of the run history.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct DirectoryFlags {
    /// Directory of the run history [default: ~/.local/state/wirestorm/runs]
    ///
    /// Without the flag: $WIRESTORM_RUNS, else $XDG_STATE_HOME/wirestorm/runs, else
    /// ~/.local/state/wirestorm/runs.
    #[arg(long, value_name = "DIR")]
    pub(crate) runs_dir: Option<PathBuf>,
}

impl DirectoryFlags {
    /// Returns the directory.
    ///
    /// # Errors
    /// A message if neither the flag nor the environment names a directory.
    pub(crate) fn directory(&self) -> Result<PathBuf, String> {
        if let Some(directory) = &self.runs_dir {
            return Ok(directory.clone());
        }
        if let Some(directory) = variable(RUNS) {
            return Ok(directory.into());
        }
        let state = state_directory().ok_or_else(|| {
            format!("no directory for runs: set HOME or {RUNS}, or use --runs-dir DIR")
        })?;
        Ok(state.join("runs"))
    }

    /// Opens the store, and prints warnings about damaged or foreign files in it.
    ///
    /// # Errors
    /// A message if the store cannot be opened.
    pub(crate) fn open(&self) -> Result<Store, String> {
        let store = Store::open(&self.directory()?).map_err(|error| error.to_string())?;
        for warning in store.warnings() {
            eprintln!("wirestorm: warning: {warning}");
        }
        Ok(store)
    }
}

fn variable(name: &str) -> Option<std::ffi::OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns the directory for state of the user: `wirestorm` in $XDG_STATE_HOME, else in
/// ~/.local/state. `None` without a home directory.
pub(crate) fn state_directory() -> Option<PathBuf> {
    let state = variable("XDG_STATE_HOME").map(PathBuf::from).filter(|it| it.is_absolute());
    let state =
        state.or_else(|| variable("HOME").map(|home| Path::new(&home).join(".local/state")));
    state.map(|state| state.join("wirestorm"))
}

/// Flags of commands whose runs can be saved.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct SaveFlags {
    /// Save the run in the run history, under a name if one follows `=`
    ///
    /// `wirestorm runs` lists, compares and exports saved runs.
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true)]
    save: Option<Option<String>>,

    #[command(flatten)]
    directory: DirectoryFlags,
}

/// Facts about a run that only its command knows.
pub(crate) struct Draft {
    /// Kind of the run.
    pub(crate) kind: RecordKind,
    /// Interfaces, as far as they are known before the run.
    pub(crate) interfaces: Vec<String>,
    /// Text of plans and scripts by file name.
    pub(crate) files: BTreeMap<String, String>,
    /// Start of a run that is over, in nanoseconds since the Unix epoch; `None` for now.
    pub(crate) started_unix_ns: Option<u64>,
    /// Method and parameters; `None` unless the run is a method.
    pub(crate) method: Option<Method>,
}

impl Draft {
    /// Creates a draft without files.
    pub(crate) fn new(
        kind: RecordKind,
        interfaces: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let interfaces = interfaces.into_iter().map(Into::into).collect();
        let files = BTreeMap::new();
        Self { kind, interfaces, files, started_unix_ns: None, method: None }
    }

    /// Adds a file. Standard input and files that are no text or too long have no copy.
    pub(crate) fn file(mut self, path: &Path) -> Self {
        let length = std::fs::metadata(path).map_or(u64::MAX, |file| file.len());
        if length <= FILE_BYTES_MAX
            && let Ok(text) = std::fs::read_to_string(path)
        {
            self.files.insert(path.display().to_string(), text);
        }
        self
    }
}

/// A run that is being saved, or not.
pub(crate) struct Recording(Option<RunWriter>);

impl SaveFlags {
    /// Returns the name that the user gave.
    pub(crate) fn name(&self) -> Option<String> {
        self.save.clone().flatten()
    }

    /// Refuses the flag for a directory on this machine: a server saves each run in its own.
    ///
    /// # Errors
    /// A message with the flag.
    pub(crate) fn check_remote(&self) -> Result<(), String> {
        match self.directory.runs_dir {
            None => Ok(()),
            Some(_) => Err("--runs-dir has no effect with --server: the server saves each run in \
                            its own directory"
                .to_owned()),
        }
    }

    /// Returns whether the command has a flag of these.
    pub(crate) fn is_given(&self) -> bool {
        self.save.is_some() || self.directory.runs_dir.is_some()
    }

    /// Writes the record of the run, if `--save` asks for it.
    ///
    /// # Errors
    /// A message if the record cannot be written.
    pub(crate) fn start(&self, draft: impl FnOnce() -> Draft) -> Result<Recording, String> {
        let Some(name) = &self.save else {
            return match self.directory.runs_dir {
                None => Ok(Recording(None)),
                Some(_) => Err("--runs-dir has no effect without --save: add --save".to_owned()),
            };
        };
        let failed = |error: String| format!("--save: {error}");
        let store = self.directory.open().map_err(failed)?;
        let Draft { kind, interfaces, files, started_unix_ns, method } = draft();
        let command = env::args_os().map(|argument| argument.to_string_lossy().into_owned());
        let mut record = RunRecord::new(kind, command.collect());
        record.name.clone_from(name);
        record.interfaces = interfaces.iter().flat_map(|it| interface_record(it)).collect();
        record.files = files;
        record.method = method;
        record.started_unix_ns = started_unix_ns.unwrap_or(record.started_unix_ns);
        let writer = store.create(record).map_err(|error| failed(error.to_string()))?;
        Ok(Recording(Some(writer)))
    }
}

/// Returns the facts about an interface; `None` for a file or an interface that does not exist.
pub(crate) fn interface_record(name: &str) -> Option<InterfaceRecord> {
    let facts = inventory::interface(name).ok()?;
    facts.interfaces.into_iter().next().map(InterfaceRecord::from)
}

impl Recording {
    /// Writes the result of a run in the foreground and prints the ID.
    ///
    /// # Errors
    /// A message if a file cannot be written. The run itself is over.
    pub(crate) fn end(self, outcome: &Result<Arc<RunResult>, Failure>) -> Result<(), String> {
        match outcome {
            Ok(result) => self.finish(result),
            Err(Failure { error }) => {
                let Some(writer) = self.0 else { return Ok(()) };
                let (state, text) = match error.kind() {
                    // Nothing began.
                    RunErrorKind::Input => {
                        return writer.discard().map_err(|error| error.to_string());
                    }
                    RunErrorKind::Abandoned => (State::Interrupted, error.to_string()),
                    RunErrorKind::Defect => (State::Failed, error.to_string()),
                };
                ended(writer, state, Some(text))
            }
        }
    }

    /// Writes a result and prints the ID.
    ///
    /// # Errors
    /// A message if a file cannot be written. The run itself is over.
    pub(crate) fn finish(self, result: &RunResult) -> Result<(), String> {
        let Some(mut writer) = self.0 else { return Ok(()) };
        let known: BTreeSet<String> =
            writer.record().interfaces.iter().map(|it| it.interface.clone()).collect();
        // Interfaces that only the run knew, such as those of a script.
        let interfaces = result.ports.iter().map(|port| &port.interface);
        let devices = result.device_runs.iter().flat_map(|run| &run.devices);
        let interfaces = interfaces.chain(devices.map(|device| &device.interface));
        let more: BTreeSet<&String> = interfaces.filter(|name| !known.contains(*name)).collect();
        let more: Vec<_> = more.into_iter().filter_map(|name| interface_record(name)).collect();
        let written = writer
            .update(|record| record.interfaces.extend(more))
            .and_then(|()| writer.end_with(result, None));
        written.map_err(|error| not_saved(&error))?;
        saved(writer.id());
        Ok(())
    }

    /// Writes a completed trial of a method.
    ///
    /// # Errors
    /// A message if the file cannot be written.
    pub(crate) fn trial(&mut self, trial: &CompletedTrial<'_>) -> Result<(), String> {
        let Some(writer) = &mut self.0 else { return Ok(()) };
        writer.trial(&TrialRecord::from(trial)).map_err(|error| not_saved(&error))
    }

    /// Writes the result of a method and prints the ID.
    ///
    /// # Errors
    /// A message if a file cannot be written. The method itself is over.
    pub(crate) fn finish_bench(self, result: &BenchResult) -> Result<(), String> {
        let Some(mut writer) = self.0 else { return Ok(()) };
        writer.end_bench(result).map_err(|error| not_saved(&error))?;
        saved(writer.id());
        Ok(())
    }

    /// Deletes the record, because the run did not begin.
    pub(crate) fn discard(self) {
        if let Some(Err(error)) = self.0.map(RunWriter::discard) {
            eprintln!("wirestorm: {error}");
        }
    }
}

fn ended(writer: RunWriter, state: State, error: Option<String>) -> Result<(), String> {
    let record = writer.finish(state, error).map_err(|error| not_saved(&error))?;
    saved(&record.id);
    Ok(())
}

fn saved(id: &str) {
    // Standard output may hold a JSON document.
    eprintln!("saved as {id}; show it with: wirestorm runs show {id}");
}

pub(crate) fn not_saved(error: &wirestorm_store::StoreError) -> String {
    format!("the result is not saved: {error}")
}

/// Prints the error of a save, and returns the exit status of the command.
pub(crate) fn status(saved: Result<(), String>, status: u8) -> u8 {
    match saved {
        Ok(()) => status,
        Err(message) => {
            eprintln!("wirestorm: {message}");
            if status == 0 { crate::status::FAILED } else { status }
        }
    }
}
