//! Which CPUs a run may use, and which thread goes where.

use std::io;

use wirestorm_plan::backend::Backend;

/// The CPUs that this process may run on, ascending.
pub fn allowed() -> Vec<usize> {
    // SAFETY: zero is an empty set; the kernel fills at most the size that is told.
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

/// Keeps the calling thread, and the threads it starts from now on, on these CPUs.
///
/// # Errors
/// Where the system refuses, which leaves the thread where it was.
pub fn restrict_to(cpus: &[usize]) -> io::Result<()> {
    // SAFETY: zero is an empty set; indices beyond it are passed over; the set lives through
    // the call.
    let answer = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for &cpu in cpus.iter().filter(|&&cpu| cpu < 8 * size_of::<libc::cpu_set_t>()) {
            libc::CPU_SET(cpu, &mut set);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The CPUs that in-kernel senders of a run with so many ports will have to themselves, if this
/// thread starts it. A second run at the same time is better kept off them.
pub fn of_senders(backend: Backend, ports: usize) -> Vec<usize> {
    CpuPlan::new(backend, ports).senders
}

/// Which CPUs the ports' own threads have to themselves; all others share the rest.
pub(crate) struct CpuPlan {
    senders: Vec<usize>,
    rest: Vec<usize>,
    /// In-kernel senders that were asked for and have to share CPUs.
    sharing: usize,
}

impl CpuPlan {
    /// For a run with so many ports.
    pub(crate) fn new(backend: Backend, ports: usize) -> Self {
        let mut rest = allowed();
        let wanted = match backend {
            Backend::Auto | Backend::Xdp => ports,
            Backend::Memory | Backend::AfPacket | Backend::AfXdp => 0,
        };
        // One CPU at least is for everything else.
        if wanted >= rest.len() {
            let sharing = if backend == Backend::Xdp { wanted } else { 0 };
            return Self { senders: Vec::new(), rest, sharing };
        }
        let senders = rest.split_off(rest.len() - wanted);
        Self { senders, rest, sharing: 0 }
    }

    /// What one should know of it.
    pub(crate) fn note(&self) -> Option<String> {
        let (senders, cpus) = (self.sharing, self.rest.len());
        (senders > 0).then(|| {
            format!(
                "an in-kernel sender keeps a CPU busy, and {senders} of them shared {cpus} CPUs with \
                 everything else: with fewer --workers, or with --backend auto, it goes faster"
            )
        })
    }

    /// The CPU for the own thread of port `index`; `None`: it shares.
    pub(crate) fn sender(&self, index: usize) -> Option<usize> {
        self.senders.get(index).copied()
    }

    /// Keeps this thread, and those it starts from now on, off the CPUs of the ports' own threads.
    pub(crate) fn apply(&self) {
        // Where it is refused, the threads share CPUs: slower, but right.
        let _ = restrict_to(&self.rest);
    }
}
