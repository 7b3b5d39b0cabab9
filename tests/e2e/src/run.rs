//! Runs of the binary with a timeout.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;

use crate::wirestorm;

/// Timeout of a run.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// Command line.
    pub command: String,
    /// Exit status.
    pub status: ExitStatus,
    /// Standard output.
    pub output: String,
    /// Standard error.
    pub messages: String,
    result: Value,
}

impl Outcome {
    /// The JSON result; null if there is none.
    pub fn result(&self) -> &Value {
        &self.result
    }

    /// Checks the exit status and returns the outcome.
    ///
    /// # Panics
    /// Panics with the complete output if the exit status differs.
    #[track_caller]
    pub fn expect(self, status: i32) -> Self {
        assert_eq!(self.status.code(), Some(status), "exit status\n{self}");
        self
    }

    /// Returns a number of the result by its JSON pointer, such as `/flows/count`.
    ///
    /// # Panics
    /// Panics with the complete output if there is none.
    #[track_caller]
    pub fn number(&self, pointer: &str) -> u64 {
        match self.result.pointer(pointer).and_then(Value::as_u64) {
            Some(number) => number,
            None => panic!("no number at {pointer} of the result\n{self}"),
        }
    }

    /// Returns a decimal number of the result by its JSON pointer.
    ///
    /// # Panics
    /// Same as [`number`](Self::number).
    #[track_caller]
    pub fn decimal(&self, pointer: &str) -> f64 {
        match self.result.pointer(pointer).and_then(Value::as_f64) {
            Some(number) => number,
            None => panic!("no number at {pointer} of the result\n{self}"),
        }
    }

    /// Returns a string of the result by its JSON pointer.
    ///
    /// # Panics
    /// Same as [`number`](Self::number).
    #[track_caller]
    pub fn text(&self, pointer: &str) -> &str {
        match self.result.pointer(pointer).and_then(Value::as_str) {
            Some(text) => text,
            None => panic!("no text at {pointer} of the result\n{self}"),
        }
    }

    /// Checks the result with the JSON Schema that `wirestorm schema` prints for `document`.
    ///
    /// # Panics
    /// Panics with all errors and the complete output if the result does not match.
    #[track_caller]
    pub fn assert_valid(&self, document: &str) {
        let printed = Command::new(wirestorm()).args(["schema", document]).output();
        let printed = printed.expect("the binary runs").stdout;
        let schema: Value = serde_json::from_slice(&printed).expect("a schema in JSON");
        let validator = jsonschema::validator_for(&schema).expect("a valid schema");
        let errors = validator.iter_errors(&self.result);
        let wrong: Vec<String> =
            errors.map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(wrong.is_empty(), "the schema {document}: {wrong:#?}\n{self}");
    }

    /// Joins a list of messages of the result: `/errors` or `/notes`.
    pub fn lines(&self, pointer: &str) -> String {
        let lines = self.result.pointer(pointer).and_then(Value::as_array);
        let lines = lines.into_iter().flatten().filter_map(Value::as_str);
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Checks the exit status, and that standard error contains each of `words`.
    ///
    /// # Panics
    /// Panics with the complete output if a check fails.
    #[track_caller]
    pub fn expect_error(self, status: i32, words: &[&str]) {
        let outcome = self.expect(status);
        for word in words {
            assert!(outcome.messages.contains(word), "{word:?} is not in the messages\n{outcome}");
        }
        outcome.assert_no_panic();
    }

    /// Checks that the run did not panic and no signal ended it.
    ///
    /// # Panics
    /// Panics with the complete output if a check fails.
    #[track_caller]
    pub fn assert_no_panic(&self) {
        assert!(!self.messages.contains("panicked") && self.status.signal().is_none(), "{self}");
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { command, status, output, messages, .. } = self;
        write!(f, "{command}\n{status}\noutput: {output}\nmessages: {messages}")
    }
}

/// A run in progress. Dropping it kills the process.
#[derive(Debug)]
pub struct Running {
    child: Child,
    command: String,
    output: Option<JoinHandle<String>>,
    messages: Option<JoinHandle<String>>,
    /// Lines of standard error so far.
    lines: Receiver<String>,
    ended: Receiver<()>,
}

impl Running {
    /// Sends a signal to the process.
    ///
    /// # Panics
    /// Panics if the process has ended and was waited for.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("the run goes on");
    }

    /// Process ID.
    ///
    /// # Panics
    /// Never: a child has one.
    pub fn pid(&self) -> Pid {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        pid.expect("a child has a process id")
    }

    /// Sends a signal to its process group like a terminal; the process must be the group leader.
    ///
    /// # Panics
    /// Panics if the process has ended and was waited for.
    pub fn signal_group(&self, signal: Signal) {
        kill_process_group(self.pid(), signal).expect("the run goes on");
    }

    /// Waits for a line of standard error that contains `text`; returns what follows it. A line is
    /// found once.
    ///
    /// # Panics
    /// Panics if there is no such line within a minute.
    #[track_caller]
    pub fn wait_for_message(&self, text: &str) -> String {
        let deadline = Instant::now() + TIMEOUT;
        let mut others = String::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("no message contains {text:?}: {}\n{others}", self.command);
            };
            if let Some((_, behind)) = line.split_once(text) {
                return behind.trim_end().to_owned();
            }
            others.push_str(&line);
        }
    }

    /// Waits for the end of the process.
    ///
    /// # Panics
    /// Panics if the process does not end within a minute.
    #[track_caller]
    pub fn wait(mut self) -> Outcome {
        let in_time = self.ended.recv_timeout(TIMEOUT).is_ok();
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
        assert!(in_time, "did not end within {TIMEOUT:?}\n{outcome}");
        outcome
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Starts `wirestorm replay --json -` with these arguments.
///
/// # Panics
/// Panics if the binary cannot be run.
pub fn start_replay<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Running {
    let mut command = Command::new(wirestorm());
    command.args(["replay", "--json", "-"]).args(arguments);
    start_command(command.stdin(Stdio::null()))
}

/// Runs `wirestorm replay --json -` with these arguments.
///
/// # Panics
/// Same as [`start_replay`] and [`Running::wait`].
#[track_caller]
pub fn replay<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Outcome {
    start_replay(arguments).wait()
}

/// Runs a command to its end.
///
/// # Panics
/// Same as [`start_command`] and [`Running::wait`].
#[track_caller]
pub fn run_command(command: &mut Command) -> Outcome {
    start_command(command).wait()
}

/// Starts a command.
///
/// # Panics
/// Panics if the command cannot be run.
pub fn start_command(command: &mut Command) -> Running {
    let line = format!("{command:?}");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{line}: {error}"));
    let (end, ended) = mpsc::channel();
    let output = child.stdout.take().map(|pipe| read_in_thread(pipe, end));
    let (give_line, lines) = mpsc::channel();
    let messages = child.stderr.take().map(|pipe| read_lines_in_thread(pipe, give_line));
    Running { child, command: line, output, messages, lines, ended }
}

/// Reads a pipe to its end, and passes on each line.
fn read_lines_in_thread(
    pipe: impl Read + Send + 'static,
    lines: mpsc::Sender<String>,
) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let (mut text, mut line) = (String::new(), Vec::new());
        while pipe.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            let read = String::from_utf8_lossy(&line).into_owned();
            text.push_str(&read);
            // Ignore errors: the receiver is gone if the test has ended.
            let _ = lines.send(read);
            line.clear();
        }
        text
    })
}

/// Reads a pipe to its end, then signals the end of the process.
fn read_in_thread(
    mut pipe: impl Read + Send + 'static,
    end: mpsc::Sender<()>,
) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        drop(pipe.read_to_end(&mut bytes));
        // Ignore errors: the receiver is gone if the test has failed meanwhile.
        let _ = end.send(());
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
