//! Tests of `wirestorm runs` on histories that the store writes.

use std::process::{Command, Output};

use serde_json::Value;
use wirestorm_control::result::RunResult;
use wirestorm_method::method::{Findings, Method};
use wirestorm_method::rfc2544::{Rfc2544, Rfc2544Findings, ThroughputRow};
use wirestorm_method::trial::{Length, OfferOutput, StepOutput, Traffic, TrialInput, TrialOutput};
use wirestorm_store::Store;
use wirestorm_store::record::{
    BENCH_SCHEMA, BenchResult, RecordKind, RunRecord, State, TrialRecord,
};
use wirestorm_testkit::Scratch;

/// Runs the command on the history in `runs`.
fn runs(scratch: &Scratch, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wirestorm"))
        .arg("runs")
        .args(arguments)
        .env("WIRESTORM_RUNS", scratch.file("runs"))
        .output()
        .expect("the program runs")
}

fn text(output: &Output) -> String {
    let (out, messages) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{out}{messages}")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(output)))
}

/// Saves a benchmark with a throughput and one trial for each number of lost frames.
fn bench(scratch: &Scratch, name: &str, throughput: u64, lost: &[u64]) {
    let store = Store::open(&scratch.file("runs")).expect("a history");
    let method = Method::Rfc2544(Rfc2544::default());
    let mut record = RunRecord::new(RecordKind::Bench, vec!["wirestorm".into(), "bench".into()]);
    record.name = Some(name.into());
    record.method = Some(method.clone());
    let mut writer = store.create(record).expect("a run");
    let traffic = Traffic { name: "ipv4".into(), frame_size: Some(64) };
    for (number, lost) in (1..).zip(lost) {
        let (offered, seconds) = (10_000, 10.0);
        let step = StepOutput {
            intended: offered,
            offered,
            received: offered - lost,
            seconds,
            ..Default::default()
        };
        let offer = OfferOutput { steps: vec![step], ..Default::default() };
        let trial = TrialRecord {
            number,
            started_unix_ns: 1,
            input: TrialInput::constant("frame-loss", &traffic, 1_000, Length::Units(offered)),
            output: TrialOutput { offers: vec![offer], ..Default::default() },
            result: Some(Box::new(RunResult::default())),
        };
        writer.trial(&trial).expect("a trial");
    }
    let row = ThroughputRow {
        traffic: "ipv4".into(),
        frame_size: 64,
        load: throughput,
        ..Default::default()
    };
    let findings = Rfc2544Findings { throughput: vec![row], ..Default::default() };
    let result = BenchResult {
        schema: BENCH_SCHEMA.into(),
        version: "1".into(),
        parameters: method,
        findings: Findings::Rfc2544(findings),
        deviations: vec!["trial duration: 10 s, RFC 2544 section 24 recommends 60 s".into()],
        warnings: Vec::new(),
        verdict: Default::default(),
        trials: lost.len() as u32,
        trials_s: 10.0,
        elapsed_s: 10.0,
        is_simulated: true,
    };
    writer.result(&result).expect("a result");
    writer.finish(State::Finished, None).expect("the end");
}

#[test]
fn benchmarks_are_listed_with_their_first_finding() {
    let scratch = Scratch::new().expect("a folder");
    let empty = runs(&scratch, &["list"]);
    assert!(text(&empty).contains("no saved runs") && empty.status.success(), "{}", text(&empty));
    bench(&scratch, "first", 1_488_095, &[0, 3]);
    let list = text(&runs(&scratch, &["list", "--kind", "bench", "--since", "1h"]));
    assert!(list.contains("rfc2544") && list.contains("1.49 M frames/s"), "{list}");
    assert!(list.lines().all(|line| line.chars().count() <= 80), "{list}");
    let none = text(&runs(&scratch, &["list", "--kind", "replay"]));
    assert_eq!(none.lines().count(), 1, "{none}");
    let shown = text(&runs(&scratch, &["show", "first"]));
    for words in ["1,488,095", "frame-loss", "0.030000 %", "deviation", "met"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

#[test]
fn comparison_marks_differences_beyond_the_spread_of_repeated_trials() {
    let scratch = Scratch::new().expect("a folder");
    bench(&scratch, "before", 1_000_000, &[10, 12, 8, 11, 9]);
    bench(&scratch, "same", 1_000_000, &[11, 9, 12, 8, 10]);
    bench(&scratch, "worse", 900_000, &[60, 62, 58, 61, 59]);
    bench(&scratch, "single", 1_000_000, &[10]);
    for (other, status, words) in [
        ("same", 0, "0 of 2 figures of repeated trials differ beyond noise"),
        ("worse", 3, "2 of 2 figures of repeated trials differ beyond noise"),
        ("single", 0, "no repeated trials at the same load in both runs"),
    ] {
        let output = runs(&scratch, &["compare", "before", other, "--fail-beyond-noise"]);
        let text = text(&output);
        assert_eq!(output.status.code(), Some(status), "{text}");
        assert!(text.contains(words), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_eq!(runs(&scratch, &["compare", "before", other]).status.code(), Some(0));
    }
    let compared = json(&runs(&scratch, &["compare", "before", "worse", "--json"]));
    assert_eq!(compared["beyond_noise"], true);
    let throughput = &compared["figures"][0];
    assert_eq!(throughput["name"], "throughput ipv4 64");
    assert_eq!(
        (&throughput["difference_percent"], &throughput["noise"]),
        (&(-10.0).into(), &"no_repetition".into())
    );
    let loss = &compared["trials"][0]["figures"][1];
    assert_eq!((&loss["name"], &loss["noise"]), (&"loss ratio".into(), &"beyond".into()));
    // 0.5 % of 10,000 frames; 8 degrees of freedom, t = 2.306, standard error 1 frame.
    let bound = |index: usize| loss["interval"][index].as_f64().expect("a bound");
    assert!((bound(0) - 0.476_94).abs() < 1e-4 && (bound(1) - 0.523_06).abs() < 1e-4, "{loss}");
}

#[test]
fn errors_name_the_run_and_the_next_step() {
    let scratch = Scratch::new().expect("a folder");
    let check = |arguments: &[&str], status: i32, words: &[&str]| {
        let output = runs(&scratch, arguments);
        let text = text(&output);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {text}");
        for word in words {
            assert!(text.contains(word), "{arguments:?}: {word}: {text}");
        }
    };
    check(&["show", "x"], 2, &["no run is saved", "--save"]);
    bench(&scratch, "twin", 1, &[0]);
    bench(&scratch, "twin", 1, &[0]);
    check(&["show", "x"], 2, &["\"x\"", "wirestorm runs list"]);
    check(&["show", "twin"], 2, &["fits 2 runs", "use the ID"]);
    check(&["export", "latest", "-o", "a.txt"], 2, &["\"txt\"", "--format"]);
    check(&["list", "--since", "soon"], 2, &["--since", "7d"]);
    let id = json(&runs(&scratch, &["show", "--json"]))["run"]["id"].clone();
    let id = id.as_str().expect("an ID");
    std::fs::write(scratch.file("runs").join(id).join("trials/000001.json"), "{").expect("a file");
    check(&["show", id], 0, &["trials/000001.json: damaged", "throughput"]);
    check(&["delete", id, "--yes"], 0, &["deleted", id]);
    check(&["export", "twin", "--what", "series"], 0, &["run,trial,path", "warning: no series"]);
}
