//! One AF_XDP socket with its memory, rings and system calls.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, RawFd};
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

/// `XDP_PACKET_HEADROOM`: bytes that the kernel keeps free before a received frame.
const HEADROOM_BYTES: usize = 256;
/// The largest chunk: one page.
const CHUNK_BYTES_MAX: usize = 4096;
const CHUNK_BYTES_MIN: usize = 2048;
/// `XDP_MAX_TX_SKB_BUDGET` (Linux 6.17): frames that one call sends in copy mode.
const MAX_TRANSMIT_BUDGET: i32 = 9;

/// The kernel releases a queue or an interface some time after the last descriptor was closed. So
/// opening one that is in use is retried for two seconds.
const RELEASE_WAIT: StdDuration = StdDuration::from_millis(5);
const RELEASE_WAITS_MAX: u32 = 400;

/// A bound socket, shared by the halves of a port.
pub(super) struct XdpSocket {
    socket: Socket,
    /// Socket for interface ioctls, which an AF_XDP socket does not support.
    ioctl_socket: Socket,
    pub(super) interface: InterfaceName,
    pub(super) zero_copy: bool,
    pub(super) need_wakeup: bool,
    pub(super) busy_poll: bool,
}

/// An opened queue.
pub(super) struct Queue {
    pub(super) socket: Arc<XdpSocket>,
    pub(super) transmit: Option<TransmitHalf>,
    pub(super) receive: Option<ReceiveHalf>,
}

/// Resources of the transmitting half.
pub(super) struct TransmitHalf {
    pub(super) chunks: Chunks,
    pub(super) transmit: Producer<libc::xdp_desc>,
    pub(super) completion: Consumer<u64>,
    pub(super) frame_length_max: usize,
}

/// Resources of the receiving half.
pub(super) struct ReceiveHalf {
    pub(super) chunks: Chunks,
    pub(super) receive: Consumer<libc::xdp_desc>,
    pub(super) fill: Producer<u64>,
    pub(super) frame_length_max: usize,
}

impl Queue {
    /// Opens a socket and binds it to a queue. Call this in the interface's namespace.
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
        // Without this option a call sends 32 frames, and a flush needs more calls.
        let _ = socket.set_option(libc::SOL_XDP, MAX_TRANSMIT_BUDGET, &options.transmit_frames);

        let need_wakeup = bind(&socket, options, link.index, number)?;
        let found: libc::xdp_options = socket
            .option(libc::SOL_XDP, libc::XDP_OPTIONS)
            .map_err(options.system("reading XDP_OPTIONS"))?;
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
            ioctl_socket: questions,
            interface: options.interface.clone(),
            zero_copy,
            need_wakeup,
            busy_poll,
        });
        Ok(Self { socket, transmit, receive })
    }
}

/// Binds the socket; returns whether the kernel supports need-wakeup (Linux 5.4).
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
        retry_while_busy(|| socket.bind(&address, size_of::<libc::sockaddr_xdp>()))
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

/// Retries an operation while it fails with `EBUSY`, at most [`RELEASE_WAITS_MAX`] times.
pub(super) fn retry_while_busy<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
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
    /// Wakes the kernel to send frames. In copy mode the call does the work.
    pub(super) fn wake_transmission(&self) -> io::Result<()> {
        self.socket.send(&[], libc::MSG_DONTWAIT).map(|_| ())
    }

    /// Wakes the kernel to receive frames. With busy polling the call does the work.
    pub(super) fn wake_reception(&self) -> io::Result<()> {
        self.socket.receive(&mut [], libc::MSG_DONTWAIT).map(|_| ())
    }

    /// Reads the kernel's statistics of this socket; zeroes on error.
    pub(super) fn statistics(&self) -> libc::xdp_statistics {
        let statistics = self.socket.option(libc::SOL_XDP, libc::XDP_STATISTICS);
        statistics.unwrap_or_else(|_| libc::xdp_statistics::zeroed())
    }

    /// Whether every batch needs a wake-up call, whatever the rings' flags.
    pub(super) fn must_always_wake(&self) -> bool {
        self.busy_poll || !self.need_wakeup
    }

    /// Checks that the interface exists and is up.
    pub(super) fn check_interface(&self) -> Result<(), PortError> {
        match self.ioctl_socket.interface_flags(self.interface.name()) {
            None => Err(self.interface.removed_error()),
            Some(flags) if flags & libc::IFF_UP == 0 => Err(self.interface.down_error()),
            Some(_) => Ok(()),
        }
    }

    /// Waits up to `patience` for frames on one of these sockets. Returns early on a signal.
    pub(super) fn wait<'a>(sockets: impl Iterator<Item = &'a Self>, patience: Duration) {
        wait_any_readable(sockets.map(|socket| socket.socket.as_fd()), patience);
    }

    pub(super) fn fd(&self) -> RawFd {
        self.socket.fd()
    }
}

/// The rings of a socket. Fill and completion ring must exist even if they stay empty.
struct Rings {
    fill: Producer<u64>,
    completion: Consumer<u64>,
    receive: Option<Consumer<libc::xdp_desc>>,
    transmit: Option<Producer<libc::xdp_desc>>,
}

impl Rings {
    /// Each ring has room for all its frames, so none is ever full. The rings that the kernel
    /// consumes have twice the size: the kernel publishes its index only after a whole batch. In
    /// the meantime, frames of that batch may return and be pushed again.
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
