//! `wirestorm agent`: executes the runs of tests on this machine.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Args, Subcommand};
use wirestorm_api::session::Limits;
use wirestorm_bus::Bus;
use wirestorm_control::clock;
use wirestorm_control::namespace::Namespace;
use wirestorm_control::plan::edit::parse_prefix;
use wirestorm_control::sync::{PtpMonitor, StampReflector, stamp};
use wirestorm_control::wire::prefix::Prefix;
use wirestorm_serve::cluster::{Agent, AgentOptions};
use wirestorm_serve::{Server, ServerOptions};

use crate::bus::BusFlags;
use crate::clock::{AgentPtpFlags, SourceFlags};
use crate::save::{DirectoryFlags, state_directory};
use crate::signals::Signals;
use crate::status;
use crate::traffic::usage;

const EXAMPLES: &str = "\
Examples:
  wirestorm agent --bus-credentials tokyo.json
  wirestorm agent --bus-credentials tokyo.json --interface eth1 --max-rate 1000000
      lends one interface, for at most 1 Mpps
  wirestorm agent --bus-credentials tokyo.json --ptp eth2 --ptp-role master
      is the PTP master of agents with --ptp on the network of eth2
  wirestorm agent unit > /etc/systemd/system/wirestorm-agent.service";

const UNIT_EXAMPLES: &str = "\
Examples:
  install -D -m 600 tokyo.json /etc/wirestorm/agent.json
  wirestorm agent unit > /etc/systemd/system/wirestorm-agent.service
  systemctl daemon-reload && systemctl enable --now wirestorm-agent

The agent runs as a user of its own with five capabilities: CAP_NET_RAW,
CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON, CAP_NET_BIND_SERVICE. Its flags are in
/etc/default/wirestorm-agent:
  WIRESTORM_FLAGS=--interface eth1
`wirestorm doctor` checks the installed unit.";

/// Execute the runs of tests on this machine
///
/// The agent connects to the bus and waits for orders of directors. It obeys only directors whose
/// keys are in its credentials or given with --trust-director. It stops sending if the director is
/// gone for longer than the lease.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct AgentFlags {
    #[command(subcommand)]
    command: Option<AgentCommand>,

    #[command(flatten)]
    bus: BusFlags,

    /// Name of the agent [default: that of the credentials, or agent]
    #[arg(long, value_name = "NAME", help_heading = "Bus")]
    name: Option<String>,

    /// Public key of a director to obey, besides those of the credentials; repeatable
    #[arg(long, value_name = "KEY", help_heading = "Limits")]
    trust_director: Vec<String>,

    /// Interface that directors may use; repeatable [default: all]
    #[arg(long, value_name = "INTERFACE", help_heading = "Limits")]
    interface: Vec<String>,

    /// Maximum rate of a port in frames per second
    #[arg(long, value_name = "PPS", help_heading = "Limits")]
    max_rate: Option<u64>,

    /// Maximum rate of a port in bits per second, with preamble, gap and FCS
    #[arg(long, value_name = "BPS", help_heading = "Limits")]
    max_bits: Option<u64>,

    /// Destination that frames may have, such as 198.18.0.0/15; repeatable [default: all]
    ///
    /// With it, an agent sends only streams: their destinations are known before a run.
    #[arg(long, value_name = "PREFIX", help_heading = "Limits")]
    destination: Vec<String>,

    /// Address and UDP port that answers clock comparisons [default: 0.0.0.0:862]
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Clocks")]
    reflector: Option<SocketAddr>,

    /// Address by which other agents reach the reflector; repeatable
    ///
    /// Default: that of --reflector, or of this machine on the way to the bus.
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Clocks")]
    reflector_address: Vec<SocketAddr>,

    /// Answer no clock comparisons
    #[arg(long, conflicts_with_all = ["reflector", "reflector_address"], help_heading = "Clocks")]
    no_reflector: bool,

    /// Add an error to the clock, for tests: offset=1s,drift=50ppm,wander=20ppb,step=1s@10s,seed=1
    #[arg(long, value_name = "ERRORS", help_heading = "Clocks")]
    virtual_clock: Option<String>,

    #[command(flatten)]
    ptp: AgentPtpFlags,

    #[command(flatten)]
    sources: SourceFlags,

    #[command(flatten)]
    directory: DirectoryFlags,
}

#[derive(Subcommand, Debug)]
enum AgentCommand {
    /// Print the systemd unit of the agent
    Unit(UnitFlags),
}

/// Print the systemd unit of the agent
#[derive(Args, Debug)]
#[command(after_help = UNIT_EXAMPLES)]
struct UnitFlags {}

/// Runs the command.
pub(crate) fn run(flags: &AgentFlags) -> ExitCode {
    if let Some(AgentCommand::Unit(_)) = &flags.command {
        return crate::unit::AGENT.print();
    }
    let signals = Signals::catch();
    let stop = signals.stop_flag();
    let agent = match start(flags, &stop) {
        Ok(agent) => agent,
        Err(message) => return usage(message),
    };
    while !stop.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(agent);
    ExitCode::from(status::INTERRUPTED)
}

fn start(flags: &AgentFlags, stop: &AtomicBool) -> Result<Agent, String> {
    if let Some(text) = &flags.virtual_clock {
        let failed = |error: &dyn std::fmt::Display| format!("--virtual-clock: {error}");
        let options = text.parse().map_err(|error| failed(&error))?;
        clock::set_virtual(options).map_err(|error| failed(&error))?;
    }
    let member = flags.bus.member("agent", flags.name.as_deref().unwrap_or("agent"))?;
    let name = flags.name.clone().unwrap_or_else(|| member.name.clone());
    let reflector = match flags.no_reflector {
        true => None,
        false => {
            let any = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), stamp::PORT);
            let address = flags.reflector.unwrap_or(any);
            let reflector = StampReflector::start(&Namespace::Current, address);
            Some(reflector.map_err(|error| format!("--reflector: {error}"))?)
        }
    };
    let ptp = flags.ptp.options()?.map(PtpMonitor::start).transpose();
    let ptp = ptp.map_err(|error| format!("--ptp: {error}"))?;
    // Before the address on the way to the bus, whose name may be unknown until the bus is there.
    let bus: Arc<dyn Bus> = Arc::new(flags.bus.connect("agent", &name, stop)?);
    let mut addresses = flags.reflector_address.clone();
    if let Some(reflector) = &reflector
        && addresses.is_empty()
    {
        let address = reflector.address();
        let ip = match address.ip().is_unspecified() {
            true => flags.bus.local_address()?.ok_or(
                "no address of the reflector: name the one by which other agents reach this \
                 machine with --reflector ADDRESS:862",
            )?,
            false => address.ip(),
        };
        addresses.push(SocketAddr::new(ip, address.port()));
    }
    let state =
        state_directory().ok_or("no directory for the agent: set HOME or XDG_STATE_HOME")?;
    let directory: PathBuf = state.join("agent").join(&name);
    let server = Server::open(ServerOptions {
        ports: Vec::new(),
        directory: directory.clone(),
        runs_directory: flags.directory.directory()?,
        captures_bytes_max: 16 << 30,
        director: None,
    });
    let server = server.map_err(|error| error.to_string())?;
    let limits = Limits {
        ports: (!flags.interface.is_empty()).then(|| flags.interface.clone()),
        ports_max: None,
        pps_max: flags.max_rate,
        bps_max: flags.max_bits,
    };
    let destinations = flags.destination.iter();
    let destinations = destinations.map(|text| parse_prefix("destination", text));
    let destinations: Vec<Prefix> =
        destinations.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    let mut trusted = flags.trust_director.clone();
    trusted.extend(member.trusted);
    if trusted.is_empty() {
        return Err("no director to obey: name its public key with --trust-director KEY; \
                    `wirestorm cluster show` lists it"
            .to_owned());
    }
    let agent = Agent::start(AgentOptions {
        name: name.clone(),
        site: member.site,
        bus,
        server,
        trusted,
        limits,
        destinations,
        reflector,
        reflector_addresses: addresses.clone(),
        references: Some(flags.sources.options()?),
        ptp,
        orders_file: Some(directory.join("orders.json")),
        contents_directory: Some(directory.join("contents")),
        log: Box::new(|line| eprintln!("{line}")),
    });
    let agent = agent.map_err(|error| error.to_string())?;
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    eprintln!("Agent {name} waits for orders until Ctrl-C");
    if !addresses.is_empty() {
        eprintln!("Clock comparisons: UDP {}", addresses.join(", "));
    }
    Ok(agent)
}
