//! Namespaces of the kernel, and addresses and routes in them, with `ip` of iproute2.

use std::fs;
use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use wirestorm_control::namespace::{InterfaceName, Namespace};

/// Folder of named namespaces.
const NAMESPACES: &str = "/run/netns";
/// Names are `wirestorm-PROCESS-NUMBER`.
const PREFIX: &str = "wirestorm-";

/// A namespace with a name, which ends when it is dropped.
#[derive(Debug)]
pub(super) struct OwnNamespace(String);

impl OwnNamespace {
    /// Creates a namespace, with its loopback interface up.
    pub(super) fn create() -> Result<Self, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", std::process::id());
        run(&["netns", "add", &name], "")?;
        let created = Self(name);
        ip(&created.0, None, &["link set dev lo up".to_owned()])?;
        Ok(created)
    }

    pub(super) fn name(&self) -> &str {
        &self.0
    }
}

impl Drop for OwnNamespace {
    fn drop(&mut self) {
        // What is left is removed at the next start.
        let _ = run(&["netns", "del", &self.0], "");
    }
}

/// Removes namespaces of servers that were killed.
pub(in super::super) fn remove_orphans() {
    let entries = fs::read_dir(NAMESPACES).into_iter().flatten().flatten();
    for name in entries.filter_map(|entry| entry.file_name().into_string().ok()) {
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
        let process = process.and_then(|(process, _)| process.parse::<u32>().ok());
        if process.is_some_and(|process| !is_alive(process)) {
            // One that cannot be removed stays, which harms nobody.
            let _ = run(&["netns", "del", &name], "");
        }
    }
}

/// Returns whether a process runs. One that has ended may still wait for its parent.
fn is_alive(process: u32) -> bool {
    let state = fs::read_to_string(format!("/proc/{process}/stat"));
    // The state is behind the name, which is in parentheses and may contain any character.
    let state = state.as_deref().ok().and_then(|stat| stat.rsplit_once(')'));
    state.is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// Runs commands of `ip` in a namespace, for one IP version or for all.
pub(super) fn ip(namespace: &str, version: Option<&str>, lines: &[String]) -> Result<(), String> {
    let mut arguments = vec!["-n", namespace];
    arguments.extend(version);
    arguments.extend(["-batch", "-"]);
    run(&arguments, &(lines.join("\n") + "\n"))
}

fn run(arguments: &[&str], input: &str) -> Result<(), String> {
    let failed = |reason: String| format!("ip {}: {reason}", arguments.join(" "));
    let mut command = Command::new("ip");
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child =
        command.spawn().map_err(|error| failed(format!("{error}; apt-get install iproute2")))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read has failed, which its status tells.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let text = String::from_utf8_lossy(&output.stderr);
            Err(failed(text.split_whitespace().collect::<Vec<_>>().join(" ")))
        }
    }
}

/// Switches IPv6 of an interface. A kernel without IPv6 has it off.
pub(super) fn switch_ipv6(interface: &InterfaceName, on: bool) -> Result<(), String> {
    let path = format!("/proc/sys/net/ipv6/conf/{}/disable_ipv6", interface.name());
    let write = || fs::write(&path, if on { "0" } else { "1" });
    match interface.namespace.enter(write).map_err(|error| error.to_string())? {
        Err(error) if error.kind() == ErrorKind::NotFound && !on => Ok(()),
        outcome => outcome.map_err(|error| format!("cannot switch IPv6: {path}: {error}")),
    }
}

/// Returns an interface in a namespace.
pub(super) fn interface(namespace: &str, name: &str) -> Result<InterfaceName, String> {
    InterfaceName::new(Namespace::Named(namespace.to_owned()), name)
        .map_err(|error| error.to_string())
}
