//! Arbitrary datagrams to a collector: no panic, the counters add up, and the limits hold.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use wirestorm_base::time::{Duration, Instant};
use wirestorm_flowexport::collector::{Collector, CollectorOptions, Withdrawals};
use wirestorm_flowexport::element::SOURCE_IPV4;
use wirestorm_flowexport::flow_table::{FlowTable, FlowTableOptions};

const EXPORTER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 2_055);
const FLOWS_MAX: usize = 100;

/// Checks one input.
///
/// The first byte selects the limits. Each datagram has its length in two bytes before it, and
/// arrives a second after the previous one.
pub fn run(input: &[u8]) {
    let Some(([choice], mut rest)) = input.split_first_chunk() else { return };
    let options = CollectorOptions {
        domains_max: 1 + usize::from(choice & 3),
        templates_max: 1 + usize::from(choice >> 2 & 3),
        template_fields_max: 64,
        waiting_bytes_max: if choice & 16 != 0 { 1_000 } else { 0 },
        template_lifetime: if choice & 32 != 0 { Duration::from_secs(2) } else { Duration::MAX },
        gap_limit: if choice & 64 != 0 { 100 } else { u32::MAX >> 1 },
        withdrawals: if choice & 128 != 0 { Withdrawals::Apply } else { Withdrawals::Ignore },
    };
    let mut collector = Collector::new(options);
    let mut table =
        FlowTable::new(FlowTableOptions { flows_max: FLOWS_MAX, ..FlowTableOptions::default() });
    let (mut now, mut datagrams, mut bytes) = (Instant::ZERO, 0, 0);
    let (mut flows, mut records, mut malformed) = (0, 0, 0);
    while let Some((length, behind)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes(*length)).min(behind.len());
        let (datagram, behind) = behind.split_at(length);
        rest = behind;
        let received = collector.receive(EXPORTER, datagram, now, |record| {
            flows += 1;
            table.add(record.flow);
            // Records that have waited for their template are from an earlier datagram.
            assert!(record.fields().all(|(_, bytes)| bytes.len() <= input.len()));
            let address = record.field(SOURCE_IPV4);
            assert!(record.template().is_some() || address.is_none());
        });
        now += Duration::from_secs(1);
        datagrams += 1;
        bytes += length as u64;
        records += u64::from(received.records);
        malformed += u64::from(received.malformed.is_some());
    }

    let totals = collector.totals();
    assert_eq!(totals.flows, flows);
    assert!((records..=flows).contains(&totals.records) && flows <= 2 * totals.records);
    let parts = totals.entries().filter(|(name, _)| name.ends_with("_bytes"));
    assert_eq!(parts.map(|(_, count)| count).sum::<u64>(), totals.bytes);
    assert_eq!(collector.malformed().map(|(_, count)| count).sum::<u64>(), malformed);
    assert_eq!((collector.datagrams(), collector.bytes()), (datagrams, bytes));
    assert!(totals.datagrams + collector.refused_datagrams() <= datagrams);
    let waiting: usize = collector.domains().iter().map(|domain| domain.waiting_sets()).sum();
    let sets = waiting as u64 + totals.recovered_sets + totals.discarded_sets;
    assert_eq!(sets, totals.unknown_template_sets);
    assert!(collector.domains().len() <= options.domains_max);
    for domain in collector.domains() {
        assert!(domain.templates().count() <= options.templates_max);
        let sequence = domain.sequence();
        assert!(sequence.lost <= u64::from(sequence.gap_max) * sequence.gaps);
    }

    let summed: u64 = table.iter().map(|(_, sums)| u64::from(sums.records)).sum();
    assert_eq!(summed + table.refused() + table.without_key(), flows);
    assert!(table.len() <= FLOWS_MAX);
    let comparison = table.compare([], 3);
    assert_eq!(comparison.unexpected.flows, table.len() as u64);
}
