//! What was measured of one stream in several parts: by the frames of each worker that sent it,
//! or on each port where it arrived.

use wirestorm_base::time::Duration;

use super::delay::DelayRecord;
use super::distribution::Distribution;
use super::sequence::SequenceCounters;
use super::series::Series;
use super::stream::{Ordered, StreamRecord, Tallies};

/// The records of all parts of a stream together.
///
/// Nothing is known of the order between two parts, so reordering and delay variation are those
/// within them.
#[derive(Clone, Debug, Default)]
pub struct StreamSummary {
    /// What was counted frame by frame.
    pub tallies: Tallies,
    /// Loss, duplication and reordering; none where the order of a part is not known.
    pub sequence: Option<SequenceCounters>,
    /// One-way delay and packet delay variation.
    pub delay: DelayRecord,
    /// Inter-packet delay variation in ns.
    pub ipdv: Distribution,
    /// Interarrival jitter in ns: the greatest of all parts.
    pub jitter_ns: u64,
    /// Time series.
    pub series: Option<Series>,
}

impl StreamSummary {
    /// The summary of some records.
    pub fn new<'a>(records: impl IntoIterator<Item = &'a StreamRecord>) -> Self {
        let mut summary = Self { sequence: Some(SequenceCounters::default()), ..Self::default() };
        for record in records {
            summary.tallies.merge(record.tallies());
            summary.delay.merge(record.delay());
            match record.ordered() {
                Some(ordered) => summary.add_ordered(ordered),
                None => summary.sequence = None,
            }
        }
        summary
    }

    fn add_ordered(&mut self, ordered: &Ordered) {
        if let Some(sum) = &mut self.sequence {
            sum.add(ordered.sequence().counters());
        }
        self.ipdv.merge(ordered.ipdv());
        self.jitter_ns = self.jitter_ns.max(ordered.jitter().nanoseconds());
        match (&mut self.series, ordered.series()) {
            (Some(sum), Some(series)) => sum.merge(series),
            (empty @ None, Some(series)) => *empty = Some(series.clone()),
            (_, None) => {}
        }
    }
}

impl SequenceCounters {
    /// Adds what was counted of another part of the stream.
    pub fn add(&mut self, other: &Self) {
        self.received += other.received;
        self.missing += other.missing;
        self.gaps += other.gaps;
        self.duplicated += other.duplicated;
        self.replicated += other.replicated;
        self.reordered += other.reordered;
        self.extent_max = self.extent_max.max(other.extent_max);
        self.extent_sum += other.extent_sum;
        self.late_time_max = Duration::max(self.late_time_max, other.late_time_max);
        self.too_late += other.too_late;
        for (sum, count) in self.n_reordered.iter_mut().zip(other.n_reordered) {
            *sum += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Found, MeasureOptions, MeasuredStream, Signature};
    use wirestorm_base::time::Instant;

    /// A record of frames by number, departure and arrival.
    fn record(frames: &[(u64, u64, u64)]) -> StreamRecord {
        let stream = MeasuredStream { id: 1, payload: None };
        let options = MeasureOptions {
            intervals_max: 4,
            interval: Duration::from_nanos(100),
            ..MeasureOptions::default()
        };
        let mut record = StreamRecord::new(stream, &options);
        for &(sequence, departure, arrival) in frames {
            let signature = Signature { stream: 1, sequence, departure };
            let found = Found { signature, end: 60 };
            record.note(&[0; 60], found, 60, Instant::from_nanos(arrival));
        }
        record
    }

    #[test]
    fn parts_are_added_up() {
        let first = record(&[(0, 0, 10), (2, 20, 40), (1, 10, 50), (1, 10, 51)]);
        let second = record(&[(0, 5, 8), (3, 500, 700)]);
        let summary = StreamSummary::new([&first, &second]);
        let counters = summary.sequence.expect("the order of each part is known");
        assert_eq!((counters.received, counters.missing), (5, 2));
        assert_eq!((counters.duplicated, counters.reordered, counters.extent_max), (1, 1, 1));
        assert_eq!((summary.tallies.frames, summary.tallies.bytes), (6, 360));
        assert_eq!(summary.delay.delays().count(), 5);
        assert_eq!(summary.delay.delays().max(), Some(200));
        assert_eq!(summary.ipdv.count(), first.ordered().unwrap().ipdv().count());
    }

    #[test]
    fn series_of_parts_are_brought_to_one_length() {
        let first = record(&[(0, 0, 50), (1, 100, 150)]);
        let second = record(&[(0, 0, 60), (1, 100, 160), (2, 600, 610)]);
        let summary = StreamSummary::new([&first, &second]);
        let series = summary.series.expect("both have one");
        let frames: alloc::vec::Vec<_> =
            series.intervals().iter().map(|interval| interval.frames).collect();
        assert_eq!((series.length(), frames), (Duration::from_nanos(200), [4, 0, 0, 1].into()));
    }

    #[test]
    fn a_part_of_unknown_order_leaves_none() {
        let mut merged = record(&[(0, 0, 5)]);
        merged.merge(record(&[(1, 10, 15)]));
        assert!(StreamSummary::new([&merged, &record(&[])]).sequence.is_none());
    }
}
