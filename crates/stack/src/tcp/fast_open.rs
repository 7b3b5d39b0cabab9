//! TCP Fast Open, RFC 7413: data that comes with SYN.
//!
//! Which cookie a peer gave or is given is known to whoever has many connections; a connection
//! knows whether it has one, and how much data may go with it.

use wirestorm_wire::packet::tcp;

use super::connection::{Connection, Marks, State};
use super::counters::TcpCounters;
use super::segment::Segment;
use super::sequence::SequenceNumber;

/// The most that options take of a segment.
const OPTIONS_MAX: u16 = (tcp::HEADER_LENGTH_MAX - tcp::HEADER_LENGTH_MIN) as u16;

impl Connection {
    /// SYN asks for a cookie, or tells one to a peer that takes segments of so many bytes. RFC 7413
    /// section 4.2.2: "Include any data up to the cached server MSS or default 536 bytes."
    pub(crate) fn open_fast(&mut self, segment_size: Option<u16>) {
        self.marks.set(Marks::FAST_OPEN);
        let longest = segment_size.map_or(0, |size| size.min(self.segment_size));
        // What the peer has room for, until it says that itself.
        self.send_window = longest.saturating_sub(OPTIONS_MAX).into();
    }

    /// The answer to a SYN tells a cookie.
    pub(crate) fn tell_cookie(&mut self) {
        self.marks.set(Marks::FAST_OPEN);
    }

    /// Takes the data of a SYN whose cookie is good. Returns how many bytes.
    pub(crate) fn take_early(&mut self, syn: &Segment<'_>, counters: &mut TcpCounters) -> u32 {
        let room = self.offered.distance_from(self.expected).max(0) as u32;
        let length = syn.length.min(room);
        self.expected += length;
        self.offered += length;
        counters.fast_open_taken += u64::from(length > 0);
        counters.rcvpack += u64::from(length > 0);
        counters.rcvbyte += u64::from(length);
        length
    }

    /// Bytes of data that leave with SYN.
    pub(super) fn early_data(&self) -> u32 {
        if !self.marks.has(Marks::FAST_OPEN) {
            return 0;
        }
        let queued = self.queued.distance_from(self.unacknowledged + 1).max(0) as u32;
        queued.min(self.send_window)
    }

    /// A SYN that was lost may have been so for what it had. RFC 7413 section 4.2.2: "when the SYN
    /// timer fires, the client SHOULD retransmit a SYN packet without data and Fast Open options", and
    /// "If the SYN-ACK timer fires, the server SHOULD retransmit a SYN-ACK segment with neither data
    /// nor Fast Open options for compatibility reasons."
    pub(super) fn forget_fast_open(&mut self) {
        self.marks.clear(Marks::FAST_OPEN);
    }

    /// Whether a SYN with the option has left, or is to leave, and nothing has answered it.
    pub(crate) fn opens_fast(&self) -> bool {
        self.state == State::SynSent && self.marks.has(Marks::FAST_OPEN)
    }

    /// Whether data came with the peer's SYN, which may be answered before our own is acknowledged.
    pub(super) fn may_answer_early(&self) -> bool {
        self.marks.has(Marks::FAST_OPEN) && self.peer_initial + 1 != self.expected
    }

    /// Whether a number acknowledges our SYN. RFC 9293 section 3.10.7.3: "If SND.UNA < SEG.ACK =<
    /// SND.NXT, then the ACK is acceptable."
    pub(super) fn is_of_syn(&self, number: SequenceNumber) -> bool {
        self.unacknowledged.is_before(number) && !self.highest.is_before(number)
    }
}
