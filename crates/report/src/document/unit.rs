//! Units of values, and their formats in tables.

use serde::Serialize;

/// Unit of the values of a column or an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// No unit.
    None,
    /// Nanoseconds; shown in ns, µs, ms or s.
    Nanoseconds,
    /// Seconds; shown in ns, µs, ms or s.
    Seconds,
    /// Frames per second.
    FramesPerSecond,
    /// Flows, connections or transactions per second.
    PerSecond,
    /// Bits per second; shown with a prefix.
    BitsPerSecond,
    /// Percent.
    Percent,
    /// Frames.
    Frames,
    /// Bytes.
    Bytes,
}

/// A divisor of a unit, with the unit that results from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Prefixed {
    pub(crate) divisor: f64,
    pub(crate) unit: &'static str,
    pub(crate) decimals: usize,
}

impl Unit {
    /// Returns the divisor and unit that suit values up to `largest`. All values of a column use the
    /// same unit, so that their digits align.
    pub(crate) fn prefixed(self, largest: f64) -> Prefixed {
        let of = |divisor, unit, decimals| Prefixed { divisor, unit, decimals };
        match self {
            Self::None => of(1.0, "", 0),
            Self::Nanoseconds => match largest {
                ..1e4 => of(1.0, "ns", 0),
                ..1e7 => of(1e3, "µs", 2),
                ..1e10 => of(1e6, "ms", 3),
                _ => of(1e9, "s", 3),
            },
            Self::Seconds => match largest {
                ..1e-5 if largest > 0.0 => of(1e-9, "ns", 0),
                ..1e-2 if largest > 0.0 => of(1e-6, "µs", 2),
                ..1e0 if largest > 0.0 => of(1e-3, "ms", 3),
                _ => of(1.0, "s", 3),
            },
            Self::FramesPerSecond => of(1.0, "frames/s", 0),
            Self::PerSecond => of(1.0, "1/s", 0),
            Self::BitsPerSecond => match largest {
                ..1e6 => of(1e3, "kbit/s", 3),
                ..1e9 => of(1e6, "Mbit/s", 3),
                _ => of(1e9, "Gbit/s", 3),
            },
            Self::Percent => of(1.0, "%", 2),
            Self::Frames => of(1.0, "frames", 0),
            Self::Bytes => of(1.0, "bytes", 0),
        }
    }
}

impl Prefixed {
    /// Returns the number without its unit, with groups of three digits.
    pub(crate) fn format(&self, value: f64) -> String {
        let scaled = value / self.divisor;
        // A value that would vanish keeps two significant digits.
        let smallest = 0.5 * 10_f64.powi(-(self.decimals as i32));
        if self.unit == "%" && scaled != 0.0 && scaled.abs() < smallest {
            return format!("{scaled:.*}", (1.0 - scaled.abs().log10().floor()).max(2.0) as usize);
        }
        let text = format!("{:.*}", self.decimals, scaled.abs());
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let sign = if scaled < 0.0 && text.bytes().any(|it| (b'1'..=b'9').contains(&it)) {
            "-"
        } else {
            ""
        };
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{sign}{}{point}{fraction}", group(whole))
    }
}

/// Formats an integer with groups of three digits: `39,580,750`.
pub fn grouped(value: u64) -> String {
    group(&value.to_string())
}

fn group(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Splits a value into a number with three or four significant digits and its unit: `14.88`,
/// `Mpps`.
pub fn scaled(value: f64, unit: Unit) -> (String, String) {
    let metric = |name: &str| {
        let prefixes = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
        let found = prefixes.into_iter().find(|(factor, _)| value.abs() >= *factor);
        let (factor, prefix) = found.unwrap_or((1.0, ""));
        (significant(value / factor), format!("{prefix}{name}"))
    };
    match unit {
        Unit::FramesPerSecond => metric("pps"),
        Unit::BitsPerSecond => metric("bit/s"),
        Unit::PerSecond => metric("/s"),
        Unit::Percent => (significant(value), "%".to_owned()),
        Unit::Nanoseconds | Unit::Seconds => {
            let nanoseconds = if unit == Unit::Seconds { value * 1e9 } else { value };
            let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
            let found = units.into_iter().find(|(factor, _)| nanoseconds.abs() >= *factor);
            let (factor, name) = found.unwrap_or((1.0, "ns"));
            (significant(nanoseconds / factor), name.to_owned())
        }
        Unit::Frames => (grouped(value.max(0.0) as u64), "frames".to_owned()),
        Unit::Bytes => (grouped(value.max(0.0) as u64), "bytes".to_owned()),
        Unit::None => (grouped(value.max(0.0) as u64), String::new()),
    }
}

/// Formats with three significant digits, or two decimals from 10 on.
fn significant(value: f64) -> String {
    let is_whole = value.fract() == 0.0;
    match value.abs() {
        0.0 => "0".to_owned(),
        ..1e-9 => format!("{value:.1e}"),
        ..0.01 => format!("{value:.*}", (1.0 - value.abs().log10().floor()) as usize),
        ..1_000.0 if is_whole => format!("{value:.0}"),
        ..1.0 => format!("{value:.3}"),
        ..100.0 => format!("{value:.2}"),
        ..1_000.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_use_one_unit_for_all_values() {
        let delays = Unit::Nanoseconds.prefixed(84_000.0);
        assert_eq!([900.0, 84_000.0].map(|it| delays.format(it)), ["0.90", "84.00"]);
        assert_eq!(delays.unit, "µs");
        let rates = Unit::FramesPerSecond.prefixed(14_880_952.0);
        assert_eq!(rates.format(14_880_952.0), "14,880,952");
        assert_eq!(Unit::Seconds.prefixed(0.000_04).format(0.000_04), "40.00");
    }

    #[test]
    fn small_loss_does_not_vanish() {
        let percent = Unit::Percent.prefixed(100.0);
        let shown = [0.0, 0.001, 0.000_01, 12.3456].map(|it| percent.format(it));
        assert_eq!(shown, ["0.00", "0.0010", "0.000010", "12.35"]);
    }

    #[test]
    fn tiles_have_few_digits_and_a_unit() {
        let shown = |value, unit| {
            let (number, unit) = scaled(value, unit);
            format!("{number} {unit}")
        };
        assert_eq!(shown(14_880_952.0, Unit::FramesPerSecond), "14.88 Mpps");
        assert_eq!(shown(9.2e9, Unit::BitsPerSecond), "9.20 Gbit/s");
        assert_eq!(shown(1_234.0, Unit::Nanoseconds), "1.23 µs");
        assert_eq!(shown(0.000_04, Unit::Seconds), "40 µs");
        assert_eq!(shown(100.0, Unit::Percent), "100 %");
        assert_eq!(shown(0.000_5, Unit::Percent), "0.00050 %");
    }
}
