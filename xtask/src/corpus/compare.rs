//! Comparison of two recordings, run by run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;

use serde_json::Value;

use super::captured;
use super::definition::Frames;
use super::record::{MESSAGES, OUTPUT, RUN};
use super::rules::Rules;
use super::values;
use crate::{Fallible, table};

/// Number of differences that are printed for a run without `--all`.
const SHOWN: usize = 12;

/// Results of the runs of a section.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    same: usize,
    different: usize,
    skipped: usize,
    missing: usize,
}

/// Totals over all runs.
#[derive(Debug, Default)]
struct Totals {
    values: usize,
    captures: usize,
    frames: u64,
    not_compared: BTreeMap<String, usize>,
}

/// Compares two recordings and prints the differences; any difference is a failure.
pub(super) fn compare(
    [before, after]: [&Path; 2],
    rules: &Rules,
    only: &[String],
    is_all: bool,
) -> Fallible<ExitCode> {
    let shown = if is_all { usize::MAX } else { SHOWN };
    let (old, new) = (runs(before)?, runs(after)?);
    let mut sections = BTreeMap::<String, Count>::new();
    let mut totals = Totals::default();
    let names: BTreeSet<&String> =
        old.keys().chain(new.keys()).filter(|name| super::is_wanted(name, only)).collect();
    for name in names {
        let section = name.split('/').next().unwrap_or_default().to_owned();
        let count = sections.entry(section).or_default();
        let (Some(was), Some(is)) = (old.get(name), new.get(name)) else {
            let place = if old.contains_key(name) { before } else { after };
            println!("{name}: only in {}", place.display());
            count.missing += 1;
            continue;
        };
        if let (Some(_), Some(_)) = (was["skipped"].as_str(), is["skipped"].as_str()) {
            count.skipped += 1;
            continue;
        }
        let sides = [(before.join(name), was), (after.join(name), is)];
        let differences = compare_run(name, &sides, rules, &mut totals)?;
        match differences.is_empty() {
            true => count.same += 1,
            false => {
                count.different += 1;
                println!("{name}: {}", is["command"].as_str().unwrap_or_default());
                differences.iter().take(shown).for_each(|line| println!("    {line}"));
                if differences.len() > shown {
                    println!("    and {} more", differences.len() - shown);
                }
            }
        }
    }
    Ok(summarize(&sections, &totals))
}

/// Reads the runs of a recording, by name.
fn runs(folder: &Path) -> Fallible<BTreeMap<String, Value>> {
    let mut found = BTreeMap::new();
    for file in super::files_below(folder)? {
        if file.file_name().is_some_and(|name| name == RUN) {
            let text = std::fs::read_to_string(folder.join(&file))?;
            let run: Value = serde_json::from_str(&text)?;
            let name = file.parent().map(|it| it.display().to_string()).unwrap_or_default();
            found.insert(name, run);
        }
    }
    match found.is_empty() {
        true => Err(format!("{}: no recording found", folder.display()).into()),
        false => Ok(found),
    }
}

fn compare_run(
    name: &str,
    [(before, was), (after, is)]: &[(std::path::PathBuf, &Value); 2],
    rules: &Rules,
    totals: &mut Totals,
) -> Fallible<Vec<String>> {
    let mut differences = Vec::new();
    for side in ["skipped", "status", "dropped"] {
        let exception = rules.exception(name, &[format!("({side})")]);
        if was[side] != is[side] && exception.is_none() {
            differences.push(format!("{side}: {}, now {}", was[side], is[side]));
        }
    }
    let files = |folder: &Path, renamed: &dyn Fn(&str) -> String| -> Fallible<BTreeMap<_, _>> {
        let all = super::files_below(folder)?;
        let named = all.into_iter().map(|file| (renamed(&file.display().to_string()), file));
        Ok(named.filter(|(name, _)| name != RUN && name != MESSAGES).collect())
    };
    let old = files(before, &|name| rules.file(name))?;
    let mut new = files(after, &str::to_owned)?;
    for (file, path) in old {
        let Some(other) = new.remove(&file) else {
            differences.push(format!("{file}: absent now"));
            continue;
        };
        let (a, b) = (std::fs::read(before.join(path))?, std::fs::read(after.join(other))?);
        let found = compare_file((name, &file), (&a, &b), was, rules, totals);
        differences.extend(found.into_iter().map(|it| format!("{file}: {it}")));
    }
    differences.extend(new.keys().map(|file| format!("{file}: only now")));
    Ok(differences)
}

/// Compares a capture, a result document, standard output, or another file.
fn compare_file(
    (run, file): (&str, &str),
    (before, after): (&[u8], &[u8]),
    description: &Value,
    rules: &Rules,
    totals: &mut Totals,
) -> Vec<String> {
    if captured::is_capture(before) && captured::is_capture(after) {
        let frames =
            description["frames"].as_str().and_then(Frames::named).unwrap_or(Frames::Ordered);
        let mask = description["mask"].as_array().into_iter().flatten();
        let mask: Vec<String> = mask.filter_map(Value::as_str).map(str::to_owned).collect();
        let are_times_compared = description["times"] != Value::Bool(false);
        totals.captures += usize::from(frames != Frames::None);
        totals.frames += captured::count(before).filter(|_| frames != Frames::None).unwrap_or(0);
        return captured::compare(before, after, frames, are_times_compared, &mask);
    }
    let document = |bytes: &[u8]| {
        let value: Option<Value> = serde_json::from_slice(bytes).ok();
        value.filter(|it| it.is_object() || it.is_array())
    };
    if let (Some(before), Some(after)) = (document(before), document(after)) {
        let found = values::compare(run, &before, &after, rules);
        totals.values += found.same;
        for (reason, count) in found.not_compared {
            *totals.not_compared.entry(reason).or_default() += count;
        }
        return found.differences;
    }
    if file == OUTPUT && description["output"] != Value::Bool(true) {
        return Vec::new();
    }
    let before = match std::str::from_utf8(before) {
        Ok(text) => rules.text(text).into_bytes(),
        Err(_) => before.to_vec(),
    };
    if before == after {
        return Vec::new();
    }
    let line = |bytes: &[u8]| {
        let lines = String::from_utf8_lossy(bytes).into_owned();
        lines.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let (before, after) = (line(&before), line(after));
    let first = before.iter().zip(&after).position(|(a, b)| a != b);
    let first = first.unwrap_or(before.len().min(after.len()));
    let shown = |lines: &[String]| lines.get(first).cloned().unwrap_or_default();
    vec![format!("line {}: {:?}, now {:?}", first + 1, shown(&before), shown(&after))]
}

fn summarize(sections: &BTreeMap<String, Count>, totals: &Totals) -> ExitCode {
    let mut all = Count::default();
    let mut rows = Vec::new();
    let row = |name: &str, count: &Count| {
        let Count { same, different, skipped, missing } = *count;
        let cells = [same, different, missing, skipped].map(|it| it.to_string());
        [vec![name.to_owned()], cells.to_vec()].concat()
    };
    for (name, count) in sections {
        rows.push(row(name, count));
        all.same += count.same;
        all.different += count.different;
        all.skipped += count.skipped;
        all.missing += count.missing;
    }
    rows.push(row("all", &all));
    table::print(&["section", "same", "different", "missing", "skipped"], &rows);
    let Totals { values, captures, frames, .. } = totals;
    println!("{frames} frames in {captures} captures, {values} values the same");
    for (reason, count) in &totals.not_compared {
        println!("not compared: {count} values: {reason}");
    }
    match all.different + all.missing {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
