//! Captures and runs that begin on the same interface at the same time.
//!
//! A run that starts during a capture receives with packet sockets, so that both see the frames. It
//! decides so before it opens its ports. So a capture registers first, and then waits for runs that
//! have decided before and are not yet in the list of runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Users of interfaces. Clones share them.
#[derive(Clone, Default)]
pub(super) struct InterfaceUsers(Arc<Shared>);

#[derive(Default)]
struct Shared {
    counts: Mutex<Counts>,
    /// Wakes captures when a preparation ends.
    prepared: Condvar,
}

/// Users by interface.
#[derive(Default)]
struct Counts {
    /// Names of the users who capture.
    captures: BTreeMap<String, Vec<String>>,
    preparations: BTreeMap<String, usize>,
}

/// A capture on an interface, until it is dropped.
pub(super) struct Capture {
    users: InterfaceUsers,
    interface: String,
    user: String,
}

/// A run that is about to open its ports, until it is dropped.
pub(super) struct Preparation {
    users: InterfaceUsers,
    interfaces: Vec<String>,
    /// Whether there is a capture on one of the interfaces.
    pub(super) is_captured: bool,
}

impl InterfaceUsers {
    /// Registers a capture. Waits for the runs that have not seen it, for at most `timeout`.
    pub(super) fn capture(&self, interface: &str, user: &str, timeout: Duration) -> Capture {
        let mut counts = self.lock();
        counts.captures.entry(interface.to_owned()).or_default().push(user.to_owned());
        let is_pending = |counts: &mut Counts| counts.preparations.contains_key(interface);
        let waited = self.0.prepared.wait_timeout_while(counts, timeout, is_pending);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        Capture { users: self.clone(), interface: interface.to_owned(), user: user.to_owned() }
    }

    /// Returns the users who capture on an interface, one entry for each capture.
    pub(super) fn capturing(&self, interface: &str) -> Vec<String> {
        self.lock().captures.get(interface).cloned().unwrap_or_default()
    }

    /// Registers a run on interfaces.
    pub(super) fn prepare(&self, interfaces: &[String]) -> Preparation {
        let mut counts = self.lock();
        for interface in interfaces {
            *counts.preparations.entry(interface.clone()).or_default() += 1;
        }
        let is_captured = interfaces.iter().any(|it| counts.captures.contains_key(it));
        drop(counts);
        Preparation { users: self.clone(), interfaces: interfaces.to_vec(), is_captured }
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let mut counts = self.users.lock();
        if let Some(users) = counts.captures.get_mut(&self.interface) {
            if let Some(at) = users.iter().position(|user| *user == self.user) {
                users.remove(at);
            }
            if users.is_empty() {
                counts.captures.remove(&self.interface);
            }
        }
    }
}

impl Drop for Preparation {
    fn drop(&mut self) {
        let mut counts = self.users.lock();
        for interface in &self.interfaces {
            if let Some(count) = counts.preparations.get_mut(interface) {
                *count -= 1;
                if *count == 0 {
                    counts.preparations.remove(interface);
                }
            }
        }
        drop(counts);
        self.users.0.prepared.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    const TIMEOUT: Duration = Duration::from_secs(60);

    #[test]
    fn runs_see_captures_that_began_before() {
        let users = InterfaceUsers::default();
        let interfaces = ["eth1".to_owned(), "eth2".to_owned()];
        assert!(!users.prepare(&interfaces).is_captured);
        let first = users.capture("eth2", "ada", TIMEOUT);
        let second = users.capture("eth2", "bob", TIMEOUT);
        assert_eq!(users.capturing("eth2"), ["ada", "bob"]);
        assert!(users.prepare(&interfaces).is_captured);
        assert!(!users.prepare(&interfaces[..1]).is_captured);
        drop(first);
        assert!(users.prepare(&interfaces).is_captured, "the other capture continues");
        assert_eq!(users.capturing("eth2"), ["bob"]);
        drop(second);
        assert!(!users.prepare(&interfaces).is_captured);
    }

    #[test]
    fn a_capture_waits_for_runs_that_have_not_seen_it() {
        let users = InterfaceUsers::default();
        let run = users.prepare(&["eth1".to_owned()]);
        let (sender, receiver) = mpsc::channel();
        let capturing = users.clone();
        let thread = std::thread::spawn(move || {
            let capture = capturing.capture("eth1", "ada", TIMEOUT);
            sender.send(()).unwrap();
            capture
        });
        // Until the capture is registered, it cannot have ended.
        while !users.prepare(&["eth1".to_owned()]).is_captured {
            std::thread::yield_now();
        }
        assert!(receiver.try_recv().is_err(), "the run is not prepared");
        drop(run);
        receiver.recv_timeout(TIMEOUT).unwrap();
        drop(thread.join().unwrap());
        assert!(!users.prepare(&["eth1".to_owned()]).is_captured);
    }
}
