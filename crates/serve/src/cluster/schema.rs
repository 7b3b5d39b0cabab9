//! JSON Schemas of tests and their results.

use serde_json::{Value, json};
use utoipa::PartialSchema;
use wirestorm_api::run::{ReplayRequest, RunOptions};
use wirestorm_control::bench::bench_schema;
use wirestorm_control::plan::test_plan::{self, RunSchemas};
use wirestorm_control::schema::{schema_of, with_title};

use super::document::{TEST_SCHEMA, TestDocument};

/// Returns the schema of `wirestorm.test/1`, as stored in `schemas/`.
pub fn test_schema() -> String {
    schema_of::<TestDocument<'_>>(TEST_SCHEMA)
}

/// Returns the schema of the files of `wirestorm test`, `wirestorm.test-plan/1`, as stored in
/// `schemas/`.
///
/// # Errors
/// A schema of the HTTP API does not serialise.
pub fn test_plan_schema() -> serde_json::Result<String> {
    let schema = test_plan::schema(RunSchemas {
        replay: replay()?,
        bench: bench_schema(),
        options: serde_json::to_value(RunOptions::schema())?,
    });
    Ok(with_title(schema, "wirestorm.test-plan/1"))
}

/// Returns the schema of a replay. In a test, its names are those of files and of the test's ports.
fn replay() -> serde_json::Result<Value> {
    let mut schema = serde_json::to_value(ReplayRequest::schema())?;
    schema["required"] = json!(["captures", "port"]);
    for (key, description) in [
        ("captures", "Files or folders, relative to the test, in the order of sending."),
        ("port", "Port of the test that sends."),
        ("second_port", "Port for the packets of servers; null to send all on `port`."),
        ("rx", "Port where the frames should arrive; null to receive nothing."),
    ] {
        schema["properties"][key]["description"] = description.into();
    }
    schema["properties"]["captures"]["minItems"] = 1.into();
    schema["properties"]["edits"]["type"] = json!(["object", "null"]);
    Ok(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_schemas_match_the_types() {
        for (name, text) in [("test", test_schema()), ("test-plan", test_plan_schema().unwrap())] {
            let file = format!("schemas/wirestorm.{name}.1.json");
            let path = format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"));
            let published = std::fs::read_to_string(path).unwrap_or_default();
            assert!(
                published == text,
                "{file} is not what the code writes; update it with: \
                 cargo run -p wirestorm -- schema {name} > {file}"
            );
        }
    }
}
