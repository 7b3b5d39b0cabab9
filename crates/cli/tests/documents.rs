//! What the documents tell people to type, typed.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;
use wirestorm_testkit::pcap::Resolution;
use wirestorm_testkit::require::{require_root, skip};
use wirestorm_testkit::sample::{Traffic, TrafficOptions, write_file};

const WIRESTORM: &str = env!("CARGO_BIN_EXE_wirestorm");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// One stream as TRex's clients write it.
const STREAMS: &str = r#"[{"enabled": true, "self_start": true, "isg": 0.0, "flags": 3, "action_count": 0,
    "mode": {"type": "continuous", "rate": {"type": "pps", "value": 1000}},
    "packet": {"binary": "AgAAAAACAgAAAAABCABFAAAcAAEAAEARZs4KAAABCgAAAgQABwAACAAA", "meta": ""},
    "vm": {"instructions": []}, "next_stream_id": -1, "flow_stats": {"enabled": false}}]"#;

/// Scripts at the root of the repository, which `./test` runs as steps of its own.
const SCRIPTS: [&str; 3] = ["./demo", "./test", "./bench"];

/// README.md and all pages below docs/.
fn documents() -> Vec<PathBuf> {
    let mut found = vec![Path::new(ROOT).join("README.md")];
    let mut folders = vec![Path::new(ROOT).join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The commands in a document's fenced `sh` blocks, a line each, comments left out.
fn commands(document: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(document).expect("a document");
    let (mut commands, mut is_shell) = (Vec::new(), false);
    for line in text.lines() {
        if line.starts_with("```") {
            is_shell = line == "```sh";
        } else if is_shell {
            let command = line.split(" # ").next().unwrap_or_default().trim();
            commands.extend((!command.is_empty()).then(|| command.to_owned()));
        }
    }
    commands
}

/// A folder with what the documents' commands take for granted.
fn scratch() -> Scratch {
    let scratch = Scratch::new().expect("a folder");
    let traffic = |seed| {
        let options = TrafficOptions { conversations: 20, seed, ..TrafficOptions::default() };
        Traffic::new(options)
    };
    let capture = scratch.file("traffic.pcap");
    write_file(traffic(1), Resolution::Microseconds, &capture).expect("a capture");
    symlink(Path::new(ROOT).join("examples"), scratch.file("examples")).expect("a link");
    std::fs::write(scratch.file("streams.json"), STREAMS).expect("a file");
    let profile = Path::new(ROOT).join("python/trex/tests/profiles/udp_sizes.py");
    symlink(profile, scratch.file("profile.py")).expect("a link");
    let bin = scratch.file("bin");
    std::fs::create_dir(&bin).expect("a folder");
    for name in ["wirestorm", "tcpreplay", "tcpreplay-edit"] {
        symlink(WIRESTORM, bin.join(name)).expect("a link");
    }
    scratch
}

/// Whether a command runs a profile of TRex's, which needs a Python with the package for it.
fn needs_python(command: &str) -> bool {
    command.contains(".py ")
}

#[test]
fn every_command_of_the_documents_runs() {
    if require_root() {
        let count = run_commands(|command| !needs_python(command));
        assert!(count >= 25, "only {count} commands were found in the documents");
    }
}

#[test]
fn every_command_with_a_profile_runs() {
    if std::env::var_os("WIRESTORM_PYTHON").is_none() {
        skip("WIRESTORM_PYTHON names no Python with the package wirestorm-trex");
    } else if require_root() {
        let count = run_commands(needs_python);
        assert!(count >= 3, "only {count} commands were found in the documents");
    }
}

/// Runs the documents' commands that are wanted; returns how many there were.
fn run_commands(is_wanted: impl Fn(&str) -> bool) -> usize {
    let scratch = scratch();
    let lab = Lab::new().expect("a lab");
    // A link is between two cables: within one, frames would go round.
    let cable = Lab::new().expect("a lab");
    // The device under test, as the documents have it.
    let address = format!("addr add 198.18.0.1/24 dev {}", lab.b.interface());
    lab.b.namespace().ip(&[&address]).expect("an address");
    let path =
        format!("{}:{}", scratch.file("bin").display(), std::env::var("PATH").unwrap_or_default());
    let mut count = 0;
    for document in documents() {
        for command in commands(&document) {
            let is_script = SCRIPTS.iter().any(|script| command.split(' ').next() == Some(script));
            if is_script || !is_wanted(&command) {
                continue;
            }
            count += 1;
            // The documents' names, those with a namespace first: they contain the others.
            let here = if command.contains("netns/") {
                let here = command.replace("netns/a:veth0", &lab.a.port());
                here.replace("netns/b:veth1", &lab.b.port())
            } else {
                let is_link = command.starts_with("wirestorm link ");
                let eth2 = if is_link { cable.a.port() } else { lab.b.port() };
                command.replace("eth1", lab.a.interface()).replace("eth2", &eth2)
            };
            let output = lab
                .a
                .command("sh")
                .args(["-c", &here])
                .env("PATH", &path)
                .current_dir(scratch.path())
                .output()
                .expect("a shell");
            // 3 is a busy machine's word: the rate was missed, the command was right.
            let is_fine = matches!(output.status.code(), Some(0 | 3));
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(is_fine, "{}: {command}: {said}", document.display());
        }
    }
    count
}
