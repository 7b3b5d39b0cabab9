//! Sockets of a PTP port: over Ethernet, or over UDP with one socket for each UDP port.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use wirestorm_base::time::Duration;
use wirestorm_clock::ptp::address::{Address, Destination, ETHERNET_GROUP, IPV4_GROUP, IPV6_GROUP};
use wirestorm_clock::ptp::output::{StampId, Transmission};
use wirestorm_clock::ptp::{ETHER_TYPE, EVENT_PORT, GENERAL_PORT};
use wirestorm_clock::timestamp::Timestamp;
use wirestorm_io::af_packet::AfPacketError;
use wirestorm_io::clock::{RealtimeOffset, RealtimeOffsetTracker};
use wirestorm_io::link::{Link, LinkError, addresses};
use wirestorm_io::namespace::InterfaceName;
use wirestorm_io::timestamps::{
    Departure, SendNumber, Stamp, StampSource, StampedPacketSocket, StampedSocket, wait,
};
use wirestorm_io::udp::UdpError;

use super::node_time;

/// Longest message that a session reads; a longer one is cut off and counts as malformed.
const MESSAGE_BYTES_MAX: usize = 1_500;
/// Event messages whose departure is awaited. Some drivers report none.
const AWAITED_MAX: usize = 1_024;
/// Packets read in one go, so that timers run in a flood too.
const BURST: usize = 64;

/// Network of a PTP session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransportKind {
    /// Ethernet, EtherType 0x88f7.
    L2,
    /// UDP over IPv4.
    Udp4,
    /// UDP over IPv6.
    Udp6,
}

/// Reason why a PTP session cannot use its interface.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The interface cannot be read.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The packet socket did not open.
    #[error(transparent)]
    Packet(#[from] AfPacketError),
    /// A UDP socket did not open.
    #[error("{0}; another PTP program may use the port")]
    Udp(#[from] UdpError),
    /// A system call failed.
    #[error("{interface}: {operation}: {reason}; {remedy}")]
    System {
        /// Interface of the session.
        interface: InterfaceName,
        /// Operation that failed.
        operation: &'static str,
        /// Error of the system call.
        reason: io::Error,
        /// Suggestion for the user.
        remedy: &'static str,
    },
    /// The interface has no address of the transport's family.
    #[error(
        "{interface} has no {family} address, which PTP over UDP needs; add one with \
         `ip address add`, or use --transport l2"
    )]
    NoAddress {
        /// Interface of the session.
        interface: InterfaceName,
        /// Address family.
        family: &'static str,
    },
    /// The master's address does not belong to the transport.
    #[error("{address} is no address for this transport; expected {expected}")]
    Address {
        /// Address of the master.
        address: Address,
        /// Kind of address that the transport has.
        expected: &'static str,
    },
    /// The interface is down.
    #[error("interface {0} is down; bring it up with: {command}", command = .0.up_command())]
    Down(InterfaceName),
    /// The interface was removed and made again, so the sockets receive nothing.
    #[error("interface {0} was removed and made again")]
    Replaced(InterfaceName),
    /// The interface has no MAC address, which identifies the clock.
    #[error("{0} has no MAC address, which identifies a PTP clock; use an Ethernet interface")]
    NoIdentity(InterfaceName),
}

/// An event of the sockets.
pub(super) enum Event<'a> {
    /// A message arrived.
    Arrived {
        /// Sender.
        from: Address,
        /// The message.
        bytes: &'a [u8],
        /// Time of arrival, if the kernel stamped it.
        stamp: Option<Timestamp>,
    },
    /// An event message departed.
    Departed {
        /// Number of the message.
        stamp: StampId,
        /// Time of departure.
        time: Timestamp,
    },
}

/// The sockets of a PTP port.
#[derive(Debug)]
pub(super) struct Transport {
    interface: InterfaceName,
    /// Index of the interface.
    index: u32,
    sockets: Sockets,
    /// Event messages without departure.
    awaited: BTreeMap<SendNumber, StampId>,
    offset: RealtimeOffsetTracker,
    buffer: Box<[u8; MESSAGE_BYTES_MAX]>,
    mac: [u8; 6],
}

#[derive(Debug)]
enum Sockets {
    Ethernet(StampedPacketSocket),
    Udp { event: StampedSocket, general: StampedSocket, group: IpAddr },
}

impl TransportKind {
    /// Checks that the transport can send to an address.
    ///
    /// # Errors
    /// [`TransportError::Address`] if the address is of another network.
    pub fn check(self, address: Address) -> Result<(), TransportError> {
        let (is_known, expected) = match self {
            Self::L2 => (matches!(address, Address::Mac(_)), "a MAC address"),
            Self::Udp4 => (matches!(address, Address::Ip(IpAddr::V4(_))), "an IPv4 address"),
            Self::Udp6 => (matches!(address, Address::Ip(IpAddr::V6(_))), "an IPv6 address"),
        };
        if is_known { Ok(()) } else { Err(TransportError::Address { address, expected }) }
    }

    /// Returns the word of options: `l2`, `udp4` or `udp6`.
    pub const fn keyword(self) -> &'static str {
        match self {
            Self::L2 => "l2",
            Self::Udp4 => "udp4",
            Self::Udp6 => "udp6",
        }
    }
}

impl fmt::Display for TransportKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::L2 => "Ethernet",
            Self::Udp4 => "UDP over IPv4",
            Self::Udp6 => "UDP over IPv6",
        })
    }
}

impl FromStr for TransportKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "l2" => Ok(Self::L2),
            "udp4" => Ok(Self::Udp4),
            "udp6" => Ok(Self::Udp6),
            _ => Err(format!("{text:?}: expected l2, udp4 or udp6")),
        }
    }
}

impl Transport {
    /// Opens the sockets on an interface and joins the multicast group.
    pub(super) fn open(
        interface: &InterfaceName,
        kind: TransportKind,
    ) -> Result<Self, TransportError> {
        let link = Link::open(interface)?;
        let check_address = |family: &'static str, is_of_family: fn(&IpAddr) -> bool| {
            let addresses = addresses(&interface.namespace)?;
            let mut own = addresses.iter().filter(|it| it.index == link.index);
            if own.any(|it| is_of_family(&it.address)) {
                return Ok(());
            }
            Err(TransportError::NoAddress { interface: interface.clone(), family })
        };
        let sockets = match kind {
            TransportKind::L2 => {
                let socket = StampedPacketSocket::open(interface, ETHER_TYPE, ETHERNET_GROUP)?;
                Sockets::Ethernet(socket)
            }
            TransportKind::Udp4 => {
                check_address("IPv4", IpAddr::is_ipv4)?;
                let (any, group) = (Ipv4Addr::UNSPECIFIED.into(), IPV4_GROUP.into());
                open_udp(interface, link.index, any, group)?
            }
            TransportKind::Udp6 => {
                check_address("IPv6", IpAddr::is_ipv6)?;
                let (any, group) = (Ipv6Addr::UNSPECIFIED.into(), IPV6_GROUP.into());
                open_udp(interface, link.index, any, group)?
            }
        };
        Ok(Self {
            interface: interface.clone(),
            index: link.index,
            sockets,
            awaited: BTreeMap::new(),
            offset: RealtimeOffsetTracker::default(),
            buffer: Box::new([0; MESSAGE_BYTES_MAX]),
            mac: link.mac.unwrap_or_default(),
        })
    }

    /// Returns the MAC address of the interface; zero on loopback.
    pub(super) const fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// Checks that the interface is up, and still the one that the sockets are on.
    pub(super) fn check_link(&self) -> Result<(), TransportError> {
        let link = Link::open(&self.interface)?;
        match link.index == self.index {
            true if link.up => Ok(()),
            true => Err(TransportError::Down(self.interface.clone())),
            false => Err(TransportError::Replaced(self.interface.clone())),
        }
    }

    /// Sends a message. Returns `false` if a queue is full or a neighbour does not answer, which may
    /// be different for the next message.
    pub(super) fn send(&mut self, message: &Transmission) -> Result<bool, TransportError> {
        let sent = match &mut self.sockets {
            Sockets::Ethernet(socket) => {
                let to = match message.to {
                    Destination::Multicast => ETHERNET_GROUP,
                    Destination::Unicast(Address::Mac(address)) => address,
                    Destination::Unicast(Address::Ip(_)) => return Ok(false),
                };
                socket.send_to(&message.bytes, to)
            }
            Sockets::Udp { event, general, group } => {
                let to = match message.to {
                    Destination::Multicast => *group,
                    Destination::Unicast(Address::Ip(address)) => address,
                    Destination::Unicast(Address::Mac(_)) => return Ok(false),
                };
                match message.stamp {
                    Some(_) => event.send_to(&message.bytes, SocketAddr::new(to, EVENT_PORT)),
                    None => general.send_to(&message.bytes, SocketAddr::new(to, GENERAL_PORT)),
                }
            }
        };
        match sent {
            Ok(number) => {
                self.awaited.extend(message.stamp.map(|stamp| (number, stamp)));
                if self.awaited.len() > AWAITED_MAX {
                    self.awaited.pop_first();
                }
                Ok(true)
            }
            Err(error) if is_transient(&error) => Ok(false),
            Err(reason) => Err(self.failed("sending", reason)),
        }
    }

    /// Waits for at most `patience`, then passes on what has arrived and departed.
    pub(super) fn poll(
        &mut self,
        patience: Duration,
        mut pass: impl FnMut(Event<'_>),
    ) -> Result<(), TransportError> {
        match &self.sockets {
            Sockets::Ethernet(socket) => wait([socket.as_fd()].into_iter(), patience),
            Sockets::Udp { event, general, .. } => {
                wait([event.as_fd(), general.as_fd()].into_iter(), patience);
            }
        }
        if let Sockets::Udp { general, .. } = &self.sockets {
            // The kernel keeps these reports, and wakes the next wait, until they are read.
            for _ in 0..BURST {
                let departure = general.departure();
                if departure.map_err(|it| self.failed("reading departures", it))?.is_none() {
                    break;
                }
            }
        }
        let offset = self.offset.update();
        // Departures first: the answer to a message may have arrived already.
        for _ in 0..BURST {
            let Some(Departure { number, stamp }) = self.departure()? else { break };
            // General messages of a packet socket have stamps too.
            if let (Some(id), Some(time)) =
                (self.awaited.remove(&number), kernel_time(stamp, offset))
            {
                pass(Event::Departed { stamp: id, time });
            }
        }
        for _ in 0..BURST {
            if !self.receive(offset, &mut pass)? {
                break;
            }
        }
        Ok(())
    }

    fn departure(&self) -> Result<Option<Departure>, TransportError> {
        let departure = match &self.sockets {
            Sockets::Ethernet(socket) => socket.departure(),
            Sockets::Udp { event, .. } => event.departure(),
        };
        departure.map_err(|reason| self.failed("reading departures", reason))
    }

    /// Passes on one message of each socket. Returns whether there was one.
    fn receive(
        &mut self,
        offset: RealtimeOffset,
        pass: &mut impl FnMut(Event<'_>),
    ) -> Result<bool, TransportError> {
        let Self { interface, sockets, buffer, .. } = self;
        let buffer = buffer.as_mut_slice();
        let failed = |reason| failed(interface, "receiving", reason);
        let mut is_any = false;
        match sockets {
            Sockets::Ethernet(socket) => {
                if let Some(it) = socket.try_receive(buffer).map_err(failed)? {
                    let bytes = buffer.get(..it.length).unwrap_or_default();
                    let (from, stamp) = (Address::Mac(it.from), kernel_time(it.stamp, offset));
                    pass(Event::Arrived { from, bytes, stamp });
                    is_any = true;
                }
            }
            Sockets::Udp { event, general, .. } => {
                for (socket, is_event) in [(event, true), (general, false)] {
                    let Some(it) = socket.try_receive(buffer).map_err(failed)? else { continue };
                    let bytes = buffer.get(..it.length).unwrap_or_default();
                    let stamp = kernel_time(it.stamp, offset).filter(|_| is_event);
                    pass(Event::Arrived { from: Address::Ip(it.from.ip()), bytes, stamp });
                    is_any = true;
                }
            }
        }
        Ok(is_any)
    }

    fn failed(&self, operation: &'static str, reason: io::Error) -> TransportError {
        failed(&self.interface, operation, reason)
    }
}

fn open_udp(
    interface: &InterfaceName,
    index: u32,
    any: IpAddr,
    group: IpAddr,
) -> Result<Sockets, TransportError> {
    let open = |port| {
        let socket = StampedSocket::bind(&interface.namespace, SocketAddr::new(any, port))?;
        socket
            .bind_to_interface(interface.name())
            .and_then(|()| socket.join(group, index))
            .map_err(|reason| failed(interface, "joining the multicast group", reason))?;
        Ok::<_, TransportError>(socket)
    };
    Ok(Sockets::Udp { event: open(EVENT_PORT)?, general: open(GENERAL_PORT)?, group })
}

fn failed(interface: &InterfaceName, operation: &'static str, reason: io::Error) -> TransportError {
    let remedy = match reason.kind() {
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::AddrNotAvailable => {
            "check that the interface is up, and has an address and a route to the other clock"
        }
        io::ErrorKind::PermissionDenied => "run as root",
        _ => "check that the interface is up",
    };
    TransportError::System { interface: interface.clone(), operation, reason, remedy }
}

/// Returns whether the next message may succeed without a change of the settings.
fn is_transient(error: &io::Error) -> bool {
    // No room, no answer of the neighbour, or a packet filter that drops it.
    let codes = [libc::ENOBUFS, libc::EAGAIN, libc::EINTR, libc::EHOSTUNREACH, libc::EPERM];
    error.raw_os_error().is_some_and(|code| codes.contains(&code))
}

/// Converts a stamp of the kernel to the time of this machine. Stamps of a process are milliseconds
/// off on a busy machine, so they do not count.
fn kernel_time(stamp: Stamp, offset: RealtimeOffset) -> Option<Timestamp> {
    (stamp.point == StampSource::Kernel).then(|| node_time(stamp, offset))
}
