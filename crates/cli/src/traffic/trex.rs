//! TRex's profiles: Python, run with the package `wirestorm-trex`, or the JSON of their streams.

use std::path::Path;
use std::process::Command;

/// How a profile is asked for its streams.
pub(super) struct Asked<'a> {
    /// Arguments for the profile itself.
    pub(super) tunables: &'a [String],
    /// The direction that it is for, 0 or 1.
    pub(super) direction: u8,
    /// The port that it is for.
    pub(super) port_id: u32,
}

/// The JSON of a profile's streams; `None` for a file that is no profile of TRex's.
pub(super) fn streams(path: &Path, asked: &Asked<'_>) -> Option<Result<String, String>> {
    if is_python(path) {
        return Some(dump(path, asked));
    }
    json(path).map(Ok)
}

/// Whether a file is a profile of TRex's, or the JSON of one.
pub(super) fn is_profile(path: &Path) -> bool {
    is_python(path) || json(path).is_some()
}

fn is_python(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "py")
}

/// The JSON of streams, which is a list; a plan is none.
fn json(path: &Path) -> Option<String> {
    let is_file = path.is_file();
    let text = is_file.then(|| std::fs::read_to_string(path).ok()).flatten()?;
    text.trim_start().starts_with('[').then_some(text)
}

/// Runs the profile in a Python of its own.
fn dump(path: &Path, asked: &Asked<'_>) -> Result<String, String> {
    let python = std::env::var_os("WIRESTORM_PYTHON").unwrap_or_else(|| "python3".into());
    let mut command = Command::new(&python);
    // Not from the present folder, where a profile.py would be in the way of Python's own module.
    command.env("PYTHONSAFEPATH", "1");
    command.args(["-m", "trex.stl.dump"]).arg(path);
    command.args(["--direction", &asked.direction.to_string()]);
    command.args(["--port", &asked.port_id.to_string()]);
    if !asked.tunables.is_empty() {
        command.arg("-t").args(asked.tunables);
    }
    let output = command.output().map_err(|error| {
        format!("{}: {error}; WIRESTORM_PYTHON names another", python.display())
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if said.contains("No module named 'trex'") || said.contains("No module named trex") {
        let (path, python) = (path.display(), python.display());
        return Err(format!(
            "{path}: {python} has no package wirestorm-trex; install it from a checkout with: \
             {python} -m pip install ./python/trex"
        ));
    }
    Err(said)
}
