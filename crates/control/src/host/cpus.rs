//! Assignment of CPUs to runs and threads.

use std::sync::{Arc, Mutex, PoisonError};

use crate::affinity::{allowed, restrict_to};
use crate::backend::Backend;

/// CPUs reserved for the in-kernel senders of all runs of a host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cpus(Arc<Mutex<Vec<usize>>>);

impl Cpus {
    /// Reserves CPUs for a run with `ports` sending ports. The CPUs come from those that the
    /// calling thread may use and that no other run has reserved. Dropping the plan releases them.
    pub(crate) fn reserve(&self, backend: Backend, ports: usize) -> CpuPlan {
        let requested = if backend.may_need_dedicated_cpu() { ports } else { 0 };
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let allowed = allowed();
        let mut rest: Vec<usize> =
            allowed.iter().copied().filter(|cpu| !taken.contains(cpu)).collect();
        if rest.is_empty() {
            // Other runs have reserved all CPUs: share them.
            rest = allowed;
        }
        // Keep at least one CPU for all other threads.
        if requested >= rest.len() {
            let sharing = if backend.requires_dedicated_cpu() { requested } else { 0 };
            return CpuPlan {
                senders: Vec::new(),
                rest,
                shared_senders: sharing,
                cpus: self.clone(),
            };
        }
        let senders = rest.split_off(rest.len() - requested);
        taken.extend(&senders);
        drop(taken);
        CpuPlan { senders, rest, shared_senders: 0, cpus: self.clone() }
    }
}

/// Dedicated CPUs of the ports' sender threads. All other threads share the rest.
#[derive(Debug)]
pub(crate) struct CpuPlan {
    senders: Vec<usize>,
    rest: Vec<usize>,
    /// Number of requested in-kernel senders that must share CPUs.
    shared_senders: usize,
    cpus: Cpus,
}

impl CpuPlan {
    /// Returns a note for the result if in-kernel senders shared CPUs.
    pub(crate) fn note(&self) -> Option<String> {
        let (senders, cpus) = (self.shared_senders, self.rest.len());
        (senders > 0).then(|| {
            format!(
                "an in-kernel sender uses a full CPU, but {senders} of them share {cpus} CPUs with \
                 all other threads: use fewer --workers or --backend auto"
            )
        })
    }

    /// Returns the dedicated CPU of the sender of port `index`; `None` if it shares CPUs.
    pub(crate) fn sender(&self, index: usize) -> Option<usize> {
        self.senders.get(index).copied()
    }

    /// Keeps the calling thread, and the threads that it starts later, off the senders' CPUs.
    pub(crate) fn apply(&self) {
        // After an error the threads share CPUs, which is slower but correct.
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
    fn runs_reserve_different_sender_cpus() {
        let cpus = Cpus::default();
        if allowed().len() < 2 {
            println!("skipped: needs two CPUs");
            return;
        }
        let first = cpus.reserve(XDP, 1);
        let cpu = first.sender(0).unwrap();
        assert!(!first.rest.contains(&cpu));
        let second = cpus.reserve(XDP, 1);
        assert_ne!(second.sender(0), Some(cpu));
        assert!(!second.rest.contains(&cpu), "{:?}", second.rest);
        drop((first, second));
        assert_eq!(cpus.reserve(XDP, 1).sender(0), Some(cpu));
        assert_eq!(cpus.reserve(AF_PACKET, 1).sender(0), None);
    }
}
