//! Values of parameters.

use std::fmt::{self, Display, Formatter};
use std::ops::RangeInclusive;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use wirestorm_base::rate::Rate;
use wirestorm_base::time::Duration;
use wirestorm_plan::traffic::{FRAME_WITH_FCS_MAX, parse_time};

/// Frame sizes in bytes with FCS, from the shortest frame of Ethernet.
pub(super) const FRAME_SIZES: RangeInclusive<u32> = 64..=FRAME_WITH_FCS_MAX as u32;
/// Protocols of traffic.
pub(super) const PROTOCOLS: [&str; 2] = ["ipv4", "ipv6"];
/// Repetitions of a trial.
pub(super) const REPETITIONS: RangeInclusive<u32> = 1..=10_000;
/// Shortest trial: at least some frames at usual loads.
const TRIAL_MIN: Duration = Duration::from_millis(1);

/// A parameter with a wrong value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterError {
    /// Key, such as `frame_sizes`.
    pub key: &'static str,
    /// What was found and what is expected: `5: expected 1`, or `: expected 1` without a value.
    pub message: String,
}

impl ParameterError {
    pub(super) fn new(key: &'static str, message: impl Into<String>) -> Self {
        Self { key, message: message.into() }
    }

    /// Returns the message for the flag of the parameter.
    pub fn of_flag(&self) -> String {
        let key = self.key.replace('_', "-");
        match self.message.starts_with(':') {
            true => format!("--{key}{}", self.message),
            false => format!("--{key} {}", self.message),
        }
    }
}

impl Display for ParameterError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let message = self.message.trim_start_matches([':', ' ']);
        write!(f, "{}: {message}", self.key)
    }
}

/// Returns the value of a parameter, or its error with the key.
pub(super) fn of<T>(key: &'static str, value: Result<T, String>) -> Result<T, ParameterError> {
    value.map_err(|message| ParameterError::new(key, message))
}

/// Reads a time with its unit.
pub(super) fn time(key: &'static str, text: &str) -> Result<Duration, ParameterError> {
    of(key, read_time(text))
}

/// Reads the duration of a trial.
pub(super) fn duration(key: &'static str, text: &str) -> Result<Duration, ParameterError> {
    let duration = time(key, text)?;
    check_duration(duration)
        .map_err(|expected| ParameterError::new(key, format!("{text:?}: {expected}")))
}

/// Checks the duration of a trial.
///
/// # Errors
/// What was expected.
pub(super) fn check_duration(duration: Duration) -> Result<Duration, &'static str> {
    if duration < TRIAL_MIN { Err("expected at least 1ms") } else { Ok(duration) }
}

/// Reads names of tests, or `all`. Returns each test once.
pub(super) fn read_tests<T: Copy + PartialEq>(
    names: &[String],
    all: &[T],
    name_of: impl Fn(T) -> &'static str,
) -> Result<Vec<T>, ParameterError> {
    const KEY: &str = "tests";
    let expected = || {
        let names: Vec<_> = all.iter().map(|test| name_of(*test)).collect();
        format!("expected all, or some of {}", names.join(", "))
    };
    if names.is_empty() {
        return Err(ParameterError::new(KEY, format!(": {}", expected())));
    }
    let mut tests = Vec::new();
    for name in names {
        let is_named = |test: &&T| name == "all" || name == name_of(**test);
        let mut named = all.iter().filter(is_named).peekable();
        if named.peek().is_none() {
            return Err(ParameterError::new(KEY, format!("{name:?}: {}", expected())));
        }
        tests.extend(named);
    }
    Ok(each_once(tests))
}

/// Removes values that an earlier one equals.
fn each_once<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    for value in values {
        if !once.contains(&value) {
            once.push(value);
        }
    }
    once
}

/// Reads a percentage as a fraction.
pub(super) fn percent(
    key: &'static str,
    percent: f64,
    least: f64,
    most: f64,
) -> Result<f64, ParameterError> {
    of(key, parse_percent(percent, least, most))
}

/// Checks that a number is in a range.
pub(super) fn in_range<T: PartialOrd + Display + Copy>(
    key: &'static str,
    number: T,
    range: &RangeInclusive<T>,
) -> Result<T, ParameterError> {
    if range.contains(&number) {
        return Ok(number);
    }
    let (least, most) = (range.start(), range.end());
    Err(ParameterError::new(key, format!("{number}: expected {least} to {most}")))
}

/// Checks frame sizes.
pub(super) fn frame_sizes(sizes: &[u32]) -> Result<Vec<u32>, ParameterError> {
    const KEY: &str = "frame_sizes";
    if sizes.is_empty() {
        return Err(ParameterError::new(KEY, ": expected at least one size"));
    }
    each_once(sizes.iter().copied())
        .into_iter()
        .map(|size| in_range(KEY, size, &FRAME_SIZES))
        .collect()
}

/// Checks names of protocols.
pub(super) fn protocols(names: &[String]) -> Result<Vec<String>, ParameterError> {
    const KEY: &str = "traffic";
    if names.is_empty() {
        return Err(ParameterError::new(KEY, ": expected ipv4, ipv6 or both"));
    }
    match names.iter().find(|name| !PROTOCOLS.contains(&name.as_str())) {
        Some(name) => Err(ParameterError::new(KEY, format!("{name:?}: expected ipv4 or ipv6"))),
        None => Ok(each_once(names.iter().cloned())),
    }
}

/// Checks a percentage and returns it as a fraction.
///
/// # Errors
/// A message with the number and the range.
pub fn parse_percent(percent: f64, least: f64, most: f64) -> Result<f64, String> {
    if (least..=most).contains(&percent) {
        return Ok(percent / 100.0);
    }
    Err(format!("{percent}: expected percent from {least} to {most}"))
}

/// Parses a load in frames per second.
///
/// # Errors
/// A message with the text.
pub fn parse_load(text: &str) -> Result<u64, String> {
    let rate = text
        .strip_suffix("pps")
        .and_then(|number| Rate::parse_per_second(number, 1).ok())
        .map(|rate| rate.per_second() as u64);
    rate.filter(|load| *load > 0)
        .ok_or_else(|| format!("{text:?}: expected frames a second, such as 1Mpps"))
}

/// Parses a time that may be zero.
///
/// # Errors
/// A message with the text.
pub fn parse_wait(text: &str) -> Result<Duration, String> {
    if text == "0" { Ok(Duration::ZERO) } else { read_time(text) }
}

fn read_time(text: &str) -> Result<Duration, String> {
    parse_time(text).ok_or_else(|| {
        format!("{text:?}: expected a time with its unit, such as 30s, 500ms or 2min")
    })
}

/// Deserialises a list, or one value as a list of one.
pub(super) fn one_or_many<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let items = match value {
        Value::Array(items) => items,
        item => vec![item],
    };
    items.into_iter().map(|item| serde_json::from_value(item).map_err(D::Error::custom)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_frames_a_second() {
        assert_eq!(parse_load("1.5Mpps"), Ok(1_500_000));
        for wrong in ["1M", "0pps", "10G-l1", ""] {
            assert!(parse_load(wrong).unwrap_err().contains("1Mpps"), "{wrong}");
        }
    }

    #[test]
    fn waits_may_be_zero_and_trials_have_a_length() {
        assert_eq!(parse_wait("0"), Ok(Duration::ZERO));
        assert_eq!(parse_wait("0ms"), Ok(Duration::ZERO));
        assert!(parse_wait("5").unwrap_err().starts_with("\"5\": expected a time"));
        assert_eq!(duration("trial", "1ms"), Ok(Duration::from_millis(1)));
        for short in ["0s", "999us"] {
            let error = duration("trial", short).unwrap_err().to_string();
            assert_eq!(error, format!("trial: {short:?}: expected at least 1ms"));
        }
    }

    #[test]
    fn tests_are_named_or_all_and_each_runs_once() {
        let read = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            read_tests(&names, &[1, 2], |it| if it == 1 { "one" } else { "two" })
                .map_err(|error| error.to_string())
        };
        assert_eq!(read(&["two", "one", "two"]), Ok(vec![2, 1]));
        assert_eq!(read(&["two", "all"]), Ok(vec![2, 1]));
        let expected = "expected all, or some of one, two";
        assert_eq!(read(&[]), Err(format!("tests: {expected}")));
        assert_eq!(read(&["all", "three"]), Err(format!("tests: \"three\": {expected}")));
        assert_eq!(frame_sizes(&[64, 128, 64]).unwrap(), [64, 128]);
        let twice = ["ipv6", "ipv4", "ipv6"].map(str::to_owned);
        assert_eq!(protocols(&twice).unwrap(), ["ipv6", "ipv4"]);
    }

    #[test]
    fn errors_name_the_key_or_the_flag() {
        let error = percent("loss_step", 60.0, 0.1, 10.0).unwrap_err();
        assert_eq!(error.to_string(), "loss_step: 60: expected percent from 0.1 to 10");
        assert_eq!(error.of_flag(), "--loss-step 60: expected percent from 0.1 to 10");
        assert!(frame_sizes(&[64, 63]).unwrap_err().to_string().contains("frame_sizes: 63"));
        assert!(protocols(&["ipx".into()]).unwrap_err().to_string().contains("\"ipx\""));
    }
}
