//! Facts of the machine that a result depends on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The machine that ran a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct HostFacts {
    /// File name.
    pub name: String,
    /// The release of its kernel, as `uname -r` prints it.
    pub kernel: String,
    /// The architecture of the program.
    pub architecture: String,
    /// CPUs that the run could use.
    pub cpus: u32,
}

impl HostFacts {
    /// Those of this machine.
    pub fn read() -> Self {
        let line = |path: &str| {
            std::fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
        };
        Self {
            name: line("/proc/sys/kernel/hostname"),
            kernel: line("/proc/sys/kernel/osrelease"),
            architecture: std::env::consts::ARCH.to_owned(),
            cpus: crate::host::allowed().len() as u32,
        }
    }
}
