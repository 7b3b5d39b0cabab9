//! Streams of the ports, stored as the clients sent them.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use wirestorm_control::plan::trex::{self, LowerOptions, TrexError};

use super::Trex;
use super::groups::group_of;
use super::parameters::{Parameters, done};
use super::port::{DEFAULT_PROFILE, PortState, Profile, wrong_state};
use super::rpc::{Answer, RpcError};
use super::tagged::tagged_group_of;

/// Maximum number of streams of a port.
const STREAMS_MAX: usize = 20_000;
/// Maximum number of profiles of a port.
const PROFILES_MAX: usize = 4_096;
/// Length of a packet, in bytes of its base 64 text.
const PACKET_BYTES: std::ops::RangeInclusive<usize> = 14..=9_238;

/// Maximum length of the notes that a client stores with a packet, and maximum number of instructions
/// of a stream. A port stores them for each of its streams.
const NOTES_BYTES_MAX: usize = 1 << 20;
const INSTRUCTIONS_MAX: usize = 1_000;

/// Returns the name of the profile that a request concerns.
pub(super) fn profile_id<'a>(parameters: &Parameters<'a>) -> Result<&'a str, RpcError> {
    parameters.text_or("profile_id", DEFAULT_PROFILE)
}

pub(super) fn add_stream(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let number = trex.owned(parameters)?;
    let name = profile_id(parameters)?;
    let id = parameters.u32("stream_id")?;
    let stream = parameters.object("stream")?;
    check(&stream)?;
    let stored = Arc::new(Value::Object(stream.0.clone()));
    let mut state = trex.state();
    let state = &mut *state;
    if let Some((group, is_latency)) = group_of(&stored) {
        state.groups.check(group, is_latency)?;
    }
    let tagged_group = tagged_group_of(&stored);
    if let Some(group) = tagged_group {
        state.tagged.check(number, group)?;
    }
    let port = &mut state.ports[number];
    let count: usize = port.profiles.values().map(|profile| profile.streams.len()).sum();
    if count >= STREAMS_MAX {
        let text = format!("Reached limit of {STREAMS_MAX} streams at the port.");
        return Err(RpcError::execution(text));
    }
    if !port.profiles.contains_key(name) {
        if port.profiles.len() >= PROFILES_MAX || name == "*" || name.is_empty() {
            return Err(RpcError::execution(format!("profile_id {name} cannot be added")));
        }
        port.profiles.insert(name.to_owned(), Profile::default());
    }
    let profile = port.profile_mut(name)?;
    match profile.state() {
        PortState::Idle | PortState::Streams => {}
        state => return Err(wrong_state("add_stream", state, name)),
    }
    if profile.streams.contains_key(&id) {
        let text = format!("stream {id} already exists in profile_id({name})");
        return Err(RpcError::execution(text));
    }
    if let Some((group, is_latency)) = group_of(&stored) {
        state.groups.add(group, is_latency);
    }
    if let Some(group) = tagged_group {
        state.tagged.add(number, group);
    }
    profile.streams.insert(id, stored);
    done()
}

/// Checks what TRex checks when a stream is added. The rest is checked at the start.
fn check(stream: &Parameters<'_>) -> Result<(), RpcError> {
    stream.flag("enabled")?;
    stream.flag("self_start")?;
    stream.number("isg")?;
    stream.int("flags")?;
    stream.u32("action_count")?;
    stream.int("next_stream_id")?;
    let core = stream.find("core_id").map(|_| stream.int("core_id")).transpose()?.unwrap_or(-1);
    if core > 0 {
        return Err(RpcError::execution("There is only one core, hence core ID must be 0."));
    }
    let mode = stream.object("mode")?;
    let rate = mode.object("rate")?;
    rate.choice("type", &["pps", "bps_L1", "bps_L2", "percentage"])?;
    rate.number("value")?;
    let not_zero = |kind: &str, field: &str| match mode.u32(field)? {
        0 => Err(RpcError::parameters(format!("{kind}: '{field}' cannot be zero."))),
        _ => Ok(()),
    };
    match mode.text("type")? {
        "continuous" => {}
        "single_burst" => not_zero("single_burst", "total_pkts")?,
        "multi_burst" => {
            not_zero("multi_burst", "pkts_per_burst")?;
            mode.number("ibg")?;
            mode.u32("count")?;
        }
        other => {
            return Err(RpcError::parameters(format!("bad stream type provided: '{other}'")));
        }
    }
    let packet = stream.object("packet")?;
    let binary = packet.text("binary")?.trim_end_matches('=');
    let length = binary.len() * 3 / 4;
    if !PACKET_BYTES.contains(&length) {
        let (least, most) = (PACKET_BYTES.start(), PACKET_BYTES.end());
        return Err(RpcError::execution(format!(
            "Bad packet size provided: {length}. Should be between {least} and {most}"
        )));
    }
    if packet.text_or("meta", "")?.len() > NOTES_BYTES_MAX {
        return Err(RpcError::execution(format!("meta is longer than {NOTES_BYTES_MAX} bytes")));
    }
    let instructions = stream.object("vm")?.array("instructions")?;
    if instructions.len() > INSTRUCTIONS_MAX {
        return Err(RpcError::execution(format!("at most {INSTRUCTIONS_MAX} instructions")));
    }
    for (at, instruction) in instructions.iter().enumerate() {
        check_instruction(&super::parameters::object_of(at, instruction)?)?;
    }
    let statistics = stream.object("flow_stats")?;
    if statistics.flag("enabled")? {
        statistics.u32("stream_id")?;
        statistics.text("rule_type")?;
    }
    Ok(())
}

fn check_instruction(instruction: &Parameters<'_>) -> Result<(), RpcError> {
    const TYPES: [&str; 9] = [
        "fix_checksum_hw",
        "fix_checksum_ipv4",
        "fix_checksum_icmpv6",
        "flow_var",
        "write_flow_var",
        "tuple_flow_var",
        "trim_pkt_size",
        "write_mask_flow_var",
        "flow_var_rand_limit",
    ];
    if instruction.choice("type", &TYPES)? != "flow_var" {
        return Ok(());
    }
    let wrong = |text: &str| Err(RpcError::parameters(format!("VM: {text}")));
    let step = instruction.u64("step")?;
    if step == 0 {
        return wrong("step cannot be 0");
    }
    if let Some(Value::Array(list)) = instruction.find("value_list") {
        return match step > list.len() as u64 {
            true => wrong("step cannot be bigger than list size"),
            false => Ok(()),
        };
    }
    let (init, min, max) = (
        instruction.u64("init_value")?,
        instruction.u64("min_value")?,
        instruction.u64("max_value")?,
    );
    if max < min {
        return wrong(&format!(
            "requested flow var max value: '{max}' is smaller than min value: {min}"
        ));
    }
    if !(min..=max).contains(&init) {
        return wrong(&format!(
            "requested flow var init value: '{init}' should be in range from min value '{min}' to \
             max value '{max}'"
        ));
    }
    Ok(())
}

pub(super) fn remove_stream(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.owned(parameters)?;
    let name = profile_id(parameters)?;
    let id = parameters.u32("stream_id")?;
    let mut state = trex.state();
    let state = &mut *state;
    let profile = state.ports[port].profile_mut(name)?;
    match profile.state() {
        PortState::Streams => {}
        state => return Err(wrong_state("remove_stream", state, name)),
    }
    let Some(stream) = profile.streams.remove(&id) else {
        let text = format!("stream {id} does not exists in profile_id({name})");
        return Err(RpcError::execution(text));
    };
    state.groups.remove(group_of(&stream));
    state.tagged.remove(port, &stream);
    done()
}

pub(super) fn remove_all_streams(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.owned(parameters)?;
    let mut state = trex.state();
    let state = &mut *state;
    for name in state.ports[port].selected(profile_id(parameters)?) {
        let Some(profile) = state.ports[port].profiles.get_mut(&name) else { continue };
        match profile.state() {
            PortState::Idle | PortState::Streams => {}
            state => return Err(wrong_state("remove_and_delete_all_streams", state, &name)),
        }
        for stream in std::mem::take(&mut profile.streams).into_values() {
            state.groups.remove(group_of(&stream));
            state.tagged.remove(port, &stream);
        }
    }
    done()
}

pub(super) fn get_stream_list(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.port_id(parameters)?;
    let state = trex.state();
    let port = &state.ports[port];
    let ids = |profile: &Profile| Value::from_iter(profile.streams.keys().copied());
    match profile_id(parameters)? {
        "*" => Ok(port.profiles.iter().map(|(name, it)| (name.clone(), ids(it))).collect()),
        name => Ok(ids(port.profile(name)?)),
    }
}

pub(super) fn get_stream(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let number = trex.port_id(parameters)?;
    let name = profile_id(parameters)?;
    let id = parameters.u32("stream_id")?;
    let with_packet = parameters.flag("get_pkt")?;
    let state = trex.state();
    let profile = state.ports[number].profile(name)?;
    let Some(stream) = profile.streams.get(&id) else {
        return Err(RpcError::execution(format!(
            "stream id {id}, profile id {name} on port {number} does not exists"
        )));
    };
    let mut stream = Value::clone(stream);
    if !with_packet && let Some(fields) = stream.as_object_mut() {
        fields.remove("packet");
    }
    Ok(json!({"stream": stream}))
}

pub(super) fn get_all_streams(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.port_id(parameters)?;
    let streams = |profile: &Profile| -> Value {
        profile.streams.iter().map(|(id, it)| (id.to_string(), Value::clone(it))).collect()
    };
    let state = trex.state();
    let profiles = &state.ports[port].profiles;
    match profile_id(parameters)? {
        "*" => {
            let used = profiles.iter().filter(|(_, profile)| !profile.streams.is_empty());
            let used: Map<String, Value> =
                used.map(|(name, profile)| (name.clone(), streams(profile))).collect();
            Ok(json!({"profiles": used}))
        }
        name => Ok(match profiles.get(name) {
            Some(profile) => json!({"streams": streams(profile)}),
            None => json!({}),
        }),
    }
}

pub(super) fn get_profile_list(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.port_id(parameters)?;
    Ok(trex.state().ports[port].profiles.keys().cloned().collect())
}

/// Fields of a stream, and of the objects in it, that have a meaning for the server. Clients store
/// others beside them.
const FIELDS: [&str; 13] = [
    "enabled",
    "self_start",
    "start_paused",
    "flags",
    "action_count",
    "random_seed",
    "isg",
    "core_id",
    "mode",
    "packet",
    "vm",
    "flow_stats",
    "next_stream_id",
];
const NESTED_FIELDS: [(&str, &[&str]); 3] = [
    ("packet", &["binary"]),
    ("vm", &["instructions", "cache"]),
    ("flow_stats", &["enabled", "stream_id", "vxlan", "ieee_1588", "rule_type"]),
];

/// Returns streams as the document that Wirestorm lowers. Streams without `is_linked` start no other
/// one.
pub(super) fn document<'a>(
    streams: impl Iterator<Item = (&'a u32, &'a Arc<Value>)>,
    is_linked: bool,
) -> String {
    let stream = |(id, stream): (&u32, &Arc<Value>)| {
        let mut fields = Map::new();
        for (name, value) in stream.as_object().into_iter().flatten() {
            if !FIELDS.contains(&name.as_str()) || name == "next_stream_id" && !is_linked {
                continue;
            }
            let nested = NESTED_FIELDS.iter().find(|(nested, _)| nested == name);
            let value = match (nested, value) {
                (Some((_, known)), Value::Object(value)) => {
                    let known = value.iter().filter(|(name, _)| known.contains(&name.as_str()));
                    Value::from_iter(known.map(|(name, value)| (name.clone(), value.clone())))
                }
                _ => value.clone(),
            };
            fields.insert(name.clone(), value);
        }
        fields.insert("id".to_owned(), (*id).into());
        Value::Object(fields)
    };
    Value::from_iter(streams.map(stream)).to_string()
}

/// Returns the error of lowering streams, in the words of TRex where clients look for them.
pub(super) fn of_lowering(error: &TrexError) -> RpcError {
    match error {
        TrexError::BelowFixed { fixed, unit, .. } => {
            let unit = if unit.starts_with("frames") { "pps" } else { "BPS" };
            RpcError::execution(format!(
                "current stream configuration enforces a minimum rate of '{fixed}' {unit}"
            ))
        }
        error => RpcError::execution(format!("streams{error}")),
    }
}

pub(super) fn validate(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.owned(parameters)?;
    let streams = {
        let state = trex.state();
        state.ports[port].profile(profile_id(parameters)?)?.streams.clone()
    };
    if streams.is_empty() {
        return Err(RpcError::execution("no streams attached to port"));
    }
    let document = document(streams.iter(), true);
    let options = trex.lower_options(port);
    let lowered = trex::lower(&document, &options).map_err(|error| of_lowering(&error))?;
    let load = |document: &str, options: &LowerOptions| {
        trex::load(document, options).map_err(|error| of_lowering(&error))
    };
    let most = load(&document, &options)?;
    let is_latency = |stream: &Value| group_of(stream).is_some_and(|(_, is_latency)| is_latency);
    let fixed = streams.iter().filter(|(_, stream)| is_latency(stream));
    let fixed: Vec<_> = fixed.collect();
    let least = match fixed.is_empty() {
        true => None,
        false => Some(load(&self::document(fixed.into_iter(), false), &options)?),
    };
    let line = options.line_rate.per_second();
    let rates = |prefix: &str, load: Option<trex::TotalLoad>| {
        let [frames, l2, l1] = load.map_or([0.0; 3], |it| [it.frames, it.bits_l2, it.bits_l1]);
        [
            (format!("{prefix}_pps"), frames),
            (format!("{prefix}_bps_l2"), l2),
            (format!("{prefix}_bps_l1"), l1),
            (format!("{prefix}_line_util"), 100.0 * l1 / line),
        ]
    };
    let rate: Map<String, Value> = rates("max", Some(most))
        .into_iter()
        .chain(rates("min", least))
        .map(|(name, value)| (name, value.into()))
        .collect();
    let events = lowered.iter().take(100).filter_map(|stream| {
        let id: u32 = stream.name.parse().ok()?;
        let alone = [(&id, streams.get(&id)?)];
        let load = trex::load(&self::document(alone.into_iter(), false), &options).ok()?;
        Some(json!({
            "time_usec": stream.transmission.start_delay.as_nanos() as f64 / 1e3,
            "diff_pps": load.frames,
            "diff_bps_l2": load.bits_l2,
            "diff_bps_l1": load.bits_l1,
            "stream_id": id,
        }))
    });
    let events: Vec<Value> = events.collect();
    let graph = json!({
        "expected_duration": -1, "events_count": events.len(), "events": events,
    });
    Ok(json!({"rate": rate, "graph": graph}))
}
