//! Rates and durations of flows.

use wirestorm_base::rate::{Decimal, Layer, Rate};
use wirestorm_base::time::Duration;
use wirestorm_model::stream::{Mode, Speed, Transmission};
use wirestorm_plan::traffic::RequestedRate;

use super::problems::{ConfigError, Problems};
use crate::decode::default_of;
use crate::proto::flow_delay::choice::Enum as DelayUnit;
use crate::proto::flow_duration::choice::Enum as Choice;
use crate::proto::flow_duration_inter_burst_gap::choice::Enum as GapUnit;
use crate::proto::flow_rate::choice::Enum as RateUnit;
use crate::proto::{FlowBurst, FlowDelay, FlowDuration, FlowRate};

/// Smallest gap between frames, in bytes, that needs no setting.
const GAP_DEFAULT: u32 = 12;

/// Reads the rate of a flow. Bits are counted with preamble and gap: the smallest rate of the
/// models, 672 bps, is one frame of 64 bytes.
pub(super) fn rate(rate: Option<&FlowRate>, path: &str) -> Result<RequestedRate, ConfigError> {
    let default;
    let rate = match rate {
        Some(rate) => rate,
        None => {
            default = default_of::<FlowRate>();
            &default
        }
    };
    let wrong = |field: &str, found: String| {
        ConfigError::new(
            format!("{path}.{field}"),
            format!("found {found}, expected more than 0 and at most 10^18 per second"),
        )
    };
    let per_second = |field: &str, units: u64, scale: u64| {
        let total = units.checked_mul(scale);
        let rate = total.and_then(|total| Rate::new(total, Duration::from_secs(1)).ok());
        rate.ok_or_else(|| wrong(field, units.to_string()))
    };
    let bits = |rate: Rate| RequestedRate::Speed(Speed::Bits(rate, Layer::Wire));
    match rate.choice() {
        RateUnit::Bps => per_second("bps", rate.bps(), 1).map(bits),
        RateUnit::Kbps => per_second("kbps", rate.kbps(), 1_000).map(bits),
        RateUnit::Mbps => per_second("mbps", rate.mbps(), 1_000_000).map(bits),
        RateUnit::Gbps => per_second("gbps", u64::from(rate.gbps()), 1_000_000_000).map(bits),
        RateUnit::Percentage => {
            let percentage = rate.percentage();
            let is_valid = percentage > 0.0 && percentage <= 100.0;
            let decimal = is_valid.then(|| Decimal::parse(&percentage.to_string()).ok()).flatten();
            decimal.map(RequestedRate::Percentage).ok_or_else(|| {
                let expected = "expected more than 0, at most 100, with at most 9 decimals";
                let message = format!("found {percentage}, {expected}");
                ConfigError::new(format!("{path}.percentage"), message)
            })
        }
        RateUnit::Pps | RateUnit::Unspecified => {
            let rate = per_second("pps", rate.pps(), 1)?;
            Ok(RequestedRate::Speed(Speed::Frames(rate)))
        }
    }
}

/// Transmission of a flow, and its duration if that is a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    pub(super) transmission: Transmission,
    pub(super) duration: Option<Duration>,
}

/// Reads the duration of a flow. `link` is the line rate, for times in bytes.
pub(super) fn timing(
    duration: Option<&FlowDuration>,
    speed: Speed,
    link: Option<Rate>,
    path: &str,
    problems: &mut Problems,
) -> Result<Timing, ConfigError> {
    let default;
    let duration = match duration {
        Some(duration) => duration,
        None => {
            default = default_of::<FlowDuration>();
            &default
        }
    };
    let reader = Reader { link, path };
    let mut transmission = Transmission::continuous(speed);
    let mut time = None;
    let gap = match duration.choice() {
        Choice::FixedPackets => {
            let fixed = duration.fixed_packets.unwrap_or_default();
            let path = "fixed_packets.packets";
            transmission.mode = Mode::Burst { frames: reader.at_least_one(path, fixed.packets())? };
            transmission.start_delay = reader.delay(fixed.delay.as_ref(), "fixed_packets.delay")?;
            fixed.gap
        }
        Choice::FixedSeconds => {
            let fixed = duration.fixed_seconds.unwrap_or_default();
            let seconds = f64::from(fixed.seconds.unwrap_or(1.0));
            let span = reader.nanoseconds("fixed_seconds.seconds", seconds * 1e9)?;
            if span == Duration::ZERO {
                let path = format!("{path}.fixed_seconds.seconds");
                return Err(ConfigError::new(path, "found 0, expected more than 0"));
            }
            time = Some(span);
            transmission.start_delay = reader.delay(fixed.delay.as_ref(), "fixed_seconds.delay")?;
            fixed.gap
        }
        Choice::Burst => {
            let burst = duration.burst.unwrap_or_default();
            transmission.mode = reader.bursts(&burst)?;
            burst.gap
        }
        Choice::Continuous | Choice::Unspecified => {
            let continuous = duration.continuous.unwrap_or_default();
            transmission.start_delay =
                reader.delay(continuous.delay.as_ref(), "continuous.delay")?;
            continuous.gap
        }
    };
    if gap.unwrap_or(GAP_DEFAULT) != GAP_DEFAULT {
        // The rate gives the distance of the frames.
        problems.ignore(format!("{path}.{}.gap", duration.choice().as_str_name()));
    }
    Ok(Timing { transmission, duration: time })
}

struct Reader<'a> {
    link: Option<Rate>,
    path: &'a str,
}

impl Reader<'_> {
    fn at_least_one(&self, field: &str, count: u32) -> Result<u64, ConfigError> {
        match count {
            0 => {
                let path = format!("{}.{field}", self.path);
                Err(ConfigError::new(path, "found 0, expected at least 1"))
            }
            count => Ok(u64::from(count)),
        }
    }

    fn bursts(&self, burst: &FlowBurst) -> Result<Mode, ConfigError> {
        let frames = self.at_least_one("burst.packets", burst.packets.unwrap_or(1))?;
        let count = u64::from(burst.bursts());
        let gap = match burst.inter_burst_gap {
            None => Duration::ZERO,
            Some(gap) => {
                let field = "burst.inter_burst_gap";
                match gap.choice() {
                    GapUnit::Nanoseconds => self.nanoseconds(field, gap.nanoseconds())?,
                    GapUnit::Microseconds => self.nanoseconds(field, gap.microseconds() * 1e3)?,
                    GapUnit::Bytes | GapUnit::Unspecified => self.bytes(field, gap.bytes())?,
                }
            }
        };
        Ok(match (count, gap) {
            // No gap: the bursts follow each other at the rate.
            (0, Duration::ZERO) => Mode::Continuous,
            (count, Duration::ZERO) => Mode::Burst { frames: frames.saturating_mul(count) },
            (0, gap) => Mode::Bursts { frames, count: u64::MAX, gap },
            (count, gap) => Mode::Bursts { frames, count, gap },
        })
    }

    fn delay(&self, delay: Option<&FlowDelay>, field: &str) -> Result<Duration, ConfigError> {
        let Some(delay) = delay else { return Ok(Duration::ZERO) };
        match delay.choice() {
            DelayUnit::Nanoseconds => self.nanoseconds(field, f64::from(delay.nanoseconds())),
            DelayUnit::Microseconds => {
                self.nanoseconds(field, f64::from(delay.microseconds()) * 1e3)
            }
            DelayUnit::Bytes | DelayUnit::Unspecified => {
                self.bytes(field, f64::from(delay.bytes()))
            }
        }
    }

    fn nanoseconds(&self, field: &str, nanoseconds: f64) -> Result<Duration, ConfigError> {
        /// About 292 years.
        const MAX: f64 = i64::MAX as f64;
        if (0.0..MAX).contains(&nanoseconds) {
            return Ok(Duration::from_nanos(nanoseconds.round() as u64));
        }
        let path = format!("{}.{field}", self.path);
        Err(ConfigError::new(path, format!("found {nanoseconds} ns, expected a time from 0")))
    }

    /// Returns the time that bytes take on the link.
    fn bytes(&self, field: &str, bytes: f64) -> Result<Duration, ConfigError> {
        if bytes == 0.0 {
            return Ok(Duration::ZERO);
        }
        let link = self.link.ok_or_else(|| {
            let message = "a time in bytes needs the port's speed: set layer1.speed";
            ConfigError::new(format!("{}.{field}", self.path), message)
        })?;
        self.nanoseconds(field, bytes * 8e9 / link.per_second())
    }
}
