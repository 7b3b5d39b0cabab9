//! Documents in YAML or JSON: values with the paths to them, and what is wrong with them.

pub(crate) mod address;
pub(crate) mod error;
pub(crate) mod place;
pub(crate) mod port;
pub(crate) mod schema;
pub(crate) mod time;

use std::fmt;

use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use error::PlanError;

/// Reads a document: JSON where it begins with a brace, or with a bracket and is JSON; else YAML.
pub(crate) fn read(text: &str) -> Result<Value, PlanError> {
    let begin = text.trim_start().chars().next();
    let json = matches!(begin, Some('{' | '[')).then(|| serde_json::from_str::<Unambiguous>(text));
    let outcome = match (begin, json) {
        (_, Some(Ok(document))) => return Ok(document.0),
        (Some('{'), Some(Err(error))) => Err(("JSON", error.to_string())),
        _ => read_yaml(text).map_err(|reason| ("YAML", reason)),
    };
    outcome.map_err(|(form, reason)| PlanError {
        path: error::WHOLE.into(),
        message: match reason.split_once(DUPLICATE) {
            Some((before, after)) => told_twice(before, after),
            None => format!("found no {form}: {reason}"),
        },
    })
}

/// What both libraries' reasons have before a key that is there twice.
const DUPLICATE: &str = "duplicate mapping key: ";

/// The key that a document has twice, and its place, from the text around [`DUPLICATE`].
fn told_twice(before: &str, after: &str) -> String {
    let (line, context) = after.split_once('\n').unwrap_or((after, ""));
    let (key, at) = line.rsplit_once(" at ").unwrap_or((line, before.trim_end_matches([':', ' '])));
    let mut message = format!("{at}: found the key {key:?} a second time, expected it once");
    if !context.is_empty() {
        message.push('\n');
        message.push_str(context);
    }
    message
}

fn read_yaml(text: &str) -> Result<Value, String> {
    // The limits of the library are for texts of strangers; a plan may have 20,000 flows.
    let mut options = serde_saphyr::Options::default();
    options.budget = None;
    // A flow may be called `y`, and `on` is no answer.
    options.strict_booleans = true;
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| without_advice(&error.to_string()))
}

/// A value in which no object has a key twice, as in YAML: serde_json takes the last one.
struct Unambiguous(Value);

impl<'de> Deserialize<'de> for Unambiguous {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UnambiguousVisitor).map(Self)
    }
}

struct UnambiguousVisitor;

impl<'de> Visitor<'de> for UnambiguousVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Unambiguous(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("{DUPLICATE}{key}")));
            }
            let Unambiguous(value) = entries.next_value()?;
            map.insert(key, value);
        }
        Ok(map.into())
    }
}

/// What the library says, without its words for programmers.
fn without_advice(reason: &str) -> String {
    reason
        .trim_start_matches("error: ")
        .replace(", set DuplicateKeyPolicy in Options if acceptable", "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn yaml_and_json_are_the_same_to_a_plan() {
        let yaml = "flows:\n  - name: a   # the first\n    size: 64\n    packet: [{ipv4: {dst: 10.0.0.1}}]\n";
        let json =
            r#"{"flows": [{"name": "a", "size": 64, "packet": [{"ipv4": {"dst": "10.0.0.1"}}]}]}"#;
        assert_eq!(read(yaml).unwrap(), read(json).unwrap());
        let all = r#"{"b": [null, true, -1, 18446744073709551615, 2.5, "\u00e9"], "a": {"b": {}}}"#;
        assert_eq!(read(all).unwrap(), serde_json::from_str::<Value>(all).unwrap());
    }

    #[test]
    fn what_is_neither_is_told_with_its_line() {
        let error = read("flows:\n  - a: [1\n").unwrap_err().to_string();
        assert!(error.starts_with("plan: found no YAML:") && error.contains("line"), "{error}");
        let error = read("{\"flows\": ").unwrap_err().to_string();
        assert!(error.contains("no JSON") && error.contains("line 1"), "{error}");
        let twice = read("flows: 1\nflows: 2\n").unwrap_err().to_string();
        let first =
            "plan: line 2 column 1: found the key \"flows\" a second time, expected it once";
        assert_eq!(twice.lines().next(), Some(first));
        let twice = read("{\"flows\": [{\"a\": 1,\n \"a\": 2}]}").unwrap_err().to_string();
        let expected = "plan: line 2 column 4: found the key \"a\" a second time, expected it once";
        assert_eq!(twice, expected);
        let list = read("[{\"a\": 1, \"a\": 2}]").unwrap_err().to_string();
        assert!(list.contains("found the key \"a\" a second time"), "{list}");
        // No numbers to the base of sixty.
        let address = read("a: 10:00:00:00:00:01").unwrap();
        assert_eq!(address, json!({"a": "10:00:00:00:00:01"}));
        let words = read("[y, no, on, true]").unwrap();
        assert_eq!(words, json!(["y", "no", "on", true]));
    }

    #[test]
    fn a_plan_may_be_long() {
        let text: String =
            (0..20_000).map(|n| format!("- name: f{n}\n  size: 64\n  list: [1, 2, 3]\n")).collect();
        assert_eq!(read(&text).unwrap().as_array().map(Vec::len), Some(20_000));
    }
}
