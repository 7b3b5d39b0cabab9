//! Frames that a member of a link aggregation group sends.

use alloc::vec::Vec;
use core::ops::Range;

/// Part of a stream that one member of a link aggregation group sends: the frames whose addresses
/// select it. So frames with equal addresses leave by one member, in order (IEEE 802.1AX, frame
/// distribution).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Number of the group in the plan.
    pub group: usize,
    /// Index of the member, from 0; less than [`Self::MEMBERS_MAX`].
    pub index: u32,
    /// Members that send at first; bit `n` stands for member `n`.
    pub active: u64,
    /// Number of members that must send; with fewer, none does.
    pub active_min: u32,
    /// Bytes of the frame that select the member.
    pub keys: Vec<Range<usize>>,
}

impl Member {
    /// Maximum number of members of a group.
    pub const MEMBERS_MAX: usize = u64::BITS as usize;
}
