//! All supported capture formats result in the same frames.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use wirestorm_e2e::{
    ByteOrder, FileForm, Outcome, assert_same_frames, encode, frames, replay, run_command, traffic,
    wirestorm, write_capture,
};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::pcap::{self, Packet, Resolution};
use wirestorm_testkit::require::require_tool;

/// Replays captures to a file; returns the run and the packets of the file.
fn written(scratch: &Scratch, captures: &[PathBuf]) -> (Outcome, Vec<Packet>) {
    let path = scratch.file("written.pcap");
    let mut arguments = vec![Path::new("-w"), &path];
    arguments.extend(captures.iter().map(PathBuf::as_path));
    let outcome = replay(arguments).expect(0);
    let packets = pcap::read(&path).unwrap();
    (outcome, packets)
}

/// Runs a tool that must succeed; returns its standard output.
fn tool(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    output.stdout
}

#[test]
fn classic_pcap_in_both_byte_orders_and_both_resolutions() {
    let scratch = Scratch::new().unwrap();
    let packets = traffic(10, 4);
    for order in [ByteOrder::Little, ByteOrder::Big] {
        for resolution in [Resolution::Microseconds, Resolution::Nanoseconds] {
            let form = FileForm { order, resolution, ..FileForm::default() };
            let path = scratch.file("form.pcap");
            std::fs::write(&path, encode(form, &packets)).unwrap();
            let (_, found) = written(&scratch, &[path]);
            let what = format!("{order:?} {resolution:?}");
            assert_same_frames(&what, frames(&packets), frames(&found));
            let unit = if resolution == Resolution::Nanoseconds { 1 } else { 1_000 };
            let offsets = |packets: &[Packet]| -> Vec<u64> {
                let cut = |packet: &Packet| packet.time / unit * unit;
                packets.iter().map(|packet| cut(packet) - cut(&packets[0])).collect()
            };
            assert_eq!(offsets(&packets), offsets(&found), "{what}");
        }
    }
}

#[test]
fn pcapng_of_several_interfaces_with_different_resolutions() {
    if !["editcap", "mergecap"].into_iter().all(require_tool) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let fine = write_capture(&scratch, "fine.pcap", &traffic(10, 5));
    let coarse = scratch.file("coarse.pcap");
    std::fs::write(&coarse, encode(FileForm::default(), &traffic(10, 6))).unwrap();
    let merged = scratch.file("merged.pcapng");
    let mut merge = Command::new("mergecap");
    merge.args(["-I", "none", "-F", "pcapng", "-w"]).args([&merged, &fine, &coarse]);
    tool(&mut merge);
    let expected = scratch.file("expected.pcap");
    tool(Command::new("editcap").args(["-F", "nsecpcap"]).args([&merged, &expected]));
    let expected = pcap::read(&expected).unwrap();
    let (_, found) = written(&scratch, &[merged]);
    assert_same_frames("merged", frames(&expected), frames(&found));
    let gaps = |packets: &[Packet]| -> Vec<u64> {
        packets.windows(2).map(|pair| pair[1].time - pair[0].time).collect()
    };
    assert_eq!(gaps(&expected), gaps(&found));
}

#[test]
fn compressed_files_and_standard_input() {
    let scratch = Scratch::new().unwrap();
    let packets = traffic(10, 7);
    let plain = write_capture(&scratch, "plain.pcap", &packets);
    for (program, name) in [("gzip", "a.pcap.gz"), ("zstd", "a.pcap.zst"), ("cat", "a.pcap")] {
        if !require_tool(program) {
            continue;
        }
        let path = scratch.file(name);
        let stream = tool(Command::new(program).stdin(std::fs::File::open(&plain).unwrap()));
        std::fs::write(&path, stream).unwrap();
        let (_, found) = written(&scratch, std::slice::from_ref(&path));
        assert_same_frames(name, frames(&packets), frames(&found));

        let output = scratch.file("from-standard-input.pcap");
        let mut command = Command::new(wirestorm());
        command.args(["replay", "--json", "-", "-w"]).arg(&output).arg("-");
        command.stdin(Stdio::from(std::fs::File::open(&path).unwrap()));
        let outcome = run_command(&mut command).expect(0);
        assert_eq!(outcome.number("/achieved/packets"), packets.len() as u64);
        assert_same_frames(name, frames(&packets), frames(&pcap::read(&output).unwrap()));
    }
}

#[test]
fn files_in_argument_order_and_directories_in_name_order() {
    let scratch = Scratch::new().unwrap();
    let folder = scratch.file("folder");
    std::fs::create_dir_all(folder.join("b")).unwrap();
    std::fs::write(folder.join("README"), "what was captured where").unwrap();
    let mut parts = Vec::new();
    for (seed, name) in [(1, "c.pcap"), (2, "a.pcap"), (3, "b/x.pcap")] {
        let packets = traffic(5, seed);
        let path = write_capture(&scratch, &format!("folder/{name}"), &packets);
        parts.push((path, packets));
    }
    let named: Vec<PathBuf> = parts.iter().map(|(path, _)| path.clone()).collect();
    let (_, found) = written(&scratch, &named);
    let expected = parts.iter().flat_map(|(_, packets)| frames(packets));
    assert_same_frames("as named", expected, frames(&found));

    let (_, found) = written(&scratch, &[folder]);
    let expected = [1, 2, 0].into_iter().flat_map(|part| frames(&parts[part].1));
    assert_same_frames("by name", expected, frames(&found));
}

/// A link layer: its number, its name, and the header before an IP packet of this EtherType.
type LinkLayer = (u32, &'static str, fn(u16) -> Vec<u8>);

#[test]
fn other_link_layers_become_ethernet() {
    const LAYERS: [LinkLayer; 4] = [
        (101, "raw IP", |_| Vec::new()),
        (113, "SLL", |kind| {
            let mut header = vec![0, 0, 0, 1, 0, 6, 2, 1, 2, 3, 4, 5, 0, 0];
            header.extend(kind.to_be_bytes());
            header
        }),
        (276, "SLL2", |kind| {
            let mut header = kind.to_be_bytes().to_vec();
            header.extend([0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 2, 1, 2, 3, 4, 5, 0, 0]);
            header
        }),
        // BSD address families in the file's byte order: 2 is IPv4, 30 is IPv6.
        (0, "NULL", |kind| vec![if kind == 0x0800 { 2 } else { 30 }, 0, 0, 0]),
    ];
    let scratch = Scratch::new().unwrap();
    let is_ip = |packet: &Packet| matches!(packet.frame[12..14], [0x08, 0x00] | [0x86, 0xdd]);
    let expected: Vec<Packet> = traffic(30, 8).into_iter().filter(is_ip).collect();
    assert!(expected.iter().any(|packet| packet.frame[12] == 0x86));
    for (link_type, name, header) in LAYERS {
        let packets: Vec<Packet> = expected
            .iter()
            .map(|Packet { time, frame }| {
                let kind = u16::from_be_bytes([frame[12], frame[13]]);
                Packet { time: *time, frame: [&header(kind), &frame[14..]].concat() }
            })
            .collect();
        let path = scratch.file("layer.pcap");
        let form = FileForm { link_type, ..FileForm::default() };
        std::fs::write(&path, encode(form, &packets)).unwrap();
        let (_, found) = written(&scratch, &[path]);
        let from_type = |packet: &'_ Packet| packet.frame[12..].to_vec();
        let expected: Vec<_> = expected.iter().map(from_type).collect();
        let found_payload: Vec<_> = found.iter().map(from_type).collect();
        assert_eq!(expected, found_payload, "{name}");
    }
}

#[test]
fn cooked_packet_keeps_its_sender_address() {
    let scratch = Scratch::new().unwrap();
    let sample = &traffic(30, 8)[0];
    let kind = [sample.frame[12], sample.frame[13]];
    let address = [2, 1, 2, 3, 4, 5];
    // Source address that --write uses if the record has none.
    let nobody = [2, 0, 0, 0, 0, 1];
    // Ethernet (1) and loopback (772).
    for (hardware, expected) in [([0, 1], address), ([3, 4], nobody)] {
        let sll = [&[0, 0], &hardware[..], &[0, 6], &address, &[0, 0], &kind].concat();
        let sll2 = [&kind[..], &[0; 6], &hardware[..], &[0, 6], &address, &[0, 0]].concat();
        for (link_type, header) in [(113, sll), (276, sll2)] {
            let frame = [&header, &sample.frame[14..]].concat();
            let packet = Packet { frame, ..sample.clone() };
            let path = scratch.file("cooked.pcap");
            let form = FileForm { link_type, ..FileForm::default() };
            std::fs::write(&path, encode(form, &[packet])).unwrap();
            let (_, found) = written(&scratch, &[path]);
            let expected = [&[0xff; 6], &expected, &sample.frame[12..]].concat();
            assert_eq!(found[0].frame, expected, "{link_type} {hardware:?}");
        }
    }
}

#[test]
fn edits_find_the_headers_after_other_link_layers() {
    let scratch = Scratch::new().unwrap();
    let is_ipv4 = |packet: &&Packet| packet.frame[12..14] == [0x08, 0x00];
    let samples = traffic(30, 8);
    let sample = samples.iter().find(is_ipv4).unwrap();
    let sll = [0, 0, 0, 1, 0, 6, 2, 1, 2, 3, 4, 5, 0, 0, 0x08, 0x00];
    // A Juniper header with an extension of two bytes before an Ethernet frame.
    let juniper = [0x4d, 0x47, 0x43, 0x81, 0, 2, 0xff, 0xff];
    for (link_type, frame) in
        [(113, [&sll, &sample.frame[14..]].concat()), (178, [&juniper, &sample.frame[..]].concat())]
    {
        let packet = Packet { frame, ..sample.clone() };
        let path = scratch.file("layer.pcap");
        let form = FileForm { link_type, ..FileForm::default() };
        std::fs::write(&path, encode(form, &[packet])).unwrap();
        let output = scratch.file("edited.pcap");
        let edit = ["--ttl", "99", "-w"].map(Path::new);
        replay(edit.into_iter().chain([output.as_path(), &path])).expect(0);
        let found = pcap::read(&output).unwrap();
        let expected = &sample.frame[14..];
        let mut packet = found[0].frame[14..].to_vec();
        assert_eq!(packet[8], 99, "{link_type}");
        // Only TTL and header checksum may differ.
        packet[8] = expected[8];
        packet[10..12].copy_from_slice(&expected[10..12]);
        assert_eq!(packet, expected, "{link_type}");
    }
}

#[test]
fn wireless_captures_are_rejected_with_a_reason() {
    let scratch = Scratch::new().unwrap();
    for link_type in [105, 127] {
        let path = scratch.file("wireless.pcap");
        let form = FileForm { link_type, ..FileForm::default() };
        std::fs::write(&path, encode(form, &traffic(1, 1))).unwrap();
        let outcome = replay([Path::new("-w"), &scratch.file("out.pcap"), &path]);
        outcome.assert_no_panic();
        let words =
            format!("{}{}{}", outcome.messages, outcome.lines("/errors"), outcome.lines("/notes"));
        assert!(words.contains("wireless frames cannot be sent on Ethernet"), "{outcome}");
        assert_ne!(outcome.status.code(), Some(0), "{outcome}");
    }
}
