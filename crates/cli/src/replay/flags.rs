//! The flags of `wirestorm replay`, as they are typed.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Replays captures onto an interface, as fast as it goes, at a set rate or as captured.
#[derive(Args, Debug)]
pub(crate) struct ReplayFlags {
    /// Captures (pcap, pcapng; gzip and zstd too), directories of them, or - for standard input.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) captures: Vec<PathBuf>,

    /// Interface to send on: veth0, or netns/NAME:veth0 for one in another namespace.
    #[arg(short = 'i', long, value_name = "INTERFACE")]
    pub(crate) intf1: Option<String>,

    /// Interface for the server side.
    #[arg(short = 'I', long, value_name = "INTERFACE")]
    pub(crate) intf2: Option<String>,

    /// As fast as it goes.
    #[arg(short = 't', long, group = "pace")]
    pub(crate) topspeed: bool,

    /// Capture timing, N times as fast.
    #[arg(short = 'x', long, value_name = "N", group = "pace")]
    pub(crate) multiplier: Option<String>,

    /// Packets a second.
    #[arg(short = 'p', long, value_name = "PPS", group = "pace")]
    pub(crate) pps: Option<String>,

    /// Megabits a second of frames without FCS; 0 is top speed.
    #[arg(short = 'M', long, value_name = "MBPS", group = "pace")]
    pub(crate) mbps: Option<String>,

    /// Megabits a second on the wire: with FCS, preamble and inter-packet gap.
    #[arg(long, value_name = "MBPS", group = "pace")]
    pub(crate) mbps_l1: Option<String>,

    /// Packets sent back to back for each interval of --pps.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "pps")]
    pub(crate) pps_multi: u32,

    /// Cut longer gaps to this many milliseconds; 0: never.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub(crate) maxsleep: u64,

    /// Pass all captures N times; 0: until interrupted.
    #[arg(short = 'l', long, value_name = "N", default_value_t = 1)]
    pub(crate) r#loop: u64,

    /// Milliseconds between two passes.
    #[arg(long, value_name = "MS", default_value_t = 0, requires = "loop")]
    pub(crate) loopdelay_ms: u64,

    /// Nanoseconds between two passes.
    #[arg(
        long,
        value_name = "NS",
        default_value_t = 0,
        requires = "loop",
        conflicts_with = "loopdelay_ms"
    )]
    pub(crate) loopdelay_ns: u64,

    /// Stop after N packets.
    #[arg(short = 'L', long, value_name = "N")]
    pub(crate) limit: Option<u64>,

    /// Stop after so many seconds.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) duration: Option<String>,

    /// Read all captures before the first packet is sent.
    #[arg(short = 'K', long)]
    pub(crate) preload_pcap: bool,

    /// Other addresses in every pass; checksums stay valid.
    #[arg(long, requires = "loop")]
    pub(crate) unique_ip: bool,

    /// Other addresses only every N passes; fractions too.
    #[arg(long, value_name = "N", requires = "unique_ip")]
    pub(crate) unique_ip_loops: Option<String>,

    /// Other addresses and ephemeral ports in every pass.
    #[arg(long, requires = "loop")]
    pub(crate) unique_flows: bool,

    /// Do not count flows.
    #[arg(long)]
    pub(crate) no_flow_stats: bool,

    /// Seconds of idleness after which the same addresses are a new flow; 0: never.
    #[arg(long, value_name = "SECONDS", default_value_t = 0, conflicts_with = "no_flow_stats")]
    pub(crate) flow_expiry: u64,

    /// What carries the frames.
    #[arg(long, value_enum, default_value_t = BackendFlag::Auto)]
    pub(crate) backend: BackendFlag,

    /// Threads that send, each with flows of its own.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) workers: u16,

    /// Send on an interface with the default route too.
    #[arg(long)]
    pub(crate) force_interface: bool,

    /// Count and time what arrives on this interface, which is then the end of the line for it.
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) rx: Option<String>,

    /// Compare content and order of what arrives with what was sent.
    #[arg(long, requires = "rx")]
    pub(crate) verify: bool,

    /// Write the frames to a capture file instead of sending them.
    #[arg(short = 'w', long, value_name = "FILE", conflicts_with_all = ["intf2", "rx"])]
    pub(crate) write: Option<PathBuf>,

    /// Write the result as JSON to a file, or - for standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Print the result only.
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,
}

/// What carries the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BackendFlag {
    /// The best that works on the interface.
    Auto,
    /// Nothing: frames end in memory.
    Memory,
    /// AF_PACKET sockets.
    #[value(name = "af_packet", alias = "af-packet")]
    AfPacket,
    /// AF_XDP sockets.
    #[value(name = "af_xdp", alias = "af-xdp")]
    AfXdp,
    /// The in-kernel sender.
    Xdp,
}
