//! UMEM: the memory that frames lie in, shared by a socket with the kernel.
//!
//! It is divided into chunks of equal size. A chunk is accessed by one side at a time: this
//! process has it until its address is put into the transmit or fill ring, and again when it
//! comes back through the completion or receive ring. The halves of a port each have chunks of
//! their own.

use std::io;
use std::sync::Arc;

use crate::system::memory_map::MemoryMap;
use crate::system::socket::{Plain, Socket};

/// The chunks of one queue.
pub(super) struct FrameMemory {
    map: MemoryMap,
    chunk_bytes: usize,
}

/// Some of the chunks, owned by one half of a port.
pub(super) struct Chunks {
    memory: Arc<FrameMemory>,
    first: u32,
    count: u32,
}

impl FrameMemory {
    /// Makes `count` chunks of `chunk_bytes` (2,048 or 4,096) and gives them to the socket.
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

    /// The chunks from `first` on. The caller gives each to one owner only.
    pub(super) fn chunks(self: &Arc<Self>, first: u32, count: u32) -> Chunks {
        Chunks { memory: Arc::clone(self), first, count }
    }
}

impl Chunks {
    /// How many there are.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// The kernel's address of chunk `index`, counted within these.
    pub(super) fn address(&self, index: u32) -> u64 {
        u64::from(self.first + index) * self.memory.chunk_bytes as u64
    }

    /// Which chunk an address of the kernel's lies in, and where; `None` where it is not one
    /// of these.
    pub(super) fn locate(&self, address: u64) -> Option<(u32, usize)> {
        let chunk_bytes = self.memory.chunk_bytes as u64;
        let index = u32::try_from(address / chunk_bytes).ok()?.checked_sub(self.first)?;
        (index < self.count).then_some((index, (address % chunk_bytes) as usize))
    }

    /// Part of a chunk that is this process's at the moment.
    ///
    /// # Panics
    /// Where the bytes are not within one chunk of these.
    pub(super) fn bytes(&self, index: u32, offset: usize, length: usize) -> &[u8] {
        let start = self.start(index, offset, length);
        // SAFETY: within the mapping (`at` checked), which lives as long as `self`. The owner
        // calls this for chunks that it has not given to the kernel: a chunk's index leaves a
        // port as a `FrameId` only, which cannot be cloned and ends when the chunk is given.
        unsafe { std::slice::from_raw_parts(self.memory.map.at(start, length), length) }
    }

    /// As [`Self::bytes`], for writing.
    pub(super) fn bytes_mut(&mut self, index: u32, offset: usize, length: usize) -> &mut [u8] {
        let start = self.start(index, offset, length);
        // SAFETY: as for `bytes`; other owners have other chunks, and this one is borrowed
        // for writing.
        unsafe { std::slice::from_raw_parts_mut(self.memory.map.at(start, length), length) }
    }

    fn start(&self, index: u32, offset: usize, length: usize) -> usize {
        let chunk_bytes = self.memory.chunk_bytes;
        let fits = offset.checked_add(length).is_some_and(|end| end <= chunk_bytes);
        assert!(index < self.count && fits, "{length} bytes at {offset} of chunk {index}");
        (self.first + index) as usize * chunk_bytes + offset
    }
}
