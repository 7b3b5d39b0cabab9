//! What a script's user sees while it runs: events on standard error, texts on standard output.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressStyle};
use wirestorm_control::pktgen::Event;

use crate::fit::{beside_bar, columns};
use crate::number::several;
use crate::wrap::wrapped;

/// Prints events.
pub(super) struct Terminal {
    quiet: bool,
    /// Whether standard output is for the result alone.
    json_only: bool,
    /// The line that moves while a run lasts.
    line: Mutex<Option<ProgressBar>>,
}

impl Terminal {
    pub(super) fn new(quiet: bool, json_only: bool) -> Self {
        Self { quiet, json_only, line: Mutex::new(None) }
    }

    pub(super) fn tell(&self, event: &Event<'_>) {
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
                // Whoever reads it may stop before the end, as `head` does.
                let _ = std::io::stdout().lock().write_all(text.as_bytes());
            }
            Event::Progress(frames) => self.moved(*frames, "sent"),
            Event::Ended => self.ended(),
            Event::ScriptFailed(_) => {}
        }
    }

    /// So many frames have arrived.
    pub(super) fn received(&self, frames: u64) {
        self.moved(frames, "received");
    }

    /// A run has ended.
    pub(super) fn ended(&self) {
        if let Some(line) = self.line.lock().unwrap_or_else(PoisonError::into_inner).take() {
            line.finish_and_clear();
        }
    }

    fn moved(&self, frames: u64, what: &str) {
        if self.quiet || !std::io::stderr().is_terminal() {
            return;
        }
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let line = line.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}");
            ProgressBar::new_spinner()
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
        });
        let message = format!("{} {what}", several(frames, "packet", "packets"));
        line.set_message(beside_bar(columns(), &[message]));
        line.tick();
    }
}
