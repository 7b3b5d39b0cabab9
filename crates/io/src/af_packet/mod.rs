//! Ports over packet sockets (`packet(7)`), which work on every interface.
//!
//! Transmission uses a `PACKET_TX_RING` with virtio headers. A frame in such a ring usually becomes
//! a socket buffer that refers to the ring's page, and that setup costs more than the copy which it
//! saves. So each slot carries a virtio header (`PACKET_VNET_HDR`) whose header length is the whole
//! frame. The kernel then copies the frame into the linear part of the socket buffer, and later
//! stages take their short path. Measured on a veth pair as CPU time for each frame, medians of
//! quarter-second runs that alternate with `tcpreplay --topspeed --preload-pcap`: 60 bytes take 450
//! to 540 ns against 720 to 970 ns; 1,514 bytes take 535 to 605 ns against 790 to 1,000 ns. That is
//! 1.4 to 1.6 times as fast; the gain is smaller when the other core is busy.
//! Building the frames in the ring instead of copying them there gains 2 % at 1,514 bytes and
//! nothing at 60, so the port copies.
//! `sendmmsg` is 1.2 times as fast as tcpreplay, and a ring without the header 1.05 to 1.2 times.
//! The batch size does not matter above 16 frames; ring versions 2 and 3 are equally fast. About 40
//! % of the remaining time is the receiving side, which a veth runs on the sender's CPU.
//!
//! Reception uses a `TPACKET_V3` ring. The kernel fills blocks and hands over a block that is full
//! or a millisecond old. So a port gets frames late and in batches, but the kernel takes the time
//! stamps on arrival.

mod bound_socket;
mod offload;
mod receive;
mod receive_ring;
mod send_refusals;
mod transmit;
mod transmit_ring;

use std::io;
use std::mem::size_of;

use crate::link::{Link, UnsuitableLinkError};
use crate::namespace::{InterfaceName, NamespaceError};
use crate::system::socket::{Plain, Socket};

pub use offload::{FetchExtent, OffloadReceive, OffloadTransmit};
pub use receive::AfPacketReceive;
pub use transmit::AfPacketTransmit;

/// Options of a packet socket. Each half of a port uses those that concern it.
#[derive(Clone, Debug)]
pub struct AfPacketOptions {
    /// Interface to open.
    pub interface: InterfaceName,
    /// Maximum number of frames taken or in flight: 64 to 65,536. Default 256: as many as the
    /// driver holds between two completions, and few enough to stay in the cache (1,024 cost 5 to 8
    /// % of the speed).
    pub frames: usize,
    /// Whether frames bypass the queueing discipline and taps on outgoing frames, and go to the
    /// driver directly (`PACKET_QDISC_BYPASS`). Default true.
    pub queueing_bypass: bool,
    /// Size of the receive ring in bytes: 256 KiB to 1 GiB, rounded up to blocks. Default 32 MiB: a
    /// fifth of a second at a million small frames a second.
    pub receive_ring_bytes: usize,
    /// Whether to enable promiscuous mode, to receive frames for other MAC addresses. The mode
    /// lasts as long as the port is open. Default true.
    pub promiscuous: bool,
    /// Fan-out group that shares the received frames. Default none: every port on an interface
    /// receives all frames.
    pub fanout: Option<Fanout>,
    /// Queue number that received frames report ([`Received::queue`]): a packet socket cannot see
    /// which queue a frame came through. Default 0.
    ///
    /// [`Received::queue`]: wirestorm_base::port::Received::queue
    pub queue: u32,
    /// Classic BPF program that selects the frames to receive; an empty program accepts all. At
    /// most 4,096 instructions. Default empty.
    pub filter: Vec<FilterInstruction>,
    /// Frames to receive. Default [`Direction::Arriving`].
    pub direction: Direction,
}

/// Frames that a receiving packet socket takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Frames that arrive on the interface.
    #[default]
    Arriving,
    /// Frames that the interface sends, except those that bypass the taps of the kernel.
    Leaving,
}

/// A group of receiving ports between which the kernel distributes the frames of one interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fanout {
    /// Group ID: the same for all members, and unique in the namespace.
    pub group: u16,
    /// Distribution mode.
    pub by: FanoutBy,
}

/// Distribution mode of a fan-out group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FanoutBy {
    /// By flow hash: frames of one flow reach one member, in order.
    Flow,
    /// Round robin: frames of one flow may be reordered between members.
    RoundRobin,
    /// By the CPU that the frame arrived on.
    Cpu,
    /// By the receive queue that the frame arrived on.
    Queue,
}

/// One instruction of a classic BPF program (`struct sock_filter`), as `tcpdump -ddd` prints it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilterInstruction {
    /// Operation code.
    pub code: u16,
    /// Instructions to skip if the condition is true.
    pub jump_true: u8,
    /// Instructions to skip if the condition is false.
    pub jump_false: u8,
    /// Constant operand (`k`).
    pub operand: u32,
}

/// Reason why a packet socket could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum AfPacketError {
    /// The process lacks `CAP_NET_RAW`.
    #[error(
        "no privilege for packet sockets on {0}: they need CAP_NET_RAW; \
         run as root, or: setcap cap_net_raw,cap_net_admin=ep on the program"
    )]
    Privilege(InterfaceName),
    /// An option is out of range.
    #[error("{option} is {found}; expected {expected}")]
    Option {
        /// Name of the option.
        option: &'static str,
        /// Value of the option.
        found: usize,
        /// Allowed values.
        expected: &'static str,
    },
    /// The interface does not exist, is down, or has an unsupported link layer.
    #[error(transparent)]
    Link(#[from] UnsuitableLinkError),
    /// The thread could not enter the interface's namespace.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// Another system call failed.
    #[error("{interface}: {operation} failed: {reason}")]
    System {
        /// Interface of the socket.
        interface: InterfaceName,
        /// Operation that failed.
        operation: &'static str,
        /// Error of the system call.
        reason: io::Error,
    },
}

impl AfPacketOptions {
    /// Returns the default options for an interface.
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
            direction: Direction::default(),
        }
    }

    /// Returns the filter, preceded by the check of the direction.
    fn filter_with_direction(&self) -> Vec<FilterInstruction> {
        /// Loads the packet type (`SKF_AD_OFF + SKF_AD_PKTTYPE` of `linux/filter.h`), and goes on if
        /// it is `PACKET_OUTGOING`.
        const LEAVING: [(u16, u8, u8, u32); 3] =
            [(0x20, 0, 0, 0xffff_f004), (0x15, 1, 0, 4), (0x06, 0, 0, 0)];
        const ACCEPT: (u16, u8, u8, u32) = (0x06, 0, 0, 0x4_0000);
        let instruction = |(code, jump_true, jump_false, operand)| FilterInstruction {
            code,
            jump_true,
            jump_false,
            operand,
        };
        match (self.direction, self.filter.is_empty()) {
            (Direction::Arriving, _) => self.filter.clone(),
            (Direction::Leaving, true) => {
                LEAVING.into_iter().chain([ACCEPT]).map(instruction).collect()
            }
            (Direction::Leaving, false) => {
                let program = self.filter.iter().copied();
                LEAVING.into_iter().map(instruction).chain(program).collect()
            }
        }
    }

    pub(crate) fn system(
        &self,
        operation: &'static str,
    ) -> impl FnOnce(io::Error) -> AfPacketError {
        let interface = self.interface.clone();
        move |reason| AfPacketError::System { interface, operation, reason }
    }

    /// Opens a packet socket in the interface's namespace that receives no frames yet. Also returns
    /// the properties of the interface.
    fn socket(&self) -> Result<(Socket, Link), AfPacketError> {
        self.socket_of_kind(libc::SOCK_RAW)
    }

    /// Same as [`Self::socket`]; with `SOCK_DGRAM`, the kernel adds and removes Ethernet headers.
    pub(crate) fn socket_of_kind(&self, kind: i32) -> Result<(Socket, Link), AfPacketError> {
        let link = Link::open_for_port(
            &self.interface,
            &[libc::ARPHRD_ETHER, libc::ARPHRD_LOOPBACK],
            "Ethernet (1) or loopback (772)",
        )?;
        // Protocol zero: the kernel queues no frame to the socket before it is bound.
        let socket =
            self.interface.namespace.enter(|| Socket::open(libc::AF_PACKET, kind, 0))?.map_err(
                |reason| match reason.raw_os_error() {
                    Some(libc::EPERM) => AfPacketError::Privilege(self.interface.clone()),
                    _ => self.system("opening a packet socket")(reason),
                },
            )?;
        Ok((socket, link))
    }
}

/// Builds a link-layer address. `protocol` is an EtherType; zero receives nothing.
pub(crate) fn address(index: u32, protocol: u16) -> libc::sockaddr_ll {
    let mut address = libc::sockaddr_ll::zeroed();
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = index as i32;
    address
}

const ADDRESS_BYTES: usize = size_of::<libc::sockaddr_ll>();

const SEND_BUFFER_MAX: usize = 64 << 20;

/// Enlarges the send buffer to hold all frames of the port. With `CAP_NET_ADMIN` it may exceed
/// `net.core.wmem_max`. A smaller buffer only means more flushes, so failure is not an error.
fn enlarge_send_buffer(socket: &Socket, bytes: usize) {
    let bytes = bytes.min(SEND_BUFFER_MAX) as i32;
    if socket.set_option(libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &bytes).is_err() {
        let _ = socket.set_option(libc::SOL_SOCKET, libc::SO_SNDBUF, &bytes);
    }
}

const VLAN_TAG_BYTES: usize = 4;
const MAC_ADDRESSES_BYTES: usize = 12;
/// Tag type of kernels that do not report the TPID.
const VLAN_ETHER_TYPE: u16 = 0x8100;
