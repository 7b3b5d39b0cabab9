//! Time series as plots.

use crate::document::{Point, Series, Style};

/// Most points of a time series. Longer ones are averaged.
const POINTS_MAX: usize = 1_000;

/// Returns rates over time from the counts of equal intervals. The last interval may be shorter; it
/// is left out if it has no length of its own. `last_s` is its length.
pub(crate) fn rates(
    label: String,
    run: usize,
    counts: &[u64],
    interval_s: f64,
    last_s: f64,
) -> Series {
    let values: Vec<Option<f64>> = counts
        .iter()
        .enumerate()
        .map(|(place, &count)| {
            let is_last = place + 1 == counts.len();
            let seconds = if is_last { last_s } else { interval_s };
            (seconds > 0.0).then(|| count as f64 / seconds)
        })
        .collect();
    over_time(label, run, &values, interval_s)
}

/// Returns values over time. A long series is averaged over several intervals.
pub(crate) fn over_time(
    label: String,
    run: usize,
    values: &[Option<f64>],
    interval_s: f64,
) -> Series {
    let group = values.len().div_ceil(POINTS_MAX).max(1);
    let mut series = Series::new(label, Some(run), Style::Steps);
    for (place, part) in values.chunks(group).enumerate() {
        let known: Vec<f64> = part.iter().flatten().copied().collect();
        let mean = wirestorm_method::statistics::mean(&known);
        let x = (place * group) as f64 * interval_s;
        series.points.push(Point { x, y: mean, ..Point::default() });
    }
    // The last value holds until the end of its interval.
    if let Some(last) = series.points.last().copied() {
        let x = values.len() as f64 * interval_s;
        series.points.push(Point { x, ..last });
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_become_rates_and_the_last_interval_its_own_length() {
        let series = rates("a".into(), 0, &[100, 200, 50], 0.5, 0.25);
        let points: Vec<_> = series.points.iter().map(|it| (it.x, it.y.unwrap())).collect();
        assert_eq!(points, [(0.0, 200.0), (0.5, 400.0), (1.0, 200.0), (1.5, 200.0)]);
    }

    #[test]
    fn long_series_are_averaged() {
        let values: Vec<_> = (0..3_000).map(|it| Some(f64::from(it % 3))).collect();
        let series = over_time("a".into(), 0, &values, 1.0);
        assert_eq!(series.points.len(), POINTS_MAX + 1);
        assert!(series.points.iter().all(|point| point.y == Some(1.0)));
    }
}
