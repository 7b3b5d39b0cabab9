//! Damaged, unusual and missing captures: a clear error, never a crash, and a report of the packets
//! sent before.

use std::path::{Path, PathBuf};
use std::process::Command;

use wirestorm_e2e::{FileForm, Outcome, encode, replay, run_command, traffic, wirestorm};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::pcap::{self, Packet};
use wirestorm_testkit::require::{require_root, require_tool};

const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;

/// Two packets of 60 bytes.
fn two_packets() -> Vec<Packet> {
    let mut packets: Vec<Packet> = traffic(1, 1).into_iter().take(2).collect();
    packets.iter_mut().for_each(|packet| packet.frame.resize(60, 0));
    packets
}

/// Replays bytes as a capture to a file.
fn replay_bytes(scratch: &Scratch, bytes: &[u8]) -> Outcome {
    let path = scratch.file("input.pcap");
    std::fs::write(&path, bytes).unwrap();
    let written = scratch.file("written.pcap");
    // Remove the output of an earlier run.
    drop(std::fs::remove_file(&written));
    let outcome = replay([Path::new("-w"), &written, &path]);
    outcome.assert_no_panic();
    outcome
}

/// All messages, errors and notes of a run.
fn words(outcome: &Outcome) -> String {
    [outcome.messages.clone(), outcome.lines("/errors"), outcome.lines("/notes")].join("\n")
}

/// Checks a failure while reading: messages contain the file name and `expected`, and `sent`
/// packets were sent before. If that is zero, the run fails without a result.
#[track_caller]
fn assert_failed(outcome: &Outcome, sent: u64, expected: &[&str]) {
    assert_eq!(outcome.status.code(), Some(if sent == 0 { 2 } else { 1 }), "{outcome}");
    let words = words(outcome);
    for word in expected.iter().chain(&["input.pcap"]) {
        assert!(words.contains(word), "{word:?} is not in\n{outcome}");
    }
    if sent > 0 {
        assert_eq!(outcome.number("/achieved/packets"), sent, "{outcome}");
    }
}

#[test]
fn truncated_capture_sends_complete_packets_and_names_the_truncated_one() {
    let scratch = Scratch::new().unwrap();
    let bytes = encode(FileForm::default(), &two_packets());
    let record = RECORD_HEADER + 60;
    assert_eq!(bytes.len(), FILE_HEADER + 2 * record);
    for length in 0..=bytes.len() {
        let outcome = replay_bytes(&scratch, &bytes[..length]);
        let records = length.saturating_sub(FILE_HEADER) / record;
        let is_whole = length >= FILE_HEADER && (length - FILE_HEADER).is_multiple_of(record);
        let found = pcap::read(&scratch.file("written.pcap")).map_or(0, |packets| packets.len());
        assert_eq!(found, records, "cut to {length}: {outcome}");
        if is_whole && records > 0 {
            let outcome = outcome.expect(0);
            assert_eq!(outcome.number("/achieved/packets"), records as u64);
        } else if length > FILE_HEADER && !is_whole {
            let good = if records == 0 {
                "no complete packet precedes it"
            } else {
                "the packet before it is good"
            };
            let packet = format!("packet {}", records + 1);
            let words = [packet.as_str(), good];
            if records == 0 {
                assert_failed(&outcome, 0, &words);
            } else {
                // The remaining packets were sent, and the missing one counts as failed.
                let outcome = outcome.expect(3);
                assert_eq!(outcome.number("/achieved/packets"), records as u64, "{outcome}");
                assert_eq!(outcome.number("/achieved/failed"), 1, "{outcome}");
                let notes = outcome.lines("/notes");
                assert!(words.iter().all(|word| notes.contains(word)), "{outcome}");
            }
        } else if length < FILE_HEADER {
            assert!(matches!(outcome.status.code(), Some(1 | 2)), "cut to {length}: {outcome}");
            assert!(words(&outcome).contains("input.pcap"), "cut to {length}: {outcome}");
        }
    }
}

#[test]
fn damaged_bytes_never_crash() {
    let scratch = Scratch::new().unwrap();
    let bytes = encode(FileForm::default(), &two_packets());
    for position in (0..FILE_HEADER + RECORD_HEADER).chain((FILE_HEADER + 76)..(FILE_HEADER + 92)) {
        for value in [0x00, 0x7f, 0xff] {
            let mut bytes = bytes.clone();
            bytes[position] = value;
            let outcome = replay_bytes(&scratch, &bytes);
            let status = outcome.status.code();
            assert!(matches!(status, Some(0..=3)), "byte {position} as {value}: {outcome}");
            if status != Some(0) {
                assert!(!words(&outcome).trim().is_empty(), "{outcome}");
            }
        }
    }
}

#[test]
fn empty_record_counts_as_too_short() {
    let scratch = Scratch::new().unwrap();
    let mut packets = two_packets();
    packets.insert(1, Packet { time: packets[0].time, frame: Vec::new() });
    let outcome = replay_bytes(&scratch, &encode(FileForm::default(), &packets)).expect(3);
    assert_eq!(outcome.number("/achieved/packets"), 2);
    assert_eq!(outcome.number("/achieved/refused/too_short"), 1);
    assert_eq!(outcome.number("/achieved/failed"), 1);
    assert!(outcome.lines("/notes").contains("Ethernet header"), "{outcome}");
}

#[test]
fn record_length_error_contains_the_packet_number() {
    let scratch = Scratch::new().unwrap();
    let mut bytes = encode(FileForm::default(), &two_packets());
    let second = FILE_HEADER + RECORD_HEADER + 60;
    for length in [0x1000_0000_u32, 0xffff_ffff] {
        bytes[second + 8..second + 12].copy_from_slice(&length.to_le_bytes());
        let outcome = replay_bytes(&scratch, &bytes);
        assert_failed(&outcome, 1, &["packet 2", &length.to_string()]);
    }
}

#[test]
fn absurd_snapshot_length_is_ignored() {
    let scratch = Scratch::new().unwrap();
    for snapshot_length in [0, 1, 0x7fff_ffff, 0xffff_ffff] {
        let form = FileForm { snapshot_length, ..FileForm::default() };
        let outcome = replay_bytes(&scratch, &encode(form, &two_packets())).expect(0);
        assert_eq!(outcome.number("/achieved/packets"), 2);
    }
}

#[test]
fn time_stamps_that_go_backwards_cause_no_delay() {
    let scratch = Scratch::new().unwrap();
    let mut packets = two_packets();
    packets[1].time = packets[0].time - 3_600_000_000_000;
    packets.push(Packet { time: packets[1].time + 1_000_000, ..packets[0].clone() });
    let outcome = replay_bytes(&scratch, &encode(FileForm::default(), &packets)).expect(0);
    assert_eq!(outcome.number("/achieved/packets"), 3);
    let written = pcap::read(&scratch.file("written.pcap")).unwrap();
    assert!(written.windows(2).all(|pair| pair[0].time <= pair[1].time), "{written:?}");
}

/// A pcapng block: type, then the body between two copies of the length.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes(), &length[..], body, &length].concat()
}

#[test]
fn pcapng_packet_before_its_interface_is_an_error() {
    let scratch = Scratch::new().unwrap();
    let section = block(
        0x0a0d_0d0a,
        &[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
    );
    let interface = block(1, &[1, 0, 0, 0, 0, 0, 4, 0]);
    let frame = &two_packets()[0].frame;
    let packet = block(6, &[&[0; 12], &[60, 0, 0, 0, 60, 0, 0, 0][..], frame].concat());
    let right = [&section[..], &interface, &packet].concat();
    assert_eq!(replay_bytes(&scratch, &right).expect(0).number("/achieved/packets"), 1);
    let wrong = [&section[..], &packet, &interface].concat();
    assert_failed(&replay_bytes(&scratch, &wrong), 0, &["packet 1", "interface"]);
    let headless = [&interface[..], &packet].concat();
    let outcome = replay_bytes(&scratch, &headless);
    assert!(matches!(outcome.status.code(), Some(1 | 2)), "{outcome}");
}

#[test]
fn file_that_is_not_a_capture_is_rejected_by_name() {
    let scratch = Scratch::new().unwrap();
    let cases: [(&str, &[u8]); 3] = [
        ("empty", b""),
        ("text", b"This is a text and not a capture at all.\n"),
        ("zeros", &[0; 100]),
    ];
    for (what, bytes) in cases {
        let outcome = replay_bytes(&scratch, bytes);
        assert!(matches!(outcome.status.code(), Some(1 | 2)), "{what}: {outcome}");
        assert!(words(&outcome).contains("input.pcap"), "{what}: {outcome}");
    }
}

#[test]
fn unknown_link_type_error_lists_the_known_ones() {
    let scratch = Scratch::new().unwrap();
    let form = FileForm { link_type: 147, ..FileForm::default() };
    let outcome = replay_bytes(&scratch, &encode(form, &two_packets()));
    assert!(!matches!(outcome.status.code(), Some(0)), "{outcome}");
    assert!(words(&outcome).contains("147"), "{outcome}");
}

#[test]
fn usage_errors_are_reported_before_sending() {
    let scratch = Scratch::new().unwrap();
    let missing: PathBuf = scratch.file("missing.pcap");
    let missing = missing.to_str().unwrap();
    let capture = scratch.file("capture.pcap");
    std::fs::write(&capture, encode(FileForm::default(), &two_packets())).unwrap();
    let capture = capture.to_str().unwrap();
    let output = scratch.file("out.pcap");
    let output = output.to_str().unwrap();
    let cases: [(&[&str], &[&str]); 7] = [
        (&["-w", output, missing], &["missing.pcap", "No such file"]),
        (&["-i", "no-such-interface", capture], &["no-such-interface"]),
        (&["-i", "netns/no-such-namespace:veth0", capture], &["no-such-namespace"]),
        (&["-w", output, "--pps", "-1", capture], &["-1"]),
        (&["-w", output, "-t", "--pps", "1", capture], &["--pps"]),
        (&["-w", output, "--no-such-flag", capture], &["--no-such-flag"]),
        (&["-w", "/no-such-folder/out.pcap", capture], &["/no-such-folder/out.pcap"]),
    ];
    for (arguments, words) in cases {
        replay(arguments).expect_error(2, words);
    }
    replay(["-w", output]).expect_error(2, &["FILE"]);
    assert!(!Path::new(output).exists());
}

#[test]
fn full_disk_is_an_error_with_a_result() {
    if !require_root() || !require_tool("unshare") {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let path = scratch.file("input.pcap");
    let packets = traffic(300, 1);
    std::fs::write(&path, encode(FileForm::default(), &packets)).unwrap();
    let outcome = replay(["-w", "/dev/full", path.to_str().unwrap()]);
    outcome.assert_no_panic();
    let outcome = outcome.expect(1);
    assert!(outcome.lines("/errors").contains("/dev/full"), "{outcome}");
    assert!(outcome.lines("/errors").contains("No space left"), "{outcome}");
    assert_eq!(outcome.number("/achieved/packets"), 0, "{outcome}");

    // Mounted in a mount namespace that ends with the run.
    let disk = scratch.file("disk");
    std::fs::create_dir(&disk).unwrap();
    let script = "mount -t tmpfs -o size=256k tmpfs \"$1\" || exit 99; \
                  \"$0\" replay --json - -t -w \"$1/out.pcap\" \"$2\"; status=$?; \
                  cp \"$1/out.pcap\" \"$3\"; exit $status";
    let written = scratch.file("written.pcap");
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script]).arg(wirestorm()).arg(&disk).arg(&path).arg(&written);
    let outcome = run_command(&mut command);
    outcome.assert_no_panic();
    let outcome = outcome.expect(1);
    assert!(outcome.lines("/errors").contains("out.pcap"), "{outcome}");
    assert!(outcome.lines("/errors").contains("No space left"), "{outcome}");
    assert!(outcome.number("/achieved/packets") < packets.len() as u64, "{outcome}");
    let records = pcap::read(&written).unwrap().len() as u64;
    assert!(records > 0);
    assert_eq!(outcome.number("/achieved/packets"), records, "{outcome}");
}
