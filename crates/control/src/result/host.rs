//! Facts about the machine that a result depends on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Machine that executed a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct HostFacts {
    /// Host name.
    pub name: String,
    /// Kernel release, as `uname -r` prints it.
    pub kernel: String,
    /// Target architecture of the program.
    pub architecture: String,
    /// Number of CPUs available to the run.
    pub cpus: u32,
}

impl HostFacts {
    /// Reads the facts of this machine.
    pub fn read() -> Self {
        let line = |path: &str| {
            std::fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
        };
        Self {
            name: line("/proc/sys/kernel/hostname"),
            kernel: line("/proc/sys/kernel/osrelease"),
            architecture: std::env::consts::ARCH.to_owned(),
            cpus: crate::affinity::allowed().len() as u32,
        }
    }
}
