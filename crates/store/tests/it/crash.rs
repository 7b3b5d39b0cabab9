//! A process that is killed at any moment leaves all trials that it had finished.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use wirestorm_store::record::State;
use wirestorm_store::{RunWriter, Store};

use crate::{Random, create, open, text, trial};

/// Directory of the store for the child; also tells the child that it is one.
const DIRECTORY: &str = "WIRESTORM_TEST_STORE";
/// Run to resume, for the child.
const RESUME: &str = "WIRESTORM_TEST_RESUME";
/// Seed of the moments of all kills.
const SEED: &str = "WIRESTORM_TEST_SEED";
/// Number of kills.
const KILLS: u32 = 200;
/// Latest kill after the start of a child.
const KILL_AFTER_MAX: Duration = Duration::from_millis(90);
/// Kills of one run, each followed by a resumption, before the next run begins.
const KILLS_PER_RUN: u32 = 4;
/// Trials of one child at most. No child lives long enough to write them.
const TRIALS_MAX: u32 = 100_000;

/// The body of the child: writes a run until it is killed. Reports the run, and each trial once it
/// is finished.
#[test]
fn child_writes_trials_until_it_is_killed() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let store = Store::open(Path::new(&directory)).expect("a store");
    let (mut writer, first): (RunWriter, u32) = match std::env::var(RESUME) {
        Ok(id) => {
            let (writer, trials) = store.resume(&id).expect("the run can be resumed");
            (writer, trials.len() as u32 + 1)
        }
        Err(_) => (create(&store, Some("killed")), 1),
    };
    report(&format!("run {}", writer.id()));
    for number in first..TRIALS_MAX {
        writer.trial(&trial(number)).expect("a trial is written");
        report(&format!("trial {number}"));
    }
}

/// Prints a line for the parent, past the capture of the test's output.
fn report(line: &str) {
    let line = format!("\n@{line}\n");
    std::io::stderr().write_all(line.as_bytes()).expect("the parent reads");
}

struct Killed {
    /// Run that the child wrote; `None` if it was killed before it had one.
    id: Option<String>,
    /// Last trial that it reported.
    last_trial: u32,
}

/// Starts a child and kills it after a time.
fn kill_child(directory: &Path, resume: Option<&str>, after: Duration) -> Killed {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(["--exact", "crash::child_writes_trials_until_it_is_killed", "--nocapture"])
        .env(DIRECTORY, directory)
        .env_remove(RESUME)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    if let Some(id) = resume {
        command.env(RESUME, id);
    }
    let mut child: Child = command.spawn().expect("a child");
    let mut output = BufReader::new(child.stderr.take().expect("a pipe"));
    let (lines, reported) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut line = String::new();
        while output.read_line(&mut line).is_ok_and(|length| length > 0) {
            // The kill may have cut the last line.
            if let Some(line) = line.strip_prefix('@').and_then(|line| line.strip_suffix('\n')) {
                // The parent waits for the end of this thread.
                let _ = lines.send(line.to_owned());
            }
            line.clear();
        }
    });
    // The moments are spread over the life of the run, not over the start of the program.
    let mut killed = Killed { id: None, last_trial: 0 };
    if resume.is_some() {
        let first = reported.recv_timeout(Duration::from_secs(20)).expect("the child starts");
        killed.id = first.strip_prefix("run ").map(str::to_owned);
    }
    std::thread::sleep(after);
    child.kill().expect("the child runs");
    child.wait().expect("the child ended");
    reader.join().expect("the reader ended");
    for line in reported.try_iter() {
        match line.split_once(' ') {
            Some(("run", id)) => killed.id = Some(id.to_owned()),
            Some(("trial", number)) => killed.last_trial = number.parse().expect("a number"),
            _ => panic!("unexpected report {line:?}"),
        }
    }
    killed
}

#[test]
fn finished_trials_survive_kills_at_random_moments() {
    let seed = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| {
        std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(1, |time| time.as_nanos() as u64 | 1)
    });
    println!("seed {seed}; repeat with {SEED}={seed}");
    let mut random = Random(seed);
    let scratch = tempfile::tempdir().expect("a directory");
    let started = Instant::now();
    let (mut total, mut interrupted_writes) = (0, 0);
    let (mut current, mut reported): (Option<String>, u32) = (None, 0);
    for kill in 0..KILLS {
        if kill % KILLS_PER_RUN == 0 {
            (current, reported) = (None, 0);
        }
        let after = random.below(KILL_AFTER_MAX.as_micros() as u64);
        let killed = kill_child(scratch.path(), current.as_deref(), Duration::from_micros(after));
        if let Some(id) = killed.id {
            current = Some(id);
        }
        reported = reported.max(killed.last_trial);
        // Repairs the index; nothing is damaged.
        let store = open(scratch.path());
        let Some(id) = &current else { continue };
        let run = store.load(id).expect("the record is whole");
        assert_eq!(run.state, State::Died, "seed {seed}, kill {kill}");
        let mut found = 0;
        for (expected, found_trial) in (1..).zip(run.trials().expect("trials")) {
            let found_trial = found_trial.expect("a whole trial");
            // Whole trials only: all are read, the last ones are compared.
            if expected + 3 > reported || kill % 10 == 0 {
                assert_eq!(text(&found_trial), text(&trial(expected)), "seed {seed}, kill {kill}");
            }
            assert_eq!(found_trial.number, expected, "seed {seed}, kill {kill}");
            found = expected;
        }
        // One trial can be finished and not yet reported.
        assert!(
            (reported..=reported + 1).contains(&found),
            "seed {seed}, kill {kill}: {reported} trials reported, {found} found"
        );
        let entry = store.find(id).expect("the run is in the index");
        assert_eq!((entry.state, entry.trials), (State::Died, found), "seed {seed}, kill {kill}");
        let hidden = std::fs::read_dir(run.directory().join("trials")).expect("trials");
        let is_hidden = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with('.');
        interrupted_writes += hidden
            .filter(|entry| is_hidden(&entry.as_ref().expect("an entry").file_name()))
            .count();
        (total, reported) = (total + found, found);
    }
    let store = open(scratch.path());
    let runs = store.runs().expect("runs");
    println!(
        "{KILLS} kills in {:.1} s: {} runs, {total} trials checked, {interrupted_writes} \
         interrupted writes seen",
        started.elapsed().as_secs_f64(),
        runs.len(),
    );
    let id = &runs.first().expect("a run").id;
    let (mut writer, trials) = store.resume(id).expect("the run can be resumed");
    writer.trial(&trial(trials.len() as u32 + 1)).expect("a trial");
    writer.finish(State::Finished, None).expect("the end");
    let store = open(scratch.path());
    let entry = store.find(id).expect("the run");
    assert_eq!((entry.state, entry.trials as usize), (State::Finished, trials.len() + 1));
}
