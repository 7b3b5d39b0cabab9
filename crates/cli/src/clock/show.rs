//! `wirestorm clock show`: sources that know the error of the system clock.

use std::process::ExitCode;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use wirestorm_control::sync::sources::{SourceKind, SourceReport, Sources, gather};

use super::source_flags::SourceFlags;
use crate::number::{nanoseconds_or_none, signed_nanoseconds};
use crate::ports::{show, show_json};
use crate::status;
use crate::wrap::wrapped;

const EXAMPLES: &str = "\
Examples:
  wirestorm clock show
  wirestorm clock show --phc-error 40us
      hardware clocks with the error that the cloud provider states
  wirestorm clock show --json | jq '.sources[.chosen].bound_ns'

BOUND is the largest error of the system clock, the offset included.
Exit status 3: no source has a reference with a known error.";

/// List the sources that know the error of the system clock
///
/// Asks chronyd, ptp4l, the hardware clocks and the kernel, and chooses the source with the smallest
/// bound. Sets nothing.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ShowFlags {
    #[command(flatten)]
    sources: SourceFlags,

    /// Print JSON (wirestorm.clock-sources/1)
    #[arg(long)]
    json: bool,
}

/// Format of [`SourcesDocument`].
pub(crate) const SCHEMA: &str = "wirestorm.clock-sources/1";

/// Sources that know the error of the system clock.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct SourcesDocument<'a> {
    /// Format: `wirestorm.clock-sources/1`.
    schema: &'static str,
    #[serde(flatten)]
    sources: &'a Sources,
}

/// Runs the command.
pub(super) fn run(flags: &ShowFlags) -> ExitCode {
    let options = match flags.sources.options() {
        Ok(options) => options,
        Err(message) => {
            eprintln!("wirestorm: {message}");
            return ExitCode::from(status::USAGE);
        }
    };
    let sources = gather(&options);
    if flags.json {
        let document = SourcesDocument { schema: SCHEMA, sources: &sources };
        if let Err(error) = show_json(&document) {
            eprintln!("wirestorm: {error}");
            return ExitCode::from(status::FAILED);
        }
    } else {
        show(&table(&sources));
    }
    ExitCode::from(if sources.chosen.is_some() { 0 } else { status::SHORT })
}

fn table(sources: &Sources) -> String {
    let mut text = format!("{:<8} {:>11} {:>11}  REFERENCE\n", "SOURCE", "BOUND", "OFFSET");
    for source in &sources.sources {
        let offset = source.offset_ns.map_or_else(|| "-".to_owned(), signed_nanoseconds);
        let bound = nanoseconds_or_none(source.bound_ns);
        let figures = format!("{:<8} {bound:>11} {offset:>11}  ", kind(source));
        let reference = source.reference.as_deref().unwrap_or("-");
        text += &wrapped(&figures, reference);
        text += "\n";
        text += &wrapped("         ", &note(source));
        text += "\n";
    }
    let choice = match sources.chosen() {
        Some(chosen) => format!("{}, {}", kind(chosen), sources.reason),
        None => format!("none; {}", sources.reason),
    };
    text + &wrapped("chosen: ", &choice) + "\n"
}

fn kind(source: &SourceReport) -> &'static str {
    match source.kind {
        SourceKind::Phc => "phc",
        SourceKind::Ptp4l => "ptp4l",
        SourceKind::Chrony => "chrony",
        SourceKind::Kernel => "kernel",
    }
}

/// Returns the name of a source, and why it cannot be used.
fn note(source: &SourceReport) -> String {
    let name = &source.name;
    match &source.problem {
        Some(problem) if problem.contains(name.as_str()) => problem.clone(),
        Some(problem) => format!("{name}: {problem}"),
        None if !source.is_independent => {
            format!("{name}: the error of the reference is not known")
        }
        None => name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wrap::COLUMNS;

    #[test]
    fn lines_fit_80_columns() {
        let chrony = SourceReport {
            reference: Some("2001:db8:1234:5678:9abc:def0:1234:5678, stratum 2".to_owned()),
            offset_ns: Some(-123_456_789),
            bound_ns: Some(987_654_321),
            is_independent: true,
            ..SourceReport::failed(SourceKind::Chrony, "/run/chrony/chronyd.sock", String::new())
        };
        let problem = "ptp4l does not answer: /var/run/ptp4l: No such file or directory (os error \
                       2); /var/run/ptp4lro: No such file or directory (os error 2)";
        let ptp4l = SourceReport::failed(SourceKind::Ptp4l, "/var/run/ptp4l", problem.to_owned());
        for sources in [vec![ptp4l.clone()], vec![ptp4l, SourceReport { problem: None, ..chrony }]]
        {
            let text = table(&Sources::choose(sources));
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest.is_some_and(|it| it <= COLUMNS), "{text}");
            assert!(text.contains("\n         ptp4l does not answer: /var/run/ptp4l"), "{text}");
        }
    }
}
