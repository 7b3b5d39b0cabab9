//! One-way delay between machines: its error, the clocks, half of the round trip, and the truth.

use wirestorm_control::result::{OneWayReport, OneWaySegment};

use super::Context;
use super::plain::{self, Measured, ROWS_MAX, SERIES_MAX};
use crate::document::{Axis, Cell, Column, Plot, Section, Series, Style, Table, Unit};

pub(super) fn sections(context: &Context<'_>) -> Vec<Section> {
    let results = plain::results(context);
    let measured = plain::measured(&results);
    let compared: Vec<(&Measured<'_>, &OneWayReport)> =
        measured.iter().filter_map(|it| Some((it, it.measured.one_way.as_ref()?))).collect();
    let mut section = Section::new("One-way delay between machines", "RFC 7679");
    if compared.is_empty() {
        return vec![section];
    }
    section.text(
        "Each delay is right to the error if the assumption on the clocks holds. Without the \
         assumption of a symmetric path, it is right to the error in any case. Half of the round \
         trip is what a ping shows on the path over which the clocks were compared.",
    );
    section.table(errors(context, &compared));
    section.plot(over_time(context, &compared));
    section.plot(variation(context, &compared));
    section.table(clocks(context, &compared));
    section.table(events(context, &compared));
    vec![section]
}

fn errors(context: &Context<'_>, compared: &[(&Measured<'_>, &OneWayReport)]) -> Table {
    let time = |title: &str| Column::number(title, Unit::Nanoseconds);
    let columns = vec![
        Column::text("Run"),
        Column::text("Flow"),
        time("Mean"),
        time("Error (±)"),
        time("In any case (±)"),
        Column::text("Assumption"),
        time("Half round trip"),
        time("True mean"),
        time("True median").detail(),
        time("True maximum").detail(),
        time("Subtracted"),
        Column::number("Impossible", Unit::Frames),
        Column::number("Without offset", Unit::Frames),
    ];
    let mut table = Table::new("Error of the delay", columns);
    for (it, report) in compared.iter().take(ROWS_MAX) {
        let truth = report.truth.as_ref();
        let whole = |value: Option<i64>| Cell::maybe(value.map(|value| value as f64));
        let some = |value: f64| Cell::maybe((value != 0.0).then_some(value));
        table.row(vec![
            Cell::text(context.label(it.run)),
            Cell::text(it.name()),
            Cell::maybe(report.delay.mean_ns),
            Cell::Number(report.half_width_ns),
            Cell::Number(report.bound_ns.unwrap_or(report.half_width_ns)),
            Cell::text(report.assumption.to_string()),
            Cell::maybe(report.half_round_trip_ns),
            Cell::maybe(truth.and_then(|truth| truth.mean_ns)),
            whole(truth.and_then(|truth| truth.p50_ns)),
            whole(truth.and_then(|truth| truth.max_ns)),
            some(report.bias_ns),
            some(report.impossible as f64),
            some(report.uncompared as f64),
        ]);
    }
    context.finish(table)
}

fn clocks(context: &Context<'_>, compared: &[(&Measured<'_>, &OneWayReport)]) -> Table {
    let time = |title: &str| Column::number(title, Unit::Nanoseconds);
    let columns = vec![
        Column::text("Run"),
        Column::text("Flow"),
        Column::text("Comparison"),
        Column::text("Used"),
        time("Error (±)"),
        time("In any case (±)"),
        time("Difference"),
        Column::number("Drift (ppm)", Unit::None),
        time("Path asymmetry"),
    ];
    let mut table = Table::new("Comparisons of the clocks", columns);
    for (it, report) in compared.iter().take(ROWS_MAX) {
        let names = || [Cell::text(context.label(it.run)), Cell::text(it.name())];
        let mut row = Vec::from(names());
        row.extend([
            Cell::text(report.method.clone()),
            Cell::text("yes"),
            Cell::Number(report.half_width_ns),
            Cell::Number(report.bound_ns.unwrap_or(report.half_width_ns)),
            Cell::None,
            Cell::Number(report.drift_ppm),
            Cell::maybe(report.asymmetry.map(|asymmetry| asymmetry.value_ns)),
        ]);
        table.row(row);
        for other in &report.alternatives {
            let mut row = Vec::from(names());
            row.extend([
                Cell::text(other.method.clone()),
                Cell::text("no"),
                Cell::Number(other.half_width_ns),
                Cell::Number(other.bound_ns),
                Cell::Number(other.difference_ns),
                Cell::None,
                Cell::None,
            ]);
            table.row(row);
        }
    }
    context.finish(table)
}

fn events(context: &Context<'_>, compared: &[(&Measured<'_>, &OneWayReport)]) -> Table {
    let time = |title: &str| Column::number(title, Unit::Nanoseconds);
    let columns = vec![
        Column::text("Run"),
        Column::text("Flow"),
        Column::number("At", Unit::Seconds),
        Column::text("What"),
        time("Clock offset"),
        time("Forward"),
        time("Backward"),
    ];
    let mut table = Table::new("Steps of a clock, and changes of the route", columns);
    for (it, report) in compared {
        for event in &report.events {
            let is_step = &*event.kind == "clock_step";
            let of_step = |value: i64| Cell::maybe(is_step.then_some(value as f64));
            let of_route = |value: i64| Cell::maybe((!is_step).then_some(value as f64));
            table.row(vec![
                Cell::text(context.label(it.run)),
                Cell::text(it.name()),
                Cell::Number(event.at_s),
                Cell::text(if is_step { "a clock stepped" } else { "the route changed" }),
                of_step(event.offset_ns),
                of_route(event.forward_ns),
                of_route(event.backward_ns),
            ]);
        }
    }
    table.rows.truncate(ROWS_MAX);
    context.finish(table)
}

/// Returns a plot of the mean and of the ends of its interval.
fn over_time(context: &Context<'_>, compared: &[(&Measured<'_>, &OneWayReport)]) -> Plot {
    let seconds = Axis::linear("Time", Unit::Seconds);
    let delay = Axis::linear("Delay", Unit::Nanoseconds);
    let mut plot = Plot::new("One-way delay over time", seconds, delay);
    plot.summary = "Mean delay of each flow, with its error, and the maximum".into();
    // Each flow has four series.
    for (it, report) in compared.iter().take(SERIES_MAX / 4) {
        let mut add = |what: &str, style: Style, value: fn(&OneWaySegment) -> f64| {
            let label = context.series(it.run, &format!("{}, {what}", it.name()));
            let mut series = Series::new(label, Some(it.run), style);
            for segment in &report.series {
                series.point(segment.at_s, value(segment));
            }
            plot.series(series);
        };
        add("mean", Style::Plain, |it| it.mean_ns);
        add("mean + error", Style::Reference, |it| it.mean_ns + it.half_width_ns);
        add("mean - error", Style::Reference, |it| it.mean_ns - it.half_width_ns);
        add("maximum", Style::Plain, |it| it.max_ns as f64);
    }
    plot
}

/// Returns a plot of the maximum PDV in each segment, without the drift of the clocks.
fn variation(context: &Context<'_>, compared: &[(&Measured<'_>, &OneWayReport)]) -> Plot {
    let seconds = Axis::linear("Time", Unit::Seconds);
    let title = "Delay variation between machines over time";
    let mut plot = Plot::new(title, seconds, Axis::linear("PDV", Unit::Nanoseconds));
    plot.summary = "Maximum minus minimum delay of each flow in each segment of time".into();
    for (it, report) in compared.iter().take(SERIES_MAX) {
        let label = context.series(it.run, &format!("{}, PDV", it.name()));
        let mut series = Series::new(label, Some(it.run), Style::Plain);
        for segment in &report.series {
            series.point(segment.at_s, segment.max_ns.saturating_sub(segment.min_ns) as f64);
        }
        plot.series(series);
    }
    plot
}
