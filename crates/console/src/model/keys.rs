//! Keys of the tables and of the page over them.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use wirestorm_api::run::RunSummary;

use super::{CLEARED, Effect, Model, View};
use crate::editor::Edited;

/// Columns that Right and Left move a page.
const COLUMNS: usize = 10;
/// Last first column of a page.
const COLUMNS_MAX: usize = 1_000;
/// Lines that Page Up and Page Down move.
const PAGE: isize = 10;

impl Model {
    pub(super) fn key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let has_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let is_interrupt = has_control && matches!(key.code, KeyCode::Char('c'));
        if self.is_asking {
            self.is_asking = false;
            let is_yes = matches!(key.code, KeyCode::Char('y' | 'Y')) || is_interrupt;
            return if is_yes { vec![Effect::Quit] } else { Vec::new() };
        }
        if is_interrupt && !self.executing.is_empty() && self.page.is_none() {
            return vec![Effect::Cancel];
        }
        if self.is_editing && self.page.is_none() {
            return match self.editor.key(key, &self.names) {
                Edited::Line => Vec::new(),
                Edited::Leave => {
                    self.is_editing = false;
                    Vec::new()
                }
                Edited::Execute(line) => {
                    if let Err(message) = self.editor.history.add(&line) {
                        self.log(&message, true);
                    }
                    self.execute(line)
                }
            };
        }
        if self.page.is_some() {
            return self.page_key(key, is_interrupt);
        }
        match key.code {
            _ if is_interrupt => return self.quit(),
            KeyCode::Char(_) if has_control => {}
            KeyCode::Char(':' | '/' | 'i') => self.is_editing = true,
            KeyCode::Enter => match self.selected_run() {
                Some(run) => {
                    let line = format!("show {}", run.id);
                    return self.execute(line);
                }
                None => self.is_editing = true,
            },
            KeyCode::Char('q') => return self.quit(),
            KeyCode::Char('h' | '?') | KeyCode::F(1) => return self.execute("help".to_owned()),
            KeyCode::Char('p') => return self.execute("pause".to_owned()),
            KeyCode::Char('r') => return self.execute("resume".to_owned()),
            KeyCode::Char('c') => {
                self.traffic.clear();
                self.log(CLEARED, false);
            }
            KeyCode::Char('o') => self.own_only = !self.own_only,
            KeyCode::Char('a' | 'n') => {
                self.hidden.clear();
                self.own_only = false;
                self.offset = 0;
            }
            KeyCode::Char(digit @ '0'..='9') => {
                let number = digit as usize - '0' as usize;
                if let Some(port) = self.ports.get(number) {
                    let interface = port.interface.clone();
                    if !self.hidden.remove(&interface) {
                        self.hidden.insert(interface);
                    }
                }
            }
            KeyCode::Tab => self.show(self.view.next(false)),
            KeyCode::BackTab => self.show(self.view.next(true)),
            KeyCode::Right if self.shows_histograms() => self.scroll_flows(1),
            KeyCode::Left if self.shows_histograms() => self.scroll_flows(-1),
            KeyCode::Down | KeyCode::Right => self.scroll(1),
            KeyCode::Up | KeyCode::Left => self.scroll(-1),
            KeyCode::PageDown => self.scroll(PAGE),
            KeyCode::PageUp => self.scroll(-PAGE),
            KeyCode::Home => self.offset = 0,
            KeyCode::Char('l') if self.view == View::Latency => {
                self.with_histograms = !self.with_histograms;
                self.offset = 0;
            }
            KeyCode::Char(key) => {
                if let Some((view, ..)) = View::ALL.iter().find(|(_, of, _)| *of == key) {
                    self.show(*view);
                }
            }
            _ => {}
        }
        if self.view == View::Runs { self.read_more_runs() } else { Vec::new() }
    }

    /// Returns the selected run of the view of runs.
    pub(super) fn selected_run(&self) -> Option<&RunSummary> {
        if self.view == View::Runs { self.runs.get(self.offset) } else { None }
    }

    /// Returns whether the view is that of histograms.
    pub(crate) fn shows_histograms(&self) -> bool {
        self.view == View::Latency && self.with_histograms
    }

    fn scroll_flows(&mut self, by: isize) {
        let most = self.traffic.histogram_count().saturating_sub(1);
        self.first_flow = self.first_flow.min(most).saturating_add_signed(by).min(most);
    }

    fn show(&mut self, view: View) {
        self.view = view;
        self.offset = 0;
    }

    fn scroll(&mut self, by: isize) {
        let most = match self.view {
            View::Dashboard => self.shown_ports().len(),
            View::Streams => self.traffic.flows().len(),
            View::Latency if self.with_histograms => {
                crate::histogram::rows(&self.traffic.histograms(0..0).total, &[], 0).len()
            }
            View::Latency => self.traffic.flows().len() + self.traffic.probes().len(),
            View::Connections => self.traffic.connections().len(),
            View::Cpu => self.traffic.cpu().len(),
            View::Runs => self.runs.len(),
        };
        self.offset = self.offset.saturating_add_signed(by).min(most.saturating_sub(1));
    }

    fn page_key(&mut self, key: KeyEvent, is_interrupt: bool) -> Vec<Effect> {
        let Some(page) = &mut self.page else { return Vec::new() };
        match key.code {
            KeyCode::Right => page.column = (page.column + COLUMNS).min(COLUMNS_MAX),
            KeyCode::Left => page.column = page.column.saturating_sub(COLUMNS),
            _ => {}
        }
        let by = match key.code {
            KeyCode::Down | KeyCode::Char('j') => 1,
            KeyCode::Up | KeyCode::Char('k') => -1,
            KeyCode::PageDown | KeyCode::Char(' ') => PAGE,
            KeyCode::PageUp => -PAGE,
            KeyCode::Home => isize::MIN,
            KeyCode::End => isize::MAX,
            KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q') => {
                self.page = None;
                return Vec::new();
            }
            _ if is_interrupt => {
                self.page = None;
                return Vec::new();
            }
            _ => return Vec::new(),
        };
        let most = page.lines.len().saturating_sub(1);
        page.scroll = page.scroll.saturating_add_signed(by).min(most);
        Vec::new()
    }
}
