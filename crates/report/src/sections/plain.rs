//! Runs that send: ports, flows, loss, delay, departure gaps, probes.

use wirestorm_base::histogram::{bucket_of, bucket_start};
use wirestorm_control::result::{FlowReport, HistogramReport, MeasuredReport, RunResult};

use super::delays::{self, Times};
use super::{Context, over_time};
use crate::document::{Axis, Cell, Column, Plot, Section, Series, Style, Table, Unit};

/// Most series of one kind in a plot. A plan may have thousands of flows.
pub(super) const SERIES_MAX: usize = 24;
/// Most rows of a table of flows.
pub(super) const ROWS_MAX: usize = 500;

/// Returns the results of plain runs, with the places of the runs.
pub(crate) fn results<'a>(context: &Context<'a>) -> Vec<(usize, &'a RunResult)> {
    let runs = context.runs.iter().enumerate();
    runs.filter_map(|(run, it)| Some((run, it.run_result()?))).collect()
}

pub(super) fn sections(context: &Context<'_>) -> Vec<Section> {
    let results = results(context);
    vec![
        traffic(context, &results),
        over_time::section(context, &results),
        flows(context, &results),
        delay(context, &results),
        departures(context, &results),
        probes(context, &results),
        impairments(context, &results),
        scripts(context, &results),
    ]
}

fn traffic(context: &Context<'_>, results: &[(usize, &RunResult)]) -> Section {
    let columns = vec![
        Column::text("Run"),
        Column::text("Port"),
        Column::text("Backend"),
        Column::number("Sent", Unit::Frames),
        Column::number("Rate", Unit::FramesPerSecond),
        Column::number("Layer 1", Unit::BitsPerSecond),
        Column::number("Layer 2", Unit::BitsPerSecond).detail(),
        Column::number("Failed", Unit::Frames).detail(),
        Column::number("Unsent", Unit::Frames).detail(),
        Column::number("Received", Unit::Frames),
        Column::number("Lost", Unit::Frames),
        Column::number("Loss", Unit::Percent),
        Column::number("Dropped by the receiver", Unit::Frames).detail(),
    ];
    let mut table = Table::new("Ports", columns);
    for &(run, result) in results {
        for port in &result.ports {
            let tx = port.tx.as_ref();
            let rx = port.rx.as_ref();
            let sent = |value: fn(&wirestorm_control::result::TransmitReport) -> f64| {
                Cell::maybe(tx.map(value))
            };
            table.row(vec![
                Cell::text(context.label(run)),
                Cell::text(port.name.clone()),
                Cell::text(port.backend.clone().unwrap_or_default()),
                sent(|tx| tx.packets as f64),
                sent(|tx| tx.rates.pps),
                sent(|tx| tx.rates.bps_l1),
                sent(|tx| tx.rates.bps_l2),
                sent(|tx| tx.failed as f64),
                sent(|tx| tx.unsent as f64),
                Cell::maybe(rx.map(|rx| rx.packets as f64)),
                Cell::maybe(rx.and_then(|rx| rx.lost).map(|lost| lost as f64)),
                Cell::maybe(rx.and_then(|rx| rx.loss_percent)),
                Cell::maybe(rx.map(|rx| rx.dropped as f64)),
            ]);
        }
    }
    let mut section = Section::new("Traffic", "");
    section.table(context.finish(table));
    section
}

/// A measured flow at a receiving port.
pub(super) struct Measured<'a> {
    pub(super) run: usize,
    flow: &'a FlowReport,
    pub(super) measured: &'a MeasuredReport,
}

impl Measured<'_> {
    pub(super) fn name(&self) -> String {
        match self.flow.measured.len() {
            1 => self.flow.name.clone(),
            _ => format!("{} at {}", self.flow.name, self.measured.port),
        }
    }
}

pub(super) fn measured<'a>(results: &[(usize, &'a RunResult)]) -> Vec<Measured<'a>> {
    let all = results.iter().flat_map(|&(run, result)| {
        let flows = result.flows.iter();
        flows.flat_map(move |flow| {
            flow.measured.iter().map(move |measured| Measured { run, flow, measured })
        })
    });
    all.collect()
}

fn flows(context: &Context<'_>, results: &[(usize, &RunResult)]) -> Section {
    let columns = vec![
        Column::text("Run"),
        Column::text("Flow"),
        Column::text("From").detail(),
        Column::text("To").detail(),
        Column::number("Sent", Unit::Frames),
        Column::number("Rate", Unit::FramesPerSecond),
        Column::number("Layer 1", Unit::BitsPerSecond).detail(),
        Column::number("Rate error (ppm)", Unit::None).detail(),
        Column::number("Lost", Unit::Frames),
        Column::number("Loss", Unit::Percent),
        Column::number("Reordered", Unit::Frames),
        Column::number("Reordering extent", Unit::Frames).detail(),
        Column::number("Duplicated", Unit::Frames),
        Column::number("Changed", Unit::Frames).detail(),
        Column::number("Unsent", Unit::Frames).detail(),
    ];
    let mut table = Table::new("Flows", columns);
    let all = || results.iter().flat_map(|(run, it)| it.flows.iter().map(move |flow| (*run, flow)));
    for (run, flow) in all().take(ROWS_MAX) {
        let sum = |value: fn(&MeasuredReport) -> u64| {
            let is_measured = !flow.measured.is_empty();
            let sum: u64 = flow.measured.iter().map(value).sum();
            Cell::maybe(is_measured.then_some(sum as f64))
        };
        let extent = flow.measured.iter().map(|it| it.reordering_extent_max).max();
        let corrupt: Option<u64> =
            flow.measured.iter().filter_map(|it| it.corrupt).reduce(|sum, it| sum + it);
        table.row(vec![
            Cell::text(context.label(run)),
            Cell::text(flow.name.clone()),
            Cell::text(flow.tx.clone()),
            Cell::text(flow.rx.join(", ")),
            Cell::count(flow.packets),
            Cell::Number(flow.rates.pps),
            Cell::Number(flow.rates.bps_l1),
            Cell::maybe(flow.rate_error_ppm),
            Cell::maybe(flow.lost.map(|lost| lost as f64)),
            Cell::maybe(flow.loss_percent),
            sum(|it| it.reordered),
            Cell::maybe(extent.map(|it| it as f64)),
            sum(|it| it.duplicated),
            Cell::maybe(corrupt.map(|it| it as f64)),
            Cell::count(flow.unsent),
        ]);
    }
    let mut section = Section::new("Flows", "RFC 4737, RFC 5560");
    let count = all().count();
    if count > ROWS_MAX {
        section.text(format!("The table shows the first {ROWS_MAX} of {count} flows."));
    }
    section.table(context.finish(table));
    section
}

fn delay(context: &Context<'_>, results: &[(usize, &RunResult)]) -> Section {
    let measured = measured(results);
    let times: Vec<Times> = measured
        .iter()
        .filter(|it| it.measured.delay.count > 0)
        .map(|it| Times::of_distribution(it.run, it.name(), &it.measured.delay))
        .chain(totals(results))
        .collect();
    let mut section = Section::new("One-way delay", "RFC 7679, RFC 5481");
    if times.is_empty() {
        return section;
    }
    let shown = &times[..times.len().min(SERIES_MAX)];
    let plots = delays::plots(context, "One-way delay", "One-way delay", shown);
    plots.into_iter().for_each(|plot| section.plot(plot));
    section.table(delays::table(
        context,
        "One-way delay",
        "Flow",
        &times[..times.len().min(ROWS_MAX)],
    ));
    section.table(variation(context, &measured));
    section
}

/// Returns the delays of flows at all their receiving ports together.
fn totals<'a>(results: &'a [(usize, &RunResult)]) -> impl Iterator<Item = Times> + 'a {
    let flows = results.iter().flat_map(|(run, it)| it.flows.iter().map(move |flow| (*run, flow)));
    flows.filter_map(|(run, flow)| {
        let total = flow.total.as_ref().filter(|total| total.delay.count > 0)?;
        Some(Times::of_distribution(run, at_all_ports(flow), &total.delay))
    })
}

/// Returns the name of a flow at all its receiving ports together.
pub(super) fn at_all_ports(flow: &FlowReport) -> String {
    format!("{} at all ports", flow.name)
}

fn variation(context: &Context<'_>, measured: &[Measured<'_>]) -> Table {
    let time = |title: &str| Column::number(title, Unit::Nanoseconds);
    let columns = vec![
        Column::text("Run"),
        Column::text("Flow"),
        time("PDV median"),
        time("PDV 99 %"),
        time("PDV 99.9 %"),
        time("PDV maximum"),
        time("IPDV median"),
        time("IPDV 99 %").detail(),
        time("IPDV maximum").detail(),
        time("Jitter (RFC 3550)"),
    ];
    let mut table = Table::new("Delay variation", columns);
    for it in measured.iter().take(ROWS_MAX).filter(|it| it.measured.delay.count > 0) {
        let number = |value: Option<i64>| Cell::maybe(value.map(|it| it as f64));
        let MeasuredReport { pdv, ipdv, jitter_ns, .. } = it.measured;
        table.row(vec![
            Cell::text(context.label(it.run)),
            Cell::text(it.name()),
            number(pdv.p50_ns),
            number(pdv.p99_ns),
            number(pdv.p99_9_ns),
            number(pdv.max_ns),
            number(ipdv.p50_ns),
            number(ipdv.p99_ns),
            number(ipdv.max_ns),
            Cell::count(*jitter_ns),
        ]);
    }
    context.finish(table)
}

fn departures(context: &Context<'_>, results: &[(usize, &RunResult)]) -> Section {
    let gap = Axis::log("Gap between two departures", Unit::Nanoseconds);
    let mut plot = Plot::new("Departure gaps", gap, Axis::log("Gaps", Unit::None));
    plot.summary = "Number of gaps of each length between two departures of a port".into();
    let time = |title: &str| Column::number(title, Unit::Nanoseconds);
    let columns = vec![
        Column::text("Run"),
        Column::text("Port"),
        time("Gap median"),
        time("Gap 99 %"),
        time("Gap maximum"),
        time("Error median"),
        time("Error 99 %"),
        time("Error 99.9 %").detail(),
        time("Error maximum"),
        time("Latest departure"),
        Column::text("Time stamps"),
    ];
    let mut table = Table::new("Accuracy of the schedule", columns);
    for &(run, result) in results {
        for port in &result.ports {
            let Some(report) = port.tx.as_ref().and_then(|tx| tx.departures.as_ref()) else {
                continue;
            };
            plot.series(gaps(context.series(run, &port.name), run, &report.gaps));
            let number = |value: Option<u64>| Cell::maybe(value.map(|it| it as f64));
            table.row(vec![
                Cell::text(context.label(run)),
                Cell::text(port.name.clone()),
                number(report.gaps.p50_ns),
                number(report.gaps.p99_ns),
                number(report.gaps.max_ns),
                number(report.gap_errors.p50_ns),
                number(report.gap_errors.p99_ns),
                number(report.gap_errors.p99_9_ns),
                number(report.gap_errors.max_ns),
                Cell::count(report.lateness_max_ns),
                Cell::text(report.timestamp_point.clone()),
            ]);
        }
    }
    let mut section = Section::new("Departure gaps", "");
    if !table.rows.is_empty() {
        section.text(
            "A long gap is a time in which the generator sent nothing although frames were due. \
             Each stem counts gaps of a length within 3 %.",
        );
    }
    section.plot(plot);
    section.table(context.finish(table));
    section
}

/// Returns the counts of a histogram. The middle of a bucket stands for its values.
fn gaps(label: String, run: usize, report: &HistogramReport) -> Series {
    let mut series = Series::new(label, Some(run), Style::Stems);
    for &(start, count) in &report.buckets {
        let next = bucket_start(bucket_of(start) + 1).max(start + 1);
        let middle = (start + next - 1) as f64 / 2.0;
        series.point(middle.max(1.0), count as f64);
    }
    series
}

fn probes(context: &Context<'_>, results: &[(usize, &RunResult)]) -> Section {
    let mut times = Vec::new();
    let columns = vec![
        Column::text("Run"),
        Column::text("Port"),
        Column::text("Target"),
        Column::text("Protocol"),
        Column::number("Sent", Unit::None),
        Column::number("Answered", Unit::None),
        Column::number("Lost", Unit::None),
        Column::number("Duplicated", Unit::None).detail(),
        Column::number("Reordered", Unit::None).detail(),
    ];
    let mut table = Table::new("Probes", columns);
    for &(run, result) in results {
        for probe in &result.latency {
            let what = format!("{} to {} ({})", probe.port, probe.target, probe.protocol);
            times.push(Times::of_distribution(run, what, &probe.round_trip));
            table.row(vec![
                Cell::text(context.label(run)),
                Cell::text(probe.port.clone()),
                Cell::text(probe.target.clone()),
                Cell::text(probe.protocol.clone()),
                Cell::count(probe.sent),
                Cell::count(probe.received),
                Cell::count(probe.lost),
                Cell::count(probe.duplicated),
                Cell::count(probe.reordered),
            ]);
        }
    }
    let mut section = Section::new("Round-trip time of probes", "RFC 2681");
    if times.iter().any(|it| it.values.count > 0) {
        let shown = &times[..times.len().min(SERIES_MAX)];
        let plots = delays::plots(context, "Round trip of probes", "Round-trip time", shown);
        plots.into_iter().for_each(|plot| section.plot(plot));
        section.table(delays::table(context, "Round-trip time", "Probe", &times));
    }
    section.table(context.finish(table));
    section
}

fn impairments(context: &Context<'_>, results: &[(usize, &RunResult)]) -> Section {
    let frames = |title: &str| Column::number(title, Unit::Frames);
    let columns = vec![
        Column::text("Run"),
        Column::text("To"),
        Column::text("From"),
        frames("Entered"),
        frames("Delivered"),
        frames("Lost at random"),
        frames("Queue full"),
        frames("Duplicated"),
        frames("Corrupted"),
        frames("Reordered"),
    ];
    let mut table = Table::new("Impaired links", columns);
    for &(run, result) in results {
        for port in &result.ports {
            let Some(link) = &port.impairment else { continue };
            table.row(vec![
                Cell::text(context.label(run)),
                Cell::text(port.name.clone()),
                Cell::text(link.from_port.clone().unwrap_or_default()),
                Cell::count(link.entered),
                Cell::count(link.delivered),
                Cell::count(link.lost),
                Cell::count(link.queue_dropped),
                Cell::count(link.duplicated),
                Cell::count(link.corrupted),
                Cell::count(link.reordered),
            ]);
        }
    }
    let mut section = Section::new("Impairments", "");
    section.table(context.finish(table));
    section
}

fn scripts(context: &Context<'_>, results: &[(usize, &RunResult)]) -> Section {
    let columns = vec![
        Column::text("Run"),
        Column::number("Start", Unit::None),
        Column::text("Device"),
        Column::number("Sent", Unit::Frames),
        Column::number("Rate", Unit::FramesPerSecond),
        Column::number("Layer 1", Unit::BitsPerSecond),
        Column::number("Failed", Unit::Frames),
        Column::number("Time", Unit::Seconds),
    ];
    let mut table = Table::new("Devices of the script", columns);
    for &(run, result) in results {
        for (number, start) in result.device_runs.iter().enumerate() {
            for device in &start.devices {
                table.row(vec![
                    Cell::text(context.label(run)),
                    Cell::count(number as u64 + 1),
                    Cell::text(device.name.clone()),
                    Cell::count(device.tx.packets),
                    Cell::Number(device.tx.rates.pps),
                    Cell::Number(device.tx.rates.bps_l1),
                    Cell::count(device.tx.failed),
                    Cell::Number(device.elapsed_s),
                ]);
            }
        }
    }
    let mut section = Section::new("pktgen devices", "");
    section.table(context.finish(table));
    section
}
