//! Runs read from directories and documents.

use std::fs;
use std::path::Path;

use wirestorm_report::run::{Run, RunOutput};
use wirestorm_report::{Options, Report};
use wirestorm_store::Store;
use wirestorm_store::record::State;
use wirestorm_testkit::Scratch;

use crate::sample;

/// Writes a run as a run directory has it.
fn write(run: &Run, directory: &Path) {
    fs::create_dir_all(directory.join("trials")).expect("a directory");
    let json = |value: serde_json::Value| value.to_string();
    let record = serde_json::to_value(&run.record).expect("a record");
    fs::write(directory.join("run.json"), json(record)).expect("a file");
    for trial in &run.trials {
        let file = directory.join(format!("trials/{:06}.json", trial.number));
        fs::write(file, json(serde_json::to_value(trial).expect("a trial"))).expect("a file");
    }
    // What a killed process leaves behind.
    fs::write(directory.join("trials/000999.json.tmp"), "{").expect("a file");
    if let Some(text) = result(run) {
        fs::write(directory.join("result.json"), text).expect("a file");
    }
}

fn result(run: &Run) -> Option<String> {
    let text = match run.result.as_ref()? {
        RunOutput::Run(result) => serde_json::to_string(result),
        RunOutput::Bench(result) => serde_json::to_string(result),
    };
    Some(text.expect("a result"))
}

fn html(run: &Run) -> String {
    let runs = [run.clone()];
    Report::new(&runs, &Options::default()).html()
}

#[test]
fn run_directory_gives_the_same_report() {
    let scratch = Scratch::new().expect("a folder");
    for (name, run) in
        [("bench", sample::mlrsearch("goals")), ("run", sample::streams("run", ["a", "b"]))]
    {
        let directory = scratch.file(name);
        write(&run, &directory);
        let read = Run::read(&directory).expect("a run");
        assert_eq!(read.trials.len(), run.trials.len());
        assert!(html(&read) == html(&run), "{name}: the reports differ");
    }
}

#[test]
fn long_trials_are_read_as_the_store_compresses_them() {
    let scratch = Scratch::new().expect("a folder");
    let mut run = sample::mlrsearch("goals");
    // Trials of real interfaces are long, because they have histograms and time series.
    run.trials[1].output.notes.push("x".repeat(20_000));
    let store = Store::open(scratch.path()).expect("a store");
    let mut writer = store.create(run.record.clone()).expect("a run");
    run.trials.iter().for_each(|trial| writer.trial(trial).expect("a file"));
    let directory = writer.directory().to_owned();
    writer.finish(State::Finished, None).expect("a record");
    assert!(directory.join("trials/000002.json.zst").exists());
    let read = Run::read(&directory).expect("a run");
    let outputs = |run: &Run| -> Vec<_> {
        run.trials.iter().map(|trial| (trial.number, trial.output.clone())).collect()
    };
    assert!(outputs(&read) == outputs(&run), "{} of {}", read.trials.len(), run.trials.len());
}

#[test]
fn run_without_a_result_shows_its_trials_and_a_warning() {
    let scratch = Scratch::new().expect("a folder");
    let mut run = sample::mlrsearch("goals");
    run.result = None;
    run.record.state = State::Running;
    write(&run, scratch.path());
    let html = html(&Run::read(scratch.path()).expect("a run"));
    assert!(html.contains("The run has no result: its process died"));
    assert!(html.contains("Trials in their order"));
}

#[test]
fn document_of_json_is_a_run_named_after_the_file() {
    let scratch = Scratch::new().expect("a folder");
    let file = scratch.file("night.json");
    fs::write(&file, result(&sample::streams("x", ["a", "b"])).expect("a result")).expect("a file");
    let run = Run::read(&file).expect("a run");
    assert_eq!((run.label(), run.trials.len()), ("night", 0));
}

#[test]
fn errors_name_the_file_and_what_was_expected() {
    let scratch = Scratch::new().expect("a folder");
    let file = scratch.file("a.json");
    let error = |text: &str| {
        fs::write(&file, text).expect("a file");
        Run::read(&file).expect_err("wrong").to_string()
    };
    let path = file.display().to_string();
    let shown = error("{\"schema\": \"other/1\"}");
    assert!(shown.starts_with(&path) && shown.contains("other/1"), "{shown}");
    assert!(shown.contains("expected a run directory"), "{shown}");
    let shown = error("{\"schema\": \"wirestorm.result/2\"}");
    assert!(shown.contains("missing field"), "{shown}");
    let shown = error("[");
    assert!(shown.contains("line 1"), "{shown}");
    let shown = Run::read(&scratch.file("none")).expect_err("no file").to_string();
    assert!(shown.contains("No such file"), "{shown}");
}
