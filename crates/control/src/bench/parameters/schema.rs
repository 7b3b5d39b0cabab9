//! JSON Schema (2020-12) of a method with its parameters, as `bench` of a test has them.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use wirestorm_method::rfc2544::Test;
use wirestorm_method::y1564;
use wirestorm_plan::{services, traffic};

use super::value::{FRAME_SIZES, PROTOCOLS};
use super::{
    MlrsearchParameters, NdrParameters, PathParameters, Rfc2544Parameters, Y1564Parameters,
};

/// Key of the services of Y.1564, which are no parameter of the method.
const SERVICES: &str = "services";

/// Returns the schema: an object for each method.
pub fn bench_schema() -> Value {
    let mut of_y1564 = keys::<Y1564Parameters>();
    of_y1564.insert(SERVICES.to_owned(), services::schema());
    let methods = [
        method("rfc2544", "RFC 2544, without the test `reset`.", keys::<Rfc2544Parameters>()),
        method("mlrsearch", "MLRsearch, RFC 9971.", keys::<MlrsearchParameters>()),
        method("ndr", "Non-drop rate of frames.", keys::<NdrParameters>()),
        method("y1564", "Ethernet services, ITU-T Y.1564.", of_y1564),
    ];
    json!({"anyOf": methods})
}

fn method(name: &str, description: &str, of_method: Map<String, Value>) -> Value {
    let mut required = vec!["method", "tx", "rx"];
    required.extend(of_method.contains_key(SERVICES).then_some(SERVICES));
    let mut properties = Map::new();
    properties.insert("method".to_owned(), json!({"const": name, "description": "Method."}));
    properties.extend(keys::<PathParameters>());
    properties.extend(of_method);
    json!({
        "type": "object",
        "description": description,
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// Returns the keys of parameters, with their defaults in the descriptions, as plans have them.
fn keys<T: JsonSchema>() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|it| it.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    let mut keys = match schema.get_mut("properties").map(Value::take) {
        Some(Value::Object(keys)) => keys,
        _ => Map::new(),
    };
    for key in keys.values_mut() {
        let default = match key.as_object_mut().and_then(|key| key.remove("default")) {
            Some(Value::Array(items)) => items.iter().map(word).collect::<Vec<_>>().join(", "),
            // An optional key describes its default itself.
            None | Some(Value::Null) => continue,
            Some(other) => word(&other),
        };
        if !default.is_empty() {
            let description = key["description"].as_str().unwrap_or_default();
            key["description"] = format!("{description} Default: {default}.").into();
        }
    }
    keys
}

/// Formats a default: texts without quotes, whole numbers without a fraction.
fn word(value: &Value) -> String {
    match (value, value.as_f64()) {
        (Value::String(text), _) => text.clone(),
        (_, Some(number)) => number.to_string(),
        (other, None) => other.to_string(),
    }
}

/// Returns the schema of one value, or a list of them.
fn one_or_many(item: &Value) -> Schema {
    json_schema!({"anyOf": [item, {"type": "array", "items": item, "minItems": 1}]})
}

pub(super) fn texts(_: &mut SchemaGenerator) -> Schema {
    one_or_many(&json!({"type": "string"}))
}

pub(super) fn numbers(_: &mut SchemaGenerator) -> Schema {
    one_or_many(&json!({"type": "number"}))
}

pub(super) fn tests_of_rfc2544(_: &mut SchemaGenerator) -> Schema {
    let between_machines = Test::ALL.into_iter().filter(|test| *test != Test::Reset);
    one_or_many(&json!({"enum": between_machines.map(Test::name).collect::<Vec<_>>()}))
}

pub(super) fn tests_of_y1564(_: &mut SchemaGenerator) -> Schema {
    let names = [&["all"], &y1564::Test::ALL.map(y1564::Test::name)[..]].concat();
    one_or_many(&json!({"enum": names}))
}

pub(super) fn protocols(_: &mut SchemaGenerator) -> Schema {
    one_or_many(&json!({"enum": PROTOCOLS}))
}

pub(super) fn frame_sizes(_: &mut SchemaGenerator) -> Schema {
    let (min, max) = (FRAME_SIZES.start(), FRAME_SIZES.end());
    one_or_many(&json!({"type": "integer", "minimum": min, "maximum": max}))
}

pub(super) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "pattern": traffic::time_schema()["pattern"]})
}

pub(super) fn optional_time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "null"], "pattern": traffic::time_schema()["pattern"]})
}

pub(super) fn wait(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [{"const": "0"}, traffic::time_schema()]})
}
