//! Runs of the binary, each with a bound on its time.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;

use crate::wirestorm;

/// A run that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a run has left.
#[derive(Debug)]
pub struct Outcome {
    /// The command line.
    pub command: String,
    /// How it ended.
    pub status: ExitStatus,
    /// Standard output.
    pub output: String,
    /// Standard error.
    pub messages: String,
    result: Value,
}

impl Outcome {
    /// The JSON result; null where there is none.
    pub fn result(&self) -> &Value {
        &self.result
    }

    /// The run itself, once its exit status is the one expected.
    ///
    /// # Panics
    /// With everything it has printed, where it is not.
    #[track_caller]
    pub fn expect(self, status: i32) -> Self {
        assert_eq!(self.status.code(), Some(status), "exit status\n{self}");
        self
    }

    /// A number of the result, by its JSON pointer: `/flows/count`.
    ///
    /// # Panics
    /// With everything it has printed, where there is none.
    #[track_caller]
    pub fn number(&self, pointer: &str) -> u64 {
        match self.result.pointer(pointer).and_then(Value::as_u64) {
            Some(number) => number,
            None => panic!("no number at {pointer} of the result\n{self}"),
        }
    }

    /// A number with decimals of the result.
    ///
    /// # Panics
    /// As [`number`](Self::number).
    #[track_caller]
    pub fn decimal(&self, pointer: &str) -> f64 {
        match self.result.pointer(pointer).and_then(Value::as_f64) {
            Some(number) => number,
            None => panic!("no number at {pointer} of the result\n{self}"),
        }
    }

    /// A text of the result.
    ///
    /// # Panics
    /// As [`number`](Self::number).
    #[track_caller]
    pub fn text(&self, pointer: &str) -> &str {
        match self.result.pointer(pointer).and_then(Value::as_str) {
            Some(text) => text,
            None => panic!("no text at {pointer} of the result\n{self}"),
        }
    }

    /// What went wrong, or what one should know, as one text: `/errors`, `/notes`.
    pub fn lines(&self, pointer: &str) -> String {
        let lines = self.result.pointer(pointer).and_then(Value::as_array);
        let lines = lines.into_iter().flatten().filter_map(Value::as_str);
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Checks that it ended with this status and said each of these words on standard error.
    ///
    /// # Panics
    /// With everything it has printed, where it did not.
    #[track_caller]
    pub fn refused(self, status: i32, words: &[&str]) {
        let outcome = self.expect(status);
        for word in words {
            assert!(outcome.messages.contains(word), "{word:?} is not in the messages\n{outcome}");
        }
        outcome.assert_calm();
    }

    /// Checks that it did not panic.
    ///
    /// # Panics
    /// With everything it has printed, where it did.
    #[track_caller]
    pub fn assert_calm(&self) {
        assert!(!self.messages.contains("panicked") && self.status.signal().is_none(), "{self}");
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { command, status, output, messages, .. } = self;
        write!(f, "{command}\n{status}\noutput: {output}\nmessages: {messages}")
    }
}

/// A run under way. Dropping it ends it.
#[derive(Debug)]
pub struct Running {
    child: Child,
    command: String,
    output: Option<JoinHandle<String>>,
    messages: Option<JoinHandle<String>>,
    ended: Receiver<()>,
}

impl Running {
    /// Sends it a signal.
    ///
    /// # Panics
    /// When it has ended and was waited for.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a child has a process id"), signal).expect("the run goes on");
    }

    /// Sends a signal to its process group, as a terminal does; it has to lead one.
    ///
    /// # Panics
    /// When it has ended and was waited for.
    pub fn signal_group(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let group = pid.expect("a child has a process id");
        kill_process_group(group, signal).expect("the run goes on");
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it does not end within a minute.
    #[track_caller]
    pub fn wait(mut self) -> Outcome {
        let in_time = self.ended.recv_timeout(PATIENCE).is_ok();
        if !in_time {
            drop(self.child.kill());
        }
        let status = self.child.wait().expect("a child can be waited for");
        let text = |thread: Option<JoinHandle<String>>| {
            thread.map(|thread| thread.join().expect("text is read")).unwrap_or_default()
        };
        let output = text(self.output.take());
        let messages = text(self.messages.take());
        let result = serde_json::from_str(&output).unwrap_or(Value::Null);
        let command = std::mem::take(&mut self.command);
        let outcome = Outcome { command, status, output, messages, result };
        assert!(in_time, "did not end within {PATIENCE:?}\n{outcome}");
        outcome
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Starts `wirestorm replay --json -` with arguments.
///
/// # Panics
/// When the binary cannot be run.
pub fn start_replay<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Running {
    let mut command = Command::new(wirestorm());
    command.args(["replay", "--json", "-"]).args(arguments);
    start_command(command.stdin(Stdio::null()))
}

/// Runs `wirestorm replay --json -` with arguments.
///
/// # Panics
/// As [`start_replay`] and [`Running::wait`].
#[track_caller]
pub fn replay<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Outcome {
    start_replay(arguments).wait()
}

/// Runs a command that the test has put together.
///
/// # Panics
/// As [`start_replay`] and [`Running::wait`].
#[track_caller]
pub fn run_command(command: &mut Command) -> Outcome {
    start_command(command).wait()
}

/// Starts a command that the test has put together.
///
/// # Panics
/// When it cannot be run.
pub fn start_command(command: &mut Command) -> Running {
    let line = format!("{command:?}");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{line}: {error}"));
    let (end, ended) = mpsc::channel();
    let output = child.stdout.take().map(|pipe| read_in_thread(pipe, Some(end)));
    let messages = child.stderr.take().map(|pipe| read_in_thread(pipe, None));
    Running { child, command: line, output, messages, ended }
}

/// Reads a pipe to its end, which is the end of the process, and says so.
fn read_in_thread(
    mut pipe: impl Read + Send + 'static,
    end: Option<mpsc::Sender<()>>,
) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        drop(pipe.read_to_end(&mut bytes));
        // Nobody listens any more where the test has failed meanwhile.
        let _ = end.map(|end| end.send(()));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
