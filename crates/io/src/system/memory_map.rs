//! Memory shared with the kernel: `mmap(2)` with `munmap(2)` on drop.

use std::io;
use std::os::fd::RawFd;
use std::ptr::NonNull;

use super::checked;

/// A page-aligned mapping, unmapped on drop. The kernel may change its contents at any time, so
/// access is through raw pointers only.
pub(crate) struct MemoryMap {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: a mapping belongs to the process, not to the thread that made it, and this value is
// its only owner.
unsafe impl Send for MemoryMap {}

// SAFETY: a shared reference gives out only raw pointers and numbers. Code that dereferences the
// pointers must synchronize.
unsafe impl Sync for MemoryMap {}

impl MemoryMap {
    /// Maps `length` bytes of a socket's ring at `offset` and populates the pages.
    pub(crate) fn of_socket(fd: RawFd, length: usize, offset: i64) -> io::Result<Self> {
        Self::map(fd, length, offset, libc::MAP_SHARED | libc::MAP_POPULATE)
    }

    /// Maps `length` zeroed bytes of private memory. The first access to a page populates it.
    pub(crate) fn anonymous(length: usize) -> io::Result<Self> {
        Self::map(-1, length, 0, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS)
    }

    fn map(fd: RawFd, length: usize, offset: i64, flags: libc::c_int) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the address, so no existing mapping is touched.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        match NonNull::new(start.cast()) {
            Some(start) => Ok(Self { start, length }),
            None => Err(io::Error::other("mmap returned address zero")),
        }
    }

    /// Length of the mapping in bytes.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Returns the address of byte `offset`.
    ///
    /// # Panics
    /// Panics if `offset..offset + length` is not within the mapping.
    pub(crate) fn at(&self, offset: usize, length: usize) -> *mut u8 {
        let end = offset.checked_add(length);
        assert!(
            end.is_some_and(|end| end <= self.length),
            "bytes {offset} + {length} of a mapping of {}",
            self.length
        );
        // SAFETY: just checked to be within the mapping.
        unsafe { self.start.as_ptr().add(offset) }
    }
}

impl Drop for MemoryMap {
    fn drop(&mut self) {
        // SAFETY: `map` created this mapping with this length, and no other code unmaps it. An
        // error would mean wrong bounds; there is no way to recover here.
        let _ = checked(unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) });
    }
}
