//! `PACKET_RX_RING`, version 3 (`Documentation/networking/packet_mmap.rst`).
//!
//! The ring is a sequence of blocks that the kernel fills in order. A block belongs to this process
//! from `TP_STATUS_USER` until it is set back to `TP_STATUS_KERNEL`; its frames form a list. While
//! the next block does not belong to the kernel, the kernel drops arriving frames.

use std::io;
use std::mem::{offset_of, size_of};
use std::sync::atomic::{AtomicU32, Ordering};

use super::{MAC_ADDRESSES_BYTES, VLAN_ETHER_TYPE, VLAN_TAG_BYTES};
use crate::system::memory_map::MemoryMap;
use crate::system::socket::{Plain, Socket};

/// Size of a block: up to a millisecond of frames; a frame of 64 KiB fits.
pub(super) const BLOCK_BYTES: usize = 128 * 1024;
/// Age at which the kernel hands over a block that is not full.
const BLOCK_MILLISECONDS: u32 = 1;
/// Free bytes before each frame, for a restored VLAN tag.
const HEADROOM: u32 = 16;
/// Frames start at multiples of this (`V3_ALIGNMENT` of `net/packet/af_packet.c`).
pub(super) const FRAME_ALIGNMENT: usize = 8;

/// The ring and its read position.
pub(super) struct ReceiveRing {
    map: MemoryMap,
    blocks: Box<[Block]>,
    /// Index of the block being read.
    current: usize,
}

/// State of a block as this process sees it.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    /// Whether this process reads the block or still uses frames of it.
    is_owned: bool,
    /// Frames not yet read.
    unread: u32,
    /// Offset of the next frame within the block.
    next: usize,
    /// Frames read but not yet released.
    in_use: u32,
}

/// Position and metadata of a frame in the ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct RingFrame {
    /// Offset of the frame's header in the ring, a multiple of [`FRAME_ALIGNMENT`].
    pub(super) offset: usize,
    /// Captured bytes, with the VLAN tag.
    pub(super) length: usize,
    /// Length on the wire in bytes.
    pub(super) original_length: usize,
    /// Arrival time by `CLOCK_REALTIME`.
    pub(super) realtime_nanos: u64,
    /// Whether it is the first frame of its block.
    pub(super) begins_block: bool,
    /// Whether the transport checksum needs no verification.
    pub(super) is_verified: bool,
}

impl ReceiveRing {
    /// Sets up a receive ring of `bytes`, rounded up to whole blocks.
    pub(super) fn open(socket: &Socket, bytes: usize) -> io::Result<Self> {
        let version = libc::tpacket_versions::TPACKET_V3 as i32;
        socket.set_option(libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        socket.set_option(libc::SOL_PACKET, libc::PACKET_RESERVE, &HEADROOM)?;
        let blocks = bytes.div_ceil(BLOCK_BYTES).max(2);
        let mut request = libc::tpacket_req3::zeroed();
        request.tp_block_size = BLOCK_BYTES as u32;
        request.tp_block_nr = blocks as u32;
        // Version 3 packs frames; the kernel only checks the frame size for consistency.
        request.tp_frame_size = 2048;
        request.tp_frame_nr = (BLOCK_BYTES / 2048 * blocks) as u32;
        request.tp_retire_blk_tov = BLOCK_MILLISECONDS;
        socket.set_option(libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let map = MemoryMap::of_socket(socket.fd(), BLOCK_BYTES * blocks, 0)?;
        let blocks = vec![Block::default(); blocks].into_boxed_slice();
        Ok(Self { map, blocks, current: 0 })
    }

    /// Returns the next frame that arrived; it stays in use until released.
    pub(super) fn next(&mut self) -> Option<RingFrame> {
        let mut begins_block = false;
        loop {
            let current = self.current;
            if !self.blocks[current].is_owned {
                self.blocks[current] = self.take_block(current)?;
                begins_block = true;
            }
            if self.blocks[current].unread > 0 {
                return Some(self.read(current, begins_block));
            }
            // All frames of the block are read. If some are still in use, the last release returns
            // the block. Continue with the next block unless it is in the same state.
            if self.blocks[current].in_use == 0 {
                self.return_block(current);
            }
            let next = (current + 1) % self.blocks.len();
            if self.blocks[next].is_owned {
                return None;
            }
            self.current = next;
        }
    }

    /// Returns the bytes of a frame in use.
    ///
    /// # Panics
    /// Panics if `offset` is not that of a frame in use, such as a handle of another port.
    pub(super) fn frame(&self, offset: usize, length: usize) -> &[u8] {
        let block = offset / BLOCK_BYTES;
        assert!(self.blocks[block].in_use > 0, "no frame is in use there");
        let header = self.header(offset);
        let start = offset + usize::from(header.tp_mac);
        assert!(start + length <= (block + 1) * BLOCK_BYTES, "a frame of {length} bytes");
        let bytes = self.map.at(start, length);
        // SAFETY: the bytes are within the mapping. The block belongs to this process while a frame
        // of it is in use, so the kernel does not write there; this process writes only through
        // `&mut self`.
        unsafe { std::slice::from_raw_parts(bytes, length) }
    }

    /// Releases a frame.
    ///
    /// # Panics
    /// Same as [`Self::frame`].
    pub(super) fn release(&mut self, offset: usize) {
        let index = offset / BLOCK_BYTES;
        let block = &mut self.blocks[index];
        assert!(block.in_use > 0, "no frame is in use there");
        block.in_use -= 1;
        if block.in_use == 0 && block.unread == 0 && index != self.current {
            self.return_block(index);
        }
    }

    /// Starts to read a block, if the kernel has handed it over.
    fn take_block(&self, index: usize) -> Option<Block> {
        if self.status(index).load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        let block = self.map.at(index * BLOCK_BYTES, size_of::<libc::tpacket_block_desc>());
        // SAFETY: within the mapping, aligned as blocks are, and owned by this process by its
        // status.
        let header = unsafe { (*block.cast::<libc::tpacket_block_desc>()).hdr.bh1 };
        Some(Block {
            is_owned: true,
            unread: header.num_pkts,
            next: header.offset_to_first_pkt as usize,
            in_use: 0,
        })
    }

    /// Reads the next frame of a block that has unread frames.
    fn read(&mut self, index: usize, begins_block: bool) -> RingFrame {
        let offset = index * BLOCK_BYTES + self.blocks[index].next;
        let mut header = self.header(offset);
        let block = &mut self.blocks[index];
        block.unread -= 1;
        block.in_use += 1;
        block.next += header.tp_next_offset as usize;
        let mut frame = RingFrame {
            offset,
            length: header.tp_snaplen as usize,
            original_length: header.tp_len as usize,
            realtime_nanos: u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec),
            begins_block,
            is_verified: header.tp_status
                & (libc::TP_STATUS_CSUMNOTREADY | libc::TP_STATUS_CSUM_VALID)
                != 0,
        };
        if header.tp_status & libc::TP_STATUS_VLAN_VALID != 0 && frame.length >= MAC_ADDRESSES_BYTES
        {
            self.restore_tag(offset, &mut header);
            frame.length += VLAN_TAG_BYTES;
            frame.original_length += VLAN_TAG_BYTES;
        }
        frame
    }

    /// Moves the MAC addresses and writes the outermost VLAN tag, which the kernel removed, after
    /// them.
    fn restore_tag(&mut self, offset: usize, header: &mut libc::tpacket3_hdr) {
        let tpid_valid = header.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
        let tpid = if tpid_valid { header.hv1.tp_vlan_tpid } else { VLAN_ETHER_TYPE };
        let tci = header.hv1.tp_vlan_tci as u16;
        let start = offset + usize::from(header.tp_mac) - VLAN_TAG_BYTES;
        header.tp_mac -= VLAN_TAG_BYTES as u16;
        let bytes = self.map.at(start, VLAN_TAG_BYTES + MAC_ADDRESSES_BYTES);
        let to = self.map.at(offset, size_of::<libc::tpacket3_hdr>());
        // SAFETY: both ranges are within the mapping, in a block that this process owns. The
        // headroom keeps the four bytes before the frame free.
        unsafe {
            bytes.copy_from(bytes.add(VLAN_TAG_BYTES), MAC_ADDRESSES_BYTES);
            let tag = bytes.add(MAC_ADDRESSES_BYTES);
            tag.cast::<[u8; 2]>().write(tpid.to_be_bytes());
            tag.add(2).cast::<[u8; 2]>().write(tci.to_be_bytes());
            to.cast::<libc::tpacket3_hdr>().write(*header);
        }
    }

    fn header(&self, offset: usize) -> libc::tpacket3_hdr {
        let header = self.map.at(offset, size_of::<libc::tpacket3_hdr>()).cast();
        assert!(offset.is_multiple_of(FRAME_ALIGNMENT), "no frame begins there");
        // SAFETY: within the mapping and aligned; the callers make sure that this process owns the
        // block.
        unsafe { *header }
    }

    fn return_block(&mut self, index: usize) {
        self.blocks[index] = Block::default();
        self.status(index).store(libc::TP_STATUS_KERNEL, Ordering::Release);
    }

    fn status(&self, index: usize) -> &AtomicU32 {
        let offset = index * BLOCK_BYTES
            + offset_of!(libc::tpacket_block_desc, hdr)
            + offset_of!(libc::tpacket_hdr_v1, block_status);
        // SAFETY: aligned, within the mapping, and both sides access it as a whole word.
        unsafe { AtomicU32::from_ptr(self.map.at(offset, size_of::<u32>()).cast()) }
    }
}
