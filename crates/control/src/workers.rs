//! Worker threads that open their ports by themselves, begin together, and end together.

use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration as StdDuration;

use wirestorm_base::time::{Duration, Instant};
use wirestorm_io::clock;

use crate::lifecycle::Start;

/// How often an observer is told.
pub(crate) const OBSERVE_INTERVAL: StdDuration = StdDuration::from_millis(100);

/// Time from the moment all threads are ready to the first departure: enough to fill a ring, and
/// for threads that wait on several CPUs to begin together.
const LEAD: Duration = Duration::from_millis(2);

/// Threads that have opened what they work with. Dropped before [`Workers::start`], they end.
pub(crate) struct Workers<'scope, T> {
    threads: Vec<ScopedJoinHandle<'scope, Option<T>>>,
    /// Where each of them waits for the start.
    starts: Vec<mpsc::Sender<Begin>>,
    /// Nothing comes out of it: it closes when the last of them ends.
    ended: mpsc::Receiver<Infallible>,
}

/// When a worker begins.
#[derive(Clone, Copy)]
struct Begin {
    /// The common start.
    at: Instant,
    /// Whether the worker has no schedule that holds frames back until then.
    waits: bool,
}

impl<'scope, T: Send + 'scope> Workers<'scope, T> {
    /// Starts a thread for each of `openers`, called `name` and its number, and waits until all
    /// have opened what they need. An opener returns the work that begins at the common start.
    /// One that panics, then or later, has `stop` set for the others.
    ///
    /// # Errors
    /// What the first opener said that failed, or `no_thread`. No work begins then.
    ///
    /// # Panics
    /// Where an opener does.
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
            let ending = Ending { stop, _end: end.clone() };
            let spawned =
                Builder::new().name(format!("{name}-{index}")).spawn_scoped(scope, move || {
                    let _ending = ending;
                    let (work, outcome) = match open() {
                        Ok(work) => (Some(work), Ok(())),
                        Err(error) => (None, Err(error)),
                    };
                    // Nobody listens any more where another has failed.
                    let _ = is_ready.send(outcome);
                    drop(is_ready);
                    let begin: Begin = start.recv().ok()?;
                    if begin.waits {
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
            // One of them panicked, and so does this.
            workers.starts.clear();
            join(std::mem::take(&mut workers.threads));
        }
        Ok(workers)
    }

    /// Lets all begin at one instant, which it returns: at the time that was asked for; else at once,
    /// or with a little time for all of them to get there where departures are `paced`.
    pub(crate) fn start(&self, start: Start, paced: bool) -> Instant {
        let soon = clock::now().saturating_add(if paced { LEAD } else { Duration::ZERO });
        let at = start.at.map_or(soon, |at| at.max(soon));
        let begin = Begin { at, waits: start.at.is_some() && !paced };
        for worker in &self.starts {
            // One that has panicked does not listen.
            let _ = worker.send(begin);
        }
        at
    }

    /// Waits until the last of them ends; `observe` is called about ten times a second, and then.
    pub(crate) fn watch(&self, mut observe: impl FnMut()) {
        let has_ended = |told| matches!(told, Err(RecvTimeoutError::Disconnected));
        while !has_ended(self.ended.recv_timeout(OBSERVE_INTERVAL)) {
            observe();
        }
        observe();
    }

    /// What each came back with, in their order.
    ///
    /// # Panics
    /// Where one of them did.
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

/// Held by a thread for as long as it runs.
struct Ending<'scope> {
    stop: &'scope AtomicBool,
    _end: mpsc::Sender<Infallible>,
}

impl Drop for Ending<'_> {
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

    fn no_thread(error: io::Error) -> String {
        error.to_string()
    }

    /// Works until it is told to stop, for a minute at most; whether it was told.
    fn work_until(stop: &AtomicBool) -> bool {
        let deadline = std::time::Instant::now() + StdDuration::from_secs(60);
        while !stop.load(Ordering::Relaxed) && std::time::Instant::now() < deadline {
            thread::yield_now();
        }
        stop.load(Ordering::Relaxed)
    }

    #[test]
    fn all_begin_at_one_instant_and_come_back_in_their_order() {
        let stop = AtomicBool::new(false);
        let openers = (0..3).map(|index| {
            opens(move |start| (index, start, thread::current().name().map(str::to_owned)))
        });
        let (start, outcomes) = thread::scope(|scope| {
            let workers = Workers::open(scope, "worker", &stop, openers, no_thread).unwrap();
            (workers.start(NOW, true), workers.join())
        });
        let expected = (0..3).map(|index| (index, start, Some(format!("worker-{index}"))));
        assert_eq!(outcomes, expected.collect::<Vec<_>>());
        assert!(!stop.into_inner());
    }

    #[test]
    fn where_one_does_not_open_none_begins() {
        let (stop, began) = (AtomicBool::new(false), AtomicBool::new(false));
        let fails: Open<'_, ()> = Box::new(|| Err("no such interface".into()));
        let openers = [opens(|_| began.store(true, Ordering::Relaxed)), fails];
        let opened = thread::scope(|scope| {
            Workers::open(scope, "worker", &stop, openers, no_thread).map(|_| ())
        });
        assert_eq!(opened, Err("no such interface".into()));
        assert!(!began.into_inner());
    }

    #[test]
    fn where_one_panics_while_it_opens_none_begins() {
        let (stop, began) = (AtomicBool::new(false), AtomicBool::new(false));
        let panics: Open<'_, ()> = Box::new(|| panic!("a broken invariant"));
        let openers = [opens(|_| began.store(true, Ordering::Relaxed)), panics];
        let panic = catch_unwind(AssertUnwindSafe(|| {
            thread::scope(|scope| {
                let opened = Workers::open(scope, "worker", &stop, openers, no_thread);
                opened.map(|workers| workers.start(NOW, false)).unwrap();
            });
        }))
        .unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"a broken invariant"));
        assert!(!began.into_inner());
    }

    #[test]
    fn where_one_panics_at_work_the_others_stop() {
        let (stop, stopped) = (AtomicBool::new(false), AtomicBool::new(false));
        let openers = [
            opens(|_| stopped.store(work_until(&stop), Ordering::Relaxed)),
            opens(|_| panic!("a broken invariant")),
        ];
        let panic = catch_unwind(AssertUnwindSafe(|| {
            thread::scope(|scope| {
                let workers = Workers::open(scope, "worker", &stop, openers, no_thread).unwrap();
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
    fn the_observer_is_told_while_they_work_and_when_all_have_ended() {
        let stop = AtomicBool::new(false);
        let (observed, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let mut ended_at_last = 0;
        let work = |_: Instant| {
            work_until(&stop);
            ended.fetch_add(1, Ordering::Relaxed);
        };
        let observe = || {
            // The workers go on until they have been looked at twice.
            stop.store(observed.fetch_add(1, Ordering::Relaxed) > 0, Ordering::Relaxed);
            ended_at_last = ended.load(Ordering::Relaxed);
        };
        thread::scope(|scope| {
            let openers = [opens(work), opens(work)];
            let workers = Workers::open(scope, "worker", &stop, openers, no_thread).unwrap();
            workers.start(NOW, false);
            workers.watch(observe);
        });
        assert!(observed.into_inner() > 2);
        assert_eq!(ended_at_last, 2);
    }
}
