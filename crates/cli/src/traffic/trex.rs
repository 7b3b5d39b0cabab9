//! TRex profiles in Python: the package `wirestorm-trex` turns them into JSON.

use std::path::Path;
use std::process::Command;

use wirestorm_control::plan::load::Profile;

/// Arguments of a profile.
pub(crate) struct ProfileArguments<'a> {
    /// Tunables of the profile.
    pub(crate) tunables: &'a [String],
    /// Direction of the port, 0 or 1.
    pub(crate) direction: u8,
    /// Number of the port.
    pub(crate) port_id: u32,
}

/// Given options that only TRex profiles support.
#[derive(Clone, Copy, Default)]
pub(crate) struct TrexOnlyOptions {
    /// Tunables, which only Python profiles support.
    pub(crate) tunables: bool,
    /// The option `--ipv6`.
    pub(crate) ipv6: bool,
    /// The option `--cc`, a TRex client configuration.
    pub(crate) configuration: bool,
}

impl TrexOnlyOptions {
    /// Rejects the given options for a file that does not support them.
    ///
    /// An error is safer than ignoring the option.
    pub(crate) fn reject(self, path: &Path) -> Result<(), String> {
        const PROFILE: &str = "a TRex profile";
        let (option, with, instead) = match self {
            Self { tunables: true, .. } => {
                ("--tunables", "a TRex profile in Python", "write the values into the file")
            }
            Self { ipv6: true, .. } => {
                ("--ipv6", PROFILE, "use IPv6 addresses for the ports, clients and servers")
            }
            Self { configuration: true, .. } => {
                ("--cc", PROFILE, "use `devices` of the clients in the plan")
            }
            Self { .. } => return Ok(()),
        };
        let path = path.display();
        Err(format!("{option} requires {with}, found {path}; {instead}"))
    }
}

/// Rejects tunables for a profile that is not a Python program.
fn reject_tunables(path: &Path, arguments: &ProfileArguments<'_>) -> Result<(), String> {
    let unused =
        TrexOnlyOptions { tunables: !arguments.tunables.is_empty(), ..TrexOnlyOptions::default() };
    unused.reject(path)
}

/// What a profile gives.
pub(crate) enum Evaluated {
    /// The profile, which is not in Python.
    Profile(Profile),
    /// The help of its tunables (`-t --help`), instead of streams.
    Help(String),
}

/// Runs a profile in Python; other profiles stay as they are.
pub(crate) fn evaluate(
    path: &Path,
    profile: Profile,
    arguments: &ProfileArguments<'_>,
) -> Result<Evaluated, String> {
    match profile {
        Profile::Python => dump(path, arguments),
        profile => reject_tunables(path, arguments).map(|()| Evaluated::Profile(profile)),
    }
}

/// Runs a profile like [`evaluate`]. Help of its tunables ends the program, as its own help does.
pub(super) fn run(
    path: &Path,
    profile: Profile,
    arguments: &ProfileArguments<'_>,
) -> Result<Profile, String> {
    match evaluate(path, profile, arguments)? {
        Evaluated::Profile(profile) => Ok(profile),
        Evaluated::Help(text) => {
            print!("{text}");
            std::process::exit(0);
        }
    }
}

/// The JSON of a profile's streams on a port.
pub(super) fn streams(
    path: &Path,
    profile: &Profile,
    arguments: &ProfileArguments<'_>,
) -> Result<String, String> {
    match run(path, profile.clone(), arguments)? {
        Profile::Streams(text) => Ok(text),
        _ => {
            let path = path.display();
            Err(format!("{path}: this is a stateful profile; use `wirestorm emulate {path}`"))
        }
    }
}

/// Runs the profile in a Python process.
fn dump(path: &Path, arguments: &ProfileArguments<'_>) -> Result<Evaluated, String> {
    let python = std::env::var_os("WIRESTORM_PYTHON").unwrap_or_else(|| "python3".into());
    let mut command = Command::new(&python);
    // Excludes the working folder, where a profile.py would shadow Python's own module.
    command.env("PYTHONSAFEPATH", "1");
    command.args(["-m", "trex.dump"]).arg(path);
    command.args(["--direction", &arguments.direction.to_string()]);
    command.args(["--port", &arguments.port_id.to_string()]);
    if !arguments.tunables.is_empty() {
        command.arg("-t").args(arguments.tunables);
    }
    let output = command.output().map_err(|error| {
        format!("{}: {error}; set WIRESTORM_PYTHON to another interpreter", python.display())
    })?;
    if output.status.success() && output.stdout.trim_ascii().is_empty() {
        return Ok(Evaluated::Help(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    if output.status.success() {
        let json = String::from_utf8_lossy(&output.stdout).into_owned();
        return Ok(Evaluated::Profile(Profile::of_python(json)));
    }
    let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if stderr.contains("No module named 'trex'") || stderr.contains("No module named trex") {
        let (path, python) = (path.display(), python.display());
        return Err(format!(
            "{path}: {python} lacks the package wirestorm-trex; install it from a checkout with: \
             {python} -m pip install ./python/trex"
        ));
    }
    Err(stderr)
}
