//! YAML and JSON documents: values with their paths, and their errors.

pub(crate) mod address;
pub(crate) mod error;
pub(crate) mod port;
pub(crate) mod range;
pub(crate) mod rate;
pub(crate) mod schema;
pub(crate) mod time;
pub(crate) mod value_at;

use std::fmt;

use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use error::PlanError;

/// Parses a document. Text that starts with `{` is JSON; text that starts with `[` is JSON if it
/// parses as such. Anything else is YAML.
pub(crate) fn read(text: &str) -> Result<Value, PlanError> {
    let begin = text.trim_start().chars().next();
    let json = matches!(begin, Some('{' | '[')).then(|| serde_json::from_str::<UniqueKeys>(text));
    let outcome = match (begin, json) {
        (_, Some(Ok(document))) => return Ok(document.0),
        (Some('{'), Some(Err(error))) => Err(("JSON", error.to_string())),
        _ => read_yaml(text).map_err(|reason| ("YAML", reason)),
    };
    outcome.map_err(|(form, reason)| PlanError {
        path: error::ROOT_PATH.into(),
        message: match reason.split_once(DUPLICATE) {
            Some((before, after)) => duplicate_key_message(before, after),
            None => format!("invalid {form}: {reason}"),
        },
    })
}

/// Text that both libraries put before a duplicate key in their error.
const DUPLICATE: &str = "duplicate mapping key: ";

/// Formats the error for a duplicate key, from the text before and after [`DUPLICATE`].
fn duplicate_key_message(before: &str, after: &str) -> String {
    let (line, context) = after.split_once('\n').unwrap_or((after, ""));
    let (key, at) = line.rsplit_once(" at ").unwrap_or((line, before.trim_end_matches([':', ' '])));
    let mut message = format!("{at}: duplicate key {key:?}");
    if !context.is_empty() {
        message.push('\n');
        message.push_str(context);
    }
    message
}

fn read_yaml(text: &str) -> Result<Value, String> {
    // The library's limits protect against untrusted input; a plan may have 20,000 flows.
    let mut options = serde_saphyr::Options::default();
    options.budget = None;
    // Only `true` and `false` are booleans, so a flow can have the name `y` or `on`.
    options.strict_booleans = true;
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| strip_library_advice(&error.to_string()))
}

/// A value whose objects have no duplicate keys, as in YAML. Plain serde_json keeps the last one.
struct UniqueKeys(Value);

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueKeysVisitor).map(Self)
    }
}

struct UniqueKeysVisitor;

impl<'de> Visitor<'de> for UniqueKeysVisitor {
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
        while let Some(UniqueKeys(item)) = items.next_element()? {
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
            let UniqueKeys(value) = entries.next_value()?;
            map.insert(key, value);
        }
        Ok(map.into())
    }
}

/// Removes advice for programmers from a message of the YAML library.
fn strip_library_advice(reason: &str) -> String {
    reason
        .trim_start_matches("error: ")
        .replace(", set DuplicateKeyPolicy in Options if acceptable", "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn yaml_and_json_give_the_same_document() {
        let yaml = "flows:\n  - name: a   # the first\n    size: 64\n    packet: [{ipv4: {dst: 10.0.0.1}}]\n";
        let json =
            r#"{"flows": [{"name": "a", "size": 64, "packet": [{"ipv4": {"dst": "10.0.0.1"}}]}]}"#;
        assert_eq!(read(yaml).unwrap(), read(json).unwrap());
        let all = r#"{"b": [null, true, -1, 18446744073709551615, 2.5, "\u00e9"], "a": {"b": {}}}"#;
        assert_eq!(read(all).unwrap(), serde_json::from_str::<Value>(all).unwrap());
    }

    #[test]
    fn syntax_errors_and_duplicate_keys_have_their_line() {
        let error = read("flows:\n  - a: [1\n").unwrap_err().to_string();
        assert!(error.starts_with("plan: invalid YAML:") && error.contains("line"), "{error}");
        let error = read("{\"flows\": ").unwrap_err().to_string();
        assert!(error.contains("invalid JSON") && error.contains("line 1"), "{error}");
        let twice = read("flows: 1\nflows: 2\n").unwrap_err().to_string();
        let first = "plan: line 2 column 1: duplicate key \"flows\"";
        assert_eq!(twice.lines().next(), Some(first));
        let twice = read("{\"flows\": [{\"a\": 1,\n \"a\": 2}]}").unwrap_err().to_string();
        let expected = "plan: line 2 column 4: duplicate key \"a\"";
        assert_eq!(twice, expected);
        let list = read("[{\"a\": 1, \"a\": 2}]").unwrap_err().to_string();
        assert!(list.contains("duplicate key \"a\""), "{list}");
        // YAML 1.1 base-60 integers do not apply.
        let address = read("a: 10:00:00:00:00:01").unwrap();
        assert_eq!(address, json!({"a": "10:00:00:00:00:01"}));
        let words = read("[y, no, on, true]").unwrap();
        assert_eq!(words, json!(["y", "no", "on", true]));
    }

    #[test]
    fn reads_a_document_of_20_000_items() {
        let text: String =
            (0..20_000).map(|n| format!("- name: f{n}\n  size: 64\n  list: [1, 2, 3]\n")).collect();
        assert_eq!(read(&text).unwrap().as_array().map(Vec::len), Some(20_000));
    }
}
