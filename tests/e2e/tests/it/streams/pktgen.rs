//! `wirestorm pktgen`: the frames and the output of scripts for the kernel's packet generator.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use wirestorm_e2e::{
    Outcome, Receiver, assert_same_frames, can_run, run_command, start_command, wirestorm,
};
use wirestorm_testkit::net::{Captured, Lab};
use wirestorm_testkit::require::skip;
use wirestorm_testkit::{Scratch, pcap, tshark};

/// Settings of one device of `veth0`; tests replace `RATE` and `MORE`.
const SETTINGS: &str = r#"
# One thread, one device.
PGDEV=/proc/net/pktgen/kpktgend_0
pgset "rem_device_all"
pgset "add_device veth0"
PGDEV=/proc/net/pktgen/veth0
pgset "count 60"
pgset "pkt_size 100"
pgset "ratep 2000"
pgset "dst_mac 02:00:00:00:00:02"
pgset "src_min 10.0.0.1"
pgset "dst_min 198.51.100.1"
pgset "dst_max 198.51.100.4"
pgset "udp_src_min 1000"
pgset "udp_src_max 1003"
pgset "flag UDPDST_RND"
pgset "udp_dst_min 7000"
pgset "udp_dst_max 7010"
MORE
PGDEV=/proc/net/pktgen/pgctrl
pgset "start"
"#;

/// A typical shell script with functions and loops that checks the result of each command.
/// Arguments: interface, count, threads.
const SCRIPT: &str = r#"#!/bin/bash
folder=/proc/net/pktgen
trap true SIGINT

put() {
    local file=$folder/$1
    shift
    if [[ ! -w $file ]]; then
        echo "no $file" >&2
        exit 3
    fi
    echo "$@" > "$file" || exit 5
    if [[ $file != $folder/pgctrl ]] && ! grep -q "Result: OK:" "$file"; then
        grep "Result:" "$file" >&2
        exit 6
    fi
}

[[ -d $folder ]] || exit 2
put pgctrl reset
for ((thread = 0; thread < $3; thread++)); do
    device=$1@$thread
    put kpktgend_$thread rem_device_all
    put kpktgend_$thread add_device $device
    put $device "count $2"
    put $device "pkt_size 60"
    put $device "delay 500000"
    put $device "dst_mac 02:00:00:00:00:02"
    put $device "dst 198.51.100.9"
    put $device "udp_src_min $((2000 + thread))"
    put $device "udp_src_max $((2000 + thread))"
done
echo "Running" >&2
put pgctrl start
for ((thread = 0; thread < $3; thread++)); do
    echo "Device: $1@$thread"
    cat $folder/$1@$thread | grep -A2 "Result:"
done
"#;

/// Builds `wirestorm pktgen` in the interface's namespace.
fn pktgen(lab: &Lab, flags: &[&str], script: &Path, arguments: &[&str]) -> Command {
    let mut command = lab.a.command(wirestorm());
    command.args(["pktgen", "--tolerance", "1000"]).args(flags).arg(script).args(arguments);
    command
}

fn file(scratch: &Scratch, name: &str, text: &str) -> std::path::PathBuf {
    let path = scratch.file(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Sends settings with one backend; returns the received frames and the outcome.
fn sent(backend: &str, more: &str, count: u64) -> (Captured, Outcome) {
    let scratch = Scratch::new().unwrap();
    let script = file(&scratch, "settings", &SETTINGS.replace("MORE", more));
    let lab = Lab::new().unwrap();
    let receiver = Receiver::start(&lab.b).unwrap();
    let flags = ["--quiet", "--json", "-", "--backend", backend];
    let outcome = run_command(&mut pktgen(&lab, &flags, &script, &[])).expect(0);
    (receiver.finish(count).unwrap(), outcome)
}

/// The pktgen header after headers without options: magic, sequence number, seconds and
/// microseconds.
fn pktgen_header(frame: &[u8]) -> [u32; 4] {
    let word = |index: usize| {
        let start = 14 + 20 + 8 + 4 * index;
        u32::from_be_bytes(frame[start..start + 4].try_into().unwrap())
    };
    [word(0), word(1), word(2), word(3)]
}

const MAGIC: u32 = 0xbe9b_e955;

#[test]
fn settings_result_in_the_frames_of_the_kernel() {
    if !can_run(&["clang", "tshark"]) {
        return;
    }
    let (captured, outcome) = sent("af_packet", r#"pgset "flag UDPCSUM""#, 60);
    let fields = ["eth.dst", "ip.src", "ip.dst", "ip.id", "udp.srcport", "udp.dstport"];
    let rows = tshark::fields(&captured.path(), "udp", &fields).unwrap();
    assert_eq!(rows.len(), 60);
    for (number, row) in rows.iter().enumerate() {
        // Ranges start with their second value, and the maximum port itself is not sent.
        let expected = [
            "02:00:00:00:00:02".to_owned(),
            "10.0.0.1".to_owned(),
            format!("198.51.100.{}", (number + 1) % 4 + 1),
            format!("0x{number:04x}"),
            (1000 + (number + 1) % 3).to_string(),
        ];
        assert_eq!(row[..5], expected, "frame {number}");
        let port: u16 = row[5].parse().unwrap();
        assert!((7000..7010).contains(&port), "frame {number}: {port}");
    }
    let wrong = "udp.checksum.status != 1 or ip.checksum.status != 1";
    assert_eq!(tshark::count(&captured.path(), wrong).unwrap(), 0);

    // The time in the header is the departure: before the arrival, but not long before.
    let mut before = 0;
    for (number, packet) in pcap::read(&captured.path()).unwrap().iter().enumerate() {
        assert_eq!(packet.frame.len(), 100);
        let [magic, sequence, seconds, microseconds] = pktgen_header(&packet.frame);
        assert_eq!((magic, sequence), (MAGIC, number as u32 + 1));
        let stamp = u64::from(seconds) * 1_000_000 + u64::from(microseconds);
        let arrival = packet.time / 1_000;
        assert!(stamp >= before, "frame {number}: {stamp} after {before}");
        assert!((stamp..stamp + 5_000_000).contains(&(arrival + 1_000)), "{stamp}, {arrival}");
        before = stamp;
    }

    let device = |field: &str| format!("/device_runs/0/devices/0/{field}");
    assert_eq!(outcome.number(&device("packets")), 60);
    assert_eq!(outcome.number(&device("bytes")), 6_000);
    assert_eq!(outcome.decimal(&device("target_pps")), 2000.0);
    assert_eq!(result(outcome.text(&device("result"))).frames, 60);
}

#[test]
fn every_backend_sends_the_same_frames() {
    if !can_run(&["clang"]) {
        return;
    }
    let send = |backend| sent(backend, r#"pgset "flag NO_TIMESTAMP""#, 60);
    let (expected, _) = send("af_packet");
    for frame in expected.frames() {
        assert_eq!(pktgen_header(frame)[2..], [0, 0]);
    }
    for backend in ["af_xdp", "xdp"] {
        let (captured, outcome) = send(backend);
        assert_eq!(outcome.text("/device_runs/0/devices/0/backend"), backend);
        assert_same_frames(backend, expected.frames(), captured.frames());
    }
}

/// Parsed text after `Result: `.
struct ResultLine {
    microseconds: u64,
    frames: u64,
    bytes: u64,
    errors: u64,
}

/// Parses a result like scripts do.
#[track_caller]
fn result(text: &str) -> ResultLine {
    let number = |before: &str, behind: &str| {
        let rest = text.split_once(before).map(|(_, rest)| rest);
        let digits = rest.and_then(|rest| rest.split_once(behind)).map(|(digits, _)| digits);
        let number = digits.and_then(|digits| digits.trim().parse().ok());
        number.unwrap_or_else(|| panic!("{before:?}, {behind:?} in {text:?}"))
    };
    ResultLine {
        microseconds: number("OK: ", "("),
        frames: number("usec, ", " ("),
        bytes: number(" (", "byte,0frags)"),
        errors: text.rsplit_once("errors: ").unwrap().1.trim().parse().unwrap(),
    }
}

#[test]
fn result_has_the_layout_of_pktgen() {
    if !can_run(&[]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let script = file(&scratch, "settings", &SETTINGS.replace("MORE", ""));
    let lab = Lab::new().unwrap();
    let json = scratch.file("result.json");
    let flags = ["--json", json.to_str().unwrap()];
    let outcome = run_command(&mut pktgen(&lab, &flags, &script, &[])).expect(0);
    let shown = &outcome.output;
    assert!(
        shown.starts_with("Params: count 60  min_pkt_size: 100  max_pkt_size: 100\n"),
        "{shown}"
    );
    assert!(shown.contains("\n     pkts-sofar: 60  errors: 0\n"), "{shown}");
    let (_, line) = shown.split_once("Result: ").unwrap();
    let ResultLine { microseconds, frames, bytes, errors } = result(line);
    assert_eq!((frames, bytes, errors), (60, 100, 0), "{shown}");
    // 60 frames at 2,000 a second.
    assert!(microseconds >= 29_500, "{shown}");
    // Differences to the kernel and surprising behaviour are reported.
    assert!(outcome.messages.contains("veth0: udp_src_max 1003: is exclusive"), "{outcome}");
    let document: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!(document["schema"], "wirestorm.result/2");
    assert_eq!(document["device_runs"][0]["devices"][0]["packets"], 60);
}

#[test]
fn shell_script_runs_unchanged() {
    if !can_run(&["clang", "bash"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let script = file(&scratch, "script.sh", SCRIPT);
    let lab = Lab::new().unwrap();
    let receiver = Receiver::start(&lab.b).unwrap();
    let arguments = [lab.a.interface(), "50", "2"];
    let flags = ["--backend", "af_packet"];
    let outcome = run_command(&mut pktgen(&lab, &flags, &script, &arguments)).expect(0);
    let captured = receiver.finish(100).unwrap();

    // Each device sends all its numbers in order from its own port.
    let mut sequences: BTreeMap<u16, Vec<u32>> = BTreeMap::new();
    for frame in captured.frames() {
        let port = u16::from_be_bytes([frame[34], frame[35]]);
        sequences.entry(port).or_default().push(pktgen_header(frame)[1]);
    }
    let all: Vec<u32> = (1..=50).collect();
    assert_eq!(sequences, BTreeMap::from([(2000, all.clone()), (2001, all)]));

    // The script printed the results, so nothing else prints them.
    let parts: Vec<&str> = outcome.output.split("Device: ").collect();
    assert_eq!(parts.len(), 3, "{outcome}");
    for (thread, part) in parts[1..].iter().enumerate() {
        assert!(part.starts_with(&format!("veth0@{thread}\nResult: OK: ")), "{outcome}");
        assert_eq!(result(part).frames, 50, "{outcome}");
    }
    assert!(!outcome.output.contains("Params:"), "{outcome}");
}

#[test]
fn interrupt_ends_the_run_and_the_script_continues() {
    if !can_run(&["bash"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let script = file(&scratch, "script.sh", SCRIPT);
    let lab = Lab::new().unwrap();
    let json = scratch.file("result.json");
    let flags = ["--json", json.to_str().unwrap(), "--backend", "af_packet"];
    let arguments = [lab.a.interface(), "0", "1"];
    let mut command = pktgen(&lab, &flags, &script, &arguments);
    let running = start_command(command.process_group(0));
    wait_for_frames(&lab, 20);
    // Interrupt the script too, like a terminal.
    running.signal_group(Signal::INT);
    let outcome = running.wait().expect(130);
    let (_, line) = outcome.output.split_once("Device: veth0@0\nResult: ").unwrap();
    let frames = result(line).frames;
    assert!(frames >= 20, "{outcome}");
    assert_eq!(lab.b.counters().unwrap().rx_packets, frames, "{outcome}");
    let document: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!(document["interrupted"], true);
    assert_eq!(document["device_runs"][0]["devices"][0]["packets"], frames);
}

#[test]
fn endless_settings_end_with_an_interrupt() {
    if !can_run(&[]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let text = SETTINGS.replace("MORE", "pgset \"count 0\"") + "cat /proc/net/pktgen/veth0\n";
    let script = file(&scratch, "settings", &text);
    let lab = Lab::new().unwrap();
    let running = start_command(&mut pktgen(&lab, &["--backend", "af_packet"], &script, &[]));
    wait_for_frames(&lab, 20);
    running.signal(Signal::INT);
    let outcome = running.wait().expect(130);
    // Printed once, by the settings themselves.
    assert_eq!(outcome.output.matches("Params: count 0").count(), 1, "{outcome}");
    let (_, line) = outcome.output.split_once("Result: ").unwrap();
    assert_eq!(lab.b.counters().unwrap().rx_packets, result(line).frames, "{outcome}");
}

#[test]
fn without_fuse_only_plain_scripts_run() {
    if !can_run(&["unshare"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let lab = Lab::new().unwrap();
    let run = |script: &Path| {
        let mut command = lab.a.command("unshare");
        command.args([
            "--mount",
            "sh",
            "-c",
            "mount --bind /dev/null /dev/fuse && exec \"$@\"",
            "-",
        ]);
        command.arg(wirestorm()).args(["pktgen", "--tolerance", "1000"]).arg(script);
        run_command(&mut command)
    };
    let plain = format!("#!/bin/sh\n{}", SETTINGS.replace("MORE", ""));
    let outcome = run(&file(&scratch, "plain.sh", &plain)).expect(0);
    assert!(outcome.messages.contains("plain.sh: executed without a shell: "), "{outcome}");
    assert_eq!(lab.b.counters().unwrap().rx_packets, 60, "{outcome}");
    run(&file(&scratch, "script.sh", SCRIPT))
        .expect_error(2, &["/proc/net/pktgen", "modprobe fuse"]);
}

#[test]
fn script_may_stop_its_own_run() {
    if !can_run(&["bash"]) {
        return;
    }
    const STOPPED: &str = "#!/bin/bash
folder=/proc/net/pktgen
echo add_device veth0 > $folder/kpktgend_0
for setting in 'count 0' 'delay 500000'; do echo $setting > $folder/veth0; done
echo start > $folder/pgctrl &
until grep -q 'sofar: [1-9]' $folder/veth0; do sleep 0.01; done
grep -c 'Running: veth0' $folder/kpktgend_0
echo stop > $folder/pgctrl
wait
grep -c 'Result: OK' $folder/veth0
# First SIGINT to wirestorm, after a run that no signal has ended.
kill -INT $PPID
sleep 0.2
grep -c 'Result: OK' $folder/veth0
";
    let scratch = Scratch::new().unwrap();
    let script = file(&scratch, "script.sh", STOPPED);
    let lab = Lab::new().unwrap();
    let mut command = pktgen(&lab, &["--backend", "af_packet"], &script, &[]);
    let outcome = run_command(&mut command).expect(0);
    assert_eq!(outcome.output, "1\n1\n1\n", "{outcome}");
}

/// Waits until `frames` frames have been sent.
fn wait_for_frames(lab: &Lab, frames: u64) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while lab.b.counters().unwrap().rx_packets < frames {
        assert!(Instant::now() < deadline, "no frames");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn errors_are_reported_with_their_line_before_sending() {
    if !can_run(&["bash"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let lab = Lab::new().unwrap();
    let refused = |more: &str, words: &[&str]| {
        let script = file(&scratch, "settings", &SETTINGS.replace("MORE", more));
        run_command(&mut pktgen(&lab, &[], &script, &[])).expect_error(2, words);
    };
    refused(r#"pgset "packet_size 60""#, &["settings: line 19: veth0:", "no such command"]);
    refused(r#"pgset "flag RANDOM""#, &["line 19", "found \"RANDOM\"", "IPSRC_RND"]);
    refused(r#"pgset "flag IPSEC""#, &["line 21", "IPSEC", "unset it"]);
    refused(r#"pgset "pkt_size 9000""#, &["veth0: a frame of 9000 bytes", "reduce pkt_size"]);
    refused("for i in 1 2; do", &["settings: line 19: for i in 1 2; do", "#!/bin/bash"]);
    // In a shell, the write fails, and the script may continue.
    let script = file(&scratch, "script.sh", &SCRIPT.replace("delay 500000", "dealy 500000"));
    let outcome = run_command(&mut pktgen(&lab, &[], &script, &["veth0", "1", "1"]));
    assert!(outcome.messages.contains("Invalid argument"), "{outcome}");
    outcome.expect_error(5, &["veth0@0: \"dealy 500000\": no such command"]);
    let outcome = run_command(&mut pktgen(&lab, &[], &script, &["veth7", "1", "1"]));
    outcome.expect_error(5, &["no such interface: \"veth7\"", "No such device"]);
    assert_eq!(lab.b.counters().unwrap().rx_packets, 0);
}

#[test]
fn received_frames_are_shown_by_cpu() {
    if !can_run(&[]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let script = file(&scratch, "settings", &SETTINGS.replace("MORE", ""));
    let lab = Lab::new().unwrap();
    let there = lab.b.port();
    let outcome = run_command(&mut pktgen(&lab, &["--rx", &there], &script, &[])).expect(0);
    let (_, table) = outcome.output.split_once("RECEPTION STATISTICS of ").unwrap();
    let (of_cpus, together) = table.split_once("Global Statistics\n").unwrap();
    let counts: Vec<u64> = of_cpus
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Rx packets: "))
        .map(|rest| rest.split(' ').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(counts.iter().sum::<u64>(), 60, "{outcome}");
    assert!(together.starts_with("    Rx packets: 60  Rx bytes: 6000\n"), "{outcome}");
    assert!(together.contains("Lost: 0 (0.0000%)"), "{outcome}");

    // The receiver alone, until interrupted.
    let mut command = lab.b.command(wirestorm());
    command.args(["pktgen", "--json", "-", "--rx", lab.b.interface()]);
    let running = start_command(&mut command);
    let deadline = Instant::now() + Duration::from_secs(30);
    // The counter starts at some moment, so send frames until it has seen some.
    let received = loop {
        run_command(&mut pktgen(&lab, &["--backend", "af_packet"], &script, &[])).expect(0);
        if xdp_program(&lab) {
            run_command(&mut pktgen(&lab, &["--backend", "af_packet"], &script, &[])).expect(0);
            running.signal(Signal::INT);
            break running.wait().expect(130);
        }
        assert!(Instant::now() < deadline, "it does not count");
    };
    assert!(received.number("/ports/0/rx/packets") >= 60, "{received}");
    assert_eq!(received.text("/ports/0/rx/queue_kind"), "cpu");
}

/// Whether a counter is attached at the receiving end.
fn xdp_program(lab: &Lab) -> bool {
    let output = lab.b.command("ip").args(["link", "show", lab.b.interface()]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).contains("xdp")
}

/// Environment variable with the path of the kernel's samples/pktgen folder.
const SAMPLES: &str = "WIRESTORM_PKTGEN_SAMPLES";

#[test]
fn kernel_samples_run_unchanged() {
    let Some(samples) = std::env::var_os(SAMPLES) else {
        skip("WIRESTORM_PKTGEN_SAMPLES names no folder with the kernel's samples/pktgen");
        return;
    };
    if !can_run(&["bash"]) {
        return;
    }
    let mut scripts: Vec<_> = std::fs::read_dir(&samples)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.starts_with("pktgen_sample") && !name.contains("numa")
        })
        .collect();
    scripts.sort();
    assert!(!scripts.is_empty(), "{samples:?} has no pktgen_sample*.sh");
    for script in scripts {
        let lab = Lab::new().unwrap();
        let arguments = ["-i", "veth0", "-m", "02:00:00:00:00:02", "-n", "500"];
        let mut command = pktgen(&lab, &["--backend", "af_packet"], &script, &arguments);
        // Some samples run until they are interrupted, whatever their arguments.
        command.args(["-t", "1"]).process_group(0);
        let running = start_command(&mut command);
        wait_for_frames(&lab, 500);
        running.signal_group(Signal::INT);
        let outcome = running.wait();
        outcome.assert_no_panic();
        let name = script.display();
        assert!(outcome.output.contains("Result: OK: "), "{name}: {outcome}");
        let errors = &outcome.messages;
        assert!(!errors.contains("wirestorm: ") && !errors.contains("ERROR"), "{name}: {outcome}");
    }
}
