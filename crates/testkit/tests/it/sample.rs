//! Sample traffic, checked with tshark.

use std::collections::BTreeSet;
use std::path::PathBuf;

use wirestorm_testkit::pcap::{self, Resolution};
use wirestorm_testkit::require::require_tool;
use wirestorm_testkit::sample::{
    FixedFrames, FixedOptions, Traffic, TrafficOptions, write, write_file,
};
use wirestorm_testkit::{Scratch, tshark};

const SECOND: u64 = 1_000_000_000;

fn sample(scratch: &Scratch, options: TrafficOptions) -> PathBuf {
    let path = scratch.file("sample.pcap");
    write_file(Traffic::new(options), Resolution::Nanoseconds, &path).unwrap();
    path
}

fn bytes(options: TrafficOptions) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(Traffic::new(options), Resolution::Microseconds, &mut bytes).unwrap();
    bytes
}

#[test]
fn same_seed_gives_the_same_bytes() {
    let options = TrafficOptions { conversations: 200, ..TrafficOptions::default() };
    assert_eq!(bytes(options.clone()), bytes(options.clone()));
    assert_ne!(bytes(options.clone()), bytes(TrafficOptions { seed: 2, ..options }));
}

#[test]
fn packets_are_in_order_and_conversations_interleave() {
    let options = TrafficOptions::default();
    let (start, duration) = (options.start, options.duration);
    let packets: Vec<_> = Traffic::new(options).collect();
    assert!(packets.windows(2).all(|pair| pair[0].time <= pair[1].time));
    assert!(packets[0].time >= start);
    let last = packets.last().unwrap().time;
    assert!((start + duration * 9 / 10..start + duration * 2).contains(&last));
    let changes = packets.windows(2).filter(|pair| pair[0].frame[..12] != pair[1].frame[..12]);
    assert!(changes.count() > packets.len() / 3);
    let full_size = packets.iter().filter(|packet| packet.frame.len() >= 1_514).count();
    let small = packets.iter().filter(|packet| packet.frame.len() <= 80).count();
    assert!(full_size > packets.len() / 5 && small > packets.len() / 5);
    assert!(packets.iter().all(|packet| (60..=1_518).contains(&packet.frame.len())));
}

#[test]
fn packet_count_option_is_exact() {
    let options = TrafficOptions {
        conversations: 10,
        duration: SECOND,
        packets: Some(5_000),
        ..TrafficOptions::default()
    };
    assert_eq!(Traffic::new(options).count(), 5_000);
}

#[test]
fn tshark_finds_no_malformed_packets() {
    if !require_tool("tshark") {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let path = sample(&scratch, TrafficOptions { conversations: 800, ..TrafficOptions::default() });
    for wrong in [
        "_ws.malformed",
        "ip.checksum.status == 0 || tcp.checksum.status == 0 || udp.checksum.status == 0",
        "icmp.checksum.status == 0 || icmpv6.checksum.status == 0",
        "tcp.analysis.flags && !tcp.analysis.keep_alive",
        "ip.fragment || tcp.flags.reset == 1",
    ] {
        let found = tshark::fields(&path, wrong, &["frame.number", "_ws.col.Info"]).unwrap();
        assert!(found.is_empty(), "{wrong}: {} packets, the first {:?}", found.len(), found[0]);
    }
}

#[test]
fn every_traffic_kind_occurs_and_conversations_are_unique() {
    if !require_tool("tshark") {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let options = TrafficOptions { conversations: 600, ..TrafficOptions::default() };
    let path = sample(&scratch, options);
    let shares = |filter: &str| tshark::count(&path, filter).unwrap();
    let total = tshark::count(&path, "").unwrap();
    for kind in ["http", "tls", "dns.flags.response == 1", "ntp", "icmp", "icmpv6", "vlan", "arp"] {
        assert!((1..total / 2).contains(&shares(kind)), "{kind}");
    }
    let ipv6 = shares("ipv6");
    assert!((total / 10..total / 2).contains(&ipv6), "{ipv6} of {total}");
    let fields = ["ip.src", "ipv6.src", "tcp.srcport", "ip.dst", "ipv6.dst", "tcp.dstport"];
    let opened = tshark::fields(&path, "tcp.flags.syn == 1 && tcp.flags.ack == 0", &fields);
    let opened = opened.unwrap();
    assert_eq!(opened.iter().collect::<BTreeSet<_>>().len(), opened.len());
    assert_eq!(shares("tcp.flags.fin == 1"), 2 * opened.len(), "each is closed by both sides");
}

#[test]
fn fixed_frames_have_the_length_flows_and_unique_numbers() {
    let scratch = Scratch::new().unwrap();
    for frame_length in [60, 1_514] {
        let options = FixedOptions { frame_length, flows: 7, packets: 100, ..Default::default() };
        let path = scratch.file("fixed.pcap");
        let written = write_file(FixedFrames::new(options), Resolution::Nanoseconds, &path);
        let written = written.unwrap();
        assert_eq!((written.packets, written.bytes), (100, 100 * frame_length as u64));
        let packets = pcap::read(&path).unwrap();
        assert!(packets.iter().all(|packet| packet.frame.len() == frame_length));
        let number = |frame: &[u8]| u64::from_be_bytes(frame[42..50].try_into().unwrap());
        assert!(packets.iter().map(|packet| number(&packet.frame)).eq(0..100));
        let flows: BTreeSet<_> = packets.iter().map(|packet| &packet.frame[26..38]).collect();
        assert_eq!(flows.len(), 7);
        if require_tool("tshark") {
            let good = "ip.checksum.status == 1 && udp.checksum.status == 1";
            assert_eq!(tshark::count(&path, good).unwrap(), 100);
        }
    }
}
