//! MLRsearch: bounds of all goals (RFC 9971).

use std::collections::BTreeSet;

use wirestorm_method::method::{Findings, Method};
use wirestorm_method::mlrsearch::{Mlrsearch, MlrsearchFindings, MlrsearchRow};
use wirestorm_method::search::mlrsearch::GoalResult;

use super::Context;
use crate::document::{Axis, Cell, Column, Plot, Point, Section, Series, Style, Table, Unit};

/// Findings of a run and their parameters.
type Bench<'a> = super::Bench<'a, Mlrsearch, MlrsearchFindings>;

/// Returns the runs with findings of MLRsearch.
pub(crate) fn benches<'a>(context: &Context<'a>) -> Vec<Bench<'a>> {
    context.benches(|method, findings| match (method, findings) {
        (Method::Mlrsearch(parameters), Findings::Mlrsearch(findings)) => {
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
    let mut section = Section::new("MLRsearch", "RFC 9971");
    section.text(
        "Loads are in frames per second of each transmitting interface. The relevant lower bound \
         is the largest load that meets a goal below the relevant upper bound, which is the \
         smallest load that fails it. Results marked as irregular do not satisfy all conditions of \
         RFC 9971; their marks are hollow.",
    );
    section.plot(bounds(context, &benches));
    section.table(results(context, &benches));
    section.table(goals(context, &benches));
    vec![section]
}

fn bounds(context: &Context<'_>, benches: &[Bench<'_>]) -> Plot {
    let rows = || benches.iter().flat_map(|bench| &bench.findings.searches);
    let sizes: Vec<u32> =
        rows().map(|row| row.frame_size).collect::<BTreeSet<_>>().into_iter().collect();
    let names = sizes.iter().map(u32::to_string).collect();
    let size = Axis::categories("Frame size (bytes with FCS)", names);
    let load = Axis::linear("Load, share of the maximum", Unit::Percent);
    let mut plot = Plot::new("Bounds of the goals", size, load.range(0.0, 100.0));
    plot.summary = "Relevant lower and upper bound of each goal at each frame size".into();
    for bench in benches {
        let mut labels: Vec<(String, String)> = Vec::new();
        for row in &bench.findings.searches {
            for result in &row.results {
                let label = (row.traffic.clone(), result.goal.clone());
                if !labels.contains(&label) {
                    labels.push(label);
                }
            }
        }
        for (traffic, goal) in labels {
            let label = context.series(bench.run, &format!("{traffic} {goal}"));
            let mut series = Series::new(label, Some(bench.run), Style::Ranges);
            let rows = bench.findings.searches.iter().filter(|row| row.traffic == traffic);
            for row in rows {
                let result = row.results.iter().find(|result| result.goal == goal);
                series.points.extend(result.and_then(|it| range(row, it, &sizes)));
            }
            series.points.sort_by(|a, b| a.x.total_cmp(&b.x));
            plot.series(series);
        }
    }
    plot
}

/// Returns the bounds in percent of the line rate.
fn range(row: &MlrsearchRow, result: &GoalResult, sizes: &[u32]) -> Option<Point> {
    let percent = |load: u64| load as f64 * 100.0 / row.line_rate.max(1) as f64;
    let low = result.lower.or(result.upper).map(percent)?;
    let high = result.upper.or(result.lower).map(percent)?;
    let x = sizes.binary_search(&row.frame_size).unwrap_or(0) as f64;
    let is_hollow = !result.is_regular || row.is_tester_limited;
    Some(Point { x, y: Some(high), low: Some(low), is_hollow })
}

fn results(context: &Context<'_>, benches: &[Bench<'_>]) -> Table {
    let rate = |title: &str| Column::number(title, Unit::FramesPerSecond);
    let columns = vec![
        Column::text("Run"),
        Column::text("Traffic"),
        Column::number("Frame size", Unit::Bytes),
        Column::text("Goal"),
        Column::text("Result"),
        rate("Lower bound"),
        rate("Upper bound"),
        rate("Conditional throughput"),
        rate("Theoretical maximum").detail(),
        rate("Max Load").detail(),
        Column::number("Lower bound, share", Unit::Percent).detail(),
        Column::number("Trials", Unit::None).detail(),
        Column::number("Time in trials", Unit::Seconds).detail(),
        Column::text("Note").detail(),
    ];
    let mut table = Table::new("Results of the goals, loads of each interface", columns);
    for bench in benches {
        for row in &bench.findings.searches {
            for result in &row.results {
                let maybe = |value: Option<u64>| Cell::maybe(value.map(|it| it as f64));
                let limited =
                    "the tester did not reach the load of some trials; unsent frames count as lost";
                let percent = |load| load as f64 * 100.0 / row.line_rate.max(1) as f64;
                table.row(vec![
                    Cell::text(context.label(bench.run)),
                    Cell::text(row.traffic.clone()),
                    Cell::count(row.frame_size.into()),
                    Cell::text(result.goal.clone()),
                    match (result.is_regular, row.is_tester_limited) {
                        (true, false) => Cell::text("regular"),
                        (true, true) => Cell::problem("regular, tester-limited"),
                        (false, false) => Cell::problem("irregular"),
                        (false, true) => Cell::problem("irregular, tester-limited"),
                    },
                    maybe(result.lower),
                    maybe(result.upper),
                    Cell::maybe(result.conditional_throughput.map(f64::round)),
                    Cell::count(row.line_rate),
                    Cell::count(row.max_load),
                    Cell::maybe(result.lower.map(percent)),
                    Cell::count(row.trials.into()),
                    Cell::Number(row.trial_seconds),
                    Cell::problem(if row.is_tester_limited { limited } else { "" }),
                ]);
            }
        }
    }
    context.finish(table)
}

/// RFC 9971 section 4.9.3: the Manager "MUST report all applied attribute values".
fn goals(context: &Context<'_>, benches: &[Bench<'_>]) -> Table {
    let columns = vec![
        Column::text("Run"),
        Column::text("Goal"),
        Column::number("Final trial", Unit::Seconds),
        Column::number("Duration sum", Unit::Seconds),
        Column::number("Loss ratio", Unit::Percent),
        Column::number("Exceed ratio", Unit::Percent),
        Column::number("Initial trial", Unit::Seconds),
        Column::number("Width, relative", Unit::Percent),
        Column::text("Note"),
    ];
    let mut table = Table::new("Search goals", columns);
    for bench in benches {
        for goal in &bench.parameters.goals {
            let minute = 60.0;
            let is_rfc2544 = goal.final_trial.as_secs_f64() == minute
                && goal.duration_sum.as_secs_f64() == minute
                && goal.loss_ratio == 0.0
                && goal.exceed_ratio == 0.0;
            table.row(vec![
                Cell::text(context.label(bench.run)),
                Cell::text(goal.name.clone()),
                Cell::Number(goal.final_trial.as_secs_f64()),
                Cell::Number(goal.duration_sum.as_secs_f64()),
                Cell::Number(goal.loss_ratio * 100.0),
                Cell::Number(goal.exceed_ratio * 100.0),
                Cell::Number(goal.initial_trial.as_secs_f64()),
                Cell::Number(goal.width * 100.0),
                Cell::text(if is_rfc2544 { "RFC 2544-compliant throughput" } else { "" }),
            ]);
        }
    }
    context.finish(table)
}
