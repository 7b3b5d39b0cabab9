//! The privileges (`capabilities(7)`) that ports need, and those that this process has.

use std::fmt;
use std::fs;

/// A privilege of a process. Its number is the kernel's (`linux/capability.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Changing interfaces; attaching XDP programs.
    NetAdmin = 12,
    /// Packet and AF_XDP sockets.
    NetRaw = 13,
    /// Locking any amount of memory.
    IpcLock = 14,
    /// Entering namespaces; it stands for `Perfmon` and `Bpf` too, as it did before there were any.
    SysAdmin = 21,
    /// BPF programs on tracepoints.
    Perfmon = 38,
    /// BPF maps and programs.
    Bpf = 39,
}

/// What packet sockets need.
pub const AF_PACKET: &[Capability] = &[Capability::NetRaw];
/// What AF_XDP sockets need.
pub const AF_XDP: &[Capability] = &[Capability::NetRaw, Capability::NetAdmin, Capability::Bpf];
/// What the in-kernel sender and the counting receiver need.
pub const XDP: &[Capability] = &[Capability::NetAdmin, Capability::Bpf, Capability::Perfmon];
/// What all ports in all namespaces need.
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

/// The privileges of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities(u64);

impl Capabilities {
    /// Those that this process can use.
    pub fn effective() -> Self {
        Self::parse(&fs::read_to_string("/proc/self/status").unwrap_or_default())
    }

    /// From the lines of `/proc/PID/status`; none where that does not tell.
    pub fn parse(status: &str) -> Self {
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        Self(line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0))
    }

    /// Whether it is one of them.
    pub const fn has(self, capability: Capability) -> bool {
        let implied = matches!(capability, Capability::Bpf | Capability::Perfmon)
            && self.0 & (1 << Capability::SysAdmin as u32) != 0;
        self.0 & (1 << capability as u32) != 0 || implied
    }

    /// Those of `needed` that are not.
    pub fn lacking(self, needed: &[Capability]) -> Vec<Capability> {
        needed.iter().copied().filter(|capability| !self.has(*capability)).collect()
    }
}

/// Their names in one line.
pub fn names(capabilities: &[Capability]) -> String {
    let names: Vec<String> = capabilities.iter().map(ToString::to_string).collect();
    names.join(", ")
}

/// The command that gives the program privileges which it then has without root.
pub fn grant(capabilities: &[Capability]) -> String {
    let names = names(capabilities).to_lowercase().replace(' ', "");
    format!("setcap {names}=ep $(command -v wirestorm)")
}

/// What this process lacks after the system refused it something for which `needed` suffices,
/// and what to do about it.
pub(crate) fn refused(needed: &[Capability]) -> String {
    let lacking = Capabilities::effective().lacking(needed);
    let found = if lacking.is_empty() {
        format!("it has {}, but the system does not let it use them here", names(needed))
    } else {
        format!("it lacks {}", names(&lacking))
    };
    format!("{found}; run as root, or: {}", grant(needed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_is_named() {
        let nobody = Capabilities::parse("CapEff:\t0000000000000000\n");
        assert_eq!(names(&nobody.lacking(AF_XDP)), "CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF");
        let raw = Capabilities::parse("Name:\tx\nCapEff:\t0000000000002000\n");
        assert_eq!(raw.lacking(AF_PACKET), []);
        assert_eq!(names(&raw.lacking(XDP)), "CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON");
        let root = Capabilities::parse("CapEff:\t000001ffffffffff\n");
        assert_eq!(root.lacking(ALL), []);
        assert_eq!(Capabilities::parse("").lacking(ALL), ALL);
    }

    #[test]
    fn an_older_privilege_stands_for_those_of_bpf() {
        let administrator = Capabilities::parse("CapEff:\t0000000000200000\n");
        assert_eq!(names(&administrator.lacking(XDP)), "CAP_NET_ADMIN");
    }

    #[test]
    fn the_command_gives_what_is_needed() {
        assert_eq!(
            grant(XDP),
            "setcap cap_net_admin,cap_bpf,cap_perfmon=ep $(command -v wirestorm)"
        );
    }
}
