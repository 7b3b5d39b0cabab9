//! `wirestorm impair`: bridges two interfaces with impairments.

mod live;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use wirestorm_control::backend::Backend;
use wirestorm_control::base::time::Duration;
use wirestorm_control::impair::ImpairOptions;
use wirestorm_control::plan::impairment::ImpairmentSettings;
use wirestorm_control::run::Plan;

use crate::foreground::Foreground;
use crate::metrics::MetricsFlags;
use crate::report::Output;
use crate::signals::Signals;
use crate::status;
use crate::traffic::{read_time, usage};
use live::Live;
use table::Table;

const EXAMPLES: &str = "\
Examples:
  wirestorm impair eth1 eth2 --delay 5ms --loss 1%
      a round trip of 10 ms, and one of 100 frames lost, each way
  wirestorm impair eth1 eth2 --rate 20M-l2 --queue 64kB --delay 30ms --jitter 3ms/normal
      a line to a home: narrow, with a deep queue, and far away
  wirestorm impair eth1 eth2 --delay 300ms --b-to-a rate=2M-l2,burst-loss=0.5%/30%
      a satellite, whose way back is narrow and lossy
  wirestorm impair netns/a:veth1 netns/b:veth1 --reorder 1%/2ms --duplicate 0.1% --corrupt 0.01%

Hosts on virtual interfaces leave long frames and checksums to the interface, which
has to be switched off there: ethtool -K eth0 tx off tso off gso off gro off";

/// Bridges two interfaces with loss, delay and a rate limit, until Ctrl-C or `--duration`.
///
/// Every frame that arrives on one interface leaves on the other. The impairments apply in this
/// order: loss, duplication, rate and queue, corruption, delay and jitter, reordering.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ImpairFlags {
    /// First interface: eth1 or netns/NAME:eth1
    #[arg(value_name = "A")]
    a: String,

    /// Second interface
    #[arg(value_name = "B")]
    b: String,

    /// Probability that a frame is lost, such as 1%
    #[arg(long, value_name = "SHARE", help_heading = "Impairments, both ways")]
    loss: Option<String>,

    /// Gilbert-Elliott burst loss: p, r, and delivery rates when bad and good
    #[arg(
        long,
        value_name = "P/R[/H[/K]]",
        conflicts_with = "loss",
        help_heading = "Impairments, both ways"
    )]
    burst_loss: Option<String>,

    /// Probability that a frame is duplicated
    #[arg(long, value_name = "SHARE", help_heading = "Impairments, both ways")]
    duplicate: Option<String>,

    /// Probability that one bit of a frame is flipped
    #[arg(long, value_name = "SHARE", help_heading = "Impairments, both ways")]
    corrupt: Option<String>,

    /// Rate limit: 100M-l2 (frames with FCS) or 100M-l1 (line rate)
    #[arg(long, value_name = "RATE", help_heading = "Impairments, both ways")]
    rate: Option<String>,

    /// Queue limit before the rate limit: frames or bytes [default: 1000]
    #[arg(long, value_name = "N", help_heading = "Impairments, both ways")]
    queue: Option<String>,

    /// Delay of each frame
    #[arg(long, value_name = "TIME", help_heading = "Impairments, both ways")]
    delay: Option<String>,

    /// Delay variation: 1ms (uniform) or 1ms/normal (stddev); keeps order
    #[arg(long, value_name = "TIME", help_heading = "Impairments, both ways")]
    jitter: Option<String>,

    /// Probability and extra delay of reordered frames: 1%/2ms
    #[arg(long, value_name = "SHARE/TIME", help_heading = "Impairments, both ways")]
    reorder: Option<String>,

    /// Settings for A to B only: delay=5ms,loss=1%
    #[arg(long, value_name = "WORD=VALUE,...", help_heading = "Impairments, one way")]
    a_to_b: Option<String>,

    /// Settings for B to A only
    #[arg(long, value_name = "WORD=VALUE,...", help_heading = "Impairments, one way")]
    b_to_a: Option<String>,

    /// Seed; the same seed drops the same frames
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,

    /// Stop after this time, such as 30s [default: until Ctrl-C]
    #[arg(short, long, value_name = "TIME")]
    duration: Option<String>,

    /// Maximum delayed frames in each direction; more are dropped
    #[arg(long, value_name = "N", default_value_t = 131_072,
        value_parser = clap::value_parser!(u32).range(1..=16_000_000))]
    buffer_frames: u32,

    /// Backend that sends and receives frames
    #[arg(long, value_parser = crate::backend::both_ways(), default_value = "auto")]
    backend: Backend,

    /// Use even the interface of the default route
    #[arg(long)]
    force_interface: bool,

    /// Write the result as JSON to a file; `-`: to stdout, without the table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    #[command(flatten)]
    metrics: MetricsFlags,

    /// Print no progress line
    #[arg(short, long)]
    quiet: bool,
}

/// Runs the command.
pub(crate) fn run(flags: &ImpairFlags) -> ExitCode {
    let options = match prepare(flags) {
        Ok(options) => options,
        Err(message) => return usage(message),
    };
    let mut output = match Output::open(flags.json.as_deref()) {
        Ok(output) => output,
        Err(message) => return usage(message),
    };
    let mut live = Live::new(flags.quiet, options.duration);
    let foreground = match Foreground::open(flags.metrics) {
        Ok(foreground) => foreground,
        Err(message) => return usage(message),
    };
    let signals = Signals::catch();
    let run = Plan::Impair(options);
    let result = match foreground.run(run, String::new(), &mut live, &signals, |_| ()) {
        Ok(result) => result,
        Err(failure) => return failure.exit(),
    };
    if let Err(message) = output.print(&*result, Table(&result)) {
        eprintln!("wirestorm: {message}");
        return ExitCode::from(status::FAILED);
    }
    ExitCode::from(result.verdict.outcome.exit_status())
}

fn prepare(flags: &ImpairFlags) -> Result<ImpairOptions, String> {
    let mut both = ImpairmentSettings::default();
    for (word, value) in [
        ("loss", &flags.loss),
        ("burst-loss", &flags.burst_loss),
        ("duplicate", &flags.duplicate),
        ("corrupt", &flags.corrupt),
        ("rate", &flags.rate),
        ("queue", &flags.queue),
        ("delay", &flags.delay),
        ("jitter", &flags.jitter),
        ("reorder", &flags.reorder),
    ] {
        if let Some(value) = value {
            both.set(word, value).map_err(|error| format!("--{error}"))?;
        }
    }
    let one_way = |option: &str, words: &Option<String>| {
        let mut settings = ImpairmentSettings::default();
        let outcome = words.as_deref().map_or(Ok(()), |words| settings.set_all(words));
        let understood = outcome.and_then(|()| settings.or(both).resolve());
        understood.map_err(|error| format!("{option}: {error}"))
    };
    let duration = match &flags.duration {
        Some(text) => read_time("--duration", text)?,
        None => Duration::MAX,
    };
    Ok(ImpairOptions {
        interfaces: [flags.a.clone(), flags.b.clone()],
        impairments: [one_way("--a-to-b", &flags.a_to_b)?, one_way("--b-to-a", &flags.b_to_a)?],
        backend: flags.backend,
        duration,
        seed: flags.seed,
        buffer_frames: flags.buffer_frames as usize,
        force_interface: flags.force_interface,
    })
}
