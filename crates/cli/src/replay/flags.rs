//! Flags of `wirestorm replay`. Flags from tcpreplay keep their names, letters and meanings.

use std::path::PathBuf;

use clap::{ArgAction, Args};
use wirestorm_control::backend::Backend;

use super::edit_flags::EditFlags;
use crate::metrics::MetricsFlags;

const EXAMPLES: &str = "\
Examples:
  wirestorm replay -i eth1 -t -K --loop 50 traffic.pcap
      as fast as possible, 50 times, from memory
  wirestorm replay -i eth1 --mbps 7000 --unique-ip --loop 50 traffic.pcapng.zst
      at 7 Gb/s, with new addresses and new flows in each pass
  wirestorm replay -i netns/a:veth0 --rx netns/b:veth1 --verify traffic.pcap
      with the capture's timing; compares what arrives with what was sent
  wirestorm replay -i eth1 -I eth2 --split auto --enet-dmac 02:00:00:00:00:01,02:00:00:00:00:02 t.pcap
      clients on eth1, servers on eth2

Exit status: 0 done; 1 failed; 2 wrong input or usage; 3 target missed.";

/// Replays captures onto an interface, as fast as possible, at a set rate or with capture timing.
// A repeated flag takes its last value, so that the command line overrides the options file.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, args_override_self = true)]
pub(crate) struct ReplayFlags {
    /// Captures (pcap, pcapng, gzip, zstd), directories, or - for stdin
    #[arg(value_name = "FILE", num_args = 1..=1024)]
    pub(crate) captures: Vec<PathBuf>,

    /// Interface to send on: eth1 or netns/NAME:veth0
    #[arg(short = 'i', long, value_name = "INTERFACE")]
    pub(crate) intf1: Option<String>,

    /// Interface for server traffic (with --cachefile, --dualfile or --split)
    #[arg(short = 'I', long, value_name = "INTERFACE", requires = "side")]
    pub(crate) intf2: Option<String>,

    /// Client and server sides from a tcpprep file
    ///
    /// Needs --intf2, or edits that differ by side.
    #[arg(short = 'c', long, value_name = "FILE", group = "side")]
    pub(crate) cachefile: Option<PathBuf>,

    /// Pairs of captures: first the client side, then the server side
    #[arg(short = '2', long, group = "side", requires = "intf2")]
    pub(crate) dualfile: bool,

    /// Rule for sides: auto, first, port, port:LIST, cidr:LIST or mac:LIST
    ///
    /// Needs --intf2, or edits that differ by side.
    #[arg(long, value_name = "RULE", group = "side")]
    pub(crate) split: Option<String>,

    /// Swap client and server sides of --split
    #[arg(long, requires = "split")]
    pub(crate) split_reverse: bool,

    /// Treat non-IP packets as client packets (with --split)
    #[arg(long, requires = "split")]
    pub(crate) nonip: bool,

    /// Write frames to a capture file instead of an interface
    #[arg(short = 'w', long, value_name = "FILE", conflicts_with_all = ["intf2", "rx"])]
    pub(crate) write: Option<PathBuf>,

    /// Send even on the interface of the default route
    #[arg(long)]
    pub(crate) force_interface: bool,

    #[command(flatten)]
    pub(crate) pace: PaceFlags,

    #[command(flatten)]
    pub(crate) select: SelectFlags,

    #[command(flatten)]
    pub(crate) flows: FlowFlags,

    #[command(flatten)]
    pub(crate) edits: EditFlags,

    #[command(flatten)]
    pub(crate) receive: ReceiveFlags,

    #[command(flatten)]
    pub(crate) output: OutputFlags,

    #[command(flatten)]
    pub(crate) options: OptionsFlags,

    #[command(flatten)]
    pub(crate) compatibility: CompatibilityFlags,
}

/// Flags for the rate and for late frames.
#[derive(Args, Debug)]
#[command(next_help_heading = "Rate")]
pub(crate) struct PaceFlags {
    /// Send as fast as possible
    #[arg(short = 't', long, group = "pace")]
    pub(crate) topspeed: bool,

    /// Use capture timing, N times faster
    #[arg(short = 'x', long, value_name = "N", group = "pace")]
    pub(crate) multiplier: Option<String>,

    /// Packets per second; fractions allowed
    #[arg(short = 'p', long, value_name = "PPS", group = "pace")]
    pub(crate) pps: Option<String>,

    /// Mbit/s of frames without FCS; 0: as fast as possible
    #[arg(short = 'M', long, value_name = "MBPS", group = "pace")]
    pub(crate) mbps: Option<String>,

    /// Mbit/s on the wire: with FCS, preamble and inter-frame gap
    #[arg(long, value_name = "MBPS", group = "pace")]
    pub(crate) mbps_l1: Option<String>,

    /// Prompt for the number of packets to send next
    #[arg(short = 'o', long, group = "pace")]
    pub(crate) oneatatime: bool,

    /// Packets sent back to back in each --pps interval
    #[arg(long, value_name = "N", default_value_t = 1, requires = "pps",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pps_multi: u32,

    /// Limit gaps to this many milliseconds; 0: no limit
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub(crate) maxsleep: u64,

    /// Late frames: bounded:MS, bounded:unlimited, strict:MS or stretch
    ///
    /// bounded:MS (default 1) sends frames that are at most MS late at once. The others leave at up
    /// to 8 times the rate until the schedule is met. bounded:unlimited sends all late frames at
    /// once. strict:MS skips frames that are more than MS late. stretch moves the schedule.
    #[arg(long, value_name = "POLICY", default_value = "bounded")]
    pub(crate) catch_up: String,

    /// Allowed rate error in percent; more gives exit status 3
    #[arg(long, value_name = "PERCENT", default_value = "1")]
    pub(crate) tolerance: String,

    /// Backend that sends and receives frames
    #[arg(long, value_parser = crate::backend::sending(), default_value = "auto")]
    pub(crate) backend: Backend,

    /// Number of sending threads; flows are divided among them
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) workers: u16,
}

/// Flags for the packets and the number of passes.
#[derive(Args, Debug)]
#[command(next_help_heading = "Packets")]
pub(crate) struct SelectFlags {
    /// Replay all captures N times; 0: until interrupted
    #[arg(short = 'l', long = "loop", value_name = "N", default_value_t = 1)]
    pub(crate) passes: u64,

    /// Milliseconds between loops
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub(crate) loopdelay_ms: u64,

    /// Nanoseconds between loops
    #[arg(long, value_name = "NS", default_value_t = 0, conflicts_with = "loopdelay_ms")]
    pub(crate) loopdelay_ns: u64,

    /// Stop after N packets
    #[arg(short = 'L', long, value_name = "N")]
    pub(crate) limit: Option<u64>,

    /// Stop after N seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) duration: Option<String>,

    /// Send only these packets of each file: 1-5,9,72-
    #[arg(long, value_name = "LIST", conflicts_with = "exclude")]
    pub(crate) include: Option<String>,

    /// Skip these packets of each file: 1-5,9,72-
    #[arg(long, value_name = "LIST")]
    pub(crate) exclude: Option<String>,

    /// Read all captures into memory before sending
    #[arg(short = 'K', long)]
    pub(crate) preload_pcap: bool,

    /// Send the original length; pad truncated packets with zeros
    #[arg(long)]
    pub(crate) pktlen: bool,
}

/// Flags for flow statistics and for new flows in each pass.
#[derive(Args, Debug)]
#[command(next_help_heading = "Flows")]
pub(crate) struct FlowFlags {
    /// Change IP addresses in every loop; fix checksums
    #[arg(long, conflicts_with_all = ["seed", "fuzz_seed"])]
    pub(crate) unique_ip: bool,

    /// Change addresses every N loops only; fractions allowed
    #[arg(long, value_name = "N")]
    pub(crate) unique_ip_loops: Option<String>,

    /// Change IP addresses and ephemeral ports in every loop
    #[arg(long, conflicts_with_all = ["seed", "fuzz_seed"])]
    pub(crate) unique_flows: bool,

    /// Do not count flows
    #[arg(long)]
    pub(crate) no_flow_stats: bool,

    /// Idle seconds after which a flow counts as new; 0: never
    #[arg(long, value_name = "SECONDS", default_value_t = 0, conflicts_with = "no_flow_stats")]
    pub(crate) flow_expiry: u64,
}

/// Flags for received frames.
#[derive(Args, Debug)]
#[command(next_help_heading = "Receiving")]
pub(crate) struct ReceiveFlags {
    /// Count and time frames that arrive here; they do not reach the host
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) rx: Option<String>,

    /// Compare content and order of received frames with sent frames
    #[arg(long, requires = "rx")]
    pub(crate) verify: bool,
}

/// Flags for the output.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputFlags {
    /// Write the result as JSON to a file; `-`: to stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) metrics: MetricsFlags,

    /// Print only the result
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,

    /// Print each packet that is sent
    #[arg(short = 'v', long)]
    pub(crate) verbose: bool,

    /// Print packets with tcpdump and these arguments
    #[arg(
        short = 'A',
        long,
        value_name = "ARGUMENTS",
        requires = "verbose",
        allow_hyphen_values = true
    )]
    pub(crate) decode: Option<String>,

    /// Print statistics every N seconds; 0: after each loop
    #[arg(long, value_name = "SECONDS")]
    pub(crate) stats: Option<u64>,

    /// Print no warnings
    #[arg(short = 'W', long)]
    pub(crate) suppress_warnings: bool,

    /// Print the process ID at startup
    #[arg(short = 'P', long)]
    pub(crate) pid: bool,
}

/// Flags for options files and help.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options files and help")]
pub(crate) struct OptionsFlags {
    /// Read options from a file; the command line overrides them
    #[arg(long, value_name = "FILE")]
    pub(crate) load_opts: Option<PathBuf>,

    /// Write the options to a file and exit
    #[arg(long, value_name = "FILE")]
    pub(crate) save_opts: Option<PathBuf>,

    /// List network interfaces and exit
    #[arg(long)]
    pub(crate) listnics: bool,

    /// Print the full help
    #[arg(short = 'H', long, action = ArgAction::HelpLong)]
    more_help: Option<bool>,
}

/// Flags for compatibility with tcpreplay's scripts.
#[derive(Args, Debug)]
#[command(next_help_heading = "For tcpreplay's scripts")]
pub(crate) struct CompatibilityFlags {
    /// Ignored: Wirestorm has one clock
    #[arg(short = 'T', long, value_name = "METHOD",
          value_parser = ["gtod", "select", "nano", "ioport"])]
    pub(crate) timer: Option<String>,

    /// Ignored: use --backend
    #[arg(long)]
    pub(crate) netmap: bool,

    /// Ignored
    #[arg(long, value_name = "SECONDS")]
    pub(crate) nm_delay: Option<u64>,

    /// Same as --backend af_xdp
    #[arg(long, conflicts_with_all = ["netmap", "backend"])]
    pub(crate) xdp: bool,

    /// Ignored
    #[arg(long, value_name = "1-4096")]
    pub(crate) xdp_batch_size: Option<u32>,

    /// Ignored
    #[arg(short = 'd', long, value_name = "0-5")]
    pub(crate) dbug: Option<u32>,
}
