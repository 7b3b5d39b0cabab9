//! Parses constant and random delays.

use wirestorm_base::time::Duration;
use wirestorm_model::program::Step;

use crate::document::error::PlanError;
use crate::document::time::read_time;
use crate::document::value_at::ValueAt;

pub(super) const DELAY: [&str; 4] = ["min", "max", "mean", "stddev"];

pub(super) fn read_delay(place: &ValueAt<'_>) -> Result<Step, PlanError> {
    /// Maximum: a step has 32 bits for microseconds.
    const LONGEST: Duration = Duration::from_micros(u32::MAX as u64);
    let time = |place: &ValueAt<'_>| match read_time(place)? {
        time if time <= LONGEST => Ok(time),
        _ => Err(place.unexpected("at most 4294 s")),
    };
    if !place.value().is_object() {
        let time = time(place)?;
        return Ok(Step::Delay { min: time, max: time });
    }
    let fields = place.fields(&DELAY)?;
    if let Some(mean) = fields.get("mean") {
        if let Some(other) = fields.get("min").or(fields.get("max")) {
            return Err(other.error("a bound beside mean", "min and max, or mean"));
        }
        let deviation = fields.get("stddev").map(|it| time(&it)).transpose()?;
        return Ok(Step::RandomDelay { mean: time(&mean)?, stddev: deviation });
    }
    let min = time(&fields.required("min", "a time with its unit")?)?;
    let greatest = fields.required("max", "a time with its unit")?;
    let max = time(&greatest)?;
    if max < min {
        return Err(greatest.unexpected("at least as much as min"));
    }
    Ok(Step::Delay { min, max })
}
