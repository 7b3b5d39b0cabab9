//! What a connection remembers only where segments were lost or came in another order.

use super::connection::{Connection, Marks, Now};
use super::counters::TcpCounters;
use super::rack::Rack;
use super::ranges::{Ranges, SequenceRange};
use super::segment::SACK_BLOCKS_MAX;
use super::sequence::SequenceNumber;
use super::undo::Undo;

/// What an undisturbed connection does not need, so that it takes no room there: it is made when
/// first needed, and given back once all is in order again.
#[derive(Clone, Debug, Default)]
pub(super) struct Disorder {
    /// What arrived beyond holes.
    pub(super) arrived: Ranges,
    /// The most pieces of it there were at a time, since there was none.
    pieces_max: u16,
    /// What the peer says arrived beyond holes (RFC 6675's scoreboard).
    pub(super) sacked: Ranges,
    /// Behind the highest number sent when a loss was found (RFC 6582's `recover`), as long as not
    /// all before it is acknowledged.
    pub(super) recover: Option<SequenceNumber>,
    /// Whether that was by a timeout, so that all that is in flight was sent since.
    pub(super) has_started_over: bool,
    /// Behind what was sent again in this recovery (RFC 6675's `HighRxt`).
    pub(super) resent_to: Option<SequenceNumber>,
    /// The number of the peer's FIN, where it arrived beyond a hole.
    pub(super) fin: Option<SequenceNumber>,
    /// Data that came twice, of which the next segment tells the peer (RFC 2883), and of which the
    /// last one told.
    twice: Option<SequenceRange>,
    told_twice: Option<SequenceRange>,
    pub(super) duplicate_acks: u16,
    /// How many of them tell of a loss; noted with what is in `sacked`.
    pub(super) dupack_threshold: u8,
    /// Challenges since a time in ms.
    challenges: u8,
    challenged_at: u32,
    /// When what was sent.
    pub(super) rack: Rack,
    /// The window before its last reduction, as long as that may have been needless.
    pub(super) undo: Option<Undo>,
}

/// RFC 5961 section 7 bounds how many segments that may be forged are answered, as in its example:
/// so many in so many ms. Each connection counts for itself, so that none tells of another.
const CHALLENGES_MAX: u8 = 10;
const CHALLENGES_SPAN: u32 = 5_000;

/// No ranges, for those who have none.
static NOTHING: Ranges = Ranges::new();

impl Connection {
    pub(super) fn disorder_mut(&mut self) -> &mut Disorder {
        self.disorder.get_or_insert_default()
    }

    /// What arrived beyond holes.
    #[inline]
    pub(super) fn arrived(&self) -> &Ranges {
        self.disorder.as_ref().map_or(&NOTHING, |it| &it.arrived)
    }

    /// What the peer says arrived beyond holes.
    #[inline]
    pub(super) fn sacked(&self) -> &Ranges {
        self.disorder.as_ref().map_or(&NOTHING, |it| &it.sacked)
    }

    #[inline]
    pub(super) fn duplicate_acks(&self) -> u16 {
        self.disorder.as_ref().map_or(0, |it| it.duplicate_acks)
    }

    /// Whether what was sent when the window was last reduced is not all acknowledged.
    #[inline]
    pub(super) fn is_recovering(&self) -> bool {
        let recover = self.disorder.as_ref().and_then(|it| it.recover);
        recover.is_some_and(|recover| self.unacknowledged.is_before(recover))
    }

    /// The same where all of it is sent again, from the first one unacknowledged on.
    #[inline]
    pub(super) fn is_starting_over(&self) -> bool {
        self.is_recovering() && self.disorder.as_ref().is_some_and(|it| it.has_started_over)
    }

    /// Notes that data came a second time.
    #[cold]
    pub(super) fn note_twice(&mut self, range: SequenceRange) {
        if self.marks.has(Marks::SACK) && !range.is_empty() {
            self.disorder_mut().twice = Some(range);
        }
    }

    /// How many SACK blocks there are to tell of.
    #[cold]
    pub(super) fn blocks_due(&self) -> usize {
        let disorder = self.disorder.as_ref();
        disorder.map_or(0, |it| usize::from(it.twice.is_some()) + it.arrived.len())
    }

    /// A segment tells of them. RFC 2883 section 4, (2): "Each duplicate contiguous sequence of data
    /// received is reported in at most one D-SACK block."
    #[cold]
    pub(super) fn tell_blocks(&mut self) {
        if let Some(disorder) = &mut self.disorder {
            disorder.told_twice = disorder.twice.take();
        }
    }

    /// Writes the blocks of the segment that left last, as many as [`Outgoing::sack_blocks`] says.
    ///
    /// RFC 2883 section 4: "the first block of the SACK option should be a D-SACK block specifying
    /// the sequence numbers for the duplicate segment that triggers the acknowledgement. If the
    /// duplicate segment is part of a larger block of non-contiguous data in the receiver's data
    /// queue, then the following SACK block should be used to specify this larger block." That is
    /// the block that was added to last.
    ///
    /// [`Outgoing::sack_blocks`]: super::segment::Outgoing::sack_blocks
    pub fn sack_blocks(&self, blocks: &mut [SequenceRange; SACK_BLOCKS_MAX]) {
        let twice = self.disorder.as_ref().and_then(|it| it.told_twice);
        let (first, behind) = blocks.split_at_mut(usize::from(twice.is_some()));
        first.iter_mut().zip(twice).for_each(|(block, twice)| *block = twice);
        self.arrived().most_recent(behind);
    }

    /// Answers what may be forged with an acknowledgement, which the true peer answers if it has
    /// lost the connection; unless that was done often of late.
    #[cold]
    pub(super) fn challenge(&mut self, now: Now, counters: &mut TcpCounters) {
        let disorder = self.disorder_mut();
        let since = now.millis.wrapping_sub(disorder.challenged_at);
        if disorder.challenges == 0 || since >= CHALLENGES_SPAN {
            (disorder.challenges, disorder.challenged_at) = (0, now.millis);
        }
        if disorder.challenges >= CHALLENGES_MAX {
            counters.challenge_held += 1;
            return;
        }
        disorder.challenges += 1;
        self.marks.set(Marks::CHALLENGE_DUE);
    }

    /// Gives the memory back where all is in order.
    #[cold]
    pub(super) fn settle(&mut self) {
        let is_settled = self.unacknowledged == self.highest && !self.marks.has(Marks::RECOVERY);
        if is_settled && self.disorder.as_ref().is_some_and(|it| it.is_over()) {
            self.disorder = None;
        }
    }
}

impl Disorder {
    /// Something was kept beyond a hole.
    #[cold]
    pub(super) fn note_reassembly(&mut self, counters: &mut TcpCounters) {
        let pieces = u16::try_from(self.arrived.len()).unwrap_or(u16::MAX);
        counters.reasalloc += u64::from(self.pieces_max == 0 && pieces > 0);
        self.pieces_max = self.pieces_max.max(pieces);
    }

    /// Nothing is kept beyond a hole any more, if anything was.
    #[cold]
    pub(super) fn end_reassembly(&mut self, counters: &mut TcpCounters) {
        if self.pieces_max == 0 {
            return;
        }
        counters.reasfree += 1;
        let counter = match self.pieces_max {
            ..=4 => &mut counters.reas_hist_4,
            5..=16 => &mut counters.reas_hist_16,
            17..=100 => &mut counters.reas_hist_100,
            _ => &mut counters.reas_hist_other,
        };
        *counter += 1;
        self.pieces_max = 0;
    }

    /// Whether nothing of it is needed any more, where all that was sent is acknowledged.
    fn is_over(&self) -> bool {
        self.arrived.is_empty()
            && self.twice.is_none()
            && self.fin.is_none()
            && self.challenges == 0
            && self.rack.is_over()
            // The last of what was sent again may yet be said to have come twice.
            && self.undo.as_ref().is_none_or(|it| !it.is_open())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use wirestorm_wire::packet::tcp::Flags;

    use crate::tcp::connection::{Connection, Now, RANGES_MAX};
    use crate::tcp::counters::TcpCounters;
    use crate::tcp::segment::{Ecn, Options, Segment};
    use crate::tcp::sequence::SequenceNumber;
    use wirestorm_model::tcp::Settings;

    /// A segment of the peer without data.
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
            ecn: Ecn::NOT_CAPABLE,
            segments: 1,
        }
    }

    /// A connection that was opened within 10 ms; both begin with 0.
    pub(in crate::tcp) fn established(counters: &mut TcpCounters) -> Connection {
        let (settings, initial) = (Settings::default(), SequenceNumber(0));
        let mut connection = Connection::connect(&settings, initial, Now::default(), counters);
        connection.depart(&settings, Now::default(), counters).unwrap();
        let answer = Segment { flags: Flags::SYN | Flags::ACK, ..segment(0, 1) };
        connection.arrive(&answer, &settings, Now::from_micros(10_000), counters);
        connection
    }

    #[test]
    fn memory_is_given_back_once_all_is_in_order_again() {
        let settings = Settings::default();
        let mut counters = TcpCounters::default();
        let mut connection = established(&mut counters);
        let mut hear = |connection: &mut Connection, segment: &Segment<'_>, millis: u64| {
            let now = Now::from_micros(millis * 1_000);
            connection.arrive(segment, &settings, now, &mut counters);
            while connection.depart(&settings, now, &mut counters).is_some() {}
        };
        // Of the peer, the second segment comes first.
        hear(&mut connection, &Segment { length: 100, ..segment(101, 1) }, 11);
        assert!(connection.disorder.is_some());
        hear(&mut connection, &Segment { length: 100, ..segment(1, 1) }, 12);
        assert!(connection.disorder.is_none());
        // Of ours, the first of four is lost.
        connection.queue(4 * 536, &mut TcpCounters::default());
        hear(&mut connection, &segment(201, 1), 20);
        let told = [537_u32.to_be_bytes(), 2_145_u32.to_be_bytes()].concat();
        hear(&mut connection, &Segment { sack: &told, ..segment(201, 1) }, 30);
        assert!(connection.disorder.is_some());
        hear(&mut connection, &segment(201, 2_145), 40);
        // The peer may yet tell that it came twice: for two windows of data.
        let twice = 2 * connection.disorder.as_ref().unwrap().undo.as_ref().unwrap().window();
        let mut acknowledged = 2_145;
        while connection.disorder.is_some() {
            connection.queue(536, &mut TcpCounters::default());
            hear(&mut connection, &segment(201, acknowledged), 50);
            acknowledged += 536;
            hear(&mut connection, &segment(201, acknowledged), 60);
        }
        let behind = acknowledged - 537;
        assert!((twice + 1..twice + 3 * 536).contains(&behind), "{behind} {twice}");
        assert_eq!(counters.sndrexmitpack, 1);
    }

    /// A connection to which so many pieces came with a hole before each of them.
    fn with_pieces(pieces: u32, counters: &mut TcpCounters) -> Connection {
        let mut connection = established(counters);
        for piece in 1..=pieces {
            let beyond = Segment { length: 1, ..segment(1 + 2 * piece, 1) };
            connection.arrive(&beyond, &Settings::default(), Now::from_micros(20_000), counters);
        }
        connection
    }

    #[test]
    fn what_was_kept_is_counted_by_its_pieces_at_a_time() {
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
            connection.arrive(&rest, &Settings::default(), now, &mut counters);
            let TcpCounters { reas_hist_4, reas_hist_16, reas_hist_100, reas_hist_other, .. } =
                counters;
            let found = [reas_hist_4, reas_hist_16, reas_hist_100, reas_hist_other];
            assert_eq!(found, expected, "{pieces} pieces");
            assert_eq!((counters.reasalloc, counters.reasfree), (1, 1));
            assert_eq!(counters.rcvoopack, u64::from(pieces));
        }
    }

    #[test]
    fn pieces_for_which_there_is_no_room_are_counted() {
        let mut counters = TcpCounters::default();
        let pieces = RANGES_MAX as u32 + 3;
        let mut connection = with_pieces(pieces, &mut counters);
        assert_eq!(connection.arrived().len(), RANGES_MAX);
        assert_eq!((counters.rcvoopackdrop, counters.rcvoobytesdrop), (3, 3));
        assert_eq!(counters.rcvoopack, RANGES_MAX as u64);
        // What the peer tells of has no more room.
        let settings = Settings::default();
        let now = Now::from_micros(30_000);
        connection.queue(5_000, &mut counters);
        while connection.depart(&settings, now, &mut counters).is_some() {}
        for piece in 1..=pieces {
            let start = 1_u32 + 2 * piece;
            let told = [start.to_be_bytes(), (start + 1).to_be_bytes()].concat();
            let tells = Segment { sack: &told, ..segment(1, 1) };
            connection.arrive(&tells, &settings, now, &mut counters);
        }
        assert_eq!(counters.sack_sboverflow, 3);
    }

    #[test]
    fn segments_that_were_put_together_are_counted_one_by_one_beyond_a_hole_too() {
        let mut counters = TcpCounters::default();
        let mut connection = established(&mut counters);
        let train = Segment { length: 300, segments: 3, ..segment(101, 1) };
        let now = Now::from_micros(20_000);
        connection.arrive(&train, &Settings::default(), now, &mut counters);
        assert_eq!((counters.rcvoopack, counters.rcvoobyte), (3, 300));
        let train = Segment { length: 100, segments: 2, ..segment(1, 1) };
        connection.arrive(&train, &Settings::default(), now, &mut counters);
        assert_eq!((counters.rcvpack, counters.rcvoffloads, counters.rcvbyte), (2, 1, 400));
    }
}
