//! Signals: Ctrl-C ends the run and shows its result, a second one ends the program; SIGUSR1
//! suspends sending, SIGCONT lets it go on, as in tcpreplay.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::flag;
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
    control
}

fn report(signal: i32, registered: Result<signal_hook::SigId, std::io::Error>) {
    if let Err(error) = registered {
        eprintln!("wirestorm: cannot catch signal {signal}: {error}");
    }
}
