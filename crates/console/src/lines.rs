//! Lines without a terminal: from flags, a file or a pipe.

use std::io::{self, Write};

use crate::ConsoleOptions;
use crate::command::{self, Answer, CommandError};
use crate::history::History;
use crate::session::Session;

/// Executes lines and prints their answers, up to the first error. Returns the active runs of the
/// user.
///
/// # Errors
/// The error of a line, with the line.
pub fn execute(
    options: ConsoleOptions,
    lines: impl Iterator<Item = io::Result<String>>,
    output: &mut dyn Write,
) -> Result<Vec<String>, CommandError> {
    let ConsoleOptions { client, connector, loader, history, .. } = options;
    let notice = Box::new(|text: &str| {
        // A reader that is gone misses nothing.
        let _ = writeln!(io::stderr(), "wirestorm: {text}");
    });
    let mut session = Session::new(client, connector, loader, notice, false);
    for line in lines {
        let line =
            line.map_err(|error| CommandError::failed(format!("standard input: {error}")))?;
        // Quotes can hold a `#`, but no line begins with one.
        if line.trim_start().starts_with('#') {
            continue;
        }
        let answer = command::execute_line(&mut session, &line)
            .map_err(|error| error.of_line(line.trim()))?;
        let text = match answer {
            Answer::History => History::open(history.clone()).lines().join("\n"),
            Answer::Quit => break,
            answer => answer.text(),
        };
        let text = text.trim_end();
        if !text.is_empty() && writeln!(output, "{text}").is_err() {
            // The reader has closed the pipe, as `head` does.
            break;
        }
    }
    let _ = output.flush();
    // A server that is gone has no runs of ours.
    let active = session.active().unwrap_or_default();
    Ok(active.into_iter().map(|run| run.id).collect())
}
