//! `wirestorm ping`: sends echo requests from an interface, as a host with its own addresses.

use std::net::IpAddr;
use std::process::ExitCode;

use clap::Args;
use wirestorm_control::base::time::Duration;
use wirestorm_control::plan::traffic::{parse_address, parse_time};
use wirestorm_control::responder::{
    HostError, PacketSocketHost, PingOptions, PingReply, PingReport, ping,
};

use crate::number::nanoseconds;
use crate::signals::Signals;
use crate::status;

const EXAMPLES: &str = "\
Examples:
  wirestorm ping --interface eth1 --address 198.18.0.2/24 198.18.0.1
  wirestorm ping --interface eth1 --address 198.18.0.2/24 --gateway 198.18.0.1 198.19.0.1
      through the device under test
  wirestorm ping --interface netns/a:eth1 --address 2001:db8::2/64 2001:db8::1 --count 3 --json";

/// Ping from an interface with its own IP address
///
/// The interface needs no kernel address. Ping finds the next hop by ARP or neighbour discovery. It
/// also answers ARP and neighbour solicitations for its own address.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PingFlags {
    /// Destination address
    #[arg(value_name = "ADDRESS")]
    target: IpAddr,

    /// Interface to send on
    #[arg(short = 'I', long, value_name = "INTERFACE")]
    interface: String,

    /// Source address with prefix length; repeatable
    #[arg(short, long, value_name = "ADDRESS/LENGTH", required = true)]
    address: Vec<String>,

    /// Default gateway; one for each address family
    #[arg(short, long, value_name = "ADDRESS")]
    gateway: Vec<IpAddr>,

    /// Number of echo requests
    #[arg(short, long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    count: u64,

    /// Time between requests
    #[arg(short, long, value_name = "TIME", default_value = "1s")]
    interval: String,

    /// Time to wait for the last reply
    #[arg(short = 'W', long, value_name = "TIME", default_value = "1s")]
    timeout: String,

    /// Payload bytes; more than the MTU is sent in fragments
    #[arg(short, long, value_name = "BYTES", default_value_t = 56, value_parser = clap::value_parser!(u16).range(0..=65_473))]
    size: u16,

    /// Send gratuitous ARP and unsolicited neighbour advertisements first
    #[arg(long)]
    announce: bool,

    /// Print the statistics as JSON (wirestorm.ping/1), no reply lines
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(flags: &PingFlags) -> ExitCode {
    let prepared = prepare(flags);
    let (mut host, options) = match prepared {
        Ok(prepared) => prepared,
        Err(message) => {
            eprintln!("wirestorm: {message}");
            return ExitCode::from(status::USAGE);
        }
    };
    let stop = Signals::catch().stop_flag();
    let announced = if flags.announce { host.announce() } else { Ok(()) };
    let show = |reply: &PingReply| {
        if !flags.json {
            let damage = if reply.intact { "" } else { ", DAMAGED" };
            println!(
                "{}: number {}, hop limit {}, {}{damage}",
                flags.target,
                reply.sequence,
                reply.hop_limit,
                nanoseconds(reply.round_trip_ns)
            );
        }
    };
    let outcome =
        announced.map_err(HostError::from).and_then(|()| ping(&mut host, &options, &stop, show));
    match outcome {
        Ok(report) => {
            print_report(&report, flags.json);
            ExitCode::from(if report.received < report.sent { status::SHORT } else { 0 })
        }
        Err(error) => {
            eprintln!("wirestorm: {error}");
            let failed = matches!(error, HostError::Port(_) | HostError::Unanswered { .. });
            ExitCode::from(if failed { status::FAILED } else { status::USAGE })
        }
    }
}

fn prepare(flags: &PingFlags) -> Result<(PacketSocketHost, PingOptions), String> {
    let time = |option: &str, text: &str| -> Result<Duration, String> {
        let expected = "expected a time with its unit, such as 100ms";
        parse_time(text).ok_or_else(|| format!("{option} {text:?}: {expected}"))
    };
    let address = |text: &String| {
        let expected = "expected an address with prefix length, such as 10.0.0.1/24";
        parse_address(text).ok_or_else(|| format!("--address {text:?}: {expected}"))
    };
    for (position, gateway) in flags.gateway.iter().enumerate() {
        let is_of_family = |other: &&IpAddr| other.is_ipv4() == gateway.is_ipv4();
        if let Some(first) = flags.gateway[..position].iter().find(is_of_family) {
            return Err(format!(
                "--gateway {gateway}: found {first} of the same address family, expected at most \
                 one for each family"
            ));
        }
    }
    let addresses: Vec<_> = flags.address.iter().map(address).collect::<Result<_, _>>()?;
    let options = PingOptions {
        target: flags.target,
        count: flags.count,
        interval: time("--interval", &flags.interval)?,
        patience: time("--timeout", &flags.timeout)?,
        payload: flags.size,
    };
    let host = PacketSocketHost::open(&flags.interface, addresses, flags.gateway.clone());
    Ok((host.map_err(|error| error.to_string())?, options))
}

fn print_report(report: &PingReport, json: bool) {
    if json && let Ok(text) = serde_json::to_string_pretty(report) {
        println!("{text}");
        return;
    }
    println!(
        "{} sent, {} received, {} lost, {} duplicates; next hop {}",
        report.sent,
        report.received,
        report.sent - report.received,
        report.duplicated,
        report.next_hop
    );
    if let (Some(min), Some(mean), Some(max)) = (report.min_ns, report.mean_ns, report.max_ns) {
        println!(
            "round trip min {}, mean {}, max {}",
            nanoseconds(min),
            nanoseconds(mean.round() as u64),
            nanoseconds(max)
        );
    }
}
