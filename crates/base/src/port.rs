//! The contract between the data plane and whatever carries frames.
//!
//! A port is one queue of one interface. It never blocks, works in batches and has no clock of
//! its own. Frame memory stays in the port and is reached through a [`FrameId`], which is owned
//! and cannot be cloned: whoever holds it may use the buffer, and gives it back by sending or
//! releasing it. So nothing above a port needs `unsafe`, and a frame that is in flight cannot
//! be touched.
//!
//! ```text
//! take -> frame_mut -> send | send_stamped | release ... flush
//! store ... take -> send_stored ... flush                  receive -> frame -> release
//! ```

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::departure::DepartureRecord;
use crate::time::Instant;

/// One frame buffer of one port. Ports make these; everyone else passes them on.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a frame that is neither sent nor released is lost to its port"]
pub struct FrameId(u32);

impl FrameId {
    /// For ports: the handle of buffer `index`. At most one may exist at a time.
    pub const fn from_index(index: u32) -> Self {
        Self(index)
    }

    /// For ports: which buffer this is.
    pub const fn index(&self) -> u32 {
        self.0
    }
}

/// Bytes that a port keeps; see [`Transmit::store`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored(u32);

impl Stored {
    /// For ports: the handle of what is stored under `index`.
    pub const fn from_index(index: u32) -> Self {
        Self(index)
    }

    /// For ports: what this is stored under.
    pub const fn index(self) -> u32 {
        self.0
    }
}

/// How a long frame of TCP is to be cut: each piece has its headers, and the next bytes of its data.
/// Lengths, identifications, sequence numbers, checksums and flags follow from the first one's, as
/// Linux has them in `tcp_gso_segment`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segmentation {
    /// Whether its packet is one of IPv6.
    pub is_ipv6: bool,
    /// Where the header of TCP begins. Its checksum is that of the pseudo header alone, with the
    /// whole length.
    pub transport: u16,
    /// Where the data begins.
    pub headers: u16,
    /// Bytes of data of a piece; the last one has what is left.
    pub data: u16,
}

/// Where a time stamp is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampPoint {
    /// In this process, beside the system call that hands over or fetches the frame.
    Process,
    /// In the kernel, where a socket buffer enters or leaves the interface.
    Kernel,
    /// In the XDP program, one step from the driver.
    Xdp,
    /// By the interface itself.
    Hardware,
    /// In simulated time, which waits for nobody: frames leave with the flush however far ahead
    /// their departure times are, and have left exactly then.
    Virtual,
}

/// What a port can do; constant from the moment it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The longest frame it takes, in bytes without FCS, link-layer header included.
    pub frame_length_max: usize,
    /// The longest of those without a VLAN tag: on an interface a tag comes on top of the MTU.
    pub untagged_length_max: usize,
    /// Frames that may be taken or in flight at once.
    pub frames: usize,
    /// Frames worth queueing before a flush.
    pub burst: usize,
    /// Whether [`Transmit::send`]'s departure time is kept by the port itself. Where not,
    /// frames leave with the flush and the caller waits.
    pub holds_departure: bool,
    /// Where departures are stamped.
    pub departure_stamp: StampPoint,
    /// Where arrivals are stamped.
    pub arrival_stamp: StampPoint,
}

impl Capabilities {
    /// Whether such a frame can be sent: it has an Ethernet header, and it is no longer than the
    /// port takes, with a VLAN tag or without.
    ///
    /// It is the rule of Linux (`packet_snd` of `net/packet/af_packet.c`), which the fast paths of
    /// some ports get past, and which is widened to service tags.
    #[inline]
    pub fn accepts(&self, frame: &[u8]) -> bool {
        let length = frame.len();
        (ETHERNET_HEADER_BYTES..=self.untagged_length_max).contains(&length)
            || (self.untagged_length_max < length && length <= self.frame_length_max)
                && has_vlan_tag(frame)
    }

    /// For ports: holds [`Transmit::send`]'s caller to its part.
    ///
    /// # Panics
    /// Where `length` is zero or greater than `frame_length_max`.
    #[inline]
    #[track_caller]
    pub fn assert_length(&self, length: usize) {
        assert!(
            (1..=self.frame_length_max).contains(&length),
            "a frame of {length} bytes on a port that takes 1 to {}",
            self.frame_length_max
        );
    }
}

const ETHERNET_HEADER_BYTES: usize = 14;

/// Whether an Ethernet header is followed by a VLAN tag: a customer's (IEEE 802.1Q, 0x8100) or a
/// service provider's (IEEE 802.1ad, 0x88a8).
#[inline]
pub fn has_vlan_tag(frame: &[u8]) -> bool {
    matches!(frame.get(12..14), Some([0x81, 0x00] | [0x88, 0xa8]))
}

/// What a transmitting port has done so far. Every frame that was given to `send` is in
/// exactly one of `sent`, `failed`, `unsent` or still in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransmitCounters {
    /// Frames sent, without ARP, ND, echo replies and latency probes.
    pub sent: u64,
    /// Their bytes, without FCS.
    pub sent_bytes: u64,
    /// Frames the interface refused for good.
    pub failed: u64,
    /// Frames left out because they were too late under a strict policy.
    pub unsent: u64,
    /// Attempts that were repeated because a queue was full (`ENOBUFS`).
    pub retried_no_buffers: u64,
    /// Attempts that were repeated because the interface was busy (`EAGAIN`).
    pub retried_again: u64,
}

impl TransmitCounters {
    /// Adds another port's.
    pub fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.sent_bytes += other.sent_bytes;
        self.failed += other.failed;
        self.unsent += other.unsent;
        self.retried_no_buffers += other.retried_no_buffers;
        self.retried_again += other.retried_again;
    }
}

/// What a receiving port has seen so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveCounters {
    /// Frames that arrived, those it had no room for included where the port knows of them.
    pub received: u64,
    /// Their bytes, without FCS, as long as they were on the wire.
    pub received_bytes: u64,
    /// Frames that arrived and that the port had no room for: missed by the measurement, not
    /// lost on the way.
    pub missed: u64,
}

/// Why a port stopped working.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    /// The interface is down; it may come up again.
    #[error("interface {interface} went down; bring it up with: {command}")]
    Down {
        /// File name.
        interface: String,
        /// What brings it up again.
        command: String,
    },
    /// The interface no longer exists.
    #[error("interface {interface} is gone: it was removed or moved to another namespace")]
    Gone {
        /// File name.
        interface: String,
    },
    /// Anything else the operating system said.
    #[error("{interface}: {operation} failed: {reason}")]
    System {
        /// The interface's or file's name.
        interface: String,
        /// What was tried.
        operation: &'static str,
        /// What the system answered.
        reason: String,
    },
}

impl PortError {
    /// The name of the interface or file.
    pub fn interface(&self) -> &str {
        match self {
            Self::Down { interface, .. }
            | Self::Gone { interface }
            | Self::System { interface, .. } => interface,
        }
    }
}

/// The sending half of a port.
pub trait Transmit {
    /// What the port can do.
    fn capabilities(&self) -> &Capabilities;

    /// Takes a free buffer; `None` while all are taken or in flight.
    fn take(&mut self) -> Option<FrameId>;

    /// The buffer, `frame_length_max` bytes or more. Its contents are unspecified.
    fn frame_mut(&mut self, frame: &FrameId) -> &mut [u8];

    /// Queues the first `length` bytes to leave not before `departure` ([`Instant::ZERO`]: as
    /// soon as possible), after everything sent before. They move with the next flush. A port
    /// that does not hold departures ignores the time.
    ///
    /// What [`Capabilities::accepts`] says no to is for the caller to leave out; a port that is
    /// given it may count it as failed.
    ///
    /// # Panics
    /// Where `length` is zero or greater than `frame_length_max`: the caller checks.
    fn send(&mut self, frame: FrameId, length: usize, departure: Instant);

    /// As [`Transmit::send`], for a frame that ends in the time of its departure: nanoseconds
    /// modulo 2^48 in six bytes, and a word by which the one's complement sum of these eight
    /// bytes stays the same whatever the time is. A port that knows better when the frame leaves
    /// writes both anew; any other one sends it as it is.
    fn send_stamped(&mut self, frame: FrameId, length: usize, departure: Instant) {
        self.send(frame, length, departure);
    }

    /// Keeps a copy of bytes in the port's own memory, as long as the port lives, so that frames
    /// in them can be sent any number of times without being copied here again. `None` where the
    /// port has no such memory or it is full.
    fn store(&mut self, _bytes: &[u8]) -> Option<Stored> {
        None
    }

    /// As [`Transmit::send`], for the frame that lies at `range` in what was stored; the buffer
    /// that `frame` names is not read.
    ///
    /// # Panics
    /// Where the range is not within what was stored, is empty or longer than
    /// `frame_length_max`, or on a port that stores nothing.
    fn send_stored(
        &mut self,
        _frame: FrameId,
        _stored: Stored,
        _range: Range<usize>,
        _departure: Instant,
    ) {
        unreachable!("this port never gave out a handle of stored bytes");
    }

    /// The longest frame that [`Transmit::send_segments`] takes, for which buffers have room then;
    /// `None` where the port cuts none.
    fn segmented_length_max(&self) -> Option<usize> {
        None
    }

    /// As [`Transmit::send`], for a long frame of TCP, which the port cuts into frames as others
    /// are. It counts as one.
    ///
    /// # Panics
    /// Where `length` is greater than [`Transmit::segmented_length_max`].
    fn send_segments(
        &mut self,
        _frame: FrameId,
        _length: usize,
        _segments: &Segmentation,
        _departure: Instant,
    ) {
        unreachable!("this port said that it cuts no frames");
    }

    /// Gives a buffer back unsent.
    fn release(&mut self, frame: FrameId);

    /// Hands what is queued to the interface and collects buffers it is done with. Never
    /// blocks: what does not fit stays queued.
    ///
    /// # Errors
    /// When the interface does not work any more. Counters stay valid.
    fn flush(&mut self) -> Result<(), PortError>;

    /// Frames sent that have not left yet.
    fn in_flight(&self) -> usize;

    /// What was done so far.
    fn transmitted(&self) -> TransmitCounters;

    /// When frames left, where the port itself holds departures.
    fn departures(&self) -> Option<DepartureRecord> {
        None
    }

    /// Gives up on what is queued, which counts as unsent, and collects what has left. For an
    /// interrupted run: transmission ends at once.
    fn abort(&mut self);
}

/// What was done to a frame on its way beside carrying it, or left for others to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offloads {
    /// The checksum of its transport was looked at and is right, or was never filled in, because
    /// the frame has met no wire.
    pub is_verified: bool,
    /// Bytes of data of the segments of TCP that it was put together of, the last one perhaps less;
    /// 0: it is as it was sent.
    pub segment_data: u16,
}

impl Offloads {
    /// How many segments it was, with so many bytes of data in all; at least 1.
    #[inline]
    pub fn segments(&self, data: u32) -> u16 {
        match self.segment_data {
            0 => 1,
            each => data.div_ceil(each.into()).clamp(1, u16::MAX.into()) as u16,
        }
    }
}

/// A frame that arrived.
#[derive(Debug)]
pub struct Received {
    /// Its buffer; to be released.
    pub frame: FrameId,
    /// Bytes in the buffer.
    pub length: usize,
    /// Bytes on the wire without FCS; more than `length` where the port cut it short.
    pub original_length: usize,
    /// When it arrived, at the point that the capabilities name.
    pub arrival: Instant,
    /// The queue or CPU it arrived on.
    pub queue: u32,
    /// What others have done to it.
    pub offloads: Offloads,
}

/// The receiving half of a port.
pub trait Receive {
    /// What the port can do.
    fn capabilities(&self) -> &Capabilities;

    /// Appends frames that have arrived, at most `room`, in order of arrival for each queue;
    /// returns how many.
    ///
    /// # Errors
    /// When the interface does not work any more. Counters stay valid.
    fn receive(&mut self, room: usize, batch: &mut Vec<Received>) -> Result<usize, PortError>;

    /// The bytes of a frame that arrived.
    fn frame(&self, received: &Received) -> &[u8];

    /// Gives its buffer back.
    fn release(&mut self, received: Received);

    /// What was seen so far.
    fn received(&self) -> ReceiveCounters;
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPABILITIES: Capabilities = Capabilities {
        frame_length_max: 118,
        untagged_length_max: 114,
        frames: 1,
        burst: 1,
        holds_departure: false,
        departure_stamp: StampPoint::Virtual,
        arrival_stamp: StampPoint::Virtual,
    };

    #[test]
    fn a_vlan_tag_may_be_on_top_of_the_longest_untagged_frame() {
        let mut frame = [0; 119];
        assert!(CAPABILITIES.accepts(&frame[..114]));
        assert!(!CAPABILITIES.accepts(&frame[..115]));
        for tag in [[0x81, 0x00], [0x88, 0xa8]] {
            frame[12..14].copy_from_slice(&tag);
            assert!(CAPABILITIES.accepts(&frame[..115]));
            assert!(CAPABILITIES.accepts(&frame[..118]));
            assert!(!CAPABILITIES.accepts(&frame));
        }
    }

    #[test]
    fn less_than_a_header_is_no_frame() {
        assert!(CAPABILITIES.accepts(&[0; 14]));
        assert!(!CAPABILITIES.accepts(&[0; 13]));
        assert!(!CAPABILITIES.accepts(&[]));
    }
}
