//! The receiving half.

use wirestorm_base::port::{
    Capabilities, FrameId, Offloads, PortError, Receive, ReceiveCounters, Received, StampPoint,
};
use wirestorm_base::time::Duration;

use super::messages::{MESSAGES_MAX, Messages};
use super::{LONG_FRAME_MAX, VIRTIO_HEADER_BYTES, offloads};
use crate::af_packet::hearing::Hearing;
use crate::af_packet::{
    AfPacketError, AfPacketOptions, MAC_ADDRESSES_BYTES, VLAN_ETHER_TYPE, VLAN_TAG_BYTES,
};
use crate::clock;

/// Frames that may be in use at once.
const FRAMES: usize = 256;
/// Free bytes before each frame, for the virtio header, and then for the VLAN tag that is put back.
const HEADROOM: usize = 64;
const BUFFER_BYTES: usize = HEADROOM + LONG_FRAME_MAX.next_multiple_of(64);

/// Room for a frame.
struct Buffer {
    index: u32,
    bytes: Box<[u8]>,
    /// Where the frame begins: behind the headroom, or in it with a tag.
    start: usize,
}

impl Buffer {
    fn new(index: u32) -> Self {
        Self { index, bytes: vec![0; BUFFER_BYTES].into_boxed_slice(), start: HEADROOM }
    }

    /// What the header says that the kernel has put before the frame.
    fn offloads(&self) -> Offloads {
        let header = self.bytes[..HEADROOM].last_chunk();
        header.map(offloads).unwrap_or_default()
    }

    /// Writes the outermost VLAN tag, which the kernel took out, to where it was on the wire.
    fn put_tag_back(&mut self, tag: [u8; VLAN_TAG_BYTES]) {
        self.start = HEADROOM - VLAN_TAG_BYTES;
        self.bytes.copy_within(HEADROOM..HEADROOM + MAC_ADDRESSES_BYTES, self.start);
        self.bytes[HEADROOM + MAC_ADDRESSES_BYTES - VLAN_TAG_BYTES..][..VLAN_TAG_BYTES]
            .copy_from_slice(&tag);
    }
}

/// The tag that the kernel took out of a frame.
fn tag(told: &libc::tpacket_auxdata) -> Option<[u8; VLAN_TAG_BYTES]> {
    if told.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let is_known = told.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
    let kind = if is_known { told.tp_vlan_tpid } else { VLAN_ETHER_TYPE };
    let ([a, b], [c, d]) = (kind.to_be_bytes(), told.tp_vlan_tci.to_be_bytes());
    Some([a, b, c, d])
}

/// What is fetched of a frame that was put together of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// All of it.
    Whole,
    /// As much as the interface's own frames may be long: enough for those who count data and do
    /// not look at it. What is behind that is as long as it was, and some earlier frame's.
    Beginning,
}

/// Receives on a packet socket, what the kernel has put together in one piece.
///
/// The arrival time is that at which frames are fetched. VLAN tags that the kernel took out are back
/// in the frame.
pub struct OffloadReceive {
    hearing: Hearing,
    /// The last given back is the next filled, so that it is still in the cache.
    free: Vec<Buffer>,
    /// Those in use, each at its index.
    in_use: Box<[Option<Buffer>]>,
    messages: Messages,
    /// Bytes that are fetched of a frame at most.
    fetched_max: usize,
    queue: u32,
    capabilities: Capabilities,
    taken: u64,
    taken_bytes: u64,
}

impl OffloadReceive {
    /// Opens a socket for receiving all frames that arrive on the interface; those it sends
    /// itself are left out. Of the options, a filter and a fan-out group are not looked at.
    ///
    /// # Errors
    /// Where there is no such interface, it is down or not Ethernet, or the process lacks
    /// `CAP_NET_RAW`.
    pub fn open(options: &AfPacketOptions, fetched: Fetched) -> Result<Self, AfPacketError> {
        let (socket, link) = options.socket()?;
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
            .map_err(options.system("asking for memory that frames wait in"))?;
        Ok(Self {
            hearing: Hearing::begin(options, socket, &link)?,
            free: (0..FRAMES as u32).rev().map(Buffer::new).collect(),
            in_use: (0..FRAMES).map(|_| None).collect(),
            messages: Messages::new(true),
            fetched_max: match fetched {
                Fetched::Whole => BUFFER_BYTES - HEADROOM,
                Fetched::Beginning => link.frame_length_max(),
            },
            queue: options.queue,
            capabilities: link.socket_capabilities(
                link.frame_length_max(),
                FRAMES,
                MESSAGES_MAX,
                StampPoint::Process,
            ),
            taken: 0,
            taken_bytes: 0,
        })
    }

    /// Waits until frames have arrived, for so long at most; returns early on a signal, and where
    /// the interface failed, which [`Receive::receive`] tells.
    pub fn wait(&self, patience: Duration) {
        self.hearing.socket.wait_readable(patience);
    }
}

impl Receive for OffloadReceive {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn receive(&mut self, room: usize, batch: &mut Vec<Received>) -> Result<usize, PortError> {
        let wanted = room.min(self.free.len()).min(MESSAGES_MAX);
        if wanted == 0 {
            return Ok(0);
        }
        let first = self.free.len() - wanted;
        let room = HEADROOM - VIRTIO_HEADER_BYTES..HEADROOM + self.fetched_max;
        let rooms = self.free[first..].iter_mut().rev().map(|it| &mut it.bytes[room.clone()]);
        let count = match self.messages.receive(&self.hearing.socket, rooms) {
            Ok(count) => count,
            Err(reason) => {
                return match reason.raw_os_error() {
                    None | Some(libc::EAGAIN | libc::EINTR) => Ok(0),
                    Some(error) => Err(self.hearing.failed(error)),
                };
            }
        };
        let arrival = clock::now();
        for place in 0..count {
            let Some(mut buffer) = self.free.pop() else { break };
            let mut original_length = self.messages.length(place);
            let mut length = original_length.min(BUFFER_BYTES - HEADROOM);
            buffer.start = HEADROOM;
            let offloads = buffer.offloads();
            if let Some(tag) = self.messages.told(place).and_then(tag) {
                buffer.put_tag_back(tag);
                length += VLAN_TAG_BYTES;
                original_length += VLAN_TAG_BYTES;
            }
            self.taken += 1;
            self.taken_bytes += original_length as u64;
            let (frame, queue) = (FrameId::from_index(buffer.index), self.queue);
            batch.push(Received { frame, length, original_length, arrival, queue, offloads });
            let index = buffer.index as usize;
            self.in_use[index] = Some(buffer);
        }
        Ok(count)
    }

    fn frame(&self, received: &Received) -> &[u8] {
        match &self.in_use[received.frame.index() as usize] {
            Some(buffer) => &buffer.bytes[buffer.start..buffer.start + received.length],
            None => unreachable!("a frame's handle is its right to the buffer"),
        }
    }

    fn release(&mut self, received: Received) {
        self.free.extend(self.in_use[received.frame.index() as usize].take());
    }

    /// One system call: not for every batch.
    fn received(&self) -> ReceiveCounters {
        let missed = self.hearing.missed();
        ReceiveCounters { received: self.taken + missed, received_bytes: self.taken_bytes, missed }
    }
}
