//! Reuse of a connection's tuple during TIME-WAIT.

use wirestorm_wire::packet::tcp::Flags;

use super::connection::{Connection, EndReason, State, StateFlags};
use super::counters::TcpCounters;
use super::segment::Segment;
use wirestorm_model::tcp::Settings;

impl Connection {
    /// Whether a SYN may open a new connection while this one is in TIME-WAIT (RFC 6191 section 2).
    /// `settings` are those of the new connection.
    ///
    /// A SYN with a timestamp may if this connection had no timestamps or if its timestamp is
    /// newer. Otherwise, the RFC requires that "the Sequence Number of the incoming SYN segment is
    /// greater than the last sequence number seen on the previous incarnation of the connection".
    #[inline]
    pub fn may_be_replaced_by<'a>(
        &self,
        segment: &Segment<'_>,
        settings: impl FnOnce() -> &'a Settings,
    ) -> bool {
        let asks = segment.flags.contains(Flags::SYN)
            && !segment.flags.contains(Flags::ACK)
            && !segment.flags.contains(Flags::RST);
        if self.state != State::TimeWait || !asks {
            return false;
        }
        let is_beyond = self.expected.is_before(segment.sequence);
        match segment.options.timestamps.filter(|_| settings().timestamps) {
            Some(timestamps) if self.marks.has(StateFlags::TIMESTAMPS) => {
                match timestamps.value.wrapping_sub(self.timestamp).cast_signed() {
                    0 => is_beyond,
                    later => later > 0,
                }
            }
            // "If TCP Timestamps would be enabled for the new incarnation of the connection", its
            // segments differ from old ones, which have no timestamps.
            Some(_) => true,
            None => is_beyond,
        }
    }

    /// Ends TIME-WAIT early; only after [`Self::may_be_replaced_by`] returned true.
    pub fn end_time_wait(&mut self, counters: &mut TcpCounters) {
        self.finish(EndReason::Closed, counters);
    }
}
