//! Conversion of replay requests to plans.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use wirestorm_api::error::ErrorDocument;
use wirestorm_api::run::{ReplayRequest, RunOptions};
use wirestorm_control::base::pace::Pace;
use wirestorm_control::base::rate::Decimal;
use wirestorm_control::base::time::Duration;
use wirestorm_control::model::stream::Speed;
use wirestorm_control::plan::edit::EditArguments;
use wirestorm_control::plan::replay::{
    FlowPlan, Limits, ReceivePlan, ReplayPlan, SideAssignment, Target, UniquePlan,
};
use wirestorm_control::plan::sides::{SidesOptions, parse_side_rule};
use wirestorm_control::plan::traffic::{RequestedRate, parse_rate};
use wirestorm_control::replay::Callbacks;
use wirestorm_control::run::Plan;
use wirestorm_store::record::RecordKind;

use super::load::LoadSource;
use super::request::{
    Resolved, backend, invalid, of_clients, policy, refuse, time, tolerance, workers,
};

/// Maximum number of distinct flows, and of conversations with a known client.
const FLOWS_MAX: usize = 1 << 20;

/// Converts a request. `interface` returns the interface of a port of the server.
///
/// # Errors
/// A value is not valid, or two of them conflict.
pub(super) fn resolve(
    request: ReplayRequest,
    options: &RunOptions,
    ports: &BTreeMap<String, String>,
    interface: &dyn Fn(&str) -> Result<String, ErrorDocument>,
) -> Result<Resolved, ErrorDocument> {
    let at = |field: &str, message: String| invalid(&format!("plan.replay.{field}"), message);
    refuse(&of_clients(options), "replay")?;
    refuse(
        &[("per_vlan", options.per_vlan.is_some()), ("multiplier", options.multiplier.is_some())],
        "replay",
    )?;
    if !ports.is_empty() {
        return Err(invalid("ports", "a replay names its ports in `port` and `second_port`"));
    }
    if request.captures.is_empty() {
        return Err(at("captures", "expected at least one uploaded capture".to_owned()));
    }
    let primary = interface(&request.port)?;
    let secondary = request.second_port.as_deref().map(interface).transpose()?;
    let rx = request.rx.as_deref().map(interface).transpose()?;
    let sides = match &request.split {
        None if secondary.is_some() => {
            return Err(at("split", "a second port needs a rule, such as auto".to_owned()));
        }
        None => SideAssignment::Single,
        Some(rule) => SideAssignment::Rules(SidesOptions {
            rule: parse_side_rule(rule).map_err(|error| at("split", error.to_string()))?,
            reverse: false,
            non_ip_is_primary: false,
            conversations_max: FLOWS_MAX,
        }),
    };
    let edits = match request.edits {
        serde_json::Value::Null => EditArguments::default(),
        edits => serde_json::from_value(edits).map_err(|error| at("edits", error.to_string()))?,
    };
    let passes = request.passes.unwrap_or(1);
    let interfaces: Vec<String> =
        [Some(primary.clone()), secondary.clone(), rx.clone()].into_iter().flatten().collect();
    let plan = ReplayPlan {
        captures: request.captures.iter().map(PathBuf::from).collect(),
        target: Target::Interfaces { primary, secondary },
        sides,
        edits: edits.parse().map_err(|error| at("edits", error.to_string()))?,
        show: None,
        one_at_a_time: false,
        pace: pace(request.rate.as_deref()).map_err(|message| at("rate", message))?,
        policy: policy(options)?,
        limits: Limits {
            passes: if passes == 0 { u64::MAX } else { passes },
            packets: request.packets.unwrap_or(u64::MAX),
            duration: time("duration", options.duration.as_deref())?.unwrap_or(Duration::MAX),
        },
        pass_delay: Duration::ZERO,
        preload: request.preload,
        flows: Some(FlowPlan { expiry: None, flows_max: FLOWS_MAX }),
        unique: request.unique_ip.then_some(UniquePlan { ports: false, passes_milli: 1_000 }),
        include: None,
        exclude: Vec::new(),
        original_length: false,
        receive: rx.map(|interface| ReceivePlan { interface, verify: false }),
        workers: workers(options)?,
        tolerance_ppm: (tolerance(options)? * 1e4) as u32,
        force_interface: options.force_interface.unwrap_or(false),
    };
    plan.check().map_err(|conflict| invalid("plan.replay", conflict.to_string()))?;
    Ok(Resolved {
        load: LoadSource::Fixed,
        plan: Plan::Replay {
            plan: Box::new(plan),
            backend: backend(options)?,
            hooks: Callbacks::default(),
        },
        kind: RecordKind::Replay,
        interfaces,
        flows: Arc::default(),
        source: request.captures.join(", "),
        text: None,
    })
}

/// Parses a rate of a replay.
fn pace(text: Option<&str>) -> Result<Pace, String> {
    let of_capture = |multiplier| Pace::Capture { multiplier, gap_max: Duration::MAX };
    let Some(text) = text else {
        return Ok(of_capture(Decimal { digits: 1, denominator: 1 }));
    };
    let wrong =
        || format!("found {text:?}, expected 10kpps, 1G-l1, 1G-l2, x2 (twice the capture) or max");
    if let Some(factor) = text.strip_prefix('x') {
        let factor = Decimal::parse(factor).ok().filter(|factor| factor.digits > 0);
        return factor.map(of_capture).ok_or_else(wrong);
    }
    match parse_rate(text) {
        Some(RequestedRate::Speed(Speed::Max)) => Ok(Pace::TopSpeed),
        Some(RequestedRate::Speed(Speed::Frames(rate))) => Ok(Pace::Packets { rate, group: 1 }),
        Some(RequestedRate::Speed(Speed::Bits(rate, layer))) => Ok(Pace::Bits { rate, layer }),
        Some(RequestedRate::Percentage(_)) | None => Err(wrong()),
    }
}
