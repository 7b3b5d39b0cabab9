//! Rates of streams, and their multiplier.

use wirestorm_base::rate::{Decimal, Layer, Rate, RateError};
use wirestorm_base::time::Duration;
use wirestorm_model::stream::Mode;

use super::TrexError;
use super::document::{RateDocument, RateUnit};
use crate::multiplier::Multiplier;

/// Returns the frames per second of a stream. `double_length` is twice the mean frame length in
/// bytes.
///
/// TRex spaces frames of different lengths evenly, in any unit of the rate.
pub(super) fn frames(
    path: &str,
    words: &RateDocument,
    double_length: u64,
    line_rate: Rate,
) -> Result<Rate, TrexError> {
    let bad = |error: RateError| {
        TrexError::value(format!("{path}.value"), words.value, format!("a rate: {error}"))
    };
    let per_frame = |layer: Layer| (double_length + 2 * layer.overhead()) * 8;
    let of_bits = |bits: Result<Rate, RateError>, value: f64, layer: Layer| {
        let exact = bits.and_then(|bits| bits.scaled(2, per_frame(layer)));
        exact.or_else(|_| rate(value * 2.0 / per_frame(layer) as f64)).map_err(bad)
    };
    match words.unit {
        RateUnit::Frames => rate(words.value).map_err(bad),
        RateUnit::BitsLayer1 => of_bits(rate(words.value), words.value, Layer::Wire),
        RateUnit::BitsLayer2 => of_bits(rate(words.value), words.value, Layer::FrameWithFcs),
        RateUnit::Percentage => {
            let part = decimal(words.value);
            let bits = part.and_then(|part| line_rate.scaled(part.digits, part.denominator * 100));
            of_bits(bits, line_rate.per_second() * words.value / 100.0, Layer::Wire)
        }
    }
}

/// Converts units per second to a rate.
fn rate(value: f64) -> Result<Rate, RateError> {
    let text = text(value)?;
    Rate::parse_per_second(&text, 1)
}

fn decimal(value: f64) -> Result<Decimal, RateError> {
    Decimal::parse(&text(value)?)
}

/// Formats a number with all its significant decimals, at most nine.
fn text(value: f64) -> Result<String, RateError> {
    /// Significant decimal digits of an `f64`.
    const DIGITS: usize = 15;
    if !value.is_finite() || value < 0.0 {
        return Err(RateError::NotANumber);
    }
    let integer_digits = format!("{value:.0}").len();
    Ok(format!("{value:.0$}", DIGITS.saturating_sub(integer_digits).min(9)))
}

/// Converts microseconds to a duration.
pub(super) fn microseconds(path: &str, value: f64) -> Result<Duration, TrexError> {
    let nanoseconds = (value * 1e3).round();
    if !(0.0..u64::MAX as f64).contains(&nanoseconds) {
        return Err(TrexError::value(path, value, "microseconds, 0 or more"));
    }
    Ok(Duration::from_nanos(nanoseconds as u64))
}

/// Parameters of a stream that determine its load.
pub(super) struct Load {
    pub(super) frames: Rate,
    pub(super) double_length: u64,
    pub(super) mode: Mode,
    pub(super) start_delay: Duration,
    pub(super) self_start: bool,
    pub(super) next: Option<usize>,
    /// Whether the multiplier does not change the stream.
    pub(super) is_fixed: bool,
}

/// Maximum total load of streams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TotalLoad {
    /// Frames per second.
    pub frames: f64,
    /// Bits per second of frames with FCS.
    pub bits_l2: f64,
    /// Bits per second with preamble and gap.
    pub bits_l1: f64,
}

impl TotalLoad {
    pub(super) fn of(loads: &[Load]) -> Self {
        let total = |weight: &dyn Fn(u64) -> f64| {
            let rate = |load: &Load| load.frames.per_second() * weight(load.double_length);
            let fixed: f64 = loads.iter().filter(|load| load.is_fixed).map(rate).sum();
            fixed + max_concurrent_load(loads, |load| variable_load(load, weight))
        };
        Self {
            frames: total(&|_| 1.0),
            bits_l2: total(&|length| bits(length, Layer::FrameWithFcs)),
            bits_l1: total(&|length| bits(length, Layer::Wire)),
        }
    }
}

/// Applies the multiplier to all rates except fixed ones.
pub(super) fn multiply(
    loads: &mut [Load],
    multiplier: Multiplier,
    line_rate: Rate,
) -> Result<(), TrexError> {
    let factor = match multiplier {
        Multiplier::Factor(decimal) => {
            for load in loads.iter_mut().filter(|load| !load.is_fixed) {
                let exact = load.frames.scaled(decimal.digits, decimal.denominator);
                let factor = decimal.digits as f64 / decimal.denominator as f64;
                load.frames = exact.or_else(|_| times(load.frames, factor))?;
            }
            return Ok(());
        }
        Multiplier::Frames(target) => factor(loads, target, "frames a second", |_| 1.0)?,
        Multiplier::Bits(target, layer) => {
            factor(loads, target, "bits a second", |length| bits(length, layer))?
        }
        Multiplier::Percent(percent) => {
            let target = line_rate.per_second() * percent / 100.0;
            factor(loads, target, "bits a second", |length| bits(length, Layer::Wire))?
        }
    };
    for load in loads.iter_mut().filter(|load| !load.is_fixed) {
        load.frames = times(load.frames, factor)?;
    }
    Ok(())
}

fn times(frames: Rate, factor: f64) -> Result<Rate, TrexError> {
    let product = frames.per_second() * factor;
    rate(product)
        .map_err(|error| TrexError::value("multiplier", product, format!("a rate: {error}")))
}

fn bits(double_length: u64, layer: Layer) -> f64 {
    (double_length + 2 * layer.overhead()) as f64 * 4.0
}

/// Returns the factor at which the maximum load is the requested one.
fn factor(
    loads: &[Load],
    target: f64,
    unit: &'static str,
    weight: impl Fn(u64) -> f64,
) -> Result<f64, TrexError> {
    let rate = |load: &Load| load.frames.per_second() * weight(load.double_length);
    // TRex counts fixed streams for the whole run, at any position of a chain.
    let fixed: f64 = loads.iter().filter(|load| load.is_fixed).map(rate).sum();
    let greatest = max_concurrent_load(loads, |load| variable_load(load, &weight));
    if greatest == 0.0 {
        // No rate to change.
        return Ok(1.0);
    }
    if target <= fixed {
        let (target, fixed) = (target.to_string(), fixed.to_string());
        return Err(TrexError::BelowFixed { requested: target, fixed, unit });
    }
    Ok((target - fixed) / greatest)
}

/// Returns what a stream that the multiplier changes adds to the load.
fn variable_load(load: &Load, weight: &(impl Fn(u64) -> f64 + ?Sized)) -> f64 {
    match load.mode {
        // TRex counts a short burst as one minimum frame per second.
        Mode::Burst { frames } | Mode::Bursts { frames, .. } if frames < SHORT_BURST => {
            weight(2 * SHORT_BURST_FRAME_LENGTH)
        }
        _ => load.frames.per_second() * weight(load.double_length),
    }
}

/// Number of frames below which a burst does not count with its rate, and the length of the frame
/// that it counts as.
const SHORT_BURST: u64 = 1_000;
const SHORT_BURST_FRAME_LENGTH: u64 = 10;

/// Returns the maximum sum of the rates of streams that send at the same time. Follows each chain
/// until it repeats.
fn max_concurrent_load(loads: &[Load], rate: impl Fn(&Load) -> f64) -> f64 {
    let mut changes: Vec<(f64, f64)> = Vec::new();
    for root in loads.iter().filter(|load| load.self_start) {
        let (mut at, mut load, mut steps) = (0.0, root, 0);
        loop {
            steps += 1;
            if !load.is_fixed {
                at += load.start_delay.as_nanos() as f64;
                let rate = rate(load);
                changes.push((at, rate));
                let gap = 1e9 / load.frames.per_second();
                at = match load.mode {
                    Mode::Continuous => break,
                    Mode::Time { duration: lasts } => at + lasts.as_nanos() as f64,
                    Mode::Burst { frames } => at + (frames - 1) as f64 * gap,
                    Mode::Bursts { frames, count, gap: between } => {
                        let one = (frames - 1) as f64 * gap + between.as_nanos() as f64;
                        at + one * count as f64
                    }
                };
                changes.push((at, -rate));
            }
            match load.next.and_then(|next| loads.get(next)) {
                Some(next) if steps < loads.len() => load = next,
                _ => break,
            }
        }
    }
    changes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut sum = 0.0;
    changes.iter().fold(0.0, |greatest: f64, (_, change)| {
        sum += change;
        greatest.max(sum)
    })
}
