//! Runs a replay from its flags to its result, for `wirestorm replay` and for tcpreplay's names.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use wirestorm_control::Snapshot;
use wirestorm_control::plan::replay::ReplayPlan;
use wirestorm_control::result::RunResult;
use wirestorm_control::run::Plan;

use super::flags::{OutputFlags, ReplayFlags};
use super::{hooks, lower};
use crate::foreground::{self, Foreground, View};
use crate::signals::Signals;

/// Differences between the names of the program.
pub(crate) trait FrontEnd {
    /// Prefix of remarks about flags.
    const REMARK_PREFIX: &'static str;

    /// Receives the plan before the run begins.
    fn begin(&mut self, plan: &ReplayPlan);

    /// Receives the progress of the run.
    fn observe(&mut self, progress: &Snapshot);

    /// Receives the end of the run, also if the run did not begin.
    fn end(&mut self) {}

    /// Formats the result as text.
    fn text(&mut self, plan: &ReplayPlan, result: &RunResult) -> String;
}

/// Error of a replay without a printed result.
pub(crate) enum Failure {
    /// The flags do not form a valid plan.
    Plan(String),
    /// The run did not begin.
    Begin(foreground::Failure),
    /// An error outside the run: tcpdump does not start, or the result cannot be written.
    Other(String),
}

/// Replays as the flags describe, and prints the result.
///
/// # Errors
/// See [`Failure`]. The result holds the errors that happen after the first frame.
pub(crate) fn run_replay<F: FrontEnd>(
    flags: &ReplayFlags,
    front_end: &mut F,
) -> Result<Arc<RunResult>, Failure> {
    let plan = lower::plan(flags).map_err(Failure::Plan)?;
    if !flags.output.suppress_warnings {
        for remark in lower::remarks(flags) {
            eprintln!("{}: {remark}", F::REMARK_PREFIX);
        }
    }
    if flags.output.pid {
        eprintln!("PID: {}", std::process::id());
    }
    let foreground = Foreground::open(flags.output.metrics).map_err(Failure::Plan)?;
    let signals = Signals::catch();
    let hooks = hooks::hooks(&plan, statistics_every_s(&flags.output)).map_err(Failure::Other)?;
    front_end.begin(&plan);
    let backend = lower::backend(flags);
    let run = Plan::Replay { plan: Box::new(plan.clone()), backend, hooks };
    let mut view = FrontEndView(front_end);
    let outcome = foreground.run(run, String::new(), &mut view, &signals, |_| ());
    let result = outcome.map_err(Failure::Begin)?;
    let text = front_end.text(&plan, &result);
    print(&flags.output, &result, &text).map_err(Failure::Other)?;
    Ok(result)
}

/// A front end as a view of a foreground run.
struct FrontEndView<'a, F>(&'a mut F);

impl<F: FrontEnd> View for FrontEndView<'_, F> {
    fn update(&mut self, snapshot: &Snapshot) {
        self.0.observe(snapshot);
    }

    fn line(&mut self, text: &str) {
        eprintln!("{text}");
    }

    fn finish(&mut self) {
        self.0.end();
    }
}

/// Returns the interval of `--stats`, in seconds.
///
/// Returns `None` if standard output holds only the JSON result.
pub(crate) fn statistics_every_s(output: &OutputFlags) -> Option<u64> {
    output.stats.filter(|_| !is_json_only(output))
}

fn is_json_only(output: &OutputFlags) -> bool {
    output.json.as_deref() == Some(Path::new("-"))
}

/// Prints the text, or the JSON document, or both to different destinations.
fn print(flags: &OutputFlags, result: &RunResult, text: &str) -> Result<(), String> {
    let mut output = io::stdout().lock();
    let failed = |error| format!("cannot write the result: {error}");
    if is_json_only(flags) {
        return write_json(&mut output, result).map_err(failed);
    }
    let written = flags.json.as_ref().map_or(Ok(()), |path| {
        File::create(path)
            .and_then(|mut file| write_json(&mut file, result))
            .map_err(|error| format!("cannot write the result to {}: {error}", path.display()))
    });
    output.write_all(text.as_bytes()).map_err(failed)?;
    written
}

fn write_json(output: &mut impl Write, result: &RunResult) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *output, result)?;
    writeln!(output)
}
