//! The collector: from datagrams to records and counters.

mod counters;
mod domain;
mod records;
mod sampling;
mod sequence;
mod templates;

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

use hashbrown::HashTable;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_wire::flow::FlowKey;

pub use counters::Counters;
pub use domain::Domain;
use domain::Shared;
pub use sequence::{SequenceConvention, SequenceCounters};

use crate::header::{Header, Version};
use crate::malformed::Malformed;
use crate::record::{Record, Source};
use crate::template::Template;

/// Limits and settings of a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectorOptions {
    /// Export streams; datagrams of further ones are refused. Default: 4096.
    pub domains_max: usize,
    /// Templates of a stream; further ones are refused. Default: 1024.
    pub templates_max: usize,
    /// Fields of a template; a template with more is malformed. Default: 512.
    pub template_fields_max: usize,
    /// Bytes of data sets that wait for their template, per stream; further sets are discarded. 0
    /// keeps none. Default: 65,536.
    pub waiting_bytes_max: usize,
    /// Time without a refresh after which a template expires (RFC 7011 section 8.4). Default:
    /// [`Duration::MAX`], never.
    pub template_lifetime: Duration,
    /// Longest gap of sequence numbers; a longer step is a restart of the exporter. Default:
    /// 1,000,000.
    pub gap_limit: u32,
    /// What withdrawals of templates do. Default: [`Withdrawals::Ignore`].
    pub withdrawals: Withdrawals,
}

/// What withdrawals of templates do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Withdrawals {
    /// Count them only: a collector over UDP must ignore them (RFC 7011 section 8.4).
    #[default]
    Ignore,
    /// Remove the templates, as over TCP and SCTP (RFC 7011 section 8.1).
    Apply,
}

impl Default for CollectorOptions {
    fn default() -> Self {
        Self {
            domains_max: 4_096,
            templates_max: 1_024,
            template_fields_max: 512,
            waiting_bytes_max: 65_536,
            template_lifetime: Duration::MAX,
            gap_limit: 1_000_000,
            withdrawals: Withdrawals::default(),
        }
    }
}

/// State of a collector of all versions.
#[derive(Debug)]
pub struct Collector {
    shared: Shared,
    domains: Vec<Domain>,
    /// Indices of the domains, by a hash of their sources.
    index: HashTable<u32>,
    /// Datagrams per reason, in the order of [`Malformed::ALL`].
    malformed: [u64; Malformed::ALL.len()],
    refused: u64,
    datagrams: u64,
    bytes: u64,
}

/// What a datagram contained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Protocol; `None` if the header is malformed.
    pub version: Option<Version>,
    /// Data records of flows, without those of sets that waited for a template.
    pub records: u32,
    /// Why decoding stopped early. The records before it were delivered.
    pub malformed: Option<Malformed>,
}

impl Collector {
    /// Creates a collector without any state of exporters.
    pub fn new(options: CollectorOptions) -> Self {
        Self {
            shared: Shared { options, v5: Template::v5(), positions: Vec::new() },
            domains: Vec::new(),
            index: HashTable::new(),
            malformed: [0; Malformed::ALL.len()],
            refused: 0,
            datagrams: 0,
            bytes: 0,
        }
    }

    /// Receives a datagram that `exporter` sent and that arrived at `now`, by any clock that does not
    /// go back. Passes each flow record to `sink`, in the order of the datagram. Records whose
    /// template arrives with this datagram follow them.
    ///
    /// It allocates when a stream, a template or a data set without template arrives, but not for
    /// records.
    pub fn receive(
        &mut self,
        exporter: SocketAddr,
        datagram: &[u8],
        now: Instant,
        mut sink: impl FnMut(&Record<'_>),
    ) -> Received {
        self.datagrams += 1;
        self.bytes += datagram.len() as u64;
        let header = match Header::parse(datagram) {
            Ok(header) => header,
            Err(reason) => {
                self.count_malformed(reason);
                return Received { version: None, records: 0, malformed: Some(reason) };
            }
        };
        let Header { version, domain, agent, .. } = header;
        let source = Source { exporter, version, domain, agent };
        let mut received = Received { version: Some(version), records: 0, malformed: None };
        let Some(index) = self.domain(source, now) else {
            self.refused += 1;
            return received;
        };
        let Some(domain) = self.domains.get_mut(index) else { return received };
        let content = domain.receive(&header, datagram, now, &mut self.shared, &mut sink);
        received.records = content.records;
        received.malformed = content.malformed;
        if let Some(reason) = content.malformed {
            self.count_malformed(reason);
        }
        received
    }

    /// Returns the export streams in the order of their first datagrams.
    pub fn domains(&self) -> &[Domain] {
        &self.domains
    }

    /// Returns the sums of the counters of all streams.
    pub fn totals(&self) -> Counters {
        let mut totals = Counters::default();
        for domain in &self.domains {
            totals += *domain.counters();
        }
        totals
    }

    /// Iterates over the reasons for malformed datagrams, with their numbers. They include datagrams
    /// with a malformed header, which belong to no stream.
    pub fn malformed(&self) -> impl Iterator<Item = (Malformed, u64)> + use<'_> {
        Malformed::ALL.into_iter().zip(self.malformed)
    }

    /// Returns the number of datagrams of streams beyond [`CollectorOptions::domains_max`].
    pub const fn refused_datagrams(&self) -> u64 {
        self.refused
    }

    /// Returns the number of all datagrams, those without a stream included.
    pub const fn datagrams(&self) -> u64 {
        self.datagrams
    }

    /// Returns the bytes of all datagrams, without UDP and IP.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the index of a stream, or creates it; `None` if there are too many.
    fn domain(&mut self, source: Source, now: Instant) -> Option<usize> {
        let Self { index, domains, shared, .. } = self;
        let is_source =
            |it: &u32| domains.get(*it as usize).is_some_and(|domain| *domain.source() == source);
        let hash = hash(&source);
        if let Some(found) = index.find(hash, is_source) {
            return Some(*found as usize);
        }
        let CollectorOptions { domains_max, gap_limit, .. } = shared.options;
        let new = u32::try_from(domains.len()).ok()?;
        if domains.len() >= domains_max {
            return None;
        }
        domains.push(Domain::new(source, gap_limit, now));
        index.insert_unique(hash, new, |it| {
            domains.get(*it as usize).map_or(0, |domain| self::hash(domain.source()))
        });
        Some(new as usize)
    }

    fn count_malformed(&mut self, reason: Malformed) {
        let reasons = Malformed::ALL.iter().zip(&mut self.malformed);
        for (_, count) in reasons.filter(|(other, _)| **other == reason) {
            *count += 1;
        }
    }
}

impl Default for Collector {
    /// Creates a collector with the default limits.
    fn default() -> Self {
        Self::new(CollectorOptions::default())
    }
}

fn hash(source: &Source) -> u64 {
    let octets = |address: IpAddr| match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    };
    let agent = octets(source.agent.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED)));
    FlowKey::ipv6(octets(source.exporter.ip()), agent, source.version as u8)
        .with_ports(source.exporter.port(), 0)
        .hash64(source.domain.into())
}
