//! The other views: a row for each flow, port or run.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::grid::{self, left, right};
use super::{Theme, titled};
use crate::command::{state, state_name};
use crate::histogram::{bar, rows as histogram_rows};
use crate::model::Model;
use crate::number::{count, elapsed, nanoseconds, scaled, sparkline};
use crate::traffic::Histograms;

fn or_none<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), text)
}

pub(super) fn streams(frame: &mut Frame, area: Rect, model: &Model) {
    let theme = Theme::of(model);
    let flows = model.traffic.flows();
    let title = match flows.len() {
        0 => "Streams".to_owned(),
        1 => "Streams - 1 flow (missing: sent, but not arrived yet)".to_owned(),
        flows => format!("Streams - {flows} flows (missing: sent, but not arrived yet)"),
    };
    let inner = titled(frame, area, &title, theme);
    let columns = [
        left("flow", 14),
        right("tx", 9),
        right("rx", 9),
        right("tx L1", 9),
        right("tx frames", 11),
        right("rx frames", 11),
        right("missing", 9),
        right("duplicated", 10),
        right("reordered", 10),
        right("unsent", 9),
    ];
    let rows: Vec<Vec<String>> = flows
        .iter()
        .map(|flow| {
            let received = flow.received.as_ref();
            vec![
                flow.name.to_string(),
                match flow.is_paused {
                    true => "paused".to_owned(),
                    false => scaled(flow.tx.frames, "pps"),
                },
                or_none(received, |_| scaled(flow.rx.frames, "pps")),
                scaled(flow.tx.bits_l1(), "b/s"),
                count(flow.tx_frames, 11),
                or_none(received, |it| count(it.frames, 11)),
                or_none(received, |it| count(it.missing, 9)),
                or_none(received, |it| count(it.duplicated, 10)),
                or_none(received, |it| count(it.reordered, 10)),
                count(flow.tx_unsent, 9),
            ]
        })
        .collect();
    let none = "No flows. Start a plan: press :, then start -f PLAN -p PORT";
    grid::draw(frame, inner, theme, &columns, &rows, (model.offset, None), none);
}

pub(super) fn latency(frame: &mut Frame, area: Rect, model: &Model) {
    const GRAPH: usize = 20;
    let theme = Theme::of(model);
    let title = "Latency since the start of the run (now: last second) - l shows histograms";
    let inner = titled(frame, area, title, theme);
    let columns = [
        left("flow, or probe", 14),
        right("mean", 9),
        right("now", 9),
        right("p50", 9),
        right("p99", 9),
        right("max", 9),
        right("jitter", 9),
        right("min", 9),
        left("", GRAPH),
        right("samples", 11),
        left("", 30),
    ];
    let flows = model.traffic.flows();
    let flow_rows = flows.iter().filter_map(|flow| {
        let delay = flow.received.as_ref()?.delay.as_ref()?;
        let history = model.traffic.delay_history(flow);
        Some(vec![
            flow.name.to_string(),
            nanoseconds(delay.mean_ns),
            or_none(delay.recent_ns, nanoseconds),
            or_none(delay.p50_ns, nanoseconds),
            or_none(delay.p99_ns, nanoseconds),
            or_none(delay.max_ns, nanoseconds),
            or_none(delay.jitter_ns, nanoseconds),
            or_none(delay.min_ns, nanoseconds),
            history.map_or_else(String::new, |it| sparkline(it.iter(), GRAPH)),
            count(delay.samples, 11),
        ])
    });
    let probes = model.traffic.probes();
    let probe_rows = probes.iter().map(|probe| {
        let delay = probe.delay.as_ref();
        vec![
            probe.name.clone(),
            or_none(delay, |it| nanoseconds(it.mean_ns)),
            "-".to_owned(),
            "-".to_owned(),
            "-".to_owned(),
            or_none(delay.and_then(|it| it.max_ns), nanoseconds),
            "-".to_owned(),
            "-".to_owned(),
            format!("{} of {}", probe.received, probe.sent),
            count(probe.received, 11),
        ]
    });
    let rows: Vec<Vec<String>> = flow_rows.chain(probe_rows).collect();
    let none = "No delays. Flows need `metrics: {enable: true}` in the plan.";
    grid::draw(frame, inner, theme, &columns, &rows, (model.offset, None), none);
}

/// Frames in ranges of delays: a column for each flow that has room, and one for all.
pub(super) fn histograms(frame: &mut Frame, area: Rect, model: &Model) {
    const BAR: usize = 14;
    const FLOW: usize = 10;
    let theme = Theme::of(model);
    let mut columns = vec![left("delay", 24), right("frames", FLOW), left("", BAR)];
    let (fixed, spare) = grid::fit(&columns, area);
    let room = if fixed == columns.len() { spare / (1 + FLOW) } else { 0 };
    let first = model.first_flow.min(model.traffic.histogram_count().saturating_sub(1));
    let histograms = model.traffic.histograms(first..first + room);
    let inner = titled(frame, area, &histograms_title(&histograms, first), theme);
    if histograms.count > 1 {
        columns[1].head = "all flows";
        columns.extend(histograms.chosen.iter().map(|line| right(&line.name, FLOW)));
    }
    let height = usize::from(inner.height).saturating_sub(1);
    let rows = histogram_rows(&histograms.total, &histograms.chosen, height);
    let most = rows.iter().map(|row| row.total).max().unwrap_or(0);
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let all = [row.range(), count(row.total, FLOW), bar(row.total, most, BAR)];
            all.into_iter().chain(row.counts.iter().map(|value| count(*value, FLOW))).collect()
        })
        .collect();
    let none = "No delays. Flows need `metrics: {enable: true}` in the plan.";
    grid::draw(frame, inner, theme, &columns, &rows, (model.offset, None), none);
}

/// Returns the title of histograms. `first`: index of the first flow with a column.
fn histograms_title(histograms: &Histograms, first: usize) -> String {
    let Histograms { count, left_out, chosen, .. } = histograms;
    let all = match left_out {
        0 => count.to_string(),
        _ => format!("the first {count} of {}", count + left_out),
    };
    let last = first + chosen.len();
    let shown = match chosen.len() {
        _ if *count < 2 => return "Latency histogram - l shows the table".to_owned(),
        // No column has room.
        0 => return format!("Latency histogram of {all} flows - l shows the table"),
        1 => format!("flow {last}"),
        _ => format!("flows {}-{last}", first + 1),
    };
    format!("Latency histograms - {shown} of {all} - ← → scroll, l table")
}

pub(super) fn connections(frame: &mut Frame, area: Rect, model: &Model) {
    let theme = Theme::of(model);
    let inner = titled(frame, area, "Connections of clients and servers", theme);
    let columns = [
        left("port", 10),
        right("new", 10),
        right("active", 9),
        right("established", 11),
        right("failed", 8),
        right("resent", 8),
        right("tx data", 9),
        right("rx data", 9),
        left("run", 30),
    ];
    let lines = model.traffic.connections();
    let rows: Vec<Vec<String>> = lines
        .iter()
        .map(|line| {
            vec![
                line.port.clone(),
                scaled(line.rate, "/s"),
                count(line.active, 9),
                count(line.established, 11),
                count(line.failed, 8),
                count(line.retransmitted, 8),
                scaled(8.0 * line.tx_bytes_rate, "b/s"),
                scaled(8.0 * line.rx_bytes_rate, "b/s"),
                line.run.clone(),
            ]
        })
        .collect();
    let none = "No connections. Plans of clients and servers have them.";
    grid::draw(frame, inner, theme, &columns, &rows, (model.offset, None), none);
}

pub(super) fn cpu(frame: &mut Frame, area: Rect, model: &Model) {
    let theme = Theme::of(model);
    let inner = titled(frame, area, "CPU time of the workers (100 % is one CPU)", theme);
    let columns = [
        left("run", 27),
        left("state", 9),
        right("time", 8),
        right("CPU", 6),
        right("per frame", 9),
        left("", 14),
        right("done", 6),
        left("note", 24),
    ];
    const GRAPH: usize = 14;
    let lines = model.traffic.cpu();
    let rows: Vec<Vec<String>> = lines
        .iter()
        .map(|line| {
            let history = model.traffic.cpu_history(&line.run);
            vec![
                line.run.clone(),
                state_name(line.state, line.is_paused).to_owned(),
                elapsed(line.elapsed_s),
                format!("{:.0} %", 100.0 * line.load),
                or_none(line.per_frame_ns, nanoseconds),
                history.map_or_else(String::new, |it| sparkline(it.iter(), GRAPH)),
                or_none(line.fraction, |it| format!("{:.0} %", 100.0 * it)),
                line.waiting_for.clone().unwrap_or_default(),
            ]
        })
        .collect();
    let none = "No runs since the console started.";
    grid::draw(frame, inner, theme, &columns, &rows, (model.offset, None), none);
}

pub(super) fn runs(frame: &mut Frame, area: Rect, model: &Model) {
    let theme = Theme::of(model);
    let title = match model.runs_total > model.runs.len() {
        true => {
            let (read, all) = (model.runs.len(), model.runs_total);
            format!("Runs - {read} of {all}, more at the end - Enter shows the report")
        }
        false => "Runs - the newest first - Enter shows the report".to_owned(),
    };
    let inner = titled(frame, area, &title, theme);
    let columns = [
        left("run", 27),
        left("name", 12),
        left("state", 9),
        left("outcome", 11),
        right("figure", 14),
        left("user", 10),
        left("interfaces", 24),
    ];
    let rows: Vec<Vec<String>> = model
        .runs
        .iter()
        .map(|run| {
            vec![
                run.id.clone(),
                run.name.clone().unwrap_or_default(),
                state(run).to_owned(),
                run.outcome.clone().unwrap_or_default().replace('_', " "),
                run.figure.as_ref().map_or_else(String::new, |it| scaled(it.value, &it.unit)),
                run.user.clone().unwrap_or_else(|| "-".to_owned()),
                run.interfaces.join(" "),
            ]
        })
        .collect();
    let selected = Some(model.offset.min(rows.len().saturating_sub(1)));
    grid::draw(frame, inner, theme, &columns, &rows, (0, selected), "No runs.");
}
