//! The interfaces of runs, and the ports on them.

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

/// What carries an interface's frames, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The backend.
    pub(crate) backend: &'static Descriptor,
    /// Why that one.
    pub(crate) why: String,
}

/// How a port is opened.
#[derive(Clone, Debug)]
pub(crate) struct PortOptions {
    /// What becomes of late frames.
    pub(crate) policy: DeparturePolicy,
    /// Whether frames have due times.
    pub(crate) paced: bool,
    /// The CPU for the port's own thread, where it has one.
    pub(crate) cpu: Option<usize>,
    /// The queue, where the port is for one.
    pub(crate) queue: u32,
    /// Bytes of the captures that will be sent again and again as they are.
    pub(crate) store_bytes: usize,
    /// Whether other packet sockets on this host see what a packet socket sends.
    pub(crate) is_visible: bool,
}

/// Both halves of a port, and what carries its frames.
pub(crate) struct BothWays {
    pub(crate) transmit: TransmitPort,
    pub(crate) receive: ReceivePort,
    pub(crate) choice: Choice,
}

/// What a port is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Usage {
    /// All that arrives goes on elsewhere: with `auto` by AF_XDP where one queue has all of it, which
    /// then never reaches the kernel's own network stack.
    Bridge,
    /// Clients and servers: the same, but ARP, neighbour discovery and pings go past it to the kernel
    /// and to packet sockets. With `auto`, a virtual cable's long frames are worth more than AF_XDP.
    Endpoint {
        /// Whether there is much that many segments are said with at once.
        has_long_frames: bool,
        /// What they want of long frames.
        fetched: Fetched,
        /// Whether packet sockets on this host see what they send by a packet socket.
        is_visible: bool,
        /// Whether who sends to the interface is none of the run's own ports, which count themselves
        /// what does not get there.
        hears_others: bool,
    },
}

impl Usage {
    /// What is wanted of long frames, where there are any and the interface cuts them.
    pub(crate) fn long_frames(&self, link: &Link) -> Option<Fetched> {
        match *self {
            Self::Endpoint { has_long_frames: true, fetched, .. } => {
                (link.segmentation_offload == Some(true)).then_some(fetched)
            }
            Self::Bridge | Self::Endpoint { .. } => None,
        }
    }
}

/// Whether a backend can send on an interface, by opening a port and dropping it unused.
///
/// # Errors
/// What the system said.
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

/// The point where departures are stamped, as results name it.
pub(crate) const fn stamp_name(stamp: StampPoint) -> &'static str {
    match stamp {
        StampPoint::Process => "process",
        StampPoint::Kernel => "kernel",
        StampPoint::Xdp => "xdp",
        StampPoint::Hardware => "hardware",
        StampPoint::Virtual => "virtual",
    }
}
