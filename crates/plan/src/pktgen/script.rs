//! Parser for the simple form of scripts, without a shell.
//!
//! Supported commands, one per line or separated by `;`:
//!
//! - assignments of words (`PGDEV=...`, `COUNT="count 100"`) and their use as `$NAME` or `${NAME}`
//! - `pgset`, `pg_ctrl`, `pg_thread` and `pg_set`, as in the kernel's samples
//! - `echo ... > /proc/net/pktgen/...`, and `cat` of such files
//! - `exit`, and comments
//!
//! The parser ignores commands that do not affect pktgen: `modprobe`, `echo` to the terminal,
//! `trap`, `set`, `sleep`, `export` of an assignment. It also ignores definitions of the functions
//! `pgset`, `pg_ctrl`, `pg_thread`, `pg_set` and `proc_cmd`. Anything else, such as loops,
//! conditions and other functions, needs a shell; the parser reports its line.

use std::collections::BTreeMap;

use super::control::DIRECTORY;

/// A parsed script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// Actions of the script, in order.
    pub steps: Vec<Step>,
    /// Unsupported lines. If there are any, the steps are incomplete.
    pub unsupported: Vec<UnsupportedLine>,
}

/// One action of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Line number, from 1.
    pub line: usize,
    /// The action.
    pub action: Action,
}

/// An action on a file. File names are relative to [`DIRECTORY`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Writes a text, with a line feed at its end.
    Write {
        /// File name.
        file: String,
        /// Text without the line feed.
        text: String,
    },
    /// Shows the file.
    Show {
        /// File name.
        file: String,
    },
}

/// An unsupported line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {text}: {reason}")]
pub struct UnsupportedLine {
    /// Line number, from 1.
    pub line: usize,
    /// Text of the line.
    pub text: String,
    /// Reason.
    pub reason: String,
}

/// Limits; the parser reports a script that exceeds them.
const LINES_MAX: usize = 10_000;
const COMMAND_BYTES_MAX: usize = 4096;

impl Script {
    /// Parses a script.
    pub fn parse(text: &str) -> Self {
        let mut reader = Reader::default();
        let mut is_within_function = false;
        for (line, text) in (1..).zip(text.lines().map(str::trim)) {
            if reader.has_ended {
                break;
            }
            if line > LINES_MAX {
                reader.not_understood(line, text, format!("more than {LINES_MAX} lines"));
                break;
            }
            if is_within_function {
                // A closing brace alone on its line ends a definition.
                is_within_function = text != "}";
            } else if let Some(name) = defined_function(text) {
                if !HELPERS.contains(&name) && name != "proc_cmd" {
                    reader.not_understood(line, text, format!("the function {name} needs a shell"));
                }
                is_within_function = !text.ends_with('}');
            } else {
                reader.line(line, text);
            }
        }
        reader.script
    }
}

/// Functions of the kernel's samples that write to the files.
const HELPERS: [&str; 4] = ["pgset", "pg_ctrl", "pg_thread", "pg_set"];

/// Returns the name of the function whose definition starts in this line.
fn defined_function(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("function ").map(str::trim_start);
    let name_end = |text: &str| text.find(|letter: char| !is_name(letter)).unwrap_or(text.len());
    let text = rest.unwrap_or(line);
    let (name, behind) = text.split_at(name_end(text));
    let behind = behind.trim_start();
    let is_definition = rest.is_some() || behind.starts_with("()");
    (is_definition && !name.is_empty()).then_some(name)
}

fn is_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

#[derive(Default)]
struct Reader {
    script: Script,
    variables: BTreeMap<String, String>,
    has_ended: bool,
}

/// Part of a command.
#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    /// `>` or `>>`, which act the same on these files.
    Redirect,
}

/// Tokens of a command under construction.
#[derive(Default)]
struct Tokens {
    tokens: Vec<Token>,
    word: Option<String>,
    bytes: usize,
}

impl Tokens {
    fn push(&mut self, letter: char) {
        self.bytes += letter.len_utf8();
        self.word.get_or_insert_default().push(letter);
    }

    fn push_str(&mut self, text: &str) {
        self.bytes += text.len();
        self.word.get_or_insert_default().push_str(text);
    }

    /// Like [`Tokens::push_str`], but splits words at white space.
    fn push_words(&mut self, text: &str) {
        for (index, part) in text.split(char::is_whitespace).enumerate() {
            if index > 0 {
                self.end_word();
            }
            if !part.is_empty() {
                self.push_str(part);
            }
        }
    }

    fn end_word(&mut self) {
        self.tokens.extend(self.word.take().map(Token::Word));
    }

    fn finish(mut self) -> Vec<Token> {
        self.end_word();
        self.tokens
    }
}

impl Reader {
    fn not_understood(&mut self, line: usize, text: &str, reason: impl Into<String>) {
        let (text, reason) = (text.to_owned(), reason.into());
        self.script.unsupported.push(UnsupportedLine { line, text, reason });
    }

    fn line(&mut self, number: usize, line: &str) {
        // Execute each command before the next: it may set variables that the next one uses.
        let mut rest = line;
        loop {
            let outcome = self.tokens(rest).and_then(|(tokens, behind)| {
                rest = behind;
                self.command(number, tokens)
            });
            if let Err(reason) = outcome {
                self.not_understood(number, line, reason);
                return;
            }
            if rest.is_empty() || self.has_ended {
                return;
            }
        }
    }

    /// Executes one command.
    fn command(&mut self, line: usize, mut tokens: Vec<Token>) -> Result<(), String> {
        let mut target = None;
        if let Some(into) = tokens.iter().position(|token| *token == Token::Redirect) {
            let mut behind = tokens.split_off(into).into_iter().skip(1);
            target = match (behind.next(), behind.next()) {
                (Some(Token::Word(file)), None) => Some(file),
                _ => return Err("expected one file after >".to_owned()),
            };
        }
        let words: Vec<String> = tokens
            .into_iter()
            .filter_map(|token| match token {
                Token::Word(word) => Some(word),
                Token::Redirect => None,
            })
            .collect();
        let Some((command, arguments)) = words.split_first() else { return Ok(()) };
        if let Some(target) = target {
            let Some(file) = file_name(&target) else {
                return Err(format!("expected a file of {DIRECTORY} after >, found {target:?}"));
            };
            let arguments = match (command.as_str(), arguments) {
                ("echo", [flag, rest @ ..]) if flag == "-n" => rest,
                ("echo", rest) => rest,
                _ => return Err(format!("{command}: expected echo before >")),
            };
            self.write(line, file.to_owned(), arguments.join(" "));
            return Ok(());
        }
        match (command.as_str(), arguments) {
            ("pgset", [text, ..]) => {
                let device = self.variables.get("PGDEV").cloned().unwrap_or_default();
                let Some(file) = file_name(&device) else {
                    return Err(format!(
                        "expected PGDEV to be a file of {DIRECTORY}, found {device:?}"
                    ));
                };
                self.write(line, file.to_owned(), text.clone());
                Ok(())
            }
            ("pg_ctrl", text) if !text.is_empty() => {
                self.write(line, "pgctrl".to_owned(), text.join(" "));
                Ok(())
            }
            ("pg_thread", [thread, text @ ..]) if !text.is_empty() => {
                self.write(line, format!("kpktgend_{thread}"), text.join(" "));
                Ok(())
            }
            ("pg_set", [device, text @ ..]) if !text.is_empty() => {
                self.write(line, device.clone(), text.join(" "));
                Ok(())
            }
            ("cat", [file]) if file_name(file).is_some() => {
                let file = file_name(file).unwrap_or_default().to_owned();
                self.script.steps.push(Step { line, action: Action::Show { file } });
                Ok(())
            }
            ("exit", _) => {
                self.has_ended = true;
                Ok(())
            }
            ("echo" | "modprobe" | "trap" | "set" | "sleep" | "true" | ":", _) => Ok(()),
            ("export", [assignment]) => self.assign(assignment),
            (_, []) if is_assignment(command) => self.assign(command),
            (helper, _) if HELPERS.contains(&helper) => {
                Err(format!("{helper}: expected a pktgen command after it"))
            }
            _ => Err(format!("{command:?} needs a shell")),
        }
    }

    fn write(&mut self, line: usize, file: String, text: String) {
        self.script.steps.push(Step { line, action: Action::Write { file, text } });
    }

    fn assign(&mut self, assignment: &str) -> Result<(), String> {
        match assignment.split_once('=') {
            Some((name, value)) if is_assignment(assignment) => {
                self.variables.insert(name.to_owned(), value.to_owned());
                Ok(())
            }
            // `export NAME` has no effect on the script itself.
            _ => Ok(()),
        }
    }

    /// Splits off the first command of a line, with its variables expanded. Returns its tokens and
    /// the rest of the line.
    fn tokens<'a>(&self, line: &'a str) -> Result<(Vec<Token>, &'a str), String> {
        let mut tokens = Tokens::default();
        let mut quote = None;
        let mut rest = line;
        while let Some(letter) = rest.chars().next() {
            rest = &rest[letter.len_utf8()..];
            match (quote, letter) {
                (Some('\''), '\'') | (Some('"'), '"') => quote = None,
                (Some('\''), _) => tokens.push(letter),
                (None, '\'' | '"') => {
                    quote = Some(letter);
                    tokens.push_str("");
                }
                (_, '`') => return Err("command substitution needs a shell".to_owned()),
                (_, '\\') => match rest.chars().next() {
                    Some(escaped) => {
                        rest = &rest[escaped.len_utf8()..];
                        tokens.push(escaped);
                    }
                    None => return Err("a continued line needs a shell".to_owned()),
                },
                (_, '$') => {
                    let (value, behind) = self.expand(rest)?;
                    rest = behind;
                    if quote.is_some() || tokens.word.as_deref().is_some_and(is_assignment) {
                        tokens.push_str(value);
                    } else {
                        tokens.push_words(value);
                    }
                }
                (Some(_), _) => tokens.push(letter),
                (None, '#') if tokens.word.is_none() => rest = "",
                (None, ';') => return Ok((tokens.finish(), rest.trim_start())),
                (None, '>') => {
                    match tokens.word.as_deref() {
                        Some("1") => tokens.word = None,
                        Some("2") => return Err("only 1> is supported for output".to_owned()),
                        _ => tokens.end_word(),
                    }
                    rest = rest.strip_prefix('>').unwrap_or(rest);
                    tokens.tokens.push(Token::Redirect);
                }
                (None, '|' | '&' | '<' | '(' | ')') => {
                    return Err(format!("{letter:?} needs a shell"));
                }
                (None, _) if letter.is_whitespace() => tokens.end_word(),
                (None, _) => tokens.push(letter),
            }
            if tokens.bytes > COMMAND_BYTES_MAX {
                return Err(format!("a command of more than {COMMAND_BYTES_MAX} bytes"));
            }
        }
        match quote {
            Some(_) => Err("a quote that does not end on its line".to_owned()),
            None => Ok((tokens.finish(), "")),
        }
    }

    /// Expands the variable after a `$`. Returns its value and the rest of the text.
    fn expand<'a>(&self, behind: &'a str) -> Result<(&str, &'a str), String> {
        const EXPECTED: &str = "only the expansions $NAME and ${NAME} are supported";
        let split = |text: &'a str| {
            text.split_at(text.find(|letter| !is_name(letter)).unwrap_or(text.len()))
        };
        let (name, behind) = match behind.strip_prefix('{') {
            Some(braced) => {
                let (name, behind) = split(braced);
                (name, behind.strip_prefix('}').ok_or(EXPECTED)?)
            }
            None => split(behind),
        };
        if !name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_') {
            return Err(EXPECTED.to_owned());
        }
        match self.variables.get(name) {
            Some(value) => Ok((value, behind)),
            None => Err(format!("${name} is not set")),
        }
    }
}

/// Returns whether a word starts with `NAME=`.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
            && name.chars().all(is_name)
    })
}

/// Returns the name of a file in [`DIRECTORY`].
fn file_name(path: &str) -> Option<&str> {
    path.strip_prefix(DIRECTORY).filter(|name| !name.is_empty())
}
