//! `wirestorm owping`: one-way delay to a STAMP or TWAMP Light reflector, and such a reflector.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration as StdDuration;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use wirestorm_control::base::time::Duration;
use wirestorm_control::namespace::Namespace;
use wirestorm_control::plan::traffic::parse_time;
use wirestorm_control::sync::estimate::{Epoch, EpochReason};
use wirestorm_control::sync::{
    DirectionReport, OwpingReport, SessionOptions, StampReflector, StampSession, owping_report,
    stamp,
};

use crate::number::grouped;
use crate::ports::show_json;
use crate::signals::Signals;
use crate::status;

const EXAMPLES: &str = "\
Examples:
  wirestorm owping --reflect                  on the other machine
  wirestorm owping 192.0.2.7                  500 requests, 20 ms apart
  wirestorm owping 192.0.2.7:8620 --count 3000 --interval 10ms --json
  wirestorm owping --reflect --listen 192.0.2.7:8620";

/// Measure the delay of each direction to another machine
///
/// The other machine runs `wirestorm owping --reflect`, `wirestorm agent`, or any reflector of STAMP
/// (RFC 8762) or TWAMP Light. The clocks need no synchronisation: the same requests show their
/// offset and drift. Without another reference this assumes that the empty path is equally long in
/// both directions; the report has the error that remains without this assumption.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct OwpingFlags {
    /// Reflector; the default port is 862
    #[arg(value_name = "HOST[:PORT]", required_unless_present = "reflect")]
    target: Option<String>,

    /// Number of requests
    #[arg(short, long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u64).range(8..=10_000_000))]
    count: u64,

    /// Time between requests, from 1ms
    #[arg(short, long, value_name = "TIME", default_value = "20ms")]
    interval: String,

    /// Source address
    #[arg(short, long, value_name = "ADDRESS")]
    source: Option<IpAddr>,

    /// Network namespace: a name of `ip netns`, or a path
    #[arg(long, value_name = "NAME")]
    netns: Option<String>,

    /// Print the result as JSON (wirestorm.owping/1)
    #[arg(long)]
    json: bool,

    /// Answer requests of other machines until Ctrl-C
    #[arg(long, conflicts_with_all = ["target", "count", "interval", "source", "json"], help_heading = "Reflector")]
    reflect: bool,

    /// Address and port of the reflector
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "0.0.0.0:862",
        requires = "reflect",
        help_heading = "Reflector"
    )]
    listen: SocketAddr,
}

/// Format of [`OwpingDocument`].
pub(crate) const SCHEMA: &str = "wirestorm.owping/1";

/// Delay of each direction to another machine.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct OwpingDocument<'a> {
    /// Format: `wirestorm.owping/1`.
    schema: &'static str,
    /// Address and UDP port of the reflector.
    #[schemars(with = "String")]
    target: SocketAddr,
    /// Requests sent.
    sent: u64,
    /// Replies received, without duplicates.
    received: u64,
    /// Requests that the reflector did not receive; null if it does not count.
    lost_forward: Option<u64>,
    /// Replies that did not arrive; null if the reflector does not count.
    lost_backward: Option<u64>,
    /// Replies that arrived more than once.
    duplicated: u64,
    /// Whether the departures of replies are those of the reflector's kernel.
    exact_replies: bool,
    #[serde(flatten)]
    report: &'a OwpingReport,
}

/// Runs the command.
pub(crate) fn run(flags: &OwpingFlags) -> ExitCode {
    let signals = Signals::catch();
    let outcome = if flags.reflect { reflect(flags, &signals) } else { ping(flags, &signals) };
    outcome.unwrap_or_else(|(status, message)| {
        eprintln!("wirestorm: {message}");
        ExitCode::from(status)
    })
}

type Failure = (u8, String);

fn reflect(flags: &OwpingFlags, signals: &Signals) -> Result<ExitCode, Failure> {
    let reflector = StampReflector::start(&namespace(flags), flags.listen)
        .map_err(|error| (status::USAGE, error.to_string()))?;
    eprintln!("Answering on {} (UDP) until Ctrl-C", reflector.address());
    let stop = signals.stop_flag();
    while !stop.load(Ordering::Acquire) {
        std::thread::sleep(StdDuration::from_millis(50));
    }
    let answered = reflector.answered();
    reflector.stop().map_err(|error| (status::FAILED, error.to_string()))?;
    eprintln!("{} requests answered", grouped(answered));
    Ok(ExitCode::SUCCESS)
}

fn ping(flags: &OwpingFlags, signals: &Signals) -> Result<ExitCode, Failure> {
    let usage = |message: String| (status::USAGE, message);
    let target = resolve(flags.target.as_deref().unwrap_or_default()).map_err(usage)?;
    let expected = "expected a time of at least 1ms with its unit, such as 20ms";
    let interval = parse_time(&flags.interval).filter(|it| *it >= Duration::from_millis(1));
    let interval =
        interval.ok_or_else(|| usage(format!("--interval {:?}: {expected}", flags.interval)))?;
    let any = if target.is_ipv4() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED)
    } else {
        IpAddr::V6(Ipv6Addr::UNSPECIFIED)
    };
    let options = SessionOptions {
        namespace: namespace(flags),
        source: SocketAddr::new(flags.source.unwrap_or(any), 0),
        target,
        interval,
        quick: 0,
        count: Some(flags.count),
        session: std::process::id() as u16 | 1,
    };
    let session = StampSession::start(options).map_err(|error| usage(error.to_string()))?;
    let stop = signals.stop_flag();
    while !session.is_over() && !stop.load(Ordering::Acquire) {
        session.wait(usize::MAX, StdDuration::from_millis(100));
    }
    if let Some(error) = session.error() {
        return Err((status::FAILED, error));
    }
    let counters = session.counters();
    let exchanges = session.exchanges();
    let Some(report) = owping_report(&exchanges) else {
        let message = match counters.received {
            0 => format!(
                "{target}: no reply to {} requests; start `wirestorm owping --reflect` there, and \
                 check that UDP port {} is open",
                counters.sent,
                target.port()
            ),
            received => format!("{target}: {received} replies, expected at least 5"),
        };
        return Err((status::FAILED, message));
    };
    let is_counted = counters.is_stateful || counters.lost() == 0;
    let document = OwpingDocument {
        schema: SCHEMA,
        target,
        sent: counters.sent,
        received: counters.received,
        lost_forward: is_counted.then(|| counters.lost().saturating_sub(counters.lost_backward)),
        lost_backward: is_counted.then_some(counters.lost_backward),
        duplicated: counters.duplicated,
        exact_replies: session.follows_up(),
        report: &report,
    };
    if flags.json {
        show_json(&document).map_err(|error| (status::FAILED, error))?;
    } else {
        print(&document);
    }
    Ok(ExitCode::from(if counters.lost() > 0 { status::SHORT } else { 0 }))
}

fn namespace(flags: &OwpingFlags) -> Namespace {
    match &flags.netns {
        None => Namespace::Current,
        Some(path) if path.starts_with('/') => Namespace::Path(path.into()),
        Some(name) => Namespace::Named(name.clone()),
    }
}

fn resolve(host: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(SocketAddr::new(address, stamp::PORT));
    }
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let named = if has_port { host.to_owned() } else { format!("{host}:{}", stamp::PORT) };
    let addresses = named.to_socket_addrs();
    let found = addresses.map_err(|error| format!("{host}: {error}"))?.next();
    found.ok_or_else(|| format!("{host}: the name has no address"))
}

fn print(document: &OwpingDocument<'_>) {
    let OwpingDocument { report, .. } = document;
    let OwpingReport { forward, backward, round_trip, .. } = report;
    println!(
        "{}: {} requests, {} replies, {} duplicates\n",
        document.target,
        grouped(document.sent),
        grouped(document.received),
        grouped(document.duplicated)
    );
    println!("{:10} {:>14} {:>14} {:>14}", "", "forward", "backward", "round trip");
    let rows = |it: &DirectionReport| [it.min_ns, it.mean_ns, it.p50_ns, it.p99_ns, it.max_ns];
    let columns = [forward, backward, round_trip].map(rows);
    for (row, name) in ["min", "mean", "median", "99 %", "max"].into_iter().enumerate() {
        let [forward, backward, both] = columns.map(|column| delay(column[row]));
        println!("{name:10} {forward:>14} {backward:>14} {both:>14}");
    }
    let lost = |count: Option<u64>| count.map_or("unknown".to_owned(), grouped);
    let lost_both = grouped(document.sent.saturating_sub(document.received));
    let (lost_forward, lost_backward) = (lost(document.lost_forward), lost(document.lost_backward));
    println!("{:10} {lost_forward:>14} {lost_backward:>14} {lost_both:>14}\n", "lost");
    println!("Error    ±{} if the path is symmetric", delay(report.half_width_ns));
    println!("         ±{} without this assumption", delay(report.bound_ns));
    println!("Clock    offset {}, drift {:+.3} ppm", delay(report.offset_ns), report.drift_ppm);
    for Epoch { reason, .. } in &report.epochs {
        match *reason {
            EpochReason::Start => {}
            EpochReason::ClockStep { by_ns } => {
                println!("Step     of a clock by {}", delay(by_ns as f64));
            }
            EpochReason::RouteChange { forward_ns, backward_ns } => println!(
                "Route    changed: forward {}, backward {}",
                delay(forward_ns as f64),
                delay(backward_ns as f64)
            ),
        }
    }
    if !document.exact_replies {
        println!("Note     the reflector stamps replies before it sends them: add its own delay");
    }
}

/// Formats a signed time in the largest unit that leaves a whole part.
fn delay(nanoseconds: f64) -> String {
    let sign = if nanoseconds < 0.0 { "-" } else { "" };
    format!("{sign}{}", crate::number::nanoseconds(nanoseconds.abs().round() as u64))
}
