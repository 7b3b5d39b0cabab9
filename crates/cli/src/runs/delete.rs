//! `wirestorm runs delete`.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;
use wirestorm_store::Store;
use wirestorm_store::entry::RunEntry;
use wirestorm_store::record::State;

use super::{Failure, open};
use crate::number::{brief, count_of};
use crate::save::DirectoryFlags;
use crate::status;

/// Delete runs
#[derive(Args, Debug)]
pub(super) struct DeleteFlags {
    /// IDs, beginnings of IDs, names, or `latest`
    #[arg(value_name = "RUN", required = true, num_args = 1..=1024)]
    runs: Vec<String>,

    /// Delete without a question
    #[arg(short, long)]
    yes: bool,

    #[command(flatten)]
    directory: DirectoryFlags,
}

pub(super) fn run(flags: &DeleteFlags) -> Result<u8, Failure> {
    let mut store = open(&flags.directory)?;
    let mut runs: Vec<RunEntry> = Vec::new();
    for selector in &flags.runs {
        let run = store.find(selector)?;
        if run.state == State::Running {
            let RunEntry { id, process, .. } = run;
            return Err(Failure::failed(format!(
                "run {id} is still running (process {process}); wait for it or stop it"
            )));
        }
        if !runs.iter().any(|other| other.id == run.id) {
            runs.push(run);
        }
    }
    if !flags.yes && !is_confirmed(&store, &runs)? {
        eprintln!("nothing deleted");
        return Ok(status::SHORT);
    }
    for run in runs {
        store.delete(&run.id)?;
        println!("deleted {}", run.id);
    }
    Ok(0)
}

fn is_confirmed(store: &Store, runs: &[RunEntry]) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::usage(
            "standard input is no terminal for a question; add --yes to delete",
        ));
    }
    for run in runs {
        let size = brief(store.size(&run.id) as f64);
        let name = run.name.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
        let trials = count_of(run.trials.into(), "trial", "trials");
        eprintln!("{}{name}: {trials}, {size}B", run.id);
    }
    eprint!("delete {}? [y/N] ", count_of(runs.len() as u64, "run", "runs"));
    let _ = io::stderr().flush();
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.map_err(|error| Failure::failed(format!("cannot read the answer: {error}")))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
