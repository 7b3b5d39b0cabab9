//! Numbers as people read them.

/// Digits in groups of three: `39,580,750`.
pub(crate) fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Rounded, in groups of three.
pub(crate) fn rounded(value: f64) -> String {
    grouped(value.round().max(0.0) as u64)
}

/// With a unit prefix and three significant digits or more: `3.17 M`, `999 `.
pub(crate) fn scaled(value: f64) -> String {
    for (unit, prefix) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if value >= unit {
            return format!("{:.2} {prefix}", value / unit);
        }
    }
    format!("{value:.0} ")
}

/// A time in the largest unit that leaves a whole part.
pub(crate) fn nanoseconds(value: u64) -> String {
    match value {
        0..1_000 => format!("{value} ns"),
        1_000..1_000_000 => format!("{:.2} us", value as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", value as f64 / 1e6),
        _ => format!("{:.2} s", value as f64 / 1e9),
    }
}

/// The same of a time that may be negative, as a delay between two clocks.
pub(crate) fn signed_nanoseconds(value: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", nanoseconds(value.unsigned_abs()))
}

/// Seconds with as many decimals as make sense.
pub(crate) fn seconds(value: f64) -> String {
    if value < 1.0 { format!("{value:.6}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_come_in_groups_of_three() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(39_580_750), "39,580,750");
        assert_eq!(rounded(999.5), "1,000");
    }

    #[test]
    fn units_follow_the_size() {
        assert_eq!(scaled(999.0), "999 ");
        assert_eq!(scaled(3_172_912.0), "3.17 M");
        assert_eq!(nanoseconds(1_500), "1.50 us");
        assert_eq!(nanoseconds(17), "17 ns");
        assert_eq!(signed_nanoseconds(-1_500), "-1.50 us");
        assert_eq!(seconds(0.000_559), "0.000559");
        assert_eq!(seconds(20.034), "20.03");
    }
}
