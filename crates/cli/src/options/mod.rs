//! Option files: `--load-opts` and `--save-opts`.

mod file;

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

/// Maximum nesting depth of option files that load other option files.
const DEPTH_MAX: usize = 8;

/// Rules for the options of one program.
pub(crate) struct OptionRules {
    /// Long options by rank. An abbreviation matches the first rank that has a candidate.
    pub(crate) ranks: Vec<Vec<String>>,
    /// Sections of option files that apply to this program. It saves to the first one.
    pub(crate) sections: &'static [&'static str],
    /// Rejected options, each with the reason.
    pub(crate) unsupported: &'static [(&'static str, &'static str)],
}

impl OptionRules {
    /// Replaces `--load-opts` by the content of the files, and expands every long option's name.
    ///
    /// Options from files come first, so that the command line overrides them.
    ///
    /// # Errors
    /// A message about an option file or a rejected option.
    pub(crate) fn load(&self, arguments: Vec<OsString>) -> Result<Vec<OsString>, String> {
        self.load_at_depth(arguments, 0)
    }

    fn load_at_depth(
        &self,
        arguments: Vec<OsString>,
        depth: usize,
    ) -> Result<Vec<OsString>, String> {
        if depth > DEPTH_MAX {
            return Err(format!("--load-opts: option files nest deeper than {DEPTH_MAX} levels"));
        }
        let mut loaded = Vec::new();
        let mut others = Vec::new();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let Some(text) = argument.to_str().and_then(|text| text.strip_prefix("--")) else {
                others.push(argument);
                continue;
            };
            if text.is_empty() {
                others.push(argument);
                others.extend(arguments);
                break;
            }
            let (name, value) = match text.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (text, None),
            };
            let name = self.full(name);
            if let Some((name, why)) = self.unsupported.iter().find(|(refused, _)| *refused == name)
            {
                return Err(format!("--{name} is not supported: {why}"));
            }
            if name == "load-opts" {
                let path = match value {
                    Some(value) => Some(OsString::from(value)),
                    None => arguments.next(),
                };
                let path = path.ok_or("--load-opts requires a file name")?;
                let options =
                    file::read(path.as_ref(), self.sections).map_err(|error| error.to_string())?;
                loaded.extend(self.load_at_depth(options, depth + 1)?);
                continue;
            }
            match value {
                Some(value) => others.push(format!("--{name}={value}").into()),
                None => others.push(format!("--{name}").into()),
            }
        }
        loaded.extend(others);
        Ok(loaded)
    }

    /// Expands an abbreviated name, in any case and with `_` for `-`. Returns the name unchanged if
    /// it matches no option or several.
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

    /// Formats an option file with the options of a command line.
    pub(crate) fn text(&self, command: &Command, matches: &ArgMatches) -> String {
        let section = self.sections.first().copied().unwrap_or_default();
        file::text(section, &given_options(command, matches))
    }
}

/// Writes an option file.
///
/// # Errors
/// The path and the system's error.
pub(crate) fn save(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("--save-opts {}: {error}", path.display()))
}

/// Returns the options of a command line with their values, without `--save-opts`.
fn given_options(command: &Command, matches: &ArgMatches) -> Vec<(String, Option<String>)> {
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
