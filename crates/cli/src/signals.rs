//! Control of runs by signals.
//!
//! The first Ctrl-C stops the run and prints its result; a later one ends the program. As in
//! tcpreplay, SIGUSR1 pauses the run and SIGCONT resumes it.
//!
//! Ctrl-Z pauses the run before it stops the process, so that the stopped time counts as a pause.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGUSR1};
use signal_hook::iterator;
use signal_hook::low_level::emulate_default_handler;
use wirestorm_control::bench::StopSignal;
use wirestorm_control::{Command, RunHandle};

use crate::status;

/// Time to wait after a pause command.
///
/// It exceeds the time that workers take to see the pause, and the time that ports hold frames
/// ahead of their due times.
const PAUSE_TIME: Duration = Duration::from_millis(60);

/// Time after a signal in which others count as the same one.
///
/// `timeout` and service managers send a signal to the process, and again to its group.
const SAME_SIGNAL_TIME: Duration = Duration::from_millis(100);

/// Signal handler of this process, which runs on its own thread.
#[derive(Clone, Default)]
pub(crate) struct Signals(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Time of the signal that requested the end. A later one exits the program.
    caught: Mutex<Option<Instant>>,
    run: Mutex<Option<RunHandle>>,
    /// Stop flag for commands without a [`RunHandle`].
    stop: Arc<AtomicBool>,
    /// Stop request for methods, which have several runs.
    method: Mutex<Option<StopSignal>>,
}

impl Signals {
    /// Starts to catch the signals.
    pub(crate) fn catch() -> Self {
        let signals = Self::default();
        let handler = signals.clone();
        let caught = iterator::Signals::new([SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCONT, SIGTSTP]);
        let started = caught.and_then(|mut caught| {
            let listen = move || caught.forever().for_each(|signal| handler.handle(signal));
            std::thread::Builder::new().name("signals".into()).spawn(listen)
        });
        if let Err(error) = started {
            eprintln!("wirestorm: cannot catch signals: {error}");
        }
        signals
    }

    /// Makes the signals control this run.
    pub(crate) fn command(&self, run: &RunHandle) {
        *self.run() = Some(run.clone());
        if self.caught().is_some() {
            run.stop();
        }
    }

    /// Makes SIGINT, SIGTERM and SIGHUP stop a method.
    pub(crate) fn on_stop(&self, stop: &StopSignal) {
        *self.0.method.lock().unwrap_or_else(PoisonError::into_inner) = Some(stop.clone());
        if self.caught().is_some() {
            stop.stop();
        }
    }

    /// Returns a flag that SIGINT, SIGTERM or SIGHUP sets, for commands without a run.
    pub(crate) fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0.stop)
    }

    /// Clears the stop request after a run, so that the next signal counts as the first one.
    pub(crate) fn clear_stop_request(&self) {
        *self.caught() = None;
    }

    fn handle(&self, signal: i32) {
        let command = |command: Command| {
            if let Some(run) = &*self.run() {
                // Ignores the error of a run that is over or does not support the command.
                let _ = run.command(command);
            }
        };
        match signal {
            SIGUSR1 => command(Command::Pause),
            SIGCONT => command(Command::Resume),
            SIGTSTP => {
                command(Command::Pause);
                std::thread::sleep(PAUSE_TIME);
                if let Err(error) = emulate_default_handler(signal) {
                    eprintln!("wirestorm: cannot stop the process: {error}");
                }
            }
            _ => {
                let first = *self.caught().get_or_insert_with(Instant::now);
                if first.elapsed() > SAME_SIGNAL_TIME {
                    std::process::exit(status::INTERRUPTED.into());
                }
                self.0.stop.store(true, Ordering::Relaxed);
                let method = self.0.method.lock().unwrap_or_else(PoisonError::into_inner).clone();
                if let Some(method) = method {
                    method.stop();
                }
                command(Command::Stop);
            }
        }
    }

    fn caught(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.caught.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) -> MutexGuard<'_, Option<RunHandle>> {
        self.0.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
