//! Worker threads of a run: each opens its own ports, and all start and end together.

use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration as StdDuration;

use wirestorm_base::time::{Duration, Instant};
use wirestorm_io::clock;

use crate::lifecycle::Start;

/// Interval at which observers are called.
pub(crate) const OBSERVE_INTERVAL: StdDuration = StdDuration::from_millis(100);

/// Delay between the readiness of all threads and the first departure. It allows each worker to
/// fill a ring, and threads that share CPUs to start together.
const LEAD: Duration = Duration::from_millis(2);

/// Threads that have opened their ports. Dropping this before [`Workers::start`] ends them.
pub(crate) struct Workers<'scope, T> {
    threads: Vec<ScopedJoinHandle<'scope, Option<T>>>,
    /// Sends the start to each worker.
    starts: Vec<mpsc::Sender<WorkerStart>>,
    /// Carries no message. The channel closes when the last worker ends.
    ended: mpsc::Receiver<Infallible>,
}

/// Start of a worker.
#[derive(Clone, Copy)]
struct WorkerStart {
    /// Common start time.
    at: Instant,
    /// Whether the worker itself waits for `at`. Paced workers do not: their schedule starts at
    /// `at`.
    waits_for_start: bool,
}

impl<'scope, T: Send + 'scope> Workers<'scope, T> {
    /// Starts a thread `name-index` for each opener and waits until all openers return. An opener
    /// opens the ports and returns the work to do from the common start on. A panic in any thread
    /// sets `stop` for the others.
    ///
    /// # Errors
    /// Returns the error of the first opener that failed, or `no_thread`. No work begins then.
    ///
    /// # Panics
    /// Panics if an opener panics.
    pub(crate) fn open<Open, Work, Error>(
        scope: &'scope Scope<'scope, '_>,
        name: &str,
        stop: &'scope AtomicBool,
        openers: impl IntoIterator<Item = Open>,
        no_thread: impl Fn(io::Error) -> Error,
    ) -> Result<Self, Error>
    where
        Open: FnOnce() -> Result<Work, Error> + Send + 'scope,
        Work: FnOnce(Instant) -> T,
        Error: Send + 'scope,
    {
        let (is_ready, ready) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let mut workers = Self { threads: Vec::new(), starts: Vec::new(), ended };
        for (index, open) in openers.into_iter().enumerate() {
            let (give_start, start) = mpsc::channel();
            let is_ready = is_ready.clone();
            let ending = ThreadGuard { stop, _end: end.clone() };
            let spawned =
                Builder::new().name(format!("{name}-{index}")).spawn_scoped(scope, move || {
                    let _ending = ending;
                    let (work, outcome) = match open() {
                        Ok(work) => (Some(work), Ok(())),
                        Err(error) => (None, Err(error)),
                    };
                    // The receiver is gone if another opener has failed.
                    let _ = is_ready.send(outcome);
                    drop(is_ready);
                    let begin: WorkerStart = start.recv().ok()?;
                    if begin.waits_for_start {
                        clock::wait_until(begin.at);
                    }
                    Some(work?(begin.at))
                });
            workers.threads.push(spawned.map_err(&no_thread)?);
            workers.starts.push(give_start);
        }
        drop(is_ready);
        let mut opened = 0;
        for outcome in ready {
            outcome?;
            opened += 1;
        }
        if opened < workers.threads.len() {
            // An opener panicked: joining its thread resumes the panic.
            workers.starts.clear();
            join(std::mem::take(&mut workers.threads));
        }
        Ok(workers)
    }

    /// Starts all workers at the same instant and returns it. Without a start time they start at
    /// once, or after [`LEAD`] if departures are `paced`.
    pub(crate) fn start(&self, start: Start, paced: bool) -> Instant {
        let soon = clock::now().saturating_add(if paced { LEAD } else { Duration::ZERO });
        let at = start.at.map_or(soon, |at| at.max(soon));
        let begin = WorkerStart { at, waits_for_start: start.at.is_some() && !paced };
        for worker in &self.starts {
            // The channel is closed if the worker has panicked.
            let _ = worker.send(begin);
        }
        at
    }

    /// Waits until the last worker ends. Calls `observe` about ten times a second and at the end.
    pub(crate) fn watch(&self, mut observe: impl FnMut()) {
        let has_ended = |message| matches!(message, Err(RecvTimeoutError::Disconnected));
        while !has_ended(self.ended.recv_timeout(OBSERVE_INTERVAL)) {
            observe();
        }
        observe();
    }

    /// Joins the threads and returns their results in order.
    ///
    /// # Panics
    /// Panics if a worker panicked.
    pub(crate) fn join(self) -> Vec<T> {
        drop(self.starts);
        join(self.threads)
    }
}

fn join<T>(threads: Vec<ScopedJoinHandle<'_, Option<T>>>) -> Vec<T> {
    let join = |thread: ScopedJoinHandle<'_, _>| match thread.join() {
        Ok(outcome) => outcome,
        Err(panic) => std::panic::resume_unwind(panic),
    };
    threads.into_iter().filter_map(join).collect()
}

/// Guard of a running thread: sets `stop` on a panic and signals the end of the thread.
struct ThreadGuard<'scope> {
    stop: &'scope AtomicBool,
    _end: mpsc::Sender<Infallible>,
}

impl Drop for ThreadGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    use super::*;

    const NOW: Start = Start { at: None };

    type Open<'a, T> =
        Box<dyn FnOnce() -> Result<Box<dyn FnOnce(Instant) -> T + 'a>, String> + Send + 'a>;

    fn opens<'a, T>(work: impl FnOnce(Instant) -> T + Send + 'a) -> Open<'a, T> {
        Box::new(|| Ok(Box::new(work)))
    }

    fn spawn_error(error: io::Error) -> String {
        error.to_string()
    }

    /// Waits for `stop` for at most 60 s. Returns whether it was set.
    fn work_until(stop: &AtomicBool) -> bool {
        let deadline = std::time::Instant::now() + StdDuration::from_secs(60);
        while !stop.load(Ordering::Relaxed) && std::time::Instant::now() < deadline {
            thread::yield_now();
        }
        stop.load(Ordering::Relaxed)
    }

    #[test]
    fn workers_start_together_and_return_results_in_order() {
        let stop = AtomicBool::new(false);
        let openers = (0..3).map(|index| {
            opens(move |start| (index, start, thread::current().name().map(str::to_owned)))
        });
        let (start, outcomes) = thread::scope(|scope| {
            let workers = Workers::open(scope, "worker", &stop, openers, spawn_error).unwrap();
            (workers.start(NOW, true), workers.join())
        });
        let expected = (0..3).map(|index| (index, start, Some(format!("worker-{index}"))));
        assert_eq!(outcomes, expected.collect::<Vec<_>>());
        assert!(!stop.into_inner());
    }

    #[test]
    fn no_worker_starts_if_an_opener_fails() {
        let (stop, began) = (AtomicBool::new(false), AtomicBool::new(false));
        let fails: Open<'_, ()> = Box::new(|| Err("no such interface".into()));
        let openers = [opens(|_| began.store(true, Ordering::Relaxed)), fails];
        let opened = thread::scope(|scope| {
            Workers::open(scope, "worker", &stop, openers, spawn_error).map(|_| ())
        });
        assert_eq!(opened, Err("no such interface".into()));
        assert!(!began.into_inner());
    }

    #[test]
    fn no_worker_starts_if_an_opener_panics() {
        let (stop, began) = (AtomicBool::new(false), AtomicBool::new(false));
        let panics: Open<'_, ()> = Box::new(|| panic!("a broken invariant"));
        let openers = [opens(|_| began.store(true, Ordering::Relaxed)), panics];
        let panic = catch_unwind(AssertUnwindSafe(|| {
            thread::scope(|scope| {
                let opened = Workers::open(scope, "worker", &stop, openers, spawn_error);
                opened.map(|workers| workers.start(NOW, false)).unwrap();
            });
        }))
        .unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"a broken invariant"));
        assert!(!began.into_inner());
    }

    #[test]
    fn panic_of_one_worker_stops_the_others() {
        let (stop, stopped) = (AtomicBool::new(false), AtomicBool::new(false));
        let openers = [
            opens(|_| stopped.store(work_until(&stop), Ordering::Relaxed)),
            opens(|_| panic!("a broken invariant")),
        ];
        let panic = catch_unwind(AssertUnwindSafe(|| {
            thread::scope(|scope| {
                let workers = Workers::open(scope, "worker", &stop, openers, spawn_error).unwrap();
                workers.start(NOW, false);
                workers.watch(|| {});
                workers.join();
            });
        }))
        .unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"a broken invariant"));
        assert!(stopped.into_inner());
    }

    #[test]
    fn observer_is_called_during_the_run_and_at_its_end() {
        let stop = AtomicBool::new(false);
        let (observed, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let mut ended_at_last = 0;
        let work = |_: Instant| {
            work_until(&stop);
            ended.fetch_add(1, Ordering::Relaxed);
        };
        let observe = || {
            // Stop the workers at the second observation.
            stop.store(observed.fetch_add(1, Ordering::Relaxed) > 0, Ordering::Relaxed);
            ended_at_last = ended.load(Ordering::Relaxed);
        };
        thread::scope(|scope| {
            let openers = [opens(work), opens(work)];
            let workers = Workers::open(scope, "worker", &stop, openers, spawn_error).unwrap();
            workers.start(NOW, false);
            workers.watch(observe);
        });
        assert!(observed.into_inner() > 2);
        assert_eq!(ended_at_last, 2);
    }
}
