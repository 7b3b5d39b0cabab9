//! Stream IDs for signatures.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use wirestorm_engine::measure::Signature;

/// ID ranges in use by the runs of a host, in ascending order. Frames of two runs can arrive at the
/// same port, so no two streams have the same ID.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamIds(Arc<Mutex<Vec<Range<u32>>>>);

/// Stream IDs of a run. Dropping this releases them.
pub(crate) struct RunStreamIds {
    range: Range<u32>,
    taken: StreamIds,
}

impl StreamIds {
    /// Takes the lowest `count` consecutive free IDs; `None` if no gap is large enough.
    pub(crate) fn take(&self, count: u32) -> Option<RunStreamIds> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (place, first) = free(&taken, count)?;
        Some(self.insert(&mut taken, place, first..first + count))
    }

    /// Takes the IDs from `first` on; `None` if some are taken or beyond the range.
    pub(crate) fn take_from(&self, first: u32, count: u32) -> Option<RunStreamIds> {
        let range = first..first.checked_add(count)?;
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = taken.partition_point(|numbers| numbers.end <= range.start);
        let is_free = taken.get(place).is_none_or(|numbers| numbers.start >= range.end);
        let exists = range.end <= 1 << Signature::STREAM_BITS;
        (is_free && exists).then(|| self.insert(&mut taken, place, range))
    }

    fn insert(&self, taken: &mut Vec<Range<u32>>, place: usize, range: Range<u32>) -> RunStreamIds {
        taken.insert(place, range.clone());
        RunStreamIds { range, taken: self.clone() }
    }
}

impl RunStreamIds {
    /// Returns the first ID.
    pub(crate) fn first(&self) -> u32 {
        self.range.start
    }
}

impl Drop for RunStreamIds {
    fn drop(&mut self) {
        let mut taken = self.taken.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = taken.iter().position(|range| *range == self.range) {
            taken.remove(place);
        }
    }
}

/// Finds the first gap of `count` free IDs. Returns its index among the taken ranges and its first
/// ID.
fn free(taken: &[Range<u32>], count: u32) -> Option<(usize, u32)> {
    let ends = taken.iter().map(|numbers| numbers.end);
    let firsts = [0].into_iter().chain(ends);
    let limit = 1 << Signature::STREAM_BITS;
    let limits = taken.iter().map(|numbers| numbers.start).chain([limit]);
    let mut gaps = firsts.zip(limits).enumerate();
    let (place, (first, _)) = gaps.find(|(_, (first, limit))| limit - first >= count)?;
    Some((place, first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_sufficient_gap_is_used() {
        let free = |taken: &[(u32, u32)], count| {
            let taken: Vec<_> = taken.iter().map(|&(first, end)| first..end).collect();
            free(&taken, count)
        };
        assert_eq!(free(&[], 3), Some((0, 0)));
        assert_eq!(free(&[(0, 4), (6, 9)], 2), Some((1, 4)));
        assert_eq!(free(&[(0, 4), (6, 9)], 3), Some((2, 9)));
        assert_eq!(free(&[(2, 4)], 2), Some((0, 0)));
        let all = 1 << 24;
        assert_eq!(free(&[], all), Some((0, 0)));
        assert_eq!(free(&[], all + 1), None);
        assert_eq!(free(&[(0, 4)], all - 3), None);
    }

    #[test]
    fn given_ids_are_taken_if_they_are_free() {
        let taken = StreamIds::default();
        let _low = taken.take(7).expect("a few are free");
        let high = taken.take_from(100, 10).expect("they are free");
        assert_eq!(high.first(), 100);
        for (first, count) in [(6, 1), (5, 100), (99, 2), (109, 1), (1 << 24, 1), (u32::MAX, 9)] {
            assert!(taken.take_from(first, count).is_none(), "{first} {count}");
        }
        let between = taken.take_from(7, 93).expect("they are free");
        assert_eq!(taken.take(1).map(|ids| ids.first()), Some(110));
        drop(between);
        drop(high);
        assert_eq!(taken.take_from(7, 1_000).map(|ids| ids.first()), Some(7));
    }

    #[test]
    fn ids_are_released_when_their_run_ends() {
        let taken = StreamIds::default();
        let first = taken.take(7).expect("a few are free");
        let second = taken.take(7).expect("a few are free");
        assert_eq!((first.first(), second.first()), (0, 7));
        drop(first);
        let again = taken.take(7).expect("a few are free");
        assert_eq!(again.first(), 0);
    }
}
