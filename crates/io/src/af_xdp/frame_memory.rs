//! UMEM: the frame memory that a socket shares with the kernel.
//!
//! The UMEM consists of chunks of equal size. Only one side accesses a chunk at a time. This
//! process owns a chunk until it puts its address into the transmit or fill ring. It owns the chunk
//! again when the address returns through the completion or receive ring. The two halves of a port
//! have separate chunks.

use std::io;
use std::sync::Arc;

use crate::system::memory_map::MemoryMap;
use crate::system::socket::{Plain, Socket};

/// The UMEM of one queue.
pub(super) struct FrameMemory {
    map: MemoryMap,
    chunk_bytes: usize,
}

/// A range of chunks, owned by one half of a port.
pub(super) struct Chunks {
    memory: Arc<FrameMemory>,
    first: u32,
    count: u32,
}

impl FrameMemory {
    /// Allocates `count` chunks of `chunk_bytes` (2,048 or 4,096) and registers them with the
    /// socket.
    pub(super) fn register(
        socket: &Socket,
        count: u32,
        chunk_bytes: usize,
    ) -> io::Result<Arc<Self>> {
        let map = MemoryMap::anonymous(count as usize * chunk_bytes)?;
        let mut registration = libc::xdp_umem_reg::zeroed();
        registration.addr = map.at(0, 0) as u64;
        registration.len = map.length() as u64;
        registration.chunk_size = chunk_bytes as u32;
        socket.set_option(libc::SOL_XDP, libc::XDP_UMEM_REG, &registration)?;
        Ok(Arc::new(Self { map, chunk_bytes }))
    }

    /// Returns `count` chunks from `first` on. The caller must give each chunk to one owner only.
    pub(super) fn chunks(self: &Arc<Self>, first: u32, count: u32) -> Chunks {
        Chunks { memory: Arc::clone(self), first, count }
    }
}

impl Chunks {
    /// Number of chunks.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// UMEM address of chunk `index`, counted from the first of these chunks.
    pub(super) fn address(&self, index: u32) -> u64 {
        u64::from(self.first + index) * self.memory.chunk_bytes as u64
    }

    /// Returns the chunk index and the offset of a UMEM address; `None` if the address is not in
    /// these chunks.
    pub(super) fn locate(&self, address: u64) -> Option<(u32, usize)> {
        let chunk_bytes = self.memory.chunk_bytes as u64;
        let index = u32::try_from(address / chunk_bytes).ok()?.checked_sub(self.first)?;
        (index < self.count).then_some((index, (address % chunk_bytes) as usize))
    }

    /// Returns part of a chunk that this process owns.
    ///
    /// # Panics
    /// Panics if the bytes are not within one of these chunks.
    pub(super) fn bytes(&self, index: u32, offset: usize, length: usize) -> &[u8] {
        let start = self.start(index, offset, length);
        // SAFETY: within the mapping (`at` checked), which lives as long as `self`. The owner calls
        // this only for chunks that the kernel does not own: a port exposes a chunk's index only as
        // a `FrameId`, which cannot be cloned and ends when the kernel gets the chunk.
        unsafe { std::slice::from_raw_parts(self.memory.map.at(start, length), length) }
    }

    /// Same as [`Self::bytes`], for writing.
    pub(super) fn bytes_mut(&mut self, index: u32, offset: usize, length: usize) -> &mut [u8] {
        let start = self.start(index, offset, length);
        // SAFETY: as for `bytes`; other owners have other chunks, and this one is mutably borrowed.
        unsafe { std::slice::from_raw_parts_mut(self.memory.map.at(start, length), length) }
    }

    fn start(&self, index: u32, offset: usize, length: usize) -> usize {
        let chunk_bytes = self.memory.chunk_bytes;
        let fits = offset.checked_add(length).is_some_and(|end| end <= chunk_bytes);
        assert!(index < self.count && fits, "{length} bytes at {offset} of chunk {index}");
        (self.first + index) as usize * chunk_bytes + offset
    }
}
