//! Comparison rules: renamed values, and values that are not compared.
//!
//! `renames.txt` has a line for each renamed value, `OLD = NEW`:
//!
//! ```text
//! ports.*.sent = ports.*.transmitted.frames
//! schema: "wirestorm.run/1" = schema: "wirestorm.result/2"
//! old.path =
//!  = new.path
//! text: packets = text: frames
//! file: out.left.pcap = file: left.pcap
//! ```
//!
//! A path consists of object keys and list indexes; an element with a `name` has that instead of
//! its index. `*` matches one part, and `**` any number of parts; the new path has as many of both.
//! A path with a value renames only that value. A path without counterpart was removed or is new.
//! `text:` renames words of standard output, `file:` renames files.
//!
//! `not-compared.txt` has a line for each value that is not compared: run pattern, path and reason.
//! The comparison still checks that the value exists. The path `(status)` is the exit status.

use std::path::Path;

use serde_json::Value;

use crate::Fallible;

/// Path of a value in a result, in parts.
pub(super) type Parts = Vec<String>;

/// A rename rule.
#[derive(Clone, Debug)]
struct Rename {
    /// `None` if the new value has no counterpart in the recording before.
    old: Option<(Parts, Option<Value>)>,
    /// `None` if the value no longer exists.
    new: Option<(Parts, Option<Value>)>,
}

/// A value that is not compared.
#[derive(Clone, Debug)]
struct Exception {
    runs: String,
    path: Parts,
    reason: String,
}

/// All rules.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    renames: Vec<Rename>,
    texts: Vec<(String, String)>,
    files: Vec<(String, String)>,
    exceptions: Vec<Exception>,
}

/// Counterpart of a value in the recording after.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Renamed {
    /// Path and value in the recording after.
    To(Parts, Value),
    /// The value no longer exists.
    Gone,
}

impl Rules {
    /// Reads both files.
    pub(super) fn read(folder: &Path) -> Fallible<Self> {
        let mut rules = Self::default();
        for (name, take) in [
            ("renames.txt", Self::take_rename as fn(&mut Self, &str) -> Option<()>),
            ("not-compared.txt", Self::take_exception),
        ] {
            let text = std::fs::read_to_string(folder.join(name))
                .map_err(|error| format!("{name}: {error}"))?;
            for (number, line) in text.lines().enumerate() {
                let is_empty = line.trim().is_empty() || line.starts_with('#');
                if !is_empty && take(&mut rules, line).is_none() {
                    return Err(format!("{name}: line {}: {line:?}", number + 1).into());
                }
            }
        }
        Ok(rules)
    }

    fn take_rename(&mut self, line: &str) -> Option<()> {
        let (old, new) = line.split_once('=')?;
        let (old, new) = (old.trim(), new.trim());
        for (word, list) in [("text:", &mut self.texts), ("file:", &mut self.files)] {
            if let Some(old) = old.strip_prefix(word) {
                let new = new.strip_prefix(word)?;
                list.push((old.trim().to_owned(), new.trim().to_owned()));
                return Some(());
            }
        }
        let side = |text: &str| {
            let (path, value) = match text.split_once(": ") {
                Some((path, value)) => (path, Some(serde_json::from_str(value).ok()?)),
                None => (text, None),
            };
            let parts = path.split('.').map(str::to_owned).collect::<Parts>();
            Some((!text.is_empty()).then_some((parts, value)))
        };
        let (old, new) = (side(old)?, side(new)?);
        (old.is_some() || new.is_some()).then(|| self.renames.push(Rename { old, new }))
    }

    /// Parses a line of `not-compared.txt`.
    pub(super) fn take_exception(&mut self, line: &str) -> Option<()> {
        let mut words = line.split_whitespace();
        let (runs, path) = (words.next()?.to_owned(), words.next()?);
        let path = path.split('.').map(str::to_owned).collect();
        let reason = words.collect::<Vec<_>>().join(" ");
        (!reason.is_empty()).then(|| self.exceptions.push(Exception { runs, path, reason }))
    }

    /// Maps a value of the recording before to the recording after.
    pub(super) fn renamed(&self, path: &[String], value: &Value) -> Renamed {
        for rename in &self.renames {
            let Some((old, only)) = &rename.old else { continue };
            let stars = wildcards(old, path);
            let Some(stars) = stars.filter(|_| only.as_ref().is_none_or(|it| it == value)) else {
                continue;
            };
            return match &rename.new {
                None => Renamed::Gone,
                Some((new, other)) => {
                    Renamed::To(filled(new, &stars), other.clone().unwrap_or_else(|| value.clone()))
                }
            };
        }
        Renamed::To(path.to_vec(), value.clone())
    }

    /// Whether a path exists only in the recording after.
    pub(super) fn is_new(&self, path: &[String]) -> bool {
        let mut new =
            self.renames.iter().filter(|it| it.old.is_none()).filter_map(|it| it.new.as_ref());
        new.any(|(pattern, _)| wildcards(pattern, path).is_some())
    }

    /// Reason why a value is not compared.
    pub(super) fn exception(&self, run: &str, path: &[String]) -> Option<&str> {
        let is_meant =
            |it: &&Exception| super::matches(&it.runs, run) && wildcards(&it.path, path).is_some();
        self.exceptions.iter().find(is_meant).map(|it| it.reason.as_str())
    }

    /// Applies the text renames to a text of the recording before.
    pub(super) fn text(&self, text: &str) -> String {
        self.texts.iter().fold(text.to_owned(), |text, (old, new)| text.replace(old, new))
    }

    /// Applies the file renames to a file name of the recording before.
    pub(super) fn file(&self, name: &str) -> String {
        let found = self.files.iter().find(|(old, _)| old == name);
        found.map_or(name, |(_, new)| new).to_owned()
    }
}

/// Parts that the wildcards of a pattern match; `None` if the path does not match.
fn wildcards(pattern: &[String], path: &[String]) -> Option<Vec<Parts>> {
    let Some((part, pattern)) = pattern.split_first() else {
        return path.is_empty().then(Vec::new);
    };
    let with = |star: &[String], rest: &[String]| {
        let found = wildcards(pattern, rest)?;
        Some([vec![star.to_vec()], found].concat())
    };
    if part == "**" {
        return (0..=path.len()).find_map(|length| with(&path[..length], &path[length..]));
    }
    let (first, rest) = path.split_first()?;
    match part.as_str() {
        "*" => with(std::slice::from_ref(first), rest),
        part if super::matches(part, first) => wildcards(pattern, rest),
        _ => None,
    }
}

/// Replaces the wildcards of a pattern.
fn filled(pattern: &[String], stars: &[Parts]) -> Parts {
    let mut stars = stars.iter();
    let mut parts = Parts::new();
    for part in pattern {
        match part.as_str() {
            "*" | "**" => parts.extend(stars.next().into_iter().flatten().cloned()),
            part => parts.push(part.to_owned()),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path(text: &str) -> Parts {
        text.split('.').map(str::to_owned).collect()
    }

    fn rules(lines: &[&str]) -> Rules {
        let mut rules = Rules::default();
        lines.iter().for_each(|line| rules.take_rename(line).unwrap());
        rules
    }

    #[test]
    fn rename_changes_the_path_and_keeps_the_value() {
        let rules = rules(&[
            "kind: \"a\" = sort: \"b\"",
            "ports.*.tcp.** = sides.*.counters.tcp.**",
            "old =",
            " = fresh.*",
        ]);
        let to = |old: &str, value| rules.renamed(&path(old), &value);
        assert_eq!(to("kind", json!("a")), Renamed::To(path("sort"), json!("b")));
        assert_eq!(to("kind", json!("c")), Renamed::To(path("kind"), json!("c")));
        let new = path("sides.left.counters.tcp.sent.max");
        assert_eq!(to("ports.left.tcp.sent.max", json!(1)), Renamed::To(new, json!(1)));
        assert_eq!(to("old", json!(1)), Renamed::Gone);
        assert!(rules.is_new(&path("fresh.one")) && !rules.is_new(&path("fresh")));
    }

    #[test]
    fn double_star_matches_any_number_of_parts() {
        let matches = |pattern: &str, text: &str| wildcards(&path(pattern), &path(text)).is_some();
        assert!(matches("**.cpu_s", "cpu_s") && matches("**.cpu_s", "a.b.cpu_s"));
        assert!(matches("**.times.**", "a.times.b.c") && !matches("**.times.**", "a.time.b"));
    }

    #[test]
    fn exception_needs_a_reason() {
        let mut rules = Rules::default();
        assert!(rules.take_exception("run/* elapsed_s").is_none());
        rules.take_exception("run/* *_pps a clock").unwrap();
        assert_eq!(rules.exception("run/x", &path("sent_pps")), Some("a clock"));
        assert_eq!(rules.exception("sim/x", &path("sent_pps")), None);
        assert_eq!(rules.exception("run/x", &path("sent")), None);
    }

    #[test]
    fn corpus_rules_parse() {
        Rules::read(&super::super::home()).unwrap();
    }
}
