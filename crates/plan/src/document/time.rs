//! Durations with units.

use wirestorm_base::rate::Decimal;
use wirestorm_base::time::Duration;

use super::error::PlanError;
use super::value_at::ValueAt;

/// Units with their length in nanoseconds. A unit that is a suffix of others comes after them.
pub(crate) const UNITS: [(&str, u64); 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("s", 1_000_000_000),
];

pub(crate) fn read_time(place: &ValueAt<'_>) -> Result<Duration, PlanError> {
    const EXPECTED: &str = "a time with its unit: 250ns, 10us, 1.5ms, 2s, 5min or 1h";
    parse_time(place.text(EXPECTED)?).ok_or_else(|| place.unexpected(EXPECTED))
}

/// Parses a duration with its unit, such as `1.5ms`. Returns `None` unless it is a whole number of
/// nanoseconds.
pub fn parse_time(text: &str) -> Option<Duration> {
    let text = text.trim();
    let (number, scale) =
        UNITS.iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, *scale)))?;
    let decimal = Decimal::parse(number.trim_end()).ok()?;
    let scaled = u128::from(decimal.digits) * u128::from(scale);
    let denominator = u128::from(decimal.denominator);
    if !scaled.is_multiple_of(denominator) {
        return None;
    }
    u64::try_from(scaled / denominator).ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit_and_whole_nanoseconds() {
        assert_eq!(parse_time("1.5ms"), Some(Duration::from_micros(1_500)));
        assert_eq!(parse_time("2 min"), Some(Duration::from_secs(120)));
        assert_eq!(parse_time("250ns"), Some(Duration::from_nanos(250)));
        for text in ["", "5", "0.5ns", "-1s", "1y", "s"] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }
}
