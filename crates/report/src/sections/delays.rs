//! Distributions of times: percentiles, CCDF, tables.

use wirestorm_control::result::{DistributionReport, HistogramReport};
use wirestorm_method::distribution::Distribution;

use super::Context;
use crate::document::{Axis, Cell, Column, Plot, Series, Style, Table, Unit};

/// Times of one kind.
pub(crate) struct Times {
    pub(crate) run: usize,
    /// What was measured, such as the name of a flow.
    pub(crate) what: String,
    pub(crate) values: Distribution,
    /// Whether mean and minimum are exact.
    has_mean: bool,
}

/// Most points of a series. Its values are logarithmically spaced, so this is enough for a curve.
const POINTS_MAX: usize = 300;

/// Percentiles of the tables.
const PERCENTILES: [(&str, f64, bool); 5] = [
    ("Median", 0.5, false),
    ("90 %", 0.9, true),
    ("99 %", 0.99, false),
    ("99.9 %", 0.999, false),
    ("99.99 %", 0.9999, true),
];

impl Times {
    pub(crate) fn new(run: usize, what: impl Into<String>, values: Distribution) -> Self {
        Self { run, what: what.into(), values, has_mean: true }
    }

    pub(crate) fn of_distribution(
        run: usize,
        what: impl Into<String>,
        report: &DistributionReport,
    ) -> Self {
        let values = Distribution {
            count: report.count,
            min_ns: report.min_ns.unwrap_or(0),
            mean_ns: report.mean_ns.unwrap_or(0.0),
            max_ns: report.max_ns.unwrap_or(0),
            buckets: report.buckets.clone(),
        };
        Self::new(run, what, values)
    }

    pub(crate) fn of_histogram(
        run: usize,
        what: impl Into<String>,
        report: &HistogramReport,
    ) -> Self {
        let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let buckets: Vec<_> =
            report.buckets.iter().map(|&(start, count)| (signed(start), count)).collect();
        let values = Distribution {
            count: report.count,
            min_ns: buckets.first().map_or(0, |bucket| bucket.0),
            mean_ns: 0.0,
            max_ns: signed(report.max_ns.unwrap_or(0)),
            buckets,
        };
        Self { has_mean: false, ..Self::new(run, what, values) }
    }

    /// Returns values at quantiles, as points of `1 / (1 - quantile)`.
    fn percentiles(&self, label: String) -> Series {
        let mut series = Series::new(label, Some(self.run), Style::Plain);
        let values = &self.values;
        let count = values.count as f64;
        series.point(1.0, values.min_ns as f64);
        let mut before = 0;
        for &(start, part) in &values.buckets {
            let value = start.clamp(values.min_ns, values.max_ns);
            // From the first value of the bucket to its last one.
            for rank in [before + 1, before + part] {
                if rank + 1 < values.count && rank > 1 {
                    series.point(count / (count - rank as f64), value as f64);
                }
            }
            before += part;
        }
        if values.count > 1 {
            series.point(count, values.max_ns as f64);
        }
        series.points.dedup_by(|next, point| next.x <= point.x);
        series.thinned(POINTS_MAX)
    }

    /// Returns the share of values of at least x.
    fn ccdf(&self, label: String) -> Series {
        let mut series = Series::new(label, Some(self.run), Style::StepsBefore);
        let values = &self.values;
        let mut before = 0;
        for &(start, part) in &values.buckets {
            let value = start.clamp(values.min_ns, values.max_ns);
            let share = (values.count - before.min(values.count)) as f64 / values.count as f64;
            series.point(value as f64, share * 100.0);
            before += part;
        }
        if let Some(last) = series.points.last().copied().filter(|it| it.x < values.max_ns as f64) {
            series.point(
                values.max_ns as f64,
                last.y.unwrap_or(0.0).min(100.0 / values.count as f64),
            );
        }
        series.points.dedup_by(|next, point| next.x <= point.x);
        series.thinned(POINTS_MAX)
    }
}

/// Returns an axis of times: logarithmic, unless there are values that have no logarithm.
fn axis(label: &str, times: &[Times]) -> Axis {
    let is_positive = times.iter().all(|it| it.values.min_ns > 0);
    let axis = if is_positive { Axis::log } else { Axis::linear };
    axis(label, Unit::Nanoseconds)
}

/// Returns the plots of percentiles and of the CCDF.
pub(crate) fn plots(context: &Context<'_>, title: &str, label: &str, times: &[Times]) -> [Plot; 2] {
    let name = format!("{title}: percentiles");
    let mut percentiles = Plot::new(&name, Axis::quantile(), axis(label, times));
    percentiles.summary = format!("{label} at each percentile, up to the maximum");
    let name = format!("{title}: CCDF");
    let share = Axis::log("Share with at least this time", Unit::Percent);
    let mut ccdf = Plot::new(&name, axis(label, times), share);
    ccdf.summary = format!("Share of values with at least a {}", label.to_lowercase());
    for it in times.iter().filter(|it| it.values.count > 0) {
        let label = context.series(it.run, &it.what);
        percentiles.series(it.percentiles(label.clone()));
        // Equal values have no distribution to show.
        if it.values.min_ns < it.values.max_ns {
            ccdf.series(it.ccdf(label));
        }
    }
    [percentiles, ccdf]
}

/// Returns a table of percentiles.
pub(crate) fn table(context: &Context<'_>, caption: &str, what: &str, times: &[Times]) -> Table {
    let time = |title: &str| Column::number(title, Unit::Nanoseconds);
    let mut columns = vec![
        Column::text("Run"),
        Column::text(what),
        Column::number("Values", Unit::None).detail(),
        time("Minimum"),
        time("Mean"),
    ];
    columns.extend(PERCENTILES.map(
        |(title, _, is_detail)| {
            if is_detail { time(title).detail() } else { time(title) }
        },
    ));
    columns.push(time("Maximum"));
    let mut table = Table::new(caption, columns);
    for it in times.iter().filter(|it| it.values.count > 0) {
        let values = &it.values;
        let exact = |value: f64| Cell::maybe(it.has_mean.then_some(value));
        let mut row = vec![
            Cell::text(context.label(it.run)),
            Cell::text(it.what.clone()),
            Cell::count(values.count),
            exact(values.min_ns as f64),
            exact(values.mean_ns),
        ];
        row.extend(PERCENTILES.map(|(_, quantile, _)| {
            Cell::maybe(values.quantile(quantile).map(|value| value as f64))
        }));
        row.push(Cell::Number(values.max_ns as f64));
        table.row(row);
    }
    context.finish(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times() -> Times {
        let mut values = Distribution::of(10, 90);
        values.merge(&Distribution::of(20, 9));
        values.merge(&Distribution::of(70, 1));
        Times::new(0, "a", values)
    }

    fn points(series: &Series) -> Vec<(f64, f64)> {
        let round = |value: f64| (value * 1e6).round() / 1e6;
        series.points.iter().map(|it| (round(it.x), round(it.y.unwrap()))).collect()
    }

    #[test]
    fn percentiles_reach_the_maximum_at_the_last_value() {
        let series = times().percentiles(String::new());
        let found = points(&series);
        assert_eq!((found[0], found[found.len() - 1]), ((1.0, 10.0), (100.0, 70.0)));
        // 90 % are at most 10 ns, the next ones 20 ns.
        assert!(found.contains(&(10.0, 10.0)) && found.contains(&(11.111_111, 20.0)), "{found:?}");
    }

    #[test]
    fn ccdf_is_the_share_of_values_from_x_on() {
        let series = times().ccdf(String::new());
        assert_eq!(points(&series), [(10.0, 100.0), (20.0, 10.0), (70.0, 1.0)]);
    }
}
