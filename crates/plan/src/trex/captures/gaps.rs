//! Times between the packets of captures, as they are written.

use wirestorm_base::time::Duration;
use wirestorm_wire::conversation::Gaps;

use super::{read_flag, read_micros};
use crate::document::error::PlanError;
use crate::document::place::Fields;

/// What is said of all captures.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommonGaps {
    /// Whether captures keep their times.
    keeps: bool,
    /// What is shorter than this is as long as `instead`.
    least: Option<Duration>,
    /// How long gaps are; of captures that keep their times, those that are short.
    instead: Option<Duration>,
}

pub(super) fn read(fields: &Fields<'_>) -> Result<CommonGaps, PlanError> {
    let time = |name: &str| fields.get(name).map(|it| read_micros(&it)).transpose();
    Ok(CommonGaps {
        keeps: fields.get("cap_ipg").map_or(Ok(false), |it| read_flag(&it))?,
        least: time("cap_ipg_min")?,
        instead: time("cap_override_ipg")?,
    })
}

impl CommonGaps {
    /// Those of one capture, whose fields these are.
    pub(super) fn of(&self, fields: &Fields<'_>) -> Result<Gaps, PlanError> {
        let keeps = fields.get("cap_ipg").map_or(Ok(self.keeps), |it| read_flag(&it))?;
        if keeps {
            return Ok(match (self.least, self.instead) {
                (Some(least), Some(instead)) => Gaps::AtLeast { least, instead },
                // One of them alone does nothing, as in TRex.
                _ => Gaps::AsCaptured,
            });
        }
        if let Some(instead) = self.instead {
            return Ok(Gaps::Fixed { within: instead, turning: instead });
        }
        let time = |name: &str| read_micros(&fields.need(name, "microseconds, or cap_ipg: true")?);
        Ok(Gaps::Fixed { within: time("ipg")?, turning: time("rtt")? })
    }
}
