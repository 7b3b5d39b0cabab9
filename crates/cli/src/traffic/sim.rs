//! `wirestorm sim`: what exactly would be sent, and when, without sending it.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use wirestorm_control::base::time::Duration;
use wirestorm_control::emulation::{Part, SimulationOptions};
use wirestorm_control::plan::emulation::EmulationPlan;
use wirestorm_control::plan::load::{Loaded, Profile};
use wirestorm_control::plan::traffic::{FoundAddresses, TrafficPlan};
use wirestorm_control::plan::trex::LowerOptions;
use wirestorm_control::plan::trex::stateful::StatefulOptions;
use wirestorm_control::traffic::{
    SimulateError, SimulateOptions, Simulated, simulate, simulate_trex,
};

use super::{SPEED, load, read_multiplier, read_speed, read_time, trex, usage};
use crate::files::CommandLineFiles;
use crate::number::{grouped, several};
use crate::wrap::wrapped;
use crate::{emulate, status};

const EXAMPLES: &str = "\
Examples:
  wirestorm sim plan.yaml -o out.pcap --packets 1000
  wirestorm sim plan.yaml -o out.pcap --duration 10ms
  wirestorm sim plan.yaml -o /dev/stdout --packets 5 | tcpdump -nr -
  wirestorm sim trex_profile.py -o out.pcap -l 100 -m 2 -t --size 128
  wirestorm sim pages.yaml -o out.pcap
      one connection of each template, as out.clients.pcap and out.servers.pcap
  wirestorm sim stateful_profile.py --full --duration 5s --json result.json
  wirestorm sim cap2/dns.yaml -o out.pcap
      a list of captures of TRex's, each said once";

/// Frames of a profile of TRex's where no end is given, as in TRex's simulator.
const PROFILE_PACKETS: u64 = 5_000;

/// How long connections are made where nothing is said.
const EMULATION_DURATION: Duration = Duration::from_secs(10);
/// The same of TRex's stateful profiles, as in TRex's simulator.
const PROFILE_DURATION: Duration = Duration::from_secs(5);
/// How long one flow of each of TRex's captures may take.
const CAPTURES_DURATION_MAX: Duration = Duration::from_secs(3_600);
/// How long they may take to end after that.
const EMULATION_LINGER: Duration = Duration::from_secs(2);

/// Writes what a plan would send, with the times at which it would leave, to capture files.
///
/// Nothing is sent, no privilege is needed, and time is simulated: the same plan gives the same
/// bytes. Of a plan of clients and servers both sides talk to each other, and what they counted
/// is told. TRex's profiles are taken as well: Python, where the package wirestorm-trex is
/// installed, and the JSON that it becomes.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SimFlags {
    /// Plan in YAML or JSON, or a TRex profile; `-` for stdin
    #[arg(value_name = "PLAN")]
    plan: PathBuf,

    /// Capture file; several ports: one file each, with the port name
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Same as --output; without a file, ignored (TRex simulator option)
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pcap: Option<Option<PathBuf>>,

    /// Maximum frames of each port [TRex profiles: 5000]
    #[arg(short = 'l', long, value_name = "N")]
    packets: Option<u64>,

    /// Simulated time; TRex profiles: seconds
    #[arg(short, long, value_name = "TIME")]
    duration: Option<String>,

    /// Speed in bit/s of ports without `speed` in the plan [default: 10G]
    #[arg(long, value_name = "RATE")]
    speed: Option<String>,

    /// Factor (2, 0.5) or load of a port: 50%, 10kpps, 1gbps [default: 1]
    #[arg(
        short,
        long,
        alias = "mult",
        value_name = "MULT",
        default_value = "1",
        allow_negative_numbers = true
    )]
    multiplier: String,

    #[command(flatten)]
    emulation: EmulationFlags,

    #[command(flatten)]
    trex: TrexFlags,
}

/// What only plans of clients and servers take, and TRex's stateful profiles.
#[derive(Args, Debug)]
#[command(next_help_heading = "For clients and servers")]
struct EmulationFlags {
    /// Simulate the full load instead of one connection of each template
    #[arg(long)]
    full: bool,

    /// Maximum connections of each template
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,

    /// Maximum concurrent connections on each port [default: 1000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16_000_000))]
    flows_max: Option<u32>,

    /// Round-trip time between the sides [default: 20us]
    #[arg(long, value_name = "TIME")]
    rtt: Option<String>,

    /// Interval of the time series in the result [default: 1s]
    #[arg(long, value_name = "TIME")]
    interval: Option<String>,

    /// Sample N connections of each port, as `wirestorm emulate`
    #[arg(long, value_name = "N[,WHICH]")]
    sample_flows: Option<String>,

    /// Seed for sequence numbers and random values [default: 1]
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,

    /// Write the result as JSON to a file; `-`: to stdout, without the table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What only TRex's profiles take, as TRex's simulator does.
#[derive(Args, Debug)]
#[command(next_help_heading = "For TRex's profiles")]
struct TrexFlags {
    /// Number of cores that share the streams [default: 1]
    #[arg(short, long, value_name = "N")]
    cores: Option<NonZeroU64>,

    /// Arguments for the profile; must be the last option
    #[arg(short, long, num_args = 1.., allow_hyphen_values = true, value_name = "ARG")]
    tunables: Vec<String>,

    /// Direction of a stateless profile [default: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=1))]
    direction: Option<u8>,

    /// Port of a stateless profile [default: 0]
    #[arg(long, value_name = "N")]
    port_id: Option<u32>,

    /// Run a stateful profile over IPv6
    #[arg(long)]
    ipv6: bool,

    /// TRex client configuration file (YAML)
    #[arg(long, aliases = ["client-cfg", "client_cfg"], value_name = "FILE")]
    cc: Option<PathBuf>,
}

impl SimFlags {
    /// Where to write to.
    fn output(&self) -> Option<PathBuf> {
        self.output.clone().or_else(|| self.pcap.clone().flatten())
    }

    /// Whether connections are made at their rates, and not one of each template.
    fn is_full(&self) -> bool {
        let EmulationFlags { full, limit, .. } = self.emulation;
        full || limit.is_some() || self.duration.is_some()
    }

    /// The speed of ports where nobody says.
    fn speed(&self) -> &str {
        self.speed.as_deref().unwrap_or(SPEED)
    }
}

/// Runs the command.
pub(crate) fn run(flags: &SimFlags) -> ExitCode {
    let asked = trex::Asked {
        tunables: &flags.trex.tunables,
        direction: flags.trex.direction.unwrap_or(0),
        port_id: flags.trex.port_id.unwrap_or(0),
    };
    let outcome = load(&flags.plan, &asked).and_then(|plan| match plan {
        Loaded::Streams(plan) => refuse(&flags.trex, &flags.plan)
            .and_then(|()| refuse_profile(flags))
            .and_then(|()| run_plan(flags, &plan)),
        Loaded::Emulation(plan) => refuse(&flags.trex, &flags.plan)
            .and_then(|()| run_emulation(flags, plan, EMULATION_DURATION)),
        Loaded::Trex(profile) => run_profile(flags, profile),
    });
    outcome.unwrap_or_else(usage)
}

/// Runs a TRex profile.
fn run_profile(flags: &SimFlags, profile: Profile) -> Result<ExitCode, String> {
    let options = StatefulOptions { ipv6: flags.trex.ipv6, pairs: 1 };
    let clients = flags.trex.cc.as_deref();
    match profile {
        Profile::Python => unreachable!("a program was run"),
        Profile::Streams(json) => run_streams(flags, &json),
        Profile::Stateful(json) => {
            let plan = emulate::read_stateful(&flags.plan, &json, &options, clients)?;
            run_emulation(flags, plan, PROFILE_DURATION)
        }
        Profile::Captures(text) => {
            let captures = emulate::read_captures(&flags.plan, &text, &options, clients)?;
            // One flow of each capture is over when the capture is.
            let usual = match captures.duration {
                _ if !flags.is_full() => CAPTURES_DURATION_MAX,
                usual => usual.unwrap_or(EMULATION_DURATION),
            };
            run_emulation(flags, captures.plan, usual)
        }
    }
}

/// Refuses what a plan of ours has no use for.
fn refuse(flags: &TrexFlags, plan: &Path) -> Result<(), String> {
    let unused = trex::Unused {
        tunables: !flags.tunables.is_empty(),
        ipv6: flags.ipv6,
        configuration: flags.cc.is_some(),
    };
    unused.refuse(plan)
}

/// The first of options that was given.
fn given<const COUNT: usize>(options: [(&'static str, bool); COUNT]) -> Option<&'static str> {
    options.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option)
}

/// What only TRex's stateless profiles take.
fn of_streams(flags: &TrexFlags) -> [(&'static str, bool); 3] {
    [
        ("--cores", flags.cores.is_some()),
        ("--direction", flags.direction.is_some()),
        ("--port-id", flags.port_id.is_some()),
    ]
}

/// Refuses what a plan of frames of ours has no use for, beside what no plan of ours has.
fn refuse_profile(flags: &SimFlags) -> Result<(), String> {
    let Some(option) = given(of_streams(&flags.trex)) else { return Ok(()) };
    Err(format!(
        "{option}: found with {}, expected with a stateless profile of TRex's alone; leave it out",
        flags.plan.display()
    ))
}

/// Refuses what clients and servers have no use for.
fn refuse_streams(flags: &SimFlags) -> Result<(), String> {
    let of_frames = [("--packets", flags.packets.is_some()), ("--speed", flags.speed.is_some())];
    let option = given(of_frames).or_else(|| given(of_streams(&flags.trex)));
    let Some(option) = option else { return Ok(()) };
    Err(format!(
        "{option}: found with {}, which is of clients and servers, expected with frames of streams \
         alone; leave it out: --limit and --duration say where connections end",
        flags.plan.display()
    ))
}

/// Refuses what frames of streams have no use for.
fn refuse_emulation(flags: &SimFlags) -> Result<(), String> {
    let EmulationFlags { full, limit, flows_max, rtt, interval, sample_flows, seed, json } =
        &flags.emulation;
    let options = [
        ("--full", *full),
        ("--limit", limit.is_some()),
        ("--flows-max", flows_max.is_some()),
        ("--rtt", rtt.is_some()),
        ("--interval", interval.is_some()),
        ("--sample-flows", sample_flows.is_some()),
        ("--seed", seed.is_some()),
        ("--json", json.is_some()),
        ("--ipv6", flags.trex.ipv6),
        ("--cc", flags.trex.cc.is_some()),
    ];
    let Some(option) = given(options) else { return Ok(()) };
    Err(format!(
        "{option}: found with {}, which is of frames of streams, expected with clients and servers \
         alone; leave it out: --packets and --duration say where streams end",
        flags.plan.display()
    ))
}

fn run_streams(flags: &SimFlags, json: &str) -> Result<ExitCode, String> {
    refuse_emulation(flags)?;
    let (options, lower) = (profile_options(flags)?, lower_options(flags)?);
    Ok(tell(simulate_trex(json, &lower, &options).map(|port| vec![port])))
}

fn run_plan(flags: &SimFlags, plan: &TrafficPlan) -> Result<ExitCode, String> {
    refuse_emulation(flags)?;
    let duration = flags.duration.as_deref().map(|text| read_time("--duration", text));
    let options = options(flags, flags.packets, duration.transpose()?)?;
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
    Ok(tell(simulate(plan, &options)))
}

/// `usual_duration`: how long connections are made where nobody says.
fn run_emulation(
    flags: &SimFlags,
    mut plan: EmulationPlan,
    usual_duration: Duration,
) -> Result<ExitCode, String> {
    refuse_streams(flags)?;
    emulate::multiply(&mut plan, "--multiplier", &flags.multiplier)?;
    /// How long a frame takes to the other side and back where nothing is said.
    const ROUND_TRIP: &str = "20us";
    const FLOWS_MAX: u32 = 1_000_000;
    let EmulationFlags { limit, flows_max, rtt, interval, sample_flows, seed, json, .. } =
        &flags.emulation;
    let interval = interval.as_deref().unwrap_or(emulate::INTERVAL);
    let options = SimulationOptions {
        folder: flags.plan.parent().unwrap_or(Path::new("")).to_owned(),
        files: CommandLineFiles::shared(),
        output: flags.output(),
        part: if flags.is_full() { Part::Full } else { Part::One },
        limit: *limit,
        duration: seconds_or_time(flags)?.unwrap_or(usual_duration),
        drain_timeout: EMULATION_LINGER,
        watch: emulate::read_watch(interval, sample_flows.as_deref(), &plan)?,
        round_trip: read_time("--rtt", rtt.as_deref().unwrap_or(ROUND_TRIP))?,
        flows_max: flows_max.unwrap_or(FLOWS_MAX) as usize,
        seed: seed.unwrap_or(1),
    };
    emulate::sim::run(&flags.plan, &plan, &options, json.as_deref())
}

/// Says what was written.
fn tell(outcome: Result<Vec<Simulated>, SimulateError>) -> ExitCode {
    match outcome {
        Ok(simulated) => {
            for port in simulated {
                eprintln!(
                    "{}: {}, {} in {}",
                    port.port,
                    several(port.packets, "frame", "frames"),
                    several(port.bytes, "byte", "bytes"),
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
    let line_rate = read_speed("--speed", flags.speed())?;
    let cores = flags.trex.cores.unwrap_or(NonZeroU64::MIN);
    Ok(LowerOptions { multiplier, line_rate, cores, ..LowerOptions::simulator() })
}

/// The duration, as TRex's simulator reads it: seconds without a unit.
fn seconds_or_time(flags: &SimFlags) -> Result<Option<Duration>, String> {
    let duration = match flags.duration.as_deref() {
        Some(text) if text.parse::<f64>().is_ok() => Some(format!("{text}s")),
        text => text.map(str::to_owned),
    };
    duration.map(|text| read_time("--duration", &text)).transpose()
}

/// As TRex's simulator reads them: no frames for any number of them.
fn profile_options(flags: &SimFlags) -> Result<SimulateOptions, String> {
    let duration = seconds_or_time(flags)?;
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
    let Some(output) = flags.output() else {
        return Err("a simulation of frames needs a file to write them to: --output FILE".into());
    };
    Ok(SimulateOptions {
        output,
        packets: packets.unwrap_or(u64::MAX),
        duration: duration.unwrap_or(Duration::MAX),
        speed: read_speed("--speed", flags.speed())?,
        multiplier: read_multiplier("--multiplier", &flags.multiplier)?,
    })
}
