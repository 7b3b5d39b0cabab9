//! What an independent dissector sees in a capture file.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Why tshark had nothing to tell.
#[derive(Debug, thiserror::Error)]
pub enum TsharkError {
    /// It could not be started.
    #[error("tshark cannot be run: {0}; cargo xtask setup installs it")]
    Start(#[from] std::io::Error),
    /// It could not read the file, or did not understand the filter or a field.
    #[error("tshark on {}: {message}", path.display())]
    Failed {
        /// The capture file.
        path: PathBuf,
        /// Its own words.
        message: String,
    },
}

/// The values of `fields` for every packet of `capture` that `filter` (a display filter; empty
/// for all) lets through, a row a packet.
///
/// A field that a packet does not have is an empty string; the occurrences of one that it has
/// several times are joined by commas. Names and values are tshark's. Checksums are verified,
/// so that `ip.checksum.status`, `tcp.checksum.status`, `udp.checksum.status` and
/// `sctp.checksum.status` are 1 where good.
///
/// # Errors
/// When tshark cannot be run or does not accept what it was given.
pub fn fields(
    capture: &Path,
    filter: &str,
    fields: &[&str],
) -> Result<Vec<Vec<String>>, TsharkError> {
    let mut command = tshark(capture);
    command.args(["-T", "fields", "-E", "separator=/t", "-E", "occurrence=a"]);
    if !filter.is_empty() {
        command.args(["-Y", filter]);
    }
    for field in fields {
        command.args(["-e", field]);
    }
    let text = output(command, capture)?;
    Ok(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}

/// How many packets of `capture` the display filter lets through.
///
/// # Errors
/// As [`fields`].
pub fn count(capture: &Path, filter: &str) -> Result<usize, TsharkError> {
    fields(capture, filter, &["frame.number"]).map(|rows| rows.len())
}

fn tshark(capture: &Path) -> Command {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(capture);
    for protocol in ["ip", "tcp", "udp"] {
        command.args(["-o", &format!("{protocol}.check_checksum:TRUE")]);
    }
    command.args(["-o", "sctp.checksum:CRC 32c"]);
    command
}

fn output(mut command: Command, capture: &Path) -> Result<String, TsharkError> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(TsharkError::Failed { path: capture.to_owned(), message })
}
