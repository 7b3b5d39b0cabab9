//! The examples of RFC 3954, RFC 5103 and RFC 7011, and hand-written messages of other formats.

use std::net::{IpAddr, Ipv4Addr};

use wirestorm_base::time::{Duration, Instant};
use wirestorm_flowexport::collector::{Collector, Counters};
use wirestorm_flowexport::element::{self, FieldId};
use wirestorm_flowexport::{Counting, FieldSet, Version};
use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::packet::protocol;

use crate::support::{Bytes, EXPORTER, NOW, ipfix, receive, v9};

/// Source, destination, packets and bytes of the flows in both RFCs' examples.
type Flow = ([u8; 4], [u8; 4], u64, u64);

fn data(flows: &[Flow], next_hop: [u8; 4]) -> Bytes {
    flows.iter().fold(Bytes::default(), |bytes, &(source, destination, packets, octets)| {
        bytes
            .address(source)
            .address(destination)
            .address(next_hop)
            .u32s([packets as u32, octets as u32])
    })
}

#[track_caller]
fn assert_flows(datagram: &[u8], expected: &[Flow], next_hop: [u8; 4]) -> Counters {
    let mut collector = Collector::default();
    let mut flows = Vec::new();
    let received = collector.receive(EXPORTER, datagram, NOW, |record| {
        let flow = record.flow;
        let (IpAddr::V4(source), IpAddr::V4(destination)) =
            (flow.key.source(), flow.key.destination())
        else {
            panic!("{flow:?}")
        };
        assert_eq!(record.field(element::NEXT_HOP_IPV4), Some(&next_hop[..]));
        assert_eq!(record.fields().count(), 5);
        assert_eq!(flow.present, FieldSet::ADDRESSES | FieldSet::PACKETS | FieldSet::BYTES);
        flows.push((source.octets(), destination.octets(), flow.packets, flow.bytes));
    });
    assert_eq!(received.malformed, None);
    assert_eq!(flows, expected);
    collector.totals()
}

#[test]
fn rfc_3954_section_11() {
    let template = Bytes::default().u16s([256, 5, 8, 4, 12, 4, 15, 4, 2, 4, 1, 4]);
    // The RFC has 198.168.1.12 where it means 192.168.1.12.
    let flows = [
        ([198, 168, 1, 12], [10, 5, 12, 254], 5_009, 5_344_385),
        ([192, 168, 1, 27], [10, 5, 12, 23], 748, 388_934),
        ([192, 168, 1, 56], [10, 5, 12, 65], 5, 6_534),
    ];
    let next_hop = [192, 168, 1, 1];
    let options_template = Bytes::default().u16s([257, 4, 8, 3, 2, 41, 2, 42, 2, 0]);
    let options = Bytes::default().u16s([1, 345, 10_201, 2, 690, 20_402]);
    let message = v9(7, 0, 33)
        .set(0, template)
        .set(256, data(&flows, next_hop))
        .set(1, options_template)
        .set(257, options);
    let counters = assert_flows(&message.0, &flows, next_hop);
    let expected = Counters {
        datagrams: 1,
        bytes: 20 + 28 + 64 + 24 + 16,
        header_bytes: 20 + 4 * 4,
        template_bytes: 24 + 20,
        record_bytes: 60,
        options_bytes: 12,
        record_datagrams: 1,
        records: 3,
        flows: 3,
        options_records: 2,
        templates: 2,
        ..Counters::default()
    };
    assert_eq!(counters, expected);
    assert_eq!(counters.control_records_per_datagram(), Some(4.0));
}

#[test]
fn rfc_7011_appendix_a() {
    let template = Bytes::default().u16s([256, 5, 8, 4, 12, 4, 15, 4, 2, 4, 1, 4]);
    let enterprise_template = Bytes::default()
        .u16s([257, 5, 8, 4, 12, 4, 0x8000 | 15, 4])
        .u32s([32_473])
        .u16s([2, 4, 1, 4]);
    let flows = [
        ([192, 0, 2, 12], [192, 0, 2, 254], 5_009, 5_344_385),
        ([192, 0, 2, 27], [192, 0, 2, 23], 748, 388_934),
        ([192, 0, 2, 56], [192, 0, 2, 65], 5, 6_534),
    ];
    let next_hop = [192, 0, 2, 1];
    let options_template =
        Bytes::default().u16s([260, 3, 1, 0x8000 | 123, 4]).u32s([32_473]).u16s([41, 2, 42, 2, 0]);
    let options = Bytes::default().u32s([1]).u16s([345, 10_201]).u32s([2]).u16s([690, 20_402]);
    let sets = Bytes::default()
        .set(2, template)
        .set(2, enterprise_template)
        .set(256, data(&flows, next_hop))
        .set(3, options_template)
        .set(260, options);
    assert_eq!(sets.0.len(), 28 + 32 + 64 + 28 + 20);
    let message = ipfix(0, sets);
    let counters = assert_flows(&message, &flows, next_hop);
    assert_eq!((counters.records, counters.options_records, counters.templates), (3, 2, 3));

    let mut collector = Collector::default();
    receive(&mut collector, &message);
    let record = data(&flows[..1], [9, 9, 9, 9]);
    let message = ipfix(5, Bytes::default().set(257, record));
    collector.receive(EXPORTER, &message, NOW, |record| {
        let id = FieldId { enterprise: 32_473, number: 15 };
        assert_eq!(record.unsigned(id), Some(0x0909_0909));
        assert_eq!(record.field(element::NEXT_HOP_IPV4), None);
        assert_eq!(record.source.version, Version::Ipfix);
    });
    assert_eq!(collector.totals().records, 4);
    assert_eq!(collector.domains()[0].sequence().lost, 0);
}

#[test]
fn rfc_5103_appendix_a() {
    let reverse = |bytes: Bytes, id: u16| bytes.u16s([0x8000 | id, 4]).u32s([29_305]);
    let template = Bytes::default().u16s([256, 11, 150, 4]);
    let template = reverse(template, 150).u16s([8, 4, 12, 4, 7, 2, 11, 2, 4, 1, 85, 4]);
    let template = reverse(reverse(template, 85).u16s([86, 4]), 86);
    // 1 February 2006, 17:00:00 UTC.
    let start = 1_138_813_200;
    let data = Bytes::default()
        .u32s([start, start + 1])
        .address([192, 0, 2, 2])
        .address([192, 0, 2, 3])
        .u16s([32_770, 80])
        .u8(6)
        .u32s([18_000, 128_000, 65, 110]);
    let sets = Bytes::default().set(2, template).set(256, data);
    assert_eq!(sets.0.len(), 64 + 41);
    let mut collector = Collector::default();
    let (received, flows) = receive(&mut collector, &ipfix(0, sets));
    assert_eq!((received.records, received.malformed), (1, None));
    let [forward, backward] = flows[..] else { panic!("{flows:?}") };
    let key = FlowKey::ipv4([192, 0, 2, 2], [192, 0, 2, 3], protocol::TCP).with_ports(32_770, 80);
    assert_eq!((forward.key, forward.packets, forward.bytes), (key, 65, 18_000));
    assert_eq!((backward.key, backward.packets, backward.bytes), (key.reversed(), 110, 128_000));
    assert_eq!((forward.is_reverse, backward.is_reverse), (false, true));
    assert_eq!(forward.counting, Counting::Total);
    let first = Instant::from_nanos(u64::from(start) * 1_000_000_000);
    assert_eq!(forward.first, Some(first));
    assert_eq!(backward.first, Some(first.saturating_add(Duration::from_secs(1))));
    assert_eq!((collector.totals().records, collector.totals().flows), (1, 2));
}

#[test]
fn netflow_v5_by_hand() {
    let message = Bytes::default()
        .u16s([5, 1])
        // Uptime, seconds, nanoseconds, sequence.
        .u32s([10_000, 1_800_000_000, 500_000_000, 42])
        // Engine type 1 and number 2; sampling mode 1, interval 100.
        .u16s([0x0102, 0x4000 | 100])
        .address([10, 0, 0, 1])
        .address([10, 0, 0, 2])
        .address([10, 0, 0, 254])
        .u16s([3, 4])
        // Packets, bytes, first, last.
        .u32s([5, 420, 7_000, 9_500])
        // An echo request.
        .u16s([0, 0x0800, 0x0000])
        .append(&[protocol::ICMP, 0xb8])
        .u16s([64_496, 64_497, 0x1808, 0]);
    let mut collector = Collector::default();
    let (received, flows) = receive(&mut collector, &message.0);
    assert_eq!((received.records, received.malformed), (1, None));
    let flow = flows[0];
    let key = FlowKey::ipv4([10, 0, 0, 1], [10, 0, 0, 2], protocol::ICMP).with_ports(8, 0);
    assert_eq!((flow.key, flow.packets, flow.bytes), (key, 5, 420));
    assert_eq!((flow.input_interface, flow.output_interface), (3, 4));
    assert_eq!((flow.type_of_service, flow.sampling_interval), (0xb8, 100));
    let export = NOW.saturating_add(Duration::from_millis(500));
    assert_eq!(flow.first, Some(export.saturating_sub(Duration::from_millis(3_000))));
    assert_eq!(flow.last, Some(export.saturating_sub(Duration::from_millis(500))));
    assert_eq!(collector.domains()[0].source().domain, 0x0102);
}

#[test]
fn the_uptime_may_wrap_between_a_packet_and_its_export() {
    let template = Bytes::default().u16s([256, 2, 22, 4, 21, 4]);
    let message = Bytes::default()
        .u16s([9, 2])
        .u32s([500, 1_800_000_000, 0, 1])
        .set(0, template)
        .set(256, Bytes::default().u32s([u32::MAX - 999, 700]));
    let (_, flows) = receive(&mut Collector::default(), &message.0);
    assert_eq!(flows[0].first, Some(NOW.saturating_sub(Duration::from_millis(1_500))));
    // A packet after the export time, which has only seconds.
    assert_eq!(flows[0].last, Some(NOW.saturating_add(Duration::from_millis(200))));
}

#[test]
fn uptimes_in_ipfix_need_the_boot_of_the_exporter() {
    let template = Bytes::default().u16s([256, 2, 22, 4, 161, 4]);
    let options_template = Bytes::default().u16s([257, 2, 1, 149, 4, 160, 8]);
    let data = Bytes::default().u32s([2_000, 3_000]);
    let sets = Bytes::default().set(2, template).set(256, data.clone());
    let mut collector = Collector::default();
    let (_, flows) = receive(&mut collector, &ipfix(0, sets));
    assert_eq!((flows[0].first, flows[0].last), (None, None));

    let boot_ms = 1_799_999_000_000_u64;
    let options = Bytes::default().u32s([1, (boot_ms >> 32) as u32, boot_ms as u32]);
    let sets = Bytes::default().set(3, options_template).set(257, options).set(256, data);
    let (_, flows) = receive(&mut collector, &ipfix(1, sets));
    let boot = Instant::from_nanos(boot_ms * 1_000_000);
    assert_eq!(flows[0].first, Some(boot.saturating_add(Duration::from_secs(2))));
    assert_eq!(flows[0].last, Some(boot.saturating_add(Duration::from_secs(5))));
    assert_eq!(collector.domains()[0].sequence().lost, 0);
}

#[test]
fn sampling_intervals_of_samplers_apply_to_their_records() {
    // Scope interface, sampler, random interval.
    let options_template = Bytes::default().u16s([257, 4, 8, 2, 2, 48, 1, 50, 2, 0]);
    let options = Bytes::default().u16s([1]).u8(7).u16s([100, 2]).u8(8).u16s([200]);
    let template = Bytes::default().u16s([256, 3, 2, 4, 1, 4, 48, 1]);
    let data = Bytes::default().u32s([1, 1]).u8(8).u32s([1, 1]).u8(7).u32s([1, 1]).u8(9);
    let message =
        v9(7, 0, 1).set(1, options_template).set(257, options).set(0, template).set(256, data);
    let (_, flows) = receive(&mut Collector::default(), &message.0);
    let intervals: Vec<u32> = flows.iter().map(|flow| flow.sampling_interval).collect();
    assert_eq!(intervals, [200, 100, 0]);
}

#[test]
fn an_expanded_sample_of_sflow_and_a_counter_sample() {
    // Ethernet, IPv4, TCP with SYN and ACK; the snap length cuts the TCP header's end.
    let packet = Bytes::default()
        .append(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0])
        .append(&[0x45, 0x20, 0, 100, 0, 0, 0, 0, 64, protocol::TCP, 0, 0])
        .address([10, 0, 0, 1])
        .address([10, 0, 0, 2])
        .u16s([80, 40_000])
        .u32s([1, 2])
        .append(&[0x50, 0x12, 0, 0, 0, 0, 0, 0]);
    assert_eq!(packet.0.len(), 54);
    let header = Bytes::default().u32s([1, 118, 4, 54]).append(&packet.0).append(&[0; 2]);
    let switch = Bytes::default().u32s([7, 0, 8, 0]);
    let sample = Bytes::default()
        // Sequence, source type and index, rate, pool, drops.
        .u32s([1, 0, 70_000_000, 512, 1_024, 3])
        // Formats and values of both interfaces.
        .u32s([0, 70_000_000, 1, 5])
        // The name of a user, padded to 4 bytes.
        .u32s([3, 1_004, 6])
        .append(b"nobody\0\0")
        .u32s([1, header.0.len() as u32])
        .append(&header.0)
        .u32s([1_001, 16])
        .append(&switch.0);
    let counters = Bytes::default().u32s([1, 2, 0]);
    let message = Bytes::default()
        .u32s([5, 1])
        .address([192, 0, 2, 9])
        // Sub-agent, sequence, uptime, samples.
        .u32s([0, 17, 1_000, 2])
        .u32s([3, sample.0.len() as u32])
        .append(&sample.0)
        .u32s([2, counters.0.len() as u32])
        .append(&counters.0);
    let mut collector = Collector::default();
    let mut flows = Vec::new();
    let received = collector.receive(EXPORTER, &message.0, NOW, |record| {
        assert_eq!(record.sampled_header(), Some(&packet.0[..]));
        assert_eq!(record.source.agent, Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 9))));
        flows.push(*record.flow);
    });
    assert_eq!((received.records, received.malformed), (1, None));
    let key = FlowKey::ipv4([10, 0, 0, 1], [10, 0, 0, 2], protocol::TCP).with_ports(80, 40_000);
    assert_eq!((flows[0].key, flows[0].bytes), (key.with_vlan(7), 118));
    assert_eq!((flows[0].tcp_flags, flows[0].type_of_service), (0x12, 0x20));
    assert_eq!((flows[0].input_interface, flows[0].output_interface), (70_000_000, 0));
    assert_eq!(flows[0].sampling_interval, 512);
    let totals = collector.totals();
    assert_eq!((totals.counter_samples, totals.other_samples, totals.records), (1, 0, 1));
}

/// A datagram of sFlow with one sample of a packet whose agent reports the fields.
fn sampled_ip(sequence: u32, drops: u32, is_ipv6: bool) -> Vec<u8> {
    let flow = Bytes::default().u32s([1_280, u32::from(protocol::UDP)]);
    let flow = match is_ipv6 {
        true => flow.append(&[0xfd; 16]).append(&[0xfe; 16]),
        false => flow.address([10, 0, 0, 1]).address([10, 0, 0, 2]),
    };
    let flow = flow.u32s([5_000, 53, 0, 0x28]);
    let sample = Bytes::default()
        .u32s([sequence, 3, 10, sequence * 10, drops, 3, 0x4000_0001, 1])
        .u32s([if is_ipv6 { 4 } else { 3 }, flow.0.len() as u32])
        .append(&flow.0);
    Bytes::default()
        .u32s([5, 1])
        .address([192, 0, 2, 9])
        .u32s([0, sequence, 1_000, 1, 1, sample.0.len() as u32])
        .append(&sample.0)
        .0
}

#[test]
fn samples_without_a_header_and_their_drops() {
    let mut collector = Collector::default();
    for (sequence, drops, is_ipv6) in [(1, 3, false), (2, 5, true), (3, 0, false), (4, 1, false)] {
        let (received, flows) = receive(&mut collector, &sampled_ip(sequence, drops, is_ipv6));
        assert_eq!((received.records, received.malformed), (1, None));
        let key = match is_ipv6 {
            true => FlowKey::ipv6([0xfd; 16], [0xfe; 16], protocol::UDP),
            false => FlowKey::ipv4([10, 0, 0, 1], [10, 0, 0, 2], protocol::UDP),
        };
        assert_eq!((flows[0].key, flows[0].bytes), (key.with_ports(5_000, 53), 1_280));
        assert_eq!((flows[0].type_of_service, flows[0].sampling_interval), (0x28, 10));
        assert_eq!((flows[0].input_interface, flows[0].output_interface), (3, 0));
        assert!(!flows[0].present.contains(FieldSet::TCP_FLAGS));
    }
    // From 3 to 5, and from 0 to 1 after the agent has started again.
    assert_eq!(collector.totals().sample_drops, 3);
}

#[test]
fn a_packet_that_is_not_ip_is_another_sample() {
    let arp = Bytes::default().append(&[0xff; 12]).u16s([0x0806]).append(&[0; 28]);
    let header = Bytes::default().u32s([1, 64, 4, 42]).append(&arp.0).append(&[0; 2]);
    let sample = Bytes::default()
        .u32s([1, 3, 10, 10, 0, 3, 4, 1, 1, header.0.len() as u32])
        .append(&header.0);
    let message = Bytes::default()
        .u32s([5, 1])
        .address([192, 0, 2, 9])
        .u32s([0, 1, 1_000, 1, 1, sample.0.len() as u32])
        .append(&sample.0);
    let mut collector = Collector::default();
    let (received, flows) = receive(&mut collector, &message.0);
    assert_eq!((received.records, received.malformed, flows.len()), (0, None, 0));
    assert_eq!(collector.totals().other_samples, 1);
}

#[test]
fn only_so_many_samplers_are_remembered() {
    let options_template = Bytes::default().u16s([257, 4, 8, 2, 2, 48, 1, 50, 2, 0]);
    let options = (0..100).fold(Bytes::default(), |bytes, sampler| {
        bytes.u16s([1]).u8(sampler).u16s([10 + u16::from(sampler)])
    });
    let template = Bytes::default().u16s([256, 2, 1, 4, 48, 1]);
    let data = Bytes::default().u32s([1]).u8(63).u32s([1]).u8(64);
    let message =
        v9(104, 0, 1).set(1, options_template).set(257, options).set(0, template).set(256, data);
    let mut collector = Collector::default();
    let (_, flows) = receive(&mut collector, &message.0);
    assert_eq!(flows.iter().map(|flow| flow.sampling_interval).collect::<Vec<_>>(), [73, 0]);
    assert_eq!(
        (collector.totals().samplers_refused, collector.totals().options_records),
        (36, 100)
    );
}

#[test]
fn elements_with_the_same_meaning_are_understood() {
    // DSCP, VLAN of the outermost tag, ICMP type and code, times as NTP and before the export.
    let template = Bytes::default()
        .u16s([256, 9, 8, 4, 12, 4, 4, 1, 195, 1, 243, 2, 176, 1, 177, 1, 156, 8, 159, 4]);
    let seconds = 1_799_999_990_u64 + 2_208_988_800;
    let data = Bytes::default()
        .address([10, 0, 0, 1])
        .address([10, 0, 0, 2])
        .append(&[protocol::ICMP, 46])
        .u16s([0xe007])
        .append(&[3, 1])
        .u32s([seconds as u32, 1 << 31, 2_500]);
    let sets = Bytes::default().set(2, template).set(256, data);
    let (received, flows) = receive(&mut Collector::default(), &ipfix(0, sets));
    assert_eq!(received.malformed, None);
    let key = FlowKey::ipv4([10, 0, 0, 1], [10, 0, 0, 2], protocol::ICMP).with_ports(3, 1);
    assert_eq!((flows[0].key, flows[0].type_of_service), (key.with_vlan(7), 46 << 2));
    assert_eq!(flows[0].first, Some(NOW.saturating_sub(Duration::from_millis(9_500))));
    assert_eq!(flows[0].last, Some(NOW.saturating_sub(Duration::from_micros(2_500))));
}

#[test]
fn a_template_with_both_ip_versions_has_one_of_them() {
    let template = Bytes::default().u16s([256, 6, 60, 1, 8, 4, 12, 4, 27, 16, 28, 16, 4, 1]);
    let record = |version: u8, four: [u8; 4], six: [u8; 16]| {
        Bytes::default().u8(version).address(four).address(four).append(&six).append(&six).u8(17)
    };
    let data = record(4, [10, 0, 0, 1], [0; 16])
        .append(&record(6, [0; 4], [0xfd; 16]).0)
        .append(&record(6, [10, 0, 0, 1], [0xfd; 16]).0)
        .append(&record(0, [0; 4], [0xfd; 16]).0);
    let sets = Bytes::default().set(2, template).set(256, data);
    let (_, flows) = receive(&mut Collector::default(), &ipfix(0, sets));
    let versions: Vec<u8> = flows.iter().map(|flow| flow.key.version()).collect();
    assert_eq!(versions, [4, 6, 6, 6]);
    assert_eq!(flows[1].key, FlowKey::ipv6([0xfd; 16], [0xfd; 16], 17));
}
