//! Commands to runs: their load, their flows, their end and their results.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use wirestorm_api::run::{CommandRequest, PlanSource, RunOrigin, RunState, RunSummary};

use super::{Answer, CommandError, Execute, Result, trex_time, written};
use crate::number::scaled;
use crate::session::Session;
use crate::text::table;

/// Choice of runs.
#[derive(Args, Debug)]
pub(crate) struct Selection {
    /// Run: ID, name, beginning of an ID, or latest [default: own active runs]
    #[arg(value_name = "RUN")]
    runs: Vec<String>,

    /// Active runs on these ports
    #[arg(short, long = "port", value_name = "PORT", num_args = 1.., conflicts_with = "runs")]
    ports: Vec<String>,

    /// All own active runs, as without options
    #[arg(short, long, conflicts_with_all = ["runs", "ports"])]
    all: bool,
}

impl Selection {
    fn is_default(&self) -> bool {
        self.runs.is_empty() && self.ports.is_empty()
    }

    fn find(&self, session: &mut Session) -> Result<Vec<RunSummary>> {
        session.runs(&self.runs, &self.ports)
    }

    /// Sends a command to the chosen runs. Returns an answer that begins with `what`.
    fn send(&self, session: &mut Session, what: &str, command: &CommandRequest) -> Result<Answer> {
        let runs = self.find(session)?;
        for run in &runs {
            session.send(&run.id, command)?;
        }
        let ids: Vec<String> = runs.into_iter().map(|run| run.id).collect();
        Ok(Answer::Text(format!("{what} {}", ids.join(", "))))
    }
}

/// Choice of flows.
#[derive(Args, Debug)]
pub(crate) struct FlowFlags {
    /// Flows by name [default: all]
    #[arg(short = 'i', long = "flow", alias = "id", value_name = "FLOW", num_args = 1..)]
    flows: Vec<String>,
}

impl FlowFlags {
    fn names(&self) -> Option<Vec<String>> {
        (!self.flows.is_empty()).then(|| self.flows.clone())
    }
}

/// Stop runs.
#[derive(Args, Debug)]
pub(crate) struct Stop {
    #[command(flatten)]
    selection: Selection,

    /// Accepted without effect: an ended run has left its ports
    #[arg(long, hide = true)]
    remove: bool,
}

impl Execute for Stop {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let mut lines = Vec::new();
        for run in self.selection.find(session)? {
            lines.push(ended(&session.stop(&run)?));
        }
        Ok(Answer::Text(lines.join("\n")))
    }
}

/// Returns the outcome of a run in a line.
pub(crate) fn ended(run: &RunSummary) -> String {
    let mut line = format!("{} {}", run.id, state(run));
    let outcome = run.outcome.as_ref().filter(|_| run.state != RunState::Interrupted);
    if let Some(outcome) = outcome {
        line += &format!(", {}", outcome.replace('_', " "));
    }
    if let Some(figure) = &run.figure {
        line += &format!(", {} {}", figure.name, scaled(figure.value, &figure.unit));
    }
    if let Some(message) = &run.message {
        line += &format!(": {message}");
    }
    line
}

/// Returns the state of a run in a word.
pub(crate) const fn state(run: &RunSummary) -> &'static str {
    state_name(run.state, run.is_paused)
}

/// Returns a state in a word. A paused run is running or draining.
pub(crate) const fn state_name(state: RunState, is_paused: bool) -> &'static str {
    match state {
        RunState::Running | RunState::Draining if is_paused => "paused",
        RunState::Preparing => "preparing",
        RunState::Prepared => "prepared",
        RunState::Armed => "armed",
        RunState::Running => "running",
        RunState::Draining => "draining",
        RunState::Finished => "finished",
        RunState::Failed => "failed",
        RunState::Interrupted => "stopped",
        RunState::Died => "died",
    }
}

/// Pause runs.
#[derive(Args, Debug)]
pub(crate) struct Pause {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    flows: FlowFlags,
}

impl Execute for Pause {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let flows = self.flows.names();
        let what = if flows.is_some() { "paused flows of" } else { "paused" };
        self.selection.send(session, what, &CommandRequest::Pause { flows })
    }
}

/// Continue runs.
#[derive(Args, Debug)]
pub(crate) struct Resume {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    flows: FlowFlags,
}

impl Execute for Resume {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let flows = self.flows.names();
        let what = if flows.is_some() { "resumed flows of" } else { "resumed" };
        self.selection.send(session, what, &CommandRequest::Resume { flows })
    }
}

/// Change the load.
#[derive(Args, Debug)]
pub(crate) struct Update {
    #[command(flatten)]
    selection: Selection,

    /// Load as -m of `start`: factor (2), or total of each port (20kpps, 1gbps, 10%)
    #[arg(short, long = "mult", alias = "multiplier", value_name = "LOAD")]
    multiplier: String,

    /// Accepted without effect
    #[arg(long, hide = true)]
    force: bool,

    #[command(flatten)]
    flows: FlowFlags,
}

impl Execute for Update {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let what = format!("load {} for", self.multiplier);
        let command = CommandRequest::Load { load: self.multiplier, flows: self.flows.names() };
        self.selection.send(session, &what, &command)
    }
}

/// Set the rate of flows.
#[derive(Args, Debug)]
pub(crate) struct Rate {
    /// Rate of each flow: 10kpps, 1G-l1, 1G-l2 or max
    #[arg(value_name = "RATE")]
    rate: String,
    #[command(flatten)]
    on: OnRuns,
    #[command(flatten)]
    flows: FlowFlags,
}

/// Choice of runs for commands whose arguments are no runs.
#[derive(Args, Debug)]
pub(crate) struct OnRuns {
    /// Runs [default: own active runs]
    #[arg(short, long = "run", value_name = "RUN", num_args = 1..)]
    runs: Vec<String>,

    /// Active runs on these ports
    #[arg(short, long = "port", value_name = "PORT", num_args = 1.., conflicts_with = "runs")]
    ports: Vec<String>,
}

impl OnRuns {
    fn send(self, session: &mut Session, what: &str, command: &CommandRequest) -> Result<Answer> {
        let Self { runs, ports } = self;
        Selection { runs, ports, all: false }.send(session, what, command)
    }
}

impl Execute for Rate {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let what = format!("rate {} for", self.rate);
        let command = CommandRequest::Rate { rate: self.rate, flows: self.flows.names() };
        self.on.send(session, &what, &command)
    }
}

/// Multiply rates.
#[derive(Args, Debug)]
pub(crate) struct Scale {
    /// Factor of the rates in the plan: 0.5 or 50%
    #[arg(value_name = "FACTOR")]
    factor: String,
    #[command(flatten)]
    on: OnRuns,
    #[command(flatten)]
    flows: FlowFlags,
}

impl Execute for Scale {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let what = format!("factor {} for", self.factor);
        let command = CommandRequest::Scale { factor: self.factor, flows: self.flows.names() };
        self.on.send(session, &what, &command)
    }
}

/// Start or stop flows.
#[derive(Args, Debug)]
pub(crate) struct Flows {
    /// What to do
    #[arg(value_name = "ACTION", value_parser = ["start", "stop"])]
    action: String,
    /// Flows by name [default: all]
    #[arg(value_name = "FLOW")]
    flows: Vec<String>,
    #[command(flatten)]
    on: OnRuns,
}

impl Execute for Flows {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let flows = (!self.flows.is_empty()).then_some(self.flows);
        let (what, command) = match self.action.as_str() {
            "start" => ("started flows of", CommandRequest::StartFlows { flows }),
            _ => ("stopped flows of", CommandRequest::StopFlows { flows }),
        };
        self.on.send(session, what, &command)
    }
}

/// Enable or disable clients.
#[derive(Args, Debug)]
pub(crate) struct Clients {
    /// What to do
    #[arg(value_name = "ACTION", value_parser = ["enable", "disable"])]
    action: String,
    /// Addresses or ranges: 10.0.0.5, 10.0.0.1-10.0.0.9
    #[arg(value_name = "RANGE", required = true)]
    ranges: Vec<String>,
    #[command(flatten)]
    on: OnRuns,
}

impl Execute for Clients {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let range = |range: &String| match range.split_once('-') {
            Some((first, last)) => (first.to_owned(), last.to_owned()),
            None => (range.clone(), range.clone()),
        };
        let ranges = self.ranges.iter().map(range).collect();
        let on = self.action == "enable";
        let what = if on { "enabled clients of" } else { "disabled clients of" };
        self.on.send(session, what, &CommandRequest::Clients { ranges, on })
    }
}

/// End the load.
#[derive(Args, Debug)]
pub(crate) struct EndLoad {
    #[command(flatten)]
    selection: Selection,
}

impl Execute for EndLoad {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        self.selection.send(session, "no more connections in", &CommandRequest::EndLoad)
    }
}

/// Wait for the end of runs.
#[derive(Args, Debug)]
pub(crate) struct Wait {
    #[command(flatten)]
    selection: Selection,

    /// Give up after this time
    #[arg(short, long, value_name = "TIME")]
    timeout: Option<String>,
}

impl Execute for Wait {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let timeout = self.timeout.as_deref().map(seconds).transpose()?;
        let runs = match self.selection.is_default() {
            true => session.unwaited()?,
            false => self.selection.find(session)?,
        };
        if runs.is_empty() {
            return Ok(Answer::Text("no run of yours is active".to_owned()));
        }
        let mut lines = Vec::new();
        for run in runs {
            let over = match run.state.is_over() {
                true => run,
                false => session.wait(&run.id, timeout)?,
            };
            if !over.state.is_over() {
                let time = self.timeout.unwrap_or_default();
                return Err(CommandError::failed(format!("{} is active after {time}", over.id)));
            }
            let is_failed = matches!(over.state, RunState::Failed | RunState::Died)
                || over.outcome.as_deref() == Some("failed");
            if is_failed {
                return Err(CommandError::failed(ended(&over)));
            }
            lines.push(ended(&over));
        }
        Ok(Answer::Text(lines.join("\n")))
    }
}

/// Parses a time in seconds, or with a unit.
fn seconds(text: &str) -> Result<Duration> {
    let wrong =
        || CommandError::usage(format!("{text:?}: expected a time such as 10, 500ms, 10s or 5min"));
    let time = trex_time(text);
    let units = [("ms", 1e-3), ("min", 60.0), ("h", 3600.0), ("s", 1.0)];
    let (number, scale) = units
        .iter()
        .find_map(|(unit, scale)| Some((time.strip_suffix(unit)?, *scale)))
        .ok_or_else(wrong)?;
    let value: f64 = number.trim().parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(value * scale).map_err(|_| wrong())
}

/// List runs.
#[derive(Args, Debug)]
pub(crate) struct Runs {
    /// Number of runs
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    limit: usize,
}

impl Execute for Runs {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let list = session.client.runs(self.limit)?;
        let left_out = list.total.saturating_sub(list.runs.len());
        let mut text = runs_table(&list.runs);
        if left_out > 0 {
            text += &format!("{left_out} more: `runs -n {}` lists all\n", list.total);
        }
        Ok(Answer::Text(text))
    }
}

fn runs_table(runs: &[RunSummary]) -> String {
    if runs.is_empty() {
        return "no runs\n".to_owned();
    }
    let row = |run: &RunSummary| {
        [
            run.id.clone(),
            run.name.clone().unwrap_or_default(),
            state(run).to_owned(),
            run.outcome.clone().unwrap_or_default().replace('_', " "),
            run.figure.as_ref().map_or_else(String::new, |it| scaled(it.value, &it.unit)),
            run.user.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    };
    let rows: Vec<_> = runs.iter().map(row).collect();
    table(["run", "name", "state", "outcome", "figure", "user"], &rows)
}

/// Print the report on a run.
#[derive(Args, Debug)]
pub(crate) struct Show {
    /// Run: ID, name, beginning of an ID, or latest
    #[arg(value_name = "RUN")]
    run: String,

    /// Print the plan that the run was started with
    #[arg(long)]
    plan: bool,
}

impl Execute for Show {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        if self.plan {
            let origin = session.client.origin(&self.run)?;
            return Ok(Answer::Text(plan_text(&self.run, origin)?));
        }
        let run = session.client.run(&self.run)?;
        if run.state.is_over() {
            return Ok(Answer::Text(session.client.report(&run.id, "markdown")?));
        }
        let name = run.name.as_deref().unwrap_or("-");
        let mut text = format!(
            "{}\nname   {name}\nkind   {}\nstate  {}\nuser   {}\nports  {}\n",
            run.id,
            run.kind,
            state(&run),
            run.user.as_deref().unwrap_or("-"),
            run.interfaces.join(", "),
        );
        if let Some(message) = &run.message {
            text += &format!("note   {message}\n");
        }
        Ok(Answer::Text(text))
    }
}

/// Returns the text of the plan of a run.
fn plan_text(run: &str, origin: RunOrigin) -> Result<String> {
    match origin.plan {
        Some(PlanSource::Text(text)) => Ok(text),
        // Streams of TRex and replays are documents of the request.
        Some(other) => serde_json::to_string_pretty(&other)
            .map_err(|error| CommandError::failed(error.to_string())),
        None => {
            let reason = match origin.command.as_slice() {
                [] => "streams and profiles of TRex above 1 MiB stay out of it: use your own copy"
                    .to_owned(),
                words => format!("use the command line that started it: {}", line_of(words)),
            };
            Err(CommandError::failed(format!("run {run} has no plan in the history; {reason}")))
        }
    }
}

/// Returns words as a line of a shell.
fn line_of(words: &[String]) -> String {
    let words = words.iter().map(String::as_str);
    shlex::try_join(words.clone()).unwrap_or_else(|_| words.collect::<Vec<_>>().join(" "))
}

/// Print a result.
#[derive(Args, Debug)]
pub(crate) struct ResultOf {
    /// Run: ID, name, beginning of an ID, or latest
    #[arg(value_name = "RUN")]
    run: String,

    /// Write it to a file of this machine
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Execute for ResultOf {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let result = session.client.result_document(&self.run)?;
        let text = serde_json::to_string_pretty(&result)
            .map_err(|error| CommandError::failed(error.to_string()))?;
        written(text + "\n", self.output.as_deref())
    }
}

/// Write a report.
#[derive(Args, Debug)]
pub(crate) struct Report {
    /// Run: ID, name, beginning of an ID, or latest
    #[arg(value_name = "RUN")]
    run: String,

    /// Write it to a file of this machine [default: print it as Markdown]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Format [default: by the name of the file, else html]
    #[arg(long, value_name = "FORMAT", value_parser = ["html", "markdown", "junit", "json"])]
    format: Option<String>,
}

impl Report {
    fn format(&self) -> &str {
        if let Some(format) = &self.format {
            return format;
        }
        let Some(output) = &self.output else { return "markdown" };
        match output.extension().and_then(|it| it.to_str()) {
            Some("md") => "markdown",
            Some("xml") => "junit",
            Some("json") => "json",
            _ => "html",
        }
    }
}

impl Execute for Report {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let text = session.client.report(&self.run, self.format())?;
        written(text, self.output.as_deref())
    }
}

/// Delete runs.
#[derive(Args, Debug)]
pub(crate) struct Delete {
    /// Runs: ID or name
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
}

impl Execute for Delete {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        for run in &self.runs {
            session.client.delete_run(run)?;
        }
        Ok(Answer::Text(format!("deleted {}", self.runs.join(", "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_time_has_the_units_of_durations() {
        let times = ["2", "500ms", "1m", "2min", "1h"].map(|text| seconds(text).unwrap());
        assert_eq!(times.map(|time| time.as_secs_f64()), [2.0, 0.5, 60.0, 120.0, 3600.0]);
        assert!(seconds("soon").unwrap_err().to_string().contains("\"soon\""));
    }

    #[test]
    fn run_without_a_plan_names_what_to_use_instead() {
        let message = |command: &[&str]| {
            let command = command.iter().map(|word| (*word).to_owned()).collect();
            plan_text("night", RunOrigin { command, ..RunOrigin::default() })
                .unwrap_err()
                .to_string()
        };
        let replay = message(&["wirestorm", "replay", "my web.pcap"]);
        assert!(replay.contains("run night ") && replay.contains("wirestorm replay 'my web.pcap'"));
        let streams = message(&[]);
        assert!(streams.contains("run night ") && streams.contains("1 MiB"), "{streams}");
    }

    #[test]
    fn format_of_a_report_follows_the_name_of_the_file() {
        let report =
            |output: &str| Report { run: String::new(), output: Some(output.into()), format: None };
        for (output, format) in
            [("a.html", "html"), ("a.md", "markdown"), ("a.xml", "junit"), ("a", "html")]
        {
            assert_eq!(report(output).format(), format);
        }
    }
}
