//! Which CPUs runs use, and which thread goes where.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::backend::Backend;

/// The CPUs that the calling thread may run on, ascending.
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

/// CPUs that in-kernel senders of a host's runs have to themselves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cpus(Arc<Mutex<Vec<usize>>>);

impl Cpus {
    /// The CPUs for a run with so many sending ports, out of those that the calling thread may use
    /// and that no other run has reserved. They are free again when the plan is dropped.
    pub(crate) fn reserve(&self, backend: Backend, ports: usize) -> CpuPlan {
        let wanted = if backend.may_own_cpu() { ports } else { 0 };
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let allowed = allowed();
        let mut rest: Vec<usize> =
            allowed.iter().copied().filter(|cpu| !taken.contains(cpu)).collect();
        if rest.is_empty() {
            // Other runs have them all: the threads share CPUs with their senders.
            rest = allowed;
        }
        // One CPU at least is for everything else.
        if wanted >= rest.len() {
            let sharing = if backend.must_own_cpu() { wanted } else { 0 };
            return CpuPlan { senders: Vec::new(), rest, sharing, cpus: self.clone() };
        }
        let senders = rest.split_off(rest.len() - wanted);
        taken.extend(&senders);
        drop(taken);
        CpuPlan { senders, rest, sharing: 0, cpus: self.clone() }
    }
}

/// Which CPUs the ports' own threads have to themselves; all others share the rest.
#[derive(Debug)]
pub(crate) struct CpuPlan {
    senders: Vec<usize>,
    rest: Vec<usize>,
    /// In-kernel senders that were asked for and have to share CPUs.
    sharing: usize,
    cpus: Cpus,
}

impl CpuPlan {
    /// A note on the CPUs for the result.
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

    /// Keeps the calling thread, and those it starts from now on, off the CPUs of the ports' own
    /// threads.
    pub(crate) fn apply(&self) {
        // Where it is refused, the threads share CPUs: slower, but right.
        let _ = restrict_to(&self.rest);
    }
}

impl Drop for CpuPlan {
    fn drop(&mut self) {
        let mut taken = self.cpus.0.lock().unwrap_or_else(PoisonError::into_inner);
        taken.retain(|cpu| !self.senders.contains(cpu));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend;

    const XDP: Backend = Backend::One(&backend::XDP);
    const AF_PACKET: Backend = Backend::One(&backend::AF_PACKET);

    #[test]
    fn two_runs_have_different_cpus_for_their_senders() {
        let cpus = Cpus::default();
        if allowed().len() < 2 {
            println!("skipped: needs two CPUs");
            return;
        }
        let first = cpus.reserve(XDP, 1);
        let own = first.sender(0).unwrap();
        assert!(!first.rest.contains(&own));
        let second = cpus.reserve(XDP, 1);
        assert_ne!(second.sender(0), Some(own));
        assert!(!second.rest.contains(&own), "{:?}", second.rest);
        drop((first, second));
        assert_eq!(cpus.reserve(XDP, 1).sender(0), Some(own));
        assert_eq!(cpus.reserve(AF_PACKET, 1).sender(0), None);
    }
}
