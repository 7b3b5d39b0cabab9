//! Renews the leases of agents on their request.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use wirestorm_bus::Bus;

use super::super::protocol::{LeaseAnswer, LeaseRequest, decode, encode};
use super::TestError;

/// Fencing token of each agent whose lease is renewed on request.
type Fences = Arc<Mutex<BTreeMap<String, u64>>>;

/// A thread that answers requests of agents for a new lease.
#[derive(Debug)]
pub(super) struct Answering {
    fences: Fences,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Answering {
    pub(super) fn start(bus: Arc<dyn Bus>, subject: &str) -> Result<Self, TestError> {
        let requests = bus.subscribe(subject, 4_096)?;
        let (fences, stop) = (Fences::default(), Arc::new(AtomicBool::new(false)));
        let (known, stopping) = (Arc::clone(&fences), Arc::clone(&stop));
        let answer = move || {
            while !stopping.load(Ordering::Acquire) {
                let Ok(message) = requests.recv(Duration::from_millis(50)) else { continue };
                let Ok(request) = decode::<LeaseRequest>(&message.payload) else { continue };
                let known = known.lock().unwrap_or_else(PoisonError::into_inner);
                let granted = known.get(&request.agent) == Some(&request.fence);
                drop(known);
                // If the agent is gone, nobody needs the answer.
                let _ = bus.respond(&message, &encode(&LeaseAnswer { granted }));
            }
        };
        let thread = std::thread::Builder::new().name("director-lease".into()).spawn(answer);
        let thread = thread.map_err(|error| TestError::Plan(format!("no thread: {error}")))?;
        Ok(Self { fences, stop, thread: Some(thread) })
    }

    pub(super) fn fences(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, u64>> {
        self.fences.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // A panic of the thread has been reported by itself.
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}
