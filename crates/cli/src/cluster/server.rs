//! The process of the server.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use wirestorm_bus::Server;
use wirestorm_bus::nats::advisories;

use super::directory::Directory;
use crate::signals::Signals;

/// Time after its start in which the end of the server is no accident: a wrong configuration, or
/// an address in use.
const START_TIME: Duration = Duration::from_secs(1);
/// Time between two looks at the server.
const LOOK_TIME: Duration = Duration::from_millis(50);
/// Time before the server is started again.
const RESTART_TIME: Duration = Duration::from_millis(500);
/// Time in which the server ends after a signal.
const STOP_TIME: Duration = Duration::from_secs(10);

/// Asks a program for its version, and returns what is known of it.
pub(super) fn version(program: &Path) -> Result<Server, String> {
    let shown = program.display();
    let output = Command::new(program).arg("--version").output().map_err(|error| {
        format!(
            "{shown}: {error}; install nats-server {} or later, or name it with --server-command",
            advisories::RECOMMENDED
        )
    })?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.trim().strip_prefix("nats-server: v");
    let version = version.ok_or_else(|| format!("{shown} is no nats-server"))?.to_owned();
    let advisories = advisories::of_version(&version);
    Ok(Server { address: shown.to_string(), version, advisories })
}

/// Runs the server until a signal. Starts it again if it ends by itself.
pub(super) fn run(directory: &Directory) -> Result<(), String> {
    let signals = Signals::catch();
    let stop = signals.stop_flag();
    let file = directory.read().map_err(|failure| match failure {
        super::Failure::Usage(message) | super::Failure::Failed(message) => message,
    })?;
    if let Some(id) = process_id(directory) {
        return Err(format!("the server runs already, as process {id}"));
    }
    loop {
        let started = Instant::now();
        let mut child = spawn(&file.server_command, directory)?;
        let status = loop {
            if stop.load(Ordering::Relaxed) {
                return end(&mut child);
            }
            match child.try_wait() {
                Ok(None) => std::thread::sleep(LOOK_TIME),
                Ok(Some(status)) => break status,
                Err(error) => return Err(format!("nats-server: {error}")),
            }
        };
        if started.elapsed() < START_TIME {
            return Err(format!("nats-server ended with {status} soon after its start; see above"));
        }
        eprintln!("wirestorm: nats-server ended with {status}; starting it again");
        std::thread::sleep(RESTART_TIME);
    }
}

fn spawn(program: &Path, directory: &Directory) -> Result<Child, String> {
    use std::os::unix::process::CommandExt;

    let mut command = Command::new(program);
    command.arg("-c").arg(directory.configuration()).stdin(Stdio::null());
    // Ctrl-C of a terminal goes to the whole process group; the server gets its signal from here.
    command.process_group(0);
    command.spawn().map_err(|error| format!("{}: {error}", program.display()))
}

/// Ends the server with SIGTERM, so that it closes its files; with SIGKILL if it does not end.
fn end(child: &mut Child) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("nats-server: {error}");
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(id) = id {
        let _ = kill_process(id, Signal::TERM);
    }
    let asked = Instant::now();
    while child.try_wait().map_err(failed)?.is_none() {
        if asked.elapsed() > STOP_TIME {
            child.kill().map_err(failed)?;
            child.wait().map_err(failed)?;
            return Err(format!("nats-server did not end within {} s", STOP_TIME.as_secs()));
        }
        std::thread::sleep(LOOK_TIME);
    }
    Ok(())
}

/// Returns the process ID of the running server of a cluster.
pub(super) fn process_id(directory: &Directory) -> Option<i32> {
    let id: i32 = fs::read_to_string(directory.process_id()).ok()?.trim().parse().ok()?;
    // The file stays after a crash, and another process may have the ID by now.
    let arguments = fs::read(format!("/proc/{id}/cmdline")).ok()?;
    let configuration = directory.configuration();
    let mut arguments = arguments.split(|byte| *byte == 0);
    let is_ours =
        arguments.any(|argument| argument == configuration.as_os_str().as_encoded_bytes());
    is_ours.then_some(id)
}

/// Makes a running server read its configuration; returns what happened.
pub(super) fn reload(directory: &Directory) -> String {
    let Some(id) = process_id(directory) else {
        return "the change holds from the next start of the server".into();
    };
    let sent = Pid::from_raw(id).map(|id| kill_process(id, Signal::HUP));
    match sent {
        Some(Ok(())) => format!("the server (process {id}) reads the change now"),
        Some(Err(error)) => format!(
            "warning: the change does not hold yet: cannot signal the server (process {id}): \
             {error}; run: nats-server --signal reload={id}"
        ),
        None => format!("warning: the change does not hold yet: restart the server (process {id})"),
    }
}
