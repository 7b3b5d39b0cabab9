//! One run of a contender, and its result.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use wirestorm_testkit::net::Lab;

use super::Settings;
use crate::Fallible;

/// Exit status of a wirestorm run that completed below its targets; its result counts.
const SHORT_OF_ASKED: i32 = 3;

/// Exit status of `timeout` when it ended or killed the program.
const TIMED_OUT: i32 = 124;
const TIMED_OUT_AND_KILLED: i32 = 137;

/// Timeout of a run; the longest runs take 20 s.
pub(super) const TIME_LIMIT: Duration = Duration::from_secs(90);

/// A program that sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contender {
    Tcpreplay,
    /// Wirestorm with this value of `--backend`.
    Wirestorm(&'static str),
}

/// Result of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Outcome {
    /// Frames sent per second, as the contender reports.
    pub(super) pps: f64,
    /// Frames sent, as the contender reports.
    pub(super) packets: f64,
    /// Flows per second, as the contender reports.
    pub(super) flows_per_second: f64,
}

impl Contender {
    /// Sends `capture` over the link with options that both programs accept.
    pub(super) fn run(
        self,
        settings: &Settings,
        lab: &Lab,
        options: &[&str],
        capture: &Path,
    ) -> Fallible<Outcome> {
        match self {
            Self::Tcpreplay => {
                let mut command = lab.a.command("tcpreplay");
                command.args(["-i", lab.a.interface()]).args(options).arg(capture);
                let summary = output(&mut command)?;
                let outcome = parse_summary(&summary);
                outcome.ok_or_else(|| format!("no summary of tcpreplay's: {summary}").into())
            }
            Self::Wirestorm(backend) => {
                let mut all = vec!["--backend", backend];
                all.extend_from_slice(options);
                let result = wirestorm(settings, &lab.a.port(), &all, capture)?;
                Ok(Outcome {
                    pps: number(&result, "/achieved/pps")?,
                    packets: number(&result, "/achieved/packets")?,
                    flows_per_second: number(&result, "/achieved/flows/per_second").unwrap_or(0.0),
                })
            }
        }
    }
}

/// Replays `capture` with wirestorm; returns its result document.
pub(super) fn wirestorm(
    settings: &Settings,
    port: &str,
    options: &[&str],
    capture: &Path,
) -> Fallible<Value> {
    let result = output(&mut wirestorm_command(settings, port, options, capture))?;
    serde_json::from_str(&result)
        .map_err(|error| format!("wirestorm replay --json - printed no result: {error}").into())
}

/// Builds the replay command, which prints its result.
pub(super) fn wirestorm_command(
    settings: &Settings,
    port: &str,
    options: &[&str],
    capture: &Path,
) -> Command {
    let mut command = Command::new(&settings.wirestorm);
    command.args(["replay", "--quiet", "--json", "-", "-i", port]).args(options).arg(capture);
    command
}

/// Returns the number at a JSON pointer in the result.
pub(super) fn number(result: &Value, place: &str) -> Fallible<f64> {
    let value = result.pointer(place).and_then(Value::as_f64);
    value.ok_or_else(|| format!("wirestorm's result has no number at {place}").into())
}

/// Runs a command to its end; returns its standard output.
pub(super) fn output(command: &mut Command) -> Fallible<String> {
    // `--foreground` keeps the process group, so that Ctrl-C reaches the program.
    let mut bounded = Command::new("timeout");
    bounded.args(["--foreground", "--kill-after=5", &TIME_LIMIT.as_secs().to_string()]);
    bounded.arg(command.get_program()).args(command.get_args()).envs(set_variables(command));
    let output = bounded.output().map_err(|error| format!("timeout: {error}"))?;
    if output.status.success() || output.status.code() == Some(SHORT_OF_ASKED) {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let words = words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let ended = match output.status.code() {
        Some(TIMED_OUT | TIMED_OUT_AND_KILLED) => {
            format!("did not end within {} s", TIME_LIMIT.as_secs())
        }
        _ => output.status.to_string(),
    };
    Err(format!("{words}: {ended}: {stderr}").into())
}

/// Environment variables that a command sets.
pub(super) fn set_variables(command: &Command) -> Vec<(OsString, OsString)> {
    let set = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    set.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Parses the lines `Actual: N packets ...`, `Rated: ..., N pps` and `Flows: ..., N fps, ...`.
pub(super) fn parse_summary(summary: &str) -> Option<Outcome> {
    let line = |start: &str| summary.lines().find_map(|line| line.trim().strip_prefix(start));
    let before = |line: &str, unit: &str| -> Option<f64> {
        line.split(',').find_map(|part| part.trim().strip_suffix(unit)?.trim().parse().ok())
    };
    let packets = line("Actual:")?.split_whitespace().next()?.parse().ok()?;
    let pps = before(line("Rated:")?, "pps")?;
    let flows_per_second = line("Flows:").and_then(|line| before(line, "fps")).unwrap_or(0.0);
    Some(Outcome { pps, packets, flows_per_second })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcpreplay_summary_is_parsed() {
        let summary = "Actual: 300000 packets (18000000 bytes) sent in 0.246702 seconds\n\
                       Rated: 72962521.5 Bps, 583.70 Mbps, 1216042.02 pps\n\
                       Flows: 3000 flows, 12160.42 fps, 300000 unique flow packets, 0 unique\n";
        let outcome = parse_summary(summary).unwrap();
        let expected =
            Outcome { pps: 1_216_042.02, packets: 300_000.0, flows_per_second: 12_160.42 };
        assert_eq!(outcome, expected);
        assert_eq!(parse_summary("Fatal Error: Unable to open"), None);
    }
}
