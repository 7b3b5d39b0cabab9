//! Privileges (`capabilities(7)`) that ports need, and those of this process.

use std::fmt;
use std::fs;

/// A Linux capability. The value is the kernel's number (`linux/capability.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Change interfaces; attach XDP programs.
    NetAdmin = 12,
    /// Open packet and AF_XDP sockets.
    NetRaw = 13,
    /// Lock any amount of memory.
    IpcLock = 14,
    /// Enter namespaces. It includes `Perfmon` and `Bpf`, which older kernels do not have.
    SysAdmin = 21,
    /// Attach BPF programs to tracepoints.
    Perfmon = 38,
    /// Create BPF maps and load BPF programs.
    Bpf = 39,
}

/// Capabilities for packet sockets.
pub const AF_PACKET: &[Capability] = &[Capability::NetRaw];
/// Capabilities for AF_XDP sockets.
pub const AF_XDP: &[Capability] = &[Capability::NetRaw, Capability::NetAdmin, Capability::Bpf];
/// Capabilities for the in-kernel sender and the counting receiver.
pub const XDP: &[Capability] = &[Capability::NetAdmin, Capability::Bpf, Capability::Perfmon];
/// Capabilities for all kinds of ports in all namespaces.
pub const ALL: &[Capability] = &[
    Capability::NetRaw,
    Capability::NetAdmin,
    Capability::Bpf,
    Capability::Perfmon,
    Capability::SysAdmin,
];

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NetAdmin => "CAP_NET_ADMIN",
            Self::NetRaw => "CAP_NET_RAW",
            Self::IpcLock => "CAP_IPC_LOCK",
            Self::SysAdmin => "CAP_SYS_ADMIN",
            Self::Perfmon => "CAP_PERFMON",
            Self::Bpf => "CAP_BPF",
        })
    }
}

/// Set of capabilities of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities(u64);

impl Capabilities {
    /// Returns the effective capabilities of this process.
    pub fn effective() -> Self {
        Self::parse(&fs::read_to_string("/proc/self/status").unwrap_or_default())
    }

    /// Parses the text of `/proc/PID/status`. The set is empty if the line `CapEff` is missing.
    pub fn parse(status: &str) -> Self {
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        Self(line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0))
    }

    /// Returns whether the set contains a capability. `SysAdmin` implies `Perfmon` and `Bpf`.
    pub const fn has(self, capability: Capability) -> bool {
        let implied = matches!(capability, Capability::Bpf | Capability::Perfmon)
            && self.0 & (1 << Capability::SysAdmin as u32) != 0;
        self.0 & (1 << capability as u32) != 0 || implied
    }

    /// Returns the capabilities in `needed` that the set lacks.
    pub fn missing(self, needed: &[Capability]) -> Vec<Capability> {
        needed.iter().copied().filter(|capability| !self.has(*capability)).collect()
    }
}

/// Formats capability names as a comma-separated list.
pub fn names(capabilities: &[Capability]) -> String {
    let names: Vec<String> = capabilities.iter().map(ToString::to_string).collect();
    names.join(", ")
}

/// Returns the `setcap` command that grants capabilities to the program.
pub fn setcap_command(capabilities: &[Capability]) -> String {
    let names = names(capabilities).to_lowercase().replace(' ', "");
    format!("setcap {names}=ep $(command -v wirestorm)")
}

/// Explains a permission error: the capabilities in `needed` that the process lacks, and the
/// command that grants them.
pub(crate) fn permission_hint(needed: &[Capability]) -> String {
    let lacking = Capabilities::effective().missing(needed);
    let found = if lacking.is_empty() {
        format!("it has {}, but the system does not let it use them here", names(needed))
    } else {
        format!("it lacks {}", names(&lacking))
    };
    format!("{found}; run as root, or: {}", setcap_command(needed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lacking_lists_the_missing_capabilities() {
        let nobody = Capabilities::parse("CapEff:\t0000000000000000\n");
        assert_eq!(names(&nobody.missing(AF_XDP)), "CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF");
        let raw = Capabilities::parse("Name:\tx\nCapEff:\t0000000000002000\n");
        assert_eq!(raw.missing(AF_PACKET), []);
        assert_eq!(names(&raw.missing(XDP)), "CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON");
        let root = Capabilities::parse("CapEff:\t000001ffffffffff\n");
        assert_eq!(root.missing(ALL), []);
        assert_eq!(Capabilities::parse("").missing(ALL), ALL);
    }

    #[test]
    fn sys_admin_implies_bpf_and_perfmon() {
        let administrator = Capabilities::parse("CapEff:\t0000000000200000\n");
        assert_eq!(names(&administrator.missing(XDP)), "CAP_NET_ADMIN");
    }

    #[test]
    fn grant_command_lists_the_needed_capabilities() {
        assert_eq!(
            setcap_command(XDP),
            "setcap cap_net_admin,cap_bpf,cap_perfmon=ep $(command -v wirestorm)"
        );
    }
}
