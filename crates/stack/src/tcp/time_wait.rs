//! A connection that comes again before the last one of its tuple is forgotten.

use wirestorm_wire::packet::tcp::Flags;

use super::connection::{Connection, End, Marks, State};
use super::counters::TcpCounters;
use super::segment::Segment;
use wirestorm_model::tcp::Settings;

impl Connection {
    /// Whether a segment asks for a new connection that cannot be mistaken for what is left of this
    /// one, which is in TIME-WAIT: it has a timestamp, as this one had none, or one that is later than
    /// all that came, or else "the Sequence Number of the incoming SYN segment is greater than the
    /// last sequence number seen on the previous incarnation of the connection" (RFC 6191 section 2).
    /// `settings`: those of the new one.
    #[inline]
    pub fn gives_way_to<'a>(
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
            Some(timestamps) if self.marks.has(Marks::TIMESTAMPS) => {
                match timestamps.value.wrapping_sub(self.timestamp).cast_signed() {
                    0 => is_beyond,
                    later => later > 0,
                }
            }
            // "If TCP Timestamps would be enabled for the new incarnation of the connection", what is
            // left of this one is told from it by having none.
            Some(_) => true,
            None => is_beyond,
        }
    }

    /// Forgets it before its time, which [`Self::gives_way_to`] allowed.
    pub fn give_way(&mut self, counters: &mut TcpCounters) {
        self.finish(End::Closed, counters);
    }
}
