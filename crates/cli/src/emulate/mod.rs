//! `wirestorm emulate`: runs the clients and servers of a plan.

mod latency;
mod live;
mod port;
mod program_results;
pub(crate) mod sampled_flows;
pub(crate) mod sim;
mod table;
mod time_series;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use wirestorm_api::run::{PlanSource, RunOptions, TrexProfile};
use wirestorm_control::backend::Backend;
use wirestorm_control::base::time::Duration;
use wirestorm_control::emulation::{EmulationError, EmulationOptions, WatchOptions};
use wirestorm_control::plan::emulation::EmulationPlan;
use wirestorm_control::plan::load::{LoadedPlan, PlanKind, Profile};
use wirestorm_control::plan::traffic::parse_time;
use wirestorm_control::plan::trex::captures::CaptureProfile;
use wirestorm_control::plan::trex::stateful::{self, StatefulOptions};
use wirestorm_control::plan::{self, Multiplier};
use wirestorm_control::result::RunResult;
use wirestorm_control::run::Plan;
use wirestorm_store::record::RecordKind;

use crate::files::CommandLineFiles;
use crate::foreground::Foreground;
use crate::metrics::MetricsFlags;
use crate::remote::{self, RemotePlan, ServerFlags, bindings};
use crate::report::Output;
use crate::save::{self, Draft, SaveFlags};
use crate::signals::Signals;
use crate::status;
use crate::traffic::{bind, format_errors, load, open, read_time, trex, usage};
use live::Live;
pub(crate) use table::Table;

const EXAMPLES: &str = "\
Examples:
  wirestorm emulate pages.yaml --port clients=eth1 --port servers=eth2 --duration 30s
      clients on one interface, servers on the other, a device between them
  wirestorm emulate server.yaml --port web=eth1
      a server for others, until Ctrl-C
  wirestorm emulate pages.yaml --port clients=eth1 --port servers=eth2 --json result.json
  wirestorm emulate pages.yaml --port clients=eth1 --port servers=eth2 \\
      --sample-flows 5,template=page --interval 200ms
      what five of its connections are, five times a second
  wirestorm emulate trex_profile.py --port clients=eth1 --port servers=eth2 -m 10 -t --size 100
      a stateful profile of TRex's; a second pair of ports is clients1 and servers1
  wirestorm emulate cap2/sfr.yaml --port clients=eth1 --port servers=eth2 -m 2
      an older one, a list of captures, for as long as it says

The exit status is 0 when all was done; 1 when something ended the run before
its time; 2 for wrong input, or where nothing could begin; 3 when the run fell
short: connections failed or could not be made, frames were missed or not sent,
an interface was down, or Ctrl-C ended the run.";

/// Emulate clients and servers over TCP, UDP, TLS and HTTP/2
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct EmulateFlags {
    /// Plan in YAML or JSON, or a stateful TRex profile; `-` for stdin
    #[arg(value_name = "PLAN")]
    plan: PathBuf,

    /// Bind a port of the plan to an interface; repeatable
    #[arg(short, long, value_name = "NAME=INTERFACE")]
    port: Vec<String>,

    /// Start connections for this long [default: until all limits are reached]
    #[arg(short, long, value_name = "TIME")]
    duration: Option<String>,

    /// Time for open connections to finish after --duration
    #[arg(long, value_name = "TIME", default_value = "2s")]
    drain_timeout: String,

    /// Stop the run if an interface stays down for this long
    #[arg(long, value_name = "TIME", default_value = "30s")]
    link_down_timeout: String,

    /// Backend that sends and receives frames
    #[arg(long, value_parser = crate::backend::both_ways(), default_value = "auto")]
    backend: Backend,

    /// Maximum receive delay under load to save CPU time; 0s: off
    #[arg(long, value_name = "TIME", default_value = "50us")]
    rx_coalesce: String,

    /// Verify checksums on virtual interfaces with AF_XDP too
    #[arg(long)]
    verify_checksums: bool,

    /// Maximum concurrent connections on each port
    #[arg(long, value_name = "N", default_value_t = 1_000_000,
        value_parser = clap::value_parser!(u32).range(1..=16_000_000))]
    flows_max: u32,

    /// Seed for sequence numbers, delays and first client ports [default: random]
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,

    /// Send even on the interface of the default route
    #[arg(long)]
    force_interface: bool,

    /// Interval of the time series in the result
    #[arg(long, value_name = "TIME", default_value = INTERVAL)]
    interval: String,

    /// Sample N connections per port, such as 5,template=page,port=80
    #[arg(long, value_name = "N[,WHICH]")]
    sample_flows: Option<String>,

    /// Write the result as JSON to a file; `-`: to stdout, without the table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    #[command(flatten)]
    metrics: MetricsFlags,

    #[command(flatten)]
    save: SaveFlags,

    /// Print no progress line
    #[arg(short, long)]
    quiet: bool,

    /// Multiply all loads by this factor, such as 2 or 0.5
    #[arg(
        short,
        long,
        alias = "mult",
        value_name = "FACTOR",
        default_value = "1",
        allow_negative_numbers = true
    )]
    multiplier: String,

    #[command(flatten)]
    server: ServerFlags,

    /// Arguments for the TRex profile; must be the last option
    #[arg(short, long, num_args = 1.., allow_hyphen_values = true, value_name = "ARG")]
    tunables: Vec<String>,

    /// Run the TRex profile over IPv6
    #[arg(long)]
    ipv6: bool,

    /// TRex client configuration file (YAML)
    #[arg(long, aliases = ["client-cfg", "client_cfg"], value_name = "FILE")]
    cc: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(flags: &EmulateFlags) -> ExitCode {
    match flags.server.client() {
        Ok(None) => {}
        Ok(Some(client)) => {
            let plan = match remote_plan(flags) {
                Ok(plan) => plan,
                Err(message) => return usage(message),
            };
            let duration = flags.duration.as_deref().and_then(parse_time).unwrap_or(Duration::MAX);
            let view = Live::new(flags.quiet, duration);
            let show =
                |result: &RunResult, output: &mut Output| output.print(result, Table(result));
            return remote::run_and_print(
                &client,
                plan,
                view,
                flags.json.as_deref(),
                |_| Ok(()),
                show,
            );
        }
        Err(message) => return usage(message),
    }
    let (plan, options) = match prepare(flags) {
        Ok(prepared) => prepared,
        Err(message) => return usage(message),
    };
    let mut output = match Output::open(flags.json.as_deref()) {
        Ok(output) => output,
        Err(message) => return usage(message),
    };
    let foreground = match Foreground::open(flags.metrics) {
        Ok(foreground) => foreground,
        Err(message) => return usage(message),
    };
    let signals = Signals::catch();
    let draft = || Draft::new(RecordKind::Emulation, interfaces(&plan, &options));
    let recording = match flags.save.start(|| draft().file(&flags.plan)) {
        Ok(recording) => recording,
        Err(message) => return usage(message),
    };
    let mut live = Live::new(flags.quiet, options.duration);
    let source = flags.plan.display().to_string();
    let run = Plan::Emulation { plan: Arc::new(plan), options };
    let outcome = foreground.run(run, source, &mut live, &signals, |_| ());
    let saved = recording.end(&outcome);
    let result = match outcome {
        Ok(result) => result,
        Err(failure) => {
            return match failure.error.downcast_ref::<EmulationError>() {
                Some(error) if failure.status() == status::USAGE => {
                    usage(with_plan_path(&flags.plan, error))
                }
                _ => failure.exit(),
            };
        }
    };
    if let Err(message) = output.print(&*result, Table(&result)) {
        eprintln!("wirestorm: {message}");
        return ExitCode::from(status::FAILED);
    }
    ExitCode::from(save::status(saved, result.verdict.outcome.exit_status()))
}

/// Returns the interfaces of the plan's ports.
fn interfaces(plan: &EmulationPlan, options: &EmulationOptions) -> Vec<String> {
    let bound = plan.ports.iter().zip(&options.interfaces);
    bound
        .filter_map(|(port, interface)| interface.clone().or_else(|| port.location.clone()))
        .collect()
}

fn prepare(flags: &EmulateFlags) -> Result<(EmulationPlan, EmulationOptions), String> {
    let (mut plan, usual_duration) = read(flags)?;
    multiply(&mut plan, "--multiplier", &flags.multiplier)?;
    let duration = match &flags.duration {
        Some(text) => read_time("--duration", text)?,
        None => usual_duration.unwrap_or(Duration::MAX),
    };
    let options = EmulationOptions {
        interfaces: bind(&plan.ports, &flags.port)?,
        folder: plan::load::folder_of(&flags.plan).to_owned(),
        backend: flags.backend,
        duration,
        drain_timeout: read_time("--drain-timeout", &flags.drain_timeout)?,
        drain_timeout_flag: Some("--drain-timeout".to_owned()),
        link_down_timeout: read_time("--link-down-timeout", &flags.link_down_timeout)?,
        rx_coalesce: read_time("--rx-coalesce", &flags.rx_coalesce)?,
        watch: read_watch_options(&flags.interval, flags.sample_flows.as_deref(), &plan)?,
        flows_max: flags.flows_max as usize,
        seed: flags.seed.unwrap_or_else(EmulationOptions::random_seed),
        force_interface: flags.force_interface,
        verify_checksums: flags.verify_checksums,
        is_visible: false,
    };
    Ok((plan, options))
}

/// The plan for a server.
fn remote_plan(flags: &EmulateFlags) -> Result<RemotePlan<'_>, String> {
    let unsupported = [
        ("--metrics", flags.metrics.metrics.is_some(), "the server has them at /metrics"),
        ("--sample-flows", flags.sample_flows.is_some(), "remove it"),
        ("--cc", flags.cc.is_some(), "remove it"),
    ];
    if let Some((flag, _, advice)) = unsupported.into_iter().find(|(_, is_given, _)| *is_given) {
        return Err(format!("{flag} does not work with --server: {advice}"));
    }
    flags.save.check_remote()?;
    let file = open(&flags.plan)?;
    let name = flags.plan.display();
    let of_flows = || Err(format!("{name}: this is a plan of flows; use `wirestorm run {name}`"));
    let source = match file.kind() {
        PlanKind::Streams => return of_flows(),
        PlanKind::Emulation | PlanKind::Unknown => {
            check_options(flags)?;
            PlanSource::Text(file.into_text().unwrap_or_default())
        }
        PlanKind::Trex => {
            let arguments =
                trex::ProfileArguments { tunables: &flags.tunables, direction: 0, port_id: 0 };
            match load(&flags.plan, file, PlanKind::Emulation, &arguments)? {
                LoadedPlan::Trex(Profile::Stateful(json)) => {
                    let profile = serde_json::from_str(&json)
                        .map_err(|error| format!("{}: {error}", flags.plan.display()))?;
                    PlanSource::TrexProfile(TrexProfile { profile, ipv6: flags.ipv6 })
                }
                LoadedPlan::Trex(Profile::Captures(_)) => {
                    return Err(format!(
                        "{name}: a profile of captures does not work with --server; run it without"
                    ));
                }
                _ => return of_flows(),
            }
        }
    };
    let options = RunOptions {
        duration: flags.duration.clone(),
        multiplier: Some(flags.multiplier.clone()),
        backend: Some(flags.backend.name().to_owned()),
        force_interface: Some(flags.force_interface),
        drain_timeout: Some(flags.drain_timeout.clone()),
        link_down_timeout: Some(flags.link_down_timeout.clone()),
        rx_coalesce: Some(flags.rx_coalesce.clone()),
        interval: Some(flags.interval.clone()),
        flows_max: Some(flags.flows_max),
        seed: flags.seed,
        verify_checksums: Some(flags.verify_checksums),
        ..RunOptions::default()
    };
    let ports = bindings(&flags.port)?;
    Ok(RemotePlan { source, file: &flags.plan, name: flags.save.name(), ports, options })
}

/// Default of `--interval`.
pub(crate) const INTERVAL: &str = "1s";

/// Reads `--interval` and `--sample-flows`.
///
/// # Errors
/// An interval below 1 ms, or a template that the plan does not have.
pub(crate) fn read_watch_options(
    interval_text: &str,
    flows: Option<&str>,
    plan: &EmulationPlan,
) -> Result<WatchOptions, String> {
    const LEAST: Duration = Duration::from_millis(1);
    let interval = read_time("--interval", interval_text)?;
    if interval < LEAST {
        return Err(format!("--interval {interval_text:?}: expected 1ms or more"));
    }
    let flows = sampled_flows::read_sample_flows(flows)?;
    let mut names = plan.templates.iter().map(|template| template.name.as_str());
    match &flows.template {
        Some(name) if !names.clone().any(|known| known == name) => {
            let known = names.by_ref().collect::<Vec<_>>().join(", ");
            Err(format!(
                "--sample-flows: found template {name:?}, expected one of the plan's: {known}"
            ))
        }
        _ => Ok(WatchOptions { interval, flows }),
    }
}

/// The plan, and the duration that it has by default.
fn read(flags: &EmulateFlags) -> Result<(EmulationPlan, Option<Duration>), String> {
    let arguments = trex::ProfileArguments { tunables: &flags.tunables, direction: 0, port_id: 0 };
    let options = || StatefulOptions { ipv6: flags.ipv6, pairs: pairs(&flags.port) };
    let name = flags.plan.display();
    let file = open(&flags.plan)?;
    let of_flows = || Err(format!("{name}: this is a plan of flows; use `wirestorm run {name}`"));
    if file.kind() == PlanKind::Streams {
        return of_flows();
    }
    match load(&flags.plan, file, PlanKind::Emulation, &arguments)? {
        LoadedPlan::Emulation(plan) => check_options(flags).map(|()| (plan, None)),
        LoadedPlan::Streams(_) => of_flows(),
        LoadedPlan::Trex(Profile::Stateful(json)) => {
            Ok((read_stateful(&flags.plan, &json, &options(), flags.cc.as_deref())?, None))
        }
        LoadedPlan::Trex(Profile::Captures(text)) => {
            let CaptureProfile { plan, duration } =
                read_captures(&flags.plan, &text, &options(), flags.cc.as_deref())?;
            Ok((plan, duration))
        }
        LoadedPlan::Trex(Profile::Streams(_) | Profile::Python) => {
            Err(format!("{name}: this is a profile of streams; use `wirestorm run {name}`"))
        }
    }
}

/// Formats an error, with the plan's file name if the error concerns the plan.
pub(crate) fn with_plan_path(plan: &Path, error: &EmulationError) -> String {
    match error.is_plan_error() {
        true => format!("{}: {error}", plan.display()),
        false => error.to_string(),
    }
}

/// Rejects options that only TRex profiles support.
fn check_options(flags: &EmulateFlags) -> Result<(), String> {
    let unused = trex::TrexOnlyOptions {
        tunables: !flags.tunables.is_empty(),
        ipv6: flags.ipv6,
        configuration: flags.cc.is_some(),
    };
    unused.reject(&flags.plan)
}

/// Converts a stateful TRex profile to a plan, and applies the TRex client configuration.
pub(crate) fn read_stateful(
    path: &Path,
    json: &str,
    options: &StatefulOptions,
    configuration: Option<&Path>,
) -> Result<EmulationPlan, String> {
    let plan = stateful::read(json, options);
    let mut plan = plan.map_err(|errors| format_errors(path, errors))?;
    configure(&mut plan, configuration)?;
    Ok(plan)
}

/// Converts a TRex capture list to a plan, and applies the TRex client configuration.
pub(crate) fn read_captures(
    path: &Path,
    text: &str,
    options: &StatefulOptions,
    configuration: Option<&Path>,
) -> Result<CaptureProfile, String> {
    let captures =
        plan::load::trex_captures(text, plan::load::folder_of(path), &CommandLineFiles, options);
    let mut captures = captures.map_err(|errors| format_errors(path, errors))?;
    configure(&mut captures.plan, configuration)?;
    Ok(captures)
}

fn configure(plan: &mut EmulationPlan, configuration: Option<&Path>) -> Result<(), String> {
    let Some(path) = configuration else { return Ok(()) };
    let text = plan::load::read_text(path, &CommandLineFiles).map_err(|error| error.to_string())?;
    stateful::apply_client_configuration(plan, &text).map_err(|errors| format_errors(path, errors))
}

/// Returns the number of port pairs that share the flows of a profile.
///
/// The highest pair in `--port` counts: `clients2` and `servers2` are the third pair.
fn pairs(bindings: &[String]) -> u32 {
    let pair = |binding: &String| {
        let (name, _) = binding.split_once('=')?;
        let number = name.strip_prefix("clients").or_else(|| name.strip_prefix("servers"))?;
        number.parse::<u32>().ok().filter(|pair| *pair < stateful::PAIRS_MAX)
    };
    bindings.iter().filter_map(pair).max().unwrap_or(0) + 1
}

/// Multiplies the loads of a plan by the factor that an option sets.
pub(crate) fn multiply(plan: &mut EmulationPlan, option: &str, text: &str) -> Result<(), String> {
    match Multiplier::parse(text) {
        Some(Multiplier::Factor(factor)) => {
            plan.multiply(factor).map_err(|error| format!("{option} {text}: {error}"))
        }
        _ => Err(format!(
            "{option} {text:?}: expected a factor greater than 0, such as 2 or 0.5, for the loads \
             of clients"
        )),
    }
}
