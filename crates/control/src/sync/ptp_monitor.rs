//! A PTP session that lasts as long as its process, whatever happens to its interface.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration as StdDuration;

use wirestorm_base::time::{Duration, Instant};
use wirestorm_clock::estimate::{Estimate, Timeline};
use wirestorm_clock::exchange::Exchange;
use wirestorm_clock::timestamp::Timestamp;
use wirestorm_io::clock;

use super::ptp::{PtpOptions, PtpRole, PtpSession, PtpSource};
use super::{PATIENCE, STAMP_ERROR_NS, TransportError, now};

/// Time until a session that failed is opened again, and between two looks at an idle interface.
const RETRY: Duration = Duration::from_secs(1);
/// Exchanges that are kept: those of 8 minutes at 128 a second.
const EXCHANGES_MAX: usize = 1 << 16;
/// Newest exchanges of the live estimate.
const LIVE_EXCHANGES: usize = 256;
/// Exchanges that an estimate needs: with less, its error is not known well.
const EXCHANGES_MIN: usize = 8;
/// Time and number of exchanges before a test that belong to it: as far as an estimate looks back.
const HISTORY_NS: i64 = 10_000_000_000;
const HISTORY_EXCHANGES: usize = 16;
/// Changes that nobody has read yet. More of them replace the oldest.
const CHANGES_MAX: usize = 64;

/// Follows a PTP master, or is one, in a thread, until it is dropped. It opens the interface again
/// after each failure.
#[derive(Debug)]
pub struct PtpMonitor {
    options: PtpOptions,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Exchanges with one clock, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct PtpTrack {
    /// The clock, the far end.
    pub source: PtpSource,
    /// The exchanges.
    pub exchanges: Vec<Exchange>,
}

/// Present state of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct PtpState {
    /// The clock that the session is compared with; `None` while a slave has no master.
    pub source: Option<PtpSource>,
    /// Why the interface cannot be used; `None` if it can.
    pub problem: Option<String>,
    /// Newest exchanges with the source, at most those of the live estimate.
    pub exchanges: usize,
    /// Source minus own clock now, with the error of the time stamps; `None` with less than 8
    /// exchanges. For a master it is 0.
    pub offset: Option<Estimate>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    exchanges: VecDeque<(Arc<PtpSource>, Exchange)>,
    source: Option<Arc<PtpSource>>,
    problem: Option<String>,
    changes: VecDeque<String>,
    is_stopped: bool,
}

impl PtpMonitor {
    /// Opens the interface and starts the thread.
    ///
    /// # Errors
    /// The interface cannot be used, as text with the interface; or there is no thread.
    pub fn start(options: PtpOptions) -> Result<Self, String> {
        let session = open(&options).map_err(|error| error.to_string())?;
        let shared = Arc::new(Shared::default());
        let (of_thread, for_thread) = (Arc::clone(&shared), options.clone());
        let work = move || run(&for_thread, session, &of_thread);
        let thread = std::thread::Builder::new().name("ptp".into()).spawn(work);
        let thread =
            thread.map_err(|error: io::Error| format!("cannot start a thread: {error}"))?;
        Ok(Self { options, shared, thread: Some(thread) })
    }

    /// Returns the settings.
    pub const fn options(&self) -> &PtpOptions {
        &self.options
    }

    /// Returns whether this machine is the master.
    pub const fn is_master(&self) -> bool {
        matches!(self.options.role, PtpRole::Master { .. })
    }

    /// Returns the state. `with_offset`: the offset takes some time to compute.
    pub fn state(&self, with_offset: bool) -> PtpState {
        let (source, problem, newest) = {
            let state = self.shared.state();
            let source = state.source.clone();
            let of_source = |(of, _): &&(Arc<PtpSource>, Exchange)| Some(of) == source.as_ref();
            let newest = state.exchanges.iter().rev().take_while(of_source).take(LIVE_EXCHANGES);
            let newest: Vec<Exchange> = newest.map(|(_, exchange)| *exchange).collect();
            (source, state.problem.clone(), newest.into_iter().rev().collect::<Vec<_>>())
        };
        let timeline = match with_offset && newest.len() >= EXCHANGES_MIN {
            true => Timeline::new(&newest),
            false => Timeline::default(),
        };
        let mut offset = timeline.at(now());
        if let Some(offset) = &mut offset {
            offset.half_width_ns += STAMP_ERROR_NS;
        }
        if self.is_master() {
            offset = Timeline::constant(0.0, 0.0).at(now());
        }
        let source = source.map(|source| (*source).clone());
        PtpState { source, problem, exchanges: newest.len(), offset }
    }

    /// Returns the exchanges that began after a time, by their clocks, in order; without a time, those
    /// of the last 10 s, and at least the last 16.
    pub fn after(&self, time: Option<Timestamp>) -> Vec<PtpTrack> {
        let state = self.shared.state();
        let exchanges = &state.exchanges;
        let from = |time: Timestamp| exchanges.partition_point(|(_, it)| it.t1 <= time);
        let from = time.map_or_else(
            || from(now() + -HISTORY_NS).min(exchanges.len().saturating_sub(HISTORY_EXCHANGES)),
            from,
        );
        let mut tracks: Vec<PtpTrack> = Vec::new();
        for (source, exchange) in exchanges.range(from..) {
            match tracks.last_mut().filter(|track| track.source == **source) {
                Some(track) => track.exchanges.push(*exchange),
                None => {
                    let source = (**source).clone();
                    tracks.push(PtpTrack { source, exchanges: vec![*exchange] });
                }
            }
        }
        tracks
    }

    /// Takes what has changed since the last call, as lines of text: another master, a failure of the
    /// interface, and its end.
    pub fn take_changes(&self) -> Vec<String> {
        self.shared.state().changes.drain(..).collect()
    }
}

impl Drop for PtpMonitor {
    fn drop(&mut self) {
        self.shared.state().is_stopped = true;
        self.shared.changed.notify_all();
        // A panic has been reported by the thread itself.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a time. Returns whether the monitor is stopped.
    fn wait(&self, time: Duration) -> bool {
        let time = StdDuration::from_nanos(time.as_nanos());
        let wait = self.changed.wait_timeout_while(self.state(), time, |it| !it.is_stopped);
        wait.unwrap_or_else(PoisonError::into_inner).0.is_stopped
    }
}

impl State {
    /// Notes what a session has measured, and its source.
    fn note(&mut self, session: &mut PtpSession, options: &PtpOptions) {
        let exchanges = session.take_exchanges();
        let source = session.source();
        if source.as_ref() != self.source.as_deref() {
            self.change(match (&source, &self.source) {
                (Some(_), _) if matches!(options.role, PtpRole::Master { .. }) => {
                    format!("PTP on {options}: is a master")
                }
                (Some(source), _) => format!("PTP on {options}: follows {source}"),
                (None, Some(before)) => format!("PTP on {options}: lost {before}"),
                (None, None) => return,
            });
            self.source = source.map(Arc::new);
        }
        let Some(source) = &self.source else { return };
        self.exchanges.extend(exchanges.into_iter().map(|it| (Arc::clone(source), it)));
        let surplus = self.exchanges.len().saturating_sub(EXCHANGES_MAX);
        self.exchanges.drain(..surplus);
    }

    fn change(&mut self, text: String) {
        if self.changes.len() >= CHANGES_MAX {
            self.changes.pop_front();
        }
        self.changes.push_back(text);
    }

    /// Notes why the interface cannot be used; `None` if it can.
    fn set_problem(&mut self, problem: Option<String>, options: &PtpOptions) {
        if problem == self.problem {
            return;
        }
        self.change(match &problem {
            Some(problem) => format!("PTP on {options} stopped: {problem}"),
            None => format!("PTP on {options} works again"),
        });
        self.problem = problem;
    }
}

fn run(options: &PtpOptions, session: PtpSession, shared: &Shared) {
    let mut opened = Ok(session);
    loop {
        let outcome = opened.and_then(|mut session| {
            shared.state().set_problem(None, options);
            follow(&mut session, options, shared)
        });
        let Err(error) = outcome else { return };
        {
            let mut state = shared.state();
            state.source = None;
            state.set_problem(Some(error.to_string()), options);
        }
        if shared.wait(RETRY) {
            return;
        }
        opened = open(options);
    }
}

fn open(options: &PtpOptions) -> Result<PtpSession, TransportError> {
    let session = PtpSession::open(options)?;
    session.check_link()?;
    match session.has_identity() {
        true => Ok(session),
        // All machines would be the same clock.
        false => Err(TransportError::NoIdentity(options.interface.clone())),
    }
}

/// Runs a session until the monitor is stopped, or the interface fails.
fn follow(
    session: &mut PtpSession,
    options: &PtpOptions,
    shared: &Shared,
) -> Result<(), TransportError> {
    let mut next_look = clock::now().saturating_add(RETRY);
    loop {
        let now = clock::now();
        session.step(now, now.saturating_add(PATIENCE))?;
        let mut state = shared.state();
        state.note(session, options);
        if state.is_stopped {
            return session.stop();
        }
        let has_source = state.source.is_some();
        drop(state);
        // Sockets on an interface that was removed receive nothing, and report no error. Only a slave
        // without a master looks, because the requests to the kernel could disturb a run.
        if has_source {
            next_look = Instant::ZERO;
        } else if clock::now() >= next_look {
            next_look = clock::now().saturating_add(RETRY);
            session.check_link()?;
        }
    }
}
