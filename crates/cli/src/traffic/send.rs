//! `wirestorm send`: sends one flow that flags describe.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use wirestorm_control::plan::traffic::TrafficPlan;

use super::run::{SendingFlags, run_and_print};
use super::{read_multiplier, usage};

const EXAMPLES: &str = "\
Examples:
  wirestorm send --tx eth1 --udp --dport 1024-65534 --frame-size 64 \\
      --rate 10G-l1 --duration 30s --rx eth2
  wirestorm send --tx eth1 --tcp --src 10.0.0.1-10.0.0.250 --dst 192.0.2.1 --rate 100kpps
  wirestorm send --tx eth1 --rx eth2 --udp --rate 1Mpps --duration 10s --measure
  wirestorm send --tx eth1 --udp --rate max --packets 1000000
  wirestorm send --tx eth1 --udp --sport 1024-65535 --print-plan > plan.yaml";

/// Send one flow that flags describe
///
/// A range such as 1024-65534 or 10.0.0.1-10.0.0.250 increments with every frame and wraps at its
/// end.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SendFlags {
    /// Interface to send on
    #[arg(long, value_name = "INTERFACE")]
    tx: String,

    /// Interface to count received frames on
    #[arg(long, value_name = "INTERFACE")]
    rx: Option<String>,

    /// Send UDP datagrams (default)
    #[arg(long, conflicts_with_all = ["tcp", "icmp"])]
    udp: bool,

    /// Send TCP SYN segments
    #[arg(long, conflicts_with = "icmp")]
    tcp: bool,

    /// Send ICMP or ICMPv6 echo requests
    #[arg(long)]
    icmp: bool,

    /// Source address or range
    #[arg(long, value_name = "ADDRESS", default_value = "198.18.0.1")]
    src: String,

    /// Destination address or range
    #[arg(long, value_name = "ADDRESS", default_value = "198.19.0.1")]
    dst: String,

    /// Source port or range
    #[arg(long, value_name = "PORT", default_value = "49184", conflicts_with = "icmp")]
    sport: String,

    /// Destination port or range
    #[arg(long, value_name = "PORT", default_value = "7", conflicts_with = "icmp")]
    dport: String,

    /// Source MAC address
    #[arg(long, value_name = "MAC", default_value = "02:00:00:00:00:01")]
    smac: String,

    /// Destination MAC address
    #[arg(long, value_name = "MAC", default_value = "ff:ff:ff:ff:ff:ff")]
    dmac: String,

    /// VLAN IDs, comma-separated, outermost first
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    vlan: Vec<u16>,

    /// Frame size in bytes with FCS
    #[arg(long, value_name = "BYTES", default_value_t = 64, conflicts_with_all = ["frame_size_without_fcs", "ip_size"])]
    frame_size: u64,

    /// Frame size in bytes without FCS
    #[arg(long, value_name = "BYTES", conflicts_with = "ip_size")]
    frame_size_without_fcs: Option<u64>,

    /// IP packet size in bytes
    #[arg(long, value_name = "BYTES")]
    ip_size: Option<u64>,

    /// Rate: 1Mpps, 10G-l1 (line rate), 10G-l2 (frames with FCS) or max
    #[arg(long, value_name = "RATE", default_value = "1000pps")]
    rate: String,

    /// Stop after N frames
    #[arg(long, value_name = "N")]
    packets: Option<u64>,

    /// Measure loss, order and delay at --rx (18 bytes of payload)
    #[arg(long, requires = "rx")]
    measure: bool,

    /// Print the equivalent plan in YAML and exit
    #[arg(long)]
    print_plan: bool,

    #[command(flatten)]
    how: SendingFlags,
}

/// Runs the command.
pub(crate) fn run(flags: &mut SendFlags) -> ExitCode {
    flags.how.names_interfaces = true;
    let document = match document(flags) {
        Ok(document) => document,
        Err(message) => return usage(message),
    };
    // JSON is valid YAML.
    let text = match serde_json::to_string_pretty(&document) {
        Ok(text) => text,
        Err(error) => return usage(error),
    };
    if flags.print_plan {
        println!("{text}");
        return ExitCode::SUCCESS;
    }
    match TrafficPlan::parse(&text) {
        Ok(plan) => match read_multiplier("--multiplier", &flags.how.multiplier) {
            Ok(multiplier) => {
                let interfaces = vec![None; plan.ports.len()];
                run_and_print(
                    plan,
                    interfaces,
                    &flags.how,
                    multiplier,
                    String::new(),
                    |mut draft| {
                        draft.files.insert("plan.json".to_owned(), text);
                        draft
                    },
                )
            }
            Err(message) => usage(message),
        },
        Err(errors) => usage(errors),
    }
}

/// Builds the plan that the flags describe.
fn document(flags: &SendFlags) -> Result<Value, String> {
    let is_ipv6 = flags.dst.contains(':') || flags.src.contains(':');
    let range = |option: &str, text: &str| range(text).map_err(|error| format!("{option} {error}"));
    let ip = if is_ipv6 { "ipv6" } else { "ipv4" };
    let addresses = json!({
        "src": range("--src", &flags.src)?,
        "dst": range("--dst", &flags.dst)?,
    });
    let ports = json!({
        "src_port": range("--sport", &flags.sport)?,
        "dst_port": range("--dport", &flags.dport)?,
    });
    let mut packet = vec![json!({"ethernet": {"src": flags.smac, "dst": flags.dmac}})];
    packet.extend(flags.vlan.iter().map(|id| json!({"vlan": {"id": id}})));
    packet.push(json!({ip: addresses}));
    packet.push(if flags.tcp {
        let mut tcp = ports;
        tcp["ctl_syn"] = json!(1);
        json!({"tcp": tcp})
    } else if flags.icmp && is_ipv6 {
        json!({"icmpv6": {"type": 128}})
    } else if flags.icmp {
        json!({"icmp": {"type": 8}})
    } else {
        json!({"udp": ports})
    });
    let size = match (flags.frame_size_without_fcs, flags.ip_size) {
        (Some(frame), _) => json!({"frame": frame}),
        (_, Some(ip)) => json!({"ip": ip}),
        _ => json!(flags.frame_size),
    };
    let mut flow = json!({
        "name": "send",
        "tx": "tx",
        "packet": packet,
        "size": size,
        "rate": flags.rate,
    });
    let mut ports = vec![json!({"name": "tx", "location": flags.tx})];
    if let Some(rx) = &flags.rx {
        ports.push(json!({"name": "rx", "location": rx}));
        flow["rx"] = json!("rx");
    }
    if flags.measure {
        flow["metrics"] = json!({"enable": true});
    }
    if let Some(packets) = flags.packets {
        flow["duration"] = json!({"fixed_packets": packets});
    }
    Ok(json!({"ports": ports, "flows": [flow]}))
}

/// Converts a value, or a range to an `increment` pattern.
fn range(text: &str) -> Result<Value, String> {
    let number = |text: &str| -> Result<u128, String> {
        if let Ok(address) = text.parse::<std::net::Ipv4Addr>() {
            return Ok(u128::from(address.to_bits()));
        }
        if let Ok(address) = text.parse::<std::net::Ipv6Addr>() {
            return Ok(address.to_bits());
        }
        text.parse().map_err(|_| format!("{text:?}: expected a number or an address"))
    };
    // Numbers stay JSON numbers, so that the plan's checks apply to them.
    let scalar = |text: &str| text.parse::<u64>().map_or_else(|_| json!(text), |it| json!(it));
    let Some((first, last)) = text.split_once('-') else { return Ok(scalar(text)) };
    let (start, end) = (number(first)?, number(last)?);
    let Some(count) = end.checked_sub(start).and_then(|it| u64::try_from(it + 1).ok()) else {
        return Err(format!("{text:?}: expected an ascending range of fewer than 2^64 values"));
    };
    Ok(json!({"increment": {"start": scalar(first), "count": count}}))
}
