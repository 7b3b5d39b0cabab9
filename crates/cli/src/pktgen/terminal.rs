//! Terminal output of a script: events on standard error, texts on standard output.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressStyle};
use wirestorm_control::pktgen::Event;

use crate::number::count_of;
use crate::terminal_width::{columns, fit_beside_bar};
use crate::wrap::wrapped;

/// Prints the events of a run.
pub(super) struct Terminal {
    quiet: bool,
    /// Whether standard output holds only the result.
    json_only: bool,
    /// Progress line of the current run.
    line: Mutex<Option<ProgressBar>>,
}

impl Terminal {
    pub(super) fn new(quiet: bool, json_only: bool) -> Self {
        Self { quiet, json_only, line: Mutex::new(None) }
    }

    pub(super) fn print_event(&self, event: &Event<'_>) {
        match event {
            Event::Refused(error) => eprintln!("wirestorm: {error}"),
            Event::Note { .. } if self.quiet => {}
            Event::Note { device, text } => {
                eprintln!("{}", wrapped(&format!("{device}: "), text));
            }
            Event::Failed(error) => eprintln!("wirestorm: {error}"),
            Event::Text(text) if self.json_only => eprint!("{text}"),
            Event::Unread(_) if self.json_only => {}
            Event::Text(text) | Event::Unread(text) => {
                // Ignores write errors: the reader can close the pipe early, as `head` does.
                let _ = std::io::stdout().lock().write_all(text.as_bytes());
            }
            Event::Progress(frames) => self.show_progress(*frames, "sent"),
            Event::Ended => self.ended(),
            Event::ScriptFailed(_) => {}
        }
    }

    /// Shows the number of received frames on the progress line.
    pub(super) fn received(&self, frames: u64) {
        self.show_progress(frames, "received");
    }

    /// Removes the progress line at the end of a run.
    pub(super) fn ended(&self) {
        if let Some(line) = self.line.lock().unwrap_or_else(PoisonError::into_inner).take() {
            line.finish_and_clear();
        }
    }

    fn show_progress(&self, frames: u64, what: &str) {
        if self.quiet || !std::io::stderr().is_terminal() {
            return;
        }
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let line = line.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}");
            ProgressBar::new_spinner()
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
        });
        let message = format!("{} {what}", count_of(frames, "packet", "packets"));
        line.set_message(fit_beside_bar(columns(), &[message]));
        line.tick();
    }
}
