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

/// A ring is divided into blocks of whole pages; slots do not cross them.
const BLOCK_BYTES: usize = 64 * 1024;

const CACHE_LINE_BYTES: usize = 64;

const _: () = assert!(size_of::<libc::tpacket2_hdr>() == 32, "as TPACKET2_HDRLEN has it");

/// The ring, and how far it is filled.
pub(super) struct TransmitRing {
    map: MemoryMap,
    /// Where each slot begins.
    slots: Box<[usize]>,
    slot_bytes: usize,
    /// The next slot to fill.
    head: usize,
    /// The slot of the oldest frame, if there is one.
    tail: usize,
    /// Frames put in and not taken out.
    occupied: usize,
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
    /// Gives a socket a ring of `slots` or a few more, for frames of at most `frame_length_max`
    /// bytes (64 KiB less the headers, and no more).
    pub(super) fn open(socket: &Socket, slots: usize, frame_length_max: usize) -> io::Result<Self> {
        let option = |name: i32, value: i32| socket.set_option(libc::SOL_PACKET, name, &value);
        option(libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V2 as i32)?;
        // A slot with an impossible length is skipped rather than stopping the ring; this is
        // how frames are withdrawn. Lengths that come from callers were checked before.
        option(libc::PACKET_LOSS, 1)?;
        option(libc::PACKET_VNET_HDR, 1)?;
        // An odd number of cache lines, so that the first lines of the slots spread over all
        // sets of the cache: a power of two would put them into a few.
        let lines = (FRAME_OFFSET + frame_length_max).div_ceil(CACHE_LINE_BYTES) | 1;
        let slot_bytes = lines * CACHE_LINE_BYTES;
        let block_bytes = slot_bytes.next_multiple_of(BLOCK_BYTES);
        let slots_per_block = block_bytes / slot_bytes;
        let blocks = slots.div_ceil(slots_per_block);
        let mut request = libc::tpacket_req::zeroed();
        request.tp_block_size = block_bytes as u32;
        request.tp_block_nr = blocks as u32;
        request.tp_frame_size = slot_bytes as u32;
        request.tp_frame_nr = (blocks * slots_per_block) as u32;
        socket.set_option(libc::SOL_PACKET, libc::PACKET_TX_RING, &request)?;
        let map = MemoryMap::of_socket(socket.fd(), block_bytes * blocks, 0)?;
        let in_block =
            |block| (0..slots_per_block).map(move |slot| block * block_bytes + slot * slot_bytes);
        let slots = (0..blocks).flat_map(in_block).collect();
        Ok(Self { map, slots, slot_bytes, head: 0, tail: 0, occupied: 0 })
    }

    /// Frames put in and not taken out.
    pub(super) fn occupied(&self) -> usize {
        self.occupied
    }

    /// Puts a frame in.
    ///
    /// # Panics
    /// Where the ring is full or the frame too long: the caller keeps count of both.
    pub(super) fn push(&mut self, frame: &[u8]) {
        assert!(self.occupied < self.slots.len(), "the transmit ring is full");
        let slot = self.slot(self.head);
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
        self.status(self.head).store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
        self.head = self.after(self.head);
        self.occupied += 1;
    }

    /// Whether the kernel has frames to look at: it takes them in order, so the last one tells.
    pub(super) fn is_waiting(&self) -> bool {
        self.occupied > 0 && self.waits(self.before(self.head))
    }

    /// Takes out the oldest frame, if the kernel is done with it.
    pub(super) fn collect(&mut self) -> Option<Outcome> {
        if self.occupied == 0 {
            return None;
        }
        let status = self.status(self.tail).load(Ordering::Acquire);
        if status & (libc::TP_STATUS_SEND_REQUEST | libc::TP_STATUS_SENDING) != 0 {
            return None;
        }
        let header = self.slot(self.tail).cast::<libc::tpacket2_hdr>();
        // SAFETY: the slot is ours by its status, and its header within the mapping.
        let length = unsafe { (*header).tp_len } as usize;
        self.tail = self.after(self.tail);
        self.occupied -= 1;
        Some(match length.checked_sub(VIRTIO_HEADER_BYTES) {
            Some(length) if length > 0 => Outcome::Sent(length),
            _ => Outcome::Withdrawn,
        })
    }

    /// Makes the kernel skip what it has not looked at; returns how many frames that were. No
    /// `send` call may run meanwhile, which `&mut self` beside the socket's owner ensures.
    pub(super) fn withdraw(&mut self) -> usize {
        let mut withdrawn = 0;
        let mut position = self.head;
        for _ in 0..self.occupied {
            position = self.before(position);
            if !self.waits(position) {
                break;
            }
            let header = self.slot(position).cast::<libc::tpacket2_hdr>();
            // SAFETY: the kernel has not looked at the slot, and does so in `send` only.
            let length = unsafe { &mut (*header).tp_len };
            withdrawn += usize::from(*length != 0);
            *length = 0;
        }
        withdrawn
    }

    fn waits(&self, slot: usize) -> bool {
        self.status(slot).load(Ordering::Acquire) & libc::TP_STATUS_SEND_REQUEST != 0
    }

    fn after(&self, slot: usize) -> usize {
        if slot + 1 == self.slots.len() { 0 } else { slot + 1 }
    }

    fn before(&self, slot: usize) -> usize {
        if slot == 0 { self.slots.len() - 1 } else { slot - 1 }
    }

    fn status(&self, slot: usize) -> &AtomicU32 {
        let offset = offset_of!(libc::tpacket2_hdr, tp_status);
        let status = self.slot(slot).wrapping_add(offset).cast();
        // SAFETY: aligned and within the mapping, which lives as long as `self`; both sides
        // access it as a whole word.
        unsafe { AtomicU32::from_ptr(status) }
    }

    fn slot(&self, slot: usize) -> *mut u8 {
        self.map.at(self.slots[slot], self.slot_bytes)
    }
}
