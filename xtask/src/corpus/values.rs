//! Comparison of the results of two runs, value by value.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::rules::{Parts, Renamed, Rules};

/// Result of a comparison.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// Differences, one line each.
    pub(super) differences: Vec<String>,
    /// Number of equal values.
    pub(super) same: usize,
    /// Number of values that are not compared, by reason.
    pub(super) not_compared: BTreeMap<String, usize>,
}

/// Compares the results of a run.
pub(super) fn compare(run: &str, before: &Value, after: &Value, rules: &Rules) -> Comparison {
    let mut found = Comparison::default();
    let mut after = leaves(after);
    let shapes = shapes(after.keys());
    let mut seen = BTreeSet::new();
    for (path, value) in leaves(before) {
        let name = path.join(".");
        let (new, value) = match rules.renamed(&path, &value) {
            Renamed::To(new, value) => (new, value),
            Renamed::Gone => continue,
        };
        // The rule may use the old or the new name.
        let exception = rules.exception(run, &path).or_else(|| rules.exception(run, &new));
        let other = after.remove(&new);
        if let Some(reason) = exception {
            if other.is_none() && !has_shape(&shapes, &new) {
                found.differences.push(format!("{name}: {value}, now absent"));
            }
            *found.not_compared.entry(reason.to_owned()).or_default() += 1;
        } else if other.as_ref() == Some(&value) {
            found.same += 1;
        } else {
            let renamed = if path == new { String::new() } else { format!(" ({})", new.join(".")) };
            let other = other.map_or_else(|| "absent".to_owned(), |it| it.to_string());
            found.differences.push(format!("{name}{renamed}: {value}, now {other}"));
        }
        seen.insert(new);
    }
    for (path, value) in after {
        if !seen.contains(&path) && !rules.is_new(&path) && rules.exception(run, &path).is_none() {
            found.differences.push(format!("{}: absent, now {value}", path.join(".")));
        }
    }
    found
}

/// All prefixes of paths, with `#` for list indexes and other numbers.
fn shapes<'a>(paths: impl Iterator<Item = &'a Parts>) -> BTreeSet<Parts> {
    let mut found = BTreeSet::new();
    for path in paths.map(|path| shape(path)) {
        found.extend((1..=path.len()).map(|length| path[..length].to_vec()));
    }
    found
}

fn shape(path: &[String]) -> Parts {
    let is_number = |part: &str| part.chars().all(|it| it.is_ascii_digit() || it == '-');
    path.iter().map(|part| if is_number(part) { "#".to_owned() } else { part.clone() }).collect()
}

/// Whether a value of the same kind exists. A value that is not compared may be at another list
/// index or in another histogram range, as long as its name exists.
fn has_shape(shapes: &BTreeSet<Parts>, path: &[String]) -> bool {
    let path = shape(path);
    let named = path.iter().rposition(|part| part != "#").map_or(0, |last| last + 1);
    shapes.contains(&path[..named])
}

/// Scalars and empty containers of a document, by path.
fn leaves(document: &Value) -> BTreeMap<Parts, Value> {
    let mut found = BTreeMap::new();
    collect(document, &mut Vec::new(), &mut found);
    found
}

fn collect(value: &Value, path: &mut Parts, found: &mut BTreeMap<Parts, Value>) {
    let mut each = |key: String, value: &Value| {
        path.push(key);
        collect(value, path, found);
        path.pop();
    };
    match value {
        Value::Object(object) if !object.is_empty() => {
            object.iter().for_each(|(key, value)| each(key.clone(), value));
        }
        Value::Array(list) if !list.is_empty() => {
            let mut names = BTreeSet::new();
            for (place, value) in list.iter().enumerate() {
                // List elements with a unique `name` are identified by it, as in an object.
                let name = value.get("name").and_then(Value::as_str);
                let name = name.filter(|name| names.insert((*name).to_owned()));
                each(name.map_or_else(|| place.to_string(), str::to_owned), value);
            }
        }
        value => drop(found.insert(path.clone(), value.clone())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_compared_by_path() {
        let before = json!({"a": 1, "b": [{"name": "x", "c": 2}, 5], "gone": true, "d": {}});
        let rules = Rules::default();
        let same = compare("run", &before, &before, &rules);
        assert_eq!((same.differences.len(), same.same), (0, 6));
        let after = json!({"a": 2, "b": [{"name": "x", "c": 2}, 5], "d": {}, "new": 1});
        let found = compare("run", &before, &after, &rules);
        let expected = ["a: 1, now 2", "gone: true, now absent", "new: absent, now 1"];
        assert_eq!(found.differences, expected);
        let mut rules = Rules::default();
        rules.take_exception("* **.times.** a clock").unwrap();
        let times = |times| json!({"times": times});
        let compared = |a: &Value, b: &Value| compare("run", a, b, &rules).differences.len();
        assert_eq!(compared(&times(json!([[1, 2]])), &times(json!([[3, 2], [4, 5]]))), 0);
        assert_eq!(compared(&times(json!({"max": 1})), &times(json!({"most": 1}))), 1);
        let keyed = leaves(&json!([{"name": "x", "c": 2}]));
        assert_eq!(keyed.get(&vec!["x".to_owned(), "c".to_owned()]), Some(&json!(2)));
    }
}
