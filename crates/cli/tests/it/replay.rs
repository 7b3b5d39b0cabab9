//! `wirestorm replay` keeps options in files and reads tcpreplay's; what it prints, and where.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use wirestorm_testkit::Scratch;
use wirestorm_testkit::pcap::Resolution;
use wirestorm_testkit::require::require_tool;
use wirestorm_testkit::sample::{Traffic, TrafficOptions, write_file};

const WIRESTORM: &str = env!("CARGO_BIN_EXE_wirestorm");

fn scratch() -> Scratch {
    let scratch = Scratch::new().expect("a folder");
    let traffic = Traffic::new(TrafficOptions { conversations: 20, ..TrafficOptions::default() });
    write_file(traffic, Resolution::Nanoseconds, &scratch.file("traffic.pcap")).expect("a capture");
    scratch
}

fn run(scratch: &Scratch, program: &Path, arguments: &str) -> Output {
    Command::new(program)
        .args(arguments.split_whitespace())
        .current_dir(scratch.path())
        .output()
        .expect("the program runs")
}

fn replay(scratch: &Scratch, arguments: &str) -> Output {
    run(scratch, Path::new(WIRESTORM), &format!("replay {arguments}"))
}

/// The result of a replay into memory.
fn result(scratch: &Scratch, arguments: &str) -> Value {
    let output = replay(scratch, &format!("--backend memory --json - {arguments}"));
    let messages = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments}: {messages}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn saved_options_load_again_and_the_command_line_has_the_last_word() {
    let scratch = scratch();
    let saved = replay(&scratch, "-t --loop 3 --limit 7 -r 80:81 --save-opts options.rc");
    assert!(saved.status.success() && saved.stdout.is_empty(), "{}", text(&saved.stderr));
    let loaded = result(&scratch, "--load-opts options.rc --loop 4 traffic.pcap");
    assert_eq!(loaded["asked"]["pace"], "topspeed");
    assert_eq!(loaded["asked"]["passes"], 4);
    assert_eq!((&loaded["asked"]["packets"], &loaded["packets"]), (&7.into(), &7.into()));
}

#[test]
fn files_that_load_files_and_sections_of_others() {
    let scratch = scratch();
    let write = |name, text| fs::write(scratch.file(name), text).expect("a file");
    write("inner.rc", "[TCPREWRITE]\nnonsense\n[WIRESTORM]\nlimit = 5\n");
    write("outer.rc", "load-opts = inner.rc\n[TCPREPLAY]\ntopspeed\n");
    assert_eq!(result(&scratch, "--load=outer.rc traffic.pcap")["asked"]["packets"], 5);
    write("endless.rc", "load-opts endless.rc\n");
    for (file, word) in [("endless.rc", "deep"), ("missing.rc", "No such file")] {
        let refused = replay(&scratch, &format!("--load-opts {file} traffic.pcap"));
        assert_eq!(refused.status.code(), Some(2), "{file}");
        assert!(text(&refused.stderr).contains(word), "{file}: {}", text(&refused.stderr));
    }
}

#[test]
fn files_that_tcpreplay_has_saved_are_read() {
    let scratch = scratch();
    let ours = scratch.file("tcpreplay");
    symlink(WIRESTORM, &ours).expect("a link");
    let mut programs = vec![ours];
    if require_tool("tcpreplay") {
        programs.push("tcpreplay".into());
    }
    for program in programs {
        let saved = run(&scratch, &program, "-i lo -t --limit=6 --save-opts=its.rc traffic.pcap");
        let messages = text(&saved.stderr);
        assert!(saved.status.success(), "{}: {messages}", program.display());
        let loaded = result(&scratch, "--load-opts its.rc traffic.pcap");
        assert_eq!(loaded["asked"]["pace"], "topspeed", "{}", program.display());
        assert_eq!(loaded["asked"]["packets"], 6, "{}", program.display());
        fs::remove_file(scratch.file("its.rc")).expect("the options were saved");
    }
}

#[test]
fn interfaces_and_help_need_no_capture() {
    let scratch = scratch();
    let interfaces = replay(&scratch, "--listnics");
    assert!(interfaces.status.success());
    let lines = text(&interfaces.stdout);
    assert_eq!(lines.lines().next(), Some("Available network interfaces:"));
    assert!(lines.lines().any(|line| line == "lo"), "{lines}");
    let help = replay(&scratch, "--help").stdout;
    assert!(text(&help).contains("--more-help"));
    for more_help in ["-H", "--more-help"] {
        let output = replay(&scratch, more_help);
        assert_eq!((output.status.code(), output.stdout), (Some(0), help.clone()), "{more_help}");
    }
    let nothing = replay(&scratch, "-t --backend memory");
    assert_eq!(nothing.status.code(), Some(2));
    assert!(text(&nothing.stderr).contains("no capture named"), "{}", text(&nothing.stderr));
}

#[test]
fn a_result_that_cannot_be_written_is_shown_all_the_same_and_says_where() {
    let scratch = scratch();
    let outcome = replay(&scratch, "--backend memory -t --json /dev/full traffic.pcap");
    assert_eq!(outcome.status.code(), Some(1));
    assert!(text(&outcome.stdout).starts_with("done in"), "{}", text(&outcome.stdout));
    let messages = text(&outcome.stderr);
    assert!(messages.contains("/dev/full: No space left"), "{messages}");
}

#[test]
fn json_on_standard_output_is_alone_there() {
    let scratch = scratch();
    assert_eq!(result(&scratch, "-t --stats 0 --loop 3 traffic.pcap")["passes"], 3);
}

#[test]
fn statistics_come_after_every_pass() {
    let scratch = scratch();
    let outcome = replay(&scratch, "--backend memory -t --stats 0 --loop 3 traffic.pcap");
    let output = text(&outcome.stdout);
    let passes: Vec<&str> =
        output.lines().filter_map(|line| line.split(" s: ").nth(1)?.split(',').next()).collect();
    assert_eq!(passes, ["pass 1", "pass 2", "pass 3"], "{output}");
}

#[test]
fn a_reader_that_has_gone_stops_no_replay() {
    let scratch = scratch();
    let all = result(&scratch, "-t --loop 3 traffic.pcap")["packets"].clone();
    for shown in ["-v", "--stats=0"] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = Command::new(WIRESTORM)
            .args(["replay", "--backend", "memory", "-t", "--loop", "3", "--json", "result.json"])
            .args([shown, "traffic.pcap"])
            .current_dir(scratch.path())
            .stdout(writer)
            .output()
            .expect("the program runs");
        let messages = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{shown}: {messages}");
        assert_eq!(messages.lines().count(), 1, "{shown}: {messages}");
        let result = fs::read(scratch.file("result.json")).expect("the result");
        let result: Value = serde_json::from_slice(&result).expect("JSON");
        assert_eq!(result["packets"], all, "{shown}");
    }
}
