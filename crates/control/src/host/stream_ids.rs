//! Stream IDs for signatures.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wirestorm_engine::measure::Signature;

/// ID ranges in use by the runs of a host, in ascending order. Frames of two runs can arrive at the
/// same port, so no two streams have the same ID. Parts of one run on several nodes are the same
/// streams: if the nodes are on this host, the parts share their range.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamIds(Arc<Mutex<Vec<Taken>>>);

/// A range that is in use.
#[derive(Clone, Debug)]
struct Taken {
    range: Range<u32>,
    /// Number of parts of a run that have it; `None` for a run that is whole.
    parts: Option<u32>,
}

/// Stream IDs of a run. Dropping this releases them.
pub(crate) struct RunStreamIds {
    range: Range<u32>,
    taken: StreamIds,
}

impl StreamIds {
    /// Takes the lowest `count` consecutive free IDs; `None` if no gap is large enough.
    pub(crate) fn take(&self, count: u32) -> Option<RunStreamIds> {
        let mut taken = self.lock();
        let ranges: Vec<_> = taken.iter().map(|it| it.range.clone()).collect();
        let (place, first) = free(&ranges, count)?;
        let range = first..first + count;
        taken.insert(place, Taken { range: range.clone(), parts: None });
        Some(RunStreamIds { range, taken: self.clone() })
    }

    /// Takes the IDs from `first` on for a part of a run; `None` if some are beyond the range, or
    /// taken by others than parts with exactly these IDs.
    pub(crate) fn take_from(&self, first: u32, count: u32) -> Option<RunStreamIds> {
        let range = first..first.checked_add(count)?;
        if range.end > 1 << Signature::STREAM_BITS {
            return None;
        }
        let mut taken = self.lock();
        let place = taken.partition_point(|it| it.range.end <= range.start);
        match taken.get_mut(place).filter(|it| it.range.start < range.end) {
            None => taken.insert(place, Taken { range: range.clone(), parts: Some(1) }),
            Some(Taken { range: same, parts: Some(parts) }) if *same == range => *parts += 1,
            Some(_) => return None,
        }
        Some(RunStreamIds { range, taken: self.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Taken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut taken = self.taken.lock();
        let Some(place) = taken.iter().position(|it| it.range == self.range) else { return };
        match &mut taken[place].parts {
            Some(parts) if *parts > 1 => *parts -= 1,
            _ => drop(taken.remove(place)),
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
    fn parts_of_a_run_share_their_ids_until_the_last_one_ends() {
        let taken = StreamIds::default();
        let whole = taken.take(7).expect("a few are free");
        assert!(taken.take_from(0, 7).is_none(), "another run has these");
        let parts = [(); 2].map(|()| taken.take_from(100, 10).expect("the parts share them"));
        assert!(taken.take_from(100, 11).is_none() && taken.take_from(105, 1).is_none());
        let [first, second] = parts;
        drop((first, whole));
        assert!(taken.take_from(105, 1).is_none(), "a part has them");
        drop(second);
        assert!(taken.take_from(105, 1).is_some());
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
