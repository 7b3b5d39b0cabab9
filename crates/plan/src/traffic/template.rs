//! Template of a flow's frames.

use wirestorm_model::stream::Program;

/// Minimum length of a frame without FCS (IEEE 802.3 clause 3.2.8).
pub(super) const FRAME_LENGTH_MIN: usize = 60;

/// Bytes at the end of a measured frame that are reserved for its signature.
pub(super) const SIGNATURE_BYTES: usize = 18;

/// Template and program of a flow's frames.
pub(super) struct Packet {
    pub(super) template: Vec<u8>,
    /// Changes from frame to frame.
    pub(super) program: Program,
    /// Offset of the payload in the template, if it is the same in every frame.
    pub(super) payload: Option<usize>,
    /// Ethernet addresses that are resolved before sending.
    pub(super) found: AutoAddresses,
}

/// Ethernet addresses of a flow that are `auto` in the plan, and are resolved before sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AutoAddresses {
    /// Whether the source is the interface's address.
    pub source: bool,
    /// Whether the destination is that of the next hop to the first frame's IP destination.
    pub destination: bool,
}
