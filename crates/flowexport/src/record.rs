//! Records as the collector delivers them.

use core::net::{IpAddr, SocketAddr};
use core::ops::{BitOr, BitOrAssign};

use wirestorm_base::time::Instant;
use wirestorm_wire::flow::FlowKey;

use crate::element::FieldId;
use crate::header::Version;
use crate::reader::unsigned;
use crate::template::{Position, Template};

/// Where an export stream comes from: its exporter and observation domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// Address and port that the exporter sends from.
    pub exporter: SocketAddr,
    /// Protocol of the stream.
    pub version: Version,
    /// Source identifier (NetFlow v9), observation domain (IPFIX), engine type times 256 plus engine
    /// number (NetFlow v5), or sub-agent (sFlow).
    pub domain: u32,
    /// Address of the agent, for sFlow only.
    pub agent: Option<IpAddr>,
}

/// A flow record: one direction of a flow.
///
/// A field that the record lacks is 0; [`Self::present`] tells it from a value of 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRecord {
    /// Addresses, ports, protocol and VLAN. ICMP has its type and code instead of ports. Without
    /// addresses, it is an IPv4 key of zeros.
    pub key: FlowKey,
    /// Packets; 1 for a sample of sFlow. Not multiplied by the sampling interval.
    pub packets: u64,
    /// Bytes of IP packets; bytes of the frame with its FCS for a sample of sFlow.
    pub bytes: u64,
    /// Time of the first packet since 1970; `None` if the record and its message do not tell it.
    pub first: Option<Instant>,
    /// Time of the last packet since 1970; `None` if the record and its message do not tell it.
    pub last: Option<Instant>,
    /// Index of the interface that received the flow.
    pub input_interface: u32,
    /// Index of the interface that sent the flow.
    pub output_interface: u32,
    /// One of this many packets was sampled; 1 without sampling, 0 if the exporter reports none.
    pub sampling_interval: u32,
    /// TCP flags of all packets, ORed.
    pub tcp_flags: u16,
    /// Type of service of IPv4, traffic class of IPv6.
    pub type_of_service: u8,
    /// Whether this is the reverse direction of a biflow (RFC 5103).
    pub is_reverse: bool,
    /// What [`Self::packets`] and [`Self::bytes`] count.
    pub counting: Counting,
    /// Fields that the record has.
    pub present: FieldSet,
}

/// What the counters of a record count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counting {
    /// Since the previous record of the flow.
    #[default]
    Delta,
    /// Since the start of the flow.
    Total,
}

/// A set of well-known fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldSet(u16);

impl FieldSet {
    /// No field.
    pub const EMPTY: Self = Self(0);
    /// Source and destination address.
    pub const ADDRESSES: Self = Self(1);
    /// Source and destination port, or ICMP type and code.
    pub const PORTS: Self = Self(1 << 1);
    /// Protocol of IP's payload.
    pub const PROTOCOL: Self = Self(1 << 2);
    /// Type of service, traffic class or DSCP.
    pub const TYPE_OF_SERVICE: Self = Self(1 << 3);
    /// VLAN.
    pub const VLAN: Self = Self(1 << 4);
    /// Input interface.
    pub const INPUT_INTERFACE: Self = Self(1 << 5);
    /// Output interface.
    pub const OUTPUT_INTERFACE: Self = Self(1 << 6);
    /// Packets.
    pub const PACKETS: Self = Self(1 << 7);
    /// Bytes.
    pub const BYTES: Self = Self(1 << 8);
    /// Time of the first packet.
    pub const FIRST: Self = Self(1 << 9);
    /// Time of the last packet.
    pub const LAST: Self = Self(1 << 10);
    /// TCP flags.
    pub const TCP_FLAGS: Self = Self(1 << 11);

    /// The fields with their names, in the order of their bits.
    pub const NAMES: [(Self, &'static str); 12] = [
        (Self::ADDRESSES, "addresses"),
        (Self::PORTS, "ports"),
        (Self::PROTOCOL, "protocol"),
        (Self::TYPE_OF_SERVICE, "type_of_service"),
        (Self::VLAN, "vlan"),
        (Self::INPUT_INTERFACE, "input_interface"),
        (Self::OUTPUT_INTERFACE, "output_interface"),
        (Self::PACKETS, "packets"),
        (Self::BYTES, "bytes"),
        (Self::FIRST, "first"),
        (Self::LAST, "last"),
        (Self::TCP_FLAGS, "tcp_flags"),
    ];

    /// Returns whether all fields of `others` are in the set.
    pub const fn contains(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// Returns the fields of either set.
    #[must_use]
    pub const fn union(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Returns the fields of this set that are not in `others`.
    #[must_use]
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Returns this set if `condition` holds, else the empty set.
    pub(crate) const fn when(self, condition: bool) -> Self {
        if condition { self } else { Self::EMPTY }
    }
}

impl BitOr for FieldSet {
    type Output = Self;
    fn bitor(self, others: Self) -> Self {
        self.union(others)
    }
}

impl BitOrAssign for FieldSet {
    fn bitor_assign(&mut self, others: Self) {
        self.0 |= others.0;
    }
}

/// A record during its delivery: the flow, its source and all its fields.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Where the record comes from.
    pub source: &'a Source,
    /// The well-known fields.
    pub flow: &'a FlowRecord,
    pub(crate) content: Content<'a>,
}

/// The encoded record.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content<'a> {
    /// Fields of a template. `positions` is empty if no field has a variable length.
    Fields { template: &'a Template, bytes: &'a [u8], positions: &'a [Position] },
    /// Header bytes of a sampled packet; empty if the sample has none.
    Sample(&'a [u8]),
}

impl<'a> Record<'a> {
    /// Returns the bytes of the first field with this identifier. Samples of sFlow have no fields.
    pub fn field(&self, id: FieldId) -> Option<&'a [u8]> {
        self.fields().find_map(|(field, bytes)| (field == id).then_some(bytes))
    }

    /// Returns [`Self::field`] as an unsigned number; `None` if it has more than 8 bytes.
    pub fn unsigned(&self, id: FieldId) -> Option<u64> {
        self.field(id).filter(|bytes| bytes.len() <= 8).map(unsigned)
    }

    /// Iterates over all fields in the order of the template.
    pub fn fields(&self) -> impl Iterator<Item = (FieldId, &'a [u8])> + use<'a> {
        let (template, bytes, positions) = match self.content {
            Content::Fields { template, bytes, positions } => (Some(template), bytes, positions),
            Content::Sample(_) => (None, &[][..], &[][..]),
        };
        let fields = template.map(Template::fields).unwrap_or_default();
        fields.iter().enumerate().map(move |(number, field)| {
            let fixed = || template.and_then(|template| template.position(number));
            let position = positions.get(number).copied().or_else(fixed).unwrap_or_default();
            (field.id, position.of(bytes))
        })
    }

    /// Returns the template of the record; `None` for samples of sFlow.
    pub const fn template(&self) -> Option<&'a Template> {
        match self.content {
            Content::Fields { template, .. } => Some(template),
            Content::Sample(_) => None,
        }
    }

    /// Returns the header bytes of a sampled packet, if this is a sample with them.
    pub const fn sampled_header(&self) -> Option<&'a [u8]> {
        match self.content {
            Content::Sample(header) if !header.is_empty() => Some(header),
            _ => None,
        }
    }
}
