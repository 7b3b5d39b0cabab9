//! `wirestorm emulate`: the clients and servers of a plan.

mod live;
pub(crate) mod sim;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use wirestorm_control::base::time::Duration;
use wirestorm_control::emulation::{self, EmulationOptions, EmulationResult};
use wirestorm_control::plan::emulation::EmulationPlan;

use crate::replay::flags::BackendFlag;
use crate::traffic::{bind, listed, read_text, read_time, usage};
use crate::{interrupt, report, status};
use live::Live;
use table::Table;

const EXAMPLES: &str = "\
Examples:
  wirestorm emulate pages.yaml --port clients=eth1 --port servers=eth2 --duration 30s
      clients on one interface, servers on the other, a device between them
  wirestorm emulate server.yaml --port web=eth1
      a server for others, until Ctrl-C
  wirestorm emulate pages.yaml --json result.json";

/// Emulates the clients and servers of a plan, and reports what became of their connections.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct EmulateFlags {
    /// The plan, in YAML or JSON; `-`: standard input.
    #[arg(value_name = "PLAN")]
    plan: PathBuf,

    /// The interface of a port of the plan; may be repeated.
    #[arg(short, long, value_name = "NAME=INTERFACE")]
    port: Vec<String>,

    /// No connection is made later, such as 30s or 5min; without it, until all limits of the plan
    /// are reached, or Ctrl-C.
    #[arg(short, long, value_name = "TIME")]
    duration: Option<String>,

    /// How long connections may take to end after that.
    #[arg(long, value_name = "TIME", default_value = "2s")]
    linger: String,

    /// What carries the frames: auto, af_packet or af_xdp.
    #[arg(long, value_enum, default_value_t = BackendFlag::Auto)]
    backend: BackendFlag,

    /// The most connections at once on each port.
    #[arg(long, value_name = "N", default_value_t = 1_000_000,
        value_parser = clap::value_parser!(u32).range(1..=16_000_000))]
    flows_max: u32,

    /// Where sequence numbers and drawn delays come from.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,

    /// Send even on the interface that carries the default route.
    #[arg(long)]
    force_interface: bool,

    /// Write the result as JSON to a file; `-`: to standard output, instead of the table.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// No progress line.
    #[arg(short, long)]
    quiet: bool,
}

/// Runs the command.
pub(crate) fn run(flags: &EmulateFlags) -> ExitCode {
    let (plan, options) = match prepare(flags) {
        Ok(prepared) => prepared,
        Err(message) => return usage(message),
    };
    let control = interrupt::catch();
    let mut live = Live::new(flags.quiet, options.duration);
    let outcome = emulation::run(&plan, &options, &control, |progress| live.update(progress));
    live.finish();
    let result = match outcome {
        Ok(result) => result,
        Err(error) => return usage(error),
    };
    if let Err(message) = report::print(&result, Table(&result), flags.json.as_deref()) {
        eprintln!("wirestorm: {message}");
        return ExitCode::from(status::FAILED);
    }
    ExitCode::from(exit_status(&result))
}

fn prepare(flags: &EmulateFlags) -> Result<(EmulationPlan, EmulationOptions), String> {
    let plan = EmulationPlan::parse(&read_text(&flags.plan)?)
        .map_err(|errors| listed(&flags.plan, &errors))?;
    let duration = match &flags.duration {
        Some(text) => read_time("--duration", text)?,
        None => Duration::MAX,
    };
    let options = EmulationOptions {
        interfaces: bind(&plan.ports, &flags.port)?,
        backend: flags.backend.into(),
        duration,
        linger: read_time("--linger", &flags.linger)?,
        flows_max: flags.flows_max as usize,
        seed: flags.seed,
        force_interface: flags.force_interface,
    };
    Ok((plan, options))
}

fn exit_status(result: &EmulationResult) -> u8 {
    let is_short = result.ports.iter().any(|port| {
        let flows = &port.flows;
        port.failed + port.missed + flows.failed + flows.overflow + flows.tuple_in_use > 0
    });
    if !result.errors.is_empty() {
        status::FAILED
    } else if !result.interrupted && is_short {
        status::SHORT
    } else {
        0
    }
}
