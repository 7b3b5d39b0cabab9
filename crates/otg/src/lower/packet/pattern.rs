//! Values of a header field: the patterns of the models.

use std::num::NonZeroU64;

use wirestorm_model::stream::Values;
use wirestorm_wire::layout::ValueKind;

use super::super::problems::{ConfigError, unsupported};
use crate::view::{Scalar, View};

/// Values of a field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Pattern {
    /// Computed from the rest of the frame, or resolved.
    Auto,
    /// A wrong checksum.
    Bad,
    /// The same in all frames.
    Constant(u128),
    /// Values by the number of the frame, from `values.nth(0)`.
    Varies { values: Values, restart_after: Option<NonZeroU64> },
}

/// Returns whether a message of this name is the pattern of a field.
pub(super) fn is_pattern(message: &str) -> bool {
    message.starts_with("Pattern")
}

/// Reads the pattern of a field with `bits` bits.
pub(super) fn read(view: View<'_>, bits: u32, path: &str) -> Result<Pattern, ConfigError> {
    let reader = Reader { view, bits, path };
    Ok(match view.choice() {
        Some("value") => Pattern::Constant(reader.scalar(view, "value")?),
        Some("values") => reader.list()?,
        Some("increment") => reader.counter("increment", false)?,
        Some("decrement") => reader.counter("decrement", true)?,
        Some("random") => reader.random()?,
        Some("auto") => match view.message("auto") {
            // An address that DHCP assigns.
            Some(_) => return Err(unsupported(format!("{path}.auto"))),
            None => Pattern::Auto,
        },
        Some("generated") => match view.enum_name("generated") {
            Some("bad") => Pattern::Bad,
            _ => Pattern::Auto,
        },
        Some("custom") => Pattern::Constant(reader.scalar(view, "custom")?),
        Some(other) => return Err(unsupported(format!("{path}.{other}"))),
        None => return Err(ConfigError::new(path, "found no choice, expected one")),
    })
}

struct Reader<'a> {
    view: View<'a>,
    bits: u32,
    path: &'a str,
}

impl Reader<'_> {
    fn max(&self) -> u128 {
        max_of(self.bits)
    }

    fn scalar(&self, view: View<'_>, name: &str) -> Result<u128, ConfigError> {
        let value = view.value(name).unwrap_or(Scalar::Number(0));
        self.number(value, || format!("{}.{name}", self.path))
    }

    fn number(&self, value: Scalar<'_>, path: impl Fn() -> String) -> Result<u128, ConfigError> {
        let number = match value {
            Scalar::Number(number) => Some(u128::from(number)),
            Scalar::Text(text) => parse_address(text, self.bits),
        };
        number.filter(|number| *number <= self.max()).ok_or_else(|| {
            let found = match value {
                Scalar::Number(number) => number.to_string(),
                Scalar::Text(text) => format!("{text:?}"),
            };
            let expected = match value {
                Scalar::Number(_) => format!("a whole number from 0 to {}", self.max()),
                Scalar::Text(_) => address_kind(self.bits).to_owned(),
            };
            ConfigError::new(path(), format!("found {found}, expected {expected}"))
        })
    }

    fn list(&self) -> Result<Pattern, ConfigError> {
        let items = self.view.values("values");
        let path = |index: usize| format!("{}.values[{index}]", self.path);
        let numbers =
            items.iter().enumerate().map(|(index, item)| self.number(*item, || path(index)));
        let numbers: Vec<u128> = numbers.collect::<Result<_, _>>()?;
        match numbers.as_slice() {
            [] => Err(ConfigError::new(format!("{}.values", self.path), "found no values")),
            [one] => Ok(Pattern::Constant(*one)),
            _ => Ok(Pattern::Varies { values: Values::List(numbers), restart_after: None }),
        }
    }

    fn part(&self, name: &str) -> Result<View<'_>, ConfigError> {
        let path = || format!("{}.{name}", self.path);
        self.view.message(name).ok_or_else(|| ConfigError::new(path(), "found no object"))
    }

    fn counter(&self, name: &str, downwards: bool) -> Result<Pattern, ConfigError> {
        let part = self.part(name)?;
        let path = format!("{}.{name}", self.path);
        let inner = Reader { view: part, bits: self.bits, path: &path };
        let start = inner.scalar(part, "start")?;
        let step = inner.scalar(part, "step")?;
        let count = part.number("count").unwrap_or(1);
        if count == 0 {
            return Err(ConfigError::new(format!("{path}.count"), "found 0, expected at least 1"));
        }
        if step == 0 || count == 1 {
            return Ok(Pattern::Constant(start));
        }
        let values = Values::counter(start, step, count, self.bits, downwards);
        let too_many = "more values than 128 bits have: expected a smaller step or count";
        let values = values.ok_or_else(|| ConfigError::new(path, too_many))?;
        Ok(Pattern::Varies { values, restart_after: None })
    }

    fn random(&self) -> Result<Pattern, ConfigError> {
        let part = self.part("random")?;
        let path = format!("{}.random", self.path);
        let inner = Reader { view: part, bits: self.bits, path: &path };
        let (min, max) = (inner.scalar(part, "min")?, inner.scalar(part, "max")?);
        if max < min {
            return Err(ConfigError::new(format!("{path}.max"), "found less than min"));
        }
        let seed = part.number("seed").unwrap_or(1);
        let restart_after = NonZeroU64::new(part.number("count").unwrap_or(1));
        Ok(Pattern::Varies { values: Values::Random { min, max, seed }, restart_after })
    }
}

/// Returns the greatest value of a field.
pub(super) fn max_of(bits: u32) -> u128 {
    u128::MAX.checked_shr(128 - bits.min(128)).unwrap_or(0)
}

/// Parses the address that a field of this width holds.
pub(super) fn parse_address(text: &str, bits: u32) -> Option<u128> {
    let kind = match bits {
        32 => ValueKind::Ipv4,
        48 => ValueKind::Mac,
        128 => ValueKind::Ipv6,
        _ => return None,
    };
    kind.parse(text).ok()
}

const fn address_kind(bits: u32) -> &'static str {
    match bits {
        32 => "an IPv4 address",
        48 => "an Ethernet address",
        128 => "an IPv6 address",
        _ => "a number",
    }
}
