//! Reads the times between the packets of captures.

use wirestorm_base::time::Duration;
use wirestorm_wire::conversation::Gaps;

use super::{read_flag, read_micros};
use crate::document::error::PlanError;
use crate::document::value_at::Fields;

/// Settings of the profile that apply to all captures.
#[derive(Clone, Copy, Debug)]
pub(super) struct GapSettings {
    /// Whether captures keep their packet times.
    keep_times: bool,
    /// Shorter gaps are replaced by `instead`.
    least: Option<Duration>,
    /// Length of gaps; for captures that keep their times, of short gaps only.
    replacement: Option<Duration>,
}

pub(super) fn read(fields: &Fields<'_>) -> Result<GapSettings, PlanError> {
    let time = |name: &str| fields.get(name).map(|it| read_micros(&it)).transpose();
    Ok(GapSettings {
        keep_times: fields.get("cap_ipg").map_or(Ok(false), |it| read_flag(&it))?,
        least: time("cap_ipg_min")?,
        replacement: time("cap_override_ipg")?,
    })
}

impl GapSettings {
    /// Returns the gaps of one capture. `fields` are those of its entry.
    pub(super) fn of(&self, fields: &Fields<'_>) -> Result<Gaps, PlanError> {
        let keeps = fields.get("cap_ipg").map_or(Ok(self.keep_times), |it| read_flag(&it))?;
        if keeps {
            return Ok(match (self.least, self.replacement) {
                (Some(least), Some(instead)) => Gaps::AtLeast { least, replacement: instead },
                // One of the two has no effect alone, as in TRex.
                _ => Gaps::AsCaptured,
            });
        }
        if let Some(instead) = self.replacement {
            return Ok(Gaps::Fixed { within: instead, on_source_change: instead });
        }
        let time =
            |name: &str| read_micros(&fields.required(name, "microseconds, or cap_ipg: true")?);
        Ok(Gaps::Fixed { within: time("ipg")?, on_source_change: time("rtt")? })
    }
}
