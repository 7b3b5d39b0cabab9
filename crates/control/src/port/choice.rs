//! Which backend an interface gets, and what stands in another's way.
//!
//! One decision for two readers: a replay opens the candidates of `candidates` in their order
//! and takes the first that opens; `ports` and `doctor` tell what that will be.

use std::fs;

use serde::Serialize;
use wirestorm_io::link::{self, Link, LinkKind};
use wirestorm_io::namespace::{InterfaceName, Namespace};
use wirestorm_io::xdp;
use wirestorm_plan::backend::Backend;

use crate::host;

/// The first kernel with `BPF_F_TEST_XDP_LIVE_FRAMES`, which the in-kernel sender is made of.
pub const XDP_KERNEL: KernelVersion = KernelVersion { major: 5, minor: 18 };

/// Where `ip netns add` keeps the namespaces it made.
const NAMED_NAMESPACES: &str = "/var/run/netns";
/// More named namespaces than this are not gone through.
const NAMESPACES_MAX: usize = 4096;

/// The first two numbers of a kernel's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct KernelVersion {
    /// The first.
    pub major: u32,
    /// The second.
    pub minor: u32,
}

impl KernelVersion {
    /// Reads `6.18.44-amd64` and the like.
    pub fn parse(release: &str) -> Option<Self> {
        let mut numbers = release.split(|byte: char| !byte.is_ascii_digit());
        Some(Self { major: numbers.next()?.parse().ok()?, minor: numbers.next()?.parse().ok()? })
    }

    /// That of the running kernel; `None` where it does not tell.
    pub fn running() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?)
    }
}

impl std::fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// What a choice depends on beside the interface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions {
    /// Whether the port's own thread has a CPU to itself.
    pub(crate) own_cpu: bool,
    /// The running kernel; `None` where it does not tell, which stands in nothing's way.
    pub(crate) kernel: Option<KernelVersion>,
}

impl Conditions {
    /// Those of one port that sends from this process.
    pub(crate) fn of_one_port() -> Self {
        Self { own_cpu: host::allowed().len() > 1, kernel: KernelVersion::running() }
    }
}

/// A backend that `auto` considers.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) backend: Backend,
    /// Why it would be taken, or why it is not worth trying.
    pub(crate) verdict: Result<&'static str, String>,
}

/// What `auto` considers for an interface, the best first.
pub(crate) fn candidates(link: &Link, conditions: &Conditions) -> Vec<Candidate> {
    let mut candidates = Vec::with_capacity(3);
    if link.xdp_features.is_some_and(|features| features.zero_copy()) {
        let verdict = Ok("the driver sends from shared memory (zero-copy)");
        candidates.push(Candidate { backend: Backend::AfXdp, verdict });
    }
    let verdict = match xdp_obstacle(link, conditions) {
        None => Ok("the driver takes frames from the in-kernel sender"),
        Some(obstacle) => Err(obstacle),
    };
    candidates.push(Candidate { backend: Backend::Xdp, verdict });
    let verdict = Ok("packet sockets work on every interface");
    candidates.push(Candidate { backend: Backend::AfPacket, verdict });
    candidates
}

/// Why the in-kernel sender is not worth trying on an interface.
pub(crate) fn xdp_obstacle(link: &Link, conditions: &Conditions) -> Option<String> {
    if let Some(kernel) = conditions.kernel.filter(|kernel| *kernel < XDP_KERNEL) {
        return Some(format!(
            "the in-kernel sender needs Linux {XDP_KERNEL} or newer, and this is {kernel}"
        ));
    }
    if !conditions.own_cpu {
        return Some("the in-kernel sender needs a CPU of its own, and none is left".into());
    }
    if link.frame_length_max() > xdp::FRAME_LENGTH_MAX {
        return Some(format!(
            "the in-kernel sender takes frames of {} bytes at most, and the MTU is {}",
            xdp::FRAME_LENGTH_MAX,
            link.mtu
        ));
    }
    redirect_obstacle(link)
}

/// Why nothing that is redirected to an interface leaves.
fn redirect_obstacle(link: &Link) -> Option<String> {
    takes_no_redirected_frames(link).then(|| match link.peer.filter(|_| peer_can_help(link)) {
        Some(peer) => {
            format!("its peer (interface number {}) has neither an XDP program nor GRO", peer.index)
        }
        None => "its driver takes no redirected frames".into(),
    })
}

/// Why nothing that the in-kernel sender redirects to an interface leaves, and the command that
/// changes it, where one does.
pub(crate) fn xdp_refusal(interface: &InterfaceName, link: &Link) -> Option<String> {
    let obstacle = redirect_obstacle(link)?;
    Some(match xdp_repair(interface, link) {
        Some(command) => format!("{obstacle}; change that with: {command}"),
        None => obstacle,
    })
}

/// What lets the in-kernel sender send on an interface.
pub(crate) fn xdp_repair(interface: &InterfaceName, link: &Link) -> Option<String> {
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
    let (namespace, peer) = link::find_peer(&interface.namespace, link, &namespaces())?;
    let mut command = namespace.command(&format!("ethtool -K {} gro on", peer.name));
    if peer.receive_offload == Some(true) {
        // The kernel notices a change only while the peer is up.
        let off = namespace.command(&format!("ethtool -K {} gro off", peer.name));
        command = format!("{off} && {command}");
    }
    Some(command)
}

/// That of this process, and those that `ip netns` knows, by name.
pub fn namespaces() -> Vec<Namespace> {
    let entries = fs::read_dir(NAMED_NAMESPACES).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|it| it.file_name().into_string().ok()).take(NAMESPACES_MAX).collect();
    names.sort();
    std::iter::once(Namespace::Current).chain(names.into_iter().map(Namespace::Named)).collect()
}

/// Whether the interface refuses what the in-kernel sender redirects to it.
pub(crate) fn takes_no_redirected_frames(link: &Link) -> bool {
    link.xdp_features.is_some_and(|features| !features.transmit())
}

/// Whether that is up to the interface's other end.
pub(crate) fn peer_can_help(link: &Link) -> bool {
    link.kind == LinkKind::Veth && link.peer.is_some()
}

/// The name that flags and results use.
pub(crate) const fn name(backend: Backend) -> &'static str {
    match backend {
        Backend::Auto => "auto",
        Backend::Memory => "memory",
        Backend::AfPacket => "af_packet",
        Backend::AfXdp => "af_xdp",
        Backend::Xdp => "xdp",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirestorm_io::link::{LinkCounters, Peer, Queues, XdpFeatures};

    const TRANSMIT: u64 = 4;
    const ZERO_COPY: u64 = 8;
    const GOOD: Conditions =
        Conditions { own_cpu: true, kernel: Some(KernelVersion { major: 6, minor: 1 }) };

    fn link(kind: LinkKind, mtu: u32, features: Option<u64>) -> Link {
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

    fn first(link: &Link, conditions: &Conditions) -> Backend {
        let found = candidates(link, conditions);
        found.iter().find(|it| it.verdict.is_ok()).expect("af_packet always is").backend
    }

    #[test]
    fn the_best_that_an_interface_can_do_comes_first() {
        let physical = |features| link(LinkKind::Physical, 1500, features);
        assert_eq!(first(&physical(Some(TRANSMIT | ZERO_COPY)), &GOOD), Backend::AfXdp);
        assert_eq!(first(&physical(Some(TRANSMIT)), &GOOD), Backend::Xdp);
        assert_eq!(first(&physical(Some(0)), &GOOD), Backend::AfPacket);
        // Where the kernel does not tell, trying is the way to know.
        assert_eq!(first(&physical(None), &GOOD), Backend::Xdp);
    }

    #[test]
    fn the_in_kernel_sender_needs_a_kernel_a_cpu_and_frames_that_fit() {
        let able = link(LinkKind::Physical, 1500, Some(TRANSMIT));
        let old = Conditions { kernel: KernelVersion::parse("5.17.9-x"), ..GOOD };
        assert!(xdp_obstacle(&able, &old).is_some_and(|text| text.contains("this is 5.17")));
        let alone = Conditions { own_cpu: false, ..GOOD };
        assert!(xdp_obstacle(&able, &alone).is_some_and(|text| text.contains("CPU")));
        let jumbo = link(LinkKind::Physical, 9000, Some(TRANSMIT));
        assert!(xdp_obstacle(&jumbo, &GOOD).is_some_and(|text| text.contains("9000")));
        assert_eq!(xdp_obstacle(&able, &GOOD), None);
    }

    #[test]
    fn a_veth_needs_its_peer() {
        let veth = link(LinkKind::Veth, 1500, Some(0));
        assert!(xdp_obstacle(&veth, &GOOD).is_some_and(|text| text.contains("GRO")));
        let other = link(LinkKind::Physical, 1500, Some(0));
        assert!(xdp_obstacle(&other, &GOOD).is_some_and(|text| text.contains("driver")));
    }

    #[test]
    fn versions_are_read_from_what_the_kernel_says() {
        let version = |major, minor| Some(KernelVersion { major, minor });
        assert_eq!(KernelVersion::parse("6.18.44-amd64\n"), version(6, 18));
        assert_eq!(KernelVersion::parse("5.4"), version(5, 4));
        assert_eq!(KernelVersion::parse("unknown"), None);
        assert!(version(5, 4) < version(5, 18) && version(5, 18) < version(6, 0));
    }
}
