//! `wirestorm send`: the everyday stream in one line.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use wirestorm_control::plan::traffic::TrafficPlan;

use super::run::{HowFlags, conduct};
use super::{read_multiplier, usage};

const EXAMPLES: &str = "\
Examples:
  wirestorm send --tx eth1 --udp --dport 1024-65534 --frame-with-fcs 64 \\
      --rate 10G-l1 --duration 30s --rx eth2
  wirestorm send --tx eth1 --tcp --src 10.0.0.1-10.0.0.250 --dst 192.0.2.1 --rate 100kpps
  wirestorm send --tx eth1 --rx eth2 --udp --rate 1Mpps --duration 10s --measure
  wirestorm send --tx eth1 --udp --rate max --packets 1000000
  wirestorm send --tx eth1 --udp --sport 1024-65535 --print-plan > plan.yaml";

/// Sends one flow that is told by flags.
///
/// A range such as 1024-65534 or 10.0.0.1-10.0.0.250 changes with every frame and begins again at
/// its end.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SendFlags {
    /// The interface that frames leave.
    #[arg(long, value_name = "INTERFACE")]
    tx: String,

    /// The interface where they should arrive: they are counted there.
    #[arg(long, value_name = "INTERFACE")]
    rx: Option<String>,

    /// UDP, which is what is sent where nothing else is said.
    #[arg(long, conflicts_with_all = ["tcp", "icmp"])]
    udp: bool,

    /// TCP, SYN segments.
    #[arg(long, conflicts_with = "icmp")]
    tcp: bool,

    /// ICMP or ICMPv6 echo requests.
    #[arg(long)]
    icmp: bool,

    /// IPv4 or IPv6 source address, or a range.
    #[arg(long, value_name = "ADDRESS", default_value = "198.18.0.1")]
    src: String,

    /// IPv4 or IPv6 destination address, or a range.
    #[arg(long, value_name = "ADDRESS", default_value = "198.19.0.1")]
    dst: String,

    /// Source port, or a range.
    #[arg(long, value_name = "PORT", default_value = "49184", conflicts_with = "icmp")]
    sport: String,

    /// Destination port, or a range.
    #[arg(long, value_name = "PORT", default_value = "7", conflicts_with = "icmp")]
    dport: String,

    /// Source Ethernet address.
    #[arg(long, value_name = "MAC", default_value = "02:00:00:00:00:01")]
    smac: String,

    /// Destination Ethernet address.
    #[arg(long, value_name = "MAC", default_value = "ff:ff:ff:ff:ff:ff")]
    dmac: String,

    /// VLAN tag; several with commas, the outer one first.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    vlan: Vec<u16>,

    /// Bytes of a frame with its FCS.
    #[arg(long, value_name = "BYTES", default_value_t = 64, conflicts_with_all = ["frame", "ip_length"])]
    frame_with_fcs: u64,

    /// Bytes of a frame without FCS.
    #[arg(long, value_name = "BYTES", conflicts_with = "ip_length")]
    frame: Option<u64>,

    /// Bytes of the IP packet.
    #[arg(long, value_name = "BYTES")]
    ip_length: Option<u64>,

    /// How fast: 1Mpps, 10G-l1 (all of the wire), 10G-l2 (frames with FCS), or max.
    #[arg(long, value_name = "RATE", default_value = "1000pps")]
    rate: String,

    /// Frames in all.
    #[arg(long, value_name = "N")]
    packets: Option<u64>,

    /// Measure loss, order and delay of each frame at --rx, by 18 bytes in its payload.
    #[arg(long, requires = "rx")]
    measure: bool,

    /// Print the plan that these flags mean, in YAML, and send nothing.
    #[arg(long)]
    print_plan: bool,

    #[command(flatten)]
    how: HowFlags,
}

/// Runs the command.
pub(crate) fn run(flags: &mut SendFlags) -> ExitCode {
    flags.how.names_interfaces = true;
    let document = match document(flags) {
        Ok(document) => document,
        Err(message) => return usage(message),
    };
    // JSON is YAML too.
    let text = match serde_json::to_string_pretty(&document) {
        Ok(text) => text,
        Err(error) => return usage(error),
    };
    if flags.print_plan {
        println!("{text}");
        return ExitCode::SUCCESS;
    }
    match TrafficPlan::parse(&text) {
        Ok(plan) => match read_multiplier("--mult", &flags.how.mult) {
            Ok(multiplier) => {
                let interfaces = vec![None; plan.ports.len()];
                conduct(plan, interfaces, &flags.how, multiplier, String::new())
            }
            Err(message) => usage(message),
        },
        Err(errors) => usage(errors),
    }
}

/// The plan that the flags mean.
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
    let size = match (flags.frame, flags.ip_length) {
        (Some(frame), _) => json!({"frame": frame}),
        (_, Some(ip)) => json!({"ip": ip}),
        _ => json!(flags.frame_with_fcs),
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

/// A value, or a range as an increment.
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
    // Numbers stay numbers, so that the plan's own checks see them.
    let scalar = |text: &str| text.parse::<u64>().map_or_else(|_| json!(text), |it| json!(it));
    let Some((first, last)) = text.split_once('-') else { return Ok(scalar(text)) };
    let (start, end) = (number(first)?, number(last)?);
    let Some(count) = end.checked_sub(start).and_then(|it| u64::try_from(it + 1).ok()) else {
        return Err(format!("{text:?}: expected a range that rises, of fewer than 2^64 values"));
    };
    Ok(json!({"increment": {"start": scalar(first), "count": count}}))
}
