//! The receiving ports a run can have, as one type.

use wirestorm_base::port::{Capabilities, PortError, Receive, ReceiveCounters, Received};
use wirestorm_base::time::Duration;
use wirestorm_io::af_packet::{AfPacketReceive, OffloadReceive};
use wirestorm_io::af_xdp::AfXdpReceive;

/// A port that receives, whatever carries it.
pub(crate) enum ReceivePort {
    /// A packet socket.
    AfPacket(AfPacketReceive),
    /// A packet socket that takes long frames.
    Offload(OffloadReceive),
    /// A queue's AF_XDP socket.
    AfXdp(AfXdpReceive),
}

impl ReceivePort {
    /// Waits until a frame has arrived at one of the ports of an interface, for so long at most.
    pub(crate) fn wait(ports: &mut [Self], patience: Duration) {
        let mut queues = Vec::new();
        for port in ports {
            match port {
                // It is the only one.
                Self::AfPacket(port) => return port.wait(patience),
                Self::Offload(port) => return port.wait(patience),
                Self::AfXdp(port) => queues.push(port),
            }
        }
        AfXdpReceive::wait(&mut queues, patience);
    }
}

impl ReceivePort {
    /// CPU time that receiving took elsewhere than in the calling thread, where that is known.
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
