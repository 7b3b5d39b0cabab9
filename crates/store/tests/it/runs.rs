//! Creating, finding, resuming and deleting runs.

use std::process::{Command, Stdio};
use std::thread;

use wirestorm_control::result::{Outcome, RunResult};
use wirestorm_store::record::{RecordKind, RunRecord, State};
use wirestorm_store::{SavedResult, Store, StoreError};

use crate::{create, open, record, text, trial};

#[test]
fn finished_run_has_its_record_result_and_trials() {
    let scratch = tempfile::tempdir().unwrap();
    let store = open(scratch.path());
    let mut draft = record(Some("base line"));
    draft.files.insert("plan.yaml".into(), "flows: []\n".into());
    draft.started_unix_ns = 1_795_737_901_123_456_789;
    let mut writer = store.create(draft).unwrap();
    assert_eq!(writer.id(), "2026-11-27T00-05-01-replay");
    assert_eq!(store.find("latest").unwrap().state, State::Running);
    writer.trial(&trial(1)).unwrap();
    let mut result = *trial(1).result.unwrap();
    result.achieved.tx.rates.pps = 123.5;
    result.verdict.outcome = Outcome::FellShort;
    writer.result(&result).unwrap();
    writer.finish(State::Finished, None).unwrap();

    let entry = open(scratch.path()).find("base line").unwrap();
    assert_eq!((entry.state, entry.outcome), (State::Finished, Some(Outcome::FellShort)));
    assert_eq!(entry.figure.unwrap().value, 123.5);
    assert_eq!(entry.trials, 1);
    let mut run = store.load(&entry.id).unwrap();
    assert_eq!(run.record.files["plan.yaml"], "flows: []\n");
    assert_eq!(run.record.name.as_deref(), Some("base line"));
    assert!(run.record.ended_unix_ns >= Some(1));
    assert!(run.record.machine.memory_bytes > 0);
    let Some(SavedResult::Run(found)) = &run.result else { panic!("{:?}", run.result) };
    assert_eq!(text(found), text(&result));
    let trials: Vec<_> = run.trials().unwrap().map(Result::unwrap).collect();
    assert_eq!(text(&trials), text(&[trial(1)]));
    let rows = run.rows().unwrap();
    assert_eq!((rows.len(), rows[0].load, rows[0].lost), (1, Some(1_001), Some(1)));
}

#[test]
fn runs_of_the_same_second_have_different_ids() {
    let scratch = tempfile::tempdir().unwrap();
    open(scratch.path());
    let start = |_| {
        thread::spawn({
            let directory = scratch.path().to_owned();
            move || {
                let mut draft = record(None);
                draft.started_unix_ns = 1_795_737_901_000_000_000;
                let store = Store::open(&directory).unwrap();
                store.create(draft).unwrap().id().to_owned()
            }
        })
    };
    let threads: Vec<_> = (0..8).map(start).collect();
    let mut ids: Vec<String> = threads.into_iter().map(|it| it.join().unwrap()).collect();
    ids.sort();
    let first = "2026-11-27T00-05-01-replay";
    let expected: Vec<String> = std::iter::once(first.to_owned())
        .chain((2..=8).map(|number| format!("{first}-{number}")))
        .collect();
    assert_eq!(ids, expected);
    let store = open(scratch.path());
    assert_eq!(store.runs().unwrap().len(), 8);
    // The ID of the first is the beginning of the others.
    assert_eq!(store.find(first).unwrap().id, first);
    let error = store.find("2026-11-27").unwrap_err();
    assert!(matches!(&error, StoreError::Ambiguous { ids, .. } if ids.len() == 8), "{error}");
    assert!(error.to_string().contains("use the ID of one"), "{error}");
}

#[test]
fn names_find_runs_unless_several_have_them() {
    let scratch = tempfile::tempdir().unwrap();
    let store = open(scratch.path());
    let error = store.find("latest").unwrap_err().to_string();
    assert!(error.contains("no run is saved here"), "{error}");
    let first = create(&store, Some("one")).id().to_owned();
    let second = create(&store, Some("two")).id().to_owned();
    assert_eq!(store.find("one").unwrap().id, first);
    assert_eq!(store.find("latest").unwrap().id, second);
    create(&store, Some("two"));
    assert!(matches!(store.find("two"), Err(StoreError::Ambiguous { .. })));
    let error = store.find("three").unwrap_err().to_string();
    assert!(error.contains("\"three\"") && error.contains("wirestorm runs list"), "{error}");
    for name in ["", "latest", " one", "a\nb", &"x".repeat(65)] {
        let created = store.create(record(Some(name)));
        assert!(matches!(created, Err(StoreError::Name(_))), "{name:?}");
    }
    assert_eq!(store.runs().unwrap().len(), 3);
}

#[test]
fn running_run_is_neither_resumed_nor_deleted() {
    let scratch = tempfile::tempdir().unwrap();
    let mut store = open(scratch.path());
    let mut writer = create(&store, None);
    let id = writer.id().to_owned();
    let ended = create(&store, None);
    let ended_id = ended.id().to_owned();
    ended.finish(State::Finished, None).unwrap();
    let running = |store: &Store| -> Vec<String> {
        store.running().unwrap().into_iter().map(|run| run.id).collect()
    };
    assert_eq!(running(&store), std::slice::from_ref(&id));
    store.delete(&ended_id).unwrap();
    for error in [store.resume(&id).map(drop).unwrap_err(), store.delete(&id).unwrap_err()] {
        assert!(matches!(error, StoreError::Running { .. }), "{error}");
        assert!(error.to_string().contains(&id), "{error}");
    }
    // The record of another process that runs, then of one that has ended.
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let start = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap();
    writer
        .update(|record| {
            record.process.id = child.id();
            record.process.start_ticks = start.parse().unwrap();
        })
        .unwrap();
    assert!(matches!(store.resume(&id), Err(StoreError::Running { .. })));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(open(scratch.path()).find(&id).unwrap().state, State::Died);
    assert!(running(&open(scratch.path())).is_empty());
    // The number of a process that runs, but started at another time.
    writer.update(|record| record.process.id = std::process::id()).unwrap();
    let (writer, trials) = store.resume(&id).unwrap();
    assert_eq!((trials.len(), writer.record().state), (0, State::Running));
    writer.finish(State::Finished, None).unwrap();
    let error = store.resume(&id).unwrap_err().to_string();
    assert!(error.contains("is finished"), "{error}");
    store.delete(&id).unwrap();
    assert!(store.runs().unwrap().is_empty());
    let left: Vec<_> = std::fs::read_dir(scratch.path()).unwrap().map(Result::unwrap).collect();
    assert!(left.iter().all(|it| it.file_name().to_string_lossy().contains("index")), "{left:?}");
}

#[test]
fn interrupted_run_continues_behind_its_last_trial() {
    let scratch = tempfile::tempdir().unwrap();
    let store = open(scratch.path());
    let mut writer = create(&store, None);
    for number in 1..=3 {
        writer.trial(&trial(number)).unwrap();
    }
    let id = writer.id().to_owned();
    writer.finish(State::Interrupted, Some("stopped".into())).unwrap();
    let (mut writer, trials) = store.resume(&id).unwrap();
    assert_eq!(trials.len(), 3);
    assert_eq!((&writer.record().error, writer.record().ended_unix_ns), (&None, None));
    writer.trial(&trial(4)).unwrap();
    writer.finish(State::Interrupted, None).unwrap();
    // A gap would give the method the wrong answers.
    let trials = scratch.path().join(&id).join("trials");
    std::fs::remove_file(trials.join("000002.json.zst")).unwrap();
    let error = store.resume(&id).unwrap_err().to_string();
    assert!(error.contains("000002.json") && error.contains("missing"), "{error}");
}

#[test]
fn discarded_run_leaves_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let store = open(scratch.path());
    let writer = create(&store, None);
    let directory = writer.directory().to_owned();
    writer.discard().unwrap();
    assert!(!directory.exists() && store.runs().unwrap().is_empty());
}

#[test]
fn error_of_a_failed_run_is_listed() {
    let scratch = tempfile::tempdir().unwrap();
    let store = open(scratch.path());
    let command = vec!["wirestorm".to_owned(), "run".to_owned()];
    let writer = store.create(RunRecord::new(RecordKind::Streams, command)).unwrap();
    writer.finish(State::Failed, Some("eth1 is gone".into())).unwrap();
    let entry = store.find("latest").unwrap();
    assert_eq!((entry.state, entry.error.as_deref()), (State::Failed, Some("eth1 is gone")));
    assert_eq!((entry.kind, entry.command.as_str()), (RecordKind::Streams, "wirestorm run"));
    assert!(entry.outcome.is_none() && entry.figure.is_none());
}

#[test]
fn numbers_of_results_are_read_back_bit_by_bit() {
    let scratch = tempfile::tempdir().unwrap();
    let store = open(scratch.path());
    let mut writer = create(&store, None);
    let mut result = RunResult::default();
    // Without exact parsing, the last bit of such numbers changes.
    for (index, bits) in [0x3fd5_5555_5555_5555_u64, 0x4340_0000_0000_0001, 0x0010_0000_0000_0001]
        .into_iter()
        .enumerate()
    {
        result.achieved.tx.rates.pps = f64::from_bits(bits);
        result.times.started_unix_ns = Some(u64::MAX - index as u64);
        writer.result(&result).unwrap();
        let Some(SavedResult::Run(found)) = store.load(writer.id()).unwrap().result else {
            panic!("no result")
        };
        assert_eq!(found.achieved.tx.rates.pps.to_bits(), bits);
        assert_eq!(found.times.started_unix_ns, result.times.started_unix_ns);
    }
}
