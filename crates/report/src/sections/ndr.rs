//! Non-drop rate: rates found, drops and latency against load.

use wirestorm_base::time::Duration;
use wirestorm_method::method::{Findings, Method};
use wirestorm_method::ndr::{Limit, Ndr, NdrFindings, NdrPoint, NdrRow, is_connections};
use wirestorm_method::rate::line_rate;
use wirestorm_method::trial::StepOutput;
use wirestorm_store::record::TrialRecord;

use super::Context;
use super::delays::{self, Times};
use crate::document::{Axis, Cell, Column, Plot, Point, Section, Series, Style, Table, Unit};

/// Findings of a run and their parameters.
type Bench<'a> = super::Bench<'a, Ndr, NdrFindings>;

/// Returns the runs with findings of the method.
pub(crate) fn benches<'a>(context: &Context<'a>) -> Vec<Bench<'a>> {
    context.benches(|method, findings| match (method, findings) {
        (Method::Ndr(parameters), Findings::Ndr(findings)) => Some((parameters, findings)),
        _ => None,
    })
}

/// What a search counts.
struct Units {
    unit: Unit,
    title: &'static str,
    text: &'static str,
    rates: &'static str,
    /// Name of the lost units.
    lost: &'static str,
    loads: &'static str,
    lost_plot: &'static str,
    lost_summary: &'static str,
}

const FRAMES: Units = Units {
    unit: Unit::FramesPerSecond,
    title: "Non-drop rate",
    text: "The rate found is the largest load that passed: drops, latency and frames that the tester \
           missed are within their limits. Without allowed drops it is the NDR, otherwise the PDR. \
           Rates are per transmitting interface. Hollow marks are results that the tester limits.",
    rates: "Rates found, of each interface",
    lost: "Drops",
    loads: "Drops and latency against load",
    lost_plot: "Drops against load",
    lost_summary: "Dropped frames in percent of those sent, in each trial",
};

const CONNECTIONS: Units = Units {
    unit: Unit::PerSecond,
    title: "Rate of connections",
    text: "The rate found is the largest number of connections per second that passed: failed \
           connections, retransmitted segments and connections that the tester did not start are \
           within their limits. Rates are of all clients together.",
    rates: "Rates of connections found",
    lost: "Failed",
    loads: "Failed connections against load",
    lost_plot: "Failed connections",
    lost_summary: "Failed connections in percent of those started, in each trial",
};

/// Returns whether a search with these parameters counts connections instead of frames.
pub(super) fn is_connection_rate(method: &Ndr) -> bool {
    method.traffic.iter().any(|name| is_connections(name))
}

pub(super) fn sections(context: &Context<'_>) -> Vec<Section> {
    let (connections, frames): (Vec<_>, Vec<_>) =
        benches(context).into_iter().partition(|bench| is_connection_rate(bench.parameters));
    let parts = [(frames, &FRAMES), (connections, &CONNECTIONS)];
    let present = parts.into_iter().filter(|(benches, _)| !benches.is_empty());
    let both = |(benches, units): (Vec<_>, _)| {
        [rates(context, &benches, units), loads(context, &benches, units)]
    };
    present.flat_map(both).collect()
}

/// Returns traffic and frame size of a row: `ipv4 64 bytes`.
pub(crate) fn subject(row: &NdrRow) -> String {
    let size = row.frame_size.map_or_else(String::new, |size| format!(" {size} bytes"));
    format!("{}{size}", row.traffic)
}

/// Returns the name of the rate that a search with these parameters finds.
pub(crate) fn rate_name(method: &Ndr) -> &'static str {
    if method.pdr == 0.0 { "NDR" } else { "PDR" }
}

fn rates(context: &Context<'_>, benches: &[Bench<'_>], units: &Units) -> Section {
    let mut section = Section::new(units.title, "");
    section.text(units.text);
    section.plot(rate_plot(context, benches));
    section.table(rate_table(context, benches, units));
    section.table(result_table(context, benches, units));
    section
}

/// Rates against frame size. One frame size, and traffic with its own sizes, have only the table.
fn rate_plot(context: &Context<'_>, benches: &[Bench<'_>]) -> Plot {
    let rows = || benches.iter().flat_map(|bench| &bench.findings.rows);
    let sizes = super::rfc2544::Sizes::new(rows().filter_map(|row| row.frame_size));
    let rate = Axis::linear("Frame rate", Unit::FramesPerSecond);
    let mut plot = Plot::new("Rate found against frame size", sizes.axis(), rate);
    if sizes.count() < 2 {
        return plot;
    }
    plot.summary = "Largest passed load at each frame size, beside the theoretical maximum".into();
    for series in sizes.line_rates(benches.iter().map(|bench| bench.parameters.link_bps)) {
        plot.series(series);
    }
    for bench in benches {
        let rows = &bench.findings.rows;
        for name in super::rfc2544::traffic(rows.iter().map(|row| &*row.traffic)) {
            let label = context.series(bench.run, name);
            let mut series = Series::new(label, Some(bench.run), Style::Line);
            for row in rows.iter().filter(|row| row.traffic == name) {
                let Some(size) = row.frame_size else { continue };
                let is_hollow = row.limit == Some(Limit::Tester);
                let load = row.best.map_or(0.0, |best| best.load as f64);
                series.points.push(Point { is_hollow, ..Point::new(sizes.place(size), load) });
            }
            plot.series(series);
        }
    }
    plot
}

/// Returns the note of a row.
fn note(row: &NdrRow) -> String {
    let mut notes = Vec::new();
    if row.limit == Some(Limit::Tester) {
        notes.push("limited by the tester, not by the device");
    } else if row.rate_max < row.load_max {
        notes.push("the tester did not reach the maximum load");
    }
    if row.best.is_none() {
        notes.push("no load passed");
    }
    if row.is_exhausted {
        notes.push("ended before its precision");
    }
    notes.join("; ")
}

fn rate_table(context: &Context<'_>, benches: &[Bench<'_>], units: &Units) -> Table {
    let rate = |title: &str| Column::number(title, units.unit);
    let columns = vec![
        Column::text("Run"),
        Column::text("Traffic"),
        Column::number("Frame size", Unit::Bytes),
        Column::text("Rate"),
        rate("Rate found"),
        rate("Lowest failed load"),
        Column::text("Failed by"),
        Column::text("Note"),
        rate("Maximum rate"),
        Column::number("Share of it", Unit::Percent),
        rate("Theoretical maximum").detail(),
        Column::number("Layer 1", Unit::BitsPerSecond).detail(),
        Column::number(units.lost, Unit::Percent),
        Column::number("Retransmitted", Unit::Percent),
        Column::number("Mean latency", Unit::Nanoseconds),
        Column::number("Maximum latency", Unit::Nanoseconds).detail(),
        Column::number("Iterations", Unit::None).detail(),
    ];
    let mut table = Table::new(units.rates, columns);
    for bench in benches {
        for row in &bench.findings.rows {
            let link_bps = bench.parameters.link_bps;
            let best = row.best;
            let load = best.map_or(0, |best| best.load);
            let line_rate = row.frame_size.map(|size| line_rate(size, link_bps) as f64);
            let bits = row.frame_size.map(|size| load as f64 * f64::from(size + 20) * 8.0);
            let part = |value: fn(NdrPoint) -> Option<f64>| Cell::maybe(best.and_then(value));
            table.row(vec![
                Cell::text(context.label(bench.run)),
                Cell::text(row.traffic.clone()),
                Cell::maybe(row.frame_size.map(f64::from)),
                Cell::text(rate_name(bench.parameters)),
                Cell::count(load),
                Cell::maybe(row.upper.map(|load| load as f64)),
                Cell::text(row.limit.map(Limit::name).unwrap_or_default()),
                Cell::problem(note(row)),
                Cell::count(row.rate_max),
                Cell::Number(row.rate_percent),
                Cell::maybe(line_rate),
                Cell::maybe(bits),
                part(|best| Some(best.drop_percent)),
                part(|best| best.retransmitted_percent),
                part(|best| best.latency_mean_ns),
                part(|best| best.latency_max_ns.map(|ns| ns as f64)),
                Cell::count(row.iterations.into()),
            ]);
        }
    }
    context.finish(table)
}

/// The rate found, its half, its third and so on.
fn result_table(context: &Context<'_>, benches: &[Bench<'_>], units: &Units) -> Table {
    let columns = vec![
        Column::text("Run"),
        Column::text("Traffic"),
        Column::number("Frame size", Unit::Bytes),
        Column::text("Part of the rate"),
        Column::number("Load", units.unit),
        Column::number(units.lost, Unit::Percent),
        Column::number("Retransmitted", Unit::Percent),
        Column::number("Missed by the tester", Unit::Percent),
        Column::number("Mean latency", Unit::Nanoseconds),
        Column::number("Maximum latency", Unit::Nanoseconds),
    ];
    let mut table = Table::new("Trials at parts of the rate found", columns);
    for bench in benches {
        for row in bench.findings.rows.iter().filter(|row| !row.points.is_empty()) {
            for (place, point) in row.best.iter().chain(&row.points).enumerate() {
                let part = if place == 0 { "1".to_owned() } else { format!("1/{}", place + 1) };
                table.row(vec![
                    Cell::text(context.label(bench.run)),
                    Cell::text(row.traffic.clone()),
                    Cell::maybe(row.frame_size.map(f64::from)),
                    Cell::text(part),
                    Cell::count(point.load),
                    Cell::Number(point.drop_percent),
                    Cell::maybe(point.retransmitted_percent),
                    Cell::Number(point.tester_percent),
                    Cell::maybe(point.latency_mean_ns),
                    Cell::maybe(point.latency_max_ns.map(|ns| ns as f64)),
                ]);
            }
        }
    }
    context.finish(table)
}

/// A trial as the search judged it.
struct Tried<'a> {
    number: u32,
    test: &'a str,
    /// Load that was offered, in units per second.
    load: f64,
    total: StepOutput,
    drop_percent: f64,
    /// `None` for frames.
    retransmitted_percent: Option<f64>,
    tester_percent: f64,
    is_passed: bool,
}

/// Returns the trials of a row in their order. A file of `--json` has none.
fn tried<'a>(method: &Ndr, row: &NdrRow, trials: &'a [TrialRecord]) -> Vec<Tried<'a>> {
    let of_row = trials.iter().filter(|trial| {
        let first = trial.input.offers.first();
        first.is_some_and(|it| it.traffic == row.traffic && it.frame_size == row.frame_size)
    });
    let judged = of_row.filter_map(|trial| {
        let intended = trial.input.offers.first()?.steps.first()?.load;
        let total = trial.output.first().total();
        let unsent = total.unsent();
        let missed = trial.output.receiver_dropped.min(total.lost());
        let percent = |part: u64, all: u64| part as f64 * 100.0 / all.max(1) as f64;
        let drop_percent = percent(total.lost() - missed, total.offered);
        let retransmitted_percent =
            trial.output.segments.map(|segments| segments.retransmitted_ratio() * 100.0);
        let tester_percent = percent(unsent + missed, total.intended);
        let reached = if unsent > 0 { total.offered as f64 / total.intended as f64 } else { 1.0 };
        let load = intended as f64 * reached;
        // Only the search knows the latencies that failed: those above the rate that it found.
        let is_late =
            method.latency.is_some() && row.best.is_none_or(|best| load.round() > best.load as f64);
        let is_passed = drop_percent <= method.pdr * 100.0
            && retransmitted_percent.is_none_or(|percent| percent <= method.pdr * 100.0)
            && tester_percent <= method.tester_limit * 100.0
            && !is_late;
        let (number, test) = (trial.number, &*trial.input.test);
        Some(Tried {
            number,
            test,
            load,
            total,
            drop_percent,
            retransmitted_percent,
            tester_percent,
            is_passed,
        })
    });
    judged.collect()
}

fn loads(context: &Context<'_>, benches: &[Bench<'_>], units: &Units) -> Section {
    // Frame sizes with different rates share the axis.
    let load = || Axis::linear("Load, share of the maximum load", Unit::Percent);
    let lost = Axis::linear(units.lost, Unit::Percent);
    let mut drops = Plot::new(units.lost_plot, load(), lost);
    drops.summary = units.lost_summary.into();
    drops.hollow = "failed";
    let time = Axis::linear("Mean latency", Unit::Nanoseconds);
    let mut latencies = Plot::new("Latency against load", load(), time);
    latencies.summary = "Mean latency of each trial".into();
    latencies.hollow = "failed";
    let mut times = Vec::new();
    let columns = vec![
        Column::text("Run"),
        Column::number("Trial", Unit::None),
        Column::text("Traffic"),
        Column::text("Step"),
        Column::number("Load reached", units.unit),
        Column::number(units.lost, Unit::Percent),
        Column::number("Retransmitted", Unit::Percent),
        Column::number("Missed by the tester", Unit::Percent),
        Column::text("Result"),
    ];
    let mut table = Table::new("Trials of the search", columns);
    for bench in benches {
        for row in &bench.findings.rows {
            let subject = subject(row);
            let mut tried = tried(bench.parameters, row, &context.runs[bench.run].trials);
            for it in &tried {
                let result = match it.is_passed {
                    true => Cell::text("passed"),
                    false => Cell::problem("failed"),
                };
                table.row(vec![
                    Cell::text(context.label(bench.run)),
                    Cell::count(it.number.into()),
                    Cell::text(subject.clone()),
                    Cell::text(it.test),
                    Cell::Number(it.load.round()),
                    Cell::Number(it.drop_percent),
                    Cell::maybe(it.retransmitted_percent),
                    Cell::Number(it.tester_percent),
                    result,
                ]);
            }
            tried.sort_by(|a, b| a.load.total_cmp(&b.load));
            let label = context.series(bench.run, &subject);
            let mut lost = Series::new(label.clone(), Some(bench.run), Style::Line);
            let mut delay = Series::new(label, Some(bench.run), Style::Line);
            for it in &tried {
                let is_hollow = !it.is_passed;
                let x = it.load * 100.0 / row.load_max.max(1) as f64;
                lost.points.push(Point { is_hollow, ..Point::new(x, it.drop_percent) });
                if let Some(values) = it.total.delay.as_ref().filter(|values| values.count > 0) {
                    delay.points.push(Point { is_hollow, ..Point::new(x, values.mean_ns) });
                }
            }
            drops.series(lost);
            latencies.series(delay);
            let best = row.best.map(|best| best.load as f64);
            let at_best = tried.iter().rfind(|it| it.is_passed && best == Some(it.load.round()));
            let values = at_best.and_then(|it| it.total.delay.clone());
            times.extend(
                values.filter(|it| it.count > 0).map(|it| Times::new(bench.run, subject, it)),
            );
        }
    }
    let mut section = Section::new(units.loads, "");
    if table.rows.is_empty() {
        return section;
    }
    section.text("Hollow marks are trials that failed.");
    section.plot(drops);
    section.plot(latencies);
    if !times.is_empty() {
        let plots = delays::plots(context, "Latency at the rate found", "Latency", &times);
        plots.into_iter().for_each(|plot| section.plot(plot));
        section.table(delays::table(context, "Latency at the rate found", "Traffic", &times));
    }
    section.table(context.finish(table));
    section
}

/// Parameters for the report: name and value.
type Field = (&'static str, fn(&Ndr) -> String);
pub(super) const FIELDS: &[Field] = &[
    ("Traffic", |method| method.traffic.join(", ")),
    ("Frame sizes (bytes with FCS)", |method| match method.frame_sizes.as_slice() {
        [] => "those of the traffic".to_owned(),
        sizes => sizes.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
    }),
    ("Allowed drops", |method| percent(method.pdr)),
    ("Precision", |method| format!("{} of the maximum rate", percent(method.pdr_error))),
    ("Allowed misses of the tester", |method| {
        format!("{} of the load", percent(method.tester_limit))
    }),
    ("Largest latency", |method| {
        let limit = method.latency.map(|limit| match limit.tolerance > 0.0 {
            true => format!("{}, {} may be later", seconds(limit.max), percent(limit.tolerance)),
            false => seconds(limit.max),
        });
        limit.unwrap_or_default()
    }),
    ("Duration of the first run, of an iteration", |method| {
        format!("{}, {}", seconds(method.first_run), seconds(method.iteration))
    }),
    ("Most iterations", |method| method.iterations_max.to_string()),
];

fn percent(fraction: f64) -> String {
    format!("{} %", (fraction * 1e8).round() / 1e6)
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}
