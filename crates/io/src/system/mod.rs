//! The few system calls that the ports share, wrapped so that their callers need no `unsafe`.

pub(crate) mod memory_map;
pub(crate) mod socket;

use std::io;
use std::os::fd::RawFd;

/// Turns the -1 convention of system calls into a `Result`.
pub(crate) fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// As [`checked`], for calls that return a length.
pub(crate) fn checked_length(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Whether `events` (`POLLIN`, `POLLOUT` and so on) are there now, or come within
/// `timeout_milliseconds`. A signal counts as "not yet".
pub(crate) fn poll(fd: RawFd, events: i16, timeout_milliseconds: i32) -> io::Result<bool> {
    let mut descriptor = libc::pollfd { fd, events, revents: 0 };
    // SAFETY: one descriptor, which outlives the call, and the count says one.
    match checked(unsafe { libc::poll(&mut descriptor, 1, timeout_milliseconds) }) {
        Ok(ready) => Ok(ready > 0),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        Err(error) => Err(error),
    }
}
