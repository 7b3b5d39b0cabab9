//! Tests of `wirestorm replay`: option files, output and errors.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;
use wirestorm_testkit::pcap::{self, Resolution};
use wirestorm_testkit::require::{require_root, require_tool};
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

/// Returns the result of a replay into memory.
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
fn saved_options_load_and_the_command_line_overrides_them() {
    let scratch = scratch();
    let saved = replay(&scratch, "-t --loop 3 --limit 7 -r 80:81 --save-opts options.rc");
    assert!(saved.status.success() && saved.stdout.is_empty(), "{}", text(&saved.stderr));
    let loaded = result(&scratch, "--load-opts options.rc --loop 4 traffic.pcap");
    assert_eq!(loaded["target"]["pace"], "topspeed");
    assert_eq!(loaded["target"]["passes"], 4);
    assert_eq!(
        (&loaded["target"]["packets"], &loaded["achieved"]["packets"]),
        (&7.into(), &7.into())
    );
}

#[test]
fn option_files_nest_and_skip_foreign_sections() {
    let scratch = scratch();
    let write = |name, text| fs::write(scratch.file(name), text).expect("a file");
    write("inner.rc", "[TCPREWRITE]\nnonsense\n[WIRESTORM]\nlimit = 5\n");
    write("outer.rc", "load-opts = inner.rc\n[TCPREPLAY]\ntopspeed\n");
    assert_eq!(result(&scratch, "--load=outer.rc traffic.pcap")["target"]["packets"], 5);
    write("endless.rc", "load-opts endless.rc\n");
    for (file, word) in [("endless.rc", "deep"), ("missing.rc", "No such file")] {
        let refused = replay(&scratch, &format!("--load-opts {file} traffic.pcap"));
        assert_eq!(refused.status.code(), Some(2), "{file}");
        assert!(text(&refused.stderr).contains(word), "{file}: {}", text(&refused.stderr));
    }
}

#[test]
fn option_files_of_tcpreplay_load() {
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
        assert_eq!(loaded["target"]["pace"], "topspeed", "{}", program.display());
        assert_eq!(loaded["target"]["packets"], 6, "{}", program.display());
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
    assert!(text(&nothing.stderr).contains("no capture file"), "{}", text(&nothing.stderr));
}

#[test]
fn unwritable_result_still_prints_the_table_and_the_path() {
    let scratch = scratch();
    let outcome = replay(&scratch, "--backend memory -t --json /dev/full traffic.pcap");
    assert_eq!(outcome.status.code(), Some(1));
    assert!(text(&outcome.stdout).starts_with("done in"), "{}", text(&outcome.stdout));
    let messages = text(&outcome.stderr);
    assert!(messages.contains("/dev/full: No space left"), "{messages}");
}

#[test]
fn json_is_alone_on_standard_output() {
    let scratch = scratch();
    assert_eq!(result(&scratch, "-t --stats 0 --loop 3 traffic.pcap")["achieved"]["passes"], 3);
}

#[test]
fn statistics_follow_every_pass() {
    let scratch = scratch();
    let outcome = replay(&scratch, "--backend memory -t --stats 0 --loop 3 traffic.pcap");
    let output = text(&outcome.stdout);
    let passes: Vec<&str> =
        output.lines().filter_map(|line| line.split(" s: ").nth(1)?.split(',').next()).collect();
    assert_eq!(passes, ["pass 1", "pass 2", "pass 3"], "{output}");
}

#[test]
fn closed_output_pipe_does_not_stop_a_replay() {
    let scratch = scratch();
    let all = result(&scratch, "-t --loop 3 traffic.pcap")["achieved"]["packets"].clone();
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
        assert_eq!(result["achieved"]["packets"], all, "{shown}");
    }
}

/// Writes a SYN and its SYN-ACK to `two.pcap`.
fn handshake(scratch: &Scratch) {
    let frame = |from: u8, to: u8, ports: [u16; 2], flags: u8| {
        let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0x08, 0x00];
        frame.extend([0x45, 0, 0, 40, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
        frame.extend(ports.map(u16::to_be_bytes).concat());
        frame.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, flags, 0x10, 0, 0, 0, 0, 0]);
        frame.resize(60, 0);
        frame
    };
    let file = fs::File::create(scratch.file("two.pcap")).expect("a file");
    let mut writer = pcap::Writer::new(file, Resolution::Nanoseconds).expect("a header");
    writer.write(1_000, &frame(1, 2, [4000, 80], 0x02)).expect("a record");
    writer.write(2_000, &frame(2, 1, [80, 4000], 0x12)).expect("a record");
    writer.finish().expect("a file");
}

#[test]
fn invalid_option_combinations_are_rejected() {
    let scratch = scratch();
    handshake(&scratch);
    for (arguments, word) in [
        ("-i nowhere0 --split auto -t two.pcap", "--intf2"),
        ("-i nowhere0 -c FILE -t two.pcap", "--intf2"),
        ("-w out.pcap --split auto two.pcap", "--enet-dmac"),
        ("-w out.pcap -2 two.pcap two.pcap", "--intf2"),
        ("--backend memory --split auto -t two.pcap", "--split"),
        ("--backend memory -i a -I b -t two.pcap", "--intf2"),
        ("--backend memory --enet-dmac 2:0:0:0:0:1,2:0:0:0:0:2 two.pcap", "--cachefile"),
        ("--backend memory -i a -I b -2 two.pcap", "pairs"),
        ("--backend memory -t --pps-multi 2 two.pcap", "--pps PPS"),
        ("--backend memory -i a -I b -c FILE --split-reverse two.pcap", "--split"),
        ("-w out.pcap --verify two.pcap", "--rx"),
        ("--backend memory --rx lo two.pcap", "--rx lo"),
        ("--backend memory - -", "standard input"),
        ("--backend memory -o -", "--oneatatime"),
        ("--backend memory --xdp two.pcap", "--xdp"),
    ] {
        let refused = replay(&scratch, arguments);
        let messages = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{arguments}: {messages}");
        assert!(messages.contains(word), "{arguments}: {messages}");
    }
    let both = result(&scratch, "-i a -I b -2 -t two.pcap two.pcap");
    assert_eq!(
        (&both["ports"][0]["tx"]["packets"], &both["ports"][1]["tx"]["packets"]),
        (&2.into(), &2.into())
    );
    let split = result(&scratch, "-i a -I b --split auto -t two.pcap");
    assert_eq!(
        (&split["ports"][0]["tx"]["packets"], &split["ports"][1]["tx"]["packets"]),
        (&1.into(), &1.into())
    );
}

#[test]
fn edits_by_side_write_to_one_file() {
    let scratch = scratch();
    handshake(&scratch);
    let macs = "--enet-dmac=02:00:00:00:00:0a,02:00:00:00:00:0b";
    let written = replay(&scratch, &format!("-w out.pcap --split auto {macs} two.pcap"));
    assert_eq!(written.status.code(), Some(0), "{}", text(&written.stderr));
    let packets = pcap::read(&scratch.file("out.pcap")).expect("a capture");
    let last: Vec<u8> = packets.iter().map(|packet| packet.frame[5]).collect();
    assert_eq!(last, [0x0a, 0x0b]);
}

#[test]
fn truncated_record_counts_as_failed_in_every_pass() {
    let scratch = scratch();
    handshake(&scratch);
    let file = fs::read(scratch.file("two.pcap")).expect("a file");
    fs::write(scratch.file("cut.pcap"), &file[..file.len() - 7]).expect("a file");
    for options in ["", "-K", "-i a -I b -2 two.pcap"] {
        let arguments = format!("--backend memory --json - -t -l 3 {options} cut.pcap");
        let output = replay(&scratch, &arguments);
        assert_eq!(output.status.code(), Some(3), "{arguments}: {}", text(&output.stderr));
        let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let count = if options.contains("-2") { 9 } else { 3 };
        assert_eq!(
            (&result["achieved"]["packets"], &result["achieved"]["failed"]),
            (&count.into(), &3.into())
        );
        let notes = result["notes"].to_string();
        assert!(notes.contains("cut.pcap: packet 2 at byte 100"), "{notes}");
    }
    // tcpreplay exits with 0 in this case.
    let ours = scratch.file("tcpreplay");
    symlink(WIRESTORM, &ours).expect("a link");
    let output = run(&scratch, &ours, "--backend memory -t -l 3 cut.pcap");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("Actual: 3 packets"), "{}", text(&output.stdout));
}

/// Starts a replay of 2,000 packets at 1,000 pps in a lab, and waits for its first frames.
fn paced(lab: &Lab, scratch: &Scratch, program: &Path, options: &str) -> Child {
    let before = lab.a.counters().expect("counters").tx_packets;
    let options = format!("{options} -i veth0 -p 1000 -L 2000 -l 0 -K two.pcap --json result.json");
    let child = lab
        .a
        .command(program)
        .args(options.split_whitespace())
        .current_dir(scratch.path())
        .stdout(Stdio::null())
        .spawn()
        .expect("the program runs");
    wait_for("frames", || lab.a.counters().expect("counters").tx_packets > before + 20);
    child
}

fn wait_for(what: &str, mut is_met: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_met() {
        assert!(Instant::now() < deadline, "timeout while waiting for {what}");
        std::thread::yield_now();
    }
}

fn signal(child: &Child, signal: &str) {
    let killed = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(killed.expect("kill runs").success());
}

fn is_stopped(child: &Child) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && line.contains("(stopped)"))
}

#[test]
fn signals_at_the_same_time_count_as_one() {
    if !require_root() {
        return;
    }
    let scratch = scratch();
    handshake(&scratch);
    let lab = Lab::new().expect("a lab");
    let mut child = paced(&lab, &scratch, Path::new(WIRESTORM), "replay");
    // As by `timeout`, which sends a signal to the process and to its group. Each takes a
    // millisecond, so that the process sees them one by one.
    for _ in 0..5 {
        signal(&child, "-TERM");
    }
    assert_eq!(child.wait().expect("the program ends").code(), Some(130));
    let result = fs::read(scratch.file("result.json")).expect("a result");
    let result: Value = serde_json::from_slice(&result).expect("JSON");
    assert_eq!(result["verdict"]["outcome"], "interrupted", "{result}");
}

#[test]
fn stall_changes_neither_frame_count_nor_average_rate() {
    if !require_root() {
        return;
    }
    let scratch = scratch();
    handshake(&scratch);
    let ours = scratch.file("tcpreplay");
    symlink(WIRESTORM, &ours).expect("a link");
    let lab = Lab::new().expect("a lab");
    for (program, options) in [
        (ours.as_path(), "--backend af_packet"),
        (ours.as_path(), "--backend af_packet --catch-up bounded"),
    ] {
        let mut child = paced(&lab, &scratch, program, options);
        signal(&child, "-STOP");
        wait_for("the stop", || is_stopped(&child));
        // The stall must last a set time, so this test sleeps.
        std::thread::sleep(Duration::from_millis(500));
        signal(&child, "-CONT");
        child.wait().expect("the program ends");
        let result: Value =
            serde_json::from_slice(&fs::read(scratch.file("result.json")).expect("a file"))
                .expect("JSON");
        assert_eq!(result["achieved"]["packets"], 2_000, "{options}: {result:#}");
        assert_eq!(result["achieved"]["unsent"], 0, "{options}");
        let departures = &result["achieved"]["departures"];
        let late = departures["lateness_max_ns"].as_u64().expect("a number");
        assert!(late > 400_000_000, "{options}: it was stopped: {departures:#}");
        let shifted = departures["schedule_shift_ns"].as_u64().expect("a number");
        let regained = departures["recovered_ns"].as_u64().expect("a number");
        assert_eq!(shifted == 0, !options.contains("bounded"), "{options}: {departures:#}");
        // A busy machine can leave part of the delay at the end.
        assert!(shifted - regained < shifted / 2 + 1, "{options}: {departures:#}");
    }
}

#[test]
fn time_under_ctrl_z_counts_as_a_pause() {
    if !require_root() {
        return;
    }
    let scratch = scratch();
    handshake(&scratch);
    let lab = Lab::new().expect("a lab");
    let options = "replay --backend af_packet";
    let mut child = paced(&lab, &scratch, Path::new(WIRESTORM), options);
    signal(&child, "-TSTP");
    wait_for("the stop", || is_stopped(&child));
    // The pause must last a set time, so this test sleeps.
    std::thread::sleep(Duration::from_millis(700));
    signal(&child, "-CONT");
    child.wait().expect("the program ends");
    let result: Value =
        serde_json::from_slice(&fs::read(scratch.file("result.json")).expect("a file"))
            .expect("JSON");
    assert_eq!(result["achieved"]["packets"], 2_000, "{result:#}");
    let paused = result["times"]["paused_s"].as_f64().expect("a number");
    assert!(paused > 0.7, "{paused}");
    let late = result["achieved"]["departures"]["lateness_max_ns"].as_u64().expect("a number");
    assert!(late < 600_000_000, "the pause made no frame late: {late}");
}

#[test]
fn only_packet_sockets_share_an_interface() {
    if !require_root() {
        return;
    }
    let scratch = scratch();
    handshake(&scratch);
    let lab = Lab::new().expect("a lab");
    let mut first = paced(&lab, &scratch, Path::new(WIRESTORM), "replay --backend af_packet");
    let other = |backend: &str| {
        lab.a
            .command(WIRESTORM)
            .args(["replay", "-t", "-i", "veth0", "--backend", backend, "missing.pcap"])
            .current_dir(scratch.path())
            .output()
            .expect("the program runs")
    };
    // The lock is checked before the capture is opened.
    let shared = other("af_packet");
    assert!(text(&shared.stderr).contains("missing.pcap"), "{}", text(&shared.stderr));
    let refused = other("af_xdp");
    let command = format!("kill -INT {}", first.id());
    assert!(text(&refused.stderr).contains(&command), "{}", text(&refused.stderr));
    signal(&first, "-INT");
    first.wait().expect("the program ends");
}

#[test]
fn xdp_backend_reports_missing_gro_of_the_peer_before_sending() {
    if !require_root() {
        return;
    }
    let scratch = scratch();
    handshake(&scratch);
    let lab = Lab::new().expect("a lab");
    lab.b.set_gro(false).expect("the offload can be switched");
    let port = lab.a.port();
    let refused = replay(&scratch, &format!("-i {port} --backend xdp -t two.pcap"));
    let messages = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{messages}");
    let repair = format!("ethtool -K {} gro on", lab.b.interface());
    assert!(
        messages.contains(&repair) && messages.contains(lab.b.namespace().name()),
        "{messages}"
    );
}
