//! Replays the inputs of the corpora.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use wirestorm_fuzz_targets::TARGETS;

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("an entry").path());
    let mut entries: Vec<PathBuf> = entries.collect();
    entries.sort();
    entries
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

fn replay(name: &str) {
    let (_, run) = TARGETS.iter().find(|target| target.0 == name).expect("a target");
    let inputs = entries(&corpus().join(name));
    assert!(!inputs.is_empty(), "the corpus of {name} is empty");
    for input in inputs {
        // The test harness shows this if the input fails.
        println!("{}", input.display());
        run(&std::fs::read(&input).expect("a readable input"));
    }
}

macro_rules! replay {
    ($($name:ident)*) => {
        const REPLAYED: &[&str] = &[$(stringify!($name)),*];
        $(#[test]
        fn $name() {
            replay(stringify!($name));
        })*
    };
}

replay! {
    capture_decoder conversations dissect_and_edit flow_collector fragments host http2 indexer_and_worker
    otg program_content ptp pktgen plan_emulation plan_traffic option_values receive segments
    tcpprep_cache trex_rpc
}

#[test]
fn every_target_has_a_binary_and_a_replayed_corpus() {
    let set = |names: &mut dyn Iterator<Item = String>| names.collect::<BTreeSet<String>>();
    let files = |folder: &Path| {
        set(&mut entries(folder)
            .iter()
            .map(|path| path.file_stem().expect("a name").to_str().expect("UTF-8").to_owned()))
    };
    let targets = set(&mut TARGETS.iter().map(|target| target.0.to_owned()));
    assert_eq!(set(&mut REPLAYED.iter().map(|name| (*name).to_owned())), targets);
    assert_eq!(files(&corpus()), targets);
    assert_eq!(files(&corpus().join("../fuzz_targets")), targets);
}
