//! `wirestorm clock ptp`: a PTP slave that measures, or a PTP master.

use std::process::ExitCode;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use wirestorm_control::base::time::Duration;
use wirestorm_control::plan::traffic::parse_time;
use wirestorm_control::sync::ptp::{
    Address, PtpMaster, PtpMeasurement, PtpOptions, PtpSession, PtpStatus,
};

use super::ptp_flags::{PtpSettings, Role, Transport};
use crate::number::{count_of, nanoseconds, signed_nanoseconds};
use crate::ports::show_json;
use crate::signals::Signals;
use crate::status;

const EXAMPLES: &str = "\
Examples:
  wirestorm clock ptp --interface eth1 --transport l2
      the best master on the network, over Ethernet
  wirestorm clock ptp --interface eth1 --unicast 198.51.100.7 --log-interval=-3
      a master behind routers, 8 measurements a second
  wirestorm clock ptp --interface netns/a:eth1 --role master --duration 60s

The master needs no option for unicast: it serves slaves that ask for it.
Exit status 3: the slave found no master, or measured nothing.";

/// Time between two rows.
const ROW_INTERVAL: Duration = Duration::from_secs(1);
/// Rows between two headings.
const ROWS: usize = 20;

/// Measure the offset from a PTP master, or be a master
///
/// Uses IEEE 1588-2019 with two steps, the delay request-response mechanism and time stamps of the
/// kernel. A slave sets no clock: it reports the offset with its bound.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PtpFlags {
    /// Interface: eth1 or netns/NAME:eth1
    #[arg(short = 'I', long, value_name = "INTERFACE")]
    interface: String,

    /// Follow a master, or be one
    #[arg(long, value_enum, default_value_t = Role::Slave)]
    role: Role,

    /// Ethernet, or UDP over IPv4 or IPv6
    #[arg(long, value_name = "NETWORK", value_enum, default_value_t = Transport::Udp4)]
    transport: Transport,

    /// Ask the master at this IP or MAC address for unicast messages; else multicast
    #[arg(long, value_name = "ADDRESS")]
    unicast: Option<Address>,

    /// PTP domain
    #[arg(long, value_name = "N", default_value_t = 0)]
    domain: u8,

    /// Interval of measurements: 2^N seconds; multicast slaves get that of the master
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true, value_parser = clap::value_parser!(i8).range(-7..=6))]
    log_interval: i8,

    /// Priority of a master; the lowest wins
    #[arg(long, value_name = "N", default_value_t = 128)]
    priority: u8,

    /// Time to run, such as 10s; the default is until Ctrl-C
    #[arg(short, long, value_name = "TIME")]
    duration: Option<String>,

    /// Print the result as JSON (wirestorm.clock-ptp/1), no rows
    #[arg(long)]
    json: bool,
}

/// Format of [`PtpDocument`].
pub(crate) const SCHEMA: &str = "wirestorm.clock-ptp/1";

/// Result of a PTP session.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct PtpDocument<'a> {
    /// Format: `wirestorm.clock-ptp/1`.
    schema: &'static str,
    /// Interface, with its namespace.
    interface: &'a str,
    /// PTP domain.
    domain: u8,
    /// What the session has measured or sent.
    status: &'a PtpStatus,
}

/// Runs the command.
pub(super) fn run(flags: &PtpFlags) -> ExitCode {
    let (options, duration) = match prepare(flags) {
        Ok(prepared) => prepared,
        Err(message) => {
            eprintln!("wirestorm: {message}");
            return ExitCode::from(status::USAGE);
        }
    };
    let stop = Signals::catch().stop_flag();
    let mut rows = 0;
    let show = |status: &PtpStatus| {
        if !flags.json {
            print_row(status, rows);
            rows += 1;
        }
    };
    let mut session = match PtpSession::open(&options) {
        Ok(session) => session,
        Err(error) => return fail(&error, status::USAGE),
    };
    match session.run(&stop, duration, ROW_INTERVAL, show) {
        Ok(status) => {
            if let Err(error) = print_result(flags, &status) {
                return fail(&error, status::FAILED);
            }
            ExitCode::from(if status.is_success() { 0 } else { status::SHORT })
        }
        Err(error) => fail(&error, status::FAILED),
    }
}

fn fail(error: &dyn std::fmt::Display, status: u8) -> ExitCode {
    eprintln!("wirestorm: {error}");
    ExitCode::from(status)
}

fn prepare(flags: &PtpFlags) -> Result<(PtpOptions, Option<Duration>), String> {
    let expected = "expected a time with its unit, such as 10s";
    let time =
        |text: &String| parse_time(text).ok_or_else(|| format!("--duration {text:?}: {expected}"));
    let duration = flags.duration.as_ref().map(time).transpose()?;
    let settings = PtpSettings {
        interface: &flags.interface,
        role: flags.role,
        transport: flags.transport,
        unicast: flags.unicast,
        domain: flags.domain,
        log_interval: flags.log_interval,
        priority: flags.priority,
    };
    let options = settings.options(["--interface", "--unicast"])?;
    Ok((options, duration))
}

fn print_row(status: &PtpStatus, row: usize) {
    let has_heading = row.is_multiple_of(ROWS);
    match status {
        PtpStatus::Slave { elapsed, master, measurement, messages, .. } => {
            if has_heading {
                println!(
                    "{:>8} {:>12} {:>11} {:>11} {:>9} {:>6} {:>6}  MASTER",
                    "TIME", "OFFSET", "ERROR", "PATH DELAY", "DRIFT", "SYNC", "DELAY"
                );
            }
            let [offset, error, delay, drift] = measured(measurement.as_ref());
            let master = master.as_ref().map_or("none", |master| &master.port);
            println!(
                "{elapsed:>6.1} s {offset:>12} {error:>11} {delay:>11} {drift:>9} {:>6} {:>6}  {master}",
                messages.sync, messages.delay_resp
            );
        }
        PtpStatus::Master { elapsed, unicast_slaves, messages, .. } => {
            if has_heading {
                println!(
                    "{:>8} {:>9} {:>9} {:>9} {:>9} {:>14}",
                    "TIME", "ANNOUNCE", "SYNC", "REQUESTS", "ANSWERS", "UNICAST SLAVES"
                );
            }
            println!(
                "{elapsed:>6.1} s {:>9} {:>9} {:>9} {:>9} {unicast_slaves:>14}",
                messages.announce, messages.sync, messages.delay_req, messages.delay_resp
            );
        }
    }
}

/// Returns the cells of offset, error, path delay and drift.
fn measured(measurement: Option<&PtpMeasurement>) -> [String; 4] {
    let none = || "-".to_owned();
    let Some(measurement) = measurement else { return [none(), none(), none(), none()] };
    let delay = signed_nanoseconds(measurement.path_delay_median_ns);
    match &measurement.estimate {
        Some(estimate) => [
            signed_nanoseconds(estimate.offset_ns.round() as i64),
            nanoseconds(estimate.half_width_ns.round() as u64),
            delay,
            format!("{:+.2} ppm", estimate.drift_ppm),
        ],
        None => [signed_nanoseconds(measurement.offset_median_ns), none(), delay, none()],
    }
}

fn print_result(flags: &PtpFlags, status: &PtpStatus) -> Result<(), String> {
    if flags.json {
        let PtpFlags { interface, domain, .. } = flags;
        return show_json(&PtpDocument { schema: SCHEMA, interface, domain: *domain, status });
    }
    match status {
        PtpStatus::Slave { master, measurement, messages, unsent, .. } => {
            match master {
                Some(master) => print_master(master),
                None => println!("no master in domain {}; see --domain", flags.domain),
            }
            match measurement {
                Some(measurement) => print_measurement(measurement),
                None => println!("nothing measured"),
            }
            println!(
                "messages: {} announce, {} sync, {} follow-up, {} delay requests, {} answers",
                messages.announce,
                messages.sync,
                messages.follow_up,
                messages.delay_req,
                messages.delay_resp
            );
            let lost = [
                ("without a time stamp", messages.missing_stamps),
                ("without their other part", messages.unmatched),
                ("without a complete answer", messages.unanswered),
                ("malformed", messages.malformed),
                ("of other domains", messages.other_domain),
                ("refused by the master", messages.refusals),
                ("not sent", *unsent),
            ];
            for (what, count) in lost.into_iter().filter(|(_, count)| *count > 0) {
                println!("          {} {what}", count_of(count, "message", "messages"));
            }
        }
        PtpStatus::Master { port, messages, unsent, .. } => {
            println!("master {port} in domain {}", flags.domain);
            println!(
                "messages: {} announce, {} sync, {} follow-up; {} of {} requests answered; {} not sent",
                messages.announce,
                messages.sync,
                messages.follow_up,
                messages.delay_resp,
                messages.delay_req,
                unsent
            );
            // The departure of the last Sync may be missing only because the session ended.
            if messages.sync > messages.follow_up + 1 {
                println!("Syncs without Follow_Up: the driver may not stamp departures");
            }
            if messages.other_masters > 0 {
                println!("other masters are in this domain; slaves choose by --priority");
            }
        }
    }
    Ok(())
}

fn print_master(master: &PtpMaster) {
    println!(
        "master {} at {}, {} from grandmaster {} (class {}, priority {})",
        master.port,
        master.address,
        count_of(u64::from(master.steps_removed), "step", "steps"),
        master.grandmaster,
        master.clock_class,
        master.priority1
    );
    if let Some(offset) = master.utc_offset {
        println!("its times are TAI, converted to UTC with {offset} s");
    }
}

fn print_measurement(measurement: &PtpMeasurement) {
    if let Some(estimate) = &measurement.estimate {
        println!(
            "offset {} +- {} if the path is symmetric, +- {} in any case; drift {:+.3} ppm",
            signed_nanoseconds(estimate.offset_ns.round() as i64),
            nanoseconds(estimate.half_width_ns.round() as u64),
            nanoseconds(estimate.bound_ns.round() as u64),
            estimate.drift_ppm
        );
    }
    println!(
        "median of {}: offset {}, path delay {}",
        count_of(measurement.exchanges as u64, "measurement", "measurements"),
        signed_nanoseconds(measurement.offset_median_ns),
        signed_nanoseconds(measurement.path_delay_median_ns)
    );
}
