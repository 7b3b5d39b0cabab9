//! Many exporters with several observation domains each.

use alloc::vec::Vec;
use core::net::IpAddr;

use wirestorm_base::time::{Duration, Instant};

use super::{Encoded, Exporter, ExporterCounters, ExporterError, ExporterOptions, FlowGenerator};

/// Most streams of a fleet.
const STREAMS_MAX: u32 = 1 << 20;

/// Settings of a fleet.
#[derive(Clone, Debug)]
pub struct FleetOptions {
    /// Exporters, which differ in the address or port that the caller sends from; at least 1.
    pub exporters: u32,
    /// Observation domains, source identifiers, engines or sub-agents of each exporter; at least 1.
    /// They count up from that of [`Self::exporter`]. The fleet has at most 1,048,576 streams.
    pub domains: u32,
    /// Settings of all exporters. In sFlow each further exporter has the next agent address.
    pub exporter: ExporterOptions,
    /// Time between the boots of consecutive exporters, so that their uptimes differ.
    pub boot_interval: Duration,
    /// Flows of a stream before its keys repeat; 0 means that no key repeats.
    pub flows_per_stream: u64,
}

/// Exporters that send generated flows round robin. No two streams have a key in common.
#[derive(Debug)]
pub struct Fleet {
    streams: Vec<Stream>,
    generator: FlowGenerator,
    domains: u32,
    flows_per_stream: u64,
    next: usize,
}

#[derive(Debug)]
struct Stream {
    exporter: Exporter,
    /// Flows that the exporter has taken.
    flows: u64,
}

/// A datagram of a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetDatagram {
    /// Number of the exporter, from 0: it determines the address and port to send from.
    pub exporter: u32,
    /// Number of its stream, from 0.
    pub domain: u32,
    /// What the buffer has.
    pub encoded: Encoded,
}

impl Fleet {
    /// Creates a fleet.
    ///
    /// # Errors
    /// Same as [`Exporter::new`].
    pub fn new(options: &FleetOptions, generator: FlowGenerator) -> Result<Self, ExporterError> {
        let domains = options.domains.clamp(1, STREAMS_MAX);
        let exporters = options.exporters.clamp(1, STREAMS_MAX / domains);
        let mut streams = Vec::with_capacity((exporters * domains) as usize);
        for exporter in 0..exporters {
            let later = options.boot_interval.as_nanos().saturating_mul(exporter.into());
            let boot = options.exporter.boot.saturating_add(Duration::from_nanos(later));
            let agent = counted_up(options.exporter.agent, exporter);
            for domain in 0..domains {
                let domain = options.exporter.domain.wrapping_add(domain);
                let options = ExporterOptions { domain, boot, agent, ..options.exporter.clone() };
                streams.push(Stream { exporter: Exporter::new(options)?, flows: 0 });
            }
        }
        Ok(Self {
            streams,
            generator,
            domains,
            flows_per_stream: options.flows_per_stream,
            next: 0,
        })
    }

    /// Encodes the next datagram at `now`, since 1970. Returns `None` if `buffer` is too short.
    pub fn encode(&mut self, now: Instant, buffer: &mut [u8]) -> Option<FleetDatagram> {
        self.encode_at_most(u32::MAX, now, buffer)
    }

    /// Same as [`Self::encode`], with at most `records` flow records. Returns `None` if it is 0.
    pub fn encode_at_most(
        &mut self,
        records: u32,
        now: Instant,
        buffer: &mut [u8],
    ) -> Option<FleetDatagram> {
        let number = self.next;
        let count = self.streams.len() as u64;
        let Self { streams, generator, flows_per_stream, .. } = self;
        let Stream { exporter, flows } = streams.get_mut(number)?;
        let mut generated = core::iter::from_fn(|| {
            let index = match *flows_per_stream {
                0 => *flows,
                repeat => *flows % repeat,
            };
            *flows += 1;
            Some(generator.flow(index.wrapping_mul(count).wrapping_add(number as u64), now))
        });
        let encoded = exporter.encode_at_most(records, now, &mut generated, buffer)?;
        self.next = (number + 1) % self.streams.len();
        let number = number as u32;
        let (exporter, domain) = (number / self.domains, number % self.domains);
        Some(FleetDatagram { exporter, domain, encoded })
    }

    /// Iterates over the streams: for each exporter, its domains.
    pub fn streams(&self) -> impl Iterator<Item = &Exporter> {
        self.streams.iter().map(|stream| &stream.exporter)
    }

    /// Returns the sums of the counters of all streams.
    pub fn totals(&self) -> ExporterCounters {
        let mut totals = ExporterCounters::default();
        for exporter in self.streams() {
            let counters = exporter.counters();
            totals.datagrams += counters.datagrams;
            totals.bytes += counters.bytes;
            totals.records += counters.records;
            totals.templates += counters.templates;
            totals.options_records += counters.options_records;
            totals.unsupported_flows += counters.unsupported_flows;
        }
        totals
    }
}

/// Returns the address `count` after another one; the addresses wrap.
fn counted_up(address: IpAddr, count: u32) -> IpAddr {
    match address {
        IpAddr::V4(address) => IpAddr::V4(address.to_bits().wrapping_add(count).into()),
        IpAddr::V6(address) => IpAddr::V6(address.to_bits().wrapping_add(count.into()).into()),
    }
}
