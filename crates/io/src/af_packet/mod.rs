//! Ports over packet sockets (`packet(7)`): they work on every interface.
//!
//! Transmission goes through a `PACKET_TX_RING` in a way of its own. A frame in such a ring
//! usually becomes a socket buffer that refers to the ring's page, and setting that up costs
//! more than the copy it saves. So each slot carries a virtio header (`PACKET_VNET_HDR`) whose
//! header length is the whole frame: the kernel then copies it into the linear part of the
//! socket buffer, and everything behind it takes its short path. Measured on a veth pair as CPU
//! time for each frame (runs of a quarter second, alternating with `tcpreplay --topspeed
//! --preload-pcap`, medians): 60 bytes 450 to 540 ns against 720 to 970 ns, 1,514 bytes 535 to
//! 605 ns against 790 to 1,000 ns; 1.4 to 1.6 times as fast, the less the busier the other core.
//! Making the frames in the ring itself instead of copying them there gains 2 % at 1,514 bytes
//! and nothing at 60, and was left out.
//! `sendmmsg` is 1.2 times as fast as tcpreplay, a ring without the header 1.05 to 1.2 times.
//! The batch does not matter above 16 frames; versions 2 and 3 of the ring are equally fast.
//! About 40 % of what remains is the receiving side, which a veth runs on the sender's CPU.
//!
//! Reception goes through a `TPACKET_V3` ring: the kernel fills blocks, and a block is looked
//! at when it is full or a millisecond old, so a port takes frames in batches and late, but the
//! time stamp was taken by the kernel on arrival.

mod hearing;
mod offload;
mod receive;
mod receive_ring;
mod refusals;
mod transmit;
mod transmit_ring;

use std::io;
use std::mem::size_of;

use crate::link::{Link, UnfitLink};
use crate::namespace::{InterfaceName, NamespaceError};
use crate::system::socket::{Plain, Socket};

pub use offload::{Fetched, OffloadReceive, OffloadTransmit};
pub use receive::AfPacketReceive;
pub use transmit::AfPacketTransmit;

/// How a packet socket is to be opened. Each half takes what concerns it.
#[derive(Clone, Debug)]
pub struct AfPacketOptions {
    /// Where.
    pub interface: InterfaceName,
    /// Frames that can be taken or in flight at once: 64 to 65,536. Default 256: as many as
    /// the driver has in hand between two completions, and few enough to stay in the cache
    /// (1,024 cost 5 to 8 % of the speed).
    pub frames: usize,
    /// Whether frames go to the driver directly, past the queueing discipline and past whoever
    /// listens to outgoing frames on this host (`PACKET_QDISC_BYPASS`). Default true.
    pub queueing_bypass: bool,
    /// Memory that arriving frames wait in: 256 KiB to 1 GiB, rounded up to blocks. Default 32 MiB: at
    /// a million small frames a second a fifth of a second.
    pub receive_ring_bytes: usize,
    /// Whether to take frames for other stations too. The interface is told for as long as the
    /// port is open. Default true.
    pub promiscuous: bool,
    /// Shares what arrives with the other members of the group. Default none: every port on an
    /// interface gets everything.
    pub fanout: Option<Fanout>,
    /// The number that frames from this port are reported with ([`Received::queue`]): which
    /// queue a frame came through is not told to a packet socket. Default 0.
    ///
    /// [`Received::queue`]: wirestorm_base::port::Received::queue
    pub queue: u32,
    /// A classic BPF program that says which frames are taken; an empty one takes all. At most
    /// 4,096 instructions. Default empty.
    pub filter: Vec<FilterInstruction>,
}

/// A group of receiving ports between which the kernel divides the frames of one interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fanout {
    /// The same for all members, different from all other groups of the namespace.
    pub group: u16,
    /// How frames are divided.
    pub by: FanoutBy,
}

/// How a fan-out group divides frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FanoutBy {
    /// By flow: frames of one flow reach one member, in order.
    Flow,
    /// In turn: the order of a flow is not kept between members.
    Turn,
    /// By the CPU that the frame arrived on.
    Cpu,
    /// By the receive queue that the frame arrived on.
    Queue,
}

/// One instruction of a classic BPF program (`struct sock_filter`), as `tcpdump -ddd` prints it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilterInstruction {
    /// What to do.
    pub code: u16,
    /// Instructions to skip when a condition holds.
    pub jump_true: u8,
    /// Instructions to skip when it does not.
    pub jump_false: u8,
    /// The operand.
    pub operand: u32,
}

/// Why a packet socket could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum AfPacketError {
    /// This process may not.
    #[error(
        "no privilege for packet sockets on {0}: they need CAP_NET_RAW; \
         run as root, or: setcap cap_net_raw,cap_net_admin=ep on the program"
    )]
    Privilege(InterfaceName),
    /// An option is out of its range.
    #[error("{option} is {found}; expected {expected}")]
    Option {
        /// Which.
        option: &'static str,
        /// What it was.
        found: usize,
        /// What it may be.
        expected: &'static str,
    },
    /// The interface is not there, down, or of another kind.
    #[error(transparent)]
    Link(#[from] UnfitLink),
    /// Its namespace could not be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// Anything else the operating system said.
    #[error("{interface}: {operation} failed: {reason}")]
    System {
        /// Which.
        interface: InterfaceName,
        /// What was tried.
        operation: &'static str,
        /// What the system answered.
        reason: io::Error,
    },
}

impl AfPacketOptions {
    /// The defaults, for an interface.
    pub fn new(interface: InterfaceName) -> Self {
        Self {
            interface,
            frames: 256,
            queueing_bypass: true,
            receive_ring_bytes: 32 << 20,
            promiscuous: true,
            fanout: None,
            queue: 0,
            filter: Vec::new(),
        }
    }

    fn system(&self, operation: &'static str) -> impl FnOnce(io::Error) -> AfPacketError {
        let interface = self.interface.clone();
        move |reason| AfPacketError::System { interface, operation, reason }
    }

    /// A packet socket in the interface's namespace that hears nothing yet, and the facts of
    /// the interface.
    fn socket(&self) -> Result<(Socket, Link), AfPacketError> {
        let link = Link::open_for_port(
            &self.interface,
            &[libc::ARPHRD_ETHER, libc::ARPHRD_LOOPBACK],
            "Ethernet (1) or loopback (772)",
        )?;
        // Protocol zero: no frame is queued to the socket before it is bound.
        let socket = self
            .interface
            .namespace
            .enter(|| Socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0))?
            .map_err(|reason| match reason.raw_os_error() {
                Some(libc::EPERM) => AfPacketError::Privilege(self.interface.clone()),
                _ => self.system("opening a packet socket")(reason),
            })?;
        Ok((socket, link))
    }
}

/// The address of an interface; `protocol` is an Ethernet type, and zero hears nothing.
fn address(index: u32, protocol: u16) -> libc::sockaddr_ll {
    let mut address = libc::sockaddr_ll::zeroed();
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = index as i32;
    address
}

const ADDRESS_BYTES: usize = size_of::<libc::sockaddr_ll>();

const SEND_BUFFER_MAX: usize = 64 << 20;

/// Room for all frames of the port, as far as the process may ask for it: with `CAP_NET_ADMIN`
/// beyond `net.core.wmem_max`. A smaller one only means more flushes, so failure is no error.
fn enlarge_send_buffer(socket: &Socket, bytes: usize) {
    let bytes = bytes.min(SEND_BUFFER_MAX) as i32;
    if socket.set_option(libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &bytes).is_err() {
        let _ = socket.set_option(libc::SOL_SOCKET, libc::SO_SNDBUF, &bytes);
    }
}

const VLAN_TAG_BYTES: usize = 4;
const MAC_ADDRESSES_BYTES: usize = 12;
/// The tag that a kernel means which does not say which.
const VLAN_ETHER_TYPE: u16 = 0x8100;
