//! JSON Schemas of the records, generated from the Rust types.

use wirestorm_control::schema::schema_of;

use crate::record::{BENCH_SCHEMA, BenchResult, RUN_SCHEMA, RunRecord, TRIAL_SCHEMA, TrialRecord};

/// Returns the schema of `wirestorm.run/1`, as stored in `schemas/`.
pub fn run() -> String {
    schema_of::<RunRecord>(RUN_SCHEMA)
}

/// Returns the schema of `wirestorm.trial/1`, as stored in `schemas/`.
pub fn trial() -> String {
    schema_of::<TrialRecord>(TRIAL_SCHEMA)
}

/// Returns the schema of `wirestorm.bench/1`, as stored in `schemas/`.
pub fn bench() -> String {
    schema_of::<BenchResult>(BENCH_SCHEMA)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_schemas_match_the_types() {
        for (name, text) in [("run", run()), ("trial", trial()), ("bench", bench())] {
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
