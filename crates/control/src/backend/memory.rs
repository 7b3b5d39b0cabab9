//! Memory: frames go nowhere, and departures follow virtual time.

use wirestorm_sim::memory::{MemorySink, WireOptions};

use super::{Descriptor, Probe, TransmitPort};
use crate::inventory::Grade;
use crate::port::Choice;

/// Memory.
pub(crate) static MEMORY: Descriptor = Descriptor {
    name: "memory",
    summary: "nothing: frames end in memory",
    has_interface: false,
    is_shared: true,
    owns_cpu: false,
    knows_partial_checksums: true,
    feeds_kernel: false,
    privileges: &[],
    link_layers: (&[libc::ARPHRD_ETHER, libc::ARPHRD_LOOPBACK], "Ethernet (1) or loopback (772)"),
    rank: u8::MAX,
    probe: |_, _| Probe::NotConsidered,
    probe_both_ways: None,
    refusal: |_, _| None,
    repair: |_, _| None,
    finding: |_, _| (Grade::Good, "can send"),
    open: |_, _, _| Ok(port()),
    open_both_ways: |_, _, _, _| Err("memory only sends".into()),
};

/// Why frames end in memory.
pub(crate) const WHY: &str = "asked for; frames go nowhere";

/// A port that throws frames away.
fn port() -> TransmitPort {
    MemorySink::new(WireOptions::default()).into()
}

/// A port that throws frames away, and why.
pub(crate) fn asked_for() -> (TransmitPort, Choice) {
    (port(), Choice { backend: &MEMORY, why: WHY.into() })
}
