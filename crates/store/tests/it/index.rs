//! The index is a cache: it is repaired from the run directories.

use std::fs;
use std::path::Path;
use std::thread;

use rusqlite::Connection;
use wirestorm_store::Store;
use wirestorm_store::record::State;

use crate::{create, open, trial};

/// Writes a finished run with two trials; returns its ID.
fn finished(store: &Store) -> String {
    let mut writer = create(store, None);
    writer.trial(&trial(1)).unwrap();
    writer.trial(&trial(2)).unwrap();
    let id = writer.id().to_owned();
    writer.finish(State::Finished, None).unwrap();
    id
}

fn index(directory: &Path) -> Connection {
    Connection::open(directory.join("index.sqlite")).unwrap()
}

fn count(directory: &Path, sql: &str) -> i64 {
    index(directory).query_row(sql, [], |row| row.get(0)).unwrap()
}

fn assert_complete(directory: &Path, id: &str) {
    let entry = open(directory).find(id).unwrap();
    assert_eq!((entry.state, entry.trials), (State::Finished, 2));
}

#[test]
fn trials_are_rows_with_their_figures() {
    let scratch = tempfile::tempdir().unwrap();
    finished(&open(scratch.path()));
    let row = index(scratch.path())
        .query_row("SELECT * FROM trials WHERE number = 2", [], |row| {
            let text = |column| row.get::<_, String>(column);
            let integer = |column| row.get::<_, i64>(column);
            Ok((
                (text("test")?, text("traffic")?, integer("frame_size")?, integer("load")?),
                (integer("offered")?, integer("received")?, integer("lost")?),
                (row.get::<_, f64>("seconds")?, row.get::<_, f64>("loss_ratio")?),
                (integer("delay_p50_ns")?, integer("delay_p99_ns")?, integer("delay_max_ns")?),
            ))
        })
        .unwrap();
    assert_eq!(row.0, ("throughput".into(), "ipv4".into(), 64, 1_002));
    assert_eq!(row.1, (60_120, 60_118, 2));
    assert_eq!(row.2, (59.999_999_123, 2.0 / 60_120.0));
    assert!(row.3.0 < row.3.1 && row.3.1 < row.3.2, "{row:?}");
    assert_eq!(row.3.2, 294_123);
}

#[test]
fn lost_corrupt_and_old_indexes_are_built_again() {
    let scratch = tempfile::tempdir().unwrap();
    let id = finished(&open(scratch.path()));
    let path = scratch.path().join("index.sqlite");
    fs::remove_file(&path).unwrap();
    assert_complete(scratch.path(), &id);

    let version = index(scratch.path());
    version.execute_batch("DROP TABLE trials; PRAGMA user_version = 0").unwrap();
    drop(version);
    assert_complete(scratch.path(), &id);

    for damage in [&b"this is no database, whatever its name says"[..], &[0xff; 40_000]] {
        fs::write(&path, damage).unwrap();
        let store = Store::open(scratch.path()).unwrap();
        let warning = store.warnings().first().expect("a warning").to_string();
        assert!(warning.contains("index.sqlite") && warning.contains("built again"), "{warning}");
        assert_eq!(store.find(&id).unwrap().trials, 2);
        assert_complete(scratch.path(), &id);
    }

    // A page in the middle: the header is sound.
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..].fill(0x5a);
    fs::write(&path, bytes).unwrap();
    let store = Store::open(scratch.path()).unwrap();
    assert_eq!(store.find(&id).unwrap().trials, 2);
    assert_complete(scratch.path(), &id);
}

#[test]
fn index_of_a_newer_version_stays_as_it_is() {
    let scratch = tempfile::tempdir().unwrap();
    let id = finished(&open(scratch.path()));
    index(scratch.path()).execute_batch("PRAGMA user_version = 99").unwrap();
    let store = Store::open(scratch.path()).unwrap();
    let warning = store.warnings().first().expect("a warning").to_string();
    assert!(warning.contains("version 99"), "{warning}");
    assert_eq!(store.find(&id).unwrap().trials, 2);
    assert_eq!(count(scratch.path(), "PRAGMA user_version"), 99);
}

#[test]
fn rows_follow_files_that_changed_without_the_index() {
    let scratch = tempfile::tempdir().unwrap();
    let id = finished(&open(scratch.path()));
    let other = finished(&open(scratch.path()));
    // A crash between the file and the index.
    index(scratch.path()).execute_batch("DELETE FROM trials; DELETE FROM runs").unwrap();
    assert_complete(scratch.path(), &id);
    // A run that someone removed, and one that someone copied here.
    let directory = scratch.path().join(&other);
    let parked = tempfile::tempdir().unwrap();
    fs::create_dir(parked.path().join("trials")).unwrap();
    for file in ["run.json", "trials/000001.json.zst", "trials/000002.json.zst"] {
        fs::copy(directory.join(file), parked.path().join(file)).unwrap();
    }
    fs::remove_dir_all(&directory).unwrap();
    assert_eq!(open(scratch.path()).runs().unwrap().len(), 1);
    assert_eq!(count(scratch.path(), "SELECT count(*) FROM trials"), 2, "its trials are gone");
    fs::rename(parked.path(), &directory).unwrap();
    fs::create_dir(parked.path()).unwrap();
    assert_complete(scratch.path(), &other);
    // A trial that someone removed.
    fs::remove_file(directory.join("trials/000001.json.zst")).unwrap();
    assert_eq!(open(scratch.path()).find(&other).unwrap().trials, 1);
    assert_complete(scratch.path(), &id);
}

#[test]
fn several_writers_share_the_index() {
    let scratch = tempfile::tempdir().unwrap();
    let write = |_| {
        let directory = scratch.path().to_owned();
        thread::spawn(move || {
            for _ in 0..5 {
                // Opening repairs the rows of runs that the other threads execute.
                finished(&Store::open(&directory).unwrap());
            }
        })
    };
    let threads: Vec<_> = (0..6).map(write).collect();
    for thread in threads {
        thread.join().unwrap();
    }
    // Without a repair: all rows are there.
    assert_eq!(count(scratch.path(), "SELECT count(*) FROM runs WHERE state = 'finished'"), 30);
    assert_eq!(count(scratch.path(), "SELECT count(*) FROM trials"), 60);
    assert_eq!(open(scratch.path()).runs().unwrap().len(), 30);
}
