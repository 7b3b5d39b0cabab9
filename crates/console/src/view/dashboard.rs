//! The dashboard: a column for each port, as in TRex's terminal interface.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use wirestorm_api::port::{LinkState, Port};

use super::{Theme, titled};
use crate::command::{link, owner, state};
use crate::model::{Connection, Model};
use crate::number::{count, scaled, shortened, sparkline};
use crate::traffic::PortLine;

/// Width of the names of the rows.
const NAMES: usize = 12;
/// Least and most width of a port, with the gap before it.
const PORT_MIN: usize = 15;
const PORT_MAX: usize = 28;

/// A row: its name, how long it stays on a low terminal (1: always), and its cell.
struct Row {
    name: &'static str,
    priority: u8,
    cell: fn(&Cell<'_>) -> (String, Mark),
}

/// Meaning of a cell, which a colour shows too.
#[derive(Clone, Copy)]
enum Mark {
    Plain,
    Good,
    Bad,
    Graph,
}

/// What a cell is about: a port, or all ports together.
struct Cell<'a> {
    model: &'a Model,
    port: Option<&'a Port>,
    line: PortLine,
    width: usize,
}

impl Cell<'_> {
    fn counter(&self, value: u64) -> (String, Mark) {
        (count(value, self.width), Mark::Plain)
    }

    /// A counter that should be 0.
    fn fault(&self, value: u64) -> (String, Mark) {
        (count(value, self.width), if value == 0 { Mark::Plain } else { Mark::Bad })
    }

    fn graph(&self, is_rx: bool) -> (String, Mark) {
        let Some(port) = self.port else { return (String::new(), Mark::Plain) };
        let (tx, rx) = self.model.traffic.port_history(&port.interface);
        let history = if is_rx { rx } else { tx };
        (sparkline(history.iter(), self.width), Mark::Graph)
    }
}

const ROWS: &[Row] = &[
    Row { name: "owner", priority: 1, cell: owner_cell },
    Row { name: "link", priority: 1, cell: link_cell },
    Row { name: "speed", priority: 4, cell: speed_cell },
    Row { name: "runs", priority: 1, cell: runs_cell },
    Row { name: "tx rate", priority: 1, cell: |it| plain(scaled(it.line.tx.frames, "pps")) },
    Row { name: "tx L1", priority: 1, cell: |it| plain(scaled(it.line.tx.bits_l1(), "b/s")) },
    Row { name: "tx L2", priority: 3, cell: |it| plain(scaled(it.line.tx.bits_l2(), "b/s")) },
    Row { name: "tx load", priority: 2, cell: load_cell },
    Row { name: "rx rate", priority: 1, cell: |it| plain(scaled(it.line.rx.frames, "pps")) },
    Row { name: "rx L1", priority: 2, cell: |it| plain(scaled(it.line.rx.bits_l1(), "b/s")) },
    Row { name: "rx L2", priority: 3, cell: |it| plain(scaled(it.line.rx.bits_l2(), "b/s")) },
    Row { name: "tx frames", priority: 1, cell: |it| it.counter(it.line.tx_frames) },
    Row { name: "rx frames", priority: 1, cell: |it| it.counter(it.line.rx_frames) },
    Row { name: "tx bytes", priority: 4, cell: |it| it.counter(it.line.tx_bytes) },
    Row { name: "rx bytes", priority: 4, cell: |it| it.counter(it.line.rx_bytes) },
    Row { name: "tx failed", priority: 2, cell: |it| it.fault(it.line.tx_failed) },
    Row { name: "tx unsent", priority: 2, cell: |it| it.fault(it.line.tx_unsent) },
    Row { name: "rx dropped", priority: 2, cell: |it| it.fault(it.line.rx_dropped) },
    Row { name: "tx graph", priority: 1, cell: |it| it.graph(false) },
    Row { name: "rx graph", priority: 1, cell: |it| it.graph(true) },
];

fn plain(text: String) -> (String, Mark) {
    (text, Mark::Plain)
}

fn owner_cell(cell: &Cell<'_>) -> (String, Mark) {
    let lease = cell.port.and_then(|port| port.lease.as_ref());
    plain(match (cell.port, lease) {
        (None, _) => String::new(),
        (_, None) => "-".to_owned(),
        (_, Some(lease)) => owner(lease),
    })
}

fn link_cell(cell: &Cell<'_>) -> (String, Mark) {
    let Some(port) = cell.port else { return plain(String::new()) };
    let mark = if port.link == LinkState::Up { Mark::Good } else { Mark::Bad };
    (link(port.link).to_owned(), mark)
}

fn speed_cell(cell: &Cell<'_>) -> (String, Mark) {
    let Some(port) = cell.port else { return plain(String::new()) };
    plain(port.speed_bps.map_or_else(|| "-".to_owned(), |it| scaled(it as f64, "b/s")))
}

fn runs_cell(cell: &Cell<'_>) -> (String, Mark) {
    let Some(port) = cell.port else {
        return plain(cell.model.active().count().to_string());
    };
    match port.runs.as_slice() {
        [] => plain("idle".to_owned()),
        [run] => {
            let run = cell.model.runs.iter().find(|it| it.id == *run);
            let text = run.map_or("active", |run| state(run));
            (text.to_owned(), Mark::Good)
        }
        runs => (format!("{} runs", runs.len()), Mark::Good),
    }
}

fn load_cell(cell: &Cell<'_>) -> (String, Mark) {
    let speed = cell.port.and_then(|port| port.speed_bps).filter(|speed| *speed > 0);
    plain(match (cell.port, speed) {
        (None, _) => String::new(),
        (_, None) => "-".to_owned(),
        (_, Some(speed)) => format!("{:.1} %", 100.0 * cell.line.tx.bits_l1() / speed as f64),
    })
}

pub(super) fn draw(frame: &mut Frame, area: Rect, model: &Model) {
    let theme = Theme::of(model);
    let all = model.shown_ports();
    let columns = usize::from(area.width).saturating_sub(NAMES);
    // A place for all ports together, if there is more than one.
    let places = (columns / PORT_MIN).max(1);
    let with_total = all.len() > 1 && places > 1;
    let room = places - usize::from(with_total);
    let first = model.offset.min(all.len().saturating_sub(room));
    let shown = &all[first..(first + room).min(all.len())];
    let hidden = model.ports.len() - all.len();
    let mut title = "Dashboard".to_owned();
    if shown.len() < all.len() {
        let last = first + shown.len();
        title += &format!(" - ports {} to {last} of {} (arrows scroll)", first + 1, all.len());
    }
    if hidden > 0 {
        title += &format!(" - {hidden} hidden (a shows all)");
    }
    let inner = titled(frame, area, &title, theme);
    if shown.is_empty() {
        let text = match (&model.connection, hidden) {
            (Connection::Up, 0) => "The server has no ports.",
            (Connection::Up, _) => "No port fits: press a to show all, or acquire one.",
            _ => "",
        };
        return frame.render_widget(Paragraph::new(text), inner);
    }
    let count = shown.len() + usize::from(with_total);
    let width = (columns / count).clamp(PORT_MIN, PORT_MAX);
    let lines = model.traffic.port_lines();
    let line = |port: &Port| lines.get(&port.interface).cloned().unwrap_or_default();
    let mut cells: Vec<Cell> = shown
        .iter()
        .map(|(_, port)| Cell { model, port: Some(*port), line: line(port), width: width - 1 })
        .collect();
    if with_total {
        let mut total = PortLine::default();
        all.iter().for_each(|(_, port)| total.add(&line(port)));
        cells.push(Cell { model, port: None, line: total, width: width - 1 });
    }
    let mut heads = vec![Span::raw(format!("{:NAMES$}", ""))];
    for (number, port) in shown {
        let name = shortened(&format!("{number} {}", port.name), width - 1);
        heads.push(Span::styled(format!(" {name:>width$}", width = width - 1), theme.head()));
    }
    if with_total {
        heads.push(Span::styled(format!("{:>width$}", "all"), theme.head()));
    }
    let mut lines = vec![Line::from(heads)];
    for row in rows(usize::from(inner.height).saturating_sub(1)) {
        let mut spans = vec![Span::styled(format!("{:NAMES$}", row.name), theme.head())];
        for cell in &cells {
            let (text, mark) = (row.cell)(cell);
            let text = shortened(&text, cell.width);
            let style = match mark {
                Mark::Plain => Style::new(),
                Mark::Good => theme.good(),
                Mark::Bad => theme.bad(),
                Mark::Graph => theme.graph(),
            };
            spans.push(Span::styled(format!(" {text:>width$}", width = cell.width), style));
        }
        lines.push(Line::from(spans));
    }
    frame.render_widget(Paragraph::new(lines), inner);
}

/// Returns the rows that fit: the least important ones are left out first.
fn rows(height: usize) -> Vec<&'static Row> {
    let fitting = |most: u8| ROWS.iter().filter(move |row| row.priority <= most);
    let most = (1..=4).rev().find(|most| fitting(*most).count() <= height).unwrap_or(1);
    let next = most + 1;
    // Rows of the next priority fill the rest, in their order.
    let mut spare = height.saturating_sub(fitting(most).count());
    let mut chosen = Vec::new();
    for row in ROWS {
        let is_next = row.priority == next && spare > 0;
        spare -= usize::from(is_next);
        if row.priority <= most || is_next {
            chosen.push(row);
        }
    }
    chosen.truncate(height);
    chosen
}
