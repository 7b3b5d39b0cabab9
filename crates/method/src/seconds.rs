//! Durations as seconds in JSON.
//!
//! A duration below 104 days survives the conversion to a double and back to whole nanoseconds.

use serde::{Deserialize, Deserializer, Serializer};
use wirestorm_base::time::{Duration, NANOSECONDS_PER_SECOND};

pub(crate) fn serialize<S: Serializer>(
    duration: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    f64::deserialize(deserializer).map(from_seconds)
}

/// Rounds to whole nanoseconds. Negative values and NaN become zero.
pub(crate) fn from_seconds(seconds: f64) -> Duration {
    Duration::from_nanos((seconds * NANOSECONDS_PER_SECOND as f64).round() as u64)
}
