//! `wirestorm bench`: benchmark methods.

mod bed;
mod flow_exporter;
mod parameters;
mod progress;
mod summary;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use wirestorm_control::Host;
use wirestorm_control::bench::{FlowExporterTrial, FullTrial, LocalTrial, StopSignal, run_method};
use wirestorm_control::method::device::{DeviceModel, SimulatedDevice};
use wirestorm_control::method::method::Method;
use wirestorm_control::method::trial::TrialError;
use wirestorm_control::result::{Outcome, Verdict};
use wirestorm_store::record::{BENCH_SCHEMA, BenchResult};

use crate::report::Output;
use crate::signals::Signals;
use crate::status;
use crate::traffic::usage;
use bed::{BedFlags, read_model};
use flow_exporter::FlowExporterFlags;
use parameters::{MlrsearchFlags, Rfc2544Flags};
use progress::{BarObserver, Progress};
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
    /// Flows sent against flows captured by an exporter (RFC 6645)
    FlowExporter(Box<FlowExporterFlags>),
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

/// A method with the source of its trials.
struct Bench<'a> {
    method: Method,
    source: Source<'a>,
    output: &'a OutputFlags,
}

/// Source of trials.
enum Source<'a> {
    /// Frames between interfaces.
    Frames(&'a BedFlags),
    /// Flows to an exporter.
    Flows(&'a FlowExporterFlags),
}

/// Runs the command.
pub(crate) fn run(flags: &BenchFlags) -> ExitCode {
    bench(&flags.method).and_then(|bench| bench.run()).unwrap_or_else(usage)
}

fn bench(flags: &MethodFlags) -> Result<Bench<'_>, String> {
    Ok(match flags {
        MethodFlags::Rfc2544(flags) => Bench {
            method: flags.method()?,
            source: Source::Frames(&flags.bed),
            output: &flags.output,
        },
        MethodFlags::Mlrsearch(flags) => Bench {
            method: flags.method()?,
            source: Source::Frames(&flags.bed),
            output: &flags.output,
        },
        MethodFlags::FlowExporter(flags) => {
            Bench { method: flags.method()?, source: Source::Flows(flags), output: &flags.output }
        }
    })
}

impl Source<'_> {
    /// Returns the time between two trials in seconds.
    fn waits_s(&self) -> Result<f64, String> {
        match self {
            Self::Frames(bed) => bed.waits_s(),
            Self::Flows(flags) => flags.waits_s(),
        }
    }

    /// Returns the model of a simulated device; `None` without simulation.
    fn simulated(&self) -> Result<Option<DeviceModel>, String> {
        match self {
            Self::Frames(bed) => bed.simulated(),
            Self::Flows(flags) => flags.simulate().map(read_model).transpose(),
        }
    }

    /// Opens the source.
    fn open(
        &self,
        host: Host,
        stop: StopSignal,
        view: BarObserver,
    ) -> Result<Box<dyn FullTrial>, String> {
        if let Some(model) = self.simulated()? {
            return Ok(Box::new(SimulatedDevice::new(model)));
        }
        match self {
            Self::Frames(bed) => {
                let trial = LocalTrial::new(bed.test_bed()?, host, stop, view);
                let trial = trial.map_err(|error| error.to_string())?;
                Ok(Box::new(match bed.reset()? {
                    Some(reset) => trial.with_reset(reset),
                    None => trial,
                }))
            }
            Self::Flows(flags) => {
                let trial = FlowExporterTrial::new(flags.test_bed()?, host, stop, view);
                let trial = trial.map_err(|error| error.to_string())?;
                eprintln!("wirestorm: collecting records at {}", trial.collector());
                Ok(Box::new(trial))
            }
        }
    }
}

impl Bench<'_> {
    fn run(&self) -> Result<ExitCode, String> {
        let Self { method, source, output: flags } = self;
        let waits_s = source.waits_s()?;
        if flags.dry_run {
            print!("{}", summary::of_plan(method, waits_s));
            return Ok(ExitCode::SUCCESS);
        }
        let mut output = Output::open(flags.json.as_deref())?;
        let stop = StopSignal::default();
        let signals = Signals::catch();
        signals.on_stop(&stop);
        let mut progress = Progress::new(flags.quiet);
        let is_simulated = source.simulated()?.is_some();
        let mut trial = source.open(Host::new(), stop, progress.observer(&signals))?;
        let outcome = run_method(method, Vec::new(), waits_s, &mut *trial, &mut progress);
        progress.finish();
        let result = BenchResult {
            schema: BENCH_SCHEMA.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            parameters: method.clone(),
            warnings: outcome.findings.warnings(),
            findings: outcome.findings,
            deviations: method.deviations(),
            verdict: verdict(outcome.error.as_ref()),
            trials: outcome.trials,
            trials_s: outcome.trials_s,
            elapsed_s: outcome.elapsed_s,
            is_simulated,
        };
        let exit = result.verdict.outcome.exit_status();
        if let Err(message) = output.print(&result, Table(&result)) {
            eprintln!("wirestorm: {message}");
            return Ok(ExitCode::from(status::FAILED));
        }
        Ok(ExitCode::from(exit))
    }
}

fn verdict(error: Option<&TrialError>) -> Verdict {
    let outcome = match error {
        None => Outcome::Met,
        Some(TrialError::Stopped) => Outcome::Interrupted,
        Some(TrialError::Failed(_)) => Outcome::Failed,
    };
    Verdict { outcome, reasons: error.iter().map(ToString::to_string).collect() }
}
