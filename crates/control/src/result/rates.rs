//! Frame and bit rates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirestorm_base::rate::Layer;

/// Frame and bit rates.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Rates {
    /// Frames per second.
    pub pps: f64,
    /// Layer-1 bit rate in bit/s (with FCS, preamble and inter-packet gap).
    pub bps_l1: f64,
    /// Layer-2 bit rate in bit/s (with FCS).
    pub bps_l2: f64,
}

/// A frame rate together with the mean frame length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameRate {
    pub(crate) pps: f64,
    /// Mean frame length in bytes without FCS; 0 without frames.
    bytes_mean: f64,
}

impl FrameRate {
    pub(crate) fn new(pps: f64, frames: u64, bytes: u64) -> Self {
        Self { pps, bytes_mean: bytes as f64 / frames.max(1) as f64 }
    }

    /// Returns the rate of `frames` frames with `bytes` bytes (without FCS) over `seconds`.
    pub(crate) fn over(frames: u64, bytes: u64, seconds: f64) -> Self {
        Self::new(frames as f64 / seconds.max(1e-9), frames, bytes)
    }

    pub(crate) fn bits_per_second(&self, layer: Layer) -> f64 {
        self.pps * (self.bytes_mean + layer.overhead() as f64) * 8.0
    }
}

impl From<FrameRate> for Rates {
    fn from(rate: FrameRate) -> Self {
        Self {
            pps: rate.pps,
            bps_l1: rate.bits_per_second(Layer::Wire),
            bps_l2: rate.bits_per_second(Layer::FrameWithFcs),
        }
    }
}

/// Returns the name of a layer in results.
pub(crate) const fn layer_name(layer: Layer) -> &'static str {
    match layer {
        Layer::Frame => "frames",
        Layer::FrameWithFcs => "l2",
        Layer::Wire => "l1",
    }
}
