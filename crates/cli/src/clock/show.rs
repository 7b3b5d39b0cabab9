//! `wirestorm clock show`: sources that know the error of the system clock.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use wirestorm_control::sync::sources::{SourceKind, SourceReport, Sources, gather};

use super::source_flags::SourceFlags;
use crate::number::{nanoseconds_or_none, signed_nanoseconds};
use crate::ports::show;
use crate::status;

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
        let document = json!({
            "schema": "wirestorm.clock-sources/1",
            "sources": sources.sources,
            "chosen": sources.chosen,
            "reason": sources.reason,
        });
        show(&format!("{document:#}\n"));
    } else {
        show(&table(&sources));
    }
    ExitCode::from(if sources.chosen.is_some() { 0 } else { status::SHORT })
}

fn table(sources: &Sources) -> String {
    let mut text = format!("{:<8} {:>11} {:>11}  REFERENCE\n", "SOURCE", "BOUND", "OFFSET");
    for source in &sources.sources {
        let offset = source.offset_ns.map_or_else(|| "-".to_owned(), signed_nanoseconds);
        text += &format!(
            "{:<8} {:>11} {offset:>11}  {}\n",
            kind(source),
            nanoseconds_or_none(source.bound_ns),
            source.reference.as_deref().unwrap_or("-")
        );
        text += &format!("         {}\n", note(source));
    }
    match sources.chosen() {
        Some(chosen) => text += &format!("chosen: {}, {}\n", kind(chosen), sources.reason),
        None => text += &format!("chosen: none; {}\n", sources.reason),
    }
    text
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
