//! The receiving half of an offload port.

use std::io;

use wirestorm_base::port::{
    Capabilities, FrameId, Offloads, PortError, Receive, ReceiveCounters, Received, StampPoint,
};
use wirestorm_base::time::{Duration, Instant};

use super::ingress::Ingress;
use super::messages::{ControlMessages, MESSAGES_MAX, Messages};
use super::{LONG_FRAME_MAX, VIRTIO_HEADER_BYTES, offloads};
use crate::af_packet::bound_socket::BoundSocket;
use crate::af_packet::receive::attach_filter;
use crate::af_packet::{
    AfPacketError, AfPacketOptions, MAC_ADDRESSES_BYTES, VLAN_ETHER_TYPE, VLAN_TAG_BYTES,
};
use crate::clock::{self, RealtimeOffset};
use crate::link::Link;
use crate::system::socket::Socket;

/// Number of frame buffers.
const FRAMES: usize = 256;
/// Free bytes before each frame: for the virtio header, then for a restored VLAN tag.
const HEADROOM: usize = 64;
const BUFFER_BYTES: usize = HEADROOM + LONG_FRAME_MAX.next_multiple_of(64);

/// IEEE 802's reserved EtherType: a socket bound to it gets errors of the interface but no frames.
const RESERVED_ETHER_TYPE: u16 = 0xFFFF;

/// A frame buffer.
struct Buffer {
    index: u32,
    bytes: Box<[u8]>,
    /// Start of the frame: the end of the headroom, or 4 bytes before it with a restored tag.
    start: usize,
}

impl Buffer {
    fn new(index: u32) -> Self {
        Self { index, bytes: vec![0; BUFFER_BYTES].into_boxed_slice(), start: HEADROOM }
    }

    /// Reads the virtio header that the kernel wrote before the frame.
    fn offloads(&self) -> Offloads {
        let header = self.bytes[..HEADROOM].last_chunk();
        header.map(offloads).unwrap_or_default()
    }

    /// Moves the MAC addresses and writes the outermost VLAN tag, which the kernel removed, after
    /// them.
    fn restore_tag(&mut self, tag: [u8; VLAN_TAG_BYTES]) {
        self.start = HEADROOM - VLAN_TAG_BYTES;
        self.bytes.copy_within(HEADROOM..HEADROOM + MAC_ADDRESSES_BYTES, self.start);
        self.bytes[HEADROOM + MAC_ADDRESSES_BYTES - VLAN_TAG_BYTES..][..VLAN_TAG_BYTES]
            .copy_from_slice(&tag);
    }
}

/// VLAN tag that the kernel removed from a frame, as TPID and TCI.
fn tag(auxdata: &libc::tpacket_auxdata) -> Option<[u8; VLAN_TAG_BYTES]> {
    if auxdata.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let is_known = auxdata.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
    let kind = if is_known { auxdata.tp_vlan_tpid } else { VLAN_ETHER_TYPE };
    let ([a, b], [c, d]) = (kind.to_be_bytes(), auxdata.tp_vlan_tci.to_be_bytes());
    Some([a, b, c, d])
}

/// Part of a merged frame that the port fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchExtent {
    /// The whole frame.
    Whole,
    /// The headers at least, and the whole of a frame that fits the interface's MTU. This is enough
    /// to count data without reading it. The buffer's remaining bytes are those of an earlier
    /// frame; the length is that of the whole frame.
    HeadersOnly,
}

/// Source of the frames.
enum Source {
    /// The packet socket, and the number of bytes to fetch of each frame.
    Socket { messages: Messages, bytes_max: usize },
    /// The ring; the packet socket only reports errors of the interface.
    Ring(Box<Ingress>),
}

/// Receives frames that the kernel merged (GRO) in one piece, from a packet socket. If only the
/// beginning of frames is needed and the kernel supports it (Linux 6.6), from a ring filled by a
/// BPF program.
///
/// The arrival time is the time of the fetch, unless [`Self::open_timed`] requests the kernel's
/// time. The port restores VLAN tags that the kernel removed.
pub struct OffloadReceive {
    bound: BoundSocket,
    source: Source,
    frames: Frames,
    capabilities: Capabilities,
}

/// Frame buffers, and counters of the delivered frames.
struct Frames {
    /// Free buffers. The port reuses the last released buffer first, since it is still in the
    /// cache.
    free: Vec<Buffer>,
    /// Buffers in use, by index.
    in_use: Box<[Option<Buffer>]>,
    queue: u32,
    delivered: u64,
    taken_bytes: u64,
}

impl OffloadReceive {
    /// Opens a socket that receives all frames arriving on the interface, but not those that it
    /// sends. Ignores `options.fanout`.
    ///
    /// # Errors
    /// Fails if the interface does not exist, is down or is not Ethernet, if the process lacks
    /// `CAP_NET_RAW`, or if the filter is invalid.
    pub fn open(options: &AfPacketOptions, fetched: FetchExtent) -> Result<Self, AfPacketError> {
        Self::open_with(options, fetched, ControlMessages::Frame)
    }

    /// Same as [`Self::open`] for whole frames, with the kernel's arrival time, which costs some
    /// CPU time for each frame.
    ///
    /// # Errors
    /// Same as [`Self::open`].
    pub fn open_timed(options: &AfPacketOptions) -> Result<Self, AfPacketError> {
        Self::open_with(options, FetchExtent::Whole, ControlMessages::MetadataAndTime)
    }

    fn open_with(
        options: &AfPacketOptions,
        fetched: FetchExtent,
        control_messages: ControlMessages,
    ) -> Result<Self, AfPacketError> {
        let (socket, link) = options.socket()?;
        attach_filter(&socket, &options.filter)
            .map_err(options.system("attaching the filter (is it a valid program?)"))?;
        if control_messages == ControlMessages::MetadataAndTime {
            socket
                .set_option(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1_i32)
                .map_err(options.system("setting SO_TIMESTAMPNS"))?;
        }
        let bytes_max = match fetched {
            FetchExtent::Whole => BUFFER_BYTES - HEADROOM,
            FetchExtent::HeadersOnly => link.frame_length_max(),
        };
        for (name, what) in [
            (libc::PACKET_VNET_HDR, "setting PACKET_VNET_HDR"),
            (libc::PACKET_AUXDATA, "setting PACKET_AUXDATA"),
        ] {
            socket.set_option(libc::SOL_PACKET, name, &1_i32).map_err(options.system(what))?;
        }
        let room = options.receive_ring_bytes as i32;
        socket
            .set_option(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &room)
            .or_else(|_| socket.set_option(libc::SOL_SOCKET, libc::SO_RCVBUF, &room))
            .map_err(options.system("setting SO_RCVBUF"))?;
        let bound = BoundSocket::bind(options, socket, &link, libc::ETH_P_ALL as u16)?;
        let messages = Messages::new(control_messages);
        Ok(Self::new(options, &link, bound, Source::Socket { messages, bytes_max }))
    }

    /// Attaches a BPF program to the interface's ingress that copies frames into a ring, of long
    /// frames the beginning ([`FetchExtent::HeadersOnly`]). If the host has no address on the interface,
    /// the program drops TCP and UDP, which the network stack would drop anyway. All other frames
    /// go on to the stack. The ring holds 8 MiB of frames; the port counts further frames as
    /// missed. Ignores the options `filter`, `fanout` and `receive_ring_bytes`.
    ///
    /// # Errors
    /// Same as [`Self::open`]. Also fails before Linux 6.6, or if the process lacks `CAP_BPF`,
    /// `CAP_PERFMON` or `CAP_NET_ADMIN`.
    pub fn open_ring(options: &AfPacketOptions) -> Result<Self, AfPacketError> {
        let (socket, link) = options.socket()?;
        let bound = BoundSocket::bind(options, socket, &link, RESERVED_ETHER_TYPE)?;
        let ingress = Ingress::attach(&options.interface, &link)
            .map_err(options.system("attaching a program to its ingress"))?;
        Ok(Self::new(options, &link, bound, Source::Ring(Box::new(ingress))))
    }

    fn new(options: &AfPacketOptions, link: &Link, bound: BoundSocket, source: Source) -> Self {
        let frame_length_max = link.frame_length_max();
        Self {
            bound,
            source,
            frames: Frames {
                free: (0..FRAMES as u32).rev().map(Buffer::new).collect(),
                in_use: (0..FRAMES).map(|_| None).collect(),
                queue: options.queue,
                delivered: 0,
                taken_bytes: 0,
            },
            capabilities: link.socket_capabilities(
                frame_length_max,
                FRAMES,
                MESSAGES_MAX,
                StampPoint::Process,
            ),
        }
    }

    /// Waits up to `patience` for frames. Returns early on a signal, and if the interface failed,
    /// which [`Receive::receive`] then reports.
    pub fn wait(&self, patience: Duration) {
        let ring = match &self.source {
            Source::Socket { .. } => None,
            Source::Ring(ingress) => Some(ingress.fd()),
        };
        self.bound.socket.wait_readable_or(ring, patience);
    }

    /// CPU time of the program that fills the ring, on all CPUs. `None` without a program, or if
    /// the kernel does not measure it (`sysctl kernel.bpf_stats_enabled=1`).
    pub fn ingress_time(&self) -> Option<Duration> {
        match &self.source {
            Source::Socket { .. } => None,
            Source::Ring(ingress) => ingress.cpu_time(),
        }
    }
}

impl Frames {
    /// Fetches at most `count_max` messages from the socket.
    fn fill_from_socket(
        &mut self,
        socket: &Socket,
        (messages, bytes_max): (&mut Messages, usize),
        count_max: usize,
        batch: &mut Vec<Received>,
    ) -> io::Result<usize> {
        let first = self.free.len() - count_max;
        let room = HEADROOM - VIRTIO_HEADER_BYTES..HEADROOM + bytes_max;
        let rooms = self.free[first..].iter_mut().rev().map(|it| &mut it.bytes[room.clone()]);
        let count = messages.receive(socket, rooms)?;
        let (fetched, mut offset) = (clock::now(), None);
        for place in 0..count {
            let Some(buffer) = self.free.pop() else { break };
            let (length, offloads) = (messages.length(place), buffer.offloads());
            let arrival = messages.time(place).map_or(fetched, |time| {
                offset.get_or_insert_with(RealtimeOffset::read).to_monotonic(time)
            });
            let tag = messages.metadata(place).and_then(tag);
            batch.push(self.deliver(buffer, length, tag, (offloads, arrival)));
        }
        Ok(count)
    }

    /// Reads at most `count_max` frames from the ring.
    fn fill_from_ring(
        &mut self,
        ingress: &mut Ingress,
        count_max: usize,
        batch: &mut Vec<Received>,
    ) -> usize {
        let arrival = clock::now();
        for count in 0..count_max {
            let Some(arrived) = ingress.next() else { return count };
            let Some(mut buffer) = self.free.pop() else { return count };
            let present = arrived.bytes();
            buffer.bytes[HEADROOM..][..present.len()].copy_from_slice(present);
            let metadata = (arrived.offloads(), arrival);
            batch.push(self.deliver(buffer, arrived.length(), arrived.tag(), metadata));
        }
        count_max
    }

    /// Delivers the frame in a buffer and restores the VLAN tag that the kernel removed.
    fn deliver(
        &mut self,
        mut buffer: Buffer,
        length_on_wire: usize,
        tag: Option<[u8; VLAN_TAG_BYTES]>,
        (offloads, arrival): (Offloads, Instant),
    ) -> Received {
        let mut original_length = length_on_wire;
        let mut length = original_length.min(BUFFER_BYTES - HEADROOM);
        buffer.start = HEADROOM;
        if let Some(tag) = tag {
            buffer.restore_tag(tag);
            length += VLAN_TAG_BYTES;
            original_length += VLAN_TAG_BYTES;
        }
        self.delivered += 1;
        self.taken_bytes += original_length as u64;
        let frame = FrameId::from_index(buffer.index);
        let index = buffer.index as usize;
        self.in_use[index] = Some(buffer);
        Received { frame, length, original_length, arrival, queue: self.queue, offloads }
    }
}

impl Receive for OffloadReceive {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn receive(&mut self, room: usize, batch: &mut Vec<Received>) -> Result<usize, PortError> {
        let Self { bound, source, frames, .. } = self;
        let count_max = room.min(frames.free.len()).min(MESSAGES_MAX);
        if count_max == 0 {
            return Ok(0);
        }
        let count = match source {
            Source::Socket { messages, bytes_max } => {
                let messages = (messages, *bytes_max);
                frames.fill_from_socket(&bound.socket, messages, count_max, batch)
            }
            Source::Ring(ingress) => match frames.fill_from_ring(ingress, count_max, batch) {
                // An empty ring may mean that the interface is down or gone.
                0 => return bound.check().map(|()| 0),
                count => Ok(count),
            },
        };
        count.or_else(|reason| match reason.raw_os_error() {
            None | Some(libc::EAGAIN | libc::EINTR) => Ok(0),
            Some(error) => Err(bound.port_error(error)),
        })
    }

    fn frame(&self, received: &Received) -> &[u8] {
        match &self.frames.in_use[received.frame.index() as usize] {
            Some(buffer) => &buffer.bytes[buffer.start..buffer.start + received.length],
            None => unreachable!("a frame's handle is its right to the buffer"),
        }
    }

    fn release(&mut self, received: Received) {
        self.frames.free.extend(self.frames.in_use[received.frame.index() as usize].take());
    }

    /// Makes one system call: do not call this for every batch.
    fn received(&self) -> ReceiveCounters {
        let missed = match &self.source {
            Source::Socket { .. } => self.bound.missed(),
            Source::Ring(ingress) => ingress.missed(),
        };
        let Frames { delivered: taken, taken_bytes, .. } = self.frames;
        ReceiveCounters {
            received: taken + missed,
            received_bytes: taken_bytes,
            rx_dropped: missed,
        }
    }
}
