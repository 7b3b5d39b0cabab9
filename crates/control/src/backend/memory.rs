//! Memory: frames go nowhere, and departures follow virtual time.

use wirestorm_sim::memory::{MemorySink, WireOptions};

use super::{Descriptor, TransmitPort};
use crate::port::Choice;

/// Memory.
pub(crate) static MEMORY: Descriptor = Descriptor {
    name: "memory",
    summary: "nothing: frames end in memory",
    has_interface: false,
    is_shared: true,
    open: |_, _, _| Ok(port()),
    ..Descriptor::SENDS_ON_REQUEST
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
