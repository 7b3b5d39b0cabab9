//! The main loop: updates from all threads, effects, and drawing.

use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::thread::Builder;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyEventKind};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use wirestorm_api::client::Client;

use crate::ConsoleOptions;
use crate::command::{self, Answer, CommandError};
use crate::editor::Editor;
use crate::history::History;
use crate::model::{Effect, Model, Update};
use crate::session::Session;
use crate::terminal::Screen;
use crate::view::draw;
use crate::watch::Watch;

/// Updates that wait for the main loop. Threads with more wait.
const UPDATES_MAX: usize = 1_024;
/// Least time between two drawings, keys apart: they are drawn at once.
const DRAW_INTERVAL: Duration = Duration::from_millis(100);
/// Longest wait for an update: the time in the header changes.
const WAIT: Duration = Duration::from_millis(250);

/// Error of the console.
#[derive(Debug, thiserror::Error)]
pub enum ConsoleError {
    /// The terminal cannot be used.
    #[error("the terminal cannot be used: {0}; `-c LINE` executes a line without one")]
    Terminal(#[from] io::Error),
}

/// Runs the console on the terminal until the user leaves it. Returns the active runs of the user
/// that continue on the server.
///
/// # Errors
/// See [`ConsoleError`].
pub fn interactive(options: ConsoleOptions) -> Result<Vec<String>, ConsoleError> {
    let ConsoleOptions { client, connector, loader, is_own_server, history, with_color } = options;
    let (sender, updates) = mpsc::sync_channel(UPDATES_MAX);
    let editor = Editor::new(History::open(history));
    let server = client.server().to_owned();
    let mut model = Model::new(server, is_own_server, with_color, editor, Instant::now());
    let notices = sender.clone();
    let notice = Box::new(move |text: &str| drop(notices.send(Update::Notice(text.to_owned()))));
    let session = Session::new(client.clone(), connector, loader, notice, true);
    let cancel = Arc::clone(&session.cancel);
    let lines = start_work(session, &sender)?;
    start_signals(&sender)?;
    let defects = sender.clone();
    // A full channel drops the message: a panic must not wait.
    let report = move |text| drop(defects.try_send(Update::Defect(text)));
    let mut screen = Screen::enter(report)?;
    start_keys(&sender)?;
    let current = Arc::new(AtomicU64::new(0));
    let watch = Watch::start(client, sender.clone(), 0, &current);
    let mut console = Console { sender, lines, cancel, watch, current };
    console.run(&mut model, &updates, &mut screen)?;
    Ok(model.continuing_runs())
}

struct Console {
    sender: SyncSender<Update>,
    lines: Sender<String>,
    cancel: Arc<AtomicBool>,
    watch: Watch,
    current: Arc<AtomicU64>,
}

impl Console {
    fn run(
        &mut self,
        model: &mut Model,
        updates: &Receiver<Update>,
        screen: &mut Screen,
    ) -> io::Result<()> {
        screen.terminal.draw(|frame| draw(frame, model))?;
        let mut drawn = Instant::now();
        let (mut is_changed, mut is_urgent) = (false, false);
        loop {
            let wait = match is_changed {
                true => DRAW_INTERVAL.saturating_sub(drawn.elapsed()),
                false => WAIT,
            };
            let first = match updates.recv_timeout(wait) {
                Ok(update) => Some(update),
                Err(RecvTimeoutError::Timeout) => None,
                // The console itself holds a sender.
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            let now = Instant::now();
            is_changed |= model.tick(now);
            let rest = updates.try_iter().take(UPDATES_MAX);
            for update in first.into_iter().chain(rest) {
                is_changed = true;
                is_urgent |= matches!(update, Update::Key(_) | Update::Paste(_) | Update::Resize);
                if self.apply(model, update) {
                    return Ok(());
                }
            }
            let is_due = is_urgent || drawn.elapsed() >= DRAW_INTERVAL;
            let is_waiting = matches!(model.connection, crate::model::Connection::Lost { .. });
            if (is_changed || is_waiting) && is_due {
                screen.terminal.draw(|frame| draw(frame, model))?;
                drawn = Instant::now();
                (is_changed, is_urgent) = (false, false);
            }
        }
    }

    /// Applies an update. Returns whether the console ends.
    fn apply(&mut self, model: &mut Model, update: Update) -> bool {
        let connected = match &update {
            Update::Connected(client) => Some(Client::clone(client)),
            _ => None,
        };
        for effect in model.apply(update) {
            match effect {
                Effect::Execute(line) => drop(self.lines.send(line)),
                Effect::Cancel => self.cancel.store(true, Ordering::Relaxed),
                Effect::Follow(run) => self.watch.follow(run),
                Effect::ReadLists => self.watch.read_lists(),
                Effect::ReadRuns(after) => self.watch.read_runs(after),
                Effect::Watch => {
                    if let Some(client) = &connected {
                        let (client, sender) = (client.clone(), self.sender.clone());
                        let generation = model.generation;
                        self.watch = Watch::start(client, sender, generation, &self.current);
                    }
                }
                Effect::Quit => return true,
            }
        }
        false
    }
}

/// Starts the thread that executes lines, one after the other.
fn start_work(mut session: Session, updates: &SyncSender<Update>) -> io::Result<Sender<String>> {
    let (sender, lines) = mpsc::channel::<String>();
    let updates = updates.clone();
    Builder::new().name("console-work".to_owned()).spawn(move || {
        for line in lines {
            session.cancel.store(false, Ordering::Relaxed);
            let executed = AssertUnwindSafe(|| command::execute_line(&mut session, &line));
            let answer = std::panic::catch_unwind(executed).unwrap_or_else(|_| {
                Err(CommandError::failed("a defect in the console ended the command"))
            });
            if matches!(answer, Ok(Answer::Connected(_))) {
                let client = Box::new(session.client.clone());
                let _ = updates.send(Update::Connected(client));
            }
            if updates.send(Update::Answered(line, answer)).is_err() {
                return;
            }
        }
    })?;
    Ok(sender)
}

fn start_signals(updates: &SyncSender<Update>) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGHUP, SIGINT])?;
    let updates = updates.clone();
    Builder::new().name("console-signals".to_owned()).spawn(move || {
        for _ in signals.forever() {
            if updates.send(Update::End).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}

fn start_keys(updates: &SyncSender<Update>) -> io::Result<()> {
    let updates = updates.clone();
    Builder::new().name("console-keys".to_owned()).spawn(move || {
        loop {
            let update = match event::read() {
                Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => Update::Key(key),
                Ok(Event::Paste(text)) => Update::Paste(text),
                Ok(Event::Resize(..)) => Update::Resize,
                Ok(_) => continue,
                Err(_) => Update::End,
            };
            let is_end = matches!(update, Update::End);
            if updates.send(update).is_err() || is_end {
                return;
            }
        }
    })?;
    Ok(())
}
