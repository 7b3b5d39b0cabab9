//! `wirestorm replay`.

pub(crate) mod flags;
mod lower;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use wirestorm_control::replay;

use crate::status;
use flags::ReplayFlags;

/// Runs the command.
pub(crate) fn run(flags: &ReplayFlags) -> ExitCode {
    let plan = match lower::plan(flags) {
        Ok(plan) => plan,
        Err(message) => {
            eprintln!("wirestorm: {message}");
            return ExitCode::from(status::USAGE);
        }
    };
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        if let Err(error) = signal_hook::flag::register(signal, Arc::clone(&stop)) {
            eprintln!("wirestorm: cannot catch signal {signal}: {error}");
        }
    }
    match replay::run(&plan, &stop, |_| {}) {
        Ok(result) => {
            println!("{}", serde_json::to_string_pretty(&result).unwrap_or_default());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("wirestorm: {error}");
            ExitCode::from(status::USAGE)
        }
    }
}
