//! What happens between an exporter and a collector when not all goes well.

use wirestorm_base::time::Duration;
use wirestorm_flowexport::collector::{Collector, CollectorOptions, SequenceCounters, Withdrawals};
use wirestorm_flowexport::element;
use wirestorm_flowexport::exporter::{
    ExportTemplate, Exporter, ExporterOptions, FlowGenerator, FlowGeneratorOptions,
};
use wirestorm_flowexport::{FlowRecord, Malformed, Version};

use crate::support::{
    Bytes, EXPORTER, NOW, VERSIONS, datagrams, generated, ipfix, receive, receive_at,
    seconds_after, v9,
};

const RECORDS: u64 = 10;

fn options(version: Version) -> ExporterOptions {
    ExporterOptions {
        version,
        boot: NOW.saturating_sub(Duration::from_secs(3_600)),
        records_per_datagram_max: RECORDS as u32,
        template_refresh_datagrams: 0,
        ..ExporterOptions::default()
    }
}

fn flows(count: u64) -> Vec<FlowRecord> {
    generated(&FlowGenerator::new(FlowGeneratorOptions::default()), 0..count)
}

/// Datagrams with 10 records each, the first with the templates.
fn export(version: Version, count: u64) -> Vec<Vec<u8>> {
    let mut exporter = Exporter::new(options(version)).unwrap();
    datagrams(&mut exporter, NOW, flows(count * RECORDS))
}

/// Units of a lost datagram.
fn units(version: Version) -> u64 {
    if version.counts_records() { RECORDS } else { 1 }
}

#[test]
fn lost_late_and_repeated_datagrams() {
    for version in VERSIONS {
        let sent = export(version, 10);
        let mut collector = Collector::default();
        //  0 1 2 [lost: 3 4] 5 4 [lost: 6] 7 7 8 9
        for number in [0, 1, 2, 5, 4, 7, 7, 8, 9] {
            receive(&mut collector, &sent[number]);
        }
        let units = units(version);
        let expected = SequenceCounters {
            lost: 2 * units,
            gaps: 2,
            gap_max: 2 * units as u32,
            late: units,
            unexpected: 1,
            restarts: 0,
            unknown_template: 0,
        };
        assert_eq!(collector.domains()[0].sequence(), expected, "{version}");
        assert_eq!(collector.totals().records, 9 * RECORDS);
    }
}

#[test]
fn sequence_numbers_wrap() {
    for version in VERSIONS {
        let first_sequence = u32::MAX - 3 * units(version) as u32 + 1;
        let mut exporter =
            Exporter::new(ExporterOptions { first_sequence, ..options(version) }).unwrap();
        let sent = datagrams(&mut exporter, NOW, flows(100));
        let mut collector = Collector::default();
        for (number, datagram) in sent.iter().enumerate() {
            if number != 5 {
                receive(&mut collector, datagram);
            }
        }
        let sequence = collector.domains()[0].sequence();
        assert_eq!((sequence.lost, sequence.gaps), (units(version), 1), "{version}");
        assert_eq!((sequence.unexpected, sequence.restarts), (0, 0));
    }
}

#[test]
fn a_restarted_exporter_starts_again_without_loss() {
    for version in VERSIONS {
        let mut exporter = Exporter::new(options(version)).unwrap();
        let mut sent = datagrams(&mut exporter, NOW, flows(200));
        exporter.restart(NOW);
        sent.extend(datagrams(&mut exporter, seconds_after(1), flows(100)));
        let mut collector = Collector::default();
        for datagram in &sent {
            assert_eq!(receive(&mut collector, datagram).1.len() as u64, RECORDS);
        }
        let domain = &collector.domains()[0];
        let expected = SequenceCounters { restarts: 1, ..SequenceCounters::default() };
        assert_eq!(domain.sequence(), expected, "{version}");
        // The uptime shows a restart before its first records are decoded.
        let discarded = if version == Version::NetflowV9 { 2 } else { 0 };
        assert_eq!(domain.counters().templates_discarded, discarded);
    }
}

#[test]
fn a_template_that_never_comes() {
    for version in [Version::NetflowV9, Version::Ipfix] {
        let sent = export(version, 11);
        let waiting_bytes_max = 2_000;
        let mut collector =
            Collector::new(CollectorOptions { waiting_bytes_max, ..CollectorOptions::default() });
        for datagram in &sent[1..] {
            let (received, flows) = receive(&mut collector, datagram);
            assert_eq!((received.records, received.malformed, flows.len()), (0, None, 0));
        }
        let domain = &collector.domains()[0];
        let counters = domain.counters();
        assert_eq!((counters.unknown_template_sets, counters.records), (10, 0));
        assert!(domain.waiting_sets() > 0);
        assert_eq!(domain.waiting_sets() as u64 + counters.discarded_sets, 10);
        // What follows the last message is not known yet.
        let records = if version == Version::Ipfix { 9 * RECORDS } else { 0 };
        let expected = SequenceCounters { unknown_template: records, ..Default::default() };
        assert_eq!(domain.sequence(), expected, "{version}");
        assert_eq!(counters.count_mismatches, 0);
    }
}

#[test]
fn a_template_that_comes_late() {
    for version in [Version::NetflowV9, Version::Ipfix] {
        let sent = export(version, 4);
        let mut collector = Collector::default();
        let mut delivered = Vec::new();
        // The datagram with the templates is overtaken by three others.
        for number in [1, 2, 3, 0] {
            delivered.extend(receive(&mut collector, &sent[number]).1);
        }
        let keys = |flows: &[FlowRecord]| flows.iter().map(|flow| flow.key).collect::<Vec<_>>();
        let sent = flows(40);
        assert_eq!(keys(&delivered), keys(&[&sent[..10], &sent[10..]].concat()), "{version}");
        let counters = collector.totals();
        assert_eq!((counters.unknown_template_sets, counters.recovered_sets), (3, 3));
        assert_eq!((counters.records, counters.flows), (40, 40));
        assert_eq!(collector.domains()[0].waiting_sets(), 0);
    }
}

#[test]
fn a_waiting_set_that_its_template_does_not_fit_is_counted() {
    let mut collector = Collector::default();
    // A field of 8 bytes, of which 2 are there.
    receive(&mut collector, &ipfix(0, Bytes::default().set(256, Bytes::default().u16s([0x0801]))));
    let template = Bytes::default().u16s([256, 1, 1, 65_535]);
    let (received, flows) = receive(&mut collector, &ipfix(1, Bytes::default().set(2, template)));
    assert_eq!((received.malformed, flows.len()), (None, 0));
    let counters = collector.totals();
    assert_eq!((counters.recovered_sets, counters.recovered_malformed), (1, 1));
}

#[test]
fn a_template_is_refreshed_and_changed() {
    for version in [Version::NetflowV9, Version::Ipfix] {
        let refresh = ExporterOptions { template_refresh_datagrams: 2, ..options(version) };
        let mut exporter = Exporter::new(refresh).unwrap();
        let mut sent = datagrams(&mut exporter, NOW, flows(50));
        let fields = [(element::SOURCE_IPV4, 4), (element::PACKET_DELTA_COUNT, 8)];
        let template = ExportTemplate::new(256, false, fields).unwrap();
        exporter.set_templates(vec![template]).unwrap();
        sent.extend(datagrams(&mut exporter, NOW, flows(10)));
        let mut collector = Collector::default();
        let mut delivered = Vec::new();
        for datagram in &sent {
            delivered.extend(receive(&mut collector, datagram).1);
        }
        assert_eq!(delivered.len(), 60);
        for (flow, sent) in delivered[50..].iter().zip(flows(10)) {
            assert_eq!((flow.key.source(), flow.packets), (sent.key.source(), sent.packets));
            assert_eq!(flow.bytes, 0);
        }
        // Two templates in datagrams 0, 2 and 4, then one.
        let counters = collector.totals();
        assert_eq!((counters.templates, counters.templates_refreshed), (7, 4), "{version}");
        assert_eq!(counters.templates_changed, 1);
        assert_eq!(collector.domains()[0].sequence().lost, 0);
        let (template, _) = collector.domains()[0].templates().next().unwrap();
        assert_eq!((template.id(), template.fields().len()), (256, 2));
    }
}

#[test]
fn templates_expire_without_a_refresh() {
    let sent = export(Version::Ipfix, 3);
    let template_lifetime = Duration::from_secs(60);
    let mut collector =
        Collector::new(CollectorOptions { template_lifetime, ..CollectorOptions::default() });
    receive(&mut collector, &sent[0]);
    assert_eq!(receive_at(&mut collector, &sent[1], seconds_after(60)).1.len(), 10);
    assert_eq!(receive_at(&mut collector, &sent[2], seconds_after(61)).1.len(), 0);
    let counters = collector.totals();
    assert_eq!((counters.templates_expired, counters.unknown_template_sets), (1, 1));
    // A late refresh decodes what has waited.
    assert_eq!(receive_at(&mut collector, &sent[0], seconds_after(62)).1.len(), 20);
}

#[test]
fn withdrawals_are_ignored_over_udp_unless_applied() {
    for withdrawals in [Withdrawals::Ignore, Withdrawals::Apply] {
        let mut exporter = Exporter::new(options(Version::Ipfix)).unwrap();
        let first = datagrams(&mut exporter, NOW, flows(10));
        let mut buffer = [0; 100];
        let encoded = exporter.encode_withdrawal(NOW, &mut buffer).unwrap();
        let second = datagrams(&mut exporter, NOW, flows(10));

        let mut collector =
            Collector::new(CollectorOptions { withdrawals, ..CollectorOptions::default() });
        receive(&mut collector, &first[0]);
        receive(&mut collector, &buffer[..encoded.length]);
        let left = collector.domains()[0].templates().count();
        assert_eq!(left, if withdrawals == Withdrawals::Apply { 0 } else { 2 });
        assert_eq!(receive(&mut collector, &second[0]).1.len(), 10);
        let counters = collector.totals();
        let refreshed = if withdrawals == Withdrawals::Apply { 0 } else { 2 };
        assert_eq!((counters.withdrawals, counters.templates_refreshed), (2, refreshed));
        // There were no options templates.
        let unknown = u64::from(withdrawals == Withdrawals::Apply);
        assert_eq!(counters.withdrawals_unknown, unknown);
        assert_eq!(collector.domains()[0].sequence().lost, 0);

        let single = Bytes::default().set(2, Bytes::default().u16s([256, 0, 999, 0]));
        receive(&mut collector, &ipfix(20, single));
        let left = collector.domains()[0].templates().count();
        assert_eq!(left, if withdrawals == Withdrawals::Apply { 1 } else { 2 });
        assert_eq!(collector.totals().withdrawals_unknown, 2 * unknown);
    }
}

#[test]
fn padding_behind_templates_is_neither_a_template_nor_a_withdrawal() {
    let template = Bytes::default().u16s([256, 1, 1, 4]).u32s([0]);
    let options_template = Bytes::default().u16s([257, 2, 1, 149, 4, 1, 4]).u16s([0, 0, 0]);
    let sets = Bytes::default().set(2, template.clone()).set(3, options_template);
    for message in [ipfix(0, sets), v9(1, 0, 1).set(0, template).0] {
        let mut collector = Collector::default();
        let (received, _) = receive(&mut collector, &message);
        assert_eq!(received.malformed, None);
        let templates = collector.domains()[0].templates().count() as u64;
        assert_eq!((collector.totals().templates, collector.totals().withdrawals), (templates, 0));
    }
}

#[test]
fn a_collector_has_bounds() {
    let options = CollectorOptions {
        domains_max: 2,
        templates_max: 2,
        template_fields_max: 3,
        ..CollectorOptions::default()
    };
    let mut collector = Collector::new(options);
    for domain in 1..=3 {
        let mut message = v9(1, 0, domain);
        for id in 256..259 {
            message = message.set(0, Bytes::default().u16s([id, 1, 1, 4]));
        }
        receive(&mut collector, &message.0);
    }
    assert_eq!((collector.domains().len(), collector.refused_datagrams()), (2, 1));
    assert_eq!(collector.totals().templates_refused, 2);
    let wide = Bytes::default().u16s([256, 4, 1, 4, 2, 4, 3, 4, 4, 4]);
    let (received, _) = receive(&mut collector, &v9(1, 1, 1).set(0, wide).0);
    assert_eq!(received.malformed, Some(Malformed::TemplateFields));
}

#[test]
fn malformed_datagrams_have_reasons() {
    let template = || Bytes::default().u16s([256, 1, 1, 4]);
    let variable = || Bytes::default().u16s([256, 1, 1, 65_535]);
    let v9_message = |id, body: Bytes| v9(1, 0, 1).set(id, body).0;
    let mut cut = export(Version::Ipfix, 1).remove(0);
    cut.pop();
    let mut v5 = export(Version::NetflowV5, 1).remove(0);
    v5[3] = 31;
    let mut sflow = export(Version::SflowV5, 1).remove(0);
    sflow.truncate(100);
    let cases = [
        (vec![], Malformed::TruncatedHeader),
        (vec![0], Malformed::TruncatedHeader),
        (vec![0, 9, 0, 1], Malformed::TruncatedHeader),
        (vec![0, 7, 0, 0], Malformed::UnknownVersion),
        (cut, Malformed::MessageLength),
        (v5, Malformed::RecordCount),
        (v9(1, 0, 1).u16s([256, 3]).0, Malformed::SetLength),
        (v9(1, 0, 1).u16s([256, 5]).0, Malformed::SetLength),
        (v9_message(0, Bytes::default().u16s([256, 2, 1, 4])), Malformed::TruncatedTemplate),
        (v9_message(0, Bytes::default().u16s([255, 1, 1, 4])), Malformed::TemplateId),
        (v9_message(0, Bytes::default().u16s([256, 1, 1, 0])), Malformed::RecordLength),
        (v9_message(0, Bytes::default().u16s([256, 0])), Malformed::RecordLength),
        (v9_message(1, Bytes::default().u16s([256, 0, 4, 1, 4])), Malformed::Scope),
        (
            ipfix(0, Bytes::default().set(3, Bytes::default().u16s([256, 1, 2, 1, 4]))),
            Malformed::Scope,
        ),
        (
            ipfix(0, Bytes::default().set(2, variable()).set(256, Bytes::default().u16s([0x0801]))),
            Malformed::TruncatedField,
        ),
        (sflow, Malformed::TruncatedSample),
        (Bytes::default().u32s([5, 3]).0, Malformed::AgentAddress),
    ];
    for (datagram, expected) in cases {
        let mut collector = Collector::default();
        let (received, _) = receive(&mut collector, &datagram);
        assert_eq!(received.malformed, Some(expected), "{datagram:?}");
        let counted: Vec<_> = collector.malformed().filter(|(_, count)| *count > 0).collect();
        assert_eq!(counted, [(expected, 1)]);
        assert!(!expected.to_string().is_empty());
    }
    let mut collector = Collector::default();
    let message = v9(2, 0, 1).set(0, template()).set(256, Bytes::default().u32s([7]));
    let message = message.u16s([256, 9]).0;
    let (received, flows) = receive(&mut collector, &message);
    // What comes before the fault counts.
    assert_eq!(received.malformed, Some(Malformed::SetLength));
    assert_eq!((flows[0].bytes, collector.totals().records), (7, 1));
}

#[test]
fn several_streams_of_an_exporter_are_kept_apart() {
    let mut collector = Collector::default();
    for domain in [1, 2] {
        // The same template identifier means something else in each domain.
        let fields = if domain == 1 { [1, 4, 2, 4] } else { [2, 4, 1, 4] };
        let template = Bytes::default().u16s([256, 2]).u16s(fields);
        receive(&mut collector, &v9(1, domain * 100, domain).set(0, template).0);
    }
    for domain in [1, 2] {
        let data = Bytes::default().u32s([10, 20]);
        let message = v9(1, domain * 100 + 1, domain).set(256, data).0;
        let (_, flows) = receive(&mut collector, &message);
        let expected = if domain == 1 { (10, 20) } else { (20, 10) };
        assert_eq!((flows[0].bytes, flows[0].packets), expected);
    }
    // Another port of the same address has templates of its own.
    let mut other = EXPORTER;
    other.set_port(9_995);
    let message = v9(1, 102, 1).set(256, Bytes::default().u32s([10, 20])).0;
    collector.receive(other, &message, NOW, |_| panic!("the template is unknown"));
    assert_eq!(collector.domains().len(), 3);
    assert!(collector.domains().iter().all(|domain| domain.sequence().lost == 0));
}
