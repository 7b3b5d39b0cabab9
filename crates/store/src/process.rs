//! Identity of a process, to find out whether the process that wrote a record still runs.

use std::fs;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A process of a machine. The start time tells it from a later process with the same number, the
/// boot from one after a restart of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ProcessRecord {
    /// Process ID.
    pub id: u32,
    /// Start of the process in clock ticks since the boot (`starttime` of proc_pid_stat(5)).
    pub start_ticks: u64,
    /// Identifier of the boot (`/proc/sys/kernel/random/boot_id`).
    pub boot: String,
}

impl ProcessRecord {
    /// Returns the identity of this process.
    pub fn current() -> Self {
        let id = std::process::id();
        Self { id, start_ticks: start_ticks(id).unwrap_or(0), boot: boot() }
    }

    /// Returns whether this process runs on this machine. A zombie does not run.
    pub fn is_alive(&self) -> bool {
        self.boot == boot() && start_ticks(self.id) == Some(self.start_ticks)
    }
}

fn boot() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// Returns the start time of a process; `None` if it does not exist or has ended.
fn start_ticks(id: u32) -> Option<u64> {
    parse_start_ticks(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
}

/// The name of the program, in parentheses, may contain spaces and parentheses itself. `state` is
/// the first field behind it, `starttime` the twentieth.
fn parse_start_ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn process_is_alive_until_it_ends() {
        let current = ProcessRecord::current();
        assert!(current.is_alive());
        let later = ProcessRecord { start_ticks: current.start_ticks + 1, ..current.clone() };
        assert!(!later.is_alive(), "a reused process ID");
        assert!(!ProcessRecord { boot: "another boot".into(), ..current }.is_alive());
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let id = child.id();
        let record = ProcessRecord { id, start_ticks: start_ticks(id).unwrap(), boot: boot() };
        assert!(record.is_alive());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!record.is_alive());
    }

    #[test]
    fn start_time_is_found_behind_any_name() {
        let stat = |name: &str, state: &str| {
            format!("7 ({name}) {state} 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21")
        };
        assert_eq!(parse_start_ticks(&stat("cat", "S")), Some(4242));
        assert_eq!(parse_start_ticks(&stat("a) b (c", "R")), Some(4242));
        assert_eq!(parse_start_ticks(&stat("cat", "Z")), None);
        assert_eq!(parse_start_ticks("7 (cat"), None);
    }
}
