//! Packet sockets: the backend that works on each interface and kernel.

use wirestorm_io::af_packet::{
    AfPacketOptions, AfPacketTransmit, FetchExtent, OffloadReceive, OffloadTransmit,
};
use wirestorm_io::link::Link;
use wirestorm_io::namespace::InterfaceName;
use wirestorm_io::privilege;

use super::{Descriptor, LatencyProbe, TransmitPort};
use crate::backend::{Choice, DuplexPort};
use crate::port::{PortOptions, ReceivePort, Usage};

/// The packet socket backend.
pub static AF_PACKET: Descriptor = Descriptor {
    name: "af_packet",
    summary: "AF_PACKET sockets: every interface, every kernel",
    is_shared: true,
    feeds_kernel: true,
    privileges: privilege::AF_PACKET,
    rank: 2,
    probe: |_, _| LatencyProbe::Fallback,
    probe_duplex: Some(|_, _| LatencyProbe::Fallback),
    open,
    open_both_ways,
    ..Descriptor::TRANSMIT_ONLY
};

fn open(
    interface: &InterfaceName,
    _link: &Link,
    options: &PortOptions,
) -> Result<TransmitPort, String> {
    let mut af_packet = AfPacketOptions::new(interface.clone());
    af_packet.queueing_bypass = !options.is_visible;
    let port = AfPacketTransmit::open(&af_packet).map_err(|error| error.to_string())?;
    Ok(port.into())
}

fn open_both_ways(
    interface: &InterfaceName,
    link: &Link,
    usage: &Usage,
    why: String,
) -> Result<DuplexPort, String> {
    match (usage.long_frames(link), *usage) {
        (Some(fetched), _) => open_long(interface, fetched, why),
        (None, Usage::Bridge) => open_short(interface, false, why),
        (None, Usage::Endpoint { is_visible, .. }) => open_short(interface, is_visible, why),
    }
}

/// Opens a port for long frames, which the interface segments.
fn open_long(
    interface: &InterfaceName,
    fetched: FetchExtent,
    why: String,
) -> Result<DuplexPort, String> {
    let mut options = AfPacketOptions::new(interface.clone());
    // If the interface cannot segment a frame, the kernel does, but only on the normal transmit
    // path.
    options.queueing_bypass = false;
    let socket = || OffloadReceive::open(&options, fetched).map_err(|error| error.to_string());
    let (receive, why) = match fetched {
        FetchExtent::Whole => (socket()?, why),
        FetchExtent::HeadersOnly => match OffloadReceive::open_ring(&options) {
            Ok(ring) => (ring, format!("{why}; received by a program at the ingress")),
            Err(error) => (socket()?, format!("{why}; received by a socket: {error}")),
        },
    };
    let transmit = OffloadTransmit::open(&options).map_err(|error| error.to_string())?;
    Ok(DuplexPort {
        transmit: transmit.into(),
        receive: ReceivePort::Offload(receive),
        choice: Choice { backend: &AF_PACKET, why },
    })
}

fn open_short(
    interface: &InterfaceName,
    is_visible: bool,
    why: String,
) -> Result<DuplexPort, String> {
    let mut options = AfPacketOptions::new(interface.clone());
    options.queueing_bypass = !is_visible;
    // The windows of many connections need more frames in flight than a stream.
    options.frames = 1_024;
    // A ring reports frames 1 ms late, which would delay each answer.
    let receive = OffloadReceive::open(&options, FetchExtent::Whole);
    let receive = receive.map_err(|error| error.to_string())?;
    let transmit = AfPacketTransmit::open(&options).map_err(|error| error.to_string())?;
    Ok(DuplexPort {
        transmit: transmit.into(),
        receive: ReceivePort::Offload(receive),
        choice: Choice { backend: &AF_PACKET, why },
    })
}
