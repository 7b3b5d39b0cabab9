//! Number formats for tables and messages.

use wirestorm_console::number;
pub(crate) use wirestorm_console::number::grouped;

/// Formats a count with its noun: `1 frame`, `2,000 frames`.
pub(crate) fn count_of(value: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(value), if value == 1 { one } else { many })
}

/// Formats a rate deviation given in ppm: `+0.3 ppm`, `-71 %`. At most 8 columns below 1,000 %.
pub(crate) fn rate_error(ppm: f64) -> String {
    match ppm.abs() {
        0.0..9.95 => format!("{ppm:+.1} ppm"),
        9.95..999.5 => format!("{ppm:+.0} ppm"),
        999.5..99_950.0 => format!("{:+.2} %", ppm / 1e4),
        _ => format!("{:+.0} %", ppm / 1e4),
    }
}

/// Rounds to an integer and groups its digits by three. Negative values become 0.
pub(crate) fn rounded(value: f64) -> String {
    grouped(value.round().max(0.0) as u64)
}

/// Formats with a unit prefix and at least three significant digits: `3.17 M`, `999 `.
pub(crate) fn scaled(value: f64) -> String {
    for (unit, prefix) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if value >= unit {
            return format!("{:.2} {prefix}", value / unit);
        }
    }
    format!("{value:.0} ")
}

/// Formats like [`scaled`], with two decimals for values below 10 that are not whole: `0.33 `.
pub(crate) fn rate(value: f64) -> String {
    let is_whole = (value - value.round()).abs() < 0.005;
    match value {
        0.0..10.0 if !is_whole => format!("{value:.2} "),
        _ => scaled(value),
    }
}

/// Formats with a unit prefix and at most three significant digits, in six columns: `12.3 k`.
pub(crate) fn brief(value: f64) -> String {
    match number::prefixed(value) {
        (value, "") => format!("{value:.0}"),
        (value, prefix) => format!("{} {prefix}", number::three_digits(value)),
    }
}

/// Formats like [`nanoseconds`], or `-` for no value.
pub(crate) fn nanoseconds_or_none(value: Option<u64>) -> String {
    value.map_or_else(|| "-".to_owned(), nanoseconds)
}

/// Formats a time in the largest unit that leaves a whole part, from ns to s.
pub(crate) fn nanoseconds(value: u64) -> String {
    number::nanoseconds(value as f64)
}

/// Formats like [`nanoseconds`] with a sign, for the delay between two clocks.
pub(crate) fn signed_nanoseconds(value: i64) -> String {
    number::nanoseconds(value as f64)
}

/// Formats seconds: six decimals below 1 s, else two.
pub(crate) fn seconds(value: f64) -> String {
    if value < 1.0 { format!("{value:.6}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_below_ten_have_decimals() {
        let shown = [0.0, 1.0 / 3.0, 1.0, 2.5, 9.999, 10.4, 1_234.0].map(rate);
        assert_eq!(shown, ["0 ", "0.33 ", "1 ", "2.50 ", "10 ", "10 ", "1.23 k"]);
    }

    #[test]
    fn brief_values_have_three_digits() {
        let shown = [0.0, 7.4, 999.0, 999.6, 1_234.0, 12_345.0, 99_960.0, 999_600.0, 4.2e12];
        let expected = ["0", "7", "999", "1.00 k", "1.23 k", "12.3 k", "100 k", "1.00 M", "4.20 T"];
        assert_eq!(shown.map(brief), expected);
    }

    #[test]
    fn rate_errors_are_in_ppm_when_small_and_in_percent_when_large() {
        let shown = [0.0, 0.34, -9.96, 999.0, -1_000.0, 25_000.0, -99_960.0, -714_657.4, 3e6];
        let expected = [
            "+0.0 ppm", "+0.3 ppm", "-10 ppm", "+999 ppm", "-0.10 %", "+2.50 %", "-10 %", "-71 %",
            "+300 %",
        ];
        assert_eq!(shown.map(rate_error), expected);
    }

    #[test]
    fn digits_are_in_groups_of_three() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(39_580_750), "39,580,750");
        assert_eq!(rounded(999.5), "1,000");
    }

    #[test]
    fn unit_prefix_follows_the_magnitude() {
        assert_eq!(scaled(999.0), "999 ");
        assert_eq!(scaled(3_172_912.0), "3.17 M");
        assert_eq!(nanoseconds(1_500), "1.50 us");
        assert_eq!(nanoseconds(17), "17 ns");
        assert_eq!(signed_nanoseconds(-1_500), "-1.50 us");
        assert_eq!(seconds(0.000_559), "0.000559");
        assert_eq!(seconds(20.034), "20.03");
    }
}
