//! Files of options, as `--save-opts` writes and `--load-opts` reads them.
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

/// Bytes of an options file at most.
const LENGTH_MAX: u64 = 1 << 20;

/// Why an options file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum OptionsFileError {
    /// It does not open or read.
    #[error("--load-opts {path}: {error}")]
    Read {
        /// The file.
        path: String,
        /// What the system said.
        error: io::Error,
    },
    /// A line is no option.
    #[error("--load-opts {path}: line {line}: found {found:?}, expected NAME or NAME = VALUE")]
    Line {
        /// The file.
        path: String,
        /// Its line, from 1.
        line: usize,
        /// What stands there.
        found: String,
    },
    /// It is no options file.
    #[error("--load-opts {path}: longer than {LENGTH_MAX} bytes, which no options file is")]
    Long {
        /// The file.
        path: String,
    },
}

/// The options for a program's sections, as arguments of a command line.
///
/// # Errors
/// A file that does not open, is too long, or has a line that is no option.
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

/// The arguments, or the line that is none and its number.
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

/// A value without the quotes around it.
fn unquoted(value: &str) -> &str {
    ['"', '\'']
        .into_iter()
        .find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(value)
}

/// The text of a file with these options: names, and values where they have one.
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
    fn only_the_programs_section_and_what_stands_before_all_count() {
        let file = "# comment\nintf1 = eth1\n\n[TCPREWRITE]\nseed 5\n[TCPREPLAY]\ntopspeed\n\
                    loop: 3\ndecode \"-n -X\"\n";
        let arguments = parse(file, &["TCPREPLAY"]).unwrap();
        assert_eq!(arguments, ["--intf1=eth1", "--topspeed", "--loop=3", "--decode=-n -X"]);
        assert_eq!(parse(file, &["TCPREPLAY_EDIT"]).unwrap(), ["--intf1=eth1"]);
    }

    #[test]
    fn what_was_saved_reads_as_it_was() {
        let options = [("portmap".into(), Some("80:8080".into())), ("topspeed".to_owned(), None)];
        let arguments = parse(&text("TCPREPLAY", &options), &["TCPREPLAY"]).unwrap();
        assert_eq!(arguments, ["--portmap=80:8080", "--topspeed"]);
    }

    #[test]
    fn lines_that_are_no_options_are_named() {
        assert_eq!(parse("loop = 3\n<loop>3\n", &["X"]), Err((2, "<loop>3".into())));
        let missing = read(Path::new("no/such.rc"), &["X"]).unwrap_err().to_string();
        assert!(missing.starts_with("--load-opts no/such.rc: "), "{missing}");
    }
}
