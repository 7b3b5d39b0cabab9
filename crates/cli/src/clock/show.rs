//! `wirestorm clock show`: sources that know the error of the system clock.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use wirestorm_control::plan::traffic::parse_time;
use wirestorm_control::sync::sources::{SourceKind, SourceOptions, SourceReport, Sources, gather};

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
    /// Socket of chronyd
    #[arg(long, value_name = "PATH", default_value = "/run/chrony/chronyd.sock")]
    chrony: PathBuf,

    /// UDP port of chronyd on this machine, if the socket does not answer
    #[arg(long, value_name = "PORT", default_value_t = 323)]
    chrony_port: u16,

    /// Socket of ptp4l; repeatable, the first that answers counts
    #[arg(long, value_name = "PATH", default_values = ["/var/run/ptp4l", "/var/run/ptp4lro"], num_args = 1)]
    ptp4l: Vec<PathBuf>,

    /// PTP domain of ptp4l
    #[arg(long, value_name = "N", default_value_t = 0)]
    domain: u8,

    /// Error of the hardware clocks (/dev/ptp*), which the kernel does not know
    #[arg(long, value_name = "TIME")]
    phc_error: Option<String>,

    /// Print JSON (wirestorm.clock-sources/1)
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(flags: &ShowFlags) -> ExitCode {
    let expected = "expected a time with its unit, such as 40us";
    let error = flags
        .phc_error
        .as_ref()
        .map(|text| parse_time(text).ok_or_else(|| format!("--phc-error {text:?}: {expected}")));
    let phc_error_ns = match error.transpose() {
        Ok(time) => time.map(|time| time.as_nanos()),
        Err(message) => {
            eprintln!("wirestorm: {message}");
            return ExitCode::from(status::USAGE);
        }
    };
    let sources = gather(&SourceOptions {
        chrony: flags.chrony.clone(),
        chrony_port: flags.chrony_port,
        ptp4l: flags.ptp4l.clone(),
        domain: flags.domain,
        phc_error_ns,
    });
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
