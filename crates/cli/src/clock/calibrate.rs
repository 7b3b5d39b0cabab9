//! `wirestorm clock calibrate`: constant errors of time stamps of this machine.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration as StdDuration;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use wirestorm_control::backend::Backend;
use wirestorm_control::base::departure::DeparturePolicy;
use wirestorm_control::base::time::Duration;
use wirestorm_control::namespace::Namespace;
use wirestorm_control::plan::Multiplier;
use wirestorm_control::plan::load;
use wirestorm_control::result::DistributionReport;
use wirestorm_control::run::Plan;
use wirestorm_control::sync::{
    STAMP_ERROR_NS, SessionOptions, StampReflector, StampSession, owping_report,
};
use wirestorm_control::traffic::{SeriesOptions, StreamOptions};

use crate::files::CommandLineFiles;
use crate::foreground::Foreground;
use crate::metrics::MetricsFlags;
use crate::number::{nanoseconds, signed_nanoseconds};
use crate::ports::{show, show_json};
use crate::signals::Signals;
use crate::status;
use crate::traffic::{Live, read_time};

const EXAMPLES: &str = "\
Examples:
  wirestorm clock calibrate
      time stamps of exchanges, by exchanges of this machine with itself
  wirestorm clock calibrate eth1 eth2
      also those of frames, with a cable between both interfaces
  wirestorm clock calibrate eth1 eth2 --size 1518 --backend af_packet --json

Put the cable in the place of the device under test, and use the backend and the
frame size of the test. The printed keys belong to `clock` of a test file.
Exit status 3: frames were lost.";

/// Measure constant errors of the time stamps of this machine
///
/// Sender and receiver have one clock, so what the exchanges show as its offset, and what frames
/// need on a cable, comes from the time stamps. Sets nothing.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CalibrateFlags {
    /// Interface that sends frames
    #[arg(value_name = "TX", requires = "rx")]
    tx: Option<String>,

    /// Interface that receives them, by a cable
    #[arg(value_name = "RX")]
    rx: Option<String>,

    /// Frame size in bytes, with FCS
    #[arg(short, long, value_name = "BYTES", default_value_t = 128,
        value_parser = clap::value_parser!(u32).range(64..=9_216))]
    size: u32,

    /// Frames a second
    #[arg(short, long, value_name = "N", default_value_t = 1_000,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: u32,

    /// Time for frames, and time for exchanges
    #[arg(short, long, value_name = "TIME", default_value = "5s")]
    duration: String,

    /// Backend that sends and receives frames
    #[arg(long, value_parser = crate::backend::sending(), default_value = "auto")]
    backend: Backend,

    /// Print JSON (wirestorm.clock-calibration/1)
    #[arg(long)]
    json: bool,
}

/// Format of [`CalibrationDocument`].
pub(crate) const SCHEMA: &str = "wirestorm.clock-calibration/1";

/// Constant errors of the time stamps of a machine.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct CalibrationDocument {
    /// Format: `wirestorm.clock-calibration/1`.
    schema: &'static str,
    /// What exchanges of the machine with itself show.
    exchanges: Exchanges,
    /// What frames need from an interface to another by a cable; null without interfaces.
    frames: Option<Frames>,
}

/// What exchanges of the machine with itself show.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Exchanges {
    /// Number of exchanges.
    count: usize,
    /// Offset of the clock from itself in ns: 0 if the time stamps had no error.
    offset_ns: f64,
    /// Likely error of the offset in ns.
    half_width_ns: f64,
    /// Half of the shortest round trip in ns.
    half_round_trip_ns: f64,
    /// Value of `clock.asymmetry` of a test in ns that removes the offset.
    asymmetry_ns: i64,
}

/// What frames need from an interface to another by a cable.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Frames {
    /// Interface that sent.
    tx: String,
    /// Interface that received.
    rx: String,
    /// Frame size in bytes with FCS.
    size: u32,
    /// Backend that sent and received.
    backend: String,
    /// Frames sent.
    sent: u64,
    /// Frames received.
    received: u64,
    /// Delays of the frames.
    delay: DistributionReport,
    /// Value of `clock.bias` of a test in ns that removes the delay: its median.
    bias_ns: Option<i64>,
}

type Failure = (u8, String);

/// Time between two exchanges.
const INTERVAL: Duration = Duration::from_millis(5);

/// Runs the command.
pub(super) fn run(flags: &CalibrateFlags) -> ExitCode {
    calibrate(flags, &Signals::catch()).unwrap_or_else(|(status, message)| {
        eprintln!("wirestorm: {message}");
        ExitCode::from(status)
    })
}

fn calibrate(flags: &CalibrateFlags, signals: &Signals) -> Result<ExitCode, Failure> {
    let duration = read_time("--duration", &flags.duration);
    let duration = duration.map_err(|message| (status::USAGE, message))?;
    if !(Duration::from_millis(100)..=Duration::from_secs(600)).contains(&duration) {
        let message = format!("--duration {:?}: expected 100ms to 600s", flags.duration);
        return Err((status::USAGE, message));
    }
    let frames = match (&flags.tx, &flags.rx) {
        (Some(tx), Some(rx)) => Some(frames(flags, (tx, rx), duration, signals)?),
        _ => None,
    };
    let exchanges = exchanges(duration, signals)?;
    let has_lost = frames.as_ref().is_some_and(|frames| frames.received < frames.sent);
    let document = CalibrationDocument { schema: SCHEMA, exchanges, frames };
    if flags.json {
        show_json(&document).map_err(|error| (status::FAILED, error))?;
    } else {
        show(&text(&document));
    }
    Ok(ExitCode::from(if has_lost { status::SHORT } else { 0 }))
}

/// Exchanges time stamps with a reflector of this process.
fn exchanges(duration: Duration, signals: &Signals) -> Result<Exchanges, Failure> {
    let failed = |error: String| (status::FAILED, error);
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let reflector = StampReflector::start(&Namespace::Current, local);
    let reflector = reflector.map_err(|error| failed(error.to_string()))?;
    let session = StampSession::start(SessionOptions {
        namespace: Namespace::Current,
        source: local,
        target: reflector.address(),
        interval: INTERVAL,
        count: Some((duration.as_nanos() / INTERVAL.as_nanos()).max(8)),
        session: 1,
        quick: 0,
    });
    let session = session.map_err(|error| failed(error.to_string()))?;
    let stop = signals.stop_flag();
    while !session.is_over() && !stop.load(Ordering::Acquire) {
        session.wait(usize::MAX, StdDuration::from_millis(100));
    }
    if let Some(error) = session.error() {
        return Err(failed(error));
    }
    let exchanges = session.exchanges();
    let report = owping_report(&exchanges).ok_or_else(|| {
        failed(format!("127.0.0.1: {} exchanges, expected at least 5", exchanges.len()))
    })?;
    Ok(Exchanges {
        count: exchanges.len(),
        offset_ns: report.offset_ns,
        // The error of the stamps is what is measured.
        half_width_ns: report.half_width_ns - STAMP_ERROR_NS,
        half_round_trip_ns: report.round_trip.min_ns / 2.0,
        // The requests of a receiver go the way back of the frames.
        asymmetry_ns: (-2.0 * report.offset_ns).round() as i64,
    })
}

/// Sends frames by a cable.
fn frames(
    flags: &CalibrateFlags,
    (tx, rx): (&str, &str),
    duration: Duration,
    signals: &Signals,
) -> Result<Frames, Failure> {
    let CalibrateFlags { size, rate, .. } = flags;
    let text = format!(
        "ports: [{{name: tx}}, {{name: rx}}]
flows:
  - name: calibration
    tx: tx
    rx: rx
    size: {size}
    rate: {rate}pps
    metrics: {{enable: true}}
    packet:
      - ethernet: {{src: 02:00:00:00:00:01, dst: 02:00:00:00:00:02}}
      - ipv4: {{src: 198.18.0.1, dst: 198.18.0.2}}
      - udp: {{src_port: 1024, dst_port: 7}}
"
    );
    let usage = |error: &dyn std::fmt::Display| (status::USAGE, error.to_string());
    let plan = load::streams(&text, Path::new(""), &CommandLineFiles);
    let plan = Arc::new(plan.map_err(|error| usage(&error))?);
    let options = StreamOptions {
        interfaces: vec![Some(tx.to_owned()), Some(rx.to_owned())],
        backend: flags.backend,
        workers: 1,
        policy: DeparturePolicy::default(),
        duration,
        multiplier: Multiplier::ONE,
        force_interface: false,
        is_visible: false,
        per_vlan: false,
        survives_outages: false,
        tolerance_ppm: f64::MAX,
        series: SeriesOptions::default(),
        elsewhere: None,
    };
    let foreground =
        Foreground::open(MetricsFlags { metrics: None }).map_err(|error| usage(&error))?;
    let mut live = Live::new(vec!["calibration".to_owned()], true, flags.json, duration);
    let run = Plan::Streams { plan, options };
    let result = foreground.run(run, String::new(), &mut live, signals, |_| {});
    let result = result.map_err(|failure| (failure.status(), failure.error.to_string()))?;
    let flow = result.flows.first();
    let measured = flow.and_then(|flow| flow.measured.first());
    let received = measured.map_or(0, |measured| measured.received);
    if received == 0 {
        let message = format!("no frame from {tx} arrived at {rx}: connect them by a cable");
        return Err((status::FAILED, message));
    }
    let delay = measured.map(|measured| measured.delay.clone()).unwrap_or_default();
    let backend =
        result.ports.iter().find_map(|port| port.backend.as_ref().map(ToString::to_string));
    Ok(Frames {
        tx: tx.to_owned(),
        rx: rx.to_owned(),
        size: *size,
        backend: backend.unwrap_or_default(),
        sent: flow.map_or(0, |flow| flow.packets),
        received,
        bias_ns: delay.p50_ns,
        delay,
    })
}

fn text(document: &CalibrationDocument) -> String {
    let CalibrationDocument { exchanges, frames, .. } = document;
    let signed = |value: f64| signed_nanoseconds(value.round() as i64);
    let plain = |value: f64| nanoseconds(value.round().max(0.0) as u64);
    let mut text = format!(
        "Exchanges  {} with this machine: offset {} ±{}, half of the round trip {}\n",
        exchanges.count,
        signed(exchanges.offset_ns),
        plain(exchanges.half_width_ns),
        plain(exchanges.half_round_trip_ns)
    );
    match exchanges.offset_ns.abs() > exchanges.half_width_ns {
        true => {
            let _ = writeln!(
                text,
                "           in a test between such machines: clock: {{asymmetry: {}ns}}",
                exchanges.asymmetry_ns
            );
        }
        false => text += "           no asymmetry beyond the error\n",
    }
    let Some(frames) = frames else { return text };
    let shown = |value: Option<i64>| value.map_or_else(|| "-".to_owned(), signed_nanoseconds);
    let delay = &frames.delay;
    let _ = writeln!(
        text,
        "Frames     {} > {}, {} bytes, {}: {} of {} received",
        frames.tx, frames.rx, frames.size, frames.backend, frames.received, frames.sent
    );
    let _ = writeln!(
        text,
        "           min {}, median {}, 99 % {}, max {}",
        shown(delay.min_ns),
        shown(delay.p50_ns),
        shown(delay.p99_ns),
        shown(delay.max_ns)
    );
    if let Some(bias) = frames.bias_ns {
        let _ = writeln!(text, "           in a test: clock: {{bias: {bias}ns}}");
    }
    text
}
