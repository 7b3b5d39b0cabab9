//! How fast frames went.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirestorm_base::rate::Layer;

/// How fast frames went.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Rates {
    /// Frames per second.
    pub pps: f64,
    /// Layer-1 bits a second.
    pub bps_l1: f64,
    /// Layer-2 bits a second, with FCS.
    pub bps_l2: f64,
}

/// Frames a second that have this length in the mean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameRate {
    pub(crate) pps: f64,
    /// Without FCS; 0 of nothing.
    bytes_mean: f64,
}

impl FrameRate {
    pub(crate) fn new(pps: f64, frames: u64, bytes: u64) -> Self {
        Self { pps, bytes_mean: bytes as f64 / frames.max(1) as f64 }
    }

    /// So many frames, and their bytes without FCS, in so many seconds.
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

/// What a rate in bits counts, as results name it.
pub(crate) const fn layer_name(layer: Layer) -> &'static str {
    match layer {
        Layer::Frame => "frames",
        Layer::FrameWithFcs => "l2",
        Layer::Wire => "l1",
    }
}
