//! Ports that send and receive, for those who answer what they hear.

use wirestorm_io::af_packet::{AfPacketOptions, AfPacketReceive, AfPacketTransmit};
use wirestorm_io::af_xdp::{AfXdp, AfXdpOptions, Direction};
use wirestorm_io::link::Link;
use wirestorm_io::namespace::InterfaceName;
use wirestorm_plan::backend::Backend;

use super::{Choice, ReceivePort, TransmitPort};

/// Both halves of a port, and what carries its frames.
pub(crate) struct BothWays {
    pub(crate) transmit: TransmitPort,
    pub(crate) receive: ReceivePort,
    pub(crate) choice: Choice,
}

impl BothWays {
    /// The port of an interface: the one asked for, or with `auto` AF_XDP where one queue has all
    /// that arrives, which then never reaches the kernel's own network stack. `passes_neighbours`:
    /// ARP, neighbour discovery and pings go past it to the kernel and to packet sockets.
    ///
    /// # Errors
    /// What was tried, and what the system said.
    pub(crate) fn open(
        backend: Backend,
        interface: &InterfaceName,
        link: &Link,
        passes_neighbours: bool,
    ) -> Result<Self, String> {
        let af_xdp = |why: &str| Self::af_xdp(interface, passes_neighbours, why.into());
        match backend {
            Backend::AfPacket => Self::af_packet(interface, "asked for".into()),
            Backend::AfXdp => af_xdp("asked for"),
            Backend::Auto if link.queues.receive > 1 => {
                let queues = link.queues.receive;
                let reason = format!("not af_xdp: {queues} queues, and a socket hears one of them");
                Self::af_packet(interface, reason)
            }
            Backend::Auto => {
                af_xdp("frames are taken in the driver, past the kernel's network stack")
                    .or_else(|error| Self::af_packet(interface, format!("not af_xdp: {error}")))
            }
            Backend::Xdp | Backend::Memory => {
                Err("this backend only sends; expected auto, af_packet or af_xdp".into())
            }
        }
    }

    fn af_packet(interface: &InterfaceName, why: String) -> Result<Self, String> {
        let mut options = AfPacketOptions::new(interface.clone());
        // Windows of many connections at once are more than a stream's frames in hand.
        options.frames = 1_024;
        let receive = AfPacketReceive::open(&options).map_err(|error| error.to_string())?;
        let transmit = AfPacketTransmit::open(&options).map_err(|error| error.to_string())?;
        Ok(Self {
            transmit: TransmitPort::AfPacket(Box::new(transmit)),
            receive: ReceivePort::AfPacket(receive),
            choice: Choice { backend: "af_packet", why },
        })
    }

    fn af_xdp(
        interface: &InterfaceName,
        passes_neighbours: bool,
        why: String,
    ) -> Result<Self, String> {
        let mut options = AfXdpOptions::new(interface.clone(), Direction::Both);
        options.transmit_frames = 2_048;
        options.passes_neighbours = passes_neighbours;
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
