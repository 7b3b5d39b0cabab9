//! Collector test: records/s that exporters sent against records/s that the collector stored.

use wirestorm_method::collector::{Collector, CollectorFindings, CollectorPoint};
use wirestorm_method::method::{Findings, Method};

use super::Context;
use super::flow_export::ideal;
use crate::document::{
    Axis, Cell, Column, Mark, Plot, Point, Section, Series, Style, Table, Unit, grouped, scaled,
};

/// Findings of a run and their parameters.
type Bench<'a> = super::Bench<'a, Collector, CollectorFindings>;

/// Returns the runs with findings of a collector.
pub(crate) fn benches<'a>(context: &Context<'a>) -> Vec<Bench<'a>> {
    context.benches(|method, findings| match (method, findings) {
        (Method::Collector(parameters), Findings::Collector(findings)) => {
            Some((parameters, findings))
        }
        _ => None,
    })
}

pub(super) fn sections(context: &Context<'_>) -> Vec<Section> {
    let benches = benches(context);
    if benches.is_empty() {
        return Vec::new();
    }
    let mut section = Section::new("Flow collection", "");
    section.text(
        "Emulated exporters send records at each rate. The stored records are those that the command \
         of --received-command counted. Loss begins at the lowest rate at which the collector lost a \
         record. Hollow marks are rates that the exporters did not reach.",
    );
    section.plot(plot(context, &benches));
    section.table(summary(context, &benches));
    section.table(points(context, &benches));
    vec![section]
}

/// Returns the points with a count of stored records, and their loss in percent.
fn counted<'a>(bench: &Bench<'a>) -> impl Iterator<Item = (&'a CollectorPoint, f64)> {
    let points = &bench.findings.points;
    points.iter().filter_map(|point| Some((point, point.loss_percent?)))
}

/// The graph of records/s sent against records/s stored. Without a count it has no points.
fn plot(context: &Context<'_>, benches: &[Bench<'_>]) -> Plot {
    let mut plot = Plot::new(
        "Records sent against records stored",
        Axis::linear("Records sent", Unit::PerSecond),
        Axis::linear("Records stored", Unit::PerSecond),
    );
    plot.summary =
        "Stored records per second at each rate of records sent; without loss both are equal"
            .into();
    let sent = benches.iter().flat_map(counted).map(|(point, _)| point.sent_per_s);
    plot.series(ideal(sent.fold(0.0, f64::max)));
    for bench in benches {
        let label = context.series(bench.run, "stored");
        let mut series = Series::new(label, Some(bench.run), Style::Line);
        for (point, loss_percent) in counted(bench) {
            let stored = point.sent_per_s * (1.0 - loss_percent / 100.0);
            let is_hollow = point.is_tester_limited;
            series.points.push(Point { is_hollow, ..Point::new(point.sent_per_s, stored) });
        }
        plot.series(series);
        let begins = bench.findings.points.iter().find(|point| point.is_lossless == Some(false));
        if let Some(x) = begins.map(|point| point.sent_per_s) {
            let (number, unit) = scaled(x, Unit::PerSecond);
            let unit = unit.replace("/s", " records/s");
            let label = context.series(bench.run, &format!("loss begins: {number} {unit}"));
            plot.marks.push(Mark { x, label, run: Some(bench.run) });
        }
    }
    plot
}

fn summary(context: &Context<'_>, benches: &[Bench<'_>]) -> Table {
    let columns = vec![
        Column::text("Run"),
        Column::text("Value"),
        Column::number("Rate (records/s)", Unit::None),
        Column::text("Note"),
    ];
    let mut table = Table::new("Results", columns);
    for bench in benches {
        let findings = bench.findings;
        let is_counted = findings.points.iter().any(|point| point.is_lossless.is_some());
        let none = |text| if is_counted { text } else { "nothing counted the stored records" };
        let throughput = match (findings.throughput, findings.is_searched) {
            (None, _) => none("all rates lost records"),
            (Some(_), true) => "found by a search",
            (Some(_), false) => "largest rate of the sweep without loss; not searched",
        };
        let begins = match findings.loss_begins {
            None => none("no rate lost records"),
            Some(_) => "lowest rate with loss",
        };
        for (name, value, note) in [
            ("Largest rate without loss", findings.throughput, throughput),
            ("Loss begins", findings.loss_begins, begins),
        ] {
            table.row(vec![
                Cell::text(context.label(bench.run)),
                Cell::text(name),
                Cell::maybe(value.map(|rate| rate as f64)),
                Cell::text(note),
            ]);
        }
    }
    context.finish(table)
}

fn points(context: &Context<'_>, benches: &[Bench<'_>]) -> Table {
    let columns = vec![
        Column::text("Run"),
        Column::number("Rate", Unit::PerSecond),
        Column::number("Sent", Unit::PerSecond),
        Column::number("Loss", Unit::Percent),
        Column::number("Records sent", Unit::None),
        Column::number("Records stored", Unit::None),
        Column::number("Datagrams", Unit::PerSecond),
        Column::number("Traffic", Unit::BitsPerSecond),
        Column::number("Refused", Unit::None).detail(),
        Column::number("Largest delay", Unit::Seconds).detail(),
        Column::text("Note"),
    ];
    let mut table = Table::new("Records at each rate", columns);
    for bench in benches {
        for point in &bench.findings.points {
            let counts = &point.collector;
            table.row(vec![
                Cell::text(context.label(bench.run)),
                Cell::count(point.load),
                Cell::Number(point.sent_per_s.round()),
                Cell::maybe(point.loss_percent),
                Cell::count(counts.records),
                Cell::maybe(counts.stored.map(|stored| stored as f64)),
                Cell::Number(point.datagrams_per_s.round()),
                Cell::Number(point.bps),
                Cell::count(counts.refused),
                Cell::Number(counts.late_max_s),
                Cell::problem(if point.is_tester_limited { "limited by the tester" } else { "" }),
            ]);
        }
    }
    context.finish(table)
}

/// Parameters for the report: name and value.
type Field = (&'static str, fn(&Collector) -> String);
pub(super) const FIELDS: &[Field] = &[
    ("Export protocol", |method| method.protocol.clone()),
    ("IP version of the flows", |method| method.family.clone()),
    ("Exporters", |method| grouped(method.exporters.into())),
    ("Domains of each exporter", |method| grouped(method.domains.into())),
    ("Flows of a domain before keys repeat", |method| match method.flows_per_stream {
        0 => "no key repeats".to_owned(),
        flows => grouped(flows),
    }),
    ("Longest datagram", |method| format!("{} bytes", method.datagram_length_max)),
    ("Templates are sent again", |method| {
        let seconds = method.template_refresh.as_secs_f64();
        match method.template_refresh_datagrams {
            0 => format!("after {seconds} s"),
            datagrams => format!("after {seconds} s or {datagrams} datagrams"),
        }
    }),
    ("Duration of a trial", |method| format!("{} s", method.trial.as_secs_f64())),
];
