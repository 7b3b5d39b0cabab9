//! How a port is opened.

use wirestorm_base::departure::DeparturePolicy;
use wirestorm_base::resident::ResidentOptions;
use wirestorm_io::af_packet::FetchExtent;
use wirestorm_io::link::Link;

/// Options for opening a port.
#[derive(Clone, Debug)]
pub(crate) struct PortOptions {
    /// Treatment of late frames.
    pub(crate) policy: DeparturePolicy,
    /// Whether frames have due times.
    pub(crate) paced: bool,
    /// CPU for the port's own thread, if it has one.
    pub(crate) cpu: Option<usize>,
    /// Interface queue, for ports that use a single queue.
    pub(crate) queue: u32,
    /// Bytes of frame data that the port may store, because each pass sends it unchanged.
    pub(crate) store_bytes: usize,
    /// Whether other packet sockets on this host see the frames that a packet socket sends.
    pub(crate) is_visible: bool,
    /// Streams that a port in the kernel should make by itself.
    pub(crate) resident: Option<ResidentOptions>,
    /// Whether these are all, and no CPU is needed for the process beside.
    pub(crate) needs_no_process: bool,
}

/// Usage of a port that sends and receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Usage {
    /// All received frames are forwarded. `auto` uses AF_XDP if the interface has a single queue.
    /// Frames then never reach the kernel's network stack.
    Bridge,
    /// Clients and servers. As `Bridge`, but ARP, neighbour discovery and pings also reach the
    /// kernel and packet sockets. On a veth, `auto` prefers long frames to AF_XDP.
    Endpoint {
        /// Whether the traffic benefits from frames longer than the MTU (segmentation offload).
        has_long_frames: bool,
        /// Part of long frames to fetch.
        fetched: FetchExtent,
        /// Whether other packet sockets on this host see the frames that a packet socket sends.
        is_visible: bool,
        /// Whether frames come from other hosts, not from ports of the same run. Ports of the run
        /// count the frames that do not arrive.
        receives_external: bool,
    },
}

impl Usage {
    /// Returns the part of long frames to fetch, if there are any and the interface segments them.
    pub(crate) fn long_frames(&self, link: &Link) -> Option<FetchExtent> {
        match *self {
            Self::Endpoint { has_long_frames: true, fetched, .. } => {
                (link.segmentation_offload == Some(true)).then_some(fetched)
            }
            Self::Bridge | Self::Endpoint { .. } => None,
        }
    }
}
