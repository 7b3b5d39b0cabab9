//! RFC 2544: graphs and tables as its section 26 and RFC 9004 section 7 want them.

use std::collections::BTreeSet;

use wirestorm_method::method::{Findings, Method};
use wirestorm_method::rate::line_rate;
use wirestorm_method::rfc2544::{
    FrameLossRow, LatencyRow, Repeated, Rfc2544, Rfc2544Findings, ThroughputRow,
};

use super::Context;
use super::delays::{self, Times};
use crate::document::{Axis, Cell, Column, Plot, Point, Section, Series, Style, Table, Unit};

/// Findings of a run and their parameters.
type Bench<'a> = super::Bench<'a, Rfc2544, Rfc2544Findings>;

/// Returns the runs with findings of RFC 2544.
pub(crate) fn benches<'a>(context: &Context<'a>) -> Vec<Bench<'a>> {
    context.benches(|method, findings| match (method, findings) {
        (Method::Rfc2544(parameters), Findings::Rfc2544(findings)) => Some((parameters, findings)),
        _ => None,
    })
}

pub(super) fn sections(context: &Context<'_>) -> Vec<Section> {
    let benches = benches(context);
    if benches.is_empty() {
        return Vec::new();
    }
    vec![
        throughput(context, &benches),
        latency(context, &benches),
        frame_loss(context, &benches),
        back_to_back(context, &benches),
        recovery(context, &benches),
        reset(context, &benches),
    ]
}

/// Frame sizes of all rows, in order.
pub(super) struct Sizes(Vec<u32>);

impl Sizes {
    pub(super) fn new(sizes: impl Iterator<Item = u32>) -> Self {
        Self(sizes.collect::<BTreeSet<_>>().into_iter().collect())
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn axis(&self) -> Axis {
        let names = self.0.iter().map(u32::to_string).collect();
        Axis::categories("Frame size (bytes with FCS)", names)
    }

    pub(super) fn place(&self, size: u32) -> f64 {
        self.0.binary_search(&size).unwrap_or(0) as f64
    }

    /// Returns the theoretical maximum of each speed in bit/s.
    pub(super) fn line_rates(&self, links: impl Iterator<Item = u64>) -> Vec<Series> {
        let series = |link: u64| {
            let (number, unit) = crate::document::scaled(link as f64, Unit::BitsPerSecond);
            let label = format!("theoretical maximum, {number} {unit}");
            let mut series = Series::new(label, None, Style::Reference);
            self.0.iter().for_each(|&size| {
                series.point(self.place(size), line_rate(size, link) as f64);
            });
            series
        };
        links.collect::<BTreeSet<_>>().into_iter().map(series).collect()
    }
}

/// Returns the names of the traffic in rows, in order of appearance.
pub(super) fn traffic<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = Vec::new();
    names.for_each(|name| {
        if !found.contains(&name) {
            found.push(name);
        }
    });
    found
}

/// Returns the note of a row of throughput.
fn throughput_note(row: &ThroughputRow) -> String {
    let mut notes = Vec::new();
    if row.is_tester_limited {
        notes.push("limited by the tester, not by the device".to_owned());
    }
    if row.is_contradictory {
        notes.push("contradictory: the upper bound passed when it was verified".to_owned());
    }
    if row.confirmed < row.confirmations {
        notes.push(format!("confirmed by {} of {} trials", row.confirmed, row.confirmations));
    }
    if row.load == 0 {
        notes.push("all trials lost frames".to_owned());
    }
    notes.join("; ")
}

fn throughput(context: &Context<'_>, benches: &[Bench<'_>]) -> Section {
    let rows = || benches.iter().flat_map(|bench| &bench.findings.throughput);
    let sizes = Sizes::new(rows().map(|row| row.frame_size));
    let rate = Axis::linear("Frame rate", Unit::FramesPerSecond);
    let mut rates = Plot::new("Throughput against frame size", sizes.axis(), rate);
    rates.summary =
        "Throughput in frames/s at each frame size, beside the theoretical maximum".into();
    let percent = Axis::linear("Throughput", Unit::Percent).range(0.0, 100.0);
    let mut percents =
        Plot::new("Throughput in percent of the theoretical maximum", sizes.axis(), percent);
    percents.summary = "Throughput in percent of the maximum frame rate of the link".into();
    for series in sizes.line_rates(benches.iter().map(|bench| bench.parameters.link_bps)) {
        rates.series(series);
    }
    for bench in benches {
        let rows = &bench.findings.throughput;
        for name in traffic(rows.iter().map(|row| &*row.traffic)) {
            let label = context.series(bench.run, name);
            let mut rate = Series::new(label.clone(), Some(bench.run), Style::Line);
            let mut percent = Series::new(label, Some(bench.run), Style::Bars);
            for row in rows.iter().filter(|row| row.traffic == name) {
                let is_hollow = row.is_tester_limited || row.is_contradictory;
                let x = sizes.place(row.frame_size);
                rate.points.push(Point { is_hollow, ..Point::new(x, row.load as f64) });
                percent.points.push(Point { is_hollow, ..Point::new(x, row.line_rate_percent) });
            }
            rates.series(rate);
            percents.series(percent);
        }
    }
    let columns = vec![
        Column::text("Run"),
        Column::text("Traffic"),
        Column::number("Frame size", Unit::Bytes),
        Column::number("Throughput", Unit::FramesPerSecond),
        Column::number("Theoretical maximum", Unit::FramesPerSecond),
        Column::number("Share", Unit::Percent),
        Column::number("Layer 1", Unit::BitsPerSecond),
        Column::number("Layer 2", Unit::BitsPerSecond).detail(),
        Column::number("Lowest load with loss", Unit::FramesPerSecond).detail(),
        Column::number("Trials", Unit::None).detail(),
        Column::text("Note"),
    ];
    let mut table = Table::new("Throughput of each interface", columns);
    for bench in benches {
        for row in &bench.findings.throughput {
            table.row(vec![
                Cell::text(context.label(bench.run)),
                Cell::text(row.traffic.clone()),
                Cell::count(row.frame_size.into()),
                Cell::count(row.load),
                Cell::count(row.line_rate),
                Cell::Number(row.line_rate_percent),
                Cell::Number(row.bps_l1),
                Cell::Number(row.bps_l2),
                Cell::maybe(row.upper.map(|upper| upper as f64)),
                Cell::count(row.trials.into()),
                Cell::problem(throughput_note(row)),
            ]);
        }
    }
    let mut section = Section::new("Throughput", "RFC 2544 section 26.1");
    section.text(
        "Throughput is the largest load at which the device forwards all frames. Rates are per \
         transmitting interface. Hollow marks are results that the tester limits, or that \
         contradict each other.",
    );
    section.plot(rates);
    section.plot(percents);
    section.table(context.finish(table));
    section
}

fn latency(context: &Context<'_>, benches: &[Bench<'_>]) -> Section {
    let mut section =
        Section::new("Latency and delay variation", "RFC 2544 section 26.2, RFC 8219");
    let rows = || benches.iter().flat_map(|bench| &bench.findings.latency);
    if rows().next().is_none() {
        return section;
    }
    let sizes = Sizes::new(rows().map(|row| row.frame_size));
    let title = "Latency against frame size";
    let mut plot = Plot::new(title, sizes.axis(), Axis::linear("Latency", Unit::Nanoseconds));
    plot.summary = "Typical and worst-case latency at each frame size".into();
    let mut times = Vec::new();
    for bench in benches {
        let rows = &bench.findings.latency;
        for name in traffic(rows.iter().map(|row| &*row.traffic)) {
            let mut add = |what: &str, value: fn(&LatencyRow) -> Option<Repeated>| {
                let label = context.series(bench.run, &format!("{name}, {what}"));
                let mut series = Series::new(label, Some(bench.run), Style::Line);
                for row in rows.iter().filter(|row| row.traffic == name) {
                    if let Some(value) = value(row) {
                        series.point(sizes.place(row.frame_size), value.median_ns);
                    }
                }
                plot.series(series);
            };
            add("typical", |row| row.typical);
            add("worst case", |row| row.worst_case);
        }
        times.extend(rows.iter().map(|row| {
            let what = format!("{} {} bytes", row.traffic, row.frame_size);
            Times::new(bench.run, what, row.delay.clone())
        }));
    }
    section.text(
        "Typical latency is the median and worst-case latency the 99.9th percentile of a stream; \
         delay variation is the 99.9th percentile minus the minimum. Values are medians over the \
         streams, with the 1st and 99th percentile (RFC 8219 sections 7.2 and 7.3.1). The mean is \
         the average over all streams (RFC 2544).",
    );
    section.plot(plot);
    let [percentiles, ccdf] = delays::plots(context, "Latency", "Latency", &times);
    section.plot(percentiles);
    section.plot(ccdf);
    section.table(latency_table(context, benches));
    section
}

fn latency_table(context: &Context<'_>, benches: &[Bench<'_>]) -> Table {
    let time = |title: &str| Column::number(title, Unit::Nanoseconds);
    let columns = vec![
        Column::text("Run"),
        Column::text("Traffic"),
        Column::number("Frame size", Unit::Bytes),
        Column::number("Load", Unit::FramesPerSecond),
        time("Mean"),
        time("Typical"),
        time("Typical 1 %").detail(),
        time("Typical 99 %").detail(),
        time("Worst case"),
        time("Worst case 1 %").detail(),
        time("Worst case 99 %").detail(),
        time("PDV"),
        Column::number("Streams", Unit::None).detail(),
        Column::number("Lost", Unit::Frames).detail(),
    ];
    let mut table = Table::new("Latency of each frame size", columns);
    for bench in benches {
        for row in &bench.findings.latency {
            let part =
                |value: Option<Repeated>, part: fn(Repeated) -> f64| Cell::maybe(value.map(part));
            table.row(vec![
                Cell::text(context.label(bench.run)),
                Cell::text(row.traffic.clone()),
                Cell::count(row.frame_size.into()),
                Cell::count(row.load),
                Cell::maybe(row.mean_ns),
                part(row.typical, |it| it.median_ns),
                part(row.typical, |it| it.p1_ns),
                part(row.typical, |it| it.p99_ns),
                part(row.worst_case, |it| it.median_ns),
                part(row.worst_case, |it| it.p1_ns),
                part(row.worst_case, |it| it.p99_ns),
                part(row.pdv, |it| it.median_ns),
                Cell::count(row.repetitions.into()),
                Cell::count(row.lost),
            ]);
        }
    }
    context.finish(table)
}

fn frame_loss(context: &Context<'_>, benches: &[Bench<'_>]) -> Section {
    // "The left end of the X axis and the bottom of the Y axis MUST be 0 percent; the right end of
    // the X axis and the top of the Y axis MUST be 100 percent."
    let load = Axis::linear("Load, share of the theoretical maximum", Unit::Percent);
    let loss = Axis::linear("Frame loss", Unit::Percent).range(0.0, 100.0);
    let mut plot = Plot::new("Frame loss rate against load", load.range(0.0, 100.0), loss);
    plot.summary =
        "Lost frames in percent at each load in percent of the theoretical maximum".into();
    let columns = vec![
        Column::text("Run"),
        Column::text("Traffic"),
        Column::number("Frame size", Unit::Bytes),
        Column::number("Load", Unit::Percent),
        Column::number("Load of an interface", Unit::FramesPerSecond),
        Column::number("Offered", Unit::Frames),
        Column::number("Received", Unit::Frames).detail(),
        Column::number("Lost", Unit::Frames),
        Column::number("Loss", Unit::Percent),
        Column::text("Note"),
    ];
    let mut table = Table::new("Frame loss rate", columns);
    for bench in benches {
        for row in &bench.findings.frame_loss {
            let line_rate = line_rate(row.frame_size, bench.parameters.link_bps);
            plot.series(loss_series(context, bench.run, row, line_rate));
            for point in &row.points {
                let note = match point.unsent {
                    0 => String::new(),
                    unsent => {
                        format!(
                            "the generator did not send {} frames",
                            crate::document::grouped(unsent)
                        )
                    }
                };
                table.row(vec![
                    Cell::text(context.label(bench.run)),
                    Cell::text(row.traffic.clone()),
                    Cell::count(row.frame_size.into()),
                    Cell::Number(percent_of_line_rate(point.load, line_rate)),
                    Cell::count(point.load),
                    Cell::count(point.offered),
                    Cell::count(point.received),
                    Cell::count(point.offered.saturating_sub(point.received)),
                    Cell::Number(point.loss_percent),
                    Cell::problem(note),
                ]);
            }
        }
    }
    let mut section = Section::new("Frame loss rate", "RFC 2544 section 26.3");
    section.plot(plot);
    section.table(context.finish(table));
    section
}

fn percent_of_line_rate(load: u64, line_rate: u64) -> f64 {
    (load as f64 * 1e6 / line_rate.max(1) as f64).round() / 1e4
}

fn loss_series(context: &Context<'_>, run: usize, row: &FrameLossRow, line_rate: u64) -> Series {
    let label = context.series(run, &format!("{} {} bytes", row.traffic, row.frame_size));
    let mut series = Series::new(label, Some(run), Style::Line);
    for point in row.points.iter().rev() {
        let x = percent_of_line_rate(point.load, line_rate);
        let is_hollow = point.unsent > 0;
        series.points.push(Point { is_hollow, ..Point::new(x, point.loss_percent) });
    }
    series
}

fn back_to_back(context: &Context<'_>, benches: &[Bench<'_>]) -> Section {
    let columns = vec![
        Column::text("Run"),
        Column::text("Traffic"),
        Column::number("Frame size", Unit::Bytes),
        Column::number("Average burst", Unit::Frames),
        Column::number("Minimum", Unit::Frames),
        Column::number("Maximum", Unit::Frames),
        Column::number("Standard deviation", Unit::Frames),
        Column::number("Implied buffer time", Unit::Seconds).detail(),
        Column::number("Corrected buffer time", Unit::Seconds),
        Column::number("Tests (N)", Unit::None),
        Column::number("Longest burst of the tester", Unit::Frames).detail(),
        Column::text("Note"),
    ];
    let mut table = Table::new("Back-to-back frames", columns);
    for bench in benches {
        for row in &bench.findings.back_to_back {
            let count = |value: Option<u64>| Cell::maybe(value.map(|it| it as f64));
            let is_limited = row.max.is_some_and(|max| max >= row.burst_max);
            let note = match &row.skipped {
                Some(reason) => Cell::text(format!("not tested: {reason}")),
                None if is_limited => Cell::problem("limited by the longest burst of the tester"),
                None => Cell::None,
            };
            table.row(vec![
                Cell::text(context.label(bench.run)),
                Cell::text(row.traffic.clone()),
                Cell::count(row.frame_size.into()),
                Cell::maybe(row.average),
                count(row.min),
                count(row.max),
                Cell::maybe(row.standard_deviation),
                Cell::maybe(row.implied_buffer_s),
                Cell::maybe(row.corrected_buffer_s),
                Cell::maybe(row.skipped.is_none().then_some(row.bursts.len() as f64)),
                Cell::count(row.burst_max),
                note,
            ]);
        }
    }
    let mut section = Section::new("Back-to-back frames", "RFC 9004 section 7");
    section.text(
        "The longest burst at the maximum load that the device forwards without loss. The corrected \
         buffer time is the implied one without the part that the device forwards during the burst.",
    );
    section.table(context.finish(table));
    if !matches!(section.blocks.last(), Some(crate::document::Block::Table(_))) {
        section.blocks.clear();
    }
    section
}

fn recovery(context: &Context<'_>, benches: &[Bench<'_>]) -> Section {
    let columns = vec![
        Column::text("Run"),
        Column::text("Traffic"),
        Column::number("Frame size", Unit::Bytes),
        Column::number("Throughput", Unit::FramesPerSecond),
        Column::number("Overload", Unit::FramesPerSecond),
        Column::number("Recovery time", Unit::Seconds),
        Column::number("Repetitions", Unit::None),
        Column::text("Note"),
    ];
    let mut table = Table::new("System recovery", columns);
    for bench in benches {
        for row in &bench.findings.recovery {
            let note = if row.is_overloaded { "" } else { "the overload lost no frames each time" };
            table.row(vec![
                Cell::text(context.label(bench.run)),
                Cell::text(row.traffic.clone()),
                Cell::count(row.frame_size.into()),
                Cell::count(row.throughput),
                Cell::count(row.overload),
                Cell::maybe(row.mean_s),
                Cell::count(row.recovery_s.len() as u64),
                Cell::problem(note),
            ]);
        }
    }
    let mut section = Section::new("System recovery", "RFC 2544 section 26.5");
    section.table(context.finish(table));
    section
}

/// "The reset value SHOULD be reported in a simple set of statements, one for each reset type."
fn reset(context: &Context<'_>, benches: &[Bench<'_>]) -> Section {
    let mut section = Section::new("Reset", "RFC 2544 section 26.6, RFC 6201");
    for bench in benches {
        for row in &bench.findings.reset {
            let what = context.series(bench.run, &row.traffic);
            let (lost, unit) = crate::document::scaled(row.by_loss_s, Unit::Seconds);
            let mut text = format!(
                "{what}, {} bytes at {} frames/s: reset time {lost} {unit} by frame loss ({} frames)",
                row.frame_size,
                crate::document::grouped(row.load),
                crate::document::grouped(row.lost),
            );
            if let Some(seconds) = row.by_timestamps_s {
                let (time, unit) = crate::document::scaled(seconds, Unit::Seconds);
                text += &format!(", {time} {unit} by time stamps");
            }
            section.text(text + ".");
        }
    }
    section
}
