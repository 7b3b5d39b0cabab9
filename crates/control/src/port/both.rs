//! Ports that send and receive, for those who answer what they hear.

use wirestorm_io::af_packet::{
    AfPacketOptions, AfPacketTransmit, Fetched, OffloadReceive, OffloadTransmit,
};
use wirestorm_io::af_xdp::{AfXdp, AfXdpOptions, Direction};
use wirestorm_io::link::{Link, LinkKind};
use wirestorm_io::namespace::InterfaceName;
use wirestorm_plan::backend::Backend;

use super::{Choice, ReceivePort, TransmitPort};

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

impl BothWays {
    /// The port of an interface: the one asked for, or with `auto` what `usage` says. Packet sockets
    /// carry long frames where there are any, and the interface cuts them.
    ///
    /// # Errors
    /// What was tried, and what the system said.
    pub(crate) fn open(
        backend: Backend,
        interface: &InterfaceName,
        link: &Link,
        usage: Usage,
    ) -> Result<Self, String> {
        let (long, is_visible) = match usage {
            Usage::Bridge => (None, false),
            Usage::Endpoint { has_long_frames, fetched, is_visible, .. } => {
                let is_cut = has_long_frames && link.segmentation_offload == Some(true);
                (is_cut.then_some(fetched), is_visible)
            }
        };
        let af_packet = |why: String| match long {
            Some(fetched) => Self::af_packet_long(interface, fetched, why),
            None => Self::af_packet(interface, is_visible, why),
        };
        let af_xdp = |why: &str| Self::af_xdp(interface, usage, why.into());
        match backend {
            Backend::AfPacket => af_packet("asked for".into()),
            Backend::AfXdp => af_xdp("asked for"),
            Backend::Auto if long.is_some() && link.kind == LinkKind::Veth => {
                af_packet(format!("long frames, until: ethtool -K {} tso off", interface.name()))
            }
            Backend::Auto if link.queues.receive > 1 => {
                let queues = link.queues.receive;
                let reason = format!("not af_xdp: {queues} queues, and a socket hears one of them");
                af_packet(reason)
            }
            Backend::Auto => {
                af_xdp("frames are taken in the driver, past the kernel's network stack")
                    .or_else(|error| af_packet(format!("not af_xdp: {error}")))
            }
            Backend::Xdp | Backend::Memory => {
                Err("this backend only sends; expected auto, af_packet or af_xdp".into())
            }
        }
    }

    fn af_packet_long(
        interface: &InterfaceName,
        fetched: Fetched,
        why: String,
    ) -> Result<Self, String> {
        let mut options = AfPacketOptions::new(interface.clone());
        // What the interface cannot cut, the kernel does on the usual way.
        options.queueing_bypass = false;
        let socket = || OffloadReceive::open(&options, fetched).map_err(|error| error.to_string());
        let (receive, why) = match fetched {
            Fetched::Whole => (socket()?, why),
            Fetched::Beginning => match OffloadReceive::open_ring(&options) {
                Ok(ring) => (ring, format!("{why}; received by a program at the ingress")),
                Err(error) => (socket()?, format!("{why}; received by a socket: {error}")),
            },
        };
        let transmit = OffloadTransmit::open(&options).map_err(|error| error.to_string())?;
        Ok(Self {
            transmit: TransmitPort::Offload(Box::new(transmit)),
            receive: ReceivePort::Offload(receive),
            choice: Choice { backend: "af_packet", why },
        })
    }

    fn af_packet(interface: &InterfaceName, is_visible: bool, why: String) -> Result<Self, String> {
        let mut options = AfPacketOptions::new(interface.clone());
        options.queueing_bypass = !is_visible;
        // Windows of many connections at once are more than a stream's frames in hand.
        options.frames = 1_024;
        // A ring tells of frames a millisecond late, for which those who wait for answers wait, too.
        let receive = OffloadReceive::open(&options, Fetched::Whole);
        let receive = receive.map_err(|error| error.to_string())?;
        let transmit = AfPacketTransmit::open(&options).map_err(|error| error.to_string())?;
        Ok(Self {
            transmit: TransmitPort::AfPacket(Box::new(transmit)),
            receive: ReceivePort::Offload(receive),
            choice: Choice { backend: "af_packet", why },
        })
    }

    fn af_xdp(interface: &InterfaceName, usage: Usage, why: String) -> Result<Self, String> {
        let mut options = AfXdpOptions::new(interface.clone(), Direction::Both);
        options.transmit_frames = 2_048;
        options.passes_neighbours = usage != Usage::Bridge;
        options.counts_lost = matches!(usage, Usage::Endpoint { hears_others: true, .. });
        let mut ports = AfXdp::open(&options).map_err(|error| error.to_string())?;
        let (Some(transmit), Some(receive)) = (ports.transmit.pop(), ports.receive.pop()) else {
            return Err("no queue to send and receive on".into());
        };
        Ok(Self {
            transmit: TransmitPort::AfXdp(Box::new(transmit)),
            receive: ReceivePort::AfXdp(receive),
            choice: Choice { backend: "af_xdp", why },
        })
    }
}
