//! `wirestorm bench`: benchmark methods.

mod bed;
mod parameters;
mod progress;
mod summary;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use wirestorm_control::Host;
use wirestorm_control::bench::{FullTrial, LocalTrial, StopSignal, run_method};
use wirestorm_control::method::device::SimulatedDevice;
use wirestorm_control::method::method::Method;
use wirestorm_control::method::trial::TrialError;
use wirestorm_control::result::{Outcome, Verdict};
use wirestorm_store::record::{BENCH_SCHEMA, BenchResult};

use crate::report::Output;
use crate::signals::Signals;
use crate::status;
use crate::traffic::usage;
use bed::BedFlags;
use parameters::{MlrsearchFlags, Rfc2544Flags};
use progress::Progress;
use table::Table;

/// Measure a device with a benchmark method
#[derive(Args, Debug)]
pub(crate) struct BenchFlags {
    #[command(subcommand)]
    method: MethodFlags,
}

#[derive(Subcommand, Debug)]
enum MethodFlags {
    /// Throughput, latency, frame loss rate, back-to-back, recovery, reset (RFC 2544)
    Rfc2544(Box<Rfc2544Flags>),
    /// Throughput for several loss goals in less time (MLRsearch, RFC 9971)
    Mlrsearch(Box<MlrsearchFlags>),
}

/// Flags for the output, which all methods share.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
struct OutputFlags {
    /// Print the trials and the expected duration, and send nothing
    #[arg(long)]
    dry_run: bool,

    /// Write the result as JSON to a file; `-`: to stdout, without the table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Print no progress
    #[arg(short, long)]
    quiet: bool,
}

/// Runs the command.
pub(crate) fn run(flags: &BenchFlags) -> ExitCode {
    let (method, bed, output) = match &flags.method {
        MethodFlags::Rfc2544(flags) => (flags.method(), &flags.bed, &flags.output),
        MethodFlags::Mlrsearch(flags) => (flags.method(), &flags.bed, &flags.output),
    };
    match method {
        Ok(method) => run_or_plan(&method, bed, output).unwrap_or_else(usage),
        Err(message) => usage(message),
    }
}

fn run_or_plan(method: &Method, bed: &BedFlags, flags: &OutputFlags) -> Result<ExitCode, String> {
    let waits_s = bed.waits_s()?;
    if flags.dry_run {
        print!("{}", summary::of_plan(method, waits_s));
        return Ok(ExitCode::SUCCESS);
    }
    let mut output = Output::open(flags.json.as_deref())?;
    let stop = StopSignal::default();
    let signals = Signals::catch();
    signals.on_stop(&stop);
    let mut progress = Progress::new(flags.quiet);
    let mut trial: Box<dyn FullTrial> = match bed.simulated()? {
        Some(model) => Box::new(SimulatedDevice::new(model)),
        None => {
            let view = progress.observer(&signals);
            let trial = LocalTrial::new(bed.test_bed()?, Host::new(), stop, view);
            let trial = trial.map_err(|error| error.to_string())?;
            Box::new(match bed.reset()? {
                Some(reset) => trial.with_reset(reset),
                None => trial,
            })
        }
    };
    let outcome = run_method(method, Vec::new(), waits_s, &mut *trial, &mut progress);
    progress.finish();
    let verdict = verdict(outcome.error.as_ref());
    let result = BenchResult {
        schema: BENCH_SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        parameters: method.clone(),
        warnings: outcome.findings.warnings(),
        findings: outcome.findings,
        deviations: method.deviations(),
        verdict,
        trials: outcome.trials,
        trials_s: outcome.trials_s,
        elapsed_s: outcome.elapsed_s,
        is_simulated: bed.is_simulated(),
    };
    let exit = result.verdict.outcome.exit_status();
    if let Err(message) = output.print(&result, Table(&result)) {
        eprintln!("wirestorm: {message}");
        return Ok(ExitCode::from(status::FAILED));
    }
    Ok(ExitCode::from(exit))
}

fn verdict(error: Option<&TrialError>) -> Verdict {
    let outcome = match error {
        None => Outcome::Met,
        Some(TrialError::Stopped) => Outcome::Interrupted,
        Some(TrialError::Failed(_)) => Outcome::Failed,
    };
    Verdict { outcome, reasons: error.iter().map(ToString::to_string).collect() }
}
