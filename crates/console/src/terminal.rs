//! The terminal: full screen while the console runs, restored however it ends.

use std::io::{self, Stdout};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

/// Whether the terminal needs to be restored: once, because a second time would move the cursor over
/// the message of a panic.
static IS_ENTERED: AtomicBool = AtomicBool::new(false);

/// The full screen. Dropping it restores the terminal.
pub(crate) struct Screen {
    pub(crate) terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Enters the full screen. A panic of the main thread restores the terminal before its message;
    /// `report` gets the messages of other threads, which would spoil the screen.
    ///
    /// # Errors
    /// The terminal cannot be changed.
    pub(crate) fn enter(report: impl Fn(String) + Send + Sync + 'static) -> io::Result<Self> {
        let default = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if std::thread::current().name() == Some("main") {
                restore();
                default(info);
            } else {
                report(info.to_string().replace('\n', " "));
            }
        }));
        IS_ENTERED.store(true, Ordering::SeqCst);
        let entered = enter();
        if entered.is_err() {
            leave();
        }
        entered.map(|terminal| Self { terminal })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

fn enter() -> io::Result<Terminal<CrosstermBackend<Stdout>>> {
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
    let mut terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
    terminal.clear()?;
    Ok(terminal)
}

fn leave() {
    restore();
    // A hook cannot change while its thread panics.
    if !std::thread::panicking() {
        drop(panic::take_hook());
    }
}

fn restore() {
    if IS_ENTERED.swap(false, Ordering::SeqCst) {
        // A terminal that is gone needs no restoring.
        let _ = execute!(io::stdout(), DisableBracketedPaste, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}
