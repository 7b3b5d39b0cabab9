//! Flags of the methods, and the parameters that they mean.

use clap::{Args, ValueEnum};
use wirestorm_control::base::time::Duration;
use wirestorm_control::method::method::Method;
use wirestorm_control::method::mlrsearch::Mlrsearch;
use wirestorm_control::method::rfc2544::{
    BackToBackOptions, FRAME_SIZES, LatencyOptions, RecoveryOptions, ResetOptions, Rfc2544, Test,
};
use wirestorm_control::method::search::classification::Goal;

use super::OutputFlags;
use super::bed::{BedFlags, read_load};
use crate::traffic::read_time;

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
        let trial = read_time("--trial", &self.trial)?;
        let intermediate = self.intermediate.as_deref();
        let intermediate =
            intermediate.map(|text| read_time("--intermediate", text)).transpose()?;
        let tests = read_tests(&self.tests)?;
        if tests.contains(&Test::Reset) && self.bed.reset_command.is_none() {
            let is_simulated = self.bed.is_simulated();
            (is_simulated)
                .then_some(())
                .ok_or("the reset test needs --reset-command, a command that resets the device")?;
        }
        let of = &self.tests_of;
        let stream = read_time("--latency-stream", &of.latency_stream)?;
        let half = Duration::from_nanos(stream.as_nanos() / 2);
        let overload = read_time("--recovery-overload", &of.recovery_overload)?;
        Ok(Method::Rfc2544(Rfc2544 {
            tests,
            traffic: self.traffic.names(),
            frame_sizes: self.traffic.frame_sizes.clone(),
            link_bps: self.bed.link_bps()?,
            load_max: self.bed.load_max()?,
            trial,
            intermediate: intermediate.unwrap_or(trial),
            resolution: read_percent("--resolution", self.resolution, 0.000_1, 50.0)?,
            verifies_upper: self.verify_upper,
            confirmations: self.confirm,
            frame_loss_step: read_percent("--loss-step", of.loss_step, 0.1, 10.0)?,
            latency: LatencyOptions {
                warm_up: half,
                measured: stream.saturating_sub(half),
                repetitions: of.latency_repetitions,
                load: read_percent("--latency-load", of.latency_load, 0.1, 100.0)?,
            },
            back_to_back: BackToBackOptions {
                repetitions: of.burst_repetitions,
                burst_max: read_time("--burst-max", &of.burst_max)?,
                step: of.burst_step,
            },
            recovery: RecoveryOptions {
                overload,
                reduced: overload,
                repetitions: of.recovery_repetitions,
            },
            reset: ResetOptions {
                before: read_time("--reset-before", &of.reset_before)?,
                after: read_time("--reset-after", &of.reset_after)?,
            },
        }))
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
        let min_load = self.min_load.as_deref();
        Ok(Method::Mlrsearch(Mlrsearch {
            goals: self.goal.iter().map(|text| read_goal(text)).collect::<Result<_, _>>()?,
            traffic: self.traffic.names(),
            frame_sizes: self.traffic.frame_sizes.clone(),
            link_bps: self.bed.link_bps()?,
            load_max: self.bed.load_max()?,
            load_min: min_load.map(|text| read_load("--min-load", text)).transpose()?,
            search_max: read_time("--search-max", &self.search_max)?,
        }))
    }
}

/// Parses names of tests.
fn read_tests(names: &[String]) -> Result<Vec<Test>, String> {
    let mut tests = Vec::new();
    for name in names {
        if name == "all" {
            return Ok(Test::ALL.to_vec());
        }
        let test = Test::ALL.into_iter().find(|test| test.name() == name);
        tests.push(test.ok_or_else(|| {
            let all = Test::ALL.map(Test::name).join(", ");
            format!("--tests {name:?}: expected all, or some of {all}")
        })?);
    }
    Ok(tests)
}

/// Checks a percentage and returns it as a fraction.
pub(super) fn read_percent(
    option: &str,
    percent: f64,
    least: f64,
    most: f64,
) -> Result<f64, String> {
    if (least..=most).contains(&percent) {
        return Ok(percent / 100.0);
    }
    Err(format!("{option} {percent}: expected percent from {least} to {most}"))
}

/// Parses a search goal.
fn read_goal(text: &str) -> Result<Goal, String> {
    if let Some(goal) = Goal::preset(text) {
        return Ok(goal);
    }
    let wrong = |message: &str| {
        format!(
            "--goal {text:?}: {message}; expected rfc2544, tst009, ndr, pdr, or attributes such as \
             final=60s,sum=60s,loss=0%,exceed=0"
        )
    };
    let fraction = |value: &str| {
        let (number, scale) = match value.strip_suffix('%') {
            Some(percent) => (percent, 100.0),
            None => (value, 1.0),
        };
        number.parse::<f64>().ok().map(|number| number / scale)
    };
    let mut goal = Goal { name: text.to_owned(), ..Goal::rfc2544() };
    let mut sum = None;
    for attribute in text.split(',') {
        let Some((key, value)) = attribute.split_once('=') else {
            return Err(wrong(&format!("found {attribute:?}")));
        };
        let time = || read_time(&format!("--goal {key}"), value);
        let ratio = |most: f64| {
            let ratio = fraction(value).filter(|ratio| (0.0..most).contains(ratio));
            ratio.ok_or_else(|| wrong(&format!("{key} is {value:?}, not a ratio below {most}")))
        };
        match key {
            "final" => goal.final_trial = time()?,
            "sum" => sum = Some(time()?),
            "initial" => goal.initial_trial = time()?,
            "loss" => goal.loss_ratio = ratio(1.0)?,
            "exceed" => goal.exceed_ratio = ratio(1.0)?,
            "width" => {
                goal.width = ratio(1.0)?;
                if goal.width <= 0.0 {
                    return Err(wrong("the width is 0"));
                }
            }
            "name" => value.clone_into(&mut goal.name),
            _ => return Err(wrong(&format!("{key:?} is no attribute"))),
        }
    }
    goal.duration_sum = sum.unwrap_or(goal.final_trial);
    goal.initial_trial = goal.initial_trial.min(goal.final_trial);
    Ok(goal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_presets_or_attributes() {
        assert!(read_goal("rfc2544").unwrap().is_rfc2544());
        let goal = read_goal("final=10s,sum=30s,loss=0.1%,exceed=0.5,name=mine").unwrap();
        assert_eq!((&*goal.name, goal.loss_ratio, goal.exceed_ratio), ("mine", 0.001, 0.5));
        assert_eq!(goal.duration_sum, Duration::from_secs(30));
        for wrong in ["ndrr", "final=x", "loss=1", "loss=2%,width=0", "exceed=-1", "depth=3"] {
            assert!(read_goal(wrong).unwrap_err().contains("--goal"), "{wrong}");
        }
    }

    #[test]
    fn tests_are_named_or_all() {
        assert_eq!(read_tests(&["all".into()]).unwrap(), Test::ALL);
        let error = read_tests(&["jitter".into()]).unwrap_err();
        assert!(error.contains("back-to-back"), "{error}");
    }
}
