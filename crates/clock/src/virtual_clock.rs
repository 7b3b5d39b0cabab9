//! Virtual clocks: a known error on top of a real clock, for tests of what compares clocks.

use std::str::FromStr;

use thiserror::Error;
use wirestorm_base::random::Random;

const SECOND: f64 = 1e9;

/// Number of seconds for which the rate wanders; afterwards it stays as it is.
const WANDER_SECONDS: usize = 4_096;

/// Largest offset, and largest sum of steps, in ns: 30 years.
const OFFSET_NS_MAX: f64 = 1e18;

/// Largest drift in ns for each second: the clock still advances.
const DRIFT_PPB_MAX: f64 = 1e8;

/// Errors of a virtual clock.
///
/// Text form: `offset=1s,drift=50ppm,wander=20ppb,step=1s@10s,seed=7`. Each part may be missing;
/// `step` may occur several times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VirtualClockOptions {
    /// Constant difference from the real clock, in ns.
    pub offset_ns: f64,
    /// Constant difference of the rate, in ns for each second (ppb).
    pub drift_ppb: f64,
    /// Standard deviation of the change of the rate in each second, in ppb (random walk).
    pub wander_ppb: f64,
    /// Jumps: time since the origin, and change of the reading, in ns.
    pub steps: Vec<(f64, f64)>,
    /// Seed of the wander.
    pub seed: u64,
}

/// Reason why a text does not describe a virtual clock.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "virtual clock, {part:?}: {problem}; expected parts such as offset=1s, drift=50ppm, \
     wander=20ppb, step=1s@10s and seed=7, separated by commas"
)]
pub struct VirtualClockError {
    part: String,
    problem: &'static str,
}

impl FromStr for VirtualClockOptions {
    type Err = VirtualClockError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut options = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let error = |problem| VirtualClockError { part: part.to_owned(), problem };
            let (key, value) = part.split_once('=').ok_or_else(|| error("there is no ="))?;
            let time = |text: &str| time_ns(text).ok_or_else(|| error("this is no time"));
            let ratio = |text: &str| ratio_ppb(text).ok_or_else(|| error("this is no ratio"));
            match key {
                "offset" => options.offset_ns = time(value)?,
                "drift" => options.drift_ppb = ratio(value)?,
                "wander" => options.wander_ppb = ratio(value)?.abs(),
                "step" => {
                    let (by, at) = value.split_once('@').ok_or_else(|| error("there is no @"))?;
                    options.steps.push((time(at)?, time(by)?));
                }
                "seed" => {
                    options.seed = value.parse().map_err(|_| error("this is no whole number"))?;
                }
                _ => return Err(error("this part is unknown")),
            }
        }
        Ok(options)
    }
}

fn time_ns(text: &str) -> Option<f64> {
    // Longer units first: `s` is the end of all others.
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", SECOND)];
    scaled(text, &units).filter(|value| value.abs() <= OFFSET_NS_MAX)
}

fn ratio_ppb(text: &str) -> Option<f64> {
    scaled(text, &[("ppb", 1.0), ("ppm", 1e3)]).filter(|value| value.abs() <= DRIFT_PPB_MAX)
}

fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let (number, unit) =
        units.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
    number.parse().ok().map(|number: f64| number * unit).filter(|value| value.is_finite())
}

/// A clock with a known error.
#[derive(Clone, Debug)]
pub struct VirtualClock {
    /// Reading of the real clock from which the errors count, in ns.
    origin_ns: i64,
    options: VirtualClockOptions,
    /// Error of the wander at each full second since the origin, in ns, and the rate from there on,
    /// in ppb.
    wander: Vec<(f64, f64)>,
}

impl VirtualClock {
    /// Creates a clock whose errors begin at this reading of the real clock.
    pub fn new(origin_ns: i64, mut options: VirtualClockOptions) -> Self {
        options.steps.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut random = Random::new(options.seed);
        let (mut error, mut rate) = (0.0, 0.0);
        let seconds = if options.wander_ppb > 0.0 { WANDER_SECONDS } else { 0 };
        let wander = (0..seconds).map(|_| {
            let knot = (error, rate);
            error += rate;
            rate += options.wander_ppb * random.normal();
            knot
        });
        let wander = wander.collect();
        Self { origin_ns, options, wander }
    }

    /// Returns the reading at a reading of the real clock, both in ns. Stops at the ends of the range.
    pub fn reading(&self, real_ns: i64) -> i64 {
        real_ns.saturating_add(self.error_ns(real_ns).round() as i64)
    }

    /// Returns the difference from the real clock at one of its readings, in ns.
    pub fn error_ns(&self, real_ns: i64) -> f64 {
        let since = real_ns.saturating_sub(self.origin_ns) as f64;
        let steps = self.options.steps.iter().take_while(|(at, _)| *at <= since);
        let stepped: f64 = steps.map(|(_, by)| by).sum();
        self.options.offset_ns
            + self.options.drift_ppb * since / SECOND
            + stepped
            + self.wander_ns(since)
    }

    /// Returns whether the reading never goes back.
    pub fn is_monotonic(&self) -> bool {
        self.options.steps.iter().all(|(_, by)| *by >= 0.0)
    }

    fn wander_ns(&self, since: f64) -> f64 {
        let seconds = (since / SECOND).max(0.0);
        let last = self.wander.len().saturating_sub(1);
        let place = (seconds as usize).min(last);
        let Some((error, rate)) = self.wander.get(place) else { return 0.0 };
        error + rate * (seconds - place as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(text: &str) -> VirtualClock {
        VirtualClock::new(1_000, text.parse().unwrap())
    }

    #[test]
    fn errors_add_up() {
        let clock = clock("offset=2us,drift=50ppm,step=1ms@10s,step=-3ms@20s");
        assert_eq!(clock.reading(1_000), 1_000 + 2_000);
        let at =
            |seconds: i64| clock.reading(1_000 + seconds * 1_000_000_000) - seconds * 1_000_000_000;
        assert_eq!(at(1), 1_000 + 2_000 + 50_000);
        assert_eq!(at(10), 1_000 + 2_000 + 500_000 + 1_000_000);
        assert_eq!(at(20), 1_000 + 2_000 + 1_000_000 - 2_000_000);
        assert!(!clock.is_monotonic());
    }

    #[test]
    fn wander_is_continuous_and_depends_on_the_seed() {
        let errors = |seed: u64| {
            let clock = clock(&format!("wander=20ppb,seed={seed}"));
            let at = |tenth: i64| clock.error_ns(1_000 + tenth * 100_000_000);
            (0..1_000).map(at).collect::<Vec<_>>()
        };
        let one = errors(1);
        assert_eq!(one, errors(1));
        assert_ne!(one, errors(2));
        assert!(one.windows(2).all(|pair| (pair[1] - pair[0]).abs() < 100.0), "{one:?}");
        assert!(one.iter().any(|error| error.abs() > 100.0), "{one:?}");
    }

    #[test]
    fn no_error_is_the_real_clock() {
        let clock = clock("");
        assert!(clock.is_monotonic());
        for reading in [i64::MIN, -1, 0, 1, 1_700_000_000_000_000_123, i64::MAX] {
            assert_eq!(clock.reading(reading), reading);
        }
    }

    #[test]
    fn wrong_texts_name_the_part() {
        for (text, problem) in [
            ("offset", "no ="),
            ("offset=1", "no time"),
            ("drift=1ppt", "no ratio"),
            ("drift=1e30ppm", "no ratio"),
            ("offset=nans", "no time"),
            ("step=1s", "no @"),
            ("jump=1s", "unknown"),
            ("seed=x", "no whole number"),
        ] {
            let error = text.parse::<VirtualClockOptions>().unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains(text), "{error}");
        }
    }
}
