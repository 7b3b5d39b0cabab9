//! Signals: Ctrl-C ends the run and shows its result, a second one ends the program; SIGUSR1
//! suspends sending, SIGCONT lets it go on, as in tcpreplay. Ctrl-Z suspends sending before it
//! stops the process, so that its time counts as a pause as well.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGUSR1};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use wirestorm_control::replay::Control;

/// What a shell reports for a program that SIGINT ended.
const INTERRUPTED: i32 = 130;

/// Catches the signals; returns what they set.
pub(crate) fn catch() -> Control {
    catch_with(&Arc::default())
}

/// Catches the signals; returns what they set. `caught` tells whether there was one that is not
/// over yet: only then is the next one the second. That a run was told to stop in another way is
/// no signal.
pub(crate) fn catch_with(caught: &Arc<AtomicBool>) -> Control {
    let control = Control::default();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order: the first signal finds the flag unset, the second does not.
        let second = Arc::clone(caught);
        report(signal, flag::register_conditional_shutdown(signal, INTERRUPTED, second));
        report(signal, flag::register(signal, Arc::clone(caught)));
        report(signal, flag::register(signal, Arc::clone(&control.stop)));
    }
    for (signal, suspend) in [(SIGUSR1, 1), (SIGCONT, 0)] {
        report(signal, flag::register_usize(signal, Arc::clone(&control.suspend), suspend));
    }
    if let Err(error) = suspend_before_stopping(Arc::clone(&control.suspend)) {
        report::<()>(SIGTSTP, Err(error));
    }
    control
}

/// Has SIGTSTP stop the process a moment later, when workers know that they are suspended. They
/// go on with SIGCONT, which lets the process go on, too.
fn suspend_before_stopping(suspend: Arc<AtomicUsize>) -> io::Result<()> {
    /// Longer than a worker rests, and than ports hold frames ahead of their due times.
    const NOTICE: Duration = Duration::from_millis(60);
    let mut signals = Signals::new([SIGTSTP])?;
    thread::Builder::new().name("stopping".into()).spawn(move || {
        for signal in signals.forever() {
            suspend.store(1, Ordering::Relaxed);
            thread::sleep(NOTICE);
            report(signal, emulate_default_handler(signal));
        }
    })?;
    Ok(())
}

fn report<T>(signal: i32, registered: io::Result<T>) {
    if let Err(error) = registered {
        eprintln!("wirestorm: cannot catch signal {signal}: {error}");
    }
}
