//! `wirestorm pktgen`: runs scripts for the Linux packet generator.

mod receive;
mod script;
mod terminal;

use std::ffi::OsString;
use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use clap::Args;
use wirestorm_control::Snapshot;
use wirestorm_control::backend::Backend;
use wirestorm_control::base::time::Duration;
use wirestorm_control::pktgen::{DeviceOptions, Event, PktgenPlan};
use wirestorm_control::plan::replay::parse_catch_up;
use wirestorm_control::result::RunResult;
use wirestorm_control::run::Plan;

use crate::foreground::{Foreground, View};
use crate::metrics::MetricsFlags;
use crate::report::Output;
use crate::signals::Signals;
use crate::status;
use crate::traffic::{read_time, usage};
use crate::wrap::wrapped;
use receive::ReceiveTable;
use terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  wirestorm pktgen settings.txt
      lines of pgset \"...\", or of echo \"...\" > /proc/net/pktgen/...
  wirestorm pktgen ./pktgen_sample01_simple.sh -i eth1 -m 02:00:00:00:00:02
      a script for the kernel's pktgen, as it is
  wirestorm pktgen --json result.json --rx eth2 settings.txt
      also counts frames received on eth2, for each CPU
  wirestorm pktgen --rx eth2
      only counts received frames, until Ctrl-C

A file that begins with #! runs in the program named there, which finds the files\
of pktgen in /proc/net/pktgen, with or without the kernel module. Wirestorm reads\
any other file as settings. Ctrl-C ends a run and prints its result.

The exit status is the script's, if that is not 0; else 0 when done, 1 when
something failed, 2 for wrong input, 3 when a run missed its target.";

/// Runs a script for the Linux packet generator pktgen on Wirestorm's ports.
///
/// Wirestorm parses writes to /proc/net/pktgen as the kernel does, and prints results in pktgen's
/// layout. Notes at the start of each device list the differences from the kernel.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PktgenFlags {
    /// pktgen script or settings file; `-`: settings from stdin
    #[arg(value_name = "SCRIPT", required_unless_present = "rx")]
    script: Option<PathBuf>,

    /// Arguments of the script
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,

    /// Count received frames on this interface for each CPU
    #[arg(long, value_name = "INTERFACE")]
    rx: Option<String>,

    /// Stop each run after this time, such as 30s
    #[arg(short, long, value_name = "TIME")]
    duration: Option<String>,

    /// Backend that sends and receives frames
    #[arg(long, value_parser = crate::backend::sending(), default_value = "auto")]
    backend: Backend,

    /// Late frames: bounded:unlimited, bounded:MS, strict:MS or stretch
    ///
    /// bounded:unlimited sends all late frames at once, as the kernel's pktgen does. bounded:MS
    /// sends frames that are at most MS late at once, and the others at up to 8 times the rate.
    /// strict:MS skips frames that are more than MS late. stretch moves the schedule.
    #[arg(long, value_name = "POLICY", default_value = "bounded:unlimited")]
    catch_up: String,

    /// Send even on the interface of the default route
    #[arg(long)]
    force_interface: bool,

    /// Allowed rate error in percent; more gives exit status 3
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    tolerance: f64,

    /// Write the result as JSON; `-`: to stdout (script output to stderr)
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    #[command(flatten)]
    metrics: MetricsFlags,

    /// Print no notes and no progress line
    #[arg(short, long)]
    quiet: bool,
}

/// Runs the command.
pub(crate) fn run(flags: &PktgenFlags) -> ExitCode {
    let json_only = flags.json.as_deref() == Some(Path::new("-"));
    let prepared = options(flags).and_then(|options| {
        let script = flags.script.as_deref().map(|path| script::read(path, flags, json_only));
        Ok((options, script.transpose()?))
    });
    let (options, script) = match prepared {
        Ok(prepared) => prepared,
        Err(message) => return usage(message),
    };
    let mut output = match Output::open(flags.json.as_deref()) {
        Ok(output) => output,
        Err(message) => return usage(message),
    };
    let has_script = script.is_some();
    let foreground = match Foreground::open(flags.metrics) {
        Ok(foreground) => foreground,
        Err(message) => return usage(message),
    };
    let signals = Signals::catch();
    let terminal = Arc::new(Terminal::new(flags.quiet, json_only));
    let script_status = Arc::new(AtomicU8::new(0));
    let (event_terminal, failed, run_signals) =
        (Arc::clone(&terminal), Arc::clone(&script_status), signals.clone());
    let name = flags.script.as_deref().unwrap_or(Path::new("-")).display().to_string();
    let plan = PktgenPlan {
        name,
        script,
        receive: flags.rx.clone(),
        options,
        tell: Box::new(move |event| match event {
            // The signal has ended this run; the next one counts as the first for the rest of the
            // script.
            Event::Ended => {
                run_signals.clear_stop_request();
                event_terminal.print_event(event);
            }
            Event::ScriptFailed(status) => failed.store(*status, Ordering::Relaxed),
            event => event_terminal.print_event(event),
        }),
    };
    let mut view = TerminalView { terminal: &terminal, shows_received: !has_script };
    let outcome = foreground.run(Plan::Pktgen(plan), String::new(), &mut view, &signals, |_| ());
    let result = match outcome {
        Ok(result) => result,
        Err(failure) => return failure.exit(),
    };
    if let Err(message) = output.print(&*result, PktgenTable { result: &result, has_script }) {
        eprintln!("wirestorm: {message}");
        return ExitCode::from(status::FAILED);
    }
    for note in result.notes.iter().filter(|_| !json_only) {
        eprintln!("{}", wrapped("note: ", note));
    }
    match script_status.load(Ordering::Relaxed) {
        0 => ExitCode::from(result.verdict.outcome.exit_status()),
        status => ExitCode::from(status),
    }
}

/// Live output while a script runs or while the command counts received frames.
struct TerminalView<'a> {
    terminal: &'a Terminal,
    shows_received: bool,
}

impl View for TerminalView<'_> {
    fn update(&mut self, snapshot: &Snapshot) {
        if let Some(port) = snapshot.ports.first().filter(|_| self.shows_received) {
            self.terminal.received(port.received.received);
        }
    }

    fn line(&mut self, text: &str) {
        eprintln!("{text}");
    }

    fn finish(&mut self) {
        self.terminal.ended();
    }
}

/// Final table: only the receive side, because pktgen's files hold the results of the devices.
struct PktgenTable<'a> {
    result: &'a RunResult,
    has_script: bool,
}

impl Display for PktgenTable<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let ports = self.result.ports.iter();
        let mut receiving = ports.filter_map(|port| Some((port, port.rx.as_ref()?)));
        let has_script = self.has_script;
        receiving.try_for_each(|(port, rx)| ReceiveTable { port, rx, has_script }.fmt(f))
    }
}

fn options(flags: &PktgenFlags) -> Result<DeviceOptions, String> {
    let duration = match &flags.duration {
        None => Duration::MAX,
        Some(text) => read_time("--duration", text)?,
    };
    let policy = parse_catch_up(&flags.catch_up).map_err(|error| format!("--catch-up {error}"))?;
    Ok(DeviceOptions {
        backend: flags.backend,
        policy,
        duration,
        force_interface: flags.force_interface,
        tolerance_ppm: flags.tolerance * 1e4,
    })
}
