//! Parses the `size` of a flow's frames.

use wirestorm_model::stream::Values;

use crate::document::error::PlanError;
use crate::document::value_at::ValueAt;

/// Frame lengths, in bytes without FCS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameSize {
    /// Headers and payload, at least the Ethernet minimum.
    AsBuilt,
    /// One length.
    Fixed(usize),
    /// Length of the first IP packet in the frame.
    IpPacket(usize),
    /// From `start` to at most `end` by `step`, repeated.
    Increment {
        /// The first length.
        start: usize,
        /// Maximum length.
        end: usize,
        /// Difference between two lengths; at least 1.
        step: usize,
    },
    /// Uniformly distributed from `min` to `max`.
    Random {
        /// Minimum.
        min: usize,
        /// Maximum.
        max: usize,
        /// Seed of the random lengths.
        seed: u64,
    },
    /// Random lengths with weights.
    Weighted {
        /// Lengths with weights; at least one weight is not zero.
        choices: Vec<(usize, u32)>,
        /// Seed of the random lengths.
        seed: u64,
    },
}

const FCS: usize = 4;
pub(super) const FORMS: [&str; 6] = ["fixed", "frame", "ip", "increment", "random", "weight_pairs"];
pub(super) const INCREMENT: [&str; 3] = ["start", "end", "step"];
pub(super) const RANDOM: [&str; 3] = ["min", "max", "seed"];
pub(super) const WEIGHT_PAIRS: [&str; 2] = ["predefined", "custom"];
pub(super) const PAIR: [&str; 2] = ["size", "weight"];

pub(super) const FRAME_WITH_FCS_MIN: u64 = 18;
/// Longest frame in bytes with FCS.
pub const FRAME_WITH_FCS_MAX: u64 = 16_384;

const EXPECTED: &str = "the length of a frame with its FCS, such as 64; or one of the fields \
                        fixed, frame, ip, increment, random, weight_pairs";

/// Named mixes of frame lengths with FCS. Weights are relative. The names and lengths are those of
/// Open Traffic Generator.
pub(super) const MIXES: [(&str, &[(usize, u32)]); 5] = [
    ("imix", &[(64, 700), (570, 400), (1518, 100)]),
    ("ipsec_imix", &[(90, 5867), (92, 200), (594, 2366), (1418, 1567)]),
    ("ipv6_imix", &[(60, 5867), (496, 200), (594, 2366), (1518, 1567)]),
    ("standard_imix", &[(58, 5867), (62, 200), (594, 2366), (1518, 1567)]),
    ("tcp_imix", &[(90, 5867), (92, 200), (594, 2366), (1518, 1567)]),
];

pub(super) fn read(place: &ValueAt<'_>) -> Result<FrameSize, PlanError> {
    if place.value().is_u64() {
        return Ok(FrameSize::Fixed(with_fcs(place)?));
    }
    if let Some(name) = place.value().as_str() {
        return mix(name, place)?
            .ok_or_else(|| place.unexpected(format!("{EXPECTED}; or {}", names())));
    }
    if !place.value().is_object() {
        return Err(place.unexpected(EXPECTED));
    }
    let (form, value) = place.choice(&FORMS)?;
    match form {
        "fixed" => with_fcs(&value).map(FrameSize::Fixed),
        "frame" => {
            let most = FRAME_WITH_FCS_MAX - FCS as u64;
            Ok(FrameSize::Fixed(value.integer(FRAME_WITH_FCS_MIN - FCS as u64, most)? as usize))
        }
        "ip" => Ok(FrameSize::IpPacket(value.integer(20, 65_535)? as usize)),
        "increment" => {
            let fields = value.fields(&INCREMENT)?;
            let start = with_fcs(&fields.required("start", "the first length")?)?;
            let last = fields.required("end", "the greatest length")?;
            let end = with_fcs(&last)?;
            if end < start {
                return Err(last.unexpected(format!("at least the start, {}", start + FCS)));
            }
            let step = fields.get("step").map_or(Ok(1), |step| step.integer(1, 65_535))?;
            Ok(FrameSize::Increment { start, end, step: step as usize })
        }
        "random" => {
            let fields = value.fields(&RANDOM)?;
            let min = with_fcs(&fields.required("min", "the least length")?)?;
            let last = fields.required("max", "the greatest length")?;
            let max = with_fcs(&last)?;
            if max < min {
                return Err(last.unexpected(format!("at least min, {}", min + FCS)));
            }
            Ok(FrameSize::Random { min, max, seed: value.seed()? })
        }
        _ => weights(&value),
    }
}

fn weights(place: &ValueAt<'_>) -> Result<FrameSize, PlanError> {
    let (form, value) = place.choice(&WEIGHT_PAIRS)?;
    if form == "predefined" {
        let name = value.text(&names())?;
        return mix(name, place)?.ok_or_else(|| value.unexpected(names()));
    }
    let mut choices = Vec::new();
    for item in value.items("sizes with weights")? {
        let fields = item.fields(&PAIR)?;
        let size = with_fcs(&fields.required("size", "a length")?)?;
        let weight = fields.required("weight", "a weight")?.integer(0, u64::from(u32::MAX))?;
        choices.push((size, weight as u32));
    }
    if choices.iter().all(|(_, weight)| *weight == 0) {
        return Err(value.unexpected("at least one size with a weight that is not zero"));
    }
    Ok(FrameSize::Weighted { choices, seed: place.seed()? })
}

fn with_fcs(place: &ValueAt<'_>) -> Result<usize, PlanError> {
    let length = place.integer(FRAME_WITH_FCS_MIN, FRAME_WITH_FCS_MAX)?;
    Ok(length as usize - FCS)
}

fn mix(name: &str, place: &ValueAt<'_>) -> Result<Option<FrameSize>, PlanError> {
    Ok(FrameSize::mix(name, place.seed()?))
}

fn names() -> String {
    let names: Vec<_> = MIXES.iter().map(|(name, _)| *name).collect();
    format!("the name of a mix: {}", names.join(", "))
}

impl FrameSize {
    /// Returns the mix with this name, such as `imix`; `None` if there is none. Lengths are random,
    /// so that their order has no pattern.
    pub fn mix(name: &str, seed: u64) -> Option<Self> {
        let (_, list) = MIXES.iter().find(|(known, _)| *known == name)?;
        let choices = list.iter().map(|(size, weight)| (size - FCS, *weight)).collect();
        Some(Self::Weighted { choices, seed })
    }

    /// Returns the values of the length, or `None` if all frames have one length.
    pub fn values(&self) -> Option<Values> {
        match self {
            Self::AsBuilt | Self::IpPacket(_) | Self::Fixed(_) => None,
            Self::Increment { start, end, step } => {
                let count = (end - start) / step + 1;
                let (start, step) = (*start as u128, *step as u128);
                let max = start + step * count as u128 - 1;
                Some(Values::Counter { start, min: start, max, step, downwards: false })
            }
            Self::Random { min, max, seed } => {
                Some(Values::Random { min: *min as u128, max: *max as u128, seed: *seed })
            }
            Self::Weighted { choices, seed } => {
                let choices = choices.iter().map(|(size, weight)| (*size as u128, *weight));
                Some(Values::Weighted { choices: choices.collect(), seed: *seed })
            }
        }
    }

    /// Returns the minimum length, or `None` if it follows from the headers.
    pub fn min(&self) -> Option<usize> {
        match self {
            Self::AsBuilt | Self::IpPacket(_) => None,
            Self::Fixed(size) => Some(*size),
            Self::Increment { start, .. } => Some(*start),
            Self::Random { min, .. } => Some(*min),
            Self::Weighted { choices, .. } => {
                choices.iter().filter(|(_, weight)| *weight > 0).map(|(size, _)| *size).min()
            }
        }
    }

    /// Returns the maximum length, or `None` if it follows from the headers.
    pub fn max(&self) -> Option<usize> {
        match self {
            Self::AsBuilt | Self::IpPacket(_) => None,
            Self::Fixed(size) => Some(*size),
            Self::Increment { end, .. } => Some(*end),
            Self::Random { max, .. } => Some(*max),
            Self::Weighted { choices, .. } => choices.iter().map(|(size, _)| *size).max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn size(value: Value) -> Result<FrameSize, String> {
        read(&ValueAt::root(&value)).map_err(|error| error.to_string())
    }

    #[test]
    fn lengths_include_the_fcs_except_in_frame_and_ip() {
        assert_eq!(size(json!(64)), Ok(FrameSize::Fixed(60)));
        assert_eq!(size(json!({"fixed": 64})), Ok(FrameSize::Fixed(60)));
        assert_eq!(size(json!({"frame": 60})), Ok(FrameSize::Fixed(60)));
        assert_eq!(size(json!({"ip": 64})), Ok(FrameSize::IpPacket(64)));
        let increment = json!({"increment": {"start": 64, "end": 128, "step": 2}});
        assert_eq!(size(increment), Ok(FrameSize::Increment { start: 60, end: 124, step: 2 }));
    }

    #[test]
    fn parses_named_and_custom_mixes() {
        let Ok(FrameSize::Weighted { choices, .. }) = size(json!("imix")) else { panic!("a mix") };
        assert_eq!(choices, [(60, 700), (566, 400), (1514, 100)]);
        let custom = json!({"weight_pairs": {"custom": [{"size": 64, "weight": 1}]}});
        let Ok(FrameSize::Weighted { choices, .. }) = size(custom) else { panic!("a mix") };
        assert_eq!(choices, [(60, 1)]);
    }

    #[test]
    fn invalid_lengths_have_their_path() {
        let error = size(json!({"increment": {"start": 100, "end": 64}})).unwrap_err();
        assert_eq!(error, "increment.end: found 64, expected at least the start, 100");
        let error = size(json!({"random": {"min": 64}})).unwrap_err();
        assert_eq!(error, "random.max: found nothing, expected the greatest length");
        let error = size(json!(7)).unwrap_err();
        assert_eq!(error, "plan: found 7, expected a whole number from 18 to 16384");
        assert!(size(json!("imx")).unwrap_err().contains("imix, ipsec_imix"));
    }
}
