//! What a test needs of the machine it runs on.
//!
//! Each function says whether it is there. Where it is not, it prints `skipped: ...` and the
//! test returns; a chore that runs the tests can have those words collected in a file, since
//! the test harness hides what a passing test prints.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Environment variable that names a file to which every skipped test adds a line.
pub const SKIPPED_LOG: &str = "WIRESTORM_SKIPPED_LOG";

/// Whether this process is root, which network namespaces and raw sockets need.
#[must_use = "a test without root has to return"]
pub fn require_root() -> bool {
    let root = is_root();
    if !root {
        skip("needs root, for network namespaces and raw sockets; run with sudo");
    }
    root
}

/// [`require_root`] without the word.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether `tool` can be run, found by PATH or in the system's directories.
#[must_use = "a test without its tool has to return"]
pub fn require_tool(tool: &str) -> bool {
    let found = find_tool(tool).is_some();
    if !found {
        skip(&format!("{tool} is not installed; cargo xtask setup installs it"));
    }
    found
}

/// Where `tool` is, by PATH and then the directories that a user's PATH leaves out.
pub fn find_tool(tool: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|directory| directory.join(tool))
        .find(|candidate| candidate.is_file())
}

/// The folder of captures from real networks that may lie beside the checkout.
#[must_use = "a test without captures has to return"]
pub fn require_shared_captures() -> Option<PathBuf> {
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/captures");
    if captures.is_dir() {
        return Some(captures);
    }
    skip("shared/captures is absent");
    None
}

/// Says that the current test is skipped, and why.
pub fn skip(reason: &str) {
    println!("skipped: {reason}");
    let Some(log) = std::env::var_os(SKIPPED_LOG) else { return };
    let thread = std::thread::current();
    let line = format!("{}: {reason}\n", thread.name().unwrap_or("a test"));
    // One write of one line: tests of several processes append to the same file.
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
    fn tools_outside_a_users_path_are_found() {
        assert!(find_tool("sh").is_some());
        assert!(find_tool("no-such-tool-anywhere").is_none());
    }
}
