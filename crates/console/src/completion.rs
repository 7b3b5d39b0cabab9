//! Completion of a line, from the parsers of the commands.

use std::path::Path;

use clap::{Arg, Command};

use crate::command::{COMMANDS, definition};

/// Most candidates.
const CANDIDATES_MAX: usize = 200;
/// Most entries of a directory that are read.
const ENTRIES_MAX: usize = 10_000;

/// Names that the server has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    pub(crate) ports: Vec<String>,
    pub(crate) runs: Vec<String>,
    pub(crate) flows: Vec<String>,
    pub(crate) plans: Vec<String>,
    pub(crate) captures: Vec<String>,
}

/// What a word can become.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Completion {
    /// Byte in the line where the word to replace begins.
    pub(crate) begin: usize,
    /// Candidates, sorted.
    pub(crate) candidates: Vec<String>,
}

impl Completion {
    /// Returns the longest text with which all candidates begin.
    pub(crate) fn common(&self) -> &str {
        let Some((first, rest)) = self.candidates.split_first() else { return "" };
        let mut length = first.len();
        for other in rest {
            let same = first.char_indices().zip(other.chars());
            let differs = same.into_iter().find(|((_, a), b)| a != b).map(|((at, _), _)| at);
            length = length.min(differs.unwrap_or(other.len().min(first.len())));
        }
        &first[..length]
    }
}

/// Completes the last word of a line.
pub(crate) fn complete(line: &str, names: &Names) -> Completion {
    let begin = line
        .rfind(char::is_whitespace)
        .map_or(0, |at| at + line[at..].chars().next().map_or(1, char::len_utf8));
    let (before, word) = line.split_at(begin);
    let words: Vec<&str> = before.split_whitespace().collect();
    let candidates = match words.split_first() {
        None => commands(),
        Some((name, arguments)) => match definition(name) {
            None => Vec::new(),
            Some(command) => of_arguments(&command.parser(), arguments, word, names),
        },
    };
    let mut candidates: Vec<String> =
        candidates.into_iter().filter(|it| it.starts_with(word) && it != word).collect();
    candidates.sort();
    candidates.dedup();
    candidates.truncate(CANDIDATES_MAX);
    Completion { begin, candidates }
}

fn commands() -> Vec<String> {
    COMMANDS.iter().map(|command| command.name().to_owned()).collect()
}

/// Returns the candidates for a word after the arguments of a command.
fn of_arguments(parser: &Command, arguments: &[&str], word: &str, names: &Names) -> Vec<String> {
    // The subcommand, if there is one, has its own arguments.
    for (index, argument) in arguments.iter().enumerate() {
        if let Some(subcommand) = parser.find_subcommand(argument) {
            return of_arguments(subcommand, &arguments[index + 1..], word, names);
        }
    }
    if word.starts_with('-') {
        return options(parser);
    }
    let mut pending: Option<(&Arg, usize)> = None;
    let mut positionals = 0;
    for argument in arguments {
        if argument.starts_with('-') && argument.len() > 1 {
            let is_given = argument.contains('=');
            pending = option(parser, argument).filter(|_| !is_given).map(|it| (it, 0));
            continue;
        }
        match &mut pending {
            Some((option, values)) if *values < most_values(option) => *values += 1,
            _ => {
                pending = None;
                positionals += 1;
            }
        }
    }
    match pending {
        Some((option, values)) if values < most_values(option) => {
            let mut candidates = values_of(option, word, names);
            if values > 0 {
                // Another option may follow instead.
                candidates.extend(options(parser));
            }
            candidates
        }
        _ => {
            let mut candidates: Vec<String> = parser
                .get_subcommands()
                .filter(|subcommand| !subcommand.is_hide_set())
                .map(|subcommand| subcommand.get_name().to_owned())
                .collect();
            let all: Vec<&Arg> = parser.get_positionals().collect();
            let last = all.last().filter(|last| most_values(last) > 1);
            if let Some(argument) = all.get(positionals).or(last) {
                candidates.extend(values_of(argument, word, names));
            }
            candidates
        }
    }
}

fn options(parser: &Command) -> Vec<String> {
    let visible = parser.get_arguments().filter(|it| !it.is_hide_set() && !it.is_positional());
    let name = |it: &Arg| match it.get_long() {
        Some(long) => Some(format!("--{long}")),
        None => it.get_short().map(|short| format!("-{short}")),
    };
    visible.filter_map(name).collect()
}

/// Returns the option with a name, if it takes values.
fn option<'a>(parser: &'a Command, name: &str) -> Option<&'a Arg> {
    let found = match name.strip_prefix("--") {
        Some(long) => parser.get_arguments().find(|it| {
            it.get_long() == Some(long)
                || it.get_all_aliases().is_some_and(|aliases| aliases.contains(&long))
        }),
        None => {
            let short = name.chars().nth(1)?;
            parser.get_arguments().find(|it| it.get_short() == Some(short))
        }
    };
    found.filter(|it| it.get_action().takes_values())
}

fn most_values(argument: &Arg) -> usize {
    let is_repeated = matches!(argument.get_action(), clap::ArgAction::Append);
    let explicit = argument.get_num_args().map(|range| range.max_values());
    match explicit {
        Some(most) => most,
        None if is_repeated && argument.is_positional() => usize::MAX,
        None => 1,
    }
}

/// Returns the values of an argument: its fixed ones, else those that its name stands for.
fn values_of(argument: &Arg, word: &str, names: &Names) -> Vec<String> {
    let fixed = argument.get_possible_values();
    if !fixed.is_empty() && argument.get_action().takes_values() {
        return fixed.iter().map(|value| value.get_name().to_owned()).collect();
    }
    let name = argument.get_value_names().and_then(|names| names.first());
    match name.map_or("", |name| name.as_str()) {
        "PORT" | "NAME=PORT" => match word.split_once('=') {
            None => names.ports.clone(),
            Some((name, _)) => names.ports.iter().map(|port| format!("{name}={port}")).collect(),
        },
        "RUN" => names.runs.iter().cloned().chain(["latest".to_owned()]).collect(),
        "FLOW" => names.flows.iter().map(|flow| quoted(flow)).collect(),
        "STORED" => names.plans.clone(),
        "PLAN" => names.plans.iter().cloned().chain(files(word)).collect(),
        "CAPTURE" => names.captures.clone(),
        "FILE" => files(word),
        "COMMAND" => commands(),
        _ => Vec::new(),
    }
}

fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), |quoted| quoted.into_owned())
}

/// Returns the entries of the directory that a word names. Directories end with `/`; hidden entries
/// need the dot. Names that need quotes are left out: the word would no longer be one.
fn files(word: &str) -> Vec<String> {
    let (directory, name) = match word.rfind('/') {
        Some(slash) => word.split_at(slash + 1),
        None => ("", word),
    };
    let home = std::env::var("HOME").unwrap_or_default();
    let place = match directory.strip_prefix("~/") {
        Some(rest) => format!("{home}/{rest}"),
        None if directory.is_empty() => ".".to_owned(),
        None => directory.to_owned(),
    };
    let Ok(entries) = std::fs::read_dir(Path::new(&place)) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.take(ENTRIES_MAX).flatten() {
        let Ok(file) = entry.file_name().into_string() else { continue };
        let is_hidden = file.starts_with('.') && !name.starts_with('.');
        if is_hidden || !file.starts_with(name) || quoted(&file) != file {
            continue;
        }
        let slash = if entry.path().is_dir() { "/" } else { "" };
        found.push(format!("{directory}{file}{slash}"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let list = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
        Names {
            ports: list(&["left", "right", "eth2"]),
            runs: list(&["2026-01-01T00-00-00-streams", "night"]),
            flows: list(&["voice", "left to right"]),
            plans: list(&["imix"]),
            captures: list(&["web.pcap"]),
        }
    }

    fn candidates(line: &str) -> Vec<String> {
        complete(line, &names()).candidates
    }

    #[test]
    fn first_word_is_a_command() {
        assert_eq!(candidates("st"), ["start", "stats", "stop", "streams"]);
        assert!(candidates("").len() > 20);
        assert_eq!(candidates("nothing "), [""; 0]);
    }

    #[test]
    fn options_and_their_values_come_from_the_parser() {
        assert_eq!(candidates("start --mul"), ["--mult"]);
        assert_eq!(candidates("start --force-"), ["--force-interface"]);
        assert!(!candidates("start --p").contains(&"--pin".to_owned()), "hidden");
        assert_eq!(candidates("start -p l"), ["left"]);
        assert_eq!(candidates("start -p left r"), ["right"]);
        assert_eq!(candidates("run imix --port a=l"), ["a=left"]);
        assert_eq!(candidates("report night --format j"), ["json", "junit"]);
        assert_eq!(candidates("pause -i v"), ["voice"]);
        assert_eq!(candidates("pause -i "), ["'left to right'", "voice"]);
        assert_eq!(candidates("start -m "), [""; 0], "a load is no name");
    }

    #[test]
    fn positional_arguments_and_subcommands_complete() {
        assert_eq!(candidates("stop n"), ["night"]);
        assert_eq!(candidates("stop night l"), ["latest"]);
        assert_eq!(candidates("flows "), ["start", "stop"]);
        assert_eq!(candidates("flows stop v"), ["voice"]);
        assert_eq!(candidates("captures "), ["delete", "download", "list"]);
        assert_eq!(candidates("captures delete w"), ["web.pcap"]);
        assert_eq!(candidates("plans show "), ["imix"]);
        assert_eq!(candidates("users add ada --role o"), ["observe", "operate"]);
        assert_eq!(candidates("help sc"), ["scale", "schema"]);
        assert_eq!(candidates("capture start e"), ["eth2"]);
    }

    #[test]
    fn files_complete_with_their_directory() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["imix.py", "imix-2.py", "with space.py", ".hidden"] {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        std::fs::create_dir(directory.path().join("imixes")).unwrap();
        let place = directory.path().display().to_string();
        let found = complete(&format!("start -f {place}/im"), &Names::default());
        let expected = ["imix-2.py", "imix.py", "imixes/"].map(|it| format!("{place}/{it}"));
        assert_eq!(found.candidates, expected);
        assert_eq!(found.common(), format!("{place}/imix"));
        assert_eq!(found.begin, "start -f ".len());
        let missing = complete("start -f /no/such/place/x", &Names::default());
        assert_eq!(missing.candidates, [""; 0]);
    }

    #[test]
    fn common_beginning_ends_between_characters() {
        let of = |candidates: &[&str]| Completion {
            begin: 0,
            candidates: candidates.iter().map(|it| (*it).to_owned()).collect(),
        };
        assert_eq!(of(&["aäb", "aäc"]).common(), "aä");
        assert_eq!(of(&["aä", "aö"]).common(), "a");
        assert_eq!(of(&["stop", "stop-all"]).common(), "stop");
        assert_eq!(of(&[]).common(), "");
    }
}
