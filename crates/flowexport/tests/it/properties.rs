//! What holds for any input.

use proptest::prelude::*;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_flowexport::Malformed;
use wirestorm_flowexport::collector::{Collector, CollectorOptions, Withdrawals};
use wirestorm_flowexport::exporter::{
    Exporter, ExporterOptions, Family, FlowGenerator, FlowGeneratorOptions,
};

use crate::support::{EXPORTER, NOW, VERSIONS, datagrams, generated};

/// Receives datagrams and checks the sums of the counters.
fn check(datagrams: &[Vec<u8>], options: CollectorOptions) {
    let mut collector = Collector::new(options);
    let (mut flows, mut malformed, mut direct) = (0, 0, 0);
    for (number, datagram) in datagrams.iter().enumerate() {
        let now = Instant::from_nanos(number as u64 * 1_000_000_000);
        let received = collector.receive(EXPORTER, datagram, now, |record| {
            flows += 1;
            for (id, bytes) in record.fields() {
                assert!(bytes.len() <= datagram.len() || record.field(id).is_some());
            }
        });
        direct += u64::from(received.records);
        malformed += u64::from(received.malformed.is_some());
    }
    let totals = collector.totals();
    assert_eq!(totals.flows, flows);
    assert!(totals.records >= direct && totals.flows >= totals.records);
    assert!(totals.flows <= 2 * totals.records);
    let parts = totals.entries().filter(|(name, _)| name.ends_with("_bytes"));
    assert_eq!(parts.map(|(_, count)| count).sum::<u64>(), totals.bytes);
    assert!(totals.bytes <= collector.bytes());
    assert_eq!(collector.malformed().map(|(_, count)| count).sum::<u64>(), malformed);
    assert_eq!(collector.datagrams(), datagrams.len() as u64);
    let waiting: usize = collector.domains().iter().map(|domain| domain.waiting_sets()).sum();
    let sets = waiting as u64 + totals.recovered_sets + totals.discarded_sets;
    assert_eq!(sets, totals.unknown_template_sets);
    assert!(collector.domains().len() <= options.domains_max);
    for domain in collector.domains() {
        assert!(domain.templates().count() <= options.templates_max);
        let sequence = domain.sequence();
        assert!(sequence.lost <= u64::from(sequence.gap_max) * sequence.gaps);
    }
}

fn small() -> CollectorOptions {
    CollectorOptions {
        domains_max: 2,
        templates_max: 2,
        waiting_bytes_max: 500,
        template_lifetime: Duration::from_secs(3),
        withdrawals: Withdrawals::Apply,
        ..CollectorOptions::default()
    }
}

/// Bytes that often begin like a message and have plausible sets.
fn any_datagram() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![0..12_u16, 254..260_u16, any::<u16>()];
    let version = prop::sample::select(vec![0, 5, 9, 10]);
    (version, prop::collection::vec(number, 0..80), any::<bool>()).prop_map(
        |(version, numbers, has_length)| {
            let mut bytes = u16::to_be_bytes(version).to_vec();
            bytes.extend(numbers.into_iter().flat_map(u16::to_be_bytes));
            let length = (bytes.len() as u16).to_be_bytes();
            if version == 10 && has_length && bytes.len() >= 4 {
                bytes[2..4].copy_from_slice(&length);
            }
            bytes
        },
    )
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_counted(
        datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..8),
    ) {
        check(&datagrams, small());
    }

    #[test]
    fn plausible_bytes_are_counted(datagrams in prop::collection::vec(any_datagram(), 0..12)) {
        check(&datagrams, small());
    }

    #[test]
    fn changed_lost_and_reordered_datagrams_are_counted(
        version in prop::sample::select(VERSIONS.to_vec()),
        seed: u64,
        sampling_interval in 0..3_u32,
        changes in prop::collection::vec((0..100_usize, 0..1_500_usize, any::<u8>()), 0..12),
        order in prop::collection::vec(0..100_usize, 0..40),
        cut in 0..1_500_usize,
    ) {
        let options = ExporterOptions {
            version,
            sampling_interval,
            boot: NOW.saturating_sub(Duration::from_secs(3_600)),
            template_refresh_datagrams: 2,
            datagram_length_max: 400,
            ..ExporterOptions::default()
        };
        let generator = FlowGenerator::new(FlowGeneratorOptions {
            seed,
            family: Family::Both,
            ..FlowGeneratorOptions::default()
        });
        let mut exporter = Exporter::new(options).unwrap();
        let mut sent = datagrams(&mut exporter, NOW, generated(&generator, 0..60));
        for (number, at, byte) in changes {
            let count = sent.len();
            if let Some(place) = sent[number % count].get_mut(at) {
                *place = byte;
            }
        }
        let mut received: Vec<Vec<u8>> =
            order.into_iter().map(|number| sent[number % sent.len()].clone()).collect();
        if let Some(last) = received.last_mut() {
            last.truncate(cut);
        }
        check(&received, small());
        check(&received, CollectorOptions::default());
    }

    #[test]
    fn whole_streams_have_no_fault(
        version in prop::sample::select(VERSIONS.to_vec()),
        seed: u64,
        first_sequence: u32,
        length in 500..2_000_usize,
        records_per_datagram_max in 1..40_u32,
        sampling_interval in 0..3_u32,
    ) {
        let options = ExporterOptions {
            version,
            first_sequence,
            sampling_interval,
            records_per_datagram_max,
            boot: NOW.saturating_sub(Duration::from_secs(3_600)),
            template_refresh_datagrams: 3,
            datagram_length_max: length,
            ..ExporterOptions::default()
        };
        let generator = FlowGenerator::new(FlowGeneratorOptions {
            seed,
            family: Family::Both,
            ..FlowGeneratorOptions::default()
        });
        let mut exporter = Exporter::new(options).unwrap();
        let sent = datagrams(&mut exporter, NOW, generated(&generator, 0..200));
        let mut collector = Collector::default();
        for datagram in &sent {
            let received = collector.receive(EXPORTER, datagram, NOW, |_| {});
            prop_assert_eq!(received.malformed, None::<Malformed>);
        }
        let (totals, counters) = (collector.totals(), exporter.counters());
        prop_assert_eq!(totals.records, counters.records);
        prop_assert_eq!(totals.records + counters.unsupported_flows, 200);
        prop_assert_eq!(totals.bytes, counters.bytes);
        prop_assert_eq!(totals.count_mismatches, 0);
        prop_assert_eq!(collector.domains()[0].sequence(), Default::default());
    }
}
