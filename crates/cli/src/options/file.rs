//! Option files, in the format of `--save-opts` and `--load-opts`.
//!
//! ```text
//! # a comment
//! intf1 = eth1            before the first section: for every program
//! [TCPREPLAY]
//! topspeed                = and : are optional, quotes too
//! ```

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Maximum length of an option file in bytes.
const LENGTH_MAX: u64 = 1 << 20;

/// Error of reading an option file.
#[derive(Debug, thiserror::Error)]
pub(super) enum OptionsFileError {
    /// The file cannot be opened or read.
    #[error("--load-opts {path}: {error}")]
    Read {
        /// Path of the file.
        path: String,
        /// Error of the system.
        error: io::Error,
    },
    /// A line is not an option.
    #[error("--load-opts {path}: line {line}: found {found:?}, expected NAME or NAME = VALUE")]
    Line {
        /// Path of the file.
        path: String,
        /// Line number, from 1.
        line: usize,
        /// Content of the line.
        found: String,
    },
    /// The file exceeds the maximum length.
    #[error("--load-opts {path}: expected an options file of at most {LENGTH_MAX} bytes")]
    Long {
        /// Path of the file.
        path: String,
    },
}

/// Reads the options of a program's sections, as command-line arguments.
///
/// # Errors
/// The file cannot be read, is too long, or has a line that is not an option.
pub(super) fn read(path: &Path, sections: &[&str]) -> Result<Vec<OsString>, OptionsFileError> {
    let name = || path.display().to_string();
    let read_error = |error| OptionsFileError::Read { path: name(), error };
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(LENGTH_MAX + 1).read_to_string(&mut text))
        .map_err(read_error)?;
    if text.len() as u64 > LENGTH_MAX {
        return Err(OptionsFileError::Long { path: name() });
    }
    parse(&text, sections).map_err(|(line, found)| OptionsFileError::Line {
        path: name(),
        line,
        found,
    })
}

/// Parses the arguments. The error is the number and content of the first invalid line.
fn parse(text: &str, sections: &[&str]) -> Result<Vec<OsString>, (usize, String)> {
    let mut arguments = Vec::new();
    let mut is_ours = true;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            let name = name.trim_end_matches(']').trim();
            is_ours = sections.iter().any(|section| name.eq_ignore_ascii_case(section));
            continue;
        }
        if !is_ours {
            continue;
        }
        let end = line.find(|c: char| c.is_whitespace() || c == '=' || c == ':');
        let (name, rest) = line.split_at(end.unwrap_or(line.len()));
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(is_name) {
            return Err((index + 1, line.to_owned()));
        }
        let rest = rest.trim_start();
        let value = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim();
        let argument = if value.is_empty() {
            format!("--{name}")
        } else {
            format!("--{name}={}", unquoted(value))
        };
        arguments.push(argument.into());
    }
    Ok(arguments)
}

/// Removes the quotes around a value.
fn unquoted(value: &str) -> &str {
    ['"', '\'']
        .into_iter()
        .find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(value)
}

/// Formats an option file: a section with one option a line, with its value if it has one.
pub(super) fn text(section: &str, options: &[(String, Option<String>)]) -> String {
    let mut text = format!("# options of {}\n[{section}]\n", section.to_ascii_lowercase());
    for (name, value) in options {
        match value {
            Some(value) => text.push_str(&format!("{name} = \"{value}\"\n")),
            None => text.push_str(&format!("{name}\n")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_from_the_global_part_and_the_own_section() {
        let file = "# comment\nintf1 = eth1\n\n[TCPREWRITE]\nseed 5\n[TCPREPLAY]\ntopspeed\n\
                    loop: 3\ndecode \"-n -X\"\n";
        let arguments = parse(file, &["TCPREPLAY"]).unwrap();
        assert_eq!(arguments, ["--intf1=eth1", "--topspeed", "--loop=3", "--decode=-n -X"]);
        assert_eq!(parse(file, &["TCPREPLAY_EDIT"]).unwrap(), ["--intf1=eth1"]);
    }

    #[test]
    fn saved_options_load_unchanged() {
        let options = [("portmap".into(), Some("80:8080".into())), ("topspeed".to_owned(), None)];
        let arguments = parse(&text("TCPREPLAY", &options), &["TCPREPLAY"]).unwrap();
        assert_eq!(arguments, ["--portmap=80:8080", "--topspeed"]);
    }

    #[test]
    fn invalid_lines_are_reported_with_their_number() {
        assert_eq!(parse("loop = 3\n<loop>3\n", &["X"]), Err((2, "<loop>3".into())));
        let missing = read(Path::new("no/such.rc"), &["X"]).unwrap_err().to_string();
        assert!(missing.starts_with("--load-opts no/such.rc: "), "{missing}");
    }
}
