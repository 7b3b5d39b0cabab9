//! Helpers of the tests.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use wirestorm_base::time::{Duration, Instant};
use wirestorm_flowexport::collector::{Collector, Received};
use wirestorm_flowexport::exporter::{Exporter, FlowGenerator};
use wirestorm_flowexport::{FlowRecord, Version};

pub(crate) const EXPORTER: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 2_055);
/// 15 January 2027, 08:00:00 UTC.
pub(crate) const NOW: Instant = Instant::from_nanos(1_800_000_000_000_000_000);

pub(crate) const VERSIONS: [Version; 4] =
    [Version::NetflowV5, Version::NetflowV9, Version::Ipfix, Version::SflowV5];

pub(crate) fn seconds_after(seconds: u64) -> Instant {
    NOW.saturating_add(Duration::from_secs(seconds))
}

/// Receives a datagram; returns what the collector returned and the flows.
pub(crate) fn receive(collector: &mut Collector, datagram: &[u8]) -> (Received, Vec<FlowRecord>) {
    receive_at(collector, datagram, NOW)
}

pub(crate) fn receive_at(
    collector: &mut Collector,
    datagram: &[u8],
    now: Instant,
) -> (Received, Vec<FlowRecord>) {
    let mut flows = Vec::new();
    let received = collector.receive(EXPORTER, datagram, now, |record| flows.push(*record.flow));
    (received, flows)
}

/// Encodes `flows` in as few datagrams as possible.
pub(crate) fn datagrams(
    exporter: &mut Exporter,
    now: Instant,
    flows: impl IntoIterator<Item = FlowRecord>,
) -> Vec<Vec<u8>> {
    let mut flows = flows.into_iter();
    let mut buffer = [0; 65_536];
    let mut datagrams = Vec::new();
    while let Some(encoded) = exporter.encode(now, &mut flows, &mut buffer) {
        datagrams.push(buffer[..encoded.length].to_vec());
    }
    datagrams
}

pub(crate) fn generated(
    generator: &FlowGenerator,
    indices: std::ops::Range<u64>,
) -> Vec<FlowRecord> {
    indices.map(|index| generator.flow(index, NOW)).collect()
}

/// A message in network byte order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Bytes {
    pub(crate) fn u8(mut self, number: u8) -> Self {
        self.0.push(number);
        self
    }

    pub(crate) fn u16s(mut self, numbers: impl IntoIterator<Item = u16>) -> Self {
        self.0.extend(numbers.into_iter().flat_map(u16::to_be_bytes));
        self
    }

    pub(crate) fn u32s(mut self, numbers: impl IntoIterator<Item = u32>) -> Self {
        self.0.extend(numbers.into_iter().flat_map(u32::to_be_bytes));
        self
    }

    pub(crate) fn address(self, address: [u8; 4]) -> Self {
        self.u32s([u32::from_be_bytes(address)])
    }

    pub(crate) fn append(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    /// Appends a set with a body.
    pub(crate) fn set(self, id: u16, body: Self) -> Self {
        self.u16s([id, body.0.len() as u16 + 4]).append(&body.0)
    }
}

/// Starts a message of NetFlow v9, sent at [`NOW`] with an uptime of 100 s.
pub(crate) fn v9(count: u16, sequence: u32, domain: u32) -> Bytes {
    Bytes::default().u16s([9, count]).u32s([100_000, 1_800_000_000, sequence, domain])
}

/// Returns a message of IPFIX with sets, sent at [`NOW`].
pub(crate) fn ipfix(sequence: u32, sets: Bytes) -> Vec<u8> {
    Bytes::default()
        .u16s([10, sets.0.len() as u16 + 16])
        .u32s([1_800_000_000, sequence, 1])
        .append(&sets.0)
        .0
}
