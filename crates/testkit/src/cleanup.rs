//! Cleanup of namespaces and scratch folders that this process created.
//!
//! Names of namespaces and scratch folders contain the process ID, `ws-PID-N...`. They are removed
//! on drop, also during a panic, and before a signal ends the process. A new process removes what a
//! killed one left.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Folder where `ip netns` keeps the namespaces.
const NAMESPACES: &str = "/run/netns";
const PREFIX: &str = "ws-";

/// Time that a foreground program, which gets the signal too, has to print its result.
const FOREGROUND_GRACE: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CleanupItem {
    Namespace(String),
    Folder(PathBuf),
}

impl CleanupItem {
    fn remove(&self) {
        match self {
            Self::Namespace(name) => remove_namespace(name),
            Self::Folder(path) => drop(std::fs::remove_dir_all(path)),
        }
    }
}

static REGISTERED: Mutex<BTreeSet<CleanupItem>> = Mutex::new(BTreeSet::new());
static FOREGROUND: AtomicUsize = AtomicUsize::new(0);

/// Returns a name unique among processes and calls: `ws-PID-N`.
pub(crate) fn unique_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    static PREPARE: Once = Once::new();
    PREPARE.call_once(|| {
        remove_orphans();
        remove_on_signal();
    });
    format!("{PREFIX}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Registers an item before it is created, so that a signal in between removes it too.
pub(crate) fn register(leftover: CleanupItem) {
    registered().insert(leftover);
}

/// Removes a registered item.
pub(crate) fn remove(leftover: &CleanupItem) {
    leftover.remove();
    registered().remove(leftover);
}

/// Counts a foreground program as long as the guard lives.
pub(crate) fn foreground() -> impl Drop {
    struct Foreground;
    impl Drop for Foreground {
        fn drop(&mut self) {
            FOREGROUND.fetch_sub(1, Ordering::AcqRel);
        }
    }
    FOREGROUND.fetch_add(1, Ordering::AcqRel);
    Foreground
}

fn registered() -> MutexGuard<'static, BTreeSet<CleanupItem>> {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn remove_on_signal() {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGHUP]) else { return };
    let watch = move || {
        if let Some(signal) = signals.forever().next() {
            let deadline = Instant::now() + FOREGROUND_GRACE;
            while FOREGROUND.load(Ordering::Acquire) > 0 && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
            }
            registered().iter().for_each(CleanupItem::remove);
            // Ends the process as the signal would have.
            drop(signal_hook::low_level::emulate_default_handler(signal));
        }
    };
    drop(std::thread::Builder::new().name("leftovers".into()).spawn(watch));
}

/// Removes items of processes that no longer exist.
fn remove_orphans() {
    for name in names_in(Path::new(NAMESPACES)).filter(|name| is_orphan(name)) {
        remove_namespace(&name);
    }
    let temporary = std::env::temp_dir();
    for name in names_in(&temporary).filter(|name| is_orphan(name)) {
        drop(std::fs::remove_dir_all(temporary.join(name)));
    }
}

fn names_in(directory: &Path) -> impl Iterator<Item = String> {
    std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
}

/// Whether the name has our format and its process no longer exists.
fn is_orphan(name: &str) -> bool {
    let Some((pid, _)) = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-')) else {
        return false;
    };
    pid.parse::<u32>().is_ok_and(|pid| !Path::new("/proc").join(pid.to_string()).exists())
}

/// Kills the processes in the namespace, then removes it.
fn remove_namespace(name: &str) {
    let process_id = std::process::id().to_string();
    if let Ok(pids) = Command::new("ip").args(["netns", "pids", name]).output() {
        let pids = String::from_utf8_lossy(&pids.stdout).into_owned();
        for pid in pids.split_whitespace().filter(|pid| *pid != process_id) {
            if let Some(pid) = pid.parse().ok().and_then(rustix::process::Pid::from_raw) {
                // The process may have exited meanwhile, so ignore errors.
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
    // Ignore the error output if the namespace does not exist.
    drop(Command::new("ip").args(["netns", "del", name]).output());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_exited_processes_are_orphans() {
        let process_id = std::process::id();
        assert!(!is_orphan(&format!("ws-{process_id}-0-a")));
        // Above the kernel's largest process ID.
        assert!(is_orphan("ws-4194305-0-a"));
        for foreign in ["ws-", "ws-x-1", "other", "ws-4194305", "wsx-4194305-0"] {
            assert!(!is_orphan(foreign), "{foreign}");
        }
    }

    #[test]
    fn names_are_unique() {
        assert_ne!(unique_name(), unique_name());
    }
}
