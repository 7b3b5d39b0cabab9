//! Signals command a run: Ctrl-C stops it and shows its result, a second one ends the program;
//! SIGUSR1 pauses it, SIGCONT lets it go on, as in tcpreplay. Ctrl-Z pauses it before it stops the
//! process, so that its time counts as a pause as well.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGUSR1};
use signal_hook::iterator;
use signal_hook::low_level::emulate_default_handler;
use wirestorm_control::{Command, RunHandle};

use crate::status;

/// Longer than workers take to see that the run is paused, and than ports hold frames ahead of
/// their due times.
const PAUSE_TIME: Duration = Duration::from_millis(60);

/// The signals of this process, on a thread of their own.
#[derive(Clone, Default)]
pub(crate) struct Signals(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Whether a signal asked for the end that is not there yet: the next one ends the program.
    caught: AtomicBool,
    run: Mutex<Option<RunHandle>>,
    /// Set by signals for work that is no run.
    stop: Arc<AtomicBool>,
}

impl Signals {
    /// Catches the signals from now on.
    pub(crate) fn catch() -> Self {
        let signals = Self::default();
        let own = signals.clone();
        let caught = iterator::Signals::new([SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCONT, SIGTSTP]);
        let started = caught.and_then(|mut caught| {
            let listen = move || caught.forever().for_each(|signal| own.handle(signal));
            std::thread::Builder::new().name("signals".into()).spawn(listen)
        });
        if let Err(error) = started {
            eprintln!("wirestorm: cannot catch signals: {error}");
        }
        signals
    }

    /// Signals command this run from now on.
    pub(crate) fn command(&self, run: &RunHandle) {
        *self.run() = Some(run.clone());
        if self.0.caught.load(Ordering::Relaxed) {
            run.stop();
        }
    }

    /// A flag that a signal to end sets, for work that is no run.
    pub(crate) fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0.stop)
    }

    /// What an earlier signal ended is over: the next one is the first again.
    pub(crate) fn forget(&self) {
        self.0.caught.store(false, Ordering::Relaxed);
    }

    fn handle(&self, signal: i32) {
        let command = |command: Command| {
            if let Some(run) = &*self.run() {
                // A run that is over, or has no such command, goes on as it is.
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
            _ if self.0.caught.swap(true, Ordering::Relaxed) => {
                std::process::exit(status::INTERRUPTED.into());
            }
            _ => {
                self.0.stop.store(true, Ordering::Relaxed);
                command(Command::Stop);
            }
        }
    }

    fn run(&self) -> std::sync::MutexGuard<'_, Option<RunHandle>> {
        self.0.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
