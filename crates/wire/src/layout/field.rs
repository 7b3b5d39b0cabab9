//! Fields of header layouts.

use super::Space;

/// A field of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name in plans and messages.
    pub name: &'static str,
    /// Offset in bits from the start of the header, with all optional fields present.
    pub bit_offset: usize,
    /// Size in bits; 0 for a variable number of bytes, only allowed for the last field.
    pub bits: usize,
    /// Format of the value.
    pub kind: ValueKind,
    /// Value if none is given and the role does not supply one.
    pub default: u128,
    /// How to compute the value if none is given.
    pub role: Role,
    /// Condition under which the field is present.
    pub presence: Presence,
}

/// Format of a field value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// A number.
    Uint,
    /// An Ethernet address.
    Mac,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// Bytes.
    Bytes,
}

/// How to compute a field if no value is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Use the default.
    Plain,
    /// Nothing: the field is another view of bits that other fields own.
    View,
    /// The length of the header in units, minus `less`.
    HeaderLength {
        /// Bytes in a unit.
        unit: usize,
        /// Units to subtract.
        subtract: usize,
    },
    /// The number of bytes from byte `from` of the header to the end of the packet.
    LengthToEnd {
        /// First byte that counts.
        from: usize,
    },
    /// The number of items, minus `less`.
    ItemCount {
        /// Items to subtract.
        less: usize,
    },
    /// A checksum.
    Checksum(ChecksumCoverage),
    /// The number of the next header.
    NextProtocol(Space),
    /// Nothing: the number of this header, which the header before it holds.
    OwnNumber(Space),
    /// 1 unless a header of the same layout follows (bottom of stack).
    IsLast,
    /// 1 if a value is given for one of these fields or items.
    Flag(&'static [&'static str]),
}

/// Data that a checksum covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumCoverage {
    /// The header.
    Header,
    /// The header and everything behind it.
    Packet,
    /// The header, everything behind it, and a pseudo-header of the IP header before it.
    PacketAndAddresses {
        /// Whether zero is written as all ones (UDP, RFC 768).
        never_zero: bool,
    },
    /// The header and everything behind it, by CRC-32C.
    Crc32c,
}

/// Condition under which a field is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Always.
    Always,
    /// If a value is given for one of these fields.
    IfSet(&'static [&'static str]),
    /// If one of these fields is not 0.
    IfFlagSet(&'static [&'static str]),
}

impl Field {
    const fn new(name: &'static str, bit_offset: usize, bits: usize, kind: ValueKind) -> Self {
        let (role, presence) = (Role::Plain, Presence::Always);
        Self { name, bit_offset, bits, kind, default: 0, role, presence }
    }

    pub(super) const fn default(mut self, value: u128) -> Self {
        self.default = value;
        self
    }

    pub(super) const fn role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    pub(super) const fn view(self) -> Self {
        self.role(Role::View)
    }

    pub(super) const fn if_set(mut self, fields: &'static [&'static str]) -> Self {
        self.presence = Presence::IfSet(fields);
        self
    }

    pub(super) const fn if_flag_set(mut self, fields: &'static [&'static str]) -> Self {
        self.presence = Presence::IfFlagSet(fields);
        self
    }
}

pub(super) const fn uint(name: &'static str, bit_offset: usize, bits: usize) -> Field {
    Field::new(name, bit_offset, bits, ValueKind::Uint)
}

pub(super) const fn mac(name: &'static str, bit_offset: usize) -> Field {
    Field::new(name, bit_offset, 48, ValueKind::Mac)
}

pub(super) const fn ipv4(name: &'static str, bit_offset: usize) -> Field {
    Field::new(name, bit_offset, 32, ValueKind::Ipv4)
}

pub(super) const fn ipv6(name: &'static str, bit_offset: usize) -> Field {
    Field::new(name, bit_offset, 128, ValueKind::Ipv6)
}

pub(super) const fn bytes(name: &'static str, bit_offset: usize) -> Field {
    Field::new(name, bit_offset, 0, ValueKind::Bytes)
}

pub(super) const fn checksum(
    name: &'static str,
    bit_offset: usize,
    covered: ChecksumCoverage,
) -> Field {
    uint(name, bit_offset, 16).role(Role::Checksum(covered))
}

/// Returns a field for the length of an option in bytes, type and length included.
pub(super) const fn option_length(bit_offset: usize) -> Field {
    uint("length", bit_offset, 8).role(Role::HeaderLength { unit: 1, subtract: 0 })
}
