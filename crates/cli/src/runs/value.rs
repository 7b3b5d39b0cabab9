//! Formats of figures and times in tables.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use wirestorm_control::result::Outcome;
use wirestorm_store::entry::RunEntry;
use wirestorm_store::figures::Unit;
use wirestorm_store::record::State;

use crate::number::{nanoseconds, rate, rounded, scaled};

/// Largest count that is shown with all digits.
const COUNT_MAX: f64 = 1e7;

/// Formats a value without its unit, in at most 11 columns.
pub(super) fn value(value: f64, unit: Unit) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    let size = value.abs();
    let text = match unit {
        Unit::FramesPerSecond
        | Unit::FlowsPerSecond
        | Unit::ConnectionsPerSecond
        | Unit::BitsPerSecond => rate(size).trim_end().to_owned(),
        Unit::Nanoseconds => nanoseconds(size.round() as u64),
        Unit::Seconds => format!("{size:.3} s"),
        Unit::Percent => format!("{size:.4} %"),
        Unit::Count if size < COUNT_MAX => rounded(size),
        Unit::Count => scaled(size).trim_end().to_owned(),
    };
    format!("{sign}{text}")
}

/// Returns the unit behind a name; empty if the value itself has it.
pub(super) fn suffix(unit: Unit) -> String {
    match unit {
        Unit::FramesPerSecond
        | Unit::FlowsPerSecond
        | Unit::ConnectionsPerSecond
        | Unit::BitsPerSecond => {
            format!(", {}", unit.symbol())
        }
        Unit::Nanoseconds | Unit::Seconds | Unit::Percent | Unit::Count => String::new(),
    }
}

/// Formats a time of day in the time zone of the machine.
pub(super) fn local_time(unix_ns: u64) -> String {
    let time = Timestamp::from_nanosecond(i128::from(unix_ns)).unwrap_or_default();
    time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S %Z").to_string()
}

/// Formats an age in its largest unit, in at most 6 columns.
pub(super) fn age(from_unix_ns: u64) -> String {
    let now = u64::try_from(Timestamp::now().as_nanosecond()).unwrap_or(0);
    age_of(now.saturating_sub(from_unix_ns) / 1_000_000_000)
}

fn age_of(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Returns what became of a run: its outcome, or why it has none.
pub(super) fn outcome(run: &RunEntry) -> &'static str {
    match (run.state, run.outcome) {
        (State::Finished, Some(outcome)) => outcome_name(outcome),
        (state, _) => state.name(),
    }
}

/// Returns the name of an outcome for people.
pub(super) const fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::FellShort => "fell short",
        other => other.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fit_their_column() {
        for (number, unit, expected) in [
            (3_831_823.4, Unit::FramesPerSecond, "3.83 M"),
            (0.0, Unit::FramesPerSecond, "0"),
            (1_234.0, Unit::Nanoseconds, "1.23 us"),
            (-1_234.0, Unit::Nanoseconds, "-1.23 us"),
            (0.000_1, Unit::Percent, "0.0001 %"),
            (9_999_999.0, Unit::Count, "9,999,999"),
            (19_165_144.0, Unit::Count, "19.17 M"),
            (2.5, Unit::Seconds, "2.500 s"),
        ] {
            assert_eq!(value(number, unit), expected);
            assert!(expected.len() <= 11);
        }
    }

    #[test]
    fn ages_have_one_unit() {
        let ages = [5, 65, 7_300, 200_000].map(age_of);
        assert_eq!(ages, ["5 s", "1 min", "2 h", "2 d"]);
    }
}
