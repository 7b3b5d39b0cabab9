//! Commands to runs: their load, their flows, their end and their results.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use wirestorm_api::run::{CommandRequest, RunState, RunSummary};

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
        let runs = self.send_to(session, command)?;
        Ok(Answer::Text(format!("{what} {}", runs.join(", "))))
    }

    /// Sends a command to the chosen runs, and returns their IDs.
    fn send_to(&self, session: &mut Session, command: &CommandRequest) -> Result<Vec<String>> {
        let runs = self.find(session)?;
        for run in &runs {
            session.send(&run.id, command)?;
        }
        Ok(runs.into_iter().map(|run| run.id).collect())
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
    let mut line = format!("{} {}", run.id, state(run.state));
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

/// Returns the name of a state.
pub(crate) const fn state(state: RunState) -> &'static str {
    match state {
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

/// Returns the answer to a pause or its end, of whole runs or of flows.
fn switched(runs: Vec<String>, is_whole: bool, is_paused: bool) -> Answer {
    match (is_whole, is_paused) {
        (true, _) => Answer::Paused { runs, is_paused },
        (false, true) => Answer::Text(format!("paused flows of {}", runs.join(", "))),
        (false, false) => Answer::Text(format!("resumed flows of {}", runs.join(", "))),
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
        let is_whole = flows.is_none();
        let runs = self.selection.send_to(session, &CommandRequest::Pause { flows })?;
        Ok(switched(runs, is_whole, true))
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
        let is_whole = flows.is_none();
        let runs = self.selection.send_to(session, &CommandRequest::Resume { flows })?;
        Ok(switched(runs, is_whole, false))
    }
}

/// Change the load.
#[derive(Args, Debug)]
pub(crate) struct Update {
    #[command(flatten)]
    selection: Selection,

    /// Factor (2), or total of each port in the unit of the start (20kpps)
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
        let mut names = Vec::new();
        for run in self.selection.find(session)? {
            let before = session.multiplier(&run.id);
            let factor = factor(&self.multiplier, before).map_err(|message| {
                CommandError::usage(format!("-m {}: {message}", self.multiplier))
            })?;
            let command = CommandRequest::Scale { factor, flows: self.flows.names() };
            session.send(&run.id, &command)?;
            names.push(run.id);
        }
        Ok(Answer::Text(format!("load {} for {}", self.multiplier, names.join(", "))))
    }
}

/// Returns the factor from the load of the start to a new load in the same unit.
///
/// # Errors
/// The units differ, so that the factor depends on the plan.
fn factor(load: &str, before: Option<&str>) -> std::result::Result<String, String> {
    let (value, unit) = split_load(load).ok_or_else(|| {
        "expected a factor such as 2, or a load such as 20kpps, 1gbps or 50%".to_owned()
    })?;
    let (base, base_unit) = match before.map(|before| (before, split_load(before))) {
        Some((_, Some(before))) => before,
        Some((before, None)) => return Err(format!("the run started with -m {before}")),
        None => (1.0, String::new()),
    };
    if unit != base_unit {
        let started = match before {
            Some(before) => format!("the run started with -m {before}: give a load in that unit"),
            None => "this console did not start the run: give a factor".to_owned(),
        };
        return Err(format!("{started}, or set the rate of each flow with `rate`"));
    }
    Ok(format!("{}", value / base))
}

/// Splits a load into its value, without unit prefix, and its unit.
fn split_load(text: &str) -> Option<(f64, String)> {
    let text = text.to_ascii_lowercase();
    let end = text.find(|it: char| !it.is_ascii_digit() && it != '.').unwrap_or(text.len());
    let value: f64 = text[..end].parse().ok().filter(|value| *value > 0.0)?;
    let unit = &text[end..];
    let (scale, unit) = match unit.as_bytes().first() {
        Some(b'k') => (1e3, &unit[1..]),
        Some(b'm') => (1e6, &unit[1..]),
        Some(b'g') => (1e9, &unit[1..]),
        _ => (1.0, unit),
    };
    let is_unit =
        matches!(unit, "pps" | "bps" | "bpsl1") || matches!(unit, "" | "%") && scale == 1.0;
    is_unit.then(|| (value * scale, unit.to_owned()))
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
            state(run.state).to_owned(),
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
}

impl Execute for Show {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let run = session.client.run(&self.run)?;
        if run.state.is_over() {
            return Ok(Answer::Text(session.client.report(&run.id, "markdown")?));
        }
        let name = run.name.as_deref().unwrap_or("-");
        let mut text = format!(
            "{}\nname   {name}\nkind   {}\nstate  {}\nuser   {}\nports  {}\n",
            run.id,
            run.kind,
            state(run.state),
            run.user.as_deref().unwrap_or("-"),
            run.interfaces.join(", "),
        );
        if let Some(message) = &run.message {
            text += &format!("note   {message}\n");
        }
        Ok(Answer::Text(text))
    }
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
    fn load_in_the_unit_of_the_start_is_a_factor() {
        for (load, before, expected) in [
            ("2", None, "2"),
            ("2", Some("1"), "2"),
            ("20kpps", Some("10kpps"), "2"),
            ("1gbps", Some("500mbps"), "2"),
            ("25%", Some("50%"), "0.5"),
            ("0.5", Some("2"), "0.25"),
        ] {
            assert_eq!(factor(load, before).as_deref(), Ok(expected), "{load} after {before:?}");
        }
        let message = factor("20kpps", Some("2")).unwrap_err();
        assert!(message.contains("started with -m 2") && message.contains("`rate`"), "{message}");
        assert!(factor("20kpps", None).unwrap_err().contains("factor"));
        for wrong in ["", "0", "-1", "5x", "2k"] {
            assert!(factor(wrong, None).unwrap_err().contains("expected"), "{wrong}");
        }
    }

    #[test]
    fn waiting_time_has_the_units_of_durations() {
        let times = ["2", "500ms", "1m", "2min", "1h"].map(|text| seconds(text).unwrap());
        assert_eq!(times.map(|time| time.as_secs_f64()), [2.0, 0.5, 60.0, 120.0, 3600.0]);
        assert!(seconds("soon").unwrap_err().to_string().contains("\"soon\""));
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
