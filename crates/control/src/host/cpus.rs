//! Assignment of CPUs to runs and threads.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::affinity::{ThreadId, allowed, restrict_thread_to, restrict_to};
use crate::backend::Backend;

/// CPUs reserved for the in-kernel senders of all runs of a host.
#[derive(Clone, Debug)]
pub(crate) struct Cpus(Arc<Mutex<State>>);

impl Default for Cpus {
    /// All CPUs that the calling thread may use are free.
    fn default() -> Self {
        Self(Arc::new(Mutex::new(State {
            all: allowed(),
            taken: Vec::new(),
            bystanders: Vec::new(),
        })))
    }
}

#[derive(Debug)]
struct State {
    /// CPUs of the host. A thread may have fewer: one that starts during a run has those that the run
    /// left to the thread that started it.
    all: Vec<usize>,
    taken: Vec<usize>,
    /// Threads beside the runs.
    bystanders: Vec<ThreadId>,
}

impl State {
    /// Returns the CPUs that no run has reserved, or all if there is none.
    fn free(&self) -> Vec<usize> {
        let is_free = |cpu: &usize| !self.taken.contains(cpu);
        let free: Vec<usize> = self.all.iter().copied().filter(is_free).collect();
        if free.is_empty() { self.all.clone() } else { free }
    }

    /// Moves all bystanders to the CPUs that no run has reserved.
    fn move_bystanders(&self) {
        let free = self.free();
        for thread in &self.bystanders {
            // After an error the thread shares CPUs, which is slower but correct.
            let _ = restrict_thread_to(*thread, &free);
        }
    }
}

/// Keeps a thread off the CPUs that runs reserve, see
/// [`Host::keep_off_reserved_cpus`](super::Host::keep_off_reserved_cpus).
#[derive(Debug)]
pub struct OffReservedCpus {
    thread: ThreadId,
    cpus: Cpus,
    /// Stays on its thread: after the end of the thread, its ID may belong to another one.
    _not_send: PhantomData<*const ()>,
}

impl Drop for OffReservedCpus {
    fn drop(&mut self) {
        self.cpus.lock().bystanders.retain(|it| *it != self.thread);
    }
}

impl Cpus {
    /// Keeps the calling thread off reserved CPUs, now and whenever a run reserves some.
    pub(super) fn keep_off(&self) -> OffReservedCpus {
        let thread = ThreadId::current();
        let mut state = self.lock();
        state.bystanders.push(thread);
        state.move_bystanders();
        drop(state);
        OffReservedCpus { thread, cpus: self.clone(), _not_send: PhantomData }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves CPUs for a run with `ports` sending ports, from those that no other run has reserved.
    /// Dropping the plan releases them.
    pub(crate) fn reserve(&self, backend: Backend, ports: usize) -> CpuPlan {
        let requested = if backend.may_need_dedicated_cpu() { ports } else { 0 };
        let mut state = self.lock();
        // If other runs have reserved all CPUs, share them.
        let mut rest = state.free();
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
        state.taken.extend(&senders);
        state.move_bystanders();
        drop(state);
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
        let mut state = self.cpus.lock();
        state.taken.retain(|cpu| !self.senders.contains(cpu));
        state.move_bystanders();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend;
    use crate::host::Host;

    const XDP: Backend = Backend::One(&backend::XDP);
    const AF_PACKET: Backend = Backend::One(&backend::AF_PACKET);

    /// Returns the CPUs of this thread if there are two; otherwise prints that the test is skipped.
    fn two_cpus() -> Option<Vec<usize>> {
        let cpus = Some(allowed()).filter(|cpus| cpus.len() > 1);
        if cpus.is_none() {
            println!("skipped: needs two CPUs");
        }
        cpus
    }

    #[test]
    fn runs_reserve_different_sender_cpus() {
        let Some(_) = two_cpus() else { return };
        let cpus = Cpus::default();
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

    #[test]
    fn nodes_of_one_machine_reserve_different_sender_cpus() {
        let Some(_) = two_cpus() else { return };
        let machine = Host::new();
        let nodes = [machine.of_other_node(), machine.of_other_node()];
        let first = nodes[0].cpus().reserve(XDP, 1);
        let second = nodes[1].cpus().reserve(XDP, 1);
        assert!(first.sender(0).is_some());
        assert_ne!(second.sender(0), first.sender(0));
    }

    #[test]
    fn thread_that_starts_during_a_run_has_all_cpus_after_it() {
        let Some(before) = two_cpus() else { return };
        let cpus = Cpus::default();
        let _off = cpus.keep_off();
        let run = std::thread::scope(|scope| scope.spawn(|| cpus.reserve(XDP, 1)).join().unwrap());
        let (end, ended) = std::sync::mpsc::channel();
        let (start, started) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let cpus = cpus.clone();
            let later = scope.spawn(move || {
                let _off = cpus.keep_off();
                start.send(allowed()).unwrap();
                ended.recv().unwrap();
                (allowed(), cpus.reserve(XDP, 1).sender(0))
            });
            assert_eq!(started.recv().unwrap().len(), before.len() - 1);
            drop(run);
            end.send(()).unwrap();
            let (after, sender) = later.join().unwrap();
            assert_eq!(after, before);
            assert!(sender.is_some());
        });
    }

    #[test]
    fn bystander_leaves_the_cpus_that_a_run_reserves_and_returns_at_its_end() {
        let Some(before) = two_cpus() else { return };
        let cpus = Cpus::default();
        let off = cpus.keep_off();
        assert_eq!(allowed(), before);
        // The run reserves on a thread of its own.
        let reserve = || cpus.reserve(XDP, 1);
        let plan = std::thread::scope(|scope| scope.spawn(reserve).join().unwrap());
        let sender = plan.sender(0).unwrap();
        let without: Vec<usize> = before.iter().copied().filter(|cpu| *cpu != sender).collect();
        assert_eq!(allowed(), without);
        drop(plan);
        assert_eq!(allowed(), before);
        drop(off);
        let plan = std::thread::scope(|scope| scope.spawn(reserve).join().unwrap());
        assert!(plan.sender(0).is_some());
        assert_eq!(allowed(), before, "the guard is gone");
    }
}
