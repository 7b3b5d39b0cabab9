//! tcpreplay mode: tcpreplay's command line, output lines and exit status.
//!
//! The replay itself is that of `wirestorm replay`.

mod arguments;
mod loop_statistics;
mod summary;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use wirestorm_control::Snapshot;
use wirestorm_control::plan::replay::ReplayPlan;
use wirestorm_control::result::RunResult;

use crate::replay::flags::{OutputFlags, ReplayFlags};
use crate::replay::session::{Failure, FrontEnd, run_replay, statistics_every_s};
use crate::{options, ports};
use arguments::{Invocation, Task};
use loop_statistics::LoopStatistics;
use summary::Summary;

/// Exit status of tcpreplay's option parser.
const USAGE: u8 = 1;

/// Exit status of a fatal error in tcpreplay, `exit(-1)`.
const FATAL: u8 = 255;

/// Name under which the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// `tcpreplay`.
    Tcpreplay,
    /// `tcpreplay-edit`.
    TcpreplayEdit,
}

impl Program {
    /// Returns the program that a first argument names, with or without a directory.
    pub(crate) fn named(argument: &OsStr) -> Option<Self> {
        match Path::new(argument).file_name()?.to_str()? {
            "tcpreplay" => Some(Self::Tcpreplay),
            "tcpreplay-edit" => Some(Self::TcpreplayEdit),
            _ => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Tcpreplay => "tcpreplay",
            Self::TcpreplayEdit => "tcpreplay-edit",
        }
    }

    /// Returns the program's sections of option files.
    const fn sections(self) -> &'static [&'static str] {
        match self {
            Self::Tcpreplay => &["TCPREPLAY"],
            Self::TcpreplayEdit => &["TCPREPLAY_EDIT"],
        }
    }
}

/// Runs the program with the arguments after its name.
pub(crate) fn run(program: Program, arguments: Vec<OsString>) -> ExitCode {
    let invocation = match Invocation::parse(program, arguments) {
        Ok(invocation) => invocation,
        Err(refusal) => {
            eprintln!("{}", refusal.trim_end());
            return ExitCode::from(USAGE);
        }
    };
    match invocation.task {
        Task::LessHelp(text) => {
            eprint!("{text}");
            ExitCode::from(USAGE)
        }
        Task::Help(text) => printed(&text),
        Task::Version => {
            eprint!("{}", version(program));
            ExitCode::SUCCESS
        }
        Task::ListInterfaces => match ports::names() {
            Ok(text) => printed(&text),
            Err(message) => fatal(&message),
        },
        Task::Save { path, text } => match options::save(&path, &text) {
            Ok(()) => ExitCode::SUCCESS,
            Err(message) => fatal(&message),
        },
        Task::Replay(flags) => replay(&flags),
    }
}

fn replay(flags: &ReplayFlags) -> ExitCode {
    let mut lines = Lines { output: &flags.output, follow: None };
    let result = match run_replay(flags, &mut lines) {
        Ok(result) => result,
        Err(Failure::Plan(message)) => {
            return fatal(&format!("Unable to parse args: {message}"));
        }
        Err(Failure::Begin(failure)) => return fatal(&failure.error.to_string()),
        Err(Failure::Other(message)) => return fatal(&message),
    };
    if !flags.output.suppress_warnings {
        for note in &result.notes {
            eprintln!("Warning: {note}");
        }
    }
    for error in &result.errors {
        eprintln!("\nFailed: {error}");
    }
    // As in tcpreplay, failed packets appear in the statistics and do not change the exit status.
    if result.errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FATAL) }
}

/// Output of a run.
struct Lines<'a> {
    output: &'a OutputFlags,
    follow: Option<LoopStatistics>,
}

impl FrontEnd for Lines<'_> {
    const REMARK_PREFIX: &'static str = "Warning";

    fn begin(&mut self, plan: &ReplayPlan) {
        if plan.preload && !self.output.quiet {
            eprintln!("File Cache is enabled");
        }
        self.follow =
            statistics_every_s(self.output).map(|every_s| LoopStatistics::new(every_s, plan));
    }

    fn observe(&mut self, progress: &Snapshot) {
        if let Some(follow) = &mut self.follow {
            follow.update(progress, &mut io::stdout());
        }
    }

    fn text(&mut self, plan: &ReplayPlan, result: &RunResult) -> String {
        let mut text = Vec::new();
        if let Some(follow) = &mut self.follow {
            let passes = result.achieved.passes.unwrap_or(0);
            follow.finish(passes, result.times.elapsed_s, &mut text);
        }
        let expires = plan.flows.as_ref().is_some_and(|flows| flows.expiry.is_some());
        let end = String::from_utf8_lossy(&text);
        format!("{end}{}", Summary { result, expires })
    }
}

/// Formats the version. Scripts search standard error for `version:`.
fn version(program: Program) -> String {
    let editing = match program {
        Program::Tcpreplay => "disabled",
        Program::TcpreplayEdit => "enabled",
    };
    format!(
        "{} version: 4.5 (Wirestorm {})\n\
         Cache file supported: 04\n\
         64 bit packet counters: enabled\n\
         Verbose printing via tcpdump: enabled\n\
         Packet editing: {editing}\n\
         Injection method: chosen at run time; --backend names one\n",
        program.name(),
        env!("CARGO_PKG_VERSION")
    )
}

fn printed(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(FATAL),
    }
}

fn fatal(message: &str) -> ExitCode {
    eprintln!("\nFatal Error: {message}");
    ExitCode::from(FATAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tcpreplays_two_names_select_it() {
        let named = |text: &str| Program::named(OsStr::new(text));
        assert_eq!(named("/usr/bin/tcpreplay"), Some(Program::Tcpreplay));
        assert_eq!(named("tcpreplay-edit"), Some(Program::TcpreplayEdit));
        assert_eq!(named("wirestorm"), None);
        assert_eq!(named("tcpreplay/wirestorm"), None);
    }
}
