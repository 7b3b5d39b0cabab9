//! `wirestorm replay`: replays captures onto an interface or into a file.

mod edit_flags;
pub(crate) mod flags;
mod hooks;
mod lower;
mod options_files;
mod progress;
pub(crate) mod session;
mod statistics;
mod table;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::ArgMatches;
use wirestorm_control::Snapshot;
use wirestorm_control::plan::replay::ReplayPlan;
use wirestorm_control::result::RunResult;

use crate::{options, ports, status};
use flags::ReplayFlags;
pub(crate) use options_files::load;
use progress::ProgressLine;
use session::{Failure, FrontEnd, run_replay, statistics_every_s};
use statistics::Statistics;
pub(crate) use table::Table;

/// Runs the command.
pub(crate) fn run(flags: &ReplayFlags, matches: &ArgMatches) -> ExitCode {
    if let Some(outcome) = run_alternative(flags, matches) {
        return match outcome {
            Ok(()) => ExitCode::SUCCESS,
            Err(message) => {
                eprintln!("wirestorm: {message}");
                ExitCode::from(status::FAILED)
            }
        };
    }
    let output = &flags.output;
    let mut terminal = Terminal {
        line: None,
        is_quiet: output.quiet,
        statistics: statistics_every_s(output).map(Statistics::every),
    };
    let (status, message) = match run_replay(flags, &mut terminal) {
        Ok(result) => return ExitCode::from(result.verdict.outcome.exit_status()),
        Err(Failure::Plan(message)) => (status::USAGE, message),
        Err(Failure::Begin(failure)) => return failure.exit(),
        Err(Failure::Other(message)) => (status::FAILED, message),
    };
    eprintln!("wirestorm: {message}");
    ExitCode::from(status)
}

/// Terminal output of a run.
struct Terminal {
    line: Option<ProgressLine>,
    is_quiet: bool,
    statistics: Option<Statistics>,
}

impl FrontEnd for Terminal {
    const REMARK_PREFIX: &'static str = "wirestorm";

    fn begin(&mut self, plan: &ReplayPlan) {
        let shows_other = plan.one_at_a_time || plan.show.is_some();
        self.line = Some(ProgressLine::new(self.is_quiet || shows_other));
    }

    fn observe(&mut self, progress: &Snapshot) {
        let Some(line) = &mut self.line else { return };
        if let Some(statistics) = &mut self.statistics {
            line.suspend(|| statistics.update(progress));
        }
        line.update(progress);
    }

    fn end(&mut self) {
        if let Some(line) = self.line.take() {
            line.finish();
        }
    }

    fn text(&mut self, _: &ReplayPlan, result: &RunResult) -> String {
        Table(result).to_string()
    }
}

/// Runs the options that replace a replay: `--listnics` and `--save-opts`.
fn run_alternative(flags: &ReplayFlags, matches: &ArgMatches) -> Option<Result<(), String>> {
    if flags.options.listnics {
        return Some(ports::names().and_then(|names| {
            let printed = io::stdout().write_all(names.as_bytes());
            printed.map_err(|error| format!("cannot write the names: {error}"))
        }));
    }
    let path = flags.options.save_opts.as_ref()?;
    Some(options::save(path, &options_files::text(matches)))
}
