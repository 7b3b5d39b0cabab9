//! The command line: editing, history and completion.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tui_input::{Input, InputRequest};

use crate::completion::{Completion, Names, complete};
use crate::history::History;

/// Longest line in bytes: a pasted file is no line.
const BYTES_MAX: usize = 10_000;

/// What a key does beyond editing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Edited {
    /// Nothing.
    Line,
    /// Execute a line.
    Execute(String),
    /// Leave the command line.
    Leave,
}

/// The command line.
#[derive(Debug, Default)]
pub(crate) struct Editor {
    input: Input,
    pub(crate) history: History,
    /// Line of the history that is shown, counted from the newest; the text before the first key.
    browsing: Option<(usize, String)>,
    /// Candidates of the last Tab.
    pub(crate) candidates: Vec<String>,
}

impl Editor {
    pub(crate) fn new(history: History) -> Self {
        Self { history, ..Self::default() }
    }

    /// Returns the text.
    pub(crate) fn text(&self) -> &str {
        self.input.value()
    }

    /// Returns the first column of the text that is shown in `columns`, and the column of the cursor.
    pub(crate) fn view(&self, columns: usize) -> (usize, usize) {
        let scroll = self.input.visual_scroll(columns.saturating_sub(1));
        (scroll, self.input.visual_cursor().saturating_sub(scroll))
    }

    /// Inserts pasted text; line ends become spaces.
    pub(crate) fn paste(&mut self, text: &str) {
        for character in text.chars().take(BYTES_MAX) {
            self.insert(if character.is_control() { ' ' } else { character });
        }
    }

    fn insert(&mut self, character: char) {
        if self.text().len() < BYTES_MAX {
            self.input.handle(InputRequest::InsertChar(character));
        }
    }

    /// Handles a key.
    pub(crate) fn key(&mut self, key: KeyEvent, names: &Names) -> Edited {
        if key.code != KeyCode::Tab {
            self.candidates.clear();
        }
        let has_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let has_alt = key.modifiers.contains(KeyModifiers::ALT);
        // Ctrl-J and Ctrl-M end a line on any terminal; pasted lines have the first.
        let code = match key.code {
            KeyCode::Char('j' | 'm') if has_control => KeyCode::Enter,
            code => code,
        };
        match code {
            KeyCode::Enter => {
                let line = self.input.value_and_reset();
                self.browsing = None;
                return match line.trim().is_empty() {
                    true => Edited::Leave,
                    false => Edited::Execute(line),
                };
            }
            KeyCode::Esc => return Edited::Leave,
            KeyCode::Char('c' | 'g') if has_control => {
                let is_empty = self.text().is_empty();
                self.input.reset();
                self.browsing = None;
                return if is_empty { Edited::Leave } else { Edited::Line };
            }
            KeyCode::Char('d') if has_control && self.text().is_empty() => return Edited::Leave,
            KeyCode::Tab => self.complete(names),
            KeyCode::Up => self.browse(true),
            KeyCode::Char('p') if has_control => self.browse(true),
            KeyCode::Down => self.browse(false),
            KeyCode::Char('n') if has_control => self.browse(false),
            code => {
                if let Some(request) = request(code, has_control, has_alt) {
                    self.browsing = None;
                    self.input.handle(request);
                } else if let KeyCode::Char(character) = code
                    && !has_control
                    && !has_alt
                {
                    self.browsing = None;
                    self.insert(character);
                }
            }
        }
        Edited::Line
    }

    /// Shows an older or a newer line of the history that begins with the text before the first key.
    fn browse(&mut self, older: bool) {
        let (at, typed) = self.browsing.clone().unwrap_or_else(|| (0, self.text().to_owned()));
        let fitting: Vec<&String> =
            self.history.lines().iter().rev().filter(|line| line.starts_with(&typed)).collect();
        let next = if older { (at + 1).min(fitting.len()) } else { at.saturating_sub(1) };
        let shown = match next {
            0 => typed.clone(),
            next => fitting[next - 1].clone(),
        };
        self.input = Input::new(shown);
        self.browsing = (next > 0).then_some((next, typed));
    }

    fn complete(&mut self, names: &Names) {
        let characters = self.input.cursor();
        let line = self.text();
        let cursor = line.char_indices().nth(characters).map_or(line.len(), |(at, _)| at);
        let (before, behind) = line.split_at(cursor);
        let completion = complete(before, names);
        let Completion { begin, ref candidates } = completion;
        let word = match candidates.as_slice() {
            [] => return,
            [only] if only.ends_with('/') || only.ends_with('=') => only.clone(),
            [only] => format!("{only} "),
            _ => completion.common().to_owned(),
        };
        let cursor = before[..begin].chars().count() + word.chars().count();
        let line = format!("{}{word}{behind}", &before[..begin]);
        self.input = Input::new(line).with_cursor(cursor);
        self.candidates = if candidates.len() > 1 { completion.candidates } else { Vec::new() };
    }
}

/// Returns the edit of a key, as in readline.
fn request(code: KeyCode, has_control: bool, has_alt: bool) -> Option<InputRequest> {
    use InputRequest::*;
    Some(match (code, has_control, has_alt) {
        (KeyCode::Left, false, false) | (KeyCode::Char('b'), true, _) => GoToPrevChar,
        (KeyCode::Right, false, false) | (KeyCode::Char('f'), true, _) => GoToNextChar,
        (KeyCode::Left, ..) | (KeyCode::Char('b'), _, true) => GoToPrevWord,
        (KeyCode::Right, ..) | (KeyCode::Char('f'), _, true) => GoToNextWord,
        (KeyCode::Home, ..) | (KeyCode::Char('a'), true, _) => GoToStart,
        (KeyCode::End, ..) | (KeyCode::Char('e'), true, _) => GoToEnd,
        (KeyCode::Backspace, _, true) | (KeyCode::Char('w'), true, _) => DeletePrevWord,
        (KeyCode::Backspace, ..) | (KeyCode::Char('h'), true, _) => DeletePrevChar,
        (KeyCode::Delete | KeyCode::Char('d'), _, true) => DeleteNextWord,
        (KeyCode::Delete, ..) | (KeyCode::Char('d'), true, _) => DeleteNextChar,
        (KeyCode::Char('u'), true, _) => DeleteFromStart,
        (KeyCode::Char('k'), true, _) => DeleteTillEnd,
        (KeyCode::Char('y'), true, _) => Yank,
        _ => return None,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn plain(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    fn control(character: char) -> KeyEvent {
        KeyEvent::new(KeyCode::Char(character), KeyModifiers::CONTROL)
    }

    fn with_text(text: &str) -> Editor {
        let mut editor = Editor::default();
        editor.paste(text);
        editor
    }

    fn press(editor: &mut Editor, keys: &[KeyEvent]) {
        for key in keys {
            assert_eq!(editor.key(*key, &Names::default()), Edited::Line);
        }
    }

    #[test]
    fn keys_edit_as_in_readline() {
        let mut editor = with_text("stop night now");
        press(&mut editor, &[control('w'), control('w')]);
        assert_eq!(editor.text(), "stop ");
        press(&mut editor, &[control('a'), plain(KeyCode::Char('x')), control('e')]);
        press(&mut editor, &[plain(KeyCode::Backspace)]);
        assert_eq!(editor.text(), "xstop");
        press(&mut editor, &[control('u')]);
        assert_eq!(editor.text(), "");
    }

    #[test]
    fn enter_executes_and_escape_leaves_with_the_text_kept() {
        let mut editor = with_text("ports");
        let names = Names::default();
        assert_eq!(editor.key(plain(KeyCode::Esc), &names), Edited::Leave);
        assert_eq!(editor.text(), "ports");
        let executed = editor.key(plain(KeyCode::Enter), &names);
        assert_eq!(executed, Edited::Execute("ports".to_owned()));
        assert_eq!(editor.text(), "");
        assert_eq!(editor.key(plain(KeyCode::Enter), &names), Edited::Leave);
        let mut editor = with_text("ports");
        assert_eq!(editor.key(control('c'), &names), Edited::Line);
        assert_eq!(editor.text(), "");
        assert_eq!(editor.key(control('c'), &names), Edited::Leave);
    }

    #[test]
    fn history_shows_lines_that_begin_with_the_text() {
        let mut editor = Editor::default();
        for line in ["start -f a.yaml", "ports", "start -f b.yaml", "runs"] {
            editor.history.add(line).unwrap();
        }
        press(&mut editor, &[plain(KeyCode::Up), plain(KeyCode::Up)]);
        assert_eq!(editor.text(), "start -f b.yaml");
        press(&mut editor, &[plain(KeyCode::Down), plain(KeyCode::Down)]);
        assert_eq!(editor.text(), "");
        editor.paste("sta");
        press(&mut editor, &[plain(KeyCode::Up), plain(KeyCode::Up), plain(KeyCode::Up)]);
        assert_eq!(editor.text(), "start -f a.yaml");
        press(&mut editor, &[plain(KeyCode::Down), plain(KeyCode::Down)]);
        assert_eq!(editor.text(), "sta", "the text before the first key returns");
    }

    #[test]
    fn tab_completes_the_word_at_the_cursor() {
        let mut editor = with_text("rep");
        press(&mut editor, &[plain(KeyCode::Tab)]);
        assert_eq!(editor.text(), "report ");
        let mut editor = with_text("sta");
        press(&mut editor, &[plain(KeyCode::Tab)]);
        assert_eq!((editor.text(), editor.candidates.len()), ("sta", 2));
        press(&mut editor, &[plain(KeyCode::Char('r'))]);
        assert!(editor.candidates.is_empty(), "the list ends with the next key");
        let mut editor = with_text("rep night");
        press(&mut editor, &[control('a'); 1]);
        press(&mut editor, &[plain(KeyCode::Right); 3]);
        press(&mut editor, &[plain(KeyCode::Tab)]);
        assert_eq!(editor.text(), "report  night");
    }

    #[test]
    fn pasted_file_stays_one_bounded_line() {
        let mut editor = with_text(&"start\n".repeat(10_000));
        assert!(editor.text().starts_with("start start ") && editor.text().len() <= BYTES_MAX);
        let (scroll, cursor) = editor.view(40);
        assert!(scroll > 0 && cursor < 40, "{scroll} {cursor}");
        press(&mut editor, &[control('a')]);
        assert_eq!(editor.view(40), (0, 0));
    }
}
