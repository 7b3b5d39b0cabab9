//! Parses the values of a header field.

use std::num::NonZeroU64;

use wirestorm_model::stream::{Values, Write};
use wirestorm_wire::layout::ValueKind;

use crate::document::error::PlanError;
use crate::document::value_at::{Fields, ValueAt, integer};

/// Values of a field.
#[derive(Clone, Debug)]
pub(super) enum Pattern<'a> {
    /// Computed from the rest of the frame.
    Auto,
    /// A deliberately wrong checksum.
    Bad,
    /// A constant.
    Value(u128),
    /// Values that advance with every frame, or when another field wraps.
    Varies {
        /// The values.
        values: Values,
        /// Restart after this many values.
        restart_after: Option<NonZeroU64>,
        /// Name of the other field, with its place in the plan.
        after: Option<ValueAt<'a>>,
        /// Bits of the field that vary. `None`: all.
        part: Option<BitSlice>,
    },
}

/// Bits of a field that vary. The field holds `field & !mask | value << shift & mask`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BitSlice {
    /// Value of the other bits, if the plan sets it.
    pub(super) base: Option<u128>,
    mask: u128,
    /// Bits to the left; to the right if negative.
    shift: i32,
}

/// Forms of a field's values, of which a field has one.
pub(super) const FORMS: [&str; 6] =
    ["value", "values", "increment", "decrement", "random", "weighted"];

/// Options beside a form.
pub(super) const FORM_OPTIONS: [&str; 4] = ["after", "restart_after", "mask", "shift"];

pub(super) const RANDOM: [&str; 4] = ["min", "max", "seed", "count"];
pub(super) const COUNTER: [&str; 3] = ["start", "step", "count"];
pub(super) const WEIGHTED: [&str; 2] = ["choices", "seed"];

/// Reads the values of a field with this notation and width.
pub(super) fn read<'a>(
    place: &ValueAt<'a>,
    notation: ValueKind,
    bits: u32,
    is_checksum: bool,
) -> Result<Pattern<'a>, PlanError> {
    let reader = Reader { notation, bits };
    match place.value().as_str() {
        Some("auto") => return Ok(Pattern::Auto),
        Some("bad") if is_checksum => return Ok(Pattern::Bad),
        _ => {}
    }
    if !place.value().is_object() {
        return reader.scalar(place).map(Pattern::Value);
    }
    let fields = place.fields(&[&FORMS[..], &FORM_OPTIONS].concat())?;
    let part = reader.part(&fields)?;
    // With `mask` or `shift`, `value` sets the other bits and is no form.
    let forms = if part.is_some() { &FORMS[1..] } else { &FORMS };
    let present: Vec<_> =
        forms.iter().filter_map(|name| Some((*name, fields.get(name)?))).collect();
    let [(form, value)] = present.as_slice() else {
        return Err(place.unexpected(format!("one of {}", forms.join(", "))));
    };
    let restart = fields.get("restart_after");
    let mut restart_after = match &restart {
        Some(restart) => NonZeroU64::new(restart.integer(1, u64::MAX)?),
        None => None,
    };
    let values = match *form {
        "value" => return reader.scalar(value).map(Pattern::Value),
        "values" => {
            let items = value.items("values")?;
            if items.is_empty() {
                return Err(value.unexpected("at least one value"));
            }
            Values::List(items.iter().map(|item| reader.scalar(item)).collect::<Result<_, _>>()?)
        }
        "weighted" => reader.weighted(value)?,
        "random" => {
            let fields = value.fields(&RANDOM)?;
            let min = fields.get("min").map_or(Ok(0), |min| reader.scalar(&min))?;
            let last = fields.get("max");
            let max = last.as_ref().map_or(Ok(reader.max_value()), |max| reader.scalar(max))?;
            if max < min {
                return Err(last.as_ref().unwrap_or(value).unexpected("at least min"));
            }
            if let Some(count) = fields.get("count") {
                if restart.is_some() {
                    return Err(
                        count.message_error("count and restart_after are the same option: set one")
                    );
                }
                restart_after = NonZeroU64::new(count.integer(1, u64::MAX)?);
            }
            Values::Random { min, max, seed: value.seed()? }
        }
        form => reader.counter(value, form == "decrement")?,
    };
    Ok(Pattern::Varies { values, restart_after, after: fields.get("after"), part })
}

impl BitSlice {
    /// Restricts the write of a whole field to these bits.
    pub(super) fn of(self, field: Write) -> Write {
        let place = field.shift as u32;
        Write { mask: field.mask & self.mask << place, shift: field.shift + self.shift, ..field }
    }

    /// Returns the field's value for a variable value, given its other bits in `base`.
    pub(super) fn with(self, base: u128, value: u128) -> u128 {
        let distance = self.shift.unsigned_abs();
        let shifted = match self.shift {
            0.. => value.checked_shl(distance),
            _ => value.checked_shr(distance),
        };
        base & !self.mask | shifted.unwrap_or(0) & self.mask
    }
}

struct Reader {
    notation: ValueKind,
    bits: u32,
}

impl Reader {
    /// Returns the maximum value of the field.
    fn max_value(&self) -> u128 {
        u128::MAX >> (128 - self.bits.clamp(1, 128))
    }

    fn scalar(&self, place: &ValueAt<'_>) -> Result<u128, PlanError> {
        let value = match (place.value().as_str(), self.notation) {
            (Some(text), ValueKind::Uint) => integer(text),
            (Some(text), kind) => kind.parse(text).ok(),
            (None, ValueKind::Uint) => place.value().as_u64().map(u128::from),
            (None, _) => None,
        };
        value
            .filter(|value| *value <= self.max_value())
            .ok_or_else(|| place.unexpected(self.expected()))
    }

    fn expected(&self) -> String {
        match self.notation {
            ValueKind::Uint => {
                format!("a whole number from 0 to {}, or a pattern", self.max_value())
            }
            ValueKind::Mac => "an Ethernet address such as 02:00:00:00:00:01, or a pattern".into(),
            ValueKind::Ipv4 => "an IPv4 address such as 192.0.2.1, or a pattern".into(),
            ValueKind::Bytes => "bytes as hexadecimal digits".into(),
            ValueKind::Ipv6 => "an IPv6 address such as 2001:db8::1, or a pattern".into(),
        }
    }

    /// Reads a step, as a number or in the field's notation (`0.0.1.0`).
    fn step(&self, place: &ValueAt<'_>) -> Result<u128, PlanError> {
        let number = match place.value().as_str() {
            Some(text) => integer(text),
            None => place.value().as_u64().map(u128::from),
        };
        let step = match number {
            Some(number) => number,
            None => self.scalar(place)?,
        };
        if step == 0 || step > self.max_value() {
            return Err(place.unexpected("a step that is not 0"));
        }
        Ok(step)
    }

    /// Reads `mask` and `shift`. Returns `None` if both are absent.
    fn part(&self, fields: &Fields<'_>) -> Result<Option<BitSlice>, PlanError> {
        let (mask, shift) = (fields.get("mask"), fields.get("shift"));
        if mask.is_none() && shift.is_none() {
            return Ok(None);
        }
        let bits = i64::from(self.bits);
        let base = match fields.get("value") {
            Some(base) => Some(self.scalar(&base)?),
            None => None,
        };
        let mask = mask.map_or(Ok(self.max_value()), |mask| self.scalar(&mask))?;
        let shift = match &shift {
            None => 0,
            Some(place) => {
                let shift = place.value().as_i64().filter(|shift| shift.abs() < bits);
                let expected = || format!("bits to the left, from {} to {}", 1 - bits, bits - 1);
                shift.ok_or_else(|| place.unexpected(expected()))?
            }
        };
        Ok(Some(BitSlice { base, mask, shift: shift as i32 }))
    }

    fn counter(&self, place: &ValueAt<'_>, downwards: bool) -> Result<Values, PlanError> {
        let fields = place.fields(&COUNTER)?;
        let start = fields.get("start").map_or(Ok(0), |start| self.scalar(&start))?;
        let step = fields.get("step").map_or(Ok(1), |step| self.step(&step))?;
        let count = fields.get("count").map_or(Ok(1), |count| count.integer(1, u64::MAX))?;
        // The write truncates values to the field's width, so that they wrap around.
        Values::counter(start, step, count, self.bits, downwards)
            .ok_or_else(|| place.error("more values than 128 bits have", "a smaller step or count"))
    }

    fn weighted(&self, place: &ValueAt<'_>) -> Result<Values, PlanError> {
        let mut choices = Vec::new();
        let items = match place.value().is_object() {
            true => {
                let fields = place.fields(&WEIGHTED)?;
                fields.required("choices", "pairs of value and weight")?.items("pairs")?
            }
            false => place.items("pairs of value and weight")?,
        };
        for item in &items {
            let pair = item.items("a value and its weight")?;
            let [value, weight] = pair.as_slice() else {
                return Err(item.unexpected("a value and its weight"));
            };
            choices.push((self.scalar(value)?, weight.integer(0, u64::from(u32::MAX))? as u32));
        }
        if choices.iter().all(|(_, weight)| *weight == 0) {
            return Err(place.unexpected("at least one value with a weight that is not zero"));
        }
        Ok(Values::Weighted { choices, seed: place.seed()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Result of a read: a constant, or values and the field that they wait for.
    #[derive(Debug, PartialEq)]
    enum ParsedPattern {
        Value(u128),
        Varies(Values, Option<String>),
    }

    fn pattern(value: Value, notation: ValueKind, bits: u32) -> Result<ParsedPattern, String> {
        match read(&ValueAt::root(&value), notation, bits, false) {
            Ok(Pattern::Value(number)) => Ok(ParsedPattern::Value(number)),
            Ok(Pattern::Varies { values, after, .. }) => Ok(ParsedPattern::Varies(
                values,
                after.map(|place| place.text("").unwrap().to_owned()),
            )),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Returns the first values, truncated to the field's width.
    fn first(value: Value, notation: ValueKind, bits: u32, count: u64) -> Vec<u128> {
        match pattern(value, notation, bits) {
            Ok(ParsedPattern::Varies(values, _)) => {
                (0..count).map(|n| values.nth(n) & (u128::MAX >> (128 - bits))).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn parses_scalars_in_the_notation_of_the_field() {
        assert_eq!(pattern(json!(80), ValueKind::Uint, 16), Ok(ParsedPattern::Value(80)));
        assert_eq!(pattern(json!("0x1_0"), ValueKind::Uint, 16), Ok(ParsedPattern::Value(16)));
        let address = pattern(json!("10.0.0.1"), ValueKind::Ipv4, 32);
        assert_eq!(address, Ok(ParsedPattern::Value(0x0a00_0001)));
        let address = pattern(json!("02:00:00:00:00:01"), ValueKind::Mac, 48);
        assert_eq!(address, Ok(ParsedPattern::Value(0x0200_0000_0001)));
        let error = pattern(json!("10.0.0.300"), ValueKind::Ipv4, 32).unwrap_err();
        assert!(error.starts_with("plan: found \"10.0.0.300\", expected an IPv4 address"));
        assert!(pattern(json!(65_536), ValueKind::Uint, 16).is_err());
    }

    #[test]
    fn counters_restart_after_their_count() {
        let up = json!({"increment": {"start": 5, "step": 3, "count": 3}});
        assert_eq!(first(up, ValueKind::Uint, 8, 5), [5, 8, 11, 5, 8]);
        let down = json!({"decrement": {"start": 5, "step": 2, "count": 3}});
        assert_eq!(first(down, ValueKind::Uint, 8, 4), [5, 3, 1, 5]);
        let beyond = json!({"increment": {"start": 254, "count": 4}});
        assert_eq!(first(beyond, ValueKind::Uint, 8, 5), [254, 255, 0, 1, 254]);
        let below = json!({"decrement": {"start": 1, "count": 4}});
        assert_eq!(first(below, ValueKind::Uint, 8, 5), [1, 0, 255, 254, 1]);
        let step = json!({"increment": {"start": "10.0.0.0", "step": "0.0.1.0", "count": 2}});
        assert_eq!(first(step, ValueKind::Ipv4, 32, 3), [0x0a00_0000, 0x0a00_0100, 0x0a00_0000]);
    }

    #[test]
    fn random_and_weighted_values_stay_in_range() {
        let random = json!({"random": {"min": 10, "max": 12, "seed": 4, "count": 100}});
        assert!(first(random, ValueKind::Uint, 8, 50).iter().all(|it| (10..=12).contains(it)));
        let weighted = json!({"weighted": [[1, 1], [2, 0], [3, 5]]});
        assert!(first(weighted, ValueKind::Uint, 8, 50).iter().all(|it| [1, 3].contains(it)));
    }

    #[test]
    fn a_field_can_wait_for_another_field() {
        let nested = json!({"values": [1, 2], "after": "ipv4.src"});
        let Ok(ParsedPattern::Varies(_, after)) = pattern(nested, ValueKind::Uint, 16) else {
            panic!("a pattern")
        };
        assert_eq!(after.as_deref(), Some("ipv4.src"));
    }

    #[test]
    fn invalid_patterns_have_their_path() {
        let error = pattern(json!({"increment": {"strat": 1}}), ValueKind::Uint, 8).unwrap_err();
        assert!(error.starts_with("increment.strat: found an unknown field, expected start?"));
        let error = pattern(json!({"after": "x.y"}), ValueKind::Uint, 8).unwrap_err();
        assert!(error.contains("one of value, values"), "{error}");
        let error = pattern(json!({"weighted": [[1]]}), ValueKind::Uint, 8).unwrap_err();
        assert!(error.starts_with("weighted[0]: found a list of 1"), "{error}");
        assert!(pattern(json!({"values": []}), ValueKind::Uint, 8).is_err());
    }
}
