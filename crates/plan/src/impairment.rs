//! Impairment settings as text, shared by the command line and plans.

use wirestorm_base::rate::{Decimal, Layer, Rate};
use wirestorm_base::time::Duration;
use wirestorm_model::impairment::{
    Bottleneck, GilbertElliott, Impairment, Jitter, Loss, Probability, Queue, Reordering,
};
use wirestorm_model::stream::Speed;

use crate::document::error::PlanError;
use crate::document::rate::{RequestedRate, parse as parse_rate};
use crate::document::time::parse_time;
use crate::document::value_at::ValueAt;

/// Impairment settings of one direction of a link, one field per key. `None`: not set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImpairmentSettings {
    loss: Option<Probability>,
    burst_loss: Option<GilbertElliott>,
    duplicate: Option<Probability>,
    corrupt: Option<Probability>,
    rate: Option<(Rate, Layer)>,
    queue: Option<Queue>,
    delay: Option<Duration>,
    jitter: Option<Jitter>,
    reorder: Option<Reordering>,
}

/// An invalid impairment setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImpairmentError {
    /// An unknown key.
    #[error("found {0:?}, expected one of {words}", words = ImpairmentSettings::KEYS.join(", "))]
    UnknownKey(String),
    /// A key without a value.
    #[error("found {0:?}, expected key=value pairs, such as delay=5ms,loss=1%")]
    NoValue(String),
    /// A value that is invalid for its key.
    #[error("{key}: found {found:?}, expected {expected}")]
    Value {
        /// The key.
        key: &'static str,
        /// The value found.
        found: String,
        /// The accepted notation.
        expected: &'static str,
    },
    /// Two loss models at once.
    #[error("both loss and burst_loss: expected one of them")]
    ConflictingLoss,
    /// A queue without a rate that fills it.
    #[error("a queue without a rate: expected a rate too, such as rate=100M-l2")]
    QueueWithoutRate,
}

impl ImpairmentSettings {
    /// All keys.
    pub const KEYS: [&str; 9] = [
        "loss",
        "burst_loss",
        "duplicate",
        "corrupt",
        "rate",
        "queue",
        "delay",
        "jitter",
        "reorder",
    ];

    /// Sets one key; `-` may replace `_`.
    ///
    /// # Errors
    /// See [`ImpairmentError`].
    pub fn set(&mut self, word: &str, value: &str) -> Result<(), ImpairmentError> {
        const SHARE: &str = "a share of frames, such as 1% or 0.05%";
        let normal = word.replace('-', "_");
        let word = Self::KEYS.into_iter().find(|known| *known == normal);
        let word = word.ok_or(ImpairmentError::UnknownKey(normal))?;
        let value = value.trim();
        let wrong =
            |expected| ImpairmentError::Value { key: word, found: value.to_owned(), expected };
        let share = || parse_share(value).ok_or_else(|| wrong(SHARE));
        match word {
            "loss" => self.loss = Some(share()?),
            "burst_loss" => {
                let expected = "P/R, P/R/H or P/R/H/K: the probabilities good to bad, bad to good, \
                                delivery when bad (0%) and when good (100%), such as 0.5%/30%";
                self.burst_loss = Some(parse_bursts(value).ok_or_else(|| wrong(expected))?);
            }
            "duplicate" => self.duplicate = Some(share()?),
            "corrupt" => self.corrupt = Some(share()?),
            "rate" => {
                let expected = "bits a second: 100M-l2 (frames with FCS) or 100M-l1 (all of the \
                                wire)";
                self.rate = match parse_rate(value) {
                    Some(RequestedRate::Speed(Speed::Bits(rate, layer))) => Some((rate, layer)),
                    _ => return Err(wrong(expected)),
                };
            }
            "queue" => {
                let expected = "frames, up to 1048576, or bytes: 1000, 64kB or 2MB";
                self.queue = Some(parse_queue(value).ok_or_else(|| wrong(expected))?);
            }
            "delay" => {
                let expected = "a time with its unit, such as 5ms";
                self.delay = Some(parse_time(value).ok_or_else(|| wrong(expected))?);
            }
            "jitter" => {
                let expected = "a time with its unit: 1ms (uniform, plus or minus 1 ms) or \
                                1ms/normal (standard deviation)";
                self.jitter = Some(parse_jitter(value).ok_or_else(|| wrong(expected))?);
            }
            _ => {
                let expected = "a share of frames and their extra delay, such as 1%/2ms";
                self.reorder = Some(parse_reordering(value).ok_or_else(|| wrong(expected))?);
            }
        }
        Ok(())
    }

    /// Sets several keys, as in `delay=5ms,loss=1%`.
    ///
    /// # Errors
    /// See [`ImpairmentError`].
    pub fn set_all(&mut self, text: &str) -> Result<(), ImpairmentError> {
        for part in text.split(',') {
            let (word, value) =
                part.split_once('=').ok_or_else(|| ImpairmentError::NoValue(part.to_owned()))?;
            self.set(word.trim(), value)?;
        }
        Ok(())
    }

    /// Returns these settings, with unset keys taken from `other`. `loss` and `burst_loss` count as
    /// one key.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let is_loss_set = self.loss.is_some() || self.burst_loss.is_some();
        Self {
            loss: if is_loss_set { self.loss } else { other.loss },
            burst_loss: if is_loss_set { self.burst_loss } else { other.burst_loss },
            duplicate: self.duplicate.or(other.duplicate),
            corrupt: self.corrupt.or(other.corrupt),
            rate: self.rate.or(other.rate),
            queue: self.queue.or(other.queue),
            delay: self.delay.or(other.delay),
            jitter: self.jitter.or(other.jitter),
            reorder: self.reorder.or(other.reorder),
        }
    }

    /// Converts the settings to an [`Impairment`].
    ///
    /// # Errors
    /// [`ImpairmentError::ConflictingLoss`], [`ImpairmentError::QueueWithoutRate`].
    pub fn resolve(self) -> Result<Impairment, ImpairmentError> {
        let loss = match (self.loss, self.burst_loss) {
            (None, None) => Loss::None,
            (Some(share), None) => Loss::Random(share),
            (None, Some(bursts)) => Loss::GilbertElliott(bursts),
            (Some(_), Some(_)) => return Err(ImpairmentError::ConflictingLoss),
        };
        let bottleneck = match (self.rate, self.queue) {
            (None, Some(_)) => return Err(ImpairmentError::QueueWithoutRate),
            (None, None) => None,
            (Some((rate, layer)), queue) => {
                Some(Bottleneck { rate, layer, queue: queue.unwrap_or_default() })
            }
        };
        Ok(Impairment {
            loss,
            duplication: self.duplicate.unwrap_or_default(),
            corruption: self.corrupt.unwrap_or_default(),
            bottleneck,
            delay: self.delay.unwrap_or_default(),
            jitter: self.jitter.unwrap_or_default(),
            reordering: self.reorder.unwrap_or_default(),
        })
    }
}

/// Reads an object such as `{delay: 5ms, loss: 1%}`.
pub(crate) fn read(place: &ValueAt<'_>) -> Result<Impairment, PlanError> {
    let mut settings = ImpairmentSettings::default();
    for (word, value) in place.fields(&ImpairmentSettings::KEYS)?.all() {
        let text =
            value.number_text().ok_or_else(|| value.unexpected("a value such as 5ms or 1%"))?;
        settings.set(word, &text).map_err(|error| match error {
            ImpairmentError::Value { expected, .. } => value.unexpected(expected),
            other => value.message_error(other.to_string()),
        })?;
    }
    settings.resolve().map_err(|error| place.message_error(error.to_string()))
}

pub(crate) fn parse_share(text: &str) -> Option<Probability> {
    /// Billionths per percent.
    const PERCENT: u64 = 10_000_000;
    let decimal = Decimal::parse(text.trim().strip_suffix('%')?.trim_end()).ok()?;
    let scaled = decimal.digits.checked_mul(PERCENT)?;
    if !scaled.is_multiple_of(decimal.denominator) {
        return None;
    }
    Probability::from_billionths(u32::try_from(scaled / decimal.denominator).ok()?)
}

fn parse_bursts(text: &str) -> Option<GilbertElliott> {
    let shares: Vec<_> = text.split('/').map(parse_share).collect::<Option<_>>()?;
    match *shares.as_slice() {
        [p, r] => Some(GilbertElliott { p, r, h: Probability::NONE, k: Probability::ALL }),
        [p, r, h] => Some(GilbertElliott { p, r, h, k: Probability::ALL }),
        [p, r, h, k] => Some(GilbertElliott { p, r, h, k }),
        _ => None,
    }
}

fn parse_queue(text: &str) -> Option<Queue> {
    let Some(bytes) = text.strip_suffix('B') else {
        let frames = text.parse().ok()?;
        return (frames <= Queue::MAX_FRAMES).then_some(Queue::Frames(frames));
    };
    let (number, scale) = match bytes.as_bytes().last()? {
        b'k' => (&bytes[..bytes.len() - 1], 1_000),
        b'M' => (&bytes[..bytes.len() - 1], 1_000_000),
        _ => (bytes, 1),
    };
    number.trim_end().parse::<u64>().ok()?.checked_mul(scale).map(Queue::Bytes)
}

fn parse_jitter(text: &str) -> Option<Jitter> {
    match text.split_once('/') {
        None => parse_time(text).map(Jitter::Uniform),
        Some((time, "normal")) => parse_time(time).map(Jitter::Normal),
        Some(_) => None,
    }
}

fn parse_reordering(text: &str) -> Option<Reordering> {
    let (share, by) = text.split_once('/')?;
    Some(Reordering { share: parse_share(share)?, extra_delay: parse_time(by)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Impairment, String> {
        let mut settings = ImpairmentSettings::default();
        let outcome = settings.set_all(text).and_then(|()| settings.resolve());
        outcome.map_err(|error| error.to_string())
    }

    fn share(millionths: u32) -> Probability {
        Probability::from_billionths(millionths * 1_000).unwrap()
    }

    #[test]
    fn parses_every_key() {
        let text = "loss=1.5%, duplicate=0.01%,corrupt=100%,rate=100M-l2,queue=64kB,delay=5ms,\
                    jitter=1ms/normal,reorder=2%/1.5ms";
        let rate = Rate::parse_per_second("100M", 1).unwrap();
        let expected = Impairment {
            loss: Loss::Random(share(15_000)),
            duplication: share(100),
            corruption: Probability::ALL,
            bottleneck: Some(Bottleneck {
                rate,
                layer: Layer::FrameWithFcs,
                queue: Queue::Bytes(64_000),
            }),
            delay: Duration::from_millis(5),
            jitter: Jitter::Normal(Duration::from_millis(1)),
            reordering: Reordering {
                share: share(20_000),
                extra_delay: Duration::from_micros(1_500),
            },
        };
        assert_eq!(parse(text), Ok(expected));
        let bursts = |h, k| {
            Loss::GilbertElliott(GilbertElliott { p: share(5_000), r: share(300_000), h, k })
        };
        for (text, h, k) in [
            ("burst_loss=0.5%/30%", Probability::NONE, Probability::ALL),
            ("burst-loss=0.5%/30%/10%", share(100_000), Probability::ALL),
            ("burst-loss=0.5%/30%/10%/99%", share(100_000), share(990_000)),
        ] {
            assert_eq!(parse(text).unwrap().loss, bursts(h, k), "{text}");
        }
        let queue = parse("rate=1G-l1,queue=10").unwrap().bottleneck.unwrap().queue;
        assert_eq!(queue, Queue::Frames(10));
        let queue = parse("rate=1G-l1").unwrap().bottleneck.unwrap().queue;
        assert_eq!(queue, Queue::Frames(1_000));
    }

    #[test]
    fn invalid_settings_show_the_accepted_notation() {
        for (text, expected) in [
            ("los=1%", "found \"los\", expected one of loss, burst_loss, duplicate"),
            ("loss", "found \"loss\", expected key=value pairs"),
            ("loss=1", "loss: found \"1\", expected a share of frames, such as 1%"),
            ("loss=101%", "loss: found \"101%\""),
            ("loss=0.00000001%", "loss: found"),
            ("burst_loss=1%", "burst_loss: found \"1%\", expected P/R"),
            ("rate=100M", "rate: found \"100M\", expected bits a second: 100M-l2"),
            ("rate=100pps", "rate: found"),
            ("rate=1G-l2,queue=1048577", "queue: found"),
            ("rate=1G-l2,queue=B", "queue: found"),
            ("delay=5", "delay: found \"5\", expected a time"),
            ("jitter=1ms/even", "jitter: found"),
            ("reorder=1%", "reorder: found \"1%\", expected a share of frames and their"),
            ("loss=1%,burst_loss=1%/2%", "both loss and burst_loss"),
            ("queue=5", "a queue without a rate"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }

    #[test]
    fn settings_of_a_direction_override_those_of_both() {
        let words = |text| {
            let mut settings = ImpairmentSettings::default();
            settings.set_all(text).unwrap();
            settings
        };
        let both = words("loss=1%,delay=5ms");
        let one = words("burst_loss=1%/50%,rate=1G-l1").or(both).resolve().unwrap();
        assert_eq!(one.delay, Duration::from_millis(5));
        assert!(matches!(one.loss, Loss::GilbertElliott(_)) && one.bottleneck.is_some());
        let other = ImpairmentSettings::default().or(both).resolve().unwrap();
        assert_eq!(other.loss, Loss::Random(share(10_000)));
    }
}
