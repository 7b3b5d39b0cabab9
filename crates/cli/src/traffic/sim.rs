//! `wirestorm sim`: what exactly would be sent, and when, without sending it.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use wirestorm_control::base::time::Duration;
use wirestorm_control::plan::traffic::FoundAddresses;
use wirestorm_control::plan::trex::LowerOptions;
use wirestorm_control::traffic::{
    SimulateError, SimulateOptions, Simulated, simulate, simulate_trex,
};

use super::{SPEED, read_multiplier, read_plan, read_speed, read_time, trex, usage};
use crate::number::grouped;
use crate::status;
use crate::wrap::wrapped;

const EXAMPLES: &str = "\
Examples:
  wirestorm sim plan.yaml -o out.pcap --packets 1000
  wirestorm sim plan.yaml -o out.pcap --duration 10ms
  wirestorm sim plan.yaml -o /dev/stdout --packets 5 | tcpdump -nr -
  wirestorm sim trex_profile.py -o out.pcap -l 100 -m 2 -t --size 128";

/// Frames of a profile of TRex's where no end is given, as in TRex's simulator.
const PROFILE_PACKETS: u64 = 5_000;

/// Writes what a plan would send, with the times at which it would leave, to capture files.
///
/// Nothing is sent, no privilege is needed, and time is simulated: the same plan gives the same
/// bytes. TRex's profiles are taken as well: Python, where the package wirestorm-trex is
/// installed, and the JSON of their streams.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SimFlags {
    /// The plan, in YAML or JSON; `-`: standard input; or a profile of TRex's.
    #[arg(value_name = "PLAN")]
    plan: PathBuf,

    /// The capture file; with several transmitting ports, one for each with its name inserted.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Frames for each port at most; of a profile of TRex's 5000, where no end is given.
    #[arg(short = 'l', long, value_name = "N")]
    packets: Option<u64>,

    /// Simulated time at most; for a profile of TRex's a number by itself is seconds.
    #[arg(short, long, value_name = "TIME")]
    duration: Option<String>,

    /// Bits a second of ports whose speed the plan does not say.
    #[arg(long, value_name = "RATE", default_value = SPEED)]
    speed: String,

    /// What rates are multiplied by: a factor such as 2, or what all streams of a port are to
    /// send together: 50%, 10kpps, 1gbps (frames with FCS), 1gbpsl1 (all of the wire).
    #[arg(short, long, alias = "mult", value_name = "MULT", default_value = "1")]
    multiplier: String,

    #[command(flatten)]
    trex: TrexFlags,
}

/// What only TRex's profiles take, as TRex's simulator does.
#[derive(Args, Debug)]
#[command(next_help_heading = "For TRex's profiles")]
struct TrexFlags {
    /// Cores that the streams are shared among.
    #[arg(short, long, value_name = "N", default_value = "1")]
    cores: NonZeroU64,

    /// Arguments for the profile itself; all that follow.
    #[arg(short, long, num_args = 1.., allow_hyphen_values = true, value_name = "ARG")]
    tunables: Vec<String>,

    /// The direction that the profile is for.
    #[arg(long, value_name = "N", default_value_t = 0,
        value_parser = clap::value_parser!(u8).range(0..=1))]
    direction: u8,

    /// The port that the profile is for.
    #[arg(long, value_name = "N", default_value_t = 0)]
    port_id: u32,
}

/// Runs the command.
pub(crate) fn run(flags: &SimFlags) -> ExitCode {
    let asked = trex::Asked {
        tunables: &flags.trex.tunables,
        direction: flags.trex.direction,
        port_id: flags.trex.port_id,
    };
    if let Some(streams) = trex::streams(&flags.plan, &asked) {
        let understood =
            streams.and_then(|json| Ok((json, profile_options(flags)?, lower_options(flags)?)));
        return match understood {
            Ok((json, options, lower)) => {
                tell(simulate_trex(&json, &lower, &options).map(|port| vec![port]))
            }
            Err(message) => usage(message),
        };
    }
    let plan = match read_plan(&flags.plan) {
        Ok(plan) => plan,
        Err(message) => return usage(message),
    };
    let duration = flags.duration.as_deref().map(|text| read_time("--duration", text));
    let options = match duration.transpose().and_then(|end| options(flags, flags.packets, end)) {
        Ok(options) => options,
        Err(message) => return usage(message),
    };
    let open = plan.flows.iter().filter(|flow| flow.found != FoundAddresses::default()).count();
    if open > 0 {
        let note = format!(
            "Ethernet addresses that are auto, in {} of {} flows, are zeros here: a run fills in \
             the interface's own, and asks for the next hop's",
            grouped(open as u64),
            grouped(plan.flows.len() as u64)
        );
        eprintln!("{}", wrapped("note: ", &note));
    }
    tell(simulate(&plan, &options))
}

/// Says what was written.
fn tell(outcome: Result<Vec<Simulated>, SimulateError>) -> ExitCode {
    match outcome {
        Ok(simulated) => {
            for port in simulated {
                eprintln!(
                    "{}: {} frames, {} bytes in {}",
                    port.port,
                    grouped(port.packets),
                    grouped(port.bytes),
                    port.file.display()
                );
            }
            ExitCode::SUCCESS
        }
        Err(error @ (SimulateError::Plan(_) | SimulateError::Trex(_))) => usage(error),
        Err(error) => {
            eprintln!("wirestorm: {error}");
            ExitCode::from(status::FAILED)
        }
    }
}

fn lower_options(flags: &SimFlags) -> Result<LowerOptions, String> {
    let multiplier = read_multiplier("--multiplier", &flags.multiplier)?;
    let line_rate = read_speed("--speed", &flags.speed)?;
    let cores = flags.trex.cores;
    Ok(LowerOptions { multiplier, line_rate, cores, ..LowerOptions::simulator() })
}

/// As TRex's simulator reads them: seconds without a unit, no frames for any number of them.
fn profile_options(flags: &SimFlags) -> Result<SimulateOptions, String> {
    let duration = match flags.duration.as_deref() {
        Some(text) if text.parse::<f64>().is_ok() => Some(format!("{text}s")),
        text => text.map(str::to_owned),
    };
    let duration = duration.map(|text| read_time("--duration", &text)).transpose()?;
    let packets = match (flags.packets, duration) {
        (Some(0), _) => None,
        (None, None) => Some(PROFILE_PACKETS),
        (packets, _) => packets,
    };
    options(flags, packets, duration)
}

fn options(
    flags: &SimFlags,
    packets: Option<u64>,
    duration: Option<Duration>,
) -> Result<SimulateOptions, String> {
    if packets.is_none() && duration.is_none() {
        return Err("a simulation needs an end: --packets N or --duration TIME".into());
    }
    Ok(SimulateOptions {
        output: flags.output.clone(),
        packets: packets.unwrap_or(u64::MAX),
        duration: duration.unwrap_or(Duration::MAX),
        speed: read_speed("--speed", &flags.speed)?,
        multiplier: read_multiplier("--multiplier", &flags.multiplier)?,
    })
}
