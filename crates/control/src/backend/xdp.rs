//! The in-kernel sender: a BPF program that redirects frames to the driver.

use wirestorm_io::clock;
use wirestorm_io::link::{self, Link, LinkKind};
use wirestorm_io::namespace::{InterfaceName, Namespace};
use wirestorm_io::privilege;
use wirestorm_io::xdp::{self, XdpTransmit, XdpTransmitOptions};

use super::{Conditions, Descriptor, ETHERNET, LatencyProbe, TransmitPort, XDP_KERNEL};
use crate::inventory::{Grade, OpenTest};
use crate::port::PortOptions;

/// The in-kernel XDP sender backend.
pub static XDP: Descriptor = Descriptor {
    name: "xdp",
    summary: "the in-kernel sender",
    needs_dedicated_cpu: true,
    feeds_kernel: true,
    privileges: privilege::XDP,
    link_layers: ETHERNET,
    rank: 1,
    probe: |link, conditions| match obstacle(link, conditions) {
        None => LatencyProbe::Good("the driver takes frames from the in-kernel sender"),
        Some(obstacle) => LatencyProbe::Bad(obstacle),
    },
    refusal,
    repair,
    finding: |link, trial| match (link.xdp_features, trial) {
        (None, OpenTest::None) => {
            (Grade::Remark, "may be able to send: before Linux 6.3 only --open can tell")
        }
        _ => (Grade::Good, "can send, with pacing in the kernel"),
    },
    open,
    ..Descriptor::TRANSMIT_ONLY
};

fn open(
    interface: &InterfaceName,
    link: &Link,
    options: &PortOptions,
) -> Result<TransmitPort, String> {
    let options = XdpTransmitOptions {
        interface: interface.name().to_owned(),
        frame_length_max: link.frame_length_max(),
        untagged_length_max: link.untagged_length_max(),
        cpu: options.cpu,
        policy: options.policy,
        paced: options.paced,
        store_bytes: options.store_bytes,
        resident: options.resident.clone(),
    };
    match interface.namespace.enter(|| XdpTransmit::open(&options)) {
        Ok(Ok(port)) => Ok(port.into()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns why the in-kernel sender cannot work on an interface.
pub(super) fn obstacle(link: &Link, conditions: &Conditions) -> Option<String> {
    if let Some(kernel) = conditions.kernel.filter(|kernel| *kernel < XDP_KERNEL) {
        return Some(format!(
            "the in-kernel sender needs Linux {XDP_KERNEL} or newer; this kernel is {kernel}"
        ));
    }
    if clock::is_virtual() {
        return Some("the in-kernel sender cannot use the virtual clock of this process".into());
    }
    if !conditions.has_dedicated_cpu {
        return Some("the in-kernel sender needs a dedicated CPU, and none is free".into());
    }
    if link.frame_length_max() > xdp::FRAME_LENGTH_MAX {
        return Some(format!(
            "the in-kernel sender supports frames of at most {} bytes; the MTU is {}",
            xdp::FRAME_LENGTH_MAX,
            link.mtu
        ));
    }
    redirect_obstacle(link)
}

/// Returns why the interface drops redirected frames.
fn redirect_obstacle(link: &Link) -> Option<String> {
    takes_no_redirected_frames(link).then(|| match link.peer.filter(|_| peer_can_help(link)) {
        Some(peer) => {
            format!("the peer (interface index {}) has neither an XDP program nor GRO", peer.index)
        }
        None => "the driver does not accept redirected frames".into(),
    })
}

/// Returns why the interface drops redirected frames, with the command that changes it, if there is
/// one.
fn refusal(interface: &InterfaceName, link: &Link) -> Option<String> {
    let obstacle = redirect_obstacle(link)?;
    Some(match repair(interface, link) {
        Some(command) => format!("{obstacle}; fix it with: {command}"),
        None => obstacle,
    })
}

/// Returns the command that enables the in-kernel sender on an interface.
fn repair(interface: &InterfaceName, link: &Link) -> Option<String> {
    if takes_no_redirected_frames(link) && !peer_can_help(link) {
        return None;
    }
    let frame_length_max = link.frame_length_max();
    if frame_length_max > xdp::FRAME_LENGTH_MAX {
        let mtu = (link.mtu as usize + xdp::FRAME_LENGTH_MAX) - frame_length_max;
        let command = format!("ip link set {} mtu {mtu}", link.name);
        return Some(interface.namespace.command(&command));
    }
    if !takes_no_redirected_frames(link) {
        return None;
    }
    let (namespace, peer) = link::find_peer(&interface.namespace, link, &Namespace::all())?;
    let mut command = namespace.command(&format!("ethtool -K {} gro on", peer.name));
    if peer.receive_offload == Some(true) {
        // The kernel applies a GRO change only while the peer is up, so switch it off and on again.
        let off = namespace.command(&format!("ethtool -K {} gro off", peer.name));
        command = format!("{off} && {command}");
    }
    Some(command)
}

/// Returns whether the interface drops redirected frames.
fn takes_no_redirected_frames(link: &Link) -> bool {
    link.xdp_features.is_some_and(|features| !features.transmit())
}

/// Returns whether a setting of the veth peer enables redirected frames.
fn peer_can_help(link: &Link) -> bool {
    link.kind == LinkKind::Veth && link.peer.is_some()
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::KernelVersion;
    use super::*;
    use wirestorm_io::link::{LinkCounters, Peer, Queues, XdpFeatures};

    pub(in crate::backend) const TRANSMIT: u64 = 4;
    pub(in crate::backend) const ZERO_COPY: u64 = 8;
    pub(in crate::backend) const GOOD: Conditions =
        Conditions { has_dedicated_cpu: true, kernel: Some(KernelVersion { major: 6, minor: 1 }) };

    pub(in crate::backend) fn link(kind: LinkKind, mtu: u32, features: Option<u64>) -> Link {
        Link {
            index: 2,
            name: "test0".into(),
            link_layer: 1,
            mac: None,
            mtu,
            up: true,
            running: true,
            promiscuous: false,
            kind,
            driver: None,
            queues: Queues { receive: 1, transmit: 1, receive_max: 1, transmit_max: 1 },
            rings: None,
            receive_offload: None,
            segmentation_offload: None,
            speed: None,
            xdp_features: features.map(|bits| XdpFeatures { bits }),
            xdp_program: None,
            peer: Some(Peer { index: 3, namespace_id: None }),
            default_route: false,
            counters: LinkCounters::default(),
        }
    }

    #[test]
    fn in_kernel_sender_checks_kernel_cpu_and_frame_length() {
        let able = link(LinkKind::Physical, 1500, Some(TRANSMIT));
        let old = Conditions { kernel: KernelVersion::parse("5.17.9-x"), ..GOOD };
        assert!(obstacle(&able, &old).is_some_and(|text| text.contains("this kernel is 5.17")));
        let alone = Conditions { has_dedicated_cpu: false, ..GOOD };
        assert!(obstacle(&able, &alone).is_some_and(|text| text.contains("CPU")));
        let jumbo = link(LinkKind::Physical, 9000, Some(TRANSMIT));
        assert!(obstacle(&jumbo, &GOOD).is_some_and(|text| text.contains("9000")));
        assert_eq!(obstacle(&able, &GOOD), None);
    }

    #[test]
    fn veth_redirect_depends_on_the_peer() {
        let veth = link(LinkKind::Veth, 1500, Some(0));
        assert!(obstacle(&veth, &GOOD).is_some_and(|text| text.contains("GRO")));
        let other = link(LinkKind::Physical, 1500, Some(0));
        assert!(obstacle(&other, &GOOD).is_some_and(|text| text.contains("driver")));
    }
}
