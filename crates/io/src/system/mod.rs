//! Safe wrappers of the system calls that several ports use.

pub(crate) mod bpf;
pub(crate) mod memory_map;
pub(crate) mod socket;

use std::io;

/// Turns the -1 convention of system calls into a `Result`.
pub(crate) fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Same as [`checked`], for calls that return a length.
pub(crate) fn checked_length(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Finds the operating system's error number in a chain of errors.
pub(crate) fn system_error(error: &(dyn std::error::Error + 'static)) -> Option<i32> {
    std::iter::successors(Some(error), |error| error.source())
        .find_map(|error| error.downcast_ref::<io::Error>()?.raw_os_error())
}
