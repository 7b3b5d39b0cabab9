//! Ethernet service activation: steps of the configuration test, performance test.

use wirestorm_method::method::{Findings, Method};
use wirestorm_method::y1564::{Service, Test, Y1564, Y1564Findings, Y1564Row};

use super::plain::SERIES_MAX;
use super::{Context, series};
use crate::document::{
    Axis, Cell, Column, Mark, Plot, Point, Section, Series, Style, Table, Unit, scaled,
};

/// Most services that have a plot of their own.
const PLOTS_MAX: usize = 12;

/// Findings of a run and their parameters.
type Bench<'a> = super::Bench<'a, Y1564, Y1564Findings>;

/// Returns the runs with findings of the method.
pub(crate) fn benches<'a>(context: &Context<'a>) -> Vec<Bench<'a>> {
    context.benches(|method, findings| match (method, findings) {
        (Method::Y1564(parameters), Findings::Y1564(findings)) => Some((parameters, findings)),
        _ => None,
    })
}

pub(super) fn sections(context: &Context<'_>) -> Vec<Section> {
    let benches = benches(context);
    if benches.is_empty() {
        return Vec::new();
    }
    vec![
        configuration(context, &benches),
        performance(context, &benches),
        services(context, &benches),
    ]
}

fn is_performance(row: &Y1564Row) -> bool {
    row.test == Test::Performance
}

fn configuration(context: &Context<'_>, benches: &[Bench<'_>]) -> Section {
    let mut section = Section::new("Service configuration test", "ITU-T Y.1564");
    let table = rows(context, benches, "Steps of each service", |row| !is_performance(row));
    if table.rows.is_empty() {
        return section;
    }
    section.text(
        "Each service is alone. Rates are information rates: bits of frames with FCS, of each \
         sending interface. IR is the rate received, FLR the frame loss ratio, FTD the mean one-way \
         delay, FDV its 99.9th percentile minus its minimum. Hollow marks are failed steps.",
    );
    let names = super::rfc2544::traffic(
        benches.iter().flat_map(|bench| &bench.parameters.services).map(|it| &*it.name),
    );
    for name in names.into_iter().take(PLOTS_MAX) {
        section.plot(rate_plot(context, benches, name));
    }
    section.table(table);
    section
}

/// Information rate against offered rate of a service, with the ends of its bandwidth profile.
fn rate_plot(context: &Context<'_>, benches: &[Bench<'_>], name: &str) -> Plot {
    let offered = Axis::linear("Offered rate", Unit::BitsPerSecond);
    let received = Axis::linear("Information rate", Unit::BitsPerSecond);
    let mut plot = Plot::new(&format!("{name}: information rate"), offered, received);
    plot.summary =
        "Received rate at each offered rate; without loss both are equal. Lines mark CIR and \
         CIR + EIR"
            .into();
    plot.hollow = "failed";
    let mut most = 0.0_f64;
    let mut found = Vec::new();
    for bench in benches {
        let of_service = |row: &&Y1564Row| row.service == name && !is_performance(row);
        let rows: Vec<_> = bench.findings.rows.iter().filter(of_service).collect();
        let mut sizes: Vec<u32> = rows.iter().map(|row| row.frame_size).collect();
        sizes.dedup();
        for size in sizes {
            let label = context.series(bench.run, &format!("{size} bytes"));
            let mut series = Series::new(label, Some(bench.run), Style::Line);
            for row in rows.iter().filter(|row| row.frame_size == size) {
                let is_hollow = !row.is_passed();
                series
                    .points
                    .push(Point { is_hollow, ..Point::new(row.load_bps, row.total.ir_bps) });
                most = most.max(row.load_bps);
            }
            series.points.sort_by(|a, b| a.x.total_cmp(&b.x));
            found.push(series);
        }
    }
    if most > 0.0 {
        let mut ideal = Series::new("without loss", None, Style::Reference);
        ideal.points = vec![Point::new(0.0, 0.0), Point::new(most, most)];
        plot.series(ideal);
    }
    found.into_iter().for_each(|series| plot.series(series));
    plot.marks = marks(benches, name);
    plot
}

/// Returns a mark for each different CIR and CIR + EIR of a service.
fn marks(benches: &[Bench<'_>], name: &str) -> Vec<Mark> {
    let mut marks: Vec<Mark> = Vec::new();
    let services = benches.iter().flat_map(|bench| &bench.parameters.services);
    for service in services.filter(|service| service.name == name) {
        let Service { cir_bps, eir_bps, .. } = *service;
        let mut add = |name: &str, bps: u64| {
            let (number, unit) = scaled(bps as f64, Unit::BitsPerSecond);
            let mark = Mark { x: bps as f64, label: format!("{name} {number} {unit}"), run: None };
            if marks.iter().all(|other| other.label != mark.label) {
                marks.push(mark);
            }
        };
        if cir_bps > 0 {
            add("CIR", cir_bps);
        }
        if eir_bps > 0 {
            add("CIR + EIR", cir_bps.saturating_add(eir_bps));
        }
    }
    marks
}

/// Returns the rows of a test as a table.
fn rows(
    context: &Context<'_>,
    benches: &[Bench<'_>],
    caption: &str,
    is_shown: fn(&Y1564Row) -> bool,
) -> Table {
    let rate = |title: &str| Column::number(title, Unit::BitsPerSecond);
    let time = |title: &str| Column::number(title, Unit::Nanoseconds);
    let columns = vec![
        Column::text("Run"),
        Column::text("Service"),
        Column::text("Test"),
        Column::text("Direction"),
        Column::number("Frame size", Unit::Bytes),
        Column::number("Load", Unit::Percent),
        Column::text("Verdict"),
        rate("Offered"),
        rate("IR"),
        Column::number("FLR", Unit::Percent),
        time("FTD"),
        time("FDV"),
        Column::number("Availability", Unit::Percent),
        Column::text("Reason"),
        rate("Least IR").detail(),
        rate("Most IR").detail(),
        Column::number("Sent", Unit::Frames).detail(),
        Column::number("Lost", Unit::Frames).detail(),
        time("Minimum FTD").detail(),
        time("Maximum FTD").detail(),
    ];
    let signed = |value: Option<i64>| Cell::maybe(value.map(|ns| ns as f64));
    let mut table = Table::new(caption, columns);
    for bench in benches {
        for row in bench.findings.rows.iter().filter(|row| is_shown(row)) {
            for it in row.results() {
                let verdict = match it.is_passed() {
                    true => Cell::text("passed"),
                    false => Cell::problem("failed"),
                };
                table.row(vec![
                    Cell::text(context.label(bench.run)),
                    Cell::text(row.service.clone()),
                    Cell::text(row.test.name()),
                    Cell::text(it.direction.clone()),
                    Cell::count(row.frame_size.into()),
                    Cell::Number(row.load_percent),
                    verdict,
                    Cell::Number(row.load_bps),
                    Cell::Number(it.ir_bps),
                    Cell::Number(it.flr * 100.0),
                    Cell::maybe(it.ftd_mean_ns),
                    signed(it.fdv_ns),
                    Cell::maybe(it.availability.map(|part| part * 100.0)),
                    Cell::problem(it.failures.join("; ")),
                    Cell::maybe(row.ir_min_bps),
                    Cell::maybe(row.ir_max_bps),
                    Cell::count(it.offered),
                    Cell::count(it.offered.saturating_sub(it.received)),
                    signed(it.ftd_min_ns),
                    signed(it.ftd_max_ns),
                ]);
            }
        }
    }
    context.finish(table)
}

fn performance(context: &Context<'_>, benches: &[Bench<'_>]) -> Section {
    let mut section = Section::new("Service performance test", "ITU-T Y.1564");
    let table = rows(context, benches, "Services at their CIR", is_performance);
    if table.rows.is_empty() {
        return section;
    }
    section.text(
        "All services send at their CIR at the same time. Availability is the part of the seconds \
         in which at least half of the frames arrived.",
    );
    section.plot(over_time(context, benches));
    section.table(table);
    section
}

/// Frames received of those sent in each second. A file of `--json` has no trials, so no plot.
fn over_time(context: &Context<'_>, benches: &[Bench<'_>]) -> Plot {
    let mut plot = Plot::new(
        "Information rate over time",
        Axis::linear("Time", Unit::Seconds),
        Axis::linear("Information rate", Unit::BitsPerSecond),
    );
    plot.summary = "Rate received of what each service sent in each second".into();
    for bench in benches {
        let trials = &context.runs[bench.run].trials;
        let test = Test::Performance.name();
        let Some(trial) = trials.iter().rfind(|trial| trial.input.test == test) else { continue };
        for (offer, output) in trial.input.offers.iter().zip(&trial.output.offers) {
            let Some(size) = offer.frame_size else { continue };
            for (place, frames) in output.seconds.iter().enumerate() {
                if plot.series.len() >= SERIES_MAX {
                    return plot;
                }
                let direction = match output.paths.get(place) {
                    Some(it) => format!(", {}", it.path),
                    None => String::new(),
                };
                let label = context.series(bench.run, &format!("{}{direction}", offer.traffic));
                let bits: Vec<_> = frames
                    .iter()
                    .map(|&frames| Some(frames as f64 * f64::from(size) * 8.0))
                    .collect();
                plot.series(series::over_time(label, bench.run, &bits, 1.0));
            }
        }
    }
    plot
}

/// Bandwidth profiles and acceptance criteria.
fn services(context: &Context<'_>, benches: &[Bench<'_>]) -> Section {
    let rate = |title: &str| Column::number(title, Unit::BitsPerSecond);
    let bytes = |title: &str| Column::number(title, Unit::Bytes);
    let count = |title: &str| Column::number(title, Unit::None);
    let columns = vec![
        Column::text("Run"),
        Column::text("Service"),
        Column::text("Protocol").detail(),
        Column::text("Frame sizes"),
        count("VLAN").detail(),
        count("PCP").detail(),
        count("DSCP").detail(),
        rate("CIR"),
        rate("EIR"),
        bytes("CBS").detail(),
        bytes("EBS").detail(),
        Column::number("Most FLR", Unit::Percent),
        Column::number("Most FTD", Unit::Seconds),
        Column::number("Most FDV", Unit::Seconds),
        Column::number("Least availability", Unit::Percent),
    ];
    let mut table = Table::new("Bandwidth profiles and acceptance criteria", columns);
    for bench in benches {
        for service in &bench.parameters.services {
            let sizes: Vec<_> = service.frame_sizes.iter().map(u32::to_string).collect();
            let some = |value: u64| Cell::maybe((value > 0).then_some(value as f64));
            let tag = |value: u8| Cell::maybe(service.vlan.map(|_| f64::from(value)));
            let criteria = &service.criteria;
            table.row(vec![
                Cell::text(context.label(bench.run)),
                Cell::text(service.name.clone()),
                Cell::text(service.protocol.clone()),
                Cell::text(sizes.join(", ")),
                Cell::maybe(service.vlan.map(f64::from)),
                tag(service.pcp),
                Cell::count(service.dscp.into()),
                some(service.cir_bps),
                some(service.eir_bps),
                some(service.cbs_bytes),
                some(service.ebs_bytes),
                Cell::Number(criteria.flr * 100.0),
                Cell::maybe(criteria.ftd_s),
                Cell::maybe(criteria.fdv_s),
                Cell::maybe(criteria.availability.map(|part| part * 100.0)),
            ]);
        }
    }
    let mut section = Section::new("Services", "ITU-T Y.1564");
    section.table(context.finish(table));
    section
}

/// Parameters for the report: name and value.
type Field = (&'static str, fn(&Y1564) -> String);
pub(super) const FIELDS: &[Field] = &[
    ("Tests", |method| method.tests.iter().map(|test| test.name()).collect::<Vec<_>>().join(", ")),
    ("Steps of the CIR test", |method| {
        let percent = |part: &f64| format!("{} %", (part * 1e8).round() / 1e6);
        method.cir_steps.iter().map(percent).collect::<Vec<_>>().join(", ")
    }),
    ("Duration of a step", |method| format!("{} s", method.step.as_secs_f64())),
    ("Duration of the performance test", |method| {
        let is_tested = method.tests.contains(&Test::Performance);
        let seconds = method.performance.as_secs_f64();
        if is_tested { format!("{seconds} s") } else { String::new() }
    }),
    ("Tolerance of the information rate", |method| {
        format!("{} %", (method.rate_tolerance * 1e8).round() / 1e6)
    }),
];
