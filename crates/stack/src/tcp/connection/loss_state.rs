//! Connection state that exists only during loss or reordering.

use super::rack::Rack;
use super::undo::Undo;
use super::{Connection, StateFlags};
use crate::tcp::counters::TcpCounters;
use crate::tcp::now::Now;
use crate::tcp::ranges::{Ranges, SequenceRange};
use crate::tcp::segment::SACK_BLOCKS_MAX;
use crate::tcp::sequence::SequenceNumber;

/// State that an undisturbed connection does not need. It is allocated on demand, and freed when
/// everything is in order again.
#[derive(Clone, Debug, Default)]
pub(in crate::tcp) struct LossState {
    /// Ranges received beyond a hole.
    pub(in crate::tcp) arrived: Ranges,
    /// Maximum number of these ranges since they were last empty.
    ranges_peak: u16,
    /// Ranges that the peer acknowledged with SACK (the scoreboard of RFC 6675).
    pub(in crate::tcp) sacked: Ranges,
    /// `recover` of RFC 6582: the number after the highest one sent when a loss was detected, until
    /// all before it is acknowledged.
    pub(in crate::tcp) recover: Option<SequenceNumber>,
    /// Whether a timeout started the recovery, so that everything in flight was sent since.
    pub(in crate::tcp) is_after_timeout: bool,
    /// `HighRxt` of RFC 6675: the number after the last retransmission in this recovery.
    pub(in crate::tcp) high_rxt: Option<SequenceNumber>,
    /// Number of the peer's FIN, if it arrived beyond a hole.
    pub(in crate::tcp) fin: Option<SequenceNumber>,
    /// Duplicate data that the next segment reports to the peer (RFC 2883), and the one that the
    /// last segment reported.
    duplicate: Option<SequenceRange>,
    reported_duplicate: Option<SequenceRange>,
    pub(in crate::tcp) duplicate_acks: u16,
    /// DupThresh, stored together with `sacked`.
    pub(in crate::tcp) dupack_threshold: u8,
    /// Challenge ACKs since `challenged_at`, a time in ms.
    challenges: u8,
    challenged_at: u32,
    /// Transmission times.
    pub(in crate::tcp) rack: Rack,
    /// Congestion state before the last reduction, while that may be spurious.
    pub(in crate::tcp) undo: Option<Undo>,
}

/// Limit of challenge ACKs per time span in ms, as in the example of RFC 5961 section 7. Each
/// connection has its own limit, so that none reveals another.
const CHALLENGES_MAX: u8 = 10;
const CHALLENGE_INTERVAL_MS: u32 = 5_000;

/// Empty set for connections without this state.
static NOTHING: Ranges = Ranges::new();

impl Connection {
    pub(in crate::tcp) fn loss_state_mut(&mut self) -> &mut LossState {
        self.disorder.get_or_insert_default()
    }

    /// Ranges received beyond a hole.
    #[inline]
    pub(in crate::tcp) fn arrived(&self) -> &Ranges {
        self.disorder.as_ref().map_or(&NOTHING, |it| &it.arrived)
    }

    /// Ranges that the peer acknowledged with SACK.
    #[inline]
    pub(in crate::tcp) fn sacked(&self) -> &Ranges {
        self.disorder.as_ref().map_or(&NOTHING, |it| &it.sacked)
    }

    #[inline]
    pub(in crate::tcp) fn duplicate_acks(&self) -> u16 {
        self.disorder.as_ref().map_or(0, |it| it.duplicate_acks)
    }

    /// Whether data sent before the last window reduction is still unacknowledged.
    #[inline]
    pub(in crate::tcp) fn is_recovering(&self) -> bool {
        let recover = self.disorder.as_ref().and_then(|it| it.recover);
        recover.is_some_and(|recover| self.unacknowledged.is_before(recover))
    }

    /// Whether the recovery follows a timeout and retransmits everything from the oldest
    /// unacknowledged number on.
    #[inline]
    pub(in crate::tcp) fn is_recovering_from_timeout(&self) -> bool {
        self.is_recovering() && self.disorder.as_ref().is_some_and(|it| it.is_after_timeout)
    }

    /// Records duplicate data for a DSACK report.
    #[cold]
    pub(in crate::tcp) fn note_duplicate_data(&mut self, range: SequenceRange) {
        if self.marks.has(StateFlags::SACK) && !range.is_empty() {
            self.loss_state_mut().duplicate = Some(range);
        }
    }

    /// Number of SACK blocks to report.
    #[cold]
    pub(in crate::tcp) fn blocks_due(&self) -> usize {
        let disorder = self.disorder.as_ref();
        disorder.map_or(0, |it| usize::from(it.duplicate.is_some()) + it.arrived.len())
    }

    /// Marks the duplicate as reported. RFC 2883 section 4, (2): "Each duplicate contiguous
    /// sequence of data received is reported in at most one D-SACK block."
    #[cold]
    pub(in crate::tcp) fn mark_blocks_reported(&mut self) {
        if let Some(disorder) = &mut self.disorder {
            disorder.reported_duplicate = disorder.duplicate.take();
        }
    }

    /// Writes the SACK blocks of the last departed segment, as many as [`Outgoing::sack_blocks`].
    ///
    /// RFC 2883 section 4: "the first block of the SACK option should be a D-SACK block specifying
    /// the sequence numbers for the duplicate segment that triggers the acknowledgement. If the
    /// duplicate segment is part of a larger block of non-contiguous data in the receiver's data
    /// queue, then the following SACK block should be used to specify this larger block." The
    /// larger block is the most recently changed one.
    ///
    /// [`Outgoing::sack_blocks`]: crate::tcp::segment::Outgoing::sack_blocks
    pub fn sack_blocks(&self, blocks: &mut [SequenceRange; SACK_BLOCKS_MAX]) {
        let twice = self.disorder.as_ref().and_then(|it| it.reported_duplicate);
        let (first, behind) = blocks.split_at_mut(usize::from(twice.is_some()));
        first.iter_mut().zip(twice).for_each(|(block, twice)| *block = twice);
        self.arrived().most_recent(behind);
    }

    /// Answers a segment that may be forged with a challenge ACK, within the rate limit. A peer
    /// that really lost the connection answers it with RST.
    #[cold]
    pub(in crate::tcp) fn challenge(&mut self, now: Now, counters: &mut TcpCounters) {
        let disorder = self.loss_state_mut();
        let since = now.millis.wrapping_sub(disorder.challenged_at);
        if disorder.challenges == 0 || since >= CHALLENGE_INTERVAL_MS {
            (disorder.challenges, disorder.challenged_at) = (0, now.millis);
        }
        if disorder.challenges >= CHALLENGES_MAX {
            counters.challenge_ack_skipped += 1;
            return;
        }
        disorder.challenges += 1;
        self.marks.set(StateFlags::CHALLENGE_DUE);
    }

    /// Frees this state when everything is in order.
    #[cold]
    pub(in crate::tcp) fn settle(&mut self) {
        let is_settled =
            self.unacknowledged == self.highest && !self.marks.has(StateFlags::RECOVERY);
        if is_settled && self.disorder.as_ref().is_some_and(|it| it.is_over()) {
            self.disorder = None;
        }
    }
}

impl LossState {
    /// Counts data that is kept beyond a hole.
    #[cold]
    pub(in crate::tcp) fn note_reassembly(&mut self, counters: &mut TcpCounters) {
        let pieces = u16::try_from(self.arrived.len()).unwrap_or(u16::MAX);
        counters.reasalloc += u64::from(self.ranges_peak == 0 && pieces > 0);
        self.ranges_peak = self.ranges_peak.max(pieces);
    }

    /// Counts the end of a reassembly, if one was in progress.
    #[cold]
    pub(in crate::tcp) fn end_reassembly(&mut self, counters: &mut TcpCounters) {
        if self.ranges_peak == 0 {
            return;
        }
        counters.reasfree += 1;
        let counter = match self.ranges_peak {
            ..=4 => &mut counters.reas_hist_4,
            5..=16 => &mut counters.reas_hist_16,
            17..=100 => &mut counters.reas_hist_100,
            _ => &mut counters.reas_hist_other,
        };
        *counter += 1;
        self.ranges_peak = 0;
    }

    /// Whether the state is no longer needed; all sent data must be acknowledged.
    fn is_over(&self) -> bool {
        self.arrived.is_empty()
            && self.duplicate.is_none()
            && self.fin.is_none()
            && self.challenges == 0
            && self.rack.is_pristine()
            // The peer may still report the last retransmission as duplicate.
            && self.undo.as_ref().is_none_or(|it| !it.is_open())
    }
}

#[cfg(test)]
pub(in crate::tcp) mod tests {
    use wirestorm_wire::packet::tcp::Flags;

    use crate::tcp::connection::{Connection, RANGES_MAX};
    use crate::tcp::counters::TcpCounters;
    use crate::tcp::now::Now;
    use crate::tcp::segment::{Ecn, Options, Segment};
    use crate::tcp::sequence::SequenceNumber;
    use wirestorm_model::tcp::Settings;

    /// Returns a segment of the peer without data.
    pub(in crate::tcp) fn segment(sequence: u32, acknowledgement: u32) -> Segment<'static> {
        Segment {
            sequence: SequenceNumber(sequence),
            acknowledgement: SequenceNumber(acknowledgement),
            flags: Flags::ACK,
            window: 30_000,
            options: Options { sack_permitted: true, ..Options::default() },
            sack: &[],
            cookie: &[],
            length: 0,
            ecn: Ecn::NOT_ECT,
            segments: 1,
        }
    }

    /// Returns a connection that was opened within 10 ms; both initial sequence numbers are 0.
    pub(in crate::tcp) fn established(counters: &mut TcpCounters) -> Connection {
        let (settings, initial) = (Settings::default(), SequenceNumber(0));
        let mut connection = Connection::connect(&settings, initial, Now::default(), counters);
        connection.poll_transmit(&settings, Now::default(), counters).unwrap();
        let answer = Segment { flags: Flags::SYN | Flags::ACK, ..segment(0, 1) };
        connection.handle_segment(&answer, &settings, Now::from_micros(10_000), counters);
        connection
    }

    #[test]
    fn state_is_freed_once_everything_is_in_order() {
        let settings = Settings::default();
        let mut counters = TcpCounters::default();
        let mut connection = established(&mut counters);
        let mut receive = |connection: &mut Connection, segment: &Segment<'_>, millis: u64| {
            let now = Now::from_micros(millis * 1_000);
            connection.handle_segment(segment, &settings, now, &mut counters);
            while connection.poll_transmit(&settings, now, &mut counters).is_some() {}
        };
        // The second segment of the peer arrives first.
        receive(&mut connection, &Segment { length: 100, ..segment(101, 1) }, 11);
        assert!(connection.disorder.is_some());
        receive(&mut connection, &Segment { length: 100, ..segment(1, 1) }, 12);
        assert!(connection.disorder.is_none());
        // The first of our four segments is lost.
        connection.queue(4 * 536, &mut TcpCounters::default());
        receive(&mut connection, &segment(201, 1), 20);
        let sack = [537_u32.to_be_bytes(), 2_145_u32.to_be_bytes()].concat();
        receive(&mut connection, &Segment { sack: &sack, ..segment(201, 1) }, 30);
        assert!(connection.disorder.is_some());
        receive(&mut connection, &segment(201, 2_145), 40);
        // The peer may report a duplicate for two windows of data.
        let twice = 2 * connection.disorder.as_ref().unwrap().undo.as_ref().unwrap().window();
        let mut acknowledged = 2_145;
        while connection.disorder.is_some() {
            connection.queue(536, &mut TcpCounters::default());
            receive(&mut connection, &segment(201, acknowledged), 50);
            acknowledged += 536;
            receive(&mut connection, &segment(201, acknowledged), 60);
        }
        let behind = acknowledged - 537;
        assert!((twice + 1..twice + 3 * 536).contains(&behind), "{behind} {twice}");
        assert_eq!(counters.sndrexmitpack, 1);
    }

    /// Returns a connection that received `pieces` segments, each after a hole.
    fn with_pieces(pieces: u32, counters: &mut TcpCounters) -> Connection {
        let mut connection = established(counters);
        for piece in 1..=pieces {
            let beyond = Segment { length: 1, ..segment(1 + 2 * piece, 1) };
            connection.handle_segment(
                &beyond,
                &Settings::default(),
                Now::from_micros(20_000),
                counters,
            );
        }
        connection
    }

    #[test]
    fn reassembly_counters_depend_on_the_number_of_pieces() {
        for (pieces, expected) in [
            (1, [1, 0, 0, 0]),
            (4, [1, 0, 0, 0]),
            (5, [0, 1, 0, 0]),
            (16, [0, 1, 0, 0]),
            (17, [0, 0, 1, 0]),
            (100, [0, 0, 1, 0]),
            (101, [0, 0, 0, 1]),
        ] {
            let mut counters = TcpCounters::default();
            let mut connection = with_pieces(pieces, &mut counters);
            let rest = Segment { length: 2 * pieces + 1, ..segment(1, 1) };
            let now = Now::from_micros(30_000);
            connection.handle_segment(&rest, &Settings::default(), now, &mut counters);
            let TcpCounters { reas_hist_4, reas_hist_16, reas_hist_100, reas_hist_other, .. } =
                counters;
            let found = [reas_hist_4, reas_hist_16, reas_hist_100, reas_hist_other];
            assert_eq!(found, expected, "{pieces} pieces");
            assert_eq!((counters.reasalloc, counters.reasfree), (1, 1));
            assert_eq!(counters.rcvoopack, u64::from(pieces));
        }
    }

    #[test]
    fn pieces_beyond_the_limit_are_counted() {
        let mut counters = TcpCounters::default();
        let pieces = RANGES_MAX as u32 + 3;
        let mut connection = with_pieces(pieces, &mut counters);
        assert_eq!(connection.arrived().len(), RANGES_MAX);
        assert_eq!((counters.rcvoopackdrop, counters.rcvoobytesdrop), (3, 3));
        assert_eq!(counters.rcvoopack, RANGES_MAX as u64);
        // The scoreboard for the peer's SACK blocks has the same limit.
        let settings = Settings::default();
        let now = Now::from_micros(30_000);
        connection.queue(5_000, &mut counters);
        while connection.poll_transmit(&settings, now, &mut counters).is_some() {}
        for piece in 1..=pieces {
            let start = 1_u32 + 2 * piece;
            let sack = [start.to_be_bytes(), (start + 1).to_be_bytes()].concat();
            let sack_segment = Segment { sack: &sack, ..segment(1, 1) };
            connection.handle_segment(&sack_segment, &settings, now, &mut counters);
        }
        assert_eq!(counters.sack_sboverflow, 3);
    }

    #[test]
    fn merged_segments_beyond_a_hole_are_counted_individually() {
        let mut counters = TcpCounters::default();
        let mut connection = established(&mut counters);
        let train = Segment { length: 300, segments: 3, ..segment(101, 1) };
        let now = Now::from_micros(20_000);
        connection.handle_segment(&train, &Settings::default(), now, &mut counters);
        assert_eq!((counters.rcvoopack, counters.rcvoobyte), (3, 300));
        let train = Segment { length: 100, segments: 2, ..segment(1, 1) };
        connection.handle_segment(&train, &Settings::default(), now, &mut counters);
        assert_eq!((counters.rcvpack, counters.rcvoffloads, counters.rcvbyte), (2, 1, 400));
    }
}
