//! `wirestorm bench`: benchmark methods.

mod bed;
mod collector;
mod flow_exporter;
mod ndr;
mod parameters;
mod progress;
mod rfc9411;
mod summary;
mod table;
mod y1564;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;

use clap::{Args, Parser, Subcommand};
use wirestorm_control::Host;
use wirestorm_control::bench::{
    CollectorTrial, CompletedTrial, EmulationTrial, FlowExporterTrial, FullTrial, LocalTrial,
    MethodParameters, NamedTraffic, StopSignal, TrialLog, run_method,
};
use wirestorm_control::method::device::{DeviceModel, SimulatedDevice};
use wirestorm_control::method::method::Method;
use wirestorm_control::method::trial::{TrialInput, TrialOutput};
use wirestorm_control::result::Outcome;
use wirestorm_store::RunWriter;
use wirestorm_store::record::{
    BenchResult, InputRecord, RecordKind, RunRecord, State, TrialRecord,
};

use crate::foreground::Foreground;
use crate::metrics::MetricsFlags;
use crate::report::Output;
use crate::save::{DirectoryFlags, interface_record, not_saved};
use crate::signals::Signals;
use crate::traffic::usage;
use bed::{BedFlags, read_model};
use collector::CollectorFlags;
use flow_exporter::FlowExporterFlags;
use ndr::NdrFlags;
use parameters::{MlrsearchFlags, Rfc2544Flags};
use progress::BarObserver;
pub(crate) use progress::Progress;
use rfc9411::Rfc9411Flags;
pub(crate) use table::Table;
use y1564::Y1564Flags;

const EXAMPLES: &str = "\
Examples:
  wirestorm bench rfc2544 --tx eth1 --rx eth2 --dry-run
      the trials and their duration, without a frame
  wirestorm bench mlrsearch --tx eth1 --rx eth2 --name before --json before.json
  wirestorm bench resume latest
      continue after an interruption
  wirestorm report before -o report.html

Each method has a page of help: wirestorm bench METHOD --help";

/// Measure a device with a benchmark method
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
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
    /// Records of emulated exporters against records that a collector stores
    Collector(Box<CollectorFlags>),
    /// Connections, transactions and throughput of security devices (RFC 9411)
    Rfc9411(Box<Rfc9411Flags>),
    /// Non-drop rate of frames, plans or captures, as by TRex
    Ndr(Box<NdrFlags>),
    /// Services against their bandwidth profiles (ITU-T Y.1564)
    Y1564(Box<Y1564Flags>),
    /// Continue a method that was interrupted
    Resume(ResumeFlags),
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

    /// Name of the run in the run history
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Name of the device under test, for reports
    #[arg(long, value_name = "NAME")]
    device: Option<String>,

    /// Fact about the device, for reports, such as firmware=1.2; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    device_fact: Vec<String>,

    #[command(flatten)]
    directory: DirectoryFlags,

    #[command(flatten)]
    metrics: MetricsFlags,
}

/// Continue a method that was interrupted
///
/// The completed trials count. The method and its flags are those of the run.
#[derive(Args, Debug)]
struct ResumeFlags {
    /// Run: its ID or the start of it, its name, or `latest`
    #[arg(value_name = "RUN")]
    run: String,

    #[command(flatten)]
    directory: DirectoryFlags,
}

/// A method with the source of its trials.
struct Bench<'a> {
    method: Method,
    source: Source<'a>,
    output: &'a OutputFlags,
    /// Input files with their flags.
    inputs: Vec<(&'static str, &'a Path)>,
}

/// Source of trials.
enum Source<'a> {
    /// Frames between interfaces.
    Frames(&'a BedFlags),
    /// Frames of traffic with names.
    Named(&'a BedFlags, NamedTraffic),
    /// Flows to an exporter.
    Flows(&'a FlowExporterFlags),
    /// Records to a collector.
    Records(&'a CollectorFlags),
    /// Connections between emulated clients and servers.
    Connections(&'a Rfc9411Flags),
}

/// Runs the command.
pub(crate) fn run(flags: &BenchFlags) -> ExitCode {
    let exit = match &flags.method {
        MethodFlags::Resume(flags) => resume(flags),
        method => bench(method).and_then(|bench| bench.run()),
    };
    exit.unwrap_or_else(usage)
}

/// Continues a saved run with the flags of its command line.
fn resume(flags: &ResumeFlags) -> Result<ExitCode, String> {
    let store = flags.directory.open()?;
    let entry = store.find(&flags.run).map_err(|error| error.to_string())?;
    let saved = store.load(&entry.id).map_err(|error| error.to_string())?;
    let Some(expected) = &saved.record.method else {
        return Err(format!("{} is no run of `wirestorm bench`", entry.id));
    };
    let cli = crate::Cli::try_parse_from(&saved.record.command);
    let command = match cli {
        Ok(crate::Cli { command: crate::Command::Bench(command) }) => command,
        Ok(crate::Cli { command: crate::Command::Test(_) }) => {
            let id = &entry.id;
            return Err(format!(
                "{id} is a method of a test across machines; start the test again"
            ));
        }
        _ => {
            return Err(format!("the command of {} is no longer valid; start a new run", entry.id));
        }
    };
    // A changed file may also mean other parameters, so this is checked first.
    for input in &saved.record.inputs {
        input.check()?;
    }
    let bench = bench(&command.method)?;
    if bench.method != *expected {
        return Err(format!(
            "the flags of {} mean other parameters now, such as another link speed; start a new run",
            entry.id
        ));
    }
    let (writer, trials) = store.resume(&entry.id).map_err(|error| error.to_string())?;
    let records = trials.into_iter().map(|trial| (trial.input, trial.output)).collect();
    bench.run_saved(writer, records)
}

fn bench(flags: &MethodFlags) -> Result<Bench<'_>, String> {
    Ok(match flags {
        MethodFlags::Resume(_) => return Err("a resumed run cannot be resumed as such".into()),
        MethodFlags::Rfc2544(flags) => {
            Bench::new(flags.method()?, Source::Frames(&flags.bed), &flags.output)
        }
        MethodFlags::Mlrsearch(flags) => {
            Bench::new(flags.method()?, Source::Frames(&flags.bed), &flags.output)
        }
        MethodFlags::FlowExporter(flags) => {
            let bench = Bench::new(flags.method()?, Source::Flows(flags), &flags.output);
            bench.with_inputs([("--capture", flags.capture())])
        }
        MethodFlags::Rfc9411(flags) => {
            Bench::new(flags.method()?, Source::Connections(flags), &flags.output)
        }
        MethodFlags::Ndr(flags) => {
            let traffic = flags.named_traffic()?;
            let method = flags.method(&traffic)?;
            let bench = Bench::new(method, Source::Named(&flags.bed, traffic), &flags.output);
            bench.with_inputs(flags.files())
        }
        MethodFlags::Collector(flags) => {
            Bench::new(flags.method()?, Source::Records(flags), &flags.output)
        }
        MethodFlags::Y1564(flags) => {
            let method = flags.method()?;
            let traffic = MethodParameters::traffic(&method);
            let bench = Bench::new(method, Source::Named(&flags.bed, traffic), &flags.output);
            bench.with_inputs([("--services", flags.services_file())])
        }
    })
}

impl Source<'_> {
    /// Returns the interfaces.
    fn interfaces(&self) -> Vec<String> {
        match self {
            Self::Frames(bed) | Self::Named(bed, _) => bed.interfaces(),
            Self::Flows(flags) => flags.interfaces(),
            Self::Records(_) => Vec::new(),
            Self::Connections(flags) => flags.bed.interfaces(),
        }
    }

    /// Returns the time between two trials in seconds.
    fn waits_s(&self) -> Result<f64, String> {
        match self {
            Self::Frames(bed) | Self::Named(bed, _) => bed.waits_s(),
            Self::Flows(flags) => flags.waits_s(),
            Self::Records(flags) => flags.waits_s(),
            Self::Connections(flags) => flags.bed.settle_s(),
        }
    }

    /// Returns the model of a simulated device; `None` without simulation.
    fn simulated(&self) -> Result<Option<DeviceModel>, String> {
        match self {
            Self::Frames(bed) | Self::Named(bed, _) => bed.simulated(),
            Self::Flows(flags) => flags.simulate().map(read_model).transpose(),
            Self::Records(flags) => flags.simulate().map(read_model).transpose(),
            Self::Connections(flags) => flags.bed.simulated(),
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
            Self::Named(bed, traffic) => {
                let trial = LocalTrial::new(bed.test_bed()?, host, stop, view);
                let trial = trial.map_err(|error| error.to_string())?;
                Ok(Box::new(trial.with_traffic(traffic.clone())))
            }
            Self::Flows(flags) => {
                let trial = FlowExporterTrial::new(flags.test_bed()?, host, stop, view);
                let trial = trial.map_err(|error| error.to_string())?;
                eprintln!("wirestorm: collecting records at {}", trial.collector());
                Ok(Box::new(trial))
            }
            Self::Records(flags) => {
                let (bed, method) = (flags.test_bed()?, flags.parameters()?);
                let trial = CollectorTrial::new(bed, &method, host, stop, view);
                Ok(Box::new(trial.map_err(|error| error.to_string())?))
            }
            Self::Connections(flags) => {
                let (bed, addresses) = (flags.bed.test_bed()?, flags.addresses());
                Ok(Box::new(EmulationTrial::new(bed, addresses, host, stop, view)?))
            }
        }
    }
}

impl<'a> Bench<'a> {
    const fn new(method: Method, source: Source<'a>, output: &'a OutputFlags) -> Self {
        Self { method, source, output, inputs: Vec::new() }
    }

    /// Adds the input files of flags that are given.
    fn with_inputs(
        mut self,
        files: impl IntoIterator<Item = (&'static str, Option<&'a Path>)>,
    ) -> Self {
        let given = files.into_iter().filter_map(|(flag, path)| Some((flag, path?)));
        self.inputs.extend(given);
        self
    }

    fn run(&self) -> Result<ExitCode, String> {
        if self.output.dry_run {
            print!("{}", summary::of_plan(&self.method, self.source.waits_s()?));
            return Ok(ExitCode::SUCCESS);
        }
        let store = self.output.directory.open()?;
        let writer = store.create(self.record()?).map_err(|error| error.to_string())?;
        self.run_saved(writer, Vec::new())
    }

    /// Returns the record of a new run.
    fn record(&self) -> Result<RunRecord, String> {
        let command = std::env::args_os();
        let command = command.map(|argument| argument.to_string_lossy().into_owned()).collect();
        let mut record = RunRecord::new(RecordKind::Bench, command);
        record.name.clone_from(&self.output.name);
        record.interfaces =
            self.source.interfaces().iter().filter_map(|name| interface_record(name)).collect();
        record.method = Some(self.method.clone());
        for (flag, path) in &self.inputs {
            let input = InputRecord::read(flag, path);
            record.inputs.extend(input.map_err(|error| format!("{}: {error}", path.display()))?);
        }
        record.device.name = self.output.device.clone().unwrap_or_default();
        for fact in &self.output.device_fact {
            let (key, value) = fact
                .split_once('=')
                .ok_or_else(|| format!("--device-fact {fact:?}: expected KEY=VALUE"))?;
            record.device.facts.insert(key.to_owned(), value.to_owned());
        }
        Ok(record)
    }

    /// Runs the method after the trials of `records`, and saves each trial.
    fn run_saved(
        &self,
        writer: RunWriter,
        records: Vec<(TrialInput, TrialOutput)>,
    ) -> Result<ExitCode, String> {
        let Self { method, source, output: flags, .. } = self;
        let id = writer.id().to_owned();
        let mut log = SavingProgress { progress: Progress::new(flags.quiet), writer };
        let opened = self.open(&log.progress);
        let (mut output, waits_s, mut trial) = match opened {
            Ok(opened) => opened,
            Err(message) if records.is_empty() => {
                // Nothing began.
                log.writer.discard().map_err(|error| error.to_string())?;
                return Err(message);
            }
            Err(message) => {
                let failed = log.writer.finish(State::Interrupted, Some(message.clone()));
                failed.map_err(|error| error.to_string())?;
                return Err(message);
            }
        };
        let outcome = run_method(method, records, waits_s, &mut *trial, &mut log);
        log.progress.finish();
        let result = BenchResult::new(method, outcome, source.simulated()?.is_some());
        let printed = output.print(&result, Table(&result));
        let saved = log.writer.end_bench(&result).map_err(|error| not_saved(&error));
        let is_json_only = flags.json.as_deref() == Some(Path::new("-"));
        if result.verdict.outcome == Outcome::Failed && is_json_only {
            result.verdict.reasons.iter().for_each(|reason| eprintln!("error: {reason}"));
        }
        match result.verdict.outcome {
            Outcome::Met | Outcome::FellShort => {
                eprintln!("saved as {id}; next: wirestorm runs show {id}");
            }
            Outcome::Interrupted | Outcome::Failed => {
                eprintln!("saved as {id}; continue with: wirestorm bench resume {id}");
            }
        }
        let status = result.verdict.outcome.exit_status();
        let printed = crate::save::status(printed, status);
        Ok(ExitCode::from(crate::save::status(saved, printed)))
    }

    /// Opens the output and the source of trials.
    fn open(&self, progress: &Progress) -> Result<Opened, String> {
        let output = Output::open(self.output.json.as_deref())?;
        let waits_s = self.source.waits_s()?;
        let stop = StopSignal::default();
        let signals = Signals::catch();
        signals.on_stop(&stop);
        let foreground = Rc::new(Foreground::open(self.output.metrics)?);
        let host = foreground.host().clone();
        let trial = self.source.open(host, stop, progress.observer(&signals, foreground))?;
        Ok((output, waits_s, trial))
    }
}

/// Output, time between two trials in seconds, and source of trials.
type Opened = (Output, f64, Box<dyn FullTrial>);

/// Shows the trials and saves them.
struct SavingProgress {
    progress: Progress,
    writer: RunWriter,
}

impl TrialLog for SavingProgress {
    fn started(&mut self, number: u32, input: &TrialInput, remaining_s: f64) {
        self.progress.started(number, input, remaining_s);
    }

    fn completed(&mut self, trial: &CompletedTrial) -> Result<(), String> {
        self.writer.trial(&TrialRecord::from(trial)).map_err(|error| error.to_string())?;
        self.progress.completed(trial)
    }
}
