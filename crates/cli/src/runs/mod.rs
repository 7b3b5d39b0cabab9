//! `wirestorm runs`: lists, shows, compares, exports and deletes saved runs.

mod compare;
mod delete;
mod export;
mod list;
mod show;
mod value;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::save::DirectoryFlags;
use crate::status;

const EXAMPLES: &str = "\
Examples:
  wirestorm runs list --since 7d
  wirestorm runs show latest
  wirestorm runs compare before after
      two runs by their names, side by side
  wirestorm runs export 2026-11-26T23 --format parquet -o trials.parquet
      the beginning of an ID is enough
  wirestorm runs delete before

RUN is an ID, the beginning of an ID, a name, or `latest`.
`--save` of replay, run, send, emulate, impair, pktgen and sim saves a run.";

/// List, show, compare, export and delete saved runs
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunsFlags {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand, Debug)]
enum Task {
    /// List saved runs, the newest first
    List(list::ListFlags),
    /// Print the facts, trials and result of a run
    Show(show::ShowFlags),
    /// Compare two runs and mark differences beyond noise
    Compare(compare::CompareFlags),
    /// Write trials, histograms or time series as a table
    Export(export::ExportFlags),
    /// Delete runs
    Delete(delete::DeleteFlags),
}

/// Error of a command, with its exit status.
struct Failure {
    status: u8,
    message: String,
}

impl Failure {
    /// Makes an error of wrong input.
    fn usage(message: impl Into<String>) -> Self {
        Self { status: status::USAGE, message: message.into() }
    }

    /// Makes an error at run time.
    fn failed(message: impl Into<String>) -> Self {
        Self { status: status::FAILED, message: message.into() }
    }
}

impl From<wirestorm_store::StoreError> for Failure {
    fn from(error: wirestorm_store::StoreError) -> Self {
        use wirestorm_store::StoreError;
        let status = match error {
            StoreError::Empty(_) | StoreError::Unknown { .. } | StoreError::Ambiguous { .. } => {
                status::USAGE
            }
            _ => status::FAILED,
        };
        Self { status, message: error.to_string() }
    }
}

/// Opens the run history.
fn open(directory: &DirectoryFlags) -> Result<wirestorm_store::Store, Failure> {
    directory.open().map_err(Failure::failed)
}

/// Reads a run and prints warnings about its damaged files.
fn load(
    store: &wirestorm_store::Store,
    selector: &str,
) -> Result<wirestorm_store::SavedRun, Failure> {
    let entry = store.find(selector)?;
    Ok(store.load(&entry.id)?)
}

/// Prints the warnings of a run that the opening of the store has not printed.
fn print_warnings(store: &wirestorm_store::Store, run: &wirestorm_store::SavedRun) {
    for warning in run.warnings.iter().filter(|it| !store.warnings().contains(it)) {
        eprintln!("wirestorm: warning: {warning}");
    }
}

/// Runs the command.
pub(crate) fn run(flags: &RunsFlags) -> ExitCode {
    let outcome = match &flags.task {
        Task::List(flags) => list::run(flags),
        Task::Show(flags) => show::run(flags),
        Task::Compare(flags) => compare::run(flags),
        Task::Export(flags) => export::run(flags),
        Task::Delete(flags) => delete::run(flags),
    };
    match outcome {
        Ok(status) => ExitCode::from(status),
        Err(Failure { status, message }) => {
            eprintln!("wirestorm: {message}");
            ExitCode::from(status)
        }
    }
}
