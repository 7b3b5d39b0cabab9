//! A corpus of runs, recorded with two binaries and compared.
//!
//! It verifies that a change does not alter Wirestorm's behaviour: record the runs before and after
//! the change, then compare. The folder `xtask/corpus` defines the runs ([`definition`]). A tree
//! with other flag names has other commands under the same run names.

mod captured;
mod compare;
mod definition;
mod inputs;
mod record;
mod rules;
mod values;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lexopt::ValueExt;

use crate::{Fallible, workspace};

/// Runs the command `corpus`.
pub(crate) fn run(mut arguments: lexopt::Parser) -> Fallible<ExitCode> {
    let command = match arguments.next()? {
        Some(lexopt::Arg::Value(command)) => command.to_string_lossy().into_owned(),
        Some(lexopt::Arg::Long("help")) => return Ok(crate::help()),
        Some(other) => return Err(other.unexpected().into()),
        None => return Err("corpus: expected record or compare".into()),
    };
    match command.as_str() {
        "record" => record(arguments),
        "compare" => compare(arguments),
        other => Err(format!("corpus {other}: expected record or compare").into()),
    }
}

fn record(mut arguments: lexopt::Parser) -> Fallible<ExitCode> {
    let (mut folder, mut binary, mut only) = (None::<PathBuf>, None::<PathBuf>, Vec::new());
    let (mut inputs, mut is_list) = (inputs::InputFolders::from_environment(), false);
    while let Some(argument) = arguments.next()? {
        match argument {
            lexopt::Arg::Long("binary") => binary = Some(arguments.value()?.into()),
            lexopt::Arg::Long("only") => only.push(arguments.value()?.parse::<String>()?),
            lexopt::Arg::Long("input") => inputs.set(&arguments.value()?.parse::<String>()?)?,
            lexopt::Arg::Long("list") => is_list = true,
            lexopt::Arg::Long("help") => return Ok(crate::help()),
            lexopt::Arg::Value(value) if folder.is_none() => folder = Some(value.into()),
            other => return Err(other.unexpected().into()),
        }
    }
    let sections = definition::read(&home().join("runs"))?;
    if is_list {
        return record::list(&sections, &inputs, &only);
    }
    let folder = folder.ok_or("corpus record: missing DIR")?;
    let binary = match binary {
        Some(binary) => binary,
        None => built()?,
    };
    let binary = std::fs::canonicalize(&binary)
        .map_err(|error| format!("--binary {}: {error}", binary.display()))?;
    record::record(&sections, &inputs, &only, &binary, &folder)
}

fn compare(mut arguments: lexopt::Parser) -> Fallible<ExitCode> {
    let (mut folders, mut only, mut is_all) = (Vec::<PathBuf>::new(), Vec::new(), false);
    while let Some(argument) = arguments.next()? {
        match argument {
            lexopt::Arg::Long("all") => is_all = true,
            lexopt::Arg::Long("only") => only.push(arguments.value()?.parse::<String>()?),
            lexopt::Arg::Long("help") => return Ok(crate::help()),
            lexopt::Arg::Value(value) if folders.len() < 2 => folders.push(value.into()),
            other => return Err(other.unexpected().into()),
        }
    }
    let [before, after] = folders.as_slice() else {
        return Err("corpus compare: missing BEFORE or AFTER".into());
    };
    let rules = rules::Rules::read(&home())?;
    compare::compare([before, after], &rules, &only, is_all)
}

/// Folder with the definition of the corpus.
fn home() -> PathBuf {
    workspace::root().join("xtask/corpus")
}

/// Path of the built binary; prefers the release build.
fn built() -> Fallible<PathBuf> {
    for place in ["release/wirestorm", "debug/wirestorm"] {
        let path = workspace::in_target(place)?;
        if path.is_file() {
            return Ok(path);
        }
    }
    Err("corpus record: no wirestorm is built; build it, or use --binary PATH".into())
}

/// Whether a run is selected: its name contains one of the texts, or matches one as a pattern. An
/// empty list selects all.
fn is_wanted(name: &str, only: &[String]) -> bool {
    only.is_empty() || only.iter().any(|it| name.contains(it) || matches(it, name))
}

/// Whether a text matches a pattern, in which `*` matches any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut left) = text.strip_prefix(head) else { return false };
    loop {
        if matches(rest, left) {
            return true;
        }
        let mut characters = left.chars();
        if characters.next().is_none() {
            return false;
        }
        left = characters.as_str();
    }
}

/// All files in a folder and its subfolders, by relative path, sorted.
fn files_below(folder: &Path) -> Fallible<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        let entries = std::fs::read_dir(&next);
        for entry in entries.map_err(|error| format!("{}: {error}", next.display()))? {
            let entry = entry?;
            let (kind, path) = (entry.file_type()?, entry.path());
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                found.push(path.strip_prefix(folder)?.to_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn star_matches_any_text() {
        for (pattern, text) in [("a*", "a/b"), ("*", ""), ("a*c*e", "abcde"), ("abc", "abc")] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a*", "ba"), ("a", "ab"), ("a*c", "ab")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
