//! Packet fields of a capture file as decoded by tshark.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Reason why tshark failed.
#[derive(Debug, thiserror::Error)]
pub enum TsharkError {
    /// tshark could not be started.
    #[error("tshark cannot be run: {0}; cargo xtask setup installs it")]
    Start(#[from] std::io::Error),
    /// tshark could not read the file, or rejected the filter or a field.
    #[error("tshark on {}: {message}", path.display())]
    Failed {
        /// Path of the capture file.
        path: PathBuf,
        /// Error output of tshark.
        message: String,
    },
}

/// Returns the values of `fields` for each packet of `capture` that matches `filter`, one row a
/// packet. `filter` is a display filter; empty matches all packets.
///
/// A field that a packet lacks is an empty string; multiple occurrences are joined by commas. Names
/// and values are tshark's. tshark verifies checksums: `ip.checksum.status`, `tcp.checksum.status`,
/// `udp.checksum.status` and `sctp.checksum.status` are 1 for a good checksum.
///
/// # Errors
/// Fails if tshark cannot be run or rejects an argument.
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

/// Returns the number of packets of `capture` that match the display filter.
///
/// # Errors
/// Same as [`fields`].
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
