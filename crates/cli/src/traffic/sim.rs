//! `wirestorm sim`: simulates a plan in virtual time and writes the frames to capture files.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use wirestorm_control::base::time::Duration;
use wirestorm_control::emulation::{Part, SimulationOptions};
use wirestorm_control::plan::emulation::EmulationPlan;
use wirestorm_control::plan::load::{LoadedPlan, PlanKind, Profile};
use wirestorm_control::plan::traffic::{AutoAddresses, TrafficPlan};
use wirestorm_control::plan::trex::LowerOptions;
use wirestorm_control::plan::trex::stateful::StatefulOptions;
use wirestorm_control::traffic::{
    SimulateError, SimulateOptions, Simulated, simulate, simulate_trex,
};

use super::{SPEED, load, open, read_multiplier, read_speed, read_time, trex, usage};
use crate::files::CommandLineFiles;
use crate::number::{count_of, grouped};
use crate::save::SaveFlags;
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
      a TRex capture list, one flow of each capture";

/// Default frame limit for TRex profiles, as in TRex's simulator.
const PROFILE_PACKETS: u64 = 5_000;

/// Default time in which a simulation opens connections.
const EMULATION_DURATION: Duration = Duration::from_secs(10);
/// Default time in which stateful TRex profiles open connections, as in TRex's simulator.
const PROFILE_DURATION: Duration = Duration::from_secs(5);
/// Maximum simulated time for one flow of each capture of a TRex capture list.
const CAPTURES_DURATION_MAX: Duration = Duration::from_secs(3_600);
/// Time for open connections to finish after the load has ended.
const EMULATION_LINGER: Duration = Duration::from_secs(2);

/// Simulate a plan and write the frames to capture files
///
/// The command sends nothing and needs no privileges. The same plan gives the same bytes. For a
/// plan of clients and servers it simulates both sides and prints their counters.
///
/// It also accepts TRex profiles: Python, if the package wirestorm-trex is installed, and its JSON.
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

/// Flags for plans of clients and servers, and for stateful TRex profiles.
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

    #[command(flatten)]
    save: SaveFlags,
}

/// Flags for TRex profiles, as in TRex's simulator.
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
    /// Returns the capture file to write, if any.
    fn output(&self) -> Option<PathBuf> {
        self.output.clone().or_else(|| self.pcap.clone().flatten())
    }

    /// Returns whether the simulation runs the full load, instead of one connection of each
    /// template.
    fn is_full(&self) -> bool {
        let EmulationFlags { full, limit, .. } = self.emulation;
        full || limit.is_some() || self.duration.is_some()
    }

    /// Returns the speed of ports without `speed` in the plan.
    fn speed(&self) -> &str {
        self.speed.as_deref().unwrap_or(SPEED)
    }
}

/// Runs the command.
pub(crate) fn run(flags: &SimFlags) -> ExitCode {
    let arguments = trex::ProfileArguments {
        tunables: &flags.trex.tunables,
        direction: flags.trex.direction.unwrap_or(0),
        port_id: flags.trex.port_id.unwrap_or(0),
    };
    let plan =
        open(&flags.plan).and_then(|file| load(&flags.plan, file, PlanKind::Streams, &arguments));
    let outcome = plan.and_then(|plan| match plan {
        LoadedPlan::Streams(plan) => reject_trex_options(&flags.trex, &flags.plan)
            .and_then(|()| reject_profile_options(flags))
            .and_then(|()| run_plan(flags, &plan)),
        LoadedPlan::Emulation(plan) => reject_trex_options(&flags.trex, &flags.plan)
            .and_then(|()| run_emulation(flags, plan, EMULATION_DURATION)),
        LoadedPlan::Trex(profile) => run_profile(flags, profile),
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

/// Rejects options that only TRex profiles support.
fn reject_trex_options(flags: &TrexFlags, plan: &Path) -> Result<(), String> {
    let unused = trex::TrexOnlyOptions {
        tunables: !flags.tunables.is_empty(),
        ipv6: flags.ipv6,
        configuration: flags.cc.is_some(),
    };
    unused.reject(plan)
}

/// Returns the first given option.
fn first_given<const COUNT: usize>(options: [(&'static str, bool); COUNT]) -> Option<&'static str> {
    options.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option)
}

/// Returns the options of stateless TRex profiles, and whether each is given.
fn of_streams(flags: &TrexFlags) -> [(&'static str, bool); 3] {
    [
        ("--cores", flags.cores.is_some()),
        ("--direction", flags.direction.is_some()),
        ("--port-id", flags.port_id.is_some()),
    ]
}

/// Rejects options of stateless TRex profiles for a plan of flows.
fn reject_profile_options(flags: &SimFlags) -> Result<(), String> {
    let Some(option) = first_given(of_streams(&flags.trex)) else { return Ok(()) };
    Err(format!(
        "{option} requires a stateless TRex profile, found {}; remove the option",
        flags.plan.display()
    ))
}

/// Rejects options of streams for clients and servers.
fn reject_stream_options(flags: &SimFlags) -> Result<(), String> {
    let of_frames = [("--packets", flags.packets.is_some()), ("--speed", flags.speed.is_some())];
    let option = first_given(of_frames).or_else(|| first_given(of_streams(&flags.trex)));
    let Some(option) = option else { return Ok(()) };
    Err(format!(
        "{option} requires a plan of flows or a stateless profile, found clients and servers \
         in {}; use --limit or --duration to end connections",
        flags.plan.display()
    ))
}

/// Rejects options of clients and servers for streams.
fn reject_emulation_options(flags: &SimFlags) -> Result<(), String> {
    let EmulationFlags { full, limit, flows_max, rtt, interval, sample_flows, seed, json, save } =
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
        ("--save", save.is_given()),
        ("--ipv6", flags.trex.ipv6),
        ("--cc", flags.trex.cc.is_some()),
    ];
    let Some(option) = first_given(options) else { return Ok(()) };
    Err(format!(
        "{option} requires clients and servers, found streams in {}; use --packets or --duration \
         to end streams",
        flags.plan.display()
    ))
}

fn run_streams(flags: &SimFlags, json: &str) -> Result<ExitCode, String> {
    reject_emulation_options(flags)?;
    let (options, lower) = (profile_options(flags)?, lower_options(flags)?);
    Ok(print_report(simulate_trex(json, &lower, &options).map(|port| vec![port])))
}

fn run_plan(flags: &SimFlags, plan: &TrafficPlan) -> Result<ExitCode, String> {
    reject_emulation_options(flags)?;
    let duration = flags.duration.as_deref().map(|text| read_time("--duration", text));
    let options = options(flags, flags.packets, duration.transpose()?)?;
    let open =
        plan.flows.iter().filter(|flow| flow.auto_addresses != AutoAddresses::default()).count();
    if open > 0 {
        let note = format!(
            "Ethernet addresses with `auto`, in {} of {} flows, are zeros here: a run uses the \
             interface's address and resolves the next hop's",
            grouped(open as u64),
            grouped(plan.flows.len() as u64)
        );
        eprintln!("{}", wrapped("note: ", &note));
    }
    Ok(print_report(simulate(plan, &options)))
}

/// Simulates clients and servers. `usual_duration` is the default of `--duration`.
fn run_emulation(
    flags: &SimFlags,
    mut plan: EmulationPlan,
    usual_duration: Duration,
) -> Result<ExitCode, String> {
    reject_stream_options(flags)?;
    emulate::multiply(&mut plan, "--multiplier", &flags.multiplier)?;
    /// Default round-trip time between the sides.
    const ROUND_TRIP: &str = "20us";
    const FLOWS_MAX: u32 = 1_000_000;
    let EmulationFlags { limit, flows_max, rtt, interval, sample_flows, seed, json, save, .. } =
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
        watch: emulate::read_watch_options(interval, sample_flows.as_deref(), &plan)?,
        round_trip: read_time("--rtt", rtt.as_deref().unwrap_or(ROUND_TRIP))?,
        flows_max: flows_max.unwrap_or(FLOWS_MAX) as usize,
        seed: seed.unwrap_or(1),
    };
    emulate::sim::run(&flags.plan, &plan, &options, json.as_deref(), save)
}

/// Prints the files that the simulation wrote.
fn print_report(outcome: Result<Vec<Simulated>, SimulateError>) -> ExitCode {
    match outcome {
        Ok(simulated) => {
            for port in simulated {
                eprintln!(
                    "{}: {}, {} in {}",
                    port.port,
                    count_of(port.packets, "frame", "frames"),
                    count_of(port.bytes, "byte", "bytes"),
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

/// Parses the duration. As in TRex's simulator, a number without a unit is in seconds.
fn seconds_or_time(flags: &SimFlags) -> Result<Option<Duration>, String> {
    let duration = match flags.duration.as_deref() {
        Some(text) if text.parse::<f64>().is_ok() => Some(format!("{text}s")),
        text => text.map(str::to_owned),
    };
    duration.map(|text| read_time("--duration", &text)).transpose()
}

/// Reads the limits as TRex's simulator does: 0 packets means no limit.
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
        return Err("a simulation requires an end: --packets N or --duration TIME".into());
    }
    let Some(output) = flags.output() else {
        return Err("a simulation of frames requires --output FILE".into());
    };
    Ok(SimulateOptions {
        output,
        packets: packets.unwrap_or(u64::MAX),
        duration: duration.unwrap_or(Duration::MAX),
        speed: read_speed("--speed", flags.speed())?,
        multiplier: read_multiplier("--multiplier", &flags.multiplier)?,
    })
}
