//! A table of text that fits the width: columns without room are left out.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::Theme;
use crate::number::shortened;

/// Column of a grid.
pub(super) struct Column<'a> {
    pub(super) head: &'a str,
    /// Width; the first column takes the rest of the line, and this is its least.
    pub(super) width: usize,
    pub(super) is_right: bool,
}

/// A right-aligned column.
pub(super) const fn right(head: &str, width: usize) -> Column<'_> {
    Column { head, width, is_right: true }
}

/// A left-aligned column.
pub(super) const fn left(head: &str, width: usize) -> Column<'_> {
    Column { head, width, is_right: false }
}

/// Returns the number of columns that have room, and the width that they leave.
pub(super) fn fit(columns: &[Column<'_>], area: Rect) -> (usize, usize) {
    let mut spare =
        usize::from(area.width).saturating_sub(columns.first().map_or(0, |it| it.width));
    let mut shown = columns.len().min(1);
    for column in columns.iter().skip(1) {
        let Some(rest) = spare.checked_sub(1 + column.width) else { break };
        spare = rest;
        shown += 1;
    }
    (shown, spare)
}

/// Draws rows from `first` on. `selected`: row to mark. `none`: text instead of an empty table.
pub(super) fn draw(
    frame: &mut Frame,
    area: Rect,
    theme: Theme,
    columns: &[Column<'_>],
    rows: &[Vec<String>],
    (first, selected): (usize, Option<usize>),
    none: &str,
) {
    if rows.is_empty() {
        return frame.render_widget(Paragraph::new(none.to_owned()), area);
    }
    let (shown, spare) = fit(columns, area);
    let widths: Vec<usize> = columns[..shown]
        .iter()
        .enumerate()
        .map(|(index, column)| if index == 0 { column.width + spare } else { column.width })
        .collect();
    let line = |cells: &[String], style: Style| {
        let mut text = String::new();
        for (index, width) in widths.iter().copied().enumerate() {
            let cell = cells.get(index).map_or("", String::as_str);
            let cell = shortened(cell, width);
            if index > 0 {
                text.push(' ');
            }
            text += &match columns[index].is_right {
                true => format!("{cell:>width$}"),
                false => format!("{cell:<width$}"),
            };
        }
        Line::from(Span::styled(text, style))
    };
    let heads: Vec<String> = columns.iter().map(|column| column.head.to_owned()).collect();
    let height = usize::from(area.height).saturating_sub(1);
    // The selected row stays visible, and the last page is full.
    let first = match selected {
        Some(selected) => selected.saturating_sub(height.saturating_sub(1)),
        None => first.min(rows.len().saturating_sub(height)),
    };
    let mut lines = vec![line(&heads, theme.head())];
    for (index, row) in rows.iter().enumerate().skip(first).take(height) {
        let is_selected = selected == Some(index);
        let modifier = if is_selected { Modifier::REVERSED } else { Modifier::empty() };
        lines.push(line(row, Style::new().add_modifier(modifier)));
    }
    frame.render_widget(Paragraph::new(lines), area);
}
