//! The list of backends, and one type for all their sending ports.

use std::ops::Range;

use wirestorm_base::departure::DepartureRecord;
use wirestorm_base::port::{
    Capabilities, FrameId, PortError, Resident, Segmentation, StoredBytes, Transmit,
    TransmitCounters,
};
use wirestorm_base::time::Instant;
use wirestorm_io::af_packet::{AfPacketTransmit, OffloadTransmit};
use wirestorm_io::af_xdp::AfXdpTransmit;
use wirestorm_io::pcap::PcapTransmit;
use wirestorm_io::xdp::XdpTransmit;
use wirestorm_sim::memory::MemorySink;

use super::Descriptor;
use super::null::NullTransmit;

/// An operation on a port, compiled for each port type.
pub(crate) trait PortVisitor {
    /// Result of the operation.
    type Output;

    /// Executes the operation on `port`.
    fn visit<P: Transmit>(self, port: &mut P) -> Self::Output;
}

/// Generates the list of descriptors and an enum of the sending port types. The enum calls each
/// port without virtual dispatch, so it adds no cost for each frame.
macro_rules! backends {
    (
        backends: {$($(#[$about:meta])* $variant:ident($port:ty) = $descriptor:path;)*}
        other ports: {$($(#[$more_about:meta])* $more:ident($more_port:ty);)*}
    ) => {
        /// All backends, in display order.
        pub static BACKENDS: &[&Descriptor] = &[$(&$descriptor),*];

        /// A sending port of any backend.
        pub(crate) enum TransmitPort {
            $($(#[$about])* $variant(Box<$port>),)*
            $($(#[$more_about])* $more(Box<$more_port>),)*
        }

        backends!(from $($variant($port))* $($more($more_port))*);

        impl TransmitPort {
            /// Runs `visitor` on the concrete port type.
            #[inline]
            pub(crate) fn visit<V: PortVisitor>(&mut self, visitor: V) -> V::Output {
                match self {
                    $(Self::$variant(port) => visitor.visit(&mut **port),)*
                    $(Self::$more(port) => visitor.visit(&mut **port),)*
                }
            }
        }

        /// Forwards a method call to the concrete port.
        macro_rules! forward {
            ($self:expr, $name:ident => $call:expr) => {
                match $self {
                    $(TransmitPort::$variant($name) => $call,)*
                    $(TransmitPort::$more($name) => $call,)*
                }
            };
        }
    };
    (from $($variant:ident($port:ty))*) => {
        $(impl From<$port> for TransmitPort {
            fn from(port: $port) -> Self {
                Self::$variant(Box::new(port))
            }
        })*
    };
}

backends! {
    backends: {
        /// Packet sockets.
        AfPacket(AfPacketTransmit) = super::af_packet::AF_PACKET;
        /// AF_XDP sockets.
        AfXdp(AfXdpTransmit) = super::af_xdp::AF_XDP;
        /// In-kernel XDP sender.
        Xdp(XdpTransmit) = super::xdp::XDP;
        /// Memory: frames are discarded in virtual time.
        Memory(MemorySink) = super::memory::MEMORY;
        /// Null: frames are discarded in real time.
        Null(NullTransmit) = super::null::NULL;
    }
    other ports: {
        /// A packet socket that sends long frames.
        Offload(OffloadTransmit);
        /// A capture file.
        Pcap(PcapTransmit);
    }
}

impl Transmit for TransmitPort {
    #[inline]
    fn capabilities(&self) -> &Capabilities {
        forward!(self, port => port.capabilities())
    }

    #[inline]
    fn take(&mut self) -> Option<FrameId> {
        forward!(self, port => port.take())
    }

    #[inline]
    fn frame_mut(&mut self, frame: &FrameId) -> &mut [u8] {
        forward!(self, port => port.frame_mut(frame))
    }

    #[inline]
    fn send(&mut self, frame: FrameId, length: usize, departure: Instant) {
        forward!(self, port => port.send(frame, length, departure));
    }

    #[inline]
    fn send_stamped(&mut self, frame: FrameId, length: usize, departure: Instant) {
        forward!(self, port => port.send_stamped(frame, length, departure));
    }

    fn store(&mut self, bytes: &[u8]) -> Option<StoredBytes> {
        forward!(self, port => port.store(bytes))
    }

    #[inline]
    fn send_stored(
        &mut self,
        frame: FrameId,
        stored: StoredBytes,
        range: Range<usize>,
        departure: Instant,
    ) {
        forward!(self, port => port.send_stored(frame, stored, range, departure));
    }

    fn resident(&mut self) -> Option<&mut dyn Resident> {
        forward!(self, port => port.resident())
    }

    #[inline]
    fn segmented_length_max(&self) -> Option<usize> {
        forward!(self, port => port.segmented_length_max())
    }

    #[inline]
    fn send_segments(
        &mut self,
        frame: FrameId,
        length: usize,
        segments: &Segmentation,
        departure: Instant,
    ) {
        forward!(self, port => port.send_segments(frame, length, segments, departure));
    }

    #[inline]
    fn release(&mut self, frame: FrameId) {
        forward!(self, port => port.release(frame));
    }

    fn flush(&mut self) -> Result<(), PortError> {
        forward!(self, port => port.flush())
    }

    fn in_flight(&self) -> usize {
        forward!(self, port => port.in_flight())
    }

    fn transmitted(&self) -> TransmitCounters {
        forward!(self, port => port.transmitted())
    }

    fn departures(&self) -> Option<DepartureRecord> {
        forward!(self, port => port.departures())
    }

    fn abort(&mut self) {
        forward!(self, port => port.abort());
    }
}
