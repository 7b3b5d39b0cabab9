//! The lock of an interface within this process: held by a lease, by a run, or by both.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use wirestorm_io::link::Link;
use wirestorm_io::lock::{Access, Holder, InterfaceLock, LockError};
use wirestorm_io::namespace::InterfaceName;

use super::error::OpenError;

/// Keeps other processes from transmitting on an interface, with or without a run of this one,
/// until dropped. Runs of this process start there as if it were free.
#[derive(Debug)]
pub struct Lease {
    _lock: Arc<InterfaceLock>,
}

/// The right of a run to transmit on an interface, of which a process has one.
#[derive(Debug)]
pub(crate) struct RunLock {
    _lock: Arc<InterfaceLock>,
}

/// What this process holds of an interface, by its name and index.
struct Held {
    interface: InterfaceName,
    index: u32,
    lock: Weak<InterfaceLock>,
    run: Weak<RunLock>,
}

/// The kernel knows one holder of a lock, the process; who within it is known here.
static HELD: Mutex<Vec<Held>> = Mutex::new(Vec::new());

impl Lease {
    /// Takes the lock of an interface by its name, or shares what this process has of it.
    ///
    /// # Errors
    /// Where there is no such interface, or another process holds the lock; its number is told.
    pub fn take(interface: &str) -> Result<Self, OpenError> {
        let interface: InterfaceName = interface.parse()?;
        let index = Link::open(&interface)?.index;
        let lock = with_held(&interface, index, |held| held.lock())?;
        Ok(Self { _lock: lock })
    }
}

impl RunLock {
    /// Takes the lock for a run. Runs with shared access exclude each other neither here nor in
    /// other processes.
    ///
    /// # Errors
    /// Where another run of this process has it, or another process.
    pub(crate) fn take(
        interface: &InterfaceName,
        index: u32,
        access: Access,
    ) -> Result<Arc<Self>, LockError> {
        with_held(interface, index, |held| {
            if held.run.strong_count() > 0 {
                let holder = Holder { process: Some(std::process::id()) };
                return Err(LockError::Held { interface: interface.clone(), holder });
            }
            if access == Access::Shared && held.lock.strong_count() == 0 {
                let lock = InterfaceLock::acquire(interface, access)?;
                return Ok(Arc::new(Self { _lock: Arc::new(lock) }));
            }
            let run = Arc::new(Self { _lock: held.lock()? });
            held.run = Arc::downgrade(&run);
            Ok(run)
        })
    }
}

impl Held {
    fn lock(&mut self) -> Result<Arc<InterfaceLock>, LockError> {
        if let Some(lock) = self.lock.upgrade() {
            return Ok(lock);
        }
        let lock = Arc::new(InterfaceLock::acquire(&self.interface, Access::Exclusive)?);
        self.lock = Arc::downgrade(&lock);
        Ok(lock)
    }
}

fn with_held<T>(interface: &InterfaceName, index: u32, act: impl FnOnce(&mut Held) -> T) -> T {
    let mut all = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|held| held.lock.strong_count() > 0);
    let known = all.iter().position(|held| held.interface == *interface && held.index == index);
    let place = known.unwrap_or_else(|| {
        let (lock, run) = (Weak::new(), Weak::new());
        all.push(Held { interface: interface.clone(), index, lock, run });
        all.len() - 1
    });
    act(&mut all[place])
}

#[cfg(test)]
mod tests {
    use wirestorm_testkit::net::Lab;
    use wirestorm_testkit::require::require_root;

    use super::*;

    #[test]
    fn a_lease_keeps_others_away_and_lets_one_run_of_this_process_start() {
        if !require_root() {
            return;
        }
        let lab = Lab::new().unwrap();
        let interface: InterfaceName = lab.a.port().parse().unwrap();
        let index = Link::open(&interface).unwrap().index;
        let (first, second) =
            (Lease::take(&lab.a.port()).unwrap(), Lease::take(&lab.a.port()).unwrap());
        // What another process would find.
        let others = || InterfaceLock::acquire(&interface, Access::Exclusive);
        let own = std::process::id();
        assert!(matches!(
            others(),
            Err(LockError::Held { holder, .. }) if holder.process == Some(own)
        ));
        let run = RunLock::take(&interface, index, Access::Exclusive).unwrap();
        assert!(RunLock::take(&interface, index, Access::Exclusive).is_err(), "a second run");
        drop((first, second));
        assert!(others().is_err(), "the run goes on without a lease");
        let lease = Lease::take(&lab.a.port()).unwrap();
        drop(run);
        drop(RunLock::take(&interface, index, Access::Exclusive).unwrap());
        assert!(others().is_err());
        drop(lease);
        assert!(others().is_ok());
    }

    #[test]
    fn an_interface_that_is_not_there_cannot_be_leased() {
        let error = Lease::take("nowhere0").unwrap_err();
        assert!(error.to_string().contains("nowhere0"), "{error}");
    }
}
