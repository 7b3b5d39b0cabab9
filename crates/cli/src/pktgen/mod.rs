//! `wirestorm pktgen`: scripts for the kernel's packet generator.

mod receive;
mod script;
mod teller;

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use wirestorm_control::base::time::Duration;
use wirestorm_control::pktgen::{
    Event, PktgenResult, PktgenRun, Receiver, RunOptions, SCHEMA, Session,
};
use wirestorm_control::plan::pktgen::Script;
use wirestorm_control::plan::replay::parse_catch_up;
use wirestorm_control::plan::traffic::parse_time;

use crate::replay::flags::BackendFlag;
use crate::wrap::wrapped;
use crate::{interrupt, status};
use receive::ReceiveTable;
use script::Kind;
use teller::Teller;

const EXAMPLES: &str = "\
Examples:
  wirestorm pktgen settings.txt
      lines of pgset \"...\", or of echo \"...\" > /proc/net/pktgen/...
  wirestorm pktgen ./pktgen_sample01_simple.sh -i eth1 -m 02:00:00:00:00:02
      a script for the kernel's pktgen, as it is
  wirestorm pktgen --json result.json --rx eth2 settings.txt
      and what arrives on eth2, CPU by CPU
  wirestorm pktgen --rx eth2
      only that, until Ctrl-C

A file that begins with #! is run by the program named there; it finds the files
of pktgen in /proc/net/pktgen, whether the kernel has the module or not. Of any
other file the lines are read here. Ctrl-C ends a run and shows its result.

The exit status is the script's, if that is not 0; else 0 when done, 1 when
something failed, 2 for wrong input, 3 when a run fell short of what was asked.";

/// Runs a script for the kernel's packet generator, pktgen, on Wirestorm's ports.
///
/// Everything that the script writes to /proc/net/pktgen is understood as the kernel understands
/// it; results are in pktgen's own layout. What is done differently from the kernel, and what of it
/// would surprise, is said when devices start.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PktgenFlags {
    /// The script, or a file of settings; `-`: settings from standard input.
    #[arg(value_name = "SCRIPT", required_unless_present = "rx")]
    script: Option<PathBuf>,

    /// Arguments for the script.
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,

    /// Count what arrives on an interface, CPU by CPU.
    #[arg(long, value_name = "INTERFACE")]
    rx: Option<String>,

    /// No run is longer, such as 30s or 5min.
    #[arg(short, long, value_name = "TIME")]
    duration: Option<String>,

    /// What carries the frames.
    #[arg(long, value_enum, default_value_t = BackendFlag::Auto)]
    backend: BackendFlag,

    /// Late frames: bounded:unlimited sends all at once, as the kernel's pktgen; bounded:MS those
    /// that are late by so much at most, and the others at up to 8 times the rate; strict:MS leaves
    /// frames out; stretch moves the schedule.
    #[arg(long, value_name = "POLICY", default_value = "bounded:unlimited")]
    catch_up: String,

    /// Send even on the interface that carries the default route.
    #[arg(long)]
    force_interface: bool,

    /// How far a rate may be off, in percent, before the exit status says so.
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    tolerance: f64,

    /// Write the result as JSON to a file; `-`: to standard output, where the script's own output
    /// then is on standard error.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// No notes and no progress line.
    #[arg(short, long)]
    quiet: bool,
}

/// Why there is no result.
enum Failure {
    /// Wrong input; nothing was sent by what is wrong.
    Usage(String),
    /// The result could not be written.
    Result(String),
}

fn usage(message: impl Display) -> Failure {
    Failure::Usage(message.to_string())
}

/// Runs the command.
pub(crate) fn run(flags: &PktgenFlags) -> ExitCode {
    let (message, status) = match conduct(flags) {
        Ok(status) => return ExitCode::from(status),
        Err(Failure::Usage(message)) => (message, status::USAGE),
        Err(Failure::Result(message)) => (message, status::FAILED),
    };
    eprintln!("wirestorm: {message}");
    ExitCode::from(status)
}

fn conduct(flags: &PktgenFlags) -> Result<u8, Failure> {
    let options = options(flags)?;
    let duration = options.duration;
    let script = flags.script.as_deref().map(script::read).transpose().map_err(usage)?;
    if !flags.arguments.is_empty() && !matches!(script, Some(Kind::Program { .. })) {
        return Err(usage(
            "arguments are for scripts that begin with #! and their program, as in #!/bin/bash: \
             lines of settings take none",
        ));
    }
    let receiver = flags.rx.as_deref().map(Receiver::open).transpose().map_err(usage)?;
    // A signal that a script gets as well may end its run before it comes here.
    let caught = Arc::new(AtomicBool::new(false));
    let control = interrupt::catch_with(&caught);
    let json_only = flags.json.as_deref() == Some(Path::new("-"));
    let teller = Teller::new(flags.quiet, json_only);
    let mut failure = None;
    let mut script_status = 0;
    let (mut result, texts) = match script {
        Some(script) => {
            let tell = move |event: &Event<'_>| {
                if matches!(event, Event::Ended) {
                    caught.store(false, Ordering::Relaxed);
                }
                teller.tell(event);
            };
            let session = Session::open(options, control, tell);
            let session = Arc::new(session.map_err(usage)?);
            match run_script(&session, script, flags, json_only) {
                Ok(status) => script_status = status,
                Err(message) => failure = Some(message),
            }
            session.finish()
        }
        None => {
            if let Some(receiver) = &receiver {
                receiver.wait(duration, &control, |frames| teller.received(frames));
                teller.ended();
            }
            (empty_result(), Vec::new())
        }
    };
    let has_script = flags.script.is_some();
    let sent = result.runs.iter().flat_map(|run| &run.devices).map(|device| device.packets).sum();
    result.rx = receiver.map(|receiver| receiver.finish(sent));
    // What was measured before the script went wrong is shown all the same.
    if failure.is_none() || !result.runs.is_empty() {
        print(&result, &texts, flags.json.as_deref(), has_script).map_err(Failure::Result)?;
    }
    match failure {
        Some(message) => Err(Failure::Usage(message)),
        None if script_status != 0 => Ok(script_status),
        None => Ok(exit_status(&result, flags.tolerance, has_script)),
    }
}

fn options(flags: &PktgenFlags) -> Result<RunOptions, Failure> {
    let duration = match &flags.duration {
        None => Duration::MAX,
        Some(text) => parse_time(text).ok_or_else(|| {
            usage(format!(
                "--duration {text:?}: expected a time with its unit, such as 30s, 500ms or 2min"
            ))
        })?,
    };
    let policy =
        parse_catch_up(&flags.catch_up).map_err(|error| usage(format!("--catch-up {error}")))?;
    Ok(RunOptions {
        backend: flags.backend.into(),
        policy,
        duration,
        force_interface: flags.force_interface,
    })
}

/// Runs a script; returns its exit status.
fn run_script(
    session: &Arc<Session>,
    kind: Kind,
    flags: &PktgenFlags,
    json_only: bool,
) -> Result<u8, String> {
    let name = flags.script.as_deref().unwrap_or(Path::new("-")).display();
    let follow = |script: &Script| {
        session.follow(script).map(|()| 0).map_err(|error| format!("{name}: {error}"))
    };
    match kind {
        Kind::Settings(script) => follow(&script),
        Kind::Program { interpreter, readable } => {
            script::execute(session, &interpreter, flags, json_only).or_else(|error| {
                match readable {
                    // A shell would be given no other commands than these.
                    Some(script) if error.is_about_files() => {
                        eprintln!("wirestorm: {name}: read without a shell: {error}");
                        follow(&script)
                    }
                    _ => Err(error.to_string()),
                }
            })
        }
    }
}

fn empty_result() -> PktgenResult {
    PktgenResult {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        runs: Vec::new(),
        rx: None,
        interrupted: false,
        errors: Vec::new(),
        notes: Vec::new(),
    }
}

fn print(
    result: &PktgenResult,
    texts: &[String],
    json: Option<&Path>,
    has_script: bool,
) -> Result<(), String> {
    let failed = |error: io::Error| format!("cannot write the result: {error}");
    let mut output = io::stdout().lock();
    if let Some(path) = json {
        let document =
            serde_json::to_string_pretty(result).map_err(|error| failed(error.into()))?;
        if path == Path::new("-") {
            return writeln!(output, "{document}").map_err(failed);
        }
        let written = File::create(path).and_then(|mut file| writeln!(file, "{document}"));
        written.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    for text in texts {
        write!(output, "{text}").map_err(failed)?;
    }
    if let Some(rx) = &result.rx {
        write!(output, "{}", ReceiveTable { rx, has_script }).map_err(failed)?;
    }
    for note in &result.notes {
        eprintln!("{}", wrapped("note: ", note));
    }
    Ok(())
}

fn exit_status(result: &PktgenResult, tolerance: f64, has_script: bool) -> u8 {
    let is_off = |ppm: f64| ppm.abs() > tolerance * 1e4;
    let is_short = |run: &PktgenRun| {
        run.devices.iter().any(|device| {
            let is_off = device.rate_error_ppm.is_some_and(is_off);
            // What was still queued at a stop is not missing.
            device.failed > 0 || device.unsent > 0 && !run.stopped || is_off
        })
    };
    let is_lost = has_script && result.rx.as_ref().is_some_and(|rx| rx.lost > 0);
    let rx_failed = result.rx.as_ref().is_some_and(|rx| rx.error.is_some());
    if !result.errors.is_empty() || rx_failed {
        status::FAILED
    } else if !result.interrupted && (result.runs.iter().any(is_short) || is_lost) {
        status::SHORT
    } else {
        0
    }
}
