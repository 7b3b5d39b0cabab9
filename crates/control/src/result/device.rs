//! Devices of pktgen scripts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Label, TransmitReport};

/// What one `start` came to.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DeviceRun {
    /// Each device, thread by thread.
    pub devices: Vec<DeviceReport>,
    /// Whether the script or a signal stopped it before its end.
    pub stopped: bool,
}

/// One device.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DeviceReport {
    /// Its name: `eth0@1`.
    pub name: String,
    /// Its interface: `eth0`.
    pub interface: String,
    /// The number of the pktgen thread that it was added to.
    pub thread: u32,
    /// What carried its frames; null where it sent none.
    pub backend: Option<Label>,
    /// Why that backend.
    pub backend_reason: Option<String>,
    /// What it sent. Rates are those over all of its time, as pktgen counts.
    #[serde(flatten)]
    pub tx: TransmitReport,
    /// From the common start to its end, in seconds.
    pub elapsed_s: f64,
    /// The part of it in which the device waited.
    pub idle_s: f64,
    /// Frames a second that were asked for; null where it was as fast as it goes, or bits.
    pub target_pps: Option<f64>,
    /// Bits a second of frames without FCS that were asked for; null where it was as fast as it
    /// goes, or frames.
    pub target_bps: Option<f64>,
    /// How far the rate was from the target, in millionths, by the gaps between departures.
    pub rate_error_ppm: Option<f64>,
    /// Text after `Result: ` in the device file.
    pub result: String,
}
