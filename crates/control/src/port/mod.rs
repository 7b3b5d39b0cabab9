//! Interfaces of runs, and ports on them.

mod error;
mod interfaces;
mod lasting;
mod receive;

use wirestorm_base::departure::DeparturePolicy;
use wirestorm_base::port::StampPoint;
use wirestorm_io::af_packet::Fetched;
use wirestorm_io::link::Link;
use wirestorm_io::namespace::InterfaceName;

use crate::backend::{Backend, Descriptor, TransmitPort, open};

pub use error::OpenError;
pub(crate) use interfaces::{Interfaces, Watch, are_one_pair};
pub(crate) use lasting::Lasting;
pub(crate) use receive::ReceivePort;

/// The backend of an interface, and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The backend.
    pub(crate) backend: &'static Descriptor,
    /// Reason for the choice.
    pub(crate) why: String,
}

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
}

/// Both halves of a port, and its backend.
pub(crate) struct BothWays {
    pub(crate) transmit: TransmitPort,
    pub(crate) receive: ReceivePort,
    pub(crate) choice: Choice,
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
        fetched: Fetched,
        /// Whether other packet sockets on this host see the frames that a packet socket sends.
        is_visible: bool,
        /// Whether frames come from other hosts, not from ports of the same run. Ports of the run
        /// count the frames that do not arrive.
        hears_others: bool,
    },
}

impl Usage {
    /// Returns the part of long frames to fetch, if there are any and the interface segments them.
    pub(crate) fn long_frames(&self, link: &Link) -> Option<Fetched> {
        match *self {
            Self::Endpoint { has_long_frames: true, fetched, .. } => {
                (link.segmentation_offload == Some(true)).then_some(fetched)
            }
            Self::Bridge | Self::Endpoint { .. } => None,
        }
    }
}

/// Tests whether a backend can send on an interface: opens a port and closes it unused.
///
/// # Errors
/// Returns the system error.
pub(crate) fn try_open(
    backend: &'static Descriptor,
    interface: &InterfaceName,
    link: &Link,
) -> Result<(), String> {
    let options = PortOptions {
        policy: DeparturePolicy::default(),
        paced: false,
        cpu: crate::host::allowed().last().copied(),
        queue: 0,
        store_bytes: 0,
        is_visible: false,
    };
    open(Backend::One(backend), interface, link, &options).map(|_| ())
}

/// Returns the name of a timestamp point in results.
pub(crate) const fn stamp_name(stamp: StampPoint) -> &'static str {
    match stamp {
        StampPoint::Process => "process",
        StampPoint::Kernel => "kernel",
        StampPoint::Xdp => "xdp",
        StampPoint::Hardware => "hardware",
        StampPoint::Virtual => "virtual",
    }
}
