//! Free frames of a port.

use alloc::vec::Vec;

use wirestorm_base::port::{FrameId, Transmit};

/// Takes free frames from the port until there are `count`, or none is left.
// Inlined: a call costs as much as the usual case, in which there are enough.
#[inline(always)]
pub(super) fn fill_up(frames: &mut Vec<FrameId>, count: u32, transmit: &mut impl Transmit) {
    while frames.len() < count as usize
        && let Some(frame) = transmit.take()
    {
        frames.push(frame);
    }
}

/// Returns the part of a frame's buffer that the port can send.
#[inline]
pub(super) fn room<'a>(transmit: &'a mut impl Transmit, frame: &FrameId) -> &'a mut [u8] {
    let longest = transmit.capabilities().frame_length_max;
    let bytes = transmit.frame_mut(frame);
    let length = longest.min(bytes.len());
    &mut bytes[..length]
}
