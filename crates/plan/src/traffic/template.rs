//! What all frames of a flow are made from.

use wirestorm_model::stream::Program;

/// The shortest frame, without FCS, that is made of headers alone (IEEE 802.3 clause 3.2.8).
pub(super) const FRAME_LENGTH_MIN: usize = 60;

/// Bytes that a measured frame keeps free at its end for its signature.
pub(super) const SIGNATURE_BYTES: usize = 18;

/// What all frames of a flow are made from.
pub(super) struct Packet {
    pub(super) template: Vec<u8>,
    /// What differs from frame to frame.
    pub(super) program: Program,
    /// Where the payload begins in the template, if it does so in every frame.
    pub(super) payload: Option<usize>,
    /// Which Ethernet addresses are not known yet.
    pub(super) found: FoundAddresses,
}

/// Which Ethernet addresses of a flow's frames are not in the plan (`auto`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoundAddresses {
    /// The source: the interface's own.
    pub source: bool,
    /// The destination: that of the next hop to the IP destination of the first frame.
    pub destination: bool,
}
