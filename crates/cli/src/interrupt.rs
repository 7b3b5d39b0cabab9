//! Ctrl-C: the first one ends the run and shows its result, the second one ends the program.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// What a shell reports for a program that SIGINT ended.
const INTERRUPTED: i32 = 130;

/// Catches the signals that ask the program to end; returns what they set.
pub(crate) fn catch() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order: the first signal finds the flag unset, the second does not.
        let caught = flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&stop))
            .and_then(|_| flag::register(signal, Arc::clone(&stop)));
        if let Err(error) = caught {
            eprintln!("wirestorm: cannot catch signal {signal}: {error}");
        }
    }
    stop
}
