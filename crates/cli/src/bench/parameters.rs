//! Flags of the methods, and the parameters that they mean.

use clap::{Args, ValueEnum};
use wirestorm_control::bench::{MlrsearchParameters, Rfc2544Parameters, parse_percent};
use wirestorm_control::method::method::Method;
use wirestorm_control::method::rfc2544::{FRAME_SIZES, Test};

use super::OutputFlags;
use super::bed::BedFlags;

const RFC2544_EXAMPLES: &str = "\
Examples:
  wirestorm bench rfc2544 --tx eth1 --rx eth2 --dry-run
  wirestorm bench rfc2544 --tx eth1 --rx eth2 --tests throughput --frame-sizes 64,1518
  wirestorm bench rfc2544 --tx eth1 --rx eth2 --trial 2s --settle 0s --learning-wait 0s
  wirestorm bench rfc2544 --tx eth1 --rx eth2 \\
      --address eth1=198.18.0.2/24,198.18.0.1 --address eth2=198.19.0.2/24,198.19.0.1";

const MLRSEARCH_EXAMPLES: &str = "\
Examples:
  wirestorm bench mlrsearch --tx eth1 --rx eth2
  wirestorm bench mlrsearch --tx eth1 --rx eth2 --goal ndr --goal pdr --frame-sizes 64
  wirestorm bench mlrsearch --tx eth1 --rx eth2 --goal final=10s,sum=30s,loss=0.1%,exceed=0.5";

/// Flags for the traffic, which methods of frames share.
#[derive(Args, Debug)]
#[command(next_help_heading = "Traffic")]
struct TrafficFlags {
    /// Frame sizes in bytes with FCS
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_values_t = FRAME_SIZES,
        value_parser = clap::value_parser!(u32).range(64..=16_384))]
    frame_sizes: Vec<u32>,

    /// Protocols; each is tested on its own
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "ipv4")]
    traffic: Vec<Protocol>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Protocol {
    /// UDP over IPv4
    Ipv4,
    /// UDP over IPv6; frames have at least 84 bytes
    Ipv6,
}

impl TrafficFlags {
    fn names(&self) -> Vec<String> {
        protocol_names(&self.traffic)
    }
}

/// Returns the names of the traffic of protocols.
pub(super) fn protocol_names(protocols: &[Protocol]) -> Vec<String> {
    let name = |protocol: &Protocol| match protocol {
        Protocol::Ipv4 => "ipv4".to_owned(),
        Protocol::Ipv6 => "ipv6".to_owned(),
    };
    protocols.iter().map(name).collect()
}

/// Measure throughput, latency, frame loss rate and more (RFC 2544)
///
/// The defaults are those of RFC 2544, RFC 9004 and RFC 8219. --dry-run shows how long they take.
#[derive(Args, Debug)]
#[command(after_help = RFC2544_EXAMPLES)]
pub(super) struct Rfc2544Flags {
    /// Tests: throughput, latency, frame-loss, back-to-back, recovery, reset or all
    ///
    /// The throughput is always measured.
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "throughput,latency,frame-loss,back-to-back"
    )]
    tests: Vec<String>,

    /// Duration of a trial
    #[arg(long, value_name = "TIME", default_value = "60s")]
    trial: String,

    /// Duration of the trials of a search before the final one; default: --trial
    #[arg(long, value_name = "TIME")]
    intermediate: Option<String>,

    /// Resolution of the throughput, in percent of it
    #[arg(long, value_name = "PERCENT", default_value_t = 0.5)]
    resolution: f64,

    /// Trials that confirm the throughput
    #[arg(long, value_name = "N", default_value_t = 0)]
    confirm: u32,

    /// Repeat the trial above the throughput, to detect a device that recovers late
    #[arg(long)]
    verify_upper: bool,

    #[command(flatten)]
    traffic: TrafficFlags,

    #[command(flatten)]
    tests_of: TestFlags,

    #[command(flatten)]
    pub(super) bed: BedFlags,

    #[command(flatten)]
    pub(super) output: OutputFlags,
}

/// Flags for the tests after the throughput.
#[derive(Args, Debug)]
#[command(next_help_heading = "Tests")]
struct TestFlags {
    /// Streams of the latency test
    #[arg(long, value_name = "N", default_value_t = 20)]
    latency_repetitions: u32,

    /// Duration of a latency stream; its second half is measured
    #[arg(long, value_name = "TIME", default_value = "120s")]
    latency_stream: String,

    /// Load of the latency test, in percent of the throughput
    #[arg(long, value_name = "PERCENT", default_value_t = 100.0)]
    latency_load: f64,

    /// Step of the frame loss rate test, in percent of the maximum load; at most 10
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0)]
    loss_step: f64,

    /// Searches for the longest back-to-back burst
    #[arg(long, value_name = "N", default_value_t = 50)]
    burst_repetitions: u32,

    /// Longest back-to-back burst
    #[arg(long, value_name = "TIME", default_value = "2s")]
    burst_max: String,

    /// Resolution of the back-to-back burst, in frames
    #[arg(long, value_name = "FRAMES", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..))]
    burst_step: u64,

    /// Overloads of the recovery test
    #[arg(long, value_name = "N", default_value_t = 3)]
    recovery_repetitions: u32,

    /// Duration of an overload, and of the reduced load after it
    #[arg(long, value_name = "TIME", default_value = "60s")]
    recovery_overload: String,

    /// Time before the reset of the reset test
    #[arg(long, value_name = "TIME", default_value = "15s")]
    reset_before: String,

    /// Time after the reset of the reset test
    #[arg(long, value_name = "TIME", default_value = "120s")]
    reset_after: String,
}

impl Rfc2544Flags {
    /// Returns the method that the flags describe.
    pub(super) fn method(&self) -> Result<Method, String> {
        let method = self.parameters().method(self.bed.links()?);
        let method = method.map_err(|error| error.of_flag())?;
        let needs_reset = method.tests.contains(&Test::Reset) && !self.bed.is_simulated();
        if needs_reset && self.bed.reset_command.is_none() {
            let message = "the reset test needs --reset-command, a command that resets the device";
            return Err(message.to_owned());
        }
        Ok(Method::Rfc2544(method))
    }

    fn parameters(&self) -> Rfc2544Parameters {
        let of = &self.tests_of;
        Rfc2544Parameters {
            tests: self.tests.clone(),
            trial: self.trial.clone(),
            intermediate: self.intermediate.clone(),
            resolution: self.resolution,
            confirm: self.confirm,
            verify_upper: self.verify_upper,
            frame_sizes: self.traffic.frame_sizes.clone(),
            traffic: self.traffic.names(),
            latency_repetitions: of.latency_repetitions,
            latency_stream: of.latency_stream.clone(),
            latency_load: of.latency_load,
            loss_step: of.loss_step,
            burst_repetitions: of.burst_repetitions,
            burst_max: of.burst_max.clone(),
            burst_step: of.burst_step,
            recovery_repetitions: of.recovery_repetitions,
            recovery_overload: of.recovery_overload.clone(),
            reset_before: of.reset_before.clone(),
            reset_after: of.reset_after.clone(),
        }
    }
}

/// Search the throughput for several loss goals (MLRsearch, RFC 9971)
///
/// A goal is a name or a list of attributes. rfc2544: no loss in a trial of 60 s. tst009: no loss in
/// one of two trials of 60 s. ndr: no loss in most of 21 trials of 1 s. pdr: at most 0.5 % loss in
/// most of them.
#[derive(Args, Debug)]
#[command(after_help = MLRSEARCH_EXAMPLES)]
pub(super) struct MlrsearchFlags {
    /// Search goal: rfc2544, tst009, ndr, pdr, or final=60s,sum=60s,loss=0%,exceed=0
    ///
    /// Attributes: final (final trial duration), sum (duration sum), loss (loss ratio), exceed
    /// (exceed ratio), initial (initial trial duration, 1s), width (0.5%), name.
    #[arg(long, value_name = "GOAL", default_value = "rfc2544")]
    goal: Vec<String>,

    /// Smallest load, such as 1kpps; default: 1/10,000 of the largest
    #[arg(long, value_name = "RATE")]
    min_load: Option<String>,

    /// Maximum duration of all trials of one search
    #[arg(long, value_name = "TIME", default_value = "30min")]
    search_max: String,

    #[command(flatten)]
    traffic: TrafficFlags,

    #[command(flatten)]
    pub(super) bed: BedFlags,

    #[command(flatten)]
    pub(super) output: OutputFlags,
}

impl MlrsearchFlags {
    /// Returns the method that the flags describe.
    pub(super) fn method(&self) -> Result<Method, String> {
        let method = self.parameters().method(self.bed.links()?);
        method.map(Method::Mlrsearch).map_err(|error| error.of_flag())
    }

    fn parameters(&self) -> MlrsearchParameters {
        MlrsearchParameters {
            goal: self.goal.clone(),
            min_load: self.min_load.clone(),
            search_max: self.search_max.clone(),
            frame_sizes: self.traffic.frame_sizes.clone(),
            traffic: self.traffic.names(),
        }
    }
}

/// Checks a percentage and returns it as a fraction.
pub(super) fn read_percent(
    option: &str,
    percent: f64,
    least: f64,
    most: f64,
) -> Result<f64, String> {
    parse_percent(percent, least, most).map_err(|error| format!("{option} {error}"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use wirestorm_control::bench::PathParameters;

    use super::*;

    #[derive(Parser)]
    enum Flags {
        Rfc2544(Box<Rfc2544Flags>),
        Mlrsearch(Box<MlrsearchFlags>),
    }

    #[test]
    fn defaults_of_flags_are_those_of_the_keys_of_a_test() {
        let parse = |method| Flags::parse_from(["bench", method, "--tx", "a", "--rx", "b"]);
        let Flags::Rfc2544(flags) = parse("rfc2544") else { panic!() };
        assert_eq!(flags.parameters(), Rfc2544Parameters::default());
        let Flags::Mlrsearch(flags) = parse("mlrsearch") else { panic!() };
        assert_eq!(flags.parameters(), MlrsearchParameters::default());
        let [tx, rx] = ["a", "b"].map(|name| vec![name.to_owned()]);
        let expected = PathParameters { tx, rx, ..PathParameters::default() };
        assert_eq!(flags.bed.parameters(), expected);
    }
}
