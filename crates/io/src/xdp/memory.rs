//! The mapping of the shared array into this process.
//!
//! The kernel's program and this process write to disjoint parts: the program to `kernel`,
//! `device` and the histograms, the process to the rest, and to a descriptor or buffer only while
//! it is not in flight. Counters that the other side reads are accessed as atomics.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use super::layout::{BUFFER_BYTES, BUFFERS, DESCRIPTORS, DeviceSide, KernelSide, Ring, UserSide};

/// A mapped [`Ring`].
pub(super) struct RingMemory {
    ring: NonNull<Ring>,
    bytes: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread; all shared counters are accessed
// as atomics, and everything else only through `&mut self`.
unsafe impl Send for RingMemory {}

impl RingMemory {
    /// Maps the array behind `map` and touches every page once.
    pub(super) fn map(map: BorrowedFd<'_>) -> io::Result<Self> {
        let page = page_size();
        let bytes = size_of::<Ring>().next_multiple_of(page);
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
        let ring = NonNull::new(address.cast::<Ring>())
            .ok_or_else(|| io::Error::other("mmap returned address zero"))?;
        Ok(Self { ring, bytes })
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
    pub(super) fn write_descriptor(
        &mut self,
        position: u64,
        departure: u64,
        buffer: u32,
        length: u32,
    ) {
        let index = position as usize & (DESCRIPTORS - 1);
        // SAFETY: the index is within the array; the program reads a descriptor only between the
        // release of `produced` beyond it and its own release of `consumed` beyond it, and the
        // caller holds `&mut self` outside of that span.
        unsafe {
            let descriptor = &raw mut (*self.ring.as_ptr()).descriptors[index];
            (*descriptor).departure = departure;
            (*descriptor).buffer = buffer;
            (*descriptor).length = length;
        }
    }

    /// The buffer named by the descriptor at `position` (modulo the ring), which was consumed.
    #[inline]
    pub(super) fn consumed_buffer(&self, position: u64) -> u32 {
        let index = position as usize & (DESCRIPTORS - 1);
        // SAFETY: the index is within the array, and only this process writes descriptors.
        unsafe { (*self.ring.as_ptr()).descriptors[index].buffer }
    }

    /// Buffer `index`.
    ///
    /// # Panics
    /// Where there is no such buffer.
    #[inline]
    pub(super) fn buffer_mut(&mut self, index: u32) -> &mut [u8; BUFFER_BYTES] {
        assert!((index as usize) < BUFFERS);
        // SAFETY: the index was checked; the program reads a buffer only while it is in flight,
        // and then no `FrameId` for it exists.
        unsafe { &mut (*self.ring.as_ptr()).buffers[index as usize] }
    }
}

impl Drop for RingMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `map` with this length, and no reference outlives self.
        unsafe { libc::munmap(self.ring.as_ptr().cast(), self.bytes) };
    }
}

fn page_size() -> usize {
    // SAFETY: sysconf has no preconditions.
    let answer = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(answer).unwrap_or(4096)
}

/// Maps are charged to the locked memory limit before Linux 5.11; later kernels ignore it.
pub(super) fn raise_locked_memory_limit() {
    let limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the pointer is to a valid rlimit; a refusal leaves the limit as it was.
    unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit) };
}
