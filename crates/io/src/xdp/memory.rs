//! Mapping of the shared BPF array into this process.
//!
//! The BPF program and this process write to disjoint parts. The program writes `kernel`, `device`
//! and the histograms. The process writes the rest, and a descriptor or buffer only while it is not
//! in flight. Counters that the other side reads are atomic.

use std::io;
use std::ops::{Deref, Range};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use super::layout::{
    CaptureSide, DESCRIPTORS, Descriptor, DeviceSide, KernelSide, ResidentSide, Ring, SLAB_BYTES,
    SLAB_DISTANCE, UserSide, buffers, stored,
};

/// A mapped [`Ring`].
pub(super) struct RingMemory {
    ring: NonNull<Ring>,
    bytes: usize,
    buffer_distance: usize,
    buffers: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread. Shared counters are accessed as
// atomics, and everything else only through `&mut self`.
unsafe impl Send for RingMemory {}

impl RingMemory {
    /// Maps the array behind `map` and populates its pages.
    pub(super) fn map(map: BorrowedFd<'_>, buffer_distance: usize) -> io::Result<Self> {
        let bytes = size_of::<Ring>();
        let address = map_shared(map, bytes)?;
        let buffers = buffers(buffer_distance);
        Ok(Self { ring: address.cast(), bytes, buffer_distance, buffers })
    }

    /// Number of buffers.
    pub(super) const fn buffers(&self) -> usize {
        self.buffers
    }

    /// Fields that the process writes for the program.
    #[inline]
    pub(super) fn user(&self) -> &UserSide {
        // SAFETY: the mapping lives as long as self, and all fields are atomic.
        unsafe { &(*self.ring.as_ptr()).user }
    }

    /// Fields that the sending program writes.
    #[inline]
    pub(super) fn kernel(&self) -> &KernelSide {
        // SAFETY: as for `user`.
        unsafe { &(*self.ring.as_ptr()).kernel }
    }

    /// Fields of the resident streams.
    #[inline]
    pub(super) fn resident(&self) -> &ResidentSide {
        // SAFETY: as for `user`.
        unsafe { &(*self.ring.as_ptr()).resident }
    }

    /// State of the resident capture.
    #[inline]
    pub(super) fn capture(&self) -> &CaptureSide {
        // SAFETY: as for `user`.
        unsafe { &(*self.ring.as_ptr()).capture }
    }

    /// Whether the program sends resident streams or a capture.
    pub(super) fn sends_streams(&self) -> bool {
        let has_streams = self.user().resident.load(Ordering::Relaxed) > 0;
        has_streams && self.resident().sending.load(Ordering::Acquire) > 0
    }

    /// Number of frames that the program has taken from the ring or made.
    pub(super) fn taken(&self) -> u64 {
        let kernel = self.kernel();
        let counters = [&kernel.redirected, &kernel.refused, &kernel.unsent];
        counters.map(|counter| counter.load(Ordering::Acquire)).iter().sum()
    }

    /// Counters of the driver's transmit tracepoint.
    #[inline]
    pub(super) fn device(&self) -> &DeviceSide {
        // SAFETY: as for `user`.
        unsafe { &(*self.ring.as_ptr()).device }
    }

    /// Histogram of departure gaps: counts by bucket.
    pub(super) fn gaps(&self) -> &[AtomicU64] {
        // SAFETY: as for `user`.
        unsafe { &(*self.ring.as_ptr()).gaps }
    }

    /// Histogram of departure gap errors: counts by bucket.
    pub(super) fn gap_errors(&self) -> &[AtomicU64] {
        // SAFETY: as for `user`.
        unsafe { &(*self.ring.as_ptr()).gap_errors }
    }

    /// Writes the descriptor at `position` (modulo the ring), which is not in flight.
    #[inline]
    pub(super) fn write_descriptor(&mut self, position: u64, descriptor: Descriptor) {
        let index = position as usize & (DESCRIPTORS - 1);
        // SAFETY: the index is within the array. The program reads a descriptor only between the
        // release of `produced` beyond it and its own release of `consumed` beyond it. The caller
        // holds `&mut self` outside of that span.
        unsafe { (&raw mut (*self.ring.as_ptr()).descriptors[index]).write(descriptor) };
    }

    /// Buffer index of the consumed descriptor at `position` (modulo the ring).
    #[inline]
    pub(super) fn consumed_buffer(&self, position: u64) -> u32 {
        let index = position as usize & (DESCRIPTORS - 1);
        // SAFETY: the index is within the array, and only this process writes descriptors.
        u32::from(unsafe { (*self.ring.as_ptr()).descriptors[index].buffer })
    }

    /// Due time of the frame at `position` (modulo the ring), in ns.
    #[inline]
    pub(super) fn departure(&self, position: u64) -> u64 {
        let index = position as usize & (DESCRIPTORS - 1);
        // SAFETY: the index is within the array, and only this process writes descriptors.
        unsafe { (*self.ring.as_ptr()).descriptors[index].departure }
    }

    /// Returns buffer `index`.
    ///
    /// # Panics
    /// Panics if the buffer does not exist.
    #[inline]
    pub(super) fn buffer_mut(&mut self, index: u32) -> &mut [u8] {
        let index = index as usize;
        assert!(index < self.buffers);
        // SAFETY: the buffers lie within the array, one after the other. The program reads a buffer
        // only while it is in flight, and then no `FrameId` for it exists.
        unsafe {
            let start = (&raw mut (*self.ring.as_ptr()).buffers).cast::<u8>();
            let start = start.add(index * self.buffer_distance);
            std::slice::from_raw_parts_mut(start, self.buffer_distance)
        }
    }
}

impl Drop for RingMemory {
    fn drop(&mut self) {
        // SAFETY: `map` created the mapping with this length, and no reference outlives self.
        unsafe { libc::munmap(self.ring.as_ptr().cast(), self.bytes) };
    }
}

/// The mapped store: slabs of frames that are sent more than once. The program only reads bytes
/// that a descriptor addresses, which are written before and never changed.
pub(super) struct StoreMemory {
    bytes: NonNull<u8>,
    slabs: usize,
    /// Index of the slab being filled, and the bytes used in it.
    slab: usize,
    filled: usize,
    /// Location and length of each stored range, by handle.
    stored: Vec<(u32, usize)>,
}

// SAFETY: the mapping belongs to the process, not to a thread, and is written only through `&mut
// self`.
unsafe impl Send for StoreMemory {}

impl StoreMemory {
    /// Maps the array of `slabs` slabs behind `map`.
    pub(super) fn map(map: BorrowedFd<'_>, slabs: usize) -> io::Result<Self> {
        let bytes = map_shared(map, slabs * SLAB_DISTANCE)?;
        Ok(Self { bytes, slabs, slab: 0, filled: 0, stored: Vec::new() })
    }

    /// Copies bytes into the store and returns their handle; `None` if they do not fit.
    pub(super) fn store(&mut self, bytes: &[u8]) -> Option<u32> {
        if bytes.len() > SLAB_BYTES {
            return None;
        }
        if self.filled + bytes.len() > SLAB_BYTES {
            self.slab += 1;
            self.filled = 0;
        }
        // A full slab has no valid offset.
        if self.slab >= self.slabs || self.filled >= SLAB_BYTES {
            return None;
        }
        // SAFETY: the bytes end within a slab of the mapping, which has `slabs` slabs, and no
        // descriptor addresses them yet.
        unsafe {
            let to = self.bytes.add(self.slab * SLAB_DISTANCE + self.filled);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), bytes.len());
        }
        self.stored.push((stored(self.slab as u32, self.filled), bytes.len()));
        self.filled += bytes.len();
        Some(self.stored.len() as u32 - 1)
    }

    /// Returns the location of the whole stored range.
    pub(super) fn location(&self, index: u32) -> u32 {
        self.stored[index as usize].0
    }

    /// Encodes the location of a frame within a stored range.
    ///
    /// # Panics
    /// Panics if `range` is empty or not within the stored range.
    #[inline]
    pub(super) fn source(&self, index: u32, range: &Range<usize>) -> u32 {
        let (source, length) = self.stored[index as usize];
        assert!(range.start < range.end && range.end <= length, "a frame beyond what was stored");
        source + range.start as u32
    }
}

impl Drop for StoreMemory {
    fn drop(&mut self) {
        // SAFETY: `map` created the mapping with this length, and no reference outlives self.
        unsafe { libc::munmap(self.bytes.as_ptr().cast(), self.slabs * SLAB_DISTANCE) };
    }
}

/// A mapped array of records whose fields are atomic.
pub(super) struct Records<T> {
    first: NonNull<T>,
    count: usize,
}

// SAFETY: as for `RingMemory`; records are only accessed as atomics.
unsafe impl<T: Sync> Send for Records<T> {}

impl<T> Records<T> {
    /// Maps the array of `count` records behind `map`.
    ///
    /// # Safety
    /// `T` has the layout of a value of the array, consists of atomics, and all bytes are valid.
    pub(super) unsafe fn map(map: BorrowedFd<'_>, count: usize) -> io::Result<Self> {
        let first = map_shared(map, count * size_of::<T>())?.cast();
        Ok(Self { first, count })
    }
}

impl<T> Deref for Records<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the mapping has `count` records, as `map` demands, and lives as long as self.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

impl<T> Drop for Records<T> {
    fn drop(&mut self) {
        // SAFETY: `map` created the mapping with this length, and no reference outlives self.
        unsafe { libc::munmap(self.first.as_ptr().cast(), self.count * size_of::<T>()) };
    }
}

/// Maps the first `bytes` of an array, rounded up to pages, and populates the pages.
fn map_shared(map: BorrowedFd<'_>, bytes: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: a new shared mapping at an address of the kernel's choice touches no existing memory;
    // `map` is open during the call.
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

/// Raises the locked memory limit, which BPF maps count against before Linux 5.11.
pub(super) fn raise_locked_memory_limit() {
    let limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the pointer is to a valid rlimit; an error leaves the limit unchanged.
    unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit) };
}
