//! Draws the model. Pure: the same model gives the same screen.

mod dashboard;
mod grid;
mod tables;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, Paragraph, Wrap};

use crate::model::{Connection, Model, View};
use crate::number::{elapsed, shortened};

/// Smallest terminal with tables.
const COLUMNS_MIN: u16 = 40;
const ROWS_MIN: u16 = 12;
/// Height from which the log is longer.
const TALL: u16 = 34;

/// Keys, for the help.
pub(crate) const KEYS: &str = "
Keys of the tables:
  d s l t u R      dashboard, streams, latency, connections, CPU, runs; Tab: next table
  :                command line, also / and i; Esc leaves it
  l                in latency: table, or histograms; Left and Right: other flows
  p r              pause and resume your runs; r also resumes paused flows
  c                count from now on; delays in the table stay those of the run
  o                own ports only, or all
  0-9              hide or show the port with this number
  a n              show all ports
  arrows, PgUp     scroll; Enter in runs: report on the selected run
  h ?              this help
  q                leave

Keys of the command line:
  Tab              complete; a second list shows the candidates
  Up Down          history: lines that begin with the text
  Ctrl-A Ctrl-E Ctrl-W Ctrl-U Ctrl-K Ctrl-Y Alt-B Alt-F    as in readline
";

/// Draws the screen.
pub(crate) fn draw(frame: &mut Frame, model: &Model) {
    let area = frame.area();
    if area.width < COLUMNS_MIN || area.height < ROWS_MIN {
        return draw_too_small(frame, area);
    }
    let log_rows = if area.height >= TALL { 8 } else { 4 };
    let rows = [
        Constraint::Length(1),
        Constraint::Min(3),
        Constraint::Length(log_rows),
        Constraint::Length(1),
        Constraint::Length(2),
    ];
    let [header, main, log, prompt, keys] = Layout::vertical(rows).areas(area);
    draw_header(frame, header, model);
    match &model.page {
        Some(_) => draw_page(frame, main.union(log), model),
        None => {
            draw_view(frame, main, model);
            draw_log(frame, log, model);
        }
    }
    draw_prompt(frame, prompt, model);
    draw_keys(frame, keys, model);
}

fn draw_too_small(frame: &mut Frame, area: Rect) {
    let text = format!(
        "The terminal has {} columns and {} rows; the console needs {COLUMNS_MIN} and {ROWS_MIN}. \
         Enlarge it, or press q.",
        area.width, area.height
    );
    frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
}

/// Styles: colour adds to words, and is never the only sign.
#[derive(Clone, Copy)]
pub(crate) struct Theme {
    with_color: bool,
}

impl Theme {
    pub(crate) fn of(model: &Model) -> Self {
        Self { with_color: model.with_color }
    }

    fn color(self, style: Style, color: Color) -> Style {
        if self.with_color { style.fg(color) } else { style }
    }

    pub(crate) fn head(self) -> Style {
        self.color(Style::new().add_modifier(Modifier::BOLD), Color::Cyan)
    }

    pub(crate) fn bad(self) -> Style {
        self.color(Style::new().add_modifier(Modifier::BOLD), Color::Red)
    }

    pub(crate) fn good(self) -> Style {
        self.color(Style::new(), Color::Green)
    }

    pub(crate) fn graph(self) -> Style {
        self.color(Style::new(), Color::Yellow)
    }

    fn bar(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}

fn draw_header(frame: &mut Frame, area: Rect, model: &Model) {
    let theme = Theme::of(model);
    let state = match &model.connection {
        Connection::Connecting => "connecting".to_owned(),
        Connection::Up => format!("{} active", model.active().count()),
        Connection::Lost { since, .. } => {
            let seconds = model.now.saturating_duration_since(*since).as_secs_f64();
            format!("NO CONNECTION for {}", elapsed(seconds))
        }
    };
    let place = match model.is_own_server() {
        true => "server of this console".to_owned(),
        false => model.server.clone(),
    };
    let user = model.identity.as_ref().map_or_else(String::new, |it| {
        let session = if it.session.is_empty() { "" } else { "/" };
        format!(" as {}{session}{}", it.user, it.session)
    });
    let columns = usize::from(area.width);
    let room = columns.saturating_sub(state.chars().count() + 3);
    let left = shortened(&format!("Wirestorm  {place}{user}"), room);
    let gap = columns.saturating_sub(left.chars().count() + state.chars().count() + 2);
    let line = format!(" {left}{}{state} ", " ".repeat(gap));
    let is_lost = matches!(model.connection, Connection::Lost { .. });
    let style = if is_lost { theme.bad().patch(theme.bar()) } else { theme.bar() };
    frame.render_widget(Paragraph::new(line).style(style), area);
}

/// Draws a rule with a title, and returns the area below it.
fn titled(frame: &mut Frame, area: Rect, title: &str, theme: Theme) -> Rect {
    let title = Span::styled(format!(" {title} "), theme.head());
    let block = Block::new().borders(Borders::TOP).title(title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    inner
}

fn draw_view(frame: &mut Frame, area: Rect, model: &Model) {
    match model.view {
        View::Dashboard => dashboard::draw(frame, area, model),
        View::Streams => tables::streams(frame, area, model),
        View::Latency if model.with_histograms => tables::histograms(frame, area, model),
        View::Latency => tables::latency(frame, area, model),
        View::Connections => tables::connections(frame, area, model),
        View::Cpu => tables::cpu(frame, area, model),
        View::Runs => tables::runs(frame, area, model),
    }
}

fn draw_log(frame: &mut Frame, area: Rect, model: &Model) {
    let theme = Theme::of(model);
    if !model.editor.candidates.is_empty() {
        let inner = titled(frame, area, "Candidates", theme);
        let text = columns_of(&model.editor.candidates, inner);
        return frame.render_widget(Paragraph::new(text), inner);
    }
    let inner = titled(frame, area, "Log", theme);
    let columns = usize::from(inner.width);
    let mut lines: Vec<Line> = Vec::new();
    for line in model.log.iter().rev() {
        // An error has a word as well as a colour.
        let (text, style) = match line.is_error {
            true => (format!("error: {}", line.text), theme.bad()),
            false => (line.text.clone(), Style::new()),
        };
        for part in wrapped(&text, columns).into_iter().rev() {
            lines.push(Line::styled(part, style));
        }
        if lines.len() >= usize::from(inner.height) {
            break;
        }
    }
    lines.truncate(usize::from(inner.height));
    lines.reverse();
    frame.render_widget(Paragraph::new(lines), inner);
}

/// Breaks a line between words, or within a word that is longer than a line.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut length = 0;
    for word in text.split_inclusive(' ') {
        let word_length = word.chars().count();
        if length > 0 && length + word.trim_end().chars().count() > columns {
            lines.push(std::mem::take(&mut line));
            length = 0;
        }
        if word_length > columns {
            for character in word.chars() {
                if length == columns {
                    lines.push(std::mem::take(&mut line));
                    length = 0;
                }
                line.push(character);
                length += 1;
            }
        } else {
            line += word;
            length += word_length;
        }
    }
    lines.push(line);
    lines
}

/// Sets candidates in columns; the last place counts those without room.
fn columns_of(candidates: &[String], area: Rect) -> String {
    let longest = candidates.iter().map(|it| it.chars().count()).max().unwrap_or(0);
    let columns = (usize::from(area.width) / (longest + 2)).max(1);
    let most = columns * usize::from(area.height);
    let shown = if candidates.len() > most { most.saturating_sub(1) } else { candidates.len() };
    let mut text = String::new();
    for row in candidates[..shown].chunks(columns) {
        for candidate in row {
            text += &format!("{candidate:<width$}", width = longest + 2);
        }
        if row.len() == columns {
            text.push('\n');
        }
    }
    if shown < candidates.len() {
        text += &format!("{} more", candidates.len() - shown);
    }
    text
}

fn draw_page(frame: &mut Frame, area: Rect, model: &Model) {
    let Some(page) = &model.page else { return };
    let theme = Theme::of(model);
    frame.render_widget(Clear, area);
    let room = usize::from(area.width).saturating_sub(24);
    let title = format!(
        "{} - line {} of {}",
        shortened(&page.title, room),
        page.scroll + 1,
        page.lines.len()
    );
    let inner = titled(frame, area, &title, theme);
    let columns = usize::from(inner.width);
    let shown = |line: &String| match is_table(line) {
        true => vec![line.chars().skip(page.column).take(columns).collect()],
        false => wrapped(line, columns),
    };
    let lines = page.lines.iter().skip(page.scroll).flat_map(shown);
    let lines: Vec<Line> = lines.take(usize::from(inner.height)).map(Line::from).collect();
    frame.render_widget(Paragraph::new(lines), inner);
}

/// Returns whether a line belongs to a table, whose columns a line break would destroy.
fn is_table(line: &str) -> bool {
    line.starts_with('|') || line.trim().contains("  ")
}

fn draw_prompt(frame: &mut Frame, area: Rect, model: &Model) {
    let theme = Theme::of(model);
    if model.is_asking {
        let count = model.ending_runs();
        let runs = if count == 1 { "1 run ends".to_owned() } else { format!("{count} runs end") };
        let text = format!("{runs} with this console. Stop and leave? y: yes, other keys: no");
        return frame.render_widget(Paragraph::new(text).style(theme.bar()), area);
    }
    if !model.is_editing || model.page.is_some() {
        let text = match model.executing.front() {
            Some(line) => format!("executing: {line} (Ctrl-C cancels)"),
            None => String::new(),
        };
        return frame.render_widget(Paragraph::new(text), area);
    }
    const MARK: &str = "> ";
    let [mark, text] = Layout::horizontal([Constraint::Length(2), Constraint::Min(1)]).areas(area);
    let (scroll, cursor) = model.editor.view(usize::from(text.width));
    frame.render_widget(Paragraph::new(MARK).style(theme.head()), mark);
    let scroll = u16::try_from(scroll).unwrap_or(u16::MAX);
    frame.render_widget(Paragraph::new(model.editor.text()).scroll((0, scroll)), text);
    let cursor = u16::try_from(cursor).unwrap_or(u16::MAX).min(text.width.saturating_sub(1));
    frame.set_cursor_position(Position::new(text.x + cursor, text.y));
}

fn draw_keys(frame: &mut Frame, area: Rect, model: &Model) {
    let theme = Theme::of(model);
    let [first, second]: [Vec<(String, String, bool)>; 2] = keys(model);
    for (row, keys) in [first, second].into_iter().enumerate() {
        let row = u16::try_from(row).unwrap_or(0);
        if row >= area.height {
            break;
        }
        let mut spans = Vec::new();
        for (key, meaning, is_active) in keys {
            let style = if is_active { theme.bar() } else { theme.head() };
            let active = if is_active { theme.bar() } else { Style::new() };
            spans.push(Span::styled(key, style));
            spans.push(Span::styled(format!(" {meaning}"), active));
            spans.push(Span::raw("  "));
        }
        let place = Rect { y: area.y + row, height: 1, ..area };
        frame.render_widget(Paragraph::new(Line::from(spans)), place);
    }
}

/// Returns the keys at the bottom: key, meaning, and whether its view is shown.
fn keys(model: &Model) -> [Vec<(String, String, bool)>; 2] {
    let plain = |keys: &[(&str, &str)]| {
        let keys = keys.iter().map(|(key, meaning)| ((*key).into(), (*meaning).into(), false));
        keys.collect::<Vec<(String, String, bool)>>()
    };
    if model.is_asking {
        return [plain(&[("y", "stop the runs and leave"), ("n", "stay")]), Vec::new()];
    }
    if model.page.is_some() {
        let keys = [("arrows PgUp PgDn", "scroll"), ("Home End", "ends"), ("q Esc", "close")];
        return [plain(&keys), Vec::new()];
    }
    if model.is_editing {
        let interrupt = match model.executing.front() {
            Some(line) => format!("cancel {}", shortened(line, 30)),
            None => "clear the line".to_owned(),
        };
        return [
            plain(&[("Enter", "execute"), ("Tab", "complete"), ("Up Down", "history")]),
            plain(&[("Ctrl-C", &interrupt), ("Esc", "leave the command line")]),
        ];
    }
    let views = View::ALL
        .iter()
        .map(|(view, key, name)| (key.to_string(), (*name).to_owned(), *view == model.view));
    let views: Vec<_> = views.chain(plain(&[("h", "help")])).collect();
    let resume = if model.has_paused() { "resume!" } else { "resume" };
    let own = if model.own_only { "own ports!" } else { "own ports" };
    let actions = plain(&[
        (":", "command"),
        ("p", "pause"),
        ("r", resume),
        ("c", "clear"),
        ("o", own),
        ("a", "all"),
        ("0-9", "port"),
        ("q", "quit"),
    ]);
    [views, actions]
}

#[cfg(test)]
mod tests;
