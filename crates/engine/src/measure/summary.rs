//! Summary of a stream that was measured in several parts: one for each worker that sent it, or for
//! each port where it arrived.

use wirestorm_base::time::Duration;

use super::delay::DelayRecord;
use super::distribution::Distribution;
use super::sequence::SequenceCounters;
use super::series::Series;
use super::stream::{GapTimes, OrderMeasurements, StreamRecord, Tallies};

/// Sum of the records of all parts of a stream.
///
/// The order of frames of different parts is unknown, so reordering and delay variation apply
/// within the parts.
#[derive(Clone, Debug, Default)]
pub struct StreamSummary {
    /// Frame counters.
    pub tallies: Tallies,
    /// Loss, duplication and reordering; `None` if the order of a part is unknown.
    pub sequence: Option<SequenceCounters>,
    /// One-way delay and packet delay variation.
    pub delay: DelayRecord,
    /// Inter-packet delay variation in ns.
    pub ipdv: Distribution,
    /// Interarrival jitter in ns: the maximum of all parts.
    pub jitter_ns: u64,
    /// Times of gaps of all parts.
    pub gaps: GapTimes,
    /// Time series.
    pub series: Option<Series>,
}

impl StreamSummary {
    /// Sums several records.
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

    fn add_ordered(&mut self, ordered: &OrderMeasurements) {
        if let Some(sum) = &mut self.sequence {
            sum.add(ordered.sequence().counters());
        }
        self.ipdv.merge(ordered.ipdv());
        self.gaps.merge(ordered.gaps());
        self.jitter_ns = self.jitter_ns.max(ordered.jitter().nanoseconds());
        match (&mut self.series, ordered.series()) {
            (Some(sum), Some(series)) => sum.merge(series),
            (empty @ None, Some(series)) => *empty = Some(series.clone()),
            (_, None) => {}
        }
    }
}

impl SequenceCounters {
    /// Adds the counters of another part of the stream.
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
    use crate::measure::{FoundSignature, MeasureOptions, MeasuredStream, Signature};
    use wirestorm_base::time::Instant;

    /// Creates a record of frames given as (number, departure, arrival).
    fn record(frames: &[(u64, u64, u64)]) -> StreamRecord {
        let stream = MeasuredStream { id: 1, payload: None, segments: None };
        let options = MeasureOptions {
            intervals_max: 4,
            interval: Duration::from_nanos(100),
            ..MeasureOptions::default()
        };
        let mut record = StreamRecord::new(stream, &options);
        for &(sequence, departure, arrival) in frames {
            let signature = Signature { stream: 1, sequence, departure };
            let found = FoundSignature { signature, end: 60 };
            record.note(&[0; 60], found, 60, Instant::from_nanos(arrival));
        }
        record
    }

    #[test]
    fn parts_are_summed() {
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
    fn series_of_parts_get_a_common_interval_length() {
        let first = record(&[(0, 0, 50), (1, 100, 150)]);
        let second = record(&[(0, 0, 60), (1, 100, 160), (2, 600, 610)]);
        let summary = StreamSummary::new([&first, &second]);
        let series = summary.series.expect("both have one");
        let frames: alloc::vec::Vec<_> =
            series.intervals().iter().map(|interval| interval.frames).collect();
        assert_eq!((series.length(), frames), (Duration::from_nanos(200), [4, 0, 0, 1].into()));
    }

    #[test]
    fn series_of_parts_combine_variation_duplicates_and_reordering() {
        let first = record(&[(0, 0, 50), (1, 10, 66), (1, 10, 67), (2, 20, 160)]);
        let second = record(&[(0, 0, 30), (2, 20, 60), (1, 10, 70), (3, 30, 150)]);
        let summary = StreamSummary::new([&first, &second]);
        let intervals = summary.series.expect("both have one").intervals();
        let found: alloc::vec::Vec<_> = intervals
            .iter()
            .map(|it| (it.duplicated, it.reordered, it.extent_max, it.ipdvs, it.ipdv_ns_max))
            .collect();
        // Delays of 50, 56 and 140, and of 30, 60, 40 and 120.
        assert_eq!(found, [(1, 1, 1, 3, 30), (0, 0, 0, 2, 84)]);
        let means: alloc::vec::Vec<_> = intervals.iter().map(|it| it.ipdv_ns_mean()).collect();
        assert_eq!(means, [Some(56.0 / 3.0), Some((84.0 + 80.0) / 2.0)]);
        assert_eq!(intervals[1].jitter_ns_max, summary.jitter_ns);
    }

    #[test]
    fn part_without_order_leaves_no_sequence() {
        let mut merged = record(&[(0, 0, 5)]);
        merged.merge(record(&[(1, 10, 15)]));
        assert!(StreamSummary::new([&merged, &record(&[])]).sequence.is_none());
    }
}
