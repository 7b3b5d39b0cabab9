//! Parsers for the values of replay options.

use std::ops::RangeInclusive;

use wirestorm_base::departure::{CatchUp, DeparturePolicy};
use wirestorm_base::rate::{Decimal, RateError};
use wirestorm_base::time::{Duration, NANOSECONDS_PER_SECOND};

/// An invalid option value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionValueError {
    /// An invalid packet list.
    #[error("{found:?}: expected packet numbers from 1 and ranges, such as 1-5,9,72-")]
    PacketList {
        /// The invalid entry.
        found: String,
    },
    /// A range that ends before it begins.
    #[error("{found:?}: the range ends before it begins")]
    EmptyRange {
        /// The range.
        found: String,
    },
    /// Too many entries.
    #[error("{found} entries; expected {ENTRIES_MAX} at most")]
    TooMany {
        /// Number of entries.
        found: usize,
    },
    /// An unknown catch-up policy.
    #[error(
        "{found:?}: expected bounded, bounded:MILLISECONDS, bounded:unlimited, strict, \
             strict:MILLISECONDS or stretch"
    )]
    CatchUp {
        /// The value found.
        found: String,
    },
    /// An invalid number.
    #[error("{found:?}: {reason}")]
    Number {
        /// The value found.
        found: String,
        /// Reason from the parser.
        reason: RateError,
    },
    /// A number out of range.
    #[error("{found:?}: expected {expected}")]
    Range {
        /// The value found.
        found: String,
        /// The accepted range.
        expected: &'static str,
    },
}

/// Maximum entries of a packet list: every packet searches it linearly.
const ENTRIES_MAX: usize = 1024;

/// Parses packet numbers from 1, single or as ranges: `1-5,9,72-`.
///
/// # Errors
/// Returns an error for an invalid entry, an empty range, or more than 1024 entries.
pub fn parse_packet_list(text: &str) -> Result<Vec<RangeInclusive<u64>>, OptionValueError> {
    let entries = text.split(',').count();
    if entries > ENTRIES_MAX {
        return Err(OptionValueError::TooMany { found: entries });
    }
    text.split(',').map(parse_packets).collect()
}

fn parse_packets(entry: &str) -> Result<RangeInclusive<u64>, OptionValueError> {
    let malformed = || OptionValueError::PacketList { found: entry.to_owned() };
    let number = |text: &str| match text.parse() {
        Ok(0) | Err(_) => Err(malformed()),
        Ok(number) => Ok(number),
    };
    let range = match entry.split_once('-') {
        None => number(entry)?..=number(entry)?,
        Some((first, "")) => number(first)?..=u64::MAX,
        Some((first, last)) => number(first)?..=number(last)?,
    };
    if range.is_empty() {
        return Err(OptionValueError::EmptyRange { found: entry.to_owned() });
    }
    Ok(range)
}

/// Parses a catch-up policy: `bounded`, `bounded:5`, `strict`, `stretch`. The number is the maximum
/// backlog in milliseconds.
///
/// # Errors
/// Returns an error for any other text.
pub fn parse_catch_up(text: &str) -> Result<DeparturePolicy, OptionValueError> {
    let malformed = || OptionValueError::CatchUp { found: text.to_owned() };
    let (name, backlog) = match text.split_once(':') {
        None => (text, DeparturePolicy::default().backlog),
        Some((name, "unlimited")) => (name, Duration::MAX),
        Some((name, milliseconds)) => {
            let decimal = Decimal::parse(milliseconds).map_err(|_| malformed())?;
            let nanoseconds =
                u128::from(decimal.digits) * 1_000_000 / u128::from(decimal.denominator);
            let nanoseconds = u64::try_from(nanoseconds).map_err(|_| malformed())?;
            (name, Duration::from_nanos(nanoseconds))
        }
    };
    let catch_up = match name {
        "bounded" => CatchUp::Bounded,
        "strict" => CatchUp::Strict,
        "stretch" if name == text => CatchUp::Stretch,
        _ => return Err(malformed()),
    };
    Ok(DeparturePolicy { catch_up, backlog })
}

/// Parses seconds with decimals.
///
/// # Errors
/// Returns an error unless the text is a decimal number.
pub fn parse_seconds(text: &str) -> Result<Duration, OptionValueError> {
    let nanoseconds = scaled(text, NANOSECONDS_PER_SECOND)?;
    Ok(Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX)))
}

/// Parses a percentage, and returns millionths.
///
/// # Errors
/// Returns an error unless the text is a number from 0 to 100.
pub fn parse_percent(text: &str) -> Result<u32, OptionValueError> {
    match u32::try_from(scaled(text, 10_000)?) {
        Ok(millionths) if millionths <= 1_000_000 => Ok(millionths),
        _ => Err(OptionValueError::Range { found: text.to_owned(), expected: "0 to 100 percent" }),
    }
}

/// Parses a number of passes, and returns thousandths.
///
/// # Errors
/// Returns an error unless the text is a number of at least 1.
pub fn parse_passes_milli(text: &str) -> Result<u64, OptionValueError> {
    match u64::try_from(scaled(text, 1_000)?) {
        Ok(milli) if milli >= 1_000 => Ok(milli),
        _ => Err(OptionValueError::Range { found: text.to_owned(), expected: "1 or more" }),
    }
}

fn scaled(text: &str, scale: u64) -> Result<u128, OptionValueError> {
    let decimal = Decimal::parse(text)
        .map_err(|reason| OptionValueError::Number { found: text.to_owned(), reason })?;
    Ok(u128::from(decimal.digits) * u128::from(scale) / u128::from(decimal.denominator))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_packet_numbers_and_ranges() {
        assert_eq!(parse_packet_list("1-5,9,72-").unwrap(), [1..=5, 9..=9, 72..=u64::MAX]);
    }

    #[test]
    fn invalid_packet_lists_are_errors() {
        for text in ["", "0", "a", "1,,2", "-5", "1-2-3", "1 "] {
            let error = parse_packet_list(text).unwrap_err();
            assert!(matches!(error, OptionValueError::PacketList { .. }), "{text}: {error}");
        }
        assert!(matches!(parse_packet_list("5-2"), Err(OptionValueError::EmptyRange { .. })));
        let many = vec!["1"; 1025].join(",");
        assert_eq!(parse_packet_list(&many), Err(OptionValueError::TooMany { found: 1025 }));
    }

    #[test]
    fn parses_policies_with_a_backlog_in_milliseconds() {
        let policy = |catch_up, backlog| DeparturePolicy { catch_up, backlog };
        assert_eq!(parse_catch_up("bounded"), Ok(DeparturePolicy::default()));
        let quarter = Duration::from_micros(250);
        assert_eq!(parse_catch_up("strict:0.25"), Ok(policy(CatchUp::Strict, quarter)));
        let unlimited = policy(CatchUp::Bounded, Duration::MAX);
        assert_eq!(parse_catch_up("bounded:unlimited"), Ok(unlimited));
        for text in ["", "fast", "stretch:1", "bounded:", "bounded:-1"] {
            assert!(parse_catch_up(text).is_err(), "{text}");
        }
    }

    #[test]
    fn parses_numbers_with_decimals() {
        assert_eq!(parse_seconds("0.000000001"), Ok(Duration::from_nanos(1)));
        assert_eq!(parse_percent("0.5"), Ok(5_000));
        assert_eq!(parse_passes_milli("1.5"), Ok(1_500));
        assert!(parse_percent("101").is_err());
        assert!(parse_passes_milli("0.9").is_err());
    }
}
