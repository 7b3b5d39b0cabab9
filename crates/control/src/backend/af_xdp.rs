//! AF_XDP sockets: frames in memory shared with the driver.

use wirestorm_io::af_xdp::{AfXdp, AfXdpOptions, Direction};
use wirestorm_io::link::{Link, LinkKind};
use wirestorm_io::namespace::InterfaceName;
use wirestorm_io::privilege;

use super::{Descriptor, ETHERNET, LatencyProbe, TransmitPort};
use crate::backend::{Choice, DuplexPort};
use crate::inventory::Grade;
use crate::port::{PortOptions, ReceivePort, Usage};

/// The AF_XDP backend.
pub static AF_XDP: Descriptor = Descriptor {
    name: "af_xdp",
    summary: "AF_XDP sockets",
    knows_partial_checksums: false,
    privileges: privilege::AF_XDP,
    link_layers: ETHERNET,
    rank: 0,
    probe: |link, _| match link.xdp_features {
        Some(features) if features.zero_copy() => {
            LatencyProbe::Good("the driver sends from shared memory (zero-copy)")
        }
        _ => LatencyProbe::NotConsidered,
    },
    probe_duplex: Some(probe_both_ways),
    finding: |link, _| match link.xdp_features {
        Some(features) if features.zero_copy() => (Grade::Good, "can send (zero-copy)"),
        _ => (Grade::Remark, "can send (copy mode): the driver reports no zero-copy"),
    },
    open,
    open_both_ways,
    ..Descriptor::TRANSMIT_ONLY
};

fn probe_both_ways(link: &Link, usage: &Usage) -> LatencyProbe {
    if usage.long_frames(link).is_some() && link.kind == LinkKind::Veth {
        return LatencyProbe::Bad(format!("long frames, until: ethtool -K {} tso off", link.name));
    }
    match link.queues.receive {
        0 | 1 => LatencyProbe::Good("received in the driver, before the kernel's network stack"),
        queues => {
            LatencyProbe::Bad(format!("{queues} queues, but a socket receives from one only"))
        }
    }
}

fn open(
    interface: &InterfaceName,
    _link: &Link,
    options: &PortOptions,
) -> Result<TransmitPort, String> {
    let mut af_xdp = AfXdpOptions::new(interface.clone(), Direction::Transmit);
    af_xdp.first_queue = options.queue;
    let mut ports = AfXdp::open(&af_xdp).map_err(|error| error.to_string())?;
    let port = ports.transmit.pop().ok_or("no queue to send on")?;
    Ok(port.into())
}

fn open_both_ways(
    interface: &InterfaceName,
    _link: &Link,
    usage: &Usage,
    why: String,
) -> Result<DuplexPort, String> {
    let mut options = AfXdpOptions::new(interface.clone(), Direction::Both);
    options.transmit_frames = 2_048;
    options.passes_neighbours = *usage != Usage::Bridge;
    options.counts_veth_drops = matches!(usage, Usage::Endpoint { receives_external: true, .. });
    let mut ports = AfXdp::open(&options).map_err(|error| error.to_string())?;
    let (Some(transmit), Some(receive)) = (ports.transmit.pop(), ports.receive.pop()) else {
        return Err("no queue to send and receive on".into());
    };
    Ok(DuplexPort {
        transmit: transmit.into(),
        receive: ReceivePort::AfXdp(receive),
        choice: Choice { backend: &AF_XDP, why },
    })
}
