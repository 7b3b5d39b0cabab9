//! Message headers of all versions.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wirestorm_base::bytes::Reader;
use wirestorm_base::time::{Instant, NANOSECONDS_PER_SECOND};

use crate::malformed::Malformed;

/// Bytes of a record of NetFlow v5.
pub(crate) const V5_RECORD_LENGTH: usize = 48;
/// Records in a datagram of NetFlow v5.
pub(crate) const V5_RECORDS_MAX: u16 = 30;
/// Bytes of a header of NetFlow v5.
pub(crate) const V5_HEADER_LENGTH: usize = 24;
/// Bytes of a header of NetFlow v9 (RFC 3954 section 5.1).
pub(crate) const V9_HEADER_LENGTH: usize = 20;
/// Bytes of a header of IPFIX (RFC 7011 section 3.1).
pub(crate) const IPFIX_HEADER_LENGTH: usize = 16;
/// Bytes of a set header, in NetFlow v9 and IPFIX.
pub(crate) const SET_HEADER_LENGTH: usize = 4;

/// A protocol of flow export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// NetFlow version 5, as Cisco describes it.
    NetflowV5,
    /// NetFlow version 9, RFC 3954.
    NetflowV9,
    /// IPFIX, RFC 7011.
    Ipfix,
    /// sFlow version 5, sflow.org.
    SflowV5,
}

impl Version {
    /// What the sequence numbers count: data records, or else datagrams.
    ///
    /// They count records in NetFlow v5 and IPFIX (RFC 7011 section 3.1), and datagrams in NetFlow v9
    /// (RFC 3954 section 5.1) and sFlow.
    pub const fn counts_records(self) -> bool {
        matches!(self, Self::NetflowV5 | Self::Ipfix)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NetflowV5 => "NetFlow v5",
            Self::NetflowV9 => "NetFlow v9",
            Self::Ipfix => "IPFIX",
            Self::SflowV5 => "sFlow v5",
        })
    }
}

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) version: Version,
    pub(crate) sequence: u32,
    /// Source identifier, observation domain, engine type and number, or sub-agent.
    pub(crate) domain: u32,
    pub(crate) agent: Option<IpAddr>,
    pub(crate) times: Times,
    /// Records of NetFlow v5 and v9, samples of sFlow; 0 for IPFIX.
    pub(crate) count: u32,
    /// From the header of NetFlow v5; 0 if there is none.
    pub(crate) sampling_interval: u32,
    pub(crate) header_length: usize,
    /// Header and body; at most the length of the datagram.
    pub(crate) message_length: usize,
}

/// The exporter's clocks when it sent a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    /// Export time since 1970; `None` for sFlow.
    pub(crate) export: Option<Instant>,
    /// Uptime in milliseconds; `None` for IPFIX.
    pub(crate) uptime_ms: Option<u32>,
}

impl Header {
    /// Parses the header of a datagram of any version.
    pub(crate) fn parse(datagram: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(datagram);
        let version = reader.u16().ok_or(Malformed::TruncatedHeader)?;
        match version {
            5 => v5(reader, datagram.len()),
            9 => v9(reader, datagram.len()).ok_or(Malformed::TruncatedHeader),
            10 => ipfix(reader, datagram.len()),
            // The version of sFlow has 32 bits.
            0 if reader.u16() == Some(5) => sflow(reader, datagram.len()),
            0 if datagram.len() < 4 => Err(Malformed::TruncatedHeader),
            _ => Err(Malformed::UnknownVersion),
        }
    }
}

fn v5(mut reader: Reader<'_>, length: usize) -> Result<Header, Malformed> {
    let mut fields = || {
        let count = reader.u16()?;
        let uptime_ms = reader.u32()?;
        let seconds = reader.u32()?;
        let nanoseconds = reader.u32()?;
        let sequence = reader.u32()?;
        let engine = reader.u16()?;
        // Mode in 2 bits, interval in 14.
        let sampling = reader.u16()? & 0x3fff;
        let export = unix_seconds(seconds).as_nanos().saturating_add(nanoseconds.into());
        Some(Header {
            version: Version::NetflowV5,
            sequence,
            domain: engine.into(),
            agent: None,
            times: Times { export: Some(Instant::from_nanos(export)), uptime_ms: Some(uptime_ms) },
            count: count.into(),
            sampling_interval: sampling.into(),
            header_length: V5_HEADER_LENGTH,
            message_length: V5_HEADER_LENGTH + usize::from(count) * V5_RECORD_LENGTH,
        })
    };
    let header = fields().ok_or(Malformed::TruncatedHeader)?;
    let is_plausible = (1..=V5_RECORDS_MAX.into()).contains(&header.count);
    match is_plausible && header.message_length <= length {
        true => Ok(header),
        false => Err(Malformed::RecordCount),
    }
}

fn v9(mut reader: Reader<'_>, length: usize) -> Option<Header> {
    let count = reader.u16()?;
    let uptime_ms = reader.u32()?;
    let seconds = reader.u32()?;
    let sequence = reader.u32()?;
    let domain = reader.u32()?;
    Some(Header {
        version: Version::NetflowV9,
        sequence,
        domain,
        agent: None,
        times: Times { export: Some(unix_seconds(seconds)), uptime_ms: Some(uptime_ms) },
        count: count.into(),
        sampling_interval: 0,
        header_length: V9_HEADER_LENGTH,
        message_length: length,
    })
}

fn ipfix(mut reader: Reader<'_>, length: usize) -> Result<Header, Malformed> {
    let mut fields = || {
        let message_length = reader.u16()?.into();
        let seconds = reader.u32()?;
        let sequence = reader.u32()?;
        let domain = reader.u32()?;
        Some(Header {
            version: Version::Ipfix,
            sequence,
            domain,
            agent: None,
            times: Times { export: Some(unix_seconds(seconds)), uptime_ms: None },
            count: 0,
            sampling_interval: 0,
            header_length: IPFIX_HEADER_LENGTH,
            message_length,
        })
    };
    let header = fields().ok_or(Malformed::TruncatedHeader)?;
    match (IPFIX_HEADER_LENGTH..=length).contains(&header.message_length) {
        true => Ok(header),
        false => Err(Malformed::MessageLength),
    }
}

fn sflow(mut reader: Reader<'_>, length: usize) -> Result<Header, Malformed> {
    let agent = match reader.u32().ok_or(Malformed::TruncatedHeader)? {
        1 => reader.array().map(|address: [u8; 4]| IpAddr::V4(Ipv4Addr::from(address))),
        2 => reader.array().map(|address: [u8; 16]| IpAddr::V6(Ipv6Addr::from(address))),
        _ => return Err(Malformed::AgentAddress),
    };
    let mut fields = || {
        let agent = agent?;
        let domain = reader.u32()?;
        let sequence = reader.u32()?;
        let uptime_ms = reader.u32()?;
        let count = reader.u32()?;
        Some(Header {
            version: Version::SflowV5,
            sequence,
            domain,
            agent: Some(agent),
            times: Times { export: None, uptime_ms: Some(uptime_ms) },
            count,
            sampling_interval: 0,
            header_length: length - reader.rest().len(),
            message_length: length,
        })
    };
    fields().ok_or(Malformed::TruncatedHeader)
}

fn unix_seconds(seconds: u32) -> Instant {
    Instant::from_nanos(u64::from(seconds) * NANOSECONDS_PER_SECOND)
}
