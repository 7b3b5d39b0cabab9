//! Signals: Ctrl-C ends the run and shows its result, a second one ends the program; SIGUSR1
//! suspends sending, SIGCONT lets it go on, as in tcpreplay.

use std::sync::Arc;

use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::flag;
use wirestorm_control::replay::Control;

/// What a shell reports for a program that SIGINT ended.
const INTERRUPTED: i32 = 130;

/// Catches the signals; returns what they set.
pub(crate) fn catch() -> Control {
    let control = Control::default();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order: the first signal finds the flag unset, the second does not.
        let stop = || Arc::clone(&control.stop);
        report(signal, flag::register_conditional_shutdown(signal, INTERRUPTED, stop()));
        report(signal, flag::register(signal, stop()));
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
