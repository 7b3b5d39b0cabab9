//! Flows over time: received, missing, reordered and duplicated frames, delay and its variation.

use wirestorm_control::result::{RunResult, SeriesReport};

use super::plain::{self, SERIES_MAX};
use super::{Context, series};
use crate::document::{Axis, Plot, Scale, Section, Unit};

/// Time series of a flow at a port, or at all its ports.
struct Timed<'a> {
    run: usize,
    name: String,
    report: &'a SeriesReport,
    /// Whether the sender is on another machine, with compared clocks. The section on delays
    /// between machines shows the PDV then, without the drift of the clocks.
    has_compared_clocks: bool,
}

/// Returns the time series of the flows at their ports, and those at all ports together.
fn timed<'a>(results: &[(usize, &'a RunResult)]) -> Vec<Timed<'a>> {
    let ports = plain::measured(results).into_iter().filter_map(|it| {
        Some(Timed {
            run: it.run,
            name: it.name(),
            report: it.measured.series.as_ref()?,
            has_compared_clocks: it.measured.one_way.is_some(),
        })
    });
    let flows = results.iter().flat_map(|&(run, it)| it.flows.iter().map(move |flow| (run, flow)));
    let totals = flows.filter_map(|(run, flow)| {
        Some(Timed {
            run,
            name: plain::at_all_ports(flow),
            report: flow.total.as_ref()?.series.as_ref()?,
            has_compared_clocks: flow.measured.iter().any(|it| it.one_way.is_some()),
        })
    });
    ports.chain(totals).filter(|it| it.report.interval_s > 0.0).collect()
}

pub(super) fn section(context: &Context<'_>, results: &[(usize, &RunResult)]) -> Section {
    let timed = timed(results);
    let shown: Vec<Curves<'_>> =
        timed.iter().take(SERIES_MAX).map(|timed| Curves { context, timed }).collect();
    let mut section = Section::new("Rates over time", "");
    let plots = [rates(&shown), missing(&shown), delays(&shown), variation(&shown)];
    let plots = plots.into_iter().chain([disorder(&shown), extents(&shown)]);
    let plots: Vec<Plot> = plots.filter(|plot| plot.points() > 0).collect();
    if timed.len() > SERIES_MAX && !plots.is_empty() {
        section.text(format!(
            "The plots show {SERIES_MAX} of {} flows; the tables below list the others.",
            timed.len()
        ));
    }
    plots.into_iter().for_each(|plot| section.plot(plot));
    section
}

fn rates(flows: &[Curves<'_>]) -> Plot {
    let summary = "Received frames per second of each flow in each interval";
    let mut plot = plot("Received frames over time", "Rate", Unit::FramesPerSecond, summary);
    for flow in flows {
        flow.add_whole_intervals(&mut plot, &flow.timed.report.packets);
    }
    plot
}

fn missing(flows: &[Curves<'_>]) -> Plot {
    let summary = "Frames per second of each flow that were found missing";
    let mut plot = plot("Missing frames over time", "Missing", Unit::FramesPerSecond, summary);
    for flow in flows {
        if flow.timed.report.missing.iter().any(|count| *count > 0) {
            flow.add_whole_intervals(&mut plot, &flow.timed.report.missing);
        }
    }
    plot
}

fn delays(flows: &[Curves<'_>]) -> Plot {
    let summary = "Mean and maximum delay of each flow in each interval";
    let mut plot = plot("Delay over time", "Delay", Unit::Nanoseconds, summary);
    for flow in flows {
        let report = flow.timed.report;
        flow.add(&mut plot, "mean", &report.delay_mean_ns, |delay| delay);
        flow.add(&mut plot, "maximum", &report.delay_max_ns, |delay| delay as f64);
    }
    plot
}

fn variation(flows: &[Curves<'_>]) -> Plot {
    let summary = "Maximum PDV, mean IPDV and interarrival jitter of each flow in each interval";
    let mut plot = plot("Delay variation over time", "Variation", Unit::Nanoseconds, summary);
    for flow in flows {
        let report = flow.timed.report;
        if !flow.timed.has_compared_clocks {
            flow.add(&mut plot, "PDV", &report.pdv_max_ns, |range| range as f64);
        }
        flow.add(&mut plot, "IPDV", &report.ipdv_mean_ns, |mean| mean);
        flow.add(&mut plot, "jitter", &report.jitter_ns, |jitter| jitter as f64);
    }
    // PDV is often a hundred times the jitter. Zero has no logarithm.
    let mut values = plot.series.iter().flat_map(|series| &series.points).filter_map(|it| it.y);
    if values.all(|value| value > 0.0) {
        plot.y.scale = Scale::Log;
    }
    plot
}

fn disorder(flows: &[Curves<'_>]) -> Plot {
    let title = "Reordered and duplicated frames over time";
    let summary = "Frames per second of each flow that arrived late, and additional copies";
    let mut plot = plot(title, "Frames", Unit::FramesPerSecond, summary);
    for flow in flows {
        flow.add_counts(&mut plot, "reordered", &flow.timed.report.reordered);
        flow.add_counts(&mut plot, "duplicated", &flow.timed.report.duplicated);
    }
    plot
}

fn extents(flows: &[Curves<'_>]) -> Plot {
    let summary = "Maximum reordering extent of each flow in each interval";
    let mut plot = plot("Reordering extent over time", "Extent", Unit::Frames, summary);
    for flow in flows {
        let extents = &flow.timed.report.reordering_extent_max;
        if extents.iter().any(Option::is_some) {
            // A single interval between gaps would be invisible.
            let extents: Vec<_> = extents.iter().map(|it| Some(it.unwrap_or(0))).collect();
            flow.add(&mut plot, "extent", &extents, |extent| extent as f64);
        }
    }
    plot
}

fn plot(title: &str, y: &str, unit: Unit, summary: &str) -> Plot {
    let mut plot = Plot::new(title, Axis::linear("Time", Unit::Seconds), Axis::linear(y, unit));
    plot.summary = summary.into();
    plot
}

/// Adds the values of a flow to plots.
struct Curves<'a> {
    context: &'a Context<'a>,
    timed: &'a Timed<'a>,
}

impl Curves<'_> {
    /// Adds values, unless all are absent.
    fn add<T: Copy>(&self, plot: &mut Plot, what: &str, values: &[Option<T>], real: fn(T) -> f64) {
        if values.iter().all(Option::is_none) {
            return;
        }
        let values: Vec<Option<f64>> = values.iter().map(|value| value.map(real)).collect();
        let interval = self.timed.report.interval_s;
        plot.series(series::over_time(self.label_of(what), self.timed.run, &values, interval));
    }

    /// Adds the rates of counts, unless all are zero. The last interval may be shorter than the
    /// others, and its length is not recorded: its rate is a lower bound.
    fn add_counts(&self, plot: &mut Plot, what: &str, counts: &[u64]) {
        if counts.iter().any(|count| *count > 0) {
            self.add_rates(plot, self.label_of(what), counts);
        }
    }

    /// Adds the rates of counts. The last interval has no rate, because it may be shorter than the
    /// others.
    fn add_whole_intervals(&self, plot: &mut Plot, counts: &[u64]) {
        let whole = counts.len().saturating_sub(1).max(1).min(counts.len());
        let label = self.context.series(self.timed.run, &self.timed.name);
        self.add_rates(plot, label, &counts[..whole]);
    }

    fn add_rates(&self, plot: &mut Plot, label: String, counts: &[u64]) {
        let interval = self.timed.report.interval_s;
        plot.series(series::rates(label, self.timed.run, counts, interval, interval));
    }

    fn label_of(&self, what: &str) -> String {
        self.context.series(self.timed.run, &format!("{}, {what}", self.timed.name))
    }
}
