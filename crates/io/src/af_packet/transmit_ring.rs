//! `PACKET_TX_RING`, version 2 (`Documentation/networking/packet_mmap.rst`).
//!
//! A slot belongs to this process while its status is `AVAILABLE`. It belongs to the kernel from
//! `SEND_REQUEST` until the kernel sets it back. The kernel reads the slots in order, and only
//! during a `send` call on this socket.

use std::io;
use std::mem::{offset_of, size_of};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::system::memory_map::MemoryMap;
use crate::system::socket::{Plain, Socket};

/// Size of `struct virtio_net_hdr`, which precedes each frame.
const VIRTIO_HEADER_BYTES: usize = 10;
/// Offset of its field `hdr_len`.
const VIRTIO_HEADER_LENGTH: usize = 2;
/// Offset of the frame in its slot, after both headers.
const FRAME_OFFSET: usize = size_of::<libc::tpacket2_hdr>() + VIRTIO_HEADER_BYTES;

/// Number of bytes of a frame that the kernel copies into the linear part of the socket buffer; it
/// references the rest in the ring. So no socket buffer needs more than one contiguous page.
const LINEAR_MAX: usize = 3 * 1024;

/// Minimum block size. A ring consists of blocks of whole pages; slots do not cross them.
const BLOCK_BYTES: usize = 64 * 1024;

const CACHE_LINE_BYTES: usize = 64;

const _: () = assert!(size_of::<libc::tpacket2_hdr>() == 32, "as TPACKET2_HDRLEN has it");

/// The ring and its fill state.
pub(super) struct TransmitRing {
    map: MemoryMap,
    /// Offset of each slot in the mapping.
    slots: Box<[usize]>,
    slot_bytes: usize,
    /// Next slot to fill.
    head: usize,
    /// Slot of the oldest frame, if there is one.
    tail: usize,
    /// Frames pushed but not yet collected.
    occupied: usize,
}

/// Result of a collected slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The kernel sent a frame with this many bytes.
    Sent(usize),
    /// The frame was withdrawn before the kernel read it.
    Withdrawn,
}

impl TransmitRing {
    /// Sets up a transmit ring with at least `slots` slots, for frames of at most
    /// `frame_length_max` bytes (64 KiB less the headers).
    pub(super) fn open(socket: &Socket, slots: usize, frame_length_max: usize) -> io::Result<Self> {
        let option = |name: i32, value: i32| socket.set_option(libc::SOL_PACKET, name, &value);
        option(libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V2 as i32)?;
        // With PACKET_LOSS the kernel skips a slot with an invalid length and does not stop the
        // ring; `withdraw` uses this. The callers check the lengths of their frames before.
        option(libc::PACKET_LOSS, 1)?;
        option(libc::PACKET_VNET_HDR, 1)?;
        // An odd number of cache lines spreads the first lines of the slots over all sets of the
        // cache; a power of two would map them to a few sets.
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

    /// Number of frames pushed but not yet collected.
    pub(super) fn occupied(&self) -> usize {
        self.occupied
    }

    /// Copies a frame into the next slot.
    ///
    /// # Panics
    /// Panics if the ring is full or the frame is too long: the caller checks both.
    pub(super) fn push(&mut self, frame: &[u8]) {
        assert!(self.occupied < self.slots.len(), "the transmit ring is full");
        let slot = self.slot(self.head);
        let length = frame.len();
        assert!(FRAME_OFFSET + length <= self.slot_bytes, "a frame of {length} bytes");
        let linear = length.min(LINEAR_MAX) as u16;
        // SAFETY: this process owns the slot: it was never used, or `collect` found it available.
        // It lies within the mapping, and the assertion keeps the frame within the slot. Slots are
        // aligned, so the header's fields are too.
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

    /// Whether the kernel has frames to read. It reads in order, so the last one shows it.
    pub(super) fn has_requests(&self) -> bool {
        self.occupied > 0 && self.is_requested(self.before(self.head))
    }

    /// Removes the oldest frame if the kernel has finished it.
    pub(super) fn collect(&mut self) -> Option<Outcome> {
        if self.occupied == 0 {
            return None;
        }
        let status = self.status(self.tail).load(Ordering::Acquire);
        if status & (libc::TP_STATUS_SEND_REQUEST | libc::TP_STATUS_SENDING) != 0 {
            return None;
        }
        let header = self.slot(self.tail).cast::<libc::tpacket2_hdr>();
        // SAFETY: this process owns the slot by its status, and its header is within the mapping.
        let length = unsafe { (*header).tp_len } as usize;
        self.tail = self.after(self.tail);
        self.occupied -= 1;
        Some(match length.checked_sub(VIRTIO_HEADER_BYTES) {
            Some(length) if length > 0 => Outcome::Sent(length),
            _ => Outcome::Withdrawn,
        })
    }

    /// Makes the kernel skip the frames that it has not read yet and returns their number. No
    /// `send` call may run meanwhile; `&mut self` and ownership of the socket ensure that.
    pub(super) fn withdraw(&mut self) -> usize {
        let mut withdrawn = 0;
        let mut position = self.head;
        for _ in 0..self.occupied {
            position = self.before(position);
            if !self.is_requested(position) {
                break;
            }
            let header = self.slot(position).cast::<libc::tpacket2_hdr>();
            // SAFETY: the kernel has not read the slot, and it reads slots only in `send`.
            let length = unsafe { &mut (*header).tp_len };
            withdrawn += usize::from(*length != 0);
            *length = 0;
        }
        withdrawn
    }

    fn is_requested(&self, slot: usize) -> bool {
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
        // SAFETY: aligned and within the mapping, which lives as long as `self`; both sides access
        // it as a whole word.
        unsafe { AtomicU32::from_ptr(status) }
    }

    fn slot(&self, slot: usize) -> *mut u8 {
        self.map.at(self.slots[slot], self.slot_bytes)
    }
}
