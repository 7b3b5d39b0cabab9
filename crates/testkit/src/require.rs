//! Requirements of a test on the machine.
//!
//! Each function returns whether a requirement is met. If not, it prints `skipped: ...` and the
//! test returns. [`SKIPPED_LOG`] collects these lines in a file, since the test harness hides the
//! output of passing tests.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Environment variable with the path of a file to which each skipped test appends a line.
pub const SKIPPED_LOG: &str = "WIRESTORM_SKIPPED_LOG";

/// Returns whether this process is root; network namespaces and raw sockets need it.
#[must_use = "a test without root has to return"]
pub fn require_root() -> bool {
    let root = is_root();
    if !root {
        skip("needs root, for network namespaces and raw sockets; run with sudo");
    }
    root
}

/// Same as [`require_root`], but prints nothing.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns whether `tool` is installed, in PATH or in the system's directories.
#[must_use = "a test without its tool has to return"]
pub fn require_tool(tool: &str) -> bool {
    let found = find_tool(tool).is_some();
    if !found {
        skip(&format!("{tool} is not installed; cargo xtask setup installs it"));
    }
    found
}

/// Finds `tool` in PATH and in the directories that a user's PATH lacks.
pub fn find_tool(tool: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|directory| directory.join(tool))
        .find(|candidate| candidate.is_file())
}

/// Folder of captures from real networks, which may exist beside the checkout.
#[must_use = "a test without captures has to return"]
pub fn require_shared_captures() -> Option<PathBuf> {
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/captures");
    if captures.is_dir() {
        return Some(captures);
    }
    skip("shared/captures is absent");
    None
}

/// Prints that the current test is skipped, and the reason.
pub fn skip(reason: &str) {
    println!("skipped: {reason}");
    let Some(log) = std::env::var_os(SKIPPED_LOG) else { return };
    let thread = std::thread::current();
    let line = format!("{}: {reason}\n", thread.name().unwrap_or("a test"));
    // One write for each line: tests of several processes append to the same file.
    let written = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&log)
        .and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(error) = written {
        eprintln!("{}: cannot note the skipped test: {error}", Path::new(&log).display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn find_tool_also_searches_the_sbin_directories() {
        assert!(find_tool("sh").is_some());
        assert!(find_tool("no-such-tool-anywhere").is_none());
    }
}
