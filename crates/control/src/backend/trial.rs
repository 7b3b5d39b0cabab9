//! Tests of backends on an interface.

use serde::Serialize;
use wirestorm_base::departure::DeparturePolicy;
use wirestorm_io::link::Link;
use wirestorm_io::namespace::InterfaceName;

use super::choice::open;
use super::{Backend, Descriptor};
use crate::affinity;
use crate::port::PortOptions;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// No problem.
    Good,
    /// Works, but could be better.
    Remark,
    /// Does not work.
    Missing,
}

/// Whether to open ports to test backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenTest {
    /// Read only what the kernel reports.
    None,
    /// Open a port with each backend. This sends no frame, but a driver may reset its queues.
    /// Skipped on an interface with the default route.
    Open,
}

/// Tests whether a backend can send on an interface: opens a port and closes it unused.
///
/// # Errors
/// Returns the system error.
pub(crate) fn try_open(
    backend: &'static Descriptor,
    interface: &InterfaceName,
    link: &Link,
) -> Result<(), String> {
    let options = PortOptions {
        policy: DeparturePolicy::default(),
        paced: false,
        cpu: affinity::allowed().last().copied(),
        queue: 0,
        store_bytes: 0,
        is_visible: false,
        resident: None,
        needs_no_process: false,
    };
    open(Backend::One(backend), interface, link, &options).map(|_| ())
}
