//! Number formats of tables, for the console and the command line.

/// Formats an integer with digit groups of three: `39,580,750`.
pub fn grouped(value: u64) -> String {
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

/// Divides a value of 0 or more by the unit prefix that leaves at most three digits, up to `T`:
/// 12,345 becomes 12.345 and `k`.
pub fn prefixed(mut value: f64) -> (f64, &'static str) {
    let mut prefixes = ["", "k", "M", "G", "T"].into_iter();
    let mut prefix = prefixes.next().unwrap_or_default();
    // A value that would round to four digits takes the next prefix.
    while value >= 999.5
        && let Some(next) = prefixes.next()
    {
        (value, prefix) = (value / 1e3, next);
    }
    (value, prefix)
}

/// Formats with three significant digits: `1.23`, `12.3`, `123`, `0`.
pub fn three_digits(value: f64) -> String {
    let decimals = match value {
        0.0 => 0,
        0.0..9.995 => 2,
        9.995..99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// Formats with a unit prefix and three significant digits: `1.23 kpps`, `999 pps`, `0 pps`.
pub fn scaled(value: f64, unit: &str) -> String {
    let (value, prefix) = prefixed(value.max(0.0));
    let number = three_digits(value);
    match (prefix, unit) {
        ("", "") => number,
        _ => format!("{number} {prefix}{unit}"),
    }
}

/// Formats a count in at most `columns` if possible: grouped, else with a unit prefix.
pub fn count(value: u64, columns: usize) -> String {
    let text = grouped(value);
    if text.len() <= columns { text } else { scaled(value as f64, "") }
}

/// Formats a time in the largest unit that leaves a whole part, from ns to s.
pub fn nanoseconds(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    match value.abs() {
        value @ 0.0..999.5 => format!("{sign}{value:.0} ns"),
        value @ 999.5..999_995.0 => format!("{sign}{:.2} us", value / 1e3),
        value @ 999_995.0..999_995_000.0 => format!("{sign}{:.2} ms", value / 1e6),
        value => format!("{sign}{:.2} s", value / 1e9),
    }
}

/// Formats a duration in seconds: `7.3 s`, `2:05`, `1:02:05`.
pub fn elapsed(seconds: f64) -> String {
    if seconds < 60.0 {
        return format!("{seconds:.1} s");
    }
    let seconds = seconds as u64;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        hours => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// Shortens a text to `columns` by replacing its middle.
pub fn shortened(text: &str, columns: usize) -> String {
    let length = text.chars().count();
    if length <= columns {
        return text.to_owned();
    }
    if columns < 4 {
        return text.chars().take(columns).collect();
    }
    let shown = columns - 2;
    let end = shown / 2;
    let beginning = text.chars().take(shown - end);
    beginning.chain("..".chars()).chain(text.chars().skip(length - end)).collect()
}

/// Draws the newest `columns` values as bars of eight heights, the newest last. An empty text before
/// the first value; a value above 0 always has a bar.
pub fn sparkline<'a>(values: impl DoubleEndedIterator<Item = &'a f64>, columns: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let newest: Vec<f64> = values.rev().take(columns).copied().collect();
    let most = newest.iter().copied().fold(0.0, f64::max);
    let bar = |value: f64| match value {
        value if value <= 0.0 => ' ',
        value => BARS[((value / most * 8.0).ceil() as usize).clamp(1, 8) - 1],
    };
    newest.into_iter().rev().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_three_digits_and_a_prefix() {
        let shown = [0.0, 0.333, 7.0, 999.4, 999.6, 12_345.0, 4.2e12].map(|it| scaled(it, "pps"));
        let expected =
            ["0 pps", "0.33 pps", "7.00 pps", "999 pps", "1.00 kpps", "12.3 kpps", "4.20 Tpps"];
        assert_eq!(shown, expected);
        assert_eq!((scaled(5e3, ""), scaled(0.0, "")), ("5.00 k".to_owned(), "0".to_owned()));
        assert_eq!((count(1_234, 5), count(1_234_567, 5)), ("1,234".into(), "1.23 M".into()));
    }

    #[test]
    fn times_take_the_largest_unit() {
        let shown = [17.0, 1_500.0, -2_000_000.0, 3.2e9].map(nanoseconds);
        assert_eq!(shown, ["17 ns", "1.50 us", "-2.00 ms", "3.20 s"]);
        assert_eq!([7.31, 125.0, 3_725.0].map(elapsed), ["7.3 s", "2:05", "1:02:05"]);
    }

    #[test]
    fn sparkline_shows_the_newest_values() {
        let values = [100.0, 0.0, 1.0, 4.0, 8.0];
        assert_eq!(sparkline(values.iter(), 4), " ▁▄█");
        assert_eq!(sparkline(values.iter(), 9), "█ ▁▁▁");
        assert_eq!(sparkline([].iter(), 9), "");
    }

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(shortened("netns/a-long-name:veth0", 10), "netn..eth0");
        assert_eq!((shortened("eth1", 10), shortened("eth1", 2)), ("eth1".into(), "et".into()));
    }
}
