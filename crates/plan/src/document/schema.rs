//! Building blocks of the JSON Schemas (2020-12) of plans.

use serde_json::{Map, Value, json};

use super::port::PORT;
use super::time::UNITS;

/// Returns a schema that matches nothing, for a field that the reader knows but no schema
/// describes. A test fails on it.
pub(crate) fn matches_nothing() -> Value {
    json!(false)
}

pub(crate) fn described(text: &str, mut schema: Value) -> Value {
    schema["description"] = text.into();
    schema
}

/// Returns the schema of an object with these fields; `required` of them must be present.
pub(crate) fn object(names: &[&str], required: &[&str], field: impl FnMut(&str) -> Value) -> Value {
    let mut schema = json!({"type": "object", "additionalProperties": false});
    schema["properties"] = properties(names, field);
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}

/// Returns the schema of an object with exactly one of these fields.
pub(crate) fn choice(names: &[&str], field: impl FnMut(&str) -> Value) -> Value {
    let mut schema = object(names, &[], field);
    schema["minProperties"] = 1.into();
    schema["maxProperties"] = 1.into();
    schema
}

fn properties(names: &[&str], mut field: impl FnMut(&str) -> Value) -> Value {
    names.iter().map(|&name| (name.to_owned(), field(name))).collect::<Map<_, _>>().into()
}

pub(crate) fn any_of(schemas: impl Into<Vec<Value>>) -> Value {
    json!({"anyOf": schemas.into()})
}

pub(crate) fn list(item: Value) -> Value {
    json!({"type": "array", "items": item})
}

pub(crate) fn text() -> Value {
    json!({"type": "string"})
}

pub(crate) fn pattern(pattern: &str) -> Value {
    json!({"type": "string", "pattern": format!("^({pattern})$")})
}

/// Returns the schema of an integer, as a number or a string.
pub(crate) fn integer(min: u64, max: u64) -> Value {
    any_of([json!({"type": "integer", "minimum": min, "maximum": max}), pattern(INTEGER)])
}

const INTEGER: &str = "0[xX][0-9a-fA-F_]+|0[bB][01_]+|[0-9_]+";

/// Returns the schema of a positive number. As a string it keeps its exact decimals.
pub(crate) fn number() -> Value {
    any_of([json!({"type": "number", "exclusiveMinimum": 0}), pattern(NUMBER)])
}

/// Returns the schema of a number that is positive or zero.
pub(crate) fn number_or_zero() -> Value {
    any_of([json!({"type": "number", "minimum": 0}), pattern(NUMBER)])
}

const NUMBER: &str = r"[0-9]*\.?[0-9]*[kKmMgGtT]?";

/// Returns the schema of a time with its unit, such as `1.5ms`.
pub fn time() -> Value {
    pattern(&time_pattern())
}

/// Returns the schema of a time that may be negative.
pub(crate) fn signed_time() -> Value {
    pattern(&format!("-?{}", time_pattern()))
}

fn time_pattern() -> String {
    let units: Vec<_> = UNITS.iter().map(|(unit, _)| *unit).collect();
    format!(r"\s*[0-9]*\.?[0-9]*\s*({})\s*", units.join("|"))
}

pub(crate) fn seed() -> Value {
    let text = "What draws follow from: the same for the same seed. Each place has its own.";
    described(text, integer(0, u64::MAX))
}

pub(crate) fn port() -> Value {
    object(&PORT, &["name"], |name| match name {
        "name" => described("Name of the port in the plan.", text()),
        "location" => described(
            "Interface: `eth1`, or `netns/NAME:veth0` in another namespace. `--port \
            NAME=INTERFACE` takes precedence.",
            text(),
        ),
        "speed" => described(
            "Speed in bits a second, such as `10G`, for rates in percent. Default: the interface's \
            speed.",
            number(),
        ),
        "addresses" => {
            let addresses = any_of([text(), list(text())]);
            described(
                "Addresses with prefix, such as `10.0.0.1/24`, one or a list. The port is then a \
                host: it answers ARP, neighbour discovery and pings, and resolves next hops. Do \
                not use an address that the interface already has.",
                addresses,
            )
        }
        "gateway" => {
            let gateways = any_of([text(), list(text())]);
            described(
                "Router, or routers, for destinations outside the port's networks, such as \
                `10.0.0.254`. Over IPv6 it may be a link-local address.",
                gateways,
            )
        }
        _ => matches_nothing(),
    })
}

/// Calls `see` with every nested schema and its path.
#[cfg(test)]
pub(crate) fn walk(schema: &Value, path: &str, see: &mut impl FnMut(&Value, &str)) {
    see(schema, path);
    match schema {
        Value::Object(map) => {
            map.iter().for_each(|(name, value)| walk(value, &format!("{path}/{name}"), see));
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, path, see)),
        _ => {}
    }
}

/// Counts the objects with properties. Panics if one is not closed or a field has no description.
#[cfg(test)]
pub(crate) fn closed_objects(schema: &Value) -> usize {
    let mut objects = 0;
    walk(schema, "", &mut |schema, path| {
        let is_closed = path.ends_with("/additionalProperties");
        assert!(is_closed || *schema != json!(false), "{path} is not described");
        if schema.get("properties").is_some_and(Value::is_object) {
            assert_eq!(schema["additionalProperties"], false, "{path}");
            objects += 1;
        }
    });
    objects
}
