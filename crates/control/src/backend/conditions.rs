//! What a choice of backends depends on beside the interface.

use serde::Serialize;

use crate::host;

/// The first kernel with `BPF_F_TEST_XDP_LIVE_FRAMES`, which the in-kernel sender is made of.
pub const XDP_KERNEL: KernelVersion = KernelVersion { major: 5, minor: 18 };

/// The first two numbers of a kernel's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct KernelVersion {
    /// The first.
    pub major: u32,
    /// The second.
    pub minor: u32,
}

impl KernelVersion {
    /// Reads `6.18.44-amd64` and the like.
    pub fn parse(release: &str) -> Option<Self> {
        let mut numbers = release.split(|byte: char| !byte.is_ascii_digit());
        Some(Self { major: numbers.next()?.parse().ok()?, minor: numbers.next()?.parse().ok()? })
    }

    /// That of the running kernel; `None` where it does not tell.
    pub fn running() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?)
    }
}

impl std::fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// What a choice depends on beside the interface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions {
    /// Whether the port's own thread has a CPU to itself.
    pub(crate) own_cpu: bool,
    /// The running kernel; `None` where it does not tell, which stands in nothing's way.
    pub(crate) kernel: Option<KernelVersion>,
}

impl Conditions {
    /// Those of one port that sends from this process.
    pub(crate) fn of_one_port() -> Self {
        Self { own_cpu: host::allowed().len() > 1, kernel: KernelVersion::running() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_the_kernel_says() {
        let version = |major, minor| Some(KernelVersion { major, minor });
        assert_eq!(KernelVersion::parse("6.18.44-amd64\n"), version(6, 18));
        assert_eq!(KernelVersion::parse("5.4"), version(5, 4));
        assert_eq!(KernelVersion::parse("unknown"), None);
        assert!(version(5, 4) < version(5, 18) && version(5, 18) < version(6, 0));
    }
}
