//! One AF_XDP socket: its memory, its rings, its calls.

use std::io;
use std::mem::size_of;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration as StdDuration;

use wirestorm_base::port::PortError;
use wirestorm_base::time::Duration;

use super::frame_memory::{Chunks, FrameMemory};
use super::ring::{Consumer, Layout, Producer};
use super::{AfXdpError, AfXdpOptions, CopyMode};
use crate::link::Link;
use crate::namespace::InterfaceName;
use crate::system::memory_map::MemoryMap;
use crate::system::socket::{Plain, Socket, wait_any_readable};

/// `XDP_PACKET_HEADROOM`: what the kernel keeps free before an arriving frame.
const HEADROOM_BYTES: usize = 256;
/// The largest chunk: a page.
const CHUNK_BYTES_MAX: usize = 4096;
const CHUNK_BYTES_MIN: usize = 2048;
/// `XDP_MAX_TX_SKB_BUDGET` (Linux 6.17): frames that one call of a copying socket sends.
const MAX_TRANSMIT_BUDGET: i32 = 9;

/// The kernel sets a queue or an interface free some time after the last descriptor was closed,
/// so one that is in use is asked for again for a third of a second.
const RELEASE_WAIT: StdDuration = StdDuration::from_millis(5);
const RELEASE_WAITS_MAX: u32 = 64;

/// A bound socket, shared by the halves of a port.
pub(super) struct XdpSocket {
    socket: Socket,
    /// An AF_XDP socket does not answer questions about interfaces; this one does.
    questions: Socket,
    pub(super) interface: InterfaceName,
    pub(super) zero_copy: bool,
    pub(super) need_wakeup: bool,
    pub(super) busy_poll: bool,
}

/// A queue that was just opened.
pub(super) struct Queue {
    pub(super) socket: Arc<XdpSocket>,
    pub(super) transmit: Option<TransmitHalf>,
    pub(super) receive: Option<ReceiveHalf>,
}

/// What a transmitting half works with.
pub(super) struct TransmitHalf {
    pub(super) chunks: Chunks,
    pub(super) transmit: Producer<libc::xdp_desc>,
    pub(super) completion: Consumer<u64>,
    pub(super) frame_length_max: usize,
}

/// What a receiving half works with.
pub(super) struct ReceiveHalf {
    pub(super) chunks: Chunks,
    pub(super) receive: Consumer<libc::xdp_desc>,
    pub(super) fill: Producer<u64>,
    pub(super) frame_length_max: usize,
}

impl Queue {
    /// Opens a socket and binds it to a queue. To be called in the interface's namespace.
    pub(super) fn open(
        options: &AfXdpOptions,
        link: &Link,
        number: u32,
    ) -> Result<Self, AfXdpError> {
        let socket = Socket::open(libc::AF_XDP, libc::SOCK_RAW, 0)
            .map_err(options.system("opening an AF_XDP socket"))?;
        let questions = Socket::open(libc::AF_INET, libc::SOCK_DGRAM, 0)
            .map_err(options.system("opening a socket"))?;

        let length = link.frame_length_max();
        let chunk_bytes = match length + HEADROOM_BYTES {
            0..=CHUNK_BYTES_MIN => CHUNK_BYTES_MIN,
            _ => CHUNK_BYTES_MAX,
        };
        let transmit_chunks = if options.transmits() { options.transmit_frames } else { 0 };
        let receive_chunks = if options.receives() { options.receive_frames } else { 0 };
        let memory = FrameMemory::register(&socket, transmit_chunks + receive_chunks, chunk_bytes)
            .map_err(|reason| match reason.raw_os_error() {
                Some(libc::ENOBUFS) => AfXdpError::LockedMemory {
                    interface: options.interface.clone(),
                    bytes: u64::from(transmit_chunks + receive_chunks) * chunk_bytes as u64,
                },
                _ => options.system("registering memory")(reason),
            })?;
        let rings = Rings::make(&socket, options).map_err(options.system("making the rings"))?;

        let busy_poll = options.busy_poll.is_some_and(|poll| {
            let set = |name, value: u32| socket.set_option(libc::SOL_SOCKET, name, &value);
            set(libc::SO_PREFER_BUSY_POLL, 1)
                .and_then(|()| set(libc::SO_BUSY_POLL, poll.microseconds))
                .and_then(|()| set(libc::SO_BUSY_POLL_BUDGET, poll.budget))
                .is_ok()
        });
        // Without it a call sends 32 frames, and the flush calls more often.
        let _ = socket.set_option(libc::SOL_XDP, MAX_TRANSMIT_BUDGET, &options.transmit_frames);

        let need_wakeup = bind(&socket, options, link.index, number)?;
        let found: libc::xdp_options = socket
            .option(libc::SOL_XDP, libc::XDP_OPTIONS)
            .map_err(options.system("asking for the socket's mode"))?;
        let zero_copy = found.flags & libc::XDP_OPTIONS_ZEROCOPY != 0;
        let transmit = rings.transmit.map(|transmit| TransmitHalf {
            chunks: memory.chunks(0, transmit_chunks),
            transmit,
            completion: rings.completion,
            frame_length_max: length.min(chunk_bytes),
        });
        let receive = rings.receive.map(|receive| ReceiveHalf {
            chunks: memory.chunks(transmit_chunks, receive_chunks),
            receive,
            fill: rings.fill,
            frame_length_max: length.min(chunk_bytes - HEADROOM_BYTES),
        });
        let socket = Arc::new(XdpSocket {
            socket,
            questions,
            interface: options.interface.clone(),
            zero_copy,
            need_wakeup,
            busy_poll,
        });
        Ok(Self { socket, transmit, receive })
    }
}

/// Binds, and says whether the kernel will tell when it wants to be called (Linux 5.4).
fn bind(
    socket: &Socket,
    options: &AfXdpOptions,
    interface_index: u32,
    queue: u32,
) -> Result<bool, AfXdpError> {
    let copy = match options.copy {
        CopyMode::Auto => 0,
        CopyMode::Copy => libc::XDP_COPY,
        CopyMode::ZeroCopy => libc::XDP_ZEROCOPY,
    };
    let mut address = libc::sockaddr_xdp::zeroed();
    address.sxdp_family = libc::AF_XDP as u16;
    address.sxdp_ifindex = interface_index;
    address.sxdp_queue_id = queue;
    let mut bind_with = |flags| {
        address.sxdp_flags = flags;
        while_busy(|| socket.bind(&address, size_of::<libc::sockaddr_xdp>()))
    };
    let (outcome, need_wakeup) = match bind_with(copy | libc::XDP_USE_NEED_WAKEUP) {
        Err(reason) if reason.raw_os_error() == Some(libc::EINVAL) => (bind_with(copy), false),
        outcome => (outcome, true),
    };
    let interface = options.interface.clone();
    outcome.map(|()| need_wakeup).map_err(|reason| match reason.raw_os_error() {
        Some(libc::EBUSY) => AfXdpError::QueueInUse { interface, queue },
        Some(libc::EOPNOTSUPP | libc::EINVAL) if options.copy == CopyMode::ZeroCopy => {
            AfXdpError::NoZeroCopy { interface }
        }
        _ => options.system("binding an AF_XDP socket")(reason),
    })
}

/// Repeats what finds something in use, a bounded number of times.
pub(super) fn while_busy<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..RELEASE_WAITS_MAX {
        match attempt() {
            Err(reason) if reason.raw_os_error() == Some(libc::EBUSY) => {
                std::thread::sleep(RELEASE_WAIT);
            }
            outcome => return outcome,
        }
    }
    attempt()
}

impl XdpSocket {
    /// Tells the kernel that there are frames to send, and does its work where it copies.
    pub(super) fn wake_transmission(&self) -> io::Result<()> {
        self.socket.send(&[], libc::MSG_DONTWAIT).map(|_| ())
    }

    /// Tells the kernel that there is room for frames, and does its work where it busy-polls.
    pub(super) fn wake_reception(&self) -> io::Result<()> {
        self.socket.receive(&mut [], libc::MSG_DONTWAIT).map(|_| ())
    }

    /// What the kernel counts for this socket; zeroes where it cannot be asked.
    pub(super) fn statistics(&self) -> libc::xdp_statistics {
        let statistics = self.socket.option(libc::SOL_XDP, libc::XDP_STATISTICS);
        statistics.unwrap_or_else(|_| libc::xdp_statistics::zeroed())
    }

    /// Whether the kernel is to be called whatever its rings say.
    pub(super) fn must_always_wake(&self) -> bool {
        self.busy_poll || !self.need_wakeup
    }

    /// Looks whether the interface is there and up.
    pub(super) fn check_interface(&self) -> Result<(), PortError> {
        match self.questions.interface_flags(self.interface.name()) {
            None => Err(self.interface.is_gone()),
            Some(flags) if flags & libc::IFF_UP == 0 => Err(self.interface.went_down()),
            Some(_) => Ok(()),
        }
    }

    /// Waits until frames have arrived at one of these, for so long at most; returns early on a
    /// signal.
    pub(super) fn wait<'a>(sockets: impl Iterator<Item = &'a Self>, patience: Duration) {
        wait_any_readable(sockets.map(|socket| &socket.socket), patience);
    }

    pub(super) fn fd(&self) -> RawFd {
        self.socket.fd()
    }
}

/// The rings of a socket. Fill and completion ring must be there even where they stay empty.
struct Rings {
    fill: Producer<u64>,
    completion: Consumer<u64>,
    receive: Option<Consumer<libc::xdp_desc>>,
    transmit: Option<Producer<libc::xdp_desc>>,
}

impl Rings {
    /// Each ring holds all frames that may ever be in it, so none is ever full. Where the kernel
    /// consumes, that is twice the frames: it says how far it has read only after a whole
    /// batch, and meanwhile the frames of that batch may come back and be put in once more.
    fn make(socket: &Socket, options: &AfXdpOptions) -> io::Result<Self> {
        let set = |name, size: u32| socket.set_option(libc::SOL_XDP, name, &size);
        let (fill_size, receive_size) = (options.receive_frames * 2, options.receive_frames);
        let (transmit_size, completion_size) =
            (options.transmit_frames * 2, options.transmit_frames);
        set(libc::XDP_UMEM_FILL_RING, fill_size)?;
        set(libc::XDP_UMEM_COMPLETION_RING, completion_size)?;
        if options.receives() {
            set(libc::XDP_RX_RING, receive_size)?;
        }
        if options.transmits() {
            set(libc::XDP_TX_RING, transmit_size)?;
        }
        let offsets: libc::xdp_mmap_offsets =
            socket.option(libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)?;
        let map = |offsets: libc::xdp_ring_offset, size: u32, entry_bytes: usize, place: i64| {
            let layout = Layout {
                producer: offsets.producer as usize,
                consumer: offsets.consumer as usize,
                flags: offsets.flags as usize,
                entries: offsets.desc as usize,
                size,
            };
            let length = layout.entries + size as usize * entry_bytes;
            Ok::<_, io::Error>((
                Arc::new(MemoryMap::of_socket(socket.fd(), length, place)?),
                layout,
            ))
        };
        const ADDRESS: usize = size_of::<u64>();
        const DESCRIPTOR: usize = size_of::<libc::xdp_desc>();
        let (fill, fill_layout) =
            map(offsets.fr, fill_size, ADDRESS, libc::XDP_UMEM_PGOFF_FILL_RING as i64)?;
        let (completion, completion_layout) =
            map(offsets.cr, completion_size, ADDRESS, libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64)?;
        let receive_ring = match options.receives() {
            true => {
                let (ring, layout) =
                    map(offsets.rx, receive_size, DESCRIPTOR, libc::XDP_PGOFF_RX_RING)?;
                Some(Consumer::new(ring, layout)?)
            }
            false => None,
        };
        let transmit_ring = match options.transmits() {
            true => {
                let (ring, layout) =
                    map(offsets.tx, transmit_size, DESCRIPTOR, libc::XDP_PGOFF_TX_RING)?;
                Some(Producer::new(ring, layout)?)
            }
            false => None,
        };
        Ok(Self {
            fill: Producer::new(fill, fill_layout)?,
            completion: Consumer::new(completion, completion_layout)?,
            receive: receive_ring,
            transmit: transmit_ring,
        })
    }
}
