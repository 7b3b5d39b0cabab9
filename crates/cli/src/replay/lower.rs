//! Conversion of parsed flags to a replay plan.

use std::fmt::Display;

use wirestorm_control::backend::{AF_XDP, Backend};
use wirestorm_control::base::pace::Pace;
use wirestorm_control::base::rate::{Decimal, Layer, Rate, RateError};
use wirestorm_control::base::time::Duration;
use wirestorm_control::plan::replay::{
    FlowPlan, Limits, PacketDisplay, ReceivePlan, ReplayPlan, SideAssignment, Target, UniquePlan,
    parse_catch_up, parse_packet_list, parse_passes_milli, parse_percent, parse_seconds,
};
use wirestorm_control::plan::sides::{SidesOptions, parse_side_rule};

use super::flags::{FlowFlags, PaceFlags, ReplayFlags};

/// Maximum number of distinct flows: 128 MB of table.
const FLOWS_MAX: usize = 1 << 20;

/// Maximum number of conversations with a known client: 64 MB of table.
const CONVERSATIONS_MAX: usize = 1 << 20;

/// Converts the flags to a plan.
///
/// # Errors
/// A message with the flag, the value found and the value expected.
pub(crate) fn plan(flags: &ReplayFlags) -> Result<ReplayPlan, String> {
    if flags.captures.is_empty() {
        return Err(
            "no capture file: FILE is a capture, a directory of captures or -, standard input; \
             `wirestorm replay --help` lists all options"
                .into(),
        );
    }
    check_requirements(flags)?;
    let backend = backend(flags);
    let target = target(flags, backend)?;
    let select = &flags.select;
    let edits = flags.edits.words().parse().map_err(|error| error.to_string())?;
    let sides = sides(flags)?;
    let plan = ReplayPlan {
        captures: flags.captures.clone(),
        target,
        sides,
        edits,
        show: show(flags),
        one_at_a_time: flags.pace.oneatatime,
        pace: pace(&flags.pace)?,
        policy: read("--catch-up", &flags.pace.catch_up, parse_catch_up)?,
        limits: Limits {
            passes: if select.passes == 0 { u64::MAX } else { select.passes },
            packets: select.limit.unwrap_or(u64::MAX),
            duration: match &select.duration {
                None => Duration::MAX,
                Some(text) => read("--duration", text, parse_seconds)?,
            },
        },
        pass_delay: Duration::from_millis(select.loopdelay_ms)
            .saturating_add(Duration::from_nanos(select.loopdelay_ns)),
        preload: select.preload_pcap,
        flows: (!flags.flows.no_flow_stats).then_some(FlowPlan {
            expiry: (flags.flows.flow_expiry > 0)
                .then(|| Duration::from_secs(flags.flows.flow_expiry)),
            flows_max: FLOWS_MAX,
        }),
        unique: unique(&flags.flows)?,
        include: match &select.include {
            None => None,
            Some(text) => Some(read("--include", text, parse_packet_list)?),
        },
        exclude: match &select.exclude {
            None => Vec::new(),
            Some(text) => read("--exclude", text, parse_packet_list)?,
        },
        original_length: select.pktlen,
        receive: flags.receive.rx.as_ref().map(|interface| ReceivePlan {
            interface: interface.clone(),
            verify: flags.receive.verify,
        }),
        workers: flags.pace.workers,
        tolerance_ppm: read("--tolerance", &flags.pace.tolerance, parse_percent)?,
        force_interface: flags.force_interface,
    };
    plan.check().map_err(|conflict| conflict.to_string())?;
    Ok(plan)
}

/// Checks flags that require another one.
///
/// The parser skips this check if a given flag conflicts with the required one.
fn check_requirements(flags: &ReplayFlags) -> Result<(), String> {
    let needs = [
        ("--pps-multi", flags.pace.pps_multi > 1, "--pps PPS", flags.pace.pps.is_some()),
        ("--split-reverse", flags.split_reverse, "--split RULE", flags.split.is_some()),
        ("--nonip", flags.nonip, "--split RULE", flags.split.is_some()),
        ("--verify", flags.receive.verify, "--rx INTERFACE", flags.receive.rx.is_some()),
        ("--decode", flags.output.decode.is_some(), "--verbose", flags.output.verbose),
    ];
    match needs.into_iter().find(|(_, is_given, _, is_other)| *is_given && !is_other) {
        None => Ok(()),
        Some((flag, _, other, _)) => {
            Err(format!("{flag} has no effect without {other}: add {other} or remove {flag}"))
        }
    }
}

/// Returns remarks about flags that have no effect.
pub(crate) fn remarks(flags: &ReplayFlags) -> Vec<&'static str> {
    let (pace, select, compatibility) = (&flags.pace, &flags.select, &flags.compatibility);
    let mut remarks = Vec::new();
    if compatibility.timer.is_some() {
        remarks.push("--timer has no effect: Wirestorm has one clock, with nanosecond resolution");
    }
    if compatibility.netmap || compatibility.nm_delay.is_some() {
        remarks.push("--netmap has no effect: use --backend, which needs no module and no delay");
    }
    let by_capture = !(pace.topspeed
        || pace.oneatatime
        || [&pace.pps, &pace.mbps, &pace.mbps_l1].into_iter().any(Option::is_some));
    if pace.maxsleep > 0 && !by_capture {
        remarks.push("--maxsleep has no effect: it limits gaps only with capture timing");
    }
    if select.passes == 1 && select.loopdelay_ms + select.loopdelay_ns > 0 {
        remarks.push("--loopdelay-ms and -ns have no effect without --loop");
    }
    if select.passes == 1 && (flags.flows.unique_ip || flags.flows.unique_flows) {
        remarks.push("--unique-ip and --unique-flows have no effect without --loop");
    }
    if compatibility.xdp_batch_size.is_some() {
        remarks.push("--xdp-batch-size has no effect: Wirestorm chooses the batch size");
    }
    remarks
}

/// Returns the selected backend. `--xdp` selects AF_XDP.
pub(crate) fn backend(flags: &ReplayFlags) -> Backend {
    match flags.pace.backend {
        Backend::Auto if flags.compatibility.xdp => Backend::One(&AF_XDP),
        backend => backend,
    }
}

fn target(flags: &ReplayFlags, backend: Backend) -> Result<Target, String> {
    if let Some(path) = &flags.write {
        return Ok(Target::File(path.clone()));
    }
    match &flags.intf1 {
        _ if !backend.needs_interface() => Ok(Target::Memory { by_side: flags.intf2.is_some() }),
        Some(primary) => {
            Ok(Target::Interfaces { primary: primary.clone(), secondary: flags.intf2.clone() })
        }
        None => Err("--intf1 is missing: name the interface to send on, for example \
                          -i veth0; `wirestorm ports` lists them"
            .into()),
    }
}

fn sides(flags: &ReplayFlags) -> Result<SideAssignment, String> {
    if let Some(path) = &flags.cachefile {
        return Ok(SideAssignment::Cache(path.clone()));
    }
    if flags.dualfile {
        return Ok(SideAssignment::Pairs);
    }
    let Some(text) = &flags.split else { return Ok(SideAssignment::Single) };
    Ok(SideAssignment::Rules(SidesOptions {
        rule: parse_side_rule(text).map_err(|error| error.to_string())?,
        reverse: flags.split_reverse,
        non_ip_is_primary: flags.nonip,
        conversations_max: CONVERSATIONS_MAX,
    }))
}

fn show(flags: &ReplayFlags) -> Option<PacketDisplay> {
    match (&flags.output.decode, flags.output.verbose) {
        (_, false) => None,
        (None, true) => Some(PacketDisplay::Lines),
        (Some(arguments), true) => Some(PacketDisplay::Tcpdump(arguments.clone())),
    }
}

fn pace(flags: &PaceFlags) -> Result<Pace, String> {
    if flags.topspeed || flags.oneatatime {
        return Ok(Pace::TopSpeed);
    }
    if let Some(text) = &flags.pps {
        let rate = read("--pps", text, |text| Rate::parse_per_second(text, 1))?;
        return Ok(Pace::Packets { rate, group: flags.pps_multi });
    }
    for (flag, text, layer) in
        [("--mbps", &flags.mbps, Layer::Frame), ("--mbps-l1", &flags.mbps_l1, Layer::Wire)]
    {
        let Some(text) = text else { continue };
        return match Rate::parse_per_second(text, 1_000_000) {
            Ok(rate) => Ok(Pace::Bits { rate, layer }),
            Err(RateError::Zero) => Ok(Pace::TopSpeed),
            Err(error) => Err(invalid_value(flag, text, error)),
        };
    }
    let multiplier = read("--multiplier", flags.multiplier.as_deref().unwrap_or("1"), |text| {
        Decimal::parse(text)
    })?;
    Ok(Pace::Capture {
        // As in tcpreplay, 0 selects the capture's own timing.
        multiplier: if multiplier.digits == 0 {
            Decimal { digits: 1, denominator: 1 }
        } else {
            multiplier
        },
        gap_max: match flags.maxsleep {
            0 => Duration::MAX,
            milliseconds => Duration::from_millis(milliseconds),
        },
    })
}

fn unique(flags: &FlowFlags) -> Result<Option<UniquePlan>, String> {
    let is_unique = flags.unique_ip || flags.unique_flows;
    let passes_milli = match &flags.unique_ip_loops {
        None => 1_000,
        Some(_) if !is_unique => {
            return Err("--unique-ip-loops says how often --unique-ip or --unique-flows change \
                        addresses: give one of these too"
                .into());
        }
        Some(text) => read("--unique-ip-loops", text, parse_passes_milli)?,
    };
    Ok(is_unique.then_some(UniquePlan { ports: flags.unique_flows, passes_milli }))
}

/// Parses the value of a flag.
fn read<T, E: Display>(
    flag: &str,
    text: &str,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, String> {
    parse(text).map_err(|error| invalid_value(flag, text, error))
}

fn invalid_value(flag: &str, found: &str, error: impl Display) -> String {
    let error = error.to_string();
    // Some errors repeat the value, some do not.
    if error.contains(found) {
        format!("{flag}: {error}")
    } else {
        format!("{flag} {found}: {error}")
    }
}
