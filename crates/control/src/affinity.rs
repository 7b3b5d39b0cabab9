//! CPUs that threads may run on.

use std::io;

/// Returns the CPUs that the calling thread may run on, in ascending order.
pub fn allowed() -> Vec<usize> {
    // SAFETY: zero is an empty set; the kernel fills at most the size that is passed.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) != 0 {
            return vec![0];
        }
        set
    };
    // SAFETY: the indices are within the set.
    (0..8 * size_of::<libc::cpu_set_t>())
        .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) })
        .collect()
}

/// Restricts the calling thread, and the threads that it starts later, to these CPUs.
///
/// # Errors
/// Returns the system error. The affinity is unchanged then.
pub fn restrict_to(cpus: &[usize]) -> io::Result<()> {
    // 0 is the calling thread.
    set(0, cpus)
}

/// Restricts a thread to these CPUs, and the threads that it starts later.
///
/// # Errors
/// Returns the system error. The affinity is unchanged then.
pub(crate) fn restrict_thread_to(thread: ThreadId, cpus: &[usize]) -> io::Result<()> {
    set(thread.0, cpus)
}

/// Kernel ID of a thread. The kernel reuses the ID after the thread has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadId(libc::pid_t);

impl ThreadId {
    /// Returns the ID of the calling thread.
    pub(crate) fn current() -> Self {
        // SAFETY: the call has no arguments and cannot fail.
        Self(unsafe { libc::gettid() })
    }
}

fn set(thread: libc::pid_t, cpus: &[usize]) -> io::Result<()> {
    // SAFETY: zero is an empty set; the loop skips indices beyond the set; the set lives through
    // the call.
    let answer = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for &cpu in cpus.iter().filter(|&&cpu| cpu < 8 * size_of::<libc::cpu_set_t>()) {
            libc::CPU_SET(cpu, &mut set);
        }
        libc::sched_setaffinity(thread, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
