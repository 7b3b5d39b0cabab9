//! Free frames of a port.

use alloc::vec::Vec;

use wirestorm_base::port::{FrameId, Transmit};

/// Takes free frames until there are so many, as far as the port has any.
// A call costs as much as what it most often finds: that there are enough.
#[inline(always)]
pub(super) fn fill_up(frames: &mut Vec<FrameId>, wanted: u32, transmit: &mut impl Transmit) {
    while frames.len() < wanted as usize
        && let Some(frame) = transmit.take()
    {
        frames.push(frame);
    }
}

/// As much of a buffer as the port sends.
#[inline]
pub(super) fn room<'a>(transmit: &'a mut impl Transmit, frame: &FrameId) -> &'a mut [u8] {
    let longest = transmit.capabilities().frame_length_max;
    let bytes = transmit.frame_mut(frame);
    let length = longest.min(bytes.len());
    &mut bytes[..length]
}
