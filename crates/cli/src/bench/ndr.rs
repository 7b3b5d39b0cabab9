//! Flags of `wirestorm bench ndr`.

use std::path::{Path, PathBuf};

use clap::Args;
use wirestorm_control::bench::{NamedTraffic, PlanTraffic, TrafficDefinition};
use wirestorm_control::files::Files;
use wirestorm_control::method::method::Method;
use wirestorm_control::method::ndr::{LatencyLimit, Ndr};
use wirestorm_control::plan::files;

use super::OutputFlags;
use super::bed::BedFlags;
use super::parameters::{Protocol, protocol_names, read_percent};
use crate::files::CommandLineFiles;
use crate::traffic::read_time;

const EXAMPLES: &str = "\
Examples:
  wirestorm bench ndr --tx eth1 --rx eth2 --bidirectional
  wirestorm bench ndr --tx eth1 --rx eth2 --pdr 0 --frame-sizes 64,1518 --iteration 10s
  wirestorm bench ndr --tx eth1 --rx eth2 --plan imix.yaml --max-load 2Mpps
  wirestorm bench ndr --tx eth1 --rx eth2 --capture traffic.pcap --max-load 500kpps
  wirestorm bench ndr --tx eth1 --rx eth2 --max-latency 1ms --latency-tolerance 1";

/// Name of the traffic of a plan.
const PLAN: &str = "plan";
/// Name of the traffic of a capture.
const CAPTURE: &str = "replay";

/// Search the non-drop rate, with the options of TRex's ndr
///
/// The first run offers the maximum load. Iterations of equal length then halve the range until it is
/// smaller than --pdr-error. The defaults are those of TRex.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct NdrFlags {
    /// Allowed drops, in percent of the frames sent; 0: the non-drop rate
    #[arg(long, value_name = "PERCENT", default_value_t = 0.1)]
    pdr: f64,

    /// Precision of the rate, in percent of the maximum rate
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    pdr_error: f64,

    /// Frames that the tester may fail to send or receive, in percent of the load
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0)]
    tester_limit: f64,

    /// Duration of an iteration
    #[arg(long, value_name = "TIME", default_value = "20s")]
    iteration: String,

    /// Duration of the first run
    #[arg(long, value_name = "TIME", default_value = "20s")]
    first_run: String,

    /// Most iterations after the first run
    #[arg(long, value_name = "N", default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..=1_000))]
    max_iterations: u32,

    /// Results: the rate, its half, its third and so on, each with a trial of its own
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=10))]
    results: u32,

    /// Largest latency of a passed iteration, such as 1ms
    #[arg(long, value_name = "TIME")]
    max_latency: Option<String>,

    /// Frames that may be later than --max-latency, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, requires = "max_latency")]
    latency_tolerance: f64,

    /// Search first within PERCENT of the rate that the drops of the first run suggest
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, default_missing_value = "5")]
    expected_range: Option<f64>,

    #[command(flatten)]
    traffic: NdrTrafficFlags,

    #[command(flatten)]
    pub(super) bed: BedFlags,

    #[command(flatten)]
    pub(super) output: OutputFlags,
}

/// Flags for the traffic.
#[derive(Args, Debug)]
#[command(next_help_heading = "Traffic")]
struct NdrTrafficFlags {
    /// Frame sizes in bytes with FCS
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "64",
        value_parser = clap::value_parser!(u32).range(64..=16_384))]
    frame_sizes: Vec<u32>,

    /// Protocols; each is searched on its own
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "ipv4")]
    traffic: Vec<Protocol>,

    /// Plan of streams; its ports, in order, are the interfaces of --tx and --rx
    ///
    /// The load is the sum of the frames per second of a port. The flows keep their proportions.
    #[arg(long, value_name = "FILE",
        conflicts_with_all = ["capture", "frame_sizes", "traffic", "flows", "address"])]
    plan: Option<PathBuf>,

    /// Capture to replay in a loop, from --tx to --rx; its delays are not measured
    #[arg(long, value_name = "FILE",
        conflicts_with_all = ["frame_sizes", "traffic", "flows", "address", "max_latency"])]
    capture: Option<PathBuf>,
}

impl NdrFlags {
    /// Returns the method that the flags describe.
    pub(super) fn method(&self) -> Result<Method, String> {
        let NdrTrafficFlags { frame_sizes, traffic, plan, capture } = &self.traffic;
        let own = [(plan, PLAN), (capture, CAPTURE)];
        let own = own.into_iter().find_map(|(file, name)| file.as_ref().map(|_| name));
        let latency = match &self.max_latency {
            None => None,
            Some(text) => Some(LatencyLimit {
                max: read_time("--max-latency", text)?,
                tolerance: read_percent("--latency-tolerance", self.latency_tolerance, 0.0, 100.0)?,
            }),
        };
        let range = |percent| read_percent("--expected-range", percent, 0.1, 50.0);
        Ok(Method::Ndr(Ndr {
            traffic: own.map_or_else(|| protocol_names(traffic), |name| vec![name.to_owned()]),
            frame_sizes: if own.is_some() { Vec::new() } else { frame_sizes.clone() },
            link_bps: self.bed.link_bps()?,
            load_max: self.bed.load_max()?,
            first_run: read_time("--first-run", &self.first_run)?,
            iteration: read_time("--iteration", &self.iteration)?,
            iterations_max: self.max_iterations,
            pdr: read_percent("--pdr", self.pdr, 0.0, 100.0)?,
            pdr_error: read_percent("--pdr-error", self.pdr_error, 0.000_1, 50.0)?,
            tester_limit: read_percent("--tester-limit", self.tester_limit, 0.0, 100.0)?,
            latency,
            expected_range: self.expected_range.map(range).transpose()?,
            results: self.results,
        }))
    }

    /// Reads the traffic of the user's files.
    pub(super) fn named_traffic(&self) -> Result<NamedTraffic, String> {
        let mut named = NamedTraffic::new();
        if let Some(path) = &self.traffic.plan {
            named.insert(PLAN.into(), TrafficDefinition::Plan(read_plan(path)?));
        }
        if let Some(path) = &self.traffic.capture {
            named.insert(CAPTURE.into(), TrafficDefinition::Capture(path.clone()));
        }
        Ok(named)
    }
}

fn read_plan(path: &Path) -> Result<PlanTraffic, String> {
    let name = CommandLineFiles.name(path);
    let bytes = files::read(&CommandLineFiles, path).map_err(|error| format!("{name}: {error}"))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{name}: expected text"))?;
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let traffic = PlanTraffic::read(&text, folder, &CommandLineFiles);
    traffic.map_err(|message| format!("{name}: {message}"))
}
