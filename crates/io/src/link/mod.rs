//! Properties of an interface: identity, state, driver, queues, offloads, counters.

mod address;
mod admin;
mod ethtool;
mod loss;
mod netlink;
mod peer;
mod watch;

use std::io;

use wirestorm_base::port::{Capabilities, StampPoint};
use wirestorm_base::rate::Rate;
use wirestorm_base::time::Duration;

use crate::namespace::{InterfaceName, Namespace, NamespaceError};
use crate::system::socket::Socket;
use ethtool::Ethtool;
use netlink::{Message, Netlink, attributes, push_attribute, text, u16_at, u32_at, u64_at};

pub use address::{LinkAddress, addresses};
pub use admin::set_up;
pub(crate) use loss::LossMeter;
pub use peer::find_peer;
pub use watch::{LinkState, LinkWatch};

/// `struct ifinfomsg`: family, type, index, flags, change.
const LINK_HEADER_BYTES: usize = 16;
/// `struct rtmsg`.
const ROUTE_HEADER_BYTES: usize = 12;
/// `struct genlmsghdr`.
const GENERIC_HEADER_BYTES: usize = 4;

/// Attribute numbers that libc lacks: of `IFLA_XDP` and of the generic netlink family `netdev`.
const IFLA_XDP_PROG_ID: u16 = 4;
const NETDEV_COMMAND_DEVICE: u8 = 1;
const NETDEV_INTERFACE: u16 = 1;
const NETDEV_XDP_FEATURES: u16 = 3;

/// Kind of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// A physical device, or a virtual one without `IFLA_INFO_KIND`.
    Physical,
    /// The loopback interface, `lo`.
    Loopback,
    /// One end of a veth pair.
    Veth,
    /// Another virtual device: `bridge`, `bond`, `vlan`, `tun`, `dummy` and so on.
    Other(String),
}

/// Driver and device of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Driver {
    /// Driver name, such as `ixgbe`.
    pub name: String,
    /// Driver version; today's drivers report the kernel version.
    pub version: String,
    /// Firmware version; often empty.
    pub firmware: String,
    /// Bus address, such as `0000:01:00.0`; empty for virtual devices.
    pub bus: String,
}

/// Number of queues in each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queues {
    /// Receive queues in use.
    pub receive: u32,
    /// Transmit queues in use.
    pub transmit: u32,
    /// Highest number of receive queues that `ethtool -L` accepts.
    pub receive_max: u32,
    /// Highest number of transmit queues that `ethtool -L` accepts.
    pub transmit_max: u32,
}

/// Ring sizes of each queue, in descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSizes {
    /// Current receive ring size.
    pub receive: u32,
    /// Maximum receive ring size.
    pub receive_max: u32,
    /// Current transmit ring size.
    pub transmit: u32,
    /// Maximum transmit ring size.
    pub transmit_max: u32,
}

/// XDP features that a driver reports (`enum netdev_xdp_act` of `linux/netdev.h`).
///
/// The features of a veth change while it runs. `transmit` is set while its *peer* has an XDP
/// program or generic receive offload (as of Linux 6.18). `basic` and `redirect` are set while it
/// has at least as many receive queues as its peer has transmit queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdpFeatures {
    /// Feature bits as the kernel reports them.
    pub bits: u64,
}

impl XdpFeatures {
    /// XDP programs may return `XDP_PASS`, `XDP_DROP`, `XDP_ABORTED` and `XDP_TX`.
    pub const fn basic(self) -> bool {
        self.bits & 1 != 0
    }
    /// XDP programs may return `XDP_REDIRECT`.
    pub const fn redirect(self) -> bool {
        self.bits & 2 != 0
    }
    /// Other interfaces can redirect frames to this one (`ndo_xdp_xmit`).
    pub const fn transmit(self) -> bool {
        self.bits & 4 != 0
    }
    /// AF_XDP sockets work in zero-copy mode.
    pub const fn zero_copy(self) -> bool {
        self.bits & 8 != 0
    }
    /// XDP programs can run on the device.
    pub const fn hardware_offload(self) -> bool {
        self.bits & 16 != 0
    }
    /// The driver passes multi-buffer frames to XDP programs.
    pub const fn receive_scatter(self) -> bool {
        self.bits & 32 != 0
    }
    /// Other interfaces can redirect multi-buffer frames to this one.
    pub const fn transmit_scatter(self) -> bool {
        self.bits & 64 != 0
    }
}

/// The other end of a veth, or the lower interface of a virtual one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Interface index in the peer's namespace.
    pub index: u32,
    /// Peer's namespace ID as seen from this namespace; `None` if it is the same namespace.
    pub namespace_id: Option<i32>,
}

/// The kernel's counters of an interface (`struct rtnl_link_stats64`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Frames received.
    pub receive_packets: u64,
    /// Frames sent.
    pub transmit_packets: u64,
    /// Bytes received.
    pub receive_bytes: u64,
    /// Bytes sent.
    pub transmit_bytes: u64,
    /// Received frames with errors.
    pub receive_errors: u64,
    /// Frames that failed to be sent.
    pub transmit_errors: u64,
    /// Good frames dropped on receive, for lack of buffers or other reasons.
    pub receive_dropped: u64,
    /// Frames dropped on transmit.
    pub transmit_dropped: u64,
    /// Frames that the device missed (`rx_missed_errors`).
    pub receive_missed: u64,
}

/// Properties of one interface at one moment. A field is `None` if the driver or the kernel does
/// not report it.
#[derive(Clone, Debug)]
pub struct Link {
    /// Interface index in its namespace.
    pub index: u32,
    /// Interface name.
    pub name: String,
    /// Link-layer type (`ARPHRD_*`); 1 is Ethernet.
    pub link_layer: u16,
    /// MAC address; `None` if the interface has no Ethernet address.
    pub mac: Option<[u8; 6]>,
    /// MTU: longest network-layer packet in bytes. A frame may have [`Self::frame_length_max`].
    pub mtu: u32,
    /// Whether the interface is administratively up (`IFF_UP`).
    pub up: bool,
    /// Whether it has carrier (`IFF_LOWER_UP`); for a veth, whether its peer is up.
    pub running: bool,
    /// Whether promiscuous mode is on.
    pub promiscuous: bool,
    /// Kind of interface.
    pub kind: LinkKind,
    /// Driver; `None` if ethtool reports none.
    pub driver: Option<Driver>,
    /// Numbers of queues.
    pub queues: Queues,
    /// Ring sizes.
    pub rings: Option<RingSizes>,
    /// Whether generic receive offload (GRO) is on.
    pub receive_offload: Option<bool>,
    /// Whether TCP segmentation offload (TSO) is on. Without a wire, long frames pass uncut.
    pub segmentation_offload: Option<bool>,
    /// Link speed that the driver reports; a veth always reports 10 Gbit/s.
    pub speed: Option<Rate>,
    /// XDP features of the driver; `None` before Linux 6.3.
    pub xdp_features: Option<XdpFeatures>,
    /// ID of the attached XDP program.
    pub xdp_program: Option<u32>,
    /// Peer of a veth, or lower interface.
    pub peer: Option<Peer>,
    /// Whether an IPv4 or IPv6 default route uses this interface.
    pub default_route: bool,
    /// The kernel's counters at that moment.
    pub counters: LinkCounters,
}

/// Reason why the lookup of an interface failed.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// No interface has this name.
    #[error("there is no interface {0}; `ip link` (or `ip -n NAMESPACE link`) lists them")]
    Missing(InterfaceName),
    /// The thread could not enter the interface's namespace.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// Another system call failed.
    #[error("{operation} failed: {reason}")]
    System {
        /// Operation that failed.
        operation: &'static str,
        /// Error of the system call.
        reason: io::Error,
    },
}

/// Reason why an interface is not suitable for a port.
#[derive(Debug, thiserror::Error)]
pub enum UnsuitableLinkError {
    /// The interface is down.
    #[error("interface {0} is down; bring it up with: {command}", command = .0.up_command())]
    Down(InterfaceName),
    /// The port does not support the interface's link-layer type.
    #[error("interface {interface} has link-layer type {link_layer}; expected {expected}")]
    LinkLayer {
        /// Interface of the port.
        interface: InterfaceName,
        /// Link-layer type (`ARPHRD_*`) of the interface.
        link_layer: u16,
        /// Link-layer types that the port supports.
        expected: &'static str,
    },
    /// The interface lookup failed.
    #[error(transparent)]
    Unknown(#[from] LinkError),
}

impl LinkError {
    fn system(operation: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |reason| Self::System { operation, reason }
    }
}

impl Link {
    /// Reads all properties of one interface.
    ///
    /// # Errors
    /// Fails if the interface or namespace does not exist, or netlink fails.
    pub fn open(interface: &InterfaceName) -> Result<Self, LinkError> {
        Self::open_with(interface, Detail::Routes)
    }

    /// Same as [`Link::open`], but only with the properties that `RTM_GETLINK` has, such as index,
    /// addresses, MTU and state. Each other request waits for the lock of the kernel's network
    /// configuration, as long as any interface of the machine changes.
    ///
    /// # Errors
    /// Same as [`Link::open`].
    pub fn open_basic(interface: &InterfaceName) -> Result<Self, LinkError> {
        Self::open_with(interface, Detail::Basic)
    }

    fn open_with(interface: &InterfaceName, detail: Detail) -> Result<Self, LinkError> {
        interface.namespace.enter(|| {
            let mut request = link_request(0);
            let mut name = interface.name().as_bytes().to_vec();
            name.push(0);
            push_attribute(&mut request, libc::IFLA_IFNAME, &name);
            let mut found = Vec::new();
            let mut route =
                Netlink::open(libc::NETLINK_ROUTE, 0).map_err(LinkError::system("netlink"))?;
            let answer = route.request(libc::RTM_GETLINK, &request, |message| {
                found.extend(parse_link(message));
            });
            match answer {
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {
                    return Err(LinkError::Missing(interface.clone()));
                }
                other => other.map_err(LinkError::system("reading the interface"))?,
            }
            complete(&mut route, &mut found, detail)?;
            found.pop().ok_or_else(|| LinkError::Missing(interface.clone()))
        })?
    }

    /// Reads an interface and checks it for a port: it must be up and have one of
    /// `link_layers` (`ARPHRD_*`). `expected` describes these types in the error message. Leaves
    /// `default_route` false: on a router, reading a million routes would take longer than everything
    /// else.
    pub(crate) fn open_for_port(
        interface: &InterfaceName,
        link_layers: &[u16],
        expected: &'static str,
    ) -> Result<Self, UnsuitableLinkError> {
        let link = Self::open_with(interface, Detail::Device)?;
        if !link_layers.contains(&link.link_layer) {
            let (interface, link_layer) = (interface.clone(), link.link_layer);
            return Err(UnsuitableLinkError::LinkLayer { interface, link_layer, expected });
        }
        if !link.up {
            return Err(UnsuitableLinkError::Down(interface.clone()));
        }
        Ok(link)
    }

    /// Returns the capabilities of a socket on this interface whose buffers hold frames of at least
    /// `frame_length_max` bytes.
    pub(crate) fn socket_capabilities(
        &self,
        frame_length_max: usize,
        frames: usize,
        burst: usize,
        arrival_stamp: StampPoint,
    ) -> Capabilities {
        Capabilities {
            frame_length_max,
            untagged_length_max: frame_length_max.min(self.untagged_length_max()),
            frames,
            burst,
            holds_departure: false,
            departure_stamp: StampPoint::Process,
            arrival_stamp,
        }
    }

    /// Returns the longest frame in bytes without FCS: MTU, Ethernet header and one VLAN tag, which
    /// the kernel allows on top of the MTU.
    pub fn frame_length_max(&self) -> usize {
        const VLAN_TAG: usize = 4;
        self.untagged_length_max() + if self.has_ethernet_header() { VLAN_TAG } else { 0 }
    }

    /// Returns the longest frame without a VLAN tag, in bytes without FCS: MTU and Ethernet header.
    pub fn untagged_length_max(&self) -> usize {
        const ETHERNET_HEADER: usize = 14;
        self.mtu as usize + if self.has_ethernet_header() { ETHERNET_HEADER } else { 0 }
    }

    const fn has_ethernet_header(&self) -> bool {
        matches!(self.link_layer, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK)
    }
}

/// Lists all interfaces of a namespace, sorted by index.
///
/// # Errors
/// Same as [`Link::open`].
pub fn list(namespace: &Namespace) -> Result<Vec<Link>, LinkError> {
    namespace.enter(|| {
        let mut found = Vec::new();
        let mut route =
            Netlink::open(libc::NETLINK_ROUTE, 0).map_err(LinkError::system("netlink"))?;
        route
            .dump(libc::RTM_GETLINK, &link_request(0), |message| found.extend(parse_link(message)))
            .map_err(LinkError::system("listing the interfaces"))?;
        complete(&mut route, &mut found, Detail::Routes)?;
        found.sort_by_key(|link| link.index);
        Ok(found)
    })?
}

/// Reads the counters of one interface repeatedly.
#[derive(Debug)]
pub struct LinkMeter {
    netlink: Netlink,
    index: u32,
}

impl LinkMeter {
    /// Opens a meter for an interface.
    ///
    /// # Errors
    /// Same as [`Link::open`].
    pub fn open(interface: &InterfaceName) -> Result<Self, LinkError> {
        let index = Link::open_basic(interface)?.index;
        let netlink = interface.namespace.enter(|| Netlink::open(libc::NETLINK_ROUTE, 0))?;
        Ok(Self { netlink: netlink.map_err(LinkError::system("netlink"))?, index })
    }

    /// Reads the current counters. The system call takes some microseconds: do not call it for
    /// every batch.
    ///
    /// # Errors
    /// Fails if the interface no longer exists.
    pub fn read(&mut self) -> io::Result<LinkCounters> {
        let mut counters = LinkCounters::default();
        self.netlink.request(libc::RTM_GETLINK, &link_request(self.index), |message| {
            if let Some(link) = parse_link(message) {
                counters = link.counters;
            }
        })?;
        Ok(counters)
    }
}

/// Builds a `struct ifinfomsg` for interface `index`, or for any interface if zero.
fn link_request(index: u32) -> Vec<u8> {
    let mut request = vec![0; LINK_HEADER_BYTES];
    request[4..8].copy_from_slice(&index.to_ne_bytes());
    request
}

/// Properties of an interface to read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Detail {
    /// Those that `RTM_GETLINK` has.
    Basic,
    /// Also those of the device and its driver.
    Device,
    /// All: also whether the default route uses it.
    Routes,
}

/// Fills in the properties that need requests other than `RTM_GETLINK`.
fn complete(route: &mut Netlink, links: &mut [Link], detail: Detail) -> Result<(), LinkError> {
    if detail < Detail::Device {
        return Ok(());
    }
    let socket = Socket::open(libc::AF_INET, libc::SOCK_DGRAM, 0)
        .map_err(LinkError::system("opening a socket"))?;
    let default_routes = match detail {
        Detail::Routes => default_route_interfaces(route),
        Detail::Basic | Detail::Device => Ok(Vec::new()),
    }
    .map_err(LinkError::system("reading the routes"))?;
    let mut generic = NetdevFamily::open();
    for link in links {
        let ethtool = Ethtool::new(&socket, &link.name);
        link.driver = ethtool.driver();
        link.queues = ethtool.queues().unwrap_or(link.queues);
        link.rings = ethtool.rings();
        link.receive_offload = ethtool.receive_offload();
        link.segmentation_offload = ethtool.segmentation_offload();
        link.speed = ethtool.speed_megabits().and_then(|megabits| {
            Rate::new(u64::from(megabits) * 1_000_000, Duration::from_secs(1)).ok()
        });
        link.xdp_features = generic.as_mut().and_then(|family| family.features(link.index));
        link.default_route = default_routes.contains(&link.index);
    }
    Ok(())
}

/// Parses `RTM_NEWLINK`.
fn parse_link(message: Message<'_>) -> Option<Link> {
    let header = message.payload;
    if message.kind != libc::RTM_NEWLINK {
        return None;
    }
    let link_layer = u16_at(header, 2)?;
    let flags = u32_at(header, 8)?;
    let mut link = Link {
        index: u32_at(header, 4)?,
        name: String::new(),
        link_layer,
        mac: None,
        mtu: 0,
        up: flags & libc::IFF_UP as u32 != 0,
        running: flags & libc::IFF_LOWER_UP as u32 != 0,
        promiscuous: flags & libc::IFF_PROMISC as u32 != 0,
        kind: if link_layer == libc::ARPHRD_LOOPBACK {
            LinkKind::Loopback
        } else {
            LinkKind::Physical
        },
        driver: None,
        queues: Queues { receive: 1, transmit: 1, receive_max: 1, transmit_max: 1 },
        rings: None,
        receive_offload: None,
        segmentation_offload: None,
        speed: None,
        xdp_features: None,
        xdp_program: None,
        peer: None,
        default_route: false,
        counters: LinkCounters::default(),
    };
    let mut peer_index = None;
    let mut peer_namespace = None;
    for (kind, value) in attributes(header.get(LINK_HEADER_BYTES..)?) {
        match kind {
            libc::IFLA_IFNAME => link.name = text(value),
            libc::IFLA_ADDRESS if link_layer == libc::ARPHRD_ETHER => {
                link.mac = value.try_into().ok();
            }
            libc::IFLA_MTU => link.mtu = u32_at(value, 0)?,
            libc::IFLA_LINK => peer_index = u32_at(value, 0).filter(|index| *index != 0),
            libc::IFLA_LINK_NETNSID => peer_namespace = u32_at(value, 0).map(|id| id as i32),
            libc::IFLA_NUM_TX_QUEUES => link.queues.transmit = u32_at(value, 0)?.max(1),
            libc::IFLA_NUM_RX_QUEUES => link.queues.receive = u32_at(value, 0)?.max(1),
            libc::IFLA_STATS64 => link.counters = parse_counters(value).unwrap_or_default(),
            libc::IFLA_LINKINFO => {
                let name = attributes(value)
                    .find(|(kind, _)| *kind == libc::IFLA_INFO_KIND)
                    .map(|(_, value)| text(value));
                link.kind = match name.as_deref() {
                    Some("veth") => LinkKind::Veth,
                    Some(other) => LinkKind::Other(other.to_owned()),
                    None => link.kind,
                };
            }
            libc::IFLA_XDP => {
                link.xdp_program = attributes(value)
                    .find(|(kind, _)| *kind == IFLA_XDP_PROG_ID)
                    .and_then(|(_, value)| u32_at(value, 0))
                    .filter(|id| *id != 0);
            }
            _ => {}
        }
    }
    link.queues.transmit_max = link.queues.transmit;
    link.queues.receive_max = link.queues.receive;
    link.peer = peer_index
        .filter(|index| peer_namespace.is_some() || *index != link.index)
        .map(|index| Peer { index, namespace_id: peer_namespace });
    Some(link)
}

/// Parses `struct rtnl_link_stats64`: the order of its fields is the kernel's ABI.
fn parse_counters(value: &[u8]) -> Option<LinkCounters> {
    let field = |number: usize| u64_at(value, number * 8);
    Some(LinkCounters {
        receive_packets: field(0)?,
        transmit_packets: field(1)?,
        receive_bytes: field(2)?,
        transmit_bytes: field(3)?,
        receive_errors: field(4)?,
        transmit_errors: field(5)?,
        receive_dropped: field(6)?,
        transmit_dropped: field(7)?,
        receive_missed: field(15)?,
    })
}

/// Returns the indexes of interfaces with a default route in any table, single-path or multipath.
fn default_route_interfaces(route: &mut Netlink) -> io::Result<Vec<u32>> {
    let mut interfaces = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let mut request = vec![0; ROUTE_HEADER_BYTES];
        request[0] = family as u8;
        let answer = route.dump(libc::RTM_GETROUTE, &request, |message| {
            let header = message.payload;
            let destination_bits = header.get(1).copied();
            let unicast = header.get(7).copied() == Some(libc::RTN_UNICAST);
            if destination_bits != Some(0) || !unicast {
                return;
            }
            for (kind, value) in attributes(header.get(ROUTE_HEADER_BYTES..).unwrap_or_default()) {
                match kind {
                    libc::RTA_OIF => interfaces.extend(u32_at(value, 0)),
                    libc::RTA_MULTIPATH => interfaces.extend(next_hop_interfaces(value)),
                    _ => {}
                }
            }
        });
        match answer {
            // A kernel without IPv6 answers EOPNOTSUPP.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {}
            other => other?,
        }
    }
    Ok(interfaces)
}

/// Iterates over `struct rtnexthop`: length, flags, hops, interface, attributes.
fn next_hop_interfaces(mut rest: &[u8]) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(rest, 0)?);
        let interface = u32_at(rest, 4)?;
        rest = rest.get(length.max(8).next_multiple_of(4)..).unwrap_or_default();
        Some(interface)
    })
}

/// The generic netlink family `netdev`, available since Linux 6.3.
#[derive(Debug)]
struct NetdevFamily {
    netlink: Netlink,
    id: u16,
}

impl NetdevFamily {
    fn open() -> Option<Self> {
        let mut netlink = Netlink::open(libc::NETLINK_GENERIC, 0).ok()?;
        let mut request = vec![libc::CTRL_CMD_GETFAMILY as u8, 1, 0, 0];
        push_attribute(&mut request, libc::CTRL_ATTR_FAMILY_NAME as u16, b"netdev\0");
        let mut id = None;
        let answer = netlink.request(libc::GENL_ID_CTRL as u16, &request, |message| {
            let body = message.payload.get(GENERIC_HEADER_BYTES..).unwrap_or_default();
            id = attributes(body)
                .find(|(kind, _)| i32::from(*kind) == libc::CTRL_ATTR_FAMILY_ID)
                .and_then(|(_, value)| u16_at(value, 0));
        });
        answer.ok()?;
        Some(Self { netlink, id: id? })
    }

    fn features(&mut self, index: u32) -> Option<XdpFeatures> {
        let mut request = vec![NETDEV_COMMAND_DEVICE, 1, 0, 0];
        push_attribute(&mut request, NETDEV_INTERFACE, &index.to_ne_bytes());
        let mut bits = None;
        let answer = self.netlink.request(self.id, &request, |message| {
            let body = message.payload.get(GENERIC_HEADER_BYTES..).unwrap_or_default();
            bits = attributes(body)
                .find(|(kind, _)| *kind == NETDEV_XDP_FEATURES)
                .and_then(|(_, value)| u64_at(value, 0));
        });
        answer.ok()?;
        Some(XdpFeatures { bits: bits? })
    }
}
