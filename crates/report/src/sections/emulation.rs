//! Emulated clients and servers: connections, times, transactions, failures.

use wirestorm_control::result::{FlowSeries, RunResult, TimesReport};

use super::delays::{self, Times};
use super::plain::{ROWS_MAX, SERIES_MAX, results};
use super::{Context, series};
use crate::document::{Axis, Cell, Column, Plot, Section, Table, Unit};

pub(super) fn sections(context: &Context<'_>) -> Vec<Section> {
    let results = results(context);
    vec![
        connections(context, &results),
        over_time(context, &results),
        times(context, &results),
        transactions(context, &results),
        failures(context, &results),
        sessions(context, &results),
    ]
}

fn connections(context: &Context<'_>, results: &[(usize, &RunResult)]) -> Section {
    let count = |title: &str| Column::number(title, Unit::None);
    let columns = vec![
        Column::text("Run"),
        Column::text("Port"),
        count("Closed"),
        count("Failed"),
        count("Refused"),
        count("Reset by the peer"),
        count("SYN timeout"),
        count("Retransmission timeout").detail(),
        count("Program failed").detail(),
        count("Most at a time"),
        count("Open at the end"),
        count("Started late").detail(),
    ];
    let mut table = Table::new("Connections and UDP flows of each port", columns);
    for &(run, result) in results {
        for port in &result.ports {
            let Some(connections) = &port.connections else { continue };
            let flows = &connections.flows;
            table.row(vec![
                Cell::text(context.label(run)),
                Cell::text(port.name.clone()),
                Cell::count(flows.closed),
                Cell::count(flows.failed),
                Cell::count(flows.refused),
                Cell::count(flows.reset),
                Cell::count(flows.syn_timeout),
                Cell::count(flows.retransmission_timeout),
                Cell::count(flows.program_failed),
                Cell::count(flows.active_max),
                Cell::count(flows.active),
                Cell::count(flows.late),
            ]);
        }
    }
    let mut section = Section::new("Connections", "");
    section.table(context.finish(table));
    section
}

fn over_time(context: &Context<'_>, results: &[(usize, &RunResult)]) -> Section {
    let plot = |title: &str, summary: &str, label: &str, unit: Unit| {
        let time = Axis::linear("Time", Unit::Seconds);
        let mut plot = Plot::new(title, time, Axis::linear(label, unit));
        plot.summary = summary.to_owned();
        plot
    };
    let mut opened = plot(
        "New connections over time",
        "Connections and UDP flows started per second on each port",
        "New connections",
        Unit::PerSecond,
    );
    let mut concurrent = plot(
        "Concurrent connections over time",
        "Open connections and UDP flows at the end of each interval",
        "Concurrent connections",
        Unit::None,
    );
    let mut failed = plot(
        "Failed connections over time",
        "Failed connections and UDP flows per second",
        "Failed connections",
        Unit::PerSecond,
    );
    let mut goodput = plot(
        "Goodput over time",
        "Received payload in bit/s on each port",
        "Received payload",
        Unit::BitsPerSecond,
    );
    let ports = results.iter().flat_map(|(run, result)| {
        result.ports.iter().filter_map(move |port| Some((*run, port, port.connections.as_ref()?)))
    });
    for (run, port, connections) in ports.take(SERIES_MAX) {
        let FlowSeries { interval_s, last_interval_s, .. } = connections.series;
        if interval_s <= 0.0 {
            continue;
        }
        let label = || context.series(run, &port.name);
        let rate =
            |counts: &[u64]| series::rates(label(), run, counts, interval_s, last_interval_s);
        let values =
            |values: Vec<Option<f64>>| series::over_time(label(), run, &values, interval_s);
        let report = &connections.series;
        opened.series(rate(&report.opened));
        concurrent.series(values(report.concurrent.iter().map(|it| Some(*it as f64)).collect()));
        if report.failed.iter().any(|count| *count > 0) {
            failed.series(rate(&report.failed));
        }
        goodput.series(values(report.goodput_bps.iter().map(|it| Some(*it)).collect()));
    }
    let mut section = Section::new("Connections over time", "");
    [opened, concurrent, failed, goodput].into_iter().for_each(|plot| section.plot(plot));
    section
}

/// Kinds of connection times.
type TimesKind = (&'static str, fn(&TimesReport) -> &wirestorm_control::result::HistogramReport);
const KINDS: [TimesKind; 4] = [
    ("connect", |times| &times.connect),
    ("first byte", |times| &times.time_to_first_byte),
    ("duration", |times| &times.duration),
    ("round trip", |times| &times.round_trip),
];

fn times(context: &Context<'_>, results: &[(usize, &RunResult)]) -> Section {
    let mut times = Vec::new();
    for &(run, result) in results {
        for port in &result.ports {
            let Some(connections) = &port.connections else { continue };
            times.extend(KINDS.iter().filter_map(|(name, part)| {
                let report = part(&connections.times);
                let what = format!("{}, {name}", port.name);
                (report.count > 0).then(|| Times::of_histogram(run, what, report))
            }));
        }
    }
    let mut section = Section::new("Connection times", "");
    if times.is_empty() {
        return section;
    }
    section.text(
        "A time starts when the SYN is due (client) or arrives (server): to the established \
         connection, to the first payload byte, and to the end without TIME-WAIT. Round trip is \
         TCP's own sample.",
    );
    let shown = &times[..times.len().min(SERIES_MAX)];
    let plots = delays::plots(context, "Connection times", "Time", shown);
    plots.into_iter().for_each(|plot| section.plot(plot));
    section.table(delays::table(context, "Connection times", "Port and time", &times));
    section
}

fn transactions(context: &Context<'_>, results: &[(usize, &RunResult)]) -> Section {
    let mut times = Vec::new();
    for &(run, result) in results {
        for port in &result.ports {
            for template in &port.templates {
                times.extend(template.transactions.iter().filter(|it| it.time.count > 0).map(
                    |it| {
                        let what = format!("{} {}", template.name, it.name);
                        Times::of_histogram(run, what, &it.time)
                    },
                ));
            }
        }
    }
    let mut section = Section::new("Transactions", "");
    if times.is_empty() {
        return section;
    }
    let shown = &times[..times.len().min(SERIES_MAX)];
    let plots = delays::plots(context, "Transaction times", "Transaction time", shown);
    plots.into_iter().for_each(|plot| section.plot(plot));
    let rows = &times[..times.len().min(ROWS_MAX)];
    section.table(delays::table(context, "Transaction times", "Transaction", rows));
    section
}

fn failures(context: &Context<'_>, results: &[(usize, &RunResult)]) -> Section {
    let columns = vec![
        Column::text("Run"),
        Column::text("Template"),
        Column::text("Side"),
        Column::text("Step"),
        Column::text("Cause"),
        Column::number("Flows", Unit::None),
        Column::text("Expected").detail(),
        Column::text("Received").detail(),
    ];
    let mut table = Table::new("Failed programs by step and cause", columns);
    for &(run, result) in results {
        let templates = result.ports.iter().flat_map(|port| &port.templates);
        for template in templates {
            for failure in &template.failures {
                if table.rows.len() >= ROWS_MAX {
                    break;
                }
                table.row(vec![
                    Cell::text(context.label(run)),
                    Cell::text(template.name.clone()),
                    Cell::text(template.side.clone()),
                    Cell::text(failure.step.clone()),
                    Cell::text(failure.cause.clone()),
                    Cell::count(failure.flows),
                    Cell::text(failure.expected.clone().unwrap_or_default()),
                    Cell::text(failure.found.clone()),
                ]);
            }
        }
    }
    let mut section = Section::new("Failures", "");
    section.table(context.finish(table));
    section
}

fn sessions(context: &Context<'_>, results: &[(usize, &RunResult)]) -> Section {
    let columns = vec![
        Column::text("Run"),
        Column::text("Port"),
        Column::text("Counter"),
        Column::number("Value", Unit::None),
    ];
    let mut table = Table::new("TLS and HTTP", columns);
    for &(run, result) in results {
        for port in &result.ports {
            let Some(connections) = &port.connections else { continue };
            let mut add = |name: String, value: u64| {
                let port = Cell::text(port.name.clone());
                let run = Cell::text(context.label(run));
                table.row(vec![run, port, Cell::text(name), Cell::count(value)]);
            };
            if let Some(tls) = &connections.tls {
                add("TLS full handshakes".into(), tls.full_handshakes);
                add("TLS resumed handshakes".into(), tls.resumed_handshakes);
                tls.failures
                    .iter()
                    .for_each(|(cause, it)| add(format!("TLS failed: {cause}"), *it));
            }
            if let Some(http) = &connections.http1 {
                add("HTTP/1.1 requests".into(), http.requests);
                http.responses.iter().for_each(|(class, it)| add(format!("HTTP/1.1 {class}"), *it));
                add("HTTP/1.1 incomplete responses".into(), http.missing);
            }
            if let Some(http) = &connections.http2 {
                add("HTTP/2 requests".into(), http.requests);
                http.responses.iter().for_each(|(class, it)| add(format!("HTTP/2 {class}"), *it));
                add("HTTP/2 resets".into(), http.resets);
            }
        }
    }
    let mut section = Section::new("TLS and HTTP", "");
    section.table(context.finish(table));
    section
}
