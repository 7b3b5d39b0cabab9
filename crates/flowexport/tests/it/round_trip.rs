//! What an exporter sends is what the collector delivers.

use wirestorm_base::time::{Duration, Instant};
use wirestorm_flowexport::collector::Collector;
use wirestorm_flowexport::element::{self, FieldId};
use wirestorm_flowexport::exporter::{
    ExportTemplate, Exporter, ExporterError, ExporterOptions, Family, Fleet, FleetOptions,
    FlowGenerator, FlowGeneratorOptions,
};
use wirestorm_flowexport::flow_table::{FlowTable, FlowTableOptions, SentFlow};
use wirestorm_flowexport::template::VARIABLE_LENGTH;
use wirestorm_flowexport::{FieldSet, FlowRecord, Version};

use crate::support::{EXPORTER, NOW, VERSIONS, datagrams, generated, receive};

fn options(version: Version) -> ExporterOptions {
    let boot = NOW.saturating_sub(Duration::from_secs(3_600));
    ExporterOptions { version, boot, ..ExporterOptions::default() }
}

fn generator(version: Version) -> FlowGenerator {
    let family = if version == Version::NetflowV5 { Family::Ipv4 } else { Family::Both };
    FlowGenerator::new(FlowGeneratorOptions { family, vlan: 7, ..Default::default() })
}

fn milliseconds(time: Option<Instant>) -> u64 {
    time.expect("a time").as_nanos() / 1_000_000
}

#[test]
fn each_version_delivers_the_fields_that_it_has() {
    for version in VERSIONS {
        let mut exporter = Exporter::new(options(version)).unwrap();
        let sent = generated(&generator(version), 0..2_000);
        let mut collector = Collector::default();
        let mut received = Vec::new();
        for datagram in datagrams(&mut exporter, NOW, sent.iter().copied()) {
            assert!(datagram.len() <= 1_452);
            // Sets are aligned to 4 bytes (RFC 3954 section 5.3).
            assert_eq!(datagram.len() % 4, 0);
            received.extend(receive(&mut collector, &datagram).1);
        }
        assert_eq!(received.len(), sent.len(), "{version}");
        let has_vlan = version != Version::NetflowV5;
        let is_sflow = version == Version::SflowV5;
        for (sent, received) in sent.iter().zip(&received) {
            let key = if has_vlan { sent.key } else { sent.key.without_vlan() };
            let expected = FlowRecord { key, ..*sent };
            // Times have the resolution of the protocol, and samples are of one packet.
            let (packets, bytes) = match is_sflow {
                true => (1, (sent.bytes / sent.packets).max(received.bytes - 22) + 22),
                false => (sent.packets, sent.bytes),
            };
            if !is_sflow {
                assert_eq!(milliseconds(received.last), milliseconds(sent.last), "{version}");
                assert_eq!(milliseconds(received.first), milliseconds(sent.first), "{version}");
            }
            let expected = FlowRecord {
                packets,
                bytes,
                first: received.first,
                last: received.last,
                sampling_interval: u32::from(is_sflow),
                present: received.present,
                ..expected
            };
            assert_eq!(*received, expected, "{version}");
        }
        let missing = match version {
            Version::NetflowV5 => FieldSet::VLAN,
            Version::SflowV5 => FieldSet::FIRST | FieldSet::LAST,
            _ => FieldSet::EMPTY,
        };
        let present = received[0].present;
        for (field, name) in FieldSet::NAMES {
            // A sample of UDP has no TCP flags.
            if !(is_sflow && field == FieldSet::TCP_FLAGS) {
                assert_eq!(present.contains(field), !missing.contains(field), "{version}: {name}");
            }
        }
        let (counters, totals) = (exporter.counters(), collector.totals());
        assert_eq!((totals.datagrams, totals.bytes), (counters.datagrams, counters.bytes));
        assert_eq!((totals.records, totals.templates), (counters.records, counters.templates));
        assert_eq!((totals.malformed, totals.count_mismatches, totals.other_bytes), (0, 0, 0));
        assert_eq!(collector.domains()[0].sequence(), Default::default(), "{version}");
    }
}

#[test]
fn a_sampling_interval_reaches_the_records() {
    for version in VERSIONS {
        let options = ExporterOptions {
            sampling_interval: 100,
            records_per_datagram_max: 7,
            template_refresh_datagrams: 3,
            ..options(version)
        };
        let mut exporter = Exporter::new(options).unwrap();
        let mut collector = Collector::default();
        for datagram in datagrams(&mut exporter, NOW, generated(&generator(version), 0..50)) {
            let (received, flows) = receive(&mut collector, &datagram);
            assert_eq!(received.malformed, None);
            assert!(flows.iter().all(|flow| flow.sampling_interval == 100), "{version}");
        }
        assert_eq!(collector.totals().options_records, exporter.counters().options_records);
        assert_eq!(collector.totals().count_mismatches, 0);
        let domain = &collector.domains()[0];
        assert_eq!(domain.sequence(), Default::default(), "{version}");
        assert_eq!(domain.sequence_convention(), Default::default(), "{version}");
    }
}

#[test]
fn templates_may_have_unknown_and_variable_fields() {
    let enterprise = FieldId { enterprise: 9, number: 12_235 };
    let fields = [
        (element::INTERFACE_NAME, VARIABLE_LENGTH),
        (element::SOURCE_IPV4, 4),
        (element::PACKET_DELTA_COUNT, 3),
        (enterprise, VARIABLE_LENGTH),
        (element::DESTINATION_IPV4, 4),
        (FieldId::iana(371), 21),
        (element::OCTET_DELTA_COUNT, 5),
    ];
    let template = ExportTemplate::new(300, false, fields).unwrap();
    let options = ExporterOptions { templates: vec![template], ..options(Version::Ipfix) };
    let mut exporter = Exporter::new(options.clone()).unwrap();
    let generator = FlowGenerator::new(FlowGeneratorOptions::default());
    let sent = generated(&generator, 0..500);
    let (mut collector, mut count) = (Collector::default(), 0);
    for datagram in datagrams(&mut exporter, NOW, sent.iter().copied()) {
        let received = collector.receive(EXPORTER, &datagram, NOW, |record| {
            let sent = &sent[count];
            count += 1;
            assert_eq!(record.flow.key.source(), sent.key.source());
            assert_eq!(record.flow.key.destination(), sent.key.destination());
            assert_eq!((record.flow.packets, record.flow.bytes), (sent.packets, sent.bytes));
            let ids: Vec<FieldId> = record.fields().map(|(id, _)| id).collect();
            assert_eq!(ids, fields.map(|(id, _)| id));
            let length = sent.key.hash64(1) % 16;
            assert_eq!(record.field(enterprise).unwrap().len() as u64, length);
            assert_eq!(record.field(FieldId::iana(371)).unwrap().len(), 21);
        });
        assert_eq!(received.malformed, None);
    }
    assert_eq!(count, 500);
    assert_eq!(collector.domains()[0].sequence().lost, 0);
    let options = ExporterOptions { version: Version::NetflowV9, ..options };
    assert_eq!(Exporter::new(options).unwrap_err(), ExporterError::VariableLength { id: 300 });
}

#[test]
fn a_fleet_has_its_own_sequence_and_keys_for_each_stream() {
    for version in VERSIONS {
        let exporter = ExporterOptions { records_per_datagram_max: 5, ..options(version) };
        let fleet = FleetOptions {
            exporters: 3,
            domains: 4,
            exporter,
            boot_interval: Duration::from_secs(10),
            flows_per_stream: 0,
        };
        let generator = FlowGenerator::new(FlowGeneratorOptions::default());
        let mut fleet = Fleet::new(&fleet, generator.clone()).unwrap();
        let (mut collector, mut table) = (Collector::default(), FlowTable::default());
        let mut buffer = [0; 1_452];
        for _ in 0..240 {
            let sent = fleet.encode(NOW, &mut buffer).unwrap();
            let mut address = EXPORTER;
            address.set_port(2_000 + sent.exporter as u16);
            let datagram = &buffer[..sent.encoded.length];
            let received = collector.receive(address, datagram, NOW, |record| {
                assert_eq!(record.source.domain, 1 + sent.domain);
                table.add(record.flow);
            });
            assert_eq!((received.records, received.malformed), (5, None));
        }
        assert_eq!(collector.domains().len(), 12);
        for domain in collector.domains() {
            assert_eq!(domain.sequence(), Default::default());
            assert_eq!((domain.counters().datagrams, domain.counters().records), (20, 100));
            assert_eq!(domain.records_per_datagram(), Some(5..=5));
        }
        assert_eq!(fleet.totals().records, 1_200);
        // All keys are different, and they are the first flows of the generator.
        assert_eq!(table.len(), 1_200);
        if version != Version::SflowV5 {
            let sent = generated(&generator, 0..1_200).into_iter().map(|flow| SentFlow {
                key: flow.key,
                packets: flow.packets,
                bytes: flow.bytes,
            });
            assert!(table.compare(sent, 3).is_exact());
        }
    }
}

#[test]
fn flows_that_a_version_cannot_express_are_counted() {
    let mut exporter = Exporter::new(options(Version::NetflowV5)).unwrap();
    let options = FlowGeneratorOptions { family: Family::Ipv6, ..Default::default() };
    let generator = FlowGenerator::new(options);
    let mut endless = (0..).map(|index| generator.flow(index, NOW));
    assert_eq!(exporter.encode(NOW, &mut endless, &mut [0; 1_452]), None);
    assert_eq!(exporter.counters().unsupported_flows, 1_000);
}

#[test]
fn options_that_cannot_work_are_errors() {
    for version in VERSIONS {
        let options = ExporterOptions { datagram_length_max: 60, ..options(version) };
        let error = Exporter::new(options.clone()).unwrap_err();
        let ExporterError::DatagramTooShort { found: 60, needed } = error else {
            panic!("{error}")
        };
        let options = ExporterOptions { datagram_length_max: needed, ..options };
        let mut exporter = Exporter::new(options).unwrap();
        // Each datagram has room for a record, those with templates too.
        let sent = generated(&generator(version), 0..100);
        assert!(
            datagrams(&mut exporter, NOW, sent).iter().all(|datagram| datagram.len() <= needed)
        );
        assert_eq!(exporter.counters().records, 100, "{version}");
    }
    let template = ExportTemplate::standard(Version::Ipfix, false);
    let repeated =
        ExporterOptions { templates: vec![template.clone(), template], ..options(Version::Ipfix) };
    assert_eq!(Exporter::new(repeated).unwrap_err(), ExporterError::RepeatedTemplate { id: 256 });
}

#[test]
fn a_table_without_scaling_keeps_sampled_counts() {
    let options = FlowTableOptions { scale_sampled: false, ..FlowTableOptions::default() };
    let mut table = FlowTable::new(options);
    let generator = FlowGenerator::new(FlowGeneratorOptions::default());
    let flow = FlowRecord { sampling_interval: 10, ..generator.flow(0, NOW) };
    table.add(&flow);
    assert_eq!(table.find(flow.key).unwrap().packets, flow.packets);
}
