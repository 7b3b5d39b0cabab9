//! Options from files, and into them: `--load-opts` and `--save-opts`.

mod file;

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

/// Options files that load options files are followed so deep.
const DEPTH_MAX: usize = 8;

/// How the options of one program are read and saved.
pub(crate) struct Dialect {
    /// Long options by rank: an abbreviation is looked up in this order.
    pub(crate) ranks: Vec<Vec<String>>,
    /// The sections of options files that are for this program; it saves under the first.
    pub(crate) sections: &'static [&'static str],
    /// Options that are refused, and why.
    pub(crate) refused: &'static [(&'static str, &'static str)],
}

impl Dialect {
    /// Replaces `--load-opts` by what the files hold, and writes every long option's name in
    /// full. What files hold comes first, so that the command line can say otherwise.
    ///
    /// # Errors
    /// What is wrong with a file, or with an option that is refused, in words.
    pub(crate) fn load(&self, arguments: Vec<OsString>) -> Result<Vec<OsString>, String> {
        self.load_at_depth(arguments, 0)
    }

    fn load_at_depth(
        &self,
        arguments: Vec<OsString>,
        depth: usize,
    ) -> Result<Vec<OsString>, String> {
        if depth > DEPTH_MAX {
            return Err(format!("--load-opts: files load each other more than {DEPTH_MAX} deep"));
        }
        let mut loaded = Vec::new();
        let mut kept = Vec::new();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let Some(text) = argument.to_str().and_then(|text| text.strip_prefix("--")) else {
                kept.push(argument);
                continue;
            };
            if text.is_empty() {
                kept.push(argument);
                kept.extend(arguments);
                break;
            }
            let (name, value) = match text.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (text, None),
            };
            let name = self.full(name);
            if let Some((name, why)) = self.refused.iter().find(|(refused, _)| *refused == name) {
                return Err(format!("--{name} is refused: {why}"));
            }
            if name == "load-opts" {
                let path = match value {
                    Some(value) => Some(OsString::from(value)),
                    None => arguments.next(),
                };
                let path = path.ok_or("--load-opts needs the name of a file")?;
                let options =
                    file::read(path.as_ref(), self.sections).map_err(|error| error.to_string())?;
                loaded.extend(self.load_at_depth(options, depth + 1)?);
                continue;
            }
            match value {
                Some(value) => kept.push(format!("--{name}={value}").into()),
                None => kept.push(format!("--{name}").into()),
            }
        }
        loaded.extend(kept);
        Ok(loaded)
    }

    /// The name that is meant, in any case and with `_` for `-`; as it was typed where it means
    /// none or several.
    pub(crate) fn full(&self, typed: &str) -> String {
        let plain = typed.to_ascii_lowercase().replace('_', "-");
        if self.ranks.iter().flatten().any(|name| *name == plain) {
            return plain;
        }
        for rank in &self.ranks {
            let mut fitting = rank.iter().filter(|name| name.starts_with(&plain));
            match (fitting.next(), fitting.next()) {
                (Some(name), None) => return name.clone(),
                (Some(_), Some(_)) => break,
                (None, _) => {}
            }
        }
        typed.to_owned()
    }

    /// The text of a file with the options that a command line gave.
    pub(crate) fn text(&self, command: &Command, matches: &ArgMatches) -> String {
        let section = self.sections.first().copied().unwrap_or_default();
        file::text(section, &given(command, matches))
    }
}

/// Writes a file of options.
///
/// # Errors
/// The file, and what the system said.
pub(crate) fn save(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("--save-opts {}: {error}", path.display()))
}

/// The options that a command line gave, with their values.
fn given(command: &Command, matches: &ArgMatches) -> Vec<(String, Option<String>)> {
    let mut options = Vec::new();
    for argument in command.get_arguments() {
        let Some(name) = argument.get_long().filter(|name| *name != "save-opts") else { continue };
        let id = argument.get_id().as_str();
        if matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        if !argument.get_action().takes_values() {
            options.push((name.to_owned(), None));
            continue;
        }
        for value in matches.get_raw(id).into_iter().flatten() {
            options.push((name.to_owned(), Some(value.to_string_lossy().into_owned())));
        }
    }
    options
}
