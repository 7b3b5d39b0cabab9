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
    /// Enters the full screen. A panic of this thread restores the terminal before its message;
    /// `report` gets the messages of other threads, which would spoil the screen.
    ///
    /// # Errors
    /// The terminal cannot be changed.
    pub(crate) fn enter(report: impl Fn(String) + Send + Sync + 'static) -> io::Result<Self> {
        let default = panic::take_hook();
        let this = std::thread::current().id();
        panic::set_hook(Box::new(move |info| {
            if std::thread::current().id() == this {
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

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    #[ignore = "runs on the terminal of the test below"]
    fn panic_on_a_terminal() {
        let mut screen = Screen::enter(|_| ()).unwrap();
        screen.terminal.draw(|frame| frame.render_widget("full screen", frame.area())).unwrap();
        panic!("a defect on purpose");
    }

    #[test]
    fn panic_restores_the_terminal_and_shows_its_message() {
        let Ok(version) = Command::new("tmux").arg("-V").output() else {
            println!("skipped: tmux is not installed");
            return;
        };
        assert!(version.status.success());
        let directory = tempfile::tempdir().unwrap();
        let tmux = |arguments: &[&str]| {
            let mut command = Command::new("tmux");
            command.arg("-S").arg(directory.path().join("tmux")).args(arguments);
            let output = command.env("LC_ALL", "C.UTF-8").output().unwrap();
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let test = std::env::current_exe().unwrap();
        let test = format!(
            "{} --ignored --exact terminal::tests::panic_on_a_terminal --nocapture --test-threads=1; \
             stty -a | grep -o ' -*echo '; echo alternate $(tmux display-message -p \
             '#{{alternate_on}}'); sleep 60",
            test.display()
        );
        tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "40", "sh", "-c", &test]);
        let deadline = Instant::now() + Duration::from_secs(30);
        let screen = loop {
            let screen = tmux(&["capture-pane", "-p"]);
            if screen.contains("alternate ") {
                break screen;
            }
            assert!(Instant::now() < deadline, "the test does not end:\n{screen}");
            // tmux has no event for a change of the screen.
            std::thread::sleep(Duration::from_millis(50));
        };
        tmux(&["kill-server"]);
        assert!(screen.contains("a defect on purpose"), "{screen}");
        assert!(!screen.contains("full screen"), "{screen}");
        assert!(screen.contains("\n echo") && screen.contains("alternate 0"), "{screen}");
    }
}
