//! Path MTU changes. RFC 1191 section 6.4: "The TCP layer must track the PMTU for the destination
//! of a connection; it should not send datagrams that would be larger than this." RFC 8201 requires
//! the same for IPv6.

use super::congestion::Congestion;
use super::connection::{Connection, EndReason, State, StateFlags};
use super::counters::TcpCounters;
use super::now::Now;
use super::sequence::SequenceNumber;
use wirestorm_model::tcp::Settings;

/// Minimum segment size; less would be all headers and options.
const PATH_SEGMENT_SIZE_MIN: u16 = 48;

impl Connection {
    /// Limits the segment size (options included) to the known path MTU. Only for a connection that
    /// has not sent data yet.
    pub fn limit_segment_size(&mut self, size: u16, settings: &Settings) {
        self.segment_size = self.segment_size.min(size.max(PATH_SEGMENT_SIZE_MIN));
        let window = u32::from(settings.initial_window);
        self.congestion = Congestion::new(settings.congestion, self.data_size(), window);
    }

    /// Handles an ICMP unreachable error for the segment at `number`. `is_refused` means that the
    /// port or protocol has no listener. Returns whether the error ends the connection.
    ///
    /// RFC 1122 section 4.2.3.9 aborts a connection if the port has no listener: "These are hard
    /// error conditions, so TCP SHOULD abort the connection." RFC 5927 section 5.2 describes
    /// implementations that treat them as "soft errors" in established connections, because the
    /// messages may be forged. This does the same. Both errors end a connection that is not
    /// established, as in Linux (`tcp_v4_err`).
    pub fn handle_unreachable(
        &mut self,
        number: SequenceNumber,
        is_refused: bool,
        counters: &mut TcpCounters,
    ) -> bool {
        let is_in_flight = !number.is_before(self.unacknowledged) && number.is_before(self.highest);
        let is_it = self.state == State::SynSent && is_in_flight;
        if is_it {
            self.finish(
                if is_refused { EndReason::Refused } else { EndReason::Unreachable },
                counters,
            );
        }
        is_it
    }

    /// Handles an ICMP "too big" error for the segment at `number`; `size` is the new segment size,
    /// options included. Returns whether the connection accepted the error.
    ///
    /// RFC 5927 section 4.1: the number has to be "within the range SND.UNA =< SEG.SEQ < SND.NXT".
    /// RFC 8201 section 4: "A node must not increase its estimate of the Path MTU in response to
    /// the contents of a Packet Too Big message."
    pub fn handle_packet_too_big(
        &mut self,
        size: u16,
        number: SequenceNumber,
        settings: &Settings,
        now: Now,
        counters: &mut TcpCounters,
    ) -> bool {
        let is_in_flight = !number.is_before(self.unacknowledged) && number.is_before(self.highest);
        let size = size.max(PATH_SEGMENT_SIZE_MIN);
        if !is_in_flight || size >= self.segment_size || !self.is_established() {
            return false;
        }
        self.segment_size = size;
        self.congestion.set_segment_size(self.data_size());
        counters.mturesent += 1;
        // Retransmit the data in flight at once. RFC 1191 section 6.4: "a retransmission caused by
        // a Datagram Too Big message should not change the congestion window." As in Linux
        // (`tcp_simple_retransmit`), there is no slow start either, because no congestion occurred.
        // Sorting out which segments were short enough is not worth it.
        self.retransmit_all();
        // RFC 6298 section 3: "RTT samples MUST NOT be made using segments that were
        // retransmitted".
        self.marks.clear(StateFlags::TIMED);
        self.restart_retransmission(settings, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::segment::{Ecn, Options, Segment};
    use wirestorm_wire::packet::tcp::Flags;

    const NOW: Now = Now { micros: 5_000, millis: 5 };

    /// Returns a connection with `bytes` queued and its first window sent.
    fn sending(bytes: u32, settings: &Settings, counters: &mut TcpCounters) -> Connection {
        let start = SequenceNumber(u32::MAX - 3_000);
        let mut connection = Connection::connect(settings, start, NOW, counters);
        connection.poll_transmit(settings, NOW, counters).unwrap();
        let answer = Segment {
            sequence: SequenceNumber(70),
            acknowledgement: start + 1,
            flags: Flags::SYN | Flags::ACK,
            window: u16::MAX,
            options: Options { maximum_segment_size: Some(1_460), ..Options::default() },
            sack: &[],
            cookie: &[],
            length: 0,
            ecn: Ecn::NOT_ECT,
            segments: 1,
        };
        connection.handle_segment(&answer, settings, NOW, counters);
        connection.queue(bytes, counters);
        while connection.poll_transmit(settings, NOW, counters).is_some() {}
        connection
    }

    #[test]
    fn too_big_error_retransmits_in_shorter_segments_with_the_same_window() {
        let (settings, counters) = (Settings::default(), &mut TcpCounters::default());
        let mut connection = sending(100_000, &settings, counters);
        let (first, window) = (connection.unacknowledged(), connection.congestion.window());
        assert_eq!(counters.sndpack, 10);
        assert!(connection.handle_packet_too_big(1_260, first + 1_460, &settings, NOW, counters));
        let mut sent = 0;
        while let Some(outgoing) = connection.poll_transmit(&settings, NOW, counters) {
            assert_eq!(outgoing.sequence, first + sent);
            assert!(outgoing.length <= 1_260);
            sent += outgoing.length;
        }
        assert!(sent > window - 1_260, "{sent} of {window}");
        assert_eq!((connection.congestion.window(), counters.mturesent), (window, 1));
        assert_eq!(counters.rexmttimeo, 0);
    }

    #[test]
    fn unreachable_error_ends_only_an_opening_connection() {
        let (settings, counters) = (Settings::default(), &mut TcpCounters::default());
        let start = SequenceNumber(u32::MAX);
        for (is_refused, end) in [(true, EndReason::Refused), (false, EndReason::Unreachable)] {
            let mut connection = Connection::connect(&settings, start, NOW, counters);
            assert!(
                !connection.handle_unreachable(start, is_refused, counters),
                "nothing was sent"
            );
            connection.poll_transmit(&settings, NOW, counters).unwrap();
            for forged in [start - 1, start + 1] {
                assert!(!connection.handle_unreachable(forged, is_refused, counters));
            }
            assert_eq!(connection.end(), None);
            assert!(connection.handle_unreachable(start, is_refused, counters));
            assert_eq!((connection.end(), connection.is_over()), (Some(end), true));
        }
        assert_eq!(counters.conndrops, 2);
        let mut established = sending(100, &settings, counters);
        let first = established.unacknowledged();
        assert!(!established.handle_unreachable(first, true, counters));
    }

    #[test]
    fn too_big_errors_for_other_segments_or_larger_sizes_are_ignored() {
        let (settings, counters) = (Settings::default(), &mut TcpCounters::default());
        let mut connection = sending(100_000, &settings, counters);
        let first = connection.unacknowledged();
        for (size, number) in [(1_260, first - 1), (1_260, first + 14_600), (1_460, first)] {
            assert!(!connection.handle_packet_too_big(size, number, &settings, NOW, counters));
        }
        assert!(connection.handle_packet_too_big(1_260, first, &settings, NOW, counters));
        assert!(!connection.handle_packet_too_big(1_260, first, &settings, NOW, counters));
        assert_eq!(connection.poll_transmit(&settings, NOW, counters).unwrap().length, 1_260);
    }
}
