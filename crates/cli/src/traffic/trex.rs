//! TRex's profiles: Python, run with the package `wirestorm-trex`, or the JSON that it becomes.

use std::path::Path;
use std::process::Command;

use wirestorm_control::plan::traffic::read_document;
use wirestorm_control::plan::trex::stateful;

/// How a profile is asked for what it is.
pub(crate) struct Asked<'a> {
    /// Arguments for the profile itself.
    pub(crate) tunables: &'a [String],
    /// The direction that it is for, 0 or 1.
    pub(crate) direction: u8,
    /// The port that it is for.
    pub(crate) port_id: u32,
}

/// The JSON of a profile.
pub(crate) enum Profile {
    /// Of a stateless one: its streams.
    Streams(String),
    /// Of a stateful one: its templates.
    Stateful(String),
}

/// What a profile is; `None` for a file that is no profile of TRex's.
pub(crate) fn profile(path: &Path, asked: &Asked<'_>) -> Option<Result<Profile, String>> {
    let text = if is_python(path) { dump(path, asked) } else { Ok(json(path)?) };
    Some(text.map(|text| match text.trim_start().starts_with('{') {
        true => Profile::Stateful(text),
        false => Profile::Streams(text),
    }))
}

/// The JSON of a profile's streams; `None` for a file that is no profile of TRex's.
pub(super) fn streams(path: &Path, asked: &Asked<'_>) -> Option<Result<String, String>> {
    Some(profile(path, asked)?.and_then(|profile| match profile {
        Profile::Streams(text) => Ok(text),
        Profile::Stateful(_) => {
            let path = path.display();
            Err(format!("{path}: a stateful profile, which `wirestorm emulate {path}` runs"))
        }
    }))
}

/// Whether a file is a profile of TRex's, or the JSON of one.
pub(super) fn is_profile(path: &Path) -> bool {
    is_python(path) || json(path).is_some()
}

fn is_python(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "py")
}

/// The JSON of streams, which is a list, or of a stateful profile; a plan is neither.
fn json(path: &Path) -> Option<String> {
    let is_file = path.is_file();
    let text = is_file.then(|| std::fs::read_to_string(path).ok()).flatten()?;
    let is_profile = match text.trim_start().chars().next() {
        Some('[') => true,
        Some('{') => read_document(&text).is_ok_and(|document| stateful::is_meant(&document)),
        _ => false,
    };
    is_profile.then_some(text)
}

/// Runs the profile in a Python of its own.
fn dump(path: &Path, asked: &Asked<'_>) -> Result<String, String> {
    let python = std::env::var_os("WIRESTORM_PYTHON").unwrap_or_else(|| "python3".into());
    let mut command = Command::new(&python);
    // Not from the present folder, where a profile.py would be in the way of Python's own module.
    command.env("PYTHONSAFEPATH", "1");
    command.args(["-m", "trex.dump"]).arg(path);
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
