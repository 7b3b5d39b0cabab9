//! Records agree with their published schemas.

use serde_json::Value;
use wirestorm_control::result::Verdict;
use wirestorm_method::method::{Findings, Method};
use wirestorm_method::rfc2544::{Rfc2544, Rfc2544Findings, ThroughputRow};
use wirestorm_store::record::{BENCH_SCHEMA, BenchResult};
use wirestorm_store::{figures, schema};

use crate::{record, trial};

fn assert_valid(schema: &str, document: &Value) {
    let schema: Value = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let wrong: Vec<String> = validator
        .iter_errors(document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let mut other = document.clone();
    other["surprise"] = 1.into();
    assert!(!validator.is_valid(&other), "an unknown field");
}

#[test]
fn records_validate_against_their_schemas() {
    let mut run = record(Some("name"));
    run.method = Some(Method::Rfc2544(Rfc2544::default()));
    assert_valid(&schema::run(), &serde_json::to_value(run).unwrap());
    assert_valid(&schema::trial(), &serde_json::to_value(trial(1)).unwrap());
    let row =
        ThroughputRow { traffic: "ipv4".into(), frame_size: 64, load: 7, ..Default::default() };
    let findings = Rfc2544Findings { throughput: vec![row], ..Rfc2544Findings::default() };
    let bench = BenchResult {
        schema: BENCH_SCHEMA.into(),
        version: "1".into(),
        parameters: Method::Rfc2544(Rfc2544::default()),
        findings: Findings::Rfc2544(findings),
        deviations: vec!["trial duration: 1 s".into()],
        warnings: Vec::new(),
        verdict: Verdict::default(),
        trials: 1,
        trials_s: 1.0,
        elapsed_s: 1.0,
        is_simulated: true,
    };
    assert_valid(&schema::bench(), &serde_json::to_value(&bench).unwrap());
    let figures = figures::of_findings(&bench.findings);
    assert_eq!((figures[0].name.as_str(), figures[0].value), ("throughput ipv4 64", 7.0));
}
