//! Flow export: flows/s sent against flows/s that the device exported (RFC 6645).

use std::collections::BTreeSet;

use wirestorm_method::flow_exporter::{CAPTURE, FlowExporter, FlowExporterFindings, FlowPoint};
use wirestorm_method::method::{Findings, Method};

use super::Context;
use crate::document::{
    Axis, Cell, Column, Mark, Plot, Point, Section, Series, Style, Table, Unit, scaled,
};

/// Flows per second that networks have for each Mbit/s of traffic, as a rule of thumb.
const FLOWS_PER_MBIT: f64 = 5.0;

/// Findings of a run and their parameters.
type Bench<'a> = super::Bench<'a, FlowExporter, FlowExporterFindings>;

/// Returns the runs with findings of a flow exporter.
pub(crate) fn benches<'a>(context: &Context<'a>) -> Vec<Bench<'a>> {
    context.benches(|method, findings| match (method, findings) {
        (Method::FlowExporter(parameters), Findings::FlowExporter(findings)) => {
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
    let mut section = Section::new("Flow export", "RFC 6645 section 5");
    section.text(
        "The device receives new flows at each rate and exports records to the collector of the \
         tester. Captured flows are those of the sent flows that the records report. Loss begins at \
         the lowest rate at which the device lost a flow or a packet. Hollow marks are rates at \
         which the tester failed.",
    );
    section.plot(plot(context, &benches, &links(context, &benches)));
    section.table(summary(context, &benches));
    section.table(points(context, &benches));
    section.table(records(context, &benches));
    section.table(fields(context, &benches));
    section.table(differences(context, &benches));
    section.table(device_logs(context, &benches));
    vec![section]
}

/// The graph of flows/s sent against flows/s captured, with the point where loss begins and the rate
/// that a link needs.
fn plot(context: &Context<'_>, benches: &[Bench<'_>], links: &BTreeSet<u64>) -> Plot {
    let mut plot = Plot::new(
        "Flows sent against flows captured",
        Axis::linear("Flows sent", Unit::PerSecond),
        Axis::linear("Flows captured", Unit::PerSecond),
    );
    plot.summary = "Captured flows per second at each rate of flows sent; without loss both are \
                    equal"
        .into();
    let all = || benches.iter().flat_map(|bench| &bench.findings.points);
    let most = all().map(|point| point.sent_per_s).fold(0.0, f64::max);
    plot.series(ideal(most));
    for bench in benches {
        let label = context.series(bench.run, "captured");
        let mut series = Series::new(label, Some(bench.run), Style::Line);
        series.points.extend(bench.findings.points.iter().map(|point| Point {
            is_hollow: point.is_tester_limited,
            ..Point::new(point.sent_per_s, point.captured_per_s)
        }));
        plot.series(series);
        // The traffic of a capture has a bit rate like that of a network.
        if bench.parameters.traffic == CAPTURE {
            let label = format!("{FLOWS_PER_MBIT} flows/s per Mbit/s of this traffic");
            let label = context.series(bench.run, &label);
            let mut series = Series::new(label, None, Style::Reference);
            bench.findings.points.iter().for_each(|point| {
                series.point(point.sent_per_s, point.bps_ip / 1e6 * FLOWS_PER_MBIT);
            });
            plot.series(series);
        }
        let begins = bench.findings.points.iter().find(|point| !point.is_lossless);
        if let Some(x) = begins.map(|point| point.sent_per_s) {
            let label = context.series(bench.run, &format!("loss begins: {}", flows_per_s(x)));
            plot.marks.push(Mark { x, label, run: Some(bench.run) });
        }
    }
    for &link in links {
        let x = link as f64 / 1e6 * FLOWS_PER_MBIT;
        let (speed, unit) = scaled(link as f64, Unit::BitsPerSecond);
        let label = format!("{FLOWS_PER_MBIT} flows/s per Mbit/s at {speed} {unit}");
        plot.marks.push(Mark { x, label, run: None });
    }
    plot
}

/// Returns the line on which what was sent arrives, up to a rate; no points at rate 0.
pub(super) fn ideal(most: f64) -> Series {
    let mut ideal = Series::new("without loss", None, Style::Reference);
    if most > 0.0 {
        ideal.points = vec![Point::new(0.0, 0.0), Point::new(most, most)];
    }
    ideal
}

/// Returns the speed of the fastest interface of each run, in bit/s.
fn links(context: &Context<'_>, benches: &[Bench<'_>]) -> BTreeSet<u64> {
    let fastest = |bench: &Bench<'_>| {
        let interfaces = &context.runs[bench.run].record.interfaces;
        interfaces.iter().filter_map(|interface| interface.speed_bps).max()
    };
    benches.iter().filter_map(fastest).collect()
}

/// Returns a rate with its unit.
pub(super) fn flows_per_s(rate: f64) -> String {
    let (number, unit) = scaled(rate, Unit::PerSecond);
    let space = if unit == "/s" { "" } else { " " };
    format!("{number} {}{space}flows/s", unit.trim_end_matches("/s"))
}

fn summary(context: &Context<'_>, benches: &[Bench<'_>]) -> Table {
    let columns = vec![
        Column::text("Run"),
        Column::text("Value"),
        Column::number("Rate (flows/s)", Unit::None),
        Column::text("Note"),
    ];
    let mut table = Table::new("Results", columns);
    for bench in benches {
        let findings = bench.findings;
        let searched = if findings.is_searched {
            "found by a search"
        } else {
            "largest rate of the sweep without loss; not searched"
        };
        let (throughput, begins) = (findings.throughput, findings.loss_begins);
        let note =
            |value: Option<u64>, note, none| Cell::text(if value.is_some() { note } else { none });
        let mut add = |name: &str, value: Option<u64>, note: Cell| {
            let value = Cell::maybe(value.map(|it| it as f64));
            table.row(vec![Cell::text(context.label(bench.run)), Cell::text(name), value, note]);
        };
        let none = "all rates lost flows";
        add("Flow Monitoring Throughput", throughput, note(throughput, searched, none));
        let none = "no rate lost flows";
        add("Loss begins", begins, note(begins, "lowest rate with loss", none));
    }
    context.finish(table)
}

/// Calls `row` for each point.
fn each<'a>(benches: &[Bench<'a>], mut row: impl FnMut(usize, &'a FlowPoint)) {
    for bench in benches {
        bench.findings.points.iter().for_each(|point| row(bench.run, point));
    }
}

fn points(context: &Context<'_>, benches: &[Bench<'_>]) -> Table {
    let columns = vec![
        Column::text("Run"),
        Column::number("Sent", Unit::PerSecond),
        Column::number("Captured", Unit::PerSecond),
        Column::number("Flow loss", Unit::Percent),
        Column::number("Flows sent", Unit::None).detail(),
        Column::number("Flows captured", Unit::None).detail(),
        Column::number("Packets sent", Unit::None),
        Column::number("Packets captured", Unit::None),
        Column::number("Packet loss", Unit::Percent),
        Column::number("Traffic", Unit::BitsPerSecond),
        Column::number("Packets not forwarded", Unit::None).detail(),
        Column::text("Note"),
    ];
    let mut table = Table::new("Flows and packets at each rate", columns);
    each(benches, |run, point| {
        let export = &point.export;
        table.row(vec![
            Cell::text(context.label(run)),
            Cell::Number(point.sent_per_s.round()),
            Cell::Number(point.captured_per_s.round()),
            Cell::Number(point.flow_loss_percent),
            Cell::count(export.sent.flows),
            Cell::count(export.captured.flows),
            Cell::count(export.sent.packets),
            Cell::count(export.captured.packets),
            Cell::Number(point.packet_loss_percent),
            Cell::Number(point.bps_ip),
            Cell::maybe(export.forwarding_lost.map(|lost| lost as f64)),
            Cell::problem(if point.is_tester_limited { "limited by the tester" } else { "" }),
        ]);
    });
    context.finish(table)
}

fn records(context: &Context<'_>, benches: &[Bench<'_>]) -> Table {
    let count = |title: &str| Column::number(title, Unit::None);
    let columns = vec![
        Column::text("Run"),
        Column::number("Sent", Unit::PerSecond),
        Column::text("Protocol"),
        Column::number("Flow Export Rate", Unit::PerSecond),
        count("Records"),
        count("Export packets"),
        count("Control records").detail(),
        count("Lost in export"),
        count("Missing flows"),
        count("Split flows").detail(),
        count("Wrong packets"),
        count("Wrong bytes"),
        count("Unknown flows").detail(),
        count("Largest cache"),
    ];
    let mut table = Table::new("Records at each rate", columns);
    each(benches, |run, point| {
        let export = &point.export;
        table.row(vec![
            Cell::text(context.label(run)),
            Cell::Number(point.sent_per_s.round()),
            Cell::text(export.protocol.clone()),
            Cell::maybe(export.export_rate.map(f64::round)),
            Cell::count(export.records),
            Cell::count(export.datagrams),
            Cell::count(export.control_records),
            Cell::count(export.sequence_lost),
            Cell::count(export.missing_flows),
            Cell::count(export.split_flows),
            Cell::count(export.packets_differ),
            Cell::count(export.bytes_differ),
            Cell::count(export.unexpected.flows),
            Cell::maybe(export.cache_flows_max.map(|flows| flows as f64)),
        ]);
    });
    context.finish(table)
}

/// Accuracy of the fields (RFC 6645 section 7): of the lowest rate, and wrong ones of the others.
fn fields(context: &Context<'_>, benches: &[Bench<'_>]) -> Table {
    let count = |title: &str| Column::number(title, Unit::None);
    let columns = vec![
        Column::text("Run"),
        Column::number("Sent", Unit::PerSecond),
        Column::text("Field"),
        count("Records with it"),
        count("Without it"),
        count("Never sent"),
        Column::text("Least"),
        Column::text("Greatest"),
        count("Values sent"),
        count("Values found"),
    ];
    let mut table = Table::new("Accuracy of the fields", columns);
    let value = |value: Option<u64>| Cell::maybe(value.map(|it| it as f64));
    for bench in benches {
        for (number, point) in bench.findings.points.iter().enumerate() {
            let all = point.export.fields.iter();
            for field in all.filter(|field| number == 0 || field.is_wrong()) {
                table.row(vec![
                    Cell::text(context.label(bench.run)),
                    Cell::Number(point.sent_per_s.round()),
                    Cell::text(field.name.clone()),
                    Cell::count(field.present),
                    Cell::count(field.missing),
                    Cell::count(field.out_of_range),
                    Cell::text(field.least.clone().unwrap_or_default()),
                    Cell::text(field.greatest.clone().unwrap_or_default()),
                    value(field.values_sent),
                    value(field.values_found),
                ]);
            }
        }
    }
    context.finish(table)
}

fn differences(context: &Context<'_>, benches: &[Bench<'_>]) -> Table {
    let count = |title: &str| Column::number(title, Unit::None);
    let columns = vec![
        Column::text("Run"),
        Column::number("Sent", Unit::PerSecond),
        Column::text("Flow"),
        count("Packets sent"),
        count("Packets reported"),
        count("Bytes sent"),
        count("Bytes reported"),
    ];
    let mut table = Table::new("Some flows that differ", columns);
    let value = |value: Option<u64>| Cell::maybe(value.map(|it| it as f64));
    each(benches, |run, point| {
        for difference in &point.export.differences {
            table.row(vec![
                Cell::text(context.label(run)),
                Cell::Number(point.sent_per_s.round()),
                Cell::text(difference.flow.clone()),
                value(difference.packets_sent),
                value(difference.packets_reported),
                value(difference.bytes_sent),
                value(difference.bytes_reported),
            ]);
        }
    });
    context.finish(table)
}

fn device_logs(context: &Context<'_>, benches: &[Bench<'_>]) -> Table {
    let columns = vec![
        Column::text("Run"),
        Column::number("Sent", Unit::PerSecond),
        Column::text("Figure"),
        Column::number("Value", Unit::None),
    ];
    let mut table = Table::new("Log of the device", columns);
    each(benches, |run, point| {
        for (name, value) in &point.export.device_log {
            let sent = Cell::Number(point.sent_per_s.round());
            let name = Cell::text(name.clone());
            table.row(vec![Cell::text(context.label(run)), sent, name, Cell::Number(*value)]);
        }
    });
    context.finish(table)
}

#[cfg(test)]
mod tests {
    use wirestorm_method::trial::{ExportOutput, FieldOutput};

    use super::*;

    #[test]
    fn fields_of_the_lowest_rate_and_wrong_ones_are_listed() {
        let field = |name: &str, missing| FieldOutput {
            name: name.to_owned(),
            present: 10,
            missing,
            ..FieldOutput::default()
        };
        let point = |fields| FlowPoint {
            export: ExportOutput { fields, ..ExportOutput::default() },
            ..FlowPoint::default()
        };
        let findings = FlowExporterFindings {
            points: vec![
                point(vec![field("packets", 0), field("bytes", 0)]),
                point(vec![field("packets", 0), field("bytes", 3)]),
            ],
            ..FlowExporterFindings::default()
        };
        let parameters = parameters();
        let bench = Bench { run: 0, parameters: &parameters, findings: &findings };
        let table = fields(&Context::new(&[]), &[bench]);
        let names: Vec<_> = table.rows.iter().map(|row| row[1].clone()).collect();
        assert_eq!(names, ["packets", "bytes", "bytes"].map(Cell::text));
    }

    fn parameters() -> FlowExporter {
        FlowExporter {
            rates: Vec::new(),
            searches: false,
            resolution: 0.01,
            traffic: CAPTURE.into(),
            frame_size: None,
            trial: wirestorm_base::time::Duration::from_secs(60),
            idle_timeout: wirestorm_base::time::Duration::from_secs(10),
            active_timeout_s: None,
            cache_size: None,
        }
    }

    #[test]
    fn graph_marks_the_loss_point_and_the_need_of_the_link() {
        let point = |rate: u32, captured: u32| FlowPoint {
            load: rate.into(),
            sent_per_s: rate.into(),
            captured_per_s: captured.into(),
            is_lossless: rate == captured,
            ..FlowPoint::default()
        };
        let findings = FlowExporterFindings {
            points: vec![point(50_000, 50_000), point(60_000, 57_000), point(70_000, 57_000)],
            ..FlowExporterFindings::default()
        };
        let parameters = parameters();
        let bench = Bench { run: 0, parameters: &parameters, findings: &findings };
        let plot = plot(&Context::new(&[]), &[bench], &BTreeSet::from([10_000_000_000]));
        let marks: Vec<_> = plot.marks.iter().map(|it| (it.x, &*it.label)).collect();
        let need = "5 flows/s per Mbit/s at 10 Gbit/s";
        assert_eq!(marks, [(60_000.0, "loss begins: 60 k flows/s"), (50_000.0, need)]);
        // The ideal line, the points, the line of the traffic.
        assert_eq!(plot.points(), 2 + 3 + 3);
    }
}
