//! Trials of a test: their loads, rates over time, percentiles.

use wirestorm_method::connections::{ConnectionsInput, ConnectionsOutput, LoadUnit};
use wirestorm_method::distribution::Distribution;
use wirestorm_method::method::Method;
use wirestorm_method::rfc9411::Test;
use wirestorm_method::trial::TrialInput;

use super::{Group, unit, what};
use crate::document::{Axis, Cell, Column, Plot, Point, Series, Style, Table, Unit};
use crate::sections::delays::{self, Times};
use crate::sections::plain::SERIES_MAX;
use crate::sections::series;

/// Most trials that a table lists.
const ROWS_MAX: usize = 500;

/// A trial of connections.
struct Tried<'a> {
    run: usize,
    number: u32,
    traffic: &'a str,
    load: u64,
    input: &'a ConnectionsInput,
    output: &'a ConnectionsOutput,
    /// Names of the criteria that it did not meet.
    unmet: Vec<&'static str>,
}

/// Returns the load of a trial.
fn load(input: &TrialInput) -> Option<u64> {
    input.offers.first()?.steps.first().map(|step| step.load)
}

impl Group<'_> {
    /// Returns the trials of the test. A file of `--json` has none.
    fn tried(&self) -> Vec<Tried<'_>> {
        let mut all = Vec::new();
        for run in self.runs() {
            let run_record = &self.context.runs[run];
            let Some(Method::Rfc9411(method)) = &run_record.record.method else { continue };
            for trial in run_record.trials.iter().filter(|it| it.input.test == self.test.name()) {
                let (Some(load), Some(input)) = (load(&trial.input), &trial.input.connections)
                else {
                    continue;
                };
                let Some(output) = trial.output.connections.as_ref() else { continue };
                if input.unit != self.unit {
                    continue;
                }
                let values = method.criteria.judge(self.test, load, input, output);
                let unmet = values.iter().filter(|value| !value.is_met);
                let unmet = unmet.map(|value| value.criterion.name()).collect();
                let traffic = trial.input.offers.first().map_or("", |offer| &offer.traffic);
                let number = trial.number;
                all.push(Tried { run, number, traffic, load, input, output, unmet });
            }
        }
        all
    }

    /// Returns the trial that gave each result: the last one at its load.
    fn best<'t>(&self, tried: &'t [Tried<'t>]) -> Vec<&'t Tried<'t>> {
        let of_row = |&(run, row): &(usize, &wirestorm_method::rfc9411::Rfc9411Row)| {
            let is_best = |it: &&Tried<'_>| {
                it.run == run && it.traffic == row.traffic && Some(it.load) == row.load
            };
            tried.iter().rfind(is_best)
        };
        self.rows.iter().filter_map(of_row).collect()
    }

    /// Load of each trial in the order of the search.
    pub(super) fn loads(&self) -> Plot {
        let title = format!("{}: loads of the trials", what(self.test, self.unit));
        let number = Axis::linear("Trial", Unit::None);
        let mut plot = Plot::new(&title, number, Axis::linear("Load", unit(self.unit)));
        plot.summary = "Load of each trial in the order of the search".into();
        plot.hollow = "invalid";
        let tried = self.tried();
        for run in self.runs() {
            for traffic in &self.traffic {
                let label = self.context.series(run, traffic);
                let mut series = Series::new(label, Some(run), Style::Line);
                let of_series = tried.iter().filter(|it| it.run == run && it.traffic == *traffic);
                series.points.extend(of_series.map(|it| Point {
                    is_hollow: !it.unmet.is_empty(),
                    ..Point::new(it.number.into(), it.load as f64)
                }));
                plot.series(series);
            }
        }
        let numbers = || tried.iter().map(|it| f64::from(it.number));
        let (low, high) = (numbers().fold(f64::MAX, f64::min), numbers().fold(0.0, f64::max));
        // Trials of the tests before take no room.
        if low <= high {
            plot.x = plot.x.range((low - 0.5).floor(), (high + 0.5).ceil());
        }
        plot
    }

    /// What the test measures, over the sustain phase of the results.
    pub(super) fn over_time(&self) -> Plot {
        let (label, unit) = match (self.test, self.unit) {
            (Test::Latency, _) => ("Transactions", Unit::PerSecond),
            (_, LoadUnit::ConnectionsPerSecond) => ("Connections", Unit::PerSecond),
            (_, LoadUnit::ConcurrentConnections) => ("Concurrent connections", Unit::None),
            (_, LoadUnit::BitsPerSecond) => ("Goodput", Unit::BitsPerSecond),
        };
        let title = format!("{label} over the sustain phase");
        let time = Axis::linear("Time", Unit::Seconds);
        let mut plot = Plot::new(&title, time, Axis::linear(label, unit));
        plot.summary = format!("{label} in each interval of the trial of the result");
        let tried = self.tried();
        for it in self.best(&tried).into_iter().take(SERIES_MAX) {
            let series = &it.output.series;
            let interval = series.interval_s;
            if interval <= 0.0 {
                continue;
            }
            let counts = |counts: &[u64], factor: f64| -> Vec<Option<f64>> {
                counts.iter().map(|&count| Some(count as f64 * factor)).collect()
            };
            let some = |values: &[f64]| values.iter().copied().map(Some).collect();
            let values: Vec<Option<f64>> = match (self.test, self.unit) {
                (Test::Latency, _) => some(&series.transactions_per_s),
                (_, LoadUnit::ConnectionsPerSecond) => some(&series.established_per_s),
                (_, LoadUnit::ConcurrentConnections) => counts(&series.concurrent, 1.0),
                (_, LoadUnit::BitsPerSecond) => counts(&series.payload_bytes, 8.0 / interval),
            };
            let label = self.context.series(it.run, it.traffic);
            plot.series(series::over_time(label, it.run, &values, interval));
        }
        plot
    }

    /// TTFB of the results; the latency test also has TTLB.
    pub(super) fn percentiles(&self) -> Vec<Plot> {
        type Of = fn(&ConnectionsOutput) -> &Distribution;
        let first: (&str, Of) = ("TTFB", |output| &output.time_to_first_byte);
        let last: (&str, Of) = ("TTLB", |output| &output.time_to_last_byte);
        let kinds = if self.test == Test::Latency { vec![first, last] } else { vec![first] };
        let tried = self.tried();
        let best = self.best(&tried);
        let plot = |(name, of): (&str, Of)| {
            let times = |it: &&Tried<'_>| Times::new(it.run, it.traffic, of(it.output).clone());
            let times: Vec<Times> = best.iter().take(SERIES_MAX).map(times).collect();
            let title = format!("{name} at the result");
            let [percentiles, _] = delays::plots(self.context, &title, name, &times);
            percentiles
        };
        kinds.into_iter().map(plot).collect()
    }

    pub(super) fn trial_table(&self) -> Table {
        let count = |title: &str| Column::number(title, Unit::None);
        let columns = vec![
            Column::text("Run"),
            count("Trial"),
            Column::text("Traffic"),
            Column::number("Load", unit(self.unit)),
            Column::number("Reached", unit(self.unit)),
            Column::text("Result"),
            Column::text("Criteria not met"),
            Column::number("Sustain", Unit::Seconds).detail(),
            count("Established"),
            count("Failed"),
            count("Unexpected RST").detail(),
            count("Not started in time").detail(),
            count("Transactions").detail(),
        ];
        let caption = format!("{}: trials", what(self.test, self.unit));
        let mut table = Table::new(&caption, columns);
        for it in self.tried().iter().take(ROWS_MAX) {
            let result = match it.unmet.is_empty() {
                true => Cell::text("valid"),
                false => Cell::problem("invalid"),
            };
            table.row(vec![
                Cell::text(self.context.label(it.run)),
                Cell::count(it.number.into()),
                Cell::text(it.traffic),
                Cell::count(it.load),
                Cell::Number(it.output.reached(self.unit).round()),
                result,
                Cell::text(it.unmet.join(", ")),
                Cell::Number(it.input.sustain.as_secs_f64()),
                Cell::count(it.output.established),
                Cell::count(it.output.failed),
                Cell::count(it.output.resets),
                Cell::count(it.output.late),
                Cell::count(it.output.transactions),
            ]);
        }
        self.context.finish(table)
    }
}
