//! TRex profiles in Python: the package `wirestorm-trex` turns them into JSON.

use std::path::Path;
use std::process::Command;

use wirestorm_control::plan::load::Profile;

/// How a profile is asked for what it is.
pub(crate) struct Asked<'a> {
    /// Arguments for the profile itself.
    pub(crate) tunables: &'a [String],
    /// The direction that it is for, 0 or 1.
    pub(crate) direction: u8,
    /// The port that it is for.
    pub(crate) port_id: u32,
}

/// What was given that only profiles of TRex's take.
#[derive(Clone, Copy, Default)]
pub(crate) struct Unused {
    /// Arguments for the profile itself, which only Python takes.
    pub(crate) tunables: bool,
    /// That it is to be over IPv6.
    pub(crate) ipv6: bool,
    /// A configuration of its clients.
    pub(crate) configuration: bool,
}

impl Unused {
    /// Refuses it beside a plan of ours, or tunables beside any file but Python: what would be
    /// ignored is no harmless mistake.
    pub(crate) fn refuse(self, path: &Path) -> Result<(), String> {
        const PROFILE: &str = "a profile of TRex's";
        let (option, with, instead) = match self {
            Self { tunables: true, .. } => {
                ("--tunables", "a profile of TRex's in Python", "write the values into the file")
            }
            Self { ipv6: true, .. } => {
                ("--ipv6", PROFILE, "give its ports, clients and servers addresses of IPv6")
            }
            Self { configuration: true, .. } => {
                ("--cc", PROFILE, "tell the `devices` of its clients in the plan")
            }
            Self { .. } => return Ok(()),
        };
        let path = path.display();
        Err(format!("{option}: found with {path}, expected with {with} alone; {instead}"))
    }
}

/// Refuses arguments for a profile that is no program: nobody reads them.
fn refuse_tunables(path: &Path, asked: &Asked<'_>) -> Result<(), String> {
    let unused = Unused { tunables: !asked.tunables.is_empty(), ..Unused::default() };
    unused.refuse(path)
}

/// Runs a profile in Python; other profiles stay as they are.
pub(super) fn run(path: &Path, profile: Profile, asked: &Asked<'_>) -> Result<Profile, String> {
    match profile {
        Profile::Python => dump(path, asked).map(Profile::of_python),
        profile => refuse_tunables(path, asked).map(|()| profile),
    }
}

/// The JSON of a profile's streams on a port.
pub(super) fn streams(path: &Path, profile: &Profile, asked: &Asked<'_>) -> Result<String, String> {
    match run(path, profile.clone(), asked)? {
        Profile::Streams(text) => Ok(text),
        _ => {
            let path = path.display();
            Err(format!("{path}: a stateful profile, which `wirestorm emulate {path}` runs"))
        }
    }
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
    if output.status.success() && output.stdout.trim_ascii().is_empty() {
        // It was asked for its tunables (`-t --help`) and has told them: that is all, as it is
        // with the help of this command.
        print!("{}", String::from_utf8_lossy(&output.stderr));
        std::process::exit(0);
    }
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
