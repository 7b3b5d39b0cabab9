//! What softflowd, pmacct and nfpcapd report, against the capture that they read and against nfdump.

use std::collections::BTreeMap;
use std::mem::swap;
use std::path::{Path, PathBuf};
use std::process::Command;

use wirestorm_flowexport::collector::{Collector, SequenceConvention, SequenceCounters};
use wirestorm_flowexport::flow_table::{FlowTable, SentFlow};
use wirestorm_flowexport::{FlowRecord, Version};
use wirestorm_testkit::pcap::{self, Packet, Resolution};
use wirestorm_testkit::sample::{Traffic, TrafficOptions, write_file};
use wirestorm_testkit::{Scratch, require};
use wirestorm_wire::capture::LinkType;
use wirestorm_wire::dissect::dissect;
use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::packet::protocol;

use crate::programs::{Nfcapd, Receiver, Stored, command, start, stored};
use crate::support::NOW;

/// Bytes that sFlow counts beside the IP packet: Ethernet header and FCS.
const FRAME_OVERHEAD: u64 = 18;

/// A flow of a capture. The times are those of its conversation, which softflowd reports.
#[derive(Clone, Copy, Debug)]
struct CapturedFlow {
    sent: SentFlow,
    first_ns: u64,
    last_ns: u64,
}

/// Writes a capture; returns its path and its flows.
fn capture(scratch: &Scratch, conversations: u64, ipv6_share: f64) -> (PathBuf, Vec<CapturedFlow>) {
    let options =
        TrafficOptions { conversations, ipv6_share, vlan_share: 0.0, ..TrafficOptions::default() };
    let path = scratch.file("sample.pcap");
    write_file(Traffic::new(options), Resolution::Microseconds, &path).expect("a capture");
    let mut flows: BTreeMap<FlowKey, CapturedFlow> = BTreeMap::new();
    let mut times: BTreeMap<FlowKey, (u64, u64)> = BTreeMap::new();
    for Packet { time, frame } in pcap::read(&path).expect("a capture") {
        let dissection = dissect(LinkType::EN10MB, &frame);
        let Some(key) = dissection.flow().copied() else { continue };
        let network = &frame[usize::from(dissection.network_offset)..];
        let length = |at: usize| u64::from(u16::from_be_bytes([network[at], network[at + 1]]));
        let bytes = if key.version() == 4 { length(2) } else { length(4) + 40 };
        let new =
            CapturedFlow { sent: SentFlow { key, packets: 0, bytes: 0 }, first_ns: 0, last_ns: 0 };
        let flow = flows.entry(key).or_insert(new);
        flow.sent.packets += 1;
        flow.sent.bytes += bytes;
        times.entry(conversation(key)).or_insert((time, time)).1 = time;
    }
    for (key, flow) in &mut flows {
        (flow.first_ns, flow.last_ns) = times[&conversation(*key)];
    }
    assert!(flows.len() as u64 > conversations);
    (path, flows.into_values().collect())
}

/// Returns the key of the flow in both directions, as softflowd joins them: it keeps requests and
/// replies of ICMP apart.
fn conversation(key: FlowKey) -> FlowKey {
    match key.protocol() {
        protocol::ICMP | protocol::ICMPV6 => key,
        _ => key.conversation(),
    }
}

/// How nfdump prints the times of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NfdumpTimes {
    Right,
    Swapped,
    Missing,
}

fn softflowd(scratch: &Scratch, capture: &Path, port: u16, arguments: &[&str]) -> Command {
    let mut command = command("softflowd");
    command
        // Times of the capture become those of the export.
        .args(["-d", "-a", "-n", &format!("127.0.0.1:{port}"), "-r"])
        .arg(capture)
        .arg("-p")
        .arg(scratch.file("softflowd.pid"))
        // With a control socket, version 1.1.0 may wait for a connection to it while it reads a file.
        .args(["-c", "none"])
        .args(arguments);
    command
}

#[test]
fn softflowd_against_its_capture_and_nfdump() {
    let tools = ["softflowd", "nfcapd", "nfdump"];
    if !require::require_root() || !tools.into_iter().all(require::require_tool) {
        return;
    }
    // The greatest error of times, and how nfdump 1.7.1 prints them. An uptime is relative to the
    // header, whose time has only seconds in NetFlow v9.
    let cases: &[(Version, &[&str], u64, NfdumpTimes)] = &[
        (Version::NetflowV5, &["-v", "5"], 1_000_000_000, NfdumpTimes::Right),
        (Version::NetflowV9, &["-v", "9"], 1_000_000_000, NfdumpTimes::Right),
        (Version::NetflowV9, &["-v", "9", "-T", "vlan"], 1_000_000_000, NfdumpTimes::Right),
        (Version::Ipfix, &["-v", "10"], 1_000_000_000, NfdumpTimes::Swapped),
        (Version::Ipfix, &["-v", "10", "-A", "sec"], 2_000_000_000, NfdumpTimes::Missing),
        (Version::Ipfix, &["-v", "10", "-A", "milli"], 999_999, NfdumpTimes::Right),
        (Version::Ipfix, &["-v", "10", "-A", "micro"], 1_000, NfdumpTimes::Missing),
        (Version::Ipfix, &["-v", "10", "-A", "nano"], 1_000, NfdumpTimes::Missing),
    ];
    for (version, arguments, error_ns, nfdump_times) in cases {
        let scratch = Scratch::new().expect("a folder");
        let ipv6_share = if *version == Version::NetflowV5 { 0.0 } else { 0.25 };
        let (capture, captured) = capture(&scratch, 400, ipv6_share);
        let receiver = Receiver::new();
        let nfcapd = Nfcapd::start(&scratch.file("nfcapd"));
        let exporter = start(&mut softflowd(&scratch, &capture, receiver.port, arguments));
        let (mut collector, mut table) = (Collector::default(), FlowTable::default());
        let mut flows: Vec<FlowRecord> = Vec::new();
        receiver.drain(exporter, |from, datagram| {
            nfcapd.send(datagram);
            let received = collector.receive(from, datagram, NOW, |record| {
                flows.push(*record.flow);
                table.add(record.flow);
            });
            assert_eq!((received.version, received.malformed), (Some(*version), None));
        });
        let comparison = table.compare(captured.iter().map(|flow| flow.sent), 5);
        assert!(comparison.is_exact(), "{arguments:?}: {comparison:#?}");
        for flow in &captured {
            let sums = table.find(flow.sent.key).expect("the comparison is exact");
            let first = sums.first.as_nanos().abs_diff(flow.first_ns);
            let last = sums.last.as_nanos().abs_diff(flow.last_ns);
            assert!(first <= *error_ns && last <= *error_ns, "{arguments:?}: {flow:?}, {sums:?}");
        }
        for domain in collector.domains() {
            let sequence = domain.sequence();
            let lost = (sequence.lost, sequence.unexpected, sequence.restarts);
            assert_eq!(lost, (0, 0, 0), "{arguments:?}");
            let is_ipfix = *version == Version::Ipfix;
            let convention =
                SequenceConvention { with_own_records: is_ipfix, without_options: is_ipfix };
            assert_eq!(domain.sequence_convention(), convention, "{arguments:?}");
        }
        let totals = collector.totals();
        assert_eq!((totals.unknown_template_sets, totals.other_bytes), (0, 0), "{arguments:?}");

        let stored = nfcapd.finish();
        assert_eq!(stored.len(), flows.len(), "{arguments:?}");
        for (stored, flow) in stored.iter().zip(&flows) {
            let mut expected = Stored::of(flow);
            // nfdump 1.7.1 prints 0.0 for all messages of ICMPv6 from NetFlow v9.
            if *version == Version::NetflowV9 && flow.key.protocol() == protocol::ICMPV6 {
                expected.key = expected.key.with_ports(0, 0);
            }
            match nfdump_times {
                NfdumpTimes::Right => {}
                NfdumpTimes::Swapped => swap(&mut expected.first_ms, &mut expected.last_ms),
                NfdumpTimes::Missing => (expected.first_ms, expected.last_ms) = (0, 0),
            }
            assert_eq!(*stored, expected, "{arguments:?}: {flow:?}");
        }
    }
}

#[test]
fn pmacct_against_its_capture() {
    if !require::require_root() || !require::require_tool("pmacctd") {
        return;
    }
    for version in [Version::NetflowV9, Version::Ipfix, Version::SflowV5] {
        let scratch = Scratch::new().expect("a folder");
        // A sample for each packet overruns the socket otherwise.
        let conversations = if version == Version::SflowV5 { 20 } else { 400 };
        let (capture, captured) = capture(&scratch, conversations, 0.25);
        let receiver = Receiver::new();
        let plugin = match version {
            Version::SflowV5 => "plugins: sfprobe\nsfprobe_agentip: 192.0.2.1\nsfprobe_receiver",
            Version::Ipfix => "plugins: nfprobe\nnfprobe_version: 10\nnfprobe_receiver",
            _ => "plugins: nfprobe\nnfprobe_version: 9\nnfprobe_receiver",
        };
        let log = scratch.file("pmacctd.log");
        let configuration = format!(
            "daemonize: false\nlogfile: {}\npcap_savefile: {}\npcap_savefile_wait: true\n\
             aggregate: src_host, dst_host, src_port, dst_port, proto, tos\n\
             {plugin}: 127.0.0.1:{}\n",
            log.display(),
            capture.display(),
            receiver.port
        );
        let file = scratch.file("pmacctd.conf");
        std::fs::write(&file, configuration).expect("a file");
        let exporter = start(command("pmacctd").arg("-f").arg(file));
        // It exports the rest when it ends.
        let is_done = || std::fs::read_to_string(&log).is_ok_and(|text| text.contains("finished"));
        let (mut collector, mut table) = (Collector::default(), FlowTable::default());
        receiver.drain_until(exporter, is_done, |from, datagram| {
            let received = collector.receive(from, datagram, NOW, |record| {
                let overhead = if version == Version::SflowV5 { FRAME_OVERHEAD } else { 0 };
                table.add(&FlowRecord { bytes: record.flow.bytes - overhead, ..*record.flow });
            });
            assert_eq!((received.version, received.malformed), (Some(version), None));
        });
        let [domain] = collector.domains() else { panic!("one stream") };
        assert_eq!(domain.sequence(), SequenceCounters::default(), "{version}");
        assert_eq!(domain.sequence_convention(), SequenceConvention::default());
        // A slow run of sfprobe has counter samples of an interface too, of 108 bytes each.
        let counters = domain.counters();
        let other = (counters.other_samples, counters.other_bytes);
        assert_eq!(other, (0, 108 * counters.counter_samples), "{version}");
        let comparison = table.compare(captured.iter().map(|flow| flow.sent), 5);
        let flows = (comparison.missing_flows, comparison.unexpected.flows);
        assert_eq!(flows, (0, 0), "{version}: {comparison:#?}");
        // pmacctd 1.7.7 counts the packets in its last buffer twice when it is interrupted.
        assert!(comparison.packets_differ <= 6, "{version}: {comparison:#?}");
        assert_eq!(comparison.bytes_differ, comparison.packets_differ, "{version}");
        assert!(comparison.captured.packets >= comparison.sent.packets, "{version}");
    }
}

#[test]
fn nfpcapd_stores_the_flows_of_the_capture() {
    let tools = ["nfpcapd", "nfdump"];
    if !require::require_root() || !tools.into_iter().all(require::require_tool) {
        return;
    }
    let scratch = Scratch::new().expect("a folder");
    let (capture, captured) = capture(&scratch, 400, 0.25);
    let folder = scratch.file("flows");
    std::fs::create_dir(&folder).expect("a folder");
    let output = command("nfpcapd").arg("-r").arg(&capture).arg("-w").arg(&folder).output();
    let output = output.expect("nfpcapd");
    assert!(output.status.success(), "{output:?}");
    let mut flows: BTreeMap<FlowKey, (u64, u64)> = BTreeMap::new();
    for record in stored(&folder) {
        // It closes a flow with FIN, and begins another one with the last acknowledgement.
        let sums = flows.entry(record.key).or_default();
        *sums = (sums.0 + record.packets, sums.1 + record.bytes);
    }
    for CapturedFlow { sent, .. } in &captured {
        let sums = flows.remove(&sent.key);
        assert_eq!(sums, Some((sent.packets, sent.bytes)), "{sent:?}");
    }
    assert!(flows.is_empty(), "{flows:?}");
}
