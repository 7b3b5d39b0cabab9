//! JSON Schemas of results and plans, generated from the Rust types.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::result::{RunResult, SCHEMA};

/// Base URL of the published schemas.
const FOLDER: &str = "https://github.com/wirestorm/wirestorm/schemas";

/// Returns the schema of `wirestorm.result/2` (JSON Schema 2020-12), as stored in `schemas/`.
pub fn result() -> String {
    schema_of::<RunResult>(SCHEMA)
}

/// Returns the schema of stream plans, `wirestorm.plan/1`, as stored in `schemas/`.
pub fn plan() -> String {
    with_title(wirestorm_plan::traffic::schema(), "wirestorm.plan/1")
}

/// Returns the schema of `wirestorm.emulation-plan/1`, as stored in `schemas/`.
pub fn emulation_plan() -> String {
    with_title(wirestorm_plan::emulation::schema(), "wirestorm.emulation-plan/1")
}

/// Returns the schema of a document that Wirestorm writes. `title` is its name and version.
pub fn schema_of<T: JsonSchema>(title: &str) -> String {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    named(&mut schema, title);
    format!("{schema:#}\n")
}

/// Returns the text of a schema that has neither `$id` nor title. `title` is the name and version of
/// its documents.
pub fn with_title(mut schema: Value, title: &str) -> String {
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    named(&mut schema, title);
    format!("{schema:#}\n")
}

/// Sets the title of a schema and the `$id` derived from it.
fn named(schema: &mut Value, title: &str) {
    let file = title.replace('/', ".");
    schema["$id"] = format!("{FOLDER}/{file}.json").into();
    schema["title"] = title.into();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_schemas_match_the_types() {
        let documents =
            [("result", 2, result()), ("plan", 1, plan()), ("emulation-plan", 1, emulation_plan())];
        for (name, version, text) in documents {
            let file = format!("schemas/wirestorm.{name}.{version}.json");
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
