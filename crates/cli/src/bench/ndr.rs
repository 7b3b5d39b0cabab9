//! Flags of `wirestorm bench ndr`.

use std::path::{Path, PathBuf};

use clap::Args;
use wirestorm_control::base::rate::Rate;
use wirestorm_control::bench::{
    ClientsTraffic, Links, NamedTraffic, NdrParameters, PlanTraffic, TrafficDefinition,
};
use wirestorm_control::files::Files;
use wirestorm_control::method::method::Method;
use wirestorm_control::method::ndr::{CONNECTIONS, Ndr};
use wirestorm_control::plan::emulation::EmulationPlan;
use wirestorm_control::plan::load;
use wirestorm_control::plan::traffic::read_document;

use super::OutputFlags;
use super::bed::BedFlags;
use super::parameters::{Protocol, protocol_names};
use crate::files::CommandLineFiles;

const EXAMPLES: &str = "\
Examples:
  wirestorm bench ndr --tx eth1 --rx eth2 --bidirectional
  wirestorm bench ndr --tx eth1 --rx eth2 --pdr 0 --frame-sizes 64,1518 --iteration 10s
  wirestorm bench ndr --tx eth1 --rx eth2 --plan imix.yaml --max-load 2Mpps
  wirestorm bench ndr --tx eth1 --rx eth2 --plan users.yaml --max-load 50k
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

    /// Plan of streams, or of clients and servers; its ports, in order, are those of --tx and --rx
    ///
    /// The load is the sum of the frames per second of a port. The flows keep their proportions.
    /// With clients it is the connections per second of all clients. They need --max-load, such as
    /// 50k, or 20x for 20 times the rates of the plan.
    #[arg(long, value_name = "FILE",
        conflicts_with_all = ["capture", "frame_sizes", "traffic", "flows", "address", "bidirectional"])]
    plan: Option<PathBuf>,

    /// Capture to replay in a loop, from --tx to --rx; its delays are not measured
    #[arg(long, value_name = "FILE",
        conflicts_with_all = [
            "frame_sizes", "traffic", "flows", "address", "max_latency", "bidirectional"
        ])]
    capture: Option<PathBuf>,
}

impl NdrFlags {
    /// Returns the method that the flags describe.
    ///
    /// `named` is the traffic of the user's files.
    pub(super) fn method(&self, named: &NamedTraffic) -> Result<Method, String> {
        let own = named.keys().next();
        let clients = match named.get(CONNECTIONS) {
            Some(TrafficDefinition::Clients(clients)) => Some(clients),
            _ => None,
        };
        let links = match clients {
            Some(clients) => Links { bps: 0, load_max: Some(self.connections_max(clients)?) },
            None => self.bed.links()?,
        };
        let method = self.parameters().method(links).map_err(|error| error.of_flag())?;
        Ok(Method::Ndr(match own {
            Some(name) => Ndr { traffic: vec![name.clone()], frame_sizes: Vec::new(), ..method },
            None => method,
        }))
    }

    fn parameters(&self) -> NdrParameters {
        let NdrTrafficFlags { frame_sizes, traffic, .. } = &self.traffic;
        NdrParameters {
            pdr: self.pdr,
            pdr_error: self.pdr_error,
            tester_limit: self.tester_limit,
            iteration: self.iteration.clone(),
            first_run: self.first_run.clone(),
            max_iterations: self.max_iterations,
            results: self.results,
            max_latency: self.max_latency.clone(),
            latency_tolerance: self.latency_tolerance,
            expected_range: self.expected_range,
            frame_sizes: frame_sizes.clone(),
            traffic: protocol_names(traffic),
        }
    }

    /// Returns the flags of the user's files with their paths.
    pub(super) fn files(&self) -> [(&'static str, Option<&Path>); 2] {
        let NdrTrafficFlags { plan, capture, .. } = &self.traffic;
        [("--plan", plan.as_deref()), ("--capture", capture.as_deref())]
    }

    /// Returns the largest load in connections per second.
    fn connections_max(&self, clients: &ClientsTraffic) -> Result<u64, String> {
        if self.max_latency.is_some() {
            return Err(
                "--max-latency: frames have a latency, connections have none; remove it, or \
                        give a plan of streams"
                    .into(),
            );
        }
        let expected = "expected connections a second such as 50k, or a multiple of the plan's rates \
                        such as 20x";
        let Some(text) = &self.bed.max_load else {
            return Err(format!("--plan of clients needs --max-load: {expected}"));
        };
        let number = text.strip_suffix('x');
        let rate = Rate::parse_per_second(number.unwrap_or(text), 1).map(Rate::per_second);
        let load = match (rate, number) {
            (Ok(rate), None) => rate,
            (Ok(multiple), Some(_)) => multiple * clients.rate(),
            (Err(_), _) => 0.0,
        };
        match load.round() {
            load if load >= 1.0 => Ok(load as u64),
            _ => Err(format!("--max-load {text:?}: {expected}")),
        }
    }

    /// Reads the traffic of the user's files.
    pub(super) fn named_traffic(&self) -> Result<NamedTraffic, String> {
        let mut named = NamedTraffic::new();
        if let Some(path) = &self.traffic.plan {
            let (name, definition) = read_plan(path)?;
            named.insert(name.into(), definition);
        }
        if let Some(path) = &self.traffic.capture {
            named.insert(CAPTURE.into(), TrafficDefinition::Capture(path.clone()));
        }
        Ok(named)
    }
}

/// Reads a plan of streams, or of clients and servers.
fn read_plan(path: &Path) -> Result<(&'static str, TrafficDefinition), String> {
    let text = load::read_text(path, &CommandLineFiles).map_err(|error| error.to_string())?;
    let name = CommandLineFiles.name(path);
    let with_name = |message: String| format!("{name}: {message}");
    let folder = load::folder_of(path);
    let is_clients = read_document(&text).is_ok_and(|it| EmulationPlan::is_recognized(&it));
    if is_clients {
        let plan = load::emulation(&text, folder, &CommandLineFiles);
        let plan = plan.map_err(|errors| with_name(errors.to_string()))?;
        let clients = ClientsTraffic::new(plan, folder).map_err(with_name)?;
        return Ok((CONNECTIONS, TrafficDefinition::Clients(Box::new(clients))));
    }
    let traffic = PlanTraffic::read(&text, folder, &CommandLineFiles).map_err(with_name)?;
    Ok((PLAN, TrafficDefinition::Plan(traffic)))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        flags: NdrFlags,
    }

    #[test]
    fn defaults_of_flags_are_those_of_the_keys_of_a_test() {
        let Flags { flags } = Flags::parse_from(["ndr", "--tx", "a", "--rx", "b"]);
        assert_eq!(flags.parameters(), NdrParameters::default());
    }
}
