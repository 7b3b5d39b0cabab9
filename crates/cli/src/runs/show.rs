//! `wirestorm runs show`.

use std::fmt::{self, Display, Formatter};

use clap::Args;
use serde_json::json;
use wirestorm_control::result::{Kind, RunResult};
use wirestorm_store::record::{RunRecord, State};
use wirestorm_store::row::TrialRow;
use wirestorm_store::{SavedResult, SavedRun};

use super::value::{local_time, outcome_name, suffix, value};
use super::{Failure, load, open, print_warnings};
use crate::number::{grouped, signed_nanoseconds};
use crate::ports::show;
use crate::save::DirectoryFlags;
use crate::traffic::shortened;
use crate::wrap::wrapped;
use crate::{bench, emulate, impair, replay, traffic};

/// Trials shown at most; an export has all.
const TRIALS_MAX: usize = 40;
/// Figures shown at most; `--json` has the whole result.
const FIGURES_MAX: usize = 60;

/// Print the facts, trials and result of a run
#[derive(Args, Debug)]
pub(super) struct ShowFlags {
    /// ID, beginning of an ID, name, or `latest`
    #[arg(value_name = "RUN", default_value = "latest")]
    run: String,

    /// Print JSON: record, rows of trials, and result
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    directory: DirectoryFlags,
}

pub(super) fn run(flags: &ShowFlags) -> Result<u8, Failure> {
    let store = open(&flags.directory)?;
    let mut run = load(&store, &flags.run)?;
    let rows = run.rows()?;
    print_warnings(&store, &run);
    if flags.json {
        let document = json!({
            "schema": "wirestorm.saved-run/1",
            "state": run.state,
            "directory": run.directory(),
            "run": run.record,
            "trials": rows,
            "result": run.result,
        });
        show(&format!("{document:#}\n"));
    } else {
        show(&Report { run: &run, rows: &rows }.to_string());
    }
    Ok(0)
}

struct Report<'a> {
    run: &'a SavedRun,
    rows: &'a [TrialRow],
}

impl Display for Report<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        facts(f, self.run)?;
        trials(f, self.rows)?;
        match &self.run.result {
            None => Ok(()),
            Some(SavedResult::Run(result)) => {
                writeln!(f)?;
                table(f, result, self.run)
            }
            Some(SavedResult::Bench(result)) => {
                writeln!(f)?;
                bench::Table(result).fmt(f)
            }
        }
    }
}

fn line(f: &mut Formatter<'_>, name: &str, text: &str) -> fmt::Result {
    if text.is_empty() {
        return Ok(());
    }
    writeln!(f, "{}", wrapped(&format!("{name:<11} "), text))
}

fn facts(f: &mut Formatter<'_>, run: &SavedRun) -> fmt::Result {
    let RunRecord { host, machine, .. } = &run.record;
    let record = &run.record;
    line(f, "run", &record.id)?;
    line(f, "name", record.name.as_deref().unwrap_or_default())?;
    let outcome = run.result.as_ref().map(SavedResult::outcome).map(outcome_name);
    let state = match (run.state, outcome) {
        (State::Died, _) => "died: its process ended before the run did".to_owned(),
        (State::Running, _) => format!("running (process {})", record.process.id),
        (state, Some(outcome)) if state.name() != outcome => format!("{}, {outcome}", state.name()),
        (state, _) => state.name().to_owned(),
    };
    line(f, "state", &state)?;
    line(f, "error", record.error.as_deref().unwrap_or_default())?;
    line(f, "started", &local_time(record.started_unix_ns))?;
    line(f, "ended", &record.ended_unix_ns.map(local_time).unwrap_or_default())?;
    line(f, "command", &record.command.join(" "))?;
    line(f, "version", &record.version)?;
    let system = format!(
        "{}, Linux {} {}, {}",
        host.name, host.kernel, host.architecture, machine.operating_system
    );
    line(f, "host", system.trim_end_matches(", "))?;
    let gibibytes = machine.memory_bytes as f64 / f64::from(1 << 30);
    let hypervisor = match &machine.hypervisor {
        Some(name) if name == "unknown" => ", virtual machine".to_owned(),
        Some(name) => format!(", virtual machine ({name})"),
        None => String::new(),
    };
    let processor = format!(
        "{} of {} CPUs, {}, {gibibytes:.1} GiB{hypervisor}",
        host.cpus, machine.cpus_online, machine.cpu_model
    );
    line(f, "machine", &processor)?;
    for interface in &record.interfaces {
        let kind = match interface.driver.as_str() {
            "" => interface.kind.clone(),
            driver if driver == interface.kind => driver.to_owned(),
            driver => format!("{} {driver} {}", interface.kind, interface.firmware),
        };
        let text = format!(
            "{}: {}, MTU {}, {}/{} queues",
            interface.interface,
            kind.trim_end(),
            interface.mtu,
            interface.transmit_queues,
            interface.receive_queues
        );
        line(f, "interface", &text)?;
    }
    line(f, "device", &record.device.name)?;
    for (name, fact) in &record.device.facts {
        line(f, "", &format!("{name}: {fact}"))?;
    }
    let names: Vec<&str> = record.files.keys().map(String::as_str).collect();
    line(f, "files", &names.join(", "))?;
    line(f, "directory", &run.directory().display().to_string())
}

fn trials(f: &mut Formatter<'_>, rows: &[TrialRow]) -> fmt::Result {
    let trials: Vec<&TrialRow> = rows.iter().filter(|row| row.number > 0).collect();
    if trials.is_empty() {
        return Ok(());
    }
    writeln!(
        f,
        "\n{:>5} {:<13} {:<8} {:>5} {:>12} {:>8} {:>12} {:>9}",
        "trial", "test", "traffic", "size", "load", "s", "loss", "p99"
    )?;
    for row in trials.iter().take(TRIALS_MAX) {
        let optional = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), grouped);
        let loss = row.loss_ratio.unwrap_or(0.0) * 100.0;
        writeln!(
            f,
            "{:>5} {:<13} {:<8} {:>5} {:>12} {:>8.2} {:>10.6} % {:>9}",
            row.number,
            shortened(&row.test, 13),
            shortened(&row.traffic, 8),
            optional(row.frame_size.map(u64::from)),
            optional(row.load),
            row.seconds,
            loss,
            row.delay_p99_ns.map_or_else(|| "-".to_owned(), signed_nanoseconds),
        )?;
    }
    if let Some(more) = trials.len().checked_sub(TRIALS_MAX).filter(|more| *more > 0) {
        writeln!(f, "and {more} more rows: wirestorm runs export")?;
    }
    Ok(())
}

/// Prints the table that the command of the run printed.
fn table(f: &mut Formatter<'_>, result: &RunResult, run: &SavedRun) -> fmt::Result {
    match result.kind {
        Kind::Replay => replay::Table(result).fmt(f),
        Kind::Streams => traffic::Table(result).fmt(f),
        Kind::Emulation => emulate::Table(result).fmt(f),
        Kind::Impair => impair::Table(result).fmt(f),
        // The script printed the results of its devices.
        Kind::Pktgen => {
            figures(f, run)?;
            crate::report::verdict(f, result)
        }
    }
}

fn figures(f: &mut Formatter<'_>, run: &SavedRun) -> fmt::Result {
    let figures = run.figures();
    for figure in figures.iter().take(FIGURES_MAX) {
        let name = format!("{}{}", figure.name, suffix(figure.unit));
        writeln!(f, "{:<50} {:>14}", shortened(&name, 50), value(figure.value, figure.unit))?;
    }
    if let Some(more) = figures.len().checked_sub(FIGURES_MAX).filter(|more| *more > 0) {
        writeln!(f, "and {more} more figures: --json")?;
    }
    Ok(())
}
