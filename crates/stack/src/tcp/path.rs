//! A path that carries only shorter packets. RFC 1191 section 6.4: "The TCP layer must track the
//! PMTU for the destination of a connection; it should not send datagrams that would be larger than
//! this." RFC 8201 says the same of IPv6.

use super::congestion::Congestion;
use super::connection::{Connection, End, Marks, Now, State};
use super::counters::TcpCounters;
use super::sequence::SequenceNumber;
use wirestorm_model::tcp::Settings;

/// Less would be all headers and options.
const PATH_SEGMENT_SIZE_MIN: u16 = 48;

impl Connection {
    /// Segments of a connection that has not sent any data are to be no longer than this, options
    /// included: so much is known of the path.
    pub fn limit_segments(&mut self, size: u16, settings: &Settings) {
        self.segment_size = self.segment_size.min(size.max(PATH_SEGMENT_SIZE_MIN));
        let window = u32::from(settings.initial_window);
        self.congestion = Congestion::new(settings.congestion, self.data_size(), window);
    }

    /// It is said that the segment of a number did not reach the peer: that nobody waits there, or
    /// that no way leads to it. Returns whether that ends the connection.
    ///
    /// RFC 1122 section 4.2.3.9 would have a connection aborted where nobody waits: "These are hard
    /// error conditions, so TCP SHOULD abort the connection." RFC 5927 section 5.2 tells of those
    /// who treat them as "soft errors" where a connection is established, as is done here: what is
    /// said may be forged. One that is not is ended by either, as Linux does (`tcp_v4_err`): who
    /// asked wants to know.
    pub fn hear_unreachable(
        &mut self,
        number: SequenceNumber,
        is_refused: bool,
        counters: &mut TcpCounters,
    ) -> bool {
        let is_in_flight = !number.is_before(self.unacknowledged) && number.is_before(self.highest);
        let is_it = self.state == State::SynSent && is_in_flight;
        if is_it {
            self.finish(if is_refused { End::Refused } else { End::Unreachable }, counters);
        }
        is_it
    }

    /// A router says that the segment of a number was too long, and that those up to a size,
    /// options included, are not. Returns whether that is news, and may be believed.
    ///
    /// RFC 5927 section 4.1: the number has to be "within the range SND.UNA =< SEG.SEQ < SND.NXT".
    /// RFC 8201 section 4: "A node must not increase its estimate of the Path MTU in response to
    /// the contents of a Packet Too Big message."
    pub fn shorten_segments(
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
        // What was in flight is sent again at once. RFC 1191 section 6.4: "a retransmission caused
        // by a Datagram Too Big message should not change the congestion window." The slow start
        // that it would have as well is left out, as Linux does (`tcp_simple_retransmit`): no
        // congestion was met. It is a waste to find out which segments were short enough.
        self.start_over();
        // RFC 6298 section 3: "RTT samples MUST NOT be made using segments that were
        // retransmitted".
        self.marks.clear(Marks::TIMED);
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

    /// A connection with so many bytes handed over and its first window sent.
    fn sending(bytes: u32, settings: &Settings, counters: &mut TcpCounters) -> Connection {
        let start = SequenceNumber(u32::MAX - 3_000);
        let mut connection = Connection::connect(settings, start, NOW, counters);
        connection.depart(settings, NOW, counters).unwrap();
        let answer = Segment {
            sequence: SequenceNumber(70),
            acknowledgement: start + 1,
            flags: Flags::SYN | Flags::ACK,
            window: u16::MAX,
            options: Options { maximum_segment_size: Some(1_460), ..Options::default() },
            sack: &[],
            cookie: &[],
            length: 0,
            ecn: Ecn::NOT_CAPABLE,
            segments: 1,
        };
        connection.arrive(&answer, settings, NOW, counters);
        connection.queue(bytes, counters);
        while connection.depart(settings, NOW, counters).is_some() {}
        connection
    }

    #[test]
    fn all_in_flight_is_sent_again_in_shorter_segments_with_the_same_window() {
        let (settings, counters) = (Settings::default(), &mut TcpCounters::default());
        let mut connection = sending(100_000, &settings, counters);
        let (first, window) = (connection.unacknowledged(), connection.congestion.window());
        assert_eq!(counters.sndpack, 10);
        assert!(connection.shorten_segments(1_260, first + 1_460, &settings, NOW, counters));
        let mut sent = 0;
        while let Some(outgoing) = connection.depart(&settings, NOW, counters) {
            assert_eq!(outgoing.sequence, first + sent);
            assert!(outgoing.length <= 1_260);
            sent += outgoing.length;
        }
        assert!(sent > window - 1_260, "{sent} of {window}");
        assert_eq!((connection.congestion.window(), counters.mturesent), (window, 1));
        assert_eq!(counters.rexmttimeo, 0);
    }

    #[test]
    fn only_a_connection_without_answer_is_ended_by_what_a_router_says() {
        let (settings, counters) = (Settings::default(), &mut TcpCounters::default());
        let start = SequenceNumber(u32::MAX);
        for (is_refused, end) in [(true, End::Refused), (false, End::Unreachable)] {
            let mut connection = Connection::connect(&settings, start, NOW, counters);
            assert!(!connection.hear_unreachable(start, is_refused, counters), "nothing was sent");
            connection.depart(&settings, NOW, counters).unwrap();
            for forged in [start - 1, start + 1] {
                assert!(!connection.hear_unreachable(forged, is_refused, counters));
            }
            assert_eq!(connection.end(), None);
            assert!(connection.hear_unreachable(start, is_refused, counters));
            assert_eq!((connection.end(), connection.is_over()), (Some(end), true));
        }
        assert_eq!(counters.conndrops, 2);
        let mut established = sending(100, &settings, counters);
        let first = established.unacknowledged();
        assert!(!established.hear_unreachable(first, true, counters));
    }

    #[test]
    fn what_is_not_in_flight_or_no_news_is_not_believed() {
        let (settings, counters) = (Settings::default(), &mut TcpCounters::default());
        let mut connection = sending(100_000, &settings, counters);
        let first = connection.unacknowledged();
        for (size, number) in [(1_260, first - 1), (1_260, first + 14_600), (1_460, first)] {
            assert!(!connection.shorten_segments(size, number, &settings, NOW, counters));
        }
        assert!(connection.shorten_segments(1_260, first, &settings, NOW, counters));
        assert!(!connection.shorten_segments(1_260, first, &settings, NOW, counters));
        assert_eq!(connection.depart(&settings, NOW, counters).unwrap().length, 1_260);
    }
}
