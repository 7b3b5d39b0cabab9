//! A network namespace and the programs that run in it.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::Arc;

use super::NetError;
use crate::cleanup::{self, CleanupItem};

/// A named network namespace. Dropping the last clone removes it and kills its processes.
#[derive(Clone, Debug)]
pub struct Namespace {
    name: Arc<Name>,
}

#[derive(Debug)]
struct Name(String);

impl Drop for Name {
    fn drop(&mut self) {
        cleanup::remove(&CleanupItem::Namespace(std::mem::take(&mut self.0)));
    }
}

/// The kernel's counters of an interface (`/proc/net/dev`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the kernel's")]
pub struct InterfaceCounters {
    pub rx_bytes: u64,
    pub rx_packets: u64,
    pub rx_errors: u64,
    pub rx_dropped: u64,
    pub tx_bytes: u64,
    pub tx_packets: u64,
    pub tx_errors: u64,
    pub tx_dropped: u64,
}

impl Namespace {
    /// Creates a namespace and brings its loopback interface up. The name is unique if it begins with
    /// that of another namespace of this process.
    ///
    /// # Errors
    /// `ip` cannot be run or fails, as without root.
    pub fn create(name: String, ipv6: bool) -> Result<Self, NetError> {
        cleanup::register(CleanupItem::Namespace(name.clone()));
        // From here on, an error drops and removes the namespace.
        let namespace = Self { name: Arc::new(Name(name)) };
        run(Command::new("ip").args(["netns", "add", namespace.name()]))?;
        if !ipv6 {
            // Before the first interface exists: an interface with IPv6 sends frames as soon as it
            // is up.
            for scope in ["all", "default"] {
                namespace.sysctl(&format!("net/ipv6/conf/{scope}/disable_ipv6"), "1")?;
            }
        }
        namespace.ip(&["link set lo up"])?;
        Ok(namespace)
    }

    /// Name of the namespace, as `ip netns` lists it.
    pub fn name(&self) -> &str {
        &self.name.0
    }

    /// Builds a command that runs in the namespace. `ip` executes the program in its own process,
    /// so a signal to the child reaches the program.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.name()]).arg(program);
        command
    }

    /// Runs lines of `ip -batch` in the namespace; stops at the first line that fails.
    ///
    /// # Errors
    /// Contains the commands and the output of `ip`.
    pub fn ip(&self, lines: &[&str]) -> Result<(), NetError> {
        let mut command = Command::new("ip");
        command.args(["-netns", self.name(), "-batch", "-"]).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let start = |source| NetError::Start { program: "ip".into(), source };
        let mut child = command.spawn().map_err(start)?;
        if let Some(mut input) = child.stdin.take() {
            // If ip has exited early, its own message explains more than the broken pipe.
            drop(input.write_all((lines.join("\n") + "\n").as_bytes()));
        }
        let output = child.wait_with_output()?;
        succeeded(&format!("ip -netns {}: {}", self.name(), lines.join("; ")), output).map(drop)
    }

    /// Writes a kernel setting; `path` is relative to `/proc/sys`.
    ///
    /// # Errors
    /// Fails if the kernel lacks the setting or rejects the value.
    pub fn sysctl(&self, path: &str, value: &str) -> Result<(), NetError> {
        let script = format!("echo {value} > /proc/sys/{path}");
        run(self.command("sh").args(["-c", &script])).map(drop)
    }

    /// Reads the kernel's counters of `interface`.
    ///
    /// # Errors
    /// Fails if the namespace has no such interface.
    pub fn counters(&self, interface: &str) -> Result<InterfaceCounters, NetError> {
        let table = run(self.command("cat").arg("/proc/net/dev"))?;
        parse_counters(&table, interface).ok_or_else(|| NetError::Unexpected {
            program: format!("/proc/net/dev of {}", self.name()),
            found: table,
            expected: "a line for the interface, with 16 numbers",
        })
    }

    /// Switches features by their `ethtool -K` names.
    pub(super) fn set_features(
        &self,
        interface: &str,
        features: &[(&str, bool)],
    ) -> Result<(), NetError> {
        let mut command = self.command("ethtool");
        command.args(["-K", interface]);
        for &(feature, on) in features {
            command.args([feature, if on { "on" } else { "off" }]);
        }
        run(&mut command).map(drop)
    }
}

/// Runs a program that prints to the user. A signal that ends this process first waits up to 5 s
/// for the program, before the namespaces and files that it uses are removed.
///
/// # Errors
/// Fails if the program cannot be started.
pub fn run_foreground(command: &mut Command) -> io::Result<ExitStatus> {
    let _foreground = cleanup::foreground();
    command.status()
}

/// Runs a command to its end. Returns its output, or an error with its output.
pub(super) fn run(command: &mut Command) -> Result<String, NetError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|source| NetError::Start { program: program.clone(), source })?;
    let arguments = command.get_args().map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ");
    succeeded(&format!("{program} {arguments}"), output)
}

fn succeeded(command: &str, output: Output) -> Result<String, NetError> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let output_bytes = [output.stderr, output.stdout].concat();
    let message = format!("{}: {}", output.status, String::from_utf8_lossy(&output_bytes).trim());
    Err(NetError::Failed { command: command.to_owned(), message })
}

fn parse_counters(table: &str, interface: &str) -> Option<InterfaceCounters> {
    let numbers = table.lines().find_map(|line| {
        let (name, numbers) = line.split_once(':')?;
        (name.trim() == interface).then_some(numbers)
    })?;
    let numbers: Vec<u64> = numbers.split_whitespace().map_while(|n| n.parse().ok()).collect();
    // bytes packets errs drop fifo frame compressed multicast, then the same for transmit.
    let &[rx_bytes, rx_packets, rx_errors, rx_dropped, _, _, _, _, ref tx @ ..] =
        numbers.as_slice()
    else {
        return None;
    };
    let &[tx_bytes, tx_packets, tx_errors, tx_dropped, ..] = tx else { return None };
    Some(InterfaceCounters {
        rx_bytes,
        rx_packets,
        rx_errors,
        rx_dropped,
        tx_bytes,
        tx_packets,
        tx_errors,
        tx_dropped,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_belong_to_the_requested_interface() {
        let table = "Inter-|   Receive\n face |bytes packets\n\
                     veth1: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n\
                     veth10: 9 9 9 9 0 0 0 0 9 9 9 9 0 0 0 0\n";
        let counters = parse_counters(table, "veth1").unwrap();
        assert_eq!((counters.rx_bytes, counters.rx_dropped), (1, 4));
        assert_eq!((counters.tx_bytes, counters.tx_dropped), (5, 8));
        assert_eq!(parse_counters(table, "veth"), None);
        assert_eq!(parse_counters("veth0: 1 2 3", "veth0"), None);
    }
}
