//! One type for all receiving ports.

use wirestorm_base::port::{Capabilities, PortError, Receive, ReceiveCounters, Received};
use wirestorm_base::time::Duration;
use wirestorm_io::af_packet::{AfPacketReceive, OffloadReceive};
use wirestorm_io::af_xdp::AfXdpReceive;

/// A receiving port of any backend.
pub(crate) enum ReceivePort {
    /// A packet socket.
    AfPacket(AfPacketReceive),
    /// A packet socket that receives long frames.
    Offload(OffloadReceive),
    /// The AF_XDP socket of one queue.
    AfXdp(AfXdpReceive),
}

impl ReceivePort {
    /// Waits until a frame arrives at one of the ports of an interface, for at most `patience`.
    pub(crate) fn wait(ports: &mut [Self], patience: Duration) {
        let mut queues = Vec::new();
        for port in ports {
            match port {
                // A packet socket is the only port of its interface.
                Self::AfPacket(port) => return port.wait(patience),
                Self::Offload(port) => return port.wait(patience),
                Self::AfXdp(port) => queues.push(port),
            }
        }
        AfXdpReceive::wait(&mut queues, patience);
    }
}

impl ReceivePort {
    /// Returns the CPU time that receiving took outside the calling thread, if it is known.
    pub(crate) fn ingress_time(&self) -> Option<Duration> {
        match self {
            Self::Offload(port) => port.ingress_time(),
            Self::AfPacket(_) | Self::AfXdp(_) => None,
        }
    }
}

impl Receive for ReceivePort {
    fn capabilities(&self) -> &Capabilities {
        match self {
            Self::AfPacket(port) => port.capabilities(),
            Self::Offload(port) => port.capabilities(),
            Self::AfXdp(port) => port.capabilities(),
        }
    }

    #[inline]
    fn receive(&mut self, room: usize, batch: &mut Vec<Received>) -> Result<usize, PortError> {
        match self {
            Self::AfPacket(port) => port.receive(room, batch),
            Self::Offload(port) => port.receive(room, batch),
            Self::AfXdp(port) => port.receive(room, batch),
        }
    }

    #[inline]
    fn frame(&self, received: &Received) -> &[u8] {
        match self {
            Self::AfPacket(port) => port.frame(received),
            Self::Offload(port) => port.frame(received),
            Self::AfXdp(port) => port.frame(received),
        }
    }

    #[inline]
    fn release(&mut self, received: Received) {
        match self {
            Self::AfPacket(port) => port.release(received),
            Self::Offload(port) => port.release(received),
            Self::AfXdp(port) => port.release(received),
        }
    }

    fn received(&self) -> ReceiveCounters {
        match self {
            Self::AfPacket(port) => port.received(),
            Self::Offload(port) => port.received(),
            Self::AfXdp(port) => port.received(),
        }
    }
}
