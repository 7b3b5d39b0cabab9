//! Memory backend: discards frames; departures follow virtual time.

use wirestorm_sim::memory::{MemorySink, WireOptions};

use super::{Descriptor, TransmitPort};
use crate::backend::Choice;

/// The memory backend.
pub(crate) static MEMORY: Descriptor = Descriptor {
    name: "memory",
    summary: "discard frames in memory, in virtual time",
    has_interface: false,
    is_shared: true,
    open: |_, _, _| Ok(port()),
    ..Descriptor::TRANSMIT_ONLY
};

/// Reason given for the memory backend.
pub(crate) const WHY: &str = "requested; frames are discarded";

/// Creates a port that discards frames.
fn port() -> TransmitPort {
    MemorySink::new(WireOptions::default()).into()
}

/// Returns a port that discards frames, with the reason for the backend.
pub(crate) fn discarding_port() -> (TransmitPort, Choice) {
    (port(), Choice { backend: &MEMORY, why: WHY.into() })
}
