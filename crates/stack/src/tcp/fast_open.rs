//! TCP Fast Open (RFC 7413): data on the SYN.
//!
//! The owner of the connections stores the cookies. A connection stores only whether it has a
//! cookie and how much data the SYN may carry.

use wirestorm_wire::packet::tcp;

use super::connection::{Connection, State, StateFlags};
use super::counters::TcpCounters;
use super::segment::Segment;
use super::sequence::SequenceNumber;

/// Maximum length of TCP options in bytes.
const OPTIONS_MAX: u16 = (tcp::HEADER_LENGTH_MAX - tcp::HEADER_LENGTH_MIN) as u16;

impl Connection {
    /// Makes the SYN carry a cookie (or a cookie request) and data, for a peer with the cached MSS
    /// `segment_size`. RFC 7413 section 4.2.2: "Include any data up to the cached server MSS or
    /// default 536 bytes."
    pub(crate) fn open_fast(&mut self, segment_size: Option<u16>) {
        self.marks.set(StateFlags::FAST_OPEN);
        let longest = segment_size.map_or(0, |size| size.min(self.segment_size));
        // Assumed window until the peer announces its own.
        self.send_window = longest.saturating_sub(OPTIONS_MAX).into();
    }

    /// Makes the SYN-ACK carry a cookie.
    pub(crate) fn send_cookie(&mut self) {
        self.marks.set(StateFlags::FAST_OPEN);
    }

    /// Accepts the data of a SYN with a valid cookie. Returns the number of accepted bytes.
    pub(crate) fn accept_syn_data(&mut self, syn: &Segment<'_>, counters: &mut TcpCounters) -> u32 {
        let room = self.offered.distance_from(self.expected).max(0) as u32;
        let length = syn.length.min(room);
        self.expected += length;
        self.offered += length;
        counters.fast_open_accepted += u64::from(length > 0);
        counters.rcvpack += u64::from(length > 0);
        counters.rcvbyte += u64::from(length);
        length
    }

    /// Returns the number of data bytes on the SYN.
    pub(super) fn syn_data(&self) -> u32 {
        if !self.marks.has(StateFlags::FAST_OPEN) {
            return 0;
        }
        let queued = self.queued.distance_from(self.unacknowledged + 1).max(0) as u32;
        queued.min(self.send_window)
    }

    /// Disables Fast Open after a lost SYN, because a middlebox may have dropped it for its option.
    /// RFC 7413 section 4.2.2: "when the SYN timer fires, the client SHOULD retransmit a SYN packet
    /// without data and Fast Open options". It also says: "If the SYN-ACK timer fires, the server
    /// SHOULD retransmit a SYN-ACK segment with neither data nor Fast Open options for
    /// compatibility reasons."
    pub(super) fn disable_fast_open(&mut self) {
        self.marks.clear(StateFlags::FAST_OPEN);
    }

    /// Whether the unanswered SYN carries, or will carry, the Fast Open option.
    pub(crate) fn opens_fast(&self) -> bool {
        self.state == State::SynSent && self.marks.has(StateFlags::FAST_OPEN)
    }

    /// Whether the peer's SYN carried data, which the program may answer before the peer
    /// acknowledges the SYN-ACK.
    pub(super) fn may_answer_early(&self) -> bool {
        self.marks.has(StateFlags::FAST_OPEN) && self.initial_receive + 1 != self.expected
    }

    /// Whether an acknowledgement number acknowledges our SYN. RFC 9293 section 3.10.7.3: "If
    /// SND.UNA < SEG.ACK =< SND.NXT, then the ACK is acceptable."
    pub(super) fn is_of_syn(&self, number: SequenceNumber) -> bool {
        self.unacknowledged.is_before(number) && !self.highest.is_before(number)
    }
}
