//! `wirestorm replay`.

mod edit_flags;
pub(crate) mod flags;
pub(crate) mod hooks;
pub(crate) mod lower;
mod options_files;
mod progress;
mod statistics;
mod table;

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::ArgMatches;
use wirestorm_control::plan::replay::ReplayPlan;
use wirestorm_control::replay;
use wirestorm_control::result::RunResult;

use crate::{interrupt, options, ports, status};
use flags::ReplayFlags;
pub(crate) use options_files::load;
use progress::ProgressLine;
use statistics::Statistics;
use table::Table;

/// Runs the command.
pub(crate) fn run(flags: &ReplayFlags, matches: &ArgMatches) -> ExitCode {
    if let Some(outcome) = instead(flags, matches) {
        return match outcome {
            Ok(()) => ExitCode::SUCCESS,
            Err(message) => {
                eprintln!("wirestorm: {message}");
                ExitCode::from(status::FAILED)
            }
        };
    }
    let plan = match lower::plan(flags) {
        Ok(plan) => plan,
        Err(message) => {
            eprintln!("wirestorm: {message}");
            return ExitCode::from(status::USAGE);
        }
    };
    if !flags.output.suppress_warnings {
        for remark in lower::remarks(flags) {
            eprintln!("wirestorm: {remark}");
        }
    }
    if flags.output.pid {
        eprintln!("PID: {}", std::process::id());
    }
    let control = interrupt::catch();
    let hooks = match hooks::hooks(&plan, flags.output.stats) {
        Ok(hooks) => hooks,
        Err(message) => {
            eprintln!("wirestorm: {message}");
            return ExitCode::from(status::FAILED);
        }
    };
    let mut line = ProgressLine::new(flags.output.quiet || plan.asks || plan.show.is_some());
    let mut statistics = flags.output.stats.map(Statistics::every);
    let outcome = replay::run(&plan, &control, hooks, |progress| {
        if let Some(statistics) = &mut statistics {
            line.suspend(|| statistics.update(progress));
        }
        line.update(progress);
    });
    line.finish();
    let result = match outcome {
        Ok(result) => result,
        Err(error) => {
            eprintln!("wirestorm: {error}");
            return ExitCode::from(status::USAGE);
        }
    };
    if let Err(error) = show(flags, &result) {
        eprintln!("wirestorm: cannot write the result: {error}");
        return ExitCode::from(status::FAILED);
    }
    ExitCode::from(exit_status(&plan, &result))
}

/// What is asked for instead of a replay.
fn instead(flags: &ReplayFlags, matches: &ArgMatches) -> Option<Result<(), String>> {
    if flags.options.listnics {
        return Some(ports::names().and_then(|names| {
            let printed = io::stdout().write_all(names.as_bytes());
            printed.map_err(|error| format!("cannot write the names: {error}"))
        }));
    }
    let path = flags.options.save_opts.as_ref()?;
    Some(options::save(path, &options_files::text(matches)))
}

fn show(flags: &ReplayFlags, result: &RunResult) -> io::Result<()> {
    let mut output = io::stdout().lock();
    match flags.output.json.as_deref() {
        // Whoever reads JSON from standard output wants nothing else there.
        Some(path) if path == Path::new("-") => {
            serde_json::to_writer_pretty(&mut output, result)?;
            writeln!(output)
        }
        path => {
            if let Some(path) = path {
                let mut file = File::create(path)?;
                serde_json::to_writer_pretty(&mut file, result)?;
                writeln!(file)?;
            }
            write!(output, "{}", Table(result))
        }
    }
}

/// What the exit status says of a run that has a result.
fn exit_status(plan: &ReplayPlan, result: &RunResult) -> u8 {
    let is_off =
        result.rate_error_ppm.is_some_and(|error| error.abs() > f64::from(plan.tolerance_ppm));
    let lost = result.rx.as_ref().is_some_and(|rx| rx.lost > 0);
    if !result.errors.is_empty() {
        status::FAILED
    } else if !result.interrupted && (is_off || lost || result.unsent > 0 || result.failed > 0) {
        status::SHORT
    } else {
        0
    }
}
