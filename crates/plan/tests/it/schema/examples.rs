//! The example plans of the project.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

/// Returns the examples that have this top-level field.
#[allow(clippy::disallowed_methods, reason = "a test reads the examples")]
pub(crate) fn examples_with(field: &str) -> Vec<(String, Value)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a plan");
        let document = serde_saphyr::from_str(&text).expect("YAML");
        (path.display().to_string(), document)
    };
    let entries = fs::read_dir(folder).expect("a folder").map(|it| it.expect("an entry").path());
    let plans = entries.filter(|path| path.extension().is_some_and(|it| it == "yaml"));
    let is_of_these = |(_, document): &(String, Value)| document.get(field).is_some();
    let examples: Vec<_> = plans.map(read).filter(is_of_these).collect();
    assert!(!examples.is_empty(), "plans with {field} in {folder}");
    examples
}
