//! Parses jumps and the steps that change variables, times and counters, listen, or start flows.

use std::num::NonZeroU16;
use std::ops::RangeInclusive;

use wirestorm_base::time::Duration;
use wirestorm_model::program::{Comparison, CountAmount, JumpCondition, Step, UserCounter};

use super::composition;
use super::expect;
use super::names::Names;
use crate::document::error::PlanError;
use crate::document::range;
use crate::document::time::read_time;
use crate::document::value_at::{Fields, ValueAt};

/// Dynamic ports (RFC 6335 section 6).
pub(super) const DYNAMIC_PORTS: RangeInclusive<u16> = 49_152..=65_535;

pub(super) const JUMP: [&str; 11] = [
    "to",
    "variable",
    "less",
    "less_or_equal",
    "equal",
    "not_equal",
    "greater_or_equal",
    "greater",
    "within",
    "since",
    "received",
];
pub(super) const COMPARISONS: [(&str, Comparison); 6] = [
    ("less", Comparison::Less),
    ("less_or_equal", Comparison::LessOrEqual),
    ("equal", Comparison::Equal),
    ("not_equal", Comparison::NotEqual),
    ("greater_or_equal", Comparison::GreaterOrEqual),
    ("greater", Comparison::Greater),
];
pub(super) const LISTEN: [&str; 2] = ["variable", "ports"];
pub(super) const START_FLOW: [&str; 2] = ["port", "client_port"];
pub(super) const DECREMENT_AND_JUMP: [&str; 2] = ["variable", "to"];
pub(super) const COUNTERS: [&str; 4] = ["A", "B", "C", "D"];
pub(super) const SINCE: [&str; 1] = ["since"];

const LABEL: &str = "the name of a label";
const VARIABLE: &str = "the name of a variable";

pub(super) fn read_jump(place: &ValueAt<'_>, names: &mut Names) -> Result<Step, PlanError> {
    if place.value().is_string() {
        return Ok(Step::Jump { to: names.jump(place)?, when: JumpCondition::Always });
    }
    let fields = place.fields(&JUMP)?;
    let to = names.jump(&fields.required("to", LABEL)?)?;
    Ok(Step::Jump { to, when: read_when(place, &fields, names)? })
}

fn read_when(
    place: &ValueAt<'_>,
    fields: &Fields<'_>,
    names: &mut Names,
) -> Result<JumpCondition, PlanError> {
    let compared: Vec<_> = COMPARISONS
        .iter()
        .filter_map(|(name, comparison)| Some((*comparison, fields.get(name)?)))
        .collect();
    let variable = fields.get("variable");
    let within = fields.get("within").zip(fields.get("since"));
    let received = fields.get("received");
    match (variable, compared.as_slice(), within, received) {
        (None, [], None, Some(received)) => {
            Ok(JumpCondition::Received(expect::read_expect(&received, names)?))
        }
        (Some(variable), [(comparison, value)], None, None) => Ok(JumpCondition::Compares {
            variable: names.variable(variable.string(VARIABLE)?, &variable)?,
            comparison: *comparison,
            value: value.integer(0, u64::MAX)?,
        }),
        (None, [], Some((span, since)), None) => {
            Ok(JumpCondition::Within { span: read_millis(&span)?, since: names.time(&since)? })
        }
        _ => Err(place.message_error(
            "a jump has `to` alone, or with `variable` and one comparison such as `less`, or with \
             `within` and `since`, or with `received`",
        )),
    }
}

/// Reads `listen`: a variable that receives the listening port, and the ports to choose from.
pub(super) fn read_listen(place: &ValueAt<'_>, names: &mut Names) -> Result<Step, PlanError> {
    if let Some(name) = place.value().as_str() {
        return Ok(Step::Listen { variable: names.variable(name, place)?, ports: DYNAMIC_PORTS });
    }
    let fields = place.fields(&LISTEN)?;
    let variable = fields.required("variable", VARIABLE)?;
    let ports = fields.get("ports").map_or(Ok(DYNAMIC_PORTS), |it| range::read_ports(&it))?;
    Ok(Step::Listen { variable: names.variable(variable.string(VARIABLE)?, &variable)?, ports })
}

/// Reads `start_flow`: the values that hold the server port and, optionally, the client port.
pub(super) fn read_start_flow(place: &ValueAt<'_>, names: &Names) -> Result<Step, PlanError> {
    const VALUE: &str = "the name of a value";
    let value = |place: &ValueAt<'_>| composition::find_value(place.string(VALUE)?, place, names);
    let fields = place.fields(&START_FLOW)?;
    let port = value(&fields.required("port", VALUE)?)?;
    let client_port = fields.get("client_port").map(|it| value(&it)).transpose()?;
    Ok(Step::StartFlow { port, client_port })
}

pub(super) fn read_decrement_and_jump(
    place: &ValueAt<'_>,
    names: &mut Names,
) -> Result<Step, PlanError> {
    let fields = place.fields(&DECREMENT_AND_JUMP)?;
    let variable = fields.required("variable", VARIABLE)?;
    let to = names.jump(&fields.required("to", LABEL)?)?;
    Ok(Step::DecrementAndJump {
        variable: names.variable(variable.string(VARIABLE)?, &variable)?,
        to,
    })
}

pub(super) fn read_set(place: &ValueAt<'_>, names: &mut Names) -> Result<Step, PlanError> {
    let (name, value) = single_entry(place, "a variable and its value, such as {n: 5}")?;
    read_setting(name, &value, names)
}

/// Reads the value of a name in `set`.
pub(super) fn read_setting(
    name: &str,
    value: &ValueAt<'_>,
    names: &mut Names,
) -> Result<Step, PlanError> {
    if value.value().is_object() {
        return composition::read_set(name, value, names);
    }
    let variable = names.variable(name, value)?;
    Ok(Step::Set { variable, value: value.integer(0, u64::MAX)? })
}

pub(super) fn read_add(place: &ValueAt<'_>, names: &mut Names) -> Result<Step, PlanError> {
    let (name, value) = single_entry(place, "a variable and a number, such as {n: 1}")?;
    let variable = names.variable(name, &value)?;
    let value = match value.value().as_i64() {
        // Adding the two's complement subtracts, modulo 2^64.
        Some(negative @ ..0) => negative.cast_unsigned(),
        _ => value.integer(0, u64::MAX)?,
    };
    Ok(Step::Add { variable, value })
}

pub(super) fn read_postpone(place: &ValueAt<'_>, names: &mut Names) -> Result<Step, PlanError> {
    let (name, value) = single_entry(place, "a remembered time and by how much, such as {t: 1s}")?;
    let time = names.time_named(name, &value)?;
    Ok(Step::AdvanceTime { time, by: read_millis(&value)? })
}

pub(super) fn read_count(place: &ValueAt<'_>, names: &mut Names) -> Result<Step, PlanError> {
    let (name, value) = place.choice(&COUNTERS)?;
    // `choice` returns only known names.
    let counter = COUNTERS.iter().position(|known| *known == name).and_then(UserCounter::new);
    let counter = counter.ok_or_else(|| place.unexpected(COUNTERS.join(", ")))?;
    let what = if value.value().is_object() {
        let since = value.fields(&SINCE)?.required("since", "the name of a time")?;
        CountAmount::Since { time: names.time(&since)?, unit: NonZeroU16::MIN }
    } else {
        CountAmount::Number(value.integer(0, u64::MAX)?)
    };
    Ok(Step::AddToCounter { counter, what })
}

/// Returns the only field, whatever its name is.
fn single_entry<'a>(place: &ValueAt<'a>, what: &str) -> Result<(&'a str, ValueAt<'a>), PlanError> {
    let mut entries = place.entries(what)?;
    match (entries.pop(), entries.pop()) {
        (Some(entry), None) => Ok(entry),
        _ => Err(place.unexpected(what)),
    }
}

/// Reads a time in whole milliseconds, at most 2^32 - 1 ms.
pub(super) fn read_millis(place: &ValueAt<'_>) -> Result<Duration, PlanError> {
    let time = read_time(place)?;
    let millis = time.as_nanos() / 1_000_000;
    if millis > u32::MAX.into() || Duration::from_millis(millis) != time {
        return Err(place.unexpected("whole milliseconds, at most 49 days"));
    }
    Ok(time)
}
