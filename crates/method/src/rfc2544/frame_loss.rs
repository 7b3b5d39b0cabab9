//! Frame loss rate (RFC 2544 section 26.3).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Rfc2544, Subject, Test};
use crate::trial::{Length, Trial, TrialError, TrialInput};

/// Frame loss rates of one frame size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FrameLossRow {
    /// Name of the traffic.
    pub traffic: String,
    /// Frame size in bytes with FCS.
    pub frame_size: u32,
    /// Points from the largest load down to two loads without loss.
    pub points: Vec<FrameLossPoint>,
}

/// Frame loss rate at one load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FrameLossPoint {
    /// Load in percent of the maximum load.
    pub load_percent: f64,
    /// Intended load in frames per second of each interface.
    pub load: u64,
    /// Frames sent on all interfaces.
    pub offered: u64,
    /// Frames received on all interfaces.
    pub received: u64,
    /// Frames that the generator did not send; they are not part of the loss.
    pub unsent: u64,
    /// Lost frames in percent of the frames sent.
    pub loss_percent: f64,
}

impl Rfc2544 {
    /// Measures the frame loss rate from the maximum load down.
    pub(super) fn frame_loss(
        &self,
        subject: &Subject,
        trial: &mut dyn Trial,
    ) -> Result<FrameLossRow, TrialError> {
        let max_load = self.max_load(subject.frame_size);
        // RFC 2544: "The maximum granularity of the trials MUST be 10% of the maximum rate".
        let step = self.frame_loss_step.clamp(0.001, 0.1);
        let mut points: Vec<FrameLossPoint> = Vec::new();
        for number in 0.. {
            let part = 1.0 - f64::from(number) * step;
            if part < step / 2.0 {
                break;
            }
            let load = ((max_load as f64 * part).round() as u64).max(1);
            let name = Test::FrameLoss.name();
            let length = Length::Time(self.trial);
            let input = TrialInput::constant(name, &subject.traffic, load, length);
            let output = trial.run(&input)?.first().total();
            points.push(FrameLossPoint {
                load_percent: (part * 1e6).round() / 1e4,
                load,
                offered: output.offered,
                received: output.received,
                unsent: output.unsent(),
                loss_percent: output.lost() as f64 * 100.0 / output.offered.max(1) as f64,
            });
            // "until there are two successive trials in which no frames are lost"
            let is_clean = |point: &FrameLossPoint| point.received >= point.offered;
            if points.len() >= 2 && points.iter().rev().take(2).all(is_clean) {
                break;
            }
        }
        let traffic = subject.traffic.name.clone();
        Ok(FrameLossRow { traffic, frame_size: subject.frame_size, points })
    }
}
