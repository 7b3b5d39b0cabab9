//! `wirestorm bench resume` and the input files of a run.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use wirestorm_testkit::Scratch;

fn bench(scratch: &Scratch, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wirestorm"))
        .arg("bench")
        .args(arguments)
        .env("WIRESTORM_RUNS", scratch.file("runs"))
        .output()
        .expect("the program runs")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Changes the record of the only run.
fn edit(scratch: &Scratch, change: impl Fn(&mut Value)) {
    let runs = std::fs::read_dir(scratch.file("runs")).unwrap();
    let directories = runs.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let [run] = &*directories.collect::<Vec<_>>() else { panic!("expected one run") };
    let file = run.join("run.json");
    let mut record: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    change(&mut record);
    std::fs::write(&file, record.to_string()).unwrap();
}

/// Runs a method, interrupts it as far as its record says, and changes the file of `flag`.
fn check(arguments: &[&str], flag: &str, content: &[u8]) {
    let scratch = Scratch::new().expect("a directory");
    let file = scratch.file("input");
    std::fs::write(&file, content).unwrap();
    let path = file.to_str().unwrap();
    let arguments = [arguments, &["--name=resumed", "--quiet", flag, path]].concat();
    let first = bench(&scratch, &arguments);
    assert!(first.status.success(), "{arguments:?}: {}", text(&first));
    let resume = || bench(&scratch, &["resume", "resumed"]);
    let interrupt = || edit(&scratch, |record| record["state"] = json!("interrupted"));
    interrupt();
    let unchanged = resume();
    assert!(unchanged.status.success(), "{arguments:?}: {}", text(&unchanged));
    // The last byte, which keeps the length.
    interrupt();
    let mut changed = content.to_vec();
    *changed.last_mut().unwrap() ^= 1;
    std::fs::write(&file, changed).unwrap();
    let refused = resume();
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    for words in [&format!("{flag} {path}"), "the file changed", "restore the file"] {
        assert!(text(&refused).contains(words), "{words}: {}", text(&refused));
    }
    std::fs::write(&file, content).unwrap();
    let restored = resume();
    assert!(restored.status.success(), "{}", text(&restored));
    // A record of a version without digests.
    edit(&scratch, |record| {
        record["state"] = json!("interrupted");
        record.as_object_mut().unwrap().remove("inputs");
    });
    std::fs::write(&file, [content, b"\n"].concat()).unwrap();
    let old = resume();
    assert!(old.status.success(), "{}", text(&old));
}

fn example(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    std::fs::read(path).unwrap()
}

#[test]
fn changed_input_file_refuses_to_resume() {
    let simulated = "--simulate=frames_per_second=2e6,connections_per_second=2e4";
    let services = ["y1564", "--tests=cir", simulated];
    check(&services, "--services", &[&*example("services.yaml"), b"# 0"].concat());
    let plan = ["ndr", simulated, "--max-load=100x"];
    check(&plan, "--plan", &[&*example("pages.yaml"), b"# 0"].concat());
    check(&["ndr", simulated], "--capture", &example("web-and-mail.pcap"));
}

#[test]
fn files_that_define_the_direction_refuse_bidirectional() {
    let scratch = Scratch::new().expect("a directory");
    for flag in ["--plan", "--capture"] {
        let simulated = "--simulate=frames_per_second=2e6";
        let output = bench(&scratch, &["ndr", simulated, "--bidirectional", flag, "file"]);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        for expected in [flag, "--bidirectional"] {
            assert!(text(&output).contains(expected), "{expected}: {}", text(&output));
        }
    }
}
