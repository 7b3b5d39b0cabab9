//! Sizes of frames. The models count them with the FCS, the plan without.

use wirestorm_plan::traffic::FrameSize;

use super::problems::{ConfigError, Problems};
use crate::decode::default_of;
use crate::proto::flow_size::choice::Enum as Choice;
use crate::proto::flow_size_weight_pairs::{choice::Enum as Pairs, predefined::Enum as Mix};
use crate::proto::{FlowSize, FlowSizeWeightPairs};

const FCS: usize = 4;

/// Longest frame with FCS.
const SIZE_MAX: u32 = 16_384;

/// Reads the size of a flow's frames. `seed` is that of random sizes.
pub(super) fn read(
    size: Option<&FlowSize>,
    seed: u64,
    path: &str,
) -> Result<FrameSize, ConfigError> {
    let default;
    let size = match size {
        Some(size) => size,
        None => {
            default = default_of::<FlowSize>();
            &default
        }
    };
    let length = |field: &str, size: u32| match size {
        0..=SIZE_MAX => Ok((size as usize).saturating_sub(FCS)),
        _ => Err(ConfigError::new(
            format!("{path}.{field}"),
            format!("found {size}, expected at most {SIZE_MAX}"),
        )),
    };
    let less = |field: &str, than: &str| {
        ConfigError::new(format!("{path}.{field}"), format!("found less than {than}"))
    };
    match size.choice() {
        Choice::Increment => {
            let increment = size.increment.unwrap_or_default();
            let start = length("increment.start", increment.start())?;
            let end = length("increment.end", increment.end())?;
            if end < start {
                return Err(less("increment.end", "start"));
            }
            let step = (increment.step() as usize).max(1);
            Ok(FrameSize::Increment { start, end, step })
        }
        Choice::Random => {
            let random = size.random.unwrap_or_default();
            let min = length("random.min", random.min())?;
            let max = length("random.max", random.max())?;
            if max < min {
                return Err(less("random.max", "min"));
            }
            Ok(FrameSize::Random { min, max, seed })
        }
        Choice::WeightPairs => {
            let default = FlowSizeWeightPairs::default();
            weights(size.weight_pairs.as_ref().unwrap_or(&default), seed, path, length)
        }
        Choice::Fixed | Choice::Unspecified => Ok(FrameSize::Fixed(length("fixed", size.fixed())?)),
    }
}

fn weights(
    pairs: &FlowSizeWeightPairs,
    seed: u64,
    path: &str,
    length: impl Fn(&str, u32) -> Result<usize, ConfigError>,
) -> Result<FrameSize, ConfigError> {
    if pairs.choice() != Pairs::Custom {
        let name = match pairs.predefined() {
            Mix::Unspecified => Mix::Imix,
            mix => mix,
        };
        let path = format!("{path}.weight_pairs.predefined");
        return FrameSize::mix(name.as_str_name(), seed)
            .ok_or_else(|| ConfigError::new(path, "found an unknown mix"));
    }
    let mut choices = Vec::with_capacity(pairs.custom.len());
    for (index, pair) in pairs.custom.iter().enumerate() {
        let field = format!("weight_pairs.custom[{index}].size");
        choices.push((length(&field, pair.size.unwrap_or(64))?, pair.weight()));
    }
    let is_weight = |weight: f32| weight.is_finite() && weight >= 0.0;
    let greatest = choices.iter().map(|(_, weight)| *weight).fold(0.0, f32::max);
    if greatest == 0.0 || !choices.iter().all(|(_, weight)| is_weight(*weight)) {
        let path = format!("{path}.weight_pairs.custom");
        let message = "found no size with a weight, or a weight that is no number from 0";
        return Err(ConfigError::new(path, message));
    }
    // Weights are relative, and the plan has integers: four decimals of most of them.
    let scale = (f64::from(u32::MAX) / f64::from(greatest)).min(1e4);
    let scaled = |weight: f32| (f64::from(weight) * scale).round() as u32;
    let choices = choices.into_iter().map(|(size, weight)| {
        (
            size,
            scaled(weight).max(
                // A weight that is not zero stays one.
                u32::from(weight > 0.0),
            ),
        )
    });
    Ok(FrameSize::Weighted { choices: choices.collect(), seed })
}

/// Returns the size with all frames at least `least` bytes long, with a warning if it changes.
pub(super) fn at_least(
    size: FrameSize,
    least: usize,
    is_measured: bool,
    path: &str,
    problems: &mut Problems,
) -> FrameSize {
    let Some(min) = size.min().filter(|min| *min < least) else { return size };
    let holder = if is_measured { "headers and signature" } else { "headers" };
    problems.warn(
        path,
        format!(
            "frames of {} bytes are too short for their {holder}; they have {} bytes",
            min + FCS,
            least + FCS
        ),
    );
    match size {
        FrameSize::Increment { start, end, step } => {
            let start = start + (least - start).div_ceil(step) * step;
            FrameSize::Increment { start, end: end.max(start), step }
        }
        FrameSize::Random { max, seed, .. } => {
            FrameSize::Random { min: least, max: max.max(least), seed }
        }
        FrameSize::Weighted { choices, seed } => {
            let choices = choices.into_iter().map(|(size, weight)| (size.max(least), weight));
            FrameSize::Weighted { choices: choices.collect(), seed }
        }
        FrameSize::AsBuilt | FrameSize::IpPacket(_) | FrameSize::Fixed(_) => {
            FrameSize::Fixed(least)
        }
    }
}
