//! Rows of the tables: counters and rates.

use std::collections::BTreeMap;
use std::sync::Arc;

use wirestorm_api::run::RunState;

/// Bytes that a frame takes on the wire beyond its counted ones: preamble, FCS and gap.
const WIRE_OVERHEAD: f64 = 24.0;
/// Length of the FCS in bytes.
const FCS: f64 = 4.0;

/// Frames and bytes, as a total or for each second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Amount {
    pub(crate) frames: f64,
    pub(crate) bytes: f64,
}

impl Amount {
    /// Bits at layer 1: with preamble, FCS and gap.
    pub(crate) fn bits_l1(self) -> f64 {
        8.0 * (self.bytes + WIRE_OVERHEAD * self.frames)
    }

    /// Bits at layer 2: with FCS.
    pub(crate) fn bits_l2(self) -> f64 {
        8.0 * (self.bytes + FCS * self.frames)
    }

    pub(super) fn of(frames: u64, bytes: u64) -> Self {
        Self { frames: frames as f64, bytes: bytes as f64 }
    }

    pub(super) fn since(self, before: Self, seconds: f64) -> Self {
        Self {
            frames: (self.frames - before.frames).max(0.0) / seconds,
            bytes: (self.bytes - before.bytes).max(0.0) / seconds,
        }
    }

    fn add(&mut self, other: Self) {
        self.frames += other.frames;
        self.bytes += other.bytes;
    }
}

/// Counters and rates of a port, all runs together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PortLine {
    pub(crate) tx: Amount,
    pub(crate) rx: Amount,
    /// Since the counters were cleared, as all below.
    pub(crate) tx_frames: u64,
    pub(crate) tx_bytes: u64,
    pub(crate) rx_frames: u64,
    pub(crate) rx_bytes: u64,
    pub(crate) tx_failed: u64,
    pub(crate) tx_unsent: u64,
    pub(crate) rx_dropped: u64,
}

impl PortLine {
    /// Adds the counters and rates of another run or port.
    pub(crate) fn add(&mut self, other: &Self) {
        self.tx.add(other.tx);
        self.rx.add(other.rx);
        self.tx_frames += other.tx_frames;
        self.tx_bytes += other.tx_bytes;
        self.rx_frames += other.rx_frames;
        self.rx_bytes += other.rx_bytes;
        self.tx_failed += other.tx_failed;
        self.tx_unsent += other.tx_unsent;
        self.rx_dropped += other.rx_dropped;
    }
}

/// Counters and rates of a flow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FlowLine {
    pub(crate) run: String,
    pub(crate) name: Arc<str>,
    pub(crate) tx: Amount,
    pub(crate) rx: Amount,
    pub(crate) tx_frames: u64,
    pub(crate) tx_unsent: u64,
    /// Whether the flow, or its whole run, is paused; not after the end of the run.
    pub(crate) is_paused: bool,
    /// Counters of the receivers; `None` for a flow that is not measured.
    pub(crate) received: Option<ReceivedLine>,
}

/// What arrived of a flow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReceivedLine {
    pub(crate) frames: u64,
    /// Frames sent that have not arrived, those on their way included.
    pub(crate) missing: u64,
    pub(crate) duplicated: u64,
    pub(crate) reordered: u64,
    pub(crate) delay: Option<DelayLine>,
}

/// Delays of a flow or of probes in nanoseconds, since the start of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DelayLine {
    /// Frames or probes with a delay.
    pub(crate) samples: u64,
    pub(crate) min_ns: Option<f64>,
    pub(crate) mean_ns: f64,
    /// Median; `None` for flows beyond those with histograms.
    pub(crate) p50_ns: Option<f64>,
    pub(crate) p99_ns: Option<f64>,
    pub(crate) max_ns: Option<f64>,
    pub(crate) jitter_ns: Option<f64>,
    /// Mean of the last second; `None` if nothing arrived.
    pub(crate) recent_ns: Option<f64>,
}

/// Histograms of the delays of flows since the counters were cleared.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Histograms {
    /// Number of flows with a histogram.
    pub(crate) count: usize,
    /// Number of measured flows without one: those after the first ones of their run.
    pub(crate) left_out: usize,
    /// Frames of all flows with a histogram, as those of a flow.
    pub(crate) total: BTreeMap<i64, u64>,
    /// Chosen flows.
    pub(crate) chosen: Vec<HistogramLine>,
}

/// Frames of a flow in each range of delays.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HistogramLine {
    pub(crate) name: Arc<str>,
    /// Ranges as in [`FlowDelays`](wirestorm_api::delays::FlowDelays).
    pub(crate) counts: BTreeMap<i64, u64>,
}

/// Round-trip times of the probes from a port.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProbeLine {
    pub(crate) name: String,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) delay: Option<DelayLine>,
}

/// Connections of a port of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ConnectionLine {
    pub(crate) run: String,
    pub(crate) port: String,
    pub(crate) active: u64,
    pub(crate) established: u64,
    pub(crate) failed: u64,
    pub(crate) retransmitted: u64,
    /// Established connections and payload bytes for each second.
    pub(crate) rate: f64,
    pub(crate) tx_bytes_rate: f64,
    pub(crate) rx_bytes_rate: f64,
}

/// CPU time of the workers of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CpuLine {
    pub(crate) run: String,
    pub(crate) state: RunState,
    pub(crate) is_paused: bool,
    pub(crate) elapsed_s: f64,
    /// CPUs in use: 1.0 is one CPU all the time.
    pub(crate) load: f64,
    /// CPU time for each frame of the last second, in nanoseconds; `None` without frames.
    pub(crate) per_frame_ns: Option<f64>,
    pub(crate) waiting_for: Option<String>,
    pub(crate) fraction: Option<f64>,
}
