//! The decoder, the encoders and the dissection compared with Wireshark on real captures.

use std::collections::BTreeSet;
use std::path::Path;

use wirestorm_wire::capture::{LinkType, PcapWriter, PcapngWriter, RecordHeader, Records};
use wirestorm_wire::checksum::{ChecksumOutcome, repair};
use wirestorm_wire::dissect::{Class, dissect};
use wirestorm_wire::packet::{ethertype, protocol};
use wirestorm_wire::print::Summary;

use crate::common::{TemporaryFolder, decode, real_captures, run};

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns for each packet the requested fields of the outermost layers.
fn tshark(path: &str, fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut arguments = vec!["-n", "-r", path, "-o", "ip.defragment:FALSE"];
    arguments.extend(["-o", "ipv6.defragment:FALSE", "-T", "fields", "-E", "occurrence=f"]);
    arguments.extend(fields.iter().flat_map(|field| ["-e", *field]));
    let output = run("tshark", &arguments)?;
    Some(output.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}

#[test]
fn records_equal_those_of_tshark() {
    for path in real_captures().unwrap_or_default() {
        let fields = ["frame.time_epoch", "frame.cap_len", "frame.len"];
        let Some(expected) = tshark(path.to_str().unwrap(), &fields) else { return };
        let decoded = decode(&read(&path));
        assert_eq!(decoded.error, None, "{}", path.display());
        let found: Vec<_> = decoded
            .records
            .iter()
            .map(|(header, data)| {
                let time = header.timestamp.as_nanos();
                let time = format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000);
                vec![time, data.len().to_string(), header.original_length.to_string()]
            })
            .collect();
        assert_eq!(found, expected, "{}", path.display());
    }
}

#[test]
fn files_converted_by_editcap_have_the_same_records() {
    let folder = TemporaryFolder::new("editcap");
    for path in real_captures().unwrap_or_default() {
        let expected = decode(&read(&path)).records;
        for format in ["pcapng", "nsecpcap", "pcap"] {
            let converted = folder.file(format);
            let input = path.to_str().unwrap();
            if run("editcap", &["-F", format, input, &converted]).is_none() {
                return;
            }
            let decoded = decode(&read(Path::new(&converted)));
            assert_eq!(decoded.error, None);
            assert_eq!(decoded.records, expected, "{} as {format}", path.display());
        }
    }
}

#[test]
fn tshark_reads_written_pcapng_files() {
    let Some(captures) = real_captures() else { return };
    let folder = TemporaryFolder::new("pcapng");
    let file = read(&captures[0]);
    let writer = PcapngWriter::new();
    let mut written = Vec::new();
    writer.push_section(&mut written);
    writer.push_interface(&mut written, LinkType::RAW, 0, "unused").unwrap();
    writer.push_interface(&mut written, LinkType::EN10MB, 65_535, "veth0").unwrap();
    let mut expected = Vec::new();
    for record in Records::new(&file) {
        let (header, data) = record.unwrap();
        writer
            .push_record(&mut written, 1, header.timestamp, header.original_length, data)
            .unwrap();
        expected.push(vec!["veth0".to_owned(), data.len().to_string()]);
    }
    writer.push_statistics(&mut written, 1, Default::default(), expected.len() as u64, 0);
    let path = folder.file("written.pcapng");
    std::fs::write(&path, &written).unwrap();
    let Some(found) = tshark(&path, &["frame.interface_name", "frame.cap_len"]) else { return };
    assert_eq!(found, expected);
}

const FLOW_FIELDS: [&str; 14] = [
    "ip.src",
    "ip.dst",
    "ipv6.src",
    "ipv6.dst",
    "ip.proto",
    "tcp.srcport",
    "tcp.dstport",
    "udp.srcport",
    "udp.dstport",
    "icmp.type",
    "icmp.code",
    "icmpv6.type",
    "icmpv6.code",
    "vlan.id",
];

/// Returns Wireshark's flow of a packet as text; empty if it has none.
fn expected_flow(fields: &[String]) -> String {
    let field = |index: usize| fields.get(index).map_or("", String::as_str);
    let (source, destination) =
        if field(0).is_empty() { (field(2), field(3)) } else { (field(0), field(1)) };
    if source.is_empty() {
        return String::new();
    }
    // The ports of a packet quoted in an ICMP error use the same fields, so check ICMP first.
    let pairs = [(1, 9), (58, 11), (6, 5), (17, 7)];
    let (number, at) = pairs.into_iter().find(|(_, at)| !field(*at).is_empty()).unwrap_or_default();
    let (protocol, ports) = match number {
        0 => (field(4).to_owned(), "0 0".to_owned()),
        _ => (number.to_string(), format!("{} {}", field(at), field(at + 1))),
    };
    let vlan = if field(13).is_empty() { "0" } else { field(13) };
    format!("{source} {destination} {protocol} {ports} {vlan}")
}

#[test]
fn flows_equal_those_of_tshark() {
    for path in real_captures().unwrap_or_default() {
        let Some(lines) = tshark(path.to_str().unwrap(), &FLOW_FIELDS) else { return };
        let file = read(&path);
        let (mut flows, mut expected_flows) = (BTreeSet::new(), BTreeSet::new());
        let mut packets = 0;
        for (number, (record, line)) in Records::new(&file).zip(&lines).enumerate() {
            let (header, data) = record.unwrap();
            let found = match dissect(header.link_type, data).class {
                Class::Flow(key) => {
                    flows.insert(key);
                    let (source, destination) = (key.source(), key.destination());
                    let (from, to) = (key.source_port(), key.destination_port());
                    format!("{source} {destination} {} {from} {to} {}", key.protocol(), key.vlan())
                }
                _ => String::new(),
            };
            let expected = expected_flow(line);
            assert_eq!(found, expected, "{} packet {}", path.display(), number + 1);
            if !expected.is_empty() {
                expected_flows.insert(expected);
            }
            packets += 1;
        }
        assert_eq!(packets, lines.len(), "{}", path.display());
        assert_eq!(flows.len(), expected_flows.len(), "{}", path.display());
    }
}

#[test]
fn counts_of_the_mixed_capture_equal_those_of_tcpreplay() {
    let captures = real_captures().unwrap_or_default();
    let Some(path) = captures.iter().find(|path| path.ends_with("mixed_web.pcap")) else { return };
    let file = read(path);
    let (mut flows, mut flow_packets, mut others) = (BTreeSet::new(), 0, 0);
    for record in Records::new(&file) {
        let (header, data) = record.unwrap();
        match dissect(header.link_type, data).class {
            Class::Flow(key) => {
                flows.insert(key.without_vlan());
                flow_packets += 1;
                assert_ne!(key.protocol(), protocol::HOP_BY_HOP);
            }
            _ => others += 1,
        }
    }
    // tcpreplay reports 47 flows, 176 flow packets and 2 non-flow packets. It warns about one more
    // packet, an IEEE 802.3 frame.
    assert_eq!((flows.len(), flow_packets, others), (47, 176, 3));
}

#[test]
fn lines_equal_those_of_tcpdump() {
    let Some(captures) = real_captures() else { return };
    let mut compared = 0;
    for path in captures {
        let arguments = ["TZ=UTC0", "tcpdump", "-n", "-S", "-r", path.to_str().unwrap()];
        let Some(output) = run("env", &arguments) else { return };
        // Continuation lines of dumps begin with white space.
        let lines = output.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
        let file = read(&path);
        for (record, line) in Records::new(&file).zip(lines) {
            let (header, data) = record.unwrap();
            let RecordHeader { timestamp, link_type, original_length, .. } = header;
            let found = Summary { timestamp, link_type, data, original_length }.to_string();
            let (time, found) = found.split_once(' ').unwrap();
            let (expected_time, expected) = line.split_once(' ').unwrap();
            assert_eq!(time, format!("{expected_time}000"));
            // tcpdump prints application protocols behind the length or instead of it. It shows the
            // DNS question only for a query.
            let comparable = ["Flags [", ": UDP, length", ": ICMP echo", "ARP, ", "A? "];
            let cut_short = expected.contains("truncated-ip");
            if comparable.iter().any(|part| expected.contains(part)) && !cut_short {
                let rest = expected.strip_prefix(found);
                let whole =
                    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', ' ']));
                assert!(whole, "{}:\n{found}\n{expected}", path.display());
                compared += 1;
            }
        }
    }
    assert!(compared > 1_000, "{compared} lines compared");
}

#[test]
fn tshark_accepts_repaired_checksums() {
    let folder = TemporaryFolder::new("repair");
    for path in real_captures().unwrap_or_default() {
        let file = read(&path);
        let writer = PcapWriter::new(LinkType::EN10MB);
        let mut written = writer.header().to_vec();
        let mut repairs = Vec::new();
        for record in Records::new(&file) {
            let (header, data) = record.unwrap();
            let dissection = dissect(header.link_type, data);
            let mut frame = data.to_vec();
            repair(&mut frame, &dissection);
            // Damage a correct checksum: the repair must restore it. A wrong one was corrected
            // before.
            let mut again = frame.clone();
            let at = usize::from(dissection.network_offset) + 10;
            if dissection.ethertype == ethertype::IPV4 {
                again[at] ^= 0x55;
            }
            repairs.push(repair(&mut again, &dissection));
            assert_eq!(again, frame, "{}", path.display());
            writer
                .push_record(&mut written, header.timestamp, header.original_length, &frame)
                .unwrap();
        }
        let repaired = folder.file("repaired.pcap");
        std::fs::write(&repaired, &written).unwrap();
        let mut arguments = vec!["-n", "-r", &repaired, "-T", "fields"];
        arguments.extend(["-E", "occurrence=f"]);
        const CHECKS: [&str; 3] =
            ["ip.check_checksum:TRUE", "tcp.check_checksum:TRUE", "udp.check_checksum:TRUE"];
        arguments.extend(CHECKS.iter().flat_map(|check| ["-o", *check]));
        let layers = ["ip", "tcp", "udp", "icmp", "icmpv6", "igmp"];
        let fields = layers.map(|layer| format!("{layer}.checksum.status"));
        arguments.extend(fields.iter().flat_map(|field| ["-e", field.as_str()]));
        let Some(output) = run("tshark", &arguments) else { return };
        for (number, (line, repair)) in output.lines().zip(&repairs).enumerate() {
            // Zero is Wireshark's status "bad".
            let mut statuses = line.split('\t');
            let place = format!("{} packet {}: {line:?} {repair:?}", path.display(), number + 1);
            assert_ne!(statuses.next(), Some("0"), "{place}");
            if !matches!(repair.transport, ChecksumOutcome::Unchanged(_)) {
                assert!(statuses.all(|status| status != "0"), "{place}");
            }
        }
        assert_eq!(output.lines().count(), repairs.len());
    }
}

#[test]
fn wrong_checksums_of_the_mixed_capture_equal_those_of_wireshark() {
    let captures = real_captures().unwrap_or_default();
    let Some(path) = captures.iter().find(|path| path.ends_with("mixed_web.pcap")) else { return };
    let file = read(path);
    let mut changed = Vec::new();
    for (number, record) in Records::new(&file).enumerate() {
        let (header, data) = record.unwrap();
        let mut frame = data.to_vec();
        repair(&mut frame, &dissect(header.link_type, data));
        if frame != data {
            changed.push(number + 1);
        }
    }
    // tcprewrite leaves the last three, whose frame length differs from the IP length.
    assert_eq!(changed, [11, 12, 14, 19, 27, 32]);
}
