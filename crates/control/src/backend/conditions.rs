//! Conditions for the choice of a backend, besides the interface.

use serde::Serialize;

/// First kernel with `BPF_F_TEST_XDP_LIVE_FRAMES`, which the in-kernel sender requires.
pub const XDP_KERNEL: KernelVersion = KernelVersion { major: 5, minor: 18 };

/// Major and minor number of a kernel version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct KernelVersion {
    /// Major version.
    pub major: u32,
    /// Minor version.
    pub minor: u32,
}

impl KernelVersion {
    /// Parses a kernel release such as `6.18.44-amd64`.
    pub fn parse(release: &str) -> Option<Self> {
        let mut numbers = release.split(|byte: char| !byte.is_ascii_digit());
        Some(Self { major: numbers.next()?.parse().ok()?, minor: numbers.next()?.parse().ok()? })
    }

    /// Returns the version of the running kernel; `None` if it is unknown.
    pub fn running() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?)
    }
}

impl std::fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Conditions for the choice of a backend, besides the interface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions {
    /// Whether a dedicated CPU is available for the port's own thread.
    pub(crate) has_dedicated_cpu: bool,
    /// Version of the running kernel. `None` if unknown; an unknown version excludes no backend.
    pub(crate) kernel: Option<KernelVersion>,
}

impl Conditions {
    /// Returns the conditions for a single sending port of this process.
    pub(crate) fn of_one_port() -> Self {
        Self {
            has_dedicated_cpu: crate::affinity::allowed().len() > 1,
            kernel: KernelVersion::running(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_versions_are_parsed_and_ordered() {
        let version = |major, minor| Some(KernelVersion { major, minor });
        assert_eq!(KernelVersion::parse("6.18.44-amd64\n"), version(6, 18));
        assert_eq!(KernelVersion::parse("5.4"), version(5, 4));
        assert_eq!(KernelVersion::parse("unknown"), None);
        assert!(version(5, 4) < version(5, 18) && version(5, 18) < version(6, 0));
    }
}
