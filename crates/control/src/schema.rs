//! The JSON Schema of the result, from the structures that are written.

use schemars::generate::SchemaSettings;

use crate::result::RunResult;

/// Where the schema can be found.
const ID: &str = "https://github.com/wirestorm/wirestorm/schemas/wirestorm.result.1.json";

/// The schema of `wirestorm.result/1` (JSON Schema 2020-12), as `schemas/` holds it.
pub fn result() -> String {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<RunResult>();
    schema.insert("$id".into(), ID.into());
    schema.insert("title".into(), "wirestorm.result/1".into());
    let mut text = format!("{:#}", schema.as_value());
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn the_published_schema_is_that_of_the_structures() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/wirestorm.result.1.json");
        let published = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            published == result(),
            "schemas/wirestorm.result.1.json is not what the code writes; update it with: \
             cargo run -p wirestorm -- schema > schemas/wirestorm.result.1.json"
        );
    }

    #[test]
    fn every_field_is_described_and_no_other_is_allowed() {
        let schema: Value = serde_json::from_str(&result()).unwrap();
        let definitions = schema["$defs"].as_object().unwrap();
        let mut fields = 0;
        for (name, object) in
            definitions.iter().map(|(name, it)| (name.as_str(), it)).chain([("", &schema)])
        {
            assert_eq!(object["additionalProperties"], false, "{name}");
            let properties = object["properties"].as_object().unwrap();
            let required = object["required"].as_array().unwrap();
            assert_eq!(properties.len(), required.len(), "{name}: every field is always there");
            for (field, property) in properties {
                let description = property["description"].as_str().unwrap_or_default();
                assert!(!description.is_empty(), "{name}.{field} is not described");
                // Names of Rust mean nothing to a reader of the schema.
                assert!(!description.contains("[`"), "{name}.{field}: {description}");
                fields += 1;
            }
        }
        assert!(fields > 80, "{fields} fields");
    }
}
