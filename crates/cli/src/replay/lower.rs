//! From flags as typed to a plan as understood.

use wirestorm_control::base::departure::DeparturePolicy;
use wirestorm_control::base::pace::Pace;
use wirestorm_control::base::rate::{Decimal, Layer, Rate, RateError};
use wirestorm_control::base::time::{Duration, NANOSECONDS_PER_SECOND};
use wirestorm_control::plan::replay::{
    Backend, FlowPlan, Limits, ReceivePlan, ReplayPlan, Target, UniquePlan,
};

use super::flags::{BackendFlag, ReplayFlags};

/// Flows told apart at most: 128 MB of table.
const FLOWS_MAX: usize = 1 << 20;

/// The plan that flags ask for.
///
/// # Errors
/// A sentence that names the flag, what was found and what was expected.
pub(super) fn plan(flags: &ReplayFlags) -> Result<ReplayPlan, String> {
    let backend = match flags.backend {
        BackendFlag::Auto => Backend::Auto,
        BackendFlag::Memory => Backend::Memory,
        BackendFlag::AfPacket => Backend::AfPacket,
        BackendFlag::AfXdp => Backend::AfXdp,
        BackendFlag::Xdp => Backend::Xdp,
    };
    let target = match (&flags.intf1, backend) {
        (_, Backend::Memory) => Target::Memory,
        (Some(primary), _) => {
            Target::Interfaces { primary: primary.clone(), secondary: flags.intf2.clone() }
        }
        (None, _) => {
            return Err("--intf1 is missing: name the interface to send on, for example \
                        -i veth0; `wirestorm ports` lists them"
                .into());
        }
    };
    let pass_delay = Duration::from_millis(flags.loopdelay_ms)
        .saturating_add(Duration::from_nanos(flags.loopdelay_ns));
    Ok(ReplayPlan {
        captures: flags.captures.clone(),
        target,
        backend,
        pace: pace(flags)?,
        policy: DeparturePolicy::default(),
        limits: Limits {
            passes: if flags.r#loop == 0 { u64::MAX } else { flags.r#loop },
            packets: flags.limit.unwrap_or(u64::MAX),
            duration: match &flags.duration {
                None => Duration::MAX,
                Some(text) => seconds("--duration", text)?,
            },
        },
        pass_delay,
        preload: flags.preload_pcap,
        flows: (!flags.no_flow_stats).then_some(FlowPlan {
            expiry: (flags.flow_expiry > 0).then(|| Duration::from_secs(flags.flow_expiry)),
            flows_max: FLOWS_MAX,
        }),
        unique: unique(flags)?,
        only: None,
        except: Vec::new(),
        original_length: false,
        receive: flags
            .rx
            .as_ref()
            .map(|interface| ReceivePlan { interface: interface.clone(), verify: flags.verify }),
        workers: flags.workers.max(1),
        tolerance_ppm: 10_000,
        force_interface: flags.force_interface,
    })
}

fn pace(flags: &ReplayFlags) -> Result<Pace, String> {
    let gap_max = match flags.maxsleep {
        0 => Duration::MAX,
        milliseconds => Duration::from_millis(milliseconds),
    };
    if flags.topspeed {
        return Ok(Pace::TopSpeed);
    }
    if let Some(text) = &flags.pps {
        let rate = Rate::parse_per_second(text, 1).map_err(|error| wrong("--pps", text, error))?;
        return Ok(Pace::Packets { rate, group: flags.pps_multi.max(1) });
    }
    for (flag, text, layer) in
        [("--mbps", &flags.mbps, Layer::Frame), ("--mbps-l1", &flags.mbps_l1, Layer::Wire)]
    {
        let Some(text) = text else { continue };
        return match Rate::parse_per_second(text, 1_000_000) {
            Ok(rate) => Ok(Pace::Bits { rate, layer }),
            Err(RateError::Zero) => Ok(Pace::TopSpeed),
            Err(error) => Err(wrong(flag, text, error)),
        };
    }
    let text = flags.multiplier.as_deref().unwrap_or("1");
    let multiplier = Decimal::parse(text).map_err(|error| wrong("--multiplier", text, error))?;
    // As in tcpreplay, 0 is the capture's own pace.
    let multiplier =
        if multiplier.digits == 0 { Decimal { digits: 1, denominator: 1 } } else { multiplier };
    Ok(Pace::Capture { multiplier, gap_max })
}

fn unique(flags: &ReplayFlags) -> Result<Option<UniquePlan>, String> {
    if !flags.unique_ip && !flags.unique_flows {
        return Ok(None);
    }
    let passes_milli = match &flags.unique_ip_loops {
        None => 1_000,
        Some(text) => {
            let flag = "--unique-ip-loops";
            let decimal = Decimal::parse(text).map_err(|error| wrong(flag, text, error))?;
            let milli = u128::from(decimal.digits) * 1_000 / u128::from(decimal.denominator);
            match u64::try_from(milli) {
                Ok(milli) if milli >= 1_000 => milli,
                _ => return Err(format!("{flag} {text}: expected 1 or more")),
            }
        }
    };
    Ok(Some(UniquePlan { ports: flags.unique_flows, passes_milli }))
}

fn seconds(flag: &str, text: &str) -> Result<Duration, String> {
    let decimal = Decimal::parse(text).map_err(|error| wrong(flag, text, error))?;
    let nanoseconds = u128::from(decimal.digits) * u128::from(NANOSECONDS_PER_SECOND)
        / u128::from(decimal.denominator);
    Ok(Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX)))
}

fn wrong(flag: &str, found: &str, error: impl std::fmt::Display) -> String {
    format!("{flag} {found}: {error}")
}
