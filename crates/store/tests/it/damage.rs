//! Damaged and foreign files: a warning that names the file, and all others stay readable.

use std::fs;

use wirestorm_store::Store;
use wirestorm_store::record::State;

use crate::{create, open, trial};

#[test]
fn damaged_and_foreign_files_are_named_and_others_stay_readable() {
    let scratch = tempfile::tempdir().unwrap();
    let store = open(scratch.path());
    let mut ids = Vec::new();
    for _ in 0..4 {
        let mut writer = create(&store, None);
        writer.trial(&trial(1)).unwrap();
        writer.trial(&trial(2)).unwrap();
        writer.result(&trial(1).result).unwrap();
        ids.push(writer.id().to_owned());
        writer.finish(State::Finished, None).unwrap();
    }
    let file = |run: usize, name: &str| scratch.path().join(&ids[run]).join(name);
    fs::write(file(0, "run.json"), "{\"schema\": \"wirestorm.run/1\", ").unwrap();
    fs::write(file(1, "run.json"), "{\"schema\": \"wirestorm.run/7\"}").unwrap();
    let whole = fs::read(file(2, "trials/000001.json.zst")).unwrap();
    fs::write(file(2, "trials/000001.json.zst"), &whole[..whole.len() / 2]).unwrap();
    fs::write(file(2, "result.json"), "[]").unwrap();
    fs::write(file(2, "trials/notes.txt"), "mine").unwrap();
    fs::write(scratch.path().join("README"), "mine").unwrap();
    fs::create_dir(scratch.path().join("backup")).unwrap();
    // Nothing that the index knew helps.
    fs::remove_file(scratch.path().join("index.sqlite")).unwrap();

    // Again: what is known to be damaged is still reported.
    for _ in 0..2 {
        let store = Store::open(scratch.path()).unwrap();
        let warnings: Vec<String> = store.warnings().iter().map(ToString::to_string).collect();
        for expected in [
            format!("{}/run.json: damaged", ids[0]),
            format!("{}/run.json: found format \"wirestorm.run/7\"", ids[1]),
            format!("{}/trials/000001.json.zst: damaged", ids[2]),
            format!("{}/result.json: damaged", ids[2]),
            format!("{}/trials/notes.txt: not a trial", ids[2]),
            "README: not a run".to_owned(),
            "backup: not a run".to_owned(),
        ] {
            let count = warnings.iter().filter(|it| it.contains(&expected)).count();
            assert_eq!(count, 1, "{expected}: {warnings:#?}");
        }
        assert_eq!(warnings.len(), 7, "{warnings:#?}");
        let listed: Vec<_> = store.runs().unwrap().into_iter().map(|run| run.id).collect();
        assert_eq!(listed, [ids[3].clone(), ids[2].clone()]);
    }
    let mut store = Store::open(scratch.path()).unwrap();
    let mut run = store.load(&ids[2]).unwrap();
    assert!(run.result.is_none());
    assert_eq!(run.rows().unwrap().iter().map(|row| row.number).collect::<Vec<_>>(), [2]);
    assert_eq!(run.warnings.len(), 3, "{:?}", run.warnings);
    assert!(store.load(&ids[0]).is_err());
    store.delete(&ids[0]).unwrap();
    store.delete(&ids[2]).unwrap();
    assert_eq!(store.load(&ids[3]).unwrap().trials().unwrap().count(), 2);
}

#[test]
fn unusable_index_is_replaced_by_one_in_memory() {
    let scratch = tempfile::tempdir().unwrap();
    let id = create(&open(scratch.path()), None).id().to_owned();
    for name in ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm"] {
        let _ = fs::remove_file(scratch.path().join(name));
    }
    fs::create_dir(scratch.path().join("index.sqlite")).unwrap();
    let store = Store::open(scratch.path()).unwrap();
    let warning = store.warnings()[0].to_string();
    assert!(warning.contains("index.sqlite") && warning.contains("instead"), "{warning}");
    assert_eq!(store.find("latest").unwrap().id, id);
    // Runs are saved all the same.
    let mut writer = create(&store, Some("second"));
    writer.trial(&trial(1)).unwrap();
    writer.finish(State::Finished, None).unwrap();
    let store = Store::open(scratch.path()).unwrap();
    assert_eq!(store.find("second").unwrap().trials, 1);
}
