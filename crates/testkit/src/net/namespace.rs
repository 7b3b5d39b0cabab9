//! One network namespace, and programs run in it.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::Arc;

use super::NetError;
use crate::leftovers::{self, Leftover};

/// A named network namespace; removed, with the processes in it, when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Namespace {
    name: Arc<Name>,
}

#[derive(Debug)]
struct Name(String);

impl Drop for Name {
    fn drop(&mut self) {
        leftovers::remove(&Leftover::Namespace(std::mem::take(&mut self.0)));
    }
}

/// What the kernel has counted at an interface (`/proc/net/dev`).
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
    /// Makes the namespace with loopback up.
    pub(super) fn create(name: String, ipv6: bool) -> Result<Self, NetError> {
        leftovers::register(Leftover::Namespace(name.clone()));
        // From here on a failure drops it again.
        let namespace = Self { name: Arc::new(Name(name)) };
        run(Command::new("ip").args(["netns", "add", namespace.name()]))?;
        if !ipv6 {
            // Before the first interface exists: one that comes up with IPv6 says so at once.
            for scope in ["all", "default"] {
                namespace.sysctl(&format!("net/ipv6/conf/{scope}/disable_ipv6"), "1")?;
            }
        }
        namespace.ip(&["link set lo up"])?;
        Ok(namespace)
    }

    /// Its name, as `ip netns` knows it.
    pub fn name(&self) -> &str {
        &self.name.0
    }

    /// A command that will run in the namespace. It becomes the program itself, so a signal to
    /// the child reaches the program.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.name()]).arg(program);
        command
    }

    /// Runs lines of `ip -batch` in the namespace; the first that fails ends it.
    ///
    /// # Errors
    /// With the line that failed.
    pub fn ip(&self, lines: &[&str]) -> Result<(), NetError> {
        let mut command = Command::new("ip");
        command.args(["-netns", self.name(), "-batch", "-"]).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let start = |source| NetError::Start { program: "ip".into(), source };
        let mut child = command.spawn().map_err(start)?;
        if let Some(mut input) = child.stdin.take() {
            // Where ip has ended early, its own message says more than the broken pipe.
            drop(input.write_all((lines.join("\n") + "\n").as_bytes()));
        }
        let output = child.wait_with_output()?;
        succeeded(&format!("ip -netns {}: {}", self.name(), lines.join("; ")), output).map(drop)
    }

    /// Writes a kernel setting, by its path under `/proc/sys`.
    ///
    /// # Errors
    /// When the kernel does not have it or refuses the value.
    pub fn sysctl(&self, path: &str, value: &str) -> Result<(), NetError> {
        let script = format!("echo {value} > /proc/sys/{path}");
        run(self.command("sh").args(["-c", &script])).map(drop)
    }

    /// What the kernel has counted at `interface`.
    ///
    /// # Errors
    /// When there is no such interface in the namespace.
    pub fn counters(&self, interface: &str) -> Result<InterfaceCounters, NetError> {
        let table = run(self.command("cat").arg("/proc/net/dev"))?;
        parse_counters(&table, interface).ok_or_else(|| NetError::Unexpected {
            program: format!("/proc/net/dev of {}", self.name()),
            found: table,
            expected: "a line for the interface, with 16 numbers",
        })
    }

    /// Switches features by the names that `ethtool -K` has for them.
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

/// Runs a program that prints to the user. A signal that ends this process waits for it, a few
/// seconds at most, before what it works on is removed.
///
/// # Errors
/// When it cannot be started.
pub fn run_foreground(command: &mut Command) -> io::Result<ExitStatus> {
    let _foreground = leftovers::foreground();
    command.status()
}

/// Runs a command to its end; what it printed, or the error it printed.
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
    let said = [output.stderr, output.stdout].concat();
    let message = format!("{}: {}", output.status, String::from_utf8_lossy(&said).trim());
    Err(NetError::Failed { command: command.to_owned(), message })
}

fn parse_counters(table: &str, interface: &str) -> Option<InterfaceCounters> {
    let numbers = table.lines().find_map(|line| {
        let (name, numbers) = line.split_once(':')?;
        (name.trim() == interface).then_some(numbers)
    })?;
    let numbers: Vec<u64> = numbers.split_whitespace().map_while(|n| n.parse().ok()).collect();
    // bytes packets errs drop fifo frame compressed multicast, then the same of transmission.
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
    fn counters_are_those_of_the_interface_asked_for() {
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
