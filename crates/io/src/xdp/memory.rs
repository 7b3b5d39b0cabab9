//! The mapping of the shared array into this process.
//!
//! The kernel's program and this process write to disjoint parts: the program to `kernel`,
//! `device` and the histograms, the process to the rest, and to a descriptor or buffer only while
//! it is not in flight. Counters that the other side reads are accessed as atomics.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use super::layout::{
    DESCRIPTORS, Descriptor, DeviceSide, KernelSide, Ring, SLAB_BYTES, SLAB_DISTANCE, UserSide,
    buffers, stored,
};

/// A mapped [`Ring`].
pub(super) struct RingMemory {
    ring: NonNull<Ring>,
    bytes: usize,
    buffer_distance: usize,
    buffers: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread; all shared counters are accessed
// as atomics, and everything else only through `&mut self`.
unsafe impl Send for RingMemory {}

impl RingMemory {
    /// Maps the array behind `map` and touches every page once.
    pub(super) fn map(map: BorrowedFd<'_>, buffer_distance: usize) -> io::Result<Self> {
        let bytes = size_of::<Ring>();
        let address = map_shared(map, bytes)?;
        let buffers = buffers(buffer_distance);
        Ok(Self { ring: address.cast(), bytes, buffer_distance, buffers })
    }

    /// How many buffers there are.
    pub(super) const fn buffers(&self) -> usize {
        self.buffers
    }

    /// What the process tells the program.
    #[inline]
    pub(super) fn user(&self) -> &UserSide {
        // SAFETY: the mapping lives as long as self, and all fields are atomic.
        unsafe { &(*self.ring.as_ptr()).user }
    }

    /// What the sending program tells.
    #[inline]
    pub(super) fn kernel(&self) -> &KernelSide {
        // SAFETY: as for `user`.
        unsafe { &(*self.ring.as_ptr()).kernel }
    }

    /// What the device did with the frames.
    #[inline]
    pub(super) fn device(&self) -> &DeviceSide {
        // SAFETY: as for `user`.
        unsafe { &(*self.ring.as_ptr()).device }
    }

    /// Counts of departure gaps, by bucket.
    pub(super) fn gaps(&self) -> &[AtomicU64] {
        // SAFETY: as for `user`.
        unsafe { &(*self.ring.as_ptr()).gaps }
    }

    /// Counts of errors of departure gaps, by bucket.
    pub(super) fn gap_errors(&self) -> &[AtomicU64] {
        // SAFETY: as for `user`.
        unsafe { &(*self.ring.as_ptr()).gap_errors }
    }

    /// Writes the descriptor `position` (modulo the ring), which is not in flight.
    #[inline]
    pub(super) fn write_descriptor(&mut self, position: u64, descriptor: Descriptor) {
        let index = position as usize & (DESCRIPTORS - 1);
        // SAFETY: the index is within the array; the program reads a descriptor only between the
        // release of `produced` beyond it and its own release of `consumed` beyond it, and the
        // caller holds `&mut self` outside of that span.
        unsafe { (&raw mut (*self.ring.as_ptr()).descriptors[index]).write(descriptor) };
    }

    /// The buffer named by the descriptor at `position` (modulo the ring), which was consumed.
    #[inline]
    pub(super) fn consumed_buffer(&self, position: u64) -> u32 {
        let index = position as usize & (DESCRIPTORS - 1);
        // SAFETY: the index is within the array, and only this process writes descriptors.
        u32::from(unsafe { (*self.ring.as_ptr()).descriptors[index].buffer })
    }

    /// When the frame of the descriptor at `position` (modulo the ring) is due, in ns.
    #[inline]
    pub(super) fn departure(&self, position: u64) -> u64 {
        let index = position as usize & (DESCRIPTORS - 1);
        // SAFETY: the index is within the array, and only this process writes descriptors.
        unsafe { (*self.ring.as_ptr()).descriptors[index].departure }
    }

    /// Buffer `index`.
    ///
    /// # Panics
    /// Where there is no such buffer.
    #[inline]
    pub(super) fn buffer_mut(&mut self, index: u32) -> &mut [u8] {
        let index = index as usize;
        assert!(index < self.buffers);
        // SAFETY: so many buffers lie within the array, one behind the other; the program reads
        // one only while it is in flight, and then no `FrameId` for it exists.
        unsafe {
            let start = (&raw mut (*self.ring.as_ptr()).buffers).cast::<u8>();
            let start = start.add(index * self.buffer_distance);
            std::slice::from_raw_parts_mut(start, self.buffer_distance)
        }
    }
}

impl Drop for RingMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `map` with this length, and no reference outlives self.
        unsafe { libc::munmap(self.ring.as_ptr().cast(), self.bytes) };
    }
}

/// The mapped slabs of frames that are sent more than once. The program only reads there, and
/// only what a descriptor names, which is written before and never again.
pub(super) struct StoreMemory {
    bytes: NonNull<u8>,
    slabs: usize,
    /// The slab being filled, and how far it is.
    slab: usize,
    filled: usize,
    /// Source and length of what was stored, by its handle.
    stored: Vec<(u32, usize)>,
}

// SAFETY: the mapping belongs to the process, not to a thread, and is written only through
// `&mut self`.
unsafe impl Send for StoreMemory {}

impl StoreMemory {
    /// Maps the array of `slabs` slabs behind `map`.
    pub(super) fn map(map: BorrowedFd<'_>, slabs: usize) -> io::Result<Self> {
        let bytes = map_shared(map, slabs * SLAB_DISTANCE)?;
        Ok(Self { bytes, slabs, slab: 0, filled: 0, stored: Vec::new() })
    }

    /// Copies bytes to where they fit; `None` where they do not.
    pub(super) fn store(&mut self, bytes: &[u8]) -> Option<u32> {
        if bytes.len() > SLAB_BYTES {
            return None;
        }
        if self.filled + bytes.len() > SLAB_BYTES {
            self.slab += 1;
            self.filled = 0;
        }
        // An empty rest of a slab has no offset.
        if self.slab >= self.slabs || self.filled >= SLAB_BYTES {
            return None;
        }
        // SAFETY: slab and end of the bytes are within the mapping, which is `slabs` slabs long;
        // nothing there is named by any descriptor yet.
        unsafe {
            let to = self.bytes.add(self.slab * SLAB_DISTANCE + self.filled);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), bytes.len());
        }
        self.stored.push((stored(self.slab as u32, self.filled), bytes.len()));
        self.filled += bytes.len();
        Some(self.stored.len() as u32 - 1)
    }

    /// The source of a frame within what was stored.
    ///
    /// # Panics
    /// Where it is not within.
    #[inline]
    pub(super) fn source(&self, index: u32, range: &Range<usize>) -> u32 {
        let (source, length) = self.stored[index as usize];
        assert!(range.start < range.end && range.end <= length, "a frame beyond what was stored");
        source + range.start as u32
    }
}

impl Drop for StoreMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `map` with this length, and no reference outlives self.
        unsafe { libc::munmap(self.bytes.as_ptr().cast(), self.slabs * SLAB_DISTANCE) };
    }
}

/// Maps the first `bytes` of an array, rounded up to pages, and touches every page once.
fn map_shared(map: BorrowedFd<'_>, bytes: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: a new shared mapping at an address of the kernel's choice touches no memory of
    // ours; `map` is open for the length of the call.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_POPULATE,
            map.as_raw_fd(),
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(address.cast()).ok_or_else(|| io::Error::other("mmap returned address zero"))
}

/// Maps are charged to the locked memory limit before Linux 5.11; later kernels ignore it.
pub(super) fn raise_locked_memory_limit() {
    let limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the pointer is to a valid rlimit; a refusal leaves the limit as it was.
    unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit) };
}
