//! The contract between the data plane and the backends that carry frames.
//!
//! A port is one queue of one interface. It never blocks, works in batches and has no clock. The
//! port owns the frame memory and lends a buffer as a [`FrameId`], which cannot be cloned. Its
//! holder may use the buffer and returns it with `send` or `release`. So code above a port needs no
//! `unsafe` and cannot touch a frame in flight.
//!
//! ```text
//! take -> frame_mut -> send | send_stamped | release ... flush
//! store ... take -> send_stored ... flush                  receive -> frame -> release
//! ```

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::departure::DepartureRecord;
use crate::resident::{CapturePosition, ResidentCapture, ResidentOptions, ResidentStream};
use crate::time::Instant;

/// Handle of one frame buffer of one port. Only ports create it.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a frame that is neither sent nor released is lost to its port"]
pub struct FrameId(u32);

impl FrameId {
    /// Creates the handle of buffer `index`. Only for ports; at most one may exist at a time.
    pub const fn from_index(index: u32) -> Self {
        Self(index)
    }

    /// Returns the number of the buffer. Only for ports.
    pub const fn index(&self) -> u32 {
        self.0
    }
}

/// Handle of bytes that a port stores; see [`Transmit::store`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredBytes(u32);

impl StoredBytes {
    /// Creates the handle of the bytes stored under `index`. Only for ports.
    pub const fn from_index(index: u32) -> Self {
        Self(index)
    }

    /// Returns the index of the stored bytes. Only for ports.
    pub const fn index(self) -> u32 {
        self.0
    }
}

/// How to segment a long TCP frame. Each segment has the headers and the next bytes of the data.
/// Lengths, identifications, sequence numbers, checksums and flags follow from the long frame, as
/// in Linux (`tcp_gso_segment`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segmentation {
    /// Whether the packet is IPv6; otherwise it is IPv4.
    pub is_ipv6: bool,
    /// Offset of the TCP header. Its checksum field covers only the pseudo-header with the whole
    /// length.
    pub transport: u16,
    /// Offset of the data, in bytes.
    pub headers: u16,
    /// Data bytes of a segment (the MSS); the last segment has the rest.
    pub data: u16,
}

/// Place where a timestamp is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampPoint {
    /// In this process, next to the system call that sends or receives the frame.
    Process,
    /// In the kernel, where a socket buffer enters or leaves the interface.
    Kernel,
    /// In the XDP program, one step from the driver.
    Xdp,
    /// In the network interface.
    Hardware,
    /// In simulated time. Frames leave with the flush, even if their departure times are far ahead,
    /// and their departure is exactly on time.
    Virtual,
}

/// Capabilities of a port; constant once the port is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Longest frame, in bytes without FCS, link-layer header included.
    pub frame_length_max: usize,
    /// Longest frame without a VLAN tag. On an interface the tag may exceed the MTU.
    pub untagged_length_max: usize,
    /// Buffers: frames that may be taken or in flight at once.
    pub frames: usize,
    /// Recommended number of frames to queue before a flush.
    pub burst: usize,
    /// Whether the port itself waits for the departure time of [`Transmit::send`]. If not, frames
    /// leave with the flush and the caller waits.
    pub holds_departure: bool,
    /// Where departures are timestamped.
    pub departure_stamp: StampPoint,
    /// Where arrivals are timestamped.
    pub arrival_stamp: StampPoint,
}

impl Capabilities {
    /// Returns whether the port can send this frame. It must have an Ethernet header and must not
    /// exceed the maximum length for tagged or untagged frames.
    ///
    /// This is the rule of Linux (`packet_snd` in `net/packet/af_packet.c`), extended to service
    /// tags. The fast paths of some ports bypass the check in Linux.
    #[inline]
    pub fn accepts(&self, frame: &[u8]) -> bool {
        let length = frame.len();
        (ETHERNET_HEADER_BYTES..=self.untagged_length_max).contains(&length)
            || (self.untagged_length_max < length && length <= self.frame_length_max)
                && has_vlan_tag(frame)
    }

    /// Checks the length that a caller passes to [`Transmit::send`]. Only for ports.
    ///
    /// # Panics
    /// If `length` is zero or greater than `frame_length_max`.
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

/// Returns whether a VLAN tag follows the Ethernet addresses: a customer tag (IEEE 802.1Q, 0x8100)
/// or a service tag (IEEE 802.1ad, 0x88a8).
#[inline]
pub fn has_vlan_tag(frame: &[u8]) -> bool {
    matches!(frame.get(12..14), Some([0x81, 0x00] | [0x88, 0xa8]))
}

/// Counters of a transmitting port. Every frame passed to `send` is in exactly one of `sent`,
/// `failed` and `unsent`, or still in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransmitCounters {
    /// Frames sent, without ARP, ND, echo replies and latency probes.
    pub sent: u64,
    /// Bytes of those frames, without FCS.
    pub sent_bytes: u64,
    /// Frames that the interface rejected permanently.
    pub failed: u64,
    /// Frames dropped because they were too late under a strict policy.
    pub unsent: u64,
    /// Send attempts repeated because a queue was full (`ENOBUFS`).
    pub retried_no_buffers: u64,
    /// Send attempts repeated because the interface was busy (`EAGAIN`).
    pub retried_again: u64,
}

impl TransmitCounters {
    /// Adds the counters of another port.
    pub fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.sent_bytes += other.sent_bytes;
        self.failed += other.failed;
        self.unsent += other.unsent;
        self.retried_no_buffers += other.retried_no_buffers;
        self.retried_again += other.retried_again;
    }
}

/// Counters of a receiving port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveCounters {
    /// Frames that arrived. Includes dropped frames if the port can count them.
    pub received: u64,
    /// Bytes of those frames on the wire, without FCS.
    pub received_bytes: u64,
    /// Frames that arrived but were dropped because the port had no buffer. They were not lost on
    /// the path.
    pub rx_dropped: u64,
}

/// Error that stops a port.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    /// The interface is down. It may come up again.
    #[error("interface {interface} went down; bring it up with: {command}")]
    Down {
        /// Name of the interface.
        interface: String,
        /// Command that brings the interface up.
        command: String,
    },
    /// The interface no longer exists.
    #[error("interface {interface} is gone: it was removed or moved to another namespace")]
    Gone {
        /// Name of the interface.
        interface: String,
    },
    /// Any other error of the operating system.
    #[error("{interface}: {operation} failed: {reason}")]
    System {
        /// Name of the interface or file.
        interface: String,
        /// Operation that failed.
        operation: &'static str,
        /// Error of the operating system.
        reason: String,
    },
}

impl PortError {
    /// Returns the name of the interface or file.
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
    /// Returns the capabilities of the port.
    fn capabilities(&self) -> &Capabilities;

    /// Takes a free buffer, or returns `None` if all are taken or in flight.
    fn take(&mut self) -> Option<FrameId>;

    /// Returns the buffer: at least `frame_length_max` bytes with unspecified contents.
    fn frame_mut(&mut self, frame: &FrameId) -> &mut [u8];

    /// Queues the first `length` bytes behind all earlier frames, for the next flush. They leave no
    /// earlier than `departure` ([`Instant::ZERO`]: as soon as possible). A port that does not hold
    /// departures ignores the time.
    ///
    /// The caller must not send a frame that [`Capabilities::accepts`] rejects. The port may count
    /// such a frame as failed.
    ///
    /// # Panics
    /// If `length` is zero or greater than `frame_length_max`.
    fn send(&mut self, frame: FrameId, length: usize, departure: Instant);

    /// As [`Transmit::send`], for a frame that ends in its departure time. These eight bytes are
    /// nanoseconds modulo 2^48 (six bytes) and a word that keeps their one's complement sum
    /// constant. A port that knows the departure time better rewrites them. The default sends the
    /// frame unchanged.
    fn send_stamped(&mut self, frame: FrameId, length: usize, departure: Instant) {
        self.send(frame, length, departure);
    }

    /// Copies bytes into the port's own memory for the lifetime of the port. Frames in them can
    /// then be sent many times without a copy. `None` if the port has no such memory or it is full.
    fn store(&mut self, _bytes: &[u8]) -> Option<StoredBytes> {
        None
    }

    /// As [`Transmit::send`], for the frame at `range` of the stored bytes. The port ignores the
    /// contents of the buffer that `frame` names.
    ///
    /// # Panics
    /// If the range is outside the stored bytes, empty or longer than `frame_length_max`,
    /// or if the port stores nothing.
    fn send_stored(
        &mut self,
        _frame: FrameId,
        _stored: StoredBytes,
        _range: Range<usize>,
        _departure: Instant,
    ) {
        unreachable!("this port stores no bytes");
    }

    /// Returns the part of the port that makes and sends streams by itself; `None` if it has none, or
    /// was not opened for it.
    fn resident(&mut self) -> Option<&mut dyn Resident> {
        None
    }

    /// Returns the longest frame that [`Transmit::send_segments`] takes. Buffers then have room for
    /// it. `None` if the port does not segment frames.
    fn segmented_length_max(&self) -> Option<usize> {
        None
    }

    /// As [`Transmit::send`], for a long TCP frame that the port cuts into segments. It counts as
    /// one frame.
    ///
    /// # Panics
    /// If `length` is greater than [`Transmit::segmented_length_max`].
    fn send_segments(
        &mut self,
        _frame: FrameId,
        _length: usize,
        _segments: &Segmentation,
        _departure: Instant,
    ) {
        unreachable!("this port does not segment frames");
    }

    /// Returns a buffer to the port without sending it.
    fn release(&mut self, frame: FrameId);

    /// Hands queued frames to the interface and collects the buffers of sent ones. Never blocks:
    /// frames that do not fit stay queued.
    ///
    /// # Errors
    /// If the interface no longer works. Counters stay valid.
    fn flush(&mut self) -> Result<(), PortError>;

    /// Returns the number of frames passed to `send` that have not left yet.
    fn in_flight(&self) -> usize;

    /// Returns the counters.
    fn transmitted(&self) -> TransmitCounters;

    /// Returns the record of departures if the port holds departures.
    fn departures(&self) -> Option<DepartureRecord> {
        None
    }

    /// Drops all queued frames, counts them as unsent, and collects the buffers of sent frames. An
    /// interrupted run uses this to stop at once.
    fn abort(&mut self);
}

/// The part of a port that sends streams or a capture by itself. Their frames are in the counters and the
/// record of departures of the port, as if they had been passed to [`Transmit::send`].
pub trait Resident {
    /// Returns what the port was opened for.
    fn options(&self) -> &ResidentOptions;

    /// Sends these streams from now on, together at most `frames_max` frames. Those without due times
    /// end at `until`. Streams of an earlier call must have ended or have been recalled.
    ///
    /// # Errors
    /// The reason why the port cannot send them; it then sends none.
    fn host(
        &mut self,
        streams: &[ResidentStream],
        frames_max: u64,
        until: Instant,
    ) -> Result<(), String>;

    /// Sends the frames of a capture from now on, at most `frames_max` and none that is due at `until`
    /// or later. Without due times it ends at `until`. An earlier one must have ended or have been
    /// recalled.
    ///
    /// # Errors
    /// The reason why the port cannot send them; it then sends none.
    fn host_capture(
        &mut self,
        capture: &ResidentCapture<'_>,
        frames_max: u64,
        until: Instant,
    ) -> Result<(), String>;

    /// Returns the number of streams that have frames left, or 0 if all frames are sent. A capture
    /// counts as one.
    fn sending(&self) -> usize;

    /// Returns how many frames of a stream or the capture the port has taken since it hosts them.
    /// `index`: the place of the stream there; 0 for the capture.
    fn taken(&self, index: usize) -> u64;

    /// Returns the next frame of the capture. Final after [`Resident::recall`].
    fn position(&self) -> CapturePosition;

    /// Stops all streams, or the capture. Afterwards [`Resident::taken`] is final.
    fn recall(&mut self);
}

/// Work that the kernel or the interface did on a received frame, or left to the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offloads {
    /// The transport checksum is correct, or was never filled in because the frame did not cross a
    /// wire.
    pub is_verified: bool,
    /// Data bytes of each merged TCP segment; the last segment may have fewer. 0: the frame was not
    /// merged.
    pub segment_data: u16,
}

impl Offloads {
    /// Returns the number of segments that carried `data` bytes in total; at least 1.
    #[inline]
    pub fn segments(&self, data: u32) -> u16 {
        match self.segment_data {
            0 => 1,
            each => data.div_ceil(each.into()).clamp(1, u16::MAX.into()) as u16,
        }
    }
}

/// A received frame.
#[derive(Debug)]
pub struct Received {
    /// Its buffer; the receiver must release it.
    pub frame: FrameId,
    /// Bytes in the buffer.
    pub length: usize,
    /// Bytes on the wire without FCS; more than `length` if the port truncated the frame.
    pub original_length: usize,
    /// Arrival time, taken at [`Capabilities::arrival_stamp`].
    pub arrival: Instant,
    /// Queue or CPU on which it arrived.
    pub queue: u32,
    /// Offloads that apply to the frame.
    pub offloads: Offloads,
}

/// The receiving half of a port.
pub trait Receive {
    /// Returns the capabilities of the port.
    fn capabilities(&self) -> &Capabilities;

    /// Appends at most `room` received frames and returns how many. Frames of one queue are in
    /// order of arrival.
    ///
    /// # Errors
    /// If the interface no longer works. Counters stay valid.
    fn receive(&mut self, room: usize, batch: &mut Vec<Received>) -> Result<usize, PortError>;

    /// Returns the bytes of a received frame.
    fn frame(&self, received: &Received) -> &[u8];

    /// Returns the buffer of a received frame to the port.
    fn release(&mut self, received: Received);

    /// Returns the counters.
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
    fn a_vlan_tag_may_exceed_the_untagged_maximum() {
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
    fn frames_shorter_than_an_ethernet_header_are_rejected() {
        assert!(CAPABILITIES.accepts(&[0; 14]));
        assert!(!CAPABILITIES.accepts(&[0; 13]));
        assert!(!CAPABILITIES.accepts(&[]));
    }
}
