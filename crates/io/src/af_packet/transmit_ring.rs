//! `PACKET_TX_RING`, version 2 (`Documentation/networking/packet_mmap.rst`).
//!
//! A slot belongs to this process while its status is `AVAILABLE`, to the kernel from
//! `SEND_REQUEST` until the kernel sets it back. The kernel looks at the slots in order, and
//! only while a `send` call of this socket runs.

use std::io;
use std::mem::{offset_of, size_of};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::system::memory_map::MemoryMap;
use crate::system::socket::{Plain, Socket};

/// `struct virtio_net_hdr`, which stands before each frame.
const VIRTIO_HEADER_BYTES: usize = 10;
/// Where its field `hdr_len` is.
const VIRTIO_HEADER_LENGTH: usize = 2;
/// The frame stands behind the slot's own header.
const FRAME_OFFSET: usize = size_of::<libc::tpacket2_hdr>() + VIRTIO_HEADER_BYTES;

/// As much of a frame is copied into the linear part of the socket buffer; what is longer is
/// referred to where it is. So no socket buffer needs more than one page in a row.
const LINEAR_MAX: usize = 3 * 1024;

/// A ring is divided into blocks of at least a page; slots do not cross them.
const BLOCK_BYTES_MIN: usize = 64 * 1024;

const _: () = assert!(size_of::<libc::tpacket2_hdr>() == 32, "as TPACKET2_HDRLEN has it");

/// The ring, and how far it is filled.
pub(super) struct TransmitRing {
    map: MemoryMap,
    slots: usize,
    slot_bytes: usize,
    /// Frames ever put in; slot `pushed % slots` is the next to fill.
    pushed: u64,
    /// Frames ever taken out; slot `collected % slots` is the oldest.
    collected: u64,
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It left; so many bytes.
    Sent(usize),
    /// It was withdrawn before.
    Withdrawn,
}

impl TransmitRing {
    /// Gives a socket a ring of `slots` (a power of two) frames of at most `frame_length_max`
    /// bytes.
    pub(super) fn open(socket: &Socket, slots: usize, frame_length_max: usize) -> io::Result<Self> {
        let option = |name: i32, value: i32| socket.set_option(libc::SOL_PACKET, name, &value);
        option(libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V2 as i32)?;
        // A slot with an impossible length is skipped rather than stopping the ring; this is
        // how frames are withdrawn. Lengths that come from callers were checked before.
        option(libc::PACKET_LOSS, 1)?;
        option(libc::PACKET_VNET_HDR, 1)?;
        let slot_bytes = (FRAME_OFFSET + frame_length_max).next_power_of_two();
        let block_bytes = slot_bytes.max(BLOCK_BYTES_MIN).min(slot_bytes * slots);
        let mut request = libc::tpacket_req::zeroed();
        request.tp_block_size = block_bytes as u32;
        request.tp_block_nr = (slot_bytes * slots / block_bytes) as u32;
        request.tp_frame_size = slot_bytes as u32;
        request.tp_frame_nr = slots as u32;
        socket.set_option(libc::SOL_PACKET, libc::PACKET_TX_RING, &request)?;
        let map = MemoryMap::of_socket(socket.fd(), slot_bytes * slots, 0)?;
        Ok(Self { map, slots, slot_bytes, pushed: 0, collected: 0 })
    }

    /// Frames put in and not taken out.
    pub(super) fn occupied(&self) -> usize {
        (self.pushed - self.collected) as usize
    }

    /// Puts a frame in.
    ///
    /// # Panics
    /// Where the ring is full or the frame too long: the caller keeps count of both.
    pub(super) fn push(&mut self, frame: &[u8]) {
        assert!(self.occupied() < self.slots, "the transmit ring is full");
        let slot = self.slot(self.pushed);
        let length = frame.len();
        assert!(FRAME_OFFSET + length <= self.slot_bytes, "a frame of {length} bytes");
        let linear = length.min(LINEAR_MAX) as u16;
        // SAFETY: the slot is ours: it was never used, or `collect` found it available. It
        // lies within the mapping, and the assertion keeps the frame within the slot. The
        // header's fields are aligned because slots are.
        unsafe {
            let header = slot.cast::<libc::tpacket2_hdr>();
            (*header).tp_len = (VIRTIO_HEADER_BYTES + length) as u32;
            let virtio = slot.add(size_of::<libc::tpacket2_hdr>());
            virtio.write_bytes(0, VIRTIO_HEADER_BYTES);
            virtio.add(VIRTIO_HEADER_LENGTH).cast::<u16>().write_unaligned(linear);
            slot.add(FRAME_OFFSET).copy_from_nonoverlapping(frame.as_ptr(), length);
        }
        self.status(self.pushed).store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
        self.pushed += 1;
    }

    /// Whether the kernel has frames to look at: it takes them in order, so the last one tells.
    pub(super) fn is_waiting(&self) -> bool {
        self.occupied() > 0 && self.waits(self.pushed - 1)
    }

    /// Takes out the oldest frame, if the kernel is done with it.
    pub(super) fn collect(&mut self) -> Option<Outcome> {
        if self.occupied() == 0 {
            return None;
        }
        let status = self.status(self.collected).load(Ordering::Acquire);
        if status & (libc::TP_STATUS_SEND_REQUEST | libc::TP_STATUS_SENDING) != 0 {
            return None;
        }
        let header = self.slot(self.collected).cast::<libc::tpacket2_hdr>();
        // SAFETY: the slot is ours by its status, and its header within the mapping.
        let length = unsafe { (*header).tp_len } as usize;
        self.collected += 1;
        Some(match length.checked_sub(VIRTIO_HEADER_BYTES) {
            Some(length) if length > 0 => Outcome::Sent(length),
            _ => Outcome::Withdrawn,
        })
    }

    /// Makes the kernel skip what it has not looked at; returns how many frames that were. No
    /// `send` call may run meanwhile, which `&mut self` beside the socket's owner ensures.
    pub(super) fn withdraw(&mut self) -> usize {
        let mut withdrawn = 0;
        let mut position = self.pushed;
        while position > self.collected && self.waits(position - 1) {
            position -= 1;
            let header = self.slot(position).cast::<libc::tpacket2_hdr>();
            // SAFETY: the kernel has not looked at the slot, and does so in `send` only.
            let length = unsafe { &mut (*header).tp_len };
            withdrawn += usize::from(*length != 0);
            *length = 0;
        }
        withdrawn
    }

    fn waits(&self, position: u64) -> bool {
        let status = self.status(position).load(Ordering::Acquire);
        status & libc::TP_STATUS_SEND_REQUEST != 0
    }

    fn status(&self, position: u64) -> &AtomicU32 {
        let offset = offset_of!(libc::tpacket2_hdr, tp_status);
        let status = self.slot(position).wrapping_add(offset).cast();
        // SAFETY: aligned and within the mapping, which lives as long as `self`; both sides
        // access it as a whole word.
        unsafe { AtomicU32::from_ptr(status) }
    }

    fn slot(&self, position: u64) -> *mut u8 {
        let index = position as usize & (self.slots - 1);
        self.map.at(index * self.slot_bytes, self.slot_bytes)
    }
}
