//! Options of a run of streams.

use std::collections::BTreeMap;
use wirestorm_base::departure::DeparturePolicy;

use wirestorm_base::time::Duration;
use wirestorm_engine::measure::SegmentOptions;
use wirestorm_plan::Multiplier;

use crate::backend::{AF_PACKET, Backend};

/// Options for sending a plan of streams.
#[derive(Clone, Debug)]
pub struct StreamOptions {
    /// Interface of each port, in plan order; `None` to use the plan's.
    pub interfaces: Vec<Option<String>>,
    /// Backend that sends and receives frames.
    pub backend: Backend,
    /// Number of worker threads, which share each stream; at least 1.
    pub workers: u16,
    /// Treatment of late frames.
    pub policy: DeparturePolicy,
    /// Maximum duration. A delayed schedule may exceed it to catch up.
    pub duration: Duration,
    /// Multiplier of the rates of the flows.
    pub multiplier: Multiplier,
    /// Whether to send on an interface that carries the default route.
    pub force_interface: bool,
    /// Whether packet sockets on this host, such as those of tcpdump, see the sent frames. This
    /// forces the af_packet backend with the queueing discipline, which is slower.
    pub is_visible: bool,
    /// Whether to count arrivals of measured flows also by VLAN tags.
    pub per_vlan: bool,
    /// Whether sending continues after the interface of a port was down. Frames that are due in the
    /// meantime are not sent.
    pub survives_outages: bool,
    /// Maximum relative rate error in parts per million.
    pub tolerance_ppm: f64,
    /// Time series of measured flows.
    pub series: SeriesOptions,
    /// Ports of the plan on other machines; `None` if all are here.
    pub elsewhere: Option<Elsewhere>,
}

/// Ports of a plan that are on other machines. All machines have the same plan and the same number of
/// workers.
#[derive(Clone, Debug)]
pub struct Elsewhere {
    /// Indices of these ports in the plan, with the segments of delays of flows that they send.
    pub ports: BTreeMap<usize, SegmentOptions>,
    /// Stream ID of the plan's first stream in signatures, the same on all machines.
    pub first_stream: u32,
    /// Time without arrivals, after all machines have sent their frames, after which the missing ones
    /// count as lost.
    pub drain: Duration,
}

/// Intervals of the time series of a measured flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesOptions {
    /// Length of an interval; it doubles when the intervals run out.
    pub interval: Duration,
    /// Maximum number of intervals; with many flows, each has fewer.
    pub intervals_max: usize,
}

impl Default for SeriesOptions {
    fn default() -> Self {
        Self { interval: Duration::from_millis(10), intervals_max: 256 }
    }
}

impl StreamOptions {
    /// Returns whether a port of the plan is on this machine.
    pub fn is_here(&self, port: usize) -> bool {
        self.segments_of(port).is_none()
    }

    /// Returns the segments of delays of flows from a port on another machine; `None` if the port is
    /// here.
    pub(super) fn segments_of(&self, port: usize) -> Option<SegmentOptions> {
        self.elsewhere.as_ref()?.ports.get(&port).copied()
    }

    /// Returns the backend in effect.
    pub const fn backend(&self) -> Backend {
        if self.is_visible { Backend::One(&AF_PACKET) } else { self.backend }
    }
}
