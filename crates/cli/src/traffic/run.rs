//! `wirestorm run`: sends the flows of a plan.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use wirestorm_api::client::Client;
use wirestorm_api::run::{PlanSource, RunOptions, TrexStreams};
use wirestorm_control::backend::Backend;
use wirestorm_control::base::time::Duration;
use wirestorm_control::plan::Multiplier;
use wirestorm_control::plan::load::{LoadedPlan, PlanKind, Profile};
use wirestorm_control::plan::replay::parse_catch_up;
use wirestorm_control::plan::traffic::TrafficPlan;
use wirestorm_control::port::OpenError;
use wirestorm_control::result::RunResult;
use wirestorm_control::run::Plan;
use wirestorm_control::traffic::{
    SeriesOptions, StreamOptions, TrafficError, TrexPort, plan_of_trex,
};
use wirestorm_store::record::RecordKind;

use super::live::Live;
use super::table::Table;
use super::{bind, control, of_clients, open, read_multiplier, read_time, trex, usage};
use crate::foreground::Foreground;
use crate::metrics::MetricsFlags;
use crate::remote::{self, RemotePlan, ServerFlags, bindings};
use crate::report::Output;
use crate::save::{self, Draft, SaveFlags};
use crate::signals::Signals;
use crate::status;

const EXAMPLES: &str = "\
Examples:
  wirestorm run plan.yaml --port a=eth1 --port b=eth2 --duration 30s
  wirestorm run plan.yaml --json result.json
  wirestorm run trex_profile.py --port 0=eth1 --port 1=eth2 --duration 30s --multiplier 50%
  wirestorm run plan.yaml --multiplier 10gbpsl1 --duration 1min
  wirestorm run plan.yaml --port a=netns/x:veth0 --backend af_packet
  echo 'pause voice' | wirestorm run plan.yaml --control - --duration 10s";

/// Send the flows of a plan and report loss, order and delay
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunFlags {
    /// Plan in YAML or JSON, or a TRex profile; `-` for stdin
    #[arg(value_name = "PLAN")]
    plan: PathBuf,

    /// Bind a port of the plan to an interface; repeatable
    #[arg(short, long, value_name = "NAME=INTERFACE")]
    port: Vec<String>,

    #[command(flatten)]
    pub(super) how: SendingFlags,

    #[command(flatten)]
    server: ServerFlags,

    /// Arguments for the TRex profile; must be the last option
    #[arg(short, long, num_args = 1.., allow_hyphen_values = true, value_name = "ARG")]
    tunables: Vec<String>,
}

/// Flags of a run that `run` and `send` share.
#[derive(Args, Debug)]
pub(super) struct SendingFlags {
    /// Stop after this time, such as 30s or 5min
    #[arg(short, long, value_name = "TIME")]
    pub(super) duration: Option<String>,

    /// Factor (2, 0.5) or total load of a port: 50%, 10kpps, 1gbps, 1gbpsl1
    #[arg(
        short,
        long,
        alias = "mult",
        value_name = "FACTOR",
        default_value = "1",
        allow_negative_numbers = true
    )]
    pub(super) multiplier: String,

    /// Read commands (pause, rate, scale ...) from a file, pipe or stdin (`-`)
    #[arg(long, value_name = "FILE")]
    pub(super) control: Option<PathBuf>,

    /// Backend that sends and receives frames
    #[arg(long, value_parser = crate::backend::sending(), default_value = "auto")]
    pub(super) backend: Backend,

    /// Number of sending threads, each with its own queue
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(super) workers: u16,

    /// Late frames: bounded:MS, bounded:unlimited, strict:MS or stretch
    ///
    /// bounded:MS (default 1) sends frames that are at most MS late at once. The others leave at up
    /// to 8 times the rate until the schedule is met. bounded:unlimited sends all late frames at
    /// once. strict:MS skips frames that are more than MS late. stretch moves the schedule.
    #[arg(long, value_name = "POLICY", default_value = "bounded")]
    pub(super) catch_up: String,

    /// Send even on the interface of the default route
    #[arg(long)]
    pub(super) force_interface: bool,

    /// Count received frames of measured flows for each VLAN
    #[arg(long)]
    pub(super) per_vlan: bool,

    /// Allowed rate error in percent; more gives exit status 3
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    pub(super) tolerance: f64,

    /// Write the result as JSON to a file; `-`: to stdout, without the table
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,

    #[command(flatten)]
    pub(super) metrics: MetricsFlags,

    #[command(flatten)]
    pub(super) save: SaveFlags,

    /// Print no progress line
    #[arg(short, long)]
    pub(super) quiet: bool,

    /// Whether the command has its own flags for interfaces, beside --port.
    #[arg(skip)]
    pub(super) names_interfaces: bool,
}

/// Runs the command.
pub(crate) fn run(flags: &RunFlags) -> ExitCode {
    let standard = Path::new("-");
    if flags.plan == standard && flags.how.control.as_deref() == Some(standard) {
        return usage("the plan and --control both use standard input (-); use a file for one");
    }
    match flags.server.client() {
        Ok(None) => {}
        Ok(Some(client)) => return run_on_server(flags, &client),
        Err(message) => return usage(message),
    }
    let prepared = prepare(flags);
    match prepared {
        Ok((plan, interfaces, multiplier)) => {
            let source = source(&flags.plan);
            run_and_print(plan, interfaces, &flags.how, multiplier, source, |draft| {
                draft.file(&flags.plan)
            })
        }
        Err(message) => usage(message),
    }
}

/// Runs the plan on a server.
fn run_on_server(flags: &RunFlags, client: &Client) -> ExitCode {
    let (plan, live) = match remote_plan(flags) {
        Ok(prepared) => prepared,
        Err(message) => return usage(message),
    };
    let with_run = |id: &str| match &flags.how.control {
        Some(path) => control::follow_remote(path, client, id),
        None => Ok(()),
    };
    let show = |result: &RunResult, output: &mut Output| output.print(result, Table(result));
    remote::run_and_print(client, plan, live, flags.how.json.as_deref(), with_run, show)
}

/// The plan for a server, and the view of its progress.
fn remote_plan(flags: &RunFlags) -> Result<(RemotePlan<'_>, Live), String> {
    flags.how.check_remote()?;
    let duration = match &flags.how.duration {
        Some(text) => read_time("--duration", text)?,
        None => Duration::MAX,
    };
    let file = open(&flags.plan)?;
    let (source, ports) = match file.kind() {
        PlanKind::Emulation => return Err(of_clients(&flags.plan)),
        PlanKind::Trex => {
            match file.load_or(PlanKind::Streams).map_err(|error| error.to_string())? {
                LoadedPlan::Trex(profile) => (remote_trex(flags, &profile)?, BTreeMap::new()),
                _ => return Err(of_clients(&flags.plan)),
            }
        }
        PlanKind::Streams | PlanKind::Unknown => {
            let tunables = !flags.tunables.is_empty();
            trex::TrexOnlyOptions { tunables, ..Default::default() }.reject(&flags.plan)?;
            (PlanSource::Text(file.into_text().unwrap_or_default()), bindings(&flags.port)?)
        }
    };
    let name = flags.how.save.name();
    let options = flags.how.remote_options();
    let plan = RemotePlan { source, file: &flags.plan, name, ports, options };
    Ok((plan, Live::new(Vec::new(), false, flags.how.quiet, duration)))
}

/// The streams of a TRex profile for the ports of a server.
fn remote_trex(flags: &RunFlags, profile: &Profile) -> Result<PlanSource, String> {
    let ports = trex_ports(flags, profile)?;
    let streams = ports.into_iter().map(|port| {
        let json = port.streams.as_deref().unwrap_or("null");
        let streams = serde_json::from_str(json)
            .map_err(|error| format!("{}: {error}", flags.plan.display()))?;
        Ok((port.number.to_string(), TrexStreams { interface: port.interface, streams }))
    });
    streams.collect::<Result<_, String>>().map(PlanSource::TrexStreams)
}

/// The plan, the interfaces of its ports, and the multiplier of its rates.
fn prepare(flags: &RunFlags) -> Result<(TrafficPlan, Vec<Option<String>>, Multiplier), String> {
    let file = open(&flags.plan)?;
    if file.kind() == PlanKind::Emulation {
        return Err(of_clients(&flags.plan));
    }
    let multiplier = || read_multiplier("--multiplier", &flags.how.multiplier);
    match file.load_or(PlanKind::Streams).map_err(|error| error.to_string())? {
        LoadedPlan::Streams(plan) => {
            let tunables = !flags.tunables.is_empty();
            trex::TrexOnlyOptions { tunables, ..Default::default() }.reject(&flags.plan)?;
            let interfaces = bind(&plan.ports, &flags.port)?;
            Ok((plan, interfaces, multiplier()?))
        }
        LoadedPlan::Trex(profile) => {
            let ports = trex_ports(flags, &profile)?;
            let plan = plan_of_trex(&ports, multiplier()?).map_err(|error| error.to_string())?;
            let interfaces = vec![None; plan.ports.len()];
            // Its rates are multiplied already.
            Ok((plan, interfaces, Multiplier::ONE))
        }
        LoadedPlan::Emulation(_) => Err(of_clients(&flags.plan)),
    }
}

/// The ports of a TRex profile, with the streams of each.
fn trex_ports(flags: &RunFlags, profile: &Profile) -> Result<Vec<TrexPort>, String> {
    let expected = "expected NUMBER=INTERFACE, because TRex numbers its ports";
    let mut ports = Vec::new();
    for binding in &flags.port {
        let parts = binding.split_once('=');
        let parts = parts.and_then(|(number, name)| Some((number.parse().ok()?, name)));
        let (number, interface) = parts.ok_or_else(|| format!("--port {binding:?}: {expected}"))?;
        let arguments = trex::ProfileArguments {
            tunables: &flags.tunables,
            direction: (number & 1) as u8,
            port_id: number,
        };
        let streams = Some(trex::streams(&flags.plan, profile, &arguments)?);
        ports.push(TrexPort { number, interface: interface.to_owned(), streams });
    }
    if ports.is_empty() {
        return Err("a profile needs ports: --port 0=INTERFACE --port 1=INTERFACE".into());
    }
    Ok(ports)
}

/// Returns the name of a plan's file, for the result.
fn source(plan: &Path) -> String {
    plan.display().to_string()
}

/// Runs a plan and prints the result. `source` is the name of the plan's file; `with_files` adds the
/// plan to the record of a saved run.
pub(super) fn run_and_print(
    plan: TrafficPlan,
    interfaces: Vec<Option<String>>,
    how: &SendingFlags,
    multiplier: Multiplier,
    source: String,
    with_files: impl FnOnce(Draft) -> Draft,
) -> ExitCode {
    if how.per_vlan && !plan.flows.iter().any(|flow| flow.stream.is_measured) {
        return usage(
            "--per-vlan has no effect without a measured flow: measure one or remove --per-vlan",
        );
    }
    // `send` names its interfaces with other flags.
    let is_bound = how.names_interfaces || interfaces.iter().any(Option::is_some);
    let names: Vec<_> = plan.ports.iter().map(|port| port.name.as_str()).collect();
    let bind = format!(
        "--port NAME=INTERFACE binds a port of the plan ({}) to another one",
        names.join(", ")
    );
    let options = match options(interfaces, how, multiplier) {
        Ok(options) => options,
        Err(message) => return usage(message),
    };
    let mut output = match Output::open(how.json.as_deref()) {
        Ok(output) => output,
        Err(message) => return usage(message),
    };
    let foreground = match Foreground::open(how.metrics) {
        Ok(foreground) => foreground,
        Err(message) => return usage(message),
    };
    let signals = Signals::catch();
    let draft = || {
        let bound = plan.ports.iter().zip(&options.interfaces);
        let names = bound.filter_map(|(port, bound)| bound.as_ref().or(port.location.as_ref()));
        with_files(Draft::new(RecordKind::Streams, names))
    };
    let recording = match how.save.start(draft) {
        Ok(recording) => recording,
        Err(message) => return usage(message),
    };
    let plan = Arc::new(plan);
    let names = plan.flows.iter().map(|flow| flow.stream.name.clone()).collect();
    let is_measured = plan.flows.iter().any(|flow| flow.stream.is_measured);
    let mut live = Live::new(names, is_measured, how.quiet, options.duration);
    let mut commands = Ok(());
    let run = Plan::Streams { plan: Arc::clone(&plan), options };
    let outcome = foreground.run(run, source, &mut live, &signals, |handle| {
        if let Some(path) = &how.control {
            commands = control::follow(path, &plan, handle);
        }
    });
    if let Err(message) = commands {
        recording.discard();
        return usage(message);
    }
    let saved = recording.end(&outcome);
    let result = match outcome {
        Ok(result) => result,
        Err(failure) => {
            let is_missing = matches!(
                failure.error.downcast_ref(),
                Some(TrafficError::Open(OpenError::Link(_)))
            );
            if is_missing && !is_bound {
                return usage(format!("{}; {bind}", failure.error));
            }
            return failure.exit();
        }
    };
    if let Err(message) = output.print(&*result, Table(&result)) {
        eprintln!("wirestorm: {message}");
        return ExitCode::from(status::FAILED);
    }
    ExitCode::from(save::status(saved, result.verdict.outcome.exit_status()))
}

impl SendingFlags {
    /// Refuses flags that do not work on a server.
    fn check_remote(&self) -> Result<(), String> {
        if self.metrics.metrics.is_some() {
            return Err(
                "--metrics has no effect with --server: the server has them at /metrics".to_owned()
            );
        }
        self.save.check_remote()
    }

    /// The flags as options of a run on a server.
    fn remote_options(&self) -> RunOptions {
        RunOptions {
            duration: self.duration.clone(),
            multiplier: Some(self.multiplier.clone()),
            backend: Some(self.backend.name().to_owned()),
            workers: Some(self.workers),
            catch_up: Some(self.catch_up.clone()),
            force_interface: Some(self.force_interface),
            per_vlan: Some(self.per_vlan),
            tolerance: Some(self.tolerance),
            ..RunOptions::default()
        }
    }
}

fn options(
    interfaces: Vec<Option<String>>,
    how: &SendingFlags,
    multiplier: Multiplier,
) -> Result<StreamOptions, String> {
    let duration = match &how.duration {
        Some(text) => read_time("--duration", text)?,
        None => Duration::MAX,
    };
    let policy = parse_catch_up(&how.catch_up).map_err(|error| format!("--catch-up {error}"))?;
    Ok(StreamOptions {
        elsewhere: None,
        interfaces,
        backend: how.backend,
        workers: how.workers,
        policy,
        duration,
        multiplier,
        force_interface: how.force_interface,
        is_visible: false,
        per_vlan: how.per_vlan,
        survives_outages: false,
        tolerance_ppm: how.tolerance * 1e4,
        series: SeriesOptions::default(),
    })
}
