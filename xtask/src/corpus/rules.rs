//! What a comparison takes into account: names that have changed, and values that are not compared.
//!
//! `renames.txt` has a line for each name that has changed, `OLD = NEW`:
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
//! A path's parts are the keys of objects and the places in lists, where an element that has a
//! `name` goes by that. `*` is one part, and `**` any number of them; the new path has as many of both.
//! A path with a value renames that value alone. A path without another one is gone, or new.
//! `text:` is about words of standard output, `file:` about names of files.
//!
//! `not-compared.txt` has a line for each value that is not compared: a pattern of runs, a path, and
//! the reason. That the value is there is compared all the same. The path `(status)` is the exit
//! status.

use std::path::Path;

use serde_json::Value;

use crate::Fallible;

/// A path of a result, part by part.
pub(super) type Parts = Vec<String>;

/// One name that has changed.
#[derive(Clone, Debug)]
struct Rename {
    /// Without one, the new path has nothing that corresponds to it.
    old: Option<(Parts, Option<Value>)>,
    /// Without one, the old path is gone.
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

/// What becomes of a value of the recording before.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Renamed {
    /// It is this one in the recording after.
    To(Parts, Value),
    /// It is gone.
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

    /// Takes a line of the values that are not compared.
    pub(super) fn take_exception(&mut self, line: &str) -> Option<()> {
        let mut words = line.split_whitespace();
        let (runs, path) = (words.next()?.to_owned(), words.next()?);
        let path = path.split('.').map(str::to_owned).collect();
        let reason = words.collect::<Vec<_>>().join(" ");
        (!reason.is_empty()).then(|| self.exceptions.push(Exception { runs, path, reason }))
    }

    /// What a value of the recording before is in the recording after.
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

    /// Whether a path is known to be there in the recording after alone.
    pub(super) fn is_new(&self, path: &[String]) -> bool {
        let mut new =
            self.renames.iter().filter(|it| it.old.is_none()).filter_map(|it| it.new.as_ref());
        new.any(|(pattern, _)| wildcards(pattern, path).is_some())
    }

    /// Why a value is not compared.
    pub(super) fn exception(&self, run: &str, path: &[String]) -> Option<&str> {
        let is_meant =
            |it: &&Exception| super::matches(&it.runs, run) && wildcards(&it.path, path).is_some();
        self.exceptions.iter().find(is_meant).map(|it| it.reason.as_str())
    }

    /// A text of the recording before in the words of the one after.
    pub(super) fn text(&self, text: &str) -> String {
        self.texts.iter().fold(text.to_owned(), |text, (old, new)| text.replace(old, new))
    }

    /// A file of the recording before by its name in the one after.
    pub(super) fn file(&self, name: &str) -> String {
        let found = self.files.iter().find(|(old, _)| old == name);
        found.map_or(name, |(_, new)| new).to_owned()
    }
}

/// What the wildcards of a pattern stand for, where it matches a path.
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

/// A pattern with what its wildcards stand for.
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
    fn names_change_and_values_stay() {
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
    fn two_stars_stand_for_any_number_of_parts() {
        let matches = |pattern: &str, text: &str| wildcards(&path(pattern), &path(text)).is_some();
        assert!(matches("**.cpu_s", "cpu_s") && matches("**.cpu_s", "a.b.cpu_s"));
        assert!(matches("**.times.**", "a.times.b.c") && !matches("**.times.**", "a.time.b"));
    }

    #[test]
    fn what_is_not_compared_has_a_reason() {
        let mut rules = Rules::default();
        assert!(rules.take_exception("run/* elapsed_s").is_none());
        rules.take_exception("run/* *_pps a clock").unwrap();
        assert_eq!(rules.exception("run/x", &path("sent_pps")), Some("a clock"));
        assert_eq!(rules.exception("sim/x", &path("sent_pps")), None);
        assert_eq!(rules.exception("run/x", &path("sent")), None);
    }

    #[test]
    fn the_rules_of_the_tree_can_be_read() {
        Rules::read(&super::super::home()).unwrap();
    }
}
