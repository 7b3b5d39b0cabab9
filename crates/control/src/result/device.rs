//! Reports on the devices of pktgen scripts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Label, TransmitReport};

/// Result of one `start` command.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DeviceRun {
    /// Devices, ordered by pktgen thread.
    pub devices: Vec<DeviceReport>,
    /// Whether the script or a signal stopped the devices early.
    pub stopped: bool,
}

/// Result of one device.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DeviceReport {
    /// Device name, such as `eth0@1`.
    pub name: String,
    /// Interface, such as `eth0`.
    pub interface: String,
    /// Number of the pktgen thread that runs the device.
    pub thread: u32,
    /// Backend that sent the frames; null if the device sent none.
    pub backend: Option<Label>,
    /// Reason for the choice of the backend.
    pub backend_reason: Option<String>,
    /// Transmit counters. Rates are averages over `elapsed_s`, as pktgen computes them.
    #[serde(flatten)]
    pub tx: TransmitReport,
    /// Time from the common start to the end of the device, in seconds.
    pub elapsed_s: f64,
    /// Time that the device waited, in seconds.
    pub idle_s: f64,
    /// Target rate in frames per second; null for top speed or a bit rate.
    pub target_pps: Option<f64>,
    /// Target rate in bit/s of frames without FCS; null for top speed or a frame rate.
    pub target_bps: Option<f64>,
    /// Relative rate error in parts per million, computed from the gaps between departures.
    pub rate_error_ppm: Option<f64>,
    /// Text after `Result: ` in the device file.
    pub result: String,
}
